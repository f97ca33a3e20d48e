//! Every registered engine, with its defaults and with each of its options set
//! to several values, runs every case of `testdata/vectors`.

// Prints the numbers of checks, and the skipped checks.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;

use classyard_conformance::Subject;
use classyard_conformance::vectors::{Case, WAYS, parse, read_folder, run};

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors");
    read_folder(&folder).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_engine_passes_every_case() {
    let (cases, subjects) = (cases(), Subject::variants());
    let report = run(&cases, &subjects);
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    // Every run is either done or listed as skipped.
    assert_eq!(
        report.runs + report.skips.len(),
        cases.len() * subjects.len() * WAYS.len()
    );
}

#[test]
fn there_are_enough_cases_and_their_names_differ() {
    let cases = cases();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        panic!("two cases have the name `{}`", pair[0]);
    }
    for case in &cases {
        assert!(
            case.probe_count() > 0,
            "case `{}` probes nothing",
            case.name
        );
        for (engine, reason) in &case.skips {
            assert!(classyard::engine::engine(engine).is_ok(), "{engine}");
            assert!(!reason.is_empty(), "a skip of {engine} without a reason");
        }
    }
}

#[test]
fn cases_are_written_as_they_are_read() {
    for case in cases() {
        let text = case.to_toml();
        let again = parse("again", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again[0].to_toml(), text);
        assert_eq!(again[0].rules, case.rules, "{text}");
        assert_eq!(again[0].probes, case.probes, "{text}");
    }
}
