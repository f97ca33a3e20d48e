//! `classyard generate trace`: random headers for a set of rules.

use std::path::PathBuf;

use classyard::{EngineSpec, Limits, Policy, PolicyTrace, RuleId, Scratch, Winner};
use classyard_report::export::{is_capture, one_a_microsecond, write_capture};
use classyard_report::failure::Failure;
use classyard_report::input::files::RulesFile;
use classyard_report::input::rules::RulesArgs;
use classyard_report::input::{count, engine};
use classyard_report::output::file::to_file;
use classyard_report::output::style::counted;
use classyard_report::registry::DEFAULT;
use classyard_report::reporter::Reporter;
use classyard_workload::formats::write_trace;
use classyard_workload::traffic::locality::TRACE1;
use classyard_workload::traffic::{
    CANDIDATES, FlowModel, Traffic, TrafficConfig, TrafficError, TrafficRecipe, traffic,
};

/// Generate headers for a set of rules
///
/// Without rules, generates headers for the embedded example. The same flags and
/// rules give the same headers on every machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard generate trace -r acl1_10k.txt -n 1M -o acl1_10k.trace
      as ClassBench does: corners of rules in short bursts
  classyard generate trace -r acl1_10k.txt --kind zipf --flows 100k --alpha 1.1 -n 1M
  classyard generate trace -r fw.rules --kind flows -n 100k -o fw.pcap
      flows over time, as packets with timestamps
  classyard generate trace --kind locality -n 1M -o link.pcap
      traffic with locality, to compare flow caches with `classyard replay`
  classyard generate trace -r fw.rules --kind corners -n 20k --with-expected -o fw.expected
      with the right answers, for `classyard check --expected`
  classyard generate trace -r fw.rules --kind worst --engine forest -o fw.trace
      the headers that are the most work for an engine")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    reading: RulesArgs,

    /// The kind of headers
    #[arg(short, long, value_enum, default_value = "classbench")]
    kind: Kind,

    /// The number of headers: 500, 10k, 1M
    #[arg(short = 'n', long = "count", alias = "headers", value_name = "N", value_parser = count, default_value = "10k")]
    headers: usize,

    /// The seed of the random numbers
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// classbench: the tail index of bursts; smaller values give longer bursts
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    burst_shape: f64,

    /// classbench: the scale of bursts; 0 for none
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    burst_scale: f64,

    /// zipf: the number of flows
    #[arg(long, value_name = "N", value_parser = count, default_value = "10k")]
    flows: usize,

    /// zipf: the flow of rank k is as frequent as 1 / k^ALPHA
    #[arg(long, value_name = "ALPHA", default_value_t = 1.0)]
    alpha: f64,

    /// flows: average number of flows that begin per second
    #[arg(long, value_name = "N", default_value_t = 10_000.0)]
    flows_per_second: f64,

    /// miss: candidates to try for each header before giving up
    #[arg(long, value_name = "N", value_parser = count, default_value = "10k")]
    tries: usize,

    /// one-bucket, worst: the engine that the headers are hard for. Its hash
    /// functions are seeded with --seed unless it names a seed, as in forest:seed=7.
    /// The headers are as hard only if the engine has that seed.
    #[arg(short, long, value_name = "SPEC", value_parser = engine, default_value = DEFAULT)]
    engine: EngineSpec,

    /// one-bucket, worst: the number of candidates that the hardest headers are
    /// chosen from
    #[arg(long, value_name = "N", value_parser = count, default_value_t = CANDIDATES)]
    candidates: usize,

    /// Add the number of the winning rule to each line, -1 for none
    #[arg(long = "with-expected", alias = "expected", help_heading = "Output")]
    expected: bool,

    /// The file for the headers; - for standard output
    ///
    /// Files whose names end in .pcap are written as packets.
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        help_heading = "Output"
    )]
    output: PathBuf,
}

/// A kind of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Corners of rules, all rules equally likely, in bursts, as ClassBench does
    Classbench,
    /// As classbench, without bursts
    Uniform,
    /// A number of flows, few of them heavy
    Zipf,
    /// Flows that begin, send trains of packets and end
    Flows,
    /// IPv4 packets as on a backbone link, whatever the rules: flows with idle times, few
    /// of them heavy; for caches
    Locality,
    /// Each field at its ends and one step outside
    Corners,
    /// Headers that no rule matches
    Miss,
    /// Any header, all equally likely
    Random,
    /// Points of the single rule whose lookup is the most work for an engine
    OneBucket,
    /// Headers whose lookup is the most work for an engine
    Worst,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let rules = args.reading.load(args.rules.path(), reporter)?;
    let policy = &rules.policy;
    let recipe = match args.kind {
        Kind::Classbench => TrafficRecipe::Rules {
            shape: args.burst_shape,
            scale: args.burst_scale,
        },
        Kind::Uniform => TrafficRecipe::uniform(),
        Kind::Zipf => TrafficRecipe::Zipf {
            flows: args.flows,
            alpha: args.alpha,
        },
        Kind::Flows => TrafficRecipe::Flows(FlowModel {
            flows_per_second: args.flows_per_second,
            ..FlowModel::default()
        }),
        Kind::Locality => TrafficRecipe::Locality(TRACE1),
        Kind::Corners => TrafficRecipe::Corners,
        Kind::Miss => TrafficRecipe::Misses { tries: args.tries },
        Kind::Random => TrafficRecipe::Random,
        Kind::OneBucket => TrafficRecipe::OneBucket {
            candidates: args.candidates,
        },
        Kind::Worst => TrafficRecipe::Worst {
            candidates: args.candidates,
        },
    };
    let config = TrafficConfig::new(args.headers, args.seed);
    let mut progress = reporter.progress();
    let engine = args.engine.clone().seeded(args.seed);
    let classifier = policy.build(&engine, &Limits::default(), &mut progress)?;
    let generated = traffic(policy, &recipe, &config, Some(&classifier), &mut progress);
    drop(progress);
    let generated = generated.map_err(|error| {
        let failure = Failure::usage(error.to_string());
        match error {
            TrafficError::RareMisses { .. } => failure.with_help("raise --tries or ask for fewer"),
            _ => failure,
        }
    })?;
    if is_capture(&args.output) {
        if args.expected {
            return Err(Failure::usage("packets cannot store expected answers"));
        }
        let Traffic {
            trace, timestamps, ..
        } = &generated;
        let time = |index: usize| match timestamps.get(index) {
            Some(&time) => time,
            None => one_a_microsecond(index),
        };
        write_capture(trace, &args.output, time, reporter)?;
    } else {
        let mut scratch = Scratch::new();
        let mut winners = vec![
            Winner::MISS;
            if args.expected {
                generated.trace.len()
            } else {
                0
            }
        ];
        let expected = args.expected.then(|| {
            classifier.classify(&generated.trace, &mut winners, &mut scratch);
            numbers(policy, &winners)
        });
        to_file(&args.output, |out| {
            Ok(write_trace(&generated.trace, expected.as_deref(), out)?)
        })?;
        if !generated.timestamps.is_empty() {
            reporter.note("a trace cannot store times; write a .pcap file to keep them");
        }
    }
    if matches!(args.kind, Kind::OneBucket | Kind::Worst) {
        reporter.note(&format!("the headers are hard for `{engine}`"));
    }
    reporter.note(&format!("{} written", summary(&generated.trace)));
    Ok(())
}

fn summary(trace: &PolicyTrace) -> String {
    counted(trace.len(), "header")
}

/// Returns the winners by their numbers in file order.
fn numbers(policy: &Policy, winners: &[Winner]) -> Vec<Option<RuleId>> {
    let number = |winner: &Winner| {
        let position = policy.position(winner.rule()?)?;
        Some(RuleId::from_index(position))
    };
    winners.iter().map(number).collect()
}
