//! `classyard bench --reoptimise`: growth, and its repair by re-optimisation.
//!
//! ```text
//! build over one rule in a hundred, insert the others one by one     grown
//! check the drift, take a snapshot, compute a plan                   plan
//! adopt: remove and insert rules, each change timed, until all have
//!     moved; after every eighth: lookups, memory                     adopted
//! rebuild                                                            rebuilt
//! ```
//!
//! Repeated several times from the beginning; a change counts with its minimum
//! time. Times are CPU times of one thread. Lookups use one trace over all rules.

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::reoptimise::{LookupPlan, Reoptimise, Snapshot};
use classyard::{
    Classifier, DynamicClassifier, EngineSpec, KeyVec, Limits, NoProgress, Policy, PolicyTrace,
    Progress, RuleSet, Scratch, Transaction, Winner,
};
use classyard_report::failure::Failure;
use classyard_workload::generate::Family;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::measure::timed;
use super::{generated_policy, generated_trace, verify};

mod report;

use report::Updates;
pub(crate) use report::{ReoptimiseResults, ReoptimiseRow};

/// The settings of a measurement.
pub(crate) struct ReoptimisePlan {
    pub(crate) engines: Vec<EngineSpec>,
    /// The names and families of rules.
    pub(crate) sets: Vec<(String, Family)>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) headers: usize,
    pub(crate) seed: u64,
    pub(crate) repeats: usize,
    /// Repeats of growing and adopting.
    pub(crate) update_repeats: usize,
}

/// One rule in `INITIAL_ONE_IN` is in the table at the beginning.
const INITIAL_ONE_IN: usize = 100;

/// The minimum number of timed changes between two measurements of lookups and
/// memory.
const LEAST_STAGE: usize = 100;

/// The maximum number of changes while adopting: an engine that has not finished by
/// then fails.
const MOST_CHANGES: usize = 1 << 22;

/// Measures everything; calls `finished` immediately after each row.
pub(crate) fn measure(
    plan: &ReoptimisePlan,
    progress: &mut dyn Progress,
    finished: &mut dyn FnMut(&ReoptimiseRow) -> Result<(), Failure>,
) -> Result<ReoptimiseResults, Failure> {
    let mut results = ReoptimiseResults::default();
    for &size in &plan.sizes {
        for (name, family) in &plan.sets {
            let policy = generated_policy(family.clone(), size, plan.seed, progress)?;
            let trace = generated_trace(&policy, plan.headers, plan.seed, progress)?;
            for engine in &plan.engines {
                if !engine.is_dynamic() {
                    continue;
                }
                let bench = Bench {
                    plan,
                    engine,
                    policy: &policy,
                    trace: &trace,
                };
                if let Some(row) = bench.run(name, size, progress)? {
                    finished(&row)?;
                    results.0.push(row);
                }
            }
        }
    }
    Ok(results)
}

/// One engine with one rule set.
struct Bench<'a> {
    plan: &'a ReoptimisePlan,
    engine: &'a EngineSpec,
    policy: &'a Policy,
    trace: &'a PolicyTrace,
}

/// The results of adopting a plan.
struct Adopted {
    classifier: Box<dyn Classifier>,
    changes: Vec<f64>,
    worst_ns: f64,
    bytes: usize,
}

impl Bench<'_> {
    /// Returns a row, or `None` for engines that cannot be re-optimised.
    fn run(
        &self,
        name: &str,
        size: usize,
        progress: &mut dyn Progress,
    ) -> Result<Option<ReoptimiseRow>, Failure> {
        let fail = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
        let (grown, mut growing) = self.grow()?;
        let Some(engine) = dynamic(grown.as_ref()).reoptimise() else {
            return Ok(None);
        };
        let drift = engine.drift();
        let mut row = ReoptimiseRow {
            set: name.to_owned(),
            size,
            engine: self.engine.to_string(),
            rules: self.rules().len(),
            counted_first: drift.fitted,
            counted_grown: drift.current,
            grown_ns: self.lookups(grown.as_ref()),
            wrong: self.wrong(grown.as_ref()),
            ..ReoptimiseRow::default()
        };
        let learned = learn(engine).map_err(|error| fail(&error))?;
        (row.learn_seconds, row.look_seconds) = (learned.seconds, learned.longest_look);
        let mut adopted = self.adopt(grown, &learned.plan, &mut row)?;
        for repeat in 1..self.plan.update_repeats {
            let stage = "timing updates";
            classyard::classifier::report(progress, stage, repeat, self.plan.update_repeats)
                .map_err(|error| fail(&error))?;
            let (grown, times) = self.grow()?;
            keep_lesser(&mut growing, &times);
            let again = self.adopt(grown, &learned.plan, &mut row)?;
            keep_lesser(&mut adopted.changes, &again.changes);
        }
        row.growing = Updates::of(growing);
        row.adopting = Updates::of(adopted.changes);
        row.adopting_ns = adopted.worst_ns;
        let mut classifier = adopted.classifier;
        row.adopted_ns = self.lookups(classifier.as_ref());
        row.wrong += self.wrong(classifier.as_ref());
        row.counted_adopted = fitted(classifier.as_ref()).drift().current;
        let engine = classifier.as_dynamic().expect(DYNAMIC);
        let (rebuilt, seconds) = timed(|| engine.rebuild(&mut NoProgress));
        rebuilt.map_err(|error| fail(&error))?;
        row.rebuild_seconds = seconds;
        row.rebuilt_ns = self.lookups(classifier.as_ref());
        let fresh = count(classifier.stats().bytes());
        row.adopting_bytes = count(adopted.bytes) / fresh;
        row.adopted_bytes /= fresh;
        row.wrong += self.wrong(classifier.as_ref());
        Ok(Some(row))
    }

    fn rules(&self) -> &RuleSet {
        self.policy.part(PartId::FIRST)
    }

    /// Returns a classifier that has grown to all rules, and the time of each
    /// insertion.
    fn grow(&self) -> Result<(Box<dyn Classifier>, Vec<f64>), Failure> {
        let rules = self.rules();
        let mut order: Vec<usize> = (0..rules.len()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(self.plan.seed));
        let (first, coming) = order.split_at(rules.len().div_ceil(INITIAL_ONE_IN));
        let mut initial = RuleSet::new(rules.schema());
        for &index in first {
            let added = initial.push(rules.rule(index));
            added.expect("the rules of a set are distinct");
        }
        let built = self
            .engine
            .build(&initial, &Limits::default(), &mut NoProgress);
        let mut classifier = built.map_err(|error| Failure::usage(error.to_string()))?;
        let engine = classifier.as_dynamic().expect(DYNAMIC);
        let times = coming.iter().map(|&index| {
            let mut transaction = Transaction::new();
            transaction.insert(rules.rule(index));
            apply(engine, &transaction)
        });
        let times = times.collect();
        Ok((classifier, times))
    }

    /// Adopts a plan while rules are removed and inserted again.
    fn adopt(
        &self,
        mut classifier: Box<dyn Classifier>,
        plan: &LookupPlan,
        row: &mut ReoptimiseRow,
    ) -> Result<Adopted, Failure> {
        let rules = self.rules();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.plan.seed + 1);
        let (mut changes, mut worst_ns) = (Vec::new(), 0.0_f64);
        let mut bytes = classifier.stats().bytes();
        let engine = classifier.as_dynamic().expect(DYNAMIC);
        let engine = engine.reoptimise_mut().expect(FITTED);
        let (adopted, seconds) = timed(|| engine.install(plan));
        assert!(adopted, "a plan of this engine");
        row.adopt_seconds = match row.adopt_seconds {
            0.0 => seconds,
            before => before.min(seconds),
        };
        let stage = (rules.len() / 64).max(LEAST_STAGE);
        while fitted(classifier.as_ref()).drift().installing {
            if changes.len() > MOST_CHANGES {
                return Err(Failure::usage(format!(
                    "{}: not adopted after {} changes",
                    self.engine,
                    changes.len()
                )));
            }
            let engine = classifier.as_dynamic().expect(DYNAMIC);
            for _ in 0..stage.div_ceil(2) {
                let rule = rules.rule(rng.random_range(0..rules.len()));
                let mut transaction = Transaction::new();
                transaction.remove(rule.id());
                changes.push(apply(engine, &transaction));
                transaction.clear();
                transaction.insert(rule);
                changes.push(apply(engine, &transaction));
            }
            bytes = bytes.max(classifier.stats().bytes());
            worst_ns = worst_ns.max(self.pass(classifier.as_ref()));
            row.wrong += self.wrong_sample(classifier.as_ref());
        }
        row.adopted_bytes = count(classifier.stats().bytes());
        Ok(Adopted {
            classifier,
            changes,
            worst_ns,
            bytes,
        })
    }

    fn keys(&self) -> &KeyVec {
        self.trace.part(PartId::FIRST)
    }

    /// Returns nanoseconds per header, the minimum of the repeats.
    fn lookups(&self, classifier: &dyn Classifier) -> f64 {
        let times = (0..self.plan.repeats.max(1)).map(|_| self.pass(classifier));
        times.fold(f64::INFINITY, f64::min)
    }

    /// Returns nanoseconds per header in one pass.
    fn pass(&self, classifier: &dyn Classifier) -> f64 {
        let mut winners = [Winner::MISS; BATCH];
        let mut scratch = Scratch::new();
        let ((), seconds) = timed(|| {
            for keys in self.keys().batches(BATCH) {
                let winners = &mut winners[..keys.len()];
                classifier.classify_batch(keys, winners, &mut scratch);
                std::hint::black_box(winners);
            }
        });
        seconds * 1e9 / count(self.keys().len().max(1))
    }

    fn answers(&self, classifier: &dyn Classifier) -> Vec<Winner> {
        let mut winners = vec![Winner::MISS; self.keys().len()];
        let batches = self.keys().batches(BATCH).zip(winners.chunks_mut(BATCH));
        let mut scratch = Scratch::new();
        for (keys, winners) in batches {
            classifier.classify_batch(keys, winners, &mut scratch);
        }
        winners
    }

    fn wrong(&self, classifier: &dyn Classifier) -> usize {
        let winners = self.answers(classifier);
        let answers = [winners.as_slice()];
        let scanned = verify::SCANNED_RULES / 4;
        verify::wrong_answers(self.policy, self.trace, &answers, None, scanned)[0]
    }

    /// Counts wrong answers in a smaller sample, for use between steps.
    fn wrong_sample(&self, classifier: &dyn Classifier) -> usize {
        let winners = self.answers(classifier);
        let answers = [winners.as_slice()];
        verify::wrong_answers(self.policy, self.trace, &answers, None, 1)[0]
    }
}

/// The result and the cost of computing a plan.
struct Learned {
    plan: LookupPlan,
    seconds: f64,
    /// The longest time that the classifier was read without interruption.
    longest_look: f64,
}

fn learn(engine: &dyn Reoptimise) -> Result<Learned, classyard::BuildError> {
    let mut snapshot = Snapshot::new();
    let (mut longest_look, mut spent) = (0.0_f64, 0.0);
    loop {
        let (last, seconds) = timed(|| engine.look(&mut snapshot));
        longest_look = longest_look.max(seconds);
        spent += seconds;
        if last {
            break;
        }
    }
    let (plan, seconds) = timed(|| snapshot.compute(&mut NoProgress));
    Ok(Learned {
        plan: plan?.expect("the snapshot is complete"),
        seconds: spent + seconds,
        longest_look,
    })
}

/// Makes a change. Returns its time in nanoseconds.
fn apply(engine: &mut dyn DynamicClassifier, transaction: &Transaction<'_>) -> f64 {
    let (outcome, seconds) = timed(|| engine.apply(transaction));
    outcome.expect("the list was made for these rules");
    seconds * 1e9
}

fn dynamic(classifier: &dyn Classifier) -> &dyn DynamicClassifier {
    classifier.dynamic().expect(DYNAMIC)
}

fn fitted(classifier: &dyn Classifier) -> &dyn Reoptimise {
    dynamic(classifier).reoptimise().expect(FITTED)
}

const DYNAMIC: &str = "the engine takes updates";

const FITTED: &str = "the engine can be re-optimised";

fn keep_lesser(times: &mut [f64], again: &[f64]) {
    for (time, again) in times.iter_mut().zip(again) {
        *time = time.min(*again);
    }
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
fn count(number: usize) -> f64 {
    number as f64
}
