//! Rules, transactions and batches that tests of the live table share.

// Each test uses a part.
#![allow(dead_code)]

use std::collections::BTreeMap;

use classyard::table::Guard;
use classyard::*;

/// Numbers that follow from a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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

/// Ids of the two marker rules, which every transaction leaves in place and
/// some replace by removing both first.
pub(crate) const MARKERS: [u32; 2] = [0, 1];

pub(crate) fn id(number: u32) -> RuleId {
    RuleId::new(number).unwrap()
}

/// A rule over a small space, so that rules overlap.
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

/// One of 2³² actions, so that two are seldom the same.
pub(crate) fn random_action(dice: &mut Dice) -> ActionId {
    ActionId(u32::try_from(dice.roll() >> 32).unwrap())
}

/// None most of the time.
pub(crate) fn random_cookie(dice: &mut Dice) -> u64 {
    [0, 0, 0, 1 << 32, dice.roll()][dice.below(5)]
}

/// The same rule with another action and cookie.
pub(crate) fn with_other_action(rule: &Rule, dice: &mut Dice) -> Rule {
    let (rule, action) = (rule.view(), random_action(dice));
    let (schema, id) = (rule.schema(), rule.id());
    let other = Rule::new(schema, id, rule.priority(), action, &rule.fields());
    other.unwrap().with_cookie(random_cookie(dice))
}

/// One of the two markers, for one of two addresses, with this action.
fn marker(which: usize, address: usize, action: ActionId) -> Rule {
    let mut matches = [FieldMatch::Any; 5];
    matches[1] = FieldMatch::Exact(MARKED + address as u128);
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

/// The markers' addresses are this and the next.
const MARKED: u128 = 0xc0a8_0000;

/// The rules there are, and random transactions that change them.
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

    /// A transaction that can be made; the model has made it.
    pub(crate) fn draw(&mut self, dice: &mut Dice) -> Vec<Owned> {
        let mut changes = Vec::new();
        if dice.below(3) == 0 {
            // The markers change places, with a moment in which neither is there.
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

/// Headers of a batch; the first two are the markers'.
pub(crate) fn batch(length: usize, dice: &mut Dice) -> KeyVec {
    let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
    for address in [MARKED, MARKED + 1] {
        keys.push(&[0, address, 0, 0, 0]).unwrap();
    }
    for _ in 2..length {
        let mut part = |range: u64, shift: u32| u128::from((dice.roll() % range) << shift);
        let key = [part(16, 24), part(16, 24), 0, part(10, 0), 6];
        keys.push(&key).unwrap();
    }
    keys
}

/// The rules that a guard shows, best first. All ways to get them must
/// agree: ids, of which there are `ids`, and winners of this guard's lookups.
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

/// Rules as a table lists them.
pub(crate) fn best_first(rules: &BTreeMap<u32, Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = rules.values().cloned().collect();
    rules.sort_by_key(|rule| rule.view().winner().rank());
    rules
}

/// Makes changes that can be made.
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

/// Panics unless a batch's answers show the markers in one of their two orders.
pub(crate) fn check_markers(winners: &[Winner]) {
    let found = [winners[0].rule(), winners[1].rule()].map(|rule| rule.map(RuleId::get));
    let whole = [[Some(0), Some(1)], [Some(1), Some(0)]];
    assert!(whole.contains(&found), "half a transaction: {found:?}");
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

/// A number for a list of answers, so that many can be remembered.
pub(crate) fn digest(winners: &[Winner]) -> u64 {
    winners.iter().fold(0, |sum, winner| {
        let number = match (winner.rule(), winner.priority()) {
            (Some(rule), Some(priority)) => u64::from(rule.get()) << 32 | u64::from(priority.0),
            _ => u64::MAX,
        };
        Dice(sum ^ number).roll()
    })
}
