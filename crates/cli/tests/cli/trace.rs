//! `trace`: the path of one packet through a pipeline, also with a script of changes.

use classyard_workload::capture::PcapWriter;
use classyard_workload::packet::LinkType;
use serde_json::Value;

use crate::support::{Folder, example, run, run_with, words};

/// Returns the steps of a kind.
fn steps<'v>(report: &'v Value, kind: &str) -> Vec<&'v Value> {
    let steps = report["steps"].as_array().unwrap().iter();
    steps.filter(|step| step["step"] == kind).collect()
}

/// TCP to 10.20.2.10, port 443, from staff.
const FRAME: &str = "020000000001 020000000002 0800 \
    4500002c00004000400600000a14010b0a14020a \
    9c4001bb000000000000000050020000000000000000";

#[test]
fn a_packet_is_told_table_by_table() {
    let report = run(&format!(
        "trace --format json --frame {}",
        FRAME.replace(' ', "")
    ))
    .exits(0)
    .silent()
    .json();
    let tables: Vec<&Value> = steps(&report, "lookup");
    let numbers: Vec<u64> = tables
        .iter()
        .map(|step| step["table"]["table"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    // The packet is rewritten on the way, and its TTL is reduced by 1.
    let changes: Vec<String> = steps(&report, "action")
        .iter()
        .flat_map(|step| step["changes"].as_array())
        .flatten()
        .map(|change| format!("{} {} {}", change["field"], change["old"], change["new"]))
        .collect();
    assert_eq!(changes, ["\"ipv4_src\" \"10.20.1.11\" \"198.51.100.1\""]);
    // The packet goes to one bucket of the group, and out.
    let buckets = steps(&report, "bucket");
    assert_eq!(buckets.len(), 1);
    let sent = steps(&report, "sent");
    assert_eq!(sent.len(), 1);
    assert!(["3", "4"].contains(&sent[0]["sent"]["port"].as_str().unwrap()));
    assert!(
        sent[0]["sent"]["bytes"]
            .as_str()
            .unwrap()
            .contains("c6336401")
    );
    assert_eq!(report["dropped"], false);
    // The flows that nearly won, and the reason why they did not.
    let near = &tables[1]["table"]["near"][0];
    assert_eq!(near["refused_by"].as_array().unwrap().len(), 1, "{near}");
    run(&format!("trace --frame {}", FRAME.replace(' ', "")))
        .exits(0)
        .prints("Table 3, 5 flows")
        .prints("wins line")
        .prints("refused: tcp_dst 443 is not")
        .prints("group 1, bucket")
        .prints("out by port");
}

#[test]
fn packets_of_a_capture_come_after_those_before_them() {
    let folder = Folder::new();
    let flows = folder.file(
        "meter.flows",
        "meter=1,pktps,burst,bands=type=drop,rate=1,burst_size=3\nactions=meter:1,output:2\n",
    );
    for (packet, dropped) in [(1, false), (3, false), (4, true)] {
        let report = run(&format!("trace -p {flows} --packet {packet} --format json"))
            .exits(0)
            .json();
        assert_eq!(report["dropped"], dropped, "{packet}");
        let meter = steps(&report, "meter");
        assert_eq!(meter[0]["meter"]["did"] == "dropped", dropped);
    }
    run(&format!("trace -p {flows} --packet 4"))
        .exits(0)
        .prints("meter 1: dropped by band 0")
        .prints("goes nowhere");
    run("trace --format csv")
        .exits(0)
        .prints("step,depth,table,line,action,port,script_line");
}

#[test]
fn bad_packets_are_refused() {
    run("trace --packet 99999999")
        .exits(2)
        .complains("there is no packet 99999999");
    run("trace --packet 0")
        .exits(2)
        .complains("there is no packet 0");
    run("trace --frame 0")
        .exits(2)
        .complains("two for each byte");
    run("trace --frame xyz").exits(2).complains("hexadecimal");
    run("trace --frame 00 --packet 3").exits(2);
    // The shortest possible frame.
    run("trace --frame 00").exits(0).prints("Malformed");
}

/// A pipeline whose table 1 decides on [`FRAME`].
const FLOWS: &str = "\
table=0,priority=10,tcp actions=goto_table:1
table=0,priority=0 actions=output:2
table=1,priority=5,tcp,tp_dst=443 actions=output:3
table=1,priority=0 actions=drop
";

/// Changes of [`FLOWS`]. Lines 3 and 5 do not concern [`FRAME`].
const SCRIPT: &str = "\
# a comment
before=3 add table=1,priority=9,ip,nw_dst=10.20.2.0/24 actions=output:4
before=3 add table=0,priority=1,udp actions=output:5
at=3.5s  modify_strict table=1,priority=9,ip,nw_dst=10.20.2.0/24 actions=mod_dl_dst:02:00:00:00:00:99,output:4
at=3.5s  port=2,link=down
before=6 delete
";

/// Writes a capture of six packets of one flow, a second apart, and a script. Returns the
/// arguments of a trace of them.
fn scripted(folder: &Folder, script: &str) -> String {
    let digits: Vec<u8> = FRAME.bytes().filter(|byte| *byte != b' ').collect();
    let bytes = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).unwrap();
        u8::from_str_radix(pair, 16).unwrap()
    });
    let frame: Vec<u8> = bytes.collect();
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    for second in 0..6 {
        let length = u32::try_from(frame.len()).unwrap();
        let stamp = 1_700_000_000_000_000_000 + second * 1_000_000_000;
        writer.packet(stamp, length, &frame).unwrap();
    }
    let capture = folder.file("six.pcap", writer.finish().unwrap());
    let flows = folder.file("switch.flows", FLOWS);
    let script = folder.file("changes.script", script);
    format!("trace -p {flows} -c {capture} --script {script}")
}

/// Returns the ports that packets are sent to, in steps or in a decision.
fn ports(sent: &[&Value]) -> Vec<String> {
    let ports = sent.iter().map(|sent| sent["port"].as_str().unwrap());
    ports.map(str::to_owned).collect()
}

#[test]
fn a_script_shows_the_changes_that_altered_the_decision() {
    let folder = Folder::new();
    let trace = scripted(&folder, SCRIPT);
    let report = |packet: u32| {
        let report = run(&format!("{trace} --packet {packet} --format json"));
        report.exits(0).silent().json()
    };
    let fifth = report(5);
    let script = &fifth["script"];
    assert_eq!(
        (&script["changes"], &script["made"]),
        (&5.into(), &4.into())
    );
    assert_eq!(script["not_made"][0]["line"], 6);
    let altered = script["altered"].as_array().unwrap();
    let lines: Vec<u64> = altered
        .iter()
        .map(|change| change["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [2, 4], "{script}");
    let first = &altered[0];
    assert_eq!(
        (&first["packet"], &first["seconds"]),
        (&3.into(), &2.0.into())
    );
    let winner = |decision: &Value| decision["flows"][1]["winner"].clone();
    assert_eq!(winner(&first["before"])["line"], 3);
    assert_eq!(winner(&first["after"])["script_line"], 2);
    assert_eq!(winner(&first["after"])["line"], Value::Null);
    assert_eq!(first["before"]["sent"][0]["port"], "3");
    assert_eq!(first["after"]["sent"][0]["port"], "4");
    // The latest change is of an action, at its own time.
    let latest = &altered[1];
    assert_eq!(latest["seconds"], 3.5);
    assert_eq!(latest["packet"], 5);
    assert_eq!(winner(&latest["before"]), winner(&first["after"]));
    assert_eq!(winner(&latest["after"])["script_line"], 4);
    // The decision after the latest change is the decision on the packet.
    let steps_sent: Vec<&Value> = steps(&fifth, "sent")
        .iter()
        .map(|step| &step["sent"])
        .collect();
    let decided: Vec<&Value> = latest["after"]["sent"].as_array().unwrap().iter().collect();
    assert_eq!(ports(&steps_sent), ports(&decided));
    let lookups = steps(&fifth, "lookup");
    assert_eq!(lookups[1]["table"]["winner"], winner(&latest["after"]));
    assert_eq!(lookups[1]["table"]["near"][0], Value::Null);
    let sixth = report(6);
    assert_eq!(sixth["dropped"], true);
    assert_eq!(sixth["script"]["altered"][2]["line"], 6);
    assert_eq!(
        sixth["script"]["altered"][2]["after"]["sent"],
        Value::Array(vec![])
    );
}

#[test]
fn a_script_makes_the_megaflow_of_a_packet_stale() {
    let folder = Folder::new();
    let trace = scripted(&folder, SCRIPT);
    // The first packet is learned. A new flow wins packets of its megaflow.
    let expected = [
        (1, false, false),
        (2, true, false),
        (3, false, true),
        (4, true, false),
        // The modified flow leads nowhere else, so its megaflow is still valid.
        (5, true, false),
        (6, false, true),
    ];
    for (packet, hit, stale) in expected {
        let report = run(&format!("{trace} --packet {packet} --format json"));
        let caches = report.exits(0).json()["caches"].clone();
        assert_eq!(caches["megaflow_hit"], hit, "{packet}");
        assert_eq!(caches["megaflow_stale"], stale, "{packet}");
    }
    run(&format!("{trace} --packet 3"))
        .exits(0)
        .prints("megaflow cache: stale, renewed by the tables")
        .prints("2 of 5 changes made")
        .prints("Made stale")
        .prints("by 1 change, the latest ")
        .prints("changes.script:2 before packet 3")
        .prints("line 2, before packet 3, at 2.000 s: add table=1,priority=9")
        .prints("before table 0, line 1: priority 10")
        .prints("table 1, line 3: priority 5")
        .prints("out by port 3")
        .prints("after  table 0, line 1")
        .prints("table 1, line 2 of the script: priority 9")
        .prints("wins line 2 of the script");
    let csv = run(&format!("{trace} --packet 3 --format csv"))
        .exits(0)
        .csv();
    let rows = csv.iter().filter(|row| row[0] == "lookup");
    let lines: Vec<(&str, &str)> = rows.map(|row| (&*row[3], &*row[6])).collect();
    assert_eq!(lines, [("1", ""), ("", "2")]);
}

#[test]
fn a_script_that_changes_nothing_is_reported() {
    let folder = Folder::new();
    for (script, made) in [
        ("", 0),
        ("# nothing\r\n", 0),
        ("at=9s delete\nbefore=3 delete\n", 0),
        (
            "before=1 delete table=7\nbefore=2 add table=0,udp actions=drop\n",
            2,
        ),
    ] {
        let trace = scripted(&folder, script);
        let mut report = run(&format!("{trace} --packet 2 --format json"))
            .exits(0)
            .json();
        let reported = report["script"].take();
        assert_eq!(reported["altered"], Value::Array(vec![]), "{script}");
        assert_eq!(reported["made"], made, "{script}");
        let (plain, _) = trace.split_once(" --script").unwrap();
        let mut plain = run(&format!("{plain} --packet 2 --format json"))
            .exits(0)
            .json();
        assert_eq!(plain["script"].take(), Value::Null);
        // Only the number of flows of table 0 differs.
        for report in [&mut report, &mut plain] {
            report["steps"][0]["table"]["flows"].take();
            report["steps"][0]["table"]["near"].take();
            report["steps"][0]["table"]["mattered"].take();
            report["caches"].take();
        }
        assert_eq!(report, plain, "{script}");
        run(&format!("{trace} --packet 2"))
            .exits(0)
            .prints("by no change of the script");
    }
}

#[test]
fn faults_of_scripts_and_packets_are_reported() {
    let folder = Folder::new();
    let trace = scripted(
        &folder,
        "before=2 delete\n\n  before=3 add actions=fly # no\n",
    );
    run(&format!("{trace} --packet 1"))
        .exits(2)
        .complains("changes.script:3:24")
        .complains("unsupported action `fly`");
    // A change that the pipeline refuses is an error only if it is due.
    let trace = scripted(
        &folder,
        "before=2 delete\n  before=3  add actions=group:77\n",
    );
    run(&format!("{trace} --packet 2")).exits(0).silent();
    run(&format!("{trace} --packet 3"))
        .exits(2)
        .complains("changes.script:2:13")
        .complains("there is no group 77");
    let trace = scripted(&folder, SCRIPT);
    run(&format!("{trace} --packet 7"))
        .exits(2)
        .complains("there is no packet 7 in")
        .complains("expected one of 6 packets");
    run(&format!("{trace} --packet 0"))
        .exits(2)
        .complains("there is no packet 0");
    run(&format!(
        "trace --frame 00 --script {}",
        folder.path("changes.script")
    ))
    .exits(2);
    run("trace --script nowhere.script")
        .exits(2)
        .complains("nowhere.script");
    let piped = format!("trace -c - --script {}", folder.path("changes.script"));
    run_with(&words(&piped), b"x")
        .exits(2)
        .complains("standard input is not a file; --script reads the capture twice");
    let script = b"before=1 port=2,link=down\n";
    let flows = folder.path("switch.flows");
    run_with(&words(&format!("trace -p {flows} --script -")), script)
        .exits(0)
        .prints("standard input, 1 of 1 change made");
}

/// `trace` makes the same changes before a packet as `replay`, with the same effects on
/// caches. The decisions are the same without caches.
#[test]
fn a_trace_makes_the_changes_of_a_replay() {
    let (flows, capture) = (example("failover.flows"), example("office.pcap"));
    let script = example("failover.script");
    let arguments = format!("-p {flows} -c {capture} --script {script} --format json");
    let replay = run(&format!("replay {arguments} --seconds 0"));
    let replay = replay.exits(0).json();
    let all_steps = replay["script"]["steps"].as_array().unwrap();
    let mut latest_lines = Vec::new();
    for packet in [300, 600, 900, 1_250, 1_700, 1_988] {
        let traced = |options: &str| {
            let trace = run(&format!("trace {arguments} --packet {packet} {options}"));
            trace.exits(0).silent().json()
        };
        let mut with = traced("");
        let expected = all_steps
            .iter()
            .filter(|step| step["packet"].as_u64().unwrap() <= packet);
        let expected: Vec<&Value> = expected.collect();
        let made = with["script"]["steps"].as_array().unwrap();
        assert_eq!(made.iter().collect::<Vec<_>>(), expected, "{packet}");
        let altered = with["script"]["altered"].as_array().unwrap();
        latest_lines.push(
            altered
                .last()
                .map(|change| change["line"].as_u64().unwrap()),
        );
        let mut without = traced("--cache none --megaflows 0");
        assert_eq!(without["caches"], Value::Null);
        assert_eq!(with["script"]["altered"], without["script"]["altered"]);
        assert_eq!(with["steps"].take(), without["steps"].take(), "{packet}");
    }
    // The deleted flow of line 5 is not on the path of these packets.
    assert_eq!(
        latest_lines,
        [None, Some(4), Some(7), Some(7), Some(7), Some(15)]
    );
}
