#![allow(clippy::print_stderr)] // tables for people

use std::sync::Arc;

use classyard::{Field, MatchKind, NoProgress};
use proptest::prelude::*;

use super::compare::{Summary, distance};
use super::profile::{
    LEVELS, Level, PORT_CLASSES, PairShare, PortClass, PortPool, PortShare, PortSide,
    ProtocolShare, TrieShape,
};
use super::*;

mod flow_tables;
mod originals;

fn built_in(name: &str) -> Arc<Profile> {
    Arc::new(Profile::built_in(name).unwrap().clone())
}

fn made(recipe: &Recipe) -> Policy {
    generate(recipe, &mut NoProgress).unwrap()
}

/// Returns a number that depends on every bit of every rule.
fn fingerprint(policy: &Policy) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |number: u64| {
        for byte in number.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for rules in policy.parts() {
        for rule in rules.iter() {
            mix(rule.winner().rank());
            mix(rule.action().0.into());
            rule.words().iter().copied().for_each(&mut mix);
        }
    }
    hash
}

fn dual(name: &str, ipv6_share: f64) -> Family {
    Family::Dual {
        profile: built_in(name),
        ipv6_share,
    }
}

/// A schema of forty fields, 1,024 bits.
fn wide_schema() -> Arc<Schema> {
    let kinds = [
        MatchKind::Exact,
        MatchKind::Prefix,
        MatchKind::Range,
        MatchKind::Ternary,
    ];
    let field = |i: usize| {
        let width = if i < 4 { 128 } else { [14, 15, 14, 14][i % 4] };
        let width = if i == 39 { 13 } else { width };
        Field::new(&format!("f{i}"), width, kinds[i % 4])
    };
    let schema = Schema::new("wide", (0..40).map(field).collect()).unwrap();
    assert_eq!(schema.total_bits(), 1024);
    schema
}

/// One recipe of each kind.
fn recipes(rules: usize, seed: u64) -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = [
        Family::Ipv4(built_in("acl1")),
        Family::Ipv6(built_in("acl1")),
        dual("fw1", 0.4),
        Family::OpenFlow15(Box::default()),
        Family::OpenFlow15(Box::new(OpenFlowRules::consistent())),
        Family::Schema(wide_schema(), RandomRules::default()),
    ]
    .map(|family| Recipe::new(family, rules, seed))
    .into();
    recipes.push(Recipe {
        config: GeneratorConfig::benchmark(rules, seed),
        ..recipes[0].clone()
    });
    let tables = FlowTable::ALL.map(Family::FlowTable);
    recipes.extend(tables.map(|family| Recipe::new(family, rules, seed)));
    recipes
}

#[test]
fn the_same_recipe_gives_the_same_rules_everywhere() {
    // If these numbers change, the generated sets of all users change.
    let golden = [
        0x316f_b8c0_ae79_e5f2_u64,
        0x7fc9_798b_5437_db0e,
        0xa56a_9074_51d8_414e,
        0xbaf0_d8ef_e716_44d0,
        0xc11b_8d3e_92e5_2c9d,
        0x15cb_67dc_9645_75c5,
        0xf86f_7904_db53_af7a,
    ];
    // Flow tables have their own test in `flow_tables`.
    let found: Vec<u64> = recipes(1000, 42)
        .iter()
        .take(golden.len())
        .map(|recipe| fingerprint(&made(recipe)))
        .collect();
    assert_eq!(found, golden, "{found:#018x?}");
    let others: Vec<u64> = recipes(1000, 43)
        .iter()
        .map(|recipe| fingerprint(&made(recipe)))
        .collect();
    assert!(found.iter().zip(&others).all(|(a, b)| a != b));
}

#[test]
fn every_profile_and_family_gives_as_many_distinct_rules_as_asked() {
    let profiles = Profile::BUILT_IN.iter().flat_map(|name| {
        let families = [
            Family::Ipv4(built_in(name)),
            Family::Ipv6(built_in(name)),
            dual(name, 0.5),
        ];
        families.into_iter().flat_map(|family| {
            let plain = Recipe::new(family, 1000, 7);
            let adjusted = Recipe {
                config: GeneratorConfig::benchmark(1000, 7),
                ..plain.clone()
            };
            [plain, adjusted]
        })
    });
    for recipe in profiles.chain(recipes(1000, 7)) {
        let policy = made(&recipe);
        assert_eq!(policy.len(), 1000);
        for rules in policy.parts() {
            let distinct: std::collections::HashSet<&[u64]> =
                rules.iter().map(|rule| rule.words()).collect();
            assert_eq!(distinct.len(), rules.len());
        }
        for (index, &id) in policy.ids().iter().enumerate() {
            assert_eq!(id.index(), index);
            let (_, rule) = policy.rule(id).next().unwrap();
            assert_eq!(rule.priority().0 as usize, 1000 - index);
            assert!(policy.action_name(rule.action()).is_some());
        }
    }
}

#[test]
fn five_tuple_rules_never_stand_behind_one_that_covers_them() {
    for name in ["acl2", "fw3", "fw4"] {
        for family in [
            Family::Ipv4(built_in(name)),
            Family::Ipv6(built_in(name)),
            dual(name, 0.3),
        ] {
            let policy = made(&Recipe {
                config: GeneratorConfig::benchmark(1000, 3),
                ..Recipe::new(family, 0, 0)
            });
            for rules in policy.parts() {
                for (index, rule) in rules.iter().enumerate() {
                    let hidden = rules.iter().take(index).any(|before| before.covers(&rule));
                    assert!(!hidden, "{name}: {rule}");
                }
            }
        }
    }
}

/// The generated shares of protocols, port classes and lengths are those of the
/// profile.
#[test]
fn shares_are_those_of_the_profile() {
    let profile = built_in("acl5");
    let rules = 50_000;
    let policy = made(&Recipe::new(Family::Ipv4(Arc::clone(&profile)), rules, 1));
    let summary = Summary::of(&policy.parts()[0], 0, 1);
    let parts = profile.parts();
    let total: f64 = parts.protocols.iter().map(|p| p.share).sum();
    let protocols = parts.protocols.iter();
    let protocols = protocols.map(|p| (p.protocol, p.share / total)).collect();
    // Dropped duplicates more often have short prefixes, so the shares are not met
    // exactly.
    let off = distance(&summary.protocols, &protocols);
    assert!(off < 0.01, "{off}");
    let mut ports = std::collections::BTreeMap::new();
    for protocol in &parts.protocols {
        let sum: f64 = protocol.classes.iter().sum();
        for (class, share) in PortClass::ALL.into_iter().zip(protocol.classes) {
            *ports.entry(class).or_insert(0.0) += share / sum * protocol.share / total;
        }
    }
    // A range that ends at the last port counts as another class.
    let off = distance(&summary.ports, &ports);
    assert!(off < 0.02, "{off}");
    let mut lengths = std::collections::BTreeMap::new();
    let pairs = &parts.pairs[PortClass::from_name("any-exact").unwrap().index()];
    let sum: f64 = pairs.iter().map(|pair| pair.share).sum();
    for pair in pairs {
        let key = (pair.source.into(), pair.destination.into());
        lengths.insert(key, pair.share / sum);
    }
    let off = distance(&summary.lengths, &lengths);
    assert!(off < 0.01, "{off}");
}

#[test]
fn scopes_make_rules_more_general_or_more_specific() {
    let bits = |address_scope: f64, port_scope: f64| {
        let mut recipe = Recipe::new(Family::Ipv4(built_in("acl4")), 5000, 1);
        recipe.config.address_scope = address_scope;
        recipe.config.port_scope = port_scope;
        let policy = made(&recipe);
        let s = Summary::of(&policy.parts()[0], 0, 1);
        let lengths = s.lengths.iter();
        let length: f64 = lengths
            .map(|((a, b), share)| f64::from(a + b) * share)
            .sum();
        let ports = s.ports.iter();
        let exact = ports.filter(|(class, _)| class.destination == PortSide::Exact);
        (length, exact.map(|(_, share)| share).sum::<f64>())
    };
    let (length, exact) = bits(0.0, 0.0);
    assert!(bits(0.9, 0.0).0 < length - 2.0 && bits(-0.9, 0.0).0 > length + 2.0);
    assert!(bits(0.0, 0.9).1 < exact - 0.05 && bits(0.0, -0.9).1 > exact + 0.05);
}

#[test]
fn ipv6_prefixes_are_global_and_of_usual_lengths() {
    let policy = made(&Recipe::new(Family::Ipv6(built_in("acl3")), 2000, 1));
    for rule in policy.parts()[0].iter() {
        for id in rule.schema().field_ids().take(2) {
            match rule.field(id) {
                FieldMatch::Any => {}
                FieldMatch::Exact(value) => assert_eq!(value >> 125, 1),
                FieldMatch::Prefix { value, length } => {
                    assert!((16..=64).contains(&length));
                    assert_eq!(value >> 125, 1);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn dual_policies_share_what_says_nothing_about_addresses() {
    let policy = made(&Recipe::new(dual("fw1", 0.25), 4000, 1));
    let [four, six] = policy.parts() else {
        panic!("two parts");
    };
    let both = policy
        .ids()
        .iter()
        .filter(|&&id| policy.rule(id).count() == 2);
    let both = both.count();
    assert!(both > 10, "{both}");
    assert_eq!(four.len() + six.len(), 4000 + both);
    // Rules without addresses count for both families.
    assert!((900..1100 + both).contains(&six.len()), "{}", six.len());
}

/// The ratios of [DEC14] Table III are met.
///
/// [DEC14]: classyard::papers#dec14
#[test]
fn openflow_fields_have_the_papers_ratios_of_distinct_values() {
    let rules = 4000;
    let recipe = Recipe::new(Family::OpenFlow15(Box::default()), rules, 1);
    let policy = made(&recipe);
    let set = &policy.parts()[0];
    let ratios = OpenFlowRules::default().ratios;
    for (id, ratio) in set.schema().field_ids().zip(ratios) {
        let field = set.schema().field(id);
        let distinct: std::collections::HashSet<FieldMatch> =
            set.iter().map(|rule| rule.field(id)).collect();
        let room = if field.kind() == MatchKind::Exact && field.width() < 30 {
            (1 << field.width()) + 1
        } else {
            usize::MAX
        };
        let expected = draw::whole((rules as f64 * ratio).ceil(), room);
        let off = distinct.len().abs_diff(expected) as f64 / expected as f64;
        assert!(
            off < 0.01,
            "{}: {} {expected}",
            field.name(),
            distinct.len()
        );
    }
}

#[test]
fn consistent_openflow_rules_keep_the_prerequisites() {
    let family = Family::OpenFlow15(Box::new(OpenFlowRules::consistent()));
    let policy = made(&Recipe::new(family, 2000, 1));
    let set = &policy.parts()[0];
    let id = |name: &str| set.schema().field_named(name).unwrap();
    let mut with_ports = 0;
    for rule in set.iter() {
        let field = |name: &str| rule.field(id(name));
        let any = |names: &[&str]| names.iter().all(|name| field(name) == FieldMatch::Any);
        if !any(&["src", "dst", "proto", "ip_dscp", "sport", "dport"]) {
            assert_eq!(field("eth_type"), FieldMatch::Exact(0x0800));
            assert!(any(&["mpls_label", "mpls_tc"]));
        }
        if !any(&["mpls_label", "mpls_tc"]) {
            assert_eq!(field("eth_type"), FieldMatch::Exact(0x8847));
        }
        if !any(&["sport", "dport"]) {
            with_ports += 1;
            assert!(matches!(field("proto"), FieldMatch::Exact(6 | 17 | 132)));
        }
        assert!(any(&["vlan_pcp"]) || !any(&["vlan_vid"]));
    }
    assert!(with_ports > 500, "{with_ports}");
}

#[test]
fn random_rules_overlap_as_much_as_asked() {
    let overlapping = |overlap: f64, wildcard_share: f64| {
        let random = RandomRules {
            wildcard_share,
            overlap,
            anchors: 2,
        };
        let policy = made(&Recipe::new(Family::Schema(wide_schema(), random), 200, 1));
        let set = &policy.parts()[0];
        let pairs = set.iter().enumerate().flat_map(|(i, a)| {
            let later = set.iter().skip(i + 1);
            later.filter(move |b| a.overlaps(b))
        });
        pairs.count()
    };
    // With two anchors, about half of the pairs of rules have one anchor in common.
    assert!(overlapping(1.0, 0.5) > 9_000);
    assert!(overlapping(0.0, 0.2) < 100);
    assert!(overlapping(0.0, 0.97) > 9_000);
}

#[test]
fn what_cannot_be_is_said() {
    let fail = |change: fn(&mut Recipe)| {
        let mut recipe = Recipe::new(dual("acl1", 0.5), 100, 1);
        change(&mut recipe);
        let error = generate(&recipe, &mut NoProgress).expect_err("cannot be");
        error.to_string()
    };
    assert!(fail(|r| r.config.smoothing = 65).contains("0 to 64"));
    assert!(fail(|r| r.config.address_scope = 1.5).contains("address scope"));
    assert!(fail(|r| r.config.port_scope = f64::NAN).contains("port scope"));
    assert!(fail(|r| r.actions.clear()).contains("actions"));
    assert!(fail(|r| r.config.rules = usize::MAX).contains("number of rules"));
    assert!(fail(|r| r.family = dual("acl1", -0.1)).contains("IPv6"));
    let random = |wildcard_share: f64, anchors: usize| {
        let random = RandomRules {
            wildcard_share,
            anchors,
            ..RandomRules::default()
        };
        let recipe = Recipe::new(Family::Schema(wide_schema(), random), 10, 1);
        let error = generate(&recipe, &mut NoProgress).expect_err("cannot be");
        error.to_string()
    };
    assert!(random(1.5, 1).contains("wildcard share"));
    assert!(random(0.5, 0).contains("anchors"));
    let mut wrong = OpenFlowRules::default();
    wrong.ratios[3] = 2.0;
    let recipe = Recipe::new(Family::OpenFlow15(Box::new(wrong)), 10, 1);
    assert!(generate(&recipe, &mut NoProgress).is_err());

    struct Stop;
    impl Progress for Stop {
        fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    for recipe in recipes(100, 1) {
        let stopped = generate(&recipe, &mut Stop);
        assert!(matches!(stopped, Err(GenerateError::Stopped { .. })));
    }
}

/// A profile that has four distinct rules.
fn tiny_profile() -> Profile {
    let mut parts = Profile::built_in("ipc2").unwrap().clone().into_parts();
    parts.protocols.truncate(1);
    parts.protocols[0].classes = [0.0; PORT_CLASSES];
    parts.protocols[0].classes[0] = 1.0;
    parts.pairs[0] = vec![PairShare {
        source: 1,
        destination: 1,
        share: 1.0,
    }];
    Profile::new(parts).unwrap()
}

#[test]
fn too_few_distinct_rules_are_an_error_unless_accepted() {
    let mut recipe = Recipe::new(Family::Ipv4(Arc::new(tiny_profile())), 50, 1);
    let error = generate(&recipe, &mut NoProgress).unwrap_err();
    let GenerateError::TooFew { found, wanted: 50 } = error else {
        panic!("{error}");
    };
    assert!((1..=4).contains(&found));
    recipe.accept_fewer = true;
    assert_eq!(made(&recipe).len(), found);
    recipe.config.rules = 0;
    assert!(made(&recipe).is_empty());
}

fn any_shape() -> impl Strategy<Value = TrieShape> {
    let level =
        (0.0..=1.0, 0.0..=1.0).prop_map(|(two_children, skew)| Level { two_children, skew });
    let levels = proptest::collection::vec(level, LEVELS);
    (0u32..7, levels).prop_map(|(nesting, levels)| TrieShape {
        nesting,
        levels: levels.try_into().unwrap(),
    })
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let pair = (0u8..=32, 0u8..=32, 0.01..1.0);
    let pair = pair.prop_map(|(source, destination, share)| PairShare {
        source,
        destination,
        share,
    });
    let pairs = proptest::collection::vec(pair, 1..6);
    let pairs = proptest::collection::vec(pairs, PORT_CLASSES);
    let port = (any::<u16>(), any::<u16>(), 0.01..1.0);
    let port = port.prop_map(|(a, b, share)| PortShare {
        low: a.min(b),
        high: a.max(b),
        share,
    });
    let ports = proptest::collection::vec(port, 1..4);
    let pool = (ports.clone(), ports).prop_map(|(ranges, exact)| PortPool { ranges, exact });
    let classes = proptest::collection::vec(0.0..1.0, PORT_CLASSES);
    let protocol = (any::<Option<u8>>(), 0.01..1.0, classes);
    let protocol = protocol.prop_map(|(protocol, share, classes)| ProtocolShare {
        protocol,
        share,
        classes: classes.try_into().unwrap(),
    });
    let protocols = proptest::collection::vec(protocol, 1..4);
    let shapes = (any_shape(), any_shape());
    let correlation = proptest::collection::vec(0.0..=1.0, LEVELS);
    (
        1u32..2000,
        protocols,
        pool.clone(),
        pool,
        pairs,
        shapes,
        correlation,
    )
        .prop_map(
            |(reference_rules, protocols, source, destination, pairs, shapes, correlation)| {
                let parts = ProfileParts {
                    name: "any".to_owned(),
                    summary: "whatever".to_owned(),
                    reference_rules,
                    protocols,
                    source_ports: source,
                    destination_ports: destination,
                    pairs: pairs.try_into().unwrap(),
                    source: shapes.0,
                    destination: shapes.1,
                    correlation: correlation.try_into().unwrap(),
                };
                Profile::new(parts).unwrap()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_profile_makes_the_generator_panic(
        profile in any_profile(),
        rules in 0usize..300,
        smoothing in 0u32..=64,
        address_scope in -1.0..=1.0,
        port_scope in -1.0..=1.0,
    ) {
        let again = Profile::from_toml("any", &profile.to_toml());
        prop_assert_eq!(again.as_ref().ok(), Some(&profile), "{:?}", again);
        let profile = Arc::new(profile);
        let dual = Family::Dual { profile: Arc::clone(&profile), ipv6_share: 0.5 };
        for family in [Family::Ipv4(Arc::clone(&profile)), Family::Ipv6(profile), dual] {
            let recipe = Recipe {
                config: GeneratorConfig { rules, seed: 1, smoothing, address_scope, port_scope },
                accept_fewer: true,
                ..Recipe::new(family, 0, 0)
            };
            let policy = made(&recipe);
            prop_assert!(policy.len() <= rules);
        }
    }
}
