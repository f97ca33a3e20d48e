//! A wire between two network interfaces: each frame that one receives is sent by the other.
//! Checksums and segments that hosts leave to network cards pass through.
//!
//! ```text
//! cargo run --release -p classyard-ports --example wire -- veth1 veth2 [SECONDS]
//! ```
//! It needs root, or the capability `cap_net_raw`. At the end it prints the counts.

use std::error::Error;
use std::io;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use classyard_datapath::Packet;
use classyard_ports::{Device, DeviceSettings, Queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The packets of one vector.
const VECTOR_PACKETS: usize = 256;

/// The longest sleep: then the time is looked at.
const MAX_SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

#[allow(clippy::print_stderr)]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (first, second, seconds) = match &*arguments {
        [first, second] => (first, second, u64::MAX),
        [first, second, seconds] => (first, second, seconds.parse()?),
        _ => return Err("expected: wire INTERFACE INTERFACE [SECONDS]".into()),
    };
    let (devices, mut ends) = open([first, second])?;
    let end = Instant::now().checked_add(Duration::from_secs(seconds));
    let mut packets = vec![Packet::default(); VECTOR_PACKETS];
    while end.is_none_or(|end| Instant::now() < end) {
        let [left, right] = &mut ends;
        let mut received = carry(&mut **left, &mut **right, &mut packets)?;
        received += carry(&mut **right, &mut **left, &mut packets)?;
        if received == 0 {
            sleep(&ends)?;
        }
    }
    for (name, device, queue) in [(first, &devices[0], 0), (second, &devices[1], 1)] {
        ends[queue].update_counts();
        report(name, device)?;
    }
    Ok(())
}

/// The devices and their queues.
type Ends = ([Device; 2], [Box<dyn Queue>; 2]);

/// Opens both ends with one queue each.
fn open(names: [&String; 2]) -> Result<Ends, Box<dyn Error>> {
    let open = |name: &String| {
        let name = name.clone();
        let (device, queues) = Device::open(&DeviceSettings::Interface { name }, 1)?;
        let queue = queues.into_iter().next().ok_or("a device without queues")?;
        Ok::<_, Box<dyn Error>>((device, queue))
    };
    let [(a, left), (b, right)] = [open(names[0])?, open(names[1])?];
    Ok(([a, b], [left, right]))
}

/// Carries a vector of packets from one end to the other. Returns their number.
fn carry(from: &mut dyn Queue, to: &mut dyn Queue, packets: &mut [Packet]) -> io::Result<usize> {
    // A wire carries nothing while an end is down.
    let received = match from.receive(packets, 1) {
        Err(error) if error.kind() == io::ErrorKind::NetworkDown => 0,
        received => received?,
    };
    for packet in &packets[..received] {
        to.send(packet);
    }
    match to.flush() {
        Err(error) if error.kind() == io::ErrorKind::NetworkDown => {}
        flushed => flushed?,
    }
    Ok(received)
}

/// Sleeps until one end has frames.
fn sleep(ends: &[Box<dyn Queue>; 2]) -> io::Result<()> {
    let descriptors = ends.iter().filter_map(|end| end.descriptor());
    let mut waits: Vec<PollFd<'_>> = descriptors
        .map(|descriptor: BorrowedFd<'_>| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
        .collect();
    match poll(&mut waits, Some(&MAX_SLEEP)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Prints the counts of an end.
#[allow(clippy::print_stdout)]
fn report(name: &str, device: &Device) -> io::Result<()> {
    let (counts, link) = (device.counts(), device.link()?);
    println!(
        "{name} (mtu {}): received {} packets, {} bytes; sent {} packets, {} bytes; missed {}, \
         no room {}, refused {}, too long {}",
        link.mtu,
        counts.received_packets,
        counts.received_bytes,
        counts.sent_packets,
        counts.sent_bytes,
        counts.missed,
        counts.no_room,
        counts.refused,
        counts.sent_too_long,
    );
    Ok(())
}
