//! `classyard classify`: which rule each header hits, how often, how fast.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use classyard::{EngineSpec, Limits, Policy};

use crate::failure::Failure;
use crate::input::files::{RulesFile, only_one_from_stdin};
use crate::input::headers::{Headers, HeadersArgs};
use crate::input::rules::RulesArgs;
use crate::input::{engine, is_dash};
use crate::output::{OutputArgs, raw_stdout};
use crate::talk::Talk;

mod lookups;
mod report;
mod tally;

use lookups::Lookups;
use report::ClassifyReport;
use tally::Tally;

/// Classify packets or headers: which rule each one hits, how often, how fast
///
/// Without files it classifies the embedded example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard classify
      the embedded example: an office's traffic and its firewall
  classyard classify fw.rules -c dump.pcapng.gz
      packets of a capture against rules
  classyard classify -r acl1.txt -t acl1_trace.txt --engine tss --format json
      a ClassBench trace, looked up by another engine
  classyard classify -r fw.rules -c dump.pcap --winners - --quiet | sort | uniq -c
      only the winners, one line per packet")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    headers: HeadersArgs,

    #[command(flatten)]
    reading: RulesArgs,

    /// The engine to look up with: NAME or NAME:OPTION=VALUE:... (see
    /// `classyard engines`)
    #[arg(short, long, value_name = "SPEC", value_parser = engine)]
    engine: Option<EngineSpec>,

    /// Time exactly this many passes over the headers
    ///
    /// Without it, as many as take a quarter of a second, but at least three
    /// unless they take long.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    /// Write the winner of each header to a file, - for standard output
    ///
    /// One line per header, in order: the winning rule's number in file order,
    /// from 0, or `-` if no rule matches. For a capture one line per packet, with
    /// `x` for a packet that has no header for these rules (ARP against
    /// five-tuples, say). With - the report is left out.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    winners: Option<PathBuf>,

    /// List this many rules, those with most hits; 0 for none
    ///
    /// Without it, 20 in a table, all in JSON and CSV.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "all",
        help_heading = "Output"
    )]
    top: Option<usize>,

    /// List all rules that were hit, and all that never were
    #[arg(long, help_heading = "Output")]
    all: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Rules in a table unless told otherwise.
const TOP: usize = 20;

/// Runs the command.
pub(crate) fn run(args: &Args, talk: Talk) -> Result<(), Failure> {
    let rules = args.rules.path();
    let [capture, trace] = args.headers.files();
    only_one_from_stdin(&[("rules", rules), capture, trace])?;
    if rules.is_none() && !args.headers.is_empty() {
        talk.note("no rules given, so the embedded example's rules are used");
    }
    if rules.is_some() && args.headers.is_empty() {
        return Err(Failure::usage("there is nothing to classify")
            .with_help("give a --capture or a --trace; `classyard generate trace` makes one"));
    }
    let began = Instant::now();
    let rules = args.reading.load(rules, talk)?;
    let rules_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let headers = args
        .headers
        .load(&rules.policy, args.reading.skip_bad, talk)?;
    let headers_seconds = began.elapsed().as_secs_f64();

    let spec = match &args.engine {
        Some(spec) => spec.clone(),
        None => EngineSpec::parse(super::engines::DEFAULT)?,
    };
    let began = Instant::now();
    let mut progress = talk.progress();
    let classifier = rules
        .policy
        .build(&spec, &Limits::default(), &mut progress)?;
    drop(progress);
    let build_seconds = began.elapsed().as_secs_f64();

    // Where only the winners are wanted, nothing is timed.
    let only_winners = args.winners.as_deref().is_some_and(is_dash);
    let repeat = if only_winners { Some(0) } else { args.repeat };
    let lookups = Lookups::run(&classifier, &headers.trace, repeat, &mut talk.progress());
    if let Some(path) = &args.winners {
        write_winners(path, &rules.policy, &headers, &lookups)?;
        if is_dash(path) {
            return Ok(());
        }
    }
    let tally = Tally::new(&rules.policy, &headers, &lookups);
    let top = match (args.top, args.all, args.output.format) {
        (Some(top), _, _) => top,
        (None, false, crate::output::Format::Table) => TOP,
        _ => usize::MAX,
    };
    let mut report = ClassifyReport::new(&rules, &headers, &tally, top, args.all);
    report.engine =
        report::EngineReport::new(&spec, args.engine.is_some(), &rules.policy, &classifier);
    report.rate = lookups.rate(headers.trace.len());
    report.seconds = report::Seconds {
        read_rules: rules_seconds,
        read_headers: headers_seconds,
        build: build_seconds,
        classify: lookups.seconds().iter().sum(),
    };
    args.output.report(&report)
}

/// Writes one line per header, or per packet of a capture.
fn write_winners(
    path: &Path,
    policy: &Policy,
    headers: &Headers,
    lookups: &Lookups,
) -> Result<(), Failure> {
    if is_dash(path) {
        let mut out = raw_stdout();
        write_lines(&mut out, policy, headers, lookups)?;
        return Ok(out.flush()?);
    }
    let file = File::create(path).map_err(|error| Failure::file(path, error))?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write_lines(&mut out, policy, headers, lookups)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::file(path, error))
}

fn write_lines(
    out: &mut dyn std::io::Write,
    policy: &Policy,
    headers: &Headers,
    lookups: &Lookups,
) -> std::io::Result<()> {
    let mut lines = lookups
        .in_order(&headers.trace)
        .map(|winner| winner.rule().and_then(|id| policy.position(id)));
    let mut line = |out: &mut dyn std::io::Write| match lines.next().flatten() {
        Some(position) => writeln!(out, "{position}"),
        None => out.write_all(b"-\n"),
    };
    let Some(packets) = &headers.packets else {
        for _ in 0..headers.trace.len() {
            line(out)?;
        }
        return Ok(());
    };
    let mut with_header = packets.origin.packet_of.iter().peekable();
    for packet in 0..packets.capture.packets().len() {
        if with_header
            .next_if(|&&next| next as usize == packet)
            .is_some()
        {
            line(out)?;
        } else {
            out.write_all(b"x\n")?;
        }
    }
    Ok(())
}
