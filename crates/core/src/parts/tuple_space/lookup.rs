//! Lookups in a tuple space.
//!
//! One key:
//! ```text
//! for (best, table) in order:
//!     if not best beats winner: stop
//!     chain = slots[hash(key & table.mask)]
//!     for rule in chain, best first:
//!         if not rule.rank beats winner: stop the chain
//!         if rule matches key: winner = rule.rank; stop the chain
//! ```
//!
//! A batch takes the same steps, each for all keys before the next step, so that up to
//! 256 memory accesses are outstanding:
//! ```text
//! for (best, table) in order:
//!     drop the keys whose winner the table cannot improve; stop when none left
//!     1  hash every key, prefetch its slot
//!     2  read the slots; prefetch the heads of chains with the right tag
//!     3  compare one rule for each key that has one; prefetch the next in its
//!        chain; again until no chain is left
//! ```
//! Steps 1 and 2 have no branch on the data of a single key: the length of a list grows
//! by 1 if a slot has the tag, and by 0 otherwise.

use crate::contract::classifier::{BATCH, LookupTrace, Probe};
use crate::model::rule::Winner;
use crate::parts::simd::{prefetch, prefetch_early};
use crate::parts::unwildcard;

use super::arena::EntryIndex;
use super::slots::Tag;
use super::{TableNumber, TupleSpace};

/// A key with a chain to walk.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    key: u16,
    entry: EntryIndex,
    tag: Tag,
}

/// Working memory of a batch.
pub(crate) struct Buffers {
    active: [u16; BATCH],
    tags: [Tag; BATCH],
    candidates: [Candidate; BATCH],
    displaced: [u16; BATCH],
}

impl Default for Buffers {
    fn default() -> Buffers {
        let unused = Candidate {
            key: 0,
            entry: EntryIndex::NONE,
            tag: 0,
        };
        Buffers {
            active: [0; BATCH],
            tags: [0; BATCH],
            candidates: [unused; BATCH],
            displaced: [0; BATCH],
        }
    }
}

impl<const W: usize> TupleSpace<W> {
    /// Improves a candidate for one key.
    pub(crate) fn improve(&self, key: &[u64; W], mut winner: Winner) -> Winner {
        for &(best, number) in &self.order {
            if best >= winner.rank() {
                break;
            }
            let tag = self.tag(number, key);
            if let Some((_, head)) = self.bucket(number, tag, key) {
                for entry in self.walk(head) {
                    if self.arena.get(entry).rank >= winner.rank() {
                        break;
                    }
                    if self.arena.matches(entry, key) {
                        winner = self.arena.get(entry).winner();
                        break;
                    }
                }
            }
        }
        winner
    }

    /// Improves the candidates of a batch of any length.
    pub(crate) fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        for (keys, winners) in keys.chunks(BATCH).zip(winners.chunks_mut(BATCH)) {
            self.improve_chunk(keys, winners, buffers);
        }
    }

    fn improve_chunk(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers) {
        let mut live = keys.len();
        for (key, active) in (0..).zip(&mut buffers.active[..live]) {
            *active = key;
        }
        for &(best, number) in &self.order {
            let mut still_active = 0;
            for j in 0..live {
                let key = buffers.active[j];
                buffers.active[still_active] = key;
                still_active += usize::from(best < winners[usize::from(key)].rank());
            }
            live = still_active;
            if live == 0 {
                break;
            }
            let chains = self.find_chains(number, live, keys, buffers);
            self.walk_chains(number, chains, keys, winners, buffers);
        }
    }

    /// Steps 1 and 2: fills `candidates`, and returns their number.
    fn find_chains(
        &self,
        number: TableNumber,
        live: usize,
        keys: &[[u64; W]],
        buffers: &mut Buffers,
    ) -> usize {
        let Buffers {
            active,
            tags,
            candidates,
            displaced,
        } = buffers;
        let table = &self.tables[number.index()];
        let slots = self.slots(number);
        for (&key, tag) in active[..live].iter().zip(tags.iter_mut()) {
            *tag = self
                .hasher
                .hash(table.salt, &table.mask, &keys[usize::from(key)]);
            slots.prefetch(*tag);
        }
        let (mut chains, mut others) = (0, 0);
        for j in 0..live {
            let (key, tag) = (active[j], tags[j]);
            let slot = slots.first(tag);
            let taken = !slot.is_empty();
            let hit = slot.tag == tag;
            candidates[chains] = Candidate {
                key,
                entry: slot.head,
                tag,
            };
            chains += usize::from(taken & hit);
            displaced[others] = u16::try_from(j).expect("BATCH is small");
            others += usize::from(taken & !hit);
        }
        // The home slot has another key's bucket: probe further.
        for &j in &displaced[..others] {
            let (key, tag) = (active[usize::from(j)], tags[usize::from(j)]);
            if let Some((_, entry)) = slots.with_tag(tag).next() {
                candidates[chains] = Candidate { key, entry, tag };
                chains += 1;
            }
        }
        for candidate in &candidates[..chains] {
            prefetch_early(self.arena.get(candidate.entry));
        }
        chains
    }

    /// Step 3: compares the rules of `chains` candidates.
    fn walk_chains(
        &self,
        number: TableNumber,
        mut chains: usize,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        let candidates = &mut buffers.candidates;
        for candidate in &mut candidates[..chains] {
            let key = &keys[usize::from(candidate.key)];
            if !self.belongs(number, candidate.entry, key) {
                // Another key, or table, with the same tag.
                let bucket = self.bucket(number, candidate.tag, key);
                candidate.entry = bucket.map_or(EntryIndex::NONE, |(_, head)| head);
            }
        }
        while chains > 0 {
            let mut unfinished = 0;
            for j in 0..chains {
                let Candidate { key, entry, tag } = candidates[j];
                if entry == EntryIndex::NONE {
                    continue;
                }
                let rule = self.arena.get(entry);
                let winner = &mut winners[usize::from(key)];
                if rule.rank >= winner.rank() {
                    continue;
                }
                if self.arena.matches(entry, &keys[usize::from(key)]) {
                    *winner = rule.winner();
                    continue;
                }
                if rule.next != EntryIndex::NONE {
                    prefetch(self.arena.get(rule.next));
                    candidates[unfinished] = Candidate {
                        key,
                        entry: rule.next,
                        tag,
                    };
                    unfinished += 1;
                }
            }
            chains = unfinished;
        }
    }

    /// Improves a candidate and sets the bits on which the result depends: the mask of
    /// every table probed, and the bits that decide whether the compared rules match.
    pub(crate) fn improve_masked(
        &self,
        key: &[u64; W],
        mut winner: Winner,
        wanted: &mut [u64],
    ) -> Winner {
        for &(best, number) in &self.order {
            if best >= winner.rank() {
                break;
            }
            for (wanted, mask) in wanted.iter_mut().zip(self.mask(number)) {
                *wanted |= mask;
            }
            let tag = self.tag(number, key);
            let Some((_, head)) = self.bucket(number, tag, key) else {
                continue;
            };
            for entry in self.walk(head) {
                if self.arena.get(entry).rank >= winner.rank() {
                    break;
                }
                let rule = self.arena.packed(&self.schema, entry);
                if self.arena.matches(entry, key) {
                    unwildcard::confirm(&rule, key, wanted);
                    winner = self.arena.get(entry).winner();
                    break;
                }
                unwildcard::refute(&rule, key, wanted);
            }
        }
        winner
    }

    /// Records the steps of a lookup.
    pub(crate) fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut winner = Winner::MISS;
        let mut probes = Vec::new();
        for &(best, number) in &self.order {
            if best >= winner.rank() {
                break;
            }
            let table = &self.tables[number.index()];
            let mut probe = Probe {
                table: number.index(),
                mask: table.mask.to_vec(),
                rules: table.rules,
                compared: Vec::new(),
                winner: Winner::MISS,
            };
            let tag = self.tag(number, key);
            if let Some((_, head)) = self.bucket(number, tag, key) {
                for entry in self.walk(head) {
                    let rule = self.arena.get(entry);
                    if rule.rank >= winner.rank() {
                        break;
                    }
                    probe.compared.push(rule.id());
                    if self.arena.matches(entry, key) {
                        probe.winner = rule.winner();
                        winner = rule.winner();
                        break;
                    }
                }
            }
            probes.push(probe);
        }
        LookupTrace {
            probes,
            tables: self.order.len(),
            winner,
        }
    }
}
