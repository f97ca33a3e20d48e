//! `classyard check --schemas`: engines against the oracle over random schemas.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::time::Instant;

use classyard::{EngineSpec, NoProgress, Progress, Schema};
use classyard_conformance::differential::{Counters, Outcome};
use classyard_conformance::rounds::Round;
use classyard_conformance::{Skip, Subject};
use classyard_report::failure::Failure;
use classyard_report::output::style::{
    BAD, BOLD, GOOD, NOTABLE, counted, grouped, large, paint, seconds,
};
use classyard_report::output::table::fact;
use classyard_report::output::{Report, csv, join};
use classyard_report::reporter::Reporter;
use classyard_workload::formats::write_schema;
use serde::{Serialize, Serializer};

use super::Args;

/// Runs `count` rounds, or fewer if answers differ.
pub(super) fn run(
    args: &Args,
    count: usize,
    specs: &[EngineSpec],
    reporter: Reporter,
) -> Result<(), Failure> {
    let subjects: Vec<Subject> = specs.iter().cloned().map(Subject::from).collect();
    let subjects = subjects.as_slice();
    let mut report = SchemasReport::new(args, count, specs);
    let mut progress = reporter.progress();
    let began = Instant::now();
    let mut numbers = 0..count;
    loop {
        // The threads run a round each, together. Reports are in the order of seeds, so the
        // number of threads changes no report.
        let before = numbers.start;
        let seeds: Vec<u64> = (numbers.by_ref().take(args.threads))
            .map(|index| args.seed.wrapping_add(index as u64))
            .collect();
        let Some((&first, others)) = seeds.split_first() else {
            break;
        };
        let finished = std::thread::scope(|scope| {
            let begun: Vec<_> = (others.iter())
                .map(|&seed| scope.spawn(move || run_round(args, seed, subjects, &mut NoProgress)))
                .collect();
            let mut overall = Overall {
                progress: &mut progress,
                before,
                count,
            };
            let first = run_round(args, first, subjects, &mut overall);
            let joined = begun.into_iter().map(std::thread::ScopedJoinHandle::join);
            let joined = joined.map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)));
            [first].into_iter().chain(joined).collect::<Vec<_>>()
        });
        let mut equal = true;
        for (round, outcome, took) in finished {
            equal = equal && report.push(&round, outcome, took)?;
        }
        if !equal {
            break;
        }
    }
    drop(progress);
    report.finish(began.elapsed().as_secs_f64());
    for skip in &report.skipped {
        let Skip {
            subject,
            what,
            reason,
        } = &skip.skip;
        reporter.warn(&format!(
            "{subject}: {what} skipped, in {}: {reason}",
            counted(skip.times, "case")
        ));
    }
    args.output.report(&report)?;
    match report.disagreement {
        None => Ok(()),
        Some(_) => Err(Failure::Different),
    }
}

/// Runs the round of a seed. Returns it with its outcome and its duration in seconds.
fn run_round(
    args: &Args,
    seed: u64,
    subjects: &[Subject],
    progress: &mut dyn Progress,
) -> (Round, Outcome, f64) {
    let began = Instant::now();
    let round = Round::draw(seed, args.changes);
    let outcome = round.run(subjects, progress);
    (round, outcome, began.elapsed().as_secs_f64())
}

/// The number of progress steps per round.
const ROUND_STEPS: usize = 100;

/// The progress of all rounds together.
struct Overall<'a> {
    progress: &'a mut dyn Progress,
    before: usize,
    count: usize,
}

impl Progress for Overall<'_> {
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()> {
        if stage != "checking" {
            // Reducing a disagreement takes a while as well, so it shows its own
            // progress.
            return self.progress.report(stage, done, total);
        }
        let within = (done * ROUND_STEPS)
            .checked_div(total)
            .unwrap_or(0)
            .min(ROUND_STEPS);
        let done = self.before * ROUND_STEPS + within;
        self.progress
            .report("checking", done, self.count * ROUND_STEPS)
    }
}

/// The report of `check --schemas`. Keys are stable.
#[derive(Serialize)]
struct SchemasReport {
    equal: bool,
    engines: Vec<String>,
    seed: u64,
    /// Changes in each round, if requested.
    updates: Option<usize>,
    /// The requested number of rounds.
    schemas: usize,
    /// Lookups whose outcome was compared, over all engines.
    lookups: usize,
    lookups_per_second: f64,
    seconds: f64,
    #[serde(serialize_with = "counts")]
    compared: Counters,
    rounds: Vec<RoundReport>,
    skipped: Vec<Skipped>,
    disagreement: Option<Different>,
    /// The requested flags, for the command that repeats a round.
    #[serde(skip)]
    flags: String,
}

/// One random schema.
#[derive(Serialize)]
struct RoundReport {
    seed: u64,
    fields: usize,
    range_fields: usize,
    bits: u32,
    key_words: usize,
    /// The number of rules during most of the round.
    rules: usize,
    changes: usize,
    lookups: usize,
    seconds: f64,
    equal: bool,
}

/// The first wrong answer, with everything that is needed to repeat it.
#[derive(Serialize)]
struct Different {
    /// The round's seed.
    seed: u64,
    engine: String,
    /// The error, and the smallest case that shows it.
    text: String,
    /// The round's schema as a file.
    schema: String,
    /// The schema of the smallest case as a file; it may have fewer fields.
    case_schema: String,
    /// The command that repeats this round.
    repeat: String,
}

/// A check that was skipped; the first of `times` equal ones.
struct Skipped {
    skip: Skip,
    times: usize,
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut object = serializer.serialize_struct("Skipped", 4)?;
        object.serialize_field("engine", &self.skip.subject)?;
        object.serialize_field("what", &self.skip.what)?;
        object.serialize_field("reason", &self.skip.reason)?;
        object.serialize_field("times", &self.times)?;
        object.end()
    }
}

/// Serializes counts by their names, with `_` for spaces.
fn counts<S: Serializer>(counters: &Counters, serializer: S) -> Result<S::Ok, S::Error> {
    let list = counters.list().into_iter();
    serializer.collect_map(list.map(|(name, count)| (name.replace(' ', "_"), count)))
}

impl SchemasReport {
    fn new(args: &Args, count: usize, specs: &[EngineSpec]) -> SchemasReport {
        let mut flags = String::new();
        if let Some(updates) = args.changes {
            flags.push_str(&format!(" --changes {updates}"));
        }
        if !args.engines.is_empty() {
            flags.push_str(&format!(" --engines {}", args.engines.join(",")));
        }
        SchemasReport {
            equal: true,
            engines: specs.iter().map(ToString::to_string).collect(),
            seed: args.seed,
            updates: args.changes,
            schemas: count,
            lookups: 0,
            lookups_per_second: 0.0,
            seconds: 0.0,
            compared: Counters::default(),
            rounds: Vec::new(),
            skipped: Vec::new(),
            disagreement: None,
            flags,
        }
    }

    /// Adds a round. Returns true if all engines agreed in it.
    fn push(&mut self, round: &Round, outcome: Outcome, took: f64) -> io::Result<bool> {
        self.compared.add(&outcome.counters);
        for skip in outcome.skips {
            // One line for each engine and reason.
            let is_same_skip = |known: &&mut Skipped| {
                known.skip.subject == skip.subject && known.skip.reason == skip.reason
            };
            match self.skipped.iter_mut().find(is_same_skip) {
                Some(known) => known.times += 1,
                None => self.skipped.push(Skipped { skip, times: 1 }),
            }
        }
        let schema = &round.schema;
        let equal = outcome.disagreement.is_none();
        self.rounds.push(RoundReport {
            seed: round.seed,
            fields: schema.fields().len(),
            range_fields: schema.range_fields().len(),
            bits: schema.total_bits(),
            key_words: schema.key_words(),
            rules: round.options.rules,
            changes: outcome.counters.changes,
            lookups: outcome.counters.lookups(),
            seconds: took,
            equal,
        });
        if let Some(found) = outcome.disagreement {
            let file = |schema: &Schema| {
                let mut text = Vec::new();
                write_schema(schema, &mut text)?;
                Ok::<_, io::Error>(String::from_utf8_lossy(&text).into_owned())
            };
            self.equal = false;
            self.disagreement = Some(Different {
                seed: round.seed,
                engine: found.subject.clone(),
                text: found.to_string(),
                schema: file(schema)?,
                case_schema: file(&found.scenario.schema)?,
                repeat: format!(
                    "classyard check --schemas 1 --seed {}{}",
                    round.seed, self.flags
                ),
            });
        }
        Ok(equal)
    }

    #[allow(clippy::cast_precision_loss)] // a rate
    fn finish(&mut self, took: f64) {
        self.seconds = took;
        self.lookups = self.compared.lookups();
        self.lookups_per_second = self.lookups as f64 / took.max(f64::MIN_POSITIVE);
    }

    /// Returns the smallest and the largest of the rounds' figures.
    fn spread<T: Ord + Copy + TryInto<u128>>(&self, figure: impl Fn(&RoundReport) -> T) -> String {
        let min = self.rounds.iter().map(&figure).min();
        let max = self.rounds.iter().map(&figure).max();
        match (min, max) {
            (Some(min), Some(max)) if min == max => grouped(max),
            (Some(min), Some(max)) => format!("{} to {}", grouped(min), grouped(max)),
            _ => "none".to_owned(),
        }
    }
}

/// Returns a number with its noun, which is passed in the plural.
fn agreeing(number: &str, nouns: &str) -> String {
    let singular = match nouns.strip_suffix("ches") {
        Some(stem) => format!("{stem}ch"),
        None => nouns.strip_suffix('s').unwrap_or(nouns).to_owned(),
    };
    format!("{number} {}", if number == "1" { &singular } else { nouns })
}

impl Report for SchemasReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "Engines", join(&self.engines, ", "))?;
        let last = self.rounds.last().map_or(self.seed, |round| round.seed);
        let schemas = format!(
            "{} of {}, seeds {} to {last}",
            grouped(self.rounds.len()),
            grouped(self.schemas),
            self.seed
        );
        fact(out, "Schemas", schemas)?;
        let shapes = format!(
            "{}, {}, {}",
            agreeing(&self.spread(|round| round.fields), "fields"),
            agreeing(&self.spread(|round| round.bits), "bits"),
            agreeing(&self.spread(|round| round.rules), "rules")
        );
        fact(out, "Of", shapes)?;
        let compared = format!(
            "{} in {}, {} a second",
            counted(self.lookups, "lookup"),
            seconds(self.seconds),
            large(self.lookups_per_second)
        );
        fact(out, "Compared", compared)?;
        let done = self.compared.list().into_iter();
        let done = done.filter(|&(_, count)| count > 0);
        let done = done.map(|(name, count)| agreeing(&grouped(count), name));
        fact(out, "Counts", join(done, ", "))?;
        if !self.skipped.is_empty() {
            let text = format!(
                "{} (named on standard error)",
                counted(
                    self.skipped.iter().map(|skip| skip.times).sum::<usize>(),
                    "comparison"
                )
            );
            fact(out, "Left out", paint(NOTABLE, &text))?;
        }
        let Some(different) = &self.disagreement else {
            let verdict = format!(
                "{} in {}",
                paint(GOOD.bold(), "all engines agree"),
                counted(self.rounds.len(), "schema")
            );
            return fact(out, "Result", verdict);
        };
        fact(out, "Result", paint(BAD.bold(), "answers differ"))?;
        let heading = format!("round with seed {}", different.seed);
        writeln!(out, "\n{}", paint(BOLD, &heading))?;
        writeln!(out, "{}", different.text.trim_end())?;
        writeln!(
            out,
            "\nthe case's schema as a file:\n\n{}",
            different.case_schema
        )?;
        writeln!(out, "to repeat: {}", different.repeat)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"seed",
            &"fields",
            &"range_fields",
            &"bits",
            &"key_words",
            &"rules",
            &"changes",
            &"lookups",
            &"seconds",
            &"equal",
        ])?;
        for round in &self.rounds {
            out.row(&[
                &round.seed,
                &round.fields,
                &round.range_fields,
                &round.bits,
                &round.key_words,
                &round.rules,
                &round.changes,
                &round.lookups,
                &round.seconds,
                &round.equal,
            ])?;
        }
        Ok(())
    }
}
