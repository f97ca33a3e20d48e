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
//! One key goes down the trees of two partitions in step: the second one costs little
//! while the processor waits for the first, and nothing is lost but that where the first
//! one has the winner.
//!
//! A batch goes down the tree of one partition with all keys in step, so that the
//! memory accesses of up to 256 keys are under way together.

use crate::classifier::{BATCH, LookupTrace, Probe};
use crate::rule::Winner;
use crate::simd::prefetch;
use crate::unwildcard;

use super::node::To;
use super::{PartitionSort, Trees};
use crate::engine::adapter::Algorithm;
use crate::engine::tuple_space::EntryIndex;

/// Partitions whose trees one key goes down in step.
const TOGETHER: usize = 2;

/// Working memory of a batch.
pub(super) struct Buffers<const W: usize> {
    /// Keys that the next partition may improve.
    active: [u16; BATCH],
    /// Keys on their way down, and those that have come to a list.
    walking: [Walk; BATCH],
    lists: [Walk; BATCH],
    rest: <super::Rest<W> as Algorithm<W>>::Buffers,
}

/// A key, and where it is.
#[derive(Clone, Copy)]
struct Walk {
    key: u16,
    to: To,
}

impl<const W: usize> Default for Buffers<W> {
    fn default() -> Buffers<W> {
        let nobody = Walk {
            key: 0,
            to: To::NOTHING,
        };
        Buffers {
            active: [0; BATCH],
            walking: [nobody; BATCH],
            lists: [nobody; BATCH],
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

    /// Where a key goes from a root. Sets the bits of the key on which that
    /// depended.
    fn walk_masked(&self, root: To, key: &[u64; W], wanted: &mut [u64]) -> To {
        let mut to = root;
        while to.is_node() {
            let node = self.nodes.get(to.as_node());
            let dimension = &self.dimensions[usize::from(node.dimension)];
            let value = (key[usize::from(node.word)] << node.up) & dimension.bits;
            let place = node.place(value);
            let low = if place > 0 { node.lows()[place - 1] } else { 0 };
            dimension.want(key, low, node.lows().get(place).copied(), wanted);
            to = node.next[place];
        }
        to
    }

    /// Improves a winner by the rules of a list. Sets the bits of the key on which
    /// that depended.
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

    /// Improves a winner by the partitions, [`TOGETHER`] of them at a time.
    #[inline]
    fn look_up_in_order(&self, key: &[u64; W], mut winner: Winner) -> Winner {
        let nodes = &self.trees.nodes;
        let mut order = &self.order[..];
        while let Some((group, after)) = order.split_first_chunk::<TOGETHER>() {
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
            let mut kept = 0;
            for place in 0..live {
                let key = buffers.active[place];
                buffers.active[kept] = key;
                let to = partition.root;
                buffers.walking[kept] = Walk { key, to };
                kept += usize::from(partition.best < winners[usize::from(key)].rank());
            }
            live = kept;
            if live == 0 {
                break;
            }
            let mut found = 0;
            let mut walking = live;
            if !partition.root.is_node() {
                buffers.lists[..live].copy_from_slice(&buffers.walking[..live]);
                (found, walking) = (live, 0);
            }
            while walking > 0 {
                let mut on = 0;
                for place in 0..walking {
                    let Walk { key, to } = buffers.walking[place];
                    let to = nodes.get(to.as_node()).step(&keys[usize::from(key)]);
                    let walk = Walk { key, to };
                    buffers.walking[on] = walk;
                    buffers.lists[found] = walk;
                    if to.is_node() {
                        nodes.prefetch(to);
                        on += 1;
                    } else if to != To::NOTHING {
                        prefetch(self.trees.arena.get(to.first()));
                        found += 1;
                    }
                }
                walking = on;
            }
            for walk in &buffers.lists[..found] {
                let key = usize::from(walk.key);
                winners[key] = self.trees.compare(walk.to, &keys[key], winners[key]);
            }
        }
    }

    /// Improves a winner and sets the bits on which that depended.
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

    /// The same walk, written down. Tables of the rest come after the partitions.
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
            let found = self
                .trees
                .compare_masked(list, key, winner, &mut vec![0; W], |rule| {
                    compared.push(self.trees.arena.get(rule).id());
                });
            probes.push(Probe {
                table: partition.number.index(),
                mask,
                rules: partition.rules,
                compared,
                winner: if found.beats(winner) {
                    found
                } else {
                    Winner::MISS
                },
            });
            winner = found.or(winner);
        }
        let rest = self.rest.trace(key);
        for mut probe in rest.probes {
            probe.table += self.most;
            probes.push(probe);
        }
        LookupTrace {
            probes,
            tables: self.order.len() + rest.tables,
            winner: winner.or(rest.winner),
        }
    }
}
