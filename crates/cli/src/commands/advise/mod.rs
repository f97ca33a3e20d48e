//! `classyard advise`: recommends an engine for rules and a load.

use std::io::{self, Write};

use classyard::RuleSet;
use classyard::engine::auto::{Auto, Breakdown, Candidate, TryOut, headers_of};
use classyard_lab::bench::thread_cpu_time;
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::count;
use classyard_report::input::files::RulesFile;
use classyard_report::input::load::LoadArgs;
use classyard_report::input::rules::RulesArgs;
use classyard_report::machine::{KnownMachine, MachineArgs};
use classyard_report::output::table::{Side, Table, fact, heading};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_report::registry;
use classyard_report::reporter::Reporter;
use serde::Serialize;

/// Recommend an engine for rules and a load, and say why
///
/// Estimates the cost of every engine over the rules and ranks the engines by the
/// time of a lookup plus its share of updates. Engines that take no updates are
/// ranked as they are if rules do not change, and as sfl(ENGINE) otherwise. Without
/// a file, advises on the embedded example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard advise
  classyard advise fw.rules --lookups-per-update 10k
  classyard advise fw.rules --batch 1 --limit-engine-bytes 1M
  classyard advise acl.txt --cores 4 --lookups-per-update 1k --format json
  classyard advise acl.txt --try 4
      build the best four and time them as well

JSON: machine, load (lookups_per_update, batch, cores), and parts, one for each family of headers:
schema, rules, advice (the engine to take), candidates, the best first, each with engine, ns (from
one lookup to the next), lookup_ns, update_ns (the updates that come with each lookup), bytes,
build_seconds, instructions_ns, mispredictions_ns, reads_ns, factor_ns, lines (l1, l2, l3, memory
of a lookup) and tried_ns; and excluded, each with engine and reason.")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    reading: RulesArgs,

    #[command(flatten)]
    load: LoadArgs,

    /// Build and time the N best engines, and recommend the fastest
    #[arg(long = "try", value_name = "N", value_parser = count, default_value = "0")]
    trials: usize,

    #[command(flatten)]
    limits: BuildLimits,

    #[command(flatten)]
    machine: MachineArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The number of headers for timing engines.
const TIMED_HEADERS: usize = 20_000;

/// The number of passes of each engine over the headers.
const TIMED_ROUNDS: usize = 5;

#[derive(Serialize)]
struct Advice {
    machine: MachineRow,
    load: LoadRow,
    parts: Vec<PartAdvice>,
}

#[derive(Serialize)]
struct MachineRow {
    source: String,
    processor: Option<String>,
}

#[derive(Serialize)]
struct LoadRow {
    lookups_per_update: Option<f64>,
    batch: usize,
    cores: usize,
}

#[derive(Serialize)]
struct PartAdvice {
    schema: String,
    rules: usize,
    advice: Option<String>,
    candidates: Vec<CandidateRow>,
    excluded: Vec<ExcludedRow>,
}

#[derive(Serialize)]
struct CandidateRow {
    engine: String,
    ns: f64,
    lookup_ns: f64,
    update_ns: f64,
    bytes: usize,
    build_seconds: f64,
    instructions_ns: f64,
    mispredictions_ns: f64,
    reads_ns: f64,
    factor_ns: f64,
    lines: Lines,
    tried_ns: Option<f64>,
    #[serde(skip)]
    reason: String,
}

#[derive(Serialize)]
struct Lines {
    l1: f64,
    l2: f64,
    l3: f64,
    memory: f64,
}

#[derive(Serialize)]
struct ExcludedRow {
    engine: String,
    reason: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let rules = args.reading.load(args.rules.path(), reporter)?;
    let known = args.machine.load(reporter)?;
    let load = args.load.load();
    let auto = Auto::default()
        .with_registry(registry::engines())
        .with_load(load)
        .with_limits(args.limits.limits())
        .with_machine(known.machine.clone());
    let parts = rules.policy.parts().iter();
    let parts: Vec<PartAdvice> = parts
        .map(|part| advise(args, &auto, part, reporter))
        .collect::<Result<_, _>>()?;
    let KnownMachine {
        processor, source, ..
    } = known;
    args.output.report(&Advice {
        machine: MachineRow { source, processor },
        load: LoadRow {
            lookups_per_update: load.lookups_per_update(),
            batch: load.batch(),
            cores: load.cores(),
        },
        parts,
    })
}

fn advise(
    args: &Args,
    auto: &Auto,
    rules: &RuleSet,
    reporter: Reporter,
) -> Result<PartAdvice, Failure> {
    let (ranking, trials, tried, refused);
    let keys = headers_of(rules, TIMED_HEADERS);
    if args.trials > 0 && !keys.is_empty() {
        let mut progress = reporter.progress();
        let choice = args.limits.build(&mut progress, |_, progress| {
            let mut how = TryOut {
                keys: keys.as_slice(),
                candidates: args.trials,
                rounds: TIMED_ROUNDS,
                clock: &mut thread_cpu_time,
            };
            auto.try_out(rules, &mut how, progress)
        })?;
        trials = choice.trials;
        ranking = choice.ranking;
        tried = Some(choice.spec.to_string());
        refused = choice.refused;
    } else {
        ranking = auto.rank(&classyard::estimate::Shape::of(rules));
        trials = Vec::new();
        tried = None;
        refused = Vec::new();
    }
    let first = ranking
        .candidates
        .first()
        .map(|first| first.spec.to_string());
    let candidates = ranking.candidates.iter().map(|candidate| {
        let trial = trials.iter().find(|trial| trial.spec == candidate.spec);
        CandidateRow::new(candidate, auto, trial.map(|trial| trial.ns))
    });
    let excluded = ranking.excluded.iter().chain(&refused);
    Ok(PartAdvice {
        schema: rules.schema().name().to_owned(),
        rules: rules.len(),
        advice: tried.or(first),
        candidates: candidates.collect(),
        excluded: excluded
            .map(|one| ExcludedRow {
                engine: one.spec.to_string(),
                reason: one.reason.to_string(),
            })
            .collect(),
    })
}

impl CandidateRow {
    fn new(candidate: &Candidate, auto: &Auto, tried_ns: Option<f64>) -> CandidateRow {
        let parts: Breakdown = candidate.breakdown(auto.load(), auto.machine());
        let [l1, l2, l3] = parts.lines.caches;
        CandidateRow {
            engine: candidate.spec.to_string(),
            ns: candidate.ns,
            lookup_ns: candidate.lookup_ns,
            update_ns: candidate.update_ns,
            bytes: candidate.estimate.bytes,
            build_seconds: candidate.estimate.build.as_secs_f64(),
            instructions_ns: parts.instructions_ns,
            mispredictions_ns: parts.mispredictions_ns,
            reads_ns: parts.reads_ns,
            factor_ns: parts.factor_ns,
            lines: Lines {
                l1,
                l2,
                l3,
                memory: parts.lines.memory,
            },
            tried_ns,
            reason: parts.to_string(),
        }
    }
}

impl Advice {
    fn load_in_words(&self) -> String {
        let LoadRow {
            lookups_per_update,
            batch,
            cores,
        } = self.load;
        let updates = match lookups_per_update {
            None => "rules do not change".to_owned(),
            Some(lookups) => format!("an update after every {lookups} lookups"),
        };
        let batches = match batch {
            1 => "headers one by one".to_owned(),
            batch => format!("batches of {batch} headers"),
        };
        let cores = match cores {
            1 => "one core".to_owned(),
            cores => format!("{cores} cores"),
        };
        format!("{batches}, {updates}, {cores}")
    }
}

impl Report for Advice {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "load", self.load_in_words())?;
        let machine = match &self.machine.processor {
            None => "the built-in one; `classyard calibrate` measures yours".to_owned(),
            Some(processor) => format!("{processor}, from {}", self.machine.source),
        };
        fact(out, "machine", machine)?;
        for part in &self.parts {
            heading(out, &format!("{}, {} rules", part.schema, part.rules))?;
            match &part.advice {
                Some(engine) => fact(out, "use", engine)?,
                None => fact(out, "use", "none: no engine is within the limits")?,
            }
            let tried = part.candidates.iter().any(|row| row.tried_ns.is_some());
            let mut columns = vec![
                ("engine", Side::Left),
                ("ns/lookup", Side::Right),
                ("updates ns", Side::Right),
            ];
            if tried {
                columns.push(("tried out", Side::Right));
            }
            columns.extend([
                ("KiB", Side::Right),
                ("build ms", Side::Right),
                ("lookup work", Side::Left),
            ]);
            let mut table = Table::new(&columns);
            for row in &part.candidates {
                let mut cells = vec![
                    row.engine.clone(),
                    format!("{:.1}", row.ns),
                    format!("{:.1}", row.update_ns),
                ];
                if tried {
                    cells.push(row.tried_ns.map_or(String::new(), |ns| format!("{ns:.1}")));
                }
                cells.extend([
                    row.bytes.div_ceil(1024).to_string(),
                    format!("{:.1}", row.build_seconds * 1e3),
                    row.reason.clone(),
                ]);
                table.row(cells);
            }
            table.write(out)?;
            for excluded in &part.excluded {
                writeln!(out, "not {}: {}", excluded.engine, excluded.reason)?;
            }
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"schema",
            &"engine",
            &"ns",
            &"lookup_ns",
            &"update_ns",
            &"tried_ns",
            &"bytes",
            &"build_seconds",
        ])?;
        for part in &self.parts {
            for row in &part.candidates {
                out.row(&[
                    &part.schema,
                    &row.engine,
                    &row.ns,
                    &row.lookup_ns,
                    &row.update_ns,
                    &row.tried_ns.map_or(String::new(), |ns| ns.to_string()),
                    &row.bytes,
                    &row.build_seconds,
                ])?;
            }
        }
        Ok(())
    }
}
