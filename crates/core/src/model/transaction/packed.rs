//! Changes that own the words of their rules in one allocation.
//!
//! ```text
//! entries  kind, part, id, priority, action, cookie, ▼     32 bytes each
//! words    value mask high │ value mask high │ …           of inserts and modifies
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::model::error::RuleError;
use crate::model::part::PartId;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef, pack_into};
use crate::model::schema::Schema;

use super::Change;

/// The operation of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Remove,
    Modify,
}

/// The data of a packed rule except its matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleHead {
    pub(crate) id: RuleId,
    pub(crate) priority: Priority,
    pub(crate) action: ActionId,
    pub(crate) cookie: u64,
}

/// A change without its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    kind: Kind,
    pub(crate) part: PartId,
    /// The number of rules that the policy gains by the change: 1, 0 or -1. If
    /// a change has several entries, one for each part, only one entry has this
    /// number and the others have 0.
    pub(crate) growth: i8,
    // These fields are not a `RuleHead`, which would take 4 more bytes.
    id: RuleId,
    priority: Priority,
    action: ActionId,
    cookie: u64,
    /// The start of the rule's words.
    words: usize,
}

impl Entry {
    #[inline]
    fn new(kind: Kind, part: PartId, growth: i8, head: RuleHead, words: usize) -> Entry {
        Entry {
            kind,
            part,
            growth,
            id: head.id,
            priority: head.priority,
            action: head.action,
            cookie: head.cookie,
            words,
        }
    }

    pub(crate) fn id(&self) -> RuleId {
        self.id
    }

    /// True if the rule is in the part after the change.
    pub(crate) fn stands(&self) -> bool {
        self.kind != Kind::Remove
    }
}

/// A list of changes in order. After [`clear`](Self::clear), it can be filled
/// again without allocating.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedChanges {
    entries: Vec<Entry>,
    /// The words of all rules, in order.
    words: Vec<u64>,
}

impl PackedChanges {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends a change and copies its words.
    #[inline]
    pub(crate) fn push(&mut self, part: PartId, change: &Change<'_>, growth: i8) {
        let words = self.words.len();
        let (kind, head) = match change {
            Change::Insert(rule) => (Kind::Insert, self.copy(rule)),
            Change::Modify(rule) => (Kind::Modify, self.copy(rule)),
            Change::Remove(id) => (Kind::Remove, removed(*id)),
        };
        self.entries
            .push(Entry::new(kind, part, growth, head, words));
    }

    #[inline]
    fn copy(&mut self, rule: &RuleRef<'_>) -> RuleHead {
        self.words.extend_from_slice(rule.words());
        RuleHead {
            id: rule.id(),
            priority: rule.priority(),
            action: rule.action(),
            cookie: rule.cookie(),
        }
    }

    /// Packs a rule and appends its change; `kind` must not be a removal.
    ///
    /// # Errors
    /// [`RuleError`]; nothing is appended then.
    pub(crate) fn pack(
        &mut self,
        kind: Kind,
        part: PartId,
        schema: &Schema,
        head: RuleHead,
        matches: &[FieldMatch],
    ) -> Result<(), RuleError> {
        let words = self.words.len();
        self.words.resize(words + schema.rule_words(), 0);
        if let Err(error) = pack_into(schema, matches, &mut self.words[words..]) {
            self.words.truncate(words);
            return Err(error);
        }
        self.entries.push(Entry::new(kind, part, 0, head, words));
        Ok(())
    }

    /// Appends a removal.
    pub(crate) fn remove(&mut self, id: RuleId) {
        self.push(PartId::FIRST, &Change::Remove(id), 0);
    }

    /// Sets the cookies of a range of changes.
    pub(crate) fn set_cookies(&mut self, changes: Range<usize>, cookie: u64) {
        for entry in &mut self.entries[changes] {
            entry.cookie = cookie;
        }
    }

    /// Removes all but the first `changes` changes.
    pub(crate) fn truncate(&mut self, changes: usize) {
        if let Some(first) = self.entries.get(changes) {
            self.words.truncate(first.words);
            self.entries.truncate(changes);
        }
    }

    /// Returns an entry's change, for a part with this schema. Inlined because
    /// copying a change just returned in memory causes a store-to-load stall (1
    /// % of the writer's time).
    #[inline]
    pub(crate) fn change<'a>(&'a self, entry: &Entry, schema: &'a Arc<Schema>) -> Change<'a> {
        let rule = |changes: &'a PackedChanges| RuleRef {
            schema,
            id: entry.id,
            priority: entry.priority,
            action: entry.action,
            cookie: entry.cookie,
            words: &changes.words[entry.words..entry.words + schema.rule_words()],
        };
        match entry.kind {
            Kind::Insert => Change::Insert(rule(self)),
            Kind::Modify => Change::Modify(rule(self)),
            Kind::Remove => Change::Remove(entry.id),
        }
    }

    /// Removes all changes and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.words.clear();
    }

    /// Removes all changes. Keeps memory for `keep` changes and frees the rest,
    /// so that one large transaction does not hold memory forever.
    pub(crate) fn clear_to(&mut self, keep: usize) {
        if self.entries.capacity() > 2 * keep {
            let width = self.words.len() / self.entries.len().max(1);
            self.clear();
            self.entries.shrink_to(keep);
            self.words.shrink_to(keep * width);
        }
        self.clear();
    }

    /// Returns the bytes held, including unused capacity.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.words.capacity() * size_of::<u64>()
    }
}

fn removed(id: RuleId) -> RuleHead {
    RuleHead {
        id,
        priority: Priority(0),
        action: ActionId(0),
        cookie: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rule::Rule;

    #[test]
    fn room_of_a_great_transaction_is_given_back() {
        let schema = Schema::ipv4_5tuple();
        let matches = [FieldMatch::Any; 5];
        let rule = Rule::new(&schema, RuleId::MAX, Priority(2), ActionId(3), &matches).unwrap();
        let mut changes = PackedChanges::default();
        for _ in 0..10_000 {
            changes.push(PartId::FIRST, &Change::Insert(rule.view()), 0);
        }
        // The number that the documentation of the live table states.
        assert!(size_of::<Entry>() + 8 * schema.rule_words() <= 72);
        let large = changes.bytes();
        changes.clear_to(100);
        assert!(
            changes.bytes() * 50 < large,
            "{} of {large}",
            changes.bytes()
        );
        assert_eq!(changes.len(), 0);
    }
}
