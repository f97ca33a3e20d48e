//! Compares estimates of engines with built classifiers: bytes within a factor, and equal
//! refusals. Times are not measured; their estimates are only checked for plausibility.

#![allow(clippy::cast_precision_loss)] // ratios

use std::mem::discriminant;
use std::sync::Arc;

use classyard::engine::ENGINES;
use classyard::engine::{Engine, EngineOption, Wraps};
use classyard::error::Refusal;
use classyard::estimate::Tuple;
use classyard::estimate::{Costs, Estimate, Shape};
use classyard::{BuildError, EngineSpec, Field, Limits, MatchKind, NoProgress, RuleSet, Schema};
use classyard_workload::generate::{
    Family, GeneratorConfig, Hostile, Profile, RandomRules, Recipe, generate,
};

/// The maximum factor between the estimated bytes and the bytes of the built classifier.
const FACTOR: f64 = 1.5;

/// The factor for `decomposition`. For many rules, the number of vectors of its fields is
/// extrapolated from a sample, and its memory has as many vectors as fit into a bound.
const VECTORS_FACTOR: f64 = 4.0;

/// The difference in bytes that is always allowed: small sets consist mostly of the first
/// allocation of each array.
const ALLOWED_DIFFERENCE_BYTES: f64 = 1024.0;

fn specs() -> Vec<EngineSpec> {
    let options = [
        "tss:mask=no-ports",
        "tss:mask=addresses",
        "tuplemerge:c=8",
        "forest:bucket=8",
    ];
    let options = options.map(|text| EngineSpec::parse(text).unwrap());
    let (alone, mut wrapping): (Vec<_>, Vec<_>) =
        EngineSpec::all().partition(|spec| spec.inner().is_none());
    // The bytes of a wrapper do not depend on its inner engine.
    wrapping.dedup_by_key(|spec| spec.engine().name);
    alone.into_iter().chain(wrapping).chain(options).collect()
}

/// Returns a schema of 20 fields of all kinds and several widths, 704 bits in total.
fn wide_schema() -> Arc<Schema> {
    let kinds = [
        MatchKind::Exact,
        MatchKind::Prefix,
        MatchKind::Range,
        MatchKind::Ternary,
    ];
    let widths = [48, 16, 32, 64, 16];
    let field = |number: usize| {
        let name = format!("field{number}");
        Field::new(&name, widths[number % 5], kinds[number % 4])
    };
    Schema::new("wide", (0..20).map(field).collect()).unwrap()
}

fn rules(family: Family, count: usize) -> RuleSet {
    let mut recipe = Recipe::new(family, count, 3);
    recipe.config = GeneratorConfig::benchmark(count, 3);
    recipe.accept_fewer = true;
    let policy = generate(&recipe, &mut NoProgress).unwrap();
    policy.parts()[0].clone()
}

fn profile(name: &str) -> Arc<Profile> {
    Arc::new(Profile::built_in(name).unwrap().clone())
}

/// Panics unless the estimated bytes of each engine are near the real bytes.
fn bytes_are_near(name: &str, rules: &RuleSet, factor: f64) {
    let shape = Shape::of(rules);
    assert_eq!(shape.rules(), rules.len());
    for spec in specs() {
        let estimate = spec.estimate(&shape, &Limits::default()).unwrap();
        are_times(&spec, &estimate);
        let built = spec.build(rules, &Limits::default(), &mut NoProgress);
        let (expected, found) = (built.unwrap().stats().bytes() as f64, estimate.bytes as f64);
        let inner = spec.inner().unwrap_or(&spec);
        let factor = match inner.engine().name {
            "decomposition" => factor.max(VECTORS_FACTOR),
            _ => factor,
        };
        let near = found <= expected * factor + ALLOWED_DIFFERENCE_BYTES
            && expected <= found * factor + ALLOWED_DIFFERENCE_BYTES;
        let count = rules.len();
        assert!(
            near,
            "{spec} over {count} rules of {name}: {found} bytes estimated, {expected} built"
        );
    }
}

fn are_times(spec: &EngineSpec, estimate: &Estimate) {
    let Estimate {
        build,
        lookup_ns,
        single_ns,
        update_ns,
        ..
    } = *estimate;
    assert!(!build.is_zero(), "{spec}");
    assert!(single_ns.is_finite() && single_ns > 0.0, "{spec}");
    assert!(lookup_ns.is_finite() && lookup_ns > 0.0, "{spec}");
    assert_eq!(update_ns.is_some(), spec.is_dynamic(), "{spec}");
    let update_ns = update_ns.unwrap_or(1.0);
    assert!(update_ns.is_finite() && update_ns > 0.0, "{spec}");
}

#[test]
fn bytes_are_near_those_of_built_classifiers() {
    let sizes = [0, 1, 100, 2500];
    for count in sizes {
        for name in ["acl4", "fw2", "ipc1"] {
            let ipv4 = rules(Family::Ipv4(profile(name)), count);
            bytes_are_near(name, &ipv4, FACTOR);
        }
        let ipv6 = rules(Family::Ipv6(profile("acl3")), count);
        bytes_are_near("acl3, IPv6", &ipv6, FACTOR);
        let openflow = rules(Family::OpenFlow15(Box::default()), count);
        bytes_are_near("openflow15", &openflow, FACTOR);
        let wide = Family::Schema(wide_schema(), RandomRules::default());
        bytes_are_near("a wide schema", &rules(wide, count), FACTOR);
    }
}

#[test]
fn bytes_of_many_rules_are_near_as_well() {
    for name in ["acl2", "fw5"] {
        let ipv4 = rules(Family::Ipv4(profile(name)), 12_000);
        bytes_are_near(name, &ipv4, FACTOR);
    }
    let openflow = rules(Family::OpenFlow15(Box::default()), 20_000);
    bytes_are_near("openflow15", &openflow, FACTOR);
}

/// Tests rules whose cost depends more on their values than on their tuples.
#[test]
fn bytes_of_hostile_rules_are_near_within_a_larger_factor() {
    for hostile in Hostile::ALL {
        let hard = rules(Family::Hostile(hostile), 2500);
        bytes_are_near(hostile.name(), &hard, 2.0);
    }
}

/// Tests ids that are far apart, with one id in each of many groups.
#[test]
fn scattered_ids_count() {
    let dense = rules(Family::Ipv4(profile("acl1")), 3000);
    let mut scattered = RuleSet::new(dense.schema());
    for rule in dense.iter() {
        let fields = rule.fields();
        let id = classyard::RuleId::from_index(rule.id().index() * 1000);
        let added = scattered.add(id, rule.priority(), rule.action(), &fields);
        added.unwrap();
    }
    let groups = Shape::of(&scattered).id_groups();
    assert!((2700..=3000).contains(&groups), "{groups} groups");
    bytes_are_near("scattered ids", &scattered, FACTOR);
}

#[test]
fn more_rules_cost_more() {
    let shape = Shape::of(&rules(Family::Ipv4(profile("fw3")), 5000));
    for spec in specs() {
        let mut before: Option<Estimate> = None;
        for count in [10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000] {
            let estimate = spec.estimate(&shape.with_rules(count), &Limits::default());
            let estimate = match estimate {
                Ok(estimate) => estimate,
                // The engine has its own limit. All larger counts would also exceed it.
                Err(BuildError::TooManyBytes { needed, limit }) => {
                    assert!(needed > limit && limit >= 1 << 30, "{spec}, {count} rules");
                    assert!(
                        before.is_some_and(|before| before.bytes > 10 << 20),
                        "{spec}"
                    );
                    break;
                }
                Err(other) => panic!("{spec}, {count} rules: {other}"),
            };
            are_times(&spec, &estimate);
            if let Some(before) = before {
                assert!(estimate.bytes > before.bytes, "{spec}, {count} rules");
                assert!(estimate.build > before.build, "{spec}, {count} rules");
            }
            before = Some(estimate);
        }
    }
}

#[test]
fn a_scan_is_slower_than_the_forest_where_rules_are_many() {
    let [linear, forest] = ["linear", "forest"].map(|name| EngineSpec::named(name).unwrap());
    for name in ["acl5", "fw2", "ipc1"] {
        let shape = Shape::of(&rules(Family::Ipv4(profile(name)), 10_000));
        for count in [10_000, 100_000] {
            let shape = shape.with_rules(count);
            let [slow, fast] = [&linear, &forest].map(|spec| {
                let estimate = spec.estimate(&shape, &Limits::default());
                estimate.unwrap().lookup_ns
            });
            assert!(slow > 10.0 * fast, "{name}: {slow} ns, {fast} ns");
        }
    }
}

/// Returns the errors of building and of estimating.
fn refusals(spec: &EngineSpec, rules: &RuleSet, limits: &Limits) -> [Option<BuildError>; 2] {
    let built = spec.build(rules, limits, &mut NoProgress);
    let estimated = spec.estimate(&Shape::of(rules), limits);
    [built.err(), estimated.err()]
}

#[test]
fn limits_refuse_as_building_does() {
    let rules = rules(Family::Ipv4(profile("acl1")), 500);
    for spec in EngineSpec::all() {
        let few = Limits::default().with_rules(499);
        let [built, estimated] = refusals(&spec, &rules, &few);
        assert!(matches!(built, Some(BuildError::TooManyRules { .. })));
        assert_eq!(built, estimated, "{spec}");

        // A limit that is above the size of the rules alone, which building checks first.
        let bytes = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let bytes = bytes.unwrap().stats().bytes();
        let small = Limits::default().with_bytes(bytes / 2);
        let [built, estimated] = refusals(&spec, &rules, &small);
        let [built, estimated] = [built, estimated].map(Option::unwrap);
        assert_eq!(discriminant(&built), discriminant(&estimated), "{spec}");
        let BuildError::TooManyBytes { needed, limit } = estimated else {
            panic!("{spec}: {estimated}");
        };
        assert_eq!(limit, bytes / 2);
        let near = needed * 2 > bytes && needed < bytes * 2;
        assert!(near, "{spec}: {needed} of {bytes} bytes");

        let ample = Limits::default().with_rules(500).with_bytes(bytes * 2);
        assert_eq!(refusals(&spec, &rules, &ample), [None, None], "{spec}");
    }
}

/// Tests more rules than the forest can address or any machine can hold.
#[test]
fn capacity_refuses() {
    let schema = Schema::ipv4_5tuple();
    let pairs = Tuple::of_lengths(&schema, &[32, 32, 0, 0, 0], 2_000_000_000);
    let shape = Shape::new(&schema, vec![pairs]);
    let forest = EngineSpec::named("forest").unwrap();
    let empty = RuleSet::new(&schema);
    let built = forest.build(&empty, &Limits::default(), &mut NoProgress);
    let capacity = built.unwrap().dynamic().unwrap().capacity();
    let refused = forest.estimate(&shape, &Limits::default());
    let expected = BuildError::EngineFull {
        engine: "forest".to_owned(),
        rules: 2_000_000_000,
        limit: capacity,
    };
    assert_eq!(refused, Err(expected));
    let at_capacity = forest.estimate(&shape.with_rules(capacity), &Limits::default());
    assert!(at_capacity.unwrap().bytes > 40 * capacity);
}

/// A registry with an option value that no host supports, an engine that refuses ternary
/// fields, and a wrapper.
static TOYS: &[Engine] = &[
    Engine {
        options: &[EngineOption::host_choice(
            "isa",
            &["auto", "quantum"],
            |word| (word == "quantum").then(|| "this processor has auto".to_owned()),
            "instructions",
        )],
        ..toy("plain", Wraps::Nothing)
    },
    Engine {
        dynamic: Engine::takes_no_updates,
        accepts: no_ternary,
        build: |request| {
            let linear = EngineSpec::named("linear")?;
            linear.build(request.rules, request.limits, request.progress)
        },
        estimate: |_, shape| {
            Ok(Costs {
                update: None,
                ..EngineSpec::named("linear")?.costs(shape, &Limits::default())?
            })
        },
        ..toy("picky", Wraps::Nothing)
    },
    Engine {
        dynamic: |spec| spec.inner().is_some_and(EngineSpec::is_dynamic),
        accepts: |spec, schema| spec.inner().map_or(Ok(()), |inner| inner.accepts(schema)),
        build: |request| {
            let inner = request.spec.inner().expect("a wrapper has an inner engine");
            inner.build(request.rules, request.limits, request.progress)
        },
        estimate: |spec, shape| {
            let inner = spec.inner().expect("a wrapper has an inner engine");
            let inner = inner.costs(shape, &Limits::default())?;
            Ok(Costs {
                bytes: inner.bytes + 1000,
                ..inner
            })
        },
        ..toy("wrapper", Wraps::Any)
    },
];

const fn toy(name: &'static str, wraps: Wraps) -> Engine {
    Engine {
        name,
        wraps,
        options: &[],
        ..ENGINES[0]
    }
}

fn no_ternary(spec: &EngineSpec, schema: &Schema) -> Result<(), Refusal> {
    let ternary = |field: &&Field| field.kind() == MatchKind::Ternary;
    match schema.fields().iter().find(ternary) {
        None => Ok(()),
        Some(field) => Err(Refusal {
            engine: spec.to_string(),
            field: field.name().to_owned(),
            reason: "masks are no intervals".to_owned(),
            instead: "make it a range".to_owned(),
        }),
    }
}

#[test]
fn hosts_and_schemas_refuse_as_building_does() {
    let ipv4 = rules(Family::Ipv4(profile("acl1")), 50);
    let wide = rules(Family::Schema(wide_schema(), RandomRules::default()), 50);
    let cases = [
        ("plain:isa=quantum", &ipv4, true),
        ("wrapper(plain:isa=quantum)", &ipv4, true),
        ("picky", &ipv4, false),
        ("picky", &wide, true),
        ("wrapper(picky)", &wide, true),
        ("wrapper(picky)", &ipv4, false),
        ("wrapper(plain)", &wide, false),
    ];
    for (text, rules, refused) in cases {
        let spec = EngineSpec::parse_in(TOYS, text).unwrap();
        let [built, estimated] = refusals(&spec, rules, &Limits::default());
        assert_eq!(built, estimated, "{text}");
        assert_eq!(built.is_some(), refused, "{text}: {built:?}");
    }
    for spec in EngineSpec::all() {
        assert_eq!(refusals(&spec, &wide, &Limits::default()), [None, None]);
    }
}

#[test]
fn a_wrapper_asks_the_engine_that_it_wraps() {
    let shape = Shape::of(&rules(Family::Ipv4(profile("acl1")), 50));
    let estimate = |text: &str| {
        let spec = EngineSpec::parse_in(TOYS, text).unwrap();
        spec.estimate(&shape, &Limits::default()).unwrap()
    };
    let (inner, outer) = (estimate("picky"), estimate("wrapper(picky)"));
    assert_eq!(outer.bytes, inner.bytes + 1000);
    assert_eq!((outer.build, outer.update_ns), (inner.build, None));
}

/// The estimate for a shape does not depend on whether it was measured from rules.
#[test]
fn shapes_need_no_rules() {
    let measured = Shape::of(&rules(Family::Ipv4(profile("acl1")), 2000));
    let schema = measured.schema();
    let tuples = measured.tuples().to_vec();
    let made_up = Shape::new(schema, tuples).with_fields(measured.fields());
    let made_up = made_up.with_sample(measured.sample());
    for spec in EngineSpec::all() {
        let [a, b] = [&measured, &made_up].map(|shape| {
            let estimate = spec.estimate(shape, &Limits::default());
            estimate.unwrap()
        });
        assert_eq!(a, b, "{spec}");
    }
}
