//! A forest refuses rules beyond its capacity, and stays correct near it.

use super::super::index::Forest;
use super::super::slot::MAX_RUN;
use super::{Engine, engine};
use crate::budget::memory::Memory;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::classifier::{Classifier, DynamicClassifier, Limits, NoProgress};
use crate::model::error::{BuildError, UpdateError};
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::splitmix;
use crate::model::transaction::Transaction;

/// Returns a forest that can address `limit` words of IPv4 rules.
fn forest(limit: u32) -> Forest<2> {
    let mut forest = super::forest(128, 5);
    forest.limit_words(limit);
    forest
}

/// Returns a rule with one of few sources: all rules of a source are in one run or
/// its nested tables. Every second source has destinations that distinguish its
/// rules.
fn rule(id: u32, source: u32) -> Rule {
    let mut fields = [FieldMatch::Any; 5];
    fields[0] = FieldMatch::Exact(source.into());
    if source % 2 == 1 {
        fields[1] = FieldMatch::Exact(id.into());
    }
    let id = RuleId::new(id).unwrap();
    let priority = Priority(id.get().wrapping_mul(2_654_435_761) >> 8);
    Rule::new(&Schema::ipv4_5tuple(), id, priority, ActionId(0), &fields).unwrap()
}

fn rules(count: usize) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    rules.extend((0..u32::try_from(count).unwrap()).map(|id| rule(id, id % 5)));
    rules
}

#[test]
fn more_rules_than_can_be_addressed_are_not_built() {
    let limit = 5 * 3_200;
    let capacity = forest(limit).capacity();
    assert_eq!(capacity, 2_400 - 2 * MAX_RUN);
    let mut fits = forest(limit);
    let enough = rules(capacity);
    unwatched(|monitor| fits.fill(enough.iter(), monitor));
    assert_eq!(fits.len(), capacity);
    let (mut none, mut memory) = (NoProgress, Memory::unlimited());
    let mut monitor = Monitor::new(&mut none, &mut memory);
    let refused = forest(limit).fill(rules(capacity + 1).iter(), &mut monitor);
    let error = refused.unwrap_err();
    assert_eq!(
        error,
        BuildError::EngineFull {
            engine: "forest".to_owned(),
            rules: capacity + 1,
            limit: capacity,
        }
    );
    assert!(
        error.to_string().contains("choose another engine"),
        "{error}"
    );
}

#[test]
fn a_full_forest_refuses_rules_and_changes_nothing() {
    let limit = 5 * 3_200;
    let mut forest = forest(limit);
    let capacity = forest.capacity();
    let held = rules(capacity);
    unwatched(|monitor| forest.fill(held.iter(), monitor));
    let mut engine = engine(forest);
    assert_eq!(engine.capacity(), capacity);
    let number = u32::try_from(capacity).unwrap();
    let (one, two) = (rule(number, 0), rule(number + 1, 1));
    let first = held.rule(0);
    let (other, again) = (rule(0, 3), rule(0, 4));

    let full = |change| {
        Err(UpdateError::EngineFull {
            change,
            engine: "forest".to_owned(),
            rules: capacity + 1,
            limit: capacity,
        })
    };
    let mut growing = Transaction::new();
    growing.insert(one.view());
    let mut growing_later = Transaction::new();
    growing_later.remove(first.id());
    growing_later.insert(one.view()).insert(two.view());
    // Too many rules only in between.
    let mut growing_before = Transaction::new();
    growing_before.insert(one.view()).remove(one.view().id());
    let answers = |engine: &Engine| -> Vec<Winner> {
        let ids = (0..number + 2).flat_map(|id| (0..5).map(move |source| (id, source)));
        let keys = ids.map(|(id, source)| {
            let mut keys = crate::model::key::KeyVec::new(&Schema::ipv4_5tuple());
            keys.push(&[source, id.into(), 1, 2, 3]).unwrap();
            keys
        });
        keys.map(|keys| engine.classify_one(keys.key(0))).collect()
    };
    let before = answers(&engine);
    assert_eq!(engine.apply(&growing), full(0));
    assert_eq!(engine.apply(&growing_later), full(2));
    assert_eq!(engine.apply(&growing_before), full(0));
    assert_eq!(answers(&engine), before);
    assert_eq!(engine.stats().rules, capacity);

    let mut modifying = Transaction::new();
    modifying.modify(other.view()).modify(again.view());
    engine.apply(&modifying).unwrap();
    let mut replacing = Transaction::new();
    replacing.remove(first.id()).insert(one.view());
    engine.apply(&replacing).unwrap();
    assert_eq!(
        engine.apply(&growing),
        Err(UpdateError::DuplicateId {
            change: 0,
            id: number
        })
    );
    assert!(engine.contains(one.view().id()) && !engine.contains(first.id()));

    // The caller's own limit, if it is lower.
    engine.set_limits(&Limits {
        rules: capacity - 1,
        ..Limits::default()
    });
    let mut more = Transaction::new();
    more.insert(two.view());
    let refused = engine.check(&more);
    assert!(matches!(refused, Err(UpdateError::TooManyRules { .. })));
}

/// Runs of all lengths grow and shrink alternately near the capacity, while plans
/// are adopted: nothing panics, and every answer is correct.
#[test]
fn a_forest_stays_right_around_its_bound() {
    const SOURCES: u32 = 6;
    let forest = forest(5 * 8_000);
    let capacity = forest.capacity();
    let mut engine = engine(forest);
    let mut held: Vec<Option<Rule>> = vec![None; 2 * capacity];
    let (mut state, mut refused, mut adopted, mut compacted) = (9, 0, 0, 0);
    let mut count = 0;
    let mut below = |bound: usize| {
        let number = splitmix(&mut state) % bound as u64;
        usize::try_from(number).unwrap()
    };
    for step in 0..60_000_usize {
        let id = below(held.len());
        let mut transaction = Transaction::new();
        // Rules of some sources are inserted while rules of other sources are
        // removed, and vice versa.
        let fresh = rule(
            u32::try_from(id).unwrap(),
            u32::try_from(below(12)).unwrap() % SOURCES,
        );
        let growing = (step / 10_000 + below(7)).is_multiple_of(2) || below(3) > 0;
        match held[id].take() {
            None if growing => {
                transaction.insert(fresh.view());
                let full = count == capacity;
                match engine.apply(&transaction) {
                    Ok(()) => {
                        assert!(!full);
                        (held[id], count) = (Some(fresh), count + 1);
                    }
                    Err(UpdateError::EngineFull { change: 0, .. }) => {
                        assert!(full);
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            None => {}
            Some(rule) if growing => {
                transaction.modify(fresh.view());
                engine.apply(&transaction).unwrap();
                held[id] = Some(fresh);
                assert_eq!(rule.view().id().index(), id);
            }
            Some(rule) => {
                transaction.remove(rule.view().id());
                engine.apply(&transaction).unwrap();
                count -= 1;
            }
        }
        compacted += usize::from(engine.algorithm().structure().is_short_of_room());
        if step % 4_000 == 3_999 {
            let fitted = engine.reoptimise_mut().unwrap();
            let plan = fitted.snapshot().compute(&mut NoProgress);
            assert!(fitted.install(&plan.unwrap().unwrap()));
            adopted += 1;
        }
        if step % 3_000 == 0 {
            let mut present = RuleSet::new(&Schema::ipv4_5tuple());
            present.extend(held.iter().flatten().cloned());
            assert_eq!(engine.stats().rules, present.len());
            for _ in 0..200 {
                let (source, id) = (below(7) as u128, below(held.len()) as u128);
                let mut keys = crate::model::key::KeyVec::new(&Schema::ipv4_5tuple());
                keys.push(&[source, id, 1, 2, 3]).unwrap();
                let winner = engine.classify_one(keys.key(0));
                assert_eq!(winner, present.scan(keys.key(0)));
            }
        }
    }
    assert!(refused > 1_000 && adopted > 10 && compacted > 0);
    engine.rebuild(&mut NoProgress).unwrap();
    assert_eq!((engine.stats().rules, engine.capacity()), (count, capacity));
}

/// A live table takes the capacity from its engine, and also counts changes that are
/// not visible yet.
#[test]
fn a_live_table_over_a_full_forest_refuses_rules() {
    let side = || -> Box<dyn Classifier> {
        let mut forest = forest(5 * 3_200);
        let held = rules(forest.capacity() - 1);
        unwatched(|monitor| forest.fill(held.iter(), monitor));
        Box::new(engine(forest))
    };
    let limits = Limits::default();
    let held = rules(forest(5 * 3_200).capacity() - 1);
    let built = crate::table::Table::from_pair(side(), side(), &held, &limits);
    let (mut writer, table) = built.unwrap();
    let mut reader = table.reader();
    let pinned = reader.pin();
    let (one, two) = (rule(1_000_000, 0), rule(1_000_001, 1));
    let mut transaction = Transaction::new();
    transaction.insert(one.view());
    writer.apply(&transaction).unwrap();
    let mut more = Transaction::new();
    more.insert(two.view());
    for _ in 0..2 {
        let refused = writer.apply(&more).unwrap_err();
        assert!(
            matches!(refused, UpdateError::EngineFull { change: 0, .. }),
            "{refused}"
        );
    }
    drop(pinned);
    writer.publish();
    let mut replacing = Transaction::new();
    replacing.remove(one.view().id()).insert(two.view());
    writer.apply(&replacing).unwrap();
    writer.publish();
    assert!(writer.contains(two.view().id()) && !writer.is_poisoned());
}
