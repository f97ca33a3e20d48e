use std::collections::HashSet;

use classyard::{NoProgress, RuleSet};

use super::updates::{HostileUpdates, UpdateStep};
use super::*;
use crate::generate::{Family, Recipe, generate};

fn rules(set: Hostile, size: usize) -> RuleSet {
    let policy = generate(&Recipe::new(Family::Hostile(set), size, 5), &mut NoProgress);
    policy.unwrap().parts()[0].clone()
}

#[test]
fn names_are_found_again() {
    for set in Hostile::ALL {
        assert_eq!(Hostile::named(set.name()), Some(set));
    }
    assert_eq!(Hostile::named("friendly"), None);
}

#[test]
fn the_same_seed_gives_the_same_rules() {
    for set in Hostile::ALL {
        let again = rules(set, 300);
        let rows = |rules: &RuleSet| -> Vec<Vec<u64>> {
            rules.iter().map(|rule| rule.words().to_vec()).collect()
        };
        assert_eq!(rows(&again), rows(&rules(set, 300)), "{}", set.name());
        assert_eq!(again.len(), 300);
    }
}

#[test]
fn overlapping_rules_all_overlap() {
    for set in [Hostile::Overlapping, Hostile::Ranges, Hostile::OneBucket] {
        let rules = rules(set, 200);
        for a in rules.iter() {
            assert!(rules.iter().all(|b| a.overlaps(&b)), "{}", set.name());
        }
    }
}

#[test]
fn ranges_have_no_exact_bit() {
    let rules = rules(Hostile::Ranges, 500);
    assert!(
        rules
            .iter()
            .all(|rule| rule.mask().iter().all(|&word| word == 0))
    );
}

#[test]
fn all_choices_of_fields_occur() {
    let rules = rules(Hostile::Wildcards, 500);
    let choices: HashSet<Vec<bool>> = rules
        .iter()
        .map(|rule| {
            rule.fields()
                .iter()
                .map(|field| *field == FieldMatch::Any)
                .collect()
        })
        .collect();
    assert_eq!(choices.len(), 31);
}

#[test]
fn nests_have_prefixes_of_every_length() {
    let rules = rules(Hostile::NestedPrefixes, 3000);
    for field in rules.schema().field_ids().take(2) {
        let place = rules.schema().placement(field);
        let lengths: HashSet<u32> = rules
            .iter()
            .map(|rule| place.get(rule.mask()).count_ones())
            .collect();
        assert_eq!(lengths.len(), 33);
    }
}

#[test]
fn some_alike_rules_differ_in_priority_alone() {
    let rules = rules(Hostile::Alike, 400);
    let distinct: HashSet<&[u64]> = rules.iter().map(|rule| rule.words()).collect();
    assert!(distinct.len() <= 301, "{}", distinct.len());
}

#[test]
fn a_grid_has_few_values_and_holes() {
    let rules = rules(Hostile::Corners, 2000);
    let product: usize = rules
        .schema()
        .field_ids()
        .map(|field| {
            let values = rules.iter().map(|rule| rule.ends(field));
            values.collect::<HashSet<_>>().len()
        })
        .product();
    assert!((2200..10_000).contains(&product), "{product} cells");
}

#[test]
fn lists_can_be_carried_out_and_leave_what_they_say() {
    for kind in HostileUpdates::ALL {
        let list = kind.list(1000, 3, &mut NoProgress).unwrap();
        let mut inside: HashSet<_> = list.initial.iter().copied().collect();
        let mut most = inside.len();
        for step in &list.steps {
            match step {
                UpdateStep::Insert(id) => assert!(inside.insert(*id), "{}", kind.name()),
                UpdateStep::Remove(id) => assert!(inside.remove(id), "{}", kind.name()),
            }
            most = most.max(inside.len());
        }
        let last = list.last();
        assert_eq!(last.iter().copied().collect::<HashSet<_>>(), inside);
        assert_eq!(list.subset(&last).len(), inside.len());
        let again = kind.list(1000, 3, &mut NoProgress).unwrap();
        assert_eq!(again.steps, list.steps);
        let grouped = kind == HostileUpdates::Thresholds;
        assert!(grouped || (900..=1100).contains(&most), "{most}");
    }
}
