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
//! ranks:  [ rank ][ rank ][ rank ] …                        best first
//! words:  [ value mask high ][ value mask high ][ … ] …    in the same order
//! by_id:  { id → rank }                                    to find a rule
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
use crate::engine::{Engine, EngineSpec, Wraps};
use crate::error::{BuildError, UpdateError};
use crate::key::KeySlice;
use crate::packed::PackedRule;
use crate::rule::{Priority, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::MapState;
use crate::transaction::{Change, Transaction};
use crate::unwildcard;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "linear",
    summary: "every rule in turn, best first; the oracle",
    paper: "[TM19] §II.B",
    wraps: Wraps::Nothing,
    options: &[],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build,
};

fn build(
    _: &EngineSpec,
    rules: &RuleSet,
    limits: &Limits,
    _progress: &mut dyn Progress,
) -> Result<Box<dyn Classifier>, BuildError> {
    let mut linear = Linear {
        schema: Arc::clone(rules.schema()),
        ranks: Vec::with_capacity(rules.len()),
        words: Vec::with_capacity(rules.len() * rules.schema().rule_words()),
        by_id: rules
            .iter()
            .map(|rule| (rule.id(), rule.winner()))
            .collect(),
        limits: *limits,
    };
    for index in rules.by_rank() {
        let rule = rules.rule(index as usize);
        linear.ranks.push(rule.winner());
        linear.words.extend_from_slice(rule.words());
    }
    limits.check_bytes(linear.stats().bytes())?;
    Ok(Box::new(linear))
}

/// Rules in a list, best first.
struct Linear {
    schema: Arc<Schema>,
    ranks: Vec<Winner>,
    words: Vec<u64>,
    by_id: HashMap<RuleId, Winner, MapState>,
    limits: Limits,
}

impl Linear {
    /// The rules that could improve a candidate, best first.
    fn better_than(&self, best: Winner) -> impl Iterator<Item = (Winner, PackedRule<'_>)> {
        let rows = self.words.chunks_exact(self.schema.rule_words());
        let packed = rows.map(|words| PackedRule::new(&self.schema, words));
        self.ranks
            .iter()
            .copied()
            .zip(packed)
            .take_while(move |(rank, _)| rank.beats(best))
    }

    fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let first = self.better_than(best).find(|(_, rule)| rule.matches(key));
        first.map_or(best, |(rank, _)| rank)
    }

    /// Bytes held, spare room included.
    fn held_bytes(&self) -> usize {
        self.ranks.capacity() * size_of::<Winner>()
            + self.words.capacity() * size_of::<u64>()
            + self.by_id.allocation_size()
    }

    fn insert(&mut self, rule: RuleRef<'_>) {
        self.by_id.insert(rule.id(), rule.winner());
        let at = self.ranks.partition_point(|rank| rank.beats(rule.winner()));
        self.ranks.insert(at, rule.winner());
        let row = at * self.schema.rule_words();
        self.words.splice(row..row, rule.words().iter().copied());
    }

    fn remove(&mut self, id: RuleId) {
        let rank = self.by_id.remove(&id).expect("checked before");
        let at = self.ranks.partition_point(|other| other.beats(rank));
        self.ranks.remove(at);
        let width = self.schema.rule_words();
        self.words.drain(at * width..(at + 1) * width);
        let left = self.ranks.len();
        if left * 5 < self.ranks.capacity() * 2 {
            self.ranks.shrink_to(left / 2 * 3);
            self.words.shrink_to(left / 2 * 3 * width);
            self.by_id.shrink_to(left / 2 * 3);
        }
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
        for (rank, rule) in self.better_than(best) {
            if rule.matches(key) {
                unwildcard::confirm(&rule, key, mask);
                return rank;
            }
            unwildcard::refute(&rule, key, mask);
        }
        best
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        let winner = self.improve(key, Winner::MISS);
        let compared = self.ranks.iter().take_while(|rank| !winner.beats(**rank));
        LookupTrace {
            probes: vec![Probe {
                table: 0,
                mask: vec![0; self.schema.key_words()],
                rules: self.ranks.len(),
                compared: compared.filter_map(|rank| rank.rule()).collect(),
                winner,
            }],
            tables: 1,
            winner,
        }
    }

    fn stats(&self) -> Stats {
        let rule = self.schema.rule_words() * size_of::<u64>() + size_of::<Winner>();
        let rule_bytes = self.ranks.len() * rule;
        Stats {
            rules: self.ranks.len(),
            tables: 1,
            rule_bytes,
            index_bytes: self.held_bytes() - rule_bytes,
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
        self.by_id.contains_key(&id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let rank = *self.by_id.get(&id)?;
        let at = self.ranks.partition_point(|other| other.beats(rank));
        let width = self.schema.rule_words();
        words.extend_from_slice(&self.words[at * width..(at + 1) * width]);
        rank.priority()
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        transaction.validate(
            &self.schema,
            &self.limits,
            self.ranks.len(),
            || self.held_bytes(),
            |id| self.contains(id),
        )
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
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
    }
}
