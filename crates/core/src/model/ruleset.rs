//! Rule sets: the packed rules of one schema.

use std::sync::Arc;

use crate::model::error::{PartError, RuleError, UpdateError};
use crate::model::positions::Positions;
use crate::model::rule::{
    ActionId, FieldMatch, Priority, Rule, RuleId, RuleRef, Winner, pack_into,
};
use crate::model::schema::Schema;

/// The rules of one schema, in insertion order. Ids are unique.
///
/// The words of all rules are in one allocation, [`Schema::rule_words`] words
/// for each rule. A million IPv4 rules take 52 MB.
#[derive(Clone, Debug)]
pub struct RuleSet {
    schema: Arc<Schema>,
    words: Vec<u64>,
    winners: Vec<Winner>,
    actions: Vec<ActionId>,
    /// Empty while all cookies are 0.
    cookies: Vec<u64>,
    positions: Positions,
}

impl RuleSet {
    /// Returns an empty rule set.
    #[must_use]
    pub fn new(schema: &Arc<Schema>) -> RuleSet {
        RuleSet {
            schema: Arc::clone(schema),
            words: Vec::new(),
            winners: Vec::new(),
            actions: Vec::new(),
            cookies: Vec::new(),
            positions: Positions::new(),
        }
    }

    /// Reserves capacity for `rules` more rules.
    pub fn reserve(&mut self, rules: usize) {
        self.words.reserve(rules * self.schema.rule_words());
        self.winners.reserve(rules);
        self.actions.reserve(rules);
        if !self.cookies.is_empty() {
            self.cookies.reserve(rules);
        }
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// [`UpdateError`] if the id is in use or the rule has another schema;
    /// nothing is added then.
    pub fn push(&mut self, rule: RuleRef<'_>) -> Result<(), UpdateError> {
        if !Arc::ptr_eq(rule.schema, &self.schema) && rule.schema != &self.schema {
            return Err(UpdateError::WrongSchema {
                change: 0,
                found: rule.schema.name().to_owned(),
                expected: self.schema.name().to_owned(),
            });
        }
        self.claim_id(rule.id)?;
        self.words.extend_from_slice(rule.words);
        self.winners.push(rule.winner());
        self.actions.push(rule.action);
        self.push_cookie(rule.cookie);
        Ok(())
    }

    /// Packs and adds a rule without creating a [`Rule`]. Its cookie is 0.
    ///
    /// # Errors
    /// [`AddError`] if the matches are not a rule of this schema or the id is
    /// in use; nothing is added then.
    pub fn add(
        &mut self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[FieldMatch],
    ) -> Result<(), AddError> {
        let start = self.words.len();
        self.words.resize(start + self.schema.rule_words(), 0);
        let packed = pack_into(&self.schema, matches, &mut self.words[start..])
            .map_err(AddError::Rule)
            .and_then(|()| self.claim_id(id).map_err(AddError::Update));
        if let Err(error) = packed {
            self.words.truncate(start);
            return Err(error);
        }
        self.winners.push(Winner::new(priority, id));
        self.actions.push(action);
        self.push_cookie(0);
        Ok(())
    }

    /// Stores the cookie of the rule that was added last.
    fn push_cookie(&mut self, cookie: u64) {
        if cookie != 0 && self.cookies.is_empty() {
            self.cookies.reserve(self.winners.capacity());
            self.cookies.resize(self.winners.len() - 1, 0);
        }
        if cookie != 0 || !self.cookies.is_empty() {
            self.cookies.push(cookie);
        }
    }

    fn claim_id(&mut self, id: RuleId) -> Result<(), UpdateError> {
        if self.positions.push(id) {
            Ok(())
        } else {
            Err(UpdateError::DuplicateId {
                change: 0,
                id: id.get(),
            })
        }
    }

    /// Returns the schema for which the rules are packed.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.winners.len()
    }

    /// True if the rule set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.winners.is_empty()
    }

    /// Returns the rule at a position, in insertion order.
    ///
    /// # Panics
    /// If the position is out of range.
    #[must_use]
    pub fn rule(&self, index: usize) -> RuleRef<'_> {
        let width = self.schema.rule_words();
        let winner = self.winners[index];
        let identity = winner.rule().zip(winner.priority());
        let (id, priority) = identity.expect("no rule's winner is a miss");
        RuleRef {
            schema: &self.schema,
            id,
            priority,
            action: self.actions[index],
            cookie: self.cookies.get(index).copied().unwrap_or(0),
            words: &self.words[index * width..(index + 1) * width],
        }
    }

    /// Returns an iterator over all rules, in insertion order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RuleRef<'_>> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|index| self.rule(index))
    }

    /// Returns the position of the rule with this id, if there is one.
    #[must_use]
    pub fn position(&self, id: RuleId) -> Option<usize> {
        self.positions.get(id)
    }

    /// Returns the rule with this id, if there is one.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<RuleRef<'_>> {
        self.position(id).map(|position| self.rule(position))
    }

    /// Compares every rule with a key and returns the best rule that matches.
    /// The answers of every engine must equal the answers of this function.
    #[must_use]
    pub fn scan(&self, key: &[u64]) -> Winner {
        self.iter()
            .filter(|rule| rule.matches(key))
            .fold(Winner::MISS, |best, rule| best.or(rule.winner()))
    }

    /// Returns the positions of all rules, best first.
    #[must_use]
    pub fn by_rank(&self) -> Vec<u32> {
        let count = u32::try_from(self.len()).expect("fewer rules than ids");
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|&i| self.winners[i as usize].rank());
        order
    }

    /// Returns for each rule the outcome of a lookup that it wins, in insertion
    /// order.
    pub(crate) fn winners(&self) -> &[Winner] {
        &self.winners
    }

    /// Returns the bytes held, including unused capacity.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.winners.capacity() * size_of::<Winner>()
            + self.actions.capacity() * size_of::<ActionId>()
            + self.cookies.capacity() * size_of::<u64>()
            + self.positions.bytes()
    }
}

/// [`RuleSet::add`] or [`Policy::add`](crate::policy::Policy::add) refused a
/// rule. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The matches are not a rule of the schema.
    #[error(transparent)]
    Rule(RuleError),
    /// The id is in use.
    #[error(transparent)]
    Update(UpdateError),
    /// The list of parts is invalid.
    #[error(transparent)]
    Parts(PartError),
}

impl Extend<Rule> for RuleSet {
    /// Adds rules.
    ///
    /// # Panics
    /// If an id is in use or a rule has another schema.
    fn extend<T: IntoIterator<Item = Rule>>(&mut self, rules: T) {
        for rule in rules {
            self.push(rule.view())
                .expect("rules of this schema with fresh ids");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_however_they_come() {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let any = [FieldMatch::Any; 5];
        let mut add =
            |id: u32| rules.add(RuleId::new(id).unwrap(), Priority(id), ActionId(0), &any);
        assert!(add(0).is_ok());
        assert!(add(1).is_ok());
        assert!(add(1).is_err());
        assert!(add(7).is_ok());
        assert!(add(2).is_ok());
        assert!(add(7).is_err());
        assert!(add(0).is_err());
        assert_eq!(rules.len(), 4);
        assert_eq!(rules.position(RuleId::new(7).unwrap()), Some(2));
        assert_eq!(rules.position(RuleId::new(3).unwrap()), None);
        assert_eq!(
            rules.get(RuleId::new(2).unwrap()).unwrap().priority(),
            Priority(2)
        );
    }

    #[test]
    fn cookies_are_kept_and_cost_nothing_where_there_are_none() {
        let schema = Schema::ipv4_5tuple();
        let any = [FieldMatch::Any; 5];
        let rule = |id: usize, cookie| {
            let id = RuleId::from_index(id);
            let rule = Rule::new(&schema, id, Priority(1), ActionId(2), &any).unwrap();
            rule.with_cookie(cookie)
        };
        let mut rules = RuleSet::new(&schema);
        rules.push(rule(0, 0).view()).unwrap();
        rules
            .add(RuleId::from_index(1), Priority(1), ActionId(2), &any)
            .unwrap();
        assert_eq!(rules.cookies.capacity(), 0);
        rules.push(rule(2, u64::MAX).view()).unwrap();
        assert!(rules.push(rule(2, 5).view()).is_err());
        rules
            .add(RuleId::from_index(3), Priority(1), ActionId(2), &any)
            .unwrap();
        rules.push(rule(4, 7).view()).unwrap();
        let copy = rules.clone();
        let cookies = copy.iter().map(|rule| rule.cookie());
        assert_eq!(cookies.collect::<Vec<_>>(), [0, 0, u64::MAX, 0, 7]);
        assert_eq!(rules.rule(2).to_rule(), rule(2, u64::MAX));
        assert_ne!(rules.rule(2).to_rule(), rule(2, 7));
    }

    #[test]
    fn a_refused_rule_leaves_nothing_behind() {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut bad = [FieldMatch::Any; 5];
        bad[2] = FieldMatch::Range { low: 2, high: 1 };
        assert!(
            rules
                .add(RuleId::from_index(0), Priority(1), ActionId(0), &bad)
                .is_err()
        );
        assert_eq!((rules.len(), rules.words.len()), (0, 0));
    }
}
