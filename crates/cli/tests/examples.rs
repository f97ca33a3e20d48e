//! The example programs do what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the output of an example. `cargo test` builds the examples next to the binary.
#[track_caller]
fn example(name: &str, words: &[&str]) -> String {
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_classyard"));
    let path = beside.with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "no {}: run `cargo build --example {name}` before this test alone",
        path.display()
    );
    let output = Command::new(path).args(words).current_dir(root()).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The report of `classify` on the embedded rules and capture.
fn classified() -> serde_json::Value {
    let classify = Command::new(env!("CARGO_BIN_EXE_classyard"))
        .args(["classify", "--format", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&classify.stdout).unwrap()
}

/// The packets that the `classify` command counts for each action, against those
/// that the example counts.
#[test]
fn the_firewall_counts_what_classify_counts() {
    let printed = example("firewall", &[]);
    let report = classified();
    let packets = |line: &str| -> u64 { line.split_whitespace().next().unwrap().parse().unwrap() };
    let mut compared = 0;
    for rule in report["hits"].as_array().unwrap() {
        let (name, hits) = (
            rule["name"].as_str().unwrap(),
            rule["headers"].as_u64().unwrap(),
        );
        let suffix = format!(" by {name}");
        let line = printed.lines().find(|line| line.ends_with(&suffix));
        assert_eq!(line.map_or(0, packets), hits, "{name}");
        compared += usize::from(hits > 0);
    }
    assert!(compared > 20, "{compared} rules were hit");
    let last = printed.lines().last().unwrap();
    assert!(last.ends_with(" rules"), "{last}");
}

#[test]
fn readers_of_the_live_table_see_versions() {
    let printed = example("live_table", &[]);
    assert!(
        printed.starts_with("100000 transactions; the last action is Some(ActionId(100000))\n"),
        "{printed}"
    );
    assert!(printed.contains("versions that the readers saw: "));
}

#[test]
fn the_policy_changes() {
    let expected = "\
at first
  rule 2 (priority 20): allow
  rule 3 (priority 20): allow
  rule 1 (priority 30): allow
after the transaction
  rule 5 (priority 25): deny
  rule 5 (priority 25): deny
  rule 4 (priority 10): deny
";
    assert_eq!(example("policy", &[]), expected);
}

#[test]
fn the_custom_schema_finds_its_rules() {
    let printed = example("custom_schema", &[]);
    let winners = [
        "tenant 7 port 9000: rule 1 (priority 3), by ",
        "tenant 8 port 8080: rule 2 (priority 2), by ",
        "tenant 8 port 9000: rule 3 (priority 1), by ",
    ];
    assert_eq!(printed.lines().count(), winners.len(), "{printed}");
    for (line, winner) in printed.lines().zip(winners) {
        assert!(line.starts_with(winner), "{line}");
    }
}

/// The README shows the program that is compiled here, from its first `use` on.
#[test]
fn the_readme_has_the_example() {
    let program = std::fs::read_to_string(root().join("crates/cli/examples/readme.rs")).unwrap();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let from = program.find("use std::collections::BTreeMap;").unwrap();
    assert!(
        readme.contains(&program[from..]),
        "README.md has another program"
    );
    let printed = example("readme", &[]);
    let counts: BTreeMap<String, u64> = serde_json::from_str(&printed).unwrap();
    let report = classified();
    let actions = report["actions"].as_array().unwrap();
    assert!(actions.len() > 1, "{actions:?}");
    for action in actions {
        let name = action["action"].as_str().unwrap();
        let headers = action["headers"].as_u64();
        assert_eq!(counts.get(name).copied(), headers, "{name}: {printed}");
    }
}
