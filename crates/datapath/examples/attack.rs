//! Measures the cost of attacks on flow caches for other traffic: vectors of legitimate,
//! cached flows alternate with vectors of an attacker. Reports the rate of the legitimate
//! vectors and of all packets. A worker without caches shows how much the attacker's
//! packets cost by displacing memory from the CPU's caches.
//!
//! ```text
//! cargo run --release -p classyard-datapath --example attack
//! ```
//! - *tuple space explosion*: three rules, on a source port, a destination port and an
//!   address, and packets that differ from each rule at every bit: 8,192 masks
//! - *random flows*: every packet belongs to a new flow

#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use classyard_datapath::flow::Command;
use classyard_datapath::pipeline::{Discard, Pipeline, Worker};
use classyard_datapath::{Field, Packet};

mod support;

use support::{entry, tcp};

/// The number of packets in a vector.
const VECTOR_PACKETS: usize = 256;

/// The number of legitimate flows.
const LEGITIMATE_FLOWS: u32 = 1000;

/// The number of vectors per turn, of turns per contender, and of first turns that do not
/// count, since legitimate flows are still being learned.
const TURN_VECTORS: usize = 2000;
const TOTAL_TURNS: usize = 24;
const FIRST_TURNS: usize = 6;

fn main() {
    for tables in [1, 3, 12] {
        let kinds: [(&str, Option<Attacker>); 3] = [
            ("quiet", None),
            ("tuple space explosion", Some(exploding)),
            ("random flows", Some(random)),
        ];
        let caches = [Caches::Selected, Caches::AlwaysUsed, Caches::None];
        let contenders = caches.map(|caches| kinds.map(|(name, attack)| (caches, name, attack)));
        let contenders = contenders.into_iter().flatten();
        let mut contenders: Vec<_> = contenders
            .map(|(caches, name, attack)| Contender::new(tables, caches, name, attack))
            .collect();
        // Turns are interleaved, so that all contenders have the same conditions.
        for turn in 0..TOTAL_TURNS {
            for contender in &mut contenders {
                contender.run(turn >= FIRST_TURNS);
            }
        }
        for of_one_kind in contenders.chunks(kinds.len()) {
            let (quiet, _) = of_one_kind[0].rates();
            of_one_kind
                .iter()
                .for_each(|contender| contender.report(tables, quiet));
        }
    }
}

/// The caches of a worker.
#[derive(Clone, Copy, Debug)]
enum Caches {
    /// Caches that the worker bypasses when they do not pay.
    Selected,
    /// Caches that look every packet up.
    AlwaysUsed,
    None,
}

/// A worker with an attacker or without.
struct Contender {
    caches: Caches,
    name: &'static str,
    attack: Option<Attacker>,
    // Must stay alive, since a worker reads it.
    _pipeline: Pipeline,
    worker: Worker,
    legitimate: Vec<Packet>,
    /// The number of the attacker's next packet.
    number: u64,
    /// The time of each turn: for the legitimate flows, and for all packets.
    turns: Vec<(Duration, Duration)>,
}

impl Contender {
    fn new(tables: u8, caches: Caches, name: &'static str, attack: Option<Attacker>) -> Contender {
        let mut pipeline = pipeline(tables);
        let worker = match caches {
            Caches::Selected => pipeline.cached_worker(support::caches(131_072, Some(clock))),
            Caches::AlwaysUsed => pipeline.cached_worker(support::caches(131_072, None)),
            Caches::None => pipeline.worker(),
        };
        Contender {
            caches,
            name,
            attack,
            _pipeline: pipeline,
            worker,
            legitimate: (0..LEGITIMATE_FLOWS).map(legitimate).collect(),
            number: 0,
            turns: Vec::new(),
        }
    }

    /// Processes a turn: each timed vector of legitimate flows is followed by a vector of
    /// the attacker, or of other legitimate flows.
    fn run(&mut self, counts: bool) {
        let (mut spent, mut on_others) = (Duration::ZERO, Duration::ZERO);
        for vector in 0..TURN_VECTORS {
            let start = vector * VECTOR_PACKETS % (self.legitimate.len() - VECTOR_PACKETS);
            let ours = &mut self.legitimate[start..start + VECTOR_PACKETS];
            let begin = Instant::now();
            self.worker.process(ours, Duration::ZERO, &mut Discard);
            spent += begin.elapsed();
            let mut theirs: Vec<Packet> = match self.attack {
                None => self.legitimate[..VECTOR_PACKETS].to_vec(),
                Some(attack) => (0..VECTOR_PACKETS as u64)
                    .map(|at| attack(self.number + at))
                    .collect(),
            };
            self.number += VECTOR_PACKETS as u64;
            let begin = Instant::now();
            self.worker
                .process(&mut theirs, Duration::ZERO, &mut Discard);
            on_others += begin.elapsed();
        }
        if counts {
            self.turns.push((spent, spent + on_others));
        }
    }

    /// Prints the rates, also as a share of the quiet rate.
    fn report(&self, tables: u8, quiet: f64) {
        let (legitimate, all) = self.rates();
        print!(
            "{tables} tables, {:?}, {}: {:.1} M packets/s of legitimate flows, {:.2} of the quiet \
             rate; {:.1} of all",
            self.caches,
            self.name,
            legitimate / 1e6,
            legitimate / quiet,
            all / 1e6,
        );
        let Some(status) = self.worker.caches() else {
            println!();
            return;
        };
        let vectors = (TURN_VECTORS * TOTAL_TURNS * 2) as f64;
        println!(
            "; {} megaflows, {} masks, {:.1} MB, bypassed by {:.0} % of the vectors",
            status.megaflows,
            status.masks,
            (status.megaflow_bytes + status.microflows.bytes) as f64 / 1e6,
            status.microflow_bypasses as f64 / vectors * 100.0,
        );
    }

    /// Returns the packets per second of legitimate flows, and of all: medians of all
    /// turns.
    fn rates(&self) -> (f64, f64) {
        let packets = (TURN_VECTORS * VECTOR_PACKETS) as f64;
        let median = |time: fn(&(Duration, Duration)) -> Duration| {
            let mut turns: Vec<_> = self.turns.iter().map(time).collect();
            turns.sort_unstable();
            turns[turns.len() / 2].as_secs_f64()
        };
        (
            packets / median(|&(legitimate, _)| legitimate),
            2.0 * packets / median(|&(_, all)| all),
        )
    }
}

/// Returns the time since the first call.
fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Returns the packet with a number.
type Attacker = fn(u64) -> Packet;

fn legitimate(flow: u32) -> Packet {
    let port = u16::try_from(20_000 + flow).expect("few flows");
    tcp((0x0a00_0001 + flow, port), (RULE_ADDRESS, RULE_PORTS.1))
}

/// The values that the rules match.
const RULE_ADDRESS: u32 = 0xc0a8_0102;
const RULE_PORTS: (u16, u16) = (12_345, 443);

/// Differs from each rule first at another bit: 16 × 16 × 32 combinations.
fn exploding(number: u64) -> Packet {
    let bit = |shift: u32, width: u64| u32::try_from(number >> shift & (width - 1)).unwrap_or(0);
    let port = |port: u16, bit: u32| port ^ 1 << bit;
    tcp(
        (0x0a00_0001, port(RULE_PORTS.0, bit(0, 16))),
        (
            RULE_ADDRESS ^ 1 << bit(8, 32),
            port(RULE_PORTS.1, bit(4, 16)),
        ),
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

/// Returns a pipeline of `tables` tables. The last has the three rules, and a rule for
/// all other packets.
fn pipeline(tables: u8) -> Pipeline {
    let last = tables - 1;
    let on = (0..last).map(|table| entry(Command::Add, (table, 0), &[], Some(table + 1)));
    let rule = |priority, field: Field, value| {
        let exact = |field: Field, value| (field, value, field.max_value());
        let values = [
            exact(Field::EthType, 0x800),
            exact(Field::IpProto, 6),
            exact(field, value),
        ];
        entry(Command::Add, (last, priority), &values, None)
    };
    let rules = [
        rule(30, Field::TcpSrc, u128::from(RULE_PORTS.0)),
        rule(20, Field::TcpDst, u128::from(RULE_PORTS.1)),
        rule(10, Field::Ipv4Dst, u128::from(RULE_ADDRESS)),
        entry(Command::Add, (last, 0), &[], None),
    ];
    support::pipeline(on.chain(rules))
}
