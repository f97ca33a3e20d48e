//! Changes of flow entries, as far as cached flows depend on them.

use std::collections::VecDeque;
use std::sync::Arc;

use classyard::{RuleId, Winner};

use crate::flow::TableId;
use crate::flow_match::FlowMatch;

/// What became of an entry.
#[derive(Clone, Debug)]
pub(crate) enum EntryChange {
    /// It is new: packets that it matches may have another winner now.
    Added {
        table: TableId,
        winner: Winner,
        flow: Arc<FlowMatch>,
    },
    /// It does something else with its packets, which take the same paths or not.
    Modified { id: RuleId, goes_on: bool },
    /// It is gone.
    Removed(RuleId),
}

/// Changes that are kept for those who have not seen them.
const KEPT: usize = 4096;

/// The latest changes, in order.
#[derive(Default)]
pub(crate) struct Recent {
    /// Changes ever made.
    made: u64,
    latest: VecDeque<EntryChange>,
}

impl Recent {
    pub(crate) fn push(&mut self, change: EntryChange) {
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(change);
        self.made += 1;
    }

    /// Changes ever made.
    #[inline]
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Those made after so many; `None` where they are kept no more.
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
        assert_eq!(since(5000 - KEPT as u64), Some(KEPT));
        assert_eq!(since(10), None);
    }
}
