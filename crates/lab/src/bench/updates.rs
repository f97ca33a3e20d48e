//! The update protocol of [TM19] §IV.A.
//!
//! Half of the rules, chosen at random, are inserted one by one. Then a shuffled
//! list of insertions and deletions follows: each insertion adds a rule that is not
//! in the table, each deletion removes a rule that is. The list is the same for
//! every engine. Only the list is timed.
//!
//! [TM19]: classyard::papers#tm19

use std::error::Error;
use std::time::{Duration, Instant};

use classyard::classifier::BATCH;
use classyard::{
    EngineSpec, Limits, NoProgress, Policy, PolicyClassifier, PolicyTrace, PolicyTransaction,
    RuleId, RuleSet, Scratch, Transaction, UpdateError, Winner,
};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::latency::{Durations, Quantiles};
use super::measure::{Spread, as_rate, batch_rate, thread_cpu_time, timed};

/// One step of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Insert(RuleId),
    Delete(RuleId),
}

/// The initial rules and the list.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) initial: Vec<RuleId>,
    pub(crate) steps: Vec<Step>,
    /// The rules in the table at the end.
    pub(crate) last: Vec<RuleId>,
}

impl Protocol {
    /// Creates a list of `changes` insertions and as many deletions. If a step has no
    /// rule to insert or delete, which happens only with very few rules, the opposite
    /// step is made.
    pub(crate) fn new(ids: &[RuleId], changes: usize, seed: u64) -> Protocol {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut order = ids.to_vec();
        order.shuffle(&mut rng);
        let mut outside = order.split_off(order.len() / 2);
        let initial = order.clone();
        let mut inside = order;
        let mut kinds = vec![true; changes];
        kinds.resize(2 * changes, false);
        kinds.shuffle(&mut rng);
        let mut steps = Vec::with_capacity(kinds.len());
        for insert in kinds {
            let insert = if insert {
                !outside.is_empty()
            } else {
                inside.is_empty()
            };
            let (from, to) = if insert {
                (&mut outside, &mut inside)
            } else {
                (&mut inside, &mut outside)
            };
            if from.is_empty() {
                break; // The policy has no rules.
            }
            let id = from.swap_remove(rng.random_range(0..from.len()));
            to.push(id);
            steps.push(if insert {
                Step::Insert(id)
            } else {
                Step::Delete(id)
            });
        }
        Protocol {
            initial,
            steps,
            last: inside,
        }
    }
}

/// Returns a policy with only some of another's rules, in the given order.
pub(crate) fn subset(policy: &Policy, ids: &[RuleId]) -> Policy {
    let schemas: Vec<_> = policy.schemas().cloned().collect();
    let mut parts: Vec<RuleSet> = schemas.iter().map(RuleSet::new).collect();
    for &id in ids {
        for (part, rule) in policy.rule(id) {
            parts[part.index()]
                .push(rule)
                .expect("ids are unique in the policy");
        }
    }
    Policy::from_parts(policy.name(), parts)
}

/// The results of a run of the list.
pub(crate) struct UpdateRun {
    /// Changes per second of CPU time.
    pub(crate) updates: f64,
    /// Changes per second in transactions of [`GROUPED_CHANGES`] changes.
    pub(crate) grouped: f64,
    /// Changes per second with a batch of lookups after every [`LOOKUP_EVERY`]
    /// changes, including the time of the lookups.
    pub(crate) mixed: f64,
    /// The seconds of a change that go to reading its rule, without any engine: the rules
    /// of the list are in random order, so with many rules they come from memory.
    pub(crate) reading: f64,
    /// The rate of batch lookups after the list, divided by the rate in a new classifier
    /// with the same rules.
    pub(crate) lookup_share: f64,
    /// The classifier with the last rules.
    pub(crate) classifier: PolicyClassifier,
}

/// The duration of each step of the list, in nanoseconds.
pub(crate) struct EachStep {
    cpu: Vec<u32>,
    wall: Vec<u32>,
}

impl EachStep {
    /// Runs the list on a new classifier and times each step with two clocks. The
    /// minimum cost of reading the clocks is subtracted.
    pub(crate) fn time(
        spec: &EngineSpec,
        policy: &Policy,
        protocol: &Protocol,
    ) -> Result<EachStep, classyard::BuildError> {
        let initial = subset(policy, &protocol.initial);
        let mut classifier = initial.build(spec, &Limits::default(), &mut NoProgress)?;
        let mut each = EachStep {
            cpu: Vec::with_capacity(protocol.steps.len()),
            wall: Vec::with_capacity(protocol.steps.len()),
        };
        let asking = (0..CLOCK_TRIALS).map(|_| clocked(|| ()));
        let asking = asking.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)));
        let asking = asking.unwrap_or_default();
        for &step in &protocol.steps {
            let (cpu, wall) = clocked(|| {
                make(&mut classifier, policy, step).expect("the list was made for these rules");
            });
            let net_nanoseconds = |spent: Duration, asking: Duration| {
                let net_nanoseconds = spent.saturating_sub(asking).as_nanos();
                u32::try_from(net_nanoseconds).unwrap_or(u32::MAX)
            };
            each.cpu.push(net_nanoseconds(cpu, asking.0));
            each.wall.push(net_nanoseconds(wall, asking.1));
        }
        Ok(each)
    }

    /// Keeps the smaller time of each step. The list and the engine's work are the
    /// same each time, so additional time is other work of the machine.
    pub(crate) fn keep_lesser(&mut self, other: &EachStep) {
        for (mine, others) in [(&mut self.cpu, &other.cpu), (&mut self.wall, &other.wall)] {
            for (mine, other) in mine.iter_mut().zip(others) {
                *mine = (*mine).min(*other);
            }
        }
    }

    /// Returns the quantiles of the CPU times and of the elapsed times.
    pub(crate) fn quantiles(&self) -> [Option<Quantiles>; 2] {
        [&self.cpu, &self.wall].map(|times| {
            let mut durations = Durations::new();
            for &time in times {
                durations.record(Duration::from_nanos(u64::from(time)));
            }
            durations.quantiles()
        })
    }
}

/// The number of empty clock readings, to measure the cost of reading.
const CLOCK_TRIALS: usize = 10_000;

/// Runs `work` and returns its CPU time and its elapsed time.
fn clocked(work: impl FnOnce()) -> (Duration, Duration) {
    let cpu = thread_cpu_time();
    let wall = Instant::now();
    work();
    let wall = wall.elapsed();
    (thread_cpu_time().saturating_sub(cpu), wall)
}

/// Changes between two batches of lookups in the mixed run: with batches of 256,
/// four lookups per change.
pub(crate) const LOOKUP_EVERY: usize = 64;

/// Changes in a transaction of the grouped run.
pub(crate) const GROUPED_CHANGES: usize = 64;

/// The mixed run makes this fraction (one in `MIXED_SHARE`) of the list: with
/// slower engines, lookups over the whole list would take minutes.
const MIXED_SHARE: usize = 10;

/// Runs the list on a new classifier, one change at a time; on another, in groups; and a
/// part of the list on a third, with lookups in between.
pub(crate) fn run(
    spec: &EngineSpec,
    policy: &Policy,
    trace: &PolicyTrace,
    protocol: &Protocol,
) -> Result<UpdateRun, classyard::BuildError> {
    let initial = subset(policy, &protocol.initial);
    let mut classifier = initial.build(spec, &Limits::default(), &mut NoProgress)?;
    let seconds = carry_out(&mut classifier, policy, &protocol.steps);
    let seconds = seconds.expect("the list was made for these rules");
    let mut grouped = initial.build(spec, &Limits::default(), &mut NoProgress)?;
    let grouped_seconds = carry_out_grouped(&mut grouped, policy, &protocol.steps);
    let grouped_seconds = grouped_seconds.expect("the list was made for these rules");
    drop(grouped);
    let mut mixed = initial.build(spec, &Limits::default(), &mut NoProgress)?;
    let mut scratch = Scratch::new();
    let mut winners = [Winner::MISS; BATCH];
    let batches: Vec<_> = trace
        .parts()
        .flat_map(|(part, keys)| keys.batches(BATCH).map(move |keys| (part, keys)))
        .collect();
    let mixed_steps = &protocol.steps[..protocol.steps.len() / MIXED_SHARE];
    let mut next = 0;
    let ((), mixed_seconds) = timed(|| {
        for steps in mixed_steps.chunks(LOOKUP_EVERY) {
            for &step in steps {
                make(&mut mixed, policy, step).expect("the list was made for these rules");
            }
            if let Some(&(part, keys)) = batches.get(next) {
                let winners = &mut winners[..keys.len()];
                mixed.part(part).classify_batch(keys, winners, &mut scratch);
                next = (next + 1) % batches.len();
            }
        }
    });
    std::hint::black_box(winners[0]);
    drop(mixed);
    let last = subset(policy, &protocol.last);
    let fresh = last.build(spec, &Limits::default(), &mut NoProgress)?;
    Ok(UpdateRun {
        updates: as_rate(protocol.steps.len(), seconds),
        grouped: as_rate(protocol.steps.len(), grouped_seconds),
        mixed: as_rate(mixed_steps.len(), mixed_seconds),
        reading: read_rules(policy, &protocol.steps),
        lookup_share: compare_lookups(&classifier, &fresh, trace),
        classifier,
    })
}

/// Returns the rate of batch lookups in a changed classifier divided by the rate in a fresh
/// one: the median of alternating runs. The first run is not counted.
fn compare_lookups(
    changed: &PolicyClassifier,
    fresh: &PolicyClassifier,
    trace: &PolicyTrace,
) -> f64 {
    let mut scratch = Scratch::new();
    let mut ratio = || {
        let changed_rate = batch_rate(changed, trace, &mut scratch);
        changed_rate / batch_rate(fresh, trace, &mut scratch)
    };
    ratio();
    let ratios = [ratio(), ratio(), ratio()];
    Spread::of(&ratios).expect("three ratios").median
}

/// Builds an engine without rules and inserts these rules one by one.
///
/// # Errors
/// If the engine cannot be built, or refuses a rule.
pub(crate) fn inserted(
    spec: &EngineSpec,
    policy: &Policy,
    ids: &[RuleId],
) -> Result<PolicyClassifier, Box<dyn Error>> {
    let none = subset(policy, &[]);
    let mut classifier = none.build(spec, &Limits::default(), &mut NoProgress)?;
    for &id in ids {
        make(&mut classifier, policy, Step::Insert(id))?;
    }
    Ok(classifier)
}

/// Runs a list and returns its CPU time in seconds.
///
/// # Errors
/// If the engine refuses a rule.
pub(crate) fn carry_out(
    classifier: &mut PolicyClassifier,
    policy: &Policy,
    steps: &[Step],
) -> Result<f64, UpdateError> {
    let (done, seconds) = timed(|| {
        let mut steps = steps.iter();
        steps.try_for_each(|&step| make(classifier, policy, step))
    });
    done.map(|()| seconds)
}

/// Runs a list in transactions of [`GROUPED_CHANGES`] changes and returns its CPU time in
/// seconds.
fn carry_out_grouped(
    classifier: &mut PolicyClassifier,
    policy: &Policy,
    steps: &[Step],
) -> Result<f64, UpdateError> {
    let (done, seconds) = timed(|| {
        let mut groups = steps.chunks(GROUPED_CHANGES);
        groups.try_for_each(|group| make_all(classifier, policy, group))
    });
    done.map(|()| seconds)
}

/// Reads the rules that a list inserts. Returns the mean CPU time of a step in seconds.
#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
fn read_rules(policy: &Policy, steps: &[Step]) -> f64 {
    let (folded, seconds) = timed(|| {
        let inserted = steps.iter().filter_map(|step| match step {
            Step::Insert(id) => Some(policy.rule(*id)),
            Step::Delete(_) => None,
        });
        let words = inserted.flatten().flat_map(|(_, rule)| rule.words());
        words.fold(0, |folded, word| folded ^ word)
    });
    std::hint::black_box(folded);
    seconds / steps.len().max(1) as f64
}

fn make(classifier: &mut PolicyClassifier, policy: &Policy, step: Step) -> Result<(), UpdateError> {
    make_all(classifier, policy, &[step])
}

/// Makes some steps as one transaction.
#[inline]
fn make_all(
    classifier: &mut PolicyClassifier,
    policy: &Policy,
    steps: &[Step],
) -> Result<(), UpdateError> {
    if let ([rules], Some(part)) = (policy.parts(), classifier.single_mut()) {
        let mut transaction = Transaction::new();
        for &step in steps {
            match step {
                Step::Insert(id) => transaction.insert(rules.get(id).expect("an id of the policy")),
                Step::Delete(id) => transaction.remove(id),
            };
        }
        let part = part
            .as_dynamic()
            .expect("only dynamic engines are measured");
        return part.apply(&transaction);
    }
    let mut transaction = PolicyTransaction::new();
    for &step in steps {
        match step {
            Step::Insert(id) => transaction.insert(policy.rule(id)),
            Step::Delete(id) => transaction.remove(id),
        };
    }
    classifier.apply(&transaction)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_can_be_carried_out_and_is_the_same_each_time() {
        let ids: Vec<RuleId> = (0..50).map(RuleId::from_index).collect();
        let protocol = Protocol::new(&ids, 1000, 7);
        assert_eq!(protocol.steps, Protocol::new(&ids, 1000, 7).steps);
        assert_eq!(protocol.steps.len(), 2000);
        let mut inside: BTreeSet<u32> = protocol.initial.iter().map(|id| id.get()).collect();
        assert_eq!(inside.len(), 25);
        for step in &protocol.steps {
            match step {
                Step::Insert(id) => assert!(inside.insert(id.get())),
                Step::Delete(id) => assert!(inside.remove(&id.get())),
            }
        }
        let last: BTreeSet<u32> = protocol.last.iter().map(|id| id.get()).collect();
        assert_eq!(inside, last);
    }

    #[test]
    fn the_lesser_time_of_each_step_counts() {
        let mut each = EachStep {
            cpu: vec![100, 900_000, 300],
            wall: vec![500, 500, 500],
        };
        each.keep_lesser(&EachStep {
            cpu: vec![800, 100, 200],
            wall: vec![600, 600, 400],
        });
        assert_eq!(
            (&each.cpu[..], &each.wall[..]),
            (&[100, 100, 200][..], &[500, 500, 400][..])
        );
        let [cpu, wall] = each.quantiles().map(|quantiles| quantiles.unwrap().max);
        assert!((cpu / 200e-9 - 1.0).abs() < 0.01, "{cpu}");
        assert!((wall / 500e-9 - 1.0).abs() < 0.01, "{wall}");
    }

    #[test]
    fn work_takes_time_on_both_clocks() {
        let (cpu, wall) = clocked(|| {
            let sum = (0..1_000_000_u64).fold(0, |sum, x| std::hint::black_box(sum ^ x));
            std::hint::black_box(sum);
        });
        assert!(cpu > Duration::from_micros(10) && wall > Duration::from_micros(10));
    }

    #[test]
    fn no_rules_no_steps() {
        assert!(Protocol::new(&[], 10, 1).steps.is_empty());
    }
}
