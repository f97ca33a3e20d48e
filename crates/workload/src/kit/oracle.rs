//! The definition of right answers: a plain list of rules that changes.
//!
//! Nothing here is clever. A rule is kept as what it demands of each field,
//! a header is compared value by value, and a transaction is made on a copy
//! that is kept only if every change went well. It shares no code with any
//! engine, nor with the packed form in which engines compare.

use std::sync::Arc;

use classyard::key::unpack;
use classyard::{
    Change, FieldId, FieldMatch, KeyVec, Limits, Rule, RuleId, RuleRef, RuleSet, Schema,
    Transaction, UpdateError, Winner,
};

/// A change that owns its rule.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedChange {
    /// Adds a rule with an id that is not there.
    Insert(Arc<Rule>),
    /// Removes the rule with an id.
    Remove(RuleId),
    /// Replaces the rule with the same id.
    Modify(Arc<Rule>),
}

impl OwnedChange {
    /// The change as classifiers take it.
    #[must_use]
    pub fn view(&self) -> Change<'_> {
        match self {
            OwnedChange::Insert(rule) => Change::Insert(rule.view()),
            OwnedChange::Remove(id) => Change::Remove(*id),
            OwnedChange::Modify(rule) => Change::Modify(rule.view()),
        }
    }
}

/// Changes as the transaction that classifiers take.
#[must_use]
pub fn transaction(changes: &[OwnedChange]) -> Transaction<'_> {
    let mut transaction = Transaction::new();
    for change in changes {
        transaction.push(change.view());
    }
    transaction
}

/// A rule as its demands.
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

/// Whether a value is one that a match admits.
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

/// A list of rules that changes.
#[derive(Clone, Debug)]
pub struct Oracle {
    schema: Arc<Schema>,
    limits: Limits,
    entries: Vec<Arc<Entry>>,
}

impl Oracle {
    /// The oracle of a rule set.
    #[must_use]
    pub fn new(rules: &RuleSet, limits: &Limits) -> Oracle {
        let owned = rules.iter().map(|rule| Arc::new(rule.to_rule()));
        Oracle::of_rules(rules.schema(), owned, limits)
    }

    /// The oracle of rules of one schema, whose ids must differ.
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

    /// The limits that updates keep to.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rules, in no particular order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Arc<Rule>> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// The rules as views.
    #[must_use]
    pub fn views(&self) -> Vec<RuleRef<'_>> {
        self.rules().map(|rule| rule.view()).collect()
    }

    /// The rule with that id, if there is one.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.rules().find(|rule| rule.view().id() == id)
    }

    /// Whether a rule has that id.
    #[must_use]
    pub fn contains(&self, id: RuleId) -> bool {
        self.get(id).is_some()
    }

    /// A copy of the rules, as engines are built from.
    ///
    /// # Panics
    /// When two rules share an id, which the constructors forbid.
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
    /// [`UpdateError`] names the first change that cannot be made: a rule of
    /// another schema, then an id that is there or is not, then one rule too
    /// many.
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

    /// The better of a candidate and the best rule that matches a key.
    #[must_use]
    pub fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let header = unpack(&self.schema, key);
        let better = |best: Winner, entry: &Arc<Entry>| {
            let wins = entry.winner.beats(best) && entry.matches(&self.schema, &header);
            if wins { entry.winner } else { best }
        };
        self.entries.iter().fold(best, better)
    }

    /// The best rule that matches a key.
    #[must_use]
    pub fn winner(&self, key: &[u64]) -> Winner {
        self.improve(key, Winner::MISS)
    }

    /// The best rule for each key of a batch.
    #[must_use]
    pub fn winners(&self, keys: &KeyVec) -> Vec<Winner> {
        keys.as_slice().iter().map(|key| self.winner(key)).collect()
    }

    /// All rules that match a key, best first.
    #[must_use]
    pub fn all_matches(&self, key: &[u64]) -> Vec<Winner> {
        let header = unpack(&self.schema, key);
        let matching = self.entries.iter();
        let mut found: Vec<Winner> = matching
            .filter(|entry| entry.matches(&self.schema, &header))
            .map(|entry| entry.winner)
            .collect();
        found.sort_by_key(|winner| winner.rank());
        found
    }

    /// Whether the rule with an id matches a key.
    #[must_use]
    pub fn matches(&self, id: RuleId, key: &[u64]) -> bool {
        let header = unpack(&self.schema, key);
        let entry = self.entries.iter().find(|e| e.winner.rule() == Some(id));
        entry.is_some_and(|entry| entry.matches(&self.schema, &header))
    }

    /// A header that proves a mask wrong: it agrees with the key on the mask's
    /// bits, and yet the candidate `best` improves to something else. `None`
    /// if there is no such header at all, so that the mask is right.
    ///
    /// This is exact, not a matter of samples: the headers that agree on a mask
    /// are a box of fields, and for each rule it is decided whether it meets
    /// that box, and whether the winner fills it.
    #[must_use]
    pub fn escape(&self, key: &[u64], mask: &[u64], best: Winner) -> Option<Vec<u128>> {
        let rules = self.entries.iter();
        let rules = rules.map(|entry| (entry.winner, |id: FieldId| entry.matches[id.index()]));
        let outcome = self.improve(key, best);
        escape(&self.schema, rules, key, mask, best, outcome)
    }
}

/// [`Oracle::escape`] over any rules, each its rank and what it demands of a
/// field, with the right outcome known.
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

/// All headers that agree with one on the known bits.
struct Block<'a> {
    schema: &'a Schema,
    header: Vec<u128>,
    known: Vec<u128>,
}

impl Block<'_> {
    /// One of them that matches the rule.
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

    /// One of them that does not match the rule, which the first one does.
    fn leaving(&self, matches: impl Fn(FieldId) -> FieldMatch) -> Option<Vec<u128>> {
        self.schema.field_ids().find_map(|id| {
            let (value, known) = (self.header[id.index()], self.known[id.index()]);
            let free = self.schema.field(id).max_value() & !known;
            let outside = match matches(id) {
                FieldMatch::Any => None,
                FieldMatch::Range { low, high } => {
                    let ends = [value & known, (value & known) | free];
                    ends.into_iter().find(|&end| end < low || end > high)
                }
                other => {
                    let (_, mask) = self.as_bits(id, other);
                    (mask & free != 0).then_some(value ^ (mask & free))
                }
            };
            let mut changed = self.header.clone();
            changed[id.index()] = outside?;
            Some(changed)
        })
    }

    /// A match that is no range, as value and mask.
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

/// The smallest value from `low` up to `full` that has `fixed` on the bits of
/// `mask`.
fn smallest_from(low: u128, fixed: u128, mask: u128, full: u128) -> Option<u128> {
    if low & mask == fixed {
        return Some(low);
    }
    // A larger value agrees with `low` above some bit, has a one there where
    // `low` has a zero, and is as small as may be below. The lower the bit,
    // the smaller the value.
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
    use crate::kit::random::{Dice, RuleMaker, SeededDice, draw_header, random_schema};
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
                let all = oracle.all_matches(key);
                assert_eq!(
                    all.first().copied().unwrap_or(Winner::MISS),
                    rules.scan(key)
                );
                assert_eq!(all.len(), rules.iter().filter(|r| r.matches(key)).count());
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
        let mut all = KeyVec::new(&schema);
        for header in 0u128..1 << 10 {
            let values = [header & 15, header >> 4 & 7, header >> 7 & 3, header >> 9];
            all.push(&values).unwrap();
        }
        let mut dice = SeededDice::new(13);
        let dice: &mut dyn Dice = &mut dice;
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..300 {
            let rules = RuleMaker::new(&schema, dice).rule_set(6, dice);
            let oracle = Oracle::new(&rules, &Limits::default());
            for _ in 0..20 {
                let key = all.key(dice.below(all.len()));
                let mask = all.key(dice.below(all.len()));
                let mask = [mask[0] | all.key(dice.below(all.len()))[0]];
                let best = match dice.below(3) {
                    0 => Winner::MISS,
                    _ => Winner::new(Priority(2), RuleId::from_index(500)),
                };
                let outcome = oracle.improve(key, best);
                let agreeing = all.as_slice().iter();
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
