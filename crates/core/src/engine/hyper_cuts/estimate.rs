//! What a tree would cost.
//!
//! How often rules are in several leaves depends on how they overlap, which no
//! simple count says. So trees over a sample of the rules are built, and what they
//! have for each rule is extrapolated.

#![allow(clippy::cast_precision_loss)] // estimates

use super::check_rules;
use super::grow::{Bounds, Grow};
use super::node::Node;
use crate::engine::EngineSpec;
use crate::engine::ranked::RankedRules;
use crate::error::BuildError;
use crate::estimate::{Estimate, Shape, dependent_line_ns, nanoseconds, prefetched_line_ns, whole};
use crate::limits::Limits;
use crate::memory::bytes_of;
use crate::monitor::unwatched;

/// The smaller of two samples has this share of the rules of the larger one.
const SHARE: usize = 4;

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

/// What a tree has for each rule.
#[derive(Clone, Copy, Debug)]
struct PerRule {
    nodes: f64,
    places: f64,
    copies: f64,
    depth: f64,
    /// Places of a leaf, in the mean.
    length: f64,
}

impl PerRule {
    /// Builds a tree over some rules of the sample.
    fn of(spec: &EngineSpec, shape: &Shape, rules: usize) -> (usize, PerRule) {
        let sample = shape.some_of_sample(rules);
        let limits = Limits::default();
        let grown = unwatched(|monitor| {
            let bounds = Bounds::new(spec, sample.len());
            let ranked = RankedRules::build(&sample, &limits, monitor)?;
            Grow::tree(&ranked, &limits, bounds, monitor)
        });
        let rules = sample.len().max(1) as f64;
        let found = PerRule {
            nodes: grown.nodes.nodes.len() as f64 / rules,
            places: grown.lists.places() as f64 / rules,
            copies: grown.copies as f64 / rules,
            depth: grown.outline.mean_depth,
            length: grown.outline.mean_rules,
        };
        (sample.len(), found)
    }
}

/// What trees have is a power of the number of rules, until rules are in as many
/// leaves as they may be; from there on leaves get longer.
fn per_rule(spec: &EngineSpec, shape: &Shape) -> PerRule {
    let (count, large) = PerRule::of(spec, shape, shape.rules());
    if count >= shape.rules() || count < SHARE {
        return large;
    }
    let (small_count, small) = PerRule::of(spec, shape, count / SHARE);
    let step = (count as f64 / small_count as f64).ln();
    let times = shape.rules() as f64 / count as f64;
    let grown = |from: f64, to: f64| {
        let power = ((to / from).ln() / step).clamp(-1.0, 1.0);
        to * times.powf(if power.is_nan() { 0.0 } else { power })
    };
    let most = spec.options().whole("places") as f64;
    let places = grown(small.places, large.places);
    let nodes = grown(small.nodes, large.nodes);
    let held = (most / (places + nodes)).min(1.0);
    PerRule {
        nodes: nodes * held,
        places: places * held,
        copies: grown(small.copies, large.copies) * held,
        depth: grown(small.depth, large.depth),
        length: grown(small.length, large.length),
    }
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Estimate, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules() as f64);
    let tree = per_rule(spec, shape);
    let nodes = bytes_of::<Node>(whole((tree.nodes * rules).ceil()).max(1));
    let lists = bytes_of::<u32>(whole((tree.places * rules).ceil()));
    let copy = RankedRules::bytes_of(schema, shape.rules());
    let bytes = copy.saturating_add(nodes).saturating_add(lists);
    let fields = schema.fields().len() as f64;
    let compared = (tree.length / 2.0).max(1.0);
    let copying = COPY_NS + FIELD_NS * fields;
    Ok(Estimate {
        bytes,
        build: nanoseconds(rules * (copying + tree.copies * COPIED_NS)),
        lookup_ns: LOOKUP_NS
            + tree.depth * (NODE_NS + dependent_line_ns(nodes) / 16.0)
            + compared * RULE_NS
            + 2.0 * prefetched_line_ns(bytes),
        update_ns: None,
    })
}
