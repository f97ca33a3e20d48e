//! Conflict marks miss no conflict.

use super::super::index::Forest;
use super::super::slot::{ConflictMask, Place};
use super::forest;
use crate::budget::monitor::unwatched;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::splitmix;

/// Returns rules with prefixes of a few networks, and some with ports.
fn rules(count: u32) -> RuleSet {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let mut state = 11;
    let mut random = |below: u64| splitmix(&mut state) % below;
    for id in 0..count {
        let mut prefix = || match random(6) {
            0 => FieldMatch::Any,
            1 => FieldMatch::Prefix {
                value: u128::from(random(8)) << 29,
                length: 3,
            },
            _ => FieldMatch::Prefix {
                value: u128::from(random(1 << 12)) << 16 & 0xffff_0000,
                length: 16,
            },
        };
        let addresses = [prefix(), prefix()];
        let mut port = || match random(3) {
            0 => FieldMatch::Exact(u128::from(random(4))),
            1 => FieldMatch::Range { low: 1, high: 2 },
            _ => FieldMatch::Any,
        };
        let ports = [port(), port()];
        let fields = [
            addresses[0],
            addresses[1],
            ports[0],
            ports[1],
            FieldMatch::Any,
        ];
        let priority = Priority(u32::try_from(random(1000)).unwrap());
        let id = RuleId::new(id).unwrap();
        rules.add(id, priority, ActionId(0), &fields).unwrap();
    }
    rules
}

fn overlap(a: &RuleRef<'_>, b: &RuleRef<'_>) -> bool {
    a.schema().field_ids().all(|field| {
        let ((a_low, a_high), (b_low, b_high)) = (a.ends(field), b.ends(field));
        a_low <= b_high && b_low <= a_high
    })
}

/// Returns the slot of the root table that contains a rule.
fn top(forest: &Forest<2>, id: RuleId) -> Place {
    let structure = forest.structure();
    let mut place = structure.find(id).unwrap().place();
    loop {
        let parent = structure.table(place.table).parent();
        if parent.is_root() {
            return place;
        }
        place = parent;
    }
}

#[test]
fn every_conflict_is_known_and_some_tables_need_no_look() {
    let rules = rules(1500);
    let mut forest = forest(32, 0);
    unwatched(|monitor| forest.fill(rules.iter(), monitor));
    let structure = forest.structure();
    assert!(structure.root_tables().count() > 2, "a set with conflicts");
    let (mut conflicts, mut free) = (0, 0);
    for rule in rules.iter() {
        let place = top(&forest, rule.id());
        let marked = structure.slot(place).conflicts();
        free += u32::from(ConflictMask::GROUP_COUNT) - marked.bits().count_ones();
        for other in rules.iter() {
            let other_table = top(&forest, other.id()).table;
            let better = other.winner().beats(rule.winner());
            if other_table != place.table && better && overlap(&rule, &other) {
                conflicts += 1;
                let group = structure.table(other_table).group();
                assert!(marked.has(group), "{:?} beats {:?}", other.id(), rule.id());
            }
        }
    }
    assert!(conflicts > 1000, "only {conflicts} conflicts");
    assert!(free > 500, "only {free} groups without conflicts");
}

#[test]
fn tables_remember_the_best_of_the_rules_that_came_later() {
    let all = rules(600);
    let mut forest = forest(32, 0);
    let half: Vec<RuleRef<'_>> = all.iter().take(300).collect();
    unwatched(|monitor| forest.fill(half.into_iter(), monitor));
    let mut root = forest.structure().root_tables();
    assert!(root.all(|table| table.late_best() == u64::MAX));
    drop(root);
    for rule in all.iter().skip(300) {
        forest.insert(&rule);
        let place = top(&forest, rule.id());
        let structure = forest.structure();
        let late_best = structure.table(place.table).late_best();
        assert!(late_best <= rule.winner().rank());
        assert_eq!(structure.slot(place).conflicts(), ConflictMask::ALL);
    }
}
