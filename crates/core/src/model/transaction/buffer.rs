//! Transactions that own their rules.

use std::ops::Deref;
use std::sync::Arc;

use crate::model::error::RuleError;
use crate::model::part::PartId;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId};
use crate::model::schema::Schema;

use super::Transaction;
use super::packed::{Kind, PackedChanges, RuleHead};

/// A list of changes that owns its rules: they are packed into one buffer.
/// [`clear`](Self::clear) keeps the buffer, so a reused list allocates nothing.
/// [`transaction`](Self::transaction) lends the changes as a [`Transaction`].
///
/// ```
/// use classyard::prelude::*;
///
/// let schema = Schema::ipv4_5tuple();
/// let rules = RuleSet::new(&schema);
/// let (mut writer, _table) = EngineSpec::parse("forest")?.builder().table(&rules)?;
/// let mut changes = TransactionBuf::new(&schema);
/// for number in 0..1000 {
///     let mut matches = [FieldMatch::Any; 5];
///     matches[3] = FieldMatch::Exact(u128::from(number));
///     changes.clear();
///     changes.insert(RuleId::new(number)?, Priority(1), ActionId(3), &matches)?;
///     writer.apply(&changes.transaction())?;
/// }
/// assert_eq!(writer.rules(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransactionBuf {
    schema: Arc<Schema>,
    changes: PackedChanges,
    /// Memory of the transaction that is lent.
    memory: Transaction<'static>,
}

impl TransactionBuf {
    /// Returns a transaction without changes, for rules of this schema.
    #[must_use]
    pub fn new(schema: &Arc<Schema>) -> TransactionBuf {
        TransactionBuf {
            schema: Arc::clone(schema),
            changes: PackedChanges::default(),
            memory: Transaction::new(),
        }
    }

    /// Packs a rule and appends an insert. The rule's cookie is 0 unless
    /// [set](Self::cookie).
    ///
    /// # Errors
    /// [`RuleError`] if the matches are not a rule of the schema; nothing is
    /// appended then.
    pub fn insert(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[FieldMatch],
    ) -> Result<&mut Self, RuleError> {
        self.pack(Kind::Insert, id, priority, action, matches)
    }

    /// Packs a rule and appends a replacement of the rule with the same id. The
    /// new rule's cookie is 0 unless [set](Self::cookie).
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    pub fn modify(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[FieldMatch],
    ) -> Result<&mut Self, RuleError> {
        self.pack(Kind::Modify, id, priority, action, matches)
    }

    fn pack(
        &mut self,
        kind: Kind,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[FieldMatch],
    ) -> Result<&mut Self, RuleError> {
        let head = RuleHead {
            id,
            priority,
            action,
            cookie: 0,
        };
        self.changes
            .pack(kind, PartId::FIRST, &self.schema, head, matches)?;
        Ok(self)
    }

    /// Sets the cookie of the last appended rule. Does nothing if there are no
    /// changes, or the last change is a removal.
    pub fn cookie(&mut self, cookie: u64) -> &mut Self {
        let last = self.changes.len();
        self.changes
            .set_cookies(last.saturating_sub(1)..last, cookie);
        self
    }

    /// Appends a removal.
    pub fn remove(&mut self, id: RuleId) -> &mut Self {
        self.changes.remove(id);
        self
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if the transaction is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.changes.clear();
    }

    /// Lends the changes as a [`Transaction`]. Its memory returns to this buffer when the
    /// result is dropped.
    #[must_use]
    pub fn transaction(&mut self) -> LentTransaction<'_> {
        let TransactionBuf {
            schema,
            changes,
            memory,
        } = self;
        let mut transaction = std::mem::take(memory).reuse();
        for entry in changes.entries() {
            transaction.push(changes.change(entry, schema));
        }
        LentTransaction {
            transaction,
            memory,
        }
    }
}

/// The changes of a [`TransactionBuf`] as a [`Transaction`].
#[derive(Debug)]
pub struct LentTransaction<'a> {
    transaction: Transaction<'a>,
    memory: &'a mut Transaction<'static>,
}

impl<'a> Deref for LentTransaction<'a> {
    type Target = Transaction<'a>;

    fn deref(&self) -> &Transaction<'a> {
        &self.transaction
    }
}

impl Drop for LentTransaction<'_> {
    fn drop(&mut self) {
        *self.memory = std::mem::take(&mut self.transaction).reuse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rule::Rule;
    use crate::model::transaction::Change;

    #[test]
    fn what_is_lent_is_what_was_appended() {
        let schema = Schema::ipv4_5tuple();
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Range { low: 7, high: 900 };
        let rule = |id: usize, cookie| {
            let id = RuleId::from_index(id);
            let rule = Rule::new(&schema, id, Priority(2), ActionId(3), &matches);
            rule.unwrap().with_cookie(cookie)
        };
        let mut changes = TransactionBuf::new(&schema);
        for _ in 0..3 {
            changes.clear();
            assert!(changes.is_empty() && changes.transaction().changes().is_empty());
            let [one, two] = [1, 2].map(RuleId::from_index);
            changes.cookie(9);
            changes
                .insert(one, Priority(2), ActionId(3), &matches)
                .unwrap();
            let short = changes.insert(two, Priority(2), ActionId(3), &matches[1..]);
            assert!(matches!(short, Err(RuleError::WrongFieldCount { .. })));
            changes
                .remove(two)
                .modify(two, Priority(2), ActionId(3), &matches)
                .unwrap()
                .cookie(5);
            assert_eq!(changes.len(), 3);
            let lent = changes.transaction();
            let [
                Change::Insert(first),
                Change::Remove(id),
                Change::Modify(last),
            ] = lent.changes()
            else {
                panic!("{lent:?}");
            };
            assert_eq!((first.to_rule(), *id), (rule(1, 0), two));
            assert_eq!(last.to_rule(), rule(2, 5));
        }
    }
}
