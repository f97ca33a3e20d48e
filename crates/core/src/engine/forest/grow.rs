//! Growing chains of tables: from rules, and the masks that a plan gives them, to
//! tables, runs and nested tables.
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
//!     few, or nothing tells them apart:  a run
//!     otherwise:                         nested tables, grown as the root is
//! ```
//! A split run is grown in the same way within an update, as far as the
//! [`Budget`] allows.

use std::sync::Arc;

use super::learn::{Budget, Cost, Learner, Level, Plan};
use super::rows::Rows;
use super::slot::{Bucket, MAX_RUN, Place, Run, TableNumber};
use super::structure::{Structure, Table};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::rule::{ActionId, RuleId};
use crate::sort::{sort, sort_by_key, sort_short};

/// What progress observers are told.
pub(super) const LEARNING: &str = "learning masks";
const FILLING: &str = "filling tables";

/// Rules placed between two counts of what the structure takes in small pieces.
pub(super) const RECOUNTED: usize = 256;

/// Slots are not made more than this many to separate two hashes.
const MOST_FOR_FEW: usize = 1 << 12;

/// Words of the values of rules that are looked at when a run is split.
const SPLIT_WORDS: usize = 8192;

/// Rules of a bucket that is learned on that count as one step of
/// [maintenance](super::maintain).
const RULES_PER_STEP: usize = 4;

/// How chains are grown.
pub(super) struct Growth<const W: usize> {
    learner: Arc<Learner<W>>,
    /// The most rules of a run that could be split.
    most: usize,
    budget: Budget,
    /// What the update at hand has cost beyond the usual, in steps of
    /// maintenance: an update that splits a run moves fewer rules.
    extra_steps: usize,
    /// Bytes of the structure that were counted last, of those that grow in small
    /// pieces, and rules placed since.
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

    /// Counts what the structure has taken since this was done last.
    pub(super) fn recount(
        &mut self,
        structure: &Structure<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.placed = 0;
        let bytes = structure.index_bytes();
        monitor.memory().recount(&mut self.counted, bytes)
    }

    /// `rules` more rules were placed: counts the memory that they took, now and
    /// then.
    fn has_placed(
        &mut self,
        structure: &Structure<W>,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.placed += rules;
        if self.placed >= RECOUNTED {
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

    /// What may be spent on learning.
    pub(super) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Counts work of the update at hand as steps of maintenance.
    pub(super) fn add_extra_steps(&mut self, steps: usize) {
        self.extra_steps += steps;
    }

    /// The extra steps since the last call.
    pub(super) fn take_extra_steps(&mut self) -> usize {
        std::mem::take(&mut self.extra_steps)
    }

    /// Whether a run is so long that splitting it is worth a try. Where that
    /// failed, the next try comes when it has doubled, and none anywhere before
    /// the failure is paid off: a run whose length goes up and down around a
    /// power of two would be learned on each time.
    #[inline]
    pub(super) fn is_to_be_split(&self, run: Run) -> bool {
        let len = usize::from(run.len);
        let most = self.most;
        len >= MAX_RUN
            || !self.budget.is_in_debt()
                && len >= most
                && len.is_multiple_of(most)
                && (len / most).is_power_of_two()
    }

    /// The masks of a chain of these rules.
    fn plan(
        &mut self,
        structure: &Structure<W>,
        rows: &Rows<'_>,
        rules: &[u32],
        level: Level,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan<W>, BuildError> {
        // Within an update, wide rules are looked at as far as time allows.
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

/// As many slots as there are distinct hashes; more if that would not separate
/// any of them. The hashes are in order.
pub(super) fn slots_for(hashed: &[(u64, u32)]) -> usize {
    let distinct = hashed.chunk_by(|a, b| a.0 == b.0).count();
    let mut slots = distinct.next_power_of_two();
    let (Some(&(least, _)), Some(&(most, _))) = (hashed.first(), hashed.last()) else {
        return slots;
    };
    while distinct > 1 && slots < MOST_FOR_FEW && (least ^ most) >> (64 - slots.ilog2()) == 0 {
        slots *= 2;
    }
    slots
}

/// Fills an empty structure with the rules of rows, whose ids and actions come in
/// any order; returns what lookups in it should cost.
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
    let mut rest = rows.numbers();
    let level = growth
        .budget
        .allowance()
        .map_or(Level::Root, Level::SmallRoot);
    let plan = growth.plan(structure, rows, &rest, level, monitor)?;
    let mut masks = plan.masks.into_iter();
    let mut order = 0;
    monitor.begin(FILLING, total)?;
    add_ids(structure, growth, rows.len(), actions, monitor)?;
    while !rest.is_empty() {
        let (mask, served) = next_table(structure, rows, &mut rest, &mut masks, monitor)?;
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
    drop(rest);
    monitor.memory().give_back(bytes);
    growth.recount(structure, monitor)?;
    Ok(plan.cost)
}

/// Adds the ids of all rules, which are placed next, with their actions: in order,
/// a quarter of the work of adding each with its place.
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
    for ids in ids.chunks(RECOUNTED) {
        structure.add_ids(ids.iter().copied());
        growth.recount(structure, monitor)?;
        monitor.work(ids.len())?;
    }
    drop(ids);
    monitor.memory().give_back(bytes);
    Ok(())
}

/// Takes the rules of a chain's next table out of `rest`: those that the next mask
/// of some use fits, all of them when there is none. They are counted as memory,
/// by their capacity.
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
        // The others stay in order, in the places of those that go.
        let mut left = 0;
        for from in (0..rest.len()).step_by(Monitor::BLOCK) {
            let to = rest.len().min(from + Monitor::BLOCK);
            for at in from..to {
                let index = rest[at];
                if structure.shape().fits(rows.row(index), &mask) {
                    served.push(index);
                } else {
                    rest[left] = index;
                    left += 1;
                }
            }
            monitor.work(to - from)?;
        }
        rest.truncate(left);
        if !served.is_empty() {
            return Ok((mask, served));
        }
    }
    served.append(rest);
    Ok(([0; W], served))
}

/// Makes a table of rules in the chain at a place.
#[allow(clippy::too_many_arguments)] // what a recursion hands on
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
    let probe = Table::new(mask, 1);
    let hashed_bytes = bytes_of::<(u64, u32)>(served.len());
    monitor.memory().take(hashed_bytes)?;
    let mut hashed: Vec<(u64, u32)> = Vec::with_capacity(served.len());
    let mut best = u64::MAX;
    for block in served.chunks(Monitor::BLOCK) {
        hashed.extend(block.iter().map(|&index| {
            let rule = structure.outline(rows.row(index));
            best = best.min(rule.rank);
            (probe.hash(&rule.value, structure.secrets()), index)
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
    let mut from = 0;
    while from < hashed.len() {
        let table = structure.table(number);
        let slot = table.slot_of(hashed[from].0);
        let rest = hashed[from..].iter();
        let count = rest.take_while(|&&(hash, _)| table.slot_of(hash) == slot);
        let to = from + count.count();
        let signature = hashed[from..to].iter().fold(0, |signature, &(hash, _)| {
            signature | 1 << table.signature_bit(hash)
        });
        // Longer ones are divided, and counted like those of a table.
        if to - from > growth.most {
            monitor.memory().take(bytes_of::<u32>(to - from))?;
        }
        let members = hashed[from..to].iter().map(|&(_, index)| index).collect();
        let whole = from == 0 && to == hashed.len() && mask != [0; W];
        let place = Place {
            table: number,
            slot,
        };
        let bucket = grow_bucket(structure, growth, rows, members, place, whole, monitor)?;
        structure.fill(place, bucket, signature);
        from = to;
    }
    drop(hashed);
    monitor.memory().give_back(hashed_bytes);
    Ok(number)
}

/// Makes a run of rules, or nested tables if they are too many; the caller fills the
/// place with it. When they are the `whole` of a table that should have told them
/// apart, a second search would choose the same table.
///
/// Members that are too many for a run count as memory already.
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
        let mut rest = members;
        let masks = match growth.budget.allowance() {
            _ if whole => Vec::new(),
            Some(0) => Vec::new(),
            Some(words) => {
                let level = Level::Split(words);
                growth.plan(structure, rows, &rest, level, monitor)?.masks
            }
            None => {
                let level = Level::Nested;
                growth.plan(structure, rows, &rest, level, monitor)?.masks
            }
        };
        let mut masks = masks.into_iter();
        let (mask, served) = next_table(structure, rows, &mut rest, &mut masks, monitor)?;
        if mask != [0; W] || served.len() > MAX_RUN {
            let mut next = Some((mask, served));
            while let Some((mask, mut served)) = next {
                // Rules that nothing tells apart fill one table after the other,
                // the best first.
                if mask == [0; W] {
                    keep_best(rows, &mut served, &mut rest, monitor)?;
                }
                grow_table(structure, growth, rows, mask, served, place, order, monitor)?;
                order += 1;
                next = if rest.is_empty() {
                    None
                } else {
                    let masks = &mut masks;
                    Some(next_table(structure, rows, &mut rest, masks, monitor)?)
                };
            }
            drop(rest);
            monitor.memory().give_back(bytes);
            return Ok(Bucket::Nested(structure.first_of(place)));
        }
        bytes += bytes_of::<u32>(served.capacity());
        members = served;
    }
    let count = members.len();
    let run = make_run(structure, rows, members, place);
    monitor.memory().give_back(bytes);
    growth.has_placed(structure, count, monitor)?;
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

/// Leaves the best rules that a run can hold and puts the others back, into the
/// room from which they came.
fn keep_best(
    rows: &Rows<'_>,
    served: &mut Vec<u32>,
    rest: &mut Vec<u32>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    if served.len() > MAX_RUN / 2 {
        sort_by_key(served, |&index| rows.rank(index), monitor)?;
        rest.extend(served.drain(MAX_RUN / 2..));
    }
    Ok(())
}
