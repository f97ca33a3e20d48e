//! Transactions: lists of changes to a rule set. Either all changes of a
//! transaction are made, or none.

use std::sync::Arc;

use crate::model::error::UpdateError;
use crate::model::limits::Limits;
use crate::model::rule::{RuleId, RuleRef};
use crate::model::schema::Schema;

mod buffer;
pub(crate) mod packed;
pub(crate) mod standing;

pub use buffer::{LentTransaction, TransactionBuf};
use standing::Standing;

/// One change of a rule set.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Adds a rule with a new id.
    Insert(RuleRef<'a>),
    /// Removes the rule with this id.
    Remove(RuleId),
    /// Replaces the matches, priority, action and cookie of the rule with the
    /// same id.
    Modify(RuleRef<'a>),
}

impl Change<'_> {
    /// Returns the id of the changed rule.
    #[must_use]
    pub fn id(&self) -> RuleId {
        match self {
            Change::Insert(rule) | Change::Modify(rule) => rule.id(),
            Change::Remove(id) => *id,
        }
    }
}

/// A list of changes, which are made in order, all or none. The rules are
/// borrowed, so adding a change copies no words. A single change needs no
/// allocation, and [`clear`](Self::clear) keeps the memory of longer lists. A
/// [`TransactionBuf`] owns its rules and lends a transaction.
#[derive(Clone, Debug, Default)]
pub struct Transaction<'a> {
    changes: Changes<'a>,
}

/// A list of changes, in order.
#[derive(Clone, Debug)]
enum Changes<'a> {
    /// A single change, as in most transactions.
    One(Change<'a>),
    /// Any number of changes, or none.
    Listed(Vec<Change<'a>>),
}

impl Default for Changes<'_> {
    fn default() -> Self {
        Changes::Listed(Vec::new())
    }
}

/// The capacity that is allocated when a second change is added. Measured in
/// `bench/records/constants.md` (Lists and maps).
const MIN_LIST_CAPACITY: usize = 8;

/// The maximum number of changes in a transaction for which validation finds earlier changes of a
/// rule by a scan. Longer transactions use a map. Measured in `bench/records/constants.md` (Lists
/// and maps).
const MAX_SCANNED_CHANGES: usize = 32;

impl<'a> Changes<'a> {
    #[inline]
    fn as_slice(&self) -> &[Change<'a>] {
        match self {
            Changes::One(change) => std::slice::from_ref(change),
            Changes::Listed(changes) => changes,
        }
    }

    #[inline]
    fn push(&mut self, change: Change<'a>) {
        match self {
            Changes::Listed(changes) if changes.capacity() == 0 => *self = Changes::One(change),
            Changes::Listed(changes) => changes.push(change),
            Changes::One(first) => {
                let mut list = Vec::with_capacity(MIN_LIST_CAPACITY);
                list.extend([*first, change]);
                *self = Changes::Listed(list);
            }
        }
    }

    /// Removes all changes and keeps the memory.
    fn clear(&mut self) {
        match self {
            Changes::One(_) => *self = Changes::default(),
            Changes::Listed(changes) => changes.clear(),
        }
    }
}

impl<'a> Transaction<'a> {
    /// Returns a transaction without changes.
    #[must_use]
    pub fn new() -> Transaction<'a> {
        Transaction::default()
    }

    /// Appends an insert.
    #[inline]
    pub fn insert(&mut self, rule: RuleRef<'a>) -> &mut Self {
        self.push(Change::Insert(rule))
    }

    /// Appends a removal.
    #[inline]
    pub fn remove(&mut self, id: RuleId) -> &mut Self {
        self.push(Change::Remove(id))
    }

    /// Appends a replacement.
    pub fn modify(&mut self, rule: RuleRef<'a>) -> &mut Self {
        self.push(Change::Modify(rule))
    }

    /// Appends a change.
    #[inline]
    pub fn push(&mut self, change: Change<'a>) -> &mut Self {
        self.changes.push(change);
        self
    }

    /// Returns the changes, in order.
    #[must_use]
    #[inline]
    pub fn changes(&self) -> &[Change<'a>] {
        self.changes.as_slice()
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.changes.clear();
    }

    /// Returns an empty transaction that reuses this transaction's memory.
    pub(crate) fn reuse<'b>(mut self) -> Transaction<'b> {
        self.clear();
        // Collecting in place keeps the allocation: only the lifetime changes.
        let changes = match self.changes {
            Changes::One(_) => Vec::new(),
            Changes::Listed(changes) => changes,
        };
        let none = changes.into_iter().map(|_| unreachable!("cleared"));
        Transaction {
            changes: Changes::Listed(none.collect()),
        }
    }

    /// Checks the changes in order against the current rules: the schema, every
    /// id and the limit on rules. If there are more rules afterwards, also
    /// checks the bytes that the engine holds (`bytes`, called only then)
    /// against the limit on bytes. Engines call this function before they make
    /// a change. If it returns `Ok`, all changes can be made.
    ///
    /// # Errors
    /// [`UpdateError`] names the first change that cannot be made.
    pub fn validate(
        &self,
        schema: &Arc<Schema>,
        limits: &Limits,
        rules: usize,
        bytes: &dyn Fn() -> usize,
        contains: &dyn Fn(RuleId) -> bool,
    ) -> Result<(), UpdateError> {
        let touched = &mut Standing::default();
        self.validate_with(touched, schema, limits, rules, bytes, contains)
            .map(drop)
    }

    /// Like [`validate`](Self::validate), but uses `touched` as memory for the
    /// ids that the changes touch. Returns the number of rules afterwards.
    pub(crate) fn validate_with(
        &self,
        touched: &mut Standing,
        schema: &Arc<Schema>,
        limits: &Limits,
        rules: usize,
        bytes: &dyn Fn() -> usize,
        contains: &dyn Fn(RuleId) -> bool,
    ) -> Result<usize, UpdateError> {
        // The effect of earlier changes of this transaction on an id. For few
        // changes, a scan takes less time than a map.
        let uses_map = self.changes().len() > MAX_SCANNED_CHANGES;
        if uses_map {
            touched.clear();
            touched.reserve(self.changes().len());
        }
        let mut count = rules;
        for (index, change) in self.changes().iter().enumerate() {
            if let Change::Insert(rule) | Change::Modify(rule) = change
                && !Arc::ptr_eq(rule.schema, schema)
                && rule.schema != schema
            {
                return Err(UpdateError::WrongSchema {
                    change: index,
                    found: rule.schema().name().to_owned(),
                    expected: schema.name().to_owned(),
                });
            }
            let id = change.id();
            let known = if uses_map {
                touched.get(id).map(|parts| parts != 0)
            } else {
                let before = self.changes()[..index].iter();
                let latest = before.rev().find(|change| change.id() == id);
                latest.map(|change| !matches!(change, Change::Remove(_)))
            };
            let present = known.unwrap_or_else(|| contains(id));
            let after = match change {
                Change::Insert(_) if present => {
                    return Err(UpdateError::DuplicateId {
                        change: index,
                        id: id.get(),
                    });
                }
                Change::Insert(_) => {
                    count += 1;
                    true
                }
                Change::Remove(_) | Change::Modify(_) if !present => {
                    let removal = matches!(change, Change::Remove(_));
                    return Err(UpdateError::UnknownId {
                        change: index,
                        operation: if removal { "remove" } else { "modify" },
                        id: id.get(),
                    });
                }
                Change::Remove(_) => {
                    count -= 1;
                    false
                }
                Change::Modify(_) => true,
            };
            if count > limits.rules {
                return Err(UpdateError::TooManyRules {
                    change: index,
                    found: count,
                    limit: limits.rules,
                });
            }
            if uses_map {
                touched.set(id, u8::from(after));
            }
        }
        self.validate_bytes(limits, count > rules, bytes)?;
        Ok(count)
    }

    /// Checks the limit on bytes if there are more rules after the transaction.
    /// This is the last part of [`validate`](Self::validate).
    fn validate_bytes(
        &self,
        limits: &Limits,
        grows: bool,
        bytes: &dyn Fn() -> usize,
    ) -> Result<(), UpdateError> {
        if limits.bytes == usize::MAX || !grows {
            return Ok(());
        }
        let held = bytes();
        if held > limits.bytes {
            let adds = |change: &Change<'_>| matches!(change, Change::Insert(_));
            let first = self.changes().iter().position(adds);
            return Err(UpdateError::TooManyBytes {
                change: first.expect("the rules grew more"),
                held,
                limit: limits.bytes,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::rule::{ActionId, FieldMatch, Priority, Rule};
    use crate::model::seed::splitmix;

    #[test]
    fn changes_are_listed_in_the_order_in_which_they_came() {
        let id = RuleId::from_index;
        let listed = |t: &Transaction<'_>| t.changes().iter().map(Change::id).collect::<Vec<_>>();
        let mut t = Transaction::new();
        for round in 0..3 {
            assert!(t.changes().is_empty(), "round {round}");
            for count in 1..6 {
                t.remove(id(count));
                assert_eq!(listed(&t), (1..=count).map(id).collect::<Vec<_>>());
                assert_eq!(listed(&t.clone()), listed(&t));
            }
            match round {
                0 => t.clear(),
                _ => t = t.reuse(),
            }
        }
        t.remove(id(7));
        t = t.reuse();
        assert!(t.changes().is_empty());
        t = Transaction::new();
        t.remove(id(8));
        t.clear();
        assert!(t.changes().is_empty());
    }

    #[test]
    fn changes_are_checked_in_order() {
        let schema = Schema::ipv4_5tuple();
        let rule = |id| {
            Rule::new(
                &schema,
                RuleId::new(id).unwrap(),
                Priority(1),
                ActionId(0),
                &[FieldMatch::Any; 5],
            )
            .unwrap()
        };
        let (one, two) = (rule(1), rule(2));
        let limits = Limits {
            rules: 2,
            ..Limits::default()
        };
        // Rule 1 is there.
        let check = |t: &Transaction<'_>| {
            t.validate(&schema, &limits, 1, &|| 0, &|id| id.get() == 1)
                .map_err(|e| e.to_string())
        };
        let mut t = Transaction::new();
        assert_eq!(check(&t), Ok(()));
        t.remove(one.view().id())
            .insert(one.view())
            .insert(two.view());
        assert_eq!(check(&t), Ok(()));
        t.insert(two.view());
        assert!(
            check(&t)
                .unwrap_err()
                .contains("change 3: cannot insert rule 2")
        );
        t.clear();
        t.remove(one.view().id()).modify(one.view());
        assert!(
            check(&t)
                .unwrap_err()
                .contains("change 1: cannot modify rule 1")
        );
        t.clear();
        let three = rule(3);
        t.insert(two.view()).insert(three.view());
        assert!(check(&t).unwrap_err().contains("limit is 2"));
        t.clear();
        let foreign_rule = Rule::new(
            &Schema::ipv6_5tuple(),
            RuleId::from_index(9),
            Priority(1),
            ActionId(0),
            &[FieldMatch::Any; 5],
        )
        .unwrap();
        t.insert(foreign_rule.view());
        assert!(check(&t).unwrap_err().contains("ipv6-5tuple"));
    }

    /// Transactions of every length around [`MAX_SCANNED_CHANGES`]. There are
    /// few ids, so most ids occur several times. The results are compared with
    /// a set.
    #[test]
    fn a_change_is_checked_against_all_before_it() {
        let schema = Schema::ipv4_5tuple();
        let any = [FieldMatch::Any; 5];
        let rule = |id| {
            Rule::new(
                &schema,
                RuleId::from_index(id),
                Priority(1),
                ActionId(0),
                &any,
            )
        };
        let rules: Vec<Rule> = (0..12).map(|id| rule(id).unwrap()).collect();
        let (mut state, mut accepted, mut refused) = (3, 0, 0);
        let mut touched = Standing::default();
        for round in 0..4000 {
            let length = [
                1,
                2,
                MAX_SCANNED_CHANGES - 1,
                MAX_SCANNED_CHANGES,
                MAX_SCANNED_CHANGES + 1,
                3 * MAX_SCANNED_CHANGES,
            ][round % 6];
            let initial_ids: BTreeSet<usize> =
                (0..12).filter(|id| id % 2 == round / 6 % 2).collect();
            let mut ids = initial_ids.clone();
            let mut wrong = None;
            let mut t = Transaction::new();
            for change in 0..length {
                // Sometimes a change does not fit the earlier changes.
                let roll = usize::try_from(splitmix(&mut state) >> 32).unwrap();
                let id = roll % 12;
                let fits = roll / 12 % (2 * length) != 0;
                match (ids.contains(&id) == fits, roll & 1 << 20 == 0) {
                    (true, true) => {
                        t.remove(RuleId::from_index(id));
                    }
                    (true, false) => {
                        t.modify(rules[id].view());
                    }
                    (false, _) => {
                        t.insert(rules[id].view());
                    }
                }
                if !fits {
                    wrong = Some(change);
                    break;
                }
                match t.changes().last() {
                    Some(Change::Remove(_)) => ids.remove(&id),
                    _ => ids.insert(id),
                };
            }
            let limits = Limits::default();
            let holds = |id: RuleId| initial_ids.contains(&id.index());
            let checked = t.validate_with(
                &mut touched,
                &schema,
                &limits,
                initial_ids.len(),
                &|| 0,
                &holds,
            );
            match (wrong, checked) {
                (None, Ok(count)) => {
                    assert_eq!(count, ids.len(), "round {round}");
                    accepted += 1;
                }
                (
                    Some(wrong),
                    Err(
                        UpdateError::DuplicateId { change, .. }
                        | UpdateError::UnknownId { change, .. },
                    ),
                ) => {
                    assert_eq!(change, wrong, "round {round}");
                    refused += 1;
                }
                (wrong, checked) => panic!("round {round}: {wrong:?}, {checked:?}"),
            }
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted}, {refused}");
    }
}
