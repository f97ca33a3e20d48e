//! Offline table selection ([TM19] §III.C.5): selects all tables for known rules.
//!
//! ```text
//! while rules are left, best first:
//!     masks = the bits common to the first 1, 2, 3, … rules; each once
//!     for mask in masks:
//!         admit rules in order while they fit and their key has less than c;
//!         note the first rule that is not admitted
//!     take the mask whose first rule not admitted comes latest; among equals
//!     the mask that admits most rules
//!     admitted rules become a table; the others remain
//! ```
//! So the best rules are in the first tables, and a lookup that finds a rule in them
//! need not probe later tables.
//!
//! Rules with the same masked key are counted by hash, as in the paper. Two keys that
//! share a counter count as one, so a rule is sometimes left out too early; the limit is
//! never exceeded.
//!
//! [TM19]: crate::papers#tm19

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::rule::RuleId;
use crate::parts::tuple_space::{EntryIndex, Hasher, TupleSpace};

const SELECTING: &str = "selecting tables";

/// The parts of a rule that selection uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<const W: usize> {
    pub(super) rank: u64,
    pub(super) id: RuleId,
    pub(super) value: [u64; W],
    pub(super) mask: [u64; W],
}

impl<const W: usize> Outline<W> {
    pub(super) fn of(space: &TupleSpace<W>, entry: EntryIndex) -> Outline<W> {
        let rule = space.entry(entry);
        Outline {
            rank: rule.rank,
            id: rule.id(),
            value: rule.value,
            mask: rule.mask,
        }
    }

    /// True if every bit of a table's mask is exact in the rule.
    fn fits(&self, mask: &[u64; W]) -> bool {
        let mut words = mask.iter().zip(&self.mask);
        words.all(|(table, rule)| table & !rule == 0)
    }
}

/// The selected tables: the mask of each, and the indices of its rules among the
/// outlines.
pub(super) struct Selected<const W: usize> {
    /// The rules, table by table.
    rules: Vec<u32>,
    /// The mask of each table, and the end of its rules.
    tables: Vec<([u64; W], usize)>,
}

impl<const W: usize> Selected<W> {
    pub(super) fn tables(&self) -> impl Iterator<Item = (&[u64; W], &[u32])> {
        let mut start = 0;
        self.tables.iter().map(move |(mask, end)| {
            let rules = &self.rules[start..*end];
            start = *end;
            (mask, rules)
        })
    }

    fn bytes(&self) -> usize {
        bytes_of::<u32>(self.rules.capacity())
            + bytes_of::<([u64; W], usize)>(self.tables.capacity())
    }
}

/// Places all stored rules in newly selected tables. If the progress callback cancels
/// before the selection is complete, nothing changes. Afterwards the callback still
/// receives progress but cannot cancel, unless no rule was in a table before.
pub(super) fn select_tables<const W: usize>(
    space: &mut TupleSpace<W>,
    mut entries: Vec<EntryIndex>,
    limit: usize,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    monitor.begin("sorting rules", entries.len())?;
    space.sort_by_rank(&mut entries, monitor)?;
    let bytes = bytes_of::<Outline<W>>(entries.len());
    monitor.memory().take(bytes)?;
    let mut outlines = Vec::with_capacity(entries.len());
    for &entry in &entries {
        outlines.push(Outline::of(space, entry));
        monitor.advance(1)?;
    }
    let selected = select(&outlines, &space.hasher(), limit, monitor)?;
    drop(outlines);
    monitor.memory().give_back(bytes);
    if space.table_count() > 0 {
        monitor.past_stopping();
    }
    space.unlink_all();
    monitor.begin("filling tables", entries.len())?;
    for (mask, rules) in selected.tables() {
        let table = space.new_table(*mask, monitor)?;
        for &rule in rules {
            space.link(table, entries[rule as usize], monitor)?;
            monitor.advance(1)?;
        }
    }
    monitor.memory().give_back(selected.bytes());
    Ok(())
}

/// Selects tables for rules, which must be sorted best first. Every rule is in exactly
/// one table.
pub(super) fn select<const W: usize>(
    outlines: &[Outline<W>],
    hasher: &Hasher<W>,
    limit: usize,
    monitor: &mut Monitor<'_>,
) -> Result<Selected<W>, BuildError> {
    let count = u32::try_from(outlines.len()).expect("fewer rules than ids");
    monitor.begin(SELECTING, outlines.len())?;
    let numbers = bytes_of::<u32>(outlines.len());
    let counters = Counters::bytes(outlines.len());
    let memory = monitor.memory();
    memory.take(2 * numbers + counters)?;
    let mut selection = Selection {
        outlines,
        hasher,
        limit,
        counters: Counters::new(outlines.len()),
    };
    let mut selected = Selected {
        rules: Vec::with_capacity(outlines.len()),
        tables: Vec::new(),
    };
    let mut remaining: Vec<u32> = (0..count).collect();
    while !remaining.is_empty() {
        let mask = selection.best_mask(&remaining, monitor)?;
        selection.counters.clear();
        let before = remaining.len();
        // Rules that are not admitted move forward and stay in order.
        let mut rejected = 0;
        for start in (0..before).step_by(Monitor::BLOCK) {
            let stop = before.min(start + Monitor::BLOCK);
            for at in start..stop {
                let rule = remaining[at];
                if selection.admit(rule, &mask) {
                    selected.rules.push(rule);
                } else {
                    remaining[rejected] = rule;
                    rejected += 1;
                }
            }
            monitor.work(stop - start)?;
        }
        remaining.truncate(rejected);
        monitor.memory().room(&mut selected.tables)?;
        selected.tables.push((mask, selected.rules.len()));
        monitor.count_done(before - rejected);
    }
    monitor.memory().give_back(numbers + counters);
    Ok(selected)
}

/// The state of a selection.
struct Selection<'a, const W: usize> {
    outlines: &'a [Outline<W>],
    hasher: &'a Hasher<W>,
    limit: usize,
    counters: Counters,
}

impl<const W: usize> Selection<'_, W> {
    /// Returns the mask of the next table.
    fn best_mask(
        &mut self,
        remaining: &[u32],
        monitor: &mut Monitor<'_>,
    ) -> Result<[u64; W], BuildError> {
        let masks = self.common_masks(remaining, monitor)?;
        let bytes = bytes_of::<usize>(masks.len());
        monitor.memory().take(bytes)?;
        let mut reaches = Vec::with_capacity(masks.len());
        for mask in &masks {
            self.counters.clear();
            let mut reach = 0;
            for block in remaining.chunks(Monitor::BLOCK) {
                let first_rejected = block.iter().position(|&rule| !self.admit(rule, mask));
                reach += first_rejected.unwrap_or(block.len());
                monitor.work(1 + first_rejected.unwrap_or(block.len()))?;
                if first_rejected.is_some() {
                    break;
                }
            }
            reaches.push(reach);
        }
        let furthest = *reaches.iter().max().expect("rules are left");
        let reaches = reaches.iter().zip(&masks);
        let mut tied = reaches.filter(|(reach, _)| **reach == furthest);
        let (_, &first) = tied.next().expect("the furthest is one of them");
        let mut best = (first, None);
        for (_, mask) in tied {
            let max_admitted = match best.1 {
                Some(max_admitted) => max_admitted,
                None => self.admitted(remaining, &first, monitor)?,
            };
            let admitted = self.admitted(remaining, mask, monitor)?;
            // Of masks that admit equally many rules, take the last.
            best = if admitted >= max_admitted {
                (*mask, Some(admitted))
            } else {
                (best.0, Some(max_admitted))
            };
        }
        let bytes = bytes + bytes_of::<[u64; W]>(masks.capacity());
        monitor.memory().give_back(bytes);
        Ok(best.0)
    }

    /// Returns the number of rules that a mask admits.
    fn admitted(
        &mut self,
        remaining: &[u32],
        mask: &[u64; W],
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        self.counters.clear();
        let mut admitted = 0;
        for block in remaining.chunks(Monitor::BLOCK) {
            admitted += block.iter().filter(|&&rule| self.admit(rule, mask)).count();
            monitor.work(block.len())?;
        }
        Ok(admitted)
    }

    /// Returns the different masks common to the first 1, 2, 3, … rules. Each has fewer
    /// bits than the mask before it, so the number of masks is at most the number of
    /// bits.
    fn common_masks(
        &self,
        remaining: &[u32],
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<[u64; W]>, BuildError> {
        let mut masks: Vec<[u64; W]> = Vec::new();
        let mut common = [u64::MAX; W];
        for block in remaining.chunks(Monitor::BLOCK) {
            monitor.work(block.len())?;
            for &rule in block {
                for (common, mask) in common.iter_mut().zip(&self.outlines[rule as usize].mask) {
                    *common &= mask;
                }
                if masks.last() != Some(&common) {
                    monitor.memory().room(&mut masks)?;
                    masks.push(common);
                }
                if common == [0; W] {
                    return Ok(masks);
                }
            }
        }
        Ok(masks)
    }

    /// Counts a rule and returns true, if it fits the mask and its key is not full.
    fn admit(&mut self, rule: u32, mask: &[u64; W]) -> bool {
        let rule = &self.outlines[rule as usize];
        rule.fits(mask) && {
            let hash = self.hasher.hash(0, mask, &rule.value);
            self.counters.admit(hash as usize, self.limit)
        }
    }
}

/// The number of rules admitted for each hash of a masked key. Clearing takes no time:
/// counts of an earlier epoch are zero.
struct Counters {
    counts: Vec<(u32, u32)>,
    epoch: u32,
}

impl Counters {
    fn new(rules: usize) -> Counters {
        Counters {
            counts: vec![(0, 0); Counters::count(rules)],
            epoch: 0,
        }
    }

    /// Returns the number of counters, four for each rule: few keys share a counter.
    fn count(rules: usize) -> usize {
        (rules * 4).next_power_of_two().max(16)
    }

    /// Bytes of the counters for `rules` rules.
    fn bytes(rules: usize) -> usize {
        bytes_of::<(u32, u32)>(Counters::count(rules))
    }

    fn clear(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or_else(|| {
            self.counts.fill((0, 0));
            1
        });
    }

    /// Counts a rule and returns true, unless its counter is full.
    fn admit(&mut self, hash: usize, limit: usize) -> bool {
        let last = self.counts.len() - 1;
        let (epoch, count) = &mut self.counts[hash & last];
        if *epoch != self.epoch {
            (*epoch, *count) = (self.epoch, 0);
        }
        let admitted = (*count as usize) < limit;
        *count += u32::from(admitted);
        admitted
    }
}
