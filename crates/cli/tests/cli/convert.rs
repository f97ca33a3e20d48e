//! `convert` loses nothing silently.

use crate::support::{Folder, RULES, TRACE, example, run, run_with};

/// Which rule wins for each header of a trace.
fn winners(rules: &str, trace: &str) -> String {
    run(&format!("classify -r {rules} -t {trace} --winners - -q"))
        .exits(0)
        .stdout
}

#[test]
fn rules_keep_their_meaning() {
    let folder = Folder::new();
    let original = folder.path("original.classbench");
    run(&format!("generate -p acl4 -n 200 -o {original} -q")).exits(0);
    let trace = folder.path("trace");
    run(&format!(
        "generate trace -r {original} -k corners -n 2k -o {trace} -q"
    ))
    .exits(0);
    let expected = winners(&original, &trace);
    let ours = folder.path("ours.rules");
    run(&format!("convert {original} {ours}")).exits(0);
    assert_eq!(winners(&ours, &trace), expected);
    let back = folder.path("back.classbench");
    run(&format!("convert {ours} {back}")).exits(0);
    assert_eq!(
        folder.read("back.classbench"),
        folder.read("original.classbench")
    );
}

#[test]
fn losses_are_told_on_standard_error() {
    let rules = example("office.rules");
    let run = run(&format!("convert {rules} - --to ovs"));
    assert!(run.stdout.contains("actions="), "{}", run.stdout);
    let run = run.exits(0).complains("148 rules written as");
    assert!(run.stderr.contains("note:") || run.stderr.contains("warning:"));
}

#[test]
fn captures_become_traces_and_traces_captures() {
    let folder = Folder::new();
    let (packets, rules) = (example("office.pcapng.gz"), example("office.rules"));
    let trace = folder.path("office.trace");
    run(&format!("convert {packets} {trace}"))
        .exits(0)
        .complains("61 packets without a header of dual-5tuple left out: 61 arp");
    assert_eq!(folder.read("office.trace").lines().count(), 1927);
    let expected = run(&format!("classify -r {rules} -c {packets} --winners -")).stdout;
    let expected = expected.replace("x\n", "");
    assert_eq!(winners(&rules, &trace), expected);
    let small = folder.file("small.trace", TRACE);
    let pcap = folder.path("small.pcap");
    run(&format!("convert {small} {pcap}")).exits(0).silent();
    let back = run(&format!("convert {pcap} -")).exits(0);
    assert_eq!(back.stdout, TRACE.replace(' ', "\t"));
}

#[test]
fn standard_input_and_output_work() {
    let run = run_with(
        &["convert", "-", "-", "--to", "classbench"],
        RULES.as_bytes(),
    );
    assert_eq!(run.exits(0).lines().len(), 3);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let out = folder.path("out.pcap");
    run(&format!("convert {rules} {out}"))
        .exits(2)
        .complains("cannot become capture");
    assert!(!folder.has("out.pcap"));
    run(&format!("convert {trace} -"))
        .exits(2)
        .complains("what should be written to -?");
    run(&format!("convert {trace} - --to rulse"))
        .exits(2)
        .complains("did you mean `rules`?");
    let packets = example("office.pcap");
    run(&format!("convert {packets} {out}"))
        .exits(2)
        .complains("both files are captures");
    let bad = folder.file(
        "bad.rules",
        "schema ipv4-5tuple\nallow x=1\nallow dport=5\n",
    );
    let out = folder.path("out.classbench");
    run(&format!("convert {bad} {out}"))
        .exits(2)
        .complains("bad.rules:2:7");
    assert!(!folder.has("out.classbench"));
    run(&format!("convert {bad} {out} --skip-bad"))
        .exits(0)
        .complains("1 bad line was skipped");
    assert_eq!(folder.read("out.classbench").lines().count(), 1);
}
