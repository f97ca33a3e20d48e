//! Changes of flow entries that affect cached flows.

use std::collections::VecDeque;
use std::sync::Arc;

use classyard::{RuleId, Winner};

use crate::action::Action;
use crate::flow::{Instructions, TableId};
use crate::flow_match::FlowMatch;

/// A change of an entry.
#[derive(Clone, Debug)]
pub(crate) enum EntryChange {
    /// An entry was added: packets that it matches may now have another winner.
    Added {
        table: TableId,
        winner: Winner,
        flow: Arc<FlowMatch>,
    },
    /// The entry's instructions changed. `keeps_paths` is true if its packets still take the
    /// same paths.
    Modified { id: RuleId, keeps_paths: bool },
    /// The entry was removed.
    Removed(RuleId),
}

/// Returns true if the paths of an entry stay the same with new instructions.
pub(crate) fn keeps_paths(old: &Instructions, new: &Instructions) -> bool {
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
    use super::*;

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
