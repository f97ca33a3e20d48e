//! Paths: the tables that a packet is looked up in, and the entries that win it there.
//!
//! # Idea
//! What the pipeline decides about a packet is which entries win it. What these do with
//! it is not decided once and for all: instructions, groups, meters and ports are
//! those of the version that processes the packet. So a path is all that a flow cache
//! has to keep, and few paths are taken by very many flows.
//!
//! ```text
//! flow ─┐
//! flow ─┼▶ path   table 0, entry 7 ─▶ table 1, entry 1034 ─▶ table 2, no entry
//! flow ─┘
//! ```
//! A path *ends early*, and the pipeline goes on, where later lookups depend on more than
//! the key: an action has uncovered headers that the key does not have, or a meter
//! comes first.
//!
//! A path is *closed* once it may be wrong, because an entry of it is gone or changed.
//! Its number is free again when no cached flow refers to it.

use classyard::{RuleId, Winner};
use foldhash::HashMap;

use super::bits::Known;
use super::entry_paths::{EntryPaths, Opened};
use crate::flow::TableId;

/// One table on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) table: TableId,
    /// The entry that wins, or a miss.
    pub(crate) winner: Winner,
    /// What actions before this table have set in the key.
    pub(crate) set: Vec<Known>,
}

/// Where packets go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    /// The table at which the pipeline goes on, where the path ends early.
    pub(crate) rest: Option<TableId>,
}

impl Clone for Path {
    fn clone(&self) -> Path {
        Path {
            steps: self.steps.clone(),
            rest: self.rest,
        }
    }

    /// In the memory that it has.
    fn clone_from(&mut self, from: &Path) {
        self.steps.clone_from(&from.steps);
        self.rest = from.rest;
    }
}

impl Path {
    /// No steps, in the memory that it has.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.rest = None;
    }

    /// A hash of who wins: the rest follows from that, until entries are modified.
    fn hash(&self) -> u64 {
        self.steps.iter().fold(0, |hash, step| {
            let winner = step.winner.rank() ^ u64::from(step.table.0) << 56;
            let product = u128::from(hash ^ winner) * u128::from(MULTIPLIER);
            #[allow(clippy::cast_possible_truncation)] // both halves are used
            let (low, high) = (product as u64, (product >> 64) as u64);
            low ^ high.rotate_left(32)
        })
    }
}

/// Odd, with as many bits set as not.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

/// A path that is known, with what its owner keeps for it.
struct Held<P> {
    /// `None` once it is closed.
    program: Option<P>,
    /// Cached flows that refer to it.
    flows: u32,
    /// The store's era that the program is of.
    era: u32,
    /// When it was opened.
    stamp: u64,
    path: Path,
}

/// All paths that cached flows take, each with what a packet on it is executed by.
pub(crate) struct Paths<P> {
    /// Those that no flow refers to are free: their memory is for other paths.
    held: Vec<Held<P>>,
    free: Vec<u32>,
    /// By their hashes, those that are open. Of two with the same hash one is found.
    numbers: HashMap<u64, PathId>,
    by_entry: EntryPaths,
    /// Paths ever opened.
    opened: u64,
    /// Paths that are open.
    open: usize,
    /// Paths that were closed and that the owner has not seen yet.
    closed: Vec<PathId>,
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
        }
    }
}

impl<P> Paths<P> {
    /// The number of a path, for one more flow, and whether it has a new program: a new
    /// path has, and one whose program is of an earlier era, since its entries may do
    /// something else by now.
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
            held.flows += 1;
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
            (held.program, held.flows, held.era) = (Some(program(path)), 1, era);
            held.stamp = stamp;
            PathId(number)
        } else {
            self.held.push(Held {
                program: Some(program(path)),
                flows: 1,
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

    /// Paths that were closed since this was asked. To be asked before their numbers are
    /// given to others: at least after each path that is added.
    pub(crate) fn take_closed(&mut self) -> impl Iterator<Item = PathId> {
        self.closed.drain(..)
    }

    /// One flow less refers to a path.
    pub(crate) fn release(&mut self, id: PathId) {
        let held = self.held_mut(id);
        held.flows -= 1;
        if held.flows == 0 {
            self.close(id);
            self.free.push(id.0);
        }
    }

    /// The path may be wrong from now on.
    pub(crate) fn close(&mut self, id: PathId) {
        let held = &mut self.held[id.0 as usize];
        if held.program.take().is_none() {
            return;
        }
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

    /// The paths on which an entry wins.
    pub(crate) fn of_entry(&self, entry: RuleId) -> Vec<PathId> {
        let paths = self.by_entry.of(entry);
        let open = paths.filter(|&it| is_open(&self.held, it));
        open.map(|it| it.path).collect()
    }

    /// The path of a number, and its program unless it is closed.
    pub(crate) fn get(&self, id: PathId) -> (&Path, Option<&P>) {
        let held = &self.held[id.0 as usize];
        (&held.path, held.program.as_ref())
    }

    /// What packets on a path are executed by; `None` once it is closed.
    #[inline]
    pub(crate) fn program(&self, id: PathId) -> Option<&P> {
        self.held[id.0 as usize].program.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn program_mut(&mut self, id: PathId) -> Option<&mut P> {
        self.held[id.0 as usize].program.as_mut()
    }

    /// Fetches what is kept for a path into the cache: says nothing.
    #[inline]
    pub(crate) fn touch(&self, id: PathId) -> u64 {
        let held = self.held.get(id.0 as usize);
        held.map_or(0, |held| u64::from(held.era))
    }

    /// Paths that are not closed.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    fn held_mut(&mut self, id: PathId) -> &mut Held<P> {
        &mut self.held[id.0 as usize]
    }
}

/// Whether a path was not closed since it was opened.
fn is_open<P>(held: &[Held<P>], opened: Opened) -> bool {
    let held = &held[opened.path.0 as usize];
    held.stamp == opened.stamp && held.program.is_some()
}

/// The entries on a path, each once: a table comes once.
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
        assert_eq!(
            (paths.program(one), paths.program(two)),
            (None, Some(&"two"))
        );
        // The same path anew, while flows still refer to the closed one.
        let (anew, _) = paths.refer(&path(&[1, 2]), 0, |_| "anew");
        assert_ne!(anew, one);
        paths.release(one);
        paths.release(one);
        let (three, _) = paths.refer(&path(&[4]), 0, |_| "three");
        assert_eq!(three, one, "its number is free");
        assert_eq!(paths.program(anew), Some(&"anew"));
        assert_eq!(paths.refer(&path(&[4]), 1, |_| "later"), (three, true));
        assert_eq!(paths.program(three), Some(&"later"), "another era");
        paths.release(three);
        assert_eq!(paths.len(), 3);
        for id in [anew, two, three] {
            paths.release(id);
        }
        assert_eq!(paths.len(), 0);
        assert!(paths.by_entry.is_empty());
    }
}
