//! Rules, transactions and batches shared by tests of the live table.

// Each test uses only some items.
#![allow(dead_code)]

use std::collections::BTreeMap;

use classyard::author::splitmix;
use classyard::table::Guard;
use classyard::*;

/// A random number generator with a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound as u64).unwrap()
    }
}

/// A change that owns its rule.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Insert(Rule),
    Remove(RuleId),
    Modify(Rule),
}

pub(crate) fn transaction(changes: &[Owned]) -> Transaction<'_> {
    let mut transaction = Transaction::new();
    for change in changes {
        match change {
            Owned::Insert(rule) => transaction.insert(rule.view()),
            Owned::Remove(id) => transaction.remove(*id),
            Owned::Modify(rule) => transaction.modify(rule.view()),
        };
    }
    transaction
}

/// Ids of the two marker rules. Every transaction leaves both in place; some
/// replace them by removing both first.
pub(crate) const MARKERS: [u32; 2] = [0, 1];

pub(crate) fn id(number: u32) -> RuleId {
    RuleId::new(number).unwrap()
}

/// Returns a rule over a small space, so that rules overlap.
pub(crate) fn random_rule(number: u32, dice: &mut Dice) -> Rule {
    let mut address = |base: u128| FieldMatch::Prefix {
        value: base + u128::from((dice.roll() % 16) << 24),
        length: [0, 4, 6, 8][dice.below(4)],
    };
    let (src, dst) = (address(0), address(0));
    let low = u128::from(dice.roll() % 8);
    let matches = [
        src,
        dst,
        FieldMatch::Any,
        match dice.below(3) {
            0 => FieldMatch::Any,
            1 => FieldMatch::Exact(low),
            _ => FieldMatch::Range { low, high: low + 3 },
        },
        FieldMatch::Any,
    ];
    let priority = Priority(u32::try_from(dice.below(20)).unwrap());
    let action = random_action(dice);
    Rule::new(
        &Schema::ipv4_5tuple(),
        id(number),
        priority,
        action,
        &matches,
    )
    .unwrap()
    .with_cookie(random_cookie(dice))
}

/// Returns a random action. There are 2³², so that two actions are seldom
/// equal.
pub(crate) fn random_action(dice: &mut Dice) -> ActionId {
    ActionId(u32::try_from(dice.roll() >> 32).unwrap())
}

/// Returns 0 most of the time.
pub(crate) fn random_cookie(dice: &mut Dice) -> u64 {
    [0, 0, 0, 1 << 32, dice.roll()][dice.below(5)]
}

/// Returns the rule with another action and cookie.
pub(crate) fn with_other_action(rule: &Rule, dice: &mut Dice) -> Rule {
    let (rule, action) = (rule.view(), random_action(dice));
    let (schema, id) = (rule.schema(), rule.id());
    let changed = Rule::new(schema, id, rule.priority(), action, &rule.fields());
    changed.unwrap().with_cookie(random_cookie(dice))
}

/// Returns a marker for address 0 or 1, with this action.
fn marker(which: usize, address: usize, action: ActionId) -> Rule {
    let mut matches = [FieldMatch::Any; 5];
    matches[1] = FieldMatch::Exact(FIRST_MARKER_ADDRESS + address as u128);
    let priority = Priority(1000);
    Rule::new(
        &Schema::ipv4_5tuple(),
        id(MARKERS[which]),
        priority,
        action,
        &matches,
    )
    .unwrap()
}

/// The markers have this address and the next.
const FIRST_MARKER_ADDRESS: u128 = 0xc0a8_0000;

/// The current rules, and random transactions that change them.
pub(crate) struct Model {
    pub(crate) rules: BTreeMap<u32, Rule>,
    swapped: usize,
    ids: u32,
}

impl Model {
    pub(crate) fn new(ids: u32, dice: &mut Dice) -> Model {
        let mut rules: BTreeMap<u32, Rule> = (2..ids)
            .step_by(2)
            .map(|number| (number, random_rule(number, dice)))
            .collect();
        for (which, &number) in MARKERS.iter().enumerate() {
            rules.insert(number, marker(which, which, ActionId(0)));
        }
        Model {
            rules,
            swapped: 0,
            ids,
        }
    }

    pub(crate) fn rule_set(&self) -> RuleSet {
        let mut set = RuleSet::new(&Schema::ipv4_5tuple());
        set.extend(self.rules.values().cloned());
        set
    }

    /// Returns a valid transaction, and applies it to the model.
    pub(crate) fn draw(&mut self, dice: &mut Dice) -> Vec<Owned> {
        let mut changes = Vec::new();
        if dice.below(3) == 0 {
            // The markers swap addresses; in between, neither is present.
            changes.extend(MARKERS.map(|marker| Owned::Remove(id(marker))));
        }
        for _ in 0..dice.below(6) {
            let number = 2 + u32::try_from(dice.below(self.ids as usize - 2)).unwrap();
            let Some(known) = self.rules.get(&number) else {
                let rule = random_rule(number, dice);
                self.rules.insert(number, rule.clone());
                changes.push(Owned::Insert(rule));
                continue;
            };
            let rule = match dice.below(4) {
                0 | 1 => {
                    self.rules.remove(&number);
                    changes.push(Owned::Remove(id(number)));
                    continue;
                }
                2 => with_other_action(known, dice),
                _ => random_rule(number, dice),
            };
            self.rules.insert(number, rule.clone());
            changes.push(Owned::Modify(rule));
        }
        if let Some(Owned::Remove(first)) = changes.first()
            && first.get() == MARKERS[0]
        {
            self.swapped = 1 - self.swapped;
            let action = random_action(dice);
            for (which, &number) in MARKERS.iter().enumerate() {
                let rule = marker(which, which ^ self.swapped, action);
                self.rules.insert(number, rule.clone());
                changes.push(Owned::Insert(rule));
            }
        }
        changes
    }
}

/// Returns the headers of a batch; the first two match the markers.
pub(crate) fn batch(length: usize, dice: &mut Dice) -> KeyVec {
    let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
    for address in [FIRST_MARKER_ADDRESS, FIRST_MARKER_ADDRESS + 1] {
        keys.push(&[0, address, 0, 0, 0]).unwrap();
    }
    for _ in 2..length {
        let mut part = |range: u64, shift: u32| u128::from((dice.roll() % range) << shift);
        let key = [part(16, 24), part(16, 24), 0, part(10, 0), 6];
        keys.push(&key).unwrap();
    }
    keys
}

/// Returns the rules that a guard shows, best first. Panics unless all ways to
/// read them agree: ids (from 0 to `ids`), and winners of this guard's lookups.
pub(crate) fn rules_seen(guard: &Guard<'_>, winners: &[Winner], ids: u32) -> Vec<Rule> {
    let rules: Vec<Rule> = guard.rules().collect();
    let ranks = rules.iter().map(|rule| rule.view().winner().rank());
    assert!(ranks.is_sorted(), "best first");
    assert_eq!(
        (guard.len(), guard.is_empty()),
        (rules.len(), rules.is_empty())
    );
    let by_id: BTreeMap<u32, &Rule> = (rules.iter())
        .map(|rule| (rule.view().id().get(), rule))
        .collect();
    for number in 0..ids {
        assert_eq!(guard.rule(id(number)).as_ref(), by_id.get(&number).copied());
    }
    for &winner in winners {
        let rule = winner.rule().map(|id| by_id[&id.get()].view());
        assert_eq!(guard.action(winner), rule.map(|rule| rule.action()));
        assert_eq!(guard.cookie(winner), rule.map(|rule| rule.cookie()));
    }
    rules
}

/// Returns rules in a table's order.
pub(crate) fn best_first(rules: &BTreeMap<u32, Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = rules.values().cloned().collect();
    rules.sort_by_key(|rule| rule.view().winner().rank());
    rules
}

/// Applies valid changes.
pub(crate) fn change(rules: &mut BTreeMap<u32, Rule>, changes: &[Owned]) {
    for change in changes {
        match change {
            Owned::Insert(rule) | Owned::Modify(rule) => {
                rules.insert(rule.view().id().get(), rule.clone());
            }
            Owned::Remove(id) => {
                rules.remove(&id.get());
            }
        }
    }
}

/// Panics unless a batch's winners show the markers in either order.
pub(crate) fn check_markers(winners: &[Winner]) {
    let markers = [winners[0].rule(), winners[1].rule()].map(|rule| rule.map(RuleId::get));
    let whole = [[Some(0), Some(1)], [Some(1), Some(0)]];
    assert!(whole.contains(&markers), "half a transaction: {markers:?}");
}

pub(crate) fn linear(rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse("linear").unwrap();
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

pub(crate) fn answers(classifier: &dyn Classifier, keys: &KeyVec) -> Vec<Winner> {
    let mut winners = vec![Winner::MISS; keys.len()];
    classifier.classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
    winners
}

/// Returns a hash of a list of winners, so that many lists can be stored.
pub(crate) fn digest(winners: &[Winner]) -> u64 {
    winners.iter().fold(0, |sum, winner| {
        let number = match (winner.rule(), winner.priority()) {
            (Some(rule), Some(priority)) => u64::from(rule.get()) << 32 | u64::from(priority.0),
            _ => u64::MAX,
        };
        Dice(sum ^ number).roll()
    })
}
