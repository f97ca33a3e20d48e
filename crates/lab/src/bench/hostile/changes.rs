//! Single changes, each timed alone.

use classyard::classifier::BATCH;
use classyard::{
    Classifier, EngineSpec, Limits, NoProgress, Policy, PolicyTrace, Progress, RuleSet, Scratch,
    Transaction, Winner,
};
use classyard_report::failure::Failure;
use classyard_workload::generate::hostile::updates::{UpdateList, UpdateStep};

use super::super::measure::timed;
use super::super::{generated_trace, verify};
use super::report::Changes;
use super::{Plan, only, per_rule};

/// Headers for checking answers at the end, and for timing lookups after the
/// changes.
const CHECKED_HEADERS: usize = 20_000;

/// Runs a list several times from the beginning. Each change counts with its
/// minimum time, to exclude other work on the machine. Returns `None` for engines
/// without updates.
pub(super) fn measure(
    plan: &Plan,
    engine: &EngineSpec,
    list: &UpdateList,
    progress: &mut dyn Progress,
) -> Result<Option<Changes>, Failure> {
    if !engine.is_dynamic() {
        return Ok(None);
    }
    let fail = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let initial = list.subset(&list.initial);
    let build = |rules: &RuleSet| engine.build(rules, &Limits::default(), &mut NoProgress);
    let mut min_seconds: Vec<f64> = vec![f64::INFINITY; list.steps.len()];
    let mut changed = build(&initial).map_err(|error| fail(&error))?;
    let clock = clock_cost();
    for repeat in 0..plan.update_repeats {
        classyard::classifier::report(progress, "timing updates", repeat, plan.update_repeats)
            .map_err(|error| fail(&error))?;
        changed = build(&initial).map_err(|error| fail(&error))?;
        for (step, min_seconds) in list.steps.iter().zip(&mut min_seconds) {
            let mut transaction = Transaction::new();
            match step {
                UpdateStep::Insert(id) => transaction.insert(list.rules.rule(id.index())),
                UpdateStep::Remove(id) => transaction.remove(*id),
            };
            let engine = changed.as_dynamic().expect("the engine takes updates");
            let (outcome, seconds) = timed(|| engine.apply(&transaction));
            outcome.expect("the list was made for these rules");
            *min_seconds = min_seconds.min(seconds);
        }
    }
    let nanoseconds = min_seconds
        .iter()
        .map(|seconds| (seconds - clock).max(0.0) * 1e9);
    let mut sorted: Vec<f64> = nanoseconds.collect();
    sorted.sort_by(f64::total_cmp);

    let last = list.subset(&list.last());
    let fresh = build(&last).map_err(|error| fail(&error))?;
    let (bytes, fresh_bytes) = (changed.stats().bytes(), fresh.stats().bytes());
    let mut row = Changes {
        rules: last.len(),
        steps: sorted.len(),
        ..Changes::default()
    };
    row.bytes_per_rule = per_rule(bytes, last.len());
    row.bytes_over_fresh = per_rule(bytes, fresh_bytes);
    row.times(&sorted);
    if last.is_empty() {
        return Ok(Some(row));
    }
    let policy = Policy::from(last);
    let trace = generated_trace(&policy, CHECKED_HEADERS, plan.seed, progress)?;
    let mut scratch = Scratch::new();
    let mut spent = (f64::INFINITY, f64::INFINITY);
    for _ in 0..plan.repeats {
        spent.0 = spent.0.min(pass(changed.as_ref(), &trace, &mut scratch).1);
        spent.1 = spent.1.min(pass(fresh.as_ref(), &trace, &mut scratch).1);
    }
    row.batch_over_fresh = spent.0 / spent.1;
    let (winners, _) = pass(changed.as_ref(), &trace, &mut scratch);
    row.wrong = verify::wrong_answers(&policy, &trace, &[&winners], None, verify::SCANNED_RULES)[0];
    Ok(Some(row))
}

/// Classifies a trace in batches.
fn pass(
    classifier: &dyn Classifier,
    trace: &PolicyTrace,
    scratch: &mut Scratch,
) -> (Vec<Winner>, f64) {
    let mut winners = vec![Winner::MISS; trace.len()];
    let keys = trace.part(only());
    let ((), seconds) = timed(|| {
        for (keys, winners) in keys.batches(BATCH).zip(winners.chunks_mut(BATCH)) {
            classifier.classify_batch(keys, winners, scratch);
        }
    });
    (winners, seconds)
}

/// Returns the time that reading the clock adds.
fn clock_cost() -> f64 {
    let times = (0..1000).map(|_| timed(|| ()).1);
    times.fold(f64::INFINITY, f64::min)
}
