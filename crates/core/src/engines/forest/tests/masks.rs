//! Non-contiguous masks that runs have no column for.

use super::super::index::Forest;
use super::super::lookup::Buffers;
use super::forest;
use crate::contract::classifier::NoProgress;
use crate::model::key::KeyVec;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId, Winner};
use crate::model::schema::Schema;
use crate::model::seed::splitmix;

/// Returns a rule with ports under masks of any kind, including ranges and single
/// ports, and addresses under prefixes and other masks.
fn rule(id: usize, state: &mut u64) -> Rule {
    let mut random = |below: u64| u128::from(splitmix(state) % below);
    let mut address = || match random(4) {
        0 => FieldMatch::Any,
        1 => FieldMatch::Ternary {
            value: random(8),
            mask: 0xff00_0007 & random(1 << 32),
        },
        _ => FieldMatch::Prefix {
            value: random(4) << 30,
            length: 2,
        },
    };
    let addresses = [address(), address()];
    let mut port = || match random(4) {
        0 => FieldMatch::Any,
        1 => FieldMatch::Range {
            low: random(8),
            high: 8 + random(8),
        },
        _ => FieldMatch::Ternary {
            value: random(16),
            mask: random(16) | random(2) << 15,
        },
    };
    let ports = [port(), port()];
    let matches = [
        addresses[0],
        addresses[1],
        ports[0],
        ports[1],
        FieldMatch::Any,
    ];
    let priority = Priority(u32::try_from(random(50)).unwrap());
    let id = RuleId::from_index(id);
    Rule::new(&Schema::ipv4_5tuple(), id, priority, ActionId(0), &matches).unwrap()
}

/// Checks every kind of lookup, and reading rules back.
fn check(forest: &Forest<2>, rules: &[Rule], state: &mut u64) -> usize {
    let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
    for _ in 0..60 {
        let mut random = |below: u64| u128::from(splitmix(state) % below);
        let addresses = [random(4) << 30 | random(8), random(4) << 30 | random(8)];
        let ports = [random(17), random(17) | random(2) << 15];
        keys.push(&[addresses[0], addresses[1], ports[0], ports[1], 6])
            .unwrap();
    }
    let header_keys: Vec<[u64; 2]> = keys
        .as_slice()
        .iter()
        .map(|key| key.try_into().unwrap())
        .collect();
    let mut winners = vec![Winner::MISS; header_keys.len()];
    forest.improve_batch(&header_keys, &mut winners, &mut Buffers::default());
    let mut hits = 0;
    for (key, winner) in header_keys.iter().zip(winners) {
        let matching = rules.iter().filter(|rule| rule.view().matches(key));
        let expected = matching.map(|rule| rule.view().winner());
        let expected = expected.fold(Winner::MISS, Winner::or);
        assert_eq!(winner, expected);
        assert_eq!(forest.improve(key, Winner::MISS), expected);
        assert_eq!(forest.trace(key).winner, expected);
        let mut wanted = [0; 2];
        let masked = forest.improve_masked(key, Winner::MISS, &mut wanted);
        assert_eq!(masked, expected);
        for other in &header_keys {
            let alike = (0..2).all(|word| (key[word] ^ other[word]) & wanted[word] == 0);
            if alike {
                assert_eq!(forest.improve(other, Winner::MISS), expected);
            }
        }
        hits += usize::from(!expected.is_miss());
    }
    for rule in rules {
        let mut words = Vec::new();
        let priority = forest.copy_rule(rule.view().id(), &mut words);
        assert_eq!(priority, Some(rule.view().priority()));
        assert_eq!(words, rule.view().words(), "{}", rule.view());
    }
    hits
}

#[test]
fn masks_outlive_updates_splits_and_rebuilds() {
    let mut state = 3;
    for most in [2, 32] {
        let mut forest = forest(most, 1);
        let mut rules: Vec<Rule> = Vec::new();
        let mut hits = 0;
        for round in 0..60 {
            for id in 20 * round..20 * round + 20 {
                let rule = rule(id, &mut state);
                assert!(forest.insert(&rule.view()));
                rules.push(rule);
            }
            for _ in 0..12 {
                let index = usize::try_from(splitmix(&mut state)).unwrap() % rules.len();
                let removed = rules.swap_remove(index);
                assert!(forest.remove(removed.view().id()));
            }
            if round % 20 == 10 {
                forest.rebuild(&mut NoProgress).unwrap();
            }
            hits += check(&forest, &rules, &mut state);
        }
        assert!(hits > 1000, "{hits}");
        assert!(forest.structure().has_more_to_check());
        for rule in rules {
            assert!(forest.remove(rule.view().id()));
        }
        assert!(!forest.structure().has_more_to_check());
    }
}
