//! Network namespaces, and packets, for tests of devices. A test that cannot run says so.

#![allow(dead_code)] // Each test file uses a part.
#![allow(unsafe_code, clippy::print_stderr)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use classyard_datapath::Packet;
use classyard_datapath::packet::{Offload, PartialChecksum, SegmentKind, Segmentation};
use classyard_ports::Queue;

/// The time after which a frame or an event counts as lost.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// Runs a test in a network namespace of its own, which ends with the thread and its sockets.
/// Prints a line if the test cannot run: not as root, or without `ip`.
pub(crate) fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    if Command::new("ip").arg("-V").output().is_err() {
        eprintln!("SKIPPED {name}: the program `ip` is missing");
        return;
    }
    unshared(name, libc::CLONE_NEWNET, || {
        ip("link set lo up");
        // The host sends no frames of its own.
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        test();
    });
}

/// Runs a test with a file system of 64 KiB in a folder.
pub(crate) fn in_small_file_system(
    name: &str,
    folder: PathBuf,
    test: impl FnOnce() + Send + 'static,
) {
    let test_name = name.to_owned();
    unshared(name, libc::CLONE_NEWNS, move || {
        let mount = |arguments: &[&str]| {
            let output = Command::new("mount").args(arguments).arg(&folder).output();
            output.is_ok_and(|output| output.status.success())
        };
        let private = Command::new("mount")
            .args(["--make-rprivate", "/"])
            .status();
        let is_private = private.is_ok_and(|status| status.success());
        if is_private && mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
            test();
        } else {
            eprintln!("SKIPPED {test_name}: a small file system cannot be mounted");
        }
    });
}

/// Runs a test in a thread with namespaces of its own.
fn unshared(name: &str, namespaces: libc::c_int, test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call changes only the namespaces of this thread.
        if unsafe { libc::unshare(namespaces) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        test();
        Ok(())
    });
    match thread.join() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => eprintln!("SKIPPED {name}: no namespace ({error}); run as root"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs `ip` with arguments in the namespace of this thread.
#[track_caller]
pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("`ip` runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {message}");
}

/// Creates a pair of interfaces that are up.
pub(crate) fn veth(first: &str, second: &str) {
    ip(&format!("link add {first} type veth peer name {second}"));
    ip(&format!("link set {first} up"));
    ip(&format!("link set {second} up"));
}

/// Calls `step` until it returns something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < MAX_WAIT {
        if let Some(found) = step() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{what}: nothing in {MAX_WAIT:?}");
}

/// Receives the next packet of a queue.
#[track_caller]
pub(crate) fn receive(queue: &mut dyn Queue) -> Packet {
    let mut packet = [Packet::default()];
    wait_for("a frame", || {
        let count = queue.receive(&mut packet, 1).expect("the device works");
        (count > 0).then_some(())
    });
    let [packet] = packet;
    packet
}

/// Sends a packet.
#[track_caller]
pub(crate) fn send(queue: &mut dyn Queue, frame: &[u8], offload: Offload) {
    let mut packet = Packet::default();
    packet.receive_offloaded(frame, 1, offload);
    assert_eq!(queue.send(&packet), classyard_ports::Sent::Queued);
    queue.flush().expect("the device works");
}

/// Returns a frame of an experimental type (0x88b5) with a number, of a length of at least 18.
pub(crate) fn plain_frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    frame.extend(number.to_be_bytes());
    let first = number.to_le_bytes()[0];
    frame.extend(
        (0..=255)
            .cycle()
            .map(|byte: u8| byte.wrapping_add(first))
            .take(length - 18),
    );
    frame
}

/// Returns the ones' complement sum of bytes.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let mut sum: u64 = words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap()
}

/// Returns a TCP frame over IPv4 with a partial checksum, and the work that cuts it into
/// segments of 1,448 bytes.
pub(crate) fn tcp_frame(port: u16, payload: usize) -> (Vec<u8>, Offload) {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let length = u16::try_from(40 + payload).unwrap().to_be_bytes();
    frame.extend([0x45, 0, length[0], length[1], 0, 7, 0x40, 0, 64, 6, 0, 0]);
    frame.extend([10, 9, 0, 1, 10, 9, 0, 2]);
    let checksum = !sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 80, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..=255_u8).cycle().take(payload));
    let tcp_bytes = u16::try_from(20 + payload).unwrap().to_be_bytes();
    let partial = sum(&[&frame[26..34], &[0, 6], &tcp_bytes].concat());
    frame[50..52].copy_from_slice(&partial.to_be_bytes());
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        segmentation: Some(Segmentation {
            kind: SegmentKind::TcpIpv4,
            segment_bytes: 1_448,
            network: 14,
            transport: 34,
        }),
    };
    (frame, offload)
}

/// True if the kernel takes frames to cut into segments of UDP: Linux 6.2 and later.
pub(crate) fn has_udp_segments() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    number() >= Some(7) || release.starts_with("6.") && number() >= Some(2)
}

/// Returns a UDP frame over IPv6 with a partial checksum, and the work that cuts it into
/// datagrams of 1,000 bytes.
pub(crate) fn udp_frame(payload: usize) -> (Vec<u8>, Offload) {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    let length = u16::try_from(8 + payload).unwrap().to_be_bytes();
    frame.extend([0x60, 0, 0, 0, length[0], length[1], 17, 64]);
    frame.extend([0xfd; 32]);
    frame.extend([0x30, 0x39, 0, 53, length[0], length[1]]);
    let partial = sum(&[&frame[22..54], &[0, 17], &length].concat());
    frame.extend(partial.to_be_bytes());
    frame.extend((0..=255_u8).cycle().take(payload));
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 54,
            offset: 6,
        }),
        segmentation: Some(Segmentation {
            kind: SegmentKind::Udp,
            segment_bytes: 1_000,
            network: 14,
            transport: 54,
        }),
    };
    (frame, offload)
}

/// True if the IPv4 header at a place and the checksum of the TCP segment in it are right.
pub(crate) fn is_right_tcp(frame: &[u8], network: usize) -> bool {
    let transport = network + 20;
    let length = u16::try_from(frame.len() - transport)
        .unwrap()
        .to_be_bytes();
    let addresses = &frame[network + 12..transport];
    let whole = [addresses, &[0, 6], &length, &frame[transport..]].concat();
    sum(&frame[network..transport]) == 0xffff && sum(&whole) == 0xffff
}
