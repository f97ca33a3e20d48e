//! Readers: no bytes cause a panic, and the values read can be written and read again
//! without a difference.

use std::io::{self, Read};

use classyard::Policy;
use classyard_workload::capture::{
    self, Capture, CaptureProblem, CaptureReader, Warning, ethernet_frame, read_capture,
};
use classyard_workload::diagnostic::{ReadOptions, SHOWN};
use classyard_workload::formats::{RuleFormat, read_policy, read_schema, read_trace, write_policy};
use classyard_workload::formats::{write_schema, write_trace};
use classyard_workload::generate::{Profile, SeedFile};
use classyard_workload::packet::{LinkType, Parsed, parse};

const SOURCE: &str = "fuzz";

const STRICT: ReadOptions = ReadOptions::DEFAULT.with_skip_bad(false).with_limit(10_000);

const LENIENT: ReadOptions = ReadOptions::DEFAULT.with_skip_bad(true).with_limit(10_000);

/// Reads rules strictly and leniently. If the strict reader finds no error, the lenient
/// reader must read the same rules. An `exact` format must read its own output back
/// without a difference.
pub(crate) fn rules(data: &[u8], format: RuleFormat, exact: bool) {
    let text = String::from_utf8_lossy(data);
    let strict = read_policy(SOURCE, &text, Some(format), None, &STRICT);
    let lenient = read_policy(SOURCE, &text, Some(format), None, &LENIENT);
    let Ok(strict) = strict else {
        if let Ok(lenient) = lenient {
            assert!(
                lenient.skipped.total() > 0,
                "strict refuses what lenient takes whole"
            );
            assert!(lenient.skipped.shown().len() <= SHOWN);
        }
        return;
    };
    let policy = strict.value;
    let lenient = lenient.expect("lenient refuses what strict takes").value;
    same(&policy, &lenient);
    let mut written = Vec::new();
    match write_policy(&policy, format, &mut written) {
        Ok(_) if exact => {
            let text = String::from_utf8(written).expect("writers write text");
            let again = read_policy(SOURCE, &text, Some(format), None, &STRICT);
            let again =
                again.unwrap_or_else(|e| panic!("cannot read what was written: {e}\n{text}"));
            // An empty file does not define the family of its rules.
            if !policy.is_empty() {
                same(&policy, &again.value);
            }
        }
        _ => {}
    }
}

fn same(a: &Policy, b: &Policy) {
    assert_eq!(a.ids(), b.ids());
    assert_eq!(a.parts().len(), b.parts().len());
    for &id in a.ids() {
        let describe = |policy: &Policy| -> Vec<_> {
            let rule = policy.rule(id);
            rule.map(|(part, rule)| {
                let action = policy.action_name(rule.action()).map(str::to_owned);
                (part, rule.words().to_vec(), action)
            })
            .collect()
        };
        assert_eq!(describe(a), describe(b), "rule {id}");
        assert_eq!(a.rule_name(id), b.rule_name(id), "rule {id}");
    }
}

/// Reads headers, with and without expected answers, and writes them again.
pub(crate) fn traces(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for expected in [false, true] {
        let _ = read_trace(SOURCE, &text, None, expected, &LENIENT);
        let Ok(trace) = read_trace(SOURCE, &text, None, expected, &STRICT) else {
            continue;
        };
        let trace = trace.value;
        let mut written = Vec::new();
        let answers = trace.expected.as_deref();
        write_trace(&trace.headers, answers, &mut written).expect("memory takes everything");
        let written = String::from_utf8(written).expect("writers write text");
        let again = read_trace(SOURCE, &written, None, expected, &STRICT);
        let again =
            again.unwrap_or_else(|e| panic!("cannot read what was written: {e}\n{written}"));
        if !trace.headers.is_empty() {
            assert_eq!(trace, again.value);
        }
    }
}

/// Reads a schema and writes it again.
pub(crate) fn schema_files(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(schema) = read_schema(SOURCE, &text) else {
        return;
    };
    let mut written = Vec::new();
    write_schema(&schema, &mut written).expect("memory takes everything");
    let written = String::from_utf8(written).expect("writers write text");
    let again = read_schema(SOURCE, &written);
    let again = again.unwrap_or_else(|e| panic!("cannot read what was written: {e}\n{written}"));
    assert_eq!(schema, again);
}

/// Reads parameters of the generator: our profiles and ClassBench's seed files.
pub(crate) fn profiles(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(profile) = Profile::from_toml(SOURCE, &text) {
        let again = Profile::from_toml(SOURCE, &profile.to_toml());
        again.unwrap_or_else(|e| panic!("cannot read what was written: {e}"));
    }
    for options in [STRICT, LENIENT] {
        if let Ok(seed) = SeedFile::parse(SOURCE, &text, &options) {
            let _ = Profile::from_seed_file(SOURCE, &seed.value);
        }
    }
}

/// A reader that returns at most seven bytes at a time.
struct Drops<'a>(&'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(7);
        self.0.read(&mut buffer[..count])
    }
}

/// Reads a capture, both whole and packet by packet, and parses every packet.
pub(crate) fn captures(data: &[u8]) {
    let options = capture::ReadOptions::DEFAULT
        .with_first(Some(1000))
        .with_max_bytes(1 << 22);
    let Ok(capture) = read_capture(SOURCE, data, &options) else {
        return;
    };
    // The amount of damaged gzip that can be unpacked depends on how the bytes arrive.
    let damaged = |warning: &Warning| matches!(warning.problem, CaptureProblem::Gzip { .. });
    if !capture.warnings().iter().any(damaged) && capture.more_warnings() == 0 {
        streamed(data, &capture, &options);
    }
    let packets = capture.packets().len();
    let policy = Policy::dual_stack();
    let headers = capture.classify_input(policy.schemas());
    let headers = headers.expect("packets have five-tuples");
    assert_eq!(headers.trace.len(), headers.packet_of.len());
    assert!(headers.trace.len() <= packets);
}

/// Checks that packets and warnings are equal however the bytes arrive.
fn streamed(data: &[u8], capture: &Capture, options: &capture::ReadOptions) {
    let reader = CaptureReader::new(SOURCE, Drops(data), options);
    let mut reader = reader.expect("a stream is refused that was read at once");
    for (packet, frame) in capture.frames() {
        let record = reader.next_record().expect("a stream ends in an error");
        let record = record.expect("a stream ends early");
        assert_eq!(record.frame, frame);
        assert_eq!(record.packet.timestamp_ns, packet.timestamp_ns);
    }
    let extra = reader.next_record().expect("a stream ends in an error");
    assert!(extra.is_none(), "a stream goes on");
    assert_eq!(reader.warnings(), capture.warnings());
}

/// Checks that a frame with a new Ethernet header has the same fields as before.
fn same_packet(made: &Parsed, parsed: &Parsed) {
    assert_eq!(made.openflow15(1), parsed.openflow15(1));
    assert_eq!(made.ipv4_5tuple(), parsed.ipv4_5tuple());
    assert_eq!(made.ipv6_5tuple(), parsed.ipv6_5tuple());
}

/// Parses one frame; the first byte chooses the link type.
pub(crate) fn packets(data: &[u8]) {
    let Some((&first, frame)) = data.split_first() else {
        return;
    };
    // One more than the parsed link types, to stand for all unparsed types.
    let which = usize::from(first) % (LinkType::PARSED.len() + 1);
    let link = LinkType::PARSED.get(which).copied();
    let link = link.unwrap_or(LinkType::Other(u16::from(first)));
    let parsed = parse(frame, link);
    match ethernet_frame(frame, link) {
        Ok(made) => same_packet(&parse(&made, LinkType::Ethernet), &parsed),
        Err(_) => assert!(parsed.ipv4_5tuple().is_none() && parsed.ipv6_5tuple().is_none()),
    }
    if let Some(header) = parsed.ipv4_5tuple() {
        assert!(header[0] <= u128::from(u32::MAX) && header[2] <= 0xffff && header[4] <= 0xff);
    }
    assert!(parsed.ipv4_5tuple().is_none() || parsed.ipv6_5tuple().is_none());
    let _ = parsed.openflow15(1);
}
