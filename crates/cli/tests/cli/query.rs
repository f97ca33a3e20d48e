//! `classyard query`.

use crate::support::{Folder, run, run_with};

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

/// The share counts all values of the lists.
#[test]
fn a_match_has_lists_and_negations() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let matches = "src=!0.0.0.0/1,192.0.0.0/2 dst=192.0.2.1-192.0.2.2 proto=tcp dport=22,8080";
    let answers = run_query(&rules, matches, &["--format", "json"]).exits(0);
    let report = answers.json();
    let answers = report["answers"].as_array().unwrap();
    let shown = answers
        .iter()
        .map(|one| (one["rule"]["line"].as_u64(), one["share"].as_f64()));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [(Some(3), Some(0.5)), (Some(4), Some(0.5))]
    );
    let allowed = folder.file(
        "allowed.rules",
        "schema ipv4-5tuple\npermit dport=!22,1000\n",
    );
    run_query(
        &rules,
        "dport=21-23,80",
        &["--within", &allowed, "--action", "permit"],
    )
    .exits(1)
    .prints("dport=22");
    run_query(
        &rules,
        "dport=21,23,80",
        &["--within", &allowed, "--action", "permit"],
    )
    .exits(0);
    run_query(&rules, "proto=!tcp src=!10.0.0.1 dst=!10.0.0.1", &[])
        .exits(2)
        .complains("65536 rules");
    run_query(&rules, "proto=!tcp src=!10.0.0.1", &[])
        .exits(2)
        .complains("the match has 8160 boxes; expected at most 4096");
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

const PERMITTED: &str = "schema ipv4-5tuple\n\
    permit dst=192.0.2.0/24 dport=80\n\
    permit dst=192.0.2.0/24 dport=443-449\n\
    deny\n";

const ALLOWED: &str = "schema ipv4-5tuple\n\
    permit dport=80-89\n\
    permit dport=443\n\
    deny\n";

#[test]
fn packets_outside_of_another_policy_are_listed() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", PERMITTED);
    let allowed = folder.file("allowed.rules", ALLOWED);
    run(&format!("query {rules} --within {allowed}"))
        .exits(1)
        .prints("fw.rules:3: outside: src=0.0.0.0 dst=192.0.2.0 sport=0 dport=444 proto=hopopt (")
        .prints("    permit dst=192.0.2.0/24 dport=443-449")
        .prints("allowed.rules:4: deny any")
        .prints("3 rules; 1 of them has packets with the action permit outside of ");
    let report = run(&format!("query {rules} --within {allowed} --format json"));
    let report = report.exits(1).json();
    assert_eq!(report["is_within"], false);
    let outside = report["outside"].as_array().unwrap();
    let [row] = &outside[..] else {
        panic!("{outside:?}")
    };
    assert_eq!(row["rule"]["line"], 3);
    assert_eq!(row["other_rule"]["line"], 4);
    assert_eq!(row["header"]["dport"], "444");
    let expected = 6.0 / 65536.0 / f64::from(1 << 24);
    assert!((row["share"].as_f64().unwrap() - expected).abs() < expected / 1e6);
    let rows = run(&format!("query {rules} --within {allowed} --format csv")).exits(1);
    assert_eq!(rows.csv()[1][..2], ["3", "1"]);
    // Allowed packets need not be permitted.
    run(&format!("query {rules} --within {rules}")).exits(0);
    let narrow = folder.file("narrow.rules", "schema ipv4-5tuple\npermit dport=443\n");
    run(&format!("query {narrow} --within {allowed}"))
        .exits(0)
        .prints("1 rule; no packets with the action permit are outside of ");
}

#[test]
fn a_match_restricts_what_must_be_within() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", PERMITTED);
    let allowed = folder.file("allowed.rules", ALLOWED);
    let within = ["--within", &allowed];
    run_query(&rules, "dport=0-443", &within).exits(0);
    run_query(&rules, "dport=440-447", &within)
        .exits(1)
        .prints("outside: src=0.0.0.0 dst=192.0.2.0 sport=0 dport=444")
        .prints("of the match)")
        .prints("packets of \"dport=440-447\" with the action permit outside of");
}

#[test]
fn another_action_can_be_asked_for() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", PERMITTED);
    let allowed = folder.file("allowed.rules", ALLOWED);
    run(&format!("query {rules} --within {allowed} --action deny"))
        .exits(1)
        .prints("fw.rules:4: outside");
    run(&format!("query {rules} --within {allowed} --action allow"))
        .exits(2)
        .complains("no rule of")
        .complains("its actions are `deny`, `permit`");
    let other = folder.file(
        "other.rules",
        "schema ipv4-5tuple\nactions premit\npremit\n",
    );
    run(&format!("query {rules} --within {other}"))
        .exits(1)
        .complains("has the action `permit`, so it allows nothing; did you mean `premit`?");
    run(&format!("query --within {allowed}")).exits(2);
    let wide = folder.file("wide.rules", "schema ipv6-5tuple\npermit\n");
    run(&format!("query {rules} --within {wide}"))
        .exits(2)
        .complains("--schema dual-5tuple");
}

#[test]
fn configurations_are_compared_by_list() {
    let folder = Folder::new();
    let cisco = "ip access-list extended OUTSIDE_IN\n \
        permit tcp any host 192.0.2.10 eq 443\n \
        permit tcp any host 192.0.2.10 eq 8443\n";
    let asa = folder.file("router.cfg", cisco);
    let save = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n\
        -A FORWARD -d 192.0.2.0/24 -p tcp -m tcp --dport 443 -j ACCEPT\nCOMMIT\n";
    let allowed = folder.file("fw.save", save);
    run(&format!(
        "query {asa} --list OUTSIDE_IN --within {allowed} --second-list FORWARD"
    ))
    .exits(1)
    // A Cisco entry with ports has the later fragments of such packets, too.
    .prints("router.cfg:2:2: outside: src=0.0.0.0 dst=192.0.2.10 sport=0 dport=0 proto=tcp frag")
    .prints("router.cfg:3:2: outside: src=0.0.0.0 dst=192.0.2.10 sport=0 dport=8443 proto=tcp\n")
    .prints("fw.save:3:1: :FORWARD DROP [0:0] (default)")
    .prints("2 of them have packets with the action permit outside of");
    let narrow = folder.file("narrow.cfg", cisco.replace("eq 8443", "eq 443"));
    let mut words = vec![
        "query",
        &narrow,
        "--within",
        &allowed,
        "-m",
        "proto=tcp fragment=whole",
    ];
    words.extend(["--list", "OUTSIDE_IN", "--second-list", "FORWARD"]);
    run_with(&words, b"").exits(0);
}

fn run_query(rules: &str, asked: &str, flags: &[&str]) -> crate::support::Run {
    let mut arguments = vec!["query", rules, "-m", asked];
    arguments.extend(flags);
    crate::support::run_with(&arguments, b"")
}
