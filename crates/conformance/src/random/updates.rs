//! Random streams of updates.

use std::sync::Arc;

use classyard::{Rule, RuleId};

use super::{Dice, RuleMaker};
use crate::oracle::{Oracle, OwnedChange};
use crate::text::foreign_rule;

/// The maximum number of changes of a transaction.
const MAX_CHANGES: usize = 20;

/// Makes transactions for a rule set, in phases. A phase adds and removes rules around a
/// target size; or removes all rules; or adds rules again, with the same ids or other ids;
/// or adds more rules than the limit allows; or repeatedly adds and removes the rules of a
/// tuple; or replaces other rules by rules of a tuple; or repeatedly modifies rules. An
/// eighth of the transactions has a change that must be refused.
#[derive(Clone, Debug)]
pub struct Churn {
    maker: RuleMaker,
    target: usize,
    phase: Phase,
    /// The phases that remain before any phase is repeated.
    deck: Vec<usize>,
    /// Transactions until the next phase.
    left: usize,
    /// Removed rules that may be added again.
    parked: Vec<Arc<Rule>>,
}

/// The number of phases in a full deck. It has some phases twice.
const DECK_SIZE: usize = 10;

#[derive(Clone, Debug)]
enum Phase {
    Mixed,
    Drain,
    Refill,
    Flood,
    Cycle { rules: Vec<Arc<Rule>>, adding: bool },
    Replace,
    Crowd { tuple: usize },
}

impl Churn {
    /// Returns a stream for about `target` rules of the maker's schema.
    #[must_use]
    pub fn new(maker: RuleMaker, target: usize) -> Churn {
        Churn {
            maker,
            target: target.max(1),
            phase: Phase::Mixed,
            deck: Vec::new(),
            left: 10,
            parked: Vec::new(),
        }
    }

    /// Returns the maker of the rules.
    #[must_use]
    pub fn maker(&self) -> &RuleMaker {
        &self.maker
    }

    /// Returns the next transaction for the current rules of the oracle.
    #[must_use]
    pub fn next(&mut self, oracle: &Oracle, dice: &mut dyn Dice) -> Vec<OwnedChange> {
        if self.left == 0 {
            self.enter_phase(oracle, dice);
        }
        self.left -= 1;
        let count = match dice.below(3) {
            0 => 1,
            1 => 1 + dice.below(4),
            _ => 1 + dice.below(MAX_CHANGES),
        };
        let mut draft = Draft::new(oracle);
        for _ in 0..count {
            self.change(&mut draft, dice);
        }
        let mut changes = draft.changes;
        if dice.one_in(8) {
            let refused = self.refused(oracle, &changes, dice);
            let position = dice.below(changes.len() + 1);
            changes.insert(position, refused);
        }
        changes
    }

    fn enter_phase(&mut self, oracle: &Oracle, dice: &mut dyn Dice) {
        let size = oracle.len().max(self.target);
        if dice.one_in(4) {
            // New pools, tuples and styles.
            self.maker = RuleMaker::like(&oracle.to_rule_set(), dice);
        }
        if self.deck.is_empty() {
            self.deck = (0..DECK_SIZE).collect();
            dice.shuffle(&mut self.deck);
        }
        (self.phase, self.left) = match self.deck.pop().unwrap_or_default() {
            0 => (Phase::Drain, 2 + size / 3),
            1 => (Phase::Refill, 2 + size / 4),
            2 => (Phase::Flood, 2 + size / 2),
            3 | 4 => {
                let tuple = dice.below(self.maker.tuples());
                let rules = (0..1 + dice.below(12)).map(|_| {
                    let id = self.maker.id(dice);
                    Arc::new(self.maker.rule_of_tuple(tuple, id, dice))
                });
                let rules = rules.collect();
                let adding = true;
                (Phase::Cycle { rules, adding }, 30)
            }
            5 => (Phase::Replace, 10),
            6 | 7 => {
                let tuple = dice.below(self.maker.tuples());
                (Phase::Crowd { tuple }, 2 + size / 6)
            }
            _ => (Phase::Mixed, 20),
        };
    }

    fn change(&mut self, draft: &mut Draft, dice: &mut dyn Dice) {
        match &mut self.phase {
            Phase::Mixed => {
                let grow = if draft.rules.len() < self.target {
                    5
                } else {
                    3
                };
                match dice.below(10) {
                    n if n < grow => self.insert(draft, dice),
                    9 => self.replace(draft, dice),
                    _ => self.remove(draft, dice),
                }
            }
            Phase::Drain => self.remove(draft, dice),
            Phase::Refill if draft.rules.len() >= self.target => self.replace(draft, dice),
            Phase::Refill | Phase::Flood => self.insert(draft, dice),
            Phase::Replace => self.replace(draft, dice),
            Phase::Crowd { tuple } => {
                // Replaces another rule by a rule of the tuple.
                let tuple = *tuple;
                let id = self.maker.id(dice);
                if draft.rules.len() >= self.target {
                    self.remove(draft, dice);
                }
                if !draft.holds(id) {
                    draft.insert(Arc::new(self.maker.rule_of_tuple(tuple, id, dice)));
                }
            }
            Phase::Cycle { rules, adding } => {
                let is_present = |rule: &Arc<Rule>| draft.holds(rule.view().id());
                let next = rules.iter().find(|rule| is_present(rule) != *adding);
                match next {
                    Some(rule) if *adding => draft.insert(Arc::clone(rule)),
                    Some(rule) => {
                        let id = rule.view().id();
                        draft.remove_id(id);
                    }
                    None => *adding = !*adding,
                }
            }
        }
    }

    fn insert(&mut self, draft: &mut Draft, dice: &mut dyn Dice) {
        if !self.parked.is_empty() && dice.one_in(3) {
            let rule = self.parked.swap_remove(dice.below(self.parked.len()));
            if !draft.holds(rule.view().id()) {
                return draft.insert(rule);
            }
        }
        // If two drawn ids are taken, the change is left out.
        for _ in 0..2 {
            let id = self.maker.id(dice);
            if !draft.holds(id) {
                let like = draft.any(dice);
                let like = like.as_ref().map(|rule| rule.view());
                let rule = match like {
                    Some(like) if dice.one_in(6) => self.maker.duplicate(id, like, dice),
                    like => self.maker.rule(id, like, dice),
                };
                return draft.insert(Arc::new(rule));
            }
        }
    }

    fn remove(&mut self, draft: &mut Draft, dice: &mut dyn Dice) {
        if let Some(rule) = draft.any(dice) {
            draft.remove_id(rule.view().id());
            if self.parked.len() < self.target {
                self.parked.push(rule);
            }
        }
    }

    fn replace(&mut self, draft: &mut Draft, dice: &mut dyn Dice) {
        let Some(old) = draft.any(dice) else {
            return;
        };
        let id = old.view().id();
        let new = match dice.below(4) {
            // Equal matches with another priority, the unchanged rule, a near copy, or a
            // different rule.
            0 => Arc::new(self.maker.duplicate(id, old.view(), dice)),
            1 => old,
            2 => Arc::new(self.maker.rule(id, Some(old.view()), dice)),
            _ => Arc::new(self.maker.rule(id, None, dice)),
        };
        draft.modify(new);
    }

    /// Returns a change that must be refused, at any position among `changes`.
    fn refused(
        &self,
        oracle: &Oracle,
        changes: &[OwnedChange],
        dice: &mut dyn Dice,
    ) -> OwnedChange {
        let touched = |id| changes.iter().any(|change| change.view().id() == id);
        let standing = oracle.rules().find(|rule| !touched(rule.view().id()));
        // An id that neither the rules nor the changes contain.
        let free = (0..u32::MAX)
            .filter_map(|number| RuleId::new(number ^ 0x5555).ok())
            .find(|&id| !oracle.contains(id) && !touched(id))
            .expect("fewer rules than ids");
        match (dice.below(4), standing) {
            (0, Some(rule)) => OwnedChange::Insert(Arc::clone(rule)),
            (0 | 1, _) => OwnedChange::Remove(free),
            (2, _) => OwnedChange::Modify(Arc::new(self.maker.rule(free, None, dice))),
            _ => OwnedChange::Insert(foreign_rule()),
        }
    }
}

/// An unfinished transaction, with the rules after its changes.
struct Draft {
    rules: Vec<Arc<Rule>>,
    changes: Vec<OwnedChange>,
}

impl Draft {
    fn new(oracle: &Oracle) -> Draft {
        Draft {
            rules: oracle.rules().cloned().collect(),
            changes: Vec::new(),
        }
    }

    fn find(&self, id: RuleId) -> Option<usize> {
        self.rules.iter().position(|rule| rule.view().id() == id)
    }

    fn holds(&self, id: RuleId) -> bool {
        self.find(id).is_some()
    }

    fn any(&self, dice: &mut dyn Dice) -> Option<Arc<Rule>> {
        (!self.rules.is_empty()).then(|| Arc::clone(dice.pick(&self.rules)))
    }

    fn insert(&mut self, rule: Arc<Rule>) {
        self.rules.push(Arc::clone(&rule));
        self.changes.push(OwnedChange::Insert(rule));
    }

    fn remove_id(&mut self, id: RuleId) {
        if let Some(position) = self.find(id) {
            self.rules.swap_remove(position);
            self.changes.push(OwnedChange::Remove(id));
        }
    }

    fn modify(&mut self, rule: Arc<Rule>) {
        if let Some(position) = self.find(rule.view().id()) {
            self.rules[position] = Arc::clone(&rule);
            self.changes.push(OwnedChange::Modify(rule));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededDice;
    use classyard::{Limits, RuleSet, Schema, UpdateError};

    #[test]
    fn streams_hold_everything_that_can_happen() {
        let schema = Schema::ipv4_5tuple();
        let mut dice = SeededDice::new(17);
        let limits = Limits::default().with_rules(60);
        let mut oracle = Oracle::new(&RuleSet::new(&schema), &limits);
        let mut churn = Churn::new(RuleMaker::new(&schema, &mut dice), 40);
        let (mut taken, mut empty) = (0, 0);
        let mut refused = [0; 4];
        for _ in 0..4000 {
            let changes = churn.next(&oracle, &mut dice);
            match oracle.apply(&changes) {
                Ok(()) => taken += 1,
                Err(UpdateError::WrongSchema { .. }) => refused[0] += 1,
                Err(UpdateError::DuplicateId { .. }) => refused[1] += 1,
                Err(UpdateError::UnknownId { .. }) => refused[2] += 1,
                Err(_) => refused[3] += 1,
            }
            empty += usize::from(oracle.is_empty());
        }
        assert!(taken > 2000, "{taken}");
        assert!(empty > 10, "{empty}");
        assert!(refused.iter().all(|&n| n > 40), "{refused:?}");
    }
}
