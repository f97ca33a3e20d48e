//! Compares the forest with the oracle, for every instruction set, batch length and key
//! width.

#![allow(clippy::print_stdout)] // prints the skipped checks

use std::sync::Arc;

use classyard::classifier::MetricValue;
use classyard::{BuildError, EngineSpec, KeyVec, Limits, NoProgress, RuleSet, Scratch, Winner};
use classyard_workload::generate::{Family, GeneratorConfig, Profile, Recipe, generate};
use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};

/// Batch lengths: 0 to 17 (twice the 8 lanes of the widest vector, plus 1), and lengths
/// around a full batch.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=2 * 8 + 1).chain([255, 256, 257, 600])
}

fn families() -> Vec<Family> {
    let profile = |name: &str| Arc::new(Profile::built_in(name).unwrap().clone());
    vec![
        Family::Ipv4(profile("acl4")),
        Family::Ipv4(profile("fw1")),
        Family::Ipv4(profile("ipc2")),
        Family::Ipv6(profile("acl2")),
        Family::Ipv6(profile("fw4")),
        Family::OpenFlow15(Box::default()),
    ]
}

fn check(spec: &EngineSpec, rules: &RuleSet, keys: &KeyVec, right: &[Winner]) {
    let built = match spec.build(rules, &Limits::default(), &mut NoProgress) {
        Err(error @ BuildError::Unavailable { .. }) => {
            println!("skipped: {error}");
            return;
        }
        built => built.unwrap(),
    };
    let mut scratch = Scratch::new();
    for length in lengths() {
        let mut from = 0;
        while from < keys.len() {
            let to = (from + length.max(1)).min(keys.len());
            let batch = keys.as_slice().range(from..from + length.min(to - from));
            let mut winners = vec![Winner::MISS; batch.len()];
            built.classify_batch(batch, &mut winners, &mut scratch);
            assert_eq!(
                winners,
                right[from..from + batch.len()],
                "{spec}: a batch of {length} from header {from}"
            );
            // There are many short batches, so most of them are skipped.
            from = to + if length < 20 { 97 } else { 0 };
        }
    }
    for (index, key) in keys.as_slice().iter().enumerate() {
        assert_eq!(built.classify_one(key), right[index], "{spec}");
    }
}

#[test]
fn every_instruction_set_and_shape_answers_alike() {
    let mut hits = 0;
    for family in families() {
        for size in [3, 40, 900, 5000] {
            let mut recipe = Recipe::new(family.clone(), size, 7);
            recipe.config = GeneratorConfig::benchmark(size, 7);
            recipe.accept_fewer = true;
            let policy = generate(&recipe, &mut NoProgress).unwrap();
            let rules = &policy.parts()[0];
            let config = TrafficConfig::new(1500, 3);
            let mut keys = KeyVec::new(rules.schema());
            for traffic_recipe in [TrafficRecipe::Corners, TrafficRecipe::classbench()] {
                let drawn = traffic(&policy, &traffic_recipe, &config, None, &mut NoProgress);
                for (_, key) in drawn.unwrap().trace.iter() {
                    keys.push_key(key);
                }
            }
            let right: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
            hits += right.iter().filter(|winner| !winner.is_miss()).count();
            for options in [
                "isa=avx512",
                "isa=avx2",
                "isa=scalar",
                "bucket=1:most=2",
                "bucket=8:most=2",
                "bucket=64:most=64:seed=99",
            ] {
                let spec = EngineSpec::parse(&format!("forest:{options}")).unwrap();
                check(&spec, rules, &keys, &right);
            }
        }
    }
    assert!(hits > 20_000, "only {hits} headers hit a rule");
}

#[test]
fn predicted_probes_are_those_that_lookups_make() {
    for (profile, size) in [
        ("acl1", 1000),
        ("fw2", 1000),
        ("ipc1", 1000),
        ("fw4", 10_000),
    ] {
        let profile_of = Arc::new(Profile::built_in(profile).unwrap().clone());
        let mut recipe = Recipe::new(Family::Ipv4(profile_of), size, 5);
        recipe.config = GeneratorConfig::benchmark(size, 5);
        recipe.accept_fewer = true;
        let policy = generate(&recipe, &mut NoProgress).unwrap();
        let rules = &policy.parts()[0];
        let spec = EngineSpec::parse("forest:seed=0").unwrap();
        let built = spec
            .build(rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        let stats = built.stats();
        let told = |name: &str| match stats.metric(name) {
            Some(MetricValue::Ratio(ratio)) => ratio,
            other => panic!("{name}: {other:?}"),
        };
        let config = TrafficConfig::new(5000, 3);
        let uniform = TrafficRecipe::uniform();
        let drawn = traffic(&policy, &uniform, &config, None, &mut NoProgress).unwrap();
        let (mut probes, mut compares, mut headers) = (0.0, 0.0, 0.0);
        for (_, key) in drawn.trace.iter() {
            let trace = built.trace(key);
            let compared = trace
                .probes
                .iter()
                .filter(|probe| !probe.compared.is_empty());
            compares += f64::from(u32::try_from(compared.count()).unwrap());
            probes += f64::from(u32::try_from(trace.probes.len()).unwrap());
            headers += 1.0;
        }
        // Probes of nested tables are counted but not predicted.
        let close = |what: &str, counted: f64| {
            let share = counted / headers / told(what);
            assert!(
                (0.8..1.25).contains(&share),
                "{profile}, {size} rules: {share} of the {what}"
            );
        };
        close("predicted probes", probes);
        close("predicted compares", compares);
    }
}
