//! Errors in files are reported with line and column, and nothing is loaded unless
//! requested.

use crate::support::{Folder, RULES, TRACE, example, run};

const BAD: &str = "\
schema ipv4-5tuple
allow src=10.0.0.0/33 dport=80
allow sprt=80
allow dport=80
drop src=10.0.0.0/8 dport=90-80
";

#[test]
fn bad_rules_are_drawn_with_line_and_column() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("bad.rules", BAD), folder.file("trace", TRACE));
    let run = run(&format!("classify -r {rules} -t {trace}")).exits(2);
    assert_eq!(run.stdout, "");
    for text in [
        "bad.rules:2:20",
        "bad.rules:3:7",
        "bad.rules:5:27",
        "2 | allow src=10.0.0.0/33 dport=80",
        "  |                    ^^ expected a length of 0 to 32",
        "unknown field `sprt`",
        "bad.rules: 3 bad lines; nothing was loaded",
        "use --skip-bad",
    ] {
        assert!(run.stderr.contains(text), "no {text:?} in:\n{}", run.stderr);
    }
}

#[test]
fn bad_lines_can_be_skipped_and_are_counted() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("bad.rules", BAD), folder.file("trace", TRACE));
    let arguments = format!("classify -r {rules} -t {trace} --skip-bad --format json");
    let kept = run(&arguments).exits(0);
    let kept = kept
        .complains("3 bad lines were skipped")
        .complains("bad.rules:2:20: prefix length /33");
    let report = kept.json();
    assert_eq!(report["rules"]["count"], 1);
    assert_eq!(report["rules"]["skipped"], 3);
    // `--quiet` suppresses this message too, but not errors.
    run(&format!("{arguments} --quiet")).exits(0).silent();
    run(&format!("classify -q -r {rules} -t {trace}"))
        .exits(2)
        .complains("nothing was loaded");
}

#[test]
fn reports_name_the_line_of_a_rule_whatever_was_skipped() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("bad.rules", BAD), folder.file("trace", TRACE));
    let classify = format!("classify -r {rules} -t {trace} --skip-bad --all --format json");
    let report = run(&classify).exits(0).json();
    let hits = report["hits"].as_array().unwrap();
    assert!(
        hits.iter()
            .all(|hit| (&hit["rule"], &hit["line"]) == (&0.into(), &4.into()))
    );
    let explain = format!("explain -r {rules} --skip-bad --header dport=80");
    run(&explain).exits(0).prints("rule 0, line 4");
    let report = run(&format!("{explain} --format json")).exits(0).json();
    assert_eq!(report["winner"]["line"], 4);
    let covered = format!("{BAD}# a comment\n\ndrop dport=80 proto=6\n");
    let covered = folder.file("covered.rules", covered);
    let inspect = format!("inspect {covered} --skip-bad --format json");
    let report = run(&inspect).exits(0).json();
    let shadow = &report["shadowed"]["rules"][0];
    assert_eq!(
        (&shadow["line"], &shadow["by_line"]),
        (&8.into(), &4.into())
    );
}

#[test]
fn twenty_problems_are_shown_and_the_rest_counted() {
    let folder = Folder::new();
    let lines = "allow sprt=80\n".repeat(30);
    let rules = folder.file("bad.rules", format!("schema ipv4-5tuple\n{lines}"));
    let run = run(&format!("inspect {rules}")).exits(2);
    assert_eq!(run.stderr.matches("unknown field").count(), 20);
    let run = run.complains("10 problems more").complains("30 bad lines");
    assert_eq!(run.stdout, "");
}

#[test]
fn bad_headers_are_drawn_too() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let trace = folder.file("trace", "1 2 3 80 6\n1 2 3 99999 6\n1 2\n");
    let arguments = format!("classify -r {rules} -t {trace} --winners -");
    let refused = run(&arguments).exits(2);
    let refused = refused.complains("trace:2:7").complains("trace:3:");
    assert_eq!(refused.stdout, "");
    let kept = run(&format!("{arguments} --skip-bad")).exits(0);
    assert_eq!(kept.complains("2 bad lines were skipped").stdout, "-\n");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let rules = folder.file("office.rules", RULES);
    let missing = rules.replace("office.rules", "ofice.rules");
    run(&format!("inspect {missing}"))
        .exits(2)
        .complains("ofice.rules: No such file")
        .complains(&format!("did you mean `{rules}`?"));
    let binary = folder.file("binary", b"allow\n\xff\xfe\x00");
    run(&format!("inspect {binary}"))
        .exits(2)
        .complains("binary:2:1")
        .complains("UTF-8");
    let empty = folder.file("empty", "");
    run(&format!("inspect {empty}"))
        .exits(2)
        .complains("no rule");
    run(&format!("classify -r {rules} -c {rules}"))
        .exits(2)
        .complains("a text file");
    run(&format!("classify -r {rules}"))
        .exits(2)
        .complains("nothing to classify");
    run("classify --winners /nowhere/at/all")
        .exits(2)
        .complains("/nowhere/at/all: ");
}

#[test]
fn limits_are_met_with_an_error() {
    let rules = example("office.rules");
    run(&format!("inspect {rules} --limit-rules 100"))
        .exits(2)
        .complains("more than 100 rules");
    run(&format!("inspect {rules} --limit-rules 148")).exits(0);
}

#[test]
fn a_wrong_schema_is_an_error() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    run(&format!("inspect {rules} --schema ipv6-5tuple"))
        .exits(2)
        .complains("schema");
    run(&format!("inspect {rules} --schema ipv4-5tupel"))
        .exits(2)
        .complains("did you mean `ipv4-5tuple`?");
    let own = folder.file(
        "own.toml",
        "name = \"own\"\n[[field]]\nname = \"a\"\nwidth = 8\nkind = \"exact\"\n",
    );
    let rules = folder.file("own.rules", "schema \"own.toml\"\nallow a=7\ndrop\n");
    run(&format!("inspect {rules}"))
        .exits(0)
        .prints("2 rules of own");
    let packets = example("office.pcap");
    run(&format!("classify -r {rules} -c {packets}"))
        .exits(2)
        .complains("packets cannot be parsed into headers of the schema `own`");
    let rules = folder.file("plain.rules", "allow a=7\ndrop\n");
    run(&format!(
        "inspect {rules} --rules-format rules --schema {own}"
    ))
    .exits(0);
}

#[test]
fn bad_usage_suggests_what_was_meant() {
    run("classify --engine tuplmerge")
        .exits(2)
        .complains("did you mean `tuplemerge`?");
    run("classify --engine tuplemerge:d=1")
        .exits(2)
        .complains("has no option `d`");
    run("classify --engine tuplemerge:c=0")
        .exits(2)
        .complains("column 14: engine `tuplemerge`: expected a whole number from 1 to 65535");
    run("classify --engine forest:isa=nope")
        .exits(2)
        .complains("column 12");
    run("classify --rules-format rulse")
        .exits(2)
        .complains("did you mean `rules`?");
    run("clasify").exits(2).complains("classify");
    run("classify --nonsense").exits(2).complains("--nonsense");
    run("classify --repeat 0").exits(2);
    run("").exits(2).complains("Usage");
}

#[test]
fn skipping_is_suggested_only_where_it_loads_something() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let suggested = |arguments: String, yes: bool| {
        let refused = run(&arguments).exits(2);
        let said = refused.stderr.contains("--skip-bad");
        assert_eq!(said, yes, "{arguments}:\n{}", refused.stderr);
        if yes {
            run(&format!("{arguments} --skip-bad")).exits(0);
        }
    };
    let mixed = folder.file("mixed", BAD);
    let flows = folder.file(
        "flows",
        "tcp,tp_dst=80 actions=drop\ntcp,tp_dst=x actions=drop\n",
    );
    let lines = "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\n";
    let filters = folder.file("filters", format!("{lines}{lines}@10.0.0.0/99\tx\n"));
    let headers = folder.file("headers", "1 2 3 80 6\n1 2 3 80 600\n");
    for good in [&mixed, &flows, &filters] {
        suggested(format!("inspect {good}"), true);
        suggested(format!("convert {good} - --to rules"), true);
    }
    suggested(format!("classify {rules} -t {headers} --winners -"), true);
    // No line is good.
    let all_bad = folder.file("all-bad", "schema ipv4-5tuple\nallow sprt=80\n");
    let no_header = folder.file("no-header", "1 2 3 80 600\n");
    suggested(format!("inspect {all_bad}"), false);
    suggested(format!("classify {rules} -t {no_header}"), false);
    // These files have no line that could be skipped.
    let schema = folder.file(
        "own.toml",
        "name = \"own\"\n[[field]]\nname = \"a\"\nwidth = 900\n",
    );
    let broken = folder.file("broken.toml", "name = ");
    let binary = folder.file("binary", b"allow dport=80\n\xff\xfe\x00");
    let no_schema = folder.file("no-schema", "schema nothing\nallow dport=80\n");
    let own = folder.file("own.rules", "schema \"own.toml\"\nallow a=7\n");
    for bad in [&schema, &broken] {
        suggested(format!("inspect {rules} --schema {bad}"), false);
        suggested(format!("generate --schema {bad} -n 10"), false);
    }
    for bad in [&binary, &no_schema, &own] {
        suggested(format!("inspect {bad}"), false);
        suggested(format!("classify {rules} -t {binary}"), false);
    }
    suggested(format!("generate --profile {broken}"), false);
    suggested(format!("classify {rules} -c {mixed}"), false);
    suggested(format!("inspect {rules} --limit-rules 1"), false);
}

/// A pipeline with unsupported actions runs without the flows that have them.
#[test]
fn flows_that_are_not_supported_are_skipped_by_reason() {
    let folder = Folder::new();
    let mut dump = "NXST_FLOW reply (xid=0x4):\n".to_owned();
    for number in 0..30 {
        dump.push_str(&format!(
            " priority={},ip actions=ct(table=1)\n",
            number + 1
        ));
    }
    dump.push_str(" priority=40,udp actions=resubmit(,1)\n priority=0 actions=FLOOD\n");
    let pipeline = folder.file("dump.flows", dump);
    let packets = example("office.pcap");
    run(&format!("replay -p {pipeline} -c {packets}"))
        .exits(2)
        .complains("dump.flows:2:")
        .complains("31 bad lines")
        .complains("use --skip-bad");
    run(&format!("replay -p {pipeline} -c {packets} --skip-bad"))
        .exits(0)
        .complains("31 bad lines were skipped")
        .complains("in all: 30 unsupported action `ct`, 1 unsupported action `resubmit`");
}

#[test]
fn a_misspelt_action_is_refused_with_the_word_that_was_meant() {
    let folder = Folder::new();
    let rules = folder.file(
        "fw.rules",
        "schema ipv4-5tuple\nalow src=10.0.0.0/8\ndrop\n",
    );
    run(&format!("inspect {rules}"))
        .exits(2)
        .complains("did you mean `allow`?");
}
