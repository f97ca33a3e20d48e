//! Warnings of updates that take long, such as updates of a static engine in `sfl`
//! that is slow to build.

use std::time::Duration;

use classyard::EngineSpec;
use classyard_report::reporter::Reporter;

use crate::bench::{Field, Plan, Subject};
use crate::estimates::Shapes;

/// Longer estimates cause a warning.
const MIN_WARNED_TIME: Duration = Duration::from_secs(120);

/// The number of times that each repeat runs the list of updates: without lookups,
/// with lookups, and with each update timed.
const LISTS_PER_REPEAT: usize = 3;

/// Warns of engines whose updates on a subject are estimated to take long.
pub(super) fn warn(subject: &Subject, field: &Field, plan: &Plan, reporter: Reporter) {
    for (spec, time) in long(subject, field, plan) {
        reporter.warn(&format!(
            "{}: the updates of {spec} are estimated to take {:.0} minutes; with fewer --changes \
             they take less time",
            subject.name,
            time.as_secs_f64() / 60.0
        ));
    }
}

/// Returns the engines whose updates are estimated to take long, and their
/// estimates.
#[allow(clippy::cast_precision_loss)] // an estimate
fn long<'f>(subject: &Subject, field: &'f Field, plan: &Plan) -> Vec<(&'f EngineSpec, Duration)> {
    let updates = plan.update_repeats * LISTS_PER_REPEAT * 2 * plan.changes;
    let mut dynamic = field.engines.iter().filter(|spec| spec.is_dynamic());
    if updates == 0 || dynamic.clone().next().is_none() {
        return Vec::new();
    }
    let halves = Shapes::of(&subject.policy).halves();
    let mut slow_engines = Vec::new();
    for spec in &mut dynamic {
        let estimate = halves.estimate(spec, &field.machine).ok();
        let Some(update_ns) = estimate.and_then(|estimate| estimate.update_ns) else {
            continue;
        };
        let time = Duration::try_from_secs_f64(update_ns * 1e-9 * updates as f64);
        let time = time.unwrap_or(Duration::MAX);
        if time > MIN_WARNED_TIME {
            slow_engines.push((spec, time));
        }
    }
    slow_engines
}

#[cfg(test)]
mod tests {
    use classyard::NoProgress;
    use classyard::machine::Machine;

    use super::*;
    use crate::bench::{generated_policy, generated_trace};
    use classyard_report::input::build_limits::BuildLimits;
    use classyard_report::input::family::{FamilyName, profile};

    #[test]
    fn a_static_engine_that_is_rebuilt_often_is_warned_of() {
        let family = FamilyName::Ipv4.with(profile("acl1").unwrap(), 0.0);
        let policy = generated_policy(family, 2_000, 1, &mut NoProgress).unwrap();
        let trace = generated_trace(&policy, 10, 1, &mut NoProgress).unwrap();
        let subject = Subject {
            name: "acl1".to_owned(),
            size: "2k".to_owned(),
            policy,
            trace,
            expected: None,
        };
        let engines = ["hyper-split", "forest", "sfl(hyper-split):delta=0"];
        let field = Field {
            engines: engines.map(|spec| EngineSpec::parse(spec).unwrap()).into(),
            limits: BuildLimits::default(),
            machine: Machine::default(),
            peers: Vec::new(),
            peer_limit: Duration::ZERO,
            threads: None,
        };
        let mut plan = Plan {
            repeats: 1,
            update_repeats: 3,
            changes: 200_000,
            seed: 1,
            trial: false,
        };
        let slow_engines = long(&subject, &field, &plan);
        let [(spec, time)] = slow_engines[..] else {
            panic!("{slow_engines:?}");
        };
        assert_eq!(spec.to_string(), engines[2]);
        assert!(time > Duration::from_secs(300), "{time:?}");
        plan.changes = 10;
        assert!(long(&subject, &field, &plan).is_empty());
        (plan.changes, plan.update_repeats) = (200_000, 0);
        assert!(long(&subject, &field, &plan).is_empty());
    }
}
