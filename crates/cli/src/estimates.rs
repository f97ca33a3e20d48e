//! What engines would cost over a policy's rules, part by part.

use std::time::Duration;

use classyard::estimate::{Estimate, Shape};
use classyard::machine::Machine;
use classyard::{BuildError, EngineSpec, Limits, Policy};
use serde::Serialize;

/// The shapes of a policy's parts.
pub(crate) struct Shapes(Vec<Shape>);

/// The estimate of an engine over all parts.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct EstimateRow {
    /// Bytes of the built classifiers, rules included.
    pub(crate) bytes: usize,
    /// CPU time to build them.
    pub(crate) build_seconds: f64,
    /// Nanoseconds a header in batches; the mean over parts by their rules.
    pub(crate) lookup_ns: f64,
    /// Nanoseconds a header that is looked up alone, likewise.
    pub(crate) single_ns: f64,
    /// Nanoseconds a rule change, likewise; absent for static engines.
    pub(crate) update_ns: Option<f64>,
}

impl Shapes {
    /// Measures a policy.
    pub(crate) fn of(policy: &Policy) -> Shapes {
        Shapes(policy.parts().iter().map(Shape::of).collect())
    }

    /// The parts' shapes.
    pub(crate) fn parts(&self) -> &[Shape] {
        &self.0
    }

    /// Half of the rules of each part.
    pub(crate) fn halves(&self) -> Shapes {
        let halves = self.0.iter().map(|shape| {
            let half = shape.rules() / 2;
            shape.with_rules(half)
        });
        Shapes(halves.collect())
    }

    /// What an engine would cost on a machine.
    ///
    /// # Errors
    /// The [`BuildError`] of the first part that it would refuse.
    #[allow(clippy::cast_precision_loss)] // means
    pub(crate) fn estimate(
        &self,
        spec: &EngineSpec,
        machine: &Machine,
    ) -> Result<EstimateRow, BuildError> {
        let parts = self.0.iter();
        let limits = Limits::default();
        let parts = parts.map(|shape| spec.estimate_on(shape, &limits, machine));
        let parts: Vec<Estimate> = parts.collect::<Result<_, _>>()?;
        // A part without rules counts if no other has any.
        let weights = self.0.iter().map(|shape| shape.rules() as f64 + 1e-9);
        let weights: Vec<f64> = weights.collect();
        let all: f64 = weights.iter().sum();
        let mean = |ns: fn(&Estimate) -> f64| {
            let weighted = parts.iter().zip(&weights);
            weighted
                .map(|(part, weight)| ns(part) * weight)
                .sum::<f64>()
                / all
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
