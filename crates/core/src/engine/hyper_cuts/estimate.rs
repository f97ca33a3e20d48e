//! What a tree would cost.

#![allow(clippy::cast_precision_loss)] // estimates

use super::check_rules;
use super::grow::{Bounds, Grow};
use super::node::Nodes;
use crate::engine::EngineSpec;
use crate::engine::ranked::RankedRules;
use crate::engine::tree::{PerRule, Prediction, indices};
use crate::error::BuildError;
use crate::estimate::{Costs, Shape, whole};
use crate::limits::Limits;
use crate::machine::Work;
use crate::memory::bytes_of;
use crate::monitor::{Monitor, unwatched};
use crate::ruleset::RuleSet;

// Instructions; what they were fitted to: see `crate::estimate`.
/// A lookup besides what follows.
const LOOKUP: f64 = 150.0;
/// Going down to a child, beside reading it.
const NODE: f64 = 10.0;
/// Comparing a rule.
const RULE: f64 = 10.0;
/// Copying a rule, and dividing each of its fields.
const COPY: f64 = 600.0;
const FIELD: f64 = 1000.0;
/// Copying a rule to a child, choosing cuts included.
const COPIED: f64 = 200.0;

/// What a tree over `count` rules would be, of which `some` are a sample, by their
/// indices in a rule set. Builds trees over the sample.
///
/// # Errors
/// Those of a [`Monitor`].
pub(in crate::engine) fn predict(
    spec: &EngineSpec,
    rules: &RuleSet,
    some: &[u32],
    count: usize,
    monitor: &mut Monitor<'_>,
) -> Result<Prediction, BuildError> {
    let limits = Limits::default();
    let tree = PerRule::predict(
        some,
        count,
        spec.options().whole("places"),
        |tree| tree.places + tree.nodes,
        |count, some| {
            let bounds = Bounds::new(spec, count);
            let ranked = RankedRules::build_some(rules, count, some, &limits, monitor)?;
            let grown = Grow::tree(&ranked, &limits, bounds, monitor)?;
            let held = ranked.bytes() + grown.nodes.bytes() + grown.lists.bytes();
            monitor.memory().drop_kept(held);
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
    let count = count as f64;
    let nodes = Nodes::bytes_of(whole((tree.nodes * count).ceil()).max(1));
    let lists = bytes_of::<u32>(whole((tree.places * count).ceil()));
    let bytes = rules_bytes.saturating_add(nodes).saturating_add(lists);
    let compared = (tree.length / 2.0).max(1.0);
    let copying = COPY + FIELD * fields;
    let instructions = LOOKUP + tree.depth * NODE + compared * RULE;
    Ok(Prediction {
        bytes,
        build: Work::of(count * (copying + tree.work * COPIED)),
        batch: Work::of(instructions)
            .reading(tree.depth / 16.0, nodes)
            .reading_ahead(2.0, bytes),
        single: Work::of(instructions)
            .mispredicting(1.0)
            .reading(tree.depth / 2.0, nodes)
            .reading(2.0, bytes),
    })
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let (sample, count) = (shape.sample(), shape.rules());
    let predict =
        |monitor: &mut Monitor<'_>| predict(spec, sample, &indices(shape), count, monitor);
    Ok(unwatched(predict).costs())
}
