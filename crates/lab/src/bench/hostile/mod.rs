//! `classyard bench --hostile`: hostile rules, traffic and updates compared with
//! friendly ones.
//!
//! Lookups: each engine on each hostile rule set, with traffic of each kind.
//! Updates: single changes, each timed alone, on the hostile sets (half of the
//! rules inserted, then a shuffled list) and on the hostile lists. Friendly rules
//! of equal size are measured in the same way. Every figure is shown with its ratio
//! to the geometric mean of the friendly figures.

use classyard::policy::PartId;
use classyard::{EngineSpec, Limits, Policy, PolicyClassifier, PolicyTrace, Progress, Scratch};
use classyard_report::failure::Failure;
use classyard_workload::generate::hostile::updates::{HostileUpdates, UpdateList, UpdateStep};
use classyard_workload::generate::{Family, Hostile, Profile, Recipe, generate};
use classyard_workload::traffic::{
    CANDIDATES, TrafficConfig, TrafficError, TrafficRecipe, traffic,
};

use super::measure::{Spread, batch_rate, single_rate, timed};
use super::updates::{Protocol, Step};
use super::{generated_policy, size_name, verify};

mod changes;
mod report;

pub(crate) use report::{HostileRow, Results};
use report::{LookupRow, UpdateRow, Work};

/// Kinds of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Corners of rules in short bursts, as ClassBench does
    Classbench,
    /// Each field at its ends and one step outside
    Corners,
    /// Headers that no rule matches
    Miss,
    /// Points of the single rule whose lookup is the most work
    OneBucket,
    /// Headers whose lookup is the most work
    Worst,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Classbench => "classbench",
            Kind::Corners => "corners",
            Kind::Miss => "miss",
            Kind::OneBucket => "one-bucket",
            Kind::Worst => "worst",
        }
    }

    fn recipe(self) -> TrafficRecipe {
        let candidates = CANDIDATES;
        match self {
            Kind::Classbench => TrafficRecipe::classbench(),
            Kind::Corners => TrafficRecipe::Corners,
            Kind::Miss => TrafficRecipe::Misses { tries: 10_000 },
            Kind::OneBucket => TrafficRecipe::OneBucket { candidates },
            Kind::Worst => TrafficRecipe::Worst { candidates },
        }
    }
}

/// The settings of a measurement.
pub(crate) struct Plan {
    pub(crate) engines: Vec<EngineSpec>,
    pub(crate) sets: Vec<Hostile>,
    /// Friendly rules: profiles by name.
    pub(crate) friendly: Vec<(String, std::sync::Arc<Profile>)>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) headers: usize,
    pub(crate) seed: u64,
    pub(crate) repeats: usize,
    /// Repeats of each list of changes; each change counts with its minimum time.
    pub(crate) update_repeats: usize,
    /// Insertions, and as many removals, in the shuffled list; by default, the number
    /// of rules.
    pub(crate) changes: Option<usize>,
}

/// The number of headers whose traces are counted.
const TRACED_HEADERS: usize = 1000;

/// The maximum number of tables and rules visited while counting: a few seconds.
const TRACED_WORK: usize = 4_000_000;

/// Single and masked lookups that are compared with batches.
const SINGLE_LOOKUPS: usize = 500;

/// Rules with a name.
struct Subject {
    name: String,
    friendly: bool,
    size: usize,
    policy: Policy,
}

/// Measures everything; calls `finished` immediately after each row.
pub(crate) fn measure(
    plan: &Plan,
    progress: &mut dyn Progress,
    finished: &mut dyn FnMut(HostileRow<'_>) -> Result<(), Failure>,
) -> Result<Results, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let mut results = Results::default();
    for &size in &plan.sizes {
        for subject in subjects(plan, size, progress)? {
            let before = results.lookups.len();
            lookups(plan, &subject, &mut results, progress)?;
            // Friendly rules come first, so the ratios are known now.
            results.compare();
            for row in &results.lookups[before..] {
                finished(HostileRow::Lookups(row))?;
            }
            let list = shuffled(&subject.policy, plan);
            let name = subject.name.clone();
            for engine in &plan.engines {
                let row = changes::measure(plan, engine, &list, progress)?;
                let row = row.map(|measured| UpdateRow {
                    set: name.clone(),
                    list: "shuffled",
                    size,
                    engine: engine.to_string(),
                    friendly: subject.friendly,
                    measured,
                    ratios: None,
                });
                results.push(row, finished)?;
            }
        }
        for kind in HostileUpdates::ALL {
            let list = kind.list(size, plan.seed, progress);
            let list = list.map_err(|error| usage(&error))?;
            for engine in &plan.engines {
                let row = changes::measure(plan, engine, &list, progress)?;
                let row = row.map(|measured| UpdateRow {
                    set: "-".to_owned(),
                    list: kind.name(),
                    size,
                    engine: engine.to_string(),
                    friendly: false,
                    measured,
                    ratios: None,
                });
                results.push(row, finished)?;
            }
        }
    }
    Ok(results)
}

fn subjects(
    plan: &Plan,
    size: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    for (name, profile) in &plan.friendly {
        let family = Family::Ipv4(profile.clone());
        subjects.push(Subject {
            name: name.clone(),
            friendly: true,
            size,
            policy: generated_policy(family, size, plan.seed, progress)?,
        });
    }
    for &set in &plan.sets {
        let mut recipe = Recipe::new(Family::Hostile(set), size, plan.seed);
        recipe.accept_fewer = true;
        let policy = generate(&recipe, progress);
        subjects.push(Subject {
            name: set.name().to_owned(),
            friendly: false,
            size,
            policy: policy.map_err(|error| Failure::usage(error.to_string()))?,
        });
    }
    Ok(subjects)
}

/// Returns a list that begins with half of the rules, then has insertions and
/// removals in random order.
fn shuffled(policy: &Policy, plan: &Plan) -> UpdateList {
    let changes = plan.changes.unwrap_or(policy.len());
    let protocol = Protocol::new(policy.ids(), changes, plan.seed);
    let step = |step: &Step| match *step {
        Step::Insert(id) => UpdateStep::Insert(id),
        Step::Delete(id) => UpdateStep::Remove(id),
    };
    UpdateList {
        rules: policy.parts()[0].clone(),
        initial: protocol.initial,
        steps: protocol.steps.iter().map(step).collect(),
    }
}

/// Measures lookups of every engine with every kind of traffic.
fn lookups(
    plan: &Plan,
    subject: &Subject,
    results: &mut Results,
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let policy = &subject.policy;
    let mut built = Vec::new();
    for engine in &plan.engines {
        let (classifier, seconds) =
            timed(|| policy.build(engine, &Limits::default(), &mut *progress));
        let classifier = classifier.map_err(|error| Failure::usage(error.to_string()))?;
        built.push((engine, classifier, seconds));
    }
    // Friendly rules are measured with the usual traffic only.
    let kinds = match subject.friendly {
        true => &[Kind::Classbench][..],
        false => &plan.kinds,
    };
    for &kind in kinds {
        let mut traces = Vec::new();
        for (_, classifier, _) in &built {
            traces.push(headers(plan, policy, kind, classifier, progress)?);
        }
        let mut rates = vec![(Vec::new(), Vec::new()); built.len()];
        let mut scratch = Scratch::new();
        for _ in 0..plan.repeats {
            for (((_, classifier, _), trace), rates) in built.iter().zip(&traces).zip(&mut rates) {
                let Some(trace) = trace else { continue };
                rates
                    .0
                    .push(1e9 / batch_rate(classifier, trace, &mut scratch));
                rates.1.push(1e9 / single_rate(classifier, trace));
            }
        }
        for (((engine, classifier, seconds), trace), rates) in built.iter().zip(&traces).zip(rates)
        {
            let Some(trace) = trace else { continue };
            let median = |of: &[f64]| Spread::of(of).map_or(0.0, |spread| spread.median);
            let bytes: usize = classifier.parts().iter().map(|p| p.stats().bytes()).sum();
            let (tables, compared) = work(classifier, trace);
            results.lookups.push(LookupRow {
                set: subject.name.clone(),
                traffic: kind.name(),
                size: subject.size,
                engine: engine.to_string(),
                friendly: subject.friendly,
                rules: policy.len(),
                build_seconds: *seconds,
                bytes_per_rule: per_rule(bytes, policy.len()),
                batch_ns: median(&rates.0),
                single_ns: median(&rates.1),
                tables,
                compared,
                wrong: wrong(policy, classifier, trace),
                ratios: None,
            });
        }
    }
    let name = size_name(subject.size);
    let stage = "measuring";
    classyard::classifier::report(progress, stage, results.lookups.len(), 0)
        .map_err(|error| Failure::usage(format!("{} {name}: {error}", subject.name)))?;
    Ok(())
}

/// Returns headers of a kind, or `None` if there are none, such as misses of rules
/// that match everything.
fn headers(
    plan: &Plan,
    policy: &Policy,
    kind: Kind,
    classifier: &PolicyClassifier,
    progress: &mut dyn Progress,
) -> Result<Option<PolicyTrace>, Failure> {
    let config = TrafficConfig::new(plan.headers, plan.seed);
    match traffic(policy, &kind.recipe(), &config, Some(classifier), progress) {
        Ok(made) => Ok(Some(made.trace)),
        Err(TrafficError::NoMisses { .. } | TrafficError::RareMisses { .. }) => Ok(None),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

/// Returns the number of wrong answers for a trace.
fn wrong(policy: &Policy, classifier: &PolicyClassifier, trace: &PolicyTrace) -> usize {
    let winners = verify::answers(classifier, trace);
    let wrong = verify::wrong_answers(policy, trace, &[&winners], None, verify::SCANNED_RULES);
    let part = |part| classifier.part(part);
    wrong[0] + verify::contradictions(part, trace, &winners, SINGLE_LOOKUPS)
}

/// Counts the tables visited and the rules compared per header.
fn work(classifier: &PolicyClassifier, trace: &PolicyTrace) -> (Work, Work) {
    let stride = (trace.len() / TRACED_HEADERS).max(1);
    let (mut tables, mut compared) = (Vec::new(), Vec::new());
    let mut spent = 0;
    for (part, key) in trace.iter().step_by(stride) {
        let shown = classifier.part(part).trace(key);
        tables.push(shown.probes.len());
        let rules = shown.probes.iter().map(|probe| probe.compared.len());
        compared.push(rules.sum());
        spent += tables[tables.len() - 1] + compared[compared.len() - 1];
        if spent > TRACED_WORK {
            break;
        }
    }
    (Work::of(&tables), Work::of(&compared))
}

#[allow(clippy::cast_precision_loss)] // for people
fn per_rule(bytes: usize, rules: usize) -> f64 {
    bytes as f64 / rules.max(1) as f64
}

/// Returns the only part of the policies in this module.
fn only() -> PartId {
    PartId::from_index(0)
}
