//! Rules that can never win, because a better rule matches everything that they
//! match.
//!
//! If a rule covers another, its mask is a subset of the other's mask, and both
//! agree on these bits. So for each rule, look up its masked value in the tuple of
//! each distinct mask that is a subset of its own. That takes a few hash lookups
//! instead of a comparison with every rule.

use std::collections::HashMap;

use classyard::policy::PartId;
use classyard::{Policy, Progress, RuleId, RuleRef, RuleSet};
use classyard_conformance::random::{Dice, SeededDice};

/// The maximum number of lookups and comparisons. Rules that are left when it is
/// reached are not examined.
const MAX_STEPS: usize = 40_000_000;

/// Larger sets are examined in random order, so that the budget covers a fair
/// sample.
const MAX_ORDERED_RULES: usize = 10_000;

/// Rules between two reports of progress.
const REPORT_EVERY: usize = 1024;

/// A rule that cannot win, and a better rule that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shadow {
    pub(super) rule: RuleId,
    pub(super) by: RuleId,
    /// True if both match exactly the same headers.
    pub(super) duplicate: bool,
    /// True if both have the same action.
    pub(super) same_action: bool,
}

/// The rules that cannot win.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    /// The shadows in file order.
    pub(super) shadows: Vec<Shadow>,
    /// The number of examined rules: all of them, or a sample.
    pub(super) examined: usize,
}

/// Finds the rules that a single better rule hides in every part where they occur.
/// Rules that only several better rules hide together are not found.
pub(super) fn find(policy: &Policy, seed: u64, progress: &mut dyn Progress) -> Shadows {
    let parts: Vec<Part<'_>> = policy.parts().iter().map(Part::new).collect();
    let mut ids: Vec<RuleId> = policy.ids().to_vec();
    if ids.len() > MAX_ORDERED_RULES {
        SeededDice::new(seed).shuffle_ids(&mut ids);
    }
    let mut shadows = Shadows::default();
    let mut steps = 0;
    for &id in &ids {
        if steps > MAX_STEPS {
            break;
        }
        if shadows.examined % REPORT_EVERY == 0 {
            let _ = progress.report("looking for shadows", shadows.examined, ids.len());
        }
        shadows.examined += 1;
        shadows
            .shadows
            .extend(shadow(policy, &parts, id, &mut steps));
    }
    shadows
        .shadows
        .sort_unstable_by_key(|shadow| policy.position(shadow.rule));
    shadows
}

trait ShuffleIds {
    fn shuffle_ids(&mut self, ids: &mut [RuleId]);
}

impl ShuffleIds for SeededDice {
    fn shuffle_ids(&mut self, ids: &mut [RuleId]) {
        for last in (1..ids.len()).rev() {
            ids.swap(last, self.below(last + 1));
        }
    }
}

/// Returns the rule that hides a rule, if it is hidden in every part.
fn shadow(policy: &Policy, parts: &[Part<'_>], id: RuleId, steps: &mut usize) -> Option<Shadow> {
    let mut result: Option<Shadow> = None;
    for (part, rule) in policy.rule(id) {
        let by = parts[part.index()].cover(&rule, steps)?;
        let duplicate = rule.covers(&by) && stands(policy, id) == stands(policy, by.id());
        let same_action = by.action() == rule.action();
        let shadow = result.get_or_insert(Shadow {
            rule: id,
            by: by.id(),
            duplicate,
            same_action,
        });
        shadow.duplicate &= duplicate;
        shadow.same_action &= same_action;
    }
    result
}

/// Returns the parts where a rule occurs.
fn stands(policy: &Policy, id: RuleId) -> Vec<PartId> {
    policy.rule(id).map(|(part, _)| part).collect()
}

/// One part's rules by mask and by their values under the mask.
struct Part<'a> {
    rules: &'a RuleSet,
    tuples: Vec<Tuple<'a>>,
}

/// The rules with one mask.
struct Tuple<'a> {
    mask: &'a [u64],
    /// Positions, best first.
    by_value: HashMap<Box<[u64]>, Vec<u32>>,
}

impl<'a> Part<'a> {
    fn new(rules: &'a RuleSet) -> Part<'a> {
        let mut numbers: HashMap<&[u64], usize> = HashMap::new();
        let mut tuples: Vec<Tuple<'a>> = Vec::new();
        for position in rules.by_rank() {
            let rule = rules.rule(position as usize);
            let number = *numbers.entry(rule.mask()).or_insert_with(|| {
                tuples.push(Tuple {
                    mask: rule.mask(),
                    by_value: HashMap::new(),
                });
                tuples.len() - 1
            });
            let value = masked(&rule, rule.mask());
            let bucket = tuples[number].by_value.entry(value.into());
            bucket.or_default().push(position);
        }
        Part { rules, tuples }
    }

    /// Returns a better rule that matches everything that `rule` matches.
    fn cover(&self, rule: &RuleRef<'_>, steps: &mut usize) -> Option<RuleRef<'a>> {
        for Tuple { mask, by_value } in &self.tuples {
            *steps += 1;
            let beyond = mask.iter().zip(rule.mask()).any(|(a, b)| a & !b != 0);
            if beyond {
                continue;
            }
            for &position in by_value
                .get(masked(rule, mask).as_slice())
                .into_iter()
                .flatten()
            {
                *steps += 1;
                let better_rule = self.rules.rule(position as usize);
                if !better_rule.winner().beats(rule.winner()) {
                    break;
                }
                if better_rule.covers(rule) {
                    return Some(better_rule);
                }
            }
        }
        None
    }
}

fn masked(rule: &RuleRef<'_>, mask: &[u64]) -> Vec<u64> {
    let words = rule.value().iter().zip(mask);
    words.map(|(value, mask)| value & mask).collect()
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, FieldMatch, NoProgress, Priority};

    use super::*;

    /// Finds the same shadows by comparing every pair.
    fn slow(policy: &Policy) -> Vec<RuleId> {
        let hidden = |id: &RuleId| {
            policy.rule(*id).all(|(part, rule)| {
                let better = policy.part(part).iter();
                better
                    .filter(|other| other.winner().beats(rule.winner()))
                    .any(|other| other.covers(&rule))
            })
        };
        policy.ids().iter().copied().filter(hidden).collect()
    }

    #[test]
    fn the_short_way_finds_what_comparing_all_pairs_finds() {
        let mut dice = SeededDice::new(5);
        for round in 0..20 {
            let mut policy = Policy::dual_stack();
            for index in 0..60 {
                let port = |dice: &mut SeededDice| {
                    let low = dice.below(4) as u128;
                    let high = low + dice.below(4) as u128;
                    FieldMatch::Range { low, high }
                };
                let length = [0, 8, 31, 32][dice.below(4)];
                let value = dice.below(2) as u128;
                let matches = [
                    FieldMatch::Prefix { value, length },
                    FieldMatch::Any,
                    if dice.below(2) == 0 {
                        FieldMatch::Any
                    } else {
                        port(&mut dice)
                    },
                    port(&mut dice),
                    FieldMatch::Any,
                ];
                let all_parts: Vec<PartId> = policy.part_ids().collect();
                let stands = [&all_parts[..1], &all_parts[1..], &all_parts[..]][dice.below(3)];
                let stands: Vec<_> = stands.iter().map(|&part| (part, &matches[..])).collect();
                let id = RuleId::from_index(index);
                let priority = Priority(u32::try_from(dice.below(50)).unwrap());
                policy.add(id, priority, ActionId(0), &stands).unwrap();
            }
            let shadows = find(&policy, 1, &mut NoProgress);
            let ids: Vec<RuleId> = shadows.shadows.iter().map(|shadow| shadow.rule).collect();
            assert_eq!(ids, slow(&policy), "round {round}");
            assert_eq!(shadows.examined, 60);
        }
    }
}
