//! Coherence: the caches apply all changes of entries since the previous vector before the
//! next one is looked up.
//!
//! The effects of entries, groups, meters and ports are not cached, with one exception: the
//! program of a path has the actions of its entries, and is rebuilt when these actions
//! change.

use classyard::RuleId;

use super::caches::Caches;
use super::program::Program;
use crate::cache::bits::match_bits;
use crate::cache::change::EntryChange;
use crate::cache::store::Added;
use crate::pipeline::run::side::Side;
use crate::pipeline::run::tally::Tally;

/// Maximum number of megaflow signatures to compare with new entries in one call, which
/// then takes about 2 ms. If there are more, a new era begins: each megaflow is checked
/// in the tables when a packet hits it, which takes more time in total. Measured in
/// `bench/records/caches.md` (Changes).
const MAX_SCANNED_SIGNATURES: usize = 16_000_000;

impl Caches {
    /// Applies the entry changes of a side that the caches have not applied yet.
    pub(super) fn follow(&mut self, side: &Side, tally: &Tally) {
        let change_count = side.recent.made();
        if change_count == self.followed {
            return;
        }
        let changes = side.recent.since(self.followed);
        self.followed = change_count;
        if self.store.len() == 0 {
            return;
        }
        let is_added = |change: &&EntryChange| matches!(change, EntryChange::Added { .. });
        let scanned = |changes| Iterator::filter(changes, is_added).count() * self.store.len();
        let Some(changes) =
            changes.filter(|changes| scanned(changes.clone()) <= MAX_SCANNED_SIGNATURES)
        else {
            self.store.begin_era();
            return;
        };
        // A stale megaflow stays stale, and no megaflow is added. So the order of changes
        // does not matter, and new entries are compared with megaflows together.
        let mut added = Vec::new();
        for change in changes {
            match change {
                EntryChange::Added {
                    table,
                    winner,
                    flow,
                } => added.push(Added {
                    table: *table,
                    winner: *winner,
                    match_bits: match_bits(flow),
                }),
                EntryChange::Removed(id) => {
                    for path in self.store.paths().of_entry(*id) {
                        self.store.paths_mut().close(path);
                    }
                }
                EntryChange::Modified { id, keeps_paths } => self.modified(side, *id, *keeps_paths),
            }
        }
        self.store.entries_added(&added);
        // Must come before other paths get the numbers of the closed paths.
        for path in self.store.paths_mut().take_closed() {
            tally.close_path(path);
        }
    }

    /// Handles an entry with new instructions. The paths on which it wins get new programs,
    /// or are closed if packets now take another path. A path with a removed entry is closed
    /// as well, since its program needs the instructions of all its entries.
    fn modified(&mut self, side: &Side, id: RuleId, keeps_paths: bool) {
        for number in self.store.paths().of_entry(id) {
            let (path, _) = self.store.paths().get(number);
            let mut winners = path.steps.iter().filter_map(|step| step.winner.rule());
            let is_there = keeps_paths && winners.all(|id| side.find_flow(id).is_some());
            let new = is_there.then(|| Program::new(side, path, &mut self.operations));
            match (new, self.store.paths_mut().program_mut(number)) {
                (Some(new), Some(program)) => *program = new,
                _ => self.store.paths_mut().close(number),
            }
        }
    }
}
