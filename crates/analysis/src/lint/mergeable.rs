//! Rules that can be one rule.
//!
//! # Idea
//! Two rules of the same action that differ in one field can be one rule, if the values of
//! this field are together one match: adjacent ranges, sibling prefixes, or masked values that
//! differ in one bit. The merged rule takes the place of the better rule. So no rule of
//! another action between both may match headers of the worse rule.
//!
//! Two statements can be one statement if the rules of the worse one can be merged with the
//! rules of the better one, first with first and so on, all in one field with one merged match.
//! Rules that are equal need no merge: the worse one decides no header.
//!
//! For each field, rules are grouped by their action and all other fields. In a group, the
//! values that a rule lacks to a larger match are looked up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use classyard::policy::PartId;
use classyard::schema::MatchKind;
use classyard::value::ValueFormat;
use classyard::{BuildError, Field, FieldId, FieldMatch, Policy, Progress, RuleId};

use super::Finding;
use super::limit::Limit;
use super::statements::Statements;
use crate::cover::Steps;
use crate::part::AnalysedPart;

/// The rules that can be merged.
#[derive(Debug)]
pub(super) struct Mergeable {
    pub(super) findings: Vec<Finding>,
    /// The first rules of statements for which the limit of steps was reached.
    pub(super) unknown: Vec<RuleId>,
}

/// A part and a field of it, and the match of a merged rule.
type Merge = (PartId, FieldId, FieldMatch);

/// The maximum number of rules of a statement that is compared with others.
const MAX_STATEMENT_RULES: usize = 64;

/// Returns a finding for each statement that can be merged with a better one: each of its rules
/// with the rule of the better statement in the same position, in the same field, or the two
/// rules are equal. Statements of more than [`MAX_STATEMENT_RULES`] rules are left out.
pub(super) fn find(
    policy: &Policy,
    parts: &[AnalysedPart<'_>],
    statements: &Statements,
    limit: &mut Limit,
    progress: &mut dyn Progress,
) -> Result<Mergeable, BuildError> {
    let numbers = statements.by_position(policy);
    let number = |rule: RuleId| numbers[policy.position(rule).expect("a rule")];
    let rules_of = |number: u32| statements.rules_of(number as usize);
    let mut unknown = BTreeSet::new();
    // By the worse and the better rule: a merge in each part that has both.
    let mut merges: Merges = BTreeMap::new();
    for (part_id, part) in policy.part_ids().zip(parts) {
        let number_at = |place: u32| number(part.rule(place).id());
        let has = |place: u32| rules_of(number_at(place)).len() <= MAX_STATEMENT_RULES;
        let fields: Vec<FieldId> = part.list(0).schema().field_ids().collect();
        for (done, &field) in fields.iter().enumerate() {
            let stage = "searching for mergeable rules";
            classyard::progress::report(progress, stage, done, fields.len())?;
            let search = MergeSearch::new(part, field);
            let mut undecided = Vec::new();
            search.find(has, limit, &mut undecided, |[better, worse], merged| {
                if number_at(better) == number_at(worse) {
                    return;
                }
                let pair = [worse, better].map(|place| part.rule(place).id());
                let merge = (part_id, field, merged);
                merges.entry(pair.into()).or_default().push(merge);
            });
            unknown.extend(undecided.into_iter().map(number));
        }
    }
    let pairs = StatementPairs { policy, merges };
    let findings = statements.iter().filter_map(|rules| {
        let better_rules: BTreeSet<u32> = pairs.better_rules(rules).map(number).collect();
        let merged = better_rules.into_iter().filter_map(|other| {
            let other = rules_of(other);
            Some((other[0], pairs.merge(rules, other)?))
        });
        // The worst of the better statements is the nearest one.
        let (other, (part, field, merged)) = merged.max_by_key(|(other, _)| pairs.rank(*other))?;
        Some(Finding::Mergeable {
            rule: rules[0],
            other,
            part,
            field,
            merged,
        })
    });
    Ok(Mergeable {
        findings: findings.collect(),
        unknown: unknown.into_iter().map(|one| rules_of(one)[0]).collect(),
    })
}

/// By the worse and the better rule: a merge in each part that has both.
type Merges = BTreeMap<(RuleId, RuleId), Vec<Merge>>;

/// Pairs of statements whose rules can be merged.
struct StatementPairs<'a> {
    policy: &'a Policy,
    merges: Merges,
}

impl StatementPairs<'_> {
    /// Returns the better rules that rules can be merged with.
    fn better_rules(&self, rules: &[RuleId]) -> impl Iterator<Item = RuleId> {
        let first = RuleId::from_index(0);
        let pairs = rules
            .iter()
            .flat_map(move |&rule| self.merges.range((rule, first)..=(rule, RuleId::MAX)));
        pairs.map(|((_, other), _)| *other)
    }

    /// Returns the merge of two statements, the worse first, if they can be one.
    fn merge(&self, worse: &[RuleId], better: &[RuleId]) -> Option<Merge> {
        if worse.len() != better.len() {
            return None;
        }
        let mut merge: Option<Merge> = None;
        for (&worse, &better) in worse.iter().zip(better) {
            if self.are_equal(worse, better) {
                continue;
            }
            let merges = self.merges.get(&(worse, better))?;
            let first_merge = *merges.first()?;
            let parts = merges.iter().map(|&(part, ..)| part);
            let is_whole = parts.clone().eq(self.parts_of(worse))
                && parts.eq(self.parts_of(better))
                && merges.iter().all(|merge| merge.1 == first_merge.1);
            if !is_whole || merge.is_some_and(|merge| merge != first_merge) {
                return None;
            }
            merge = Some(first_merge);
        }
        merge
    }

    /// True if a rule has the action and the matches of a better rule, so that it decides no
    /// header.
    fn are_equal(&self, worse: RuleId, better: RuleId) -> bool {
        let forms = |rule| {
            let forms = self.policy.rule(rule);
            forms.map(|(part, rule)| (part, rule.action(), rule.fields()))
        };
        self.rank(better) < self.rank(worse) && forms(worse).eq(forms(better))
    }

    fn parts_of(&self, rule: RuleId) -> impl Iterator<Item = PartId> {
        self.policy.rule(rule).map(|(part, _)| part)
    }

    fn rank(&self, rule: RuleId) -> impl Ord + use<> {
        let rule = self.policy.rule(rule).next().expect("a rule");
        rule.1.winner().rank()
    }
}

/// Searches for rules of a part that differ in one field.
struct MergeSearch<'a> {
    part: &'a AnalysedPart<'a>,
    field: FieldId,
}

impl<'a> MergeSearch<'a> {
    fn new(part: &'a AnalysedPart<'a>, field: FieldId) -> MergeSearch<'a> {
        MergeSearch { part, field }
    }

    /// Calls `each` with the places of two rules that can be merged, the better first, and the
    /// merged match of the field. Adds worse rules that were not decided to `unknown`.
    fn find(
        &self,
        has: impl Fn(u32) -> bool,
        limit: &mut Limit,
        unknown: &mut Vec<RuleId>,
        mut each: impl FnMut([u32; 2], FieldMatch),
    ) {
        let schema = self.part.list(0).schema();
        if schema.field(self.field).format() == ValueFormat::Text {
            return; // Names have no order.
        }
        let hasher = RandomState::new();
        let places = self.part.places(0).filter(|&place| has(place));
        let mut hashed: Vec<(u64, u32)> = places
            .map(|place| (hasher.hash_one(self.others(place)), place))
            .collect();
        hashed.sort_unstable();
        for group in hashed
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|group| group.len() > 1)
        {
            let group: Vec<u32> = group.iter().map(|&(_, place)| place).collect();
            let index =
                GroupIndex::new(schema.field(self.field), |place| self.value(place), &group);
            for &place in &group {
                let complete = limit.for_rule(|steps| {
                    index.partners(self.value(place), |other, merged| {
                        if !steps.take(1) {
                            return false;
                        }
                        let pair = [place.min(other), place.max(other)];
                        if self.others(place) != self.others(other) {
                            return true;
                        }
                        match self.is_free_between(pair, steps) {
                            Some(true) => each(pair, merged),
                            Some(false) => {}
                            None => return false,
                        }
                        true
                    })
                });
                if !complete {
                    unknown.push(self.part.rule(place).id());
                }
            }
        }
    }

    /// Returns the action of a rule and its matches without the field.
    fn others(&self, place: u32) -> (u32, Vec<FieldMatch>) {
        let rule = self.part.rule(place);
        let mut fields = rule.fields();
        fields[self.field.index()] = FieldMatch::Any;
        (rule.action().0, fields)
    }

    fn value(&self, place: u32) -> FieldMatch {
        self.part.rule(place).field(self.field)
    }

    /// True if no rule between two places has another action and matches a header of the
    /// worse rule. `None` if the limit of steps was reached.
    fn is_free_between(&self, [better, worse]: [u32; 2], steps: &mut Steps) -> Option<bool> {
        let part = self.part;
        let rule = part.rule(worse);
        let between = part.boxes_at(better + 1..worse);
        let (mut is_free, mut is_decided) = (true, true);
        for number in part.boxes().of(worse) {
            let bounds = part.boxes().bounds(number);
            part.overlapping(bounds, between.clone(), |other| {
                is_decided &= steps.take(1);
                let other = part.rule(part.boxes().owner(other));
                // A rule of too many boxes may not overlap.
                is_free &= other.action() == rule.action() || !other.overlaps(&rule);
                is_free && is_decided
            });
        }
        if is_free && !is_decided {
            None
        } else {
            Some(is_free)
        }
    }
}

/// The matches of one field of some rules.
struct GroupIndex<'a> {
    field: &'a Field,
    /// The places of intervals by their lowest value, with the highest value.
    by_low: HashMap<u128, Vec<(u128, u32)>>,
    /// The places of masked values.
    by_bits: HashMap<(u128, u128), Vec<u32>>,
}

impl<'a> GroupIndex<'a> {
    fn new(field: &'a Field, value: impl Fn(u32) -> FieldMatch, places: &[u32]) -> GroupIndex<'a> {
        let mut index = GroupIndex {
            field,
            by_low: HashMap::new(),
            by_bits: HashMap::new(),
        };
        for &place in places {
            let value = value(place);
            if let Some((low, high)) = interval(&value, field) {
                index.by_low.entry(low).or_default().push((high, place));
            }
            if let Some(bits) = masked(&value, field) {
                index.by_bits.entry(bits).or_default().push(place);
            }
        }
        index
    }

    /// Calls `each` with every rule that a match can be merged with, and the merged match, until
    /// it returns false. Each pair is found from one of its two matches. Returns false if `each`
    /// did.
    fn partners(&self, value: FieldMatch, mut each: impl FnMut(u32, FieldMatch) -> bool) -> bool {
        if let Some((low, high)) = interval(&value, self.field)
            && high < self.field.max_value()
        {
            let next = self.by_low.get(&(high + 1)).into_iter().flatten();
            for &(last, place) in next {
                let merged = merged_interval(low, last, self.field);
                if merged.is_some_and(|merged| !each(place, merged)) {
                    return false;
                }
            }
        }
        let Some((bits, mask)) = masked(&value, self.field) else {
            return true;
        };
        let is_prefix = |mask: u128| interval_of_mask(0, mask, self.field).is_some();
        for bit in (0..self.field.width()).map(|bit| 1u128 << bit) {
            let wider = mask & !bit;
            // Sibling prefixes are intervals, and were looked up above.
            let are_siblings = is_prefix(mask) && is_prefix(wider);
            let is_lower = mask & bit != 0 && bits & bit == 0;
            let allows_holes = self.field.kind() == MatchKind::Ternary || !is_prefix(mask);
            if are_siblings || !is_lower || !allows_holes {
                continue;
            }
            let partner_places = self.by_bits.get(&(bits | bit, mask)).into_iter().flatten();
            for &place in partner_places {
                let merged = FieldMatch::Ternary {
                    value: bits,
                    mask: wider,
                };
                if !each(place, merged) {
                    return false;
                }
            }
        }
        true
    }
}

/// Returns the lowest and the highest value of a match, if it has all values between them.
fn interval(value: &FieldMatch, field: &Field) -> Option<(u128, u128)> {
    match *value {
        FieldMatch::Range { low, high } => Some((low, high)),
        _ => {
            let (bits, mask) = masked(value, field)?;
            interval_of_mask(bits, mask, field)
        }
    }
}

/// Returns the values under a mask that has no holes.
fn interval_of_mask(bits: u128, mask: u128, field: &Field) -> Option<(u128, u128)> {
    let free = field.max_value() & !mask;
    (free & free.wrapping_add(1) == 0).then_some((bits & mask, bits & mask | free))
}

/// Returns a match as bits under a mask, if it is one.
fn masked(value: &FieldMatch, field: &Field) -> Option<(u128, u128)> {
    let max = field.max_value();
    match *value {
        FieldMatch::Any => Some((0, 0)),
        FieldMatch::Exact(value) => Some((value, max)),
        FieldMatch::Prefix { value, length } => {
            let free = max.checked_shr(length).unwrap_or(0);
            Some((value & max & !free, max & !free))
        }
        FieldMatch::Range { .. } => None,
        FieldMatch::Ternary { value, mask } => Some((value & mask & max, mask & max)),
    }
}

/// Returns an interval as a match that rules of the field can have.
fn merged_interval(low: u128, high: u128, field: &Field) -> Option<FieldMatch> {
    if (low, high) == (0, field.max_value()) {
        return Some(FieldMatch::Any);
    }
    let free = low ^ high;
    let is_prefix = free & free.wrapping_add(1) == 0 && low & free == 0;
    match field.kind() {
        MatchKind::Exact => None,
        MatchKind::Range => Some(FieldMatch::Range { low, high }),
        MatchKind::Prefix | MatchKind::Ternary => is_prefix.then(|| FieldMatch::Prefix {
            value: low,
            length: field.width() - free.count_ones(),
        }),
    }
}
