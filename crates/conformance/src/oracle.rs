//! The definition of right answers: a plain list of rules with updates.
//!
//! The code is deliberately simple. A rule is stored as one match per field, and a header
//! is compared value by value. A transaction changes a copy, which replaces the list only
//! if every change succeeds. The oracle shares no code with any engine, nor with the
//! comparison of packed keys that engines use.

use std::sync::Arc;

use classyard::key::unpack;
use classyard::{
    Change, FieldId, FieldMatch, KeyVec, Limits, Rule, RuleId, RuleRef, RuleSet, Schema,
    Transaction, UpdateError, Winner,
};

/// A change that owns its rule.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedChange {
    /// Adds a rule with an unused id.
    Insert(Arc<Rule>),
    /// Removes the rule with an id.
    Remove(RuleId),
    /// Replaces the rule with the same id.
    Modify(Arc<Rule>),
}

impl OwnedChange {
    /// Returns the change in the form that classifiers accept.
    #[must_use]
    pub fn view(&self) -> Change<'_> {
        match self {
            OwnedChange::Insert(rule) => Change::Insert(rule.view()),
            OwnedChange::Remove(id) => Change::Remove(*id),
            OwnedChange::Modify(rule) => Change::Modify(rule.view()),
        }
    }
}

/// Returns changes as a transaction for classifiers.
#[must_use]
pub fn transaction(changes: &[OwnedChange]) -> Transaction<'_> {
    let mut transaction = Transaction::new();
    for change in changes {
        transaction.push(change.view());
    }
    transaction
}

/// A rule with its matches, unpacked.
#[derive(Debug)]
struct Entry {
    rule: Arc<Rule>,
    winner: Winner,
    matches: Vec<FieldMatch>,
}

impl Entry {
    fn new(rule: &Arc<Rule>) -> Arc<Entry> {
        Arc::new(Entry {
            rule: Arc::clone(rule),
            winner: rule.view().winner(),
            matches: rule.view().fields(),
        })
    }

    fn matches(&self, schema: &Schema, header: &[u128]) -> bool {
        let fields = schema.fields().iter().zip(&self.matches).zip(header);
        fields
            .into_iter()
            .all(|((field, wanted), &value)| admits(*wanted, field.width(), value))
    }
}

/// True if a match accepts the value `found`.
fn admits(wanted: FieldMatch, width: u32, found: u128) -> bool {
    match wanted {
        FieldMatch::Any => true,
        FieldMatch::Exact(value) => found == value,
        FieldMatch::Prefix { length: 0, .. } => true,
        FieldMatch::Prefix { value, length } => {
            found >> (width - length) == value >> (width - length)
        }
        FieldMatch::Range { low, high } => low <= found && found <= high,
        FieldMatch::Ternary { value, mask } => found & mask == value & mask,
    }
}

/// A list of rules with updates.
#[derive(Clone, Debug)]
pub struct Oracle {
    schema: Arc<Schema>,
    limits: Limits,
    entries: Vec<Arc<Entry>>,
}

impl Oracle {
    /// Returns the oracle of a rule set.
    #[must_use]
    pub fn new(rules: &RuleSet, limits: &Limits) -> Oracle {
        let owned = rules.iter().map(|rule| Arc::new(rule.to_rule()));
        Oracle::of_rules(rules.schema(), owned, limits)
    }

    /// Returns the oracle of rules of a schema. Their ids must differ.
    #[must_use]
    pub fn of_rules(
        schema: &Arc<Schema>,
        rules: impl IntoIterator<Item = Arc<Rule>>,
        limits: &Limits,
    ) -> Oracle {
        Oracle {
            schema: Arc::clone(schema),
            limits: *limits,
            entries: rules.into_iter().map(|rule| Entry::new(&rule)).collect(),
        }
    }

    /// The rules' schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The limits of updates.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the oracle has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the rules, in no particular order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Arc<Rule>> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// Returns views of the rules.
    #[must_use]
    pub fn views(&self) -> Vec<RuleRef<'_>> {
        self.rules().map(|rule| rule.view()).collect()
    }

    /// Returns the rule with that id, if there is one.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.rules().find(|rule| rule.view().id() == id)
    }

    /// True if a rule has that id.
    #[must_use]
    pub fn contains(&self, id: RuleId) -> bool {
        self.get(id).is_some()
    }

    /// Returns a copy of the rules, for building engines.
    ///
    /// # Panics
    /// If two rules share an id, which the constructors forbid.
    #[must_use]
    pub fn to_rule_set(&self) -> RuleSet {
        let mut rules = RuleSet::new(&self.schema);
        rules.reserve(self.len());
        for rule in self.rules() {
            rules.push(rule.view()).expect("ids differ");
        }
        rules
    }

    /// Makes all changes, in order, or none.
    ///
    /// # Errors
    /// [`UpdateError`] names the first change that cannot be made. A change is checked for
    /// a rule of another schema, then for a used or unknown id, then for too many rules.
    pub fn apply(&mut self, changes: &[OwnedChange]) -> Result<(), UpdateError> {
        let mut entries = self.entries.clone();
        for (change, wanted) in changes.iter().enumerate() {
            self.make(&mut entries, change, wanted)?;
        }
        self.entries = entries;
        Ok(())
    }

    fn make(
        &self,
        entries: &mut Vec<Arc<Entry>>,
        change: usize,
        wanted: &OwnedChange,
    ) -> Result<(), UpdateError> {
        if let OwnedChange::Insert(rule) | OwnedChange::Modify(rule) = wanted
            && rule.view().schema() != &self.schema
        {
            return Err(UpdateError::WrongSchema {
                change,
                found: rule.view().schema().name().to_owned(),
                expected: self.schema.name().to_owned(),
            });
        }
        let id = wanted.view().id();
        let position = entries
            .iter()
            .position(|entry| entry.winner.rule() == Some(id));
        match (wanted, position) {
            (OwnedChange::Insert(rule), None) => {
                entries.push(Entry::new(rule));
                if entries.len() > self.limits.rules {
                    return Err(UpdateError::TooManyRules {
                        change,
                        found: entries.len(),
                        limit: self.limits.rules,
                    });
                }
            }
            (OwnedChange::Insert(_), Some(_)) => {
                return Err(UpdateError::DuplicateId {
                    change,
                    id: id.get(),
                });
            }
            (OwnedChange::Remove(_), Some(position)) => {
                entries.swap_remove(position);
            }
            (OwnedChange::Modify(rule), Some(position)) => entries[position] = Entry::new(rule),
            (OwnedChange::Remove(_) | OwnedChange::Modify(_), None) => {
                let removal = matches!(wanted, OwnedChange::Remove(_));
                return Err(UpdateError::UnknownId {
                    change,
                    operation: if removal { "remove" } else { "modify" },
                    id: id.get(),
                });
            }
        }
        Ok(())
    }

    /// Returns the better of a candidate and the best rule that matches a key.
    #[must_use]
    pub fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let header = unpack(&self.schema, key);
        let better = |best: Winner, entry: &Arc<Entry>| {
            let wins = entry.winner.beats(best) && entry.matches(&self.schema, &header);
            if wins { entry.winner } else { best }
        };
        self.entries.iter().fold(best, better)
    }

    /// Returns the best rule that matches a key.
    #[must_use]
    pub fn winner(&self, key: &[u64]) -> Winner {
        self.improve(key, Winner::MISS)
    }

    /// Returns the best rule for each key of a batch.
    #[must_use]
    pub fn winners(&self, keys: &KeyVec) -> Vec<Winner> {
        keys.as_slice().iter().map(|key| self.winner(key)).collect()
    }

    /// Returns all rules that match a key, best first.
    #[must_use]
    pub fn all_matches(&self, key: &[u64]) -> Vec<Winner> {
        let header = unpack(&self.schema, key);
        let matching = self.entries.iter();
        let mut winners: Vec<Winner> = matching
            .filter(|entry| entry.matches(&self.schema, &header))
            .map(|entry| entry.winner)
            .collect();
        winners.sort_by_key(|winner| winner.rank());
        winners
    }

    /// True if the rule with an id matches a key.
    #[must_use]
    pub fn matches(&self, id: RuleId, key: &[u64]) -> bool {
        let header = unpack(&self.schema, key);
        let entry = self.entries.iter().find(|e| e.winner.rule() == Some(id));
        entry.is_some_and(|entry| entry.matches(&self.schema, &header))
    }

    /// Returns a header that proves a mask wrong: it equals the key on the mask's bits, but
    /// the candidate `best` improves to another winner. Returns `None` if no such header
    /// exists; then the mask is right.
    ///
    /// The check is exact and needs no samples. The headers that equal the key on the
    /// mask's bits form a block, field by field. For each better rule, this function
    /// checks that it does not overlap the block; for the winner, that it covers the block.
    #[must_use]
    pub fn escape(&self, key: &[u64], mask: &[u64], best: Winner) -> Option<Vec<u128>> {
        let rules = self.entries.iter();
        let rules = rules.map(|entry| (entry.winner, |id: FieldId| entry.matches[id.index()]));
        let outcome = self.improve(key, best);
        escape(&self.schema, rules, key, mask, best, outcome)
    }
}

/// [`Oracle::escape`] for any rules, each given by its rank and a function that returns its
/// match of a field. `outcome` is the right outcome for the key.
pub(crate) fn escape<M: Fn(FieldId) -> FieldMatch>(
    schema: &Schema,
    rules: impl Iterator<Item = (Winner, M)>,
    key: &[u64],
    mask: &[u64],
    best: Winner,
    outcome: Winner,
) -> Option<Vec<u128>> {
    let around = Block {
        schema,
        header: unpack(schema, key),
        known: unpack(schema, mask),
    };
    for (winner, matches) in rules {
        let escape = if winner.beats(outcome) {
            // No better rule may match anywhere.
            around.meeting(matches)
        } else if winner == outcome && outcome != best {
            // The winner must match everywhere.
            around.leaving(matches)
        } else {
            None
        };
        if escape.is_some() {
            return escape;
        }
    }
    None
}

/// The block of all headers that equal `header` on the bits of `known`.
struct Block<'a> {
    schema: &'a Schema,
    header: Vec<u128>,
    known: Vec<u128>,
}

impl Block<'_> {
    /// Returns a header of the block that matches the rule, if there is one.
    fn meeting(&self, matches: impl Fn(FieldId) -> FieldMatch) -> Option<Vec<u128>> {
        self.schema
            .field_ids()
            .map(|id| {
                let (value, known) = (self.header[id.index()], self.known[id.index()]);
                match matches(id) {
                    FieldMatch::Any => Some(value),
                    FieldMatch::Range { low, high } => {
                        let full = self.schema.field(id).max_value();
                        smallest_from(low, value & known, known, full).filter(|&v| v <= high)
                    }
                    other => {
                        let (wanted, mask) = self.as_bits(id, other);
                        let conflict = (wanted ^ value) & mask & known != 0;
                        (!conflict).then_some((value & !mask) | (wanted & mask))
                    }
                }
            })
            .collect()
    }

    /// Returns a header of the block that does not match the rule, if there is one. The
    /// block's own `header` must match the rule.
    fn leaving(&self, matches: impl Fn(FieldId) -> FieldMatch) -> Option<Vec<u128>> {
        self.schema.field_ids().find_map(|id| {
            let (value, known) = (self.header[id.index()], self.known[id.index()]);
            let open_bits = self.schema.field(id).max_value() & !known;
            let outside = match matches(id) {
                FieldMatch::Any => None,
                FieldMatch::Range { low, high } => {
                    let ends = [value & known, (value & known) | open_bits];
                    ends.into_iter().find(|&end| end < low || end > high)
                }
                other => {
                    let (_, mask) = self.as_bits(id, other);
                    (mask & open_bits != 0).then_some(value ^ (mask & open_bits))
                }
            };
            let mut changed = self.header.clone();
            changed[id.index()] = outside?;
            Some(changed)
        })
    }

    /// Returns value and mask of a match other than a range.
    fn as_bits(&self, id: FieldId, wanted: FieldMatch) -> (u128, u128) {
        let field = self.schema.field(id);
        let full = field.max_value();
        match wanted {
            FieldMatch::Any | FieldMatch::Range { .. } => (0, 0),
            FieldMatch::Exact(value) => (value, full),
            FieldMatch::Ternary { value, mask } => (value, mask),
            FieldMatch::Prefix { length: 0, .. } => (0, 0),
            FieldMatch::Prefix { value, length } => (
                value,
                full >> (field.width() - length) << (field.width() - length),
            ),
        }
    }
}

/// Returns the smallest value from `low` to `full` whose bits under `mask` equal `fixed`.
fn smallest_from(low: u128, fixed: u128, mask: u128, full: u128) -> Option<u128> {
    if low & mask == fixed {
        return Some(low);
    }
    // A larger value equals `low` above some bit, has a 1 at this bit where `low` has a 0,
    // and is minimal below it. The lower the bit, the smaller the value.
    (0..128 - full.leading_zeros())
        .map(|bit| (1u128 << bit, (1u128 << bit) - 1))
        .find(|(one, below)| {
            let above = !(one | below);
            let agrees = low & mask & above == fixed & above;
            agrees && low & one == 0 && (mask & one == 0 || fixed & one != 0)
        })
        .map(|(one, below)| (low & !(one | below)) | one | (fixed & below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Dice, RuleMaker, SeededDice, draw_header, random_schema};
    use classyard::{ActionId, Field, MatchKind, Priority};

    #[test]
    fn the_oracle_agrees_with_the_packed_scan() {
        let mut dice = SeededDice::new(11);
        for _ in 0..100 {
            let schema = random_schema(&mut dice);
            let rules = RuleMaker::new(&schema, &mut dice).rule_set(30, &mut dice);
            let oracle = Oracle::new(&rules, &Limits::default());
            let views = oracle.views();
            let mut keys = KeyVec::new(&schema);
            for _ in 0..30 {
                keys.push(&draw_header(&schema, &views, &mut dice)).unwrap();
            }
            for key in keys.as_slice().iter() {
                assert_eq!(oracle.winner(key), rules.scan(key));
                let matches = oracle.all_matches(key);
                assert_eq!(
                    matches.first().copied().unwrap_or(Winner::MISS),
                    rules.scan(key)
                );
                let count = rules.iter().filter(|r| r.matches(key)).count();
                assert_eq!(matches.len(), count);
            }
        }
    }

    #[test]
    fn escapes_are_found_exactly_when_enumeration_finds_one() {
        let schema = Schema::new(
            "tiny",
            vec![
                Field::new("r", 4, MatchKind::Range),
                Field::new("t", 3, MatchKind::Ternary),
                Field::new("p", 2, MatchKind::Prefix),
                Field::new("e", 1, MatchKind::Exact),
            ],
        )
        .unwrap();
        let mut every_key = KeyVec::new(&schema);
        for header in 0u128..1 << 10 {
            let values = [header & 15, header >> 4 & 7, header >> 7 & 3, header >> 9];
            every_key.push(&values).unwrap();
        }
        let mut dice = SeededDice::new(13);
        let dice: &mut dyn Dice = &mut dice;
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..300 {
            let rules = RuleMaker::new(&schema, dice).rule_set(6, dice);
            let oracle = Oracle::new(&rules, &Limits::default());
            for _ in 0..20 {
                let key = every_key.key(dice.below(every_key.len()));
                let mask = every_key.key(dice.below(every_key.len()));
                let mask = [mask[0] | every_key.key(dice.below(every_key.len()))[0]];
                let best = match dice.below(3) {
                    0 => Winner::MISS,
                    _ => Winner::new(Priority(2), RuleId::from_index(500)),
                };
                let outcome = oracle.improve(key, best);
                let agreeing = every_key.as_slice().iter();
                let differs = agreeing
                    .filter(|other| (other[0] ^ key[0]) & mask[0] == 0)
                    .any(|other| oracle.improve(other, best) != outcome);
                let escape = oracle.escape(key, &mask, best);
                assert_eq!(escape.is_some(), differs);
                if let Some(header) = escape {
                    let mut keys = KeyVec::new(&schema);
                    keys.push(&header).unwrap();
                    assert_eq!((keys.key(0)[0] ^ key[0]) & mask[0], 0);
                    assert_ne!(oracle.improve(keys.key(0), best), outcome);
                    wrong += 1;
                } else {
                    right += 1;
                }
            }
        }
        assert!(right > 500 && wrong > 500, "{right} {wrong}");
    }

    #[test]
    fn a_refused_transaction_changes_nothing() {
        let schema = Schema::ipv4_5tuple();
        let rule = |id: u32| {
            let any = [FieldMatch::Any; 5];
            let id = RuleId::new(id).unwrap();
            Arc::new(Rule::new(&schema, id, Priority(1), ActionId(0), &any).unwrap())
        };
        let limits = Limits::default().with_rules(2);
        let mut oracle = Oracle::of_rules(&schema, [rule(1)], &limits);
        let (one, two, three) = (rule(1), rule(2), rule(3));
        use OwnedChange::{Insert, Modify, Remove};
        let refused: [&[OwnedChange]; 4] = [
            &[Insert(two.clone()), Insert(two.clone())],
            &[Insert(two.clone()), Insert(three.clone())],
            &[Remove(one.view().id()), Modify(one.clone())],
            &[Remove(one.view().id()), Remove(one.view().id())],
        ];
        for changes in refused {
            let expected =
                transaction(changes).validate(&schema, &limits, 1, &|| 0, &|id| id.get() == 1);
            assert!(expected.is_err());
            assert_eq!(oracle.apply(changes), expected);
            assert!(oracle.len() == 1 && oracle.contains(one.view().id()));
        }
        let swap = [Remove(one.view().id()), Insert(two), Insert(three)];
        assert_eq!(oracle.apply(&swap), Ok(()));
        assert_eq!(oracle.len(), 2);
    }
}
