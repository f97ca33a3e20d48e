//! Lookups.
//!
//! One key:
//! ```text
//! for (best, root) in order:
//!     if not best beats winner: stop
//!     to = root
//!     while to is a node: to = to.next[number of lower ends <= key's value]
//!     for rule in the list, best first: the first that matches may win
//! ```
//!
//! A single key descends the trees of two partitions together. The second descent uses
//! the time while the processor waits for the first. It is wasted only if the first
//! partition has the winner.
//!
//! In a batch, all keys descend the tree of one partition together, so that up to 256
//! memory accesses are outstanding.

use crate::contract::classifier::{BATCH, LookupTrace, Probe};
use crate::model::rule::Winner;
use crate::parts::simd::prefetch;
use crate::parts::unwildcard;

use super::node::To;
use super::{PartitionSort, Trees};
use crate::contract::adapter::Algorithm;
use crate::parts::tuple_space::EntryIndex;

/// The number of partitions whose trees a single key descends together. Measured in
/// `bench/records/constants.md` (PartitionSort).
const PARTITIONS_TOGETHER: usize = 2;

/// Working memory of a batch.
pub(super) struct Buffers<const W: usize> {
    /// Keys that the next partition may improve.
    active: [u16; BATCH],
    /// Keys still in nodes, and keys that have reached a list.
    walking: [Walk; BATCH],
    lists: [Walk; BATCH],
    rest: <super::Rest<W> as Algorithm<W>>::Buffers,
}

/// A key and its position in the tree.
#[derive(Clone, Copy)]
struct Walk {
    key: u16,
    to: To,
}

impl<const W: usize> Default for Buffers<W> {
    fn default() -> Buffers<W> {
        let unused = Walk {
            key: 0,
            to: To::NOTHING,
        };
        Buffers {
            active: [0; BATCH],
            walking: [unused; BATCH],
            lists: [unused; BATCH],
            rest: Default::default(),
        }
    }
}

impl<const W: usize> Trees<W> {
    /// Improves a winner by the rules of a list.
    #[inline(always)]
    fn compare(&self, list: To, key: &[u64; W], winner: Winner) -> Winner {
        let mut rule = list.first();
        while rule != EntryIndex::NONE {
            let entry = self.arena.get(rule);
            if entry.rank >= winner.rank() {
                break;
            }
            if self.arena.matches(rule, key) {
                return Winner::from_rank(entry.rank);
            }
            rule = entry.next;
        }
        winner
    }

    /// Returns the list that a key reaches from a root. Sets the bits of the key on
    /// which that depends.
    fn walk_masked(&self, root: To, key: &[u64; W], wanted: &mut [u64]) -> To {
        let mut target = root;
        while target.is_node() {
            let node = self.nodes.get(target.as_node());
            let dimension = &self.dimensions[usize::from(node.dimension)];
            let value = (key[usize::from(node.word)] << node.up) & dimension.bits;
            let index = node.place(value);
            let low = if index > 0 { node.lows()[index - 1] } else { 0 };
            dimension.want(key, low, node.lows().get(index).copied(), wanted);
            target = node.next[index];
        }
        target
    }

    /// Improves a winner by the rules of a list. Sets the bits of the key on which the
    /// result depends.
    fn compare_masked(
        &self,
        list: To,
        key: &[u64; W],
        winner: Winner,
        wanted: &mut [u64],
        mut see: impl FnMut(EntryIndex),
    ) -> Winner {
        for rule in self.list(list.first()) {
            let rank = self.rank(rule);
            if rank >= winner.rank() {
                break;
            }
            see(rule);
            let packed = self.packed(rule);
            if self.arena.matches(rule, key) {
                unwildcard::confirm(&packed, key, wanted);
                return Winner::from_rank(rank);
            }
            unwildcard::refute(&packed, key, wanted);
        }
        winner
    }
}

impl<const W: usize> PartitionSort<W> {
    /// Improves a winner for one key.
    #[inline]
    pub(super) fn look_up(&self, key: &[u64; W], winner: Winner) -> Winner {
        let winner = self.look_up_in_order(key, winner);
        if self.has_rest() {
            self.rest.improve(key, winner)
        } else {
            winner
        }
    }

    /// Improves a winner by the partitions, [`PARTITIONS_TOGETHER`] at a time.
    #[inline]
    fn look_up_in_order(&self, key: &[u64; W], mut winner: Winner) -> Winner {
        let nodes = &self.trees.nodes;
        let mut order = &self.order[..];
        while let Some((group, after)) = order.split_first_chunk::<PARTITIONS_TOGETHER>() {
            if group[0].best >= winner.rank() {
                return winner;
            }
            let mut to = group.map(|partition| partition.root);
            while to.iter().any(|to| to.is_node()) {
                to = to.map(|to| nodes.step(to, key));
            }
            for to in &to[1..] {
                if *to != To::NOTHING {
                    prefetch(self.trees.arena.get(to.first()));
                }
            }
            for (to, partition) in to.into_iter().zip(group) {
                if partition.best >= winner.rank() {
                    return winner;
                }
                winner = self.trees.compare(to, key, winner);
            }
            order = after;
        }
        for partition in order {
            if partition.best >= winner.rank() {
                break;
            }
            let mut to = partition.root;
            while to.is_node() {
                to = nodes.get(to.as_node()).step(key);
            }
            winner = self.trees.compare(to, key, winner);
        }
        winner
    }

    /// Improves the winners of a batch of any length.
    pub(super) fn look_up_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers<W>,
    ) {
        for (keys, winners) in keys.chunks(BATCH).zip(winners.chunks_mut(BATCH)) {
            self.look_up_chunk(keys, winners, buffers);
        }
        if self.has_rest() {
            self.rest.improve_batch(keys, winners, &mut buffers.rest);
        }
    }

    fn look_up_chunk(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers<W>) {
        let nodes = &self.trees.nodes;
        let mut live = keys.len();
        for (key, active) in (0..).zip(&mut buffers.active[..live]) {
            *active = key;
        }
        for partition in &self.order {
            let mut still_active = 0;
            for place in 0..live {
                let key = buffers.active[place];
                buffers.active[still_active] = key;
                let to = partition.root;
                buffers.walking[still_active] = Walk { key, to };
                still_active += usize::from(partition.best < winners[usize::from(key)].rank());
            }
            live = still_active;
            if live == 0 {
                break;
            }
            let mut in_lists = 0;
            let mut walking = live;
            if !partition.root.is_node() {
                buffers.lists[..live].copy_from_slice(&buffers.walking[..live]);
                (in_lists, walking) = (live, 0);
            }
            while walking > 0 {
                let mut in_nodes = 0;
                for place in 0..walking {
                    let Walk { key, to } = buffers.walking[place];
                    let to = nodes.get(to.as_node()).step(&keys[usize::from(key)]);
                    let walk = Walk { key, to };
                    buffers.walking[in_nodes] = walk;
                    buffers.lists[in_lists] = walk;
                    if to.is_node() {
                        nodes.prefetch(to);
                        in_nodes += 1;
                    } else if to != To::NOTHING {
                        prefetch(self.trees.arena.get(to.first()));
                        in_lists += 1;
                    }
                }
                walking = in_nodes;
            }
            for walk in &buffers.lists[..in_lists] {
                let key = usize::from(walk.key);
                winners[key] = self.trees.compare(walk.to, &keys[key], winners[key]);
            }
        }
    }

    /// Improves a winner and sets the bits on which the result depends.
    pub(super) fn look_up_masked(
        &self,
        key: &[u64; W],
        mut winner: Winner,
        wanted: &mut [u64; W],
    ) -> Winner {
        for partition in &self.order {
            if partition.best >= winner.rank() {
                break;
            }
            let list = self.trees.walk_masked(partition.root, key, wanted);
            winner = self.trees.compare_masked(list, key, winner, wanted, |_| ());
        }
        if self.has_rest() {
            winner = self.rest.improve_masked(key, winner, wanted);
        }
        winner
    }

    /// Records the steps of a lookup. The tables of the tuple space follow the
    /// partitions.
    pub(super) fn look_up_traced(&self, key: &[u64; W]) -> LookupTrace {
        let mut winner = Winner::MISS;
        let mut probes = Vec::new();
        for partition in &self.order {
            if partition.best >= winner.rank() {
                break;
            }
            let mut mask = vec![0; W];
            let list = self.trees.walk_masked(partition.root, key, &mut mask);
            let mut compared = Vec::new();
            let improved = self
                .trees
                .compare_masked(list, key, winner, &mut vec![0; W], |rule| {
                    compared.push(self.trees.arena.get(rule).id());
                });
            probes.push(Probe {
                table: partition.number.index(),
                mask,
                rules: partition.rules,
                compared,
                winner: if improved.beats(winner) {
                    improved
                } else {
                    Winner::MISS
                },
            });
            winner = improved.or(winner);
        }
        let in_rest = self.rest.trace(key);
        for mut probe in in_rest.probes {
            probe.table += self.most;
            probes.push(probe);
        }
        LookupTrace {
            probes,
            tables: self.order.len() + in_rest.tables,
            winner: winner.or(in_rest.winner),
        }
    }
}
