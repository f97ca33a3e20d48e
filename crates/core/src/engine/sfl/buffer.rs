//! The update buffer: rules that the inner engine does not know, best first.
//!
//! The buffer of the paper is a list of nodes, each with the rules that were
//! inserted before one of the inner engine's. Here all nodes are merged: rules
//! know by their ranks where they belong.
//!
//! # References
//! [SFL17] §IV.A: the update buffer.
//!
//! [SFL17]: crate::papers#sfl17

use std::sync::Arc;

use crate::memory::bytes_of;
use crate::packed::PackedRule;
use crate::rule::{RuleId, RuleRef, Winner};
use crate::schema::Schema;
use crate::unwildcard;

/// Rules in a list, best first.
pub(super) struct Buffer {
    schema: Arc<Schema>,
    ranks: Vec<Winner>,
    words: Vec<u64>,
}

impl Buffer {
    pub(super) fn new(schema: &Arc<Schema>) -> Buffer {
        Buffer {
            schema: Arc::clone(schema),
            ranks: Vec::new(),
            words: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Winner>(self.ranks.capacity()) + bytes_of::<u64>(self.words.capacity())
    }

    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// The place of a rule, or the one where it would be.
    fn place(&self, rank: Winner) -> usize {
        self.ranks.partition_point(|other| other.beats(rank))
    }

    /// Adds a rule that is not there. Moves all rules that are worse.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) {
        let place = self.place(rule.winner());
        let words = self.schema.rule_words();
        self.ranks.insert(place, rule.winner());
        let at = place * words;
        self.words.splice(at..at, rule.words().iter().copied());
    }

    /// Removes a rule, if it is there.
    pub(super) fn remove(&mut self, rank: Winner) -> bool {
        let place = self.place(rank);
        if self.ranks.get(place) != Some(&rank) {
            return false;
        }
        let words = self.schema.rule_words();
        self.ranks.remove(place);
        self.words.drain(place * words..(place + 1) * words);
        true
    }

    /// Removes all rules.
    pub(super) fn clear(&mut self) {
        (self.ranks, self.words) = (Vec::new(), Vec::new());
    }

    /// Removes all rules but those of some ids.
    pub(super) fn keep_only(&mut self, keeps: impl Fn(RuleId) -> bool) {
        let words = self.schema.rule_words();
        let old = std::mem::replace(self, Buffer::new(&self.schema));
        let rows = old.words.chunks_exact(words);
        for (rank, row) in old.ranks.iter().zip(rows) {
            if rank.rule().is_some_and(&keeps) {
                self.ranks.push(*rank);
                self.words.extend_from_slice(row);
            }
        }
    }

    /// The rules that beat a candidate, best first.
    #[inline]
    fn better_than(&self, best: Winner) -> impl Iterator<Item = (Winner, PackedRule<'_>)> {
        let rows = self.words.chunks_exact(self.schema.rule_words());
        let packed = rows.map(|words| PackedRule::new(&self.schema, words));
        self.ranks
            .iter()
            .copied()
            .zip(packed)
            .take_while(move |(rank, _)| rank.beats(best))
    }

    /// The better of `best` and the best rule that matches.
    #[inline]
    pub(super) fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let first = self.better_than(best).find(|(_, rule)| rule.matches(key));
        first.map_or(best, |(rank, _)| rank)
    }

    /// The same, with the bits that it depends on.
    pub(super) fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        for (rank, rule) in self.better_than(best) {
            if rule.matches(key) {
                unwildcard::confirm(&rule, key, mask);
                return rank;
            }
            unwildcard::refute(&rule, key, mask);
        }
        best
    }

    /// The rules that a lookup compares.
    pub(super) fn compared(&self, key: &[u64], best: Winner) -> Vec<RuleId> {
        let found = self.improve(key, best);
        let compared = self.ranks.iter().take_while(|rank| !found.beats(**rank));
        compared.filter_map(|rank| rank.rule()).collect()
    }
}
