//! Measures of one rule set that the comparison of sets does not use.

use std::collections::HashSet;

use classyard::schema::MatchKind;
use classyard::{FieldId, FieldMatch, Progress, RuleSet};
use classyard_conformance::random::{Dice, SeededDice};
use serde::Serialize;

/// Up to this number of rules, every pair of rules is compared.
const ALL_PAIRS: usize = 5000;

/// The number of compared pairs in larger sets.
const SAMPLED_PAIRS: usize = 4_000_000;

/// Pairs of rules that match a common header.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Overlaps {
    /// The number of compared pairs.
    pub(super) compared: usize,
    /// The number of compared pairs that overlap.
    pub(super) overlapping: usize,
    /// True if all pairs were compared, false for a random sample.
    pub(super) exact: bool,
    /// The share of overlapping pairs.
    pub(super) share: f64,
    /// The number of overlapping pairs, exact or estimated.
    pub(super) pairs: f64,
}

/// Compares all pairs of rules, or a sample if there are too many.
#[allow(clippy::cast_precision_loss)] // estimates
pub(super) fn overlaps(rules: &RuleSet, seed: u64, progress: &mut dyn Progress) -> Overlaps {
    let count = rules.len();
    let pair_count = count as f64 * (count as f64 - 1.0).max(0.0) / 2.0;
    let exact = count <= ALL_PAIRS;
    let (mut compared, mut overlapping) = (0, 0);
    if exact {
        for a in 0..count {
            if a % 64 == 0 {
                let _ = progress.report("comparing rules", a, count);
            }
            for b in a + 1..count {
                overlapping += usize::from(rules.rule(a).overlaps(&rules.rule(b)));
            }
        }
        compared = count * count.saturating_sub(1) / 2;
    } else {
        let mut dice = SeededDice::new(seed);
        while compared < SAMPLED_PAIRS {
            if compared % 65_536 == 0 {
                let _ = progress.report("comparing rules", compared, SAMPLED_PAIRS);
            }
            let (a, b) = (dice.below(count), dice.below(count));
            if a != b {
                overlapping += usize::from(rules.rule(a).overlaps(&rules.rule(b)));
                compared += 1;
            }
        }
    }
    let share = overlapping as f64 / compared.max(1) as f64;
    Overlaps {
        compared,
        overlapping,
        exact,
        share,
        pairs: share * pair_count,
    }
}

/// The rules' matches of one field.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FieldUse {
    pub(super) field: String,
    pub(super) kind: &'static str,
    /// Rules that match any value.
    pub(super) any: usize,
    /// Rules that match one value.
    pub(super) exact: usize,
    /// Rules that match a prefix.
    pub(super) prefix: usize,
    /// Rules that match a range that is not a prefix.
    pub(super) range: usize,
    /// Rules that match other bits.
    pub(super) ternary: usize,
    /// Distinct matches, including `any`.
    pub(super) distinct: usize,
}

/// Returns the rules' matches of each field.
pub(super) fn fields(rules: &RuleSet) -> Vec<FieldUse> {
    let ids = rules.schema().field_ids();
    ids.map(|id| field(rules, id)).collect()
}

fn field(rules: &RuleSet, id: FieldId) -> FieldUse {
    let field = rules.schema().field(id);
    let mut row = FieldUse {
        field: field.name().to_owned(),
        kind: field.kind().name(),
        any: 0,
        exact: 0,
        prefix: 0,
        range: 0,
        ternary: 0,
        distinct: 0,
    };
    let mut distinct = HashSet::new();
    for rule in rules.iter() {
        let demand = rule.field(id);
        let count = match demand {
            FieldMatch::Any => &mut row.any,
            FieldMatch::Exact(_) => &mut row.exact,
            FieldMatch::Prefix { .. } => &mut row.prefix,
            FieldMatch::Range { low, high } if is_prefix(low, high) => &mut row.prefix,
            FieldMatch::Range { .. } => &mut row.range,
            FieldMatch::Ternary { .. } => &mut row.ternary,
        };
        *count += 1;
        distinct.insert(demand);
    }
    row.distinct = distinct.len();
    debug_assert!(field.kind() != MatchKind::Exact || row.range == 0);
    row
}

fn is_prefix(low: u128, high: u128) -> bool {
    let free = low ^ high;
    free & free.wrapping_add(1) == 0 && low & free == 0
}
