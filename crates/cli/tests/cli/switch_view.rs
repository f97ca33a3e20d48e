//! Looking into a switch that runs as a process of its own: traces, megaflows, rates. The ports
//! are captures and memory, so the tests need no rights.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::reports::collect;
use crate::support::{Folder, example, program, run, run_on_terminal};
use crate::switch_run::{Background, configuration, memory, switch, wait, wait_until_sent};

/// Frames of the example's capture that are not cut off.
const WHOLE_FRAMES: u64 = 1_541;

const FLOWS: &str = "\
meter=1,pktps,bands=type=drop,rate=1
group_id=1,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=output:3
table=0,priority=20,cookie=0xbeef,tcp,nw_dst=10.0.0.0/8 actions=set_field:10.9.9.9->ip_dst,goto_table:1
table=0,priority=10,udp actions=meter:1,output:2
table=0,priority=5,arp actions=controller:128
table=1,priority=7,ip,nw_dst=10.9.9.9,tcp,tp_dst=443 actions=drop
table=1,priority=6,ip,nw_dst=10.9.9.9 actions=group:1
";

/// Fails the test if `docs/reports.md` lacks a key of a report.
#[track_caller]
fn check_keys(report: &Value) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut keys = BTreeSet::new();
    collect(report, &mut keys);
    let missing: Vec<&String> = keys
        .iter()
        .filter(|key| !page.contains(&format!("`{key}`")))
        .collect();
    assert!(
        !keys.is_empty() && missing.is_empty(),
        "docs/reports.md lacks {missing:?}"
    );
}

/// Starts a switch with three ports in memory and `FLOWS`.
fn start(folder: &Folder) -> Background {
    folder.file("br0.flows", FLOWS);
    let ports = memory(1) + &memory(2) + &memory(3);
    Background::switch(&configuration(folder, "flows = \"br0.flows\"", &ports))
}

fn trace(folder: &Folder, arguments: &str) -> Value {
    switch(folder, &format!("trace {arguments} --format json"))
        .exits(0)
        .silent()
        .json()
}

const WEB: &str = "in_port=p1,tcp,nw_src=192.168.1.1,nw_dst=10.1.2.3,tp_dst=80";

#[test]
fn a_packet_is_traced_through_the_tables_of_a_running_switch() {
    let folder = Folder::new();
    let running = start(&folder);
    let before = switch(&folder, "show --format json").exits(0).json();
    switch(&folder, &format!("trace br0 --flow {WEB}"))
        .exits(0)
        .silent()
        .prints(" Packet     from the command line, 60 bytes, by port 1 after ")
        .prints("\n Port       1 p1, link up\n Pipeline   switch br0\n")
        .prints("\nTable 0, 3 flows\n  wins cookie 0xbeef: priority 20, eth_type=0x800,ip_proto=6,")
        .prints("   ipv4_dst 10.1.2.3 → 10.9.9.9\n")
        .prints(
            "\n  near priority 7, eth_type=0x800,ip_proto=6,ipv4_dst=10.9.9.9,tcp_dst=443 ▸ drop\n",
        )
        .prints("\n       refused: tcp_dst 80 is not 443\n")
        .prints("\n  group 1, bucket 0\n")
        .prints("out by port 2\n")
        .prints(
            "\n Megaflow   eth_type=0x800,ip_proto=6,ipv4_dst=10.0.0.0/255.0.0.0,tcp_dst=0x0/0x",
        )
        .prints("; skips tables 0, 1\n");
    // Neither statistics nor caches have the traced packets.
    for _ in 0..20 {
        trace(&folder, "--flow in_port=1,udp,tp_dst=53");
    }
    let udp = trace(&folder, "--flow in_port=1,udp,tp_dst=53");
    let meter = udp["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "meter");
    assert_eq!(
        meter.unwrap()["meter"]["did"],
        "passed",
        "traces take no tokens"
    );
    assert_eq!(udp["megaflow"], Value::Null, "the first table has a meter");
    let after = switch(&folder, "show --format json").exits(0).json();
    for (key, expected) in [("tables", &before["tables"]), ("ports", &before["ports"])] {
        assert_eq!(&after[key], expected, "{key}");
    }
    assert_eq!(after["workers"][0]["caches"]["megaflows"], 0);
    assert_eq!(after["workers"][0]["caches"]["by_tables"], 0);
    // A bucket of a removed port is not live.
    assert_eq!(output(&trace(&folder, &format!("--flow {WEB}"))), "2");
    switch(&folder, "del-port p2").exits(0);
    let report = trace(&folder, &format!("--flow {WEB}"));
    assert_eq!(output(&report), "3");
    check_keys(&report);
    let bucket = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "bucket");
    assert_eq!(bucket.unwrap()["group"]["bucket"], 1);
    running.signal(Signal::TERM);
    running.ends_well();
}

/// Returns the port of the only output.
fn output(report: &Value) -> String {
    let steps = report["steps"].as_array().unwrap().iter();
    let sent: Vec<&Value> = steps.filter(|step| step["step"] == "sent").collect();
    assert_eq!(sent.len(), 1, "{report}");
    sent[0]["sent"]["port"].as_str().unwrap().to_owned()
}

/// Removes lines of a file, which only the offline report has, and cookies of the live one.
fn without_origins(report: &Value) -> Value {
    match report {
        Value::Object(keys) => {
            let keys = keys
                .iter()
                .filter(|(key, _)| *key != "line" && *key != "cookie");
            keys.map(|(key, value)| (key.clone(), without_origins(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_origins).collect(),
        other => other.clone(),
    }
}

/// Packets take equal steps through the switch and through its dump.
#[test]
fn a_live_trace_agrees_with_a_trace_of_the_dump() {
    let folder = Folder::new();
    let running = start(&folder);
    let dump = switch(&folder, "dump").exits(0).stdout;
    let dump = folder.file("dump.flows", dump);
    for packet in [
        format!("--flow {WEB} --near 5"),
        "--flow in_port=2,tcp,nw_dst=10.1.2.3,tp_dst=443".to_owned(),
        "--flow udp,tp_dst=53 --in-port 3".to_owned(),
        "--flow arp,arp_op=1".to_owned(),
        "--frame 02000000000102000000000288b50000".to_owned(),
        "--frame 02:00:00:00:00:01:02:00:00:00:00:02:08:06 --in-port 2".to_owned(),
    ] {
        let live = trace(&folder, &packet);
        let offline = run(&format!("trace -p {dump} {packet} --format json"))
            .exits(0)
            .json();
        for key in ["steps", "dropped"] {
            let (live, offline) = (&live[key], &offline[key]);
            assert_eq!(
                without_origins(live),
                without_origins(offline),
                "{packet}: {key}"
            );
        }
        for key in [
            "in_port",
            "bytes",
            "fields",
            "malformed",
            "source",
            "number",
        ] {
            assert_eq!(
                live["packet"][key], offline["packet"][key],
                "{packet}: {key}"
            );
        }
        assert_eq!(live["megaflow"], offline["caches"]["megaflow"], "{packet}");
    }
    drop(running);
}

/// A port that is added again receives its capture again.
#[test]
fn the_next_packet_of_a_port_is_traced() {
    let folder = Folder::new();
    let running = start(&folder);
    let office = example("office.pcap");
    let run_dir = folder.path("run");
    let tracer = thread::spawn(move || {
        wait("trace of a packet", || {
            // The port may be missing at this moment.
            let arguments = format!("switch trace --next in --run-dir {run_dir} --format json");
            let run = run(&arguments);
            (run.code == 0).then(|| run.json())
        })
    });
    while !tracer.is_finished() {
        let add = format!("add-port in --number 9 --type pcap --receive {office}");
        switch(&folder, &add).exits(0);
        switch(&folder, "del-port in").exits(0);
    }
    let report = tracer.join().expect("no panic");
    assert_eq!(report["packet"]["source"], "port in");
    assert_eq!(report["packet"]["in_port"], 9);
    assert_eq!(report["steps"][0]["step"], "lookup");
    drop(running);
}

#[test]
fn refused_traces_say_what_to_do() {
    let folder = Folder::new();
    let running = start(&folder);
    for (arguments, message) in [
        ("trace", "error: "),
        ("trace --frame 00 --flow arp", "cannot be used with"),
        (
            "trace --frame 0x00",
            "not a frame; expected hexadecimal digits, two for each byte",
        ),
        (
            "trace --frame 123",
            "3 digits; expected two for each byte of a frame",
        ),
        ("trace --next p1 --in-port 2", "cannot be used with"),
        ("trace --next p1 --seconds 0", "0 is not in 1..=86400"),
        (
            "trace --next p1 --seconds 1",
            "error: switch `br0`: port `p1` received no packet within 1 s; wait longer, or look at \
             its counts with `classyard switch show`\n",
        ),
        (
            "trace --next p7",
            "error: switch `br0`: there is no port `p7`; the ports are p1, p2, p3\n",
        ),
        (
            "trace --frame 00 --in-port 8",
            "error: switch `br0`: there is no port `8`; the ports are p1, p2, p3\n",
        ),
        (
            "trace --flow tcp,tp_dst=web",
            "error: switch `br0`: column 12 of `tcp,tp_dst=web`: `web`",
        ),
        (
            "trace --flow metadata=5",
            "no received packet has `metadata=0x5`",
        ),
        ("trace br9 --flow arp", "no switch named `br9` is running"),
        ("dump-megaflows br9", "no switch named `br9` is running"),
        ("dump-megaflows --limit 0", "`0`; expected 1 to 65536"),
        ("top br9", "no switch named `br9` is running"),
        (
            "top --interval 0.01",
            "`0.01`; expected 0.1 to 3600 seconds",
        ),
    ] {
        switch(&folder, arguments).exits(2).complains(message);
    }
    drop(running);
}

/// Starts a switch that forwards the example's capture. Returns it when the frames have passed.
fn forwarding(folder: &Folder, keys: &str) -> Background {
    folder.file(
        "br0.flows",
        "priority=9,ip,nw_src=10.0.0.0/8 actions=goto_table:1\n\
         priority=1 actions=output:2\ntable=1,priority=0 actions=output:2\n",
    );
    let office = example("office.pcap");
    let ports = format!(
        "[[port]]\nnumber = 1\nname = \"in\"\ntype = \"pcap\"\nreceive = \"{office}\"\n\
         [[port]]\nnumber = 2\nname = \"out\"\ntype = \"pcap\"\nsend = \"out.pcap\"\n"
    );
    let keys = format!("flows = \"br0.flows\"\n{keys}");
    let running = Background::switch(&configuration(folder, &keys, &ports));
    wait_until_sent(folder, WHOLE_FRAMES);
    running
}

#[test]
fn megaflows_are_listed() {
    let folder = Folder::new();
    let running = forwarding(&folder, "workers = 2");
    let status = switch(&folder, "show --format json").exits(0).json();
    let cached = |worker: usize| {
        status["workers"][worker]["caches"]["megaflows"]
            .as_u64()
            .unwrap()
    };
    let list = switch(&folder, "dump-megaflows --format json")
        .exits(0)
        .silent()
        .json();
    assert_eq!(list["switch"], "br0");
    check_keys(&list);
    let workers = json!([
        {"worker": 0, "megaflows": cached(0), "left_out": 0},
        {"worker": 1, "megaflows": cached(1), "left_out": 0},
    ]);
    assert_eq!(list["workers"], workers);
    let megaflows = list["megaflows"].as_array().unwrap();
    assert_eq!(megaflows.len() as u64, cached(0) + cached(1));
    assert!(megaflows.len() > 1, "{list}");
    for megaflow in megaflows {
        assert_eq!(megaflow["actions"], "output:2");
        assert_eq!(megaflow["stale"], false);
        assert_eq!(megaflow["continues_at"], Value::Null);
        assert!(megaflow["bits"].as_u64().unwrap() > 0);
        assert!(megaflow["path_packets"].as_u64().unwrap() <= WHOLE_FRAMES);
    }
    let covers = megaflows[0]["covers"].as_str().unwrap();
    let whole = switch(&folder, "dump-megaflows").exits(0).silent();
    whole
        .prints(" Switch     br0\n Caches     worker 0: ")
        .prints(covers)
        .prints("output:2");
    let few = switch(&folder, "dump-megaflows --limit 1").exits(0);
    few.prints(" not listed")
        .prints("\n --limit COUNT lists more\n");
    let csv = switch(&folder, "dump-megaflows --format csv")
        .exits(0)
        .stdout;
    let heading = "worker,covers,bits,tables,continues_at,actions,stale,path_packets";
    assert_eq!(csv.lines().next(), Some(heading));
    assert_eq!(csv.lines().count(), megaflows.len() + 1);
    drop(running);
}

#[test]
fn rates_are_reported_again_and_again() {
    let folder = Folder::new();
    let running = forwarding(&folder, "");
    let top = |arguments: &str| {
        switch(&folder, &format!("top {arguments}"))
            .exits(0)
            .silent()
    };
    let lines = top("--count 2 --interval 0.1").stdout;
    assert_eq!(lines.lines().count(), 2 * (2 + 1 + 1), "{lines}");
    let first: Vec<&str> = lines
        .lines()
        .take(4)
        .map(|line| line.split_once("  ").unwrap().1)
        .collect();
    let port = "in 0 packets/s, 0 bit/s; out 0 packets/s, 0 bit/s; dropped 0 packets/s";
    assert_eq!(first[0], format!("port 1 in up: {port}"));
    assert_eq!(first[1], format!("port 2 out up: {port}"));
    assert!(first[2].starts_with("worker 0: ") && first[2].contains(" busy, 0 packets/s; hits "));
    assert_eq!(
        first[3],
        "drops of port in: received_too_long 0 packets/s, 447 in all"
    );
    let json = top("br0 -n 3 --interval 0.1 --format json").stdout;
    let reports: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(reports.len(), 3);
    check_keys(&reports[0]);
    for pair in reports.windows(2) {
        let time = |report: &Value| report["uptime_seconds"].as_f64().unwrap();
        let between = time(&pair[1]) - time(&pair[0]);
        assert!((between - pair[1]["seconds"].as_f64().unwrap()).abs() < 1e-6);
    }
    let busy = reports[0]["workers"][0]["busy"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&busy), "{busy}");
    assert_eq!(reports[0]["drops"][0]["total_packets"], 447);
    let csv = top("-n 2 --interval 0.1 --format csv").stdout;
    assert_eq!(csv.lines().count(), 1 + 2 * 2, "{csv}");
    drop(running);
}

/// Packets of the interval have a rate.
#[test]
fn the_rate_has_the_packets_of_the_interval() {
    let folder = Folder::new();
    let running = forwarding(&folder, "");
    let mut top = program();
    top.args([
        "switch",
        "top",
        "--count",
        "1",
        "--interval",
        "3",
        "--format",
        "json",
    ]);
    top.args(["--run-dir", &folder.path("run")])
        .stdout(Stdio::piped());
    let top = top.spawn().expect("the program starts");
    let office = example("office.pcap");
    let waiting = thread::spawn(move || top.wait_with_output().expect("it ends"));
    // The interval begins and ends during these changes.
    while !waiting.is_finished() {
        let add = format!("add-port more --number 10 --type pcap --receive {office}");
        switch(&folder, &add).exits(0);
        switch(&folder, "del-port more").exits(0);
    }
    let output = waiting.join().expect("no panic");
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let packets = report["workers"][0]["packets"].as_f64().unwrap();
    assert!(packets > 0.0, "{report}");
    assert!(
        report["workers"][0]["busy"].as_f64().unwrap() > 0.0,
        "{report}"
    );
    let sent = report["ports"][1]["sent_packets"].as_f64().unwrap();
    assert!(
        sent > 0.0 && report["ports"][1]["sent_bits"].as_f64().unwrap() > sent,
        "{report}"
    );
    drop(running);
}

#[test]
fn a_terminal_shows_the_rates_on_a_cleared_screen() {
    let folder = Folder::new();
    let running = forwarding(&folder, "");
    let run_dir = folder.path("run");
    let top = |rows| {
        let arguments = format!("switch top --count 2 --interval 0.1 --run-dir {run_dir}");
        run_on_terminal(&arguments, 120, rows)
    };
    let output = top(50);
    let screens: Vec<&str> = output.split("\x1b[H\x1b[2J").collect();
    assert_eq!((screens.len(), screens[0]), (3, ""), "{output:?}");
    for screen in &screens[1..] {
        assert!(
            screen.starts_with(" Switch     br0\n Running    "),
            "{screen}"
        );
        for heading in [
            "\nPorts, per second\n",
            "\nWorkers, per second\n",
            "\nDrops, per second\n",
        ] {
            assert!(screen.contains(heading), "{screen}");
        }
        assert!(screen.contains("received_too_long"), "{screen}");
    }
    // On a low terminal, the first rows stay in sight.
    let output = top(6);
    let screens = output.split("\x1b[H\x1b[2J").skip(1);
    assert!(
        screens.map(|screen| screen.lines().count()).eq([5, 5]),
        "{output:?}"
    );
    drop(running);
}

#[test]
fn an_interrupt_ends_the_rates_in_order() {
    let folder = Folder::new();
    let running = start(&folder);
    let mut top = program();
    top.args([
        "switch",
        "top",
        "--interval",
        "0.1",
        "--format",
        "json",
        "--run-dir",
    ]);
    let file = std::fs::File::create(folder.path("top.json")).expect("a file");
    let mut top = top
        .arg(folder.path("run"))
        .stdout(file)
        .spawn()
        .expect("the program starts");
    wait("a report", || {
        (folder.read("top.json").lines().count() > 1).then_some(())
    });
    let id = rustix::process::Pid::from_child(&top);
    rustix::process::kill_process(id, Signal::INT).expect("a running child");
    assert_eq!(top.wait().expect("it ends").code(), Some(0));
    let reports = folder.read("top.json");
    for line in reports.lines() {
        let report: Value = serde_json::from_str(line).expect("whole objects");
        assert_eq!(report["switch"], "br0");
    }
    // The end of the switch ends the command with an error.
    let mut top = program();
    top.args([
        "switch",
        "top",
        "--interval",
        "0.1",
        "--run-dir",
        &folder.path("run"),
    ]);
    let top = top
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    thread::sleep(std::time::Duration::from_millis(300));
    running.signal(Signal::TERM);
    running.ends_well();
    let output = top.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("error: "), "{message}");
}
