//! `classyard query`.

use crate::support::Folder;

const RULES: &str = "schema ipv4-5tuple\n\
    deny src=10.0.0.0/9\n\
    permit dst=192.0.2.0/24 proto=tcp dport=1-1023\n\
    deny\n";

#[test]
fn the_rules_that_decide_a_match_are_listed() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let matches = "src=10.0.0.0/8 dst=192.0.2.10 proto=tcp dport=22";
    let result = run_query(&rules, matches, &["--format", "json"]).exits(0);
    let report = result.json();
    let answers = report["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 2);
    for (answer, (line, action)) in answers.iter().zip([(2, "deny"), (3, "permit")]) {
        assert_eq!(answer["rule"]["line"], line);
        assert_eq!(answer["action"], action);
        assert_eq!(answer["share"], 0.5);
        assert_eq!(answer["header"]["dport"], "22");
    }
    assert_eq!(answers[1]["header"]["src"], "10.128.0.0");
    run_query(&rules, matches, &[])
        .exits(0)
        .prints("permit dst=192.0.2.0/24 dport=1-1023 proto=tcp")
        .prints("src=10.128.0.0 dst=192.0.2.10");
    let permitted = run_query(&rules, matches, &["--action", "permit", "--format", "csv"]).exits(0);
    let rows = permitted.csv();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1][..3], ["permit", "1", "3"]);
}

#[test]
fn packets_without_a_rule_are_listed_last() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", "schema dual-5tuple\nallow src=2001:db8::/32\n");
    let report = run_query(&rules, "any", &["--format", "json"])
        .exits(0)
        .json();
    let answers = report["answers"].as_array().unwrap();
    let schemas: Vec<_> = answers.iter().map(|answer| &answer["schema"]).collect();
    assert_eq!(schemas, ["ipv4-5tuple", "ipv6-5tuple", "ipv6-5tuple"]);
    assert_eq!(answers[0]["rule"], serde_json::Value::Null);
    assert_eq!(answers[1]["action"], "allow");
    assert_eq!(answers[2]["rule"], serde_json::Value::Null);
    run_query(&rules, "any", &[]).prints("no rule matches");
}

#[test]
fn bad_matches_are_errors() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    run_query(&rules, "dport=99999", &[])
        .exits(2)
        .complains("99999");
    run_query(&rules, "sprt=1", &[]).exits(2).complains("sprt");
    run_query(&rules, "any", &["--action", "alow"])
        .exits(2)
        .complains("no rule of")
        .complains("`alow`");
}

#[test]
fn an_exhausted_limit_leaves_rules_undecided() {
    let folder = Folder::new();
    let mut stripes = "schema ipv4-5tuple\n".to_owned();
    for stripe in 0..64 {
        stripes += &format!("permit src={}.0.0.0/6\n", stripe * 4);
    }
    let stripes = folder.file("stripes.rules", stripes + "deny dport=80\n");
    run_query(&stripes, "dport=80", &[]).exits(0);
    run_query(&stripes, "dport=80", &["--steps", "10"])
        .exits(1)
        .prints("undecided");
}

fn run_query(rules: &str, asked: &str, flags: &[&str]) -> crate::support::Run {
    let mut arguments = vec!["query", rules, "-m", asked];
    arguments.extend(flags);
    crate::support::run_with(&arguments, b"")
}
