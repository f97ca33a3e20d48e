//! Pipelines as text: read, written, loaded, and run.

use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{Message, PacketInReason, Pipeline, PortState, Sink};
use classyard_datapath::text;
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

/// Reads a text as a pipeline. Problems must have positions in the text; messages must
/// survive writing and reading; a pipeline that accepts them processes packets, and a
/// pipeline that refuses them must stay unchanged.
pub(crate) fn pipelines(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<&str> = text.lines().collect();
    let settings = || {
        let engine = EngineSpec::parse("tuplemerge").expect("it is registered");
        let settings = TableSettings::new(engine).expect("it takes updates");
        settings.rebuild_below(8)
    };
    let located = match text::read(&text) {
        Ok(located) => located,
        Err(problems) => {
            assert!(!problems.is_empty(), "a reason");
            for problem in problems.shown() {
                let columns = lines[problem.line - 1].chars().count() + 1;
                assert!((1..=columns).contains(&problem.column), "{problem}");
                assert!(!problem.found.is_empty(), "{problem}");
            }
            let empty = Pipeline::new(settings());
            let filled = text::fill(empty, "pipeline", &text, true, Duration::ZERO);
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
        let empty = Pipeline::new(settings());
        let filled = text::fill(empty, "pipeline", &text, skip_bad, Duration::ZERO);
        assert!(filled.is_ok() || !skip_bad, "bad lines are skipped");
    }
    let mut pipeline = Pipeline::new(settings());
    let ports = [1, 2, 3].map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    let added = pipeline.apply(&ports, Duration::ZERO);
    added.expect("numbers of ports");
    if text::load(&text, &mut pipeline, Duration::ZERO).is_err() {
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
    assert!(first.matched <= first.lookups && first.lookups == 4);
    for packet in &packets {
        let again = Packet::new(packet.bytes(), 1);
        assert_eq!(
            packet.parsed(),
            again.parsed(),
            "the key is that of the bytes"
        );
    }
}
