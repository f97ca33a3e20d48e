//! Estimates of the costs of a decision tree.

#![allow(clippy::cast_precision_loss)] // estimates

use super::engine::{TreeKind, TreeNodes, check_rules};
use super::{PerRule, Prediction, indices};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::observe::Met;
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::ruleset::RuleSet;
use crate::parts::ranked::RankedRules;

/// Predicts the costs of a tree over `count` rules. `some` has the indices of a
/// sample of these rules in a rule set. Builds trees over the sample.
///
/// # Errors
/// The errors of a [`Monitor`].
pub(crate) fn predict<K: TreeKind>(
    spec: &EngineSpec,
    rules: &RuleSet,
    some: &[u32],
    count: usize,
    monitor: &mut Monitor<'_>,
) -> Result<Prediction, BuildError> {
    let (prices, limits) = (K::PRICES, Limits::default());
    let tree = PerRule::predict(
        some,
        count,
        spec.options().whole("places"),
        |tree| tree.places + if prices.bounds_nodes { tree.nodes } else { 0.0 },
        |count, some| {
            let ranked = RankedRules::build_some(rules, count, some, &limits, monitor)?;
            let grown = K::grow(spec, &ranked, count, &limits, monitor)?;
            monitor.memory().drop_kept(ranked.bytes() + grown.bytes());
            let count = count.max(1) as f64;
            Ok(PerRule {
                nodes: grown.nodes.len() as f64 / count,
                places: grown.lists.places() as f64 / count,
                work: grown.copies as f64 / count,
                depth: grown.outline.mean_depth,
                length: grown.outline.mean_rules,
            })
        },
    )?;
    let rules_bytes = RankedRules::bytes_of(rules.schema(), count);
    let fields = rules.schema().fields().len() as f64;
    let in_all = |of_each: f64| whole((of_each * count as f64).ceil());
    let nodes = K::Nodes::bytes_of(in_all(tree.nodes).max(prices.min_nodes));
    let lists = bytes_of::<u32>(in_all(tree.places));
    let bytes = rules_bytes.saturating_add(nodes).saturating_add(lists);
    // A lookup also visits the leaf, and compares half of its rules.
    let met = Met {
        probes: tree.depth + 1.0,
        compared: (tree.length / 2.0).max(1.0),
    };
    let copying = prices.copy + prices.field * fields;
    let child_copy = prices.child_copy + prices.child_copy_field * fields;
    let (batch, single) = (&prices.batch, &prices.single);
    Ok(Prediction {
        bytes,
        build: Work::of(count as f64 * (copying + tree.work * child_copy)),
        batch: batch.batch_among(&met, rules.schema(), count, bytes),
        single: single.single_among(&met, rules.schema(), count, bytes),
    })
}

/// Estimates the costs of a tree over rules of a shape.
///
/// # Errors
/// [`BuildError::EngineFull`]
pub(crate) fn estimate<K: TreeKind>(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules::<K>(shape.rules())?;
    let (sample, count) = (shape.sample(), shape.rules());
    let predict =
        |monitor: &mut Monitor<'_>| predict::<K>(spec, sample, &indices(shape), count, monitor);
    let predicted = unwatched(predict);
    let (met, bytes) = (Met::of_tree(spec, shape)?, predicted.bytes);
    Ok(Costs {
        batch: K::PRICES.batch.batch(&met, shape, bytes),
        single: K::PRICES.single.single(&met, shape, bytes),
        ..predicted.costs()
    })
}
