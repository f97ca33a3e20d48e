//! Rules that can never win, because a better one matches all that they match.
//!
//! A rule that covers another has a mask with no bit beyond the other's, and
//! agrees with it on these bits. So for each rule it is enough to look, for
//! each distinct mask that is a part of its own, at the rules with this mask
//! that agree: a few look-ups in a hash map instead of a comparison with every
//! rule.

use std::collections::HashMap;

use classyard::policy::PartId;
use classyard::{Policy, Progress, RuleId, RuleRef, RuleSet};
use classyard_workload::kit::random::{Dice, SeededDice};

/// Look-ups and comparisons that are made at most; beyond that, the rest of
/// the rules is left out.
const BUDGET: usize = 40_000_000;

/// Sets with more rules than this are looked at in random order, so that the
/// budget leaves a fair sample.
const SMALL: usize = 10_000;

/// Rules between two reports of progress.
const REPORT_EVERY: usize = 1024;

/// A rule that cannot win, and a better one that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shadow {
    pub(super) rule: RuleId,
    pub(super) by: RuleId,
    /// Whether both match exactly the same headers.
    pub(super) duplicate: bool,
    /// Whether both have the same action.
    pub(super) same_action: bool,
}

/// The rules that cannot win.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    /// In file order.
    pub(super) shadows: Vec<Shadow>,
    /// How many rules were looked at; all of them, or a sample.
    pub(super) examined: usize,
}

/// Finds the rules that a single better rule hides in every part where they
/// stand. (What several rules hide together is not found.)
pub(super) fn find(policy: &Policy, seed: u64, progress: &mut dyn Progress) -> Shadows {
    let parts: Vec<Part<'_>> = policy.parts().iter().map(Part::new).collect();
    let mut ids: Vec<RuleId> = policy.ids().to_vec();
    if ids.len() > SMALL {
        SeededDice::new(seed).shuffle_ids(&mut ids);
    }
    let mut found = Shadows::default();
    let mut steps = 0;
    for &id in &ids {
        if steps > BUDGET {
            break;
        }
        if found.examined % REPORT_EVERY == 0 {
            let _ = progress.report("looking for shadows", found.examined, ids.len());
        }
        found.examined += 1;
        found.shadows.extend(shadow(policy, &parts, id, &mut steps));
    }
    found
        .shadows
        .sort_unstable_by_key(|shadow| policy.position(shadow.rule));
    found
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

/// Who hides a rule, if it is hidden wherever it stands.
fn shadow(policy: &Policy, parts: &[Part<'_>], id: RuleId, steps: &mut usize) -> Option<Shadow> {
    let mut found: Option<Shadow> = None;
    for (part, rule) in policy.rule(id) {
        let by = parts[part.index()].cover(&rule, steps)?;
        let duplicate = rule.covers(&by) && stands(policy, id) == stands(policy, by.id());
        let same_action = by.action() == rule.action();
        let shadow = found.get_or_insert(Shadow {
            rule: id,
            by: by.id(),
            duplicate,
            same_action,
        });
        shadow.duplicate &= duplicate;
        shadow.same_action &= same_action;
    }
    found
}

/// The parts where a rule stands.
fn stands(policy: &Policy, id: RuleId) -> Vec<PartId> {
    policy.rule(id).map(|(part, _)| part).collect()
}

/// One part's rules by mask and by their values under it.
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

    /// A better rule that matches all that a rule matches.
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
                let other = self.rules.rule(position as usize);
                if !other.winner().beats(rule.winner()) {
                    break;
                }
                if other.covers(rule) {
                    return Some(other);
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

    /// The same by comparing every pair.
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
                let both: Vec<PartId> = policy.part_ids().collect();
                let stands = [&both[..1], &both[1..], &both[..]][dice.below(3)];
                let stands: Vec<_> = stands.iter().map(|&part| (part, &matches[..])).collect();
                let id = RuleId::from_index(index);
                let priority = Priority(u32::try_from(dice.below(50)).unwrap());
                policy.add(id, priority, ActionId(0), &stands).unwrap();
            }
            let found = find(&policy, 1, &mut NoProgress);
            let ids: Vec<RuleId> = found.shadows.iter().map(|shadow| shadow.rule).collect();
            assert_eq!(ids, slow(&policy), "round {round}");
            assert_eq!(found.examined, 60);
        }
    }
}
