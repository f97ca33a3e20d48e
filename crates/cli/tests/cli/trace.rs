//! `trace`: the path of one packet through a pipeline.

use serde_json::Value;

use crate::support::{Folder, run};

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
        .prints("step,depth,table,line,action,port");
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
