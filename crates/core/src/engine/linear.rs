//! `linear`: every rule in turn. The oracle.
//!
//! # Idea
//! Rules stand in a list, best first. A lookup walks the list and stops at the
//! first rule that matches, or as soon as no later rule can improve the
//! candidate. There is nothing to get wrong, so every other engine is held
//! against this one.
//!
//! # Data layout
//! ```text
//! rules:  [ rule 17 ][ rule 3 ][ rule 40 ] …      best rank first
//! ranks:  { id → rank }                           to find a rule for removal
//! ```
//!
//! # Lookup
//! ```text
//! for rule in rules:
//!     if not rule.rank beats best: stop
//!     if rule matches key: best = rule.rank; stop
//! ```
//!
//! # Cost
//! Lookup O(n), on average half of the rules above the winner. Insert and
//! remove O(n) to shift the list. Memory: the rules and one hash entry each.
//!
//! # Where we differ from the paper, and why
//! [TM19] Table II has linear search as a linked list in priority order; ours
//! is an array, because walking memory in order is what linear search is good
//! at.
//!
//! # References
//! [TM19] §II.B, Table II.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::classifier::{
    Classifier, DynamicClassifier, Limits, LookupTrace, Probe, Progress, Scratch, Stats,
};
use crate::engine::{Engine, EngineOptions};
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::rule::{Rule, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::transaction::{Change, Transaction};
use crate::unwildcard;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "linear",
    summary: "every rule in turn, best first; the oracle",
    paper: "[TM19] §II.B",
    dynamic: true,
    options: &[],
    build,
};

fn build(
    rules: &RuleSet,
    _options: &EngineOptions,
    limits: &Limits,
    _progress: &mut dyn Progress,
) -> Result<Box<dyn Classifier>, BuildError> {
    let mut linear = Linear {
        schema: Arc::clone(rules.schema()),
        rules: rules.iter().map(|rule| rule.to_rule()).collect(),
        ranks: rules
            .iter()
            .map(|rule| (rule.id(), rule.winner()))
            .collect(),
        limits: *limits,
    };
    linear
        .rules
        .sort_unstable_by_key(|rule| rule.view().winner().rank());
    limits.check_bytes(linear.stats().bytes())?;
    Ok(Box::new(linear))
}

/// Rules in a list, best first.
struct Linear {
    schema: Arc<Schema>,
    rules: Vec<Rule>,
    ranks: HashMap<RuleId, Winner, foldhash::fast::FixedState>,
    limits: Limits,
}

impl Linear {
    /// The rules that could improve a candidate, best first.
    fn better_than(&self, best: Winner) -> impl Iterator<Item = RuleRef<'_>> {
        self.rules
            .iter()
            .map(Rule::view)
            .take_while(move |rule| rule.winner().beats(best))
    }

    fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let first = self.better_than(best).find(|rule| rule.matches(key));
        first.map_or(best, |rule| rule.winner())
    }

    fn insert(&mut self, rule: RuleRef<'_>) {
        self.ranks.insert(rule.id(), rule.winner());
        let at = self
            .rules
            .partition_point(|r| r.view().winner().beats(rule.winner()));
        self.rules.insert(at, rule.to_rule());
    }

    fn remove(&mut self, id: RuleId) {
        let rank = self.ranks.remove(&id).expect("checked before");
        let at = self
            .rules
            .partition_point(|r| r.view().winner().beats(rank));
        self.rules.remove(at);
    }
}

impl Classifier for Linear {
    fn engine(&self) -> &'static str {
        ENGINE.name
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], _: &mut Scratch) {
        assert_eq!(
            keys.width(),
            self.schema.key_words(),
            "keys of another schema"
        );
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        for (key, winner) in keys.iter().zip(winners) {
            *winner = self.improve(key, *winner);
        }
    }

    fn classify_masked(
        &self,
        key: &[u64],
        best: Winner,
        mask: &mut [u64],
        _: &mut Scratch,
    ) -> Winner {
        assert_eq!(
            key.len(),
            self.schema.key_words(),
            "a key of another schema"
        );
        for rule in self.better_than(best) {
            if rule.matches(key) {
                unwildcard::confirm(&rule.into(), key, mask);
                return rule.winner();
            }
            unwildcard::refute(&rule.into(), key, mask);
        }
        best
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        let winner = self.improve(key, Winner::MISS);
        let compared = self
            .rules
            .iter()
            .map(Rule::view)
            .take_while(|rule| !winner.beats(rule.winner()));
        LookupTrace {
            probes: vec![Probe {
                table: 0,
                mask: vec![0; self.schema.key_words()],
                rules: self.rules.len(),
                compared: compared.map(|rule| rule.id()).collect(),
                winner,
            }],
            tables: 1,
            winner,
        }
    }

    fn stats(&self) -> Stats {
        let words = self.schema.rule_words() * size_of::<u64>();
        let rule_bytes = self.rules.len() * (words + size_of::<Winner>());
        let held = self.rules.capacity() * size_of::<Rule>()
            + self.rules.len() * words
            + self.ranks.allocation_size();
        Stats {
            rules: self.rules.len(),
            tables: 1,
            rule_bytes,
            index_bytes: held - rule_bytes,
            details: Vec::new(),
        }
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        Some(self)
    }
}

impl DynamicClassifier for Linear {
    fn contains(&self, id: RuleId) -> bool {
        self.ranks.contains_key(&id)
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        transaction.validate(&self.schema, &self.limits, self.rules.len(), |id| {
            self.contains(id)
        })
    }

    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        self.check(transaction)?;
        for change in transaction.changes() {
            match *change {
                Change::Insert(rule) => self.insert(rule),
                Change::Remove(id) => self.remove(id),
                Change::Modify(rule) => {
                    self.remove(rule.id());
                    self.insert(rule);
                }
            }
        }
        Ok(())
    }
}
