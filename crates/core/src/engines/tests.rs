//! Specifications of toy engines: nesting, every kind of option, every refusal.
//! The registry of the toy engines is in this file.

use std::sync::Arc;

use proptest::prelude::*;

use crate::contract::classifier::Classifier;
use crate::contract::classifier::{Limits, LookupTrace, NoProgress, Scratch, Stats};
use crate::cost::estimate::{Costs, Shape};
use crate::engine::{BuildRequest, ENGINES, Engine, EngineOption, EngineSpec, MAX_NESTING, Wraps};
use crate::model::error::{BuildError, Refusal, SpecError};
use crate::model::key::KeySlice;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::schema::{Field, MatchKind};
use crate::model::seed::{Seed, splitmix};
use crate::policy::Policy;
use crate::table::{PolicyTable, Table};

/// A list that takes no updates and serves no ternary fields.
const FROZEN: Engine = Engine {
    name: "frozen",
    summary: "a list that takes no updates",
    paper: "none",
    wraps: Wraps::Nothing,
    options: &[EngineOption::whole("leaf", (1, 64), 16, "rules in a leaf")],
    dynamic: Engine::takes_no_updates,
    accepts: |spec, schema| {
        let fields = schema.field_ids().map(|id| schema.field(id));
        match { fields }.find(|field| field.kind() == MatchKind::Ternary) {
            None => Ok(()),
            Some(field) => Err(Refusal {
                engine: spec.to_string(),
                field: field.name().to_owned(),
                reason: "masks are no intervals".to_owned(),
                instead: "make it a range, or take `linear`".to_owned(),
            }),
        }
    },
    build: |request| Ok(Box::new(Frozen(linear(request)?))),
    estimate: |spec, shape| {
        Ok(Costs {
            update: None,
            ..estimate_linear(spec, shape)?
        })
    },
};

struct Frozen(Box<dyn Classifier>);

fn linear(request: &mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError> {
    let linear = EngineSpec::named("linear").expect("it is registered");
    request.build_inner(&linear, request.rules)
}

fn estimate_linear(_: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    EngineSpec::named("linear")?.costs(shape, &Limits::default())
}

impl Classifier for Frozen {
    fn engine(&self) -> &'static str {
        FROZEN.name
    }

    fn schema(&self) -> &Arc<Schema> {
        self.0.schema()
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        self.0.classify_batch(keys, winners, scratch);
    }

    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        self.0.improve_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        self.0.trace(key)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

/// A list with an option of each kind.
const PLAIN: Engine = Engine {
    name: "plain",
    summary: "a list with options",
    paper: "none",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole("count", (2, 20), 5, "a whole number"),
        EngineOption::whole("rest", (1, usize::MAX), 1, "a number without a bound"),
        EngineOption::decimal("share", (0.25, 0.75), 0.5, "a number with decimals"),
        EngineOption::choice("order", &["up", "down"], "a word"),
        EngineOption::host_choice(
            "isa",
            &["auto", "here", "elsewhere"],
            |word| (word == "elsewhere").then(|| "this processor has here".to_owned()),
            "a word that not every host knows",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: linear,
    estimate: estimate_linear,
};

const WRAPPER_OPTIONS: &[EngineOption] = &[
    EngineOption::whole("delta", (0, 100), 10, "changes before a rebuild"),
    EngineOption::choice("updates", &["inner", "on"], "who takes updates"),
];

/// A wrapper takes its properties from the inner engine.
const fn wrapper(name: &'static str, wraps: Wraps) -> Engine {
    Engine {
        name,
        summary: "builds the engine that it wraps",
        paper: "none",
        wraps,
        options: WRAPPER_OPTIONS,
        dynamic: |spec| {
            let inner = spec.inner().expect("a wrapper has an inner engine");
            spec.options().choice("updates") == "on" || inner.is_dynamic()
        },
        accepts: |spec, schema| {
            let inner = spec.inner().expect("a wrapper has an inner engine");
            inner.accepts(schema)
        },
        build: |request| {
            let inner = request.spec.inner().expect("a wrapper has an inner engine");
            request.build_inner(inner, request.rules)
        },
        estimate: |spec, shape| {
            let inner = spec.inner().expect("a wrapper has an inner engine");
            inner.costs(shape, &Limits::default())
        },
    }
}

static TOYS: &[Engine] = &[
    FROZEN,
    PLAIN,
    wrapper("sfl", Wraps::Static),
    wrapper("shell", Wraps::Any),
];

fn parse(text: &str) -> Result<EngineSpec, SpecError> {
    EngineSpec::parse_in(TOYS, text)
}

#[test]
fn a_nested_specification_is_read_and_asked() {
    let text = "shell(sfl(frozen:leaf=8):delta=20:updates=on):delta=3";
    let spec = parse(text).unwrap();
    assert_eq!(spec.to_string(), text);
    assert_eq!(spec.engine().name, "shell");
    assert_eq!(spec.options().whole("delta"), 3);
    assert_eq!(spec.options().choice("updates"), "inner");
    let sfl = spec.inner().unwrap();
    assert_eq!(sfl.options().whole("delta"), 20);
    let frozen = sfl.inner().unwrap();
    assert_eq!(frozen.options().whole("leaf"), 8);
    assert!(frozen.inner().is_none());
    // Wrappers take their properties from inner engines and options.
    assert!(spec.is_dynamic() && sfl.is_dynamic() && !frozen.is_dynamic());
    assert!(!parse("shell(sfl(frozen))").unwrap().is_dynamic());
    assert!(parse("shell(plain)").unwrap().is_dynamic());
    let rules = RuleSet::new(&Schema::ipv4_5tuple());
    let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
    assert_eq!(built.unwrap().engine(), "frozen");
}

#[test]
fn values_are_typed_and_default_to_what_is_declared() {
    let plain = parse("plain").unwrap();
    let options = plain.options();
    assert_eq!(options.whole("count"), 5);
    assert_eq!(options.whole("rest"), 1);
    assert!((options.decimal("share") - 0.5).abs() < 1e-12);
    assert_eq!(options.choice("order"), "up");
    assert_eq!(options.choice("isa"), "auto");
    assert_eq!(options.seed("seed"), Seed::PROCESS);
    let text = "plain:seed=18446744073709551615:share=0.250:order=down:count=20:isa=here:rest=9";
    let given = parse(text).unwrap();
    let options = given.options();
    assert_eq!(options.seed("seed"), Seed::new(u64::MAX));
    assert!((options.decimal("share") - 0.25).abs() < 1e-12);
    assert_eq!((options.whole("count"), options.whole("rest")), (20, 9));
    assert_eq!(options.choice("order"), "down");
    assert_eq!(given.to_string(), text, "as written");
    let random = parse("plain:seed=random").unwrap();
    assert_eq!(random.options().seed("seed"), Seed::PROCESS);
    assert_ne!(random, plain, "written otherwise");
}

#[test]
#[should_panic(expected = "no option colour is declared")]
fn an_undeclared_option_is_a_mistake_of_the_engine() {
    let _ = parse("plain").unwrap().options().whole("colour");
}

#[test]
#[should_panic(expected = "order=up is not a whole number")]
fn an_option_of_another_kind_is_a_mistake_of_the_engine() {
    let _ = parse("plain").unwrap().options().whole("order");
}

/// Texts, each with the column and the whole message of its error.
const REFUSALS: &[(&str, usize, &str)] = &[
    ("", 1, "expected the name of an engine, found the end"),
    (":leaf=1", 1, "expected the name of an engine, found `:`"),
    ("()", 1, "expected the name of an engine, found `(`"),
    (
        "frosen",
        1,
        "there is no engine `frosen`; there are frozen, plain, sfl, shell; did you mean `frozen`?",
    ),
    (
        " plain",
        1,
        "there is no engine ` plain`; there are frozen, plain, sfl, shell; did you mean `plain`?",
    ),
    (
        "shell(sfl(hypersplit))",
        11,
        "there is no engine `hypersplit`; there are frozen, plain, sfl, shell",
    ),
    (
        "frozen:leaves=3",
        8,
        "engine `frozen` has no option `leaves`; it has leaf",
    ),
    (
        "shell(plain:cuont=3)",
        13,
        "engine `plain` has no option `cuont`; it has count, rest, share, order, isa, seed",
    ),
    (
        "plain:sed=3",
        7,
        "engine `plain` has no option `sed`; it has count, rest, share, order, isa, seed; \
         did you mean `seed`?",
    ),
    (
        "plain:count=1",
        13,
        "engine `plain`: expected a whole number from 2 to 20 for `count`, found `1`",
    ),
    (
        "plain:count=21",
        13,
        "engine `plain`: expected a whole number from 2 to 20 for `count`, found `21`",
    ),
    (
        "plain:count=3.5",
        13,
        "engine `plain`: expected a whole number from 2 to 20 for `count`, found `3.5`",
    ),
    (
        "plain:rest=0",
        12,
        "engine `plain`: expected a whole number of at least 1 for `rest`, found `0`",
    ),
    (
        "plain:rest=99999999999999999999999",
        12,
        "engine `plain`: expected a whole number of at least 1 for `rest`, \
         found `99999999999999999999999`",
    ),
    (
        "plain:share=NaN",
        13,
        "engine `plain`: expected a number from 0.25 to 0.75 for `share`, found `NaN`",
    ),
    (
        "plain:share=0.8",
        13,
        "engine `plain`: expected a number from 0.25 to 0.75 for `share`, found `0.8`",
    ),
    (
        "plain:order=Up",
        13,
        "engine `plain`: expected one of up, down for `order`, found `Up`",
    ),
    (
        "plain:isa=nope",
        11,
        "engine `plain`: expected one of auto, here, elsewhere for `isa`, found `nope`",
    ),
    (
        "plain:seed=-1",
        12,
        "engine `plain`: expected `random` or a whole number below 2^64 for `seed`, found `-1`",
    ),
    (
        "plain:order=",
        13,
        "engine `plain`: expected one of up, down for `order`, found ``",
    ),
    (
        "plain:count=3:order=up:count=3",
        24,
        "option `count` is given twice, first at column 7; give it once",
    ),
    ("plain:", 7, "expected OPTION=VALUE, found the end"),
    ("plain::count=3", 7, "expected OPTION=VALUE, found `:`"),
    ("sfl(frozen:)", 12, "expected OPTION=VALUE, found `)`"),
    ("plain:count", 12, "expected `=VALUE` after `count`"),
    ("plain:=3", 7, "expected the name of an option, found `=`"),
    (
        "plain(frozen)",
        6,
        "engine `plain` wraps no other engine; expected no parentheses, found `(`",
    ),
    (
        "sfl",
        4,
        "engine `sfl` wraps another one; expected one that takes no updates, in parentheses: \
         `sfl(INNER)`",
    ),
    (
        "sfl:delta=3",
        4,
        "engine `sfl` wraps another one; expected one that takes no updates, in parentheses: \
         `sfl(INNER)`",
    ),
    (
        "shell(shell)",
        12,
        "engine `shell` wraps another one; expected any engine, in parentheses: `shell(INNER)`",
    ),
    ("sfl()", 5, "expected the name of an engine, found `)`"),
    ("sfl(", 5, "expected the name of an engine, found the end"),
    (
        "shell(sfl(frozen:leaf=8)",
        25,
        "expected `)` for the `(` at column 6, found the end",
    ),
    (
        "frozen)",
        7,
        "expected `:OPTION=VALUE` or nothing, found `)`",
    ),
    (
        "sfl(frozen))",
        12,
        "expected `:OPTION=VALUE` or nothing, found `)`",
    ),
    (
        "sfl(frozen)delta=2",
        12,
        "expected `:OPTION=VALUE` or nothing, found `delta=2`",
    ),
    (
        "shell(sfl(frozen)x)",
        18,
        "expected `:OPTION=VALUE` or `)`, found `x`",
    ),
    (
        "sfl(frozen:leaf=8(frozen))",
        18,
        "expected `:OPTION=VALUE` or `)`, found `(`",
    ),
    (
        "shell(sfl(plain:count=3))",
        11,
        "engine `sfl` cannot wrap `plain`; expected one that takes no updates",
    ),
    (
        "sfl(sfl(frozen):updates=on)",
        5,
        "engine `sfl` cannot wrap `sfl`; expected one that takes no updates",
    ),
    (
        "plain:größe=3",
        7,
        "engine `plain` has no option `größe`; it has count, rest, share, order, isa, seed",
    ),
];

#[test]
fn every_refusal_says_where_and_what_is_allowed() {
    for &(text, column, message) in REFUSALS {
        let error = parse(text).expect_err(text);
        assert_eq!(error.column(), column, "{error}");
        assert_eq!(error.place().text(), text);
        let whole = format!("`{text}`, column {column}: {message}");
        assert_eq!(error.to_string(), whole);
        assert_eq!(BuildError::from(error).to_string(), whole);
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        format!(
            "{}plain{}",
            "shell(".repeat(depth - 1),
            ")".repeat(depth - 1)
        )
    };
    let deepest = nested(MAX_NESTING);
    assert_eq!(parse(&deepest).unwrap().to_string(), deepest);
    for depth in [MAX_NESTING + 1, 100_000] {
        let error = parse(&nested(depth)).unwrap_err();
        assert!(matches!(error, SpecError::TooDeep { .. }), "{error}");
        assert_eq!(error.column(), "shell(".len() * MAX_NESTING);
    }
}

#[test]
fn the_builder_checks_at_once() {
    let spec = EngineSpec::named("forest").unwrap();
    let spec = spec.with("isa", "scalar").unwrap();
    let spec = spec.with("bucket", "4").unwrap();
    assert_eq!(spec.to_string(), "forest:isa=scalar:bucket=4");
    assert_eq!(spec, EngineSpec::parse(&spec.to_string()).unwrap());
    let again = spec.clone().with("isa", "auto").unwrap();
    assert_eq!(again.to_string(), "forest:isa=auto:bucket=4");

    let error = spec.clone().with("isa", "nope").unwrap_err();
    assert_eq!(error.column(), "forest:isa=scalar:bucket=4:isa=".len() + 1);
    assert!(matches!(error, SpecError::BadValue { .. }), "{error}");
    let error = spec.with("c", "4").unwrap_err();
    assert_eq!(error.column(), "forest:isa=scalar:bucket=4:".len() + 1);
    assert!(matches!(error, SpecError::UnknownOption { .. }), "{error}");
    let error = EngineSpec::named("forest:isa=auto").unwrap_err();
    assert!(matches!(error, SpecError::UnknownEngine { .. }), "{error}");
    // A value cannot contain another option.
    assert!(parse("plain").unwrap().with("count", "3:order=up").is_err());
}

#[test]
fn seeds_are_set_wherever_there_is_one() {
    let spec = parse("shell(plain:count=3):delta=1").unwrap().seeded(7);
    assert_eq!(spec.to_string(), "shell(plain:count=3:seed=7):delta=1");
    let spec = parse("plain:seed=9").unwrap().seeded(7);
    assert_eq!(spec.to_string(), "plain:seed=9");
    let spec = EngineSpec::named("linear").unwrap().seeded(7);
    assert_eq!(spec.to_string(), "linear", "there is nothing to set");
}

#[test]
fn a_registry_offers_wrappers_around_all_that_they_take() {
    let all: Vec<String> = EngineSpec::all_in(TOYS).map(|s| s.to_string()).collect();
    assert_eq!(
        all,
        [
            "frozen",
            "plain",
            "sfl(frozen)",
            "shell(frozen)",
            "shell(plain)"
        ]
    );
    let mut ours: Vec<&str> = EngineSpec::all().map(|spec| spec.engine().name).collect();
    ours.dedup();
    assert_eq!(ours, ENGINES.iter().map(|e| e.name).collect::<Vec<_>>());
}

#[test]
fn what_a_host_lacks_is_read_but_not_built() {
    let rules = RuleSet::new(&Schema::ipv4_5tuple());
    for text in ["plain:isa=elsewhere", "shell(plain:isa=elsewhere):delta=1"] {
        let spec = parse(text).unwrap();
        let error = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let error = error.err().unwrap();
        assert_eq!(
            error.to_string(),
            "engine `plain`: isa=elsewhere is not possible here: this processor has here"
        );
        assert!(matches!(error, BuildError::Unavailable { .. }));
    }
}

#[test]
fn a_schema_is_refused_with_field_reason_and_remedy() {
    let fields = vec![
        Field::new("port", 16, MatchKind::Range),
        Field::new("flags", 8, MatchKind::Ternary),
    ];
    let schema = Schema::new("flags", fields).unwrap();
    for (text, engine) in [
        ("frozen", "frozen"),
        ("sfl(frozen:leaf=2)", "frozen:leaf=2"),
    ] {
        let spec = parse(text).unwrap();
        assert_eq!(spec.accepts(&Schema::ipv4_5tuple()), Ok(()));
        let refusal = spec.accepts(&schema).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!(
                "engine `{engine}` does not serve field `flags`: masks are no intervals; make it \
                 a range, or take `linear`"
            )
        );
        let built = spec.build(&RuleSet::new(&schema), &Limits::default(), &mut NoProgress);
        assert_eq!(built.err(), Some(BuildError::Refused(refusal)));
    }
    for spec in EngineSpec::all() {
        assert_eq!(spec.accepts(&schema), Ok(()), "{spec}");
    }
}

#[test]
fn a_live_table_asks_whether_updates_are_taken() {
    let schema = Schema::ipv4_5tuple();
    let rules = RuleSet::new(&schema);
    let limits = Limits::default();
    let spec = parse("shell(sfl(frozen))").unwrap();
    let single = Table::build(&rules, &spec, &limits, &mut NoProgress).map(|_| ());
    let policy = Policy::single(&schema);
    let parts = PolicyTable::build_policy(&policy, &spec, &limits, &mut NoProgress).map(|_| ());
    for refused in [single, parts] {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "engine `shell(sfl(frozen))` takes no updates, so there can be no live table of it; \
             these take updates: linear, forest, tss, tuplemerge, tuplemerge-offline, \
             tuplemerge-vpp, partition-sort, cut-split, sfl(INNER)"
        );
    }
    let spec = parse("shell(plain)").unwrap();
    assert!(Table::build(&rules, &spec, &limits, &mut NoProgress).is_ok());
}

/// The registry's words, unchanged since options had no kinds.
#[test]
fn the_defaults_of_our_engines_are_these() {
    let defaults = |name: &str| {
        let spec = EngineSpec::named(name).unwrap();
        let options = spec.engine().options.iter();
        let pairs = options.map(|o| format!("{}={}", o.name, spec.options().value(o.name)));
        pairs.collect::<Vec<_>>().join(":")
    };
    assert_eq!(defaults("linear"), "");
    assert_eq!(
        defaults("forest"),
        "bucket=2:most=128:isa=auto:fingerprints=auto:seed=random:without=nothing"
    );
    assert_eq!(defaults("tss"), "mask=all:seed=random");
    for name in ["tuplemerge", "tuplemerge-offline", "tuplemerge-vpp"] {
        assert_eq!(
            defaults(name),
            "c=40:offline-c=8:order=random:rebuild=0:seed=random"
        );
    }
}

#[test]
fn engines_refuse_wrong_values_when_they_are_read() {
    for (text, column) in [
        ("forest:isa=nope", 12),
        ("forest:bucket=0", 15),
        ("forest:bucket=65", 15),
        ("forest:most=1025", 13),
        ("forest:without=speed", 16),
        ("tss:mask=ports", 10),
        ("tuplemerge:c=65536", 14),
        ("tuplemerge-vpp:order=best", 22),
    ] {
        let error = EngineSpec::parse(text).unwrap_err();
        assert!(matches!(error, SpecError::BadValue { .. }), "{error}");
        assert_eq!(error.column(), column, "{error}");
    }
    assert!(EngineSpec::parse("forest:isa=avx512").is_ok());
}

/// Rules that make many buckets in every engine.
fn rules(count: u32) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    let mut state = 3;
    for index in 0..count {
        let word = splitmix(&mut state);
        let mut matches = [FieldMatch::Any; 5];
        matches[0] = FieldMatch::Prefix {
            value: u128::from(word >> 40) << 8,
            length: 24,
        };
        if index % 3 > 0 {
            matches[1] = FieldMatch::Exact(u128::from(word & 0xffff_ffff));
        }
        let id = RuleId::new(index * 7).unwrap();
        let priority = Priority(count - index);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    rules
}

/// The lengths of a forest's runs depend on its hash function.
#[test]
fn a_seed_makes_builds_alike_and_another_seed_others() {
    let rules = rules(2000);
    let lengths = |spec: &str| {
        let spec = EngineSpec::parse(spec).unwrap();
        let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let built = built.unwrap();
        let compared = rules.iter().map(|rule| {
            let corner: Vec<u128> = rule.fields().iter().map(low_end).collect();
            let mut keys = crate::model::key::KeyVec::new(rules.schema());
            keys.push(&corner).unwrap();
            let probes = built.trace(keys.key(0)).probes;
            probes.iter().map(|probe| probe.compared.len()).sum()
        });
        compared.collect::<Vec<usize>>()
    };
    assert_eq!(lengths("forest:seed=1"), lengths("forest:seed=1"));
    assert_ne!(lengths("forest:seed=1"), lengths("forest:seed=2"));
    // Two builds of one process, such as the two sides of a live table.
    assert_eq!(lengths("forest"), lengths("forest"));
    let process = format!("forest:seed={}", Seed::PROCESS.number());
    assert_eq!(lengths("forest"), lengths(&process));
}

fn low_end(field: &FieldMatch) -> u128 {
    match *field {
        FieldMatch::Any => 0,
        FieldMatch::Exact(value) | FieldMatch::Prefix { value, .. } => value,
        FieldMatch::Range { low, .. } => low,
        FieldMatch::Ternary { value, .. } => value,
    }
}

/// Any valid specification of toy engines, as text.
fn any_spec() -> impl Strategy<Value = String> {
    let frozen = proptest::option::of(1..=64_usize)
        .prop_map(|leaf| leaf.map_or("frozen".to_owned(), |leaf| format!("frozen:leaf={leaf}")));
    let plain = (
        proptest::option::of(2..=20_usize),
        proptest::option::of(0.25..=0.75_f64),
        proptest::option::of(any::<u64>()),
        proptest::option::of(0..2_usize),
        any::<bool>(),
    )
        .prop_map(|(count, share, seed, order, turned)| {
            let mut parts: Vec<String> = Vec::new();
            parts.extend(count.map(|count| format!(":count={count}")));
            parts.extend(share.map(|share| format!(":share={share}")));
            parts.extend(seed.map(|seed| format!(":seed={seed}")));
            parts.extend(order.map(|word| format!(":order={}", ["up", "down"][word])));
            if turned {
                parts.reverse();
            }
            format!("plain{}", parts.concat())
        });
    let sfl = |inner: String, delta: Option<usize>| match delta {
        Some(delta) => format!("sfl({inner}):delta={delta}"),
        None => format!("sfl({inner})"),
    };
    let wrapped = (frozen.clone(), proptest::option::of(0..=100_usize))
        .prop_map(move |(inner, delta)| sfl(inner, delta));
    let leaf = prop_oneof![frozen, plain, wrapped];
    let depth = u32::try_from(MAX_NESTING - 2).unwrap();
    leaf.prop_recursive(depth, 16, 1, |inner| {
        (inner, any::<bool>()).prop_map(|(inner, on)| {
            let updates = if on { ":updates=on" } else { "" };
            format!("shell({inner}){updates}")
        })
    })
}

proptest! {
    #[test]
    fn specifications_are_printed_as_they_are_read(text in any_spec()) {
        let spec = parse(&text).unwrap();
        prop_assert_eq!(spec.to_string(), &*text);
        prop_assert_eq!(parse(&spec.to_string()).unwrap(), spec);
    }

    /// Any text that is cut, extended or rearranged: parsing does not panic, and the
    /// column of an error lies within the text.
    #[test]
    fn no_text_is_too_odd(text in any_spec(), at in 0..60_usize, piece in "[():=a-z0-9é ]{0,4}") {
        let at = at.min(text.len());
        let odd = format!("{}{piece}{}", &text[..at], &text[at..]);
        for odd in [odd.as_str(), &text[..at], &text[at..], &piece] {
            match parse(odd) {
                Ok(spec) => prop_assert_eq!(spec.to_string(), odd),
                Err(error) => prop_assert!((1..=odd.len() + 1).contains(&error.column())),
            }
        }
    }
}
