use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::contract::classifier::NoProgress;
use crate::model::error::PartError;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleRef};
use crate::model::schema::Schema;

/// Rules for random changes: ids and priorities 0 to 5, each in both forms.
struct Pool {
    v4: Vec<Rule>,
    v6: Vec<Rule>,
}

impl Pool {
    fn new() -> Pool {
        let rules = |schema: &Arc<Schema>| {
            let rules = (0..12u32).map(|number| {
                // Two forms of each id, with different ports.
                let port = u128::from(80 + number % 5);
                let mut matches = vec![FieldMatch::Any; schema.fields().len()];
                matches[3] = FieldMatch::Exact(port);
                let id = RuleId::new(number % 6).unwrap();
                let priority = Priority(number % 6 / 2);
                Rule::new(schema, id, priority, ActionId(0), &matches).unwrap()
            });
            rules.collect()
        };
        Pool {
            v4: rules(&Schema::ipv4_5tuple()),
            v6: rules(&Schema::ipv6_5tuple()),
        }
    }

    /// Returns the views of a rule in the parts given by `parts`: 1, 2 or 3 for
    /// both.
    fn views(&self, rule: usize, parts: usize) -> Vec<(PartId, RuleRef<'_>)> {
        let mut views = Vec::new();
        if parts & 1 != 0 {
            views.push((PartId::from_index(0), self.v4[rule].view()));
        }
        if parts & 2 != 0 {
            views.push((PartId::from_index(1), self.v6[rule].view()));
        }
        views
    }
}

/// The expected rules: for each id, the rule of the pool and its parts.
type Model = BTreeMap<u32, (usize, usize)>;

/// One requested change: 0 inserts, 1 removes, 2 modifies.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    operation: usize,
    rule: usize,
    parts: usize,
}

fn expect(model: &mut Model, wanted: &[Wanted], limit: usize) -> Result<(), UpdateError> {
    let mut after = model.clone();
    for (change, w) in wanted.iter().enumerate() {
        let id = u32::try_from(w.rule % 6).unwrap();
        let there = after.contains_key(&id);
        match w.operation {
            0 if there => return Err(UpdateError::DuplicateId { change, id }),
            1 | 2 if !there => {
                let operation = ["", "remove", "modify"][w.operation];
                return Err(UpdateError::UnknownId {
                    change,
                    operation,
                    id,
                });
            }
            1 => {
                after.remove(&id);
            }
            _ => {
                after.insert(id, (w.rule, w.parts));
            }
        }
        if after.len() > limit {
            return Err(UpdateError::TooManyRules {
                change,
                found: after.len(),
                limit,
            });
        }
    }
    *model = after;
    Ok(())
}

fn winners(classifier: &PolicyClassifier) -> Vec<Winner> {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    let mut trace = PolicyTrace::new(schemas.iter());
    for port in 79..=86 {
        for part in 0..2 {
            let part = PartId::from_index(part);
            trace.push(part, &[1, 2, 3, port, 6]).unwrap();
        }
    }
    let mut winners = vec![Winner::MISS; trace.len()];
    classifier.classify(&trace, &mut winners, &mut Scratch::new());
    winners
}

/// A small random number generator, so that core's tests need no crate for it.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn lists_of_changes_are_made_in_all_parts_or_in_none() {
    let pool = Pool::new();
    let mut numbers = Numbers(1);
    for spec in EngineSpec::all() {
        let limits = Limits {
            rules: 4,
            ..Limits::default()
        };
        let empty = Policy::dual_stack();
        let mut classifier = empty.build(&spec, &limits, &mut NoProgress).unwrap();
        if classifier.part(PartId::FIRST).dynamic().is_none() {
            continue;
        }
        let mut model = Model::new();
        let mut refused = 0;
        for _ in 0..400 {
            let wanted: Vec<Wanted> = (0..1 + numbers.below(4))
                .map(|_| Wanted {
                    operation: numbers.below(3),
                    rule: numbers.below(12),
                    parts: 1 + numbers.below(3),
                })
                .collect();
            let mut changes = PolicyTransaction::new();
            for w in &wanted {
                match w.operation {
                    0 => changes.insert(pool.views(w.rule, w.parts)),
                    1 => changes.remove(pool.v4[w.rule].view().id()),
                    _ => changes.modify(pool.views(w.rule, w.parts)),
                };
            }
            let expected = expect(&mut model, &wanted, limits.rules);
            assert_eq!(classifier.apply(&changes), expected, "{spec}: {wanted:?}");
            refused += usize::from(expected.is_err());

            let mut fresh = Policy::dual_stack();
            for (id, (rule, parts)) in &model {
                let views = pool.views(*rule, *parts);
                let matches: Vec<Vec<FieldMatch>> =
                    views.iter().map(|(_, view)| view.fields()).collect();
                let parts: Vec<(PartId, &[FieldMatch])> = views
                    .iter()
                    .zip(&matches)
                    .map(|((part, _), matches)| (*part, matches.as_slice()))
                    .collect();
                let id = RuleId::new(*id).unwrap();
                let view = views[0].1;
                fresh
                    .add(id, view.priority(), view.action(), &parts)
                    .unwrap();
            }
            let linear = EngineSpec::parse("linear").unwrap();
            let fresh = fresh.build(&linear, &limits, &mut NoProgress).unwrap();
            assert_eq!(winners(&classifier), winners(&fresh), "{spec}: {wanted:?}");
        }
        assert!((50..350).contains(&refused), "{refused} of 400 refused");
    }
}

#[test]
fn errors_count_changes_in_the_callers_list() {
    let pool = Pool::new();
    let linear = EngineSpec::parse("linear").unwrap();
    let limits = Limits::default();
    let mut classifier = Policy::dual_stack()
        .build(&linear, &limits, &mut NoProgress)
        .unwrap();
    // The wrong rule is the IPv6 part's first change, and the list's third
    // change.
    let mut changes = PolicyTransaction::new();
    changes
        .insert(pool.views(0, 1))
        .insert(pool.views(1, 1))
        .insert([(PartId::from_index(1), pool.v4[2].view())]);
    let error = classifier.apply(&changes).unwrap_err();
    assert!(matches!(error, UpdateError::WrongSchema { .. }), "{error}");
    assert_eq!(error.change(), 2);
    assert!(winners(&classifier).iter().all(|w| *w == Winner::MISS));
}

#[test]
fn a_part_without_room_refuses_for_the_whole_policy() {
    let pool = Pool::new();
    for spec in EngineSpec::all() {
        let mut policy = Policy::dual_stack();
        let any = [FieldMatch::Any; 5];
        for id in 0..50 {
            let id = RuleId::new(100 + id).unwrap();
            let v6 = [(PartId::from_index(1), &any[..])];
            policy.add(id, Priority(0), ActionId(0), &v6).unwrap();
        }
        let built = policy.build(&spec, &Limits::default(), &mut NoProgress);
        let part = built.unwrap().part(PartId::from_index(1)).stats();
        let limits = Limits {
            bytes: part.bytes(),
            ..Limits::default()
        };
        let mut classifier = policy.build(&spec, &limits, &mut NoProgress).unwrap();
        if classifier.part(PartId::FIRST).dynamic().is_none() {
            continue;
        }
        // Fill the IPv6 part until it refuses a rule; the IPv4 part must not
        // change then.
        let more: Vec<Rule> = (0..5_000u128)
            .map(|number| {
                let mut matches = any;
                matches[0] = FieldMatch::Exact(number);
                matches[1] = FieldMatch::Exact(number);
                let id = RuleId::new(1_000 + u32::try_from(number).unwrap()).unwrap();
                Rule::new(
                    &Schema::ipv6_5tuple(),
                    id,
                    Priority(1),
                    ActionId(0),
                    &matches,
                )
                .unwrap()
            })
            .collect();
        let refused = more.iter().find_map(|rule| {
            let mut changes = PolicyTransaction::new();
            changes
                .insert(pool.views(0, 1))
                .remove(pool.v4[0].view().id())
                .insert([(PartId::from_index(1), rule.view())]);
            classifier.apply(&changes).err()
        });
        let refused = refused.unwrap_or_else(|| panic!("{spec} never has enough"));
        assert!(
            matches!(refused, UpdateError::TooManyBytes { change: 2, .. }),
            "{spec}: {refused}"
        );
        let first = classifier.part(PartId::FIRST).stats();
        assert_eq!(first.rules, 0, "{spec}");
        // A transaction that adds no rules is accepted.
        let id = RuleId::new(100).unwrap();
        classifier
            .apply(PolicyTransaction::new().remove(id))
            .unwrap();
    }
}

/// A classifier or live table changes nothing if one change of a list has
/// invalid parts.
#[test]
fn changes_for_impossible_parts_are_refused() {
    let pool = Pool::new();
    let part = PartId::from_index;
    let (v4, v6) = (pool.v4[1].view(), pool.v6[1].view());
    let wrong = [
        (vec![], PartError::Missing),
        (
            vec![(part(0), v4), (part(0), v4)],
            PartError::Repeated { id: 1, part: 0 },
        ),
        (
            vec![(part(0), v4), (part(1), v6), (part(1), v6)],
            PartError::Repeated { id: 1, part: 1 },
        ),
        (
            vec![(part(0), v4), (part(1), pool.v6[2].view())],
            PartError::DifferentId {
                id: 1,
                found: 2,
                part: 1,
            },
        ),
        (
            vec![(part(0), v4), (part(7), v6)],
            PartError::Unknown {
                id: 1,
                part: 7,
                parts: 2,
            },
        ),
    ];
    for spec in EngineSpec::all() {
        let (policy, limits) = (Policy::dual_stack(), Limits::default());
        let mut classifier = policy.build(&spec, &limits, &mut NoProgress).unwrap();
        if classifier.part(PartId::FIRST).dynamic().is_none() {
            continue;
        }
        let built =
            crate::table::PolicyTable::build_policy(&policy, &spec, &limits, &mut NoProgress);
        let (mut writer, _table) = built.unwrap();
        let mut held = PolicyTransaction::new();
        held.insert(pool.views(5, 3));
        classifier.apply(&held).unwrap();
        writer.apply(&held).unwrap();
        let before = winners(&classifier);
        let version = writer.accepted();
        for (views, error) in &wrong {
            for inserts in [true, false] {
                // In the middle of valid changes, and after a removal.
                let mut changes = PolicyTransaction::new();
                changes
                    .insert(pool.views(0, 3))
                    .remove(pool.v4[5].view().id());
                match inserts {
                    true => changes.insert(views.iter().copied()),
                    false => changes.modify(views.iter().copied()),
                };
                changes.insert(pool.views(2, 1));
                let expected = Err(UpdateError::Parts {
                    change: 2,
                    error: error.clone(),
                });
                assert_eq!(classifier.apply(&changes), expected, "{spec}");
                assert_eq!(writer.check(&changes), expected, "{spec}");
                assert_eq!(writer.apply(&changes).map(drop), expected, "{spec}");
            }
        }
        assert_eq!(winners(&classifier), before, "{spec}");
        assert_eq!((classifier.rules(), writer.rules()), (1, 1), "{spec}");
        assert_eq!(writer.accepted(), version, "{spec}");
        let mut good = PolicyTransaction::new();
        good.insert(pool.views(1, 3));
        classifier.apply(&good).unwrap();
        writer.apply(&good).unwrap();
    }
}
