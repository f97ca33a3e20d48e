//! The fields of a schema: where they are in keys and nodes, and which of them
//! rules are small in.

use std::sync::Arc;

use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::packed::PackedRule;
use crate::schema::{FieldId, Part, Placement, Schema, low_ones};

use super::node::Node;

/// A field of the schema.
pub(super) struct Field {
    pub(super) width: u32,
    placement: Placement,
    most: u128,
    /// Where upper ends of ranges are in the third part of a rule's words.
    high: Option<Placement>,
}

/// Returns the words of the rule at a place. A `dyn` function, so that building is
/// compiled once for all key widths.
pub(super) type WordsAt<'a, 'f> = dyn Fn(usize) -> &'a [u64] + 'f;

/// An interval of values, both ends included.
pub(super) type Ends = (u128, u128);

/// All fields of a schema.
pub(super) struct Fields {
    pub(super) schema: Arc<Schema>,
    pub(super) all: Vec<Field>,
}

/// Whether the part of a wide field is the upper one.
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

    /// The ends of a rule's match of a field.
    pub(super) fn ends(&self, field: usize, words: &[u64]) -> Ends {
        let rule = PackedRule::new(&self.schema, words);
        let field = &self.all[field];
        let low = field.placement.get(rule.value);
        match &field.high {
            Some(high) => (low, high.get(rule.high)),
            None => (low, low | (field.most & !field.placement.get(rule.mask))),
        }
    }

    /// The ends of a rule in all fields, in the schema's order.
    pub(super) fn all_ends(&self, words: &[u64], ends: &mut Vec<Ends>) {
        ends.clear();
        ends.extend((0..self.len()).map(|field| self.ends(field, words)));
    }

    /// Whether a rule matches all values between its ends in a field.
    pub(super) fn is_interval(&self, field: usize, words: &[u64]) -> bool {
        let rule = PackedRule::new(&self.schema, words);
        let field = &self.all[field];
        let free = field.most & !field.placement.get(rule.mask);
        free & free.wrapping_add(1) == 0
    }

    /// The box of all keys.
    pub(super) fn everything(&self) -> Vec<Ends> {
        self.all.iter().map(|field| (0, field.most)).collect()
    }

    /// Whether a node can look at a part of a field only.
    pub(super) fn is_wide(&self, field: usize) -> bool {
        self.all[field].placement.high.is_some()
    }

    pub(super) fn most(&self, field: usize) -> u128 {
        self.all[field].most
    }

    /// The lower and the upper part of a field's bits that nodes look at.
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

    /// A node that parts values of at least `value` from others. For a wide
    /// field, it compares the lower 64 bits if any of them is set in `value`,
    /// else the others.
    pub(super) fn split(&self, field: usize, value: u128) -> Node {
        let half = self.half(field, low_word(value) == 0);
        let bits = if half.is_upper { value >> 64 } else { value };
        let aligned = low_word(bits) << (64 - half.part.width);
        Node::split(field, half.part, aligned)
    }

    /// A node that cuts a block of values, of `free` bits, in 2 to the power of
    /// `bits` parts. They are bits of one word.
    pub(super) fn cut(&self, field: usize, free: u32, bits: u32) -> Node {
        let half = self.half(field, free > 64);
        let below = if half.is_upper { free - 64 } else { free };
        Node::cut(field, half.part, half.part.width - below, bits)
    }

    /// How many bits of a block of `free` bits a node can look at.
    pub(super) fn bits_at_once(&self, field: usize, free: u32) -> u32 {
        if self.is_wide(field) && free > 64 {
            free - 64
        } else {
            free
        }
    }

    /// The child of an inner node for a value of its field within its box.
    pub(super) fn branch(&self, node: &Node, value: u128) -> u32 {
        let half = self.half_of(node);
        let bits = if half.is_upper { value >> 64 } else { value };
        let aligned = low_word(bits) << (64 - half.part.width);
        node.branch(aligned << node.skipped(half.part))
    }

    /// The part of an interval of a node's field that is in a child's box. All of
    /// it is in the node's box, and some of it in the child's.
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
        let below = half.part.width - skipped - node.bits() + lift;
        let block = low_ones(below + node.bits());
        let first = (low & !block) | u128::from(child) << below;
        (low.max(first), high.min(first | low_ones(below)))
    }
}

#[allow(clippy::cast_possible_truncation)] // the lower half
fn low_word(value: u128) -> u64 {
    value as u64
}

/// The number of bits in which values of an interval differ: it lies in a block
/// of two to that power, and in no smaller one.
pub(super) fn free_bits((low, high): Ends) -> u32 {
    128 - (low ^ high).leading_zeros()
}

/// A field in which rules are small or big.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) field: usize,
    /// A rule is small if its values lie in a block of two to that power.
    pub(super) bits: u32,
}

impl Selected {
    pub(super) fn is_small(self, ends: Ends) -> bool {
        free_bits(ends) <= self.bits
    }
}

/// A bit for each selected field in which a rule is small.
pub(super) fn class(selected: &[Selected], ends: &dyn Fn(usize) -> Ends) -> usize {
    let small = selected.iter().enumerate();
    let small = small.filter(|(_, selected)| selected.is_small(ends(selected.field)));
    small.fold(0, |class, (number, _)| class | 1 << number)
}

/// Rules by which fields are selected.
const SAMPLE: usize = 1024;

/// Eighths of a field's width that the blocks of small rules may leave open.
const SHARES: [u32; 6] = [2, 3, 4, 5, 6, 7];

/// What a rule that is small in a selected field already counts, when the next
/// one is selected; others count 4.
const SMALL_ALREADY: u64 = 1;
const BIG_YET: u64 = 4;

/// Selects at most `most` fields, each with the size of its blocks, that tell
/// rules apart best: in which many rules are small, and in many different blocks.
///
/// Without rules, the widest fields are selected, the first of equal ones.
pub(super) fn select<'a>(
    fields: &Fields,
    most: usize,
    count: usize,
    words: &WordsAt<'a, '_>,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<Selected>, BuildError> {
    let most = most.min(fields.len());
    if count == 0 {
        let mut widest: Vec<usize> = (0..fields.len()).collect();
        widest.sort_by_key(|&field| std::cmp::Reverse(fields.all[field].width));
        let selected = widest.into_iter().take(most).map(|field| Selected {
            field,
            bits: fields.all[field].width / 2,
        });
        return Ok(selected.collect());
    }
    let step = count.div_ceil(SAMPLE);
    let sampled: Vec<usize> = (0..count).step_by(step).collect();
    let bytes = bytes_of::<(Ends, u64)>(sampled.len()) + bytes_of::<(usize, u64)>(sampled.len());
    monitor.memory().take(bytes)?;
    let mut weights = vec![BIG_YET; sampled.len()];
    let mut matches: Vec<(Ends, u64)> = Vec::with_capacity(sampled.len());
    let mut selected: Vec<Selected> = Vec::new();
    while selected.len() < most {
        let mut best: Option<(u128, Selected)> = None;
        for field in 0..fields.len() {
            if selected.iter().any(|selected| selected.field == field) {
                continue;
            }
            let ends = sampled.iter().map(|&at| fields.ends(field, words(at)));
            matches.clear();
            matches.extend(ends.zip(weights.iter().copied()));
            matches.sort_unstable();
            monitor.work(sampled.len() / 2)?;
            let width = fields.all[field].width;
            for share in SHARES {
                let bits = width * share / 8;
                let candidate = Selected { field, bits };
                let score = separated(candidate, &matches);
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, candidate));
                }
            }
        }
        let Some((score, found)) = best else { break };
        if score == 0 {
            break;
        }
        for (&at, weight) in sampled.iter().zip(&mut weights) {
            if found.is_small(fields.ends(found.field, words(at))) {
                *weight = SMALL_ALREADY;
            }
        }
        selected.push(found);
    }
    drop((weights, matches));
    monitor.memory().give_back(bytes);
    Ok(selected)
}

/// How many pairs of rules that are small are in different blocks of a field, by
/// the weights of rules; times two. Matches are in the order of their lower ends.
fn separated(candidate: Selected, matches: &[(Ends, u64)]) -> u128 {
    let small = matches.iter();
    let small = small.filter(|((low, high), _)| candidate.is_small((*low, *high)));
    let block = |low: u128| low.checked_shr(candidate.bits).unwrap_or(0);
    let (mut all, mut alike, mut run) = (0_u128, 0_u128, (0, 0_u128));
    for &((low, _), weight) in small {
        let weight = u128::from(weight);
        all += weight;
        if run.0 != block(low) {
            alike += run.1 * run.1;
            run = (block(low), 0);
        }
        run.1 += weight;
    }
    alike += run.1 * run.1;
    // All of the small rules but those that a cut does not tell from one of them.
    (all * all - alike) * u128::from(u32::MAX) / all.max(1)
}
