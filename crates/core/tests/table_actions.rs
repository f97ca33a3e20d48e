//! Rules, actions and cookies read through a live table have exactly the
//! version that a reader pinned.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use classyard::policy::PartId;
use classyard::table::Guard;
use classyard::*;

mod table_kit;

use table_kit::{Dice, id, random_rule};

const V4: PartId = PartId::FIRST;

fn v6() -> PartId {
    PartId::from_index(1)
}

/// The minimum number of transactions, and of observations by readers.
const MIN_TRANSACTIONS: usize = if cfg!(miri) { 20 } else { 3000 };
const MIN_LOOKS: usize = if cfg!(miri) { 10 } else { 1000 };

fn dynamic_engines() -> impl Iterator<Item = EngineSpec> {
    EngineSpec::all().filter(EngineSpec::is_dynamic)
}

fn build(rules: &RuleSet, spec: &EngineSpec) -> (Writer, Table) {
    Table::build(rules, spec, &Limits::default(), &mut NoProgress).unwrap()
}

/// Returns a rule that every header matches.
fn any(schema: &std::sync::Arc<Schema>, number: u32, action: u32, cookie: u64) -> Rule {
    let matches = vec![FieldMatch::Any; schema.fields().len()];
    let rule = Rule::new(
        schema,
        id(number),
        Priority(number),
        ActionId(action),
        &matches,
    );
    rule.unwrap().with_cookie(cookie)
}

fn ipv4(number: u32, action: u32, cookie: u64) -> Rule {
    any(&Schema::ipv4_5tuple(), number, action, cookie)
}

/// Returns the action and the cookie that the rules of a version have.
fn numbers(version: u64) -> (u32, u64) {
    let cookie = if version.is_multiple_of(3) {
        0
    } else {
        version << 31
    };
    (u32::try_from(version).unwrap(), cookie)
}

/// The rule's matches and priority stay the same: only action and cookie differ
/// between versions.
#[test]
fn a_change_of_an_action_is_seen_at_its_version() {
    for spec in dynamic_engines() {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        rules.extend([ipv4(1, 9, 9), ipv4(2, 0, 0)]);
        let (mut writer, table) = build(&rules, &spec);
        let (looks, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut reader = table.reader();
                    while !over.load(Ordering::Relaxed) {
                        let guard = reader.pin();
                        let (action, cookie) = numbers(guard.version().transactions());
                        let winner = guard.classify_one(&[0, 0]);
                        assert_eq!(winner.rule(), Some(id(2)));
                        // The result does not depend on when it is read.
                        for _ in 0..2 {
                            assert_eq!(guard.action(winner), Some(ActionId(action)));
                            assert_eq!(guard.cookie(winner), Some(cookie));
                            assert_eq!(guard.rule(id(2)), Some(ipv4(2, action, cookie)));
                            std::thread::yield_now();
                        }
                        let rules: Vec<Rule> = guard.rules().collect();
                        assert_eq!(rules, [ipv4(2, action, cookie), ipv4(1, 9, 9)]);
                        drop(guard);
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut version = 0;
            while version < MIN_TRANSACTIONS as u64 || looks.load(Ordering::Relaxed) < MIN_LOOKS {
                version += 1;
                let (action, cookie) = numbers(version);
                let rule = ipv4(2, action, cookie);
                let accepted = writer.apply(Transaction::new().modify(rule.view()));
                assert_eq!(accepted.unwrap().transactions(), version);
                if version % 16 == 0 {
                    std::thread::yield_now();
                }
                assert!(version < 10_000_000, "readers do not get on");
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

/// A transaction gives a rule of both parts a new action, and moves another
/// rule from one part to the other.
#[test]
fn a_policys_parts_show_a_transactions_actions_together() {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    for spec in dynamic_engines() {
        let mut parts = schemas.each_ref().map(RuleSet::new);
        for (part, schema) in schemas.iter().enumerate() {
            parts[part].push(any(schema, 5, 0, 0).view()).unwrap();
        }
        parts[0].push(any(&schemas[0], 3, 0, 0).view()).unwrap();
        let policy = Policy::from_parts("both", parts.to_vec());
        let limits = Limits::default();
        let built = PolicyTable::build_policy(&policy, &spec, &limits, &mut NoProgress);
        let (mut writer, table) = built.unwrap();
        let (looks, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut reader = table.reader();
                    while !over.load(Ordering::Relaxed) {
                        let guard = reader.pin();
                        let version = guard.version().transactions();
                        let (action, cookie) = numbers(version);
                        let moved_part = PartId::from_index(usize::from(version % 2 == 1));
                        for part in [V4, v6()] {
                            let schema = &schemas[part.index()];
                            let key = vec![0; schema.key_words()];
                            let winner = guard.part(part).classify_one(&key);
                            assert_eq!(guard.action(winner), Some(ActionId(action)));
                            assert_eq!(guard.cookie(winner), Some(cookie));
                            assert_eq!(guard.action_in(part, winner), Some(ActionId(action)));
                            assert_eq!(guard.cookie_in(part, winner), Some(cookie));
                            let mut expected = vec![any(schema, 5, action, cookie)];
                            let moved = any(schema, 3, action, cookie);
                            let moved = (part == moved_part).then_some(moved);
                            assert_eq!(guard.rule_in(part, id(3)), moved);
                            expected.extend(moved);
                            assert_eq!(guard.len_in(part), expected.len());
                            assert_eq!(guard.rules_in(part).collect::<Vec<_>>(), expected);
                        }
                        let moved = Winner::new(Priority(3), id(3));
                        assert_eq!(guard.action(moved), Some(ActionId(action)));
                        assert_eq!((guard.len(), guard.is_empty()), (2, false));
                        drop(guard);
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut version = 0;
            while version < MIN_TRANSACTIONS as u64 || looks.load(Ordering::Relaxed) < MIN_LOOKS {
                version += 1;
                let (action, cookie) = numbers(version);
                let rules = schemas
                    .each_ref()
                    .map(|schema| any(schema, 5, action, cookie));
                let moved_part = usize::from(version % 2 == 1);
                let moved = any(&schemas[moved_part], 3, action, cookie);
                let mut changes = PolicyTransaction::new();
                changes
                    .modify([(V4, rules[0].view()), (v6(), rules[1].view())])
                    .modify([(PartId::from_index(moved_part), moved.view())]);
                let accepted = writer.apply(&changes).unwrap();
                assert_eq!(accepted.transactions(), version);
                if version % 16 == 0 {
                    std::thread::yield_now();
                }
                assert!(version < 10_000_000, "readers do not get on");
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

/// Actions may differ between parts; the part determines the action.
#[test]
fn a_rule_with_two_actions_has_one_in_each_part() {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    let spec = EngineSpec::parse("forest").unwrap();
    let limits = Limits::default();
    let built = PolicyTable::build_policy(&Policy::dual_stack(), &spec, &limits, &mut NoProgress);
    let (mut writer, table) = built.unwrap();
    assert!(table.reader().pin().is_empty());
    let rules = [any(&schemas[0], 5, 10, 0), any(&schemas[1], 5, 11, 7)];
    let mut insert = PolicyTransaction::new();
    insert.insert([(V4, rules[0].view()), (v6(), rules[1].view())]);
    writer.apply(&insert).unwrap();
    let mut reader = table.reader();
    let guard = reader.pin();
    let winner = Winner::new(Priority(5), id(5));
    assert_eq!(guard.action(winner), Some(ActionId(10)));
    assert_eq!(guard.cookie(winner), Some(0));
    assert_eq!(guard.action_in(v6(), winner), Some(ActionId(11)));
    assert_eq!(guard.cookie_in(v6(), winner), Some(7));
    assert_eq!(guard.action_in(v6(), Winner::MISS), None);
    assert_eq!(guard.action(Winner::MISS), None);
    assert_eq!(
        (guard.len(), guard.len_in(V4), guard.len_in(v6())),
        (1, 1, 1)
    );
}

#[test]
fn an_old_guard_shows_what_was_until_it_is_dropped() {
    for spec in dynamic_engines() {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        rules.extend([ipv4(1, 10, 0), ipv4(2, 20, 5)]);
        let (mut writer, table) = build(&rules, &spec);
        let (mut old, mut new) = (table.reader(), table.reader());
        let winner = Winner::new(Priority(2), id(2));
        let guard = old.pin();
        let (changed, added) = (ipv4(1, 11, 6), ipv4(3, 30, 0));
        let mut first = Transaction::new();
        first
            .modify(changed.view())
            .remove(id(2))
            .insert(added.view());
        writer.apply(&first).unwrap();
        // Makes the next transaction wait for the old guard.
        writer.apply(Transaction::new().remove(id(3))).unwrap();
        let before = |guard: &Guard<'_>| {
            assert_eq!(guard.version().transactions(), 0);
            let rules: Vec<Rule> = guard.rules().collect();
            assert_eq!(rules, [ipv4(2, 20, 5), ipv4(1, 10, 0)]);
            assert_eq!(guard.rule(id(2)), Some(ipv4(2, 20, 5)));
            assert_eq!(guard.action(winner), Some(ActionId(20)));
            assert_eq!(guard.cookie(winner), Some(5));
            assert_eq!((guard.rule(id(3)), guard.len()), (None, 2));
        };
        before(&guard);
        {
            let guard = new.pin();
            assert_eq!(guard.version().transactions(), 1);
            let rules: Vec<Rule> = guard.rules().collect();
            assert_eq!(rules, [ipv4(3, 30, 0), ipv4(1, 11, 6)]);
            assert_eq!((guard.action(winner), guard.cookie(winner)), (None, None));
            assert_eq!((guard.rule(id(2)), guard.len()), (None, 2));
        }
        before(&guard);
        drop(guard);
        writer.publish();
        let guard = old.pin();
        assert_eq!(guard.rules().collect::<Vec<_>>(), [ipv4(1, 11, 6)]);
        assert_eq!(guard.action(winner), None);
    }
}

/// A rule with a reused id has its new data on both sides.
#[test]
fn an_id_that_comes_back_has_its_new_action() {
    for spec in dynamic_engines() {
        let (mut writer, table) = build(&RuleSet::new(&Schema::ipv4_5tuple()), &spec);
        let mut reader = table.reader();
        assert!(reader.pin().is_empty());
        for round in 0..40u32 {
            let cookie = [0, u64::MAX - u64::from(round)][(round / 2 % 2) as usize];
            let rule = ipv4(7, round, cookie);
            let (mut insert, mut remove) = (Transaction::new(), Transaction::new());
            insert.insert(rule.view());
            remove.remove(id(7));
            if round % 5 == 0 {
                // Within one transaction, with another rule in between.
                let temporary = ipv4(7, 1_000_000, 1);
                let mut changes = Transaction::new();
                changes
                    .insert(temporary.view())
                    .remove(id(7))
                    .insert(rule.view());
                writer.apply(&changes).unwrap();
            } else {
                writer.apply(&insert).unwrap();
            }
            let winner = rule.view().winner();
            let guard = reader.pin();
            assert_eq!(guard.action(winner), Some(ActionId(round)));
            assert_eq!(guard.cookie(winner), Some(cookie));
            assert_eq!(guard.rule(id(7)), Some(rule.clone()));
            drop(guard);
            writer.apply(&remove).unwrap();
            let guard = reader.pin();
            assert_eq!((guard.action(winner), guard.cookie(winner)), (None, None));
            assert_eq!((guard.rule(id(7)), guard.len()), (None, 0));
            assert_eq!(guard.rules().len(), 0);
        }
    }
}

/// The bytes that `docs/live-table.md` states, and that the limit on bytes
/// includes.
#[test]
fn actions_and_cookies_take_few_bytes_which_count() {
    const RULE_COUNT: u32 = 20_000;
    for (with_cookies, min_bytes, max_bytes) in [(false, 4, 5), (true, 12, 18)] {
        let mut dice = Dice(3);
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        for number in 0..RULE_COUNT {
            let cookie = if with_cookies { dice.roll() | 1 } else { 0 };
            let rule = random_rule(number, &mut dice).with_cookie(cookie);
            rules.push(rule.view()).unwrap();
        }
        let spec = EngineSpec::parse("tss").unwrap();
        let (mut writer, table) = build(&rules, &spec);
        // Replaces every rule on both sides.
        for number in 0..RULE_COUNT {
            let mut transaction = Transaction::new();
            let rule = rules.get(id(number)).unwrap();
            transaction.remove(id(number)).insert(rule);
            writer.apply(&transaction).unwrap();
        }
        writer.synchronize();
        let mut reader = table.reader();
        let guard = reader.pin();
        let extra_bytes = guard.bytes() - guard.stats().bytes();
        assert!(
            extra_bytes <= max_bytes * RULE_COUNT as usize,
            "{extra_bytes} bytes for {RULE_COUNT} rules"
        );
        assert!(
            extra_bytes >= min_bytes * RULE_COUNT as usize,
            "{extra_bytes} bytes for {RULE_COUNT} rules"
        );

        let alone = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let engine_bytes = alone.unwrap().stats().bytes();
        for (bytes_of_a_rule, fits) in [(0, false), (6, !with_cookies), (20, true)] {
            let limit = engine_bytes + bytes_of_a_rule * RULE_COUNT as usize;
            let limits = Limits::default().with_bytes(limit);
            assert!(spec.build(&rules, &limits, &mut NoProgress).is_ok());
            let built = Table::build(&rules, &spec, &limits, &mut NoProgress);
            if fits {
                assert!(built.is_ok(), "{bytes_of_a_rule} bytes");
                continue;
            }
            let refused = built.unwrap_err();
            assert!(
                matches!(refused, BuildError::TooManyBytes { needed, limit }
                    if needed > limit && limit == limits.bytes),
                "{refused}"
            );
        }
    }
}

#[test]
fn a_table_around_two_classifiers_has_the_actions_of_its_rules() {
    let mut dice = Dice(8);
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    rules.extend((0..50).map(|number| random_rule(number, &mut dice)));
    let limits = Limits::default();
    let build = |engine| {
        let spec = EngineSpec::parse(engine).unwrap();
        spec.build(&rules, &limits, &mut NoProgress).unwrap()
    };
    let (left, right) = (build("forest"), build("linear"));
    let (mut writer, table) = Table::from_pair(left, right, &rules, &limits).unwrap();
    let mut reader = table.reader();
    for _ in 0..2 {
        let guard = reader.pin();
        let expected = rules.by_rank().into_iter();
        let expected = expected.map(|position| rules.rule(position as usize).to_rule());
        assert!(guard.rules().eq(expected), "{}", guard.engine());
        drop(guard);
        // Switches to the other side.
        writer.apply(&Transaction::new()).unwrap();
    }
    let none = RuleSet::new(rules.schema());
    let mut other_action = RuleSet::new(rules.schema());
    other_action.extend(rules.iter().map(|rule| {
        let changed = rule.id() == id(49);
        let ActionId(action) = rule.action();
        let action = ActionId(action.wrapping_add(u32::from(changed)));
        let matches = rule.fields();
        Rule::new(rule.schema(), rule.id(), rule.priority(), action, &matches).unwrap()
    }));
    for (other, what) in [(none, "no rules"), (other_action, "another action")] {
        let pair = std::panic::AssertUnwindSafe(|| {
            Table::from_pair(build("linear"), build("linear"), &other, &limits).is_ok()
        });
        assert!(std::panic::catch_unwind(pair).is_err(), "{what}");
    }
}
