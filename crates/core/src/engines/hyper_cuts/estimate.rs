//! Estimates the costs of a tree.

#![allow(clippy::cast_precision_loss)] // estimates

use super::check_rules;
use super::grow::{Bounds, Grow};
use super::node::Nodes;
use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::observe::{Met, Prices};
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::ruleset::RuleSet;
use crate::parts::ranked::RankedRules;
use crate::parts::tree::{PerRule, Prediction, indices};

/// Costs of lookups in batches and of single lookups. `crate::cost::estimate` describes the
/// measurements behind them.
const BATCH: Prices = Prices {
    lookup: 189.0,
    probe: 77.0,
    probe_word: 0.8,
    compare: 20.3,
    compare_word: 2.15,
    probe_lines: 1.0,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    probe: 112.5,
    probe_word: 0.2,
    compare: 17.9,
    compare_word: 2.1,
    lines: 1.6,
    ..Prices::NONE
};

// Numbers of instructions. `crate::cost::estimate` describes the measurements behind them.
/// To copy a rule, and to divide rules by each field.
const COPY_INSTRUCTIONS: f64 = 600.0;
const FIELD_INSTRUCTIONS: f64 = 600.0;
/// To copy a rule to a child, including the choice of cuts, which depends on the
/// number of fields.
const CHILD_COPY_INSTRUCTIONS: f64 = 1100.0;
const CHILD_COPY_FIELD_INSTRUCTIONS: f64 = 300.0;

/// Predicts the costs of a tree over `count` rules. `some` has the indices of a
/// sample of these rules in a rule set. Builds trees over the sample.
///
/// # Errors
/// The errors of a [`Monitor`].
pub(crate) fn predict(
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
    let in_all = |of_each: f64| whole((of_each * count as f64).ceil());
    let nodes = Nodes::bytes_of(in_all(tree.nodes).max(1));
    let lists = bytes_of::<u32>(in_all(tree.places));
    let bytes = rules_bytes.saturating_add(nodes).saturating_add(lists);
    // A lookup also visits the leaf, and compares half of its rules.
    let met = Met {
        probes: tree.depth + 1.0,
        compared: (tree.length / 2.0).max(1.0),
    };
    let copying = COPY_INSTRUCTIONS + FIELD_INSTRUCTIONS * fields;
    let copied = CHILD_COPY_INSTRUCTIONS + CHILD_COPY_FIELD_INSTRUCTIONS * fields;
    Ok(Prediction {
        bytes,
        build: Work::of(count as f64 * (copying + tree.work * copied)),
        batch: BATCH.batch_among(&met, rules.schema(), count, bytes),
        single: SINGLE.single_among(&met, rules.schema(), count, bytes),
    })
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let (sample, count) = (shape.sample(), shape.rules());
    let predict =
        |monitor: &mut Monitor<'_>| predict(spec, sample, &indices(shape), count, monitor);
    let predicted = unwatched(predict);
    let (met, bytes) = (Met::of_tree(spec, shape)?, predicted.bytes);
    Ok(Costs {
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        ..predicted.costs()
    })
}
