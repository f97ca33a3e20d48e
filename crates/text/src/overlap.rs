//! Pairs of flows of equal priority that one packet may match. OpenFlow leaves open which
//! of two such flows wins.
//!
//! # Idea
//! Flows with the same masks on the same fields overlap only if they are equal. So flows
//! are sorted by their masks, and two sets of flows are compared by a hash of the values
//! under the masks that both sets have: work for the number of flows, not of pairs.
//!
//! # Cost
//! For `n` flows of `m` different masks, at most `n * m` values are hashed. It ends after
//! [`MAX_COMPARED`] values, and the result says so.

use std::collections::{BTreeMap, HashMap};

use crate::line::counted_verb;

/// The most flows that are hashed in comparisons: about one second.
pub const MAX_COMPARED: usize = 1 << 22;

/// Examples that are kept.
const MAX_EXAMPLES: usize = 3;

/// A condition of a flow: the bits of a field under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field's number.
    pub field: usize,
    /// The value; bits outside of the mask are 0.
    pub value: u128,
    /// The bits that count.
    pub mask: u128,
}

/// Pairs of overlapping flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlaps<T> {
    pairs: usize,
    examples: Vec<(T, T)>,
    is_complete: bool,
}

impl<T: Copy> Overlaps<T> {
    /// The number of pairs that were found.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The first of them.
    #[must_use]
    pub fn examples(&self) -> &[(T, T)] {
        &self.examples
    }

    /// True if all pairs were compared.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// A sentence about the pairs, if there are any. `line` is the line of a flow.
    #[must_use]
    pub fn note(&self, line: impl Fn(T) -> usize) -> Option<String> {
        if self.pairs == 0 {
            return None;
        }
        let shown = self.examples.iter().map(|&(one, other)| {
            let (one, other) = (line(one), line(other));
            format!("{} and {}", one.min(other), one.max(other))
        });
        let pairs = counted_verb(
            self.pairs,
            "pair",
            "of flows of equal priority overlaps",
            "of flows of equal priority overlap",
        );
        Some(format!(
            "{}{pairs}, such as lines {}; OpenFlow leaves open which of them wins, here it is the \
             first",
            if self.is_complete { "" } else { "at least " },
            shown.collect::<Vec<_>>().join(", ")
        ))
    }
}

/// The masks of a flow: fields with the bits that count.
type Masks = Vec<(usize, u128)>;

/// Finds pairs of overlapping flows of the same class, such as a table and a priority.
/// `conditions` adds those of a flow, in the order of their fields, each once.
pub fn find<T: Copy>(
    flows: impl Iterator<Item = (u64, T)>,
    conditions: impl Fn(T, &mut Vec<Condition>),
) -> Overlaps<T> {
    let mut classes: BTreeMap<u64, BTreeMap<Masks, Vec<T>>> = BTreeMap::new();
    let mut read = Vec::new();
    for (class, flow) in flows {
        read.clear();
        conditions(flow, &mut read);
        let masks: Masks = read.iter().map(|one| (one.field, one.mask)).collect();
        classes
            .entry(class)
            .or_default()
            .entry(masks)
            .or_default()
            .push(flow);
    }
    let mut overlaps = Overlaps {
        pairs: 0,
        examples: Vec::new(),
        is_complete: true,
    };
    let mut compared = 0_usize;
    for sets in classes.values().map(Vec::from_iter) {
        for (at, (masks, flows)) in sets.iter().enumerate() {
            for (other_masks, others) in &sets[..at] {
                compared += flows.len() + others.len();
                if compared > MAX_COMPARED {
                    overlaps.is_complete = false;
                    return overlaps;
                }
                let common = common(masks, other_masks);
                compare(&common, others, flows, &conditions, &mut overlaps);
            }
        }
    }
    overlaps
}

/// The bits that both of two masks have.
fn common(one: &Masks, other: &Masks) -> Masks {
    let of = |field| other.iter().find(|(other, _)| *other == field);
    let both = one.iter().filter_map(|&(field, mask)| {
        let (_, other) = of(field)?;
        Some((field, mask & other))
    });
    both.filter(|(_, mask)| *mask != 0).collect()
}

/// Counts the pairs of two sets that agree under common masks.
fn compare<T: Copy>(
    common: &Masks,
    ones: &[T],
    others: &[T],
    conditions: &impl Fn(T, &mut Vec<Condition>),
    overlaps: &mut Overlaps<T>,
) {
    let mut read = Vec::new();
    let mut values = |flow: T| -> Vec<u128> {
        read.clear();
        conditions(flow, &mut read);
        let masked = common.iter().map(|&(field, mask)| {
            let condition = read.iter().find(|condition| condition.field == field);
            condition.map_or(0, |condition| condition.value & mask)
        });
        masked.collect()
    };
    // By the smaller set, so that large sets are not held twice.
    let (few, many) = if ones.len() <= others.len() {
        (ones, others)
    } else {
        (others, ones)
    };
    let mut index: HashMap<Vec<u128>, (usize, T)> = HashMap::with_capacity(few.len());
    for &flow in few {
        index.entry(values(flow)).or_insert((0, flow)).0 += 1;
    }
    for &flow in many {
        if let Some(&(count, first)) = index.get(&values(flow)) {
            overlaps.pairs += count;
            if overlaps.examples.len() < MAX_EXAMPLES {
                overlaps.examples.push((first, flow));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Flow = (u64, Vec<Condition>);

    fn overlapping(one: &Flow, other: &Flow) -> bool {
        let differ = one.1.iter().any(|a| {
            other
                .1
                .iter()
                .any(|b| a.field == b.field && (a.value ^ b.value) & a.mask & b.mask != 0)
        });
        one.0 == other.0 && !differ
    }

    fn flows() -> impl Strategy<Value = Vec<Flow>> {
        let masks = prop::sample::select(vec![0_u128, 1, 2, 3, 6, 7]);
        let condition = (0_u128..8, masks);
        let flow = (0_u64..2, prop::array::uniform3(condition));
        prop::collection::vec(flow, 0..24).prop_map(|flows| {
            let flows = flows.into_iter().map(|(class, conditions)| {
                let conditions = conditions.into_iter().enumerate();
                let conditions = conditions.filter(|(_, (_, mask))| *mask != 0);
                let conditions = conditions.map(|(field, (value, mask))| Condition {
                    field,
                    value: value & mask,
                    mask,
                });
                (class, conditions.collect())
            });
            flows.collect()
        })
    }

    proptest! {
        /// As many pairs as a comparison of all pairs finds that are not equal.
        #[test]
        fn pairs_are_those_of_a_comparison_of_all(flows in flows()) {
            let mut pairs = 0;
            for (at, one) in flows.iter().enumerate() {
                for other in &flows[..at] {
                    pairs += usize::from(one.1 != other.1 && overlapping(one, other));
                }
            }
            let found = find(flows.iter().map(|flow| (flow.0, flow)), |flow, out| {
                out.extend_from_slice(&flow.1);
            });
            prop_assert_eq!(found.pairs(), pairs);
            prop_assert!(found.is_complete());
            for (one, other) in found.examples() {
                prop_assert!(overlapping(one, other));
            }
        }
    }

    #[test]
    fn work_is_bounded() {
        // A thousand masks, and more than a thousand flows of each.
        let flows = (0..1_200_000_u32).map(|number| (0, number));
        let found = find(flows, |number, out| {
            out.push(Condition {
                field: 0,
                value: u128::from(number / 1000) << 64,
                mask: (u128::from(u64::MAX) << 64) | u128::from(number % 1000),
            });
        });
        assert!(!found.is_complete());
    }
}
