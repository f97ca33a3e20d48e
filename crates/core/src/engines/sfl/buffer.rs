//! The update buffer: rules that are not in the inner engine, best first.
//!
//! The buffer of the paper is a list of nodes; each node has the rules inserted before a
//! certain rule of the inner engine. Here all nodes are merged: the ranks of rules
//! determine their places.
//!
//! A lookup compares a key with eight rules at a time, by the bits that each rule fixes:
//! the bits of its mask, and in a range the leading bits that both ends share. Rules
//! whose fixed bits equal the key's are compared in full, best first.
//! ```text
//! ranks:   [ rank ] …                     best first
//! words:   [ value mask high ] …          in the same order
//! lanes:   [ value × 8 | care × 8 ] …     eight rules, word by word; the last block
//!                                         has unused lanes
//! ```
//!
//! # References
//! [SFL17] §IV.A: the update buffer.
//!
//! [SFL17]: crate::papers#sfl17

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::model::packed::PackedRule;
use crate::model::rule::{RuleId, RuleRef, Winner};
use crate::model::schema::{MAX_KEY_WORDS, Schema};
use crate::parts::simd::Isa;
use crate::parts::simd::bits::Block;
use crate::parts::simd::lanes::{EMPTY, LANES, close, first_alike, open, put, rows_of};
use crate::parts::unwildcard;

/// The number of blocks that are compared between two checks of a rule's rank. Measured in
/// `bench/records/constants.md` (SFL).
const BLOCKS_PER_RANK_CHECK: usize = 8;

/// Rules in a list, best first.
pub(super) struct Buffer {
    schema: Arc<Schema>,
    isa: Isa,
    ranks: Vec<Winner>,
    words: Vec<u64>,
    lanes: Vec<Block>,
}

impl Buffer {
    pub(super) fn new(schema: &Arc<Schema>, isa: Isa) -> Buffer {
        Buffer {
            schema: Arc::clone(schema),
            isa,
            ranks: Vec::new(),
            words: Vec::new(),
            lanes: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Winner>(self.ranks.capacity())
            + bytes_of::<u64>(self.words.capacity())
            + bytes_of::<Block>(self.lanes.capacity())
    }

    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the place of a rule, or its place if it were inserted.
    fn place(&self, rank: Winner) -> usize {
        self.ranks.partition_point(|other| other.beats(rank))
    }

    /// Adds a rule that is not in the buffer. Moves all worse rules.
    pub(super) fn insert(&mut self, rule: &RuleRef<'_>) {
        let index = self.place(rule.winner());
        let words = self.schema.rule_words();
        self.ranks.insert(index, rule.winner());
        let row = index * words;
        self.words.splice(row..row, rule.words().iter().copied());
        self.fit_lanes();
        open(&mut self.lanes, self.schema.key_words(), index);
        self.fill_lane(index);
    }

    /// Removes a rule; returns true if it was in the buffer.
    pub(super) fn remove(&mut self, rank: Winner) -> bool {
        let index = self.place(rank);
        if self.ranks.get(index) != Some(&rank) {
            return false;
        }
        let words = self.schema.rule_words();
        self.ranks.remove(index);
        self.words.drain(index * words..(index + 1) * words);
        close(&mut self.lanes, self.schema.key_words(), index);
        self.fit_lanes();
        true
    }

    /// Removes all rules.
    pub(super) fn clear(&mut self) {
        *self = Buffer::new(&self.schema, self.isa);
    }

    /// Removes all rules except those whose ids `keeps` accepts.
    pub(super) fn keep_only(&mut self, keeps: impl Fn(RuleId) -> bool) {
        let words = self.schema.rule_words();
        let new = Buffer::new(&self.schema, self.isa);
        let old = std::mem::replace(self, new);
        let rows = old.words.chunks_exact(words);
        for (rank, row) in old.ranks.iter().zip(rows) {
            if rank.rule().is_some_and(&keeps) {
                self.ranks.push(*rank);
                self.words.extend_from_slice(row);
            }
        }
        self.fit_lanes();
        for place in 0..self.len() {
            self.fill_lane(place);
        }
    }

    /// Resizes the lanes to the number of rules.
    fn fit_lanes(&mut self) {
        let rows = rows_of(self.schema.key_words());
        let blocks = self.ranks.len().div_ceil(LANES);
        self.lanes.resize(blocks * rows, EMPTY);
    }

    /// Fills the lane of a rule.
    fn fill_lane(&mut self, place: usize) {
        let rows = rows_of(self.schema.key_words());
        let care = &mut [0; MAX_KEY_WORDS][..self.schema.key_words()];
        let rule = packed(&self.schema, &self.words, place);
        fixed_bits(&rule, care);
        let block = &mut self.lanes[place / LANES * rows..][..rows];
        put(block, place % LANES, rule.value, care);
    }

    /// Returns the rules that beat a candidate, best first.
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

    /// Returns the better of `best` and the best matching rule.
    #[inline(always)]
    pub(super) fn improve<const W: usize>(&self, key: &[u64; W], best: Winner) -> Winner {
        match self.ranks.first() {
            Some(first) if first.beats(best) => self.search(key, best),
            _ => best,
        }
    }

    fn search<const W: usize>(&self, key: &[u64; W], best: Winner) -> Winner {
        let rows = rows_of(W) * BLOCKS_PER_RANK_CHECK;
        for (stretch, lanes) in self.lanes.chunks(rows).enumerate() {
            let first = stretch * BLOCKS_PER_RANK_CHECK * LANES;
            if !self.ranks[first].beats(best) {
                return best;
            }
            let mut next_block = 0;
            while let Some((block, mut alike)) = first_alike(self.isa, lanes, next_block, key) {
                while alike != 0 {
                    let lane = alike.trailing_zeros() as usize;
                    let index = first + block * LANES + lane;
                    let Some(rank) = self.ranks.get(index).filter(|rank| rank.beats(best)) else {
                        return best;
                    };
                    if packed(&self.schema, &self.words, index).matches(key) {
                        return *rank;
                    }
                    alike &= alike - 1;
                }
                next_block = block + 1;
            }
        }
        best
    }

    /// Like [`improve`](Self::improve); also sets the bits on which the result depends.
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

    /// Returns the rules on which the outcome of a lookup depends, best first: the
    /// winner, if it is in the buffer, and all rules before it.
    pub(super) fn compared(&self, key: &[u64], best: Winner) -> Vec<RuleId> {
        let mut better = self.better_than(best);
        let winner = better.find(|(_, rule)| rule.matches(key));
        let winner = winner.map_or(best, |(rank, _)| rank);
        let compared = self.ranks.iter().take_while(|rank| !winner.beats(**rank));
        compared.filter_map(|rank| rank.rule()).collect()
    }
}

/// Returns the rule at a place.
#[inline(always)]
fn packed<'a>(schema: &'a Schema, words: &'a [u64], place: usize) -> PackedRule<'a> {
    let len = schema.rule_words();
    PackedRule::new(schema, &words[place * len..][..len])
}

/// Sets the bits that every key matching a rule shares with the rule's value.
fn fixed_bits(rule: &PackedRule<'_>, care: &mut [u64]) {
    care.copy_from_slice(rule.mask);
    for range in rule.schema.range_fields() {
        let (low, high) = rule.ends(range);
        let differing = u128::BITS - (low ^ high).leading_zeros();
        range
            .key
            .set(care, u128::MAX.checked_shl(differing).unwrap_or(0));
    }
}
