//! The log of rule changes that a side lacks.

use std::ops::Range;

use crate::contract::classifier::DynamicClassifier;
use crate::model::rule::RuleId;
use crate::model::schema::Schema;
use crate::model::transaction::packed::{Entry, PackedChanges};
use crate::model::transaction::{Change, Transaction};
use crate::policy::PartId;
use crate::table::labels::Labels;
use crate::table::replica::ChangeLog;

use std::sync::Arc;

/// Accepted changes of rules, in order, with their packed words: 32 bytes a change, plus
/// the rule's words.
#[derive(Debug, Default)]
pub struct RuleLog {
    changes: PackedChanges,
}

impl RuleLog {
    /// Appends a change of a part. `growth` is the change in a policy's number of rules.
    pub(super) fn push(&mut self, part: PartId, change: &Change<'_>, growth: i8) {
        self.changes.push(part, change, growth);
    }

    /// Returns the changes from position `from` to the end of the log: for each change
    /// the rule's id, the part, and true if the part contains the rule after the change.
    pub(super) fn standing(&self, from: usize) -> impl Iterator<Item = (RuleId, PartId, bool)> {
        let entries = self.changes.entries()[from..].iter();
        entries.map(|entry| (entry.id(), entry.part, entry.stands()))
    }

    /// The number of rules that a policy gains by a range of changes.
    pub(super) fn growth(&self, changes: Range<usize>) -> isize {
        let entries = self.changes.entries()[changes].iter();
        entries.map(|entry| isize::from(entry.growth)).sum()
    }
}

impl ChangeLog for RuleLog {
    fn len(&self) -> usize {
        self.changes.len()
    }

    fn clear(&mut self, keep: usize) {
        self.changes.clear_to(keep);
    }

    fn bytes(&self) -> usize {
        self.changes.bytes()
    }
}

/// The maximum number of changes that a replay passes to an engine as one transaction. A
/// longer range is divided, so that a side needs memory for at most this number of
/// changes. These 56 KiB stay in the cache.
const CHANGES_PER_REPLAY: usize = 1024;

/// Replays changes on a side. It keeps its memory, so later replays do not allocate.
#[derive(Default)]
pub(super) struct Replay {
    memory: Transaction<'static>,
}

impl Replay {
    /// Makes the changes of one part in a range of the log, in the engine and in the
    /// labels. The engine may receive the changes of several transactions as one
    /// transaction. No reader can see the versions in between, since readers see a side
    /// only while it is live.
    pub(super) fn run(
        &mut self,
        log: &RuleLog,
        range: Range<usize>,
        part: PartId,
        schema: &Arc<Schema>,
        engine: &mut dyn DynamicClassifier,
        labels: &mut Labels,
    ) {
        let entries = &log.changes.entries()[range];
        let mut transaction = std::mem::take(&mut self.memory).reuse();
        for entries in entries.chunks(CHANGES_PER_REPLAY) {
            transaction.clear();
            let is_of_part = |entry: &&Entry| entry.part == part;
            for entry in entries.iter().filter(is_of_part) {
                transaction.push(log.changes.change(entry, schema));
            }
            if !transaction.changes().is_empty() {
                engine.replay(&transaction);
                for change in transaction.changes() {
                    labels.change(change);
                }
            }
        }
        self.memory = transaction.reuse();
    }
}
