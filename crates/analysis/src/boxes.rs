//! Boxes: an interval of ranks for each axis of a [`Space`].
//!
//! The bounds of a box are the lowest and the highest rank of each axis, both included:
//!
//! ```text
//! low of axis 0 | high of axis 0 | low of axis 1 | high of axis 1 | …
//! ```

use classyard::RuleRef;

use crate::error::{AnalysisError, check_bytes};
use crate::space::Space;

/// The maximum number of boxes of a rule. A rule of more boxes is not analysed exactly: it
/// may match all headers of its smallest enclosing box.
const MAX_BOXES_PER_RULE: usize = 1024;

/// The boxes of rules, in the order of their *places*.
#[derive(Debug)]
pub(crate) struct Boxes {
    axes: usize,
    bounds: Vec<u32>,
    /// The place of each box's rule, ascending.
    owners: Vec<u32>,
    /// The first box of each place, and the number of all boxes.
    firsts: Vec<u32>,
    /// Places of rules with too many boxes, ascending. Each has one enclosing box.
    inexact: Vec<u32>,
}

impl Boxes {
    /// Returns the boxes of rules, in the order of their places. Their bounds have at most
    /// `max_bytes`.
    pub(crate) fn new<'a>(
        space: &Space,
        rules: impl ExactSizeIterator<Item = RuleRef<'a>>,
        max_bytes: u64,
    ) -> Result<Boxes, AnalysisError> {
        let mut boxes = Boxes {
            axes: space.axes(),
            bounds: Vec::new(),
            owners: Vec::with_capacity(rules.len()),
            firsts: vec![0],
            inexact: Vec::new(),
        };
        for (place, rule) in (0..).zip(rules) {
            let exact = space.boxes_of(&rule, MAX_BOXES_PER_RULE, |bounds| {
                boxes.bounds.extend_from_slice(bounds);
                boxes.owners.push(place);
            });
            let count = u32::try_from(boxes.owners.len()).expect("fewer than 2^32 boxes");
            boxes.firsts.push(count);
            if !exact {
                boxes.inexact.push(place);
            }
            check_bytes(&boxes.bounds, max_bytes)?;
        }
        Ok(boxes)
    }

    /// Returns the number of boxes.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Returns the bounds of a box.
    pub(crate) fn bounds(&self, number: u32) -> &[u32] {
        let start = number as usize * 2 * self.axes;
        &self.bounds[start..start + 2 * self.axes]
    }

    /// Returns the place of the rule that a box belongs to.
    pub(crate) fn owner(&self, number: u32) -> u32 {
        self.owners[number as usize]
    }

    /// Returns the numbers of the boxes of the rule at a place.
    pub(crate) fn of(&self, place: u32) -> std::ops::Range<u32> {
        self.firsts[place as usize]..self.firsts[place as usize + 1]
    }

    /// True if the boxes of the rule at a place are exactly what it matches.
    pub(crate) fn is_exact(&self, place: u32) -> bool {
        self.inexact.binary_search(&place).is_err()
    }

    /// True if a rule with too many boxes is at these places and may match headers of
    /// `bounds`.
    pub(crate) fn has_inexact(&self, places: std::ops::Range<u32>, bounds: &[u32]) -> bool {
        let first = self.inexact.partition_point(|&place| place < places.start);
        let inexact = self.inexact[first..].iter();
        let mut inexact = inexact.take_while(|&&place| place < places.end);
        inexact.any(|&place| overlap(self.bounds(self.of(place).start), bounds))
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.bounds.capacity()
            + self.owners.capacity()
            + self.firsts.capacity()
            + self.inexact.capacity();
        words * size_of::<u32>()
    }
}

/// True if two boxes have a header in common.
pub(crate) fn overlap(a: &[u32], b: &[u32]) -> bool {
    let mut axes = a.chunks_exact(2).zip(b.chunks_exact(2));
    axes.all(|(a, b)| a[0] <= b[1] && b[0] <= a[1])
}

/// True if `outer` contains `inner`.
pub(crate) fn covers(outer: &[u32], inner: &[u32]) -> bool {
    let mut axes = outer.chunks_exact(2).zip(inner.chunks_exact(2));
    axes.all(|(outer, inner)| outer[0] <= inner[0] && inner[1] <= outer[1])
}

/// Replaces a box by its intersection with another box, which must overlap it.
pub(crate) fn intersect(bounds: &mut [u32], other: &[u32]) {
    for (ends, other) in bounds.chunks_exact_mut(2).zip(other.chunks_exact(2)) {
        ends[0] = ends[0].max(other[0]);
        ends[1] = ends[1].min(other[1]);
    }
}

/// Returns the share of a box's ranks that another box has, from 0 to 1.
pub(crate) fn shared_ranks(bounds: &[u32], other: &[u32]) -> f64 {
    let axes = bounds.chunks_exact(2).zip(other.chunks_exact(2));
    let shares = axes.map(|(ends, other)| {
        let shared = other[1].min(ends[1]) - other[0].max(ends[0]);
        (f64::from(shared) + 1.0) / (f64::from(ends[1] - ends[0]) + 1.0)
    });
    shares.product()
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, Field, FieldMatch, MatchKind, Priority, RuleId, RuleSet, Schema};

    use super::*;

    /// Returns rules with a range each, over fields whose other rules have masks with holes.
    fn rules_of_many_boxes() -> RuleSet {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, 16, MatchKind::Range));
        let schema = Schema::new("holes", fields.into()).unwrap();
        let mut rules = RuleSet::new(&schema);
        let mut add = |number: usize, field: FieldMatch| {
            let id = RuleId::from_index(number);
            rules
                .add(id, Priority(0), ActionId(0), &[field; 3])
                .unwrap();
        };
        let holes = FieldMatch::Ternary {
            value: 0,
            mask: 0x0f0f,
        };
        add(0, holes);
        for number in 1..100 {
            let low = number as u128;
            add(number, FieldMatch::Range { low, high: 999 });
        }
        rules
    }

    #[test]
    fn memory_has_a_limit() {
        let rules = rules_of_many_boxes();
        let space = Space::new(rules.schema(), &rules.iter(), u64::MAX).unwrap();
        let boxes = Boxes::new(&space, rules.iter(), u64::MAX).unwrap();
        assert!(boxes.len() > 20_000, "{}", boxes.len());
        let bytes = size_of_val(&boxes.bounds[..]) as u64;
        let few = Boxes::new(&space, rules.iter(), bytes / 2);
        assert!(matches!(
            few,
            Err(AnalysisError::TooManyBytes { needed, limit })
                if needed > limit && limit == bytes / 2
        ));
        let few = Space::new(rules.schema(), &rules.iter(), 100);
        assert!(matches!(
            few,
            Err(AnalysisError::TooManyBytes { limit: 100, .. })
        ));
    }

    #[test]
    fn a_rule_of_too_many_boxes_has_one_that_contains_all() {
        let rules = rules_of_many_boxes();
        let space = Space::new(rules.schema(), &rules.iter(), u64::MAX).unwrap();
        let mut boxes = Vec::new();
        let exact = space.boxes_of(&rules.rule(1), usize::MAX, |bounds| {
            boxes.push(bounds.to_vec());
        });
        assert!(exact && boxes.len() > 100);
        let mut hull = Vec::new();
        let exact = space.boxes_of(&rules.rule(1), 100, |bounds| hull.push(bounds.to_vec()));
        assert!(!exact);
        let [hull] = &hull[..] else {
            panic!("{} boxes", hull.len())
        };
        assert!(boxes.iter().all(|bounds| covers(hull, bounds)));
    }
}
