//! The rules of an engine that takes no updates, best first.
//!
//! # Idea
//! Static engines refer to rules by *places*: 0 is the best rule. So the best of
//! several rules has the smallest place, and the rules that beat a winner are at all
//! places below some place.
//! ```text
//! ranks:   [ rank ] …                    ascending: place 0 is the best
//! words:   [ value mask high ] …         as in rule sets
//! by id:   [ place ] …                   ascending by the rule's id
//! inexact: 0010…   hidden: 0000…         a bit for each place
//! ```

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::packed::PackedRule;
use crate::model::rule::{RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{FieldId, Schema};
use crate::parts::projection::Places;
use crate::parts::simd::prefetch;
use crate::parts::sort::sort_by_key;

/// The number of places whose bits share a cache line.
const BLOCK_PLACES: usize = 512;

/// Names of the build's stages.
const SORTING: &str = "sorting rules";
const COPYING: &str = "copying rules";

/// A copy of rules, best first. Duplicates share everything except the hidden bits.
#[derive(Clone)]
pub(crate) struct RankedRules {
    shared: Arc<Shared>,
    hidden: Vec<u64>,
    hidden_rules: usize,
}

/// The data that never changes.
struct Shared {
    schema: Arc<Schema>,
    ranks: Vec<Winner>,
    words: Vec<u64>,
    by_id: Vec<u32>,
    inexact: Vec<u64>,
}

impl RankedRules {
    /// Bytes held by `rules` rules.
    pub(crate) fn bytes_of(schema: &Schema, rules: usize) -> usize {
        let bits = bytes_of::<u64>(Self::bit_words(rules));
        let words = bytes_of::<u64>(rules.saturating_mul(schema.rule_words()));
        let (ranks, by_id) = (bytes_of::<Winner>(rules), bytes_of::<u32>(rules));
        (ranks + by_id).saturating_add(2 * bits + words)
    }

    /// The number of words that have a bit for each rule, in whole cache lines.
    fn bit_words(rules: usize) -> usize {
        rules.div_ceil(BLOCK_PLACES) * (BLOCK_PLACES / 64)
    }

    /// Sorts and copies rules, in two stages of a build. Counts the memory.
    ///
    /// # Errors
    /// The errors of [`Memory::keep`](crate::budget::memory::Memory::keep) and of a
    /// [`Monitor`].
    pub(crate) fn build(
        rules: &RuleSet,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<RankedRules, BuildError> {
        let indices = (0..=u32::MAX).take(rules.len());
        Self::build_some(rules, rules.len(), indices, limits, monitor)
    }

    /// Sorts and copies `count` of the rules, given by their indices in the set.
    pub(crate) fn build_some(
        rules: &RuleSet,
        count: usize,
        indices: impl Iterator<Item = u32>,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<RankedRules, BuildError> {
        let schema = rules.schema();
        let bytes = Self::bytes_of(schema, count);
        limits.check_bytes(bytes)?;
        monitor.begin(SORTING, count)?;
        monitor.memory().keep(bytes)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let mut order = Vec::with_capacity(count);
        order.extend(indices.take(count));
        best_first(rules, &mut order, monitor)?;
        let by_id = places_by_id(rules, &order, monitor)?;

        monitor.begin(COPYING, count)?;
        let mut shared = Shared {
            schema: Arc::clone(schema),
            ranks: Vec::with_capacity(count),
            words: Vec::with_capacity(count * schema.rule_words()),
            by_id,
            inexact: vec![0; Self::bit_words(count)],
        };
        for (place, &index) in order.iter().enumerate() {
            let rule = rules.rule(index as usize);
            shared.ranks.push(rule.winner());
            shared.words.extend_from_slice(rule.words());
            if schema.field_ids().any(|id| !shared.is_interval(place, id)) {
                shared.inexact[place / 64] |= 1 << (place % 64);
            }
            monitor.advance(1)?;
        }
        drop(order);
        monitor.memory().give_back(bytes_of::<u32>(count));
        Ok(RankedRules {
            shared: Arc::new(shared),
            hidden: vec![0; Self::bit_words(count)],
            hidden_rules: 0,
        })
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.shared.schema
    }

    /// The number of places, including places of hidden rules.
    pub(crate) fn len(&self) -> usize {
        self.shared.ranks.len()
    }

    /// The number of rules that are not hidden.
    pub(crate) fn present(&self) -> usize {
        self.shared.ranks.len() - self.hidden_rules
    }

    pub(crate) fn bytes(&self) -> usize {
        let words = [&self.shared.words, &self.shared.inexact, &self.hidden];
        let words = words.map(|words| bytes_of::<u64>(words.capacity()));
        bytes_of::<Winner>(self.shared.ranks.capacity())
            + bytes_of::<u32>(self.shared.by_id.capacity())
            + words.iter().sum::<usize>()
    }

    /// Returns the winner for the rule at a place.
    #[inline(always)]
    pub(crate) fn winner(&self, place: usize) -> Winner {
        self.shared.ranks[place]
    }

    /// Returns the number of rules that beat a winner. They are at the places below
    /// this number.
    #[inline]
    pub(crate) fn better_than(&self, best: Winner) -> usize {
        match best.is_miss() {
            true => self.shared.ranks.len(),
            false => self.shared.ranks.partition_point(|rank| rank.beats(best)),
        }
    }

    /// Returns the rule at a place.
    #[inline]
    pub(crate) fn rule(&self, place: usize) -> PackedRule<'_> {
        self.shared.rule(place)
    }

    /// Returns the smallest and the largest value that a rule matches in a field.
    pub(crate) fn ends(&self, place: usize, field: FieldId) -> (u128, u128) {
        self.rule(place).field_ends(field)
    }

    /// True if a rule matches all values between its ends in a field. The rule then
    /// has a prefix or a range there, not a mask with holes.
    pub(crate) fn is_interval(&self, place: usize, field: FieldId) -> bool {
        self.shared.is_interval(place, field)
    }

    /// True if a rule matches all keys between its ends in every field.
    pub(crate) fn is_box(&self, place: usize) -> bool {
        bit(&self.shared.inexact, place) == 0
    }

    #[inline]
    pub(crate) fn is_hidden(&self, place: usize) -> bool {
        bit(&self.hidden, place) != 0
    }

    /// True if a rule matches a key and is not hidden. The key must be between the
    /// rule's ends in every field.
    #[inline]
    pub(crate) fn matches_inside(&self, place: usize, key: &[u64]) -> bool {
        if bit(&self.shared.inexact, place) | bit(&self.hidden, place) == 0 {
            return true;
        }
        !self.is_hidden(place) && self.rule(place).matches(key)
    }

    /// True if a rule matches a key and is not hidden.
    #[inline]
    pub(crate) fn matches(&self, place: usize, key: &[u64]) -> bool {
        self.rule(place).matches(key) && !self.is_hidden(place)
    }

    /// True if a rule matches a key of `W` words, even if the rule is hidden.
    #[inline(always)]
    pub(crate) fn would_match<const W: usize>(&self, place: usize, key: &[u64; W]) -> bool {
        let words = self.shared.schema.rule_words();
        let words = &self.shared.words[place * words..][..words];
        let (value, rest) = words.split_first_chunk::<W>().expect("a value");
        let (mask, high) = rest.split_first_chunk::<W>().expect("a mask");
        let mut differing = 0;
        for word in 0..W {
            differing |= (key[word] ^ value[word]) & mask[word];
        }
        let ranges = self.shared.schema.range_fields();
        differing == 0 && ranges.iter().all(|range| range.contains(key, value, high))
    }

    /// True if a rule matches a key of `W` words and is not hidden.
    #[inline(always)]
    pub(crate) fn matches_key<const W: usize>(&self, place: usize, key: &[u64; W]) -> bool {
        self.would_match(place, key) && !self.is_hidden(place)
    }

    /// Prefetches the rule at a place.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: usize) {
        if let Some(word) = self
            .shared
            .words
            .get(place * self.shared.schema.rule_words())
        {
            prefetch(word);
        }
    }

    /// The hidden bits, one for each place, in whole blocks of 512 bits.
    pub(crate) fn hidden(&self) -> &[u64] {
        &self.hidden
    }

    /// Hides a rule, so that it never wins. Returns `false` if no rule has the id, or
    /// the rule is hidden already. Takes O(log n).
    pub(crate) fn hide(&mut self, id: RuleId) -> bool {
        let id_at = |place: &u32| self.shared.ranks[*place as usize].rule().expect("a rule");
        let Ok(position) = self.shared.by_id.binary_search_by_key(&id, id_at) else {
            return false;
        };
        let place = self.shared.by_id[position] as usize;
        if self.is_hidden(place) {
            return false;
        }
        self.hidden[place / 64] |= 1 << (place % 64);
        self.hidden_rules += 1;
        true
    }
}

impl Shared {
    #[inline]
    fn rule(&self, place: usize) -> PackedRule<'_> {
        let words = self.schema.rule_words();
        PackedRule::new(&self.schema, &self.words[place * words..][..words])
    }

    /// See [`RankedRules::is_interval`].
    fn is_interval(&self, place: usize, field: FieldId) -> bool {
        let max_value = self.schema.field(field).max_value();
        let mask = self.schema.placement(field).get(self.rule(place).mask);
        let free = max_value & !mask;
        free & free.wrapping_add(1) == 0
    }
}

impl Places for RankedRules {
    fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn ends(&self, place: usize, field: FieldId) -> (u128, u128) {
        self.ends(place, field)
    }

    fn is_box(&self, place: usize) -> bool {
        self.is_box(place)
    }
}

/// Returns the bit of a place, not shifted.
#[inline(always)]
fn bit(bits: &[u64], place: usize) -> u64 {
    bits[place / 64] & 1 << (place % 64)
}

/// Sorts indices of rules in a set, the best rule first.
///
/// # Errors
/// The errors of [`sort_by_key`].
pub(crate) fn best_first(
    rules: &RuleSet,
    order: &mut Vec<u32>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let rank = |&index: &u32| rules.rule(index as usize).winner().rank();
    sort_by_key(order, rank, monitor)
}

/// Returns the places of rules, sorted by the rules' ids. `order` has the indices of
/// the rules, in the order of their places.
///
/// # Errors
/// The errors of [`sort_by_key`].
pub(crate) fn places_by_id(
    rules: &RuleSet,
    order: &[u32],
    monitor: &mut Monitor<'_>,
) -> Result<Vec<u32>, BuildError> {
    let mut by_id: Vec<u32> = (0..=u32::MAX).take(order.len()).collect();
    let id = |&place: &u32| rules.rule(order[place as usize] as usize).id();
    sort_by_key(&mut by_id, id, monitor)?;
    Ok(by_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::memory::Memory;
    use crate::budget::progress::NoProgress;
    use crate::model::rule::{ActionId, FieldMatch, Priority};
    use crate::model::schema::{Field, MatchKind};

    /// Returns a range, a prefix, a mask with holes and a rule that matches
    /// everything.
    fn ranked() -> RankedRules {
        let field = Field::new("f", 16, MatchKind::Range);
        let schema = Schema::new("t", vec![field]).unwrap();
        let mut rules = RuleSet::new(&schema);
        let matches = [
            (5, FieldMatch::Range { low: 10, high: 20 }),
            (
                9,
                FieldMatch::Ternary {
                    value: 0x0101,
                    mask: 0x0f0f,
                },
            ),
            (
                7,
                FieldMatch::Prefix {
                    value: 0x1200,
                    length: 8,
                },
            ),
            (1, FieldMatch::Any),
        ];
        for (number, (priority, field_match)) in matches.into_iter().enumerate() {
            let id = RuleId::from_index(10 * number);
            rules
                .add(id, Priority(priority), ActionId(0), &[field_match])
                .unwrap();
        }
        let mut memory = Memory::unlimited();
        let mut progress = NoProgress;
        let mut monitor = Monitor::new(&mut progress, &mut memory);
        RankedRules::build(&rules, &Limits::default(), &mut monitor).unwrap()
    }

    #[test]
    fn places_are_by_rank_and_ends_are_those_of_the_match() {
        let ranked = ranked();
        let field = ranked.schema().field_ids().next().unwrap();
        let rules: Vec<_> = (0..ranked.len())
            .map(|place| {
                let id = ranked.winner(place).rule().unwrap().index();
                (id, ranked.ends(place, field), ranked.is_box(place))
            })
            .collect();
        let expected = [
            (10, (0x0101, 0xf1f1), false),
            (20, (0x1200, 0x12ff), true),
            (0, (10, 20), true),
            (30, (0, 0xffff), true),
        ];
        assert_eq!(rules, expected);
        assert_eq!(ranked.better_than(Winner::MISS), 4);
        assert_eq!(ranked.better_than(ranked.winner(2)), 2);
        assert_eq!(ranked.bytes(), RankedRules::bytes_of(ranked.schema(), 4));
        // A value between the ends that the mask does not match.
        assert!(!ranked.matches_inside(0, &[0x0102 << 48]));
    }

    #[test]
    fn hidden_rules_match_nothing() {
        let mut ranked = ranked();
        let field = ranked.schema().field_ids().next().unwrap();
        let mut key = [0];
        ranked.schema().placement(field).set(&mut key, 0x1234);
        assert!(ranked.matches(1, &key) && ranked.matches_inside(1, &key));
        let id = RuleId::new(20).unwrap();
        assert!(ranked.hide(id) && !ranked.hide(id));
        assert!(!ranked.hide(RuleId::new(21).unwrap()));
        assert!(!ranked.matches(1, &key) && !ranked.matches_inside(1, &key));
        assert!(ranked.is_hidden(1) && ranked.hidden()[0] == 2);
        assert_eq!((ranked.len(), ranked.present()), (4, 3));
    }
}
