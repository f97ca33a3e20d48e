//! Grows chains of tables, nested tables and runs from rules and the masks of a
//! plan.
//!
//! ```text
//! grow_root(rules):
//!     masks = plan(rules)
//!     while rules are left:
//!         mask, served = the next mask that fits some rules, or all and no bits
//!         grow_table(mask, served)
//! grow_table(mask, rules):
//!     slots = as many as there are distinct hashes, a power of two
//!     for the rules of each slot: slot = grow_bucket(rules)
//! grow_bucket(rules):
//!     few, or no mask distinguishes them:  a run
//!     otherwise:                           nested tables, grown as the root is
//! ```
//! A run that is split within an update is grown in the same way, as far as the
//! [`Budget`] allows.

use std::sync::Arc;

use super::learn::{Budget, Cost, Learner, Level, Plan};
use super::rows::Rows;
use super::slot::{Bucket, MAX_RUN, Place, Run, TableNumber};
use super::structure::{Structure, Table};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, RuleId};
use crate::parts::sort::{sort, sort_by_key, sort_short};

/// Names of phases for the progress callback.
pub(super) const LEARNING: &str = "learning masks";
const FILLING: &str = "filling tables";

/// Rules placed between two counts of the structure's memory, which grows in small
/// pieces. Bounds the memory by which a build may pass its limit.
pub(super) const RECOUNT_RULES: usize = 256;

/// The most slots of a table that is enlarged only to separate two hashes. Bounds
/// the memory of tables of few rules: 32 KB.
const MAX_SLOTS_TO_SEPARATE: usize = 1 << 12;

/// The most value words read when a run is split. Bounds the work of that update.
const SPLIT_WORDS: usize = 8192;

/// The most rules of a nested table without mask bits, when it is grown. Half of
/// [`MAX_RUN`], so its run has room for rules that are inserted later.
const HALF_RUN: usize = MAX_RUN / 2;

/// When a bucket is divided, this number of its rules counts as one step of
/// [maintenance](super::maintain). Bounds the work of an update that splits a run.
const RULES_PER_STEP: usize = 4;

/// The state and options of growing chains.
pub(super) struct Growth<const W: usize> {
    learner: Arc<Learner<W>>,
    /// The most rules of a run, unless no mask can split it.
    most: usize,
    budget: Budget,
    /// Additional cost of the current update, in steps of maintenance: an update
    /// that splits a run moves fewer rules.
    extra_steps: usize,
    /// Bytes, at the last count, of the parts of the structure that grow in small
    /// pieces; and rules placed since.
    counted: usize,
    placed: usize,
}

impl<const W: usize> Growth<W> {
    pub(super) fn new(learner: Learner<W>, most: usize) -> Growth<W> {
        Growth {
            learner: Arc::new(learner),
            most,
            budget: Budget::unlimited(),
            extra_steps: 0,
            counted: 0,
            placed: 0,
        }
    }

    /// Counts the memory that the structure has taken since the last call.
    pub(super) fn recount(
        &mut self,
        structure: &Structure<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.placed = 0;
        let bytes = structure.index_bytes();
        monitor.memory().recount(&mut self.counted, bytes)
    }

    /// Records that `rules` more rules were placed. Counts their memory from time to
    /// time.
    fn note_placed(
        &mut self,
        structure: &Structure<W>,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.placed += rules;
        if self.placed >= RECOUNT_RULES {
            self.recount(structure, monitor)?;
        }
        Ok(())
    }

    pub(super) fn learner(&self) -> &Arc<Learner<W>> {
        &self.learner
    }

    /// Replaces the budget.
    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// The budget for learning.
    pub(super) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Adds work of the current update, as steps of maintenance.
    pub(super) fn add_extra_steps(&mut self, steps: usize) {
        self.extra_steps += steps;
    }

    /// The extra steps since the last call.
    pub(super) fn take_extra_steps(&mut self) -> usize {
        std::mem::take(&mut self.extra_steps)
    }

    /// True if a run is so long that a split is worth trying. After a failed split,
    /// the run is tried again when its length has doubled, and no run is tried
    /// before the failure is paid off. Otherwise a run whose length oscillates
    /// around a power of two would learn each time.
    #[inline]
    pub(super) fn is_to_be_split(&self, run: Run) -> bool {
        let len = usize::from(run.len);
        let max_rules = self.most;
        len >= MAX_RUN
            || !self.budget.is_in_debt()
                && len >= max_rules
                && len.is_multiple_of(max_rules)
                && (len / max_rules).is_power_of_two()
    }

    /// Returns the masks for a chain of these rules.
    fn plan(
        &mut self,
        structure: &Structure<W>,
        rows: &Rows<'_>,
        rules: &[u32],
        level: Level,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan<W>, BuildError> {
        // Within an update, the number of sampled rules depends on their width.
        let count = match level {
            Level::Split(_) => rules.len().min(SPLIT_WORDS / W),
            Level::Root | Level::SmallRoot(_) | Level::Nested => rules.len(),
        };
        let outline = |index| structure.outline(rows.row(rules[index * rules.len() / count]));
        let plan = self.learner.plan(level, count, outline, monitor)?;
        self.budget.spend(plan.words, !plan.masks.is_empty());
        Ok(plan)
    }
}

/// Returns the number of slots for `hashed`, which is sorted: the number of distinct
/// hashes as a power of two, or more if that would separate none of them.
pub(super) fn slots_for(hashed: &[(u64, u32)]) -> usize {
    let distinct = hashed.chunk_by(|a, b| a.0 == b.0).count();
    let mut slots = distinct.next_power_of_two();
    let (Some(&(lowest, _)), Some(&(highest, _))) = (hashed.first(), hashed.last()) else {
        return slots;
    };
    while distinct > 1
        && slots < MAX_SLOTS_TO_SEPARATE
        && (lowest ^ highest) >> (64 - slots.ilog2()) == 0
    {
        slots *= 2;
    }
    slots
}

/// Fills an empty structure with the rules of rows. `actions` has their ids and
/// actions, in any order. Returns the predicted cost of lookups.
pub(super) fn grow_root<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    actions: impl Iterator<Item = (RuleId, ActionId)>,
    monitor: &mut Monitor<'_>,
) -> Result<Cost, BuildError> {
    let total = rows.len();
    monitor.begin(LEARNING, total)?;
    growth.recount(structure, monitor)?;
    structure.reserve(total, monitor)?;
    let bytes = bytes_of::<u32>(total);
    monitor.memory().take(bytes)?;
    let mut remaining = rows.numbers();
    let level = growth
        .budget
        .allowance()
        .map_or(Level::Root, Level::SmallRoot);
    let plan = growth.plan(structure, rows, &remaining, level, monitor)?;
    let mut masks = plan.masks.into_iter();
    let mut order = 0;
    monitor.begin(FILLING, total)?;
    add_ids(structure, growth, rows.len(), actions, monitor)?;
    while !remaining.is_empty() {
        let (mask, served) = next_table(structure, rows, &mut remaining, &mut masks, monitor)?;
        grow_table(
            structure,
            growth,
            rows,
            mask,
            served,
            Place::ROOT,
            order,
            monitor,
        )?;
        order += 1;
    }
    drop(remaining);
    monitor.memory().give_back(bytes);
    growth.recount(structure, monitor)?;
    Ok(plan.cost)
}

/// Adds the ids and actions of all rules, before the rules are placed. Adding them
/// in order takes a quarter of the time of adding each with its place.
fn add_ids<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rules: usize,
    actions: impl Iterator<Item = (RuleId, ActionId)>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let bytes = bytes_of::<(RuleId, ActionId)>(rules);
    monitor.memory().take(bytes)?;
    let mut ids = Vec::with_capacity(rules);
    for id in actions {
        ids.push(id);
        monitor.work(1)?;
    }
    debug_assert_eq!(ids.len(), rules, "each rule has an id");
    sort(&mut ids, monitor)?;
    for ids in ids.chunks(RECOUNT_RULES) {
        structure.add_ids(ids.iter().copied());
        growth.recount(structure, monitor)?;
        monitor.work(ids.len())?;
    }
    drop(ids);
    monitor.memory().give_back(bytes);
    Ok(())
}

/// Takes the rules of a chain's next table out of `rest`: all rules that fit the
/// next useful mask, or all rules if there is none. Counts their memory by capacity.
fn next_table<const W: usize>(
    structure: &Structure<W>,
    rows: &Rows<'_>,
    rest: &mut Vec<u32>,
    masks: &mut impl Iterator<Item = [u64; W]>,
    monitor: &mut Monitor<'_>,
) -> Result<([u64; W], Vec<u32>), BuildError> {
    monitor.memory().take(bytes_of::<u32>(rest.len()))?;
    let mut served = Vec::with_capacity(rest.len());
    for mask in masks {
        // The other rules stay in order and move up into the gaps.
        let mut kept_count = 0;
        for start in (0..rest.len()).step_by(Monitor::BLOCK) {
            let block_end = rest.len().min(start + Monitor::BLOCK);
            for position in start..block_end {
                let index = rest[position];
                if structure.shape().fits(rows.row(index), &mask) {
                    served.push(index);
                } else {
                    rest[kept_count] = index;
                    kept_count += 1;
                }
            }
            monitor.work(block_end - start)?;
        }
        rest.truncate(kept_count);
        if !served.is_empty() {
            return Ok((mask, served));
        }
    }
    served.append(rest);
    Ok(([0; W], served))
}

/// Makes a table of rules, in the chain at a place.
#[allow(clippy::too_many_arguments)] // passed on by a recursion
fn grow_table<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    mask: [u64; W],
    served: Vec<u32>,
    parent: Place,
    order: u32,
    monitor: &mut Monitor<'_>,
) -> Result<TableNumber, BuildError> {
    // Used for its hash function only; the number of slots is known later.
    let hasher = Table::new(mask, 1);
    let hashed_bytes = bytes_of::<(u64, u32)>(served.len());
    monitor.memory().take(hashed_bytes)?;
    let mut hashed: Vec<(u64, u32)> = Vec::with_capacity(served.len());
    let mut best = u64::MAX;
    for block in served.chunks(Monitor::BLOCK) {
        hashed.extend(block.iter().map(|&index| {
            let rule = structure.outline(rows.row(index));
            best = best.min(rule.rank);
            (hasher.hash(&rule.value, structure.secrets()), index)
        }));
        monitor.work(block.len())?;
    }
    let served_bytes = bytes_of::<u32>(served.capacity());
    drop(served);
    monitor.memory().give_back(served_bytes);
    sort(&mut hashed, monitor)?;
    let slots = slots_for(&hashed);
    monitor.memory().keep(bytes_of::<u64>(slots))?;
    let table = Table::new(mask, slots).of_chain(parent, order);
    let number = structure.add(table.for_rules(hashed.len(), best));
    let mut start = 0;
    while start < hashed.len() {
        let table = structure.table(number);
        let slot = table.slot_of(hashed[start].0);
        let following = hashed[start..].iter();
        let count = following.take_while(|&&(hash, _)| table.slot_of(hash) == slot);
        let bucket_end = start + count.count();
        let signature = hashed[start..bucket_end]
            .iter()
            .fold(0, |signature, &(hash, _)| {
                signature | 1 << table.signature_bit(hash)
            });
        // Longer buckets are divided. Their memory is counted like a table's.
        if bucket_end - start > growth.most {
            monitor.memory().take(bytes_of::<u32>(bucket_end - start))?;
        }
        let members = hashed[start..bucket_end]
            .iter()
            .map(|&(_, index)| index)
            .collect();
        let is_whole_table = start == 0 && bucket_end == hashed.len() && mask != [0; W];
        let slot_place = Place {
            table: number,
            slot,
        };
        let bucket = grow_bucket(
            structure,
            growth,
            rows,
            members,
            slot_place,
            is_whole_table,
            monitor,
        )?;
        structure.store_bucket(slot_place, bucket, signature);
        start = bucket_end;
    }
    drop(hashed);
    monitor.memory().give_back(hashed_bytes);
    Ok(number)
}

/// Makes a run of rules, or nested tables if there are too many rules; the caller
/// stores the result in the slot ([`Table::set_slot`]). `whole` is true if the rules are all
/// rules of the parent table: a search for a mask would then choose the parent's mask again,
/// so there is no search.
///
/// If the members are too many for a run, their memory is already counted.
pub(super) fn grow_bucket<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    mut members: Vec<u32>,
    place: Place,
    whole: bool,
    monitor: &mut Monitor<'_>,
) -> Result<Bucket, BuildError> {
    let mut bytes = 0;
    if members.len() > growth.most {
        bytes = bytes_of::<u32>(members.capacity());
        growth.extra_steps += members.len() / RULES_PER_STEP;
        let mut order = 0;
        let mut remaining = members;
        let masks = match growth.budget.allowance() {
            _ if whole => Vec::new(),
            Some(0) => Vec::new(),
            Some(words) => {
                let level = Level::Split(words);
                growth
                    .plan(structure, rows, &remaining, level, monitor)?
                    .masks
            }
            None => {
                let level = Level::Nested;
                growth
                    .plan(structure, rows, &remaining, level, monitor)?
                    .masks
            }
        };
        let mut masks = masks.into_iter();
        let (mask, served) = next_table(structure, rows, &mut remaining, &mut masks, monitor)?;
        if mask != [0; W] || served.len() > MAX_RUN {
            let mut next = Some((mask, served));
            while let Some((mask, mut served)) = next {
                // Rules that no mask distinguishes go to one table after the other, best
                // first.
                if mask == [0; W] {
                    keep_half_run(rows, &mut served, &mut remaining, monitor)?;
                }
                grow_table(structure, growth, rows, mask, served, place, order, monitor)?;
                order += 1;
                next = if remaining.is_empty() {
                    None
                } else {
                    let masks = &mut masks;
                    Some(next_table(structure, rows, &mut remaining, masks, monitor)?)
                };
            }
            drop(remaining);
            monitor.memory().give_back(bytes);
            return Ok(Bucket::Nested(structure.first_of(place)));
        }
        bytes += bytes_of::<u32>(served.capacity());
        members = served;
    }
    let count = members.len();
    let run = make_run(structure, rows, members, place);
    monitor.memory().give_back(bytes);
    growth.note_placed(structure, count, monitor)?;
    monitor.advance(count)?;
    Ok(Bucket::Run(run))
}

/// Makes a run of rules whose place is that slot.
pub(super) fn make_run<const W: usize>(
    structure: &mut Structure<W>,
    rows: &Rows<'_>,
    mut members: Vec<u32>,
    place: Place,
) -> Run {
    sort_short(&mut members, |&index| rows.rank(index));
    structure.create_run(place, members.iter().map(|&index| rows.row(index)))
}

/// Keeps the best [`HALF_RUN`] rules in `served` and moves the others back to `rest`,
/// whose memory has room for them.
fn keep_half_run(
    rows: &Rows<'_>,
    served: &mut Vec<u32>,
    rest: &mut Vec<u32>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    if served.len() > HALF_RUN {
        sort_by_key(served, |&index| rows.rank(index), monitor)?;
        rest.extend(served.drain(HALF_RUN..));
    }
    Ok(())
}
