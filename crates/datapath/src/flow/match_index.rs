//! Entries by table, priority and match, which no two entries share.
//!
//! # Data layout
//! A hash table of 16 bytes an entry: the hash and the entry's number. The match itself
//! is in the entry, so growing the table reads no entry.

use std::hash::{BuildHasher, RandomState};

use classyard::RuleId;
use hashbrown::HashTable;

use super::entries::Entries;
use super::entry::{FlowEntry, TableId};
use crate::flow_match::FlowMatch;

/// Numbers of entries by what identifies an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchIndex {
    hasher: RandomState,
    slots: HashTable<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    id: RuleId,
}

impl MatchIndex {
    fn hash(&self, table: TableId, priority: u16, flow: &FlowMatch) -> u64 {
        self.hasher.hash_one((table, priority, flow))
    }

    /// Finds the entry of a table with that priority and match.
    pub(super) fn find(
        &self,
        entries: &Entries,
        table: TableId,
        priority: u16,
        flow: &FlowMatch,
    ) -> Option<RuleId> {
        let hash = self.hash(table, priority, flow);
        let is_equal = |slot: &Slot| {
            let entry = &entries[&slot.id];
            (entry.table, entry.priority, &*entry.flow) == (table, priority, flow)
        };
        let slot = self
            .slots
            .find(hash, |slot| slot.hash == hash && is_equal(slot))?;
        Some(slot.id)
    }

    /// Adds an entry that is not in the index.
    pub(super) fn insert(&mut self, entry: &FlowEntry) {
        let hash = self.hash(entry.table, entry.priority, &entry.flow);
        let slot = Slot { hash, id: entry.id };
        self.slots.insert_unique(hash, slot, |slot| slot.hash);
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, entry: &FlowEntry) {
        let hash = self.hash(entry.table, entry.priority, &entry.flow);
        if let Ok(slot) = self.slots.find_entry(hash, |slot| slot.id == entry.id) {
            slot.remove();
        }
    }
}
