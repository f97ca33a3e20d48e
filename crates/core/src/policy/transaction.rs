//! Transactions of policies: one type borrows its rules, and one type owns
//! them.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::model::error::PartError;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId, RuleRef};
use crate::model::ruleset::AddError;
use crate::model::schema::Schema;
use crate::model::transaction::Change;
use crate::model::transaction::packed::{Kind, PackedChanges, RuleHead};

use super::{PartId, check_parts};

/// A rule's form in one part: the rule, packed for the schema of the part.
pub(super) type Form<'a> = (PartId, RuleRef<'a>);

/// A change to a policy's rules.
#[derive(Clone, Copy, Debug)]
pub enum PolicyChange<'a> {
    /// Adds a rule: one form for each of its parts, all with one id.
    Insert(&'a [(PartId, RuleRef<'a>)]),
    /// Removes the rule with this id from all of its parts.
    Remove(RuleId),
    /// Replaces the rule with the same id; its parts may change.
    Modify(&'a [(PartId, RuleRef<'a>)]),
}

impl<'a> PolicyChange<'a> {
    /// Returns the changed rule's id and new forms, checked for a policy of
    /// `count` parts.
    pub(super) fn rule(self, count: usize) -> Result<(RuleId, &'a [Form<'a>]), PartError> {
        let forms = match self {
            PolicyChange::Remove(id) => return Ok((id, &[])),
            PolicyChange::Insert(forms) | PolicyChange::Modify(forms) => forms,
        };
        let id = forms.first().ok_or(PartError::Missing)?.1.id();
        check_parts(id, forms.iter().map(|(part, _)| *part), count)?;
        if let Some((part, rule)) = forms.iter().find(|(_, rule)| rule.id() != id) {
            return Err(PartError::DifferentId {
                id: id.get(),
                found: rule.id().get(),
                part: part.index(),
            });
        }
        Ok((id, forms))
    }
}

/// A change without its forms.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Insert(Range<usize>),
    Remove(RuleId),
    Modify(Range<usize>),
}

/// A list of changes to a policy's rules, which are made in order, all or none.
/// Like a [`Transaction`](crate::Transaction), except that a rule has one form
/// for each of its parts: the rule, packed for the schema of the part.
#[derive(Clone, Debug, Default)]
pub struct PolicyTransaction<'a> {
    changes: Vec<Entry>,
    /// The forms of all rules, in order.
    forms: Vec<Form<'a>>,
}

impl<'a> PolicyTransaction<'a> {
    /// Returns a transaction without changes.
    #[must_use]
    pub fn new() -> PolicyTransaction<'a> {
        PolicyTransaction::default()
    }

    /// Appends an insert: one form for each of the rule's parts, all with one
    /// id, as [`Policy::rule`](super::Policy::rule) returns them.
    pub fn insert(&mut self, forms: impl IntoIterator<Item = (PartId, RuleRef<'a>)>) -> &mut Self {
        let forms = self.add_forms(forms);
        self.changes.push(Entry::Insert(forms));
        self
    }

    /// Appends a removal from all of the rule's parts.
    pub fn remove(&mut self, id: RuleId) -> &mut Self {
        self.changes.push(Entry::Remove(id));
        self
    }

    /// Appends a replacement: one form for each of the rule's new parts.
    pub fn modify(&mut self, forms: impl IntoIterator<Item = (PartId, RuleRef<'a>)>) -> &mut Self {
        let forms = self.add_forms(forms);
        self.changes.push(Entry::Modify(forms));
        self
    }

    fn add_forms(&mut self, forms: impl IntoIterator<Item = Form<'a>>) -> Range<usize> {
        let first = self.forms.len();
        self.forms.extend(forms);
        first..self.forms.len()
    }

    /// Returns the number of changes; a change in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if the transaction is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes, in order.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = PolicyChange<'_>> {
        self.changes.iter().map(|change| match change {
            Entry::Insert(forms) => PolicyChange::Insert(&self.forms[forms.clone()]),
            Entry::Remove(id) => PolicyChange::Remove(*id),
            Entry::Modify(forms) => PolicyChange::Modify(&self.forms[forms.clone()]),
        })
    }

    /// Returns the forms of all rules, in order.
    pub(super) fn forms(&self) -> &[Form<'a>] {
        &self.forms
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.forms.clear();
    }

    /// Returns an empty transaction that reuses this transaction's memory.
    fn reuse<'b>(mut self) -> PolicyTransaction<'b> {
        self.clear();
        // Collecting in place keeps the allocation: only the lifetime changes.
        let none = self.forms.into_iter().map(|_| unreachable!("cleared"));
        PolicyTransaction {
            changes: self.changes,
            forms: none.collect(),
        }
    }
}

/// A list of changes to a policy's rules that owns its rules: they are packed
/// into one buffer, which [`clear`](Self::clear) keeps. Like a
/// [`TransactionBuf`](crate::TransactionBuf), except that a rule has matches
/// for each of its parts.
///
/// ```
/// use classyard::prelude::*;
/// use classyard::PartId;
///
/// let policy = Policy::dual_stack();
/// let (mut writer, _table) = EngineSpec::parse("forest")?.builder().policy_table(&policy)?;
/// let mut changes = PolicyTransactionBuf::new(policy.schemas());
/// let mut https = [FieldMatch::Any; 5];
/// https[3] = FieldMatch::Exact(443);
/// // In both families.
/// let forms = [(PartId::from_index(0), &https[..]), (PartId::from_index(1), &https[..])];
/// changes.insert(RuleId::new(7)?, Priority(1), ActionId(3), &forms)?;
/// writer.apply(&changes.transaction())?;
/// assert_eq!(writer.rules(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyTransactionBuf {
    pub(super) schemas: Box<[Arc<Schema>]>,
    /// The forms of inserts and modifies, each stored as a change.
    forms: PackedChanges,
    changes: Vec<Entry>,
    /// Memory of the transaction that is lent.
    memory: PolicyTransaction<'static>,
}

impl PolicyTransactionBuf {
    /// Returns a transaction without changes, for a policy whose parts have
    /// these schemas ([`Policy::schemas`](super::Policy::schemas)).
    #[must_use]
    pub fn new<'s>(schemas: impl IntoIterator<Item = &'s Arc<Schema>>) -> PolicyTransactionBuf {
        PolicyTransactionBuf {
            schemas: schemas.into_iter().map(Arc::clone).collect(),
            forms: PackedChanges::default(),
            changes: Vec::new(),
            memory: PolicyTransaction::new(),
        }
    }

    /// Packs a rule with matches for each of its parts, and appends an insert.
    /// The rule's cookie is 0 unless [set](Self::cookie).
    ///
    /// # Errors
    /// [`AddError`] if no part is given, a part is unknown or given twice, or
    /// the matches are not a rule of a part's schema; nothing is appended then.
    pub fn insert(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[(PartId, &[FieldMatch])],
    ) -> Result<&mut Self, AddError> {
        let forms = self.pack(id, priority, action, matches)?;
        self.changes.push(Entry::Insert(forms));
        Ok(self)
    }

    /// Packs a rule and appends a replacement of the rule with the same id; its
    /// parts may change. The new rule's cookie is 0 unless [set](Self::cookie).
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    pub fn modify(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[(PartId, &[FieldMatch])],
    ) -> Result<&mut Self, AddError> {
        let forms = self.pack(id, priority, action, matches)?;
        self.changes.push(Entry::Modify(forms));
        Ok(self)
    }

    fn pack(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[(PartId, &[FieldMatch])],
    ) -> Result<Range<usize>, AddError> {
        let parts = matches.iter().map(|(part, _)| *part);
        check_parts(id, parts, self.schemas.len()).map_err(AddError::Parts)?;
        let head = RuleHead {
            id,
            priority,
            action,
            cookie: 0,
        };
        let first = self.forms.len();
        for (part, matches) in matches {
            let schema = &self.schemas[part.index()];
            let packed = self.forms.pack(Kind::Insert, *part, schema, head, matches);
            if let Err(error) = packed {
                self.forms.truncate(first);
                return Err(AddError::Rule(error));
            }
        }
        Ok(first..self.forms.len())
    }

    /// Appends a change with these forms of a rule.
    pub(super) fn push_forms(
        &mut self,
        forms: &[(PartId, Rule)],
        change: impl FnOnce(Range<usize>) -> Entry,
    ) -> &mut Self {
        let first = self.forms.len();
        for (part, rule) in forms {
            self.forms.push(*part, &Change::Insert(rule.view()), 0);
        }
        self.changes.push(change(first..self.forms.len()));
        self
    }

    /// Sets the cookie of the last appended rule in all its parts. Does nothing
    /// if the transaction is empty or the last change is a removal.
    pub fn cookie(&mut self, cookie: u64) -> &mut Self {
        if let Some(Entry::Insert(forms) | Entry::Modify(forms)) = self.changes.last() {
            self.forms.set_cookies(forms.clone(), cookie);
        }
        self
    }

    /// Appends a removal from all of the rule's parts.
    pub fn remove(&mut self, id: RuleId) -> &mut Self {
        self.changes.push(Entry::Remove(id));
        self
    }

    /// Returns the number of changes; a change in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if the transaction is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.forms.clear();
        self.changes.clear();
    }

    /// Lends the changes as a [`PolicyTransaction`]. Its memory returns to this
    /// buffer when the result is dropped.
    #[must_use]
    pub fn transaction(&mut self) -> LentPolicyTransaction<'_> {
        let PolicyTransactionBuf {
            schemas,
            forms,
            changes,
            memory,
        } = self;
        let mut transaction = std::mem::take(memory).reuse();
        transaction.changes.extend(changes.iter().cloned());
        for entry in forms.entries() {
            let change = forms.change(entry, &schemas[entry.part.index()]);
            if let Change::Insert(rule) = change {
                transaction.forms.push((entry.part, rule));
            }
        }
        LentPolicyTransaction {
            transaction,
            memory,
        }
    }
}

/// The changes of a [`PolicyTransactionBuf`] as a [`PolicyTransaction`].
#[derive(Debug)]
pub struct LentPolicyTransaction<'a> {
    transaction: PolicyTransaction<'a>,
    memory: &'a mut PolicyTransaction<'static>,
}

impl<'a> Deref for LentPolicyTransaction<'a> {
    type Target = PolicyTransaction<'a>;

    fn deref(&self) -> &PolicyTransaction<'a> {
        &self.transaction
    }
}

impl Drop for LentPolicyTransaction<'_> {
    fn drop(&mut self) {
        *self.memory = std::mem::take(&mut self.transaction).reuse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::RuleError;
    use crate::model::rule::Rule;

    #[test]
    fn what_is_lent_is_what_was_appended() {
        let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
        let any: &[FieldMatch] = &[FieldMatch::Any; 5];
        let part = PartId::from_index;
        let id = RuleId::from_index;
        let rule = |at: usize, number: usize, cookie| {
            let rule = Rule::new(&schemas[at], id(number), Priority(2), ActionId(3), any);
            (part(at), rule.unwrap().with_cookie(cookie))
        };
        let mut changes = PolicyTransactionBuf::new(&schemas);
        for _ in 0..3 {
            changes.clear();
            assert!(changes.is_empty() && changes.transaction().is_empty());
            let mut insert = |number, matches: &[(PartId, &[FieldMatch])]| {
                let added = changes.insert(id(number), Priority(2), ActionId(3), matches);
                added.map(|changes| {
                    changes.cookie(9);
                })
            };
            insert(1, &[(part(1), any), (part(0), any)]).unwrap();
            let refused = [
                (vec![], AddError::Parts(PartError::Missing)),
                (
                    vec![(part(0), any), (part(0), any)],
                    AddError::Parts(PartError::Repeated { id: 2, part: 0 }),
                ),
                (
                    vec![(part(0), any), (part(2), any)],
                    AddError::Parts(PartError::Unknown {
                        id: 2,
                        part: 2,
                        parts: 2,
                    }),
                ),
                (
                    vec![(part(0), any), (part(1), &any[1..])],
                    AddError::Rule(RuleError::WrongFieldCount {
                        found: 4,
                        expected: 5,
                    }),
                ),
            ];
            for (matches, error) in refused {
                assert_eq!(insert(2, &matches), Err(error));
            }
            changes
                .remove(id(4))
                .cookie(7)
                .modify(id(2), Priority(2), ActionId(3), &[(part(1), any)])
                .unwrap();
            assert_eq!(changes.len(), 3);
            let lent = changes.transaction();
            let lent: Vec<_> = lent.changes().collect();
            let [
                PolicyChange::Insert(both),
                PolicyChange::Remove(gone),
                PolicyChange::Modify(last),
            ] = lent.as_slice()
            else {
                panic!("{lent:?}");
            };
            let owned = |forms: &[Form<'_>]| -> Vec<_> {
                let forms = forms.iter();
                forms.map(|(part, rule)| (*part, rule.to_rule())).collect()
            };
            assert_eq!(owned(both), [rule(1, 1, 9), rule(0, 1, 9)]);
            assert_eq!((owned(last), *gone), (vec![rule(1, 2, 0)], id(4)));
        }
    }
}
