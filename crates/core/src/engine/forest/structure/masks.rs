//! The masks that runs cannot hold.
//!
//! # Idea
//! A run has no mask for a word of [bounds](crate::engine::forest::rows::RowShape),
//! only the smallest and the largest value of each field there. That says all
//! about a range or a prefix. For a value under a non-contiguous mask
//! (`0x10/0x11`) it is the range that contains it. Such rules are rare, so runs
//! stay as they are: tables and runs take the rule for its range, and the rule's
//! mask is kept here, by id. A run may then find a rule that does not match,
//! never miss one that does; the mask has the last word.
//!
//! # Cost
//! Nothing as long as no rule needs it. As soon as one does, each rule that a run
//! finds costs a lookup in a map by id.

use super::Structure;
use crate::engine::forest::slot::Run;
use crate::id_map::IdMap;
use crate::rule::{RuleId, RuleRef, Winner};

/// Masks by rule id, of the rules whose runs do not have them.
pub(super) type Masks<const W: usize> = IdMap<[u64; W]>;

impl<const W: usize> Structure<W> {
    /// Keeps the mask of a rule that comes, if its run cannot.
    #[inline]
    pub(crate) fn keep_mask(&mut self, rule: &RuleRef<'_>) {
        if !self.shape.holds_mask(rule) {
            let mask = rule.mask().try_into().expect("a rule of this width");
            self.masks.set(rule.id(), mask);
        }
    }

    /// Takes the masks over from a structure that has had the same rules.
    pub(crate) fn take_masks_of(&mut self, other: &mut Structure<W>) {
        std::mem::swap(&mut self.masks, &mut other.masks);
    }

    /// Forgets the mask of a rule that goes.
    #[inline]
    pub(super) fn forget_mask(&mut self, id: RuleId) {
        if !self.masks.is_empty() {
            self.masks.remove(id);
        }
    }

    /// Whether the columns of runs do not say all: then
    /// [`accepts`](Self::accepts) has the last word on what they find.
    #[inline]
    pub(crate) fn has_more_to_check(&self) -> bool {
        self.shape.has_odd_ranges() || !self.masks.is_empty()
    }

    /// Whether a rule matches a key, of which the kernels have compared the
    /// columns of the run.
    #[inline]
    pub(crate) fn accepts(&self, run: &[u64], len: usize, rule: usize, key: &[u64; W]) -> bool {
        self.shape.odd_ranges_accept(run, len, rule, key)
            && self.mask_of(run[rule]).is_none_or(|mask| {
                let value = |word| self.shape.value(run, len, rule, word);
                (0..W).all(|word| (key[word] ^ value(word)) & mask[word] == 0)
            })
    }

    /// The mask of the rule of a rank, if its run does not have it.
    #[inline]
    pub(crate) fn mask_of(&self, rank: u64) -> Option<[u64; W]> {
        if self.masks.is_empty() {
            return None;
        }
        self.masks.get(Winner::from_rank(rank).rule()?)
    }

    /// Appends a rule of a run in the schema's packed form.
    pub(crate) fn push_packed(&self, run: Run, rule: usize, words: &mut Vec<u64>) {
        let (start, ranks) = (words.len(), self.ranks(run));
        let columns = self.run(run);
        self.shape.push_packed(columns, ranks.len(), rule, words);
        if let Some(mask) = self.mask_of(ranks[rule]) {
            words[start + W..start + 2 * W].copy_from_slice(&mask);
        }
    }
}
