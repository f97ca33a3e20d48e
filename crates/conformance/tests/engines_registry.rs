//! Requirements for engines in addition to right answers: a complete entry in the registry,
//! rows in the documentation, and behaviour that is common to all engines.

// Prints the skipped checks.
#![allow(clippy::print_stdout)]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use classyard::engine::ENGINES;
use classyard::engine::{Engine, EngineOption, OptionKind, Wraps};
use classyard::error::SpecError;
use classyard::{
    ActionId, BuildError, EngineSpec, FieldMatch, KeySlice, Limits, NoProgress, Priority, Progress,
    RuleId, RuleSet, Schema, Scratch, Winner,
};
use classyard_conformance::random::{RuleMaker, SeededDice};
use classyard_conformance::{Subject, Variants, variants};

fn rules(count: usize) -> RuleSet {
    let mut dice = SeededDice::new(1);
    RuleMaker::new(&Schema::ipv4_5tuple(), &mut dice).rule_set(count, &mut dice)
}

#[test]
fn names_are_unique_and_every_entry_says_what_it_is() {
    for (index, engine) in ENGINES.iter().enumerate() {
        let name = engine.name;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!name.is_empty() && name.chars().all(allowed), "{name}");
        let same = ENGINES.iter().filter(|other| other.name == name);
        assert_eq!(same.count(), 1, "{name} is given twice");
        assert!(engine.summary.len() >= 10, "{name}: no summary");
        assert!(
            !engine.summary.ends_with('.'),
            "{name}: a summary is no sentence"
        );
        assert!(!engine.paper.is_empty(), "{name}: no paper");
        for option in engine.options {
            assert!(!option.name.is_empty(), "{name}: an option without a name");
            assert!(
                option.help.len() >= 10,
                "{name}: {} has no help",
                option.name
            );
            let default = option.default.to_string();
            assert_eq!(option.kind.parse(&default), Some(option.default), "{name}");
            assert_eq!(option.lacks(&option.default), None, "{name}: {default}");
            let same = engine.options.iter().filter(|o| o.name == option.name);
            assert_eq!(same.count(), 1, "{name}: {} is given twice", option.name);
        }
        for spec in EngineSpec::defaults(ENGINES, engine) {
            assert_eq!(spec, EngineSpec::parse(&spec.to_string()).unwrap());
            assert_eq!(spec.engine().name, ENGINES[index].name);
        }
        let there = EngineSpec::defaults(ENGINES, engine).next();
        assert!(there.is_some(), "{name} wraps nothing that is registered");
    }
    assert_eq!(ENGINES[0].name, "linear", "the oracle comes first");
}

#[test]
fn built_classifiers_know_where_they_come_from() {
    let rules = rules(30);
    for spec in EngineSpec::all() {
        let mut built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        assert_eq!(built.engine(), spec.engine().name);
        assert_eq!(built.schema(), rules.schema());
        assert_eq!(built.dynamic().is_some(), spec.is_dynamic(), "{spec}");
        assert_eq!(built.as_dynamic().is_some(), spec.is_dynamic(), "{spec}");
        let stats = built.stats();
        assert_eq!(stats.rules, rules.len(), "{spec}");
        assert!(stats.bytes() > 0 && stats.tables > 0, "{spec}");
    }
}

#[test]
fn nonsense_in_options_is_refused_with_the_place() {
    for spec in EngineSpec::all() {
        for option in spec.engine().options {
            let text = format!("{spec}:{}=?!", option.name);
            let error = EngineSpec::parse(&text).expect_err(&text);
            assert!(matches!(error, SpecError::BadValue { .. }), "{error}");
            assert_eq!(error.column(), text.len() - 1, "{error}");
            let expected = option.kind.to_string();
            let told = error.to_string();
            assert!(told.contains(&expected) && told.contains("?!"), "{told}");
        }
        let text = format!("{spec}:no-such-option=1");
        let error = EngineSpec::parse(&text).expect_err(&text);
        assert!(matches!(error, SpecError::UnknownOption { .. }), "{error}");
        assert_eq!(error.column(), spec.to_string().len() + 2, "{error}");
    }
}

/// Each choice of each option is tried, or skipped with a reason. Numbers are tried at both
/// ends of their range.
#[test]
fn variants_are_what_is_declared_and_skips_are_counted() {
    let Variants { specs, skips } = variants(ENGINES);
    for skip in &skips {
        println!("skipped: {skip}");
        assert!(skip.reason.contains("this processor has"), "{skip}");
    }
    println!("{} variants, {} skipped", specs.len(), skips.len());
    let mut declared = EngineSpec::all().count();
    for engine in ENGINES {
        let plain = EngineSpec::defaults(ENGINES, engine).next().unwrap();
        for option in engine.options {
            let has = |value: &str| {
                let spec = plain.clone().with(option.name, value).unwrap();
                let what = format!("{}={value}", option.name);
                let tried = specs.contains(&spec);
                let skipped = skips
                    .iter()
                    .any(|skip| skip.subject == plain.to_string() && skip.what == what);
                assert!(tried != skipped, "{spec}: tried {tried}, skipped {skipped}");
            };
            declared += option.samples().len();
            option.kind.words().iter().for_each(|word| has(word));
            if let OptionKind::Whole { min, max } | OptionKind::WholeOrAuto { min, max } =
                option.kind
            {
                [min, max]
                    .iter()
                    .for_each(|number| has(&number.to_string()));
            }
        }
    }
    assert_eq!(specs.len() + skips.len(), declared);
    let nothing = rules(0);
    for spec in specs {
        let built = spec.build(&nothing, &Limits::default(), &mut NoProgress);
        let expected = spec.accepts(nothing.schema()).map_err(BuildError::from);
        assert_eq!(built.err(), expected.err(), "{spec}");
    }
}

/// A registry with an option value that no host supports, and a wrapper.
static TOYS: &[Engine] = &[
    Engine {
        options: &[
            EngineOption::host_choice(
                "isa",
                &["auto", "quantum"],
                |word| (word == "quantum").then(|| "this processor has auto".to_owned()),
                "instructions",
            ),
            EngineOption::decimal("share", (0.0, 1.0), 0.25, "a share"),
        ],
        ..toy("plain", Wraps::Nothing)
    },
    Engine {
        options: &[EngineOption::whole("delta", (3, 9), 5, "changes")],
        ..toy("wrapper", Wraps::Any)
    },
];

const fn toy(name: &'static str, wraps: Wraps) -> Engine {
    Engine {
        name,
        summary: "a toy",
        paper: "none",
        wraps,
        options: &[],
        dynamic: Engine::takes_updates,
        accepts: Engine::accepts_all,
        build: |request| {
            let linear = EngineSpec::named("linear")?;
            request.build_inner(&linear, request.rules)
        },
        estimate: |_, shape| EngineSpec::named("linear")?.costs(shape, &Limits::default()),
    }
}

#[test]
fn what_a_host_lacks_is_skipped_with_its_reason() {
    let Variants { specs, skips } = variants(TOYS);
    let specs: Vec<String> = specs.iter().map(EngineSpec::to_string).collect();
    let expected = [
        "plain",
        "wrapper(plain)",
        "plain:isa=auto",
        "plain:share=0",
        "plain:share=0.5",
        "plain:share=1",
        "plain:share=0.25",
        "wrapper(plain):delta=3",
        "wrapper(plain):delta=5",
        "wrapper(plain):delta=8",
        "wrapper(plain):delta=9",
    ];
    assert_eq!(specs, expected);
    let skips: Vec<String> = skips.iter().map(ToString::to_string).collect();
    let reason = "plain: isa=quantum skipped: this processor has auto";
    assert_eq!(skips, [reason]);
}

#[test]
fn a_subjects_name_repeats_its_hashes() {
    for spec in EngineSpec::all() {
        let hashes = spec.engine().option("seed").is_some();
        let subject = Subject::from(spec.clone());
        let named = EngineSpec::parse(subject.name()).unwrap();
        assert_eq!(named.options().is_given("seed"), hashes, "{spec}");
        assert_eq!(named.seeded(5).to_string(), subject.name());
        let given = spec.seeded(5);
        let name = given.to_string();
        assert_eq!(Subject::from(given).name(), name, "a seed given stays");
    }
}

#[test]
fn limits_are_met_with_an_error() {
    let rules = rules(200);
    for spec in EngineSpec::all() {
        let few = Limits::default().with_rules(rules.len() - 1);
        let error = spec.build(&rules, &few, &mut NoProgress).err();
        assert!(
            matches!(error, Some(BuildError::TooManyRules { .. })),
            "{spec}"
        );
        let small = Limits::default().with_bytes(100);
        let error = spec.build(&rules, &small, &mut NoProgress).err();
        assert!(
            matches!(error, Some(BuildError::TooManyBytes { .. })),
            "{spec}"
        );
        let exact = Limits::default().with_rules(rules.len());
        assert!(
            spec.build(&rules, &exact, &mut NoProgress).is_ok(),
            "{spec}"
        );
    }
}

/// A progress callback that cancels immediately.
struct Impatient;

impl Progress for Impatient {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn a_stopped_rebuild_leaves_the_classifier_as_it_was() {
    let rules = rules(300);
    let schema = rules.schema();
    let mut dice = SeededDice::new(2);
    let views: Vec<_> = rules.iter().collect();
    let mut keys = classyard::KeyVec::new(schema);
    for _ in 0..500 {
        let header = classyard_conformance::random::draw_header(schema, &views, &mut dice);
        keys.push(&header).unwrap();
    }
    for spec in EngineSpec::all().filter(EngineSpec::is_dynamic) {
        let mut built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        // Either the rebuild is cancelled, or it has nothing to do.
        let stopped = built.as_dynamic().unwrap().rebuild(&mut Impatient);
        assert!(
            matches!(stopped, Ok(()) | Err(BuildError::Stopped { .. })),
            "{spec}"
        );
        for key in keys.as_slice().iter() {
            let winner = built.classify_one(key);
            assert_eq!(winner, rules.scan(key), "{spec}");
        }
        assert_eq!(built.stats().rules, rules.len(), "{spec}");
    }
}

#[test]
fn keys_of_another_width_are_a_mistake_that_panics() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let id = RuleId::from_index(0);
    rules
        .add(id, Priority(1), ActionId(0), &[FieldMatch::Any; 5])
        .unwrap();
    for spec in EngineSpec::all() {
        let built = spec
            .build(&rules, &Limits::default(), &mut NoProgress)
            .unwrap();
        let wide = vec![0u64; schema.key_words() + 1];
        let panics = |call: &dyn Fn(&mut Scratch)| {
            let mut scratch = Scratch::new();
            let call = std::panic::AssertUnwindSafe(|| call(&mut scratch));
            std::panic::catch_unwind(call).is_err()
        };
        assert!(
            panics(&|scratch| {
                let keys = KeySlice::new(&wide, wide.len());
                built.classify_batch(keys, &mut [Winner::MISS], scratch);
            }),
            "{spec}: a batch of wide keys"
        );
        assert!(
            panics(&|scratch| {
                let keys = KeySlice::new(&wide[1..], schema.key_words());
                built.classify_batch(keys, &mut [Winner::MISS; 2], scratch);
            }),
            "{spec}: more winners than keys"
        );
        assert!(
            panics(&|_| {
                let mut mask = wide.clone();
                built.classify_masked(&wide, &mut mask);
            }),
            "{spec}: a masked lookup of a wide key"
        );
    }
}

/// Reads a file of the repository.
fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the rows of the table whose first columns are `columns`, split into cells,
/// without the heading and the line below it.
fn table(text: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let line = line.trim_start_matches("//!").trim();
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(line.split('|').map(|cell| cell.trim().to_owned()).collect())
    };
    let is_heading = |line: &&str| {
        cells(line).is_some_and(|cells| cells.iter().zip(columns).all(|(a, b)| a == b))
    };
    let after = text.lines().skip_while(|line| !is_heading(line)).skip(2);
    let rows: Vec<_> = after.map_while(cells).collect();
    assert!(!rows.is_empty(), "there is no table of {columns:?}");
    rows
}

/// Returns the names in backquotes, without the contents of a wrapper's parentheses.
fn names(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .map(|name| name.split('(').next().unwrap_or_default())
        .collect()
}

/// Checks a table of engines: it must have a row for each engine, in the registry's order,
/// and `fits` must accept the cells of each row.
fn rows_are_the_registrys(
    page: &str,
    columns: &[&str],
    fits: impl Fn(&'static Engine, &[String]) -> Result<(), String>,
) {
    let rows = table(&read(page), columns);
    let named: Vec<&str> = rows.iter().flat_map(|row| names(&row[0])).collect();
    let known: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    assert_eq!(
        named, known,
        "{page}: the table's engines and the registry's"
    );
    for (engine, row) in ENGINES.iter().zip(&rows) {
        if let Err(expected) = fits(engine, row) {
            panic!(
                "{page}: {}: expected {expected}, found {row:?}",
                engine.name
            );
        }
    }
}

/// Returns `dynamic`, `static`, or for wrappers `as inner`.
fn kind(engine: &'static Engine) -> &'static str {
    let dynamic: Vec<bool> = EngineSpec::defaults(ENGINES, engine)
        .map(|spec| spec.is_dynamic())
        .collect();
    match (dynamic.contains(&true), dynamic.contains(&false)) {
        (true, false) => "dynamic",
        (false, true) => "static",
        _ => "as inner",
    }
}

#[test]
fn tables_of_engines_in_documents_are_the_registrys() {
    for page in ["docs/choosing.md", "crates/core/src/engine.rs"] {
        rows_are_the_registrys(page, &["engine", "kind"], |engine, row| {
            let kind = kind(engine);
            (row[1] == kind).then_some(()).ok_or(format!("kind {kind}"))
        });
    }
    let columns = ["engine", "what it is", "from", "lookups", "updates"];
    rows_are_the_registrys("docs/choosing.md", &columns, |engine, row| {
        if row[1].replace('`', "") != engine.summary {
            return Err(format!("the summary {:?}", engine.summary));
        }
        if row[2] != engine.paper {
            return Err(format!("{:?} as where it is from", engine.paper));
        }
        let none = kind(engine) == "static";
        if (row[4] == "none") != none {
            return Err("`none` under updates for static engines only".to_owned());
        }
        Ok(())
    });
}

#[test]
fn the_table_of_options_is_the_registrys() {
    let columns = ["engine", "option", "values", "default", "meaning"];
    let text = read("docs/choosing.md");
    let mut engines: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for row in table(&text, &columns) {
        if !row[0].is_empty() {
            engines = names(&row[0]).into_iter().map(str::to_owned).collect();
        }
        assert!(!row[4].is_empty(), "{row:?} has no meaning");
        let [option, values, default] = [1, 2, 3].map(|cell| row[cell].replace('`', ""));
        for engine in &engines {
            found.push(format!("{engine}: {option}: {values}: {default}"));
        }
    }
    let mut declared = Vec::new();
    for engine in ENGINES {
        for option in engine.options {
            let values = option.kind.to_string().replace('`', "");
            let (name, default) = (option.name, option.default);
            declared.push(format!("{}: {name}: {values}: {default}", engine.name));
        }
    }
    found.sort_unstable();
    declared.sort_unstable();
    assert_eq!(found, declared, "docs/choosing.md and the registry");
}

/// Returns the keys of papers in brackets: letters, then the year.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let bracketed = text.split('[').skip(1);
    let bracketed = bracketed.filter_map(|rest| rest.split_once(']').map(|(key, _)| key));
    bracketed.filter(|key| {
        let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
        key.len() == letters.len() + 2 && letters.chars().all(|c| c.is_ascii_uppercase())
    })
}

#[test]
fn the_page_on_papers_has_the_papers_of_engines_and_their_files() {
    let text = read("docs/papers.md");
    let listed = table(&text, &["key", "paper"]);
    let listed: Vec<&str> = listed.iter().flat_map(|row| keys(&row[0])).collect();
    let mut cited = 0;
    for engine in ENGINES {
        for key in keys(engine.paper) {
            let name = engine.name;
            assert!(
                listed.contains(&key),
                "docs/papers.md lacks [{key}] of {name}"
            );
            cited += 1;
        }
    }
    assert!(cited > 0, "no engine cites a paper");
    // Each file that the page names exists.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = 0;
    for row in table(&text, &["engine or part", "from", "file", "state"]) {
        for file in names(&row[2])
            .iter()
            .filter(|name| name.starts_with("crates/"))
        {
            assert!(
                root.join(file).exists(),
                "docs/papers.md: there is no {file}"
            );
            named += 1;
        }
    }
    assert!(named > 0, "docs/papers.md names no file");
}
