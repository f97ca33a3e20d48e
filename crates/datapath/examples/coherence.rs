//! Measures the cost of a change of one flow entry for a worker with many cached
//! megaflows: the time from the moment when the change is visible until a vector of one
//! packet is processed, and the number of megaflows that it made stale. Also measures
//! learning: the time of vectors of 32 packets, each of a new megaflow, with caches and
//! without.
//!
//! ```text
//! cargo run --release -p classyard-datapath --example coherence -- [MEGAFLOWS [ENTRIES]]
//! ```
//! Two tables: the first has an entry for each of 4,096 source networks, the second an
//! entry for each pair of a destination network and a port, by default 65,536 entries.
//! Packets of different pairs have different megaflows.

#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use classyard_datapath::flow::Command;
use classyard_datapath::pipeline::{Discard, Message, Pipeline, Worker};
use classyard_datapath::{Action, Field, Packet};

mod support;

use support::{entry, tcp};

/// The number of entries in the second table, unless an argument gives another one.
const SERVICE_ENTRIES: u32 = 65_536;

/// The number of measured changes of each kind.
const MEASURED_CHANGES: u32 = 400;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let max_megaflows = arguments.next();
    let max_megaflows =
        max_megaflows.map_or(100_000, |text| text.parse().expect("a number of megaflows"));
    let entries = arguments.next();
    let entries = entries.map_or(SERVICE_ENTRIES, |text| {
        text.parse().expect("a number of entries")
    });
    let packet = |flow| packet(flow, entries);
    let mut pipeline = pipeline(entries);
    let mut worker = pipeline.cached_worker(support::caches(1 << 20, None));
    let mut uncached = pipeline.worker();
    let (mut learning, mut passing) = (Vec::new(), Vec::new());
    let mut flow = 0;
    while worker.caches().expect("it has caches").megaflows < max_megaflows {
        for (worker, times) in [(&mut uncached, &mut passing), (&mut worker, &mut learning)] {
            let mut packets: Vec<Packet> = (flow..flow + 32).map(&packet).collect();
            let begin = Instant::now();
            worker.process(&mut packets, Duration::ZERO, &mut Discard);
            times.push(begin.elapsed().as_secs_f64() * 1e6 / 32.0);
        }
        flow += 32;
    }
    let status = worker.caches().expect("it has caches");
    println!(
        "{} megaflows with {} masks and {} paths, {:.1} MB",
        status.megaflows,
        status.masks,
        status.paths,
        status.megaflow_bytes as f64 / 1e6,
    );
    println!(
        "a packet that is learned: median {:.2} µs, without caches {:.2} µs",
        median(&mut learning),
        median(&mut passing)
    );
    let quiet = measure(&mut pipeline, &mut worker, |_, _| {});
    print("no change", &quiet);
    // Changes: an entry that no cached flow overlaps, an entry that some overlap, and the
    // removal of entries on their paths.
    let no_overlap = measure(&mut pipeline, &mut worker, |pipeline, number| {
        apply(
            pipeline,
            &message(Command::Add, 40_000, 0xc000_0000 | number << 8, 7),
        );
    });
    print("an entry that no megaflow overlaps is added", &no_overlap);
    let overlap = measure(&mut pipeline, &mut worker, |pipeline, number| {
        let (network, port) = service(number);
        apply(pipeline, &message(Command::Add, 40_000, network, port));
    });
    print("an entry is added before one that megaflows have", &overlap);
    let gone = measure(&mut pipeline, &mut worker, |pipeline, number| {
        let (network, port) = service(entries / 2 + number);
        let delete = Command::Delete { strict: true };
        apply(pipeline, &message(delete, 100, network, port));
    });
    print("an entry that megaflows have is removed", &gone);
    // The last bits of a network's number are free, so a message modifies many entries.
    for free_bits in [0, 5, 9, 10, 12] {
        let modified = measure(&mut pipeline, &mut worker, |pipeline, number| {
            apply(pipeline, &modification(free_bits, number));
        });
        let entries = 1 << free_bits;
        print(
            &format!("{entries} entries that megaflows have are modified"),
            &modified,
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the times of the first packet after each change, the number of megaflows made
/// stale by new entries, and the number of eras.
fn measure(
    pipeline: &mut Pipeline,
    worker: &mut Worker,
    mut change: impl FnMut(&mut Pipeline, u32),
) -> (Vec<Duration>, u64, u64) {
    let counts = |worker: &Worker| {
        let status = worker.caches().expect("it has caches");
        (status.outdated, status.revalidations)
    };
    let before = counts(worker);
    let times = (0..MEASURED_CHANGES).map(|number| {
        change(pipeline, number);
        let mut packets = [packet(0, SERVICE_ENTRIES)];
        let begin = Instant::now();
        worker.process(&mut packets, Duration::ZERO, &mut Discard);
        begin.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    let after = counts(worker);
    (times, after.0 - before.0, after.1 - before.1)
}

fn print(what: &str, (times, outdated, eras): &(Vec<Duration>, u64, u64)) {
    let micros = |at: usize| times[at].as_secs_f64() * 1e6;
    println!(
        "{what}: median {:.1} µs, 99 % {:.1} µs, most {:.1} µs; {:.1} megaflows outdated, {eras} eras",
        micros(times.len() / 2),
        micros(times.len() * 99 / 100),
        micros(times.len() - 1),
        *outdated as f64 / f64::from(MEASURED_CHANGES)
    );
}

/// Returns the network and port of an entry of the second table.
fn service(number: u32) -> (u32, u16) {
    let port = u16::try_from(1000 + number % 16).expect("a small number");
    (0x0a00_0000 | (number / 16) << 8, port)
}

/// Returns a packet of a flow. Source and service differ from the previous flow's.
fn packet(flow: u32, entries: u32) -> Packet {
    let mixed = flow.wrapping_mul(0x9e37_79b1);
    let (network, port) = service(mixed % entries);
    let source = 0x1400_0000 | (mixed >> 20) << 12 | 5;
    tcp((source, 30_000), (network | 9, port))
}

fn ipv4() -> (Field, u128, u128) {
    (Field::EthType, 0x800, 0xffff)
}

/// Returns a message about an entry of the second table.
fn message(command: Command, priority: u16, network: u32, port: u16) -> Message {
    let values = [
        ipv4(),
        (Field::IpProto, 6, 0xff),
        (Field::Ipv4Dst, u128::from(network), 0xffff_ff00),
        (Field::TcpDst, u128::from(port), 0xffff),
    ];
    entry(command, (1, priority), &values, None)
}

/// Returns a message that modifies 2^`free_bits` entries of the first table, each time in
/// another way. Packets keep their paths.
fn modification(free_bits: u32, number: u32) -> Message {
    let mask = u128::from(0xffff_f000_u32 << free_bits);
    let source = (Field::Ipv4Src, 0x1400_0000 & mask, mask);
    let command = Command::Modify { strict: false };
    let mut message = entry(command, (0, 0), &[ipv4(), source], Some(1));
    if let Message::Flow(flow) = &mut message {
        Arc::make_mut(&mut flow.instructions).apply = vec![Action::SetQueue(number % 2)];
    }
    message
}

fn apply(pipeline: &mut Pipeline, message: &Message) {
    let applied = pipeline.apply(std::slice::from_ref(message), Duration::ZERO);
    applied.expect("the message fits");
}

fn pipeline(entries: u32) -> Pipeline {
    let networks = (0..4096).map(|number| {
        let source = (Field::Ipv4Src, 0x1400_0000 | number << 12, 0xffff_f000);
        entry(Command::Add, (0, 10), &[ipv4(), source], Some(1))
    });
    let services = (0..entries).map(|number| {
        let (network, port) = service(number);
        message(Command::Add, 100, network, port)
    });
    support::pipeline(networks.chain(services))
}
