//! Headers that two policies decide differently.
//!
//! # Idea
//! Most rules of two versions of a policy are equal. Equal rules are paired, so that the
//! pairs have the same order in both lists. Then a header with different verdicts has an
//! unpaired rule as its winner in at least one list. For if both winners `a` and `b` were
//! paired, the partner of `a` would match the header, so it is not better than `b`; and the
//! partner of `b` is not better than `a`. Pairs do not cross, so `a` and `b` are one pair,
//! with one action.
//!
//! So for each unpaired rule, and each rule with another action in the other list, the
//! headers of both are examined: the part that no better rule of either list matches is a
//! difference.

use std::collections::BTreeMap;

use classyard::policy::PartId;
use classyard::{BuildError, Policy, Progress, RuleId};

use crate::cover::{Cover, CoverSearch, Steps, common};
use crate::error::AnalysisError;
use crate::part::{AnalysedPart, Candidates, LONG_LIST, is_union_trial};

mod one_way;
mod pairs;

use one_way::Scope;
pub use one_way::outside;

/// The settings of [`diff()`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DiffSettings {
    /// The maximum number of steps for one rule. A step compares one rule with a part of
    /// another rule; a million take some 10 ms. The default is 20 million.
    pub max_steps_per_rule: u64,
    /// The maximum number of steps for all rules. The default is 2 billion.
    pub max_steps: u64,
    /// The number of differences after which no further rule is compared. With 1, the
    /// comparison stops after the first rule with a difference. The default is 100,000.
    pub max_differences: usize,
}

impl Default for DiffSettings {
    fn default() -> DiffSettings {
        DiffSettings {
            max_steps_per_rule: 20_000_000,
            max_steps: 2_000_000_000,
            max_differences: 100_000,
        }
    }
}

/// Headers with different actions in two policies, which the same two rules decide.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The part of both policies that the headers belong to.
    pub part: PartId,
    /// The rule of the first policy that decides the headers. `None` if no rule matches.
    pub first: Option<RuleId>,
    /// The rule of the second policy that decides the headers. `None` if no rule matches.
    pub second: Option<RuleId>,
    /// An example: a value for each field.
    pub header: Vec<u128>,
    /// The number of these headers divided by the number of all headers of the part, or by the
    /// number of selected headers in [`outside()`].
    pub share: f64,
    /// True if the search for more of these headers reached its limit, so that `share` is
    /// too small.
    pub more: bool,
}

/// A rule without an equal rule in the other policy, for which a search reached its limit.
/// Headers that it decides may have different actions without being in a [`Difference`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The part.
    pub part: PartId,
    /// 0 for a rule of the first policy, 1 for a rule of the second policy.
    pub policy: usize,
    /// The rule.
    pub rule: RuleId,
}

/// The result of [`diff()`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    differences: Vec<Difference>,
    undecided: Vec<Undecided>,
    unpaired: [usize; 2],
    is_cut: bool,
}

impl Diff {
    /// Returns the differences: first by rules of the first policy without an equal rule in
    /// the second policy, then by rules of the second policy without an equal rule in the
    /// first.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Returns the rules that were not examined completely.
    #[must_use]
    pub fn undecided(&self) -> &[Undecided] {
        &self.undecided
    }

    /// Returns for each policy the number of rules without an equal rule in the other. A
    /// rule of several parts counts in each.
    #[must_use]
    pub fn unpaired(&self) -> [usize; 2] {
        self.unpaired
    }

    /// True if the comparison stopped at [`DiffSettings::max_differences`].
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// True if both policies give the same action to every header. `None` if that was not
    /// decided within the limit of steps.
    #[must_use]
    pub fn is_equivalent(&self) -> Option<bool> {
        match (self.differences.is_empty(), self.undecided.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}

/// Returns the headers for which two policies have different actions. Actions are compared
/// by name; `accept`, `allow`, `permit` and Open vSwitch's `NORMAL` are one action, and so are
/// `deny` and `drop`.
///
/// ```
/// use classyard::prelude::*;
/// use classyard::NoProgress;
/// use classyard_analysis::{DiffSettings, diff};
///
/// let policy = |rules: &[(u128, u128, &str)]| {
///     let mut policy = Policy::single(&Schema::ipv4_5tuple());
///     let part = policy.part_ids().next().unwrap();
///     for (id, &(low, high, action)) in rules.iter().enumerate() {
///         let mut matches = [FieldMatch::Any; 5];
///         matches[3] = FieldMatch::Range { low, high };
///         let action = policy.declare_action(action);
///         let priority = Priority(10 - u32::try_from(id).unwrap());
///         policy.add(RuleId::from_index(id), priority, action, &[(part, &matches)]).unwrap();
///     }
///     policy
/// };
/// let old = policy(&[(80, 89, "permit"), (0, 65535, "deny")]);
/// let new = policy(&[(80, 80, "permit"), (0, 65535, "deny")]);
/// let result = diff(&old, &new, &DiffSettings::default(), &mut NoProgress)?;
/// let [difference] = result.differences() else { unreachable!() };
/// assert!((81..90).contains(&difference.header[3]));
/// assert_eq!(difference.share, 9.0 / 65536.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`AnalysisError`] if the policies have different schemas, the rules need too much memory,
/// or `progress` cancelled.
pub fn diff(
    first: &Policy,
    second: &Policy,
    settings: &DiffSettings,
    progress: &mut dyn Progress,
) -> Result<Diff, AnalysisError> {
    let mut result = Diff::default();
    let mut steps = Steps::new(settings.max_steps);
    check_schemas(first, second)?;
    for part_id in first.part_ids() {
        let policies = [first, second];
        let part = AnalysedPart::new(&policies.map(|policy| policy.part(part_id)))?;
        let actions = common_actions(policies, &part);
        let scope = Scope::default();
        let mut comparison = Comparison::new(part_id, &part, actions, &scope);
        comparison.compare(settings, &mut steps, &mut result, progress)?;
        if result.is_cut {
            break;
        }
    }
    Ok(result)
}

fn check_schemas(first: &Policy, second: &Policy) -> Result<(), AnalysisError> {
    if first.schemas().eq(second.schemas()) {
        return Ok(());
    }
    let names = |policy: &Policy| {
        let names: Vec<&str> = policy.schemas().map(|schema| schema.name()).collect();
        names.join(", ")
    };
    Err(AnalysisError::Schemas {
        first: names(first),
        second: names(second),
    })
}

/// Returns for each place a number of its action. Equal names have equal numbers.
fn common_actions(policies: [&Policy; 2], part: &AnalysedPart<'_>) -> Vec<u32> {
    let mut numbers: BTreeMap<(Option<&str>, u32), u32> = BTreeMap::new();
    let mut actions = Vec::new();
    for (list, policy) in policies.into_iter().enumerate() {
        for place in part.places(list) {
            let action = part.action(place);
            let name = policy.action_name(action).map(common_name);
            // An action without a name is known by its number.
            let key = (name, if name.is_some() { 0 } else { action.0 });
            let next = u32::try_from(numbers.len()).expect("fewer actions than rules");
            actions.push(*numbers.entry(key).or_insert(next));
        }
    }
    actions
}

/// Returns the name of an action that formats have several names for.
fn common_name(action: &str) -> &str {
    match action {
        "accept" | "allow" | "NORMAL" => "permit",
        "drop" => "deny",
        other => other,
    }
}

/// The best rule of the other list that contains a box.
#[derive(Clone, Copy, Debug)]
enum SingleCover {
    /// It is unknown. The number of searches that it could have saved.
    Searches(u8),
    /// The place of the rule, or [`NO_COVER`].
    Known(u32),
}

/// The place that stands for a box that no rule contains.
const NO_COVER: u32 = u32::MAX;

/// The number of searches about a box before the rule that contains it is looked for, which
/// takes as long as a few searches.
const SEARCHES_BEFORE_COVER: u8 = 4;

/// The places of the winners in both lists.
type Winners = [Option<u32>; 2];

/// The comparison of one part.
struct Comparison<'a> {
    part_id: PartId,
    part: &'a AnalysedPart<'a>,
    scope: &'a Scope,
    /// By place.
    actions: Vec<u32>,
    /// By place: the equal rule of the other list.
    pairs: Vec<Option<u32>>,
    /// By box: the best rule of the other list that contains the box.
    covers: Vec<SingleCover>,
    search: CoverSearch,
    /// The differences of the present rule.
    found: BTreeMap<Winners, Difference>,
}

impl<'a> Comparison<'a> {
    /// `actions` has a number of the action at each place of both lists.
    fn new(
        part_id: PartId,
        part: &'a AnalysedPart<'a>,
        actions: Vec<u32>,
        scope: &'a Scope,
    ) -> Comparison<'a> {
        let pairs = pairs::pair(part, |a, b| actions[a as usize] == actions[b as usize]);
        Comparison {
            part_id,
            part,
            scope,
            actions,
            pairs,
            covers: vec![SingleCover::Searches(0); part.boxes().len()],
            search: CoverSearch::default(),
            found: BTreeMap::new(),
        }
    }

    fn compare(
        &mut self,
        settings: &DiffSettings,
        all_steps: &mut Steps,
        result: &mut Diff,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        for list in 0..2 {
            let list_places = self.part.places(list);
            let unpaired = list_places.filter(|&place| self.pairs[place as usize].is_none());
            let unpaired = unpaired.filter(|&place| self.is_in_scope(list, place));
            let unpaired: Vec<u32> = unpaired.collect();
            result.unpaired[list] += unpaired.len();
            for (done, &place) in unpaired.iter().enumerate() {
                let stage = "comparing rules";
                classyard::progress::report(progress, stage, done, unpaired.len())?;
                let mut steps = all_steps.portion(settings.max_steps_per_rule);
                let complete = self.examine(list, place, &mut steps);
                all_steps.give_back(&steps);
                if !complete {
                    result.undecided.push(Undecided {
                        part: self.part_id,
                        policy: list,
                        rule: self.part.rule(place).id(),
                    });
                }
                result
                    .differences
                    .extend(std::mem::take(&mut self.found).into_values());
                if result.differences.len() >= settings.max_differences {
                    result.is_cut = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Finds the differences of headers that an unpaired rule decides. Returns false if the
    /// limit of steps ended the search.
    fn examine(&mut self, list: usize, place: u32, steps: &mut Steps) -> bool {
        let part = self.part;
        let boxes = part.boxes();
        if !boxes.is_exact(place) {
            return false;
        }
        let better_places = part.places(list).start..place;
        let other_boxes = part.boxes_at(part.places(1 - list));
        let mut complete = true;
        for bounds in self.scope.boxes_within(part, place) {
            let bounds = &*bounds;
            let other_places = part.places(1 - list);
            if boxes.has_inexact(better_places.clone(), bounds)
                || boxes.has_inexact(other_places, bounds)
            {
                complete = false;
                continue;
            }
            let better = part.candidates(bounds, part.boxes_at(better_places.clone()), |_| true);
            if better.one_covers {
                continue;
            }
            let others = part.until_cover(bounds, other_boxes.clone(), |_| true);
            complete &= self.examine_box(list, place, bounds, &better.boxes, &others, steps);
        }
        complete
    }

    /// Finds the differences in one box of an unpaired rule. `better` has the boxes of better
    /// rules, and `others` the boxes of the other list; all of them overlap the box.
    fn examine_box(
        &mut self,
        list: usize,
        own_place: u32,
        bounds: &[u32],
        better: &[u32],
        others: &Candidates,
        steps: &mut Steps,
    ) -> bool {
        let boxes = self.part.boxes();
        let mut earlier = better.to_vec();
        let mut complete = steps.take(others.boxes.len());
        for &other in &others.boxes {
            let owner = boxes.owner(other);
            if self.may_differ(list, own_place, owner) && !self.is_covered(list, own_place, other) {
                let target = common(bounds, boxes.bounds(other));
                complete &= self.add(list, own_place, Some(owner), &target, &earlier, steps);
            }
            earlier.push(other);
            if is_union_trial(earlier.len()) {
                let cover = self.search.search(boxes, bounds, &earlier, steps);
                if let Cover::Covered(_) = cover {
                    return complete;
                }
            }
        }
        // Without a rule in the first list, no header has the action in question.
        if !others.one_covers && (list == 0 || self.scope.action.is_none()) {
            complete &= self.add(list, own_place, None, bounds, &earlier, steps);
        }
        complete
    }

    /// True if a rule can decide a header that is examined.
    fn is_in_scope(&self, list: usize, place: u32) -> bool {
        let is_same = |action| action == self.actions[place as usize];
        let action = self.scope.action;
        action.is_none_or(|action| is_same(action) == (list == 0))
    }

    /// True if a better rule than `place`, of the same list, is known to contain a box of the
    /// other list.
    fn is_covered(&mut self, list: usize, place: u32, number: u32) -> bool {
        let part = self.part;
        let cover = &mut self.covers[number as usize];
        match cover {
            SingleCover::Known(other) => *other < place,
            SingleCover::Searches(count) if *count < SEARCHES_BEFORE_COVER => {
                *count += 1;
                false
            }
            SingleCover::Searches(_) => {
                let numbers = part.boxes_at(part.places(list));
                let first = part.first_cover(part.boxes().bounds(number), numbers);
                let cover_place = first.map_or(NO_COVER, |number| part.boxes().owner(number));
                *cover = SingleCover::Known(cover_place);
                cover_place < place
            }
        }
    }

    /// True if headers that `place` decides in its list and `other` in the other list have
    /// different actions and are not found elsewhere.
    fn may_differ(&self, list: usize, place: u32, other: u32) -> bool {
        let is_same_action = self.actions[place as usize] == self.actions[other as usize];
        if is_same_action || !self.is_in_scope(1 - list, other) {
            return false;
        }
        match self.pairs[other as usize] {
            // The partner decides all headers of `other` that better rules leave.
            Some(partner) => partner > place,
            // Two unpaired rules are compared from the first list.
            None => list == 0,
        }
    }

    /// Adds the part of `target` outside of the boxes `earlier` to the differences. These are
    /// the exact boxes of rules better than `place` in its list and of rules before `other` in
    /// the other list.
    fn add(
        &mut self,
        list: usize,
        place: u32,
        other: Option<u32>,
        target: &[u32],
        earlier: &[u32],
        steps: &mut Steps,
    ) -> bool {
        let part = self.part;
        let mut found_by_index = Vec::new();
        let candidates = match earlier.len() {
            0..=LONG_LIST => earlier,
            _ => {
                let all_others = part.places(1 - list);
                let earlier_others = all_others.start..other.unwrap_or(all_others.end);
                for places in [part.places(list).start..place, earlier_others] {
                    let list = part.candidates(target, part.boxes_at(places), |_| true);
                    if list.one_covers {
                        return true;
                    }
                    found_by_index.extend(list.boxes);
                }
                &found_by_index
            }
        };
        let mut winners = [Some(place), other];
        if list == 1 {
            winners.reverse();
        }
        let (part_id, found) = (self.part_id, &mut self.found);
        let (space, whole) = (part.space(), self.scope.share);
        let complete = self
            .search
            .examine(part.boxes(), target, candidates, steps, |piece| {
                let difference = found.entry(winners).or_insert_with(|| Difference {
                    part: part_id,
                    first: winners[0].map(|place| part.rule(place).id()),
                    second: winners[1].map(|place| part.rule(place).id()),
                    header: space.header(piece.chunks_exact(2).map(|ends| ends[0])),
                    share: 0.0,
                    more: false,
                });
                difference.share += space.share(piece) / whole;
                space.prefer(&mut difference.header, piece);
                true
            });
        if let (false, Some(difference)) = (complete, self.found.get_mut(&winners)) {
            difference.more = true;
        }
        complete
    }
}
