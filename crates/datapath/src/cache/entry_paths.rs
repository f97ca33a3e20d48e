//! The paths of each entry, for entries with many paths that open and close often.
//!
//! # Idea
//! Nearly every path has some entries that thousands of paths share, such as entries that
//! send all packets to the next table. So closing a path does not search for it in its
//! entries' lists: each entry only decrements its number of open paths. A list drops its
//! closed paths when a path is added and the list has more closed paths than open ones.
//!
//! A path's number may be reused. Each opened path has a new, larger *stamp*, which
//! distinguishes it from earlier paths with the same number.

use classyard::RuleId;
use foldhash::HashMap;

/// The number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

/// A path and the stamp of its opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) path: PathId,
    pub(crate) stamp: u64,
}

/// The paths of an entry. Most entries have one path, which needs no list.
#[derive(Debug, Default)]
struct Opens {
    /// The number of open paths.
    open: usize,
    first: Option<Opened>,
    more: Vec<Opened>,
}

/// Paths by their entries.
#[derive(Debug, Default)]
pub(crate) struct EntryPaths(HashMap<RuleId, Opens>);

/// The closed paths in a list may exceed its open paths by this number. It bounds the memory
/// of the list.
const CLOSED_SLACK: usize = 16;

impl EntryPaths {
    /// Adds an open path to an entry. `is_open` returns whether an earlier path is still
    /// open.
    pub(crate) fn open(&mut self, entry: RuleId, opened: Opened, is_open: impl Fn(Opened) -> bool) {
        let paths = self.0.entry(entry).or_default();
        paths.open += 1;
        if paths.first.is_none() {
            paths.first = Some(opened);
            return;
        }
        if paths.more.len() > 2 * paths.open + CLOSED_SLACK {
            paths.more.retain(|&path| is_open(path));
        }
        paths.more.push(opened);
    }

    /// Removes a path from an entry's open paths.
    pub(crate) fn close(&mut self, entry: RuleId, closed: Opened) {
        let Some(paths) = self.0.get_mut(&entry) else {
            return;
        };
        paths.open -= 1;
        if paths.first == Some(closed) {
            paths.first = None;
        }
        if paths.open == 0 {
            self.0.remove(&entry);
        }
    }

    /// Returns the paths of an entry. May include closed paths that were not dropped yet.
    pub(crate) fn of(&self, entry: RuleId) -> impl Iterator<Item = Opened> {
        let paths = self.0.get(&entry).into_iter();
        paths.flat_map(|paths| paths.first.iter().chain(&paths.more).copied())
    }

    /// Removes an entry. Returns its paths as [`of`](Self::of) does.
    pub(crate) fn remove(&mut self, entry: RuleId) -> impl Iterator<Item = Opened> + use<> {
        let paths = self.0.remove(&entry).unwrap_or_default();
        paths.first.into_iter().chain(paths.more)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use classyard_conformance::random::{Dice, SeededDice};

    use super::*;

    #[test]
    fn paths_of_entries_are_those_that_are_open() {
        for seed in 0..20 {
            let mut dice = SeededDice::new(seed);
            let mut paths = EntryPaths::default();
            // Stamps and entries of the open paths, by number.
            let mut model: BTreeMap<u32, (u64, Vec<RuleId>)> = BTreeMap::new();
            let max_paths = [3, 40, 200][dice.below(3)];
            for stamp in 0..2_000 {
                let number = u32::try_from(dice.below(max_paths)).unwrap();
                let path = PathId(number);
                if let Some((stamp, entries)) = model.remove(&number) {
                    for entry in entries {
                        paths.close(entry, Opened { path, stamp });
                    }
                } else {
                    // An entry of all paths, an entry of many paths, and an entry of few.
                    let entries = [0, 1 + dice.below(4), 5 + dice.below(300)];
                    let entries = entries.map(RuleId::from_index).to_vec();
                    for &entry in &entries {
                        let is_open = |opened: Opened| {
                            let held = model.get(&opened.path.0);
                            held.is_some_and(|(stamp, _)| *stamp == opened.stamp)
                        };
                        paths.open(entry, Opened { path, stamp }, is_open);
                    }
                    model.insert(number, (stamp, entries));
                }
                let entry = RuleId::from_index(dice.below(305));
                let open = paths.of(entry).filter(|opened| {
                    let held = model.get(&opened.path.0);
                    held.is_some_and(|(stamp, _)| *stamp == opened.stamp)
                });
                let mut open: Vec<u32> = open.map(|opened| opened.path.0).collect();
                open.sort_unstable();
                let expected = model.iter().filter(|(_, (_, has))| has.contains(&entry));
                let expected: Vec<u32> = expected.map(|(&number, _)| number).collect();
                assert_eq!(open, expected, "seed {seed}");
                assert!(
                    paths.of(entry).count() <= 2 * max_paths + CLOSED_SLACK + 2,
                    "seed {seed}"
                );
            }
            for (&number, (stamp, entries)) in &model {
                let path = PathId(number);
                for &entry in entries {
                    paths.close(
                        entry,
                        Opened {
                            path,
                            stamp: *stamp,
                        },
                    );
                }
            }
            assert!(paths.is_empty());
        }
    }
}
