//! Rules whose removal changes no verdict.
//!
//! A live rule is *redundant* if every header that it wins gets the same action from the
//! next rule that matches. So for each worse rule with another action, the headers that
//! both rules match must be covered by rules before the worse rule. And every header of the
//! redundant rule must match some other rule.

use classyard::KeyVec;

use crate::cover::{Cover, CoverSearch, Steps, common};
use crate::part::{AnalysedPart, LONG_LIST, is_union_trial};

/// The effect of a rule's removal. Rules are named by `R`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redundancy<R> {
    /// The removal changes the verdict of some header.
    Needed,
    /// The removal changes no verdict. The worse rules with the same action that win headers
    /// instead, best first; some may not be needed.
    Redundant(Vec<R>),
    /// The search reached its limit.
    Unknown,
}

/// Searches for redundant rules of a part. Rules can be removed.
pub(super) struct RedundancySearch<'a> {
    part: &'a AnalysedPart<'a>,
    /// By place: true if the rule is removed.
    removed: Vec<bool>,
    search: CoverSearch,
}

impl<'a> RedundancySearch<'a> {
    /// Returns a search without removed rules.
    pub(super) fn new(part: &'a AnalysedPart<'a>) -> RedundancySearch<'a> {
        RedundancySearch {
            part,
            removed: vec![false; part.places(0).len()],
            search: CoverSearch::default(),
        }
    }

    /// Removes a rule from later searches, or puts it back.
    pub(super) fn set_removed(&mut self, place: u32, is_removed: bool) {
        self.removed[place as usize] = is_removed;
    }

    /// True if a header that the rule wins gets another action without the rule. `witness`
    /// is the position of the header.
    pub(super) fn is_changed(&self, place: u32, witnesses: &KeyVec, witness: u32) -> bool {
        let key = witnesses.key(witness as usize);
        let point = self.part.space().point(&witnesses.header(witness as usize));
        let boxes = self.part.boxes();
        let mut next_action = None;
        let later = boxes.of(place).end..self.part.boxes_at(self.part.places(0)).end;
        self.part.overlapping(&point, later, |number| {
            let next = self.part.rule(boxes.owner(number));
            if next.matches(key) && !self.removed[boxes.owner(number) as usize] {
                next_action = Some(next.action());
            }
            next_action.is_none()
        });
        next_action != Some(self.part.action(place))
    }

    /// Decides if a rule is redundant.
    pub(super) fn decide(&mut self, place: u32, steps: &mut Steps) -> Redundancy<u32> {
        if !self.part.boxes().is_exact(place) {
            return Redundancy::Unknown;
        }
        let mut successors = Vec::new();
        for number in self.part.boxes().of(place) {
            match self.decide_box(place, number, steps) {
                Redundancy::Redundant(places) => successors.extend(places),
                other => return other,
            }
        }
        successors.sort_unstable();
        successors.dedup();
        Redundancy::Redundant(successors)
    }

    fn decide_box(&mut self, place: u32, number: u32, steps: &mut Steps) -> Redundancy<u32> {
        let boxes = self.part.boxes();
        let bounds = boxes.bounds(number);
        let action = self.part.action(place);
        let other_boxes = self.other_boxes(place, bounds);
        if !steps.take(other_boxes.len()) {
            return Redundancy::Unknown;
        }
        // The exact boxes before `other`.
        let mut earlier: Vec<u32> = Vec::new();
        for &other in &other_boxes {
            let owner = boxes.owner(other);
            if owner > place && self.part.action(owner) != action {
                let target = common(bounds, boxes.bounds(other));
                match self.cover_before(place, owner, &target, &earlier, steps) {
                    Cover::Covered(_) => {}
                    Cover::Uncovered(_) => return Redundancy::Needed,
                    Cover::Unknown => return Redundancy::Unknown,
                }
            }
            if boxes.is_exact(owner) {
                earlier.push(other);
            }
            if owner > place && is_union_trial(earlier.len()) {
                let cover = self.search.search(boxes, bounds, &earlier, steps);
                if let Cover::Covered(_) = cover {
                    break;
                }
            }
        }
        match self.search.search(boxes, bounds, &earlier, steps) {
            Cover::Covered(numbers) => {
                let owners = numbers.iter().map(|&number| boxes.owner(number));
                let has_same_action =
                    |&owner: &u32| owner > place && self.part.action(owner) == action;
                Redundancy::Redundant(owners.filter(has_same_action).collect())
            }
            Cover::Uncovered(_) => Redundancy::Needed,
            Cover::Unknown => Redundancy::Unknown,
        }
    }

    /// Searches for a header of `target` that no rule before `owner` matches, except the rule
    /// at `place`. `earlier` has the exact boxes of these rules, and perhaps later ones.
    fn cover_before(
        &mut self,
        place: u32,
        owner: u32,
        target: &[u32],
        earlier: &[u32],
        steps: &mut Steps,
    ) -> Cover {
        let (part, boxes) = (self.part, self.part.boxes());
        let before = earlier.partition_point(|&number| boxes.owner(number) < owner);
        if before <= LONG_LIST {
            return self.search.search(boxes, target, &earlier[..before], steps);
        }
        let has = |other| other != place && !self.removed[other as usize];
        let numbers = part.boxes_at(part.places(0).start..owner);
        let candidates = part.candidates(target, numbers, has);
        if candidates.one_covers {
            return Cover::Covered(Vec::new());
        }
        self.search.search(boxes, target, &candidates.boxes, steps)
    }

    /// Returns the boxes of other rules that overlap `bounds`, ascending. The list ends with
    /// the first box that contains `bounds`.
    fn other_boxes(&self, place: u32, bounds: &[u32]) -> Vec<u32> {
        let all_boxes = self.part.boxes_at(self.part.places(0));
        let has = |owner| owner != place && !self.removed[owner as usize];
        self.part.until_cover(bounds, all_boxes, has).boxes
    }
}
