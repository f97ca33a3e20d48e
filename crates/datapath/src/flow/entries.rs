//! Entries in a list indexed by number. New entries get the smallest free number, so the
//! list has few unused slots.

use std::ops::Index;

use classyard::RuleId;

use super::entry::FlowEntry;
use crate::growth::slot_at;

/// Entries, indexed by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    list: Vec<Option<FlowEntry>>,
    held: usize,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    pub(super) fn get(&self, id: &RuleId) -> Option<&FlowEntry> {
        self.list.get(id.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: &RuleId) -> Option<&mut FlowEntry> {
        self.list.get_mut(id.index())?.as_mut()
    }

    /// Inserts an entry. Returns the entry that had its number.
    pub(super) fn insert(&mut self, id: RuleId, entry: FlowEntry) -> Option<FlowEntry> {
        let old = slot_at(&mut self.list, id.index()).replace(entry);
        self.held += usize::from(old.is_none());
        old
    }

    /// Removes an entry. Shrinks the list when the last three quarters of it are free.
    pub(super) fn remove(&mut self, id: &RuleId) -> Option<FlowEntry> {
        let entry = self.list.get_mut(id.index())?.take()?;
        self.held -= 1;
        while let Some(None) = self.list.last() {
            self.list.pop();
        }
        if self.list.len() < self.list.capacity() / 4 {
            self.list.shrink_to(self.list.len() * 2);
        }
        Some(entry)
    }
}

impl Index<&RuleId> for Entries {
    type Output = FlowEntry;

    fn index(&self, id: &RuleId) -> &FlowEntry {
        self.get(id).expect("a known entry")
    }
}
