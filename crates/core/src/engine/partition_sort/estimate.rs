//! What trees would cost.
//!
//! Records of rules are most of the memory, so a mean number of nodes for each rule
//! is near enough. How many partitions there are depends on how rules overlap, of
//! which the number of tuples says a little. How many rules no partition takes is
//! found out for the sample, with as much fewer partitions as it has fewer rules.

#![allow(clippy::cast_precision_loss)] // estimates

use super::node::Node;
use super::{PartitionSort, check_rules};
use crate::engine::EngineSpec;
use crate::engine::adapter::at_width;
use crate::engine::tuple_space::{Arena, EntryIndex};
use crate::error::BuildError;
use crate::estimate::{Estimate, Shape, dependent_line_ns, nanoseconds, prefetched_line_ns, whole};
use crate::id_map::IdMap;
use crate::limits::Limits;
use crate::monitor::unwatched;
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::Seed;

/// Nodes for each rule.
const NODES: f64 = 0.12;

// Prices in nanoseconds; what they were fitted to: see `estimate`.
/// A lookup besides what follows.
const LOOKUP_NS: f64 = 8.0;
/// Going down to a child, beside reading it.
const NODE_NS: f64 = 2.5;
/// Comparing a rule.
const RULE_NS: f64 = 4.0;
/// An update besides what follows, and trying a partition.
const UPDATE_NS: f64 = 250.0;
const TRY_NS: f64 = 30.0;
/// Reading and sorting the interval of a rule while building.
const INTERVAL_NS: f64 = 40.0;
/// Storing a rule while building.
const STORE_NS: f64 = 60.0;

fn record_bytes<const W: usize>(schema: &Schema, rules: usize) -> usize {
    Arena::<W>::bytes_for(schema, rules)
}

/// The part of the rules that no partition takes.
fn rest(spec: &EngineSpec, shape: &Shape) -> f64 {
    let sample = shape.sample();
    let (all, few) = (shape.rules().max(1), sample.len().max(1));
    let most = spec.options().whole("partitions").saturating_mul(few) / all;
    let leaf = spec.options().whole("leaf");
    let placed = at_width!(shape.schema(), placed_in_rest(sample, leaf, most.max(1)));
    placed as f64 / few as f64
}

/// How many rules of a set no partition takes.
fn placed_in_rest<const W: usize>(rules: &RuleSet, leaf: usize, most: usize) -> usize {
    let mut built = PartitionSort::<W>::new(rules.schema(), leaf, most, Seed::new(0));
    unwatched(|monitor| built.place_all(rules, monitor));
    built.rest.space.len()
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Estimate, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules());
    let rest = whole(rules as f64 * rest(spec, shape));
    let mut in_rest = None;
    if rest > 0 {
        let tuples = EngineSpec::named("tss").expect("a registered engine");
        in_rest = Some(tuples.estimate(&shape.with_rules(rest), &Limits::default())?);
    }
    let rest_bytes = in_rest.map_or(0, |estimate| estimate.bytes);
    let rest_ns = in_rest.map_or(0.0, |estimate| estimate.lookup_ns);
    let in_trees = rules - rest.min(rules);
    let count = rules as f64;
    let records = at_width!(schema, record_bytes(schema, in_trees));
    let nodes = whole(in_trees as f64 * NODES) * size_of::<Node>();
    let ids = IdMap::<EntryIndex>::bytes_for(in_trees, shape.id_groups());
    let bytes = records + ids + nodes + rest_bytes;
    // A sortable set takes rules of several tuples.
    let partitions = (shape.tuples().len() as f64).powf(0.4).clamp(1.0, 30.0);
    let depth = (1.0 + count / partitions).log2() / 2.5;
    let looked_at = 1.0 + partitions / 3.0;
    let walk =
        depth * (NODE_NS + prefetched_line_ns(nodes)) + RULE_NS + prefetched_line_ns(records);
    let fields = schema.fields().len() as f64;
    let fetched = dependent_line_ns(nodes) + dependent_line_ns(records);
    Ok(Estimate {
        bytes,
        build: nanoseconds(count * (STORE_NS + INTERVAL_NS * fields * partitions.sqrt())),
        lookup_ns: LOOKUP_NS + looked_at * walk + rest_ns,
        update_ns: Some(UPDATE_NS + looked_at * (TRY_NS + fetched)),
    })
}
