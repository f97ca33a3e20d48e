//! `classyard convert`: converts files between formats.

use std::path::{Path, PathBuf};

use classyard::PolicyTrace;
use classyard_configs::{ConfigFormat, InputFormat};
use classyard_report::export::{
    is_capture, one_a_microsecond, write_capture, write_config, write_loaded,
};
use classyard_report::failure::Failure;
use classyard_report::input::headers::HeadersArgs;
use classyard_report::input::limits::{ByteLimit, HeaderLimit, RecordLimit};
use classyard_report::input::rules::{RulesArgs, schema_choice};
use classyard_report::input::{count, read_bytes, source_name};
use classyard_report::output::file::{WriteFailure, is_dash, is_same_file, to_file};
use classyard_report::output::style::counted;
use classyard_report::reporter::Reporter;
use classyard_report::suggestion::did_you_mean;
use classyard_workload::capture::{self, CaptureReader, HeaderExtractor};
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_trace, write_trace};

/// Convert rules, header traces and captures between formats
///
/// Rules become rules of another format. A capture becomes a trace of headers, and
/// a trace becomes a capture. Standard error notes what the new format expresses
/// differently.
///
/// A rule that the new format cannot express, or only for fewer headers, is lost.
/// Standard error lists the first twenty lost rules with the reason and their
/// number in the input file. The other rules are written, and the exit code is 1.
/// For configurations of firewalls, it is an error instead, and nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard convert acl1.txt acl1.rules           ClassBench rules to our own format
  classyard convert fw.rules - --to ovs           our own format to flows
  classyard convert fw.save fw.nft                iptables to nftables
  classyard convert fw.save br0.flows --list FORWARD
  classyard convert fw.nft acl.cfg --to cisco-ios
  classyard convert br0.flows fw.rules --table 0  the flows of one table
  classyard convert dump.pcapng.gz dump.trace     packets to headers
  classyard convert acl1_trace.txt acl1.pcap      headers to packets")]
pub(crate) struct Args {
    /// The file to read; - for standard input, gzip is unpacked
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write; - for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of IN: a format of rules, trace or capture
    ///
    /// By default, detected from the contents. `classyard formats` lists the formats.
    #[arg(long, value_name = "FORMAT", value_parser = kind)]
    from: Option<Kind>,

    /// The format of OUT: a format of rules, trace or capture (a pcap file)
    ///
    /// Rules are written as rules, ovs, classbench, iptables, nftables, cisco-ios,
    /// cisco-nxos, cisco-xr or cisco-asa. By default, the ending of OUT decides (.rules,
    /// .flows, .nft, .save, .pcap, .trace, ...).
    #[arg(long, value_name = "FORMAT", value_parser = kind)]
    to: Option<Kind>,

    /// The schema: a built-in name or a TOML file
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,

    /// The table of Open vSwitch flows to read, 0 to 255
    ///
    /// Required if the file has flows of several tables.
    #[arg(long, value_name = "N")]
    table: Option<u8>,

    /// The list of rules to read from a firewall's configuration, for example INPUT
    #[arg(long, value_name = "NAME")]
    list: Option<String>,

    /// The action of packets that no rule matches, in a firewall's configuration
    ///
    /// Needed if the last rule of a list does not match every packet.
    #[arg(long, value_name = "ACTION")]
    default: Option<DefaultAction>,

    /// Skip bad lines and use the good ones
    #[arg(long)]
    skip_bad: bool,

    /// Refuse files with more than N rules (10k, 1M, ...)
    ///
    /// The default is 16,777,216.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Input")]
    limit_rules: Option<usize>,

    #[command(flatten)]
    limit: HeaderLimit,

    #[command(flatten)]
    bytes: ByteLimit,

    #[command(flatten)]
    record: RecordLimit,
}

/// An action of packets that no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DefaultAction {
    Permit,
    Deny,
}

impl DefaultAction {
    fn name(self) -> &'static str {
        match self {
            DefaultAction::Permit => "permit",
            DefaultAction::Deny => "deny",
        }
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rules(InputFormat),
    Trace,
    Capture,
}

impl Kind {
    /// The kinds of files without rules, by their names.
    const WITHOUT_RULES: [(&str, Kind); 3] = [
        ("trace", Kind::Trace),
        ("capture", Kind::Capture),
        ("pcap", Kind::Capture),
    ];

    /// Returns all kinds by their names.
    fn all() -> impl Iterator<Item = (&'static str, Kind)> {
        let rules = InputFormat::all().map(|format| (format.name(), Kind::Rules(format)));
        rules.chain(Kind::WITHOUT_RULES)
    }

    fn name(self) -> &'static str {
        let known = Kind::all().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let known = Kind::all().find(|(name, _)| *name == text);
    known.map(|(_, kind)| kind).ok_or_else(|| {
        let names: Vec<&str> = Kind::all().map(|(name, _)| name).collect();
        format!(
            "unknown format `{text}`; expected {}{}",
            names.join(", "),
            did_you_mean(text, names.iter().copied())
        )
    })
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let bytes = read_bytes(&args.input, args.bytes.text())?;
    let from_kind = args.from.unwrap_or_else(|| contents(&bytes));
    let to_kind = match args.to {
        Some(to) => to,
        None => ending(&args.output, from_kind)?,
    };
    if is_same_file(&args.input, &args.output) {
        return Err(
            Failure::usage(format!("{} is both read and written", args.input.display()))
                .with_help("write to another file and rename it afterwards"),
        );
    }
    match (from_kind, to_kind) {
        (Kind::Rules(format), Kind::Rules(to)) => {
            return convert_rules(args, format, to, bytes, reporter);
        }
        (Kind::Rules(_), _) => return Err(mismatch(args, from_kind, to_kind)),
        _ => {}
    }
    if args.table.is_some() {
        return Err(Failure::usage(format!(
            "--table applies to flows of Open vSwitch, but {} is {}",
            source_name(&args.input),
            from_kind.name()
        )));
    }
    match to_kind {
        Kind::Rules(_) => Err(mismatch(args, from_kind, to_kind)),
        Kind::Trace => {
            let trace = headers(args, from_kind, bytes, reporter)?;
            to_file(&args.output, |out| {
                write_trace(&trace, None, out).map_err(WriteFailure::Io)
            })
        }
        Kind::Capture => {
            if from_kind == Kind::Capture {
                return Err(Failure::usage("both files are captures")
                    .with_help("captures are read only to get headers out of them"));
            }
            let trace = headers(args, from_kind, bytes, reporter)?;
            write_capture(&trace, &args.output, one_a_microsecond, reporter)
        }
    }
}

/// Reads rules and writes them in another format.
fn convert_rules(
    args: &Args,
    format: InputFormat,
    to: InputFormat,
    bytes: Vec<u8>,
    reporter: Reporter,
) -> Result<(), Failure> {
    if format == to && matches!(to, InputFormat::Rules(_)) {
        keeps_comments(args, &bytes)?;
    }
    // Read by path, so that schema files next to the rules are found.
    let reading = RulesArgs {
        rules_format: Some(format),
        table: args.table,
        schema: args.schema.clone(),
        skip_bad: args.skip_bad,
        limit_rules: args.limit_rules,
        bytes: args.bytes.clone(),
        list: args.list.clone(),
        ..RulesArgs::default()
    };
    let rules = if is_dash(&args.input) {
        reading.load_text(&args.input, &text(&args.input, bytes)?, reporter)?
    } else {
        drop(bytes);
        reading.load(Some(&args.input), reporter)?
    };
    match to {
        InputFormat::Rules(to) => write_loaded(&rules, to, &args.output, reporter),
        InputFormat::Config(to) => {
            let default = args.default.map(DefaultAction::name);
            write_config(&rules, to, default, &args.output, reporter)
        }
    }
}

/// Refuses to rewrite rules in their own format, which would only lose their
/// comments.
fn keeps_comments(args: &Args, bytes: &[u8]) -> Result<(), Failure> {
    // The schema comment of flows is not lost: it is written again.
    let is_comment =
        |line: &&[u8]| line.trim_ascii_start().starts_with(b"#") && !line.starts_with(b"# schema ");
    let comments = bytes
        .split(|&byte| byte == b'\n')
        .filter(is_comment)
        .count();
    if comments == 0 {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} has {} and would be written in its own format without them",
        source_name(&args.input),
        counted(comments, "comment line")
    ))
    .with_help("copy the file, or remove the comments first"))
}

fn mismatch(args: &Args, from: Kind, to: Kind) -> Failure {
    Failure::usage(format!(
        "{} is {} and cannot become {}",
        source_name(&args.input),
        from.name(),
        to.name()
    ))
    .with_help(
        "rules convert only to rules, and traces and captures only to each other; --from and \
         --to set the formats",
    )
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{} is not UTF-8 text", source_name(path))))
}

/// Detects the kind of a file from its contents.
fn contents(bytes: &[u8]) -> Kind {
    const CAPTURES: [[u8; 4]; 5] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    if CAPTURES.iter().any(|magic| bytes.starts_with(magic)) {
        return Kind::Capture;
    }
    // Rules are recognised by their first lines; everything else is taken as headers.
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]);
    InputFormat::detect(&start).map_or(Kind::Trace, Kind::Rules)
}

fn rules(format: RuleFormat) -> Kind {
    Kind::Rules(InputFormat::Rules(format))
}

/// Returns the kind of file that a name's ending stands for.
fn ending(path: &Path, from: Kind) -> Result<Kind, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("rules") => Ok(rules(RuleFormat::Rules)),
        Some("json") => Ok(rules(RuleFormat::Json)),
        Some("flows" | "ovs") => Ok(rules(RuleFormat::Ovs)),
        Some("classbench" | "cb" | "filters") => Ok(rules(RuleFormat::Classbench)),
        _ if is_capture(path) => Ok(Kind::Capture),
        Some("trace" | "headers") => Ok(Kind::Trace),
        Some("nft") => Ok(Kind::Rules(InputFormat::Config(ConfigFormat::Nftables))),
        Some("iptables" | "save") => Ok(Kind::Rules(InputFormat::Config(ConfigFormat::Iptables))),
        _ if from == Kind::Capture => Ok(Kind::Trace),
        _ => Err(
            Failure::usage(format!("unknown output format for {}", path.display())).with_help(
                "choose one with --to, or by the file's ending (.rules, .json, .flows, .classbench, \
                 .nft, .save, .trace, .pcap)",
            ),
        ),
    }
}

fn headers(
    args: &Args,
    from: Kind,
    bytes: Vec<u8>,
    reporter: Reporter,
) -> Result<PolicyTrace, Failure> {
    let schema = args.schema.as_deref().map(schema_choice).transpose()?;
    let source = source_name(&args.input);
    if from == Kind::Trace {
        let options = args
            .limit
            .trace(ReadOptions::default().with_skip_bad(args.skip_bad));
        let text = text(&args.input, bytes)?;
        let loaded = read_trace(&source, &text, schema.as_ref(), false, &options)?;
        reporter.skipped(&loaded.skipped);
        return Ok(loaded.value.headers);
    }
    let default = capture::ReadOptions::default();
    let options = args.limit.capture(&args.bytes, &args.record, default);
    let open = || CaptureReader::new(&source, bytes.as_slice(), &options);
    let choice = match schema {
        Some(choice) => choice,
        None => families(open()?)?,
    };
    let policy = choice.policy();
    let mut extractor = HeaderExtractor::new(policy.schemas())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut trace = PolicyTrace::new(policy.schemas());
    let mut reader = open()?;
    while let Some(record) = reader.next_record()? {
        extractor.add(&record.packet, record.frame, &mut trace);
    }
    let (warnings, more) = (reader.warnings(), reader.more_warnings());
    HeadersArgs::warn(&source, warnings, more, reporter);
    let kinds = extractor.left_out();
    if !kinds.is_empty() {
        let left_out: u64 = kinds.iter().map(|(_, count)| count).sum();
        let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
        reporter.note(&format!(
            "{} without a header of {} left out: {}",
            counted(left_out, "packet"),
            policy.name(),
            kinds.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(trace)
}

/// Returns the five-tuples that a capture's packets have.
fn families(mut reader: CaptureReader<&[u8]>) -> Result<SchemaChoice, ReadError> {
    use classyard::Schema;
    use classyard_workload::packet::{Kind, parse};
    let (mut v4, mut v6) = (false, false);
    while let Some(record) = reader.next_record()? {
        let parsed = parse(record.frame, record.packet.link);
        v4 |= parsed.kind == Kind::Ipv4;
        v6 |= parsed.kind == Kind::Ipv6;
        if v4 && v6 {
            break;
        }
    }
    Ok(match (v4, v6) {
        (true, true) => SchemaChoice::DualStack,
        (false, true) => SchemaChoice::Single(Schema::ipv6_5tuple()),
        _ => SchemaChoice::Single(Schema::ipv4_5tuple()),
    })
}
