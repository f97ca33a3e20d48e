//! Policies: one priority order over rules of one or more schemas.
//!
//! A firewall has IPv4 and IPv6 rules in one list. Their headers differ, so a
//! *policy* keeps a [`RuleSet`] for each family of headers. These rule sets are
//! the *parts* of the policy; they share one space of ids and priorities. A
//! rule without addresses is in several parts under the same id. Each header
//! belongs to exactly one part: the first part that can represent it. So the
//! winner in this part is the winner of the policy. A policy over a single
//! schema has one part.
//!
//! A policy also stores the names of rules and actions.

use std::sync::Arc;

use hashbrown::HashMap;

pub use crate::model::part::{MAX_PARTS, PartId};

use crate::model::error::{HeaderError, PartError, UpdateError};
use crate::model::key::KeyVec;
use crate::model::positions::Positions;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
use crate::model::ruleset::{AddError, RuleSet};
use crate::model::schema::Schema;
use crate::model::seed::MapState;

mod classifier;
mod header;
mod header_text;
mod plan;
mod rule;
mod transaction;

pub use classifier::PolicyClassifier;
pub use header::{Decision, FiveTuple, PacketHeader, Verdict};
pub use header_text::HeaderText;
pub(crate) use plan::Plan;
pub use rule::PolicyRule;
pub use transaction::{
    LentPolicyTransaction, PolicyChange, PolicyTransaction, PolicyTransactionBuf,
};

type FastMap<K, V> = HashMap<K, V, MapState>;

/// Rules of one or more schemas in one priority order, with their names.
#[derive(Clone, Debug)]
pub struct Policy {
    name: String,
    parts: Vec<RuleSet>,
    order: Vec<RuleId>,
    positions: Positions,
    actions: Vec<String>,
    action_ids: FastMap<String, ActionId>,
    names: FastMap<RuleId, Box<str>>,
}

impl Policy {
    /// Returns a policy over some schemas, without rules.
    ///
    /// # Panics
    /// If `schemas` is empty or has more than [`MAX_PARTS`].
    #[must_use]
    pub fn new(name: &str, schemas: &[Arc<Schema>]) -> Policy {
        assert!(
            (1..=MAX_PARTS).contains(&schemas.len()),
            "a policy has 1 to {MAX_PARTS} parts"
        );
        Policy {
            name: name.to_owned(),
            parts: schemas.iter().map(RuleSet::new).collect(),
            order: Vec::new(),
            positions: Positions::new(),
            actions: Vec::new(),
            action_ids: FastMap::default(),
            names: FastMap::default(),
        }
    }

    /// Returns a policy over one schema, without rules.
    #[must_use]
    pub fn single(schema: &Arc<Schema>) -> Policy {
        Policy::new(schema.name(), std::slice::from_ref(schema))
    }

    /// Returns a policy over IPv4 and IPv6 five-tuples, in this order of parts.
    #[must_use]
    pub fn dual_stack() -> Policy {
        Policy::new(
            Policy::DUAL_STACK,
            &[Schema::ipv4_5tuple(), Schema::ipv6_5tuple()],
        )
    }

    /// Returns a policy over the fields of firewall rules: [`Schema::acl_ipv4`] and
    /// [`Schema::acl_ipv6`], in this order of parts.
    #[must_use]
    pub fn acl() -> Policy {
        Policy::new(Policy::ACL, &[Schema::acl_ipv4(), Schema::acl_ipv6()])
    }

    /// Returns a policy whose parts are these rule sets. Rules with equal ids
    /// in several parts are one rule. In file order, the rules of the first
    /// part come first, then the rules that only later parts have, in the order
    /// of the parts.
    ///
    /// # Panics
    /// If `parts` is empty or has more than [`MAX_PARTS`].
    #[must_use]
    pub fn from_parts(name: &str, parts: Vec<RuleSet>) -> Policy {
        let schemas: Vec<_> = parts.iter().map(|part| Arc::clone(part.schema())).collect();
        let mut policy = Policy::new(name, &schemas);
        for rule in parts.iter().flat_map(RuleSet::iter) {
            if policy.positions.push(rule.id()) {
                policy.order.push(rule.id());
            }
        }
        policy.parts = parts;
        policy
    }

    /// The name of dual-stack policies in rule files.
    pub const DUAL_STACK: &'static str = "dual-5tuple";

    /// The name of [`acl`](Self::acl) policies in rule files.
    pub const ACL: &'static str = "acl";

    /// Returns the name of the schema, or of the combination of schemas.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the rules of all parts.
    #[must_use]
    pub fn parts(&self) -> &[RuleSet] {
        &self.parts
    }

    /// Returns the rules of one part.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn part(&self, part: PartId) -> &RuleSet {
        &self.parts[part.index()]
    }

    /// Returns the ids of the parts, in order.
    pub fn part_ids(&self) -> impl ExactSizeIterator<Item = PartId> + use<> {
        (0..self.parts.len()).map(PartId::from_index)
    }

    /// Returns the schemas of the parts, in order.
    pub fn schemas(&self) -> impl ExactSizeIterator<Item = &Arc<Schema>> {
        self.parts.iter().map(RuleSet::schema)
    }

    /// Returns the number of rules; a rule in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if the policy is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the ids of the rules in file order: the order in which they were
    /// added.
    #[must_use]
    pub fn ids(&self) -> &[RuleId] {
        &self.order
    }

    /// Returns the position in file order of the rule with this id, if there is
    /// one.
    #[must_use]
    pub fn position(&self, id: RuleId) -> Option<usize> {
        self.positions.get(id)
    }

    /// Returns the rule with this id, in each part that has it.
    pub fn rule(&self, id: RuleId) -> impl Iterator<Item = (PartId, RuleRef<'_>)> {
        self.part_ids()
            .filter_map(move |part| self.part(part).get(id).map(|rule| (part, rule)))
    }

    /// Returns the id of the action with this name, if it is declared.
    #[must_use]
    pub fn action_named(&self, name: &str) -> Option<ActionId> {
        self.action_ids.get(name).copied()
    }

    /// Declares an action and returns its id. If the action is already
    /// declared, returns its existing id.
    ///
    /// ```
    /// # use classyard::prelude::*;
    /// let mut policy = Policy::single(&Schema::ipv4_5tuple());
    /// assert_eq!(policy.action_named("allow"), None);
    /// let allow = policy.declare_action("allow");
    /// assert_eq!(policy.action_named("allow"), Some(allow));
    /// assert_eq!(policy.action_name(allow), Some("allow"));
    /// ```
    pub fn declare_action(&mut self, name: &str) -> ActionId {
        if let Some(id) = self.action_named(name) {
            return id;
        }
        let id = ActionId(u32::try_from(self.actions.len()).expect("fewer actions than rules"));
        self.actions.push(name.to_owned());
        self.action_ids.insert(name.to_owned(), id);
        id
    }

    /// Returns an action's name, if it has one.
    #[must_use]
    pub fn action_name(&self, id: ActionId) -> Option<&str> {
        self.actions.get(id.0 as usize).map(String::as_str)
    }

    /// Returns a rule's name, if it has one.
    #[must_use]
    pub fn rule_name(&self, id: RuleId) -> Option<&str> {
        self.names.get(&id).map(AsRef::as_ref)
    }

    /// Sets a rule's name.
    pub fn set_rule_name(&mut self, id: RuleId, name: &str) {
        self.names.insert(id, name.into());
    }

    /// Adds a rule. `matches` has the rule's matches for each of its parts.
    ///
    /// # Errors
    /// [`AddError`] if no part is given, a part is unknown or given twice, the
    /// matches are not a rule of a part's schema, or the id is in use in any
    /// part. Nothing is added then.
    pub fn add(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[(PartId, &[FieldMatch])],
    ) -> Result<(), AddError> {
        check_parts(id, matches.iter().map(|(part, _)| *part), self.parts.len())
            .map_err(AddError::Parts)?;
        self.check_free(id)?;
        // Check the later parts before changing the first part. The first part
        // checks its own matches, and changes nothing if they are invalid.
        for (part, matches) in &matches[1..] {
            let schema = Arc::clone(self.part(*part).schema());
            crate::model::rule::Rule::new(&schema, id, priority, action, matches)
                .map_err(AddError::Rule)?;
        }
        for (part, matches) in matches {
            self.parts[part.index()].add(id, priority, action, matches)?;
        }
        self.positions.push(id);
        self.order.push(id);
        Ok(())
    }

    /// Adds a rule in packed form: one form for each of its parts, all with one id, as
    /// [`rule`](Self::rule) returns them. Cookies are kept.
    ///
    /// # Errors
    /// [`AddError`] if no part is given, a part is unknown or given twice, the forms have
    /// different ids, a form has another schema than its part, or the id is in use. Nothing
    /// is added then.
    pub fn add_forms(&mut self, forms: &[(PartId, RuleRef<'_>)]) -> Result<(), AddError> {
        let checked = PolicyChange::Insert(forms).rule(self.parts.len());
        let (id, forms) = checked.map_err(AddError::Parts)?;
        self.check_free(id)?;
        for (part, rule) in forms {
            let schema = self.part(*part).schema();
            if rule.schema() != schema {
                return Err(AddError::Update(UpdateError::WrongSchema {
                    change: 0,
                    found: rule.schema().name().to_owned(),
                    expected: schema.name().to_owned(),
                }));
            }
        }
        for (part, rule) in forms {
            let added = self.parts[part.index()].push(*rule);
            added.expect("no part has a rule of an id that the policy does not have");
        }
        self.positions.push(id);
        self.order.push(id);
        Ok(())
    }

    /// Checks that no rule has this id.
    fn check_free(&self, id: RuleId) -> Result<(), AddError> {
        if self.positions.get(id).is_some() {
            return Err(AddError::Update(UpdateError::DuplicateId {
                change: 0,
                id: id.get(),
            }));
        }
        Ok(())
    }

    /// Reserves capacity for `rules` more rules.
    pub fn reserve(&mut self, rules: usize) {
        self.order.reserve(rules);
        if let [only] = self.parts.as_mut_slice() {
            only.reserve(rules);
        }
    }
}

/// Checks a rule's parts in a policy of `count` parts: at least one part, all
/// of them known, and none repeated.
fn check_parts(
    id: RuleId,
    parts: impl Iterator<Item = PartId>,
    count: usize,
) -> Result<(), PartError> {
    let mut named = [false; MAX_PARTS];
    for part in parts.map(PartId::index) {
        let id = id.get();
        if part >= count {
            return Err(PartError::Unknown {
                id,
                part,
                parts: count,
            });
        }
        if std::mem::replace(&mut named[part], true) {
            return Err(PartError::Repeated { id, part });
        }
    }
    if named.contains(&true) {
        Ok(())
    } else {
        Err(PartError::Missing)
    }
}

impl From<RuleSet> for Policy {
    /// Returns a policy with this rule set as its only part.
    fn from(rules: RuleSet) -> Policy {
        let name = rules.schema().name().to_owned();
        Policy::from_parts(&name, vec![rules])
    }
}

/// A sequence of headers for a policy. Each header belongs to one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTrace {
    parts: Vec<KeyVec>,
    /// The part of each header; empty if there is only one part.
    order: Vec<PartId>,
}

impl PolicyTrace {
    /// Returns a trace without headers, for parts with these schemas.
    #[must_use]
    pub fn new<'a>(schemas: impl Iterator<Item = &'a Arc<Schema>>) -> PolicyTrace {
        PolicyTrace {
            parts: schemas.map(KeyVec::new).collect(),
            order: Vec::new(),
        }
    }

    /// Adds a header: one value for each field of the part's schema.
    ///
    /// # Errors
    /// [`HeaderError`]; nothing is added then.
    ///
    /// # Panics
    /// If the part does not exist.
    pub fn push(&mut self, part: PartId, values: &[u128]) -> Result<(), HeaderError> {
        self.parts[part.index()].push(values)?;
        self.record(part);
        Ok(())
    }

    /// Adds a packed header.
    ///
    /// # Panics
    /// If the part does not exist, or the key has another width.
    pub fn push_key(&mut self, part: PartId, key: &[u64]) {
        self.parts[part.index()].push_key(key);
        self.record(part);
    }

    fn record(&mut self, part: PartId) {
        if self.parts.len() > 1 {
            self.order.push(part);
        }
    }

    /// Removes all headers and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.parts.iter_mut().for_each(KeyVec::clear);
        self.order.clear();
    }

    /// Returns the number of headers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(KeyVec::len).sum()
    }

    /// True if the trace is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(KeyVec::is_empty)
    }

    /// Returns the keys of one part, in order.
    ///
    /// # Panics
    /// If the part does not exist.
    #[must_use]
    pub fn part(&self, part: PartId) -> &KeyVec {
        &self.parts[part.index()]
    }

    /// Returns the keys of each part.
    pub fn parts(&self) -> impl Iterator<Item = (PartId, &KeyVec)> {
        self.parts
            .iter()
            .enumerate()
            .map(|(index, keys)| (PartId::from_index(index), keys))
    }

    /// Returns the part and the key of each header, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PartId, &[u64])> {
        let mut rows = vec![0; self.parts.len()];
        (0..self.len()).map(move |index| {
            let part = self.part_of(index);
            let row: &mut usize = &mut rows[part.index()];
            let key = self.parts[part.index()].key(*row);
            *row += 1;
            (part, key)
        })
    }

    /// Returns the part of the header at a position.
    ///
    /// # Panics
    /// If the position is out of range.
    #[must_use]
    pub fn part_of(&self, index: usize) -> PartId {
        if self.parts.len() == 1 {
            PartId::FIRST
        } else {
            self.order[index]
        }
    }
}

impl From<KeyVec> for PolicyTrace {
    /// Returns a trace of these keys in a single part.
    fn from(keys: KeyVec) -> PolicyTrace {
        PolicyTrace {
            parts: vec![keys],
            order: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
