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
use crate::engine::tuple_space::{EntryIndex, TupleSpace};
use crate::error::BuildError;

const SELECTING: &str = "selecting tables";

/// Places all stored rules in newly selected tables. When the observer asks to
/// stop, nothing has changed.
pub(super) fn select_tables<const W: usize>(
    space: &mut TupleSpace<W>,
    limit: usize,
    progress: &mut dyn Progress,
) -> Result<(), BuildError> {
    let all = space.stored_by_rank();
    let mut tables: Vec<([u64; W], Vec<EntryIndex>)> = Vec::new();
    let mut counters = Counters::new(all.len());
    let mut left = all.clone();
    while !left.is_empty() {
        report(progress, SELECTING, all.len() - left.len(), all.len())?;
        let mask = best_mask(space, &left, limit, &mut counters);
        counters.clear();
        let (admitted, out) = left
            .iter()
            .partition(|&&entry| counters.admit(space, entry, &mask, limit));
        tables.push((mask, admitted));
        left = out;
    }
    space.unlink_all();
    for (mask, entries) in tables {
        let table = space.new_table(mask);
        for entry in entries {
            space.link(table, entry);
        }
    }
    Ok(())
}

/// The mask of the next table.
fn best_mask<const W: usize>(
    space: &TupleSpace<W>,
    left: &[EntryIndex],
    limit: usize,
    counters: &mut Counters,
) -> [u64; W] {
    let masks = common_masks(space, left);
    let mut reach = |mask: &[u64; W]| {
        counters.clear();
        let out = left
            .iter()
            .position(|&entry| !counters.admit(space, entry, mask, limit));
        out.unwrap_or(left.len())
    };
    let reaches: Vec<usize> = masks.iter().map(&mut reach).collect();
    let furthest = reaches.iter().max().expect("rules are left");
    let tied = masks
        .iter()
        .zip(&reaches)
        .filter(|(_, reach)| *reach == furthest);
    let tied: Vec<&[u64; W]> = tied.map(|(mask, _)| mask).collect();
    if let [only] = tied.as_slice() {
        return **only;
    }
    let mut admitted = |mask: &[u64; W]| {
        counters.clear();
        let admits = |entry: &&EntryIndex| counters.admit(space, **entry, mask, limit);
        left.iter().filter(admits).count()
    };
    let best = tied.into_iter().max_by_key(|mask| admitted(mask));
    *best.expect("rules are left")
}

/// The distinct masks common to the first 1, 2, 3, … rules: each has fewer
/// bits than the one before, so there are no more of them than bits.
fn common_masks<const W: usize>(space: &TupleSpace<W>, left: &[EntryIndex]) -> Vec<[u64; W]> {
    let mut masks: Vec<[u64; W]> = Vec::new();
    let mut common = [u64::MAX; W];
    for &entry in left {
        for (common, mask) in common.iter_mut().zip(&space.entry(entry).mask) {
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

    /// Counts a rule in, unless it does not fit the mask or its key is full.
    fn admit<const W: usize>(
        &mut self,
        space: &TupleSpace<W>,
        entry: EntryIndex,
        mask: &[u64; W],
        limit: usize,
    ) -> bool {
        let rule = space.entry(entry);
        if !rule.fits(mask) {
            return false;
        }
        let hash = space.hash_under(mask, &rule.value) as usize;
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
