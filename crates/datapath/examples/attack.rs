//! What attacks on flow caches cost others: legitimate flows that are cached, and vectors
//! of an attacker between theirs. Only the vectors of legitimate flows are timed. The same
//! without caches: what packets of others cost by pushing memory out.
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

/// Vectors of one turn of each attack, turns, and those at first that do not count: what
/// is legitimate is still to be learned.
const VECTORS: usize = 2000;
const TURNS: usize = 24;
const FIRST_TURNS: usize = 6;

fn main() {
    for tables in [1, 3, 12] {
        let kinds: [(&str, Option<Attacker>); 3] = [
            ("quiet", None),
            ("tuple space explosion", Some(exploding)),
            ("random flows", Some(random)),
        ];
        let caches = [Caches::Judged, Caches::AlwaysAsked, Caches::None];
        let contenders = caches.map(|caches| kinds.map(|(name, attack)| (caches, name, attack)));
        let contenders = contenders.into_iter().flatten();
        let mut contenders: Vec<_> = contenders
            .map(|(caches, name, attack)| Contender::new(tables, caches, name, attack))
            .collect();
        // In turns, so that all have the same machine.
        for turn in 0..TURNS {
            for contender in &mut contenders {
                contender.run(turn >= FIRST_TURNS);
            }
        }
        for of_one_kind in contenders.chunks(kinds.len()) {
            let (quiet, _) = of_one_kind[0].rates();
            of_one_kind.iter().for_each(|it| it.report(tables, quiet));
        }
    }
}

/// What a worker has before its tables.
#[derive(Clone, Copy, Debug)]
enum Caches {
    /// Caches that are passed by where they do not pay.
    Judged,
    /// Caches that every packet is looked up in.
    AlwaysAsked,
    None,
}

/// A worker with or without somebody who attacks it.
struct Contender {
    caches: Caches,
    name: &'static str,
    attack: Option<Attacker>,
    // It has to stay: a worker reads it.
    _pipeline: Pipeline,
    worker: Worker,
    legitimate: Vec<Packet>,
    /// Packets of the attacker.
    number: u64,
    /// The time of each turn: of the legitimate flows, and of all packets.
    turns: Vec<(Duration, Duration)>,
}

impl Contender {
    fn new(tables: u8, caches: Caches, name: &'static str, attack: Option<Attacker>) -> Contender {
        let mut pipeline = pipeline(tables);
        let worker = match caches {
            Caches::Judged => pipeline.cached_worker(support::caches(131_072, Some(clock))),
            Caches::AlwaysAsked => pipeline.cached_worker(support::caches(131_072, None)),
            Caches::None => pipeline.worker(),
        };
        Contender {
            caches,
            name,
            attack,
            _pipeline: pipeline,
            worker,
            legitimate: (0..FLOWS).map(legitimate).collect(),
            number: 0,
            turns: Vec::new(),
        }
    }

    /// A vector of an attacker, or of other legitimate flows, after each that is timed.
    fn run(&mut self, counts: bool) {
        let (mut spent, mut on_others) = (Duration::ZERO, Duration::ZERO);
        for vector in 0..VECTORS {
            let from = vector * VECTOR % (self.legitimate.len() - VECTOR);
            let ours = &mut self.legitimate[from..from + VECTOR];
            let begin = Instant::now();
            self.worker.process(ours, Duration::ZERO, &mut Discard);
            spent += begin.elapsed();
            let mut theirs: Vec<Packet> = match self.attack {
                None => self.legitimate[..VECTOR].to_vec(),
                Some(attack) => (0..VECTOR as u64)
                    .map(|at| attack(self.number + at))
                    .collect(),
            };
            self.number += VECTOR as u64;
            let begin = Instant::now();
            self.worker
                .process(&mut theirs, Duration::ZERO, &mut Discard);
            on_others += begin.elapsed();
        }
        if counts {
            self.turns.push((spent, spent + on_others));
        }
    }

    /// Says how fast it was, in shares of a quiet rate too.
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
        let vectors = (VECTORS * TURNS * 2) as f64;
        println!(
            "; {} megaflows, {} masks, {:.1} MB, passed by for {:.0} % of the vectors",
            status.megaflows,
            status.masks,
            (status.megaflow_bytes + status.microflows.bytes) as f64 / 1e6,
            status.microflow_by_passed as f64 / vectors * 100.0,
        );
    }

    /// Packets a second of legitimate flows, and of all: medians of all turns.
    fn rates(&self) -> (f64, f64) {
        let packets = (VECTORS * VECTOR) as f64;
        let median = |of: fn(&(Duration, Duration)) -> Duration| {
            let mut turns: Vec<_> = self.turns.iter().map(of).collect();
            turns.sort_unstable();
            turns[turns.len() / 2].as_secs_f64()
        };
        (
            packets / median(|&(legitimate, _)| legitimate),
            2.0 * packets / median(|&(_, all)| all),
        )
    }
}

/// The time since it was first asked for.
fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// The packet of a number.
type Attacker = fn(u64) -> Packet;

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
