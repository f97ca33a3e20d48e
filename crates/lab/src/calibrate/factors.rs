//! Measures the ratio of the engines' time on this machine to the predicted time.

use std::time::Duration;

use classyard::Progress;
use classyard::machine::{Machine, Operation};
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::family::{FamilyName, profile};
use classyard_report::registry;
use serde::Serialize;

use crate::bench::{
    self, Field, Measurement, Row, Subject, generated_policy, generated_trace, geometric_mean,
    measure_subject, size_name,
};
use crate::estimates::EstimateRow;

/// The rule sets and headers for measuring engines.
pub(super) struct Plan {
    profiles: &'static [&'static str],
    sizes: &'static [usize],
    headers: usize,
    repeats: usize,
    changes: usize,
    seed: u64,
}

impl Plan {
    /// One profile of each kind, with few rules and with many.
    pub(super) fn full(seed: u64) -> Plan {
        Plan {
            profiles: &["acl2", "fw3", "ipc1"],
            sizes: &[300, 2000, 10_000],
            headers: 8000,
            repeats: 3,
            changes: 500,
            seed,
        }
    }

    /// The minimum for a smoke test.
    pub(super) fn quick(seed: u64) -> Plan {
        Plan {
            profiles: &["acl2"],
            sizes: &[50],
            headers: 200,
            repeats: 1,
            changes: 20,
            seed,
        }
    }
}

/// A factor, with the number and the range of the ratios that it averages.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Factor {
    pub(super) engine: String,
    pub(super) operation: &'static str,
    /// Measured over predicted time, the geometric mean over sets.
    pub(super) factor: f64,
    /// The number of sets.
    pub(super) sets: usize,
    /// The smallest and the largest ratio of a set.
    pub(super) least: f64,
    pub(super) greatest: f64,
}

/// Measures the engines that do not wrap another engine.
///
/// # Errors
/// [`Failure`] if nothing can be built.
pub(super) fn measure(
    plan: &Plan,
    machine: &Machine,
    progress: &mut dyn Progress,
) -> Result<Vec<Factor>, Failure> {
    let engines = registry::all().filter(|spec| spec.inner().is_none());
    let mut field = Field {
        engines: engines.collect(),
        limits: BuildLimits::default().with_engine_bytes(1 << 30),
        machine: machine.clone(),
        peers: Vec::new(),
        peer_limit: Duration::ZERO,
        threads: None,
    };
    let measured = bench::Plan {
        repeats: plan.repeats,
        update_repeats: plan.repeats.min(2),
        changes: plan.changes,
        seed: plan.seed,
        trial: false,
    };
    let sets = plan.profiles.len() * plan.sizes.len();
    let mut rows: Vec<Row> = Vec::new();
    for (number, name) in plan.profiles.iter().enumerate() {
        for (place, &rules) in plan.sizes.iter().enumerate() {
            let done = number * plan.sizes.len() + place;
            classyard::classifier::report(progress, "measuring engines", done, sets)?;
            let mut silent = classyard::NoProgress;
            let family = FamilyName::Ipv4.with(profile(name)?, 0.0);
            let policy = generated_policy(family, rules, plan.seed, &mut silent)?;
            let trace = generated_trace(&policy, plan.headers, plan.seed, &mut silent)?;
            let subject = Subject {
                name: format!("{name} {}", size_name(rules)),
                size: size_name(rules),
                policy,
                trace,
                expected: None,
            };
            rows.extend(measure_subject(
                &subject,
                &mut field,
                &measured,
                &mut silent,
            )?);
        }
    }
    let mut factors = Vec::new();
    for engine in &field.engines {
        let name = engine.to_string();
        let of_engine = rows.iter().filter_map(Row::measured);
        let of_engine = of_engine.filter(|row| row.engine == name);
        let of_engine: Vec<&Measurement> = of_engine.collect();
        for operation in Operation::ALL {
            let ratios = of_engine.iter().filter_map(|row| {
                let estimate = row.estimate.as_ref()?;
                ratio(row, estimate, operation)
            });
            let ratios: Vec<f64> = ratios.collect();
            let Some(factor) = geometric_mean(&ratios) else {
                continue;
            };
            factors.push(Factor {
                engine: engine.engine().name.to_owned(),
                operation: operation.name(),
                factor,
                sets: ratios.len(),
                least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
                greatest: ratios.iter().copied().fold(0.0, f64::max),
            });
        }
    }
    Ok(factors)
}

/// Returns measured over predicted time, limited to the valid range of a factor.
fn ratio(row: &Measurement, estimate: &EstimateRow, operation: Operation) -> Option<f64> {
    let ratio = match operation {
        Operation::Batch => 1e9 / row.batch_headers_per_second.median / estimate.lookup_ns,
        Operation::Single => 1e9 / row.single_headers_per_second.median / estimate.single_ns,
        Operation::Update => 1e9 / row.updates_per_second?.median / estimate.update_ns?,
        Operation::Build => row.build_seconds / estimate.build_seconds,
    };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio.clamp(0.01, 100.0))
}
