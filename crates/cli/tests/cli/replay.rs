//! `replay`: a capture through a pipeline.

use std::fs;

use classyard_workload::capture::{Capture, ReadOptions, read_capture_file};
use classyard_workload::packet::{LinkType, parse};
use serde_json::Value;

use crate::support::{Folder, example, run};

fn sum(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row[key].as_u64().unwrap()).sum()
}

/// Returns the list's row with this value for a key.
fn row<'v>(rows: &'v Value, key: &str, value: &str) -> &'v Value {
    let rows = rows.as_array().unwrap();
    let is_it = |row: &&Value| row[key].to_string().trim_matches('"') == value;
    rows.iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {key}={value} in {rows:?}"))
}

#[test]
fn the_example_is_replayed_and_every_packet_is_accounted_for() {
    let report = run("replay --format json").exits(0).silent().json();
    let packets = report["capture"]["packets"].as_u64().unwrap();
    assert!(packets > 1_000, "{packets}");
    let first = row(&report["tables"], "table", "0");
    assert_eq!(first["lookups"], packets);
    assert_eq!(first["matched"], packets, "there is a table-miss entry");
    for table in report["tables"].as_array().unwrap() {
        let of_table = |flow: &&Value| flow["table"] == table["table"];
        let flows = report["flows"].as_array().unwrap();
        let matched: u64 = flows
            .iter()
            .filter(of_table)
            .map(|flow| flow["packets"].as_u64().unwrap())
            .sum();
        assert_eq!(table["matched"], matched, "{table}");
    }
    assert_eq!(
        row(&report["ports"], "port", "1")["received_packets"],
        packets
    );
    // A select group sends each packet to one bucket, an all group to both.
    let meter = row(&report["meters"], "meter", "1");
    let metered = meter["packets"].as_u64().unwrap();
    let dropped = sum(&meter["bands"], "packets");
    assert!(dropped > 10 && dropped < metered, "{meter}");
    for (group, times) in [("1", 1), ("2", 2)] {
        let group = row(&report["groups"], "group", group);
        let total = group["packets"].as_u64().unwrap();
        assert!(total > 10, "{group}");
        assert_eq!(sum(&group["buckets"], "packets"), times * total, "{group}");
    }
    assert!(sum(&report["controller"], "packets") > 0);
    assert!(report["rate"]["packets_per_second"].as_f64().unwrap() > 0.0);
    // Lines are numbered as in the file.
    let text = fs::read_to_string(example("office.flows")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for flow in report["flows"].as_array().unwrap() {
        let line = usize::try_from(flow["line"].as_u64().unwrap()).unwrap();
        let priority = format!("priority={}", flow["priority"]);
        assert!(lines[line - 1].contains(&priority), "{flow}");
    }
    for shown in [
        "Tables",
        "Flows",
        "Groups",
        "Meters",
        "Ports",
        "goto_table:1",
        "controller (action)",
    ] {
        run("replay").exits(0).prints(shown);
    }
    run("replay --format csv")
        .exits(0)
        .prints("line,table,priority,match,actions,packets");
}

fn capture(folder: &Folder, name: &str) -> Capture {
    read_capture_file(folder.path(name), &ReadOptions::default()).unwrap()
}

/// The captures in `testdata/capture/expected` are the output of the switch that
/// the reference interpreter's tests compare with the specification, frame by
/// frame.
#[test]
fn what_goes_out_is_what_is_expected() {
    let folder = Folder::new();
    let out = folder.path("out");
    for engine in ["forest", "tuplemerge"] {
        run(&format!("replay --seconds 0 -e {engine} --out {out}")).exits(0);
        let expected = fs::read_dir(example("expected")).unwrap();
        let mut names: Vec<String> = expected
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 5, "{names:?}");
        for name in names {
            let expected = example(&format!("expected/{name}"));
            let expected = read_capture_file(expected, &ReadOptions::default()).unwrap();
            let found = capture(&folder, &format!("out/{}", name.trim_end_matches(".gz")));
            let frames = |capture: &Capture| -> Vec<(u64, Vec<u8>)> {
                let frames = capture.frames();
                let frames = frames.map(|(packet, frame)| (packet.timestamp_ns, frame.to_vec()));
                frames.collect()
            };
            assert_eq!(frames(&found), frames(&expected), "{engine}, {name}");
        }
    }
}

#[test]
fn flows_go_when_their_time_is_over_and_are_reported() {
    let folder = Folder::new();
    let flows = folder.file(
        "short.flows",
        "priority=9,hard_timeout=1 actions=output:2\npriority=0 actions=output:3\n",
    );
    let arguments = format!("replay -p {flows} --seconds 0");
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    let gone = &report["removed"][0];
    assert_eq!(
        (&gone["line"], &gone["reason"]),
        (&1.into(), &"hard timeout".into())
    );
    let before = gone["packets"].as_u64().unwrap();
    let after = row(&report["ports"], "port", "3")["sent_packets"]
        .as_u64()
        .unwrap();
    assert!(before > 0 && after > 0);
    assert_eq!(report["capture"]["packets"], before + after);
    assert_eq!(report["rate"], Value::Null);
    run(&arguments).exits(0).prints("Expired and evicted flows");
}

#[test]
fn rates_are_of_workers_and_beside_changes() {
    let arguments = "replay --seconds 0.2 --workers 2 --changes 2k --nodes";
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    let rate = &report["rate"];
    assert_eq!(rate["workers"], 2);
    assert!(
        rate["changes_per_second"].as_f64().unwrap() > 100.0,
        "{rate}"
    );
    let nodes = rate["nodes"].as_array().unwrap();
    let names: Vec<&str> = nodes
        .iter()
        .map(|node| node["node"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "parse");
    assert!(names.contains(&"microflows") && names.contains(&"paths"));
    let uncached = run(&format!(
        "{arguments} --cache none --megaflows 0 --format json"
    ));
    let rate = &uncached.exits(0).json()["rate"];
    let nodes = rate["nodes"].as_array().unwrap().iter();
    let names: Vec<&str> = nodes.map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(names, ["parse", "tables", "actions"]);
    run(arguments).exits(0).prints("2 workers together");
    run("replay --seconds 0 --pace 1000").exits(0);
    run("replay --seconds 0.1 --changes 2k --changes-in 1")
        .exits(0)
        .prints("changes/s");
    run("replay --changes 2k --changes-in 200")
        .exits(2)
        .complains("table 200 has no flow to change");
    run("replay --changes-in 1").exits(2).complains("--changes");
    for bad in ["--pace 0", "--seconds -1", "--workers 0", "--changes x"] {
        run(&format!("replay {bad}")).exits(2);
    }
}

#[test]
fn what_goes_out_is_written_packet_by_packet() {
    let folder = Folder::new();
    let out = folder.path("out");
    let arguments = format!("replay --format json --out {out}");
    let report = run(&arguments).exits(0).json();
    let office = example("office.pcap");
    let office = read_capture_file(office, &ReadOptions::default()).unwrap();
    for port in ["2", "3", "4", "5"] {
        let written = capture(&folder, &format!("out/port-{port}.pcap"));
        let count = row(&report["ports"], "port", port);
        assert_eq!(count["sent_packets"], written.packets().len());
        let bytes: usize = written.frames().map(|(_, frame)| frame.len()).sum();
        assert_eq!(count["sent_bytes"], bytes);
    }
    // The listener receives every DNS query, unchanged, at its time.
    let asks = |frame: &[u8]| {
        let parsed = parse(frame, LinkType::Ethernet);
        parsed.proto == Some(17) && parsed.ports.is_some_and(|(_, port)| port == 53)
    };
    let asked = office.frames().filter(|(_, frame)| asks(frame));
    let asked: Vec<(u64, &[u8])> = asked
        .map(|(packet, frame)| (packet.timestamp_ns, frame))
        .collect();
    let heard = capture(&folder, "out/port-5.pcap");
    let heard: Vec<(u64, &[u8])> = heard
        .frames()
        .map(|(packet, frame)| (packet.timestamp_ns, frame))
        .collect();
    assert!(heard.len() > 20);
    let dropped = asked.len() - heard.len();
    assert!(
        dropped < asked.len() / 4,
        "{dropped} of {} dropped by the firewall",
        asked.len()
    );
    assert!(heard.iter().all(|one| asked.contains(one)));
    // Staff's web requests have another address and a TTL reduced by 1.
    let rewritten = capture(&folder, "out/port-2.pcap");
    let ours = |frame: &[u8]| parse(frame, LinkType::Ethernet).src == 0xc633_6401;
    let rewritten: Vec<&[u8]> = rewritten.frames().map(|(_, frame)| frame).collect();
    let rewritten: Vec<&[u8]> = rewritten.into_iter().filter(|frame| ours(frame)).collect();
    assert!(rewritten.len() > 10, "{}", rewritten.len());
    let controller = capture(&folder, "out/controller.pcap");
    assert!(controller.frames().all(|(_, frame)| frame.len() <= 128));
}

#[test]
fn a_bad_pipeline_is_refused_with_its_lines() {
    let folder = Folder::new();
    let bad = folder.file(
        "bad.flows",
        "# two mistakes\nip,foo=1 actions=drop\n\nactions=fly\n",
    );
    run(&format!("replay -p {bad}"))
        .exits(2)
        .complains("unsupported field `foo`")
        .complains("bad.flows:2:4")
        .complains("unsupported action `fly`")
        .complains("bad.flows:4:9");
    let group = folder.file("group.flows", "actions=group:4\n");
    run(&format!("replay -p {group}"))
        .exits(2)
        .complains("there is no group 4");
    run("replay -e hyper-split")
        .exits(2)
        .complains("takes no updates");
    run("replay -p nowhere.flows")
        .exits(2)
        .complains("nowhere.flows");
    run("replay -p - -c -").exits(2);
}

#[test]
fn ports_and_packets_are_as_the_capture_has_them() {
    let folder = Folder::new();
    let flows = folder.file(
        "all.flows",
        "in_port=7 actions=in_port\nin_port=1 actions=output:7\nactions=drop\n",
    );
    let seven = run(&format!("replay -p {flows} --in-port 7 --format json"))
        .exits(0)
        .json();
    let packets = &seven["capture"]["packets"];
    assert_eq!(&row(&seven["ports"], "port", "7")["sent_packets"], packets);
    let one = run(&format!("replay -p {flows} --format json -e tuplemerge"))
        .exits(0)
        .json();
    assert_eq!(&row(&one["ports"], "port", "7")["sent_packets"], packets);
    assert_eq!(
        &row(&one["ports"], "port", "1")["received_packets"],
        packets
    );
}

#[test]
fn the_flows_with_most_packets_are_listed_first_and_alone() {
    let all = run("replay --seconds 0 --format json").exits(0).json();
    let all = all["flows"].as_array().unwrap();
    let mut packets: Vec<u64> = all
        .iter()
        .map(|flow| flow["packets"].as_u64().unwrap())
        .collect();
    packets.sort_unstable_by(|a, b| b.cmp(a));
    for top in [0, 3, 1000] {
        let arguments = format!("replay --seconds 0 --top {top}");
        let report = run(&format!("{arguments} --format json")).exits(0).json();
        let flows = report["flows"].as_array().unwrap();
        let listed: Vec<u64> = flows
            .iter()
            .map(|flow| flow["packets"].as_u64().unwrap())
            .collect();
        let expected = packets.len().min(top);
        assert_eq!(listed, packets[..expected]);
        assert_eq!(report["flows_not_listed"], all.len() - expected);
    }
    let more = format!("and {} more flows", all.len() - 3);
    run("replay --seconds 0 --top 3").exits(0).prints(&more);
}

#[test]
fn a_table_lists_a_thousand_flows_and_says_how_many_more_there_are() {
    let flow = |n: usize| format!("priority={n},in_port={n} actions=drop\n");
    let folder = Folder::new();
    let pipeline = folder.file("many.flows", (1..=1_500).map(flow).collect::<String>());
    let replay = format!("replay --seconds 0 -p {pipeline}");
    let table = run(&replay).exits(0).prints("and 500 more flows");
    assert_eq!(table.stdout.matches("in_port=").count(), 1_000);
    let all = run(&format!("{replay} --format json")).exits(0).json();
    assert_eq!(all["flows"].as_array().unwrap().len(), 1_500);
    assert_eq!(all["flows_not_listed"], 0);
}

#[test]
fn the_rate_is_of_as_many_packets_as_fit_and_the_report_tells() {
    let report = run("replay --seconds 0.01 --format json")
        .exits(0)
        .silent()
        .json();
    assert_eq!(report["rate"]["held_packets"], report["capture"]["packets"]);
    let arguments = "replay --seconds 0.01 --rate-memory 4K";
    let report = run(&format!("{arguments} --format json"));
    let report = report.exits(0).complains("--rate-memory").json();
    let held = report["rate"]["held_packets"].as_u64().unwrap();
    assert!((1..100).contains(&held), "{held}");
    run(arguments)
        .exits(0)
        .prints(&format!("with the first {held} packets"));
    let none = run("replay --seconds 0.01 --rate-memory 0 --format json").exits(0);
    assert_eq!(none.json()["rate"], Value::Null);
}

#[test]
fn a_table_lists_a_thousand_rows_of_groups_and_says_how_many_more_there_are() {
    let groups: String = (1..=700)
        .map(|group| format!("group_id={group},type=all,bucket=actions=output:2\n"))
        .collect();
    let folder = Folder::new();
    let pipeline = folder.file("groups.flows", groups + "priority=0 actions=group:1\n");
    let replay = format!("replay --seconds 0 -p {pipeline}");
    run(&replay).exits(0).prints("and 400 more rows");
    let report = run(&format!("{replay} --format json")).exits(0).json();
    assert_eq!(report["groups"].as_array().unwrap().len(), 700);
}
