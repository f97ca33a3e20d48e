//! The mixed load: concurrent lookups and updates through the live table.
//!
//! One reader looks up headers in batches, as fast as it can, with a new pin for
//! each batch. Next to it, one writer makes the updates of [`churn`] at a fixed
//! rate. Runs are interleaved over the engines, and each run begins with a newly
//! built table, so that all engines start in the same state.
//!
//! Each run is verified. Some batches keep their answers and the version that gave
//! them. After the run these answers are compared with a scan of that version's
//! rules, and the table's last answers with a scan of the last rules.

use std::time::Duration;

use classyard::classifier::BATCH;
use classyard::table::RuleReplica;
use classyard::table::Version;
use classyard::{
    BuildError, EngineSpec, Policy, PolicyTrace, Progress, Reader, Scratch, Table, Winner,
};

mod churn;
mod live;
mod load;
mod optimiser;
mod processors;
mod report;

pub(crate) use load::Rate;
pub(crate) use processors::{CpuPair, CpuPinning, stay_on};
pub(crate) use report::{MixedRow, write_csv, write_table};

use super::Subject;
use super::latency::Durations;
use super::measure::Spread;
use super::verify;
use churn::{Churn, Forms};
use live::{Live, Several, Single};
use load::{Kept, Pace, Read, Written};

/// The default maximum of transactions per second; at higher rates each transaction
/// has more updates.
const TRANSACTIONS_PER_SECOND: usize = 10_000;

/// Updates per transaction of a writer that runs as fast as it can.
const MOST_IN_TRANSACTION: usize = 100;

/// The maximum number of rule comparisons to check the last answers of a run, and
/// the same for the kept answers: a fifth of a second each.
const MAX_COMPARISONS: usize = verify::SCANNED_RULES / 10;

/// The maximum number of rules copied to rebuild the versions of kept answers.
const COPIED_RULES: usize = 2_000_000;

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct MixedPlan {
    pub(crate) rates: Vec<Rate>,
    /// Updates per transaction, if it is the same at all rates.
    pub(crate) transaction: Option<usize>,
    /// The duration of a run.
    pub(crate) duration: Duration,
    /// The minimum time from one publication to the next.
    pub(crate) publish_interval: Duration,
    pub(crate) repeats: usize,
    /// The number of insertions in the list, and of removals, and of modifications.
    pub(crate) changes: usize,
    /// Seed of the list.
    pub(crate) seed: u64,
    pub(crate) processors: Option<CpuPair>,
    /// True if a third thread re-optimises the tables.
    pub(crate) reoptimise: bool,
}

impl MixedPlan {
    /// Returns the number of updates per transaction at a rate.
    ///
    /// A transaction itself costs about as much as an update, so a writer with one
    /// update per transaction reaches half the rate, and at a million updates a
    /// second it could not pace each one. Realistic updates come singly if they are
    /// few, from a controller or an operator, and in groups if they are many. So
    /// there are at most [`TRANSACTIONS_PER_SECOND`], of up to
    /// [`MOST_IN_TRANSACTION`] updates.
    fn transaction(&self, rate: Rate) -> usize {
        self.transaction.unwrap_or(match rate {
            Rate::Of(rate) => rate
                .div_ceil(TRANSACTIONS_PER_SECOND)
                .clamp(1, MOST_IN_TRANSACTION),
            Rate::Max => MOST_IN_TRANSACTION,
        })
    }
}

/// Measures the engines on one subject: a row for each engine and rate.
///
/// # Errors
/// The [`BuildError`] of the first engine that cannot be built, for example because
/// it takes no updates.
///
/// # Panics
/// If the subject has no rules.
pub(crate) fn measure_mixed(
    subject: &Subject,
    engines: &[EngineSpec],
    plan: &MixedPlan,
    progress: &mut dyn Progress,
) -> Result<Vec<MixedRow>, BuildError> {
    let Subject { policy, trace, .. } = subject;
    let churn = Churn::new(policy.ids(), plan.changes.max(1), plan.seed);
    let forms = Forms::new(policy);
    let bench = Bench {
        forms: &forms,
        initial: &forms.policy(&churn.rules_after(0, policy)),
        churn: &churn,
        trace,
    };
    let mut all_series: Vec<Series<'_>> = Vec::new();
    for engine in engines {
        all_series.extend(plan.rates.iter().map(|&rate| Series::new(engine, rate)));
    }
    let steps = plan.repeats * all_series.len();
    for repeat in 0..plan.repeats {
        // Interleave the engines at each rate.
        for turn in 0..all_series.len() {
            let done = repeat * all_series.len() + turn;
            classyard::classifier::report(progress, "mixed load", done, steps)?;
            let (rate, engine) = (turn / engines.len(), turn % engines.len());
            let series = &mut all_series[engine * plan.rates.len() + rate];
            let pace = Pace {
                rate: series.rate,
                transaction: plan.transaction(series.rate),
                duration: plan.duration,
                publish_interval: plan.publish_interval,
                processors: plan.processors,
                reoptimise: plan.reoptimise,
            };
            let run = bench.run(series.engine, pace)?;
            series.add(&run);
        }
    }
    let rows = all_series.into_iter().map(|series| MixedRow {
        set: subject.name.clone(),
        engine: series.engine.to_string(),
        rules: churn.initial_len(),
        target: match series.rate {
            Rate::Of(rate) => super::size_name(rate),
            Rate::Max => "max".to_owned(),
        },
        target_updates_per_second: match series.rate {
            Rate::Of(rate) => Some(rate),
            Rate::Max => None,
        },
        transaction: plan.transaction(series.rate),
        publish_interval_seconds: plan.publish_interval.as_secs_f64(),
        updates_per_second: Spread::of(&series.updates),
        updates_per_cpu_second: Spread::of(&series.cpu_updates),
        lookups_per_second: spread(&series.lookups),
        lookups_per_cpu_second: spread(&series.cpu_lookups),
        batch_seconds: series.batches.quantiles(),
        apply_seconds: series.applied.quantiles(),
        publish_seconds: series.published.quantiles(),
        visible_seconds: series.visible.quantiles(),
        reader_cpu_share: least(&series.reader_shares).unwrap_or(0.0),
        writer_cpu_share: least(&series.writer_shares),
        writer_busy_share: Spread::of(&series.busy).map(|spread| spread.median),
        reader_processor: plan.processors.map(|pair| pair.reader),
        writer_processor: plan.processors.map(|pair| pair.writer),
        plans_installed: plan.reoptimise.then_some(series.plans),
        checked_batches: series.checked_batches,
        wrong: series.wrong,
    });
    Ok(rows.collect())
}

fn spread(samples: &[f64]) -> Spread {
    Spread::of(samples).expect("at least one repeat")
}

fn least(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().reduce(f64::min)
}

/// The data shared by all runs on a subject.
struct Bench<'a> {
    forms: &'a Forms<'a>,
    /// The rules at the start of a run.
    initial: &'a Policy,
    churn: &'a Churn,
    trace: &'a PolicyTrace,
}

/// A verified run.
struct Run {
    read: Read,
    written: Option<Written>,
    checked_batches: usize,
    wrong: usize,
}

impl Bench<'_> {
    /// Builds a table, runs reader and writer, and verifies their results.
    fn run(&self, spec: &EngineSpec, pace: Pace) -> Result<Run, BuildError> {
        if self.initial.parts().len() == 1 {
            let (live, table) = Single::build(self.initial, self.forms, spec)?;
            Ok(self.run_live(live, &table, pace))
        } else {
            let (live, table) = Several::build(self.initial, self.forms, spec)?;
            Ok(self.run_live(live, &table, pace))
        }
    }

    fn run_live<L: Live>(&self, mut live: L, table: &Table<L::Side>, pace: Pace) -> Run {
        let (read, written) = load::run(&mut live, table, self.churn, self.trace, pace);
        live.writer().synchronize();
        let steps = written.as_ref().map_or(0, |written| written.steps);
        let (checked_batches, wrong_then) = self.check_kept(&read.kept, pace.transaction);
        let wrong_now = self.check_last(&mut table.reader(), steps);
        Run {
            read,
            written,
            checked_batches,
            wrong: wrong_then + wrong_now,
        }
    }

    /// Returns the rules after `steps` steps.
    fn rules_after(&self, steps: usize) -> Policy {
        let own_rules = self.forms.all(churn::Form::Own);
        self.forms.policy(&self.churn.rules_after(steps, own_rules))
    }

    /// Returns the number of kept answers that are wrong at their version, and the
    /// number of checked batches.
    fn check_kept(&self, kept: &[Kept], transaction: usize) -> (usize, usize) {
        let rules = self.initial.len().max(1);
        let versions = (COPIED_RULES / rules).clamp(2, kept.len().max(2));
        let stride = kept.len().div_ceil(versions).max(1);
        let headers = (MAX_COMPARISONS / rules / versions).clamp(8, BATCH);
        let (mut batches, mut wrong) = (0, 0);
        let mut last: Option<(Version, Policy)> = None;
        for kept in kept.iter().step_by(stride) {
            let version = kept.version;
            let (_, rules) = match last.take() {
                Some((same, rules)) if same == version => last.insert((same, rules)),
                _ => {
                    let transactions = usize::try_from(version.transactions())
                        .expect("at most the number of steps, a usize");
                    last.insert((version, self.rules_after(transactions * transaction)))
                }
            };
            let keys = self.trace.part(kept.part);
            let step = (kept.winners.len() / headers).max(1);
            for (index, &winner) in kept.winners.iter().enumerate().step_by(step) {
                let right = rules.part(kept.part).scan(keys.key(kept.first + index));
                wrong += usize::from(winner != right);
            }
            batches += 1;
        }
        (batches, wrong)
    }

    /// Returns the number of the table's answers that are wrong after `steps` steps.
    fn check_last<S: RuleReplica>(&self, reader: &mut Reader<S>, steps: usize) -> usize {
        let rules = self.rules_after(steps);
        let guard = reader.pin();
        let mut scratch = Scratch::new();
        let mut rows: Vec<Vec<Winner>> = Vec::new();
        for (part, keys) in self.trace.parts() {
            let mut winners = vec![Winner::MISS; keys.len()];
            for (keys, winners) in keys.batches(BATCH).zip(winners.chunks_mut(BATCH)) {
                let classifier = guard.part(part);
                classifier.classify_batch(keys, winners, &mut scratch);
            }
            rows.push(winners);
        }
        let mut rows: Vec<_> = rows.into_iter().map(Vec::into_iter).collect();
        let winners = (0..self.trace.len()).map(|index| {
            let row = &mut rows[self.trace.part_of(index).index()];
            row.next().expect("as many answers as headers")
        });
        let winners: Vec<Winner> = winners.collect();
        let wrong = verify::wrong_answers(&rules, self.trace, &[&winners], None, MAX_COMPARISONS);
        let part = |part| guard.part(part);
        wrong[0] + verify::contradictions(part, self.trace, &winners, verify::SINGLE_LOOKUPS)
    }
}

/// An engine at a rate, and its measurements.
struct Series<'a> {
    engine: &'a EngineSpec,
    rate: Rate,
    updates: Vec<f64>,
    cpu_updates: Vec<f64>,
    lookups: Vec<f64>,
    cpu_lookups: Vec<f64>,
    batches: Durations,
    applied: Durations,
    published: Durations,
    visible: Durations,
    reader_shares: Vec<f64>,
    writer_shares: Vec<f64>,
    busy: Vec<f64>,
    plans: usize,
    checked_batches: usize,
    wrong: usize,
}

impl<'a> Series<'a> {
    fn new(engine: &'a EngineSpec, rate: Rate) -> Series<'a> {
        Series {
            engine,
            rate,
            updates: Vec::new(),
            cpu_updates: Vec::new(),
            lookups: Vec::new(),
            cpu_lookups: Vec::new(),
            batches: Durations::new(),
            applied: Durations::new(),
            published: Durations::new(),
            visible: Durations::new(),
            reader_shares: Vec::new(),
            writer_shares: Vec::new(),
            busy: Vec::new(),
            plans: 0,
            checked_batches: 0,
            wrong: 0,
        }
    }

    fn add(&mut self, run: &Run) {
        let read = &run.read;
        self.lookups.push(read.spent.rate());
        self.cpu_lookups.push(read.spent.cpu_rate());
        self.reader_shares.push(read.spent.cpu_share());
        self.batches.add(&read.batches);
        if let Some(written) = &run.written {
            self.updates.push(written.spent.rate());
            if self.rate == Rate::Max {
                // Otherwise most of its CPU time is waiting.
                self.cpu_updates.push(written.spent.cpu_rate());
            }
            self.writer_shares.push(written.spent.cpu_share());
            self.busy.push(written.busy);
            self.plans += written.plans;
            self.applied.add(&written.applied);
            self.published.add(&written.published);
            self.visible.add(&written.visible);
        }
        self.checked_batches += run.checked_batches;
        self.wrong += run.wrong;
    }
}

#[cfg(test)]
mod tests {
    use classyard::policy::PartId;
    use classyard::{NoProgress, Priority};

    use super::*;

    #[test]
    fn the_checks_find_wrong_answers() {
        let profile = classyard_report::input::family::profile("acl1").unwrap();
        let family = classyard_report::input::family::FamilyName::Ipv4.with(profile, 0.0);
        let policy = super::super::generated_policy(family, 200, 1, &mut NoProgress).unwrap();
        let trace = super::super::generated_trace(&policy, 1_000, 1, &mut NoProgress).unwrap();
        let churn = Churn::new(policy.ids(), 200, 1);
        let forms = Forms::new(&policy);
        let bench = Bench {
            forms: &forms,
            initial: &forms.policy(&churn.rules_after(0, &policy)),
            churn: &churn,
            trace: &trace,
        };
        let spec = EngineSpec::parse("tuplemerge").unwrap();
        let (mut live, table) = Single::build(bench.initial, &forms, &spec).unwrap();
        let mut reader = table.reader();
        let keep = |guard: &classyard::table::Guard<'_>| {
            let mut winners = vec![Winner::MISS; BATCH];
            let keys = trace.part(PartId::FIRST).batches(BATCH).next().unwrap();
            guard.classify_batch(keys, &mut winners, &mut Scratch::new());
            Kept {
                version: guard.version(),
                part: PartId::FIRST,
                first: 0,
                winners,
            }
        };
        let mut kept_batches = vec![keep(&reader.pin())];
        for transaction in 0..30 {
            live.prepare((0..10).map(|step| churn.step(10 * transaction + step)));
            live.apply().unwrap();
        }
        live.writer().synchronize();
        kept_batches.push(keep(&reader.pin()));
        assert_eq!(kept_batches[1].version.transactions(), 30);

        assert_eq!(bench.check_kept(&kept_batches, 10), (2, 0));
        assert_eq!(bench.check_last(&mut reader, 300), 0);
        // A transaction or its updates were lost.
        assert!(bench.check_last(&mut reader, 100) > 0);
        assert!(bench.check_kept(&kept_batches, 3).1 > 0);
        // One answer is wrong, and one belongs to another version.
        let right = std::mem::replace(
            &mut kept_batches[0].winners[0],
            Winner::new(Priority(0), spare()),
        );
        assert_eq!(bench.check_kept(&kept_batches, 10), (2, 1));
        kept_batches[0].winners[0] = right;
        kept_batches[0].version = kept_batches[1].version;
        assert!(bench.check_kept(&kept_batches, 10).1 > 0);
    }

    /// Returns an id that no rule has.
    fn spare() -> classyard::RuleId {
        classyard::RuleId::from_index(1 << 20)
    }

    #[test]
    fn transactions_grow_with_the_rate() {
        let mut plan = MixedPlan {
            rates: Vec::new(),
            transaction: None,
            duration: Duration::ZERO,
            publish_interval: Duration::ZERO,
            repeats: 1,
            changes: 1,
            seed: 1,
            processors: None,
            reoptimise: false,
        };
        let rates = [0, 1, 10_000, 100_000, 1_000_000, 50_000_000].map(Rate::Of);
        let sizes = rates.map(|rate| plan.transaction(rate));
        assert_eq!(sizes, [1, 1, 1, 10, 100, 100]);
        assert_eq!(plan.transaction(Rate::Max), 100);
        plan.transaction = Some(7);
        assert_eq!(plan.transaction(Rate::Max), 7);
    }
}
