//! Ports in pipelines, and scripts of changes: `replay --script`.

use serde_json::Value;

use crate::support::{Folder, example, run, run_with, words};

/// Returns the port's row of a report.
fn port<'v>(report: &'v Value, number: &str) -> &'v Value {
    let mut ports = report["ports"].as_array().unwrap().iter();
    ports.find(|row| row["port"] == number).unwrap()
}

fn sent(report: &Value, number: &str) -> u64 {
    port(report, number)["sent_packets"].as_u64().unwrap()
}

#[test]
fn fast_failover_follows_the_links_of_the_pipeline() {
    let folder = Folder::new();
    let group = "group_id=1,type=ff,bucket=watch_port:wan0,actions=output:wan0,\
        bucket=watch_port:3,actions=output:3\npriority=0 actions=group:1\n";
    let replay = |ports: &str| {
        // Ports may come after the lines that name them.
        let flows = folder.file("ports.flows", format!("{group}{ports}"));
        run(&format!("replay -p {flows} --seconds 0 --format json"))
            .exits(0)
            .silent()
            .json()
    };
    let up = replay("port=2,name=wan0,speed=2.5G\n");
    let packets = up["capture"]["packets"].as_u64().unwrap();
    assert_eq!(sent(&up, "2"), packets);
    assert_eq!(port(&up, "2")["line"], 3);
    assert_eq!(port(&up, "2")["name"], "wan0");
    assert_eq!(port(&up, "2")["link"], "up");
    assert_eq!(port(&up, "2")["speed"], "2500M");
    assert_eq!(port(&up, "1")["name"], Value::Null);
    let down = replay("port=2,name=wan0,link=down\n");
    assert_eq!((sent(&down, "2"), sent(&down, "3")), (0, packets));
    assert_eq!(port(&down, "2")["link"], "down");
    let both = replay("port=2,name=wan0,link=down\nport=3,link=down\n");
    assert_eq!((sent(&both, "2"), sent(&both, "3")), (0, 0));
    run(&format!(
        "replay -p {} --seconds 0",
        folder.path("ports.flows")
    ))
    .exits(0)
    .prints("wan0")
    .prints("down");
    let trace = run(&format!("trace -p {}", folder.path("ports.flows")));
    trace.exits(0).prints("goes nowhere");
}

#[test]
fn floods_pass_over_ports_that_do_not_flood_or_send() {
    let folder = Folder::new();
    let flows = folder.file(
        "flood.flows",
        "port=2\nport=3,no-flood\nport=4,no-forward\nport=5,link=down\n\
         port=6,name=\"six #\nactions=flood\n",
    );
    run(&format!("replay -p {flows} --seconds 0"))
        .exits(2)
        .complains("flood.flows:5:13")
        .complains("is not a port name");
    let flows = folder.file(
        "flood.flows",
        "port=2\nport=3,no-flood\nport=4,no-forward\nport=5,link=down\nactions=flood\n",
    );
    let report = run(&format!("replay -p {flows} --seconds 0 --format json"));
    let report = report.exits(0).json();
    let counts = ["1", "2", "3", "4", "5"].map(|number| sent(&report, number));
    let packets = report["capture"]["packets"].as_u64().unwrap();
    assert_eq!(counts, [0, packets, 0, 0, 0]);
    // A port without reception drops what the capture has for it.
    let flows = folder.file("deaf.flows", "port=1,no-receive\nactions=2\n");
    let report = run(&format!("replay -p {flows} --seconds 0 --format json"));
    assert_eq!(report.exits(0).json()["tables"][0]["lookups"], 0);
}

#[test]
fn bad_lines_of_ports_are_reported() {
    let folder = Folder::new();
    let flows = folder.file(
        "bad.flows",
        "port=1,name=a\nport=1\nport=2,name=a\nport=3,mtu=9\nport=0\nport=4,speed=10\n\
         port=5,name=sixteen-bytes-xx\nactions=output:a\n",
    );
    let replay = format!("replay -p {flows} --seconds 0");
    run(&replay)
        .exits(2)
        .complains("bad.flows:2:6")
        .complains("port `1` again, after line 1")
        .complains("bad.flows:3:13")
        .complains("name `a` again, after line 1")
        .complains("unknown port option `mtu=9`")
        .complains("bad.flows:5:6")
        .complains("`0` is not the number of a port")
        .complains("`10` has no unit")
        .complains("has 16 bytes");
    let report = run(&format!("{replay} --skip-bad --format json"));
    let report = report.exits(0).complains("6 ").json();
    assert_eq!(port(&report, "1")["name"], "a");
}

/// Returns a report of the example, with a script and options.
fn replay(script: &str, options: &str) -> Value {
    let (flows, capture) = (example("failover.flows"), example("office.pcap"));
    let arguments = format!("replay -p {flows} -c {capture} --script {script} --format json");
    run(&format!("{arguments} {options}")).exits(0).json()
}

#[test]
fn the_example_of_a_script_is_replayed() {
    let report = replay(&example("failover.script"), "--seconds 0");
    let script = &report["script"];
    assert_eq!(
        (&script["changes"], &script["made"]),
        (&15.into(), &14.into())
    );
    let steps = script["steps"].as_array().unwrap();
    let before = |packet: u64| steps.iter().find(|step| step["packet"] == packet).unwrap();
    // Two changes before one packet, in the order of their lines.
    let two = before(800)["changes"].as_array().unwrap();
    let lines: Vec<&Value> = two.iter().map(|change| &change["line"]).collect();
    assert_eq!(lines, [7, 8]);
    assert_eq!(two[0]["change"], "port=wan0,link=up");
    // A port makes no megaflow stale. A removed flow strands the megaflows on its paths.
    let stale = |step: &Value, key: &str| step["megaflows"][key].as_u64().unwrap();
    for key in ["outdated", "stranded"] {
        assert_eq!(stale(before(500), key), 0, "{key}");
    }
    let deletion = &before(600)["changes"][0];
    assert_eq!(
        (&deletion["line"], &deletion["flows_removed"]),
        (&5.into(), &1.into())
    );
    assert!(stale(before(600), "stranded") > 0);
    // A change at a time has this time, not the time of the packet after it.
    let first = &steps[0];
    assert_eq!(first["changes"][0]["seconds"], 6.8);
    assert!(first["seconds"].as_f64().unwrap() >= 6.8);
    assert!(stale(first, "outdated") > 0);
    // A meter takes the flow that uses it along.
    assert_eq!(before(1700)["changes"][0]["flows_removed"], 1);
    let not_made = &script["not_made"][0];
    assert_eq!(
        (&not_made["line"], &not_made["at_seconds"]),
        (&16.into(), &100.0.into())
    );
    assert_eq!(not_made["change"], "port=wan1,link=down");
    assert!(report["caches"]["megaflow_hits"].as_u64().unwrap() > 0);
    // Flows, groups and removed flows name the line of the script.
    let flows = report["flows"].as_array().unwrap();
    let last = flows.iter().find(|flow| flow["script_line"] == 15).unwrap();
    assert_eq!(
        (&last["line"], &last["actions"]),
        (&Value::Null, &"flood".into())
    );
    assert!(last["packets"].as_u64().unwrap() > 0);
    let removed = report["removed"].as_array().unwrap();
    let reasons = ["deleted", "idle timeout", "meter deleted"];
    for reason in reasons {
        assert!(
            removed.iter().any(|flow| flow["reason"] == reason),
            "{reason}"
        );
    }
    assert_eq!(report["groups"][1]["script_line"], 9);
    assert_eq!(report["groups"][0]["line"], 9);
}

#[test]
fn rows_of_flows_name_the_line_of_the_script() {
    let (flows, capture) = (example("failover.flows"), example("office.pcap"));
    let script = example("failover.script");
    let arguments = format!("-p {flows} -c {capture} --script {script} --format csv");
    let csv = run(&format!("replay {arguments} --seconds 0"))
        .exits(0)
        .stdout
        .clone();
    let (titles, rows) = csv.split_once('\n').unwrap();
    assert!(titles.ends_with(",last_seconds,script_line"), "{titles}");
    let of_script = rows.lines().filter(|row| row.starts_with(','));
    let lines: Vec<&str> = of_script.filter_map(|row| row.rsplit(',').next()).collect();
    assert!(lines.contains(&"15"), "{lines:?}");
    assert!(
        rows.lines()
            .any(|row| !row.starts_with(',') && row.ends_with(','))
    );
}

#[test]
fn people_read_the_script_of_a_replay() {
    let (flows, capture) = (example("failover.flows"), example("office.pcap"));
    let script = example("failover.script");
    run(&format!(
        "replay -p {flows} -c {capture} --script {script} --seconds 0"
    ))
    .exits(0)
    .complains("1 of 15 changes not made, since the capture ended before")
    .prints("14 of 15 changes made")
    .prints("megaflows outdated by new flows")
    .prints("Changes of the script")
    .prints("port=wan0,link=down")
    .prints("Changes after the end of the capture")
    .prints("at 100 s")
    .prints("Removed flows")
    .prints("script:15");
}

#[test]
fn caches_change_nothing_under_a_script() {
    let folder = Folder::new();
    let office = "before=100 add priority=300,udp actions=output:2\n\
        before=500 modify table=1,ip actions=goto_table:3\nat=20s group modify \
        group_id=1,type=all,bucket=actions=output:3\nbefore=1500 delete table=1,icmp\n";
    let scripts = [
        example("failover.script"),
        folder.file("office.script", office),
    ];
    let pipelines = [example("failover.flows"), example("office.flows")];
    for (script, flows) in scripts.iter().zip(pipelines) {
        let report = |options: &str| {
            let arguments = format!("replay -p {flows} --script {script} --seconds 0 {options}");
            run(&format!("{arguments} --format json")).exits(0).json()
        };
        let mut without = report("--cache none --megaflows 0");
        assert_eq!(without["caches"], Value::Null);
        assert_eq!(without["script"]["steps"][0]["megaflows"], Value::Null);
        let steps = |report: &mut Value| {
            let mut steps = report["script"]["steps"].take();
            for step in steps.as_array_mut().unwrap() {
                step["megaflows"] = Value::Null;
            }
            steps
        };
        let expected = steps(&mut without);
        for options in [
            "",
            "--cache-flows 4 --megaflows 6 --masks 2",
            "--cache wef --megaflows 0",
        ] {
            let mut with = report(options);
            assert_eq!(steps(&mut with), expected, "{options}");
            for part in [
                "tables",
                "flows",
                "removed",
                "groups",
                "meters",
                "ports",
                "controller",
            ] {
                assert_eq!(with[part], without[part], "{options}: {part}");
            }
        }
    }
}

#[test]
fn a_refused_change_ends_the_replay_with_its_line() {
    let folder = Folder::new();
    let refused = |text: &str| {
        let script = folder.file("bad.script", text);
        run(&format!("replay --script {script} --seconds 0")).exits(2)
    };
    refused("at=1s add actions=output:2\n\n  before=9  add actions=group:77 # none\r\n")
        .complains("bad.script:3:13")
        .complains("there is no group 77")
        .complains("add actions=group:77");
    refused("before=2 port=88,link=down")
        .complains("bad.script:1:15")
        .complains("there is no port 88")
        .complains("one of the ports 1, 2, 3, 4, 5");
    // Bad lines are found before the first packet, all of them.
    refused("at=1 delete\nbefore=x delete\ndelete\nat=1s fly\nbefore=1 port=eth9,link=up\n")
        .complains("`1` has no unit")
        .complains("bad.script:2:8")
        .complains("`delete` without a moment")
        .complains("bad.script:4:7")
        .complains("no port has the name `eth9`");
    run("replay --script nowhere.script")
        .exits(2)
        .complains("nowhere.script");
    run("replay -c - --script -")
        .exits(2)
        .complains("standard input");
}

#[test]
fn empty_and_late_scripts_change_nothing() {
    let folder = Folder::new();
    let plain = run("replay --seconds 0 --format json").exits(0).json();
    assert_eq!(plain["script"], Value::Null);
    for text in [
        "",
        "\r\n# nothing\r\n",
        "at=1000000s delete\nbefore=99999999 delete\n",
    ] {
        let script = folder.file("idle.script", text);
        let report = run(&format!(
            "replay --script {script} --seconds 0 --format json"
        ));
        let report = report.exits(0).json();
        assert_eq!(report["script"]["made"], 0);
        let late = report["script"]["not_made"].as_array().unwrap().len();
        assert_eq!(report["script"]["changes"], late);
        for part in ["tables", "flows", "groups", "meters", "ports"] {
            assert_eq!(report[part], plain[part], "{part}");
        }
    }
    let arguments = words("replay --script - --seconds 0 --format json");
    let report = run_with(&arguments, b"before=1 delete\n").exits(0).json();
    assert_eq!(report["flows"].as_array().unwrap().len(), 0);
    assert_eq!(report["script"]["source"], "standard input");
}

#[test]
fn the_rate_is_of_the_pipeline_that_the_script_leaves() {
    let folder = Folder::new();
    let script = folder.file("all.script", "before=50 delete\n");
    let arguments = format!("replay --script {script} --seconds 0.05 --format json");
    let report = run(&format!("{arguments} --changes 1k")).exits(0).json();
    assert!(report["rate"]["packets_per_second"].as_f64().unwrap() > 0.0);
    // No flow is left to change.
    assert_eq!(report["rate"]["changes_per_second"], 0.0);
    assert_eq!(report["tables"][0]["lookups"], report["capture"]["packets"]);
}

/// Many changes take time in proportion to their number, and their report is bounded.
#[test]
fn a_long_script_is_made_and_listed_in_part() {
    let folder = Folder::new();
    let changes = 4_000;
    let lines = (0..changes).map(|number| {
        let (port, packet) = (number / 2, changes / 20 - number / 20);
        match number % 2 {
            0 => format!("before={packet} add priority=7,udp,tp_dst={port} actions=2\n"),
            _ => format!("at=0s delete_strict priority=9,udp,tp_dst={port}\n"),
        }
    });
    let script = folder.file("long.script", lines.collect::<String>());
    let replay = format!("replay --script {script} --seconds 0");
    run(&replay).exits(0).prints("and 3,000 more changes");
    let report = run(&format!("{replay} --top 0 --format json"))
        .exits(0)
        .json();
    assert_eq!(report["script"]["made"], changes);
    assert_eq!(report["script"]["not_made"], Value::Array(Vec::new()));
}
