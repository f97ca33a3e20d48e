//! Paths: the tables that look a packet up, and the entries that win there.
//!
//! # Idea
//! For each table that looks a packet up, a path has the entry that wins there. Groups,
//! meters and ports come from the version that processes the packet; the instructions of
//! the entries are combined in the path's program, which is rebuilt when they change. So
//! a cache only has to store paths, and many flows share few paths.
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
//! A path is *closed* when an entry on it was removed, or changed so that packets take
//! another path, and when its last megaflow is removed. Its number is reused when no megaflow
//! refers to it. A new era closes no path: a path of an earlier era may be wrong, and is used
//! only after [`Paths::refer`] has given it a new program.
//!
//! # Paths of an entry
//! [`EntryPaths`] has the paths of each entry. Nearly every path has some entries that
//! thousands of paths share, such as entries that send all packets to the next table. So
//! closing a path does not search for it in its entries' lists: each entry only decrements
//! its number of open paths. A list that has more closed paths than open ones drops the
//! closed ones.
//!
//! A path's number may be reused. Each opened path has a new, larger *stamp*, which
//! distinguishes it from earlier paths with the same number.
//!
//! # Changes of entries
//! A side of the pipeline has the latest changes of its entries ([`Recent`]). Each worker
//! applies them to its cached flows before its next vector that uses caches:
//! ```text
//! entry added      packets that it matches may have another winner: their megaflows are stale
//! entry modified   its paths get new programs; or they are closed, if packets take other paths
//! entry removed    its paths are closed
//! ```

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher as _};
use std::sync::Arc;

use classyard::{Priority, RuleId, Winner};
use foldhash::HashMap;

use crate::action::Action;
use crate::bits::Known;
use crate::flow::{FlowEntry, Instructions, TableId};
use crate::flow_match::FlowMatch;

/// The number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

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
}

/// A path with its program.
struct Held<P> {
    /// `None` after the path was closed.
    program: Option<P>,
    /// The number of megaflows that refer to the path.
    megaflows: u32,
    /// The store's era when [`Paths::refer`] last made a program.
    era: u32,
    /// The stamp of its opening.
    stamp: u64,
    path: Path,
}

/// The paths of all cached flows, each with the program that executes its packets.
pub(crate) struct Paths<P> {
    /// Paths without megaflows are free; their memory is reused.
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

/// Returns a hash of a path. Different paths may have the same hash, so the caller compares
/// the paths.
fn hash_of(path: &Path, hasher: &impl BuildHasher) -> u64 {
    let mut hasher = hasher.build_hasher();
    for step in &path.steps {
        hasher.write_u64(step.winner.rank() ^ u64::from(step.table.0) << 56);
        for set in &step.set {
            hasher.write_u8(set.word);
            hasher.write_u64(set.mask);
            hasher.write_u64(set.value);
        }
    }
    hasher.finish()
}

impl<P> Paths<P> {
    /// Adds a megaflow to a path. Returns the path's number, and true if its program is new:
    /// for a new path, or if the old program is of an earlier era, since the entries may
    /// have changed.
    pub(crate) fn refer(
        &mut self,
        path: &Path,
        era: u32,
        program: impl FnOnce(&Path) -> P,
    ) -> (PathId, bool) {
        let hash = hash_of(path, self.numbers.hasher());
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

    /// Returns the paths closed since the last call. The number of a closed path may already
    /// belong to a new path. So the caller must take the closed paths before it opens the
    /// counts of the new path.
    pub(crate) fn take_closed(&mut self) -> impl Iterator<Item = PathId> {
        self.closed.drain(..)
    }

    /// Removes a megaflow from a path.
    pub(crate) fn release(&mut self, id: PathId) {
        let held = self.held_mut(id);
        held.megaflows -= 1;
        if held.megaflows == 0 {
            self.close(id);
            self.free.push(id.0);
        }
    }

    /// Closes a path.
    pub(crate) fn close(&mut self, id: PathId) {
        let held = &mut self.held[id.0 as usize];
        if held.program.take().is_none() {
            return;
        }
        self.stranded += u64::from(held.megaflows);
        self.closed.push(id);
        self.open -= 1;
        let hash = hash_of(&held.path, self.numbers.hasher());
        if self.numbers.get(&hash) == Some(&id) {
            self.numbers.remove(&hash);
        }
        let stamp = held.stamp;
        let held = &self.held;
        for entry in entries(&held[id.0 as usize].path) {
            let closed = Opened { path: id, stamp };
            self.by_entry.close(entry, closed, |it| is_open(held, it));
        }
    }

    /// Returns the number of open paths on which an entry wins.
    pub(crate) fn count_of_entry(&self, entry: RuleId) -> usize {
        self.by_entry.count(entry)
    }

    /// Prefetches the lists of entries, which are scattered in memory.
    pub(crate) fn fetch_entries(&self, entries: impl Iterator<Item = RuleId>) {
        self.by_entry.fetch(entries);
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

impl Opens {
    /// Drops closed paths, and frees their memory, if the list has too many of them. The time
    /// is constant on average over openings and closings.
    fn drop_closed(&mut self, is_open: impl Fn(Opened) -> bool) {
        if self.more.len() > 2 * self.open + CLOSED_SLACK {
            self.more.retain(|&opened| is_open(opened));
            self.more.shrink_to(2 * self.more.len());
        }
    }
}

/// Paths by their entries.
#[derive(Debug, Default)]
pub(crate) struct EntryPaths(HashMap<RuleId, Opens>);

/// The closed paths in a list may exceed its open paths by this number. It bounds the memory
/// of the list, and the time to read it.
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
        paths.more.push(opened);
        paths.drop_closed(is_open);
    }

    /// Removes a path from an entry's open paths. `is_open` returns whether a path is open,
    /// and returns false for `closed`.
    pub(crate) fn close(
        &mut self,
        entry: RuleId,
        closed: Opened,
        is_open: impl Fn(Opened) -> bool,
    ) {
        let Some(paths) = self.0.get_mut(&entry) else {
            return;
        };
        paths.open -= 1;
        if paths.first == Some(closed) {
            paths.first = None;
        }
        if paths.open == 0 {
            self.0.remove(&entry);
        } else {
            paths.drop_closed(is_open);
        }
    }

    /// Prefetches the lists of entries.
    pub(crate) fn fetch(&self, entries: impl Iterator<Item = RuleId>) {
        std::hint::black_box(entries.fold(0, |sum, entry| sum + self.count(entry)));
    }

    /// Returns the number of open paths of an entry.
    pub(crate) fn count(&self, entry: RuleId) -> usize {
        self.0.get(&entry).map_or(0, |paths| paths.open)
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

/// A change of an entry.
#[derive(Clone, Debug)]
pub(crate) enum EntryChange {
    /// An entry was added: packets that it matches may now have another winner.
    Added {
        table: TableId,
        winner: Winner,
        matches: Arc<FlowMatch>,
    },
    /// The entry's instructions changed. `keeps_paths` is true if its packets still take the
    /// same paths.
    Modified { id: RuleId, keeps_paths: bool },
    /// The entry was removed.
    Removed(RuleId),
}

impl EntryChange {
    /// Returns the change of cached flows if the entry `old` becomes `new`, an entry of the
    /// same table, match and priority. `None` as an argument stands for no entry. Returns
    /// `None` if cached flows stay the same. When a copy of the pipeline changes an entry, it
    /// stores the result in [`Recent`] (`Side::replace`, the only caller).
    pub(crate) fn between(old: Option<&FlowEntry>, new: Option<&FlowEntry>) -> Option<EntryChange> {
        match (old, new) {
            (None, Some(new)) => Some(EntryChange::Added {
                table: new.table,
                winner: Winner::new(Priority(u32::from(new.priority)), new.id),
                matches: Arc::clone(&new.flow),
            }),
            (Some(old), Some(new)) => {
                let differs = (old.cookie, &old.instructions) != (new.cookie, &new.instructions);
                differs.then(|| EntryChange::Modified {
                    id: new.id,
                    keeps_paths: keeps_paths(&old.instructions, &new.instructions),
                })
            }
            (Some(old), None) => Some(EntryChange::Removed(old.id)),
            (None, None) => None,
        }
    }
}

/// Returns true if the paths of an entry stay the same with new instructions.
fn keeps_paths(old: &Instructions, new: &Instructions) -> bool {
    let changes = |instructions: &Instructions| -> Vec<Action> {
        let actions = instructions.apply.iter().copied();
        actions.filter(changes_key).collect()
    };
    (old.meter, old.goto_table) == (new.meter, new.goto_table)
        && (old.goto_table.is_none()
            || old.metadata == new.metadata && changes(old) == changes(new))
}

/// True if an action changes the key that later lookups use.
fn changes_key(action: &Action) -> bool {
    action.changes_length() || matches!(action, Action::SetField(_))
}

/// The number of changes that are stored for workers that have not applied them yet. It
/// bounds the memory of the changes. A worker that has missed more begins a new era.
const KEPT_CHANGES: usize = 4096;

/// The latest changes, in order.
#[derive(Default)]
pub(crate) struct Recent {
    /// The number of changes so far.
    made: u64,
    latest: VecDeque<EntryChange>,
}

impl Recent {
    pub(crate) fn push(&mut self, change: EntryChange) {
        if self.latest.len() == KEPT_CHANGES {
            self.latest.pop_front();
        }
        self.latest.push_back(change);
        self.made += 1;
    }

    /// Returns the number of changes so far.
    #[inline]
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Returns the changes after the first `seen`, or `None` if some of them are no
    /// longer stored.
    pub(crate) fn since(&self, seen: u64) -> Option<impl Iterator<Item = &EntryChange> + Clone> {
        let new = usize::try_from(self.made - seen).ok()?;
        let first = self.latest.len().checked_sub(new)?;
        Some(self.latest.range(first..))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use classyard_conformance::random::{Dice, SeededDice};

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
                        paths.close(entry, Opened { path, stamp }, is_open_in(&model));
                    }
                } else {
                    // An entry of all paths, an entry of many paths, and an entry of few.
                    let entries = [0, 1 + dice.below(4), 5 + dice.below(300)];
                    let entries = entries.map(RuleId::from_index).to_vec();
                    model.insert(number, (stamp, entries.clone()));
                    for entry in entries {
                        paths.open(entry, Opened { path, stamp }, is_open_in(&model));
                    }
                }
                // Paths close one after the other, and few are opened.
                if stamp % 500 == 499 {
                    let kept = u32::try_from(dice.below(5)).unwrap();
                    while let Some((number, (stamp, entries))) = model.pop_last() {
                        let path = PathId(number);
                        for entry in entries {
                            paths.close(entry, Opened { path, stamp }, is_open_in(&model));
                        }
                        if number <= kept {
                            break;
                        }
                    }
                }
                let entry = RuleId::from_index(dice.below(305));
                let is_open = is_open_in(&model);
                let open = paths.of(entry).filter(|&opened| is_open(opened));
                let mut open: Vec<u32> = open.map(|opened| opened.path.0).collect();
                open.sort_unstable();
                let expected = model.iter().filter(|(_, (_, has))| has.contains(&entry));
                let expected: Vec<u32> = expected.map(|(&number, _)| number).collect();
                assert_eq!(open, expected, "seed {seed}");
                assert!(
                    paths.of(entry).count() <= 2 * open.len() + CLOSED_SLACK + 1,
                    "seed {seed}"
                );
            }
            while let Some((number, (stamp, entries))) = model.pop_last() {
                let path = PathId(number);
                for entry in entries {
                    paths.close(entry, Opened { path, stamp }, is_open_in(&model));
                }
            }
            assert!(paths.is_empty());
        }
    }

    /// Returns a function that returns whether the model has a path as open.
    fn is_open_in(model: &BTreeMap<u32, (u64, Vec<RuleId>)>) -> impl Fn(Opened) -> bool {
        |opened| {
            let held = model.get(&opened.path.0);
            held.is_some_and(|(stamp, _)| *stamp == opened.stamp)
        }
    }

    #[test]
    fn paths_with_other_written_bits_are_found_again() {
        let with_port = |value: Option<u64>| {
            let mut path = path(&[1, 2]);
            let mask = 0xffff;
            path.steps[1].set.extend(value.map(|value| Known {
                word: 3,
                mask,
                value,
            }));
            path
        };
        let mut paths = Paths::default();
        let all = [None, Some(53), Some(80)].map(with_port);
        let ids: Vec<_> = (all.iter())
            .map(|path| paths.refer(path, 0, |_| ()))
            .collect();
        assert!(ids.iter().all(|&(_, is_new)| is_new));
        for (path, (id, _)) in all.iter().zip(ids) {
            assert_eq!(paths.refer(path, 0, |_| ()), (id, false));
        }
        assert_eq!(paths.len(), 3);
    }

    #[test]
    fn changes_are_kept_for_a_while() {
        let mut recent = Recent::default();
        for number in 1..=5000 {
            recent.push(EntryChange::Removed(RuleId::new(number).unwrap()));
        }
        assert_eq!(recent.made(), 5000);
        let since = |seen| recent.since(seen).map(Iterator::count);
        assert_eq!(since(5000), Some(0));
        assert_eq!(since(4990), Some(10));
        assert_eq!(since(5000 - KEPT_CHANGES as u64), Some(KEPT_CHANGES));
        assert_eq!(since(10), None);
    }
}
