//! `explain` gives the reasons for an answer.

use crate::support::{Folder, RULES, TRACE, example, run, run_with};

fn explain(header: &str, more: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["explain", "--format", "json", "--header", header];
    arguments.extend(more);
    run_with(&arguments, &[]).exits(0).json()
}

#[test]
fn without_arguments_it_explains_a_header_of_the_example() {
    let run = run("explain").exits(0).silent();
    for text in [
        "www-https",
        "Why it matches",
        "Matching rules, best first: 4",
        "Better rules that came closest",
        "The answer depends on",
    ] {
        assert!(run.stdout.contains(text), "no {text:?} in:\n{}", run.stdout);
    }
}

#[test]
fn every_matching_rule_is_listed_in_order() {
    let report = explain(
        "src=10.20.1.11 dst=10.20.2.10 sport=40123 dport=443 proto=tcp",
        &[],
    );
    let rules = report["matches"].as_array().unwrap().iter();
    let rules: Vec<u64> = rules.map(|rule| rule["rule"].as_u64().unwrap()).collect();
    assert_eq!(rules, [97, 105, 141, 147]);
    assert_eq!(report["winner"]["name"], "www-https");
    let decided = report["decided"].as_array().unwrap().iter();
    let decided: Vec<&str> = decided.map(|row| row["field"].as_str().unwrap()).collect();
    assert_eq!(decided, ["dst", "sport", "dport", "proto"]);
    assert_eq!(report["decided"][1]["match"], "1024-65535");
    assert_eq!(report["depends_on"]["of"], 104);
    let lookup = &report["lookup"];
    assert_eq!(lookup["engine"], "forest");
    let (looked, tables) = (&lookup["tables_looked_at"], &lookup["tables"]);
    assert!(looked.as_u64().unwrap() <= tables.as_u64().unwrap());
}

#[test]
fn near_misses_say_which_field_refused() {
    let header = "src=10.20.1.12 dst=10.20.2.22 sport=40000 dport=22 proto=tcp";
    let report = explain(header, &["--near", "1"]);
    assert_eq!(report["winner"]["name"], "ssh-others");
    let near = &report["near"][0];
    assert_eq!(near["name"], "ssh-admin");
    assert_eq!(near["refused"][0]["field"], "src");
    assert_eq!(near["refused"][0]["match"], "10.20.1.11");
    assert_eq!(
        explain(header, &["--near", "0"])["near"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn engines_agree_on_the_winner_and_show_their_tables() {
    for engine in [
        "linear",
        "forest",
        "tss",
        "tuplemerge",
        "tuplemerge-offline",
        "tuplemerge-vpp",
        "partition-sort",
    ] {
        let header = "src=2001:db8:20:1::11 dst=2001:db8:20:2::10 dport=443 sport=50000 proto=tcp";
        let report = explain(header, &["--engine", engine]);
        assert_eq!(report["winner"]["name"], "www6-https", "{engine}");
        assert_eq!(report["header"]["schema"], "ipv6-5tuple");
        let probes = report["lookup"]["probes"].as_array().unwrap();
        let found = probes.iter().filter(|probe| probe["found"] == 99 + 2);
        assert_eq!(found.count(), 1, "{engine}");
    }
}

#[test]
fn a_miss_is_explained_as_well() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let header = "src=11.0.0.1 dport=80 proto=tcp";
    let run = run_with(&["explain", "-r", &rules, "--header", header], &[]).exits(0);
    let run = run
        .prints("none: no rule matches")
        .prints("src 11.0.0.1 is not 10.0.0.0/8");
    run.complains("fields not given, assumed to be 0: dst, sport");
}

#[test]
fn packets_and_headers_are_found_by_number() {
    let (rules, packets) = (example("office.rules"), example("office.pcap"));
    let whole = format!("explain -r {rules} -c {packets}");
    // The first frame is fe80::1 > ff02::16, ICMPv6.
    let first = run(&format!("{whole} --packet 1 --format json"))
        .exits(0)
        .json();
    assert_eq!(first["header"]["fields"][0]["value"], "fe80::1");
    assert_eq!(first["winner"]["name"], "mld-report");
    run(&format!("{whole} --packet 1989"))
        .exits(2)
        .complains("it has 1988");
    let arp = std::fs::read_to_string(example("office.headers.csv")).unwrap();
    let arp = arp
        .lines()
        .skip(1)
        .position(|line| line.contains(",arp,"))
        .unwrap();
    run(&format!("{whole} --packet {}", arp + 1))
        .exits(2)
        .complains("it is arp");
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let whole = format!("explain -r {rules} -t {trace} --format csv");
    let run_line = |line: u32| run(&format!("{whole} --line {line}"));
    assert_eq!(
        run_line(1).exits(0).lines()[1],
        "0,0,web,allow,3,src=10.0.0.0/8 dport=80 proto=tcp,2"
    );
    assert_eq!(run_line(3).exits(0).lines().len(), 1);
    run_line(5).exits(2).complains("it has 4");
}

#[test]
fn bad_headers_are_refused() {
    for (header, message) in [
        ("srx=1", "did you mean `src`?"),
        ("dport=70000", "does not fit in 16 bits"),
        ("src=10.0.0.300", "not a value of the field"),
        ("dport", "is not a header"),
        ("dport=1 dport=2", "says `dport` twice"),
    ] {
        run_with(&["explain", "--header", header], &[])
            .exits(2)
            .complains(message);
    }
    let rules = example("office.rules");
    run(&format!("explain -r {rules}"))
        .exits(2)
        .complains("no header to explain");
    run("explain --packet 0").exits(2);
    run("explain --line 1").exits(2);
}

#[test]
fn findings_about_the_matching_rules_are_shown() {
    let folder = crate::support::Folder::new();
    let rules = folder.file(
        "fw.rules",
        "schema ipv4-5tuple\n\
         permit src=10.1.0.0/16\n\
         permit src=10.0.0.0/8\n\
         deny src=10.1.2.0/24\n\
         deny src=10.1.3.0/24  # classyard: allow dead\n\
         deny src=192.0.2.0/25\n\
         deny src=192.0.2.0/24\n\
         permit src=192.0.2.7/32\n",
    );
    let explain = |header: &str, format: &str| {
        let arguments = [
            "explain", "-r", &rules, "--header", header, "--format", format,
        ];
        crate::support::run_with(&arguments, b"").exits(0)
    };
    explain("src=10.1.2.3", "table")
        .prints(
            "line 2 is redundant: its removal changes no action; line 3 (permit src=10.0.0.0/8)",
        )
        .prints("line 4 is dead: covered by line 2 (permit src=10.1.0.0/16); line 2 has another");
    let report = explain("src=10.1.2.3", "json").json();
    let found = report["findings"]["found"].as_array().unwrap();
    let kinds: Vec<_> = found
        .iter()
        .map(|row| row["finding"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["redundant", "dead"]);
    assert_eq!(found[1]["rule"]["line"], 4);
    assert_eq!(report["findings"]["undecided"].as_array().unwrap().len(), 0);
    // An allowed finding, and findings about rules that do not match.
    let other = explain("src=10.1.3.3", "table");
    assert!(!other.stdout.contains("is dead"), "{}", other.stdout);
    let clean = explain("src=10.9.9.9", "table");
    assert!(!clean.stdout.contains("Findings"), "{}", clean.stdout);
}
