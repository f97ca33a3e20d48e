//! `classyard bench`: measures speed, memory and correctness of engines.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use classyard::{EngineSpec, Policy, RuleId, Winner};
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::family::{FamilyName, named_sets, profiles_of};
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::headers::choice_of;
use classyard_report::input::limits::HeaderLimit;
use classyard_report::input::rules::RulesArgs;
use classyard_report::input::{Engines, count, read_text, source_name};
use classyard_report::machine::MachineArgs;
use classyard_report::output::style::counted;
use classyard_report::output::{Report, csv};
use classyard_report::reporter::Reporter;
use classyard_report::run::Run;
use classyard_workload::formats::read_trace;
use classyard_workload::generate::Family;
use serde::Serialize;

use crate::bench::hostile::Kind as HostileTraffic;
use crate::bench::{
    self, ChoiceRow, Field, PAPER_CHANGES, PeerSpec, Plan, Row, Subject, ThreadPlan,
    generated_policy, generated_trace,
};

mod hostile;
mod long;
mod mixed;
mod output;
mod reoptimise;

use mixed::MixedArgs;
use output::{BenchOutput, BenchReport, write_rows};

/// Measure engines side by side: lookups, updates, memory, build
///
/// Without rules, generates them. Every engine gets the same rules, the same
/// headers and the same list of updates. Repeats are interleaved over the engines.
/// Times are CPU times of one thread. Every rate is shown with the number of wrong
/// answers, which must be 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard bench
  classyard bench -r acl.rules -t acl.trace -e tuplemerge,forest --format json
  classyard bench --profiles all --sizes 64k,256k -e tss,tuplemerge --updates
  classyard bench --profiles acl1,openflow15,of-l2,of-acl -e forest,decomposition
      five-tuples, and sets with the fields of OpenFlow (see classyard profiles)
  classyard bench -r acl.rules -e all
  classyard bench -e tuplemerge --peer rte_acl --peer rte_acl:pages=4k
  classyard bench --profiles acl1,fw1,ipc1 --sizes 64k -e forest,tuplemerge --mixed
  classyard bench -r acl.rules -e tuplemerge --mixed 0,5k,max --transaction 20 --seconds 5
  classyard bench --profiles acl1 --sizes 64k -e forest --mixed 0,10k,1M --publish-interval 10ms
      updates are published together, every 10 ms
  classyard bench --profiles acl1 --sizes 10k -e 'sfl(hyper-split)' --mixed 0,1k --reoptimise
      what rebuilding costs readers and updates beside it
  classyard bench --hostile all --sizes 10k -e forest,tuplemerge
      rules, traffic and updates that are hard for engines
  classyard bench --profiles acl1 --sizes 10k -e all --threads 2
      two threads against one, by elapsed time
  classyard bench --profiles all --sizes 1k,64k --format ndjson -o bench.ndjson
      each row as soon as it is measured
  classyard bench --auto --profiles all --sizes 1k,10k -e all
      which engine is the fastest for a load, and which one is taken
  classyard bench --reoptimise --profiles acl1,fw1 --sizes 64k -e forest
      growth to a hundred times the size, and what re-optimisation makes of it

Where standard error is no terminal it has a line for each row as soon as that is measured. With
--format ndjson the report itself has, so that an interrupted run keeps what it has.

Every report says which run it is of: JSON has run in each object, with version, processor, seed
and command; CSV has columns of these names.

JSON: one object for each engine (and rule set) with set, engine, rules, build_seconds, bytes,
index_bytes, tables, batch_headers_per_second, single_headers_per_second, updates_per_second,
updates_in_groups_per_second, updates_with_lookups_per_second, rule_reading_seconds,
batch_share_after_updates, update_seconds, update_wall_seconds, wrong and peer; rates are
{min, median, max}, times {p50, p90, p99, p999, max} in seconds. With --threads, threads has threads,
processors, headers_per_second, alone_headers_per_second, cpu_share, alone_cpu_share,
scaling and no_scaling, the reason if scaling is null. For a peer's algorithm, peer has
name, version, algorithm, options, best, peak_rss_bytes and huge_page_bytes; a peer or an
engine that cannot be measured has set, engine, rules and failed, the reason.

With --mixed: one object for each set, engine and rate with set, engine, rules, target,
target_updates_per_second, transaction, publish_interval_seconds, updates_per_second,
updates_per_cpu_second, lookups_per_second, lookups_per_cpu_second, batch_seconds, apply_seconds,
publish_seconds, visible_seconds, reader_cpu_share, writer_cpu_share, writer_busy_share,
reader_processor, writer_processor, plans_installed, checked_batches and wrong.

With --reoptimise: one object for each engine and rule set with set, engine, rules,
counted_first, counted_grown, counted_adopted, grown_ns, adopting_ns, adopted_ns, rebuilt_ns, learn_seconds, look_seconds,
adopt_seconds, rebuild_seconds, growing and adopting ({count, mean_ns, p999_ns, max_ns}),
adopting_bytes, adopted_bytes and wrong; engines that do not learn are left out.

With --auto: one object for each set and load with set, rules, load, predicted, predicted_share,
tried, tried_share, best, best_ns and engines; shares are of the rate of the best engine.

JSON with --hostile: lookups and updates, each a list of objects for engines and sets; ratios
divide by the geometric mean of the friendly sets of that size.")]
pub struct Args {
    #[command(flatten)]
    rules: RulesFile,

    /// Headers to measure with; by default, drawn from the rules
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "rules_given",
        help_heading = "Input"
    )]
    trace: Option<PathBuf>,

    /// The sixth column of the trace is the right answer: the winner's number in file
    /// order, or -1
    #[arg(
        long = "with-expected",
        alias = "expected",
        requires = "trace",
        help_heading = "Input"
    )]
    expected: bool,

    #[command(flatten)]
    reading: RulesArgs,

    #[command(flatten)]
    limit: HeaderLimit,

    /// Profiles to generate rules from: built-in names or TOML files, or all
    #[arg(
        long,
        value_delimiter = ',',
        default_values = ["acl1", "fw1", "ipc1"],
        conflicts_with = "rules_given",
        value_name = "NAMES",
        help_heading = "Generated rules"
    )]
    profiles: Vec<String>,

    /// Numbers of rules to generate
    #[arg(
        long,
        value_delimiter = ',',
        default_values = ["1k", "10k"],
        value_parser = count,
        conflicts_with = "rules_given",
        value_name = "COUNTS",
        help_heading = "Generated rules"
    )]
    sizes: Vec<usize>,

    /// The family of rules to generate
    #[arg(
        long,
        value_enum,
        default_value = "ipv4",
        conflicts_with = "rules_given",
        help_heading = "Generated rules"
    )]
    family: FamilyName,

    /// Measure the worst cases instead: hostile rules (overlapping, ranges,
    /// wildcards, nested-prefixes, alike, one-bucket, corners, or all), hostile
    /// traffic and single updates, each compared with the friendly case, the profiles
    #[arg(
        long,
        value_delimiter = ',',
        conflicts_with_all = ["rules_given", "family", "peers", "updates"],
        value_name = "NAMES",
        help_heading = "Worst cases"
    )]
    hostile: Vec<String>,

    /// The kinds of headers for hostile rules
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["classbench", "corners", "miss", "one-bucket", "worst"],
        requires = "hostile",
        value_name = "KINDS",
        help_heading = "Worst cases"
    )]
    traffic: Vec<HostileTraffic>,

    /// Measure re-optimisation instead: engines grow from 1 % of the rules, compute a
    /// lookup plan, and adopt it while rules change
    ///
    /// With --mixed, a third thread re-optimises the live table whenever that is due,
    /// next to reader and writer.
    #[arg(
        long,
        conflicts_with_all = ["peers", "updates", "hostile"],
        help_heading = "Re-optimisation"
    )]
    reoptimise: bool,

    /// Report which engine `auto` chooses under some loads, compared with the fastest
    /// one
    ///
    /// Measures all engines of -e, including updates. `auto` chooses by estimates
    /// alone, or by estimates and the better of two extra runs of each of its first
    /// four engines.
    #[arg(
        long,
        conflicts_with_all = ["peers", "hostile", "mixed", "reoptimise"],
        help_heading = "Automatic choice"
    )]
    auto: bool,

    /// Number of headers to draw from the rules (default 1M, 20k with --hostile, 100k
    /// with --reoptimise)
    #[arg(long, value_parser = count, value_name = "COUNT")]
    headers: Option<usize>,

    /// The seed of the random numbers
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    seed: u64,

    /// The engines to compare, or all; ratios are relative to the first
    #[arg(
        short,
        long,
        value_delimiter = ',',
        default_values = ["tuplemerge", "forest"],
        value_parser = Engines::parse,
        value_name = "SPECS"
    )]
    engines: Vec<Engines>,

    /// Measure an external classifier, interleaved with the engines; may be repeated.
    /// bench/peers/README.md lists the supported ones, how to build them, and their
    /// options
    #[arg(
        long = "peer",
        value_parser = PeerSpec::parse,
        value_name = "NAME[=PROGRAM][:OPTION=VALUE,...]",
        help_heading = "Peers"
    )]
    peers: Vec<PeerSpec>,

    /// Time limit in seconds for a peer's build and for each of its passes; a peer
    /// that exceeds it fails
    #[arg(
        long,
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..),
        value_name = "SECONDS",
        help_heading = "Peers"
    )]
    peer_limit: u64,

    /// The number of repeats of each lookup measurement, interleaved
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..), value_name = "N")]
    repeat: u16,

    /// Measure lookups on N threads as well, against one thread, by elapsed time
    ///
    /// Batches are split over the threads. The scaling is the ratio of the two rates. If
    /// the process may use fewer processors than threads, or the threads had processors
    /// for less than 90 % of the time, the report has the reason in place of the ratio.
    #[arg(
        long,
        value_parser = crate::cores::thread_count,
        conflicts_with_all = ["mixed", "hostile", "reoptimise", "auto"],
        value_name = "N"
    )]
    threads: Option<usize>,

    /// Measure updates as well: insert half of the rules, then run a shuffled list of
    /// insertions and deletions, without lookups, with lookups in between, and with
    /// each update timed
    #[arg(long)]
    updates: bool,

    /// Insertions, and as many deletions, in the list (default 500k; with --hostile,
    /// the number of rules). With --mixed, as many modifications as well, and the
    /// list is undone and repeated
    #[arg(long, value_parser = count, value_name = "COUNT")]
    changes: Option<usize>,

    /// A smoke test with few headers and repeats: rates are meaningless, but answers
    /// are checked
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    build_limits: BuildLimits,

    #[command(flatten)]
    machine: MachineArgs,

    #[command(flatten)]
    mixed: MixedArgs,

    #[command(flatten)]
    output: BenchOutput,
}

/// The maximum number of headers and of changes in a smoke test.
const QUICK_COUNT: usize = 5_000;

impl Args {
    fn repeats(&self) -> usize {
        if self.quick {
            1
        } else {
            usize::from(self.repeat)
        }
    }

    fn engines(&self) -> Vec<EngineSpec> {
        Engines::join(&self.engines)
    }

    /// Returns `count`, limited in a smoke test.
    fn limited(&self, count: usize) -> usize {
        if self.quick {
            count.min(QUICK_COUNT)
        } else {
            count
        }
    }

    fn changes(&self) -> usize {
        self.limited(self.changes.unwrap_or(PAPER_CHANGES))
    }

    fn headers(&self) -> usize {
        self.limited(self.headers.unwrap_or(DEFAULT_HEADERS))
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Results(Vec<Row>);

impl Report for Results {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        bench::write_table(&self.0, out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        bench::write_csv(&self.0, out)
    }
}

impl BenchReport for Results {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_rows(&self.0, run, out)
    }
}

/// The choices of `auto`.
#[derive(Serialize)]
#[serde(transparent)]
struct Choices(Vec<ChoiceRow>);

impl Report for Choices {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        bench::write_choices(&self.0, out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"set",
            &"rules",
            &"load",
            &"predicted",
            &"predicted_share",
            &"tried",
            &"tried_share",
            &"best",
            &"best_ns",
        ])?;
        for row in &self.0 {
            out.row(&[
                &row.set,
                &row.rules,
                &row.load,
                &row.predicted,
                &row.predicted_share,
                &row.tried,
                &row.tried_share,
                &row.best,
                &row.best_ns,
            ])?;
        }
        Ok(())
    }
}

impl BenchReport for Choices {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_rows(&self.0, run, out)
    }
}

/// The default number of headers.
const DEFAULT_HEADERS: usize = 1_000_000;

/// Runs the command.
pub fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    only_one_from_stdin(&[
        ("rules", args.rules.path()),
        ("trace", args.trace.as_deref()),
    ])?;
    if let Some(rates) = &args.mixed.mixed {
        return mixed::run(args, rates, reporter);
    }
    if !args.hostile.is_empty() {
        return hostile::run(args, reporter);
    }
    if args.reoptimise {
        return reoptimise::run(args, reporter);
    }
    let plan = Plan {
        repeats: args.repeats(),
        update_repeats: match args.updates || args.auto {
            true => args.repeats().min(3),
            false => 0,
        },
        changes: args.changes(),
        seed: args.seed,
        trial: args.auto,
    };
    let threads = args.threads;
    let threads = threads.map(|threads| ThreadPlan::start(threads, args.quick));
    let mut field = Field {
        engines: args.engines(),
        limits: args.build_limits,
        machine: args.machine.load(reporter)?.machine,
        peers: args
            .peers
            .iter()
            .map(PeerSpec::find)
            .collect::<Result<_, _>>()?,
        peer_limit: Duration::from_secs(args.peer_limit),
        threads: threads.transpose()?,
    };
    let mut sink = args.output.begin(args.seed, reporter)?;
    let (mut results, mut choices) = (Vec::new(), Vec::new());
    for subject in subjects(args, reporter)? {
        let subject = subject.load(args, args.headers(), reporter)?;
        long::warn(&subject, &field, &plan, reporter);
        let mut progress = reporter.progress();
        let measured = bench::measure_subject(&subject, &mut field, &plan, &mut progress)?;
        drop(progress);
        if args.auto {
            for row in bench::choices(&measured) {
                sink.row(&row)?;
                choices.push(row);
            }
        } else {
            for row in &measured {
                sink.row(row)?;
            }
        }
        results.extend(measured);
    }
    let wrong = results
        .iter()
        .filter_map(Row::measured)
        .any(|row| row.wrong > 0);
    match args.auto {
        true => sink.end(&Choices(choices))?,
        false => sink.end(&Results(results))?,
    }
    if wrong {
        return Err(Failure::Different);
    }
    Ok(())
}

/// Returns the winners of lookups that hit these rules.
fn winners(policy: &Policy, rules: &[Option<RuleId>]) -> Vec<Winner> {
    let winner = |id| policy.rule(id).next().map(|(_, rule)| rule.winner());
    rules
        .iter()
        .map(|rule| rule.and_then(winner).unwrap_or(Winner::MISS))
        .collect()
}

/// A rule set that is not loaded yet. Sets are loaded one at a time, to hold at
/// most one set of a million rules in memory.
enum Source {
    File(PathBuf),
    Generated(Family, String, usize),
}

fn profile_names(args: &Args) -> Vec<&str> {
    if args.profiles.iter().any(|name| name == "all") {
        profiles_of(args.family)
    } else {
        args.profiles.iter().map(String::as_str).collect()
    }
}

fn subjects(args: &Args, reporter: Reporter) -> Result<Vec<Source>, Failure> {
    if let Some(rules) = args.rules.path() {
        return Ok(vec![Source::File(rules.to_owned())]);
    }
    let names = profile_names(args);
    let mut sources = Vec::new();
    let sets = named_sets(args.family, &names)?;
    for &size in &args.sizes {
        for (name, family) in &sets {
            sources.push(Source::Generated(family.clone(), name.clone(), size));
        }
    }
    reporter.note(&format!(
        "{} to measure",
        counted(sources.len(), "rule set")
    ));
    Ok(sources)
}

impl Source {
    fn load(&self, args: &Args, headers: usize, reporter: Reporter) -> Result<Subject, Failure> {
        match self {
            Source::File(path) => {
                let policy = args.reading.load(Some(path), reporter)?.policy;
                let name = source_name(path);
                let size = bench::size_name(policy.len());
                let Some(trace) = &args.trace else {
                    let trace =
                        generated_trace(&policy, headers, args.seed, &mut reporter.progress())?;
                    return Ok(Subject {
                        name,
                        size,
                        policy,
                        trace,
                        expected: None,
                    });
                };
                let source = source_name(trace);
                let text = read_text(trace, args.reading.bytes.text())?;
                let choice = choice_of(&policy)?;
                let options = args.limit.trace(args.reading.options());
                let loaded = read_trace(&source, &text, Some(&choice), args.expected, &options)?;
                reporter.skipped(&loaded.skipped);
                let expected = loaded.value.expected.map(|e| winners(&policy, &e));
                Ok(Subject {
                    name,
                    size,
                    policy,
                    trace: loaded.value.headers,
                    expected,
                })
            }
            Source::Generated(family, name, size) => {
                let mut progress = reporter.progress();
                let policy = generated_policy(family.clone(), *size, args.seed, &mut progress)?;
                let trace = generated_trace(&policy, headers, args.seed, &mut progress)?;
                let size = bench::size_name(*size);
                Ok(Subject {
                    name: format!("{name} {size}"),
                    size,
                    policy,
                    trace,
                    expected: None,
                })
            }
        }
    }
}
