//! Tests of rules that resemble real flow tables.

use super::*;

const COUNT: usize = 3000;

fn rules_of(table: FlowTable) -> RuleSet {
    made(&Recipe::new(Family::FlowTable(table), COUNT, 1)).parts()[0].clone()
}

/// Returns the number of rules for each number of fields in use.
fn fields_used(rules: &RuleSet) -> [usize; 16] {
    let mut used = [0; 16];
    for rule in rules.iter() {
        let ids = rules.schema().field_ids();
        used[ids.filter(|&id| rule.field(id) != FieldMatch::Any).count()] += 1;
    }
    used
}

/// Returns the share of rules that use all fields in `names`.
fn share(rules: &RuleSet, names: &[&str]) -> f64 {
    let ids: Vec<_> = names
        .iter()
        .map(|name| rules.schema().field_named(name).unwrap())
        .collect();
    let uses =
        |rule: &classyard::RuleRef<'_>| ids.iter().all(|&id| rule.field(id) != FieldMatch::Any);
    rules.iter().filter(uses).count() as f64 / rules.len() as f64
}

#[test]
fn rules_of_flow_tables_use_two_to_six_fields() {
    for (table, fewest, most) in [
        (FlowTable::L2, 2, 3),
        (FlowTable::L3, 2, 3),
        (FlowTable::Acl, 3, 6),
        (FlowTable::Mixed, 2, 6),
    ] {
        let used = fields_used(&rules_of(table));
        let found = (1..16).filter(|&fields| used[fields] > 0);
        let found: Vec<usize> = found.collect();
        assert_eq!(found, (fewest..=most).collect::<Vec<_>>(), "{table:?}");
        assert_eq!(used.iter().sum::<usize>(), COUNT);
    }
}

#[test]
fn each_flow_table_has_the_fields_of_its_application() {
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
    };
    let l2 = rules_of(FlowTable::L2);
    near(share(&l2, &["vlan_vid", "eth_dst"]), 0.82);
    near(share(&l2, &["in_port", "vlan_vid", "eth_src"]), 0.18);
    let l3 = rules_of(FlowTable::L3);
    near(share(&l3, &["metadata", "eth_type"]), 1.0);
    near(share(&l3, &["dst"]), 1.0);
    let dst = l3.schema().field_named("dst").unwrap();
    let length = |wanted: u32| {
        let rules = l3.iter().filter(|rule| match rule.field(dst) {
            FieldMatch::Exact(_) => wanted == 32,
            FieldMatch::Prefix { length, .. } => length == wanted,
            _ => false,
        });
        rules.count() as f64 / COUNT as f64
    };
    near(length(24), 0.48);
    near(length(32), 0.2);
    let acl = rules_of(FlowTable::Acl);
    near(
        share(&acl, &["eth_type", "src", "dst", "proto", "dport"]),
        0.61,
    );
    near(share(&acl, &["src", "dst"]), 0.86);
    let mixed = rules_of(FlowTable::Mixed);
    near(
        share(&mixed, &["vlan_vid", "eth_dst", "eth_type", "dst"]),
        0.25,
    );
    near(share(&mixed, &["src"]), 0.26);
    near(share(&mixed, &["mpls_label"]), 0.05);
}

#[test]
fn rules_of_flow_tables_keep_the_prerequisites() {
    for table in FlowTable::ALL {
        let rules = rules_of(table);
        let id = |name: &str| rules.schema().field_named(name).unwrap();
        for rule in rules.iter() {
            let field = |name: &str| rule.field(id(name));
            let uses = |names: &[&str]| names.iter().any(|name| field(name) != FieldMatch::Any);
            if uses(&["src", "dst", "proto", "ip_dscp", "sport", "dport"]) {
                assert_eq!(field("eth_type"), FieldMatch::Exact(0x0800), "{rule}");
            }
            if uses(&["sport", "dport"]) {
                assert!(
                    matches!(field("proto"), FieldMatch::Exact(6 | 17)),
                    "{rule}"
                );
            }
            if uses(&["mpls_label"]) {
                assert_eq!(field("eth_type"), FieldMatch::Exact(0x8847), "{rule}");
            }
            assert!(!uses(&["vlan_pcp", "mpls_tc"]), "{rule}");
        }
    }
}

#[test]
fn rules_of_flow_tables_never_stand_behind_one_that_covers_them() {
    for table in FlowTable::ALL {
        let rules = made(&Recipe::new(Family::FlowTable(table), 1000, 3)).parts()[0].clone();
        for (index, rule) in rules.iter().enumerate() {
            let hidden = rules.iter().take(index).any(|before| before.covers(&rule));
            assert!(!hidden, "{table:?}: {rule}");
        }
    }
}

#[test]
fn flow_tables_are_those_of_the_seed() {
    for table in FlowTable::ALL {
        let rules =
            |seed: u64| fingerprint(&made(&Recipe::new(Family::FlowTable(table), 500, seed)));
        assert_eq!(rules(4), rules(4));
        assert_ne!(rules(4), rules(5));
    }
}

#[test]
fn flow_tables_have_names_and_many_distinct_rules() {
    for table in FlowTable::ALL {
        assert_eq!(FlowTable::named(table.name()), Some(table));
        for rules in [0, 1, 20, 100_000] {
            let made = made(&Recipe::new(Family::FlowTable(table), rules, 5));
            assert_eq!(made.len(), rules);
        }
    }
    assert_eq!(FlowTable::named("of-l4"), None);
}
