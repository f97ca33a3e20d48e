//! `classyard diff`.

use crate::support::{Folder, run, run_with};

const OLD: &str = "schema ipv4-5tuple\npermit dport=80-89\ndeny\n";

#[test]
fn packets_with_another_action_are_found() {
    let folder = Folder::new();
    let old = folder.file("old.rules", OLD);
    let new = folder.file("new.rules", "schema ipv4-5tuple\npermit dport=80\ndeny\n");
    run(&format!("diff {old} {new}"))
        .exits(1)
        .prints(
            "permit becomes deny: src=0.0.0.0 dst=0.0.0.0 sport=0 dport=81 proto=hopopt (1.373e-4",
        )
        .prints("old.rules:2: permit dport=80-89")
        .prints("new.rules:3: deny any")
        .prints("2 rules, 1 of them not in the other")
        .prints("1 difference");
    let report = run(&format!("diff {old} {new} --format json"))
        .exits(1)
        .json();
    assert_eq!(report["equivalent"], false);
    let difference = &report["differences"][0];
    assert_eq!(difference["header"]["dport"], "81");
    assert_eq!(difference["share"], 9.0 / 65536.0);
    assert_eq!(difference["rules"][0]["line"], 2);
    assert_eq!(difference["rules"][1]["line"], 3);
    let rows = run(&format!("diff {old} {new} --format csv"))
        .exits(1)
        .csv();
    assert_eq!(rows[1][3..], ["0", "permit", "1", "deny"]);
}

#[test]
fn lists_that_share_no_rule_can_be_equivalent() {
    let folder = Folder::new();
    let old = folder.file("old.rules", OLD);
    let new = folder.file(
        "new.rules",
        "schema ipv4-5tuple\n\
         deny dport=0-79\n\
         deny dport=90-65535\n\
         permit dport=0-84\n\
         permit dport=85-65535\n",
    );
    for flag in ["", "--equivalent"] {
        run(&format!("diff {old} {new} {flag}"))
            .exits(0)
            .prints("every packet gets the same action");
    }
    let report = run(&format!("diff {old} {new} --format json"))
        .exits(0)
        .json();
    assert_eq!(report["equivalent"], true);
    assert_eq!(report["files"][1]["changed"], 4);
}

#[test]
fn packets_that_no_rule_matches_differ_from_packets_that_one_does() {
    let folder = Folder::new();
    let old = folder.file("old.rules", OLD);
    let new = folder.file("new.rules", "schema ipv4-5tuple\npermit dport=80-89\n");
    run(&format!("diff {old} {new}"))
        .exits(1)
        .prints("deny becomes no match")
        .prints("new.rules: no rule matches");
    let reversed = run(&format!("diff {new} {old}")).exits(1);
    reversed.prints("no match becomes deny");
}

#[test]
fn one_difference_is_enough_to_refuse_a_change() {
    let folder = Folder::new();
    let old = folder.file(
        "old.rules",
        "schema ipv4-5tuple\npermit dport=1\npermit dport=3\n",
    );
    let new = folder.file(
        "new.rules",
        "schema ipv4-5tuple\ndeny dport=1\ndeny dport=3\n",
    );
    run(&format!("diff {old} {new}"))
        .exits(1)
        .prints("2 differences");
    for flags in ["--equivalent", "--limit-differences 1"] {
        let first_only = run(&format!("diff {old} {new} {flags}")).exits(1);
        first_only.prints("1 difference; the others were not searched for");
    }
}

#[test]
fn an_exhausted_limit_is_no_equivalence() {
    let folder = Folder::new();
    let mut stripes = "schema ipv4-5tuple\n".to_owned();
    for stripe in 0..64 {
        stripes += &format!("permit src={}.0.0.0/6\n", stripe * 4);
    }
    let stripes = folder.file("stripes.rules", stripes);
    let any_rules = folder.file("any.rules", "schema ipv4-5tuple\npermit\n");
    run(&format!("diff {stripes} {any_rules}")).exits(0);
    let limited = run(&format!(
        "diff {stripes} {any_rules} --steps 20 --format json"
    ));
    let report = limited.exits(1).json();
    assert_eq!(report["equivalent"], serde_json::Value::Null);
    assert_eq!(report["undecided"][0]["rule"]["line"], 2);
    run(&format!("diff {stripes} {any_rules} --steps 20"))
        .exits(1)
        .prints("undecided: the limit of steps was reached");
}

#[test]
fn policies_of_other_headers_are_refused() {
    let folder = Folder::new();
    let old = folder.file("old.rules", OLD);
    let new = folder.file("new.rules", "schema dual-5tuple\npermit dport=80\n");
    run(&format!("diff {old} {new}"))
        .exits(2)
        .complains("the first policy has the schemas ipv4-5tuple, the second ipv4-5tuple, ipv6")
        .complains("--schema dual-5tuple");
    run_with(&["diff", "-", "-"], b"").exits(2);
}
