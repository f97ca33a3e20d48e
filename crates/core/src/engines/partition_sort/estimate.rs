//! Estimates of memory and work.
//!
//! Records of rules take most of the memory, so a mean number of nodes for each rule is
//! accurate enough. The number of partitions depends on how rules overlap, and is
//! estimated from the number of tuples. The number of rules that no partition takes is
//! counted for the sample, with `partitions` reduced in proportion to the sample's size.

#![allow(clippy::cast_precision_loss)] // estimates

use super::node::Node;
use super::{PartitionSort, check_rules};
use crate::budget::monitor::unwatched;
use crate::contract::adapter::at_width;
use crate::contract::observe::{Growth, Met, Prices};
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::Seed;
use crate::parts::id_map::IdMap;
use crate::parts::tuple_space::{Arena, EntryIndex};

/// Nodes for each rule. Measured in `bench/records/constants.md` (Estimates of other
/// engines).
const NODES_PER_RULE: f64 = 0.12;

/// Growth of probes and comparisons of a lookup with the number of rules. Chosen by
/// rule sets of 30,000 rules (`bench/README.md`, Estimates).
const GROWTH: Growth = [0.0, 0.15];

/// Costs of lookups, in batches and single; `crate::cost::estimate` describes the fit.
const BATCH: Prices = Prices {
    lookup: 104.0,
    probe: 67.0,
    probe_doubling: 13.6,
    probe_word: 13.4,
    compare: 24.0,
    probe_lines: 2.8,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    lookup: 275.0,
    probe_doubling: 16.7,
    probe_word: 4.8,
    compare: 31.0,
    lines: 0.34,
    ..Prices::NONE
};

// Instructions; `crate::cost::estimate` describes the fit.
/// Instructions of an update, and cache lines that it reads one after the other.
const UPDATE_WORK: f64 = 1320.0;
const UPDATE_LINES: f64 = 22.0;
/// Instructions of placing a rule in a build: fixed, for each word of a key beyond
/// two, and for each partition.
const PLACE_WORK: f64 = 4000.0;
const PLACE_WORD: f64 = 990.0;
const PLACE_PARTITION: f64 = 100.0;

fn record_bytes<const W: usize>(schema: &Schema, rules: usize) -> usize {
    Arena::<W>::bytes_for(schema, rules)
}

/// Returns the share of the rules that no partition takes.
fn rest(spec: &EngineSpec, shape: &Shape) -> f64 {
    let sample = shape.sample();
    let (rules, sampled) = (shape.rules().max(1), sample.len().max(1));
    let max_partitions = spec.options().whole("partitions").saturating_mul(sampled) / rules;
    let leaf = spec.options().whole("leaf");
    let placed = at_width!(
        shape.schema(),
        placed_in_rest(sample, leaf, max_partitions.max(1))
    );
    placed as f64 / sampled as f64
}

/// Returns the number of rules in a set that no partition takes.
fn placed_in_rest<const W: usize>(rules: &RuleSet, leaf: usize, most: usize) -> usize {
    let mut built = PartitionSort::<W>::new(rules.schema(), leaf, most, Seed::new(0));
    unwatched(|monitor| built.place_all(rules, monitor));
    built.rest.space.len()
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules());
    let rules_in_rest = whole(rules as f64 * rest(spec, shape));
    let mut in_rest = Costs::default();
    if rules_in_rest > 0 {
        let tuples = EngineSpec::named("tss").expect("a registered engine");
        in_rest = tuples.costs(&shape.with_rules(rules_in_rest), &Limits::default())?;
    }
    let in_trees = rules - rules_in_rest.min(rules);
    let count = rules as f64;
    let records = at_width!(schema, record_bytes(schema, in_trees));
    let nodes = whole(in_trees as f64 * NODES_PER_RULE) * size_of::<Node>();
    let ids = IdMap::<EntryIndex>::bytes_for(in_trees, shape.id_groups());
    let bytes = records + ids + nodes + in_rest.bytes;
    // A sortable partition takes rules of several tuples.
    let partitions = (shape.tuples().len() as f64).powf(0.4).clamp(1.0, 30.0);
    let met = Met::of(spec, shape, GROWTH)?;
    let extra_words = (schema.key_words() as f64 - 2.0).max(0.0);
    let place_work = PLACE_WORK + PLACE_WORD * extra_words + PLACE_PARTITION * partitions;
    Ok(Costs {
        bytes,
        build: Work::of(count * place_work),
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        update: Some(Work::of(UPDATE_WORK).reading(UPDATE_LINES, bytes)),
    })
}
