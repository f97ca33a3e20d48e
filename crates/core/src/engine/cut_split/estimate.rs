//! What trees would cost.
//!
//! How often rules are in several leaves depends on how they overlap, which no
//! simple count says. So trees over a sample of the rules are made, and what they
//! have for each rule is extrapolated.

#![allow(clippy::cast_precision_loss)] // estimates

use super::fields::Fields;
use super::node::Nodes;
use super::trees::Outline;
use super::{Known, Settings, check_rules};
use crate::engine::EngineSpec;
use crate::engine::adapter::at_width;
use crate::engine::observe::{Growth, Met, Prices};
use crate::error::BuildError;
use crate::estimate::{Costs, Shape, some_of, whole};
use crate::id_map::IdMap;
use crate::machine::Work;
use crate::monitor::unwatched;
use crate::schema::Schema;

use super::rows::Rows;

/// The smaller of two samples has this share of the rules of the larger one.
const SHARE: usize = 4;

/// The greatest power of the number of rules by which what trees have for each rule
/// grows or shrinks.
const MOST_POWER: f64 = 0.1;

/// How what lookups meet grows with the number of rules.
const GROWTH: Growth = [0.0, 0.05];

/// What lookups cost, in batches and alone; what it was fitted to: see
/// `crate::estimate`.
const BATCH: Prices = Prices {
    lookup: 87.0,
    probe: 48.0,
    probe_word: 4.9,
    compare: 27.0,
    probe_lines: 0.1,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    lookup: 154.0,
    probe: 66.0,
    compare: 5.0,
    compare_word: 2.5,
    lines: 0.95,
    ..Prices::NONE
};

// Instructions; what they were fitted to: see `crate::estimate`.
/// Copying a rule, and dividing each of its fields.
const COPY: f64 = 3500.0;
const FIELD: f64 = 1500.0;
/// Clipping a rule to a box, choosing fields included.
const CLIP: f64 = 200.0;
/// An update besides what follows.
const UPDATE: f64 = 3000.0;
/// A place of the changed rule.
const PLACE: f64 = 1500.0;

/// What trees have for each rule.
#[derive(Clone, Copy, Debug)]
struct PerRule {
    nodes: f64,
    places: f64,
    rows: f64,
    clips: f64,
}

impl PerRule {
    /// Makes trees over some rules of the sample.
    fn of(settings: &Settings, shape: &Shape, rules: usize) -> (usize, PerRule) {
        let sample = some_of(shape.sample(), rules);
        let order = sample.by_rank();
        let fields = Fields::new(sample.schema());
        let words = |place: usize| sample.rule(order[place] as usize).words();
        let outline =
            unwatched(|monitor| Outline::new(&fields, settings, sample.len(), &words, monitor));
        let (places, rows) = outline.places();
        let rules = sample.len().max(1) as f64;
        let found = PerRule {
            nodes: outline.nodes() as f64 / rules,
            places: places as f64 / rules,
            rows: rows as f64 / rules,
            clips: outline.clips as f64 / rules,
        };
        (sample.len(), found)
    }
}

/// What trees have is a power of the number of rules. It hardly grows or shrinks,
/// however much it does from one sample to another.
fn per_rule(settings: &Settings, shape: &Shape) -> PerRule {
    let (count, large) = PerRule::of(settings, shape, shape.rules());
    if count >= shape.rules() || count < SHARE {
        return large;
    }
    let (small_count, small) = PerRule::of(settings, shape, count / SHARE);
    let step = (count as f64 / small_count as f64).ln();
    let times = shape.rules() as f64 / count as f64;
    let grown = |from: f64, to: f64, most: f64| {
        let power = ((to / from).ln() / step).clamp(-MOST_POWER, MOST_POWER);
        let power = if power.is_nan() { 0.0 } else { power };
        (to * times.powf(power)).min(most.max(to))
    };
    let most = settings.places as f64;
    PerRule {
        nodes: grown(small.nodes, large.nodes, 2.0 * most),
        places: grown(small.places, large.places, most),
        rows: grown(small.rows, large.rows, 1.2 * most),
        clips: grown(small.clips, large.clips, f64::INFINITY),
    }
}

/// Bytes of the map of ids.
fn id_bytes(schema: &Schema, rules: usize, groups: usize) -> usize {
    fn at<const W: usize>(rules: usize, groups: usize) -> usize {
        IdMap::<Known<W>>::bytes_for(rules, groups)
    }
    at_width!(schema, at(rules, groups))
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let settings = Settings::of(spec);
    let (schema, rules) = (shape.schema(), shape.rules() as f64);
    let trees = per_rule(&settings, shape);
    let nodes = Nodes::bytes_of(whole((trees.nodes * rules).ceil()).max(8));
    // A row has the same words whatever the width.
    let rows = Rows::<1>::bytes_of(schema, whole((trees.rows * rules).ceil()));
    let ids = id_bytes(schema, shape.rules(), shape.id_groups());
    let bytes = nodes.saturating_add(rows).saturating_add(ids);
    let fields = schema.fields().len() as f64;
    let copying = COPY + FIELD * fields;
    let met = Met::of(spec, shape, GROWTH)?;
    Ok(Costs {
        bytes,
        build: Work::of(rules * (copying + trees.clips * CLIP)),
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        update: Some(Work::of(UPDATE + trees.places * PLACE).reading(2.0, bytes)),
    })
}
