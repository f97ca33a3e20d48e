//! `convert` loses nothing silently.

use crate::support::{Folder, RULES, TRACE, example, run, run_with};

/// Returns the winning rule for each header of a trace.
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
    for name in ["ours.rules", "ours.json"] {
        let ours = folder.path(name);
        run(&format!("convert {original} {ours}")).exits(0);
        assert_eq!(winners(&ours, &trace), expected);
        let back = folder.path("back.classbench");
        run(&format!("convert {ours} {back}")).exits(0);
        assert_eq!(
            folder.read("back.classbench"),
            folder.read("original.classbench")
        );
    }
}

/// Rules of firewalls, with lists of values and a name, by way of JSON.
#[test]
fn json_keeps_rules_of_firewalls() {
    let folder = Folder::new();
    let text = "schema acl\nallow proto=tcp dport=80,443 src=!10.0.0.0/8 name=\"a \\\"b\"\n\
                deny tcp_flags=+syn-ack in=eth* state=new\nallow src=2001:db8::/32\n";
    let rules = folder.file("fw.rules", text);
    let json = folder.path("fw.json");
    run(&format!("convert {rules} {json}")).exits(0);
    serde_json::from_str::<serde_json::Value>(&folder.read("fw.json")).unwrap();
    run(&format!("diff {rules} {json} --equivalent")).exits(0);
    run(&format!("lint {json} -q")).exits(0);
    let back = folder.path("back.rules");
    let expanded = folder.path("expanded.rules");
    run(&format!("convert {json} {back}")).exits(0);
    run(&format!("convert {rules} {expanded} --to rules")).exits(0);
    assert_eq!(folder.read("back.rules"), folder.read("expanded.rules"));
    assert!(folder.read("back.rules").contains("name=\"a \\\"b\""));
}

#[test]
fn losses_are_told_on_standard_error() {
    let rules = example("office.rules");
    let run = run(&format!("convert {rules} - --to ovs"));
    assert!(run.stdout.contains("actions="), "{}", run.stdout);
    let run = run.exits(0).complains("148 rules written as");
    assert!(run.stderr.contains("note:") || run.stderr.contains("warning:"));
}

/// Writes rules of `openflow15`: a rule that every format can express, then the
/// given ones.
fn openflow(folder: &Folder, rules: &str) -> String {
    let text = format!("schema openflow15\nallow eth_type=0x800\n{rules}");
    folder.file("lossy.rules", text)
}

#[test]
fn lost_rules_are_named_and_the_exit_code_is_1() {
    let folder = Folder::new();
    let rules = openflow(
        &folder,
        "drop eth_type=0x806 dport=80 name=odd\ndrop src=10.0.0.1\ndrop proto=icmp eth_type=0x800 sport=8\n",
    );
    let flows = folder.path("lossy.flows");
    for quiet in ["", "-q"] {
        let run = run(&format!("convert {rules} {flows} {quiet}")).exits(1);
        let run = run
            .complains(&format!(
                "error: 2 of 4 rules lost or changed in {flows}; the rest was written"
            ))
            .complains("  rule 1 `odd`: left out: no packet has all that it demands")
            .complains(
                "  rule 2: matches fewer headers: it has no Ethernet type, and flows cannot",
            );
        assert_eq!(
            run.stderr.contains("note:"),
            quiet.is_empty(),
            "{}",
            run.stderr
        );
        assert_eq!(run.stdout, "");
        assert_eq!(
            folder.read("lossy.flows"),
            "priority=4,ip actions=allow\n\
             priority=2,ip,nw_src=10.0.0.1 actions=drop\n\
             priority=2,arp,arp_spa=10.0.0.1 actions=drop\n\
             priority=2,rarp,arp_spa=10.0.0.1 actions=drop\n\
             priority=1,icmp,icmp_type=8 actions=drop\n"
        );
    }
    // To standard output, and to another format.
    run(&format!("convert {rules} - --to ovs"))
        .exits(1)
        .complains("2 of 4 rules lost or changed in standard output")
        .prints("icmp_type=8");
    let text = "schema ipv4-5tuple\nallow dport=1&0x11\nallow dport=5\n";
    let rules = folder.file("masks.rules", text);
    let out = folder.path("masks.classbench");
    run(&format!("convert {rules} {out}"))
        .exits(1)
        .complains("1 of 2 rules lost or changed in")
        .complains("rule 0: left out: the format has only prefix masks");
    assert_eq!(folder.read("masks.classbench").lines().count(), 1);
}

#[test]
fn twenty_lost_rules_are_named_and_the_rest_counted() {
    let folder = Folder::new();
    let rules = openflow(&folder, &"drop eth_type=0x806 dport=80\n".repeat(30));
    let run = run(&format!("convert {rules} - --to ovs")).exits(1);
    assert_eq!(run.stderr.matches("\n  rule ").count(), 20);
    run.complains("error: 30 of 31 rules lost or changed in standard output")
        .complains("  and 10 more")
        .complains("warning: 30 rules were left out: no packet has all that they demand");
}

#[test]
fn generated_rules_are_no_exception() {
    let folder = Folder::new();
    let flows = folder.path("random.flows");
    let arguments = format!("generate --family openflow15 -n 50 --to ovs -o {flows}");
    run(&arguments)
        .exits(1)
        .complains("of 50 rules lost or changed in")
        .complains("50 rules generated in");
    assert!(folder.has("random.flows"));
    run(&arguments.replace("--to ovs", "--to ovs --consistent")).exits(0);
}

#[test]
fn flows_of_one_table_are_read_by_every_command() {
    let folder = Folder::new();
    let text =
        " table=0, priority=5,tcp actions=resubmit(,1)\n table=1, priority=9,tcp actions=drop\n";
    let flows = folder.file("dump.flows", text);
    let trace = folder.file("trace", "");
    let commands = [
        format!("convert {flows} - --to rules"),
        format!("classify -r {flows} -t {trace}"),
        format!("inspect {flows}"),
        format!("explain --rules {flows} --header in_port=1"),
        format!("check --rules {flows}"),
        format!("bench --rules {flows}"),
        format!("generate trace --rules {flows}"),
    ];
    for command in &commands {
        run(command)
            .exits(2)
            .complains("dump.flows:2: a second table: table 0 has 1 flow, table 1 has 1 flow")
            .complains("--table N reads only the flows of table N");
        run(&format!("{command} --table 7"))
            .exits(2)
            .complains("no flow is in table 7; table 0 has 1 flow, table 1 has 1 flow");
    }
    let one = run(&format!("{} --table 1", commands[0]))
        .exits(0)
        .complains("1 flow of another table was left out: table 0 has 1 flow");
    assert_eq!(
        one.stdout,
        "schema openflow15\ndrop eth_type=0x800 proto=tcp id=1 priority=9\n"
    );
    run(&format!("{} --table 0", commands[0]))
        .exits(0)
        .complains("1 flow jumps to a table (resubmit, goto_table), which is not followed");
    let rules = folder.file("office.rules", RULES);
    run(&format!("convert {rules} - --to ovs --table 0"))
        .exits(2)
        .complains("table 0 was requested, but rules of the format rules have no tables")
        .complains("--table applies to flows of Open vSwitch only");
    let trace = folder.file("trace", TRACE);
    run(&format!("convert {trace} - --to trace --table 0"))
        .exits(2)
        .complains("--table applies to flows of Open vSwitch, but");
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
        .complains("unknown output format for -");
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

/// The written file has its schema, whatever the family of the rules.
#[test]
fn converted_flows_are_classified_without_a_schema() {
    let folder = Folder::new();
    let headers = "1 2 3 80 6\n";
    let trace = folder.file("trace", headers);
    for rules in [
        "schema ipv4-5tuple\nallow proto=tcp dport=80\n",
        "schema dual-5tuple\nallow proto=tcp src=10.0.0.0/8 dport=80\ndrop src=2001:db8::/32\n",
    ] {
        let rules = folder.file("fw.rules", rules);
        let flows = folder.path("x.flows");
        run(&format!("convert {rules} {flows}")).exits(0);
        run(&format!("classify -r {flows} -t {trace} --repeat 1")).exits(0);
    }
}

#[test]
fn comments_are_not_lost_and_the_input_is_not_overwritten() {
    let folder = Folder::new();
    let text = "schema ipv4-5tuple\n# web\nallow dport=80\n";
    let rules = folder.file("a.rules", text);
    let other = folder.path("b.rules");
    run(&format!("convert {rules} {rules}"))
        .exits(2)
        .complains("is both read and written");
    run(&format!("convert {rules} {other}"))
        .exits(2)
        .complains("1 comment line");
    assert!(!folder.has("b.rules"));
    assert_eq!(folder.read("a.rules"), text);
    // Without comments, it is written in its own format; with comments, in another
    // format.
    let plain = folder.file("c.rules", text.replace("# web\n", ""));
    run(&format!("convert {plain} {other}")).exits(0);
    let flows = folder.path("a.flows");
    run(&format!("convert {rules} {flows}")).exits(0);
}

/// A configuration and its rules in other formats are equal. In some formats, the rules name
/// their list.
#[test]
fn configurations_are_equal_to_their_rules_in_every_format() {
    let folder = Folder::new();
    let save = "# Generated by iptables-save\n*filter\n:FORWARD DROP [0:0]\n\
                -A FORWARD -p tcp -m multiport --dports 22,80,443 -j ACCEPT\n\
                -A FORWARD -s 10.0.0.0/8 -p udp -m udp --dport 53 -j ACCEPT\nCOMMIT\n";
    let original = folder.file("fw.save", save);
    for name in ["fw.rules", "fw.json", "fw.nft", "again.save"] {
        let converted = folder.path(name);
        run(&format!("convert {original} {converted}")).exits(0);
        run(&format!("diff {original} {converted} --equivalent")).exits(0);
        run(&format!("diff {converted} {original} --equivalent")).exits(0);
        let text = folder.read(name);
        let ports = text.lines().filter(|line| line.contains("443"));
        assert_eq!(ports.count(), 1, "{text}");
    }
    // Two lists in one file are compared by their names.
    let two = folder.file(
        "two.rules",
        "schema acl\npermit list=A dport=22\ndeny list=B\n",
    );
    run(&format!("diff {original} {two} --equivalent")).exits(1);
}
