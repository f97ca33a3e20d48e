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
use crate::estimate::{Costs, Shape, whole};
use crate::id_map::IdMap;
use crate::limits::Limits;
use crate::machine::Work;
use crate::monitor::unwatched;
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::Seed;

/// Nodes for each rule.
const NODES: f64 = 0.12;

// Instructions; what they were fitted to: see `crate::estimate`.
/// A lookup besides what follows.
const LOOKUP: f64 = 80.0;
/// Going down to a child, beside reading it.
const NODE: f64 = 25.0;
/// Comparing a rule.
const RULE: f64 = 40.0;
/// An update besides what follows, and trying a partition.
const UPDATE: f64 = 2500.0;
const TRY: f64 = 300.0;
/// Reading and sorting the interval of a rule while building.
const INTERVAL: f64 = 400.0;
/// Storing a rule while building.
const STORE: f64 = 600.0;

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

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules());
    let rest = whole(rules as f64 * rest(spec, shape));
    let mut in_rest = Costs::default();
    if rest > 0 {
        let tuples = EngineSpec::named("tss").expect("a registered engine");
        in_rest = tuples.costs(&shape.with_rules(rest), &Limits::default())?;
    }
    let in_trees = rules - rest.min(rules);
    let count = rules as f64;
    let records = at_width!(schema, record_bytes(schema, in_trees));
    let nodes = whole(in_trees as f64 * NODES) * size_of::<Node>();
    let ids = IdMap::<EntryIndex>::bytes_for(in_trees, shape.id_groups());
    let bytes = records + ids + nodes + in_rest.bytes;
    // A sortable set takes rules of several tuples.
    let partitions = (shape.tuples().len() as f64).powf(0.4).clamp(1.0, 30.0);
    let depth = (1.0 + count / partitions).log2() / 2.5;
    let looked_at = 1.0 + partitions / 3.0;
    let fields = schema.fields().len() as f64;
    let instructions = LOOKUP + looked_at * (depth * NODE + RULE);
    let batch = Work::of(instructions)
        .reading_ahead(looked_at * depth, nodes)
        .reading_ahead(looked_at, records);
    let single = Work::of(instructions)
        .mispredicting(looked_at)
        .reading(looked_at * depth / 4.0, nodes)
        .reading(looked_at, records);
    let update = Work::of(UPDATE + looked_at * TRY)
        .reading(looked_at, nodes)
        .reading(looked_at, records);
    Ok(Costs {
        bytes,
        build: Work::of(count * (STORE + INTERVAL * fields * partitions.sqrt())),
        batch: batch + in_rest.batch,
        single: single + in_rest.single,
        update: Some(update),
    })
}
