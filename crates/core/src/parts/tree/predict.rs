//! Size and lookups of a tree over many rules, predicted from trees over a few of them.
//!
//! The number of leaves that have a rule depends on how rules overlap, which no simple
//! count shows. So trees are built over a sample of the rules, and their sizes for each
//! rule are extrapolated.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::contract::observe::Prices;
use crate::cost::estimate::{Costs, Shape};
use crate::cost::machine::Work;
use crate::model::error::BuildError;

/// The size of the larger sample, divided by the size of the smaller sample.
/// Measured in `bench/records/constants.md` (Estimates: samples).
const SAMPLE_RATIO: usize = 4;

/// The prices of a tree's work. `crate::cost::estimate` describes the measurements behind
/// them. Build prices are numbers of instructions.
pub(crate) struct TreePrices {
    /// Lookups in batches, and single lookups.
    pub(crate) batch: Prices,
    pub(crate) single: Prices,
    /// To copy a rule, and to divide rules by each field.
    pub(crate) copy: f64,
    pub(crate) field: f64,
    /// To clip or copy a rule to a child, including the choice of cuts, and its part for
    /// each field.
    pub(crate) child_copy: f64,
    pub(crate) child_copy_field: f64,
    /// The least number of nodes that a tree holds.
    pub(crate) min_nodes: usize,
    /// True if the option `places` bounds nodes and places together.
    pub(crate) bounds_nodes: bool,
}

/// The parts of a tree for each rule, and the steps of a lookup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerRule {
    pub(crate) nodes: f64,
    pub(crate) places: f64,
    /// Rules put into nodes by a build.
    pub(crate) work: f64,
    /// The mean number of nodes above a leaf, over headers of random rules.
    pub(crate) depth: f64,
    /// The mean number of rules in a leaf, over the same headers.
    pub(crate) length: f64,
}

impl PerRule {
    /// Extrapolates to `rules` rules from trees over a sample, `some`, and over a
    /// quarter of it, which `grow` builds. Sizes grow as a power of the number of rules,
    /// until `bounded` reaches `most` for each rule. Beyond that only leaves get longer.
    ///
    /// # Errors
    /// Errors of `grow`.
    pub(crate) fn predict(
        some: &[u32],
        rules: usize,
        most: usize,
        bounded: impl Fn(&PerRule) -> f64,
        mut grow: impl FnMut(usize, &mut dyn Iterator<Item = u32>) -> Result<PerRule, BuildError>,
    ) -> Result<PerRule, BuildError> {
        let mut grow_over = |count: usize| {
            let chosen = (0..count).map(|number| some[number * some.len() / count]);
            grow(count, &mut { chosen })
        };
        let count = some.len().min(rules);
        let large = grow_over(count)?;
        if count >= rules || count < SAMPLE_RATIO {
            return Ok(large);
        }
        let small = grow_over(count / SAMPLE_RATIO)?;
        let step = (count as f64 / (count / SAMPLE_RATIO) as f64).ln();
        let times = rules as f64 / count as f64;
        let grown = |from: f64, to: f64| {
            let power = ((to / from).ln() / step).clamp(-1.0, 1.0);
            to * times.powf(if power.is_nan() { 0.0 } else { power })
        };
        let free = PerRule {
            nodes: grown(small.nodes, large.nodes),
            places: grown(small.places, large.places),
            work: grown(small.work, large.work),
            depth: grown(small.depth, large.depth),
            length: grown(small.length, large.length),
        };
        let bound = (most as f64 / bounded(&free)).min(1.0);
        Ok(PerRule {
            nodes: free.nodes * bound,
            places: free.places * bound,
            work: free.work * bound,
            ..free
        })
    }
}

/// The predicted costs of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Prediction {
    /// Bytes held, including the rules.
    pub(crate) bytes: usize,
    pub(crate) build: Work,
    /// Work for a header in a batch.
    pub(crate) batch: Work,
    /// Work for a single header.
    pub(crate) single: Work,
}

impl Prediction {
    /// Adds the costs of two trees that are both searched.
    pub(crate) fn and(self, other: Prediction) -> Prediction {
        Prediction {
            bytes: self.bytes.saturating_add(other.bytes),
            build: self.build + other.build,
            batch: self.batch + other.batch,
            single: self.single + other.single,
        }
    }

    /// Returns the costs of an engine that takes no updates.
    pub(crate) fn costs(self) -> Costs {
        Costs {
            bytes: self.bytes,
            build: self.build,
            batch: self.batch,
            single: self.single,
            update: None,
        }
    }
}

/// The largest sample over which trees are built. Measured in
/// `bench/records/constants.md` (Estimates: samples).
const MAX_SAMPLE_RULES: usize = 2048;

/// Returns the indices of a shape's sampled rules.
pub(crate) fn indices(shape: &Shape) -> Vec<u32> {
    let sample = shape.sample().len();
    let step = sample.div_ceil(MAX_SAMPLE_RULES).max(1);
    (0..=u32::MAX).take(sample).step_by(step).collect()
}
