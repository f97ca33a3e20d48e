//! Adopting a plan moves every rule.

use std::sync::Arc;

use super::super::learn::Cost;
use super::super::maintain::{PlannedTable, RootPlan};
use super::super::structure::{Role, Table};
use super::forest;
use crate::budget::monitor::unwatched;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::splitmix;

/// Rules with different sources; each id is on its own page.
fn rules(count: u32) -> RuleSet {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let mut state = 3;
    for number in 0..count {
        let mut fields = [FieldMatch::Any; 5];
        fields[0] = FieldMatch::Exact(u128::from(splitmix(&mut state) >> 32));
        let id = RuleId::new(16 * number).unwrap();
        rules
            .add(id, Priority(number % 7), ActionId(0), &fields)
            .unwrap();
    }
    rules
}

/// Modifying a rule frees its entry, and the last rule moves into it. That may be a
/// rule that has not moved to a new table yet, and whose new entry the walk has
/// passed.
#[test]
fn rules_whose_entries_change_are_moved_all_the_same() {
    let rules = rules(600);
    let mut forest = forest(32, 5);
    unwatched(|monitor| forest.fill(rules.iter(), monitor));
    let tables = (forest.structure().root_tables())
        .map(|table| PlannedTable {
            mask: *table.mask(),
            keys: 600,
            spread: 1,
        })
        .collect();
    forest.adopt(Arc::new(RootPlan {
        tables,
        predicted: Cost::default(),
        rules: 600,
        unserved: 0,
        learned: true,
    }));
    let by_id = |id: RuleId| -> RuleRef<'_> {
        let mut matching = rules.iter().filter(|rule| rule.id() == id);
        matching.next().unwrap()
    };
    let (mut before, mut walks, mut steps) = (0, 0, 0);
    while forest.is_unfinished() {
        forest.maintain(1);
        steps += 1;
        assert!(steps < 20_000, "no end");
        let Some(entry) = forest.adoption().walk() else {
            continue;
        };
        if entry < before {
            assert!(
                forest.structure().has_draining_rules(),
                "a walk for nothing"
            );
            walks += 1;
        }
        before = entry;
        if entry > 0 && walks < 5 {
            let (id, _) = forest.structure().entry(entry / 2).unwrap();
            forest.remove(id);
            forest.insert(&by_id(id));
        }
    }
    assert!(walks > 0, "all rules were met the first time");
    assert_eq!(forest.len(), 600);
    let structure = forest.structure();
    assert!(
        structure
            .root_tables()
            .all(|table| table.role() == Role::Settled)
    );
    for rule in rules.iter() {
        let (run, position) = structure.find(rule.id()).unwrap().in_run();
        assert_eq!(structure.ranks(run)[position], rule.winner().rank());
    }
}

/// Tables are enlarged as rules are inserted, and reduced as rules are removed,
/// without an external plan. During that, the recorded cost of the last optimisation
/// does not rise.
#[test]
fn tables_follow_the_number_of_rules() {
    let rules = rules(20_000);
    let by_id: Vec<RuleRef<'_>> = rules.iter().collect();
    let slots = |forest: &super::Forest<2>| -> usize {
        let tables = forest.structure().root_tables();
        tables.map(Table::slot_count).sum()
    };
    let mut forest = forest(32, 5);
    unwatched(|monitor| forest.fill(by_id.iter().copied(), monitor));
    for (start, end) in [(20_000, 200), (200, 20_000), (20_000, 100)] {
        let fitted = forest.drift().fitted;
        let mut change = |number: usize, insert: bool| {
            let rule = by_id[number];
            assert!(if insert {
                forest.insert(&rule)
            } else {
                forest.remove(rule.id())
            });
            forest.maintain(super::Forest::<2>::STEPS_PER_UPDATE);
            assert_eq!(forest.len(), number + usize::from(insert));
            let (slots, rules) = (slots(&forest), forest.len());
            // Four times too few or too many slots, apart from the rules that are
            // being moved.
            assert!(slots * 6 >= rules, "{slots} slots for {rules} rules");
            assert!(slots <= 32 * rules + 64, "{slots} slots for {rules} rules");
            let drift = forest.drift();
            assert!(drift.fitted <= fitted, "nothing was learned");
        };
        if start < end {
            (start..end).for_each(|number| change(number, true));
        } else {
            (end..start).rev().for_each(|number| change(number, false));
        }
    }
}
