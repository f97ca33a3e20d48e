//! Lookups in batches of up to 256 keys.
//!
//! All keys of a batch go through each table of the root together, with up to 256
//! outstanding memory accesses:
//! ```text
//! 1  list the keys that the table may improve                  kernels/active.rs
//! 2  hash them, read their slots, test signatures, and list short runs, long
//!    runs and nested tables separately                         kernels/probe.rs
//! 3  prefetch runs that are not in a near cache, and compare   kernels/compare.rs
//! ```
//! Then the nested tables that keys have found go through the same steps in rounds,
//! one table of each chain in a round. Tables nested in them are visited in the next
//! round.

use super::{Compare, Lookup, LookupConfig};
use crate::contract::classifier::BATCH;
use crate::engines::forest::kernels::active::{ActiveKeys, Workspace};
use crate::engines::forest::kernels::compare::Hits;
use crate::engines::forest::kernels::probe::{Found, probe};
use crate::engines::forest::kernels::wide::{Candidate, Candidates, WIDE_KEY_WORDS};
use crate::engines::forest::slot::{FoundSlot, TableNumber};
use crate::model::rule::Winner;
use crate::parts::simd::prefetch;

/// A key that has to visit a nested table.
#[derive(Clone, Copy, Debug)]
struct Visit {
    key: u8,
    table: TableNumber,
}

/// The working memory of a batch.
#[derive(Default)]
pub(crate) struct Buffers {
    workspace: Workspace,
    found: Found,
    candidates: Candidates,
    /// Visits of this round and of the next.
    visits: Vec<Visit>,
    next_visits: Vec<Visit>,
    /// The slot number and the signature bit of each visit of a round.
    slots: Vec<(u32, u32)>,
}

impl<const W: usize> Lookup<'_, W> {
    /// Improves the winners of a batch of any length.
    pub(crate) fn improve_batch(
        self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        for (keys, winners) in keys.chunks(BATCH).zip(winners.chunks_mut(BATCH)) {
            let Buffers {
                workspace,
                found,
                candidates,
                visits,
                next_visits,
                slots,
            } = buffers;
            let mut keys = ActiveKeys::new(keys, winners, workspace);
            if W >= WIDE_KEY_WORDS
                && let Some((fingerprint, _)) = self.structure.shape().wide()
            {
                keys.make_columns(self.config.probing);
                fingerprint.take(self.config.probing, &mut keys);
            }
            let room = candidates.room();
            visits.clear();
            self.visit_root(&mut keys, found, room, visits);
            while !visits.is_empty() {
                next_visits.clear();
                self.visit_nested(&mut keys, found, room, visits, slots, next_visits);
                std::mem::swap(visits, next_visits);
            }
        }
    }

    /// Visits all tables of the root; appends the nested tables to visit afterwards.
    fn visit_root(
        self,
        keys: &mut ActiveKeys<'_, W>,
        found: &mut Found,
        room: &mut [Candidate],
        visits: &mut Vec<Visit>,
    ) {
        let LookupConfig {
            probing, prefetch, ..
        } = self.config;
        let structure = self.structure;
        let max_short_len = structure.shape().max_short_len();
        for number in structure.chain(structure.root()) {
            let table = structure.table(number);
            let bounds = table.bounds();
            let table = table.probed(structure.secrets(), max_short_len, prefetch);
            if !keys.activate(probing, &bounds) {
                break;
            }
            if keys.positions().is_empty() {
                continue;
            }
            probe(probing, &table, keys, found);
            visits.extend(found.nested.hits().iter().map(|hit| Visit {
                key: hit.key(),
                table: TableNumber::from_slot(hit.slot()),
            }));
            self.compare_found(keys, found, room);
        }
    }

    /// Visits one table of each nested chain.
    fn visit_nested(
        self,
        keys: &mut ActiveKeys<'_, W>,
        found: &mut Found,
        room: &mut [Candidate],
        visits: &mut Vec<Visit>,
        slots: &mut Vec<(u32, u32)>,
        next_visits: &mut Vec<Visit>,
    ) {
        let structure = self.structure;
        slots.clear();
        if self.config.prefetch {
            for visit in visits.iter() {
                prefetch(structure.table(visit.table));
            }
        }
        let mut found_by = keys.keys();
        visits.retain(|visit| {
            let table = structure.table(visit.table);
            let (key, winner, _) = found_by.at(visit.key);
            if !Winner::from_rank(table.best()).beats(*winner) {
                return false;
            }
            let hash = table.hash(key, structure.secrets());
            if self.config.prefetch {
                table.prefetch_slot(hash);
            }
            slots.push((table.slot_of(hash), table.signature_bit(hash)));
            if table.next() != TableNumber::NONE {
                next_visits.push(Visit {
                    key: visit.key,
                    table: table.next(),
                });
            }
            true
        });
        for (visits, slots) in visits.chunks(BATCH).zip(slots.chunks(BATCH)) {
            found.clear();
            for (visit, &(slot, signature_bit)) in visits.iter().zip(slots) {
                let slot = structure.table(visit.table).slot(slot);
                if !slot.may_hold(signature_bit) {
                    continue;
                }
                if slot.is_nested() {
                    next_visits.push(Visit {
                        key: visit.key,
                        table: TableNumber::from_slot(slot),
                    });
                } else {
                    found.push_run(
                        FoundSlot::new(slot, visit.key),
                        structure.shape().max_short_len(),
                    );
                }
            }
            self.compare_found(keys, found, room);
        }
    }

    fn compare_found(self, keys: &mut ActiveKeys<'_, W>, found: &Found, room: &mut [Candidate]) {
        for (list, is_short) in [(&found.short, true), (&found.long, false)] {
            let hits = Hits {
                hits: list.hits(),
                is_short,
                prefetch: self.config.prefetches_runs(self.structure.words()),
            };
            self.config.comparing.run(Compare {
                structure: self.structure,
                keys: keys.keys(),
                hits,
                room,
            });
        }
    }
}
