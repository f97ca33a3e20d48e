//! Estimates the costs of trees.
//!
//! The number of leaves with a rule depends on overlaps between rules, and no simple
//! count gives it. So trees are grown over a sample of the rules, and their counts
//! for each rule are extrapolated.

#![allow(clippy::cast_precision_loss)] // estimates

use super::fields::Fields;
use super::node::Nodes;
use super::trees::Outline;
use super::{Known, Settings, check_rules};
use crate::budget::monitor::unwatched;
use crate::contract::adapter::at_width;
use crate::contract::observe::{Growth, Met, Prices};
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, some_of, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::schema::Schema;
use crate::parts::id_map::IdMap;

use super::rows::Rows;

/// The number of rules of the larger sample, divided by the number of the smaller
/// one. Measured in `bench/records/constants.md` (Estimates of other engines).
const SAMPLE_RATIO: usize = 4;

/// The largest exponent of growth: counts for each rule grow or shrink at most with
/// this power of the number of rules. Chosen by rule sets of 30,000 rules
/// (`bench/README.md`, Estimates).
const MAX_EXPONENT: f64 = 0.1;

/// Growth of a lookup's counts with the number of rules. Chosen as the exponent above.
const COUNT_GROWTH: Growth = [0.0, 0.05];

/// Costs of lookups in batches and of single lookups. `crate::cost::estimate` describes the
/// measurements behind them.
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

// Numbers of instructions. `crate::cost::estimate` describes the measurements behind them.
/// To copy a rule, and to divide rules by each field.
const COPY_INSTRUCTIONS: f64 = 3500.0;
const FIELD_INSTRUCTIONS: f64 = 1500.0;
/// To clip a rule to a box, including the choice of fields.
const CLIP_INSTRUCTIONS: f64 = 200.0;
/// Fixed cost of an update.
const UPDATE_INSTRUCTIONS: f64 = 3000.0;
/// Additional cost for each place of the changed rule.
const PLACE_INSTRUCTIONS: f64 = 1500.0;

/// Counts of trees, for each rule.
#[derive(Clone, Copy, Debug)]
struct PerRule {
    nodes: f64,
    places: f64,
    rows: f64,
    clips: f64,
}

impl PerRule {
    /// Grows trees over some rules of the sample. Returns the number of rules and the
    /// counts.
    fn of(settings: &Settings, shape: &Shape, rules: usize) -> (usize, PerRule) {
        let sample = some_of(shape.sample(), rules);
        let order = sample.by_rank();
        let fields = Fields::new(sample.schema());
        let words = |place: usize| sample.rule(order[place] as usize).words();
        let outline =
            unwatched(|monitor| Outline::new(&fields, settings, sample.len(), &words, monitor));
        let (places, rows) = outline.places();
        let rules = sample.len().max(1) as f64;
        let per_rule = PerRule {
            nodes: outline.nodes() as f64 / rules,
            places: places as f64 / rules,
            rows: rows as f64 / rules,
            clips: outline.clips as f64 / rules,
        };
        (sample.len(), per_rule)
    }
}

/// Extrapolates counts with a power of the number of rules. The exponent is small,
/// even if the counts of the two samples differ much.
fn per_rule(settings: &Settings, shape: &Shape) -> PerRule {
    let (count, large) = PerRule::of(settings, shape, shape.rules());
    if count >= shape.rules() || count < SAMPLE_RATIO {
        return large;
    }
    let (small_count, small) = PerRule::of(settings, shape, count / SAMPLE_RATIO);
    let step = (count as f64 / small_count as f64).ln();
    let times = shape.rules() as f64 / count as f64;
    let grown = |from: f64, to: f64, max_count: f64| {
        let power = ((to / from).ln() / step).clamp(-MAX_EXPONENT, MAX_EXPONENT);
        let power = if power.is_nan() { 0.0 } else { power };
        (to * times.powf(power)).min(max_count.max(to))
    };
    let max_places = settings.places as f64;
    PerRule {
        nodes: grown(small.nodes, large.nodes, 2.0 * max_places),
        places: grown(small.places, large.places, max_places),
        rows: grown(small.rows, large.rows, 1.2 * max_places),
        clips: grown(small.clips, large.clips, f64::INFINITY),
    }
}

/// Bytes held by the map of ids.
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
    // The number of words in a row does not depend on the key width.
    let rows = Rows::<1>::bytes_of(schema, whole((trees.rows * rules).ceil()));
    let ids = id_bytes(schema, shape.rules(), shape.id_groups());
    let bytes = nodes.saturating_add(rows).saturating_add(ids);
    let fields = schema.fields().len() as f64;
    let copying = COPY_INSTRUCTIONS + FIELD_INSTRUCTIONS * fields;
    let met = Met::of(spec, shape, COUNT_GROWTH)?;
    Ok(Costs {
        bytes,
        build: Work::of(rules * (copying + trees.clips * CLIP_INSTRUCTIONS)),
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        update: Some(
            Work::of(UPDATE_INSTRUCTIONS + trees.places * PLACE_INSTRUCTIONS).reading(2.0, bytes),
        ),
    })
}
