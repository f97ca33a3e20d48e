//! Replaced rules stay where they are if only their action changes.

use super::super::index::Forest;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId};
use crate::model::schema::Schema;

/// Returns a rule for packets to one port, from some of the ports.
fn rule(id: usize, priority: u32, action: u32, from: FieldMatch) -> Rule {
    let port = FieldMatch::Exact(u128::try_from(id).unwrap());
    let any = FieldMatch::Any;
    Rule::new(
        &Schema::ipv4_5tuple(),
        RuleId::from_index(id),
        Priority(priority),
        ActionId(action),
        &[any, any, from, port, any],
    )
    .unwrap()
}

/// The rule as the forest has it, with its action.
fn held(forest: &Forest<2>, id: RuleId) -> (Vec<u64>, Option<Priority>, Option<ActionId>) {
    let mut words = Vec::new();
    let priority = forest.copy_rule(id, &mut words);
    (words, priority, forest.action(id))
}

#[test]
fn a_rule_is_replaced_in_every_part() {
    let mut forest = super::forest(32, 5);
    for id in 0..100 {
        assert!(forest.insert(&rule(id, 1, 1, FieldMatch::Any).view()));
    }
    let odd = FieldMatch::Ternary {
        value: 0x10,
        mask: 0x11,
    };
    let one = FieldMatch::Exact(17);
    for (priority, action, from) in [
        (1, 2, FieldMatch::Any),
        (3, 2, FieldMatch::Any),
        (3, 4, one),
        (3, 5, odd),
        (3, 6, odd),
        (3, 6, FieldMatch::Range { low: 16, high: 254 }),
        (3, 6, one),
    ] {
        let replacement = rule(50, priority, action, from);
        let id = replacement.view().id();
        let before = forest.structure().find(id).unwrap();
        let same = held(&forest, id).0 == replacement.view().words()
            && held(&forest, id).1 == Some(Priority(priority))
            && from != odd;
        assert!(forest.replace(&replacement.view()));
        let after = forest.structure().find(id).unwrap();
        if same {
            assert_eq!(
                (before.in_run(), before.place()),
                (after.in_run(), after.place())
            );
        }
        let expected = (
            replacement.view().words().to_vec(),
            Some(Priority(priority)),
            Some(ActionId(action)),
        );
        assert_eq!(held(&forest, id), expected);
        assert_eq!(forest.len(), 100);
    }
    assert!(
        !forest.replace(&rule(100, 1, 1, one).view()),
        "no such rule"
    );
}
