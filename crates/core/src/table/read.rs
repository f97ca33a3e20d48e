//! Rules, actions and cookies at the version that a guard pinned.
//!
//! Matches and priorities come from the side's engine, actions and cookies from
//! the side's store; both are changed together, so they always agree.

use crate::policy::{PartId, PolicyClassifier};
use crate::rule::{ActionId, Rule, RuleId, Winner};
use crate::rule_store::RuleStore;

use super::log::{Replica, dynamic};
use super::{Guard, Side};

impl<C: Replica + ?Sized> Side<C> {
    fn store(&self, part: PartId) -> &RuleStore {
        &self.stores[part.index()]
    }

    /// The rule with that id in a part, if there is one.
    fn rule(&self, part: PartId, id: RuleId) -> Option<Rule> {
        let store = self.store(part);
        let action = store.action(id)?;
        let cookie = store.cookie(id)?;
        let engine = dynamic(&*self.classifier, part);
        let mut words = Vec::with_capacity(engine.schema().rule_words());
        let priority = engine
            .copy_rule(id, &mut words)
            .expect("an engine has the rules of its store");
        let schema = engine.schema();
        let rule = Rule::from_words(schema, id, priority, action, cookie, words);
        Some(rule)
    }

    /// All rules of a part, best first.
    fn rules(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        let engine = dynamic(&*self.classifier, part);
        let mut words = Vec::new();
        let mut order: Vec<Winner> = (self.store(part).ids())
            .map(|id| {
                words.clear();
                let priority = engine.copy_rule(id, &mut words);
                Winner::new(priority.expect("an engine has the rules of its store"), id)
            })
            .collect();
        order.sort_unstable_by_key(|winner| winner.rank());
        order.into_iter().map(move |winner| {
            let rule = winner.rule().and_then(|id| self.rule(part, id));
            rule.expect("rules stay while they are pinned")
        })
    }

    /// What a store says of a winner's rule.
    fn of_winner<T>(
        &self,
        part: PartId,
        winner: Winner,
        read: impl FnOnce(&RuleStore, RuleId) -> Option<T>,
    ) -> Option<T> {
        winner.rule().and_then(|id| read(self.store(part), id))
    }

    /// What the store of the first part where a winner's rule stands says of it.
    fn of_winner_in_any<T>(
        &self,
        winner: Winner,
        read: impl Fn(&RuleStore, RuleId) -> Option<T>,
    ) -> Option<T> {
        let id = winner.rule()?;
        self.stores.iter().find_map(|store| read(store, id))
    }
}

impl<C: Replica + ?Sized> Guard<'_, C> {
    /// Bytes of the side that is pinned: the engine (all parts of a policy), and
    /// the rules' actions and cookies, spare room included. A table holds two
    /// sides.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = (0..self.side.stores.len()).map(PartId::from_index);
        parts.map(|part| self.side.part_bytes(part)).sum()
    }
}

/// Rules, actions and cookies at the [version](Self::version) that was pinned.
impl Guard<'_> {
    /// The action of the rule that won a lookup, `None` for a miss. The winner
    /// should come from this guard; of one from another version, this is the
    /// action that the rule with its id has here, `None` if there is none.
    #[must_use]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        self.side
            .of_winner(PartId::FIRST, winner, RuleStore::action)
    }

    /// The cookie of the rule that won a lookup, `None` for a miss; see
    /// [`action`](Self::action).
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        self.side
            .of_winner(PartId::FIRST, winner, RuleStore::cookie)
    }

    /// A copy of the rule with that id, if there is one.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<Rule> {
        self.side.rule(PartId::FIRST, id)
    }

    /// Copies of all rules, best first: highest priority, then lowest id. At
    /// once it reads each rule's priority and sorts them (O(*n* log *n*), 8
    /// bytes a rule); then each step copies one rule. The guard stays pinned
    /// meanwhile, which for many rules may keep the writer waiting.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule> {
        self.side.rules(PartId::FIRST)
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.side.store(PartId::FIRST).len()
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rules, actions and cookies at the [version](Self::version) that was pinned.
impl Guard<'_, PolicyClassifier> {
    /// The action of the rule that won a lookup, `None` for a miss. The winner
    /// should come from this guard; of one from another version, this is the
    /// action that the rule with its id has here, `None` if there is none.
    ///
    /// A rule usually has one action in all parts where it stands. If it has
    /// several, this is the one in the first of these parts:
    /// [`action_in`](Self::action_in) tells them apart.
    #[must_use]
    pub fn action(&self, winner: Winner) -> Option<ActionId> {
        self.side.of_winner_in_any(winner, RuleStore::action)
    }

    /// The action of the rule that won a lookup in a part, `None` for a miss.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn action_in(&self, part: PartId, winner: Winner) -> Option<ActionId> {
        self.side.of_winner(part, winner, RuleStore::action)
    }

    /// The cookie of the rule that won a lookup, `None` for a miss. Of a rule
    /// with several cookies, this is the one in the first part where it stands.
    #[must_use]
    pub fn cookie(&self, winner: Winner) -> Option<u64> {
        self.side.of_winner_in_any(winner, RuleStore::cookie)
    }

    /// The cookie of the rule that won a lookup in a part, `None` for a miss.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn cookie_in(&self, part: PartId, winner: Winner) -> Option<u64> {
        self.side.of_winner(part, winner, RuleStore::cookie)
    }

    /// A copy of the rule with that id as it stands in a part, if it does.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn rule_in(&self, part: PartId, id: RuleId) -> Option<Rule> {
        self.side.rule(part, id)
    }

    /// Copies of all rules of a part, best first. What it costs:
    /// [`Guard::rules`].
    ///
    /// # Panics
    /// When there is no such part.
    pub fn rules_in(&self, part: PartId) -> impl ExactSizeIterator<Item = Rule> {
        self.side.rules(part)
    }

    /// The number of rules; one that stands in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        match &*self.side.stores {
            [only] => only.len(),
            _ => self.side.classifier.rules(),
        }
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rules of a part.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn len_in(&self, part: PartId) -> usize {
        self.side.store(part).len()
    }
}
