//! Offline table selection ([TM19] §III.C.5): all tables for rules that are
//! known up front.
//!
//! ```text
//! while rules are left, best first:
//!     masks = the bits common to the first 1, 2, 3, … rules; each once
//!     for mask in masks:
//!         admit rules in order while they fit and their key has less than c;
//!         note the first rule that is left out
//!     take the mask whose first rule left out comes latest, and among equals
//!     the one that admits most rules
//!     admitted rules become a table; the others are left
//! ```
//! So the best rules stand in the first tables, and a lookup that finds one of
//! them need not look at the later tables.
//!
//! Rules with the same masked key are counted by hash, as in the paper: two
//! keys that share a counter look like one, which leaves out a rule early now
//! and then but never exceeds the limit.

use crate::classifier::{Progress, report};
use crate::engine::tuple_space::{EntryIndex, Hasher, TupleSpace};
use crate::error::BuildError;
use crate::rule::RuleId;

const SELECTING: &str = "selecting tables";

/// What selection looks at in a rule.
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

    /// Whether every bit of a table's mask is exact in the rule.
    fn fits(&self, mask: &[u64; W]) -> bool {
        let mut words = mask.iter().zip(&self.mask);
        words.all(|(table, rule)| table & !rule == 0)
    }
}

/// A table: its mask, and the positions of its rules among the outlines.
pub(super) type Selected<const W: usize> = ([u64; W], Vec<u32>);

/// Places all stored rules in newly selected tables. When the observer asks to
/// stop, nothing has changed.
pub(super) fn select_tables<const W: usize>(
    space: &mut TupleSpace<W>,
    limit: usize,
    progress: &mut dyn Progress,
) -> Result<(), BuildError> {
    let entries = space.stored_by_rank();
    let outlines: Vec<Outline<W>> = entries
        .iter()
        .map(|&entry| Outline::of(space, entry))
        .collect();
    let tables = select(&outlines, &space.hasher(), limit, progress)?;
    space.unlink_all();
    for (mask, rules) in tables {
        let table = space.new_table(mask);
        for rule in rules {
            space.link(table, entries[rule as usize]);
        }
    }
    Ok(())
}

/// Selects tables for rules, which come best first. Every rule is in exactly
/// one of them.
pub(super) fn select<const W: usize>(
    outlines: &[Outline<W>],
    hasher: &Hasher<W>,
    limit: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Selected<W>>, BuildError> {
    let all = u32::try_from(outlines.len()).expect("fewer rules than ids");
    let mut selection = Selection {
        outlines,
        hasher,
        limit,
        counters: Counters::new(outlines.len()),
    };
    let mut tables = Vec::new();
    let mut left: Vec<u32> = (0..all).collect();
    while !left.is_empty() {
        let done = outlines.len() - left.len();
        report(progress, SELECTING, done, outlines.len())?;
        let mask = selection.best_mask(&left, progress)?;
        selection.counters.clear();
        let (admitted, out) = left.iter().partition(|&&rule| selection.admit(rule, &mask));
        tables.push((mask, admitted));
        left = out;
    }
    Ok(tables)
}

/// What a selection works with.
struct Selection<'a, const W: usize> {
    outlines: &'a [Outline<W>],
    hasher: &'a Hasher<W>,
    limit: usize,
    counters: Counters,
}

impl<const W: usize> Selection<'_, W> {
    /// The mask of the next table.
    fn best_mask(
        &mut self,
        left: &[u32],
        progress: &mut dyn Progress,
    ) -> Result<[u64; W], BuildError> {
        let masks = self.common_masks(left);
        let mut reaches = Vec::with_capacity(masks.len());
        for mask in &masks {
            report(
                progress,
                SELECTING,
                self.outlines.len() - left.len(),
                self.outlines.len(),
            )?;
            self.counters.clear();
            let out = left.iter().position(|&rule| !self.admit(rule, mask));
            reaches.push(out.unwrap_or(left.len()));
        }
        let furthest = reaches.iter().max().expect("rules are left");
        let tied = masks
            .iter()
            .zip(&reaches)
            .filter(|(_, reach)| *reach == furthest);
        let tied: Vec<&[u64; W]> = tied.map(|(mask, _)| mask).collect();
        if let [only] = tied.as_slice() {
            return Ok(**only);
        }
        let mut admitted = |mask: &[u64; W]| {
            self.counters.clear();
            left.iter().filter(|&&rule| self.admit(rule, mask)).count()
        };
        let best = tied.into_iter().max_by_key(|mask| admitted(mask));
        Ok(*best.expect("rules are left"))
    }

    /// The distinct masks common to the first 1, 2, 3, … rules: each has fewer
    /// bits than the one before, so there are no more of them than bits.
    fn common_masks(&self, left: &[u32]) -> Vec<[u64; W]> {
        let mut masks: Vec<[u64; W]> = Vec::new();
        let mut common = [u64::MAX; W];
        for &rule in left {
            for (common, mask) in common.iter_mut().zip(&self.outlines[rule as usize].mask) {
                *common &= mask;
            }
            if masks.last() != Some(&common) {
                masks.push(common);
            }
            if common == [0; W] {
                break;
            }
        }
        masks
    }

    /// Counts a rule in, unless it does not fit the mask or its key is full.
    fn admit(&mut self, rule: u32, mask: &[u64; W]) -> bool {
        let rule = &self.outlines[rule as usize];
        rule.fits(mask) && {
            let hash = self.hasher.hash(0, mask, &rule.value);
            self.counters.admit(hash as usize, self.limit)
        }
    }
}

/// How many rules were admitted for each hash of a masked key. Clearing takes
/// no time: old counts carry an old epoch.
struct Counters {
    counts: Vec<(u32, u32)>,
    epoch: u32,
}

impl Counters {
    fn new(rules: usize) -> Counters {
        // Four counters for each rule: few keys share one.
        Counters {
            counts: vec![(0, 0); (rules * 4).next_power_of_two().max(16)],
            epoch: 0,
        }
    }

    fn clear(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or_else(|| {
            self.counts.fill((0, 0));
            1
        });
    }

    /// Counts a rule in, unless its counter is full.
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
