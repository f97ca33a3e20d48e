//! What a tree over many rules would have, from trees over a few of them.
//!
//! How often rules are in several leaves depends on how they overlap, which no
//! simple count says. So trees over a sample of the rules are built, and what they
//! have for each rule is extrapolated.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::error::BuildError;
use crate::estimate::{Costs, Shape};
use crate::machine::Work;

/// The smaller of two samples has this share of the rules of the larger one.
const SHARE: usize = 4;

/// What a tree has for each rule, and what a lookup meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine) struct PerRule {
    pub(in crate::engine) nodes: f64,
    pub(in crate::engine) places: f64,
    /// Rules put into nodes while building.
    pub(in crate::engine) work: f64,
    /// Nodes above a leaf, for a header of a random rule in the mean.
    pub(in crate::engine) depth: f64,
    /// Rules of a leaf, in the same mean.
    pub(in crate::engine) length: f64,
}

impl PerRule {
    /// Extrapolates to `rules` rules from trees over a sample, `some`, and over a
    /// quarter of it, which `grow` builds. What trees have is a power of the number
    /// of rules, until there are `most` of what `bounded` counts for each rule;
    /// from there on leaves get longer.
    ///
    /// # Errors
    /// Those of `grow`.
    pub(in crate::engine) fn predict(
        some: &[u32],
        rules: usize,
        most: usize,
        bounded: impl Fn(&PerRule) -> f64,
        mut grow: impl FnMut(usize, &mut dyn Iterator<Item = u32>) -> Result<PerRule, BuildError>,
    ) -> Result<PerRule, BuildError> {
        let mut of = |count: usize| {
            let at = (0..count).map(|number| some[number * some.len() / count]);
            grow(count, &mut { at })
        };
        let count = some.len().min(rules);
        let large = of(count)?;
        if count >= rules || count < SHARE {
            return Ok(large);
        }
        let small = of(count / SHARE)?;
        let step = (count as f64 / (count / SHARE) as f64).ln();
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
        let held = (most as f64 / bounded(&free)).min(1.0);
        Ok(PerRule {
            nodes: free.nodes * held,
            places: free.places * held,
            work: free.work * held,
            ..free
        })
    }
}

/// What a tree would be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::engine) struct Prediction {
    /// Bytes held, the rules included.
    pub(in crate::engine) bytes: usize,
    pub(in crate::engine) build: Work,
    /// A header of a batch.
    pub(in crate::engine) batch: Work,
    /// A header looked up alone.
    pub(in crate::engine) single: Work,
}

impl Prediction {
    /// Of two trees that are both searched.
    pub(in crate::engine) fn and(self, other: Prediction) -> Prediction {
        Prediction {
            bytes: self.bytes.saturating_add(other.bytes),
            build: self.build + other.build,
            batch: self.batch + other.batch,
            single: self.single + other.single,
        }
    }

    /// Those of an engine that takes no updates.
    pub(in crate::engine) fn costs(self) -> Costs {
        Costs {
            bytes: self.bytes,
            build: self.build,
            batch: self.batch,
            single: self.single,
            update: None,
        }
    }
}

/// The most rules of a shape's sample over which trees are built.
const SAMPLED: usize = 2048;

/// The indices of rules of a shape's sample.
pub(in crate::engine) fn indices(shape: &Shape) -> Vec<u32> {
    let sample = shape.sample().len();
    let step = sample.div_ceil(SAMPLED).max(1);
    (0..=u32::MAX).take(sample).step_by(step).collect()
}
