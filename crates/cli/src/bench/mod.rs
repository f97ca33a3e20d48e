//! `classyard bench`: how fast, how large, and whether right.
//!
//! Every engine classifies the same trace over the same rules. Repeats go in
//! turns (engine a, engine b, engine a, …), so that a machine whose speed
//! drifts is as unfair to one as to the other. No rate is reported without the
//! number of wrong answers beside it.

use classyard::{BuildError, EngineSpec, Limits, Policy, PolicyTrace, Progress, Scratch, Winner};

mod generated;
mod measure;
mod report;
mod updates;
mod verify;

pub(crate) use generated::{generated_policy, generated_trace, size_name};
pub(crate) use measure::{Spread, batch_rate, single_rate, timed};
pub(crate) use report::{Measurement, write_csv, write_table};

use updates::Protocol;

/// Rules and traffic to measure with.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) trace: PolicyTrace,
    /// The right answers, where they are known.
    pub(crate) expected: Option<Vec<Winner>>,
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Repeats of each lookup measurement.
    pub(crate) repeats: usize,
    /// Repeats of the update protocol; 0 leaves it out.
    pub(crate) update_repeats: usize,
    /// Insertions, and as many deletions, of the update protocol.
    pub(crate) changes: usize,
    /// Seed of the update list.
    pub(crate) seed: u64,
}

/// Insertions and deletions in [TM19] §IV.A.
pub(crate) const PAPER_CHANGES: usize = 500_000;

/// Measures all engines on one subject.
///
/// # Errors
/// The [`BuildError`] of the first engine that cannot be built.
pub(crate) fn measure_subject(
    subject: &Subject,
    engines: &[EngineSpec],
    plan: &Plan,
    progress: &mut dyn Progress,
) -> Result<Vec<Measurement>, BuildError> {
    let Subject { policy, trace, .. } = subject;
    let mut built = Vec::new();
    for engine in engines {
        let (classifier, seconds) =
            timed(|| policy.build(engine, &Limits::default(), &mut *progress));
        built.push((classifier?, seconds));
    }
    let steps = plan.repeats + plan.update_repeats + 1;
    let mut batch = vec![Vec::new(); engines.len()];
    let mut single = vec![Vec::new(); engines.len()];
    let mut scratch = Scratch::new();
    for repeat in 0..plan.repeats {
        classyard::classifier::report(progress, "timing lookups", repeat, steps)?;
        for (i, (classifier, _)) in built.iter().enumerate() {
            batch[i].push(batch_rate(classifier, trace, &mut scratch));
            single[i].push(single_rate(classifier, trace, &mut scratch));
        }
    }
    classyard::classifier::report(progress, "checking answers", plan.repeats, steps)?;
    let classifiers: Vec<_> = built.iter().map(|(classifier, _)| classifier).collect();
    let mut wrong = verify::wrong_answers(policy, trace, &classifiers, subject.expected.as_deref());

    let mut alone = vec![Vec::new(); engines.len()];
    let mut mixed = vec![Vec::new(); engines.len()];
    if plan.update_repeats > 0 {
        let protocol = Protocol::new(policy.ids(), plan.changes, plan.seed);
        let last = updates::subset(policy, &protocol.last);
        for repeat in 0..plan.update_repeats {
            let done = plan.repeats + 1 + repeat;
            classyard::classifier::report(progress, "timing updates", done, steps)?;
            for (i, engine) in engines.iter().enumerate() {
                if !engine.engine().dynamic {
                    continue;
                }
                let run = updates::run(engine, policy, trace, &protocol)?;
                alone[i].push(run.updates);
                mixed[i].push(run.mixed);
                if repeat == 0 {
                    wrong[i] += verify::wrong_answers(&last, trace, &[&run.classifier], None)[0];
                }
            }
        }
    }

    let mut results = Vec::new();
    for (i, (classifier, build_seconds)) in built.iter().enumerate() {
        let stats: Vec<_> = classifier.parts().iter().map(|part| part.stats()).collect();
        results.push(Measurement {
            set: subject.name.clone(),
            engine: engines[i].to_string(),
            rules: policy.len(),
            build_seconds: *build_seconds,
            bytes: stats.iter().map(classyard::Stats::bytes).sum(),
            index_bytes: stats.iter().map(|stats| stats.index_bytes).sum(),
            tables: stats.iter().map(|stats| stats.tables).sum(),
            batch_headers_per_second: Spread::of(&batch[i]).expect("at least one repeat"),
            single_headers_per_second: Spread::of(&single[i]).expect("at least one repeat"),
            updates_per_second: Spread::of(&alone[i]),
            updates_with_lookups_per_second: Spread::of(&mixed[i]),
            wrong: wrong[i],
        });
    }
    Ok(results)
}
