//! `classyard bench`: measures speed, memory and correctness.
//!
//! Every engine classifies the same trace with the same rules. Repeats are
//! interleaved (engine a, engine b, engine a, …), so that a drifting machine speed
//! affects all engines alike. Every rate is reported with the number of wrong
//! answers. Peers, which are external classifiers, take part in the same rounds.

use std::time::Duration;

use classyard::machine::Machine;
use classyard::{BuildError, EngineSpec, Policy, PolicyTrace, Progress, Scratch, Winner};
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;

mod candidate;
mod choices;
mod command;
mod estimated;
mod generated;
pub(crate) mod hostile;
mod latency;
mod measure;
mod mixed;
mod peer;
mod reoptimise;
mod report;
mod row;
mod threads;
mod updates;
mod verify;
mod versus;

pub(crate) use choices::{ChoiceRow, choices, write_choices};
pub use command::{Args, run};
pub use generated::size_name;
pub(crate) use generated::{generated_policy, generated_trace};
pub(crate) use measure::{Spread, batch_rate, single_rate, timed};
pub use measure::{geometric_mean, thread_cpu_time};
pub(crate) use mixed::{CpuPair, CpuPinning, MixedPlan, MixedRow, Rate, measure_mixed, stay_on};
pub(crate) use mixed::{write_csv as write_mixed_csv, write_table as write_mixed_table};
pub(crate) use peer::{LoadedSwitch, PeerSpec, SwitchPeer, SwitchRate};
pub(crate) use reoptimise::{ReoptimisePlan, ReoptimiseResults, measure as measure_reoptimising};
pub(crate) use report::{write_csv, write_table};
pub(crate) use row::{Measurement, Row};
pub(crate) use threads::ThreadPlan;

pub(crate) use updates::{Protocol, carry_out, inserted, subset};
pub(crate) use verify::{SCANNED_RULES, answers, wrong_answers};

use candidate::{Engine, Entry, Shown, checked_results};
use peer::{Origin, Peer};
use row::Failed;
use updates::EachStep;

use crate::estimates::Shapes;

/// Rules and traffic to measure with.
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The size group that it is averaged with.
    pub(crate) size: String,
    pub(crate) policy: Policy,
    pub(crate) trace: PolicyTrace,
    /// The right answers, if they are known.
    pub(crate) expected: Option<Vec<Winner>>,
}

/// The participants of a measurement.
pub(crate) struct Field {
    /// Our engines.
    pub(crate) engines: Vec<EngineSpec>,
    /// The limits on building an engine.
    pub(crate) limits: BuildLimits,
    /// The machine that estimates are made for.
    pub(crate) machine: Machine,
    /// Peers whose programs have been found.
    pub(crate) peers: Vec<PeerSpec>,
    /// The time limit for a peer's build and for each pass.
    pub(crate) peer_limit: Duration,
    /// Threads to measure with in addition to one, if requested.
    pub(crate) threads: Option<ThreadPlan>,
}

/// The settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Repeats of each lookup measurement.
    pub(crate) repeats: usize,
    /// Repeats of the update protocol; 0 skips it.
    pub(crate) update_repeats: usize,
    /// The number of insertions in the update protocol, and of deletions.
    pub(crate) changes: usize,
    /// The seed of the update list.
    pub(crate) seed: u64,
    /// True if each candidate has extra runs, which [`choices`] uses as a trial.
    pub(crate) trial: bool,
}

/// Insertions and deletions in [TM19] §IV.A.
///
/// [TM19]: classyard::papers#tm19
pub(crate) const PAPER_CHANGES: usize = 500_000;

/// The number of extra runs in a trial.
const TRIAL_RUNS: usize = 2;

/// Measures all participants on one subject: a row for each engine, then for each
/// algorithm of each peer.
///
/// A peer that fails, or an engine that is refused, gets a row with the reason.
///
/// # Errors
/// The reason why the first engine is refused, if all are.
pub(crate) fn measure_subject(
    subject: &Subject,
    field: &mut Field,
    plan: &Plan,
    progress: &mut dyn Progress,
) -> Result<Vec<Row>, Failure> {
    let Subject { policy, trace, .. } = subject;
    let (mut engines, mut built, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for engine in &field.engines {
        let (classifier, seconds) = timed(|| {
            (field.limits).build(&mut *progress, |limits, progress| {
                policy.build(engine, limits, progress)
            })
        });
        match classifier {
            Ok(classifier) => {
                engines.push(engine.clone());
                built.push((classifier, seconds));
            }
            Err(reason) => refused.push((engine, reason)),
        }
    }
    if built.is_empty()
        && field.peers.is_empty()
        && let Some((_, reason)) = refused.pop()
    {
        return Err(reason.into());
    }
    let mut peers = Vec::new();
    for (done, spec) in field.peers.iter().enumerate() {
        classyard::classifier::report(progress, "building peers", done, field.peers.len())?;
        peers.push(Peer::build(spec, policy, trace, field.peer_limit));
    }
    let of_peers: Vec<_> = peers.iter().flatten().map(Peer::algorithms).collect();

    let mut entries = Vec::new();
    for (classifier, _) in &built {
        let engine = Engine {
            classifier,
            trace,
            scratch: Scratch::new(),
        };
        entries.push(Entry::new(engine, trace.len()));
    }
    let mut origins = Vec::new();
    for (algorithm, origin) in of_peers.into_iter().flatten() {
        entries.push(Entry::new(algorithm, trace.len()));
        origins.push(origin);
    }
    let steps = plan.repeats + plan.update_repeats + 1;
    if plan.trial {
        for _ in 0..TRIAL_RUNS {
            entries.iter_mut().for_each(Entry::try_out);
        }
    }
    for repeat in 0..plan.repeats {
        classyard::classifier::report(progress, "timing lookups", repeat, steps)?;
        entries.iter_mut().for_each(Entry::turn);
    }
    classyard::classifier::report(progress, "checking answers", plan.repeats, steps)?;
    entries.iter_mut().for_each(Entry::answer);
    let mut threaded = Vec::new();
    if let Some(threads) = &mut field.threads {
        for (classifier, _) in &built {
            classyard::classifier::report(progress, "timing threads", plan.repeats, steps)?;
            let answers = verify::answers(classifier, trace);
            threaded.push(threads.measure(classifier, trace, plan.repeats, &answers));
        }
    }
    let shown = checked_results(entries, |answers| {
        let expected = subject.expected.as_deref();
        verify::wrong_answers(policy, trace, answers, expected, SCANNED_RULES)
    });
    let mut shown = shown.into_iter();

    let updates = measure_updates(subject, &engines, plan, progress)?;
    let shapes = Shapes::of(policy);
    let mut threaded = threaded.into_iter();
    let mut rows = Vec::new();
    for ((engine, (classifier, seconds)), updated) in engines.iter().zip(&built).zip(updates) {
        let shown = shown.next().expect("every engine has an entry");
        let shown = shown.expect("engines do not fail");
        let mut row = Measurement::new(subject, engine.to_string(), *seconds, &shown);
        let stats: Vec<_> = classifier.parts().iter().map(|part| part.stats()).collect();
        row.bytes = Some(stats.iter().map(classyard::Stats::bytes).sum());
        row.index_bytes = Some(stats.iter().map(|stats| stats.index_bytes).sum());
        row.tables = Some(stats.iter().map(|stats| stats.tables).sum());
        row.estimate = Some(estimated::estimate(&shapes, engine, &field.machine)?);
        row.updates_per_second = Spread::of(&updated.alone);
        row.updates_in_groups_per_second = Spread::of(&updated.grouped);
        row.updates_with_lookups_per_second = Spread::of(&updated.mixed);
        row.rule_reading_seconds = Spread::of(&updated.reading);
        row.batch_share_after_updates = Spread::of(&updated.lookup_share);
        if let Some(each) = &updated.each {
            [row.update_seconds, row.update_wall_seconds] = each.quantiles();
        }
        row.wrong += updated.wrong;
        if let Some((rates, differing)) = threaded.next() {
            row.threads = Some(rates);
            row.wrong += differing;
        }
        rows.push(Row::Measured(Box::new(row)));
    }
    for (engine, reason) in refused {
        let failed = Failed::of_engine(subject, engine.to_string(), reason.to_string());
        rows.push(Row::Failed(failed));
    }
    let mut entries = origins.into_iter().zip(shown);
    for (spec, peer) in field.peers.iter().zip(&peers) {
        rows.extend(peer_rows(subject, spec, peer, &mut entries));
    }
    versus::mark_best(&mut rows);
    Ok(rows)
}

/// Returns a row for each of a peer's algorithms, or a row with the reason of its
/// failure.
fn peer_rows(
    subject: &Subject,
    spec: &PeerSpec,
    peer: &Result<Peer, String>,
    entries: &mut impl Iterator<Item = (Origin, Result<Shown, String>)>,
) -> Vec<Row> {
    let peer = match peer {
        Ok(peer) => peer,
        Err(reason) => return vec![Failed::row(subject, spec, spec.to_string(), reason)],
    };
    let mut rows = Vec::new();
    for (origin, shown) in entries.take(peer.algorithm_count()) {
        let label = spec.label(&origin.algorithm);
        rows.push(match shown {
            Err(reason) => Failed::row(subject, spec, label, &reason),
            Ok(shown) => {
                let mut row = Measurement::new(subject, label, peer.build_seconds, &shown);
                row.bytes = peer.sizes.bytes;
                row.index_bytes = peer.sizes.index_bytes;
                row.tables = peer.sizes.tables;
                row.peer = Some(origin);
                Row::Measured(Box::new(row))
            }
        });
    }
    rows
}

/// An engine's results in the update protocol.
#[derive(Default)]
struct Updated {
    alone: Vec<f64>,
    grouped: Vec<f64>,
    mixed: Vec<f64>,
    reading: Vec<f64>,
    lookup_share: Vec<f64>,
    each: Option<EachStep>,
    wrong: usize,
}

fn measure_updates(
    subject: &Subject,
    engines: &[EngineSpec],
    plan: &Plan,
    progress: &mut dyn Progress,
) -> Result<Vec<Updated>, BuildError> {
    let Subject { policy, trace, .. } = subject;
    let mut updated: Vec<Updated> = engines.iter().map(|_| Updated::default()).collect();
    if plan.update_repeats == 0 {
        return Ok(updated);
    }
    let steps = plan.repeats + plan.update_repeats + 1;
    let protocol = Protocol::new(policy.ids(), plan.changes, plan.seed);
    let last = updates::subset(policy, &protocol.last);
    for repeat in 0..plan.update_repeats {
        let done = plan.repeats + 1 + repeat;
        classyard::classifier::report(progress, "timing updates", done, steps)?;
        for (engine, updated) in engines.iter().zip(&mut updated) {
            if !engine.is_dynamic() {
                continue;
            }
            let run = updates::run(engine, policy, trace, &protocol)?;
            updated.alone.push(run.updates);
            updated.grouped.push(run.grouped);
            updated.mixed.push(run.mixed);
            updated.reading.push(run.reading);
            updated.lookup_share.push(run.lookup_share);
            let each = EachStep::time(engine, policy, &protocol)?;
            match &mut updated.each {
                Some(before) => before.keep_lesser(&each),
                none => *none = Some(each),
            }
            if repeat == 0 {
                let winners = verify::answers(&run.classifier, trace);
                let wrong = verify::wrong_answers(&last, trace, &[&winners], None, SCANNED_RULES);
                let part = |part| run.classifier.part(part);
                let differing =
                    verify::contradictions(part, trace, &winners, verify::SINGLE_LOOKUPS);
                updated.wrong += wrong[0] + differing;
            }
        }
    }
    Ok(updated)
}
