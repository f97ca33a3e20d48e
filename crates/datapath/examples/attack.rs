//! What attacks on flow caches cost others: legitimate flows that are cached, and vectors
//! of an attacker between theirs. Only the vectors of legitimate flows are timed.
//!
//! ```text
//! cargo run --release -p classyard-datapath --example attack
//! ```
//! - *tuple space explosion*: three rules, on a source port, a destination port and an
//!   address, and packets that differ from each at every bit: 8,192 masks
//! - *random flows*: every packet a flow of its own

#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use classyard_datapath::flow::Command;
use classyard_datapath::pipeline::{Discard, Pipeline, Worker};
use classyard_datapath::{Field, Packet};

mod support;

use support::{entry, tcp};

/// Packets of a vector.
const VECTOR: usize = 256;

/// Legitimate flows.
const FLOWS: u32 = 1000;

/// Vectors of each kind.
const VECTORS: usize = 40_000;

/// Turns of all attacks.
const TURNS: usize = 3;

fn main() {
    for tables in [1, 3, 12] {
        for turn in 0..TURNS {
            let mut quiet = 0.0;
            for attack in [None, Some(exploding as Attacker), Some(random as Attacker)] {
                let mut pipeline = pipeline(tables);
                let caches = support::caches(131_072, Some(clock));
                let mut worker = pipeline.cached_worker(caches);
                let rate = measure(&mut worker, attack);
                let status = worker.caches().expect("it has caches");
                let what = match attack {
                    None => "quiet",
                    Some(attack) if attack as usize == exploding as Attacker as usize => {
                        "tuple space explosion"
                    }
                    Some(_) => "random flows",
                };
                if attack.is_none() {
                    quiet = rate;
                }
                println!(
                    "{tables} tables, turn {turn}, {what}: {:.1} M packets/s of legitimate \
                     flows, {:.2} of the quiet rate; {} megaflows, {} masks, {:.1} MB",
                    rate / 1e6,
                    rate / quiet,
                    status.megaflows,
                    status.masks,
                    (status.megaflow_bytes + status.microflows.bytes) as f64 / 1e6
                );
            }
        }
    }
}

/// The time since it was first asked for.
fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// The packet of a number.
type Attacker = fn(u64) -> Packet;

/// Packets a second of legitimate flows, with a vector of an attacker after each of theirs.
fn measure(worker: &mut Worker, attack: Option<Attacker>) -> f64 {
    let mut legitimate: Vec<Packet> = (0..FLOWS).map(legitimate).collect();
    let (mut number, mut spent, mut packets) = (0, Duration::ZERO, 0);
    for vector in 0..VECTORS {
        let from = vector * VECTOR % (legitimate.len() - VECTOR);
        let ours = &mut legitimate[from..from + VECTOR];
        let begin = Instant::now();
        worker.process(ours, Duration::ZERO, &mut Discard);
        // What comes first is still to be learned.
        if vector > VECTORS / 4 {
            spent += begin.elapsed();
            packets += VECTOR;
        }
        if let Some(attack) = attack {
            let mut theirs: Vec<Packet> =
                (0..VECTOR as u64).map(|at| attack(number + at)).collect();
            number += VECTOR as u64;
            worker.process(&mut theirs, Duration::ZERO, &mut Discard);
        }
    }
    packets as f64 / spent.as_secs_f64()
}

fn legitimate(flow: u32) -> Packet {
    let port = u16::try_from(20_000 + flow).expect("few flows");
    tcp((0x0a00_0001 + flow, port), (ADDRESS, PORTS.1))
}

/// What the rules are about.
const ADDRESS: u32 = 0xc0a8_0102;
const PORTS: (u16, u16) = (12_345, 443);

/// Differs from each rule first at another bit: 16 × 16 × 32 ways.
fn exploding(number: u64) -> Packet {
    let bit = |shift: u32, width: u64| u32::try_from(number >> shift & (width - 1)).unwrap_or(0);
    let port = |port: u16, bit: u32| port ^ 1 << bit;
    tcp(
        (0x0a00_0001, port(PORTS.0, bit(0, 16))),
        (ADDRESS ^ 1 << bit(8, 32), port(PORTS.1, bit(4, 16))),
    )
}

fn random(number: u64) -> Packet {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [a, b, c, d, e, f, g, h] = (mixed ^ mixed >> 29).to_be_bytes();
    let (source, destination) = ([a, b, c, d], [e, f, g, h]);
    tcp(
        (u32::from_be_bytes(source), u16::from_be_bytes([c, f])),
        (u32::from_be_bytes(destination), u16::from_be_bytes([d, a])),
    )
}

/// So many tables, the last of which has the three rules and one for all other packets.
fn pipeline(tables: u8) -> Pipeline {
    let last = tables - 1;
    let on = (0..last).map(|table| entry(Command::Add, (table, 0), &[], Some(table + 1)));
    let of = |priority, field: Field, value| {
        let exact = |field: Field, value| (field, value, field.max_value());
        let values = [
            exact(Field::EthType, 0x800),
            exact(Field::IpProto, 6),
            exact(field, value),
        ];
        entry(Command::Add, (last, priority), &values, None)
    };
    let rules = [
        of(30, Field::TcpSrc, u128::from(PORTS.0)),
        of(20, Field::TcpDst, u128::from(PORTS.1)),
        of(10, Field::Ipv4Dst, u128::from(ADDRESS)),
        entry(Command::Add, (last, 0), &[], None),
    ];
    support::pipeline(on.chain(rules))
}
