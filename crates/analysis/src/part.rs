//! Rules of one schema, prepared for analysis.

use classyard::{ActionId, RuleRef, RuleSet};

use crate::boxes::{Boxes, covers};
use crate::error::{AnalysisError, MAX_BYTES};
use crate::overlaps::OverlapIndex;
use crate::space::Space;

/// The rules of one list, or of two lists, as boxes with an index. A rule is named by its
/// *place*: the rules of a list have successive places, best first, and the second list
/// follows the first.
#[derive(Debug)]
pub(crate) struct AnalysedPart<'a> {
    lists: Vec<&'a RuleSet>,
    /// The list and the position of the rule at each place.
    order: Vec<(u8, u32)>,
    space: Space,
    boxes: Boxes,
    index: OverlapIndex,
}

impl<'a> AnalysedPart<'a> {
    /// Prepares lists of rules of one schema.
    ///
    /// # Errors
    /// [`AnalysisError::TooManyBytes`] above [`MAX_BYTES`].
    pub(crate) fn new(lists: &[&'a RuleSet]) -> Result<AnalysedPart<'a>, AnalysisError> {
        let mut order = Vec::new();
        for (list, rules) in (0..).zip(lists) {
            order.extend(rules.by_rank().into_iter().map(|position| (list, position)));
        }
        let rule_at =
            |&(list, position): &(u8, u32)| lists[usize::from(list)].rule(position as usize);
        let space = Space::new(lists[0].schema(), &order.iter().map(rule_at), MAX_BYTES)?;
        let boxes = Boxes::new(&space, order.iter().map(rule_at), MAX_BYTES)?;
        let index = OverlapIndex::new(&space, &boxes);
        Ok(AnalysedPart {
            lists: lists.to_vec(),
            order,
            space,
            boxes,
            index,
        })
    }

    /// Returns the rules of a list.
    pub(crate) fn list(&self, list: usize) -> &'a RuleSet {
        self.lists[list]
    }

    /// Returns the places of a list, best rule first.
    pub(crate) fn places(&self, list: usize) -> std::ops::Range<u32> {
        let before = self.lists[..list].iter().map(|rules| rules.len());
        let first = before.sum::<usize>();
        let to_place = |place: usize| u32::try_from(place).expect("fewer rules than ids");
        to_place(first)..to_place(first + self.lists[list].len())
    }

    /// Returns the rule at a place.
    pub(crate) fn rule(&self, place: u32) -> RuleRef<'a> {
        let (list, position) = self.order[place as usize];
        self.lists[usize::from(list)].rule(position as usize)
    }

    /// Returns the action of the rule at a place.
    pub(crate) fn action(&self, place: u32) -> ActionId {
        self.rule(place).action()
    }

    /// Returns the space of the part's headers.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the boxes of all rules.
    pub(crate) fn boxes(&self) -> &Boxes {
        &self.boxes
    }

    /// Returns the numbers of the boxes of all rules at some places.
    pub(crate) fn boxes_at(&self, places: std::ops::Range<u32>) -> std::ops::Range<u32> {
        if places.is_empty() {
            return 0..0;
        }
        self.boxes.of(places.start).start..self.boxes.of(places.end - 1).end
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<(u8, u32)>()
            + self.space.bytes()
            + self.boxes.bytes()
            + self.index.bytes()
    }

    /// Calls `each` with every box among `numbers` that overlaps `bounds`, ascending, until
    /// it returns false.
    pub(crate) fn overlapping(
        &self,
        bounds: &[u32],
        numbers: std::ops::Range<u32>,
        each: impl FnMut(u32) -> bool,
    ) {
        self.index.overlapping(&self.boxes, bounds, numbers, each);
    }

    /// Returns the first box among `numbers` that contains `bounds` and is exact.
    pub(crate) fn first_cover(&self, bounds: &[u32], numbers: std::ops::Range<u32>) -> Option<u32> {
        let mut first = None;
        self.overlapping(bounds, numbers, |number| {
            let exact = self.boxes.is_exact(self.boxes.owner(number));
            if exact && covers(self.boxes.bounds(number), bounds) {
                first = Some(number);
            }
            first.is_none()
        });
        first
    }

    /// Returns the boxes among `numbers` that overlap `bounds`, are exact, and belong to a
    /// place that `has` accepts, ascending. The list ends with the first box that contains
    /// `bounds`.
    pub(crate) fn candidates(
        &self,
        bounds: &[u32],
        numbers: std::ops::Range<u32>,
        has: impl Fn(u32) -> bool,
    ) -> Candidates {
        self.until_cover(bounds, numbers, |owner| {
            has(owner) && self.boxes.is_exact(owner)
        })
    }

    /// Returns the boxes among `numbers` that overlap `bounds` and belong to a place that `has`
    /// accepts, ascending. The list ends with the first exact box that contains `bounds`.
    pub(crate) fn until_cover(
        &self,
        bounds: &[u32],
        numbers: std::ops::Range<u32>,
        has: impl Fn(u32) -> bool,
    ) -> Candidates {
        let mut candidates = Candidates::default();
        self.overlapping(bounds, numbers, |number| {
            let owner = self.boxes.owner(number);
            if has(owner) {
                candidates.boxes.push(number);
                candidates.one_covers =
                    self.boxes.is_exact(owner) && covers(self.boxes.bounds(number), bounds);
            }
            !candidates.one_covers
        });
        candidates
    }
}

/// Returns the rules that match a header that some rule of `others` matches. Of many others,
/// returns all rules, because comparing them would take long.
pub(crate) fn overlapping(rules: &RuleSet, others: &RuleSet) -> RuleSet {
    let overlaps_any = |rule: &RuleRef<'_>| others.iter().any(|other| rule.overlaps(&other));
    let mut overlapping = RuleSet::new(rules.schema());
    let are_many = others.len() > MAX_COMPARED;
    for rule in rules.iter().filter(|rule| are_many || overlaps_any(rule)) {
        overlapping
            .push(rule)
            .expect("rules of the schema with unique ids");
    }
    overlapping
}

/// The maximum number of rules with which [`overlapping`] compares each rule.
const MAX_COMPARED: usize = 16;

/// The length of a list of boxes above which a query of the index is faster than a comparison
/// with every box of the list.
pub(crate) const LONG_LIST: usize = 1000;

/// The number of boxes in a list after which its boxes together are tried as a cover; again
/// after each doubling.
const FIRST_UNION_TRIAL: usize = 8;

/// True if it is time to try if the boxes of a growing list cover another box together.
pub(crate) fn is_union_trial(boxes: usize) -> bool {
    boxes >= FIRST_UNION_TRIAL && boxes.is_power_of_two()
}

/// Boxes that may cover another box.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// The numbers of the boxes, ascending.
    pub(crate) boxes: Vec<u32>,
    /// True if the last one covers the box alone.
    pub(crate) one_covers: bool,
}
