//! The fields of a schema: their places in keys and nodes, and the choice of fields
//! that rules are small in.

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::packed::PackedRule;
use crate::model::schema::{FieldId, Part, Placement, Schema, low_ones};

use super::node::Node;

/// A field of the schema, with its place in keys and rules.
pub(super) struct Field {
    pub(super) width: u32,
    placement: Placement,
    most: u128,
    /// The place of the upper ends of ranges, in the third part of a rule's words.
    high: Option<Placement>,
}

/// Returns the words of the rule at a place. A `dyn` function, so that the build is
/// compiled once for all key widths.
pub(super) type WordsAt<'a, 'f> = dyn Fn(usize) -> &'a [u64] + 'f;

/// An interval of values, including both ends.
pub(super) type Ends = (u128, u128);

/// All fields of a schema.
pub(super) struct Fields {
    pub(super) schema: Arc<Schema>,
    pub(super) all: Vec<Field>,
}

/// A part of a field that one node can look at.
#[derive(Clone, Copy)]
struct Half {
    part: Part,
    is_upper: bool,
}

impl Fields {
    pub(super) fn new(schema: &Arc<Schema>) -> Fields {
        let ranges = schema.range_fields();
        let field = |id: FieldId| Field {
            width: schema.field(id).width(),
            placement: *schema.placement(id),
            most: schema.field(id).max_value(),
            high: ranges.iter().find(|r| r.field == id).map(|r| r.high),
        };
        Fields {
            schema: Arc::clone(schema),
            all: schema.field_ids().map(field).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the ends of a rule's match in a field.
    pub(super) fn ends(&self, field: usize, words: &[u64]) -> Ends {
        let rule = PackedRule::new(&self.schema, words);
        let field = &self.all[field];
        let low = field.placement.get(rule.value);
        match &field.high {
            Some(high) => (low, high.get(rule.high)),
            None => (low, low | (field.most & !field.placement.get(rule.mask))),
        }
    }

    /// Writes the ends of a rule in all fields to `ends`, in the schema's order.
    pub(super) fn all_ends(&self, words: &[u64], ends: &mut Vec<Ends>) {
        ends.clear();
        ends.extend((0..self.len()).map(|field| self.ends(field, words)));
    }

    /// True if a rule matches all values between its ends in a field.
    pub(super) fn is_interval(&self, field: usize, words: &[u64]) -> bool {
        let rule = PackedRule::new(&self.schema, words);
        let field = &self.all[field];
        let free = field.most & !field.placement.get(rule.mask);
        free & free.wrapping_add(1) == 0
    }

    /// Returns the box of all keys.
    pub(super) fn everything(&self) -> Vec<Ends> {
        self.all.iter().map(|field| (0, field.most)).collect()
    }

    /// True if a node can look at only a part of the field.
    pub(super) fn is_wide(&self, field: usize) -> bool {
        self.all[field].placement.high.is_some()
    }

    pub(super) fn most(&self, field: usize) -> u128 {
        self.all[field].most
    }

    /// Returns the upper or lower part of a field. A narrow field has only a lower
    /// part.
    fn half(&self, field: usize, is_upper: bool) -> Half {
        let placement = &self.all[field].placement;
        match placement.high {
            Some(part) if is_upper => Half {
                part,
                is_upper: true,
            },
            _ => Half {
                part: placement.low,
                is_upper: false,
            },
        }
    }

    fn half_of(&self, node: &Node) -> Half {
        let upper = self.all[node.field()].placement.high;
        let is_upper = upper.is_some_and(|part| part.word == node.word());
        self.half(node.field(), is_upper)
    }

    /// Returns a node that separates values of at least `value` from smaller values.
    /// For a wide field, the node compares the lower 64 bits if any of them is set in
    /// `value`, otherwise the upper bits.
    pub(super) fn split(&self, field: usize, value: u128) -> Node {
        let half = self.half(field, low_word(value) == 0);
        let bits = if half.is_upper { value >> 64 } else { value };
        let aligned = low_word(bits) << (64 - half.part.width);
        Node::split(field, half.part, aligned)
    }

    /// Returns a node that cuts a block with `free` free bits into 2 to the power of
    /// `bits` parts. The bits are in one word.
    pub(super) fn cut(&self, field: usize, free: u32, bits: u32) -> Node {
        let half = self.half(field, free > 64);
        let free_of_part = if half.is_upper { free - 64 } else { free };
        Node::cut(field, half.part, half.part.width - free_of_part, bits)
    }

    /// The number of bits that a node can look at, of a block with `free` free bits.
    pub(super) fn bits_at_once(&self, field: usize, free: u32) -> u32 {
        if self.is_wide(field) && free > 64 {
            free - 64
        } else {
            free
        }
    }

    /// Returns the child of an inner node for a value of its field within its box.
    pub(super) fn branch(&self, node: &Node, value: u128) -> u32 {
        let half = self.half_of(node);
        let bits = if half.is_upper { value >> 64 } else { value };
        let aligned = low_word(bits) << (64 - half.part.width);
        node.branch(aligned << node.skipped(half.part))
    }

    /// Clips an interval of a node's field to a child's box. The interval is within
    /// the node's box and overlaps the child's box.
    pub(super) fn clip(&self, node: &Node, child: u32, (low, high): Ends) -> Ends {
        let half = self.half_of(node);
        let lift = if half.is_upper { 64 } else { 0 };
        if node.is_split() {
            let bits = node.value() >> (64 - half.part.width);
            let value = u128::from(bits) << lift;
            let is_lower_of_wide = self.is_wide(node.field()) && !half.is_upper;
            let value = if is_lower_of_wide {
                value | (low >> 64 << 64)
            } else {
                value
            };
            return match child {
                0 => (low, high.min(value.wrapping_sub(1))),
                _ => (low.max(value), high),
            };
        }
        let skipped = node.skipped(half.part);
        let child_bits = half.part.width - skipped - node.bits() + lift;
        let block = low_ones(child_bits + node.bits());
        let first = (low & !block) | u128::from(child) << child_bits;
        (low.max(first), high.min(first | low_ones(child_bits)))
    }
}

#[allow(clippy::cast_possible_truncation)] // the lower half
fn low_word(value: u128) -> u64 {
    value as u64
}

/// The number of free bits of the smallest aligned block that contains an interval. The
/// block's size is two to the power of this number.
pub(super) fn free_bits((low, high): Ends) -> u32 {
    128 - (low ^ high).leading_zeros()
}

/// A selected field. Each rule is small or big in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) field: usize,
    /// A rule is small if its values lie in an aligned block of two to this power.
    pub(super) bits: u32,
}

impl Selected {
    pub(super) fn is_small(self, ends: Ends) -> bool {
        free_bits(ends) <= self.bits
    }
}

/// Returns the class of a rule: a bit for each selected field that the rule is small
/// in.
pub(super) fn class(selected: &[Selected], ends: &dyn Fn(usize) -> Ends) -> usize {
    let small = selected.iter().enumerate();
    let small = small.filter(|(_, selected)| selected.is_small(ends(selected.field)));
    small.fold(0, |class, (number, _)| class | 1 << number)
}

/// The number of rules that are sampled to select fields. Measured in
/// `bench/records/constants.md` (CutSplit).
const SAMPLE_RULES: usize = 1024;

/// Sizes of blocks, in eighths of a field's width. Measured in
/// `bench/records/constants.md` (CutSplit).
const WIDTH_EIGHTHS: [u32; 6] = [2, 3, 4, 5, 6, 7];

/// The weight of a rule that is small in a field that has been selected already.
/// Measured in `bench/records/constants.md` (CutSplit).
const SMALL_RULE_WEIGHT: u64 = 1;
/// The weight of a rule that is not small in any selected field. Measured in
/// `bench/records/constants.md` (CutSplit).
const BIG_RULE_WEIGHT: u64 = 4;

/// Selects at most `max_fields` fields, each with its block size, that separate rules
/// best: many rules are small in the field, and in many different blocks.
///
/// Without rules, the widest fields are selected; of equally wide fields, the first.
pub(super) fn select<'a>(
    fields: &Fields,
    max_fields: usize,
    count: usize,
    words: &WordsAt<'a, '_>,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<Selected>, BuildError> {
    let max_fields = max_fields.min(fields.len());
    if count == 0 {
        let mut widest: Vec<usize> = (0..fields.len()).collect();
        widest.sort_by_key(|&field| std::cmp::Reverse(fields.all[field].width));
        let selected = widest.into_iter().take(max_fields).map(|field| Selected {
            field,
            bits: fields.all[field].width / 2,
        });
        return Ok(selected.collect());
    }
    let step = count.div_ceil(SAMPLE_RULES);
    let sampled: Vec<usize> = (0..count).step_by(step).collect();
    let bytes = bytes_of::<(Ends, u64)>(sampled.len()) + bytes_of::<(usize, u64)>(sampled.len());
    monitor.memory().take(bytes)?;
    let mut weights = vec![BIG_RULE_WEIGHT; sampled.len()];
    let mut matches: Vec<(Ends, u64)> = Vec::with_capacity(sampled.len());
    let mut selected: Vec<Selected> = Vec::new();
    while selected.len() < max_fields {
        let mut best: Option<(u128, Selected)> = None;
        for field in 0..fields.len() {
            if selected.iter().any(|selected| selected.field == field) {
                continue;
            }
            let ends = sampled
                .iter()
                .map(|&place| fields.ends(field, words(place)));
            matches.clear();
            matches.extend(ends.zip(weights.iter().copied()));
            matches.sort_unstable();
            monitor.work(sampled.len() / 2)?;
            let width = fields.all[field].width;
            for share in WIDTH_EIGHTHS {
                let bits = width * share / 8;
                let candidate = Selected { field, bits };
                let score = separated(candidate, &matches);
                if best.is_none_or(|(best_score, _)| score > best_score) {
                    best = Some((score, candidate));
                }
            }
        }
        let Some((score, chosen)) = best else { break };
        if score == 0 {
            break;
        }
        for (&place, weight) in sampled.iter().zip(&mut weights) {
            if chosen.is_small(fields.ends(chosen.field, words(place))) {
                *weight = SMALL_RULE_WEIGHT;
            }
        }
        selected.push(chosen);
    }
    drop((weights, matches));
    monitor.memory().give_back(bytes);
    Ok(selected)
}

/// Returns a score: the number of pairs of small rules in different blocks of a
/// field, weighted by the weights of rules, times two. Matches are sorted by their
/// lower ends.
fn separated(candidate: Selected, matches: &[(Ends, u64)]) -> u128 {
    let small = matches.iter();
    let small = small.filter(|((low, high), _)| candidate.is_small((*low, *high)));
    let block = |low: u128| low.checked_shr(candidate.bits).unwrap_or(0);
    let (mut total, mut alike, mut run) = (0_u128, 0_u128, (0, 0_u128));
    for &((low, _), weight) in small {
        let weight = u128::from(weight);
        total += weight;
        if run.0 != block(low) {
            alike += run.1 * run.1;
            run = (block(low), 0);
        }
        run.1 += weight;
    }
    alike += run.1 * run.1;
    // All pairs of small rules, except pairs that the cut does not separate.
    (total * total - alike) * u128::from(u32::MAX) / total.max(1)
}
