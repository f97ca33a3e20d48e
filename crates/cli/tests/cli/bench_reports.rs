//! Reports of `bench`: formats, files, the run that they describe, and rows written
//! one by one.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, RULES, program, run, words};

const QUICK: &str = "bench --quick --profiles acl1,fw1 --sizes 60 -e linear,forest --headers 300";

/// Checks the description of the run in a report.
#[track_caller]
fn check_run(run: &Value, part_of_command: &str) {
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["seed"], 9);
    assert!(!run["processor"].as_str().unwrap().is_empty());
    let command = run["command"].as_str().unwrap();
    assert!(command.starts_with("classyard bench "), "{command}");
    assert!(command.contains(part_of_command), "{command}");
}

#[test]
fn rules_without_profiles_are_measured_once() {
    for (arguments, sets) in [
        ("--family openflow15 --sizes 50", vec!["openflow15 50"]),
        (
            "--family openflow15 --sizes 40,50 --profiles acl1,fw1",
            vec!["openflow15 40", "openflow15 50"],
        ),
        (
            "--family ipv6 --sizes 50",
            vec!["acl1 50", "fw1 50", "ipc1 50"],
        ),
    ] {
        let bench = "bench --quick --headers 200 -e tuplemerge --format csv";
        let run = run(&format!("{bench} {arguments}")).exits(0);
        let lines = run.lines();
        let found = lines[1..]
            .iter()
            .map(|line| line.split(',').next().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), sets, "{arguments}");
    }
}

#[test]
fn every_form_says_which_run_it_is_of() {
    for more in [
        "",
        "--mixed 1k",
        "--reoptimise -e forest",
        "--hostile alike --traffic miss",
    ] {
        let arguments = match more.contains("-e ") {
            true => QUICK.replace("-e linear,forest ", ""),
            false => QUICK.to_owned(),
        };
        let arguments = format!("{arguments} --seed 9 {more}");
        let json = run(&format!("{arguments} --format json")).exits(0).json();
        match &json {
            Value::Array(rows) => rows.iter().for_each(|row| check_run(&row["run"], more)),
            other => check_run(&other["run"], more),
        }
        let csv = run(&format!("{arguments} --format csv")).exits(0);
        let mut reader = csv::Reader::from_reader(csv.stdout.as_bytes());
        let mut rows = 0;
        for row in reader.deserialize::<std::collections::HashMap<String, String>>() {
            let row = row.unwrap();
            assert_eq!(
                (row["seed"].as_str(), row["version"].as_str()),
                ("9", env!("CARGO_PKG_VERSION"))
            );
            assert!(row["command"].contains(more) && !row["processor"].is_empty());
            rows += 1;
        }
        assert!(rows > 0);
        let table = run(&arguments).exits(0);
        let last = *table.lines().last().unwrap();
        for text in ["classyard ", env!("CARGO_PKG_VERSION"), "seed 9", more] {
            assert!(last.contains(text), "no {text:?} in {last}");
        }
    }
}

#[test]
fn rows_are_written_one_by_one() {
    for more in [
        "",
        "--mixed 1k",
        "--reoptimise -e forest",
        "--hostile alike --traffic miss",
    ] {
        let arguments = match more.contains("-e ") {
            true => QUICK.replace("-e linear,forest ", ""),
            false => QUICK.to_owned(),
        };
        let run = run(&format!("{arguments} --seed 9 --format ndjson {more}")).exits(0);
        let rows: Vec<Value> = run
            .lines()
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(rows.len() >= 2, "{more}: {}", run.stdout);
        rows.iter().for_each(|row| {
            check_run(&row["run"], more);
            assert!(row["set"].is_string() && row["engine"].is_string());
        });
        // Standard error is not a terminal in this test.
        assert_eq!(run.stderr.matches("measured: ").count(), rows.len());
    }
    run(&format!("{QUICK} -q --format ndjson"))
        .exits(0)
        .silent();
}

#[test]
fn reports_go_to_files_and_can_be_plotted() {
    let folder = Folder::new();
    for (format, name) in [("ndjson", "a"), ("json", "b"), ("csv", "c"), ("table", "d")] {
        let file = folder.path(name);
        let run = run(&format!("{QUICK} --format {format} -o {file}")).exits(0);
        assert_eq!(run.stdout, "", "{format}");
        assert!(folder.read(name).contains("forest"));
        assert!(!folder.read(name).contains('\x1b'));
        if format != "table" {
            let out = folder.path("out.svg");
            crate::support::run(&format!("plot {file} -o {out}")).exits(0);
            assert!(folder.read("out.svg").contains("forest"), "{format}");
        }
    }
    let nowhere = folder.path("no/such/folder");
    for format in ["table", "ndjson"] {
        // The error comes before any measurement.
        let refused = run(&format!("{QUICK} --format {format} -o {nowhere}")).exits(2);
        let refused = refused.complains("no/such/folder");
        assert!(!refused.stderr.contains("measured"), "{}", refused.stderr);
    }
    let rules = folder.file("rules", RULES);
    run(&format!("bench -r {rules} --quick --format nothing")).exits(2);
}

#[test]
fn an_interrupted_run_keeps_what_it_has_measured() {
    let folder = Folder::new();
    let file = folder.path("rows");
    let arguments = format!(
        "bench --profiles all --sizes 100,200,300,400 --repeat 9 --headers 20k -e linear \
         --format ndjson -o {file}"
    );
    let mut child = program()
        .args(words(&arguments))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let measured = said.by_ref().map(Result::unwrap);
    let measured = measured
        .filter(|line| line.contains("measured"))
        .take(2)
        .count();
    assert_eq!(measured, 2, "the run ended early");
    // SIGTERM acts like Ctrl-C, which a shell may block for background processes.
    let killed = Command::new("sh")
        .args(["-c", "kill -TERM $0", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    drop(said);
    assert!(!child.wait().unwrap().success());
    let text = folder.read("rows");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!((2..48).contains(&rows.len()), "{}", rows.len());
}
