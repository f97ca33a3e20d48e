//! An engine that the library does not have and that takes no updates, in every
//! command. The example program `own_engine` is a command line with this engine.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Returns the example's program, which `cargo test` builds next to the other
/// programs.
fn program() -> PathBuf {
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_classyard"));
    let path = beside.with_file_name("examples").join("own_engine");
    assert!(
        path.exists(),
        "no {}: run `cargo build --example own_engine` before this test alone",
        path.display()
    );
    path
}

fn run(words: &[&str]) -> Output {
    Command::new(program()).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn json(words: &[&str]) -> Value {
    let run = run(words);
    assert!(run.status.success(), "{}", text(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

#[test]
fn it_is_listed_as_static() {
    let listed = json(&["engines", "--format", "json"]);
    let engines = listed["engines"].as_array().unwrap();
    let stride = engines.iter().find(|e| e["name"] == "stride").unwrap();
    assert_eq!(stride["dynamic"], false);
    assert_eq!(engines.len(), classyard::engine::ENGINES.len() + 1);
}

/// Compares with the oracle. Checks that a static engine does not support are
/// counted as skipped.
#[test]
fn check_compares_it_and_counts_what_it_cannot_do() {
    let report = json(&[
        "check",
        "--profiles",
        "acl1",
        "--sizes",
        "200",
        "--engines",
        "stride,stride:bits=3:field=1,forest:seed=1",
        "--updates",
        "300",
        "--headers-drawn",
        "2000",
        "--format",
        "json",
    ]);
    assert_eq!(report["equal"], true);
    let case = &report["cases"][0];
    assert_eq!(case["engines"][0]["tables"], 256);
    assert!(case["compared"]["batch_lookups"].as_u64() > Some(5000));
    assert!(case["compared"]["masks_proved"].as_u64() > Some(100));
    let skipped: Vec<&str> = case["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skip| skip["engine"].as_str().unwrap())
        .collect();
    assert_eq!(skipped, ["stride", "stride:bits=3:field=1"]);
    for skip in case["skipped"].as_array().unwrap() {
        assert_eq!(skip["what"], "updates");
        assert_eq!(skip["reason"], "the engine takes no updates");
    }
}

#[test]
fn bench_measures_its_lookups_and_no_updates() {
    let rows = json(&[
        "bench",
        "--profiles",
        "acl1",
        "--sizes",
        "200",
        "--headers",
        "2000",
        "--repeat",
        "1",
        "--updates",
        "--changes",
        "500",
        "-e",
        "stride,linear",
        "--format",
        "json",
    ]);
    let (stride, linear) = (&rows[0], &rows[1]);
    assert_eq!(stride["engine"], "stride");
    assert_eq!(stride["wrong"], 0);
    assert!(stride["batch_headers_per_second"]["median"].as_f64() > Some(0.0));
    assert!(stride["updates_per_second"].is_null());
    assert!(!linear["updates_per_second"].is_null());
}

#[test]
fn packets_are_classified_and_explained_with_it() {
    let own = json(&["classify", "--engine", "stride", "--format", "json"]);
    let built_in = json(&["classify", "--engine", "linear", "--format", "json"]);
    assert!(own["rules_hit"].as_u64() > Some(50));
    for what in ["hits", "misses", "actions", "never_hit", "rules_hit"] {
        assert_eq!(own[what], built_in[what], "{what}");
    }
    let report = json(&["inspect", "--format", "json"]);
    let engines = report["engines"].as_array().unwrap();
    assert!(engines.iter().any(|engine| engine["engine"] == "stride"));
    let header = "src=10.0.0.1 dst=10.0.0.2 sport=9 dport=443 proto=tcp";
    let explained = run(&["explain", "--engine", "stride", "--header", header]);
    assert!(text(&explained.stdout).contains("rule 147 default, line 186: drop"));
}

#[test]
fn what_it_refuses_is_said_with_what_would_work() {
    let refused = run(&["classify", "--engine", "stride:field=40"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(told.contains("field 40"), "{told}");
    assert!(told.contains("choose `field` from 0 to 4"), "{told}");
    let refused = run(&[
        "bench",
        "--mixed",
        "-e",
        "stride",
        "--profiles",
        "acl1",
        "--sizes",
        "100",
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(told.contains("`stride` takes no updates"), "{told}");
    assert!(
        told.contains("these take updates: linear, forest"),
        "{told}"
    );
}

/// The engine next to those of three figures, over a filter set of ClassBench. The figure
/// that inserts rules one by one cannot use it.
#[test]
fn papers_figures_show_it_next_to_theirs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own_engine_figures");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let rules = folder.join("acl.rules");
    let filters = "@10.0.0.0/8\t192.168.1.0/24\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\n\
                   @0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n";
    std::fs::write(&rules, filters).unwrap();
    let (rules, out) = (rules.to_str().unwrap(), folder.to_str().unwrap());
    for (paper, figures, files) in [
        (
            "tm19",
            "tables,offline",
            &["own-tables.csv", "own-offline.csv"][..],
        ),
        ("sfl17", "operations", &["own-operations.csv"][..]),
    ] {
        let out = format!("{out}/{paper}");
        let report = json(&[
            "reproduce",
            paper,
            "-e",
            "stride",
            "-r",
            rules,
            "--figures",
            figures,
            "-o",
            &out,
            "--format",
            "json",
        ]);
        assert_eq!(report["inputs"][0]["name"], "stride");
        for file in files {
            let rows = std::fs::read_to_string(format!("{out}/{file}")).unwrap();
            let own: Vec<&str> = rows
                .lines()
                .filter(|row| row.contains(",stride,"))
                .collect();
            assert_eq!(own.len(), 1, "{rows}");
            assert!(own[0].contains(",2,stride,,0,"), "{rows}");
        }
    }
    let refused = run(&[
        "reproduce",
        "tm19",
        "-e",
        "stride",
        "--figures",
        "online",
        "-o",
        out,
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let message = text(&refused.stderr);
    assert!(
        message.contains("figure `online` of tm19 cannot use --engines stride"),
        "{message}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
