//! Conflict marks: the tables that may hold a better rule than a given rule.
//!
//! # Idea
//! Two rules *conflict* if some header matches both; the rule with the better rank
//! wins. After a header has found a rule, it must probe only tables with conflicting
//! rules of a better rank. Most rules have such conflicts in few tables or none, but
//! the order of the tables by their best rules does not show that. So each slot has
//! a [`ConflictMask`] of five bits, for groups of the root's tables:
//! ```text
//! group     0     1     2     3    4, 4, …
//! table  ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 4 ──▶ 5, 6, …        the root, best first
//!              │
//!              └─ slot │ position │ signature │ conflicts 10010 │ length │
//! ```
//! A bit is set if a table of the group holds a better rule that conflicts with any
//! rule of the slot's run. A lookup keeps the bits of its winner's slot and skips
//! tables of other groups. The first table is visited first and needs no group of
//! its own; the sixth and all later tables (5, 6, … in the drawing) share one.
//!
//! # Marking
//! After a build, each rule is checked against each table with better rules. A check
//! visits the slots that a header of the rule can reach, if these are few, and
//! compares the rules in them. If the rule leaves many bits of the table's mask
//! open, or too many rules would be compared, the bit is set without a check. A bit
//! set needlessly costs a probe; a missing bit would cause a wrong answer.
//!
//! # Updates
//! An inserted rule may conflict with rules anywhere, and finding them would take
//! too long. So the rule's table records the best rank inserted since marking
//! (`late_best`), and headers with worse winners probe it, whatever their bits. All
//! bits of the new rule's slot are set. Removing rules leaves needless bits. All of
//! these cost lookups additional probes until the next marking.
//!
//! After a plan has been adopted, slots are marked one by one during updates. The
//! bits are meaningless until the last slot is marked. The best rank inserted during
//! marking is recorded separately (`late_best_of_marking`).
//!
//! # Cost
//! A hash and a slot for each rule and table during a build.

use super::slot::{Bucket, ConflictMask, Place, TableNumber};
use super::structure::Structure;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;

/// The most bits of a table's mask that a rule may leave open. With n open bits, its
/// headers can reach 2^n slots. Bounds the slots read for a rule and a table.
const MAX_OPEN_BITS: u32 = 6;

/// The most rules of one table that are compared with a rule. Bounds the time of
/// marking.
const MAX_COMPARED_RULES: usize = 256;

/// The progress of marking.
#[derive(Debug)]
pub(super) struct Marking {
    /// The root's tables at the beginning of marking.
    root: Vec<TableNumber>,
    /// The table whose slots are marked, by its position in `root`.
    table: usize,
    slot: u32,
}

/// Rules compared with a rule in one step of a monitor's work. Bounds the time until
/// a build can be stopped.
const COMPARES_PER_STEP: usize = 32;

/// Marks all runs of the root in one call, if marks are wanted.
pub(super) fn mark_all<const W: usize>(
    structure: &mut Structure<W>,
    wanted: bool,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let mut marking = Marking::begin(structure, wanted);
    // A rule may be compared with some rules of each other table.
    let steps = 1 + marking.root.len() * MAX_COMPARED_RULES / COMPARES_PER_STEP / 4;
    let rules = structure.len();
    monitor.begin("marking conflicts", rules)?;
    while let Some(marked) = marking.step(structure) {
        monitor.count_done(marked);
        monitor.work(1 + marked * steps)?;
    }
    marking.end(structure);
    Ok(())
}

impl Marking {
    /// Assigns tables to groups. Until marking ends, lookups probe all tables. If
    /// marks are not wanted, no slots are marked.
    pub(super) fn begin<const W: usize>(structure: &mut Structure<W>, wanted: bool) -> Marking {
        let mut root: Vec<TableNumber> = structure.chain(structure.root()).collect();
        if root.len() < 2 || !wanted {
            root.clear();
        }
        let groups = std::iter::once(0).chain(0..ConflictMask::GROUP_COUNT);
        let groups = groups.chain(std::iter::repeat(ConflictMask::GROUP_COUNT - 1));
        for (&number, group) in root.iter().zip(groups) {
            structure.begin_marking(number, ConflictMask::group(group));
        }
        Marking {
            root,
            table: 0,
            slot: 0,
        }
    }

    /// Marks the next slot. Returns the number of rules in its run, or `None` if all
    /// slots are marked.
    pub(super) fn step<const W: usize>(&mut self, structure: &mut Structure<W>) -> Option<usize> {
        let number = *self.root.get(self.table)?;
        let slot = self.slot;
        // The table may have been removed, and its number reused.
        let table = structure.table_if_any(number).filter(|table| {
            (slot as usize) < table.slot_count() && table.group() != ConflictMask::NONE
        });
        let Some(table) = table else {
            self.table += 1;
            self.slot = 0;
            return Some(0);
        };
        self.slot += 1;
        let Bucket::Run(run) = table.slot(slot).bucket() else {
            return Some(0);
        };
        let mut row = Vec::with_capacity(structure.shape().columns());
        let mut conflicts = ConflictMask::NONE;
        for rule in 0..usize::from(run.len) {
            row.clear();
            structure.push_row(run, rule, &mut row);
            conflicts = with_conflicts_of(structure, &row, number, conflicts);
        }
        let marked_slot = Place {
            table: number,
            slot,
        };
        structure.set_conflicts(marked_slot, conflicts);
        Some(usize::from(run.len))
    }

    /// Lets lookups skip tables without conflicts from now on.
    pub(super) fn end<const W: usize>(&self, structure: &mut Structure<W>) {
        for &number in &self.root {
            if structure.table_if_any(number).is_some() {
                structure.end_marking(number);
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.root.capacity() * size_of::<TableNumber>()
    }
}

/// Adds the groups of tables that may hold better rules in conflict with the rule
/// `row` of the table `own`.
fn with_conflicts_of<const W: usize>(
    structure: &Structure<W>,
    row: &[u64],
    own: TableNumber,
    mut conflicts: ConflictMask,
) -> ConflictMask {
    for number in structure.chain(structure.root()) {
        let table = structure.table(number);
        if table.best() >= row[0] {
            break;
        }
        // A table without a group is always probed.
        let group = table.group();
        if number != own && group != ConflictMask::NONE && !conflicts.has(group) {
            let mut compares_left = MAX_COMPARED_RULES;
            if table_may_conflict(structure, number, row, &mut compares_left) {
                conflicts = conflicts.or(group);
            }
        }
    }
    conflicts
}

/// True if a table may hold better rules in conflict with the rule `row`. Compares
/// at most `compares_left` rules.
fn table_may_conflict<const W: usize>(
    structure: &Structure<W>,
    number: TableNumber,
    row: &[u64],
    compares_left: &mut usize,
) -> bool {
    let table = structure.table(number);
    let rule = structure.outline(row);
    let key = std::array::from_fn(|word| rule.value[word] & rule.mask[word]);
    let open: [u64; W] = std::array::from_fn(|word| table.mask()[word] & !rule.mask[word]);
    let count: u32 = open.iter().map(|word| word.count_ones()).sum();
    if table.slot_count() <= 1 << count.min(MAX_OPEN_BITS) {
        // A header of the rule may reach any slot.
        return table
            .slots()
            .any(|slot| bucket_may_conflict(structure, slot.bucket(), row, compares_left));
    }
    if count > MAX_OPEN_BITS {
        return true;
    }
    // The amount that each open bit adds to the hash.
    let mut adds = [0u64; MAX_OPEN_BITS as usize];
    let mut next = adds.iter_mut();
    for (mut bits, secret) in open.into_iter().zip(structure.secrets()) {
        while bits != 0 {
            let bit = bits & bits.wrapping_neg();
            *next.next().expect("no more than are open") = bit.wrapping_mul(*secret);
            bits ^= bit;
        }
    }
    let hash = table.hash(&key, structure.secrets());
    (0..1_usize << count).any(|choice| {
        let chosen = adds.iter().enumerate();
        let chosen = chosen.filter(|(bit, _)| choice >> bit & 1 != 0);
        let hash = chosen.fold(hash, |hash, (_, add)| hash.wrapping_add(*add));
        let slot = table.slot(table.slot_of(hash));
        slot.may_hold(table.signature_bit(hash))
            && bucket_may_conflict(structure, slot.bucket(), row, compares_left)
    })
}

fn bucket_may_conflict<const W: usize>(
    structure: &Structure<W>,
    bucket: Bucket,
    row: &[u64],
    compares_left: &mut usize,
) -> bool {
    match bucket {
        Bucket::Empty => false,
        Bucket::Nested(first) => structure
            .chain(first)
            .take_while(|number| structure.table(*number).best() < row[0])
            .any(|number| table_may_conflict(structure, number, row, compares_left)),
        Bucket::Run(run) => {
            let ranks = structure.ranks(run);
            let better = ranks.partition_point(|&rank| rank < row[0]);
            if better > *compares_left {
                return true;
            }
            *compares_left -= better;
            let (shape, words) = (structure.shape(), structure.run(run));
            (0..better).any(|rule| shape.may_overlap(words, ranks.len(), rule, row))
        }
    }
}
