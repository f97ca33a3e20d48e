//! Conflict marks: which tables may hold something better than a rule.
//!
//! # Idea
//! Two rules *conflict* if some header matches both; of the two, the better rank
//! wins. A header that has found a rule need look only into tables that hold
//! conflicting rules of a better rank. Most rules have such conflicts in few
//! tables, or in none, and the order of the tables by their best rules does not
//! show that. So each slot has a [`ConflictMask`] of five bits, for groups of the
//! root's tables:
//! ```text
//! group     0     1     2     3    4, 4, …
//! table  ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 4 ──▶ 5, 6, …        the root, best first
//!              │
//!              └─ slot │ position │ signature │ conflicts 10010 │ length │
//! ```
//! A bit is set if a table of the group holds a better rule that conflicts with
//! any rule of the slot's run. A lookup keeps the bits of what it has found, and
//! passes over tables of other groups. The first table is visited first and needs
//! no group of its own; the fifth and all after it share one.
//!
//! # Marking
//! After building, for each rule and each table with better rules: the slots that
//! a header of the rule can meet, if they are few, and the rules in them. Where
//! the rule leaves many bits of the table's mask open, or there is much to
//! compare, there may be conflicts, and the bit is set. A bit that is set for
//! nothing costs a probe; a bit that is missing would be a wrong answer.
//!
//! # Updates
//! A rule that is inserted may conflict with rules anywhere; finding those would
//! take too long. So its table remembers the best rank inserted since marking
//! (`late_best`), and headers whose winners are worse look into it, whatever
//! their bits. The slot of the new rule has all bits set. Removing rules leaves
//! bits set for nothing. All that costs lookups probes until the next marking.
//!
//! When a plan has been adopted, slots are marked one by one while updates go on.
//! Until the last is marked, bits mean nothing; the best rank inserted meanwhile
//! is remembered apart (`late_best_of_marking`).
//!
//! # Cost
//! A hash and a slot for each rule and table when building.

use super::slot::{Bucket, ConflictMask, Place, TableNumber};
use super::structure::Structure;
use crate::error::BuildError;
use crate::monitor::Monitor;

/// Bits of a table's mask that a rule may leave open: its headers meet up to two
/// to the power of that slots.
const OPEN: u32 = 6;

/// Rules compared with one, in one table.
const COMPARED: usize = 256;

/// How far marking has come.
#[derive(Debug)]
pub(super) struct Marking {
    /// The root's tables when it began.
    root: Vec<TableNumber>,
    /// The table whose slots are marked, by its position in `root`.
    table: usize,
    slot: u32,
}

/// Rules looked at for conflicts with one, as much work as a step.
const LOOKED_AT: usize = 32;

/// Marks all runs of the root at once, if marks are wanted.
pub(super) fn mark_all<const W: usize>(
    structure: &mut Structure<W>,
    wanted: bool,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let mut marking = Marking::begin(structure, wanted);
    // A rule may be compared with some rules of each other table.
    let steps = 1 + marking.root.len() * COMPARED / LOOKED_AT / 4;
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
    /// Gives tables their groups. Until the marking ends, lookups look into all
    /// tables. There is nothing to mark if marks are not wanted.
    pub(super) fn begin<const W: usize>(structure: &mut Structure<W>, wanted: bool) -> Marking {
        let mut root: Vec<TableNumber> = structure.chain(structure.root()).collect();
        if root.len() < 2 || !wanted {
            root.clear();
        }
        let groups = std::iter::once(0).chain(0..ConflictMask::GROUPS);
        let groups = groups.chain(std::iter::repeat(ConflictMask::GROUPS - 1));
        for (&number, group) in root.iter().zip(groups) {
            structure.begin_marking(number, ConflictMask::group(group));
        }
        Marking {
            root,
            table: 0,
            slot: 0,
        }
    }

    /// Marks the next slot; returns the number of rules in its run, `None` when
    /// all slots are marked.
    pub(super) fn step<const W: usize>(&mut self, structure: &mut Structure<W>) -> Option<usize> {
        let number = *self.root.get(self.table)?;
        let slot = self.slot;
        // A table may have gone meanwhile, and another have its number.
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
        let place = Place {
            table: number,
            slot,
        };
        structure.set_conflicts(place, conflicts);
        Some(usize::from(run.len))
    }

    /// From now on, lookups pass over tables without conflicts.
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

/// Adds the groups of tables that may hold better rules in conflict with a rule
/// of the table `own`.
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
        // A table without a group is always looked into.
        let group = table.group();
        if number != own && group != ConflictMask::NONE && !conflicts.has(group) {
            let mut left = COMPARED;
            if table_may_conflict(structure, number, row, &mut left) {
                conflicts = conflicts.or(group);
            }
        }
    }
    conflicts
}

/// Whether a table may hold better rules in conflict with a rule; no more than
/// `left` rules are compared.
fn table_may_conflict<const W: usize>(
    structure: &Structure<W>,
    number: TableNumber,
    row: &[u64],
    left: &mut usize,
) -> bool {
    let table = structure.table(number);
    let rule = structure.outline(row);
    let key = std::array::from_fn(|word| rule.value[word] & rule.mask[word]);
    let open: [u64; W] = std::array::from_fn(|word| table.mask()[word] & !rule.mask[word]);
    let count: u32 = open.iter().map(|word| word.count_ones()).sum();
    if table.slot_count() <= 1 << count.min(OPEN) {
        // A header of the rule may meet any slot.
        return table
            .slots()
            .any(|slot| bucket_may_conflict(structure, slot.bucket(), row, left));
    }
    if count > OPEN {
        return true;
    }
    // What each open bit adds to the hash.
    let mut adds = [0u64; OPEN as usize];
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
            && bucket_may_conflict(structure, slot.bucket(), row, left)
    })
}

fn bucket_may_conflict<const W: usize>(
    structure: &Structure<W>,
    bucket: Bucket,
    row: &[u64],
    left: &mut usize,
) -> bool {
    match bucket {
        Bucket::Empty => false,
        Bucket::Nested(first) => structure
            .chain(first)
            .take_while(|number| structure.table(*number).best() < row[0])
            .any(|number| table_may_conflict(structure, number, row, left)),
        Bucket::Run(run) => {
            let ranks = structure.ranks(run);
            let better = ranks.partition_point(|&rank| rank < row[0]);
            if better > *left {
                return true;
            }
            *left -= better;
            let (shape, words) = (structure.shape(), structure.run(run));
            (0..better).any(|rule| shape.may_overlap(words, ranks.len(), rule, row))
        }
    }
}
