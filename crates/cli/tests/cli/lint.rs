//! `classyard lint`.

use crate::support::{Folder, run};

/// The example of the documentation: two rules cover the third one together.
const UNION: &str = "schema ipv4-5tuple\n\
    deny src=10.3.0.0/17\n\
    # a comment\n\
    permit src=10.3.128.0/17\n\
    permit src=10.3.0.0/16 dport=443\n";

#[test]
fn a_rule_that_several_rules_cover_is_dead() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", UNION);
    let result = run(&format!("lint {rules}")).exits(1);
    result
        .prints("fw.rules:5: dead: covered by lines 2 (deny src=10.3.0.0/17) and 4 (permit src")
        .prints(", by none alone; line 2 has another action")
        .prints("3 rules, 1 dead, 0 redundant");
    let report = run(&format!("lint {rules} --format json")).exits(1).json();
    let file = &report["files"][0];
    assert_eq!((&file["rules"], &file["dead"]), (&3.into(), &1.into()));
    let finding = &file["findings"][0];
    assert_eq!(finding["finding"], "dead");
    let rule = &finding["rule"];
    assert_eq!((&rule["line"], &rule["id"]), (&5.into(), &2.into()));
    assert_eq!(finding["all_needed"], true);
    assert_eq!(finding["same_action"], false);
    let by: Vec<_> = finding["by"].as_array().unwrap().iter().collect();
    assert_eq!(by.len(), 2);
    assert_eq!((&by[0]["line"], &by[1]["line"]), (&2.into(), &4.into()));
    assert_eq!(by[0]["action"], "deny");
    let rows = run(&format!("lint {rules} --format csv")).exits(1);
    let rows = rows.csv();
    assert_eq!(
        rows[1][1..6],
        ["5", "2", "dead", "src=10.3.0.0/16 dport=443", "0 1"]
    );
}

/// A line with lists is one statement, whose parts can be dead.
#[test]
fn a_line_of_several_rules_is_one_finding() {
    let folder = Folder::new();
    let text = "schema acl\n\
                allow proto=tcp dst=192.0.2.1-192.0.2.8,2001:db8::1 dport=80,443\n\
                allow proto=tcp dst=192.0.2.8 dport=!1-79,81-442,444-65535,0\n\
                deny proto=tcp dport=22,443 src=!10.0.0.0/8\n\
                deny proto=tcp dport=22\n";
    let rules = folder.file("fw.rules", text);
    let result = run(&format!("lint {rules} --select dead,partly-dead")).exits(1);
    result
        .prints(
            "fw.rules:3: dead: covered by line 2 (allow proto=tcp \
             dst=192.0.2.1-192.0.2.8,2001:db8::1 dport=80,443)\n    \
             allow proto=tcp dst=192.0.2.8 dport=!1-79,81-442,444-65535,0\n",
        )
        .prints("4 rules, 1 dead");
    let out = folder.path("shorter.rules");
    run(&format!("minimise {rules} {out} --dead-only")).exits(0);
    let shorter = std::fs::read_to_string(&out).unwrap();
    assert_eq!(shorter.lines().count(), text.lines().count() - 1);
    run(&format!("diff {rules} {out} --equivalent")).exits(0);
}

#[test]
fn a_rule_whose_removal_changes_nothing_is_redundant() {
    let folder = Folder::new();
    let rules = folder.file(
        "fw.rules",
        "schema ipv4-5tuple\n\
         permit dport=80\n\
         permit dport=80-89\n\
         deny\n\
         deny\n",
    );
    let result = run(&format!("lint {rules}")).exits(1);
    result
        .prints("fw.rules:2: redundant: its removal changes no action; line 3 (permit dport=80-89)")
        .prints("fw.rules:5: dead: covered by line 4");
    run(&format!("lint {rules} --select dead"))
        .exits(1)
        .prints("4 rules, 1 dead, 0 redundant");
    run(&format!("lint {rules} --ignore dead,redundant")).exits(0);
    let clean = folder.file("clean.rules", "schema ipv4-5tuple\npermit dport=80\ndeny\n");
    run(&format!("lint {clean}"))
        .exits(0)
        .prints("2 rules, 0 dead, 0 redundant");
    let report = run(&format!("lint {clean} {rules} --format json"))
        .exits(1)
        .json();
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
}

#[test]
fn rules_without_actions_are_not_redundant() {
    let folder = Folder::new();
    let line = |ports: &str| format!("@10.0.0.0/8\t192.0.2.0/24\t0 : 65535\t{ports}\t0x06/0xFF\n");
    let text = line("80 : 80") + &line("0 : 65535");
    let rules = folder.file("set.txt", text);
    run(&format!("lint {rules}"))
        .exits(0)
        .complains("its rules have no actions");
    run(&format!("lint {rules} --select dead"))
        .exits(0)
        .prints("0 dead");
}

#[test]
fn rules_beyond_the_limit_of_steps_are_undecided() {
    let folder = Folder::new();
    // Stripes of source addresses cover the last rule.
    let mut text = "schema ipv4-5tuple\n".to_owned();
    for stripe in 0..64 {
        text += &format!("permit src={}.0.0.0/6\n", stripe * 4);
    }
    text += "permit dport=1000-50000\n";
    let rules = folder.file("stripes.rules", text);
    run(&format!("lint {rules} --select dead"))
        .exits(1)
        .prints("stripes.rules:66: dead: covered by lines 2 (permit src=0.0.0.0/6)")
        .prints("56 more rules");
    run(&format!("lint {rules} --select dead --steps 100"))
        .exits(1)
        .prints("stripes.rules:66: undecided")
        .prints("1 undecided");
}

#[test]
fn the_embedded_example_is_examined() {
    run("lint")
        .exits(1)
        .prints("148 rules, 0 dead, 5 redundant");
}

#[test]
fn unreadable_files_are_errors() {
    let folder = Folder::new();
    let bad = folder.file("bad.rules", "schema ipv4-5tuple\npermit dport=99999\n");
    run(&format!("lint {bad}"))
        .exits(2)
        .complains("bad.rules:2");
    run("lint - -").exits(2);
}

#[test]
fn comments_allow_findings() {
    let folder = Folder::new();
    let allowed = folder.file(
        "allowed.rules",
        "schema ipv4-5tuple\n\
         deny src=10.0.0.0/8\n\
         # It documents the customer's wish. classyard: allow dead\n\
         permit src=10.1.0.0/16\n\
         permit src=10.2.0.0/16  # classyard: allow redundant, dead\n",
    );
    run(&format!("lint {allowed}"))
        .exits(0)
        .prints("0 dead, 0 redundant, 2 allowed by comments");
    let other = folder.file(
        "other.rules",
        "schema ipv4-5tuple\n\
         deny src=10.0.0.0/8     # classyard: allow dead\n\
         permit src=10.1.0.0/16\n\
         permit src=10.2.0.0/16  # classyard: allow ded\n",
    );
    run(&format!("lint {other}"))
        .exits(1)
        .prints("other.rules:3: dead")
        .prints("other.rules:4: dead")
        .complains("other.rules:4: a comment allows `ded`, which is no kind of finding")
        .complains("did you mean `dead`?");
}

#[test]
fn findings_are_written_for_other_tools() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", UNION);
    let log = run(&format!("lint {rules} --format sarif")).exits(1).json();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let [result] = &results[..] else {
        panic!("{results:?}")
    };
    assert_eq!(result["ruleId"], "dead");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 5);
    assert_eq!(result["relatedLocations"].as_array().unwrap().len(), 2);
    let kinds = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    assert!(kinds.iter().any(|kind| kind["id"] == "dead"));
    run(&format!("lint {rules} --format junit"))
        .exits(1)
        .prints("<testsuite name=")
        .prints("tests=\"1\" failures=\"1\"")
        .prints("name=\"line 5: dead\"");
    let clean = folder.file("clean.rules", "schema ipv4-5tuple\npermit dport=80\ndeny\n");
    run(&format!("lint {clean} --format junit"))
        .exits(0)
        .prints("tests=\"1\" failures=\"0\"")
        .prints("name=\"no findings\"");
}

/// Flows of equal priority that match the same packets, and a pair with a better flow.
const FLOWS: &str = "\
    priority=20,tcp,tp_dst=22,actions=drop\n\
    priority=10,tcp,nw_dst=192.0.2.0/24,actions=output:1\n\
    priority=10,tcp,tp_dst=80,actions=output:2\n\
    priority=10,udp,actions=output:2\n";

#[test]
fn equal_priorities_are_found() {
    let folder = Folder::new();
    let flows = folder.file("br0.flows", FLOWS);
    run(&format!("lint {flows} --select equal-priority"))
        .exits(1)
        .prints("br0.flows:3: equal priority: line 2 (")
        .prints(
            "has its priority 10 and another action; OpenFlow leaves open which of them decides",
        )
        .prints(", here the smaller id does: eth_type=0x800 dst=192.0.2.0 proto=tcp dport=80\n")
        .prints("1 equal priority");
    let report = run(&format!("lint {flows} --format json")).json();
    let file = &report["files"][0];
    assert_eq!(file["counts"]["equal-priority"], 1);
    let findings = file["findings"].as_array().unwrap();
    let is_tie = |row: &&serde_json::Value| row["finding"] == "equal-priority";
    let row = findings.iter().find(is_tie).unwrap();
    assert_eq!(row["by"][0]["line"], 2);
    assert_eq!(row["more"], false);
    assert_eq!(row["header"]["dport"], "80");
}

#[test]
fn pairs_of_rules_are_found_on_request() {
    let folder = Folder::new();
    let rules = folder.file(
        "fw.rules",
        "schema ipv4-5tuple\n\
         permit src=10.0.0.0/9 dport=80\n\
         permit src=10.128.0.0/9 dport=80\n\
         deny src=10.1.0.0/16\n\
         permit dport=81\n",
    );
    let default = run(&format!("lint {rules}")).exits(0);
    default.prints("4 rules, 0 dead, 0 redundant\n");
    run(&format!("lint {rules} --select mergeable,correlated"))
        .exits(1)
        .prints(
            "fw.rules:3: mergeable: can be one rule with line 2 (permit src=10.0.0.0/9 dport=80)",
        )
        .prints(", with src=10.0.0.0/8")
        .prints("fw.rules:4: correlated: line 2 (permit src=10.0.0.0/9 dport=80) decides some of")
        .prints("its packets with another action: src=10.1.0.0 dport=80\n")
        .prints("fw.rules:5: correlated: line 4 (deny src=10.1.0.0/16) decides")
        .prints("1 mergeable, 2 correlated");
    run(&format!("lint {rules} --select all --ignore correlated"))
        .exits(1)
        .prints("0 redundant, 1 mergeable\n");
    let allowed = folder.file(
        "allowed.rules",
        "schema ipv4-5tuple\n\
         permit dport=80\n\
         permit dport=81  # classyard: allow mergeable\n",
    );
    run(&format!("lint {allowed} --select all"))
        .exits(0)
        .prints("1 allowed by comments");
    let log = run(&format!("lint {rules} --select mergeable --format sarif")).exits(1);
    let result = &log.json()["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "mergeable");
    run(&format!("lint {rules} --select mergeable --format junit"))
        .exits(1)
        .prints("name=\"line 3: mergeable\"");
    run(&format!("lint {rules} --select meargeable"))
        .exits(2)
        .complains("mergeable");
}

#[test]
fn misspelled_actions_are_found() {
    let folder = Folder::new();
    let mut text = "schema ipv4-5tuple\nactions permit premit\n".to_owned();
    for port in 0..120 {
        let action = if port == 70 { "premit" } else { "permit" };
        text += &format!("{action} dport={port}\n");
    }
    let rules = folder.file("fw.rules", text);
    run(&format!("lint {rules}"))
        .exits(1)
        .prints("fw.rules:73: rare action: few rules have the action `premit`; is `permit` meant?")
        .prints("1 rare action");
}

/// Rules that decide no packet of a capture are findings, unless they are dead anyway.
#[test]
fn rules_that_no_packet_hits_are_found() {
    let folder = Folder::new();
    let text = "schema ipv4-5tuple\n\
                allow dport=80,443\n\
                allow dport=22\n\
                allow dport=443\n\
                deny dport=25,587\n\
                deny\n";
    let rules = folder.file("fw.rules", text);
    let trace = folder.file(
        "headers.txt",
        "167772161\t1\t1000\t443\t6\n167772161\t1\t1000\t587\t6\n167772161\t1\t1\t9\t6\n",
    );
    let capture = folder.path("headers.pcap");
    run(&format!(
        "convert {trace} {capture} --schema ipv4-5tuple -q"
    ))
    .exits(0);
    for packets in [format!("-t {trace}"), format!("-c {capture}")] {
        let result = run(&format!("lint {rules} {packets} --format json")).exits(1);
        let file = &result.json()["files"][0];
        assert_eq!(file["headers"], 3);
        let found = file["findings"].as_array().unwrap().iter();
        let found: Vec<_> = found
            .map(|one| {
                (
                    one["finding"].as_str().unwrap(),
                    one["rule"]["line"].as_u64(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("never-hit", Some(3)),
                ("dead", Some(4)),
                ("redundant", Some(5))
            ]
        );
        run(&format!("lint {rules} {packets} --select never-hit"))
            .exits(1)
            .prints("never hit: it decides none of the 3 packets of ");
        run(&format!(
            "lint {rules} {packets} --ignore never-hit,dead,redundant"
        ))
        .exits(0);
    }
    let empty = folder.file("empty.txt", "");
    run(&format!("lint {rules} -t {empty} --select never-hit")).exits(0);
    run(&format!("lint {rules} {rules} -t -"))
        .exits(2)
        .complains("one file of rules");
}

/// A capture has packets of one list.
#[test]
fn packets_are_compared_with_one_list_of_a_configuration() {
    let folder = Folder::new();
    let save = "# Generated by iptables-save\n*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n\
                -A INPUT -p tcp -m tcp --dport 80 -j ACCEPT\n\
                -A INPUT -p tcp -m multiport --dports 22,23 -j ACCEPT\n\
                -A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
    let rules = folder.file("fw.save", save);
    let trace = folder.file("headers.txt", "167772161\t1\t1000\t22\t6\n");
    let capture = folder.path("headers.pcap");
    run(&format!(
        "convert {trace} {capture} --schema ipv4-5tuple -q"
    ))
    .exits(0);
    run(&format!("lint {rules} -c {capture}"))
        .exits(2)
        .complains("--list selects one of");
    let result = run(&format!(
        "lint {rules} --list INPUT -c {capture} --format json"
    ))
    .exits(1);
    let findings = &result.json()["files"][0]["findings"];
    assert_eq!(findings.as_array().unwrap().len(), 1);
    assert_eq!(findings[0]["rule"]["line"], 5);
    assert_eq!(findings[0]["finding"], "never-hit");
}

#[test]
fn networks_with_host_bits_are_found() {
    let folder = Folder::new();
    let rules = folder.file(
        "fw.rules",
        "schema ipv4-5tuple\nallow src=10.0.0.1/8,192.0.2.0/24 dport=80,443\n\
         # 10.0.0.1/8\ndeny src=10.0.0.0/8\n",
    );
    run(&format!("lint {rules}")).exits(0);
    run(&format!("lint {rules} --select host-bits"))
        .exits(1)
        .prints("fw.rules:2: host bits: 10.0.0.1/8 means 10.0.0.0/8\n")
        .prints("1 host bits");
    let cisco = folder.file(
        "ios.cfg",
        "ip access-list extended EDGE\n permit tcp 192.0.2.7 0.0.0.255 any eq 80\n",
    );
    run(&format!("lint {cisco} --select host-bits"))
        .exits(1)
        .prints("192.0.2.7 0.0.0.255 means 192.0.2.0/24");
}

/// A member of a group is found once, however many rules use the group.
#[test]
fn members_of_groups_with_host_bits_are_found() {
    let folder = Folder::new();
    let cisco = folder.file(
        "ios.cfg",
        "object-group network WEB\n 10.0.0.0 255.0.0.0\n 192.0.2.7 255.255.255.0\n\
         ip access-list extended EDGE\n permit tcp any object-group WEB eq 80\n \
         permit tcp any object-group WEB eq 443\n permit ip 10.1.0.1 0.0.0.255 any\n",
    );
    run(&format!("lint {cisco}")).exits(0);
    let select = format!("lint {cisco} --select host-bits");
    run(&select)
        .exits(1)
        .prints(
            "ios.cfg:3:2: host bits: 192.0.2.7 255.255.255.0 means 192.0.2.0/24 in `WEB`\n    \
             192.0.2.7 255.255.255.0\n",
        )
        .prints("ios.cfg:7:2: host bits: 10.1.0.1 0.0.0.255 means 10.1.0.0/24\n")
        .prints("2 host bits");
    let report = run(&format!("{select} --format json")).exits(1).json();
    let findings = report["files"][0]["findings"].as_array().unwrap().clone();
    assert_eq!(findings.len(), 2);
    let member = &findings[0]["member"];
    assert_eq!((&member["line"], &member["column"]), (&3.into(), &2.into()));
    assert_eq!(member["group"], "WEB");
    assert_eq!(member["text"], "192.0.2.7 255.255.255.0");
    assert_eq!(findings[0]["rule"], serde_json::Value::Null);
    assert_eq!(findings[1]["rule"]["line"], 7);
    let rows = run(&format!("{select} --format csv")).exits(1).csv();
    assert_eq!(rows[1][1..4], ["3", "", "host-bits"]);
    let log = run(&format!("{select} --format sarif")).exits(1).json();
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["region"]["startLine"], 3);
    run(&format!("{select} --format junit"))
        .exits(1)
        .prints("name=\"line 3: host-bits\"");
    let page = folder.path("page.html");
    run(&format!("{select} --html {page} -q")).exits(1);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("<code>192.0.2.7 255.255.255.0</code>"),
        "{page}"
    );
}

#[test]
fn members_of_groups_are_allowed_like_rules() {
    let folder = Folder::new();
    let by_comment = folder.file(
        "ios.cfg",
        "object-group network WEB\n ! classyard: allow host-bits\n 192.0.2.7 255.255.255.0\n\
         ip access-list extended EDGE\n permit tcp any object-group WEB eq 80\n",
    );
    run(&format!("lint {by_comment} --select host-bits"))
        .exits(0)
        .prints("1 allowed by comments");
    let by_config = folder.file(
        "ios2.cfg",
        "object-group network WEB\n 192.0.2.7 255.255.255.0\n\
         ip access-list extended EDGE\n permit tcp any object-group WEB eq 80\n",
    );
    let config = folder.file(
        "classyard.toml",
        "[lint]\nselect = [\"host-bits\"]\n[[lint.allow]]\nrule = \"192.0.2.7 255.255.255.0\"\n\
         kind = \"host-bits\"\nwhy = \"known\"\n",
    );
    run(&format!("lint {by_config} --config {config}"))
        .exits(0)
        .prints("1 allowed by the configuration");
}

/// An entry that permits a port permits later fragments too, by a second rule.
#[test]
fn statements_of_several_rules_are_mergeable() {
    let folder = Folder::new();
    let cisco = folder.file(
        "ios.cfg",
        "ip access-list extended EDGE\n permit tcp any any eq 80\n deny udp any any\n \
         permit tcp any any eq 81\n permit tcp any any eq 83\n",
    );
    run(&format!("lint {cisco} --select mergeable"))
        .exits(1)
        .prints(
            "ios.cfg:4:2: mergeable: can be one rule with line 2 (permit tcp any any eq 80), with \
             dport=80-81\n",
        )
        .prints("1 mergeable");
}
