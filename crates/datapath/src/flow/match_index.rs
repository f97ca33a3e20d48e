//! An index of entries by table, priority and match, which identify an entry.
//!
//! # Data layout
//! A hash table with 16 bytes for each entry: the hash and the entry's number. The hash is
//! stored, so growing the table reads no entry.

use std::hash::{BuildHasher, RandomState};

use classyard::RuleId;
use hashbrown::HashTable;

use super::entries::Entries;
use super::entry::FlowEntry;
use super::table_id::TableId;
use crate::flow_match::FlowMatch;

/// The index from table, priority and match to the entry's number.
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

    /// Returns the entry of a table with this priority and match.
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
