//! Paths: the tables that look a packet up, and the entries that win there.
//!
//! # Idea
//! For each table that looks a packet up, a path has the entry that wins there. Groups,
//! meters and ports come from the version that processes the packet; the instructions of
//! the entries are combined in the path's program, which is rebuilt when they change. So
//! a flow cache only has to store paths, and many flows share few paths.
//!
//! ```text
//! flow ─┐
//! flow ─┼▶ path   table 0, entry 7 ─▶ table 1, entry 1034 ─▶ table 2, no entry
//! flow ─┘
//! ```
//! A path *ends early*, and the pipeline continues, if later lookups depend on more than
//! the key: after an action that uncovers headers which the key does not have, or before
//! a meter.
//!
//! A path is *closed* when it may be wrong, because one of its entries was removed or
//! changed. Its number is reused when no cached flow refers to it.

use classyard::{RuleId, Winner};
use foldhash::HashMap;

use super::entry_paths::{EntryPaths, Opened, PathId};
use crate::bits::Known;
use crate::flow::TableId;

/// One table on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) table: TableId,
    /// The entry that wins, or a miss.
    pub(crate) winner: Winner,
    /// The bits of the key that actions before this table have set.
    pub(crate) set: Vec<Known>,
}

/// The tables that look a packet up, with the entries that win there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    /// The table at which the pipeline continues, if the path ends early.
    pub(crate) rest: Option<TableId>,
}

impl Clone for Path {
    fn clone(&self) -> Path {
        Path {
            steps: self.steps.clone(),
            rest: self.rest,
        }
    }

    /// Reuses the memory of `self`.
    fn clone_from(&mut self, from: &Path) {
        self.steps.clone_from(&from.steps);
        self.rest = from.rest;
    }
}

impl Path {
    /// Removes all steps. The path keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.rest = None;
    }

    /// Returns a hash of the winners. They determine the rest of the path until entries
    /// are modified.
    fn hash(&self) -> u64 {
        self.steps.iter().fold(0, |hash, step| {
            let winner = step.winner.rank() ^ u64::from(step.table.0) << 56;
            let product = u128::from(hash ^ winner) * u128::from(HASH_MULTIPLIER);
            #[allow(clippy::cast_possible_truncation)] // both halves are used
            let (low, high) = (product as u64, (product >> 64) as u64);
            low ^ high.rotate_left(32)
        })
    }
}

/// An odd number; about half of its bits are set.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A path with its program.
struct Held<P> {
    /// `None` after the path was closed.
    program: Option<P>,
    /// The number of megaflows that refer to the path.
    megaflows: u32,
    /// The store's era when the program was made.
    era: u32,
    /// The stamp of its opening.
    stamp: u64,
    path: Path,
}

/// The paths of all cached flows, each with the program that executes its packets.
pub(crate) struct Paths<P> {
    /// Paths without flows are free; their memory is reused.
    held: Vec<Held<P>>,
    free: Vec<u32>,
    /// Open paths, by hash. Only one of several paths with the same hash is found.
    numbers: HashMap<u64, PathId>,
    by_entry: EntryPaths,
    /// The number of paths opened so far.
    opened: u64,
    /// The number of open paths.
    open: usize,
    /// Closed paths that the owner has not taken yet.
    closed: Vec<PathId>,
    /// The number of megaflows that referred to a path when it was closed.
    stranded: u64,
}

impl<P> Default for Paths<P> {
    fn default() -> Paths<P> {
        Paths {
            held: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::default(),
            by_entry: EntryPaths::default(),
            opened: 0,
            open: 0,
            closed: Vec::new(),
            stranded: 0,
        }
    }
}

impl<P> Paths<P> {
    /// Adds a flow to a path. Returns the path's number, and true if its program is new:
    /// for a new path, or if the old program is of an earlier era, since the entries may
    /// have changed.
    pub(crate) fn refer(
        &mut self,
        path: &Path,
        era: u32,
        program: impl FnOnce(&Path) -> P,
    ) -> (PathId, bool) {
        let hash = path.hash();
        let known = self.numbers.get(&hash).copied();
        if let Some(id) = known.filter(|&id| self.get(id).0 == path) {
            let held = self.held_mut(id);
            held.megaflows += 1;
            let is_old = held.era != era;
            if is_old {
                held.program = Some(program(path));
                held.era = era;
            }
            return (id, is_old);
        }
        let stamp = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let id = if let Some(number) = self.free.pop() {
            let held = &mut self.held[number as usize];
            held.path.clone_from(path);
            (held.program, held.megaflows, held.era) = (Some(program(path)), 1, era);
            held.stamp = stamp;
            PathId(number)
        } else {
            self.held.push(Held {
                program: Some(program(path)),
                megaflows: 1,
                era,
                stamp,
                path: path.clone(),
            });
            PathId(u32::try_from(self.held.len() - 1).expect("fewer paths than numbers"))
        };
        let held = &self.held;
        for entry in entries(path) {
            let opened = Opened { path: id, stamp };
            self.by_entry.open(entry, opened, |it| is_open(held, it));
        }
        self.open += 1;
        self.numbers.insert(hash, id);
        (id, true)
    }

    /// Returns the paths closed since the last call. The caller must call this before
    /// their numbers are reused: at least after each added path.
    pub(crate) fn take_closed(&mut self) -> impl Iterator<Item = PathId> {
        self.closed.drain(..)
    }

    /// Removes a flow from a path.
    pub(crate) fn release(&mut self, id: PathId) {
        let held = self.held_mut(id);
        held.megaflows -= 1;
        if held.megaflows == 0 {
            self.close(id);
            self.free.push(id.0);
        }
    }

    /// Closes a path, since it may be wrong.
    pub(crate) fn close(&mut self, id: PathId) {
        let held = &mut self.held[id.0 as usize];
        if held.program.take().is_none() {
            return;
        }
        self.stranded += u64::from(held.megaflows);
        self.closed.push(id);
        self.open -= 1;
        let hash = held.path.hash();
        if self.numbers.get(&hash) == Some(&id) {
            self.numbers.remove(&hash);
        }
        let stamp = held.stamp;
        for entry in entries(&held.path) {
            self.by_entry.close(entry, Opened { path: id, stamp });
        }
    }

    /// Returns the open paths on which an entry wins.
    pub(crate) fn of_entry(&self, entry: RuleId) -> Vec<PathId> {
        let paths = self.by_entry.of(entry);
        let open = paths.filter(|&opened| is_open(&self.held, opened));
        open.map(|opened| opened.path).collect()
    }

    /// Returns the path with a number, and its program unless the path is closed.
    pub(crate) fn get(&self, id: PathId) -> (&Path, Option<&P>) {
        let held = &self.held[id.0 as usize];
        (&held.path, held.program.as_ref())
    }

    /// Returns the program of a path, or `None` if the path is closed.
    #[inline]
    pub(crate) fn program(&self, id: PathId) -> Option<&P> {
        self.held[id.0 as usize].program.as_ref()
    }

    /// Returns the program of a path, to be changed, or `None` if the path is closed.
    pub(crate) fn program_mut(&mut self, id: PathId) -> Option<&mut P> {
        self.held[id.0 as usize].program.as_mut()
    }

    /// Prefetches the data of a path. The result has no meaning.
    #[inline]
    pub(crate) fn touch(&self, id: PathId) -> u64 {
        let held = self.held.get(id.0 as usize);
        held.map_or(0, |held| u64::from(held.era))
    }

    /// Returns the number of open paths.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    /// Returns the number of megaflows whose paths were closed so far.
    pub(crate) fn stranded(&self) -> u64 {
        self.stranded
    }

    fn held_mut(&mut self, id: PathId) -> &mut Held<P> {
        &mut self.held[id.0 as usize]
    }
}

/// True if a path has not been closed since it was opened.
fn is_open<P>(held: &[Held<P>], opened: Opened) -> bool {
    let held = &held[opened.path.0 as usize];
    held.stamp == opened.stamp && held.program.is_some()
}

/// Returns the entries on a path. No entry repeats, since no table repeats.
fn entries(path: &Path) -> impl Iterator<Item = RuleId> {
    path.steps.iter().filter_map(|step| step.winner.rule())
}

#[cfg(test)]
mod tests {
    use classyard::Priority;

    use super::*;

    fn path(entries: &[u32]) -> Path {
        let steps = (0..).zip(entries).map(|(table, &entry)| Step {
            table: TableId(table),
            winner: Winner::new(Priority(1), RuleId::new(entry).unwrap()),
            set: Vec::new(),
        });
        Path {
            steps: steps.collect(),
            rest: None,
        }
    }

    #[test]
    fn a_number_is_kept_while_flows_refer_to_its_path() {
        let mut paths = Paths::default();
        let (one, _) = paths.refer(&path(&[1, 2]), 0, |_| "one");
        assert_eq!(paths.refer(&path(&[1, 2]), 0, |_| "again"), (one, false));
        let (two, _) = paths.refer(&path(&[1, 3]), 0, |_| "two");
        assert_eq!(paths.of_entry(RuleId::new(1).unwrap()).len(), 2);
        paths.close(one);
        assert_eq!(paths.of_entry(RuleId::new(1).unwrap()), [two]);
        assert_eq!(paths.take_closed().collect::<Vec<_>>(), [one]);
        assert_eq!(paths.stranded(), 2);
        assert_eq!(
            (paths.program(one), paths.program(two)),
            (None, Some(&"two"))
        );
        // The path is opened again while flows still refer to the closed one.
        let (reopened, _) = paths.refer(&path(&[1, 2]), 0, |_| "reopened");
        assert_ne!(reopened, one);
        paths.release(one);
        paths.release(one);
        let (three, _) = paths.refer(&path(&[4]), 0, |_| "three");
        assert_eq!(three, one, "its number is free");
        assert_eq!(paths.program(reopened), Some(&"reopened"));
        assert_eq!(paths.refer(&path(&[4]), 1, |_| "later"), (three, true));
        assert_eq!(paths.program(three), Some(&"later"), "another era");
        paths.release(three);
        assert_eq!(paths.len(), 3);
        for id in [reopened, two, three] {
            paths.release(id);
        }
        assert_eq!((paths.len(), paths.stranded()), (0, 2));
        assert!(paths.by_entry.is_empty());
    }
}
