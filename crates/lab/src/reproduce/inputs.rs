//! The user's own inputs of a reproduction: engines, rules, headers and packets, with the
//! options and the readers of the other commands.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use classyard::{EngineSpec, Policy, PolicyTrace};
use classyard_report::failure::Failure;
use classyard_report::input::files::only_one_from_stdin;
use classyard_report::input::headers::{HeadersArgs, open_capture};
use classyard_report::input::limits::{HeaderLimit, RecordLimit};
use classyard_report::input::rules::RulesArgs;
use classyard_report::input::{Engines, source_name};
use classyard_report::output::style::counted;
use classyard_report::reporter::Reporter;
use classyard_workload::capture;
use classyard_workload::packet::parse;
use classyard_workload::traffic::locality::{Ipv4Flow, LocalityPacket};
use serde::Serialize;

use super::identity;

/// A kind of own input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Engines.
    Engines,
    /// Rules in place of the paper's.
    Rules,
    /// Headers for own rules, as text.
    Trace,
    /// Headers for own rules, from packets.
    CapturedHeaders,
    /// Packets with their times, without rules.
    Packets,
}

/// The inputs of figures that build engines over rules and look headers up.
pub(super) const LOOKUP_INPUTS: &[Input] = &[
    Input::Engines,
    Input::Rules,
    Input::Trace,
    Input::CapturedHeaders,
];

impl Input {
    /// Returns the option, as in messages.
    pub(super) fn option(self) -> &'static str {
        match self {
            Input::Engines => "--engines",
            Input::Rules => "--rules",
            Input::Trace => "--trace",
            Input::CapturedHeaders => "--capture with --rules",
            Input::Packets => "--capture without --rules",
        }
    }
}

/// The options for own inputs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct InputArgs {
    /// Engines to measure next to the paper's, or all
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_parser = Engines::parse,
        value_name = "SPECS",
        help_heading = "Own inputs"
    )]
    engines: Vec<Engines>,

    /// Rules in place of the paper's; may be repeated; - for standard input, gzip is
    /// unpacked
    #[arg(short, long, value_name = "FILE", help_heading = "Own inputs")]
    rules: Vec<PathBuf>,

    /// Headers for own rules as text, one per line, as ClassBench writes them; - for
    /// standard input
    ///
    /// Either one file for all files of rules, or one for each, in the same order. By
    /// default, headers are drawn from the rules.
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "rules",
        conflicts_with = "capture",
        help_heading = "Own inputs"
    )]
    trace: Vec<PathBuf>,

    /// Packets: pcap or pcapng files, plain or gzip'd; - for standard input
    ///
    /// With own rules, the headers to look up: one file for all files of rules, or one
    /// for each, in the same order. Without rules, the traffic, with its capture times.
    #[arg(short, long, value_name = "FILE", help_heading = "Own inputs")]
    capture: Vec<PathBuf>,

    #[command(flatten)]
    reading: RulesArgs,

    #[command(flatten)]
    limit: HeaderLimit,

    #[command(flatten)]
    record: RecordLimit,
}

impl InputArgs {
    /// Returns the kinds of inputs that were given.
    pub(super) fn given(&self) -> Vec<Input> {
        let captured = match self.rules.is_empty() {
            true => Input::Packets,
            false => Input::CapturedHeaders,
        };
        let kinds = [
            (Input::Engines, self.engines.is_empty()),
            (Input::Rules, self.rules.is_empty()),
            (Input::Trace, self.trace.is_empty()),
            (captured, self.capture.is_empty()),
        ];
        let given = kinds.into_iter().filter(|(_, is_empty)| !is_empty);
        given.map(|(kind, _)| kind).collect()
    }

    /// Returns the engines, without duplicates.
    pub(super) fn engines(&self) -> Vec<EngineSpec> {
        Engines::join(&self.engines)
    }

    /// Reads all files.
    ///
    /// # Errors
    /// If a file cannot be read, has no rules, or has no headers for the rules.
    pub(super) fn load(&self, reporter: Reporter) -> Result<Inputs, Failure> {
        let files = |name: &'static str, paths: &'static dyn Fn(&InputArgs) -> &Vec<PathBuf>| {
            let paths = paths(self).iter();
            paths.map(move |path| (name, Some(path.as_path())))
        };
        let all: Vec<(&str, Option<&Path>)> = files("rules", &|args| &args.rules)
            .chain(files("trace", &|args| &args.trace))
            .chain(files("capture", &|args| &args.capture))
            .collect();
        only_one_from_stdin(&all)?;
        self.check_numbers()?;
        let mut inputs = Inputs {
            engines: self.engines(),
            ..Inputs::default()
        };
        for (index, path) in self.rules.iter().enumerate() {
            inputs.rules.push(self.load_rules(index, path, reporter)?);
        }
        if self.rules.is_empty() {
            for path in &self.capture {
                inputs.packets.push(self.load_packets(path, reporter)?);
            }
        }
        Ok(inputs)
    }

    /// Checks that there is one file of headers, or one for each file of rules.
    fn check_numbers(&self) -> Result<(), Failure> {
        if self.rules.is_empty() {
            return Ok(());
        }
        for (option, files) in [("--trace", &self.trace), ("--capture", &self.capture)] {
            if files.len() > 1 && files.len() != self.rules.len() {
                return Err(Failure::usage(format!(
                    "{} of {option} for {} of --rules",
                    counted(files.len(), "file"),
                    counted(self.rules.len(), "file")
                ))
                .with_help(format!(
                    "give {option} once for all rules, or once for each file of rules"
                )));
            }
        }
        Ok(())
    }

    fn load_rules(
        &self,
        index: usize,
        path: &Path,
        reporter: Reporter,
    ) -> Result<OwnRules, Failure> {
        let loaded = self.reading.load(Some(path), reporter)?;
        let (name, policy) = (loaded.source, loaded.policy);
        if policy.is_empty() {
            return Err(Failure::usage(format!(
                "{name} has no rules; figures need at least 1"
            )));
        }
        let content = identity::of_rules(&policy);
        let content = content.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        Ok(OwnRules {
            headers: self.load_headers(index, &name, &policy, reporter)?,
            name,
            policy,
            content,
        })
    }

    /// Reads the headers for the rules at `index`, if there are any.
    fn load_headers(
        &self,
        index: usize,
        rules: &str,
        policy: &Policy,
        reporter: Reporter,
    ) -> Result<Option<OwnHeaders>, Failure> {
        let of = |files: &[PathBuf]| match files {
            [one] => Some(one.clone()),
            files => files.get(index).cloned(),
        };
        let args = HeadersArgs {
            capture: of(&self.capture),
            trace: of(&self.trace),
            limit: self.limit.clone(),
            record: self.record.clone(),
        };
        if args.is_empty() {
            return Ok(None);
        }
        let headers = args.load(policy, &self.reading, reporter)?;
        let left_out = headers.packets.map_or(0, |packets| {
            usize::try_from(packets.origin.left_out_total()).unwrap_or(usize::MAX)
        });
        let source = headers.source;
        let schema = policy.name();
        if headers.trace.is_empty() {
            let left_out = match left_out {
                0 => String::new(),
                packets => format!(": {} left out", counted(packets, "packet")),
            };
            return Err(Failure::usage(format!(
                "{source} has no header of {schema} for the rules of {rules}{left_out}"
            )));
        }
        if left_out > 0 {
            let packets = counted(left_out, "packet");
            reporter.warn(&format!(
                "{source}: {packets} left out, without a header of {schema}"
            ));
        }
        Ok(Some(OwnHeaders {
            option: match self.capture.is_empty() {
                true => "--trace",
                false => "--capture",
            },
            content: identity::of_headers(&headers.trace),
            name: source,
            trace: headers.trace,
        }))
    }

    /// Reads the IPv4 packets of a capture.
    fn load_packets(&self, path: &Path, reporter: Reporter) -> Result<OwnPackets, Failure> {
        let options = self.limit.capture(
            &self.reading.bytes,
            &self.record,
            capture::ReadOptions::default(),
        );
        let mut reader = open_capture(Some(path), &options)?.reader;
        let mut packets = PacketList::default();
        let mut left_out = 0;
        while let Some(record) = reader.next_record()? {
            let parsed = parse(record.frame, record.packet.link);
            match parsed.ipv4_5tuple().and_then(flow) {
                Some(header) => packets.push(record.packet.timestamp_ns, header),
                None => left_out += 1,
            }
        }
        HeadersArgs::warn(
            reader.source(),
            reader.warnings(),
            reader.more_warnings(),
            reporter,
        );
        let (name, packets) = (source_name(path), packets.packets);
        let Some(last) = packets.last() else {
            return Err(Failure::usage(format!(
                "{name} has no IPv4 packet with addresses, ports and protocol: {} left out",
                counted(left_out, "packet")
            )));
        };
        if last.time > MAX_CAPTURE_NS {
            return Err(Failure::usage(format!(
                "the packets of {name} span {} s; figures take at most a day ({} s)",
                last.time / NS_PER_SECOND,
                MAX_CAPTURE_NS / NS_PER_SECOND
            ))
            .with_help("give a part of the capture"));
        }
        if left_out > 0 {
            let left_out = counted(left_out, "packet");
            reporter.warn(&format!("{name}: {left_out} left out, not IPv4"));
        }
        Ok(OwnPackets {
            content: identity::of_packets(&packets),
            name,
            packets,
        })
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The longest capture, in nanoseconds: caches do work for each second of a capture.
const MAX_CAPTURE_NS: u64 = 86_400 * NS_PER_SECOND;

/// Returns a five-tuple as a flow.
fn flow(
    [source, destination, source_port, destination_port, protocol]: [u128; 5],
) -> Option<Ipv4Flow> {
    Some(Ipv4Flow {
        source: u32::try_from(source).ok()?,
        destination: u32::try_from(destination).ok()?,
        source_port: u16::try_from(source_port).ok()?,
        destination_port: u16::try_from(destination_port).ok()?,
        protocol: u8::try_from(protocol).ok()?,
    })
}

/// Packets with the numbers of their flows, at times that never decrease.
#[derive(Default)]
struct PacketList {
    packets: Vec<LocalityPacket>,
    flows: HashMap<Ipv4Flow, u64>,
    first_stamp: Option<u64>,
}

impl PacketList {
    fn push(&mut self, stamp: u64, header: Ipv4Flow) {
        let first = *self.first_stamp.get_or_insert(stamp);
        let latest = self.packets.last().map_or(0, |packet| packet.time);
        let count = self.flows.len() as u64;
        let flow = match self.flows.entry(header) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(count),
        };
        self.packets.push(LocalityPacket {
            time: stamp.saturating_sub(first).max(latest),
            flow,
            header,
        });
    }
}

/// All own inputs, read and checked.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) engines: Vec<EngineSpec>,
    pub(super) rules: Vec<OwnRules>,
    pub(super) packets: Vec<OwnPackets>,
}

/// A file of rules, with the headers to look up if they are from a file.
pub(super) struct OwnRules {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) content: String,
    pub(super) headers: Option<OwnHeaders>,
}

/// Headers of a file.
pub(super) struct OwnHeaders {
    option: &'static str,
    pub(super) name: String,
    pub(super) trace: PolicyTrace,
    pub(super) content: String,
}

/// The IPv4 packets of a capture.
pub(super) struct OwnPackets {
    pub(super) name: String,
    pub(super) packets: Vec<LocalityPacket>,
    pub(super) content: String,
}

/// An own input, for the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReportedInput {
    option: &'static str,
    /// The engine's specification, or the file.
    name: String,
    /// Rules, headers or packets; `None` for an engine.
    entries: Option<usize>,
    /// The hash of the content; `None` for an engine.
    content: Option<String>,
}

impl ReportedInput {
    /// Returns the input for people: `--rules acl.rules (12)`.
    pub(super) fn text(&self) -> String {
        match self.entries {
            Some(entries) => format!("{} {} ({entries})", self.option, self.name),
            None => format!("{} {}", self.option, self.name),
        }
    }
}

impl Inputs {
    /// True if the user gave no inputs.
    pub(super) fn is_empty(&self) -> bool {
        self.engines.is_empty() && self.rules.is_empty() && self.packets.is_empty()
    }

    /// Returns all inputs, for the report.
    pub(super) fn reported(&self) -> Vec<ReportedInput> {
        let file = |option, name: &str, entries, content: &str| ReportedInput {
            option,
            name: name.to_owned(),
            entries: Some(entries),
            content: Some(content.to_owned()),
        };
        let mut reported: Vec<ReportedInput> = Vec::new();
        reported.extend(self.engines.iter().map(|engine| ReportedInput {
            option: "--engines",
            name: engine.to_string(),
            entries: None,
            content: None,
        }));
        for rules in &self.rules {
            let entries = rules.policy.len();
            reported.push(file("--rules", &rules.name, entries, &rules.content));
            if let Some(headers) = &rules.headers {
                let entries = headers.trace.len();
                reported.push(file(
                    headers.option,
                    &headers.name,
                    entries,
                    &headers.content,
                ));
            }
        }
        for one in &self.packets {
            let entries = one.packets.len();
            reported.push(file("--capture", &one.name, entries, &one.content));
        }
        reported
    }
}

/// A figure that is left out because it cannot use an own input.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) figure: &'static str,
    pub(super) reason: String,
}

impl LeftOut {
    /// Returns the figure with the reason, for people.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.figure, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_get_flows_and_times_that_never_decrease() {
        let mut list = PacketList::default();
        let header = |port| Ipv4Flow {
            source_port: port,
            ..Ipv4Flow::default()
        };
        for (stamp, port) in [(100, 1), (90, 2), (130, 1), (120, 2)] {
            list.push(stamp, header(port));
        }
        let packets = list.packets.iter().map(|packet| (packet.time, packet.flow));
        let packets: Vec<(u64, u64)> = packets.collect();
        assert_eq!(packets, [(0, 0), (0, 1), (30, 0), (30, 1)]);
    }

    #[test]
    fn a_capture_is_traffic_unless_there_are_rules() {
        let path = || vec![PathBuf::from("x")];
        let mut args = InputArgs {
            capture: path(),
            ..InputArgs::default()
        };
        assert_eq!(args.given(), [Input::Packets]);
        args.rules = path();
        assert_eq!(args.given(), [Input::Rules, Input::CapturedHeaders]);
    }
}
