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

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use classyard::{RuleId, Winner};

use super::bits::Known;
use crate::flow::TableId;

/// One table on a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) table: TableId,
    /// The entry that wins, or a miss.
    pub(crate) winner: Winner,
    /// What actions before this table have set in the key.
    pub(crate) set: Vec<Known>,
}

/// Where packets go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    /// The table at which the pipeline goes on, where the path ends early.
    pub(crate) rest: Option<TableId>,
}

/// The number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PathId(pub(crate) u32);

/// A path that is known, with what its owner keeps for it.
struct Held<P> {
    path: Arc<Path>,
    /// `None` once it is closed.
    program: Option<P>,
    /// Cached flows that refer to it.
    flows: usize,
    /// The store's era that the program is of.
    era: u32,
}

/// All paths that cached flows take, each with what a packet on it is executed by.
pub(crate) struct Paths<P> {
    held: Vec<Option<Held<P>>>,
    free: Vec<u32>,
    numbers: HashMap<Arc<Path>, PathId>,
    /// The paths of each entry, those that are closed left out.
    by_entry: HashMap<RuleId, BTreeSet<PathId>>,
    /// Paths that were closed and that the owner has not seen yet.
    closed: Vec<PathId>,
}

impl<P> Default for Paths<P> {
    fn default() -> Paths<P> {
        Paths {
            held: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            by_entry: HashMap::new(),
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
        path: Path,
        era: u32,
        program: impl FnOnce(&Path) -> P,
    ) -> (PathId, bool) {
        if let Some(&id) = self.numbers.get(&path) {
            let held = self.held_mut(id);
            held.flows += 1;
            let is_old = held.era != era;
            if is_old {
                held.program = Some(program(&path));
                held.era = era;
            }
            return (id, is_old);
        }
        let path = Arc::new(path);
        let held = Held {
            program: Some(program(&path)),
            path: Arc::clone(&path),
            flows: 1,
            era,
        };
        let id = match self.free.pop() {
            Some(number) => {
                self.held[number as usize] = Some(held);
                PathId(number)
            }
            None => {
                self.held.push(Some(held));
                PathId(u32::try_from(self.held.len() - 1).expect("fewer paths than numbers"))
            }
        };
        for entry in entries(&path) {
            self.by_entry.entry(entry).or_default().insert(id);
        }
        self.numbers.insert(path, id);
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
            self.held[id.0 as usize] = None;
            self.free.push(id.0);
        }
    }

    /// The path may be wrong from now on.
    pub(crate) fn close(&mut self, id: PathId) {
        let held = self.held_mut(id);
        if held.program.take().is_none() {
            return;
        }
        let path = Arc::clone(&held.path);
        self.closed.push(id);
        self.numbers.remove(&path);
        for entry in entries(&path) {
            if let Some(paths) = self.by_entry.get_mut(&entry) {
                paths.remove(&id);
                if paths.is_empty() {
                    self.by_entry.remove(&entry);
                }
            }
        }
    }

    /// The paths on which an entry wins.
    pub(crate) fn of_entry(&self, entry: RuleId) -> Vec<PathId> {
        let paths = self.by_entry.get(&entry).into_iter().flatten();
        paths.copied().collect()
    }

    /// The path of a number, and its program unless it is closed.
    pub(crate) fn get(&self, id: PathId) -> (&Path, Option<&P>) {
        let held = self.held[id.0 as usize].as_ref();
        let held = held.expect("a path that flows refer to");
        (&held.path, held.program.as_ref())
    }

    /// What packets on a path are executed by; `None` once it is closed.
    #[inline]
    pub(crate) fn program(&self, id: PathId) -> Option<&P> {
        self.held[id.0 as usize].as_ref()?.program.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn program_mut(&mut self, id: PathId) -> Option<&mut P> {
        self.held[id.0 as usize].as_mut()?.program.as_mut()
    }

    /// Paths that are not closed.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn held_mut(&mut self, id: PathId) -> &mut Held<P> {
        let held = self.held[id.0 as usize].as_mut();
        held.expect("a path that flows refer to")
    }
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
        let (one, _) = paths.refer(path(&[1, 2]), 0, |_| "one");
        assert_eq!(paths.refer(path(&[1, 2]), 0, |_| "again"), (one, false));
        let (two, _) = paths.refer(path(&[1, 3]), 0, |_| "two");
        assert_eq!(paths.of_entry(RuleId::new(1).unwrap()), [one, two]);
        paths.close(one);
        assert_eq!(paths.of_entry(RuleId::new(1).unwrap()), [two]);
        assert_eq!(paths.take_closed().collect::<Vec<_>>(), [one]);
        assert_eq!(
            (paths.program(one), paths.program(two)),
            (None, Some(&"two"))
        );
        // The same path anew, while flows still refer to the closed one.
        let (anew, _) = paths.refer(path(&[1, 2]), 0, |_| "anew");
        assert_ne!(anew, one);
        paths.release(one);
        paths.release(one);
        let (three, _) = paths.refer(path(&[4]), 0, |_| "three");
        assert_eq!(three, one, "its number is free");
        assert_eq!(paths.program(anew), Some(&"anew"));
        assert_eq!(paths.refer(path(&[4]), 1, |_| "later"), (three, true));
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
