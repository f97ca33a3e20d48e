//! Pipelines as text: read, written, loaded, and run. Scripts that change them.

use std::collections::BTreeMap;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{
    CacheSettings, Message, PacketInReason, Pipeline, PortState, Sink,
};
use classyard_datapath::text::{self, Problems, Script};
use classyard_datapath::{Packet, PortNo, TableSettings};

/// Frames sent to a pipeline: TCP over IPv4, neighbour discovery over IPv6, ARP with a
/// tag, and a truncated frame.
const FRAMES: [&[u8]; 4] = [
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0E\0\0(\0\0\0\0@\x06\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\xd2\0P\0\0\0\0\0\0\0\0P\x02\0\0\0\0\0\0",
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x86\xdd`\0\0\0\0\x18:\xff\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x87\0\0\0\0\0\0\0\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x03",
    b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x02\x81\0\0\x05\x08\x06\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x02\x0a\0\0\x01\0\0\0\0\0\0\x0a\0\0\x02",
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0E",
];

/// Counts output bytes.
#[derive(Default)]
struct Counted(usize);

impl Sink for Counted {
    fn send(&mut self, _: PortNo, _: Option<u32>, packet: &Packet) {
        self.0 += packet.bytes().len();
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), packet: &Packet) {
        self.0 += packet.bytes().len();
    }
}

/// Returns an empty pipeline.
fn empty() -> Pipeline {
    let engine = EngineSpec::parse("tuplemerge").expect("it is registered");
    let settings = TableSettings::new(engine).expect("it takes updates");
    Pipeline::new(settings.rebuild_below(8))
}

/// Adds three ports that are up.
fn add_ports(pipeline: &mut Pipeline) {
    let ports = [1, 2, 3].map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    let added = pipeline.apply(&ports, Duration::ZERO);
    added.expect("numbers of ports");
}

/// Checks that problems have positions in a text.
fn check_positions(problems: &Problems, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert!(!problems.is_empty(), "a reason");
    for problem in problems.shown() {
        let columns = lines[problem.line - 1].chars().count() + 1;
        assert!((1..=columns).contains(&problem.column), "{problem}");
        assert!(!problem.found.is_empty(), "{problem}");
    }
}

/// Reads a text as a pipeline and as a script.
pub(crate) fn pipelines(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    pipeline(&text);
    script(&text);
}

/// Reads a text as a script, and makes its changes between packets. Each change must be
/// due once or wait at the end. Problems must have positions in the text.
fn script(text: &str) {
    let names = BTreeMap::from([("eth0".to_owned(), 1), ("eth1".to_owned(), 2)]);
    let mut script = match Script::read("script", text.to_owned(), names) {
        Ok(script) => script,
        Err(problems) => return check_positions(&problems, text),
    };
    let mut pipeline = empty();
    add_ports(&mut pipeline);
    let mut worker = pipeline.cached_worker(CacheSettings::new());
    let mut due_changes = 0;
    for packet in 1..=8 {
        let time = Duration::from_secs(packet);
        for change in script.due(packet, time) {
            due_changes += 1;
            assert!(change.time <= time, "no change comes too early");
            let problems = match script.message(&change, pipeline.ports()) {
                Ok(message) => match pipeline.apply(&[message], change.time) {
                    Ok(_) => continue,
                    Err(refusal) => script.refused(&change, refusal.error()),
                },
                Err(problems) => problems,
            };
            check_positions(&problems, text);
            assert_eq!(problems.shown()[0].line, script.line(&change));
        }
        let mut packets = FRAMES.map(|frame| Packet::new(frame, 1));
        worker.process(&mut packets, time, &mut Counted::default());
    }
    assert_eq!(due_changes + script.waiting().count(), script.len());
}

/// Reads a text as a pipeline. Problems must have positions in the text; messages must
/// survive writing and reading; a pipeline that accepts them processes packets, and a
/// pipeline that refuses them must stay unchanged.
fn pipeline(text: &str) {
    let located = match text::read(text) {
        Ok(located) => located,
        Err(problems) => {
            check_positions(&problems, text);
            let filled = text::fill(empty(), "pipeline", text, true, Duration::ZERO);
            assert!(filled.is_ok(), "bad lines are skipped");
            return;
        }
    };
    for one in &located {
        let written = one.message.to_string();
        let again = text::read(&written);
        let again = again.unwrap_or_else(|problems| panic!("{written}: {problems}"));
        assert_eq!(again[0].message, one.message, "{written}");
    }
    // Loads message by message, with and without skipping bad lines.
    for skip_bad in [false, true] {
        let filled = text::fill(empty(), "pipeline", text, skip_bad, Duration::ZERO);
        assert!(filled.is_ok() || !skip_bad, "bad lines are skipped");
    }
    let mut pipeline = empty();
    add_ports(&mut pipeline);
    if text::load(text, &mut pipeline, Duration::ZERO).is_err() {
        assert_eq!(
            (pipeline.flows().len(), pipeline.groups().iter().len()),
            (0, 0),
            "nothing is half made"
        );
        return;
    }
    let mut packets = FRAMES.map(|frame| Packet::new(frame, 1));
    let mut worker = pipeline.worker();
    worker.process(&mut packets, Duration::ZERO, &mut Counted::default());
    let first = pipeline.table_count(TableId(0));
    let received = if pipeline.ports().receives(PortNo(1)) {
        4
    } else {
        0
    };
    assert!(first.matched <= first.lookups && first.lookups == received);
    for packet in &packets {
        let again = Packet::new(packet.bytes(), 1);
        assert_eq!(
            packet.parsed(),
            again.parsed(),
            "the key is that of the bytes"
        );
    }
}
