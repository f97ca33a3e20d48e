//! What a tree would cost.

#![allow(clippy::cast_precision_loss)] // estimates

use super::check_rules;
use super::grow::{Bounds, Grow};
use super::node::Nodes;
use crate::engine::EngineSpec;
use crate::engine::ranked::RankedRules;
use crate::engine::tree::{PerRule, Prediction, indices};
use crate::error::BuildError;
use crate::estimate::{Estimate, Shape, dependent_line_ns, prefetched_line_ns, whole};
use crate::limits::Limits;
use crate::memory::bytes_of;
use crate::monitor::{Monitor, unwatched};
use crate::ruleset::RuleSet;

// Prices in nanoseconds; what they were fitted to: see `estimate`.
/// A lookup besides what follows.
const LOOKUP_NS: f64 = 15.0;
/// Going down to a child, beside reading it.
const NODE_NS: f64 = 1.0;
/// Comparing a rule.
const RULE_NS: f64 = 1.0;
/// Copying a rule, and dividing each of its fields.
const COPY_NS: f64 = 60.0;
const FIELD_NS: f64 = 100.0;
/// Copying a rule to a child, choosing cuts included.
const COPIED_NS: f64 = 20.0;

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
    let copying = COPY_NS + FIELD_NS * fields;
    Ok(Prediction {
        bytes,
        build_ns: count * (copying + tree.work * COPIED_NS),
        lookup_ns: LOOKUP_NS
            + tree.depth * (NODE_NS + dependent_line_ns(nodes) / 16.0)
            + compared * RULE_NS
            + 2.0 * prefetched_line_ns(bytes),
    })
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Estimate, BuildError> {
    check_rules(shape.rules())?;
    let (sample, count) = (shape.sample(), shape.rules());
    let predict =
        |monitor: &mut Monitor<'_>| predict(spec, sample, &indices(shape), count, monitor);
    Ok(unwatched(predict).estimate())
}
