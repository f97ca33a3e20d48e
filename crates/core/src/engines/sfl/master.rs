//! The master rule set: all current rules, in the inner engine or in the buffer.
//!
//! # Data layout
//! ```text
//! winners:  [ rank ] …      actions: [ action ] …      in no order
//! words:    [ value mask high ] …                      in the same order
//! places:   { id → place }
//! ```
//! It also has the sum of all rules' hashes, which shows whether two sets of rules are
//! equal.
//!
//! The last rule moves to the place of a removed rule. So a copy of the rules from the
//! last place to the first, some at a time, misses no rule that does not change during
//! the copy.
//!
//! # References
//! [SFL17] §IV: the master rule set.
//!
//! [SFL17]: crate::papers#sfl17

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::budget::memory::{bytes_of, map_bytes};
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::packed::PackedRule;
use crate::model::rule::{ActionId, RuleId, RuleRef, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::MapState;
use crate::parts::unwildcard;

/// All rules.
pub(super) struct Master {
    schema: Arc<Schema>,
    winners: Vec<Winner>,
    actions: Vec<ActionId>,
    words: Vec<u64>,
    places: HashMap<RuleId, u32, MapState>,
    /// The sum of the hashes of all rules, with overflow.
    sum: u64,
}

impl Master {
    /// Bytes of `rules` rules.
    pub(super) fn bytes_of(schema: &Schema, rules: usize) -> usize {
        let words = bytes_of::<u64>(rules.saturating_mul(schema.rule_words()));
        let rows = bytes_of::<Winner>(rules) + bytes_of::<ActionId>(rules);
        words.saturating_add(rows + map_bytes::<RuleId, u32>(rules))
    }

    /// Copies rules, and counts the memory.
    pub(super) fn build(rules: &RuleSet, monitor: &mut Monitor<'_>) -> Result<Master, BuildError> {
        let count = rules.len();
        let schema = Arc::clone(rules.schema());
        monitor.memory().keep(Self::bytes_of(&schema, count))?;
        let mut master = Master {
            winners: Vec::with_capacity(count),
            actions: Vec::with_capacity(count),
            words: Vec::with_capacity(count * schema.rule_words()),
            places: HashMap::with_capacity_and_hasher(count, MapState::default()),
            sum: 0,
            schema,
        };
        for rule in rules.iter() {
            master.insert(&rule);
            monitor.advance(1)?;
        }
        Ok(master)
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Winner>(self.winners.capacity())
            + bytes_of::<ActionId>(self.actions.capacity())
            + bytes_of::<u64>(self.words.capacity())
            + self.places.allocation_size()
    }

    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub(super) fn len(&self) -> usize {
        self.winners.len()
    }

    pub(super) fn winners(&self) -> &[Winner] {
        &self.winners
    }

    /// The sum of the hashes of all rules.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns a rule's hash. It does not depend on the action, since inner engines have
    /// no actions.
    pub(super) fn hash(rule: &RuleRef<'_>) -> u64 {
        MapState::default().hash_one((rule.winner().rank(), rule.words()))
    }

    pub(super) fn contains(&self, id: RuleId) -> bool {
        self.places.contains_key(&id)
    }

    fn words(&self, place: usize) -> &[u64] {
        let words = self.schema.rule_words();
        &self.words[place * words..][..words]
    }

    fn rule(&self, place: usize) -> RuleRef<'_> {
        let winner = self.winners[place];
        RuleRef {
            schema: &self.schema,
            id: winner.rule().expect("a rule"),
            priority: winner.priority().expect("a rule"),
            action: self.actions[place],
            cookie: 0,
            words: self.words(place),
        }
    }

    /// Returns the rule with that id.
    pub(super) fn get(&self, id: RuleId) -> Option<RuleRef<'_>> {
        Some(self.rule(*self.places.get(&id)? as usize))
    }

    /// Adds a rule; returns false if its id exists.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let Entry::Vacant(entry) = self.places.entry(rule.id()) else {
            return false;
        };
        let index = u32::try_from(self.winners.len()).expect("there are fewer ids");
        entry.insert(index);
        self.winners.push(rule.winner());
        self.actions.push(rule.action());
        self.words.extend_from_slice(rule.words());
        self.sum = self.sum.wrapping_add(Self::hash(rule));
        true
    }

    /// Removes the rule with that id.
    pub(super) fn remove(&mut self, id: RuleId) -> Option<Winner> {
        let index = self.places.remove(&id)? as usize;
        self.sum = self.sum.wrapping_sub(Self::hash(&self.rule(index)));
        let winner = self.winners.swap_remove(index);
        self.actions.swap_remove(index);
        let (words, remaining) = (self.schema.rule_words(), self.winners.len());
        if let Some(moved) = self.winners.get(index) {
            let moved = moved.rule().expect("a rule");
            let known = self.places.get_mut(&moved).expect("every rule is known");
            *known = u32::try_from(index).expect("places of fewer rules");
            self.words
                .copy_within(remaining * words..(remaining + 1) * words, index * words);
        }
        self.words.truncate(remaining * words);
        if remaining * 5 < self.winners.capacity() * 2 {
            let room = remaining / 2 * 3;
            self.winners.shrink_to(room);
            self.actions.shrink_to(room);
            self.words.shrink_to(room * words);
            self.places.shrink_to(room);
        }
        Some(winner)
    }

    /// Copies at most `count` rules to a set, from the place `below` downwards, except
    /// rules whose ids are in the set. Returns the `below` of the next call.
    pub(super) fn copy_some(&self, below: usize, count: usize, to: &mut RuleSet) -> usize {
        let limit = below.min(self.len());
        let first = limit.saturating_sub(count);
        for place in (first..limit).rev() {
            let rule = self.rule(place);
            if to.get(rule.id()).is_none() {
                to.push(rule).expect("a rule of this schema");
            }
        }
        first
    }

    /// Returns a set of all rules.
    pub(super) fn to_rule_set(&self) -> RuleSet {
        let mut rules = RuleSet::new(&self.schema);
        rules.reserve(self.len());
        self.copy_some(self.len(), self.len(), &mut rules);
        rules
    }

    fn packed(&self) -> impl Iterator<Item = (Winner, PackedRule<'_>)> {
        let rows = self.words.chunks_exact(self.schema.rule_words());
        let rows = rows.map(|words| PackedRule::new(&self.schema, words));
        self.winners.iter().copied().zip(rows)
    }

    /// Returns the better of `best` and the best matching rule, by a search of all
    /// rules.
    pub(super) fn scan(&self, key: &[u64], mut best: Winner) -> Winner {
        for (winner, rule) in self.packed() {
            if winner.beats(best) && rule.matches(key) {
                best = winner;
            }
        }
        best
    }

    /// Like [`scan`](Self::scan); also sets the bits on which the result depends.
    pub(super) fn scan_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        let best_match = self.scan(key, best);
        for (winner, rule) in self.packed() {
            if winner.beats(best_match) {
                unwildcard::refute(&rule, key, mask);
            } else if winner == best_match {
                unwildcard::confirm(&rule, key, mask);
            }
        }
        best_match
    }
}
