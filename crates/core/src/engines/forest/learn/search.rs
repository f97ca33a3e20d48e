//! Improving a plan by local search.
//!
//! # Idea
//! Try a change; keep it if lookups become cheaper:
//! ```text
//! repeat until no change helps or the work is spent:
//!     drop      a table: its rules go to later ones, or are scanned
//!     merge     two tables: the bits of both masks, or the exact bits of all their rules
//!     reorder   a table takes its rules earlier or later
//!     absorb    remove the bits that a common kind of rules lacks from a table
//!     add       a step of bits to a table
//!     remove    a step of bits from a table
//! ```
//! Changes of whole tables come first: they save the most, and bits are then fitted
//! to the remaining tables. When the search ends, no single change helps.
//!
//! # Cost
//! Bounded by the rules and headers that the model reads, and by the words of masks
//! and rules read for them; wide keys have many more words.

use std::cmp::Reverse;

use super::cost::{Model, WORDS_PER_WORK_STEP};
use super::greedy::telling_bits;
use super::plan::Plan;
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::engines::forest::outline::lacks;
use crate::model::error::BuildError;
use crate::parts::sort::sort_short;

/// The most kinds that a table tries to absorb; the kinds with the most rules are
/// chosen. Measured in `bench/records/constants.md` (Forest).
const MAX_ABSORBED_KINDS: usize = 8;

/// Improves a plan with allowed masks. Ends after `work` work, or when the model has
/// read `words` words in total.
pub(super) fn improve<const W: usize>(
    model: &mut Model<'_, W>,
    steps: &[[u64; W]],
    allowed: &dyn Fn(&[u64; W]) -> bool,
    plan: Plan<W>,
    work: usize,
    words: usize,
    monitor: &mut Monitor<'_>,
) -> Result<Plan<W>, BuildError> {
    let mut search = Search {
        end: model.work.saturating_add(work),
        words,
        model,
        steps,
        allowed,
        plan,
        changed: true,
        monitor,
    };
    search.descend()?;
    Ok(search.plan)
}

struct Search<'a, 'b, 'm, const W: usize> {
    model: &'a mut Model<'b, W>,
    monitor: &'a mut Monitor<'m>,
    steps: &'a [[u64; W]],
    /// True if a table may have the mask.
    allowed: &'a dyn Fn(&[u64; W]) -> bool,
    plan: Plan<W>,
    changed: bool,
    /// The model's work and words at which the search ends.
    end: usize,
    words: usize,
}

impl<const W: usize> Search<'_, '_, '_, W> {
    /// Makes changes until none helps.
    fn descend(&mut self) -> Result<(), BuildError> {
        self.changed = true;
        while self.changed && !self.is_over() {
            self.changed = false;
            self.drop_tables()?;
            self.merge_tables()?;
            self.reorder_tables()?;
            self.absorb_kinds()?;
            self.add_bits()?;
            self.remove_bits()?;
        }
        Ok(())
    }

    /// Returns the bits that are exact in all rules of two tables.
    fn common(&mut self, first: usize, second: usize) -> [u64; W] {
        let kinds = self.model.kinds_of(&self.plan.masks, first, second);
        kinds.fold([u64::MAX; W], |common, mask| {
            std::array::from_fn(|word| common[word] & mask[word])
        })
    }

    fn is_over(&self) -> bool {
        self.model.work >= self.end || self.model.words >= self.words
    }

    /// Adopts the masks if they are cheaper.
    fn try_masks(&mut self, masks: Vec<[u64; W]>) -> Result<bool, BuildError> {
        if self.is_over() || !masks.iter().all(self.allowed) {
            return Ok(false);
        }
        // Cheaper by more than a rounding error, so that the search ends.
        let bound = self.plan.cost.total() * (1.0 - 1e-9);
        let Some(cost) = self.model.cost_below(&masks, bound, self.monitor)? else {
            return Ok(false);
        };
        self.plan = Plan {
            masks,
            cost,
            words: 0,
        };
        self.changed = true;
        Ok(true)
    }

    /// Replaces the mask of a table, if that is cheaper.
    fn try_mask(&mut self, table: usize, mask: [u64; W]) -> Result<bool, BuildError> {
        if mask == [0; W] || mask == self.plan.masks[table] {
            return Ok(false);
        }
        let mut masks = self.plan.masks.clone();
        masks[table] = mask;
        self.try_masks(masks)
    }

    fn drop_tables(&mut self) -> Result<(), BuildError> {
        let mut table = 0;
        while table < self.plan.masks.len() && !self.is_over() {
            let mut masks = self.plan.masks.clone();
            masks.remove(table);
            if !self.try_masks(masks)? {
                table += 1;
            }
        }
        Ok(())
    }

    fn merge_tables(&mut self) -> Result<(), BuildError> {
        let mut first = 0;
        while first < self.plan.masks.len() {
            let mut second = first + 1;
            while second < self.plan.masks.len() && !self.is_over() {
                let masks = &self.plan.masks;
                let shared = std::array::from_fn(|word| masks[first][word] & masks[second][word]);
                let common = self.common(first, second);
                let mut merged = false;
                for mask in [shared, common] {
                    for (kept_table, dropped_table) in [(first, second), (second, first)] {
                        if mask != [0; W] && !merged {
                            let mut masks = self.plan.masks.clone();
                            masks[kept_table] = mask;
                            masks.remove(dropped_table);
                            merged = self.try_masks(masks)?;
                        }
                    }
                }
                if !merged {
                    second += 1;
                }
            }
            first += 1;
        }
        Ok(())
    }

    fn reorder_tables(&mut self) -> Result<(), BuildError> {
        for old_position in 0..self.plan.masks.len() {
            if self.is_over() {
                return Ok(());
            }
            for new_position in 0..self.plan.masks.len() {
                if old_position != new_position {
                    let mut masks = self.plan.masks.clone();
                    let mask = masks.remove(old_position);
                    masks.insert(new_position, mask);
                    self.try_masks(masks)?;
                }
            }
        }
        Ok(())
    }

    /// Lets tables serve another kind of rules.
    fn absorb_kinds(&mut self) -> Result<(), BuildError> {
        for table in 0..self.plan.masks.len() {
            if self.is_over() {
                return Ok(());
            }
            let kinds = self.model.sample.kinds.len();
            self.model.words += 4 * W * kinds;
            let mask = self.plan.masks[table];
            let bytes = bytes_of::<([u64; W], usize)>(kinds);
            self.monitor.memory().take(2 * bytes)?;
            let mut lacking: Vec<([u64; W], usize)> = Vec::with_capacity(kinds);
            for kind in &self.model.sample.kinds {
                self.monitor.work(1)?;
                if lacks(&kind.mask, &mask) != 0 {
                    let remaining_bits = std::array::from_fn(|word| mask[word] & kind.mask[word]);
                    lacking.push((remaining_bits, kind.rules));
                }
            }
            self.monitor.work(lacking.len())?;
            sort_short(&mut lacking, |lacking| *lacking);
            lacking.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 += next.1;
                }
                is_same
            });
            sort_short(&mut lacking, |&(remaining_bits, rules)| {
                (Reverse(rules), remaining_bits)
            });
            lacking.truncate(MAX_ABSORBED_KINDS);
            let absorbed: Vec<[u64; W]> = lacking
                .iter()
                .map(|&(remaining_bits, _)| remaining_bits)
                .collect();
            drop(lacking);
            self.monitor.memory().give_back(2 * bytes);
            for remaining_bits in absorbed {
                self.try_mask(table, remaining_bits)?;
            }
        }
        Ok(())
    }

    fn add_bits(&mut self) -> Result<(), BuildError> {
        for table in 0..self.plan.masks.len() {
            if self.is_over() {
                return Ok(());
            }
            let words = W * self.model.sample.rules.len() + self.steps.len();
            self.model.words += words;
            self.monitor.work(words / WORDS_PER_WORK_STEP)?;
            let common = self.common(table, table);
            if common != [u64::MAX; W] {
                self.try_mask(table, common)?;
            }
            let mask = self.plan.masks[table];
            let rules = self.model.sample.rules.iter().map(|drawn| &drawn.rule);
            let telling = telling_bits(rules.filter(|rule| lacks(&rule.mask, &mask) == 0));
            for step in self.steps {
                if self.is_over() {
                    return Ok(());
                }
                let mask = self.plan.masks[table];
                let tells = (0..W).any(|word| step[word] & telling[word] & !mask[word] != 0);
                if tells {
                    self.try_mask(table, std::array::from_fn(|word| mask[word] | step[word]))?;
                }
            }
        }
        Ok(())
    }

    fn remove_bits(&mut self) -> Result<(), BuildError> {
        for table in 0..self.plan.masks.len() {
            for step in self.steps {
                if self.is_over() {
                    return Ok(());
                }
                self.model.words += W;
                self.monitor.work(1)?;
                let mask = self.plan.masks[table];
                self.try_mask(table, std::array::from_fn(|word| mask[word] & !step[word]))?;
            }
        }
        Ok(())
    }
}
