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

use super::learn::{Budget, Cost, Learner, Level, Plan};
use super::rows::Rows;
use super::slot::{Bucket, MAX_RUN, Place, Run, TableNumber};
use super::structure::{Structure, Table};
use crate::classifier::{Progress, report};
use crate::error::BuildError;

/// What progress observers are told.
pub(super) const LEARNING: &str = "learning masks";

/// Slots are not made more than this many to separate two hashes.
const MOST_FOR_FEW: usize = 1 << 12;

/// Words of the values of rules that are looked at when a run is split.
const SPLIT_WORDS: usize = 8192;

/// Rules of a bucket that is learned on that count as one step of
/// [maintenance](super::maintain).
const RULES_PER_STEP: usize = 4;

/// How chains are grown.
pub(super) struct Growth<const W: usize> {
    learner: Learner<W>,
    /// The most rules of a run that could be split.
    most: usize,
    budget: Budget,
    /// What the update at hand has cost beyond the usual, in steps of
    /// maintenance: an update that splits a run moves fewer rules.
    extra_steps: usize,
}

impl<const W: usize> Growth<W> {
    pub(super) fn new(learner: Learner<W>, most: usize) -> Growth<W> {
        Growth {
            learner,
            most,
            budget: Budget::unlimited(),
            extra_steps: 0,
        }
    }

    pub(super) fn learner(&self) -> &Learner<W> {
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

    /// The extra steps since this was asked last.
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
    ) -> Plan<W> {
        // Within an update, wide rules are looked at as far as time allows.
        let count = match level {
            Level::Split(_) => rules.len().min(SPLIT_WORDS / W),
            Level::Root | Level::SmallRoot(_) | Level::Nested => rules.len(),
        };
        let plan = self.learner.plan(level, count, |index| {
            structure.outline(rows.row(rules[index * rules.len() / count]))
        });
        self.budget.spend(plan.words, !plan.masks.is_empty());
        plan
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

/// Fills an empty structure; returns what lookups in it should cost.
pub(super) fn grow_root<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    progress: &mut dyn Progress,
) -> Result<Cost, BuildError> {
    let total = rows.len();
    structure.reserve(total);
    let mut rest = rows.numbers();
    report(progress, LEARNING, 0, total)?;
    let level = growth
        .budget
        .allowance()
        .map_or(Level::Root, Level::SmallRoot);
    let plan = growth.plan(structure, rows, &rest, level);
    let mut masks = plan.masks.into_iter();
    let mut order = 0;
    while !rest.is_empty() {
        let (mask, served) = next_table(structure, rows, &mut rest, &mut masks);
        grow_table(structure, growth, rows, mask, served, Place::ROOT, order);
        report(progress, LEARNING, total - rest.len(), total)?;
        order += 1;
    }
    Ok(plan.cost)
}

/// Takes the rules of a chain's next table out of `rest`: those that the next mask
/// of some use fits, all of them when there is none.
fn next_table<const W: usize>(
    structure: &Structure<W>,
    rows: &Rows<'_>,
    rest: &mut Vec<u32>,
    masks: &mut impl Iterator<Item = [u64; W]>,
) -> ([u64; W], Vec<u32>) {
    for mask in masks {
        let (served, left): (Vec<u32>, Vec<u32>) = rest
            .iter()
            .partition(|&&index| structure.shape().fits(rows.row(index), &mask));
        if !served.is_empty() {
            *rest = left;
            return (mask, served);
        }
    }
    ([0; W], std::mem::take(rest))
}

/// Makes a table of rules in the chain at a place.
fn grow_table<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    mask: [u64; W],
    served: Vec<u32>,
    parent: Place,
    order: u32,
) -> TableNumber {
    let probe = Table::new(mask, 1);
    let mut hashed: Vec<(u64, u32)> = served
        .into_iter()
        .map(|index| {
            let rule = structure.outline(rows.row(index));
            (probe.hash(&rule.value, structure.secrets()), index)
        })
        .collect();
    hashed.sort_unstable();
    let ranks = hashed.iter().map(|&(_, index)| rows.rank(index));
    let best = ranks.min().unwrap_or(u64::MAX);
    let table = Table::new(mask, slots_for(&hashed)).of_chain(parent, order);
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
        let members = hashed[from..to].iter().map(|&(_, index)| index).collect();
        let whole = from == 0 && to == hashed.len() && mask != [0; W];
        let place = Place {
            table: number,
            slot,
        };
        let bucket = grow_bucket(structure, growth, rows, members, place, whole);
        structure.fill(place, bucket, signature);
        from = to;
    }
    number
}

/// Makes a run of rules, or nested tables if they are too many; the caller fills the
/// place with it. When they are the `whole` of a table that should have told them
/// apart, a second search would choose the same table.
pub(super) fn grow_bucket<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    rows: &Rows<'_>,
    mut members: Vec<u32>,
    place: Place,
    whole: bool,
) -> Bucket {
    if members.len() > growth.most {
        growth.extra_steps += members.len() / RULES_PER_STEP;
        let mut order = 0;
        let mut rest = members;
        let masks = match growth.budget.allowance() {
            _ if whole => Vec::new(),
            Some(0) => Vec::new(),
            Some(words) => {
                growth
                    .plan(structure, rows, &rest, Level::Split(words))
                    .masks
            }
            None => growth.plan(structure, rows, &rest, Level::Nested).masks,
        };
        let mut masks = masks.into_iter();
        let (mask, served) = next_table(structure, rows, &mut rest, &mut masks);
        if mask != [0; W] || served.len() > MAX_RUN {
            let mut next = Some((mask, served));
            while let Some((mask, mut served)) = next {
                // Rules that nothing tells apart fill one table after the other,
                // the best first.
                if mask == [0; W] {
                    keep_best(rows, &mut served, &mut rest);
                }
                grow_table(structure, growth, rows, mask, served, place, order);
                order += 1;
                next =
                    (!rest.is_empty()).then(|| next_table(structure, rows, &mut rest, &mut masks));
            }
            return Bucket::Nested(structure.first_of(place));
        }
        members = served;
    }
    Bucket::Run(make_run(structure, rows, members, place))
}

/// Makes a run of rules whose place is that slot.
pub(super) fn make_run<const W: usize>(
    structure: &mut Structure<W>,
    rows: &Rows<'_>,
    mut members: Vec<u32>,
    place: Place,
) -> Run {
    members.sort_unstable_by_key(|&index| rows.rank(index));
    structure.create_run(place, members.iter().map(|&index| rows.row(index)))
}

/// Leaves the best rules that a run can hold and puts the others back.
fn keep_best(rows: &Rows<'_>, served: &mut Vec<u32>, rest: &mut Vec<u32>) {
    if served.len() > MAX_RUN / 2 {
        served.sort_unstable_by_key(|&index| rows.rank(index));
        rest.extend(served.drain(MAX_RUN / 2..));
    }
}
