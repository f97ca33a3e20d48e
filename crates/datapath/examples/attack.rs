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

use std::sync::Arc;
use std::time::{Duration, Instant};

use classyard::EngineSpec;
use classyard_datapath::cache::microflow::KINDS;
use classyard_datapath::flow::{Command, FlowFlags, FlowMod, Instructions, TableId};
use classyard_datapath::pipeline::{CacheSettings, Discard, Message, Pipeline, PortState, Worker};
use classyard_datapath::{Action, Field, FieldValue, FlowMatch, Packet, PortNo, TableSettings};

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
                let caches = CacheSettings {
                    microflows: KINDS.last().map(|&kind| (kind, 131_072)),
                    megaflows: true,
                    max_megaflows: 131_072,
                    max_masks: 32,
                    always: false,
                    seed: 1,
                };
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

fn frame(source: u32, destination: u32, ports: (u16, u16)) -> Packet {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(source.to_be_bytes());
    frame.extend(destination.to_be_bytes());
    frame.extend(ports.0.to_be_bytes());
    frame.extend(ports.1.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    Packet::new(&frame, 1)
}

fn legitimate(flow: u32) -> Packet {
    let port = u16::try_from(20_000 + flow).expect("few flows");
    frame(0x0a00_0001 + flow, ADDRESS, (port, PORTS.1))
}

/// What the rules are about.
const ADDRESS: u32 = 0xc0a8_0102;
const PORTS: (u16, u16) = (12_345, 443);

/// Differs from each rule first at another bit: 16 × 16 × 32 ways.
fn exploding(number: u64) -> Packet {
    let bit = |shift: u32, width: u64| u32::try_from(number >> shift & (width - 1)).unwrap_or(0);
    let port = |port: u16, bit: u32| port ^ 1 << bit;
    frame(
        0x0a00_0001,
        ADDRESS ^ 1 << bit(8, 32),
        (port(PORTS.0, bit(0, 16)), port(PORTS.1, bit(4, 16))),
    )
}

fn random(number: u64) -> Packet {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [a, b, c, d, e, f, g, h] = (mixed ^ mixed >> 29).to_be_bytes();
    frame(
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
        (u16::from_be_bytes([c, f]), u16::from_be_bytes([d, a])),
    )
}

/// So many tables, the last of which has the three rules and one for all other packets.
fn pipeline(tables: u8) -> Pipeline {
    let mut pipeline = Pipeline::new(TableSettings {
        engine: EngineSpec::parse("forest").expect("the engine's name"),
        rebuild_below: 1000,
    });
    let port = |number| Message::Port(PortNo(number), Some(PortState::default()));
    let mut messages = vec![port(1), port(2)];
    for table in 0..tables - 1 {
        messages.push(entry(TableId(table), 0, &[], Some(TableId(table + 1))));
    }
    let last = TableId(tables - 1);
    let tcp = [(Field::EthType, 0x800), (Field::IpProto, 6)];
    let of = |field, value| [tcp[0], tcp[1], (field, value)];
    messages.push(entry(
        last,
        30,
        &of(Field::TcpSrc, u128::from(PORTS.0)),
        None,
    ));
    messages.push(entry(
        last,
        20,
        &of(Field::TcpDst, u128::from(PORTS.1)),
        None,
    ));
    messages.push(entry(
        last,
        10,
        &of(Field::Ipv4Dst, u128::from(ADDRESS)),
        None,
    ));
    messages.push(entry(last, 0, &[], None));
    pipeline
        .apply(&messages, Duration::ZERO)
        .expect("the messages fit");
    pipeline.rebuild().expect("engines are built");
    pipeline
}

fn entry(
    table: TableId,
    priority: u16,
    values: &[(Field, u128)],
    goto_table: Option<TableId>,
) -> Message {
    let values = values.iter();
    let values = values.map(|&(field, value)| FieldValue::exact(field, value));
    let output = Action::Output {
        port: PortNo(2),
        max_len: 0,
    };
    Message::Flow(FlowMod {
        command: Command::Add,
        table,
        priority,
        flow: Arc::new(FlowMatch::new(values).expect("a match")),
        cookie: 0,
        cookie_mask: 0,
        idle_timeout: 0,
        hard_timeout: 0,
        importance: 0,
        flags: FlowFlags::default(),
        instructions: Arc::new(Instructions {
            apply: if goto_table.is_none() {
                vec![output]
            } else {
                Vec::new()
            },
            goto_table,
            ..Instructions::default()
        }),
        out_port: None,
        out_group: None,
    })
}
