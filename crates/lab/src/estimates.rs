//! Estimated costs of engines over a policy's rules, by part.

use std::time::Duration;

use classyard::estimate::{Estimate, Shape};
use classyard::machine::Machine;
use classyard::{BuildError, EngineSpec, Limits, Policy};
use serde::Serialize;

/// The shapes of a policy's parts.
pub struct Shapes(Vec<Shape>);

/// The estimate of an engine over all parts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EstimateRow {
    /// Bytes of the built classifiers, rules included.
    pub bytes: usize,
    /// CPU time to build them.
    pub build_seconds: f64,
    /// Nanoseconds per header in batches; mean over parts, weighted by their rules.
    pub lookup_ns: f64,
    /// Nanoseconds per header in single lookups, averaged likewise.
    pub single_ns: f64,
    /// Nanoseconds per rule change, the same mean; absent for static engines.
    pub update_ns: Option<f64>,
}

impl Shapes {
    /// Measures a policy.
    pub fn of(policy: &Policy) -> Shapes {
        Shapes(policy.parts().iter().map(Shape::of).collect())
    }

    /// Returns the shapes of the parts.
    pub fn parts(&self) -> &[Shape] {
        &self.0
    }

    /// Returns the shapes of half of each part's rules.
    pub(crate) fn halves(&self) -> Shapes {
        let halves = self.0.iter().map(|shape| {
            let half = shape.rules() / 2;
            shape.with_rules(half)
        });
        Shapes(halves.collect())
    }

    /// Estimates the cost of an engine on a machine.
    ///
    /// # Errors
    /// The [`BuildError`] of the first part that the engine would refuse.
    #[allow(clippy::cast_precision_loss)] // means
    pub fn estimate(
        &self,
        spec: &EngineSpec,
        machine: &Machine,
    ) -> Result<EstimateRow, BuildError> {
        let parts = self.0.iter();
        let limits = Limits::default();
        let parts = parts.map(|shape| spec.estimate_on(shape, &limits, machine));
        let parts: Vec<Estimate> = parts.collect::<Result<_, _>>()?;
        // If all parts are empty, each of them has the same weight.
        let weights = self.0.iter().map(|shape| shape.rules() as f64 + 1e-9);
        let weights: Vec<f64> = weights.collect();
        let total_weight: f64 = weights.iter().sum();
        let mean = |ns: fn(&Estimate) -> f64| {
            let weighted = parts.iter().zip(&weights);
            weighted
                .map(|(part, weight)| ns(part) * weight)
                .sum::<f64>()
                / total_weight
        };
        let dynamic = parts.iter().all(|part| part.update_ns.is_some());
        let update_ns = mean(|part| part.update_ns.unwrap_or_default());
        Ok(EstimateRow {
            bytes: parts.iter().map(|part| part.bytes).sum(),
            build_seconds: parts
                .iter()
                .map(|part| part.build)
                .sum::<Duration>()
                .as_secs_f64(),
            lookup_ns: mean(|part| part.lookup_ns),
            single_ns: mean(|part| part.single_ns),
            update_ns: dynamic.then_some(update_ns),
        })
    }
}
