//! `classyard minimise`.

use std::fs;

use crate::support::{Folder, run};

/// Two rules cover the third together, and the fourth changes nothing.
const RULES: &str = "schema ipv4-5tuple\n\
    deny src=10.3.0.0/17\n\
    # the upper half\n\
    permit src=10.3.128.0/17\n\
    permit src=10.3.0.0/16 dport=443\n\
    permit dport=80\n\
    permit dport=80-89 # web\n\
    deny\n";

#[test]
fn dead_and_redundant_lines_are_left_out_and_others_stay_as_they_are() {
    let folder = Folder::new();
    let (rules, out) = (folder.file("fw.rules", RULES), folder.path("out.rules"));
    run(&format!("minimise {rules} {out}"))
        .exits(0)
        .prints("fw.rules:5: dead: permit src=10.3.0.0/16 dport=443")
        .prints("fw.rules:6: redundant: permit dport=80")
        .prints("6 rules, 2 removed, 4 left; the actions are proven to be the same");
    let expected: String = (1..)
        .zip(RULES.split_inclusive('\n'))
        .filter(|(line, _)| ![5, 6].contains(line))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
    run(&format!("lint {out}")).exits(0);
    run(&format!("diff {rules} {out} --equivalent")).exits(0);
    let report = run(&format!("minimise {rules} {out} --format json")).exits(0);
    let report = report.json();
    assert_eq!(
        (&report["rules"], &report["rules_left"]),
        (&6.into(), &4.into())
    );
    assert_eq!(report["removed"][1]["reason"], "redundant");
    assert_eq!(report["removed"][1]["rule"]["line"], 6);
    let dead_only = run(&format!("minimise {rules} {out} --dead-only --format csv")).exits(0);
    let rows = dead_only.csv();
    assert_eq!(rows.len(), 2, "a heading and one rule");
    assert_eq!(rows[1][1..4], ["5", "2", "dead"]);
}

#[test]
fn standard_output_has_the_rules_alone() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let result = run(&format!("minimise {rules} -"))
        .exits(0)
        .prints("# the upper half")
        .prints("permit dport=80-89 # web");
    assert_eq!(result.lines().len(), 6, "two of eight lines are left out");
}

#[test]
fn generated_rules_keep_their_actions_and_have_no_findings() {
    let folder = Folder::new();
    for (profile, family) in [("fw1", "ipv4"), ("ipc1", "dual")] {
        let (rules, out) = (folder.path("a.rules"), folder.path("b.rules"));
        run(&format!(
            "generate --profile {profile} --family {family} -n 500 --smoothing 2 \
             --address-scope 0.5 --to rules -o {rules}"
        ))
        .exits(0);
        run(&format!("minimise {rules} {out}")).exits(0);
        run(&format!("diff {rules} {out} --equivalent")).exits(0);
        let before = fs::read_to_string(&rules).unwrap();
        let after = fs::read_to_string(&out).unwrap();
        assert!(after.len() < before.len(), "{profile} has dead rules");
        let report = run(&format!("lint {out} --format json"));
        let file = &report.json()["files"][0];
        assert_eq!((&file["dead"], &file["removable"]), (&0.into(), &0.into()));
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::new();
    let (rules, out) = (folder.file("fw.rules", RULES), folder.path("out.rules"));
    run(&format!("minimise {rules} {rules}"))
        .exits(2)
        .complains("both read and written");
    assert_eq!(fs::read_to_string(&rules).unwrap(), RULES);
    run(&format!("minimise {rules} {out} --steps 1"))
        .exits(0)
        .prints("undecided and kept");
    run(&format!("minimise {out}.none {out}.new")).exits(2);
    assert!(!fs::exists(format!("{out}.new")).unwrap());
}
