//! Rules of different statements that have different actions and share headers.
//!
//! A header that two rules share is of interest only if no better rule decides it. So for
//! each pair of boxes, the common box is searched for a header that no rule of some better
//! places matches.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use classyard::policy::PartId;
use classyard::{BuildError, Policy, Progress, RuleId};

use super::limit::Limit;
use super::statements::Statements;
use crate::cover::{Cover, CoverSearch, Steps, common};
use crate::part::AnalysedPart;

/// The maximum number of rules that a finding about pairs of rules names.
const MAX_PARTNERS: usize = 8;

/// A rule, and better rules with another action that match headers of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The rule, or the first rule of the statement.
    pub rule: RuleId,
    /// The better rules, at most 8, from different statements.
    pub others: Vec<RuleId>,
    /// True if there may be more of them.
    pub more: bool,
    /// The part of the example.
    pub part: PartId,
    /// An example: a header that the first of the better rules and a rule of the statement
    /// match. It has a value for each field.
    pub header: Vec<u128>,
}

/// The conflicts of all statements.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    pub(super) conflicts: Vec<Conflict>,
    /// The first rules of statements that have no conflict but were not decided.
    pub(super) unknown: Vec<RuleId>,
}

/// The rules that are in conflict with the rules of a statement.
#[derive(Debug, Default)]
pub(super) struct Partners {
    rules: Vec<RuleId>,
    is_cut: bool,
    example: Option<(PartId, Vec<u128>)>,
    /// The statements of the rules.
    statements: BTreeSet<u32>,
}

/// A pair of rules of a part, by places. The first one is better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) part: PartId,
    pub(super) better: u32,
    pub(super) worse: u32,
}

/// Searches for pairs of rules.
pub(super) struct PairSearch<'a> {
    parts: &'a [AnalysedPart<'a>],
    statements: Vec<&'a [RuleId]>,
    /// By part and place: the number of the rule's statement.
    statement_at: Vec<Vec<u32>>,
    /// By rule: its parts, and its place in each.
    places: HashMap<RuleId, Vec<(PartId, u32)>>,
    search: CoverSearch,
}

impl<'a> PairSearch<'a> {
    /// Returns a search for pairs of the rules of a policy, whose parts are `parts`.
    pub(super) fn new(
        policy: &Policy,
        parts: &'a [AnalysedPart<'a>],
        statements: &'a Statements,
    ) -> PairSearch<'a> {
        let mut numbers: HashMap<RuleId, u32> = HashMap::new();
        let statements: Vec<&[RuleId]> = statements.iter().collect();
        for (number, rules) in (0..).zip(&statements) {
            numbers.extend(rules.iter().map(|&id| (id, number)));
        }
        let mut places: HashMap<RuleId, Vec<(PartId, u32)>> = HashMap::new();
        let mut statement_at = Vec::new();
        for (part_id, part) in policy.part_ids().zip(parts) {
            let ids = part.places(0).map(|place| (part.rule(place).id(), place));
            for (id, place) in ids.clone() {
                places.entry(id).or_default().push((part_id, place));
            }
            statement_at.push(ids.map(|(id, _)| numbers[&id]).collect());
        }
        PairSearch {
            parts,
            statements,
            statement_at,
            places,
            search: CoverSearch::default(),
        }
    }

    /// Returns the conflicts of all statements. `add` adds the partners of the rule at a place
    /// of a part, and returns false if it could not decide all of them.
    pub(super) fn conflicts(
        &mut self,
        stage: &'static str,
        limit: &mut Limit,
        progress: &mut dyn Progress,
        mut add: impl FnMut(&mut Self, (PartId, u32), &mut Steps, &mut Partners) -> bool,
    ) -> Result<Conflicts, BuildError> {
        let mut result = Conflicts::default();
        let total = self.statements.len();
        for statement in 0..total {
            classyard::progress::report(progress, stage, statement, total)?;
            let rules = self.statements[statement];
            let mut partners = Partners::default();
            let is_complete = limit.for_rule(|steps| {
                let mut is_complete = true;
                for at in self.places(rules) {
                    is_complete &= add(self, at, steps, &mut partners);
                }
                is_complete
            });
            match partners.example {
                Some((part, header)) => result.conflicts.push(Conflict {
                    rule: rules[0],
                    others: partners.rules,
                    more: partners.is_cut || !is_complete,
                    part,
                    header,
                }),
                None if !is_complete => result.unknown.push(rules[0]),
                None => {}
            }
        }
        Ok(result)
    }

    /// Returns a part.
    pub(super) fn part(&self, part: PartId) -> &'a AnalysedPart<'a> {
        &self.parts[part.index()]
    }

    /// Returns the rules of the statement of a rule.
    pub(super) fn statement_of(&self, part: PartId, place: u32) -> &'a [RuleId] {
        self.statements[self.statement_at[part.index()][place as usize] as usize]
    }

    /// Returns the parts of the rules of a statement, and the places in each.
    fn places(&self, statement: &[RuleId]) -> Vec<(PartId, u32)> {
        let places = statement.iter().filter_map(|id| self.places.get(id));
        places.flatten().copied().collect()
    }

    /// Adds the better rules with another action that share a header with the rule at a
    /// place, if no rule at the places `decided_by(pair)` matches the header. Only rules at
    /// the places `better` are considered, and only pairs that `accept` accepts.
    ///
    /// Returns false if a search reached its limit, or a rule needs too many boxes.
    pub(super) fn add_partners(
        &mut self,
        (part_id, worse): (PartId, u32),
        better: Range<u32>,
        decided_by: impl Fn(Pair) -> Range<u32>,
        mut accept: impl FnMut(&mut Self, Pair, &mut Steps) -> Option<bool>,
        steps: &mut Steps,
        partners: &mut Partners,
    ) -> bool {
        let part = self.part(part_id);
        let boxes = part.boxes();
        let own_statement = self.statement_at[part_id.index()][worse as usize];
        let mut complete = true;
        for number in boxes.of(worse) {
            let bounds = boxes.bounds(number);
            let overlapping = self.different(part, worse, bounds, better.clone());
            if !steps.take(overlapping.len()) {
                return false;
            }
            for other in overlapping {
                let owner = boxes.owner(other);
                let statement = self.statement_at[part_id.index()][owner as usize];
                let pair = Pair {
                    part: part_id,
                    better: owner,
                    worse,
                };
                if statement == own_statement || partners.statements.contains(&statement) {
                    continue;
                }
                if partners.rules.len() == MAX_PARTNERS {
                    partners.is_cut = true;
                    return complete;
                }
                let target = common(bounds, boxes.bounds(other));
                let decided_by = decided_by(pair);
                let header = match accept(self, pair, steps) {
                    Some(false) => continue,
                    Some(true) => self.shared_header(pair, &target, decided_by, steps),
                    None => Shared::Unknown,
                };
                match header {
                    Shared::Nothing => {}
                    Shared::Unknown => complete = false,
                    Shared::Header(header) => {
                        partners.statements.insert(statement);
                        partners.rules.push(part.rule(owner).id());
                        partners.example.get_or_insert((part_id, header));
                    }
                }
            }
        }
        complete
    }

    /// Returns the boxes of rules at the places `better` that overlap `bounds` and have
    /// another action than the rule at a place.
    fn different(
        &self,
        part: &AnalysedPart<'_>,
        place: u32,
        bounds: &[u32],
        better: Range<u32>,
    ) -> Vec<u32> {
        let action = part.action(place);
        let mut different = Vec::new();
        part.overlapping(bounds, part.boxes_at(better), |number| {
            if part.action(part.boxes().owner(number)) != action {
                different.push(number);
            }
            true
        });
        different
    }

    /// Searches the common box of a pair for a header that no rule at the places `decided_by`
    /// matches.
    fn shared_header(
        &mut self,
        pair: Pair,
        target: &[u32],
        decided_by: Range<u32>,
        steps: &mut Steps,
    ) -> Shared {
        let part = self.part(pair.part);
        let boxes = part.boxes();
        let candidates = part.candidates(target, part.boxes_at(decided_by.clone()), |_| true);
        if candidates.one_covers {
            return Shared::Nothing;
        }
        if !boxes.is_exact(pair.better) || !boxes.is_exact(pair.worse) {
            return Shared::Unknown;
        }
        match self.search.search(boxes, target, &candidates.boxes, steps) {
            Cover::Covered(_) => Shared::Nothing,
            Cover::Unknown => Shared::Unknown,
            Cover::Uncovered(piece) if boxes.has_inexact(decided_by.clone(), &piece) => {
                Shared::Unknown
            }
            Cover::Uncovered(piece) => {
                let ranks = piece.chunks_exact(2).map(|ends| ends[0]);
                Shared::Header(part.space().header(ranks))
            }
        }
    }

    /// True if the first statement matches a header that the second does not match. `None` if
    /// the search reached its limit, or a rule needs too many boxes.
    pub(super) fn matches_more(
        &mut self,
        first: &[RuleId],
        second: &[RuleId],
        steps: &mut Steps,
    ) -> Option<bool> {
        let other_places = self.places(second);
        let mut is_decided = true;
        for (part_id, place) in self.places(first) {
            let part = self.part(part_id);
            let boxes = part.boxes();
            let second_places = other_places.iter().filter(|(other, _)| *other == part_id);
            let second_places: Vec<u32> = second_places.map(|&(_, other)| other).collect();
            let exact = |&place: &u32| boxes.is_exact(place);
            if !exact(&place) || !second_places.iter().all(exact) {
                is_decided = false;
                continue;
            }
            let candidates: Vec<u32> = second_places
                .iter()
                .flat_map(|&other| boxes.of(other))
                .collect();
            for number in boxes.of(place) {
                match self
                    .search
                    .search(boxes, boxes.bounds(number), &candidates, steps)
                {
                    Cover::Covered(_) => {}
                    Cover::Uncovered(_) => return Some(true),
                    Cover::Unknown => is_decided = false,
                }
            }
        }
        is_decided.then_some(false)
    }
}

/// The answer of a search for a header that two rules share.
enum Shared {
    Nothing,
    Header(Vec<u128>),
    Unknown,
}
