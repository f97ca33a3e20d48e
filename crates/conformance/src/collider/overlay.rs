//! A policy's rules with some rules removed or replaced, without copying the other rules.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{ActionId, Policy, Priority, Rule, RuleId, RuleRef, Winner};

use crate::oracle::{OwnedChange, escape};
use crate::random::Dice;

/// The maximum number of changes of a transaction.
const MAX_CHANGES: usize = 20;

pub(super) struct Overlay<'a> {
    policy: &'a Policy,
    removed: HashSet<RuleId>,
    /// For each part, the rules that replace rules of the policy.
    replaced: Vec<HashMap<RuleId, Arc<Rule>>>,
}

impl<'a> Overlay<'a> {
    /// Returns an overlay without changes.
    pub(super) fn new(policy: &'a Policy) -> Overlay<'a> {
        Overlay {
            policy,
            removed: HashSet::new(),
            replaced: vec![HashMap::new(); policy.parts().len()],
        }
    }

    /// Returns the current rules of a part.
    fn iter(&self, part: PartId) -> impl Iterator<Item = RuleRef<'_>> {
        let rules = self.policy.part(part).iter();
        let untouched = rules.filter(move |rule| self.is_untouched(part, rule.id()));
        untouched.chain(self.replaced(part))
    }

    /// True if a rule of the policy is neither removed nor replaced.
    fn is_untouched(&self, part: PartId, id: RuleId) -> bool {
        let replaced = &self.replaced[part.index()];
        (self.removed.is_empty() || !self.removed.contains(&id))
            && (replaced.is_empty() || !replaced.contains_key(&id))
    }

    fn replaced(&self, part: PartId) -> impl Iterator<Item = RuleRef<'_>> {
        self.replaced[part.index()].values().map(|rule| rule.view())
    }

    /// Returns copies of the current rules of a part.
    pub(super) fn rules(&self, part: PartId) -> Vec<Arc<Rule>> {
        self.iter(part)
            .map(|rule| Arc::new(rule.to_rule()))
            .collect()
    }

    /// Returns the current rule with that id in a part, if there is one.
    pub(super) fn rule(&self, part: PartId, id: RuleId) -> Option<RuleRef<'_>> {
        if self.removed.contains(&id) {
            return None;
        }
        match self.replaced[part.index()].get(&id) {
            Some(rule) => Some(rule.view()),
            None => self.policy.part(part).get(id),
        }
    }

    /// Returns the best current rule that matches a key, by a scan.
    pub(super) fn winner(&self, part: PartId, key: &[u64]) -> Winner {
        let mut best = Winner::MISS;
        for rule in self.policy.part(part).iter() {
            let winner = rule.winner();
            if winner.beats(best) && rule.matches(key) && self.is_untouched(part, rule.id()) {
                best = winner;
            }
        }
        let replaced = self.replaced(part).filter(|rule| rule.matches(key));
        replaced.fold(best, |best, rule| best.or(rule.winner()))
    }

    /// Returns a header that equals a key under a mask but has another winner, if any.
    pub(super) fn escape(&self, part: PartId, key: &[u64], mask: &[u64]) -> Option<Vec<u128>> {
        let rules = self
            .iter(part)
            .map(|rule| (rule.winner(), move |id| rule.field(id)));
        let schema = self.policy.part(part).schema();
        let outcome = self.winner(part, key);
        escape(schema, rules, key, mask, Winner::MISS, outcome)
    }

    /// Makes random changes and returns them, as one list for each part.
    pub(super) fn draw(&mut self, dice: &mut dyn Dice) -> Vec<Vec<OwnedChange>> {
        let ids = self.policy.ids();
        let mut touched = HashSet::new();
        let mut changes = vec![Vec::new(); self.replaced.len()];
        for _ in 0..1 + dice.below(MAX_CHANGES) {
            let id = *dice.pick(ids);
            if !touched.insert(id) {
                continue;
            }
            if self.removed.contains(&id) {
                self.put_back(id, &mut changes);
            } else if dice.one_in(2) {
                self.remove(id, &mut changes);
            } else {
                let reference_id = *dice.pick(ids);
                let mut rules = self.policy.rule(reference_id);
                let priority = rules.next().map_or(0, |(_, rule)| rule.priority().0);
                let priority = match dice.below(3) {
                    0 => priority,
                    1 => priority.saturating_add(1),
                    _ => priority.saturating_sub(1),
                };
                self.replace(id, Priority(priority), &mut changes);
            }
        }
        changes
    }

    /// Reverts all changes, and returns the changes that restore the policy's rules.
    pub(super) fn restore(&mut self) -> Vec<Vec<OwnedChange>> {
        let mut changes = vec![Vec::new(); self.replaced.len()];
        let mut removed: Vec<RuleId> = self.removed.iter().copied().collect();
        removed.sort();
        for id in removed {
            self.put_back(id, &mut changes);
        }
        for part in self.policy.part_ids() {
            let replaced = std::mem::take(&mut self.replaced[part.index()]);
            let mut ids: Vec<RuleId> = replaced.into_keys().collect();
            ids.sort();
            for id in ids {
                let rule = self.policy.part(part).get(id).expect("it was replaced");
                let rule = Arc::new(rule.to_rule());
                changes[part.index()].push(OwnedChange::Modify(rule));
            }
        }
        changes
    }

    fn remove(&mut self, id: RuleId, changes: &mut [Vec<OwnedChange>]) {
        for (part, _) in self.policy.rule(id) {
            changes[part.index()].push(OwnedChange::Remove(id));
            self.replaced[part.index()].remove(&id);
        }
        self.removed.insert(id);
    }

    fn put_back(&mut self, id: RuleId, changes: &mut [Vec<OwnedChange>]) {
        for (part, rule) in self.policy.rule(id) {
            let rule = Arc::new(rule.to_rule());
            changes[part.index()].push(OwnedChange::Insert(rule));
        }
        self.removed.remove(&id);
    }

    fn replace(&mut self, id: RuleId, priority: Priority, changes: &mut [Vec<OwnedChange>]) {
        for (part, rule) in self.policy.rule(id) {
            let ActionId(action) = rule.action();
            let action = ActionId(action.wrapping_add(1));
            let replacement = Rule::new(rule.schema(), id, priority, action, &rule.fields());
            let replacement = replacement.expect("matches of a rule");
            let rule = Arc::new(replacement.with_cookie(rule.cookie()));
            changes[part.index()].push(OwnedChange::Modify(Arc::clone(&rule)));
            self.replaced[part.index()].insert(id, rule);
        }
    }
}
