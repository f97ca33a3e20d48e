//! What trees would cost.
//!
//! Records of rules are most of the memory, so a mean number of nodes for each rule
//! is near enough. How many partitions there are depends on how rules overlap, of
//! which the number of tuples says a little.

#![allow(clippy::cast_precision_loss)] // estimates

use super::check_rules;
use super::node::Node;
use crate::engine::EngineSpec;
use crate::engine::adapter::at_width;
use crate::engine::tuple_space::{Arena, EntryIndex};
use crate::error::BuildError;
use crate::estimate::{Estimate, Shape, dependent_line_ns, nanoseconds, prefetched_line_ns};
use crate::id_map::IdMap;
use crate::schema::Schema;

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

pub(super) fn estimate(_: &EngineSpec, shape: &Shape) -> Result<Estimate, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules());
    let count = rules as f64;
    let records = at_width!(schema, record_bytes(schema, rules));
    let nodes = crate::estimate::whole(count * NODES) * size_of::<Node>();
    let bytes = records + IdMap::<EntryIndex>::bytes_for(rules, shape.id_groups()) + nodes;
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
        lookup_ns: LOOKUP_NS + looked_at * walk,
        update_ns: Some(UPDATE_NS + looked_at * (TRY_NS + fetched)),
    })
}
