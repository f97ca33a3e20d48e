//! Checks every megaflow exhaustively in a small world: all packets that it covers take
//! its path, before and after each change.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use classyard::{EngineSpec, NoProgress, RuleId};
use classyard_datapath::flow::{Command, TableId};
use classyard_datapath::pipeline::{
    ActiveFlowSettings, CacheSettings, CacheStatus, Discard, Finder, KINDS, Message,
    PacketInReason, Pipeline, PortState, ProactiveError, Sink, Step, TupleSettings, Worker,
};
use classyard_datapath::text::read;
use classyard_datapath::{MegaflowBits, Packet, PortNo, TableSettings};

use crate::frames::Dice;

/// Returns all packets of the world: two ports, two sources, eight destinations, TCP and
/// UDP with eight ports each, with and without a tag; whole packets, later fragments
/// without ports, truncated packets, and packets other than IPv4.
fn packets() -> Vec<Packet> {
    let mut packets = Vec::new();
    for number in 0..4096_u32 {
        let bits = |shift: u32, width: u32| u8::try_from(number >> shift & width).unwrap();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if bits(11, 1) == 1 {
            frame.extend([0x81, 0, 0, 3]);
        }
        let protocol = if bits(10, 1) == 1 { 6 } else { 17 };
        let kind = bits(1, 3);
        frame.extend(if kind == 3 { [0x88, 0xb5] } else { [8, 0] });
        let fragment = u8::from(kind == 1);
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, fragment, 64, protocol, 0, 0]);
        frame.extend([10, 0, 0, bits(0, 1), 10, 0, 1, bits(3, 7)]);
        frame.extend([4, 0, 0, bits(6, 7)]);
        frame.extend([0, 20, 0, 0, 0, 1, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        if kind == 2 {
            frame.truncate(frame.len() - 26);
        }
        packets.push(Packet::new(&frame, 1 + u32::from(bits(9, 1))));
    }
    packets
}

/// Returns a flow entry as text.
fn entry(dice: &mut Dice) -> String {
    let table = dice.below(3);
    let mut text = format!("table={table},priority={}", dice.below(4));
    let prefix = |dice: &mut Dice| 29 + dice.below(4);
    let is_ip = !dice.one_in(3);
    let is_tcp = dice.one_in(2);
    if is_ip {
        text += if is_tcp { ",tcp" } else { ",udp" };
        for (field, network) in [("nw_src", "10.0.0"), ("nw_dst", "10.0.1")] {
            if dice.one_in(2) {
                let (host, length) = (dice.below(8), prefix(dice));
                let host = host >> (32 - length) << (32 - length);
                write!(text, ",{field}={network}.{host}/{length}").unwrap();
            }
        }
        if dice.one_in(2) {
            write!(text, ",tp_dst={}", dice.below(8)).unwrap();
        }
    }
    if dice.one_in(4) {
        write!(text, ",in_port={}", 1 + dice.below(2)).unwrap();
    }
    if dice.one_in(4) {
        write!(text, ",reg1={}", dice.below(2)).unwrap();
    }
    let mut actions = Vec::new();
    if is_ip && dice.one_in(3) {
        actions.push(format!("mod_nw_dst:10.0.1.{}", dice.below(8)));
    }
    if is_ip && dice.one_in(4) {
        actions.push(format!("mod_tp_dst:{}", dice.below(8)));
    }
    if dice.one_in(6) {
        actions.push("group:1".to_owned());
    }
    if dice.one_in(4) {
        actions.push(format!("set_field:{}->reg1", dice.below(2)));
    }
    if dice.one_in(12) {
        actions.push("push_vlan:0x8100".to_owned());
    }
    if table < 2 && !dice.one_in(4) {
        actions.push(format!("goto_table:{}", table + 1 + dice.below(2 - table)));
    } else {
        actions.push("output:3".to_owned());
    }
    format!("{text} actions={}", actions.join(","))
}

fn message(text: &str) -> Message {
    let mut read = read(text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
    read.remove(0).message
}

/// Returns a pipeline with the ports and the group that entries use, without entries.
fn pipeline(engine: &str, bits: MegaflowBits) -> Pipeline {
    let engine = EngineSpec::parse(engine).unwrap();
    let settings = TableSettings::new(engine).unwrap().rebuild_below(30);
    let mut pipeline = Pipeline::new(settings.megaflow_bits(bits));
    for port in 1..=3 {
        let port = Message::Port(PortNo(port), Some(PortState::default()));
        pipeline.apply(&[port], Duration::ZERO).unwrap();
    }
    let group = message("group_id=1,type=all,bucket=actions=output:2");
    pipeline.apply(&[group], Duration::ZERO).unwrap();
    pipeline
}

/// Returns the tables and winners of a packet.
fn way(pipeline: &Pipeline, packet: &Packet) -> Vec<(TableId, Option<RuleId>)> {
    let story = pipeline.trace(packet, Duration::ZERO, 0);
    let lookups = story.steps.iter().filter_map(|step| match step {
        Step::Lookup(lookup) => {
            let winner = lookup.winner.as_ref().map(|winner| winner.id);
            Some((lookup.table, winner))
        }
        _ => None,
    });
    lookups.collect()
}

/// Compares all cached results with the tables. Returns the number of packets with a
/// cached result.
fn compare(pipeline: &Pipeline, worker: &mut Worker, packets: &[Packet], about: &str) -> usize {
    let mut known = 0;
    for packet in packets {
        let answer = worker.ask_caches(packet, Duration::ZERO).unwrap();
        let Some(megaflow) = answer.megaflow else {
            assert_ne!(answer.microflow, Some(true), "{about}");
            continue;
        };
        known += 1;
        let way = way(pipeline, packet);
        assert_eq!(
            megaflow.steps,
            way[..megaflow.steps.len()],
            "{about}: {megaflow}"
        );
        let next = way.get(megaflow.steps.len()).map(|step| step.0);
        assert_eq!(megaflow.rest, next, "{about}: {megaflow}");
    }
    known
}

/// Installs plans until there is none left. Returns their number.
fn plan_masks(pipeline: &mut Pipeline) -> usize {
    let mut planner = pipeline.planner();
    let mut plans = 0;
    while let Some(plan) = planner.plan(&mut NoProgress).unwrap() {
        pipeline.install(plan);
        while pipeline.maintain(usize::MAX) {}
        plans += 1;
    }
    plans
}

#[test]
fn every_packet_that_a_megaflow_covers_takes_its_path() {
    let packets = packets();
    let (mut known, mut kept, mut lost, mut plans) = (0, 0, 0, 0);
    for seed in 0..32 {
        let dice = &mut Dice(seed);
        let engine = *dice.pick(&["forest", "tuplemerge", "tss", "linear"]);
        let bits = match seed % 2 {
            0 => MegaflowBits::Auto,
            _ => *dice.pick(&MegaflowBits::ALL),
        };
        let mut pipeline = pipeline(engine, bits);
        let mut entries = BTreeSet::new();
        for _ in 0..10 + dice.below(30) {
            let text = entry(dice);
            pipeline.apply(&[message(&text)], Duration::ZERO).unwrap();
            entries.insert(text);
        }
        let finder = dice.pick(&["sorted", "sorted-tuples", "tuplemerge", "forest"]);
        let finder = match *finder {
            "sorted" => Finder::default(),
            "sorted-tuples" => Finder::sorted_tuples(TupleSettings::default()),
            engine => Finder::engine(EngineSpec::parse(engine).unwrap()).unwrap(),
        };
        let settings = CacheSettings::new().seed(seed).finder(finder.clone());
        let settings = settings.microflows(*dice.pick(KINDS), 64).unwrap();
        let settings = settings.max_megaflows(*dice.pick(&[20, 1000])).unwrap();
        let settings = settings.max_masks(*dice.pick(&[2, 4, 32])).unwrap();
        let mut worker = pipeline.cached_worker(settings);
        for change in 0..12 {
            if dice.one_in(2) {
                plans += plan_masks(&mut pipeline);
            }
            for _ in 0..60 {
                let packet = dice.pick(&packets).clone();
                worker.process(&mut [packet], Duration::ZERO, &mut Discard);
            }
            let about = format!("seed {seed}, {engine}, {bits}, {finder}, change {change}");
            let before = compare(&pipeline, &mut worker, &packets, &about);
            known += before;
            // One entry is added, removed or modified.
            let text = entry(dice);
            let mut update = message(&text);
            if dice.one_in(2)
                && let Message::Flow(flow) = &mut update
            {
                let old = dice
                    .pick(&entries.iter().cloned().collect::<Vec<_>>())
                    .clone();
                let Message::Flow(old) = message(&old) else {
                    unreachable!("a flow entry");
                };
                (flow.table, flow.priority) = (old.table, old.priority);
                flow.flow = old.flow;
                flow.command = match dice.one_in(2) {
                    true => Command::Delete { strict: true },
                    false => Command::Modify { strict: true },
                };
                flow.instructions = old.instructions;
            } else {
                entries.insert(text.clone());
            }
            if pipeline.apply(&[update], Duration::ZERO).is_err() {
                continue;
            }
            let after = compare(
                &pipeline,
                &mut worker,
                &packets,
                &format!("{about}: {text}"),
            );
            kept += after;
            lost += before - after.min(before);
        }
    }
    assert!(known > 100_000, "{known}");
    assert!(plans > 20, "{plans} plans of masks");
    // Changes make some megaflows stale, but not most.
    assert!(lost > 1000 && kept > lost * 4, "{lost} of {kept}");
}

/// `ask_caches` returns that a megaflow is stale exactly if the worker then counts the packet
/// as stale. A short trace has the same winners as a full trace.
#[test]
fn stale_megaflows_are_reported_as_they_are_counted() {
    let packets = packets();
    let (mut stale_count, mut hit_count) = (0_u64, 0);
    for seed in 0..12 {
        let dice = &mut Dice(seed);
        let mut pipeline = pipeline("forest", MegaflowBits::Auto);
        let settings = CacheSettings::new().seed(seed);
        let settings = settings.microflows(*dice.pick(KINDS), 64).unwrap();
        let mut worker = pipeline.cached_worker(settings);
        for change in 0..60 {
            let text = entry(dice);
            let _ = pipeline.apply(&[message(&text)], Duration::ZERO);
            for _ in 0..20 {
                let packet = dice.pick(&packets).clone();
                let short = pipeline.trace_winners(&packet, Duration::ZERO);
                let mut full = pipeline.trace(&packet, Duration::ZERO, 3);
                for step in &mut full.steps {
                    if let Step::Lookup(lookup) = step {
                        lookup.entries = 0;
                        lookup.near.clear();
                        lookup.mattered.clear();
                    }
                }
                assert_eq!(short, full);
                let answer = worker.ask_caches(&packet, Duration::ZERO).unwrap();
                let before = worker.caches().unwrap();
                worker.process(&mut [packet], Duration::ZERO, &mut Discard);
                let after = worker.caches().unwrap();
                let about = format!("seed {seed}, change {change}: {answer:?}");
                let is_stale = after.stale > before.stale;
                assert_eq!(answer.stale, is_stale, "{about}");
                let hits = |status: &CacheStatus| status.microflow_hits + status.megaflow_hits;
                let is_hit = hits(&after) > hits(&before);
                assert!(!(is_hit && answer.stale), "{about}");
                stale_count += u64::from(is_stale);
                hit_count += u64::from(is_hit);
            }
        }
    }
    assert!(stale_count > 100, "{stale_count}");
    assert!(hit_count > 1_000, "{hit_count}");
}

/// A digest of the output: a number for all ports and bytes. Cache hits of a vector are
/// sent before its other packets, so their order is ignored.
#[derive(Default)]
struct Sent(u64);

impl Sink for Sent {
    fn send(&mut self, port: PortNo, _: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes().iter().copied();
        let mixed = bytes
            .chain(port.0.to_be_bytes())
            .fold(0xcbf2_9ce4_8422_2325, |mixed: u64, byte| {
                (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        self.0 = self.0.wrapping_add(mixed);
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {}
}

/// A clock that advances by one microsecond per vector for thousands of calls, and by
/// random times for the next thousands.
fn clock() -> Duration {
    thread_local! {
        static STATE: Cell<(u64, u64, u64)> = const { Cell::new((0, 1, 0)) };
    }
    let (calls, chance, now) = STATE.get();
    let chance = chance
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    let is_even = (calls / 3000).is_multiple_of(2);
    let now = now + if is_even { 1 } else { 1 + (chance >> 60) };
    STATE.set((calls + 1, chance, now));
    Duration::from_micros(now)
}

#[test]
fn caches_chosen_by_time_change_nothing() {
    let packets = packets();
    let dice = &mut Dice(7);
    let mut pipeline = pipeline("forest", MegaflowBits::Auto);
    let settings = CacheSettings::new().seed(7).clock(Some(clock));
    let settings = settings.microflows(KINDS[KINDS.len() - 1], 1024).unwrap();
    let mut caches = pipeline.cached_worker(settings.max_megaflows(1000).unwrap());
    let mut none = pipeline.worker();
    for round in 0..400 {
        let text = entry(dice);
        let _ = pipeline.apply(&[message(&text)], Duration::ZERO);
        for vector in 0..100 {
            let vector_packets: Vec<Packet> =
                (0..16).map(|_| dice.pick(&packets).clone()).collect();
            let mut sent = [Sent::default(), Sent::default()];
            for (worker, sent) in [&mut caches, &mut none].into_iter().zip(&mut sent) {
                worker.process(&mut vector_packets.clone(), Duration::ZERO, sent);
            }
            assert_eq!(sent[0].0, sent[1].0, "round {round}, vector {vector}");
        }
    }
    let status = caches.caches().unwrap();
    assert!(status.microflow_hits > 10_000, "{status:?}");
    assert!(status.megaflow_hits > 1000, "{status:?}");
    assert!(status.microflow_bypasses > 1000, "{status:?}");
    assert!(status.megaflow_bypasses > 1000, "{status:?}");
}

/// Returns a UDP packet with a source port of its own.
fn udp(source_port: u16) -> Packet {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1,
    ]);
    frame.extend(source_port.to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    Packet::new(&frame, 1)
}

/// Flows that share a wide megaflow hit every microflow cache, although each packet is of
/// another flow than the previous one.
#[test]
fn flows_that_take_turns_hit_every_cache() {
    const COUNTED_ROUNDS: u32 = 50;
    let settings = || CacheSettings::new().seed(3);
    let kinds = KINDS.iter().map(|kind| {
        let settings = settings().microflows(*kind, 16_384);
        (kind.name, settings.unwrap())
    });
    let (active, tuples) = (ActiveFlowSettings::default(), TupleSettings::default());
    let fast_tss = settings().fast_tss(16_384, active, tuples).unwrap();
    for (name, settings) in kinds.chain([("fasttss", fast_tss)]) {
        for (flows, rounds) in [(2, 1_500), (50, 1_500), (1_000, 300)] {
            let mut pipeline = pipeline("forest", MegaflowBits::Auto);
            let entry = message("priority=0 actions=output:2");
            pipeline.apply(&[entry], Duration::ZERO).unwrap();
            let mut worker = pipeline.cached_worker(settings.clone());
            let mut packets: Vec<Packet> = (0..flows).map(udp).collect();
            let mut before = worker.caches().unwrap();
            for round in 0..rounds {
                if round == rounds - COUNTED_ROUNDS {
                    before = worker.caches().unwrap();
                }
                for (vector, packets) in (0..).zip(packets.chunks_mut(50)) {
                    let now = Duration::from_millis(100) * round + Duration::from_millis(vector);
                    worker.process(packets, now, &mut Discard);
                }
            }
            let status = worker.caches().unwrap();
            assert_eq!(status.megaflows, 1, "{name}");
            let hits = status.microflow_hits - before.microflow_hits;
            let packets = u64::from(COUNTED_ROUNDS) * u64::from(flows);
            assert_eq!(status.microflow_lookups - before.microflow_lookups, packets);
            // emc admits one in a hundred flows that miss.
            assert!(
                hits * 4 > packets * 3,
                "{name}, {flows} flows: {hits} of {packets}"
            );
        }
    }
}

/// Returns a message that changes the entries that an entry's text matches.
fn change(command: Command, text: &str) -> Message {
    let Message::Flow(mut flow) = message(text) else {
        panic!("{text}: no entry");
    };
    flow.command = command;
    Message::Flow(flow)
}

/// An entry with few paths is modified without an era, however often before a vector. If an
/// entry with many paths is modified or removed, an era begins. In both cases packets are
/// processed as without caches.
#[test]
fn changes_of_entries_with_many_paths_begin_an_era() {
    let mut pipeline = pipeline("forest", MegaflowBits::Auto);
    let mut entries = vec!["table=0,priority=1 actions=goto_table:1".to_owned()];
    entries.extend((0..128).map(|high| {
        let source = high << 8;
        format!("table=1,priority=1,udp,tp_src={source}/0xff00 actions=goto_table:2")
    }));
    entries.extend((0..256).map(|low| {
        let port = 1 + low % 3;
        format!("table=2,priority=1,udp,tp_src={low}/0xff actions=output:{port}")
    }));
    let entries: Vec<Message> = entries.iter().map(|text| message(text)).collect();
    pipeline.apply(&entries, Duration::ZERO).unwrap();
    let mut uncached = pipeline.worker();
    let mut cached = pipeline.cached_worker(CacheSettings::new().seed(5));
    // Returns the numbers of paths and of eras.
    let mut send = || {
        for first in (0..0x8000).step_by(32) {
            let packets: Vec<Packet> = (first..first + 32).map(udp).collect();
            let mut sent = [Sent::default(), Sent::default()];
            for (worker, sent) in [&mut uncached, &mut cached].into_iter().zip(&mut sent) {
                worker.process(&mut packets.clone(), Duration::ZERO, sent);
            }
            assert_eq!(sent[0].0, sent[1].0, "source ports from {first}");
        }
        let status = cached.caches().unwrap();
        (status.paths, status.revalidations)
    };
    let (paths, eras) = send();
    assert!(paths > 32_000 && eras == 0, "{paths} paths, {eras} eras");
    let modify = Command::Modify { strict: false };
    let delete = Command::Delete { strict: false };
    // The last number counts the eras so far.
    let changes = [
        (
            modify,
            "table=1,udp,tp_src=0x500/0xff00 actions=output:3,goto_table:2",
            0,
        ),
        (modify, "table=0 actions=output:1,goto_table:1", 1),
        (
            delete,
            "table=1,udp,tp_src=0x600/0xff00 actions=output:1",
            1,
        ),
        (delete, "table=0 actions=output:1", 2),
    ];
    for (command, text, eras) in changes {
        let repeated = (0..1000).map(|number| {
            let queue = number % 2;
            change(
                modify,
                &text.replace("actions=", &format!("actions=set_queue:{queue},")),
            )
        });
        let repeated: Vec<Message> = repeated.filter(|_| command == modify).collect();
        for message in repeated.iter().chain([&change(command, text)]) {
            pipeline
                .apply(std::slice::from_ref(message), Duration::ZERO)
                .unwrap();
        }
        assert_eq!(send().1, eras, "{text}");
    }
}

/// The most entries of a cross product in the tests.
const MAX_ENTRIES: usize = 20_000;

/// Returns settings of caches with room for most cross products.
fn roomy() -> CacheSettings {
    let settings = CacheSettings::new().max_masks(128).unwrap();
    settings.max_megaflows(MAX_ENTRIES).unwrap()
}

#[test]
fn megaflows_stored_before_packets_arrive_are_right() {
    let packets = packets();
    let (mut stored_pipelines, mut refused, mut long_paths) = (0, 0, 0);
    for seed in 0..120 {
        let dice = &mut Dice(seed);
        let mut pipeline = pipeline("forest", MegaflowBits::Auto);
        let mut entries = Vec::new();
        for _ in 0..1 + dice.below(5) {
            let text = entry(dice);
            pipeline.apply(&[message(&text)], Duration::ZERO).unwrap();
            entries.push(text);
        }
        let mut worker = pipeline.cached_worker(roomy().seed(seed));
        let stored = match pipeline.store_megaflows(&mut worker, MAX_ENTRIES) {
            Ok(stored) => stored,
            Err(ProactiveError::Entries(_) | ProactiveError::Masks { .. }) => {
                assert_eq!(worker.caches().unwrap().megaflows, 0, "nothing is stored");
                refused += 1;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        stored_pipelines += 1;
        assert_eq!(stored.left_to_tables, 0);
        let status = worker.caches().unwrap();
        assert_eq!(
            (status.megaflows, status.masks, status.paths),
            (stored.megaflows, stored.masks, stored.paths)
        );
        assert_eq!(status.proactive, stored.megaflows as u64);
        let about = |round: usize| format!("seed {seed}, round {round}: {entries:#?}");
        assert_eq!(
            compare(&pipeline, &mut worker, &packets, &about(0)),
            packets.len(),
            "{}",
            about(0)
        );
        worker.process(&mut packets.clone(), Duration::ZERO, &mut Discard);
        assert_eq!(worker.caches().unwrap().by_tables, 0, "{}", about(0));
        long_paths += usize::from(pipeline.table_count(TableId(2)).lookups > 0);
        for round in 1..4 {
            let text = entry(dice);
            pipeline.apply(&[message(&text)], Duration::ZERO).unwrap();
            if dice.one_in(2) {
                let removed: &String = dice.pick(&entries);
                let removal = change(Command::Delete { strict: true }, removed);
                pipeline.apply(&[removal], Duration::ZERO).unwrap();
            }
            compare(&pipeline, &mut worker, &packets, &about(round));
            worker.process(&mut packets.clone(), Duration::ZERO, &mut Discard);
            compare(&pipeline, &mut worker, &packets, &about(round));
        }
    }
    assert!(stored_pipelines >= 30, "{stored_pipelines}");
    assert!(refused >= 5, "{refused}");
    assert!(long_paths >= 10, "{long_paths}");
}

#[test]
fn megaflows_before_packets_are_refused_with_the_exceeded_count() {
    let mut pipeline = pipeline("forest", MegaflowBits::Auto);
    for port in [80, 443, 22] {
        let text = format!("tcp,tp_dst={port} actions=drop");
        pipeline.apply(&[message(&text)], Duration::ZERO).unwrap();
    }
    let refusal = |pipeline: &mut Pipeline, worker: &mut Worker, most| {
        let error = pipeline.store_megaflows(worker, most).unwrap_err();
        assert!(worker.caches().is_none_or(|status| status.megaflows == 0));
        error.to_string()
    };
    let mut worker = pipeline.cached_worker(roomy());
    let text = refusal(&mut pipeline, &mut worker, 20);
    assert!(
        text.starts_with("the cross product has more than 20 entries, its limit"),
        "{text}"
    );
    let settings = roomy().max_masks(10).unwrap();
    let mut worker = pipeline.cached_worker(settings);
    let text = refusal(&mut pipeline, &mut worker, 1_000);
    assert!(
        text.contains("masks; the cache has room for 9 masks"),
        "{text}"
    );
    let settings = roomy().max_megaflows(20).unwrap();
    let mut worker = pipeline.cached_worker(settings);
    let text = refusal(&mut pipeline, &mut worker, 1_000);
    assert!(
        text.ends_with("entries; the cache has room for 20 megaflows"),
        "{text}"
    );
    let mut worker = pipeline.cached_worker(roomy().megaflows(false));
    let text = refusal(&mut pipeline, &mut worker, 1_000);
    assert_eq!(text, "the worker has no megaflow cache");
    let mut worker = pipeline.worker();
    let text = refusal(&mut pipeline, &mut worker, 1_000);
    assert_eq!(text, "the worker has no megaflow cache");
    let mut other = self::pipeline("forest", MegaflowBits::Auto);
    let mut worker = other.cached_worker(roomy());
    let text = refusal(&mut pipeline, &mut worker, 1_000);
    assert_eq!(text, "the worker is of another pipeline");
}

#[test]
fn packets_before_a_meter_are_left_to_the_tables() {
    let mut pipeline = pipeline("forest", MegaflowBits::Auto);
    let meter = message("meter=1,pktps,bands=type=drop,rate=1000");
    pipeline.apply(&[meter], Duration::ZERO).unwrap();
    for text in [
        "priority=5,in_port=1 actions=meter:1,output:2",
        "priority=5,in_port=2 actions=goto_table:1",
        "table=1 actions=meter:1,output:2",
    ] {
        pipeline.apply(&[message(text)], Duration::ZERO).unwrap();
    }
    let mut worker = pipeline.cached_worker(roomy());
    let stored = pipeline.store_megaflows(&mut worker, 1_000).unwrap();
    assert_eq!(stored.left_to_tables, 1);
    // Half of the packets come from port 2. Their megaflows end before table 1.
    let packets = packets();
    let known = compare(&pipeline, &mut worker, &packets, "before a meter");
    assert_eq!(known, packets.len() / 2);
}
