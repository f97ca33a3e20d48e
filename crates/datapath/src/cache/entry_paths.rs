//! The paths of each entry, of which most are opened and closed together with many others.
//!
//! # Idea
//! Nearly every path has some entries that thousands of paths have, such as those that
//! send all packets to the next table. So a path that is closed is not looked for among
//! these: they only count one less, and forget it when they get another one and as many
//! are closed as are open.
//! A path's number is given to another one later; *stamps* tell the two apart, a number
//! that grows with each path that is opened.

use classyard::RuleId;
use foldhash::HashMap;

use super::path::PathId;

/// A path, opened once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) path: PathId,
    pub(crate) stamp: u64,
}

/// The paths of an entry. Most entries have one: it is kept without a list.
#[derive(Debug, Default)]
struct Opens {
    /// Those that are not closed.
    open: usize,
    first: Option<Opened>,
    more: Vec<Opened>,
}

/// Paths by their entries.
#[derive(Debug, Default)]
pub(crate) struct EntryPaths(HashMap<RuleId, Opens>);

/// Closed paths of an entry may be as many as its open ones, and these more.
const SLACK: usize = 16;

impl EntryPaths {
    /// A path of an entry is open from now on. Which of those before it still are says
    /// `is_open`.
    pub(crate) fn open(&mut self, entry: RuleId, opened: Opened, is_open: impl Fn(Opened) -> bool) {
        let paths = self.0.entry(entry).or_default();
        paths.open += 1;
        if paths.first.is_none() {
            paths.first = Some(opened);
            return;
        }
        if paths.more.len() > 2 * paths.open + SLACK {
            paths.more.retain(|&it| is_open(it));
        }
        paths.more.push(opened);
    }

    /// A path of an entry is closed.
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

    /// The paths of an entry, those that are closed included unless they are forgotten.
    pub(crate) fn of(&self, entry: RuleId) -> impl Iterator<Item = Opened> {
        let paths = self.0.get(&entry).into_iter();
        paths.flat_map(|paths| paths.first.iter().chain(&paths.more).copied())
    }

    /// Forgets an entry. Returns what [`of`](Self::of) had.
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

    use classyard_workload::kit::random::{Dice, SeededDice};

    use super::*;

    #[test]
    fn paths_of_entries_are_those_that_are_open() {
        for seed in 0..20 {
            let mut dice = SeededDice::new(seed);
            let mut paths = EntryPaths::default();
            // Stamps and entries of the paths that are open, by their numbers.
            let mut model: BTreeMap<u32, (u64, Vec<RuleId>)> = BTreeMap::new();
            let most = [3, 40, 200][dice.below(3)];
            for stamp in 0..2_000 {
                let number = u32::try_from(dice.below(most)).unwrap();
                let path = PathId(number);
                if let Some((stamp, entries)) = model.remove(&number) {
                    for entry in entries {
                        paths.close(entry, Opened { path, stamp });
                    }
                } else {
                    // One that all have, one of few, one of many.
                    let entries = [0, 1 + dice.below(4), 5 + dice.below(300)];
                    let entries = entries.map(RuleId::from_index).to_vec();
                    for &entry in &entries {
                        let is_open = |it: Opened| {
                            let held = model.get(&it.path.0);
                            held.is_some_and(|(stamp, _)| *stamp == it.stamp)
                        };
                        paths.open(entry, Opened { path, stamp }, is_open);
                    }
                    model.insert(number, (stamp, entries));
                }
                let entry = RuleId::from_index(dice.below(305));
                let open = paths.of(entry).filter(|it| {
                    let held = model.get(&it.path.0);
                    held.is_some_and(|(stamp, _)| *stamp == it.stamp)
                });
                let mut open: Vec<u32> = open.map(|it| it.path.0).collect();
                open.sort_unstable();
                let wanted = model.iter().filter(|(_, (_, has))| has.contains(&entry));
                let wanted: Vec<u32> = wanted.map(|(&number, _)| number).collect();
                assert_eq!(open, wanted, "seed {seed}");
                assert!(
                    paths.of(entry).count() <= 2 * most + SLACK + 2,
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
