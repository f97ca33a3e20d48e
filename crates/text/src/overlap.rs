//! Pairs of flows of equal priority that the same packet may match. OpenFlow does not
//! define which of two such flows wins.
//!
//! # Idea
//! Flows with the same masks on the same fields overlap only if they are equal. So flows
//! are grouped into sets by their masks. Two sets are compared by a hash of the values
//! under the mask bits that both sets have. The work grows with the number of flows, not
//! with the number of pairs.
//!
//! # Cost
//! For `n` flows with `m` different masks, at most `n * m` values are hashed. The search
//! stops after [`MAX_COMPARED`] values; the result is then marked as incomplete.

use std::collections::{BTreeMap, HashMap};

use crate::line::counted_verb;

/// The maximum number of flows that are hashed in comparisons. This takes about one second.
pub const MAX_COMPARED: usize = 1 << 22;

/// The maximum number of example pairs that are kept.
const MAX_EXAMPLES: usize = 3;

/// A condition of a flow: a field's value under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field's number.
    pub field: usize,
    /// The value; bits outside of the mask are 0.
    pub value: u128,
    /// The bits that must match.
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
    /// The number of overlapping pairs found.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The first pairs found, at most 3.
    #[must_use]
    pub fn examples(&self) -> &[(T, T)] {
        &self.examples
    }

    /// True if all pairs were compared.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns a sentence about the pairs, or `None` if there are none. `line` returns the
    /// line number of a flow.
    #[must_use]
    pub fn note(&self, line: impl Fn(T) -> usize) -> Option<String> {
        if self.pairs == 0 {
            return None;
        }
        let shown = self.examples.iter().map(|&(first, second)| {
            let (first, second) = (line(first), line(second));
            format!("{} and {}", first.min(second), first.max(second))
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

/// The masks of a flow: pairs of a field and the bits that must match.
type Masks = Vec<(usize, u128)>;

/// Finds pairs of overlapping flows within each class. A class is, for example, a table and
/// a priority. `conditions` appends the conditions of a flow to the vector, in ascending
/// order of fields, each field once.
pub fn find<T: Copy>(
    flows: impl Iterator<Item = (u64, T)>,
    conditions: impl Fn(T, &mut Vec<Condition>),
) -> Overlaps<T> {
    let mut classes: BTreeMap<u64, BTreeMap<Masks, Vec<T>>> = BTreeMap::new();
    let mut read = Vec::new();
    for (class, flow) in flows {
        read.clear();
        conditions(flow, &mut read);
        let masks: Masks = read.iter().map(|c| (c.field, c.mask)).collect();
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
        for (index, (masks, flows)) in sets.iter().enumerate() {
            for (earlier_masks, earlier_flows) in &sets[..index] {
                compared += flows.len() + earlier_flows.len();
                if compared > MAX_COMPARED {
                    overlaps.is_complete = false;
                    return overlaps;
                }
                let common = common(masks, earlier_masks);
                compare(&common, earlier_flows, flows, &conditions, &mut overlaps);
            }
        }
    }
    overlaps
}

/// Returns the mask bits that two sets have in common.
fn common(a: &Masks, b: &Masks) -> Masks {
    let mask_in_b = |field| b.iter().find(|(b_field, _)| *b_field == field);
    let intersections = a.iter().filter_map(|&(field, mask)| {
        let (_, b_mask) = mask_in_b(field)?;
        Some((field, mask & b_mask))
    });
    intersections.filter(|(_, mask)| *mask != 0).collect()
}

/// Counts the pairs, one flow from each set, that have equal values under the common masks.
fn compare<T: Copy>(
    common: &Masks,
    a: &[T],
    b: &[T],
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
    // Hashing the smaller set avoids a copy of the larger set in memory.
    let (smaller, larger) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut index: HashMap<Vec<u128>, (usize, T)> = HashMap::with_capacity(smaller.len());
    for &flow in smaller {
        index.entry(values(flow)).or_insert((0, flow)).0 += 1;
    }
    for &flow in larger {
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
        /// The number of pairs equals the result of comparing all pairs, without pairs of
        /// equal flows.
        #[test]
        fn pairs_are_those_of_a_comparison_of_all(flows in flows()) {
            let mut pairs = 0;
            for (at, one) in flows.iter().enumerate() {
                for other in &flows[..at] {
                    pairs += usize::from(one.1 != other.1 && overlapping(one, other));
                }
            }
            let overlaps = find(flows.iter().map(|flow| (flow.0, flow)), |flow, out| {
                out.extend_from_slice(&flow.1);
            });
            prop_assert_eq!(overlaps.pairs(), pairs);
            prop_assert!(overlaps.is_complete());
            for (one, other) in overlaps.examples() {
                prop_assert!(overlapping(one, other));
            }
        }
    }

    #[test]
    fn work_is_bounded() {
        // 1,000 masks, and more than 1,000 flows with each mask.
        let flows = (0..1_200_000_u32).map(|number| (0, number));
        let overlaps = find(flows, |number, out| {
            out.push(Condition {
                field: 0,
                value: u128::from(number / 1000) << 64,
                mask: (u128::from(u64::MAX) << 64) | u128::from(number % 1000),
            });
        });
        assert!(!overlaps.is_complete());
    }
}
