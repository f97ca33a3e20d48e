//! `classyard inspect`: the properties of a rule set that make it easy or hard.

use std::path::PathBuf;

use classyard::Policy;
use classyard_lab::estimates::Shapes;
use classyard_lab::sax_pac;
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::count;
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::rules::RulesArgs;
use classyard_report::machine::MachineArgs;
use classyard_report::output::OutputArgs;
use classyard_report::output::file::is_dash;
use classyard_report::output::file::to_file;
use classyard_report::registry;
use classyard_report::reporter::Reporter;
use classyard_workload::generate::compare::{Comparison, Summary};

mod against;
mod measure;
mod picture;
mod report;
mod shadows;

use crate::commands::analysis_failure::failure;
use report::{EngineEstimate, EngineTables, InspectReport, MetricRow, PartReport};

/// Inspect a rule set: counts, tuples, overlaps, shadowed rules, distributions, and
/// estimated costs of engines
///
/// Without a file, inspects the embedded example. The costs of engines are
/// estimated without building them; they are good for ranking and sizing, not
/// guarantees.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard inspect
  classyard inspect fw.rules -o fw.svg
  classyard inspect acl1_10k.txt --format json
  classyard inspect generated.txt --against original.txt
      how much alike two sets are")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    reading: RulesArgs,

    /// Draw prefix lengths, port classes and tuples into this SVG file
    #[arg(
        short = 'o',
        long = "output",
        alias = "svg",
        value_name = "FILE",
        help_heading = "Output"
    )]
    picture: Option<PathBuf>,

    /// Compare with these rules instead
    #[arg(long, value_name = "OTHER", conflicts_with = "picture")]
    against: Option<PathBuf>,

    /// The number of headers to look up for the mean number of matching rules
    ///
    /// The default takes about a second, up to 2000 headers.
    #[arg(long, value_name = "N", value_parser = count)]
    headers: Option<usize>,

    /// The seed of the random numbers
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Count the sets of rules without overlaps, however many rules there are
    ///
    /// The default is to count them for up to 4,000 rules: the work grows with the
    /// square of their number. The sets are chosen greedily, as SAX-PAC does: over
    /// all fields, and over two fields chosen for each set.
    #[arg(long)]
    partitions: bool,

    /// Do not build the engines to count their tables
    #[arg(long)]
    no_engines: bool,

    /// Engines of more than 1 GiB are built only if a flag allows it.
    #[command(flatten)]
    limits: BuildLimits,

    #[command(flatten)]
    machine: MachineArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// Returns the maximum number of rules of a part whose sets without overlaps are
    /// counted.
    fn partitioned(&self) -> usize {
        match self.partitions {
            true => usize::MAX,
            false => sax_pac::MOST_RULES,
        }
    }
}

/// The budget of comparisons (rules times headers) for the mean number of matches.
const MAX_COMPARISONS: usize = 100_000_000;

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let other_file = ("the other rules", args.against.as_deref());
    only_one_from_stdin(&[("rules", args.rules.path()), other_file])?;
    let rules = args.reading.load(args.rules.path(), reporter)?;
    if let Some(other) = &args.against {
        let other_rules = args.reading.load(Some(other), reporter)?;
        let pairs = against::pairs(&rules.policy, &other_rules.policy)?;
        let names = [rules.source, other_rules.source];
        let comparisons = pairs.into_iter().map(|[a, b]| Comparison {
            names: names.clone(),
            summaries: [
                summary(args, rules.policy.part(a)),
                summary(args, other_rules.policy.part(b)),
            ],
        });
        return args
            .output
            .report(&against::AgainstReport::new(comparisons));
    }
    let machine = args.machine.load(reporter)?;
    let policy = &rules.policy;
    let mut progress = reporter.progress();
    let mut parts = Vec::new();
    let shapes = Shapes::of(policy);
    let (shadows, undecided) = shadows::find(&rules, &mut progress).map_err(failure)?;
    for (part, shape) in policy.parts().iter().zip(shapes.parts()) {
        let summary = summary(args, part);
        let report = PartReport::new(part, shape, &summary, args, &mut progress);
        parts.push(report);
    }
    let mut report = InspectReport::new(&rules, parts, &shadows, undecided);
    report.estimates = registry::all()
        .map(|spec| EngineEstimate::new(&spec, &shapes, &machine.machine))
        .collect();
    if !args.no_engines {
        report.engines = tables(args, policy, reporter);
    }
    drop(progress);
    if let Some(path) = &args.picture {
        if is_dash(path) {
            return Err(Failure::usage("the picture needs a file of its own"));
        }
        let text = picture::draw(&report);
        to_file(path, |out| Ok(out.write_all(text.as_bytes())?))?;
        reporter.note(&format!("picture written to {}", path.display()));
    }
    args.output.report(&report)
}

/// The default limit on the bytes of an engine; larger ones are left out.
const MOST_BYTES: u64 = 1 << 30;

fn summary(args: &Args, part: &classyard::RuleSet) -> Summary {
    let affordable = (MAX_COMPARISONS / part.len().max(1)).clamp(20, 2000);
    Summary::of(part, args.headers.unwrap_or(affordable), args.seed)
}

/// Returns the tables that each engine builds for the rules.
fn tables(args: &Args, policy: &Policy, reporter: Reporter) -> Vec<EngineTables> {
    let mut rows = Vec::new();
    for spec in registry::all() {
        let limits = args.limits.with_engine_bytes(MOST_BYTES);
        let built = limits.build(&mut reporter.progress(), |limits, progress| {
            policy.build(&spec, limits, progress)
        });
        match built {
            Ok(built) => rows.push(EngineTables {
                engine: spec.to_string(),
                tables: built.parts().iter().map(|part| part.stats().tables).sum(),
                bytes: built.parts().iter().map(|part| part.stats().bytes()).sum(),
                metrics: built
                    .parts()
                    .iter()
                    .flat_map(|part| MetricRow::of(part.as_ref()))
                    .collect(),
            }),
            Err(error) => reporter.warn(&format!("{spec}: {error}")),
        }
    }
    rows
}
