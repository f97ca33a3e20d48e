//! Scripts of changes over a capture: the datapath, with several caches and without,
//! compared with the reference interpreter packet by packet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{
    CacheSettings, CacheStatus, KINDS, Message, PacketInReason, Pipeline, PipelineSettings,
    PortState, Sink, Worker,
};
use classyard_datapath::text::{self, Script};
use classyard_datapath::{Packet, PortNo, TableSettings};
use classyard_reference::{Event, Packet as ReferencePacket, Reference};
use classyard_workload::capture::{Capture, ReadOptions, read_capture_file};

const SELECT_SEED: u64 = 7;

/// The port that receives all packets.
const IN_PORT: u32 = 1;

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/capture");
    folder.join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("the file is part of the project")
}

fn office() -> Capture {
    read_capture_file(file("office.pcap"), &ReadOptions::default()).unwrap()
}

/// Records the packets that the datapath sends.
#[derive(Default)]
struct Recorder(Vec<Event>);

impl Sink for Recorder {
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes().to_vec();
        self.0.push(Event::Sent { port, queue, bytes });
    }

    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        (table, cookie): (TableId, u64),
        packet: &Packet,
    ) {
        self.0.push(Event::Controller {
            reason,
            max_len,
            table,
            cookie,
            bytes: packet.bytes().to_vec(),
        });
    }
}

fn empty(engine: &str) -> Pipeline {
    let engine = EngineSpec::parse(engine).unwrap();
    let settings = PipelineSettings::new(TableSettings::new(engine).unwrap());
    Pipeline::new(settings.select_seed(SELECT_SEED))
}

/// Both switches with the same pipeline, and a script.
struct Pair {
    pipeline: Pipeline,
    reference: Reference,
    script: Script,
}

impl Pair {
    fn new(engine: &str, flows: &str, script: &str) -> Pair {
        let filled = text::fill(empty(engine), "flows", flows, false, Duration::ZERO);
        let filled = filled.unwrap_or_else(|problems| panic!("{problems}"));
        let messages = text::load(flows, &mut empty("linear"), Duration::ZERO).unwrap();
        let messages: Vec<Message> = messages.into_iter().map(|line| line.message).collect();
        let mut reference = Reference::new(SELECT_SEED);
        reference.apply(&messages, Duration::ZERO).unwrap();
        let script = Script::read("script", script.to_owned(), filled.port_numbers);
        let script = script.unwrap_or_else(|problems| panic!("{problems}"));
        let mut pair = Pair {
            pipeline: filled.pipeline,
            reference,
            script,
        };
        let named: Vec<PortNo> = pair.script.named_ports().collect();
        for port in named.into_iter().chain((1..=6).map(PortNo)) {
            if port.is_physical() && pair.pipeline.ports().get(port).is_none() {
                let message = Message::Port(port, Some(PortState::default()));
                pair.apply(&message, Duration::ZERO);
            }
        }
        pair
    }

    fn apply(&mut self, message: &Message, now: Duration) {
        let message = std::slice::from_ref(message);
        let applied = self.pipeline.apply(message, now);
        applied.unwrap_or_else(|refusal| panic!("{}: {refusal}", message[0]));
        self.reference.apply(message, now).unwrap();
    }

    fn expire(&mut self, now: Duration) {
        let expired = self.pipeline.expire(now).len();
        assert_eq!(self.reference.expire(now).len(), expired, "at {now:?}");
    }

    /// Passes a capture through both switches. Returns the numbers of changes and of sent
    /// packets.
    fn run(&mut self, capture: &Capture, worker: &mut Worker) -> (usize, usize) {
        let (mut changes, mut sent) = (0, 0);
        let mut first_stamp = None;
        for (number, (packet, frame)) in (1..).zip(capture.frames()) {
            let first = *first_stamp.get_or_insert(packet.timestamp_ns);
            let time = Duration::from_nanos(packet.timestamp_ns.saturating_sub(first));
            for change in self.script.due(number, time) {
                self.expire(change.time);
                let message = self.script.message(&change, self.pipeline.ports());
                let message = message.unwrap_or_else(|problems| panic!("{problems}"));
                self.apply(&message, change.time);
                changes += 1;
            }
            self.expire(time);
            let mut recorder = Recorder::default();
            let mut packets = [Packet::new(frame, IN_PORT)];
            worker.process(&mut packets, time, &mut recorder);
            let mut copy = ReferencePacket::new(frame, IN_PORT, 0);
            let expected = self.reference.process(&mut copy, time);
            assert_eq!(recorder.0, expected, "packet {number}");
            sent += expected.len();
        }
        (changes, sent)
    }

    /// Compares the counters and the removed entries.
    fn compare(&mut self) {
        let flows = self.pipeline.flows().iter().map(|entry| {
            let count = self.pipeline.flow_count(entry.id);
            (entry.clone(), count)
        });
        let expected = self.reference.entries().iter();
        let expected = expected.map(|counted| (counted.entry.clone(), counted.count));
        assert!(flows.eq(expected), "flows and their counts");
        for group in self.reference.groups() {
            let count = self.pipeline.group_count(group.group.id);
            assert_eq!(count, group.count, "{}", group.group);
        }
        for table in (0..4).map(TableId) {
            let expected = self.reference.table_count(table);
            assert_eq!(self.pipeline.table_count(table), expected, "table {table}");
        }
        let meters: Vec<_> = self
            .pipeline
            .meters()
            .iter()
            .map(|meter| meter.id)
            .collect();
        let counts = meters.iter().map(|&id| self.pipeline.meter_count(id));
        let expected = self
            .reference
            .meters()
            .map(|(_, meter)| meter.count.clone());
        assert!(counts.eq(expected), "meters and their counts");
        let removed = self.pipeline.collect_removed();
        let expected = self.reference.collect_removed();
        assert_eq!(removed.len(), expected.len());
        for (one, other) in removed.iter().zip(&expected) {
            assert_eq!((&one.entry, one.reason), (&other.entry, other.reason));
            assert_eq!((one.duration, one.count), (other.duration, other.count));
        }
        let ports: Vec<_> = self.pipeline.ports().iter().collect();
        assert_eq!(ports, self.reference.ports().collect::<Vec<_>>());
    }
}

/// Settings of caches: none, the usual ones, tiny ones, and each kind of microflow cache.
fn caches() -> Vec<Option<CacheSettings>> {
    let tiny = CacheSettings::new().max_megaflows(6).unwrap();
    let tiny = tiny.max_masks(2).unwrap().microflows(KINDS[0], 4).unwrap();
    let mut all = vec![None, Some(CacheSettings::new()), Some(tiny)];
    for &kind in KINDS {
        let settings = CacheSettings::new().microflows(kind, 256).unwrap();
        all.push(Some(settings.megaflows(all.len() % 2 == 0)));
    }
    all
}

/// Runs a script with all caches. Returns the numbers of changes and of sent packets, and
/// the status of the usual caches.
fn agree(flows: &str, script: &str) -> (usize, usize, CacheStatus) {
    let capture = office();
    let (mut first_result, mut usual) = (None, CacheStatus::default());
    for (number, settings) in caches().into_iter().enumerate() {
        let engine = ["forest", "tuplemerge"][number % 2];
        let mut pair = Pair::new(engine, flows, script);
        let mut worker = match settings {
            Some(settings) => pair.pipeline.cached_worker(settings),
            None => pair.pipeline.worker(),
        };
        let result = pair.run(&capture, &mut worker);
        pair.compare();
        assert_eq!(
            *first_result.get_or_insert(result),
            result,
            "caches {number}"
        );
        if number == 1 {
            usual = worker.caches().expect("a worker with caches");
        }
    }
    let (changes, sent) = first_result.expect("there are caches");
    (changes, sent, usual)
}

#[test]
fn the_script_of_the_example_has_the_same_effect_with_and_without_caches() {
    let (changes, sent, caches) = agree(&read("failover.flows"), &read("failover.script"));
    assert_eq!(changes, 14, "the last line is after the end");
    assert!(sent > 1_500, "{sent}");
    assert!(caches.outdated > 0 && caches.stranded > 0, "{caches:?}");
    assert!(
        caches.megaflow_hits + caches.microflow_hits > 500,
        "{caches:?}"
    );
}

#[test]
fn flows_are_added_modified_and_deleted() {
    let script = "\
        before=100 add table=0,priority=300,udp actions=output:2\n\
        before=300 add table=0,priority=300,udp actions=output:3\n\
        before=400 add table=1,priority=60,ip,nw_dst=10.20.0.0/16 actions=output:4\n\
        before=400 modify table=1,ip actions=goto_table:3\n\
        at=9s modify_strict table=3,priority=0 actions=output:5\n\
        at=10s add table=0,priority=301,tcp,hard_timeout=5 actions=output:6\n\
        before=1200 delete table=1,ip,out_port=4\n\
        at=50s delete cookie=0/-1,table=2\n\
        before=1800 delete\n\
        before=1900 add priority=0 actions=all\n";
    let (changes, sent, _) = agree(&read("office.flows"), script);
    assert_eq!(changes, 10);
    assert!(sent > 1_000, "{sent}");
}

#[test]
fn buckets_of_groups_change_and_groups_go() {
    let script = "\
        before=50 group modify group_id=1,type=all,bucket=actions=output:3,bucket=actions=output:4\n\
        before=200 group modify group_id=2,type=indirect,bucket=actions=dec_ttl,output:6\n\
        before=500 add group_id=9,type=ff,bucket=watch_port:5,actions=output:5,bucket=watch_group:1,actions=group:1\n\
        before=500 modify table=3,udp actions=group:9\n\
        before=600 port=5,link=down\n\
        before=900 group modify group_id=1,type=select,bucket=weight:5,actions=output:3\n\
        before=1000 port=5,link=up,no-forward\n\
        before=1500 delete group_id=2\n\
        before=1600 group delete group_id=all\n";
    let (changes, ..) = agree(&read("office.flows"), script);
    assert_eq!(changes, 9);
}

#[test]
fn links_go_down_and_up() {
    let script = "\
        before=1 port=wan0,link=down\n\
        before=200 port=wan1,link=down\n\
        before=400 port=wan0,link=up\n\
        before=600 port=1,no-receive\n\
        before=700 port=lan0,receive\n\
        before=900 port=dmz0,flood,link=down\n\
        before=1100 port=wan1,link=up,speed=40G\n\
        before=1500 port=wan0,no-forward\n";
    let (changes, sent, caches) = agree(&read("failover.flows"), script);
    assert_eq!(changes, 8);
    assert!(sent > 500, "{sent}");
    assert_eq!(
        (caches.outdated, caches.stranded, caches.revalidations),
        (0, 0, 0),
        "cached paths do not depend on ports"
    );
}
