use std::collections::HashMap;
use std::sync::Arc;

use classyard::{
    ActionId, EngineSpec, FieldMatch, KeyVec, Limits, NoProgress, Priority, RuleId, RuleSet, Schema,
};

use super::*;
use crate::generate::{Family, Profile, RandomRules, Recipe, generate};

fn policy(name: &str, rules: usize) -> Policy {
    let profile = Arc::new(Profile::built_in(name).unwrap().clone());
    generate(
        &Recipe::new(Family::Ipv4(profile), rules, 1),
        &mut NoProgress,
    )
    .unwrap()
}

fn make(policy: &Policy, recipe: &TrafficRecipe, headers: usize) -> Traffic {
    let config = TrafficConfig { headers, seed: 5 };
    traffic(policy, recipe, &config, None, &mut NoProgress).unwrap()
}

fn recipes() -> Vec<TrafficRecipe> {
    vec![
        TrafficRecipe::classbench(),
        TrafficRecipe::uniform(),
        TrafficRecipe::Zipf {
            flows: 100,
            alpha: 1.0,
        },
        TrafficRecipe::Flows(FlowModel::default()),
        TrafficRecipe::Corners,
        TrafficRecipe::Misses { tries: 1000 },
        TrafficRecipe::Random,
    ]
}

/// A policy of each family.
fn policies() -> Vec<Policy> {
    let profile = Arc::new(Profile::built_in("acl5").unwrap().clone());
    let dual = Family::Dual {
        profile: Arc::clone(&profile),
        ipv6_share: 0.5,
    };
    let ternary = {
        let field = classyard::Field::new("t", 20, classyard::MatchKind::Ternary);
        let wide = classyard::Field::new("r", 100, classyard::MatchKind::Range);
        Schema::new("t", vec![field, wide]).unwrap()
    };
    let random = RandomRules {
        wildcard_share: 0.0,
        ..RandomRules::default()
    };
    [
        Family::Ipv4(Arc::clone(&profile)),
        Family::Ipv6(profile),
        dual,
        Family::OpenFlow15(Box::default()),
        Family::Schema(ternary, random),
    ]
    .map(|family| generate(&Recipe::new(family, 200, 3), &mut NoProgress).unwrap())
    .into()
}

#[test]
fn every_recipe_makes_as_many_headers_as_asked_the_same_each_time() {
    for policy in policies() {
        for recipe in recipes() {
            for headers in [0, 1, 777] {
                let made = make(&policy, &recipe, headers);
                assert_eq!(made.trace.len(), headers, "{recipe:?} {}", policy.name());
                assert_eq!(made, make(&policy, &recipe, headers));
            }
        }
    }
}

#[test]
fn the_same_recipe_gives_the_same_headers_everywhere() {
    // If these numbers change, the generated traces of all users change.
    let golden = [
        0x59d1_0c99_a4d0_e1c9_u64,
        0x7118_95b0_07a1_caf0,
        0x2e2a_7a63_4ce9_0b66,
        0x4dae_799a_1bb7_6dcc,
        0xbf91_5f18_0192_9681,
        0x223b_c59f_2f6a_36a4,
        0xceab_7901_72fd_2d69,
    ];
    let policy = policy("acl5", 500);
    let found: Vec<u64> = recipes()
        .iter()
        .map(|recipe| {
            let made = make(&policy, recipe, 2000);
            let words = made.trace.iter().flat_map(|(_, key)| key.iter().copied());
            let flows = made.flows.iter().map(|&flow| u64::from(flow));
            let all = words.chain(flows).chain(made.timestamps.iter().copied());
            all.flat_map(u64::to_le_bytes)
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                })
        })
        .collect();
    assert_eq!(found, golden, "{found:#018x?}");
}

fn hits(policy: &Policy, made: &Traffic) -> usize {
    let hit = |(part, key): (PartId, &[u64])| !policy.part(part).scan(key).is_miss();
    made.trace.iter().filter(|&header| hit(header)).count()
}

#[test]
fn rule_headers_hit_and_misses_miss() {
    for policy in policies() {
        for recipe in recipes() {
            let made = make(&policy, &recipe, 500);
            let hits = hits(&policy, &made);
            match recipe {
                TrafficRecipe::Misses { .. } => assert_eq!(hits, 0),
                TrafficRecipe::Random => {}
                TrafficRecipe::Corners => assert!((100..=500).contains(&hits), "{hits}"),
                _ => assert_eq!(hits, 500, "{recipe:?} {}", policy.name()),
            }
        }
    }
}

#[test]
fn bursts_repeat_headers_and_without_scale_there_are_none() {
    let policy = policy("acl1", 1000);
    let repeats = |made: &Traffic| {
        let keys: Vec<&[u64]> = made.trace.iter().map(|(_, key)| key).collect();
        keys.windows(2).filter(|pair| pair[0] == pair[1]).count()
    };
    assert!(repeats(&make(&policy, &TrafficRecipe::uniform(), 5000)) < 30);
    let bursts = repeats(&make(&policy, &TrafficRecipe::classbench(), 5000));
    // One header in ten is sent more than once; few are sent very often.
    assert!((500..4000).contains(&bursts), "{bursts}");
}

#[test]
fn zipf_flows_have_the_shares_that_alpha_says() {
    let policy = policy("acl1", 1000);
    let recipe = TrafficRecipe::Zipf {
        flows: 50,
        alpha: 1.0,
    };
    let made = make(&policy, &recipe, 100_000);
    let mut counts: HashMap<u32, f64> = HashMap::new();
    for &flow in &made.flows {
        *counts.entry(flow).or_default() += 1.0;
    }
    let harmonic: f64 = (1..=50).map(|k| 1.0 / f64::from(k)).sum();
    for rank in 0..50u32 {
        let expected = 100_000.0 / (harmonic * f64::from(rank + 1));
        let found = counts[&rank];
        assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{rank}");
    }
    let mut keys = HashMap::new();
    for ((_, key), flow) in made.trace.iter().zip(&made.flows) {
        assert_eq!(
            *keys.entry(*flow).or_insert(key),
            key,
            "a flow has one header"
        );
    }
}

#[test]
fn flows_begin_at_their_rate_and_times_do_not_run_back() {
    let policy = policy("fw1", 500);
    let made = make(&policy, &TrafficRecipe::Flows(FlowModel::default()), 50_000);
    assert_eq!(made.timestamps.len(), 50_000);
    assert_eq!(made.flows.len(), 50_000);
    assert!(made.timestamps.is_sorted());
    let flows = f64::from(*made.flows.iter().max().unwrap() + 1);
    let seconds = *made.timestamps.last().unwrap() as f64 / 1e9;
    let rate = flows / seconds;
    assert!((9_000.0..11_000.0).contains(&rate), "{rate}");
    for model in [
        FlowModel {
            size: Size::LogNormal {
                median: 5.0,
                sigma: 1.5,
            },
            gap: Gap::LogNormal {
                median: 1000.0,
                sigma: 1.0,
            },
            trains: None,
            ..FlowModel::default()
        },
        FlowModel {
            flows_per_second: 1e-3,
            ..FlowModel::default()
        },
    ] {
        let made = make(&policy, &TrafficRecipe::Flows(model), 2000);
        assert!(made.timestamps.is_sorted());
    }
}

#[test]
fn a_classifier_finds_the_same_misses_as_a_scan() {
    let policy = policy("acl5", 300);
    let engine = EngineSpec::parse("linear").unwrap();
    let built = policy.build(&engine, &Limits::default(), &mut NoProgress);
    let config = TrafficConfig {
        headers: 400,
        seed: 5,
    };
    let recipe = TrafficRecipe::Misses { tries: 100 };
    let made = traffic(
        &policy,
        &recipe,
        &config,
        Some(&built.unwrap()),
        &mut NoProgress,
    );
    assert_eq!(made.unwrap(), make(&policy, &recipe, 400));
}

#[test]
fn what_cannot_be_is_said() {
    let schema = Schema::ipv4_5tuple();
    let config = TrafficConfig {
        headers: 10,
        seed: 1,
    };
    let fail = |policy: &Policy, recipe: TrafficRecipe| {
        let made = traffic(policy, &recipe, &config, None, &mut NoProgress);
        made.expect_err("cannot be").to_string()
    };
    let empty = Policy::single(&schema);
    assert!(fail(&empty, TrafficRecipe::classbench()).contains("no rules"));
    assert_eq!(make(&empty, &TrafficRecipe::Random, 10).trace.len(), 10);
    assert_eq!(
        make(&empty, &TrafficRecipe::Misses { tries: 1 }, 10)
            .trace
            .len(),
        10
    );

    let mut rules = RuleSet::new(&schema);
    let any = [FieldMatch::Any; 5];
    rules
        .add(RuleId::from_index(0), Priority(1), ActionId(0), &any)
        .unwrap();
    let all = Policy::from(rules);
    assert!(fail(&all, TrafficRecipe::Misses { tries: 10 }).contains("rule 0"));

    // Two rules that cover everything together.
    let mut rules = RuleSet::new(&schema);
    for (index, low) in [(0, 0), (1, 0x8000)] {
        let mut half = any;
        half[2] = FieldMatch::Range {
            low,
            high: low + 0x7fff,
        };
        let id = RuleId::from_index(index);
        rules.add(id, Priority(1), ActionId(0), &half).unwrap();
    }
    let halves = Policy::from(rules);
    assert!(fail(&halves, TrafficRecipe::Misses { tries: 10 }).contains("only 0 of 10"));
    assert!(fail(&halves, TrafficRecipe::Misses { tries: 0 }).contains("tries"));
    let zipf = |flows, alpha| TrafficRecipe::Zipf { flows, alpha };
    assert!(fail(&halves, zipf(0, 1.0)).contains("number of flows"));
    assert!(fail(&halves, zipf(5, f64::NAN)).contains("alpha"));
    let bursts = TrafficRecipe::Rules {
        shape: 0.0,
        scale: 1.0,
    };
    assert!(fail(&halves, bursts).contains("shape"));
    let model = FlowModel {
        flows_per_second: 0.0,
        ..FlowModel::default()
    };
    assert!(fail(&halves, TrafficRecipe::Flows(model)).contains("rate"));

    struct Stop;
    impl Progress for Stop {
        fn report(&mut self, _: &'static str, _: usize, _: usize) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Break(())
        }
    }
    let made = traffic(&halves, &TrafficRecipe::Corners, &config, None, &mut Stop);
    assert!(matches!(made, Err(TrafficError::Stopped { .. })));
}

#[test]
fn corners_stand_inside_and_just_outside() {
    let policy = policy("acl5", 50);
    // Each rule with each end of each field once.
    let made = make(&policy, &TrafficRecipe::Corners, 50 * 20);
    let rules = &policy.parts()[0];
    let mut inside = vec![0; rules.len()];
    for (_, key) in made.trace.iter() {
        for (index, rule) in rules.iter().enumerate() {
            inside[index] += usize::from(rule.matches(key));
        }
    }
    // Ten headers are in each rule, plus headers next to fields that have no value
    // outside.
    assert!(
        inside.iter().all(|&count| (10..=20).contains(&count)),
        "{inside:?}"
    );
    let hits = hits(&policy, &made);
    assert!((500..900).contains(&hits), "{hits}");
}

#[test]
fn the_worst_headers_are_more_work_than_others() {
    let family = Family::Hostile(crate::generate::Hostile::NestedPrefixes);
    let policy = generate(&Recipe::new(family, 2000, 1), &mut NoProgress).unwrap();
    let config = TrafficConfig {
        headers: 500,
        seed: 4,
    };
    for engine in classyard::EngineSpec::all() {
        // The lookup cost depends on the hash positions of rules, so the seed is fixed.
        let engine = engine.seeded(0);
        let limits = classyard::Limits::default();
        let classifier = policy.build(&engine, &limits, &mut NoProgress).unwrap();
        let costs = |recipe: &TrafficRecipe| -> Vec<usize> {
            let made = traffic(&policy, recipe, &config, Some(&classifier), &mut NoProgress);
            let trace = made.unwrap().trace;
            assert_eq!(trace.len(), 500);
            let cost = |(part, key)| worst::cost(&classifier.part(part).trace(key));
            trace.iter().map(cost).collect()
        };
        let sum = |recipe: &TrafficRecipe| costs(recipe).iter().sum::<usize>();
        let inner = engine.inner().unwrap_or(&engine);
        if ["rfc", "decomposition"].contains(&inner.engine().name) {
            // A hit takes one read for each table or field. If vectors were joined, it
            // also takes the comparison with the winning rule, at any position.
            let usual = costs(&TrafficRecipe::uniform());
            let worst = costs(&TrafficRecipe::Worst { candidates: 1000 });
            let most = *usual.iter().max().unwrap();
            assert_eq!(worst, [most; 500], "{engine}");
            continue;
        }
        let usual = sum(&TrafficRecipe::uniform());
        for recipe in [
            TrafficRecipe::Worst { candidates: 1000 },
            TrafficRecipe::OneBucket { candidates: 1000 },
        ] {
            let worst = sum(&recipe);
            assert!(worst > usual, "{engine} {recipe:?}: {worst} and {usual}");
        }
    }
    let recipe = TrafficRecipe::Worst { candidates: 10 };
    let made = traffic(&policy, &recipe, &config, None, &mut NoProgress);
    assert_eq!(made, Err(TrafficError::NoClassifier));
}

#[test]
fn traffic_with_locality_is_the_stream_of_its_model() {
    let model = LocalityModel {
        warm_up: 0.5,
        ..locality::TRACE1
    };
    let recipe = TrafficRecipe::Locality(model);
    let config = TrafficConfig::new(500, 3);
    let of = |policy: &Policy| traffic(policy, &recipe, &config, None, &mut NoProgress);
    let made = of(&policy("fw1", 20)).unwrap();
    assert_eq!(made.trace.len(), 500);
    let schema = Schema::ipv4_5tuple();
    let stream = model.packets(3).unwrap().take(500);
    for (index, (packet, (_, own))) in stream.zip(made.trace.iter()).enumerate() {
        assert_eq!(made.timestamps[index], packet.time);
        assert_eq!(u64::from(made.flows[index]), packet.flow);
        let header = packet.header;
        let mut key = KeyVec::new(&schema);
        key.push(&[
            header.source.into(),
            header.destination.into(),
            header.source_port.into(),
            header.destination_port.into(),
            header.protocol.into(),
        ])
        .unwrap();
        assert_eq!(own, key.key(0));
    }
    // Rules are not needed, but the schema is.
    assert_eq!(of(&Policy::single(&schema)), Ok(made));
    let ipv6 = Policy::single(&Schema::ipv6_5tuple());
    assert_eq!(of(&ipv6), Err(TrafficError::NoIpv4));
}
