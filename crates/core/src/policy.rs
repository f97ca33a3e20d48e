//! Policies: one priority order over rules of one or more schemas.
//!
//! A firewall has IPv4 and IPv6 rules in one list. Their headers differ, so a
//! *policy* keeps one [`RuleSet`] for each family, its *parts*, under one space
//! of ids and priorities; a rule that says nothing about addresses stands in
//! several parts under the same id. A header belongs to exactly one part, so
//! the winner among its part's rules is the winner of the policy. For a single
//! schema the policy has one part, and nothing else changes.
//!
//! A policy also carries what people call things: names of rules and actions.

use std::sync::Arc;

use hashbrown::HashMap;

pub use crate::part::{MAX_PARTS, PartId};

use crate::error::{HeaderError, PartError, UpdateError};
use crate::key::KeyVec;
use crate::positions::Positions;
use crate::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
use crate::ruleset::{AddError, RuleSet};
use crate::schema::Schema;
use crate::seed::MapState;

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
    /// A policy over some schemas, without rules.
    ///
    /// # Panics
    /// When there is no schema or more than [`MAX_PARTS`].
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

    /// A policy over one schema.
    #[must_use]
    pub fn single(schema: &Arc<Schema>) -> Policy {
        Policy::new(schema.name(), std::slice::from_ref(schema))
    }

    /// A policy over IPv4 and IPv6 five-tuples, in this order of parts.
    #[must_use]
    pub fn dual_stack() -> Policy {
        Policy::new(
            Policy::DUAL_STACK,
            &[Schema::ipv4_5tuple(), Schema::ipv6_5tuple()],
        )
    }

    /// A policy of rule sets that share one space of ids; rules with one id are
    /// one rule. File order is that of the first part, then what the second
    /// adds, and so on.
    ///
    /// # Panics
    /// When there is no rule set or more than [`MAX_PARTS`].
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

    /// The schema's name, or that of the combination.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parts' rules.
    #[must_use]
    pub fn parts(&self) -> &[RuleSet] {
        &self.parts
    }

    /// One part's rules.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn part(&self, part: PartId) -> &RuleSet {
        &self.parts[part.index()]
    }

    /// The parts' ids, in order.
    pub fn part_ids(&self) -> impl ExactSizeIterator<Item = PartId> + use<> {
        (0..self.parts.len()).map(PartId::from_index)
    }

    /// The parts' schemas, in order.
    pub fn schemas(&self) -> impl ExactSizeIterator<Item = &Arc<Schema>> {
        self.parts.iter().map(RuleSet::schema)
    }

    /// The number of rules; one that stands in several parts counts once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The rules' ids in the order in which they were added: file order.
    #[must_use]
    pub fn ids(&self) -> &[RuleId] {
        &self.order
    }

    /// A rule's position in file order, if there is a rule with that id.
    #[must_use]
    pub fn position(&self, id: RuleId) -> Option<usize> {
        self.positions.get(id)
    }

    /// The rule with that id in each part where it stands.
    pub fn rule(&self, id: RuleId) -> impl Iterator<Item = (PartId, RuleRef<'_>)> {
        self.part_ids()
            .filter_map(move |part| self.part(part).get(id).map(|rule| (part, rule)))
    }

    /// Returns the id of the action of that name, if it is declared.
    #[must_use]
    pub fn action_named(&self, name: &str) -> Option<ActionId> {
        self.action_ids.get(name).copied()
    }

    /// Declares an action and returns its id; of an action that is declared
    /// already, returns the id that it has.
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

    /// An action's name, if it has one.
    #[must_use]
    pub fn action_name(&self, id: ActionId) -> Option<&str> {
        self.actions.get(id.0 as usize).map(String::as_str)
    }

    /// A rule's name, if it has one.
    #[must_use]
    pub fn rule_name(&self, id: RuleId) -> Option<&str> {
        self.names.get(&id).map(AsRef::as_ref)
    }

    /// Names a rule.
    pub fn set_rule_name(&mut self, id: RuleId, name: &str) {
        self.names.insert(id, name.into());
    }

    /// Adds a rule: its matches in each part where it stands.
    ///
    /// # Errors
    /// [`AddError`] when no part is given, or one that is not there or is given
    /// twice; when the matches are no rule of a part's schema; or when the id is
    /// taken, in whatever part. Nothing is added then.
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
        // Check the later parts before the first is touched; the first part
        // checks its own matches, and changes nothing if they are wrong.
        for (part, matches) in &matches[1..] {
            let schema = Arc::clone(self.part(*part).schema());
            crate::rule::Rule::new(&schema, id, priority, action, matches)
                .map_err(AddError::Rule)?;
        }
        for (part, matches) in matches {
            self.parts[part.index()].add(id, priority, action, matches)?;
        }
        self.positions.push(id);
        self.order.push(id);
        Ok(())
    }

    /// Checks that no rule has that id.
    fn check_free(&self, id: RuleId) -> Result<(), AddError> {
        if self.positions.get(id).is_some() {
            return Err(AddError::Update(UpdateError::DuplicateId {
                change: 0,
                id: id.get(),
            }));
        }
        Ok(())
    }

    /// Makes room for that many more rules.
    pub fn reserve(&mut self, rules: usize) {
        self.order.reserve(rules);
        if let [only] = self.parts.as_mut_slice() {
            only.reserve(rules);
        }
    }
}

/// Checks that a rule's parts are there, at least one, each of them once, in a
/// policy of `count` parts.
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
    /// The policy with this one part.
    fn from(rules: RuleSet) -> Policy {
        let name = rules.schema().name().to_owned();
        Policy::from_parts(&name, vec![rules])
    }
}

/// Headers for a policy, in order, each of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTrace {
    parts: Vec<KeyVec>,
    /// The part of each header; empty while there is one part only.
    order: Vec<PartId>,
}

impl PolicyTrace {
    /// No headers yet, for parts with these schemas.
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
    /// When there is no such part.
    pub fn push(&mut self, part: PartId, values: &[u128]) -> Result<(), HeaderError> {
        self.parts[part.index()].push(values)?;
        self.record(part);
        Ok(())
    }

    /// Adds a header that is packed already.
    ///
    /// # Panics
    /// When there is no such part or the key is of another width.
    pub fn push_key(&mut self, part: PartId, key: &[u64]) {
        self.parts[part.index()].push_key(key);
        self.record(part);
    }

    fn record(&mut self, part: PartId) {
        if self.parts.len() > 1 {
            self.order.push(part);
        }
    }

    /// The number of headers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(KeyVec::len).sum()
    }

    /// Whether there is no header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(KeyVec::is_empty)
    }

    /// One part's keys, in order.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn part(&self, part: PartId) -> &KeyVec {
        &self.parts[part.index()]
    }

    /// Every part's keys.
    pub fn parts(&self) -> impl Iterator<Item = (PartId, &KeyVec)> {
        self.parts
            .iter()
            .enumerate()
            .map(|(index, keys)| (PartId::from_index(index), keys))
    }

    /// Part and key of each header, in order.
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

    /// The part of the header at a position.
    ///
    /// # Panics
    /// When there is no such header.
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
    /// The trace of these keys alone.
    fn from(keys: KeyVec) -> PolicyTrace {
        PolicyTrace {
            parts: vec![keys],
            order: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
