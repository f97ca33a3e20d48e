//! `classyard explain`: why a header hits its rule.

use std::cmp::Reverse;

use classyard::key::unpack;
use classyard::policy::PartId;
use classyard::{FieldMatch, KeyVec, Policy, RuleRef, RuleSet, Winner};
use classyard_report::embedded;
use classyard_report::engine_choice::EngineChoice;
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::header_text;
use classyard_report::input::headers::HeadersArgs;
use classyard_report::input::rules::RulesArgs;
use classyard_report::output::OutputArgs;
use classyard_report::output::style::counted;
use classyard_report::reporter::Reporter;

pub(crate) mod fields;
mod findings;
mod report;

use report::{ExplainReport, HeaderReport};

/// Explain one header: the rules that match, the winner, and how it was found
///
/// Shows every matching rule in order, the fields that decided, better rules that
/// almost matched, the tables that the engine probed, and the bits of the header
/// that the answer depends on. Findings of `classyard lint` are shown if they are about
/// the winner, or about matching rules that decide no packet. Without files, explains a header of the embedded
/// example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard explain
  classyard explain --header \"src=10.20.30.101 dst=10.20.1.11 proto=tcp dport=445\"
  classyard explain -r fw.rules -c dump.pcap --packet 17
  classyard explain -r acl1.txt -t acl1_trace.txt --line 3 --engine tss --near 10")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    /// The header, as field=value pairs; missing fields are 0
    #[arg(
        long,
        value_name = "FIELDS",
        conflicts_with_all = ["capture", "trace", "packet", "line"],
        help_heading = "Input"
    )]
    header: Option<String>,

    #[command(flatten)]
    headers: HeadersArgs,

    /// The packet of the capture, counted from 1 as packet analysers do
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Input"
    )]
    packet: Option<u32>,

    /// The header of the trace, counted from 1; lines without a header do not count
    #[arg(
        long,
        value_name = "N",
        requires = "trace",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Input"
    )]
    line: Option<u32>,

    #[command(flatten)]
    reading: RulesArgs,

    /// The engine for the lookup: NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`), or auto for the fastest by prediction
    #[arg(short, long, value_name = "SPEC", value_parser = EngineChoice::parse)]
    engine: Option<EngineChoice>,

    #[command(flatten)]
    limits: BuildLimits,

    /// Show K rules that would have won if a few fields were different
    #[arg(long, value_name = "K", default_value_t = 3)]
    near: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// The header to explain, and its source.
struct Asked {
    part: PartId,
    values: Vec<u128>,
    report: HeaderReport,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let [capture, trace] = args.headers.files();
    only_one_from_stdin(&[("rules", args.rules.path()), capture, trace])?;
    let is_packet = args.headers.capture.is_some() || args.packet.is_some();
    let rules = match is_packet {
        true => args.reading.load_for_packets(args.rules.path(), reporter)?,
        false => args.reading.load(args.rules.path(), reporter)?,
    };
    let policy = &rules.policy;
    let header = asked(args, policy, rules.embedded, reporter)?;
    let part = policy.part(header.part);
    let mut keys = KeyVec::new(part.schema());
    keys.push(&header.values)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let key = keys.key(0);

    let (spec, classifier) = EngineChoice::build(
        args.engine.as_ref(),
        std::slice::from_ref(part),
        &args.limits,
        reporter,
        |spec, limits, progress| spec.build(part, limits, progress),
    )?;
    let mut mask = vec![0; part.schema().key_words()];
    let masked = classifier.classify_masked(key, &mut mask);
    let lookup = classifier.trace(key);

    let matching = matching(part, key);
    let winner = matching.first().copied();
    let wins = winner.map_or(Winner::MISS, |rule| rule.winner());
    let near_rules = near_misses(part, &header.values, wins, args.near);

    let mut report = ExplainReport::new(&rules, header.report);
    report.set_matches(&rules, &matching);
    if let Some(winner) = winner {
        report.decided = fields::decided(&winner, &header.values);
    }
    report.findings = findings::find(&rules, &matching, &mut reporter.progress())?;
    report.set_near(&rules, &near_rules, &header.values);
    report.set_lookup(policy, &spec, &lookup, part.schema());
    report.set_mask(part.schema(), key, &mask);
    args.output.report(&report)?;
    if lookup.winner != wins || masked != wins {
        reporter.failure(&Failure::usage(format!(
            "engine {spec} says {:?} and, with a mask, {masked:?}, but comparing all rules says {wins:?}",
            lookup.winner
        )));
        return Err(Failure::Different);
    }
    Ok(())
}

/// Returns the header to explain.
fn asked(
    args: &Args,
    policy: &Policy,
    embedded: bool,
    reporter: Reporter,
) -> Result<Asked, Failure> {
    if args.headers.trace.is_some() {
        return from_trace(args, policy, reporter);
    }
    if args.headers.capture.is_some() || args.packet.is_some() {
        return from_capture(args, policy, reporter);
    }
    let text =
        match (&args.header, embedded) {
            (Some(text), _) => text,
            (None, true) => embedded::HEADER,
            (None, false) => {
                return Err(Failure::usage("there is no header to explain").with_help(format!(
                "give --header \"{}\", or a --capture and --packet, or a --trace and --line",
                embedded::HEADER
            )));
            }
        };
    let (part, header) = header_text::parse(text, policy)?;
    let schema = policy.part(part).schema();
    if !header.missing.is_empty() {
        let names = header.missing.iter().map(|&id| schema.field(id).name());
        reporter.note(&format!(
            "fields not given, assumed to be 0: {}",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(Asked {
        part,
        report: HeaderReport::new(schema, &header.values, "the command line".to_owned()),
        values: header.values,
    })
}

fn from_trace(args: &Args, policy: &Policy, reporter: Reporter) -> Result<Asked, Failure> {
    let headers = args.headers.load(policy, &args.reading, reporter)?;
    let line = args.line.unwrap_or(1);
    let header = headers.trace.iter().nth(line as usize - 1);
    let Some((part, key)) = header else {
        return Err(Failure::usage(format!(
            "{} has no header {line}; it has {}",
            headers.source,
            headers.trace.len()
        )));
    };
    let schema = policy.part(part).schema();
    let values = unpack(schema, key);
    let source = format!("{}, header {line}", headers.source);
    Ok(Asked {
        part,
        report: HeaderReport::new(schema, &values, source),
        values,
    })
}

fn from_capture(args: &Args, policy: &Policy, reporter: Reporter) -> Result<Asked, Failure> {
    let number = args.packet.unwrap_or(1);
    // Packets after this one are not read.
    let headers = args
        .headers
        .load_first(number as usize, policy, &args.reading, reporter)?;
    let Some(packets) = &headers.packets else {
        return Err(Failure::usage("there is no capture"));
    };
    let packet_list = packets.capture.packets();
    let Some(packet) = packet_list.get(number as usize - 1) else {
        return Err(Failure::usage(format!(
            "{} has no packet {number}; it has {}",
            headers.source,
            packet_list.len()
        )));
    };
    let row = packets.origin.packet_of.binary_search(&(number - 1));
    let header = row.ok().and_then(|row| headers.trace.iter().nth(row));
    let Some((part, key)) = header else {
        let parsed = packets.capture.parsed().nth(number as usize - 1);
        let kind = parsed.map_or("unreadable", |parsed| parsed.kind.name());
        return Err(Failure::usage(format!(
            "packet {number} of {} has no header for rules of {}: it is {kind}",
            headers.source,
            policy.name()
        )));
    };
    let schema = policy.part(part).schema();
    let values = unpack(schema, key);
    let source = format!(
        "{}, packet {number} of {}",
        headers.source,
        counted(packet.original_length, "byte")
    );
    Ok(Asked {
        part,
        report: HeaderReport::new(schema, &values, source),
        values,
    })
}

/// Returns all rules that match, best first.
fn matching<'a>(part: &'a RuleSet, key: &[u64]) -> Vec<RuleRef<'a>> {
    let mut matching: Vec<_> = part.iter().filter(|rule| rule.matches(key)).collect();
    matching.sort_unstable_by_key(|rule| rule.winner().rank());
    matching
}

/// Returns rules that would have won if a few fields were different. They are
/// sorted by the number of fields that do not match (fewest first), then by the
/// number of fields that agree (most first), then by the distance of the values,
/// then by priority.
fn near_misses<'a>(
    part: &'a RuleSet,
    header: &[u128],
    winner: Winner,
    count: usize,
) -> Vec<RuleRef<'a>> {
    if count == 0 {
        return Vec::new();
    }
    let better = part.iter().filter(|rule| rule.winner().beats(winner));
    type Score = (usize, Reverse<usize>, u32, u64);
    let mut scored: Vec<(Score, RuleRef<'a>)> = better
        .map(|rule| {
            let refusing = fields::refused(&rule, header);
            let distances = refusing
                .iter()
                .map(|&id| fields::distance(&rule, id, header));
            let distance = distances.sum();
            let refused = refusing.len();
            let demands = rule
                .fields()
                .iter()
                .filter(|&&it| it != FieldMatch::Any)
                .count();
            let agreed = demands - refused;
            let rank = rule.winner().rank();
            ((refused, Reverse(agreed), distance, rank), rule)
        })
        .collect();
    let order = |a: &(Score, RuleRef<'_>), b: &(Score, RuleRef<'_>)| a.0.cmp(&b.0);
    if scored.len() > count {
        scored.select_nth_unstable_by(count - 1, order);
        scored.truncate(count);
    }
    scored.sort_unstable_by(order);
    scored.into_iter().map(|(_, rule)| rule).collect()
}
