//! Masks that runs cannot hold.
//!
//! # Idea
//! A run has no mask for a word of [bounds](crate::engines::forest::rows::RowShape),
//! only the smallest and the largest value of each field. These describe a range or
//! a prefix completely. A value under a non-contiguous mask (`0x10/0x11`) is only
//! contained in the range. Such rules are rare, so the layout of runs has no column
//! for them: tables and runs treat such a rule as its range, and its mask is kept
//! here, by id. So a run may find a rule that does not match, but never misses a
//! match. The mask decides.
//!
//! # Cost
//! Nothing while no rule needs it. Otherwise each rule that a run finds costs a
//! lookup in a map by id.

use super::Structure;
use crate::engines::forest::slot::Run;
use crate::model::rule::{RuleId, RuleRef, Winner};
use crate::parts::id_map::IdMap;

/// Masks by rule id, for rules whose runs do not have them.
pub(super) type Masks<const W: usize> = IdMap<[u64; W]>;

impl<const W: usize> Structure<W> {
    /// Keeps the mask of an inserted rule, if its run cannot hold it.
    #[inline]
    pub(crate) fn keep_mask(&mut self, rule: &RuleRef<'_>) {
        if !self.shape.holds_mask(rule) {
            let mask = rule.mask().try_into().expect("a rule of this width");
            self.masks.set(rule.id(), mask);
        }
    }

    /// Takes the masks from a structure of the same rules.
    pub(crate) fn take_masks_of(&mut self, other: &mut Structure<W>) {
        std::mem::swap(&mut self.masks, &mut other.masks);
    }

    /// Deletes the mask of a removed rule.
    #[inline]
    pub(super) fn forget_mask(&mut self, id: RuleId) {
        if !self.masks.is_empty() {
            self.masks.remove(id);
        }
    }

    /// True if the columns of runs do not contain everything about a rule. Then
    /// [`accepts`](Self::accepts) decides about the candidates that runs find.
    #[inline]
    pub(crate) fn has_more_to_check(&self) -> bool {
        self.shape.has_odd_ranges() || !self.masks.is_empty()
    }

    /// True if a rule matches a key, after the kernels have compared the columns of
    /// the run.
    #[inline]
    pub(crate) fn accepts(&self, run: &[u64], len: usize, rule: usize, key: &[u64; W]) -> bool {
        self.shape.odd_ranges_accept(run, len, rule, key)
            && self.mask_of(run[rule]).is_none_or(|mask| {
                let value = |word| self.shape.value(run, len, rule, word);
                (0..W).all(|word| (key[word] ^ value(word)) & mask[word] == 0)
            })
    }

    /// Returns the mask of the rule with that rank, if its run does not have it.
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
