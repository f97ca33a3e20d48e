//! Warnings of updates that take long, such as those of a static engine in `sfl` that
//! is slow to build.

use std::time::Duration;

use classyard::EngineSpec;

use crate::bench::{Field, Plan, Subject};
use crate::estimates::Shapes;
use crate::reporter::Reporter;

/// Longer than this is long.
const LONG: Duration = Duration::from_secs(120);

/// How often the list of updates is made in each repeat: without lookups, with
/// lookups, and with a clock around each.
const LISTS: usize = 3;

/// Says which engines' updates are estimated to take long on a subject.
pub(super) fn warn(subject: &Subject, field: &Field, plan: &Plan, reporter: Reporter) {
    for (spec, time) in long(subject, field, plan) {
        reporter.warn(&format!(
            "{}: the updates of {spec} are estimated to take {:.0} minutes; with fewer --changes \
             they take less",
            subject.name,
            time.as_secs_f64() / 60.0
        ));
    }
}

/// Engines whose updates are estimated to take long, and how long.
#[allow(clippy::cast_precision_loss)] // an estimate
fn long<'f>(subject: &Subject, field: &'f Field, plan: &Plan) -> Vec<(&'f EngineSpec, Duration)> {
    let updates = plan.update_repeats * LISTS * 2 * plan.changes;
    let mut dynamic = field.engines.iter().filter(|spec| spec.is_dynamic());
    if updates == 0 || dynamic.clone().next().is_none() {
        return Vec::new();
    }
    let halves = Shapes::of(&subject.policy).halves();
    let mut found = Vec::new();
    for spec in &mut dynamic {
        let estimate = halves.estimate(spec, &field.machine).ok();
        let Some(update_ns) = estimate.and_then(|estimate| estimate.update_ns) else {
            continue;
        };
        let time = Duration::try_from_secs_f64(update_ns * 1e-9 * updates as f64);
        let time = time.unwrap_or(Duration::MAX);
        if time > LONG {
            found.push((spec, time));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use classyard::NoProgress;
    use classyard::machine::Machine;

    use super::*;
    use crate::bench::{generated_policy, generated_trace};
    use crate::input::build_limits::BuildLimits;
    use crate::input::family::{FamilyName, profile};

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
        };
        let mut plan = Plan {
            repeats: 1,
            update_repeats: 3,
            changes: 200_000,
            seed: 1,
            trial: false,
        };
        let found = long(&subject, &field, &plan);
        let [(spec, time)] = found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(spec.to_string(), engines[2]);
        assert!(time > Duration::from_secs(300), "{time:?}");
        plan.changes = 10;
        assert!(long(&subject, &field, &plan).is_empty());
        (plan.changes, plan.update_repeats) = (200_000, 0);
        assert!(long(&subject, &field, &plan).is_empty());
    }
}
