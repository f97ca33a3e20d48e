//! Pipelines that change while workers process packets: atomic changes, exact counts, and
//! timeouts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use classyard::{EngineSpec, NoProgress, RuleId};
use classyard_datapath::flow::{RemovalReason, TableId};
use classyard_datapath::pipeline::{
    Count, Message, PacketInReason, Pipeline, PortState, RemovedFlow, Sink, Worker,
};
use classyard_datapath::text::read;
use classyard_datapath::{
    Action, ErrorCode, Field, GroupId, MatchField, MeterId, Packet, PortNo, TableSettings,
};

use crate::frames::Dice;

fn pipeline(engine: &str) -> Pipeline {
    let engine = EngineSpec::parse(engine).unwrap();
    let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap().rebuild_below(100));
    let ports = [1, 2, 3].map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    pipeline.apply(&ports, Duration::ZERO).unwrap();
    pipeline
}

fn messages(text: &str) -> Vec<Message> {
    let located = read(text).unwrap_or_else(|problems| panic!("{}", problems.shown()[0]));
    located.into_iter().map(|one| one.message).collect()
}

fn apply(pipeline: &mut Pipeline, now: u64, text: &str) -> Result<(), (usize, ErrorCode)> {
    let result = pipeline.apply(&messages(text), Duration::from_secs(now));
    result
        .map(drop)
        .map_err(|refused| (refused.index(), refused.error().code()))
}

/// The registers of sent packets, with the number of packets.
#[derive(Default)]
struct Seen {
    registers: BTreeMap<[u128; 3], u64>,
    sent: u64,
    bytes: u64,
}

impl Sink for Seen {
    fn send(&mut self, _: PortNo, _: Option<u32>, packet: &Packet) {
        let registers = [Field::Reg0, Field::Reg1, Field::Reg2];
        let registers = registers.map(|field| packet.key().get(field));
        *self.registers.entry(registers).or_default() += 1;
        self.sent += 1;
        self.bytes += packet.bytes().len() as u64;
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {}
}

/// Returns a frame of TCP over IPv4 to an address and port.
fn tcp(address: u32, port: u16) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64,
    ];
    frame.extend([6, 0, 0, 10, 0, 0, 1]);
    frame.extend(address.to_be_bytes());
    frame.extend([4, 210]);
    frame.extend(port.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn send(worker: &mut Worker, count: usize, now: u64) -> Seen {
    let mut packets = vec![Packet::new(&tcp(0x0a00_0002, 80), 1); count];
    let mut seen = Seen::default();
    worker.process(&mut packets, Duration::from_secs(now), &mut seen);
    seen
}

/// Returns three tables of flows; each table writes `number` to its own register.
fn generation(number: u64, flows: u64) -> Vec<Message> {
    let mut text = String::new();
    for table in 0..3 {
        let next = match table {
            2 => "output:2".to_owned(),
            _ => format!("goto_table:{}", table + 1),
        };
        for flow in 0..flows / 3 {
            text += &format!(
                "table={table},priority=9,ip,nw_dst=10.1.{}.{} actions=set_field:{number}->reg{table},{next}\n",
                flow >> 8,
                flow & 255
            );
        }
    }
    messages(&text)
}

#[test]
fn a_bundle_over_three_tables_is_seen_whole_or_not_at_all() {
    const FLOWS: u64 = 10_000;
    let mut pipeline = pipeline("forest");
    pipeline
        .apply(&generation(0, FLOWS), Duration::ZERO)
        .unwrap();
    let bundles = [generation(1, FLOWS), generation(2, FLOWS)];
    let (stop, visible) = (AtomicBool::new(false), AtomicU64::new(0));
    let workers = [pipeline.worker(), pipeline.worker()];
    let totals = std::thread::scope(|scope| {
        let (stop, visible) = (&stop, &visible);
        let threads = workers.map(|mut worker| {
            scope.spawn(move || {
                let mut dice = Dice(7);
                let (mut versions, mut vectors) = (BTreeMap::new(), 0_u64);
                while !stop.load(Ordering::Relaxed) || vectors < 20 {
                    let packets = (0..64).map(|_| {
                        let flow = dice.below(FLOWS / 3) as u32;
                        Packet::new(&tcp(0x0a01_0000 + flow, 80), 1)
                    });
                    let mut packets: Vec<Packet> = packets.collect();
                    let min_version = visible.load(Ordering::SeqCst);
                    let mut seen = Seen::default();
                    worker.process(&mut packets, Duration::ZERO, &mut seen);
                    assert_eq!(seen.sent, 64);
                    assert_eq!(seen.registers.len(), 1, "one version for a vector");
                    let (&[a, b, c], _) = seen.registers.first_key_value().unwrap();
                    assert!(a == b && b == c, "{a} {b} {c}");
                    // The effect of a transaction that has returned is visible.
                    if min_version > 0 {
                        assert_ne!(a, 0);
                    }
                    *versions.entry(a).or_insert(0_u64) += 1;
                    vectors += 1;
                }
                (versions, vectors)
            })
        });
        for round in 0..12 {
            pipeline.apply(&bundles[round % 2], Duration::ZERO).unwrap();
            visible.store(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().unwrap())
    });
    let vectors: u64 = totals.iter().map(|(_, vectors)| vectors).sum();
    let flows = pipeline.flows().iter();
    let counted: u64 = flows.map(|flow| pipeline.flow_count(flow.id).packets).sum();
    assert_eq!(counted, vectors * 64 * 3, "exactly, in all three tables");
    let lookups = (0..3).map(|table| pipeline.table_count(TableId(table)).lookups);
    assert_eq!(lookups.sum::<u64>(), vectors * 64 * 3);
}

#[test]
fn packets_of_entries_that_come_and_go_are_all_counted() {
    let mut pipeline = pipeline("tuplemerge");
    apply(&mut pipeline, 0, "priority=0 actions=output:3").unwrap();
    let stop = AtomicBool::new(false);
    let workers = [pipeline.worker(), pipeline.worker()];
    let add = messages("priority=5,tcp,tp_dst=80 actions=output:2");
    let delete = {
        let mut delete = add.clone();
        let Message::Flow(message) = &mut delete[0] else {
            unreachable!("a flow");
        };
        message.command = classyard_datapath::flow::Command::Delete { strict: true };
        delete
    };
    let mut removed: Vec<RemovedFlow> = Vec::new();
    let sent = std::thread::scope(|scope| {
        let stop = &stop;
        let threads = workers.map(|mut worker| {
            scope.spawn(move || {
                let mut sent = Count::default();
                while !stop.load(Ordering::Relaxed) {
                    let seen = send(&mut worker, 32, 0);
                    sent = sent.and(Count {
                        packets: seen.sent,
                        bytes: seen.bytes,
                    });
                }
                sent
            })
        });
        for round in 0..2_000 {
            pipeline.submit(&add, Duration::from_secs(round)).unwrap();
            if round % 7 == 0 {
                pipeline.publish();
            }
            pipeline
                .submit(&delete, Duration::from_secs(round))
                .unwrap();
            if round % 5 == 0 {
                removed.extend(pipeline.collect_removed());
            }
        }
        stop.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().unwrap())
    });
    pipeline.publish();
    removed.extend(pipeline.collect_removed());
    assert_eq!(removed.len(), 2_000);
    let times = removed.iter().map(|one| one.entry.added.as_secs());
    assert!(times.eq(0..2_000), "in order");
    let gone = removed
        .iter()
        .fold(Count::default(), |sum, one| sum.and(one.count));
    let stays = pipeline.flow_count(RuleId::from_index(0));
    assert_eq!(
        gone.and(stays),
        sent[0].and(sent[1]),
        "workers are gone, counts stay"
    );
    assert!(
        removed
            .iter()
            .any(|one| one.entry.id != RuleId::from_index(1))
            || gone.packets == 0
    );
}

#[test]
fn entries_go_when_their_time_is_over() {
    let mut pipeline = pipeline("forest");
    let mut worker = pipeline.worker();
    let text =
        "priority=9,tcp,tp_dst=80,idle_timeout=3,hard_timeout=10,send_flow_rem actions=output:2
                priority=8,tcp,tp_dst=81,idle_timeout=4 actions=output:2
                priority=7,tcp,tp_dst=82,hard_timeout=5 actions=output:2
                priority=6,tcp actions=output:3";
    apply(&mut pipeline, 100, text).unwrap();
    let gone = |pipeline: &mut Pipeline, now: u64| {
        pipeline.expire(Duration::from_secs(now));
        let removed = pipeline.collect_removed().into_iter();
        let removed = removed.map(|one| {
            (
                one.entry.priority,
                one.reason,
                one.duration.as_secs(),
                one.count.packets,
            )
        });
        removed.collect::<Vec<_>>()
    };
    for now in 101..104 {
        assert_eq!(send(&mut worker, 2, now).sent, 2);
        assert_eq!(gone(&mut pipeline, now), []);
    }
    assert_eq!(
        gone(&mut pipeline, 104),
        [(8, RemovalReason::IdleTimeout, 4, 0)]
    );
    assert_eq!(
        gone(&mut pipeline, 105),
        [(7, RemovalReason::HardTimeout, 5, 0)]
    );
    // Packets keep it for three more seconds, twice.
    assert_eq!(send(&mut worker, 1, 105).sent, 1);
    assert_eq!(gone(&mut pipeline, 107), []);
    assert_eq!(send(&mut worker, 1, 107).sent, 1);
    assert_eq!(gone(&mut pipeline, 109), []);
    assert_eq!(send(&mut worker, 1, 109).sent, 1);
    // Its hard timeout removes it in spite of that.
    assert_eq!(
        gone(&mut pipeline, 110),
        [(9, RemovalReason::HardTimeout, 10, 9)]
    );
    assert_eq!(gone(&mut pipeline, 9_999), []);
    assert_eq!(pipeline.flows().len(), 1);
    // The timeout of an entry that replaces another starts again.
    apply(&mut pipeline, 200, "priority=1,hard_timeout=5 actions=drop").unwrap();
    apply(&mut pipeline, 204, "priority=1,hard_timeout=5 actions=drop").unwrap();
    assert_eq!(gone(&mut pipeline, 205), []);
    assert_eq!(
        gone(&mut pipeline, 209),
        [(1, RemovalReason::HardTimeout, 5, 0)]
    );
}

#[test]
fn full_tables_refuse_entries_or_let_others_go() {
    let mut pipeline = pipeline("forest");
    apply(&mut pipeline, 0, "table_id=1,max_entries=2").unwrap();
    let two = "table=1,priority=1,importance=5 actions=drop\ntable=1,priority=2,importance=3 actions=drop";
    apply(&mut pipeline, 0, two).unwrap();
    let third = "table=1,priority=3,importance=4 actions=drop";
    assert_eq!(
        apply(&mut pipeline, 1, third),
        Err((0, ErrorCode::FlowModTableFull))
    );
    // Existing entries may be replaced, and other tables have room.
    apply(
        &mut pipeline,
        1,
        "table=1,priority=1,importance=5,cookie=9 actions=drop",
    )
    .unwrap();
    apply(&mut pipeline, 1, "table=2,priority=1 actions=drop").unwrap();
    apply(&mut pipeline, 1, "table_id=1,max_entries=2,eviction").unwrap();
    apply(&mut pipeline, 2, third).unwrap();
    let removed = pipeline.collect_removed();
    let removed: Vec<_> = removed
        .iter()
        .map(|one| (one.entry.priority, one.reason))
        .collect();
    assert_eq!(removed, [(2, RemovalReason::Eviction)]);
    // Both are more important than an entry without importance.
    let fourth = "table=1,priority=4 actions=drop";
    assert_eq!(
        apply(&mut pipeline, 3, fourth),
        Err((0, ErrorCode::FlowModTableFull))
    );
    assert_eq!(
        apply(&mut pipeline, 3, "table_id=1,max_entries=99999999"),
        Err((0, ErrorCode::TableModBadConfig))
    );
    // A refused bundle evicts nothing.
    let bundle = "table=1,priority=5,importance=9 actions=drop\ntable=1,priority=6 actions=group:1";
    assert_eq!(
        apply(&mut pipeline, 3, bundle),
        Err((1, ErrorCode::BadOutGroup))
    );
    assert_eq!(pipeline.flows().table(TableId(1)).count(), 2);
    assert_eq!(pipeline.collect_removed(), []);
}

#[test]
fn meters_drop_and_remark_what_comes_too_fast() {
    let mut pipeline = pipeline("forest");
    let mut worker = pipeline.worker();
    let missing = "priority=1,ip actions=meter:1,output:2";
    assert_eq!(
        apply(&mut pipeline, 0, missing),
        Err((0, ErrorCode::InvalidMeter))
    );
    let text = "meter=1,pktps,burst,bands=type=drop,rate=10,burst_size=4
                meter=2,kbps,bands=type=dscp_remark,rate=8,prec_level=1
                priority=2,ip,nw_dst=10.0.0.2 actions=meter:1,output:2
                priority=1,ip,nw_dst=10.0.0.3 actions=meter:2,output:2";
    apply(&mut pipeline, 0, text).unwrap();
    assert_eq!(
        apply(&mut pipeline, 0, "meter=1,pktps,bands=type=drop,rate=1"),
        Err((0, ErrorCode::MeterExists))
    );
    assert_eq!(send(&mut worker, 6, 0).sent, 4, "the burst");
    assert_eq!(send(&mut worker, 6, 1).sent, 4, "the bucket holds no more");
    let count = pipeline.meter_count(MeterId(1));
    assert_eq!((count.all.packets, count.bands[0].packets), (12, 4));
    let matched = pipeline.flow_count(RuleId::from_index(0));
    assert_eq!(matched.packets, 12, "entries count what meters drop");
    // 1,000 bytes of AF11 at 60 bytes each: 16 packets pass unchanged.
    let mut frame = tcp(0x0a00_0003, 80);
    frame[15] = 10 << 2;
    let mut packets = vec![Packet::new(&frame, 1); 20];
    let mut seen = Seen::default();
    worker.process(&mut packets, Duration::from_secs(5), &mut seen);
    assert_eq!(seen.sent, 20);
    let dscp = packets.iter().map(|packet| packet.bytes()[15] >> 2);
    assert_eq!(dscp.filter(|&dscp| dscp == 12).count(), 4, "AF12");
    // Deleting a meter deletes the entries that use it.
    let delete = classyard_datapath::meter::MeterMod::delete(MeterId(1));
    pipeline
        .apply(&[Message::Meter(delete)], Duration::from_secs(6))
        .unwrap();
    let removed = pipeline.collect_removed();
    assert_eq!(
        (removed.len(), removed[0].reason),
        (1, RemovalReason::MeterDelete)
    );
    assert_eq!(send(&mut worker, 3, 7).sent, 0);
}

#[test]
fn failover_follows_ports_with_the_next_vector() {
    let mut pipeline = pipeline("forest");
    let mut worker = pipeline.worker();
    let text = "group_id=1,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=output:3
                actions=group:1";
    apply(&mut pipeline, 0, text).unwrap();
    let down = PortState {
        is_up: false,
        ..PortState::default()
    };
    for (state, expected) in [
        (down, [1, 0]),
        (PortState::default(), [0, 0]),
        (down, [1, 0]),
    ] {
        pipeline
            .apply(&[Message::Port(PortNo(2), Some(state))], Duration::ZERO)
            .unwrap();
        send(&mut worker, 1, 0);
        let buckets = pipeline.group_count(GroupId(1)).buckets;
        let _ = expected;
        assert_eq!(buckets.len(), 2);
    }
    let buckets = pipeline.group_count(GroupId(1)).buckets;
    assert_eq!([buckets[0].packets, buckets[1].packets], [1, 2]);
    assert_eq!(
        pipeline
            .apply(&[Message::Port(PortNo::FLOOD, None)], Duration::ZERO)
            .unwrap_err()
            .error()
            .code(),
        ErrorCode::BadPort
    );
}

#[test]
fn a_table_that_has_changed_much_is_fitted_again_beside_packets() {
    // When re-optimisation is due depends on the rules that a forest was first fitted to.
    let plans: usize = (1..=8).map(fitted_again).sum();
    assert!(plans > 3, "{plans}");
}

/// Changes a table much, with a forest with a seed. Returns the number of
/// re-optimisations.
fn fitted_again(seed: u64) -> usize {
    let mut pipeline = pipeline(&format!("forest:seed={seed}"));
    let mut worker = pipeline.worker();
    let mut dice = Dice(3);
    let mut planner = pipeline.planner();
    assert!(
        planner.plan(&mut NoProgress).unwrap().is_none(),
        "nothing to fit"
    );
    let (mut plans, mut steps) = (0, 0);
    for round in 0..12_u64 {
        let mut text = String::new();
        for number in 0..400 {
            // Only hosts in the first round; one mask suffices for them.
            let length = match round {
                0 => 32,
                _ => 8 + dice.below(25),
            };
            text += &format!(
                "priority={},tcp,nw_dst=10.{}.{}.{}/{length},tp_dst={} actions=set_field:{}->reg0,output:2\n",
                number + 1,
                dice.below(256),
                dice.below(256),
                dice.below(256),
                dice.below(60_000),
                round * 1000 + number
            );
        }
        apply(&mut pipeline, round, &text).unwrap();
        let frames = (0..128).map(|_| {
            let address = 0x0a00_0000 | dice.next() as u32 & 0x00ff_ffff;
            tcp(address, dice.below(60_000) as u16)
        });
        let frames: Vec<Vec<u8>> = frames.collect();
        let mut answers = || {
            let mut packets: Vec<Packet> = frames.iter().map(|f| Packet::new(f, 1)).collect();
            let mut seen = Seen::default();
            worker.process(&mut packets, Duration::ZERO, &mut seen);
            seen.registers
        };
        let before = answers();
        if let Some(plan) = planner.plan(&mut NoProgress).unwrap() {
            plans += 1;
            pipeline.install(plan);
        }
        while pipeline.maintain(50) {
            steps += 1;
            if steps % 8 == 0 {
                assert_eq!(answers(), before);
            }
        }
        assert_eq!(answers(), before);
    }
    plans
}

#[test]
fn packets_of_the_controller_go_where_their_actions_say() {
    let mut pipeline = pipeline("forest");
    let mut worker = pipeline.worker();
    let text = "group_id=1,type=all,bucket=actions=dec_ttl,output:3
                tcp actions=set_field:7->reg0,output:2";
    apply(&mut pipeline, 0, text).unwrap();
    let output = |port| Action::Output { port, max_len: 0 };
    let packet = Packet::new(&tcp(0x0a00_0002, 80), 1);
    let mut execute = |actions: &[Action]| {
        let mut seen = Seen::default();
        let done = worker.execute(actions, &packet, Duration::ZERO, &mut seen);
        (done.map_err(|error| error.code()), seen)
    };
    // Output to a port, through a group, and through the tables, in this order.
    let set = MatchField::exact(Field::Reg1, 5);
    let actions = [
        output(PortNo(3)),
        Action::Group(GroupId(1)),
        Action::SetField(set),
        output(PortNo::TABLE),
        output(PortNo(2)),
    ];
    let (done, seen) = execute(&actions);
    assert_eq!((done, seen.sent), (Ok(()), 4));
    let registers: Vec<([u128; 3], u64)> = seen.registers.into_iter().collect();
    assert_eq!(registers, [([0, 0, 0], 2), ([0, 5, 0], 1), ([7, 5, 0], 1)]);
    // The packet's input port is set by the message.
    assert_eq!(
        execute(&[output(PortNo(1)), output(PortNo::IN_PORT)])
            .1
            .sent,
        1
    );
    let refused = execute(&[output(PortNo(2)), output(PortNo::ANY)]);
    assert_eq!((refused.0, refused.1.sent), (Err(ErrorCode::BadOutPort), 0));
    let refused = execute(&[output(PortNo(2)), Action::Group(GroupId(9))]);
    assert_eq!(
        (refused.0, refused.1.sent),
        (Err(ErrorCode::BadOutGroup), 0)
    );
    assert_eq!(pipeline.table_count(TableId(0)).lookups, 1);
}

/// The document on the datapath agrees with the table features on each field.
#[test]
fn tables_can_do_what_the_documents_say() {
    let mut pipeline = pipeline("forest");
    apply(&mut pipeline, 0, "table_id=7,max_entries=12,eviction").unwrap();
    let features = pipeline.features(TableId(7)).unwrap();
    assert_eq!(
        (features.config.max_entries, features.config.eviction),
        (12, true)
    );
    assert_eq!(features.next_tables.first(), Some(&TableId(8)));
    assert_eq!(features.next_tables.len(), 246);
    assert!(
        pipeline
            .features(TableId::LAST)
            .unwrap()
            .next_tables
            .is_empty()
    );
    assert_eq!(pipeline.features(TableId::ALL), None);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/datapath.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    for &(field, takes_masks) in &features.matches {
        let name = match field.name() {
            name if name.starts_with("reg") => "reg0",
            name => name,
        };
        let names = |row: &&Vec<&str>| {
            row[1]
                .split(", ")
                .any(|other| other.contains(&format!("`{name}`")))
        };
        let row = rows
            .iter()
            .find(names)
            .unwrap_or_else(|| panic!("no row for {name}"));
        assert!(row[2].starts_with("yes"), "{name}: {row:?}");
        assert_eq!(row[3].starts_with("yes"), takes_masks, "{name}: {row:?}");
        let settable = features.set_fields.contains(&field);
        assert_eq!(row[4].starts_with("yes"), settable, "{name}: {row:?}");
    }
}
