//! Configurations of switches, and commands for running switches. A thread of the test
//! answers on the control socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::{self, JoinHandle};

use classyard_switch::config::{DeviceSettings, PortSettings};
use classyard_switch::control::{
    CacheCounts, ConnectionState, ControllerStatus, DropCount, Link, PortStatus, ReloadStatus,
    Reply, Request, Role, SwitchStatus, TableStatus, WorkerStatus, socket_path,
};

use crate::support::{Folder, Run, program, run};

/// Returns the path of a file of the example.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/switch");
    path.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_good_configuration_is_described() {
    let file = example("br0.toml");
    let text = run(&format!("switch check-config {file}"))
        .exits(0)
        .silent();
    for line in [
        " Switch     br0, datapath id 00:00:00:00:00:00:00:01\n",
        " Workers    2 workers on CPUs 0, 1, poll sleep\n",
        " Engine     forest\n",
        " Flows      9 flows, 1 group, 1 meter from ",
        " Fail mode  secure\n",
        " Packet-ins at most 10,000 packets a second, 1,000 in a burst\n",
        " Run folder /run/classyard\n",
        " Listens on tcp:127.0.0.1:6653\n",
        "Ports\n number  port      device\n",
        "\n      1  uplink    interface eth1\n",
        "\n      3  vm0       tap tap-vm0\n",
        "/office.pcap send /var/lib/classyard/br0.pcap\n",
        "\n      5  program   memory\n",
        "\n tcp:192.0.2.1:6653                  5s                8s\n",
    ] {
        assert!(text.stdout.contains(line), "{line}\n{}", text.stdout);
    }
    let report = run(&format!("switch check-config {file} --format json")).exits(0);
    let report = report.json();
    assert_eq!(report["datapath_id"], "00:00:00:00:00:00:00:01");
    assert_eq!(report["flows"]["flows"], 9);
    assert_eq!(report["ports"][2]["type"], "tap");
    assert_eq!(report["ports"][2]["interface"], "tap-vm0");
    assert_eq!(report["controllers"][0]["probe_interval_seconds"], 5.0);
    let rows = run(&format!("switch check-config {file} --format csv")).csv();
    assert_eq!(rows[0], ["number", "name", "type", "device"]);
    assert_eq!(rows[1], ["1", "uplink", "interface", "interface eth1"]);
    assert_eq!(rows.len(), 6);
}

#[test]
fn an_empty_configuration_is_a_switch() {
    let folder = Folder::new();
    let file = folder.file("empty.toml", "");
    let text = run(&format!("switch check-config {file}"))
        .exits(0)
        .silent();
    text.prints(" Switch     br0, datapath id from the address of the first port\n")
        .prints(" Workers    1 worker, poll sleep\n");
    let report = run(&format!("switch check-config {file} --format json"));
    assert_eq!(report.json()["flows"], serde_json::Value::Null);
}

#[test]
fn all_mistakes_of_a_configuration_are_shown() {
    let folder = Folder::new();
    let file = folder.file(
        "bad.toml",
        "[switch]\nwokers = 2\ncpus = [1, 2]\n\n[[port]]\nnumber = 1\nname = \"veth1\"\n\
         [[port]]\nnumber = 1\nname = \"veth2\"\n\n[[controller]]\naddress = \"tls:c:6653\"\n",
    );
    let run = run(&format!("switch check-config {file}")).exits(2);
    assert_eq!(run.stdout, "");
    let expected = format!(
        "error: unknown key `wokers` in `[switch]`
 --> {file}:2:1
  |
2 | wokers = 2
  | ^^^^^^ expected `workers`, the nearest known key

error: 2 CPUs for 1 worker
 --> {file}:3:8
  |
3 | cpus = [1, 2]
  |        ^^^^^^ expected `workers = 2`, or 1 CPU

error: port number 1 is used twice, first in line 6
 --> {file}:9:10
  |
9 | number = 1
  |          ^ expected another number

error: `tls:c:6653`
  --> {file}:13:11
   |
13 | address = \"tls:c:6653\"
   |           ^^^^^^^^^^^^ expected `ssl:HOST:PORT`, the name of TLS in Open vSwitch

error: {file}: 4 bad lines; nothing was loaded
"
    );
    assert_eq!(run.stderr, expected);
}

#[test]
fn mistakes_of_the_flows_and_missing_files_are_shown() {
    let folder = Folder::new();
    let file = folder.file("br.toml", "[switch]\nflows = \"br.flows\"\n");
    run(&format!("switch check-config {file}"))
        .exits(2)
        .complains("br.flows: No such file");
    folder.file(
        "br.flows",
        "table=0,priority=1 actions=output:1\ntable=0,prio=1\n",
    );
    run(&format!("switch check-config {file}"))
        .exits(2)
        .complains("br.flows:2:9")
        .complains("1 bad line; nothing was loaded");
    // Flows name ports of the configuration. Other names are suspicious.
    let ports = "[switch]\nflows = \"br.flows\"\n[[port]]\nnumber = 7\nname = \"veth1\"\n";
    folder.file("br.toml", ports);
    folder.file("br.flows", "in_port=veth1 actions=output:veth1");
    run(&format!("switch check-config {file}"))
        .exits(0)
        .silent()
        .prints("1 flow, 0 groups, 0 meters");
    folder.file("br.flows", "in_port=veth1 actions=output:veth2\n");
    run(&format!("switch check-config {file}"))
        .exits(0)
        .complains("br.flows: 1 port is called by name and got a number: veth2 = 1");
    run(&format!("switch check-config {}", folder.path("bt.toml")))
        .exits(2)
        .complains("bt.toml: No such file")
        .complains("did you mean");
    let long = folder.file("long.toml", "#".repeat((1 << 20) + 1));
    run(&format!("switch check-config {long}"))
        .exits(2)
        .complains("more than 1048576 bytes, the limit for a configuration file");
}

/// Answers requests as the switch `name`, one connection for each reply. Returns the
/// requests.
fn serve(run_dir: &str, name: &str, replies: Vec<Reply>) -> JoinHandle<Vec<Request>> {
    let listener = UnixListener::bind(socket_path(Path::new(run_dir), name)).unwrap();
    thread::spawn(move || {
        let mut requests = Vec::new();
        for reply in replies {
            // Commands that look for a running switch connect and send nothing.
            let (request, mut stream) = loop {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() > 0 {
                    break (Request::parse(&line).unwrap(), reader.into_inner());
                }
            };
            requests.push(request);
            stream.write_all(reply.line().as_bytes()).unwrap();
        }
        requests
    })
}

/// Runs a command for the switches of a folder.
fn switch(command: &str, run_dir: &str) -> Run {
    run(&format!("switch {command} --run-dir {run_dir}"))
}

fn drops(reason: &str, packets: u64) -> Vec<DropCount> {
    let reason = reason.to_owned();
    vec![DropCount { reason, packets }]
}

/// The state of a switch with something in each list.
fn status() -> SwitchStatus {
    let caches = CacheCounts {
        microflow_lookups: 1_000,
        microflow_hits: 900,
        microflows: 40,
        megaflow_lookups: 100,
        megaflow_hits: 50,
        megaflows: 7,
        masks: 3,
        by_tables: 50,
        ..CacheCounts::default()
    };
    SwitchStatus {
        name: "br0".to_owned(),
        datapath_id: "00:00:00:00:00:00:00:01".to_owned(),
        uptime_seconds: 3_725,
        uptime_ns: 3_725_000_000_000,
        version: "0.1.0".to_owned(),
        workers: vec![WorkerStatus {
            worker: 0,
            cpu: Some(2),
            packets: 1_000,
            vectors: 10,
            sleeps: 5,
            busy_ns: 6,
            jobs: 1,
            drops: drops("no_room", 9),
            caches: Some(caches),
        }],
        ports: vec![PortStatus {
            number: 1,
            name: "veth1".to_owned(),
            device: "interface veth1".to_owned(),
            link: Link::Up,
            received_packets: 1_000,
            received_bytes: 60_000,
            sent_packets: 7,
            sent_bytes: 420,
            drops: drops("missed", 1_234),
        }],
        tables: vec![TableStatus {
            table: 3,
            entries: 12,
            lookups: 1_000,
            matches: 999,
        }],
        controllers: vec![ControllerStatus {
            address: "tcp:192.0.2.1:6653".to_owned(),
            state: ConnectionState::Connected,
            role: Some(Role::Master),
            received_messages: 8,
            sent_messages: 1_009,
            dropped_packet_ins: 4,
        }],
        listeners: vec!["tcp:127.0.0.1:6653".to_owned()],
    }
}

/// Returns the JSON of `show` and `reload`.
pub(crate) fn reports() -> [serde_json::Value; 2] {
    let folder = Folder::new();
    let run_dir = folder.path("");
    let replies = vec![Reply::ok(&status()), Reply::ok(&ReloadStatus::default())];
    let server = serve(&run_dir, "br0", replies);
    let reports = ["show", "reload"].map(|command| {
        let command = format!("{command} br0 --format json");
        switch(&command, &run_dir).exits(0).json()
    });
    server.join().unwrap();
    reports
}

#[test]
fn a_running_switch_is_shown() {
    let folder = Folder::new();
    let run_dir = folder.path("");
    let server = serve(&run_dir, "br0", vec![Reply::ok(&status()); 3]);
    let shown = switch("show", &run_dir).exits(0).silent();
    let expected = "\
\x20Switch     br0, datapath id 00:00:00:00:00:00:00:01
 Running    1 h 2 min, version 0.1.0
 Listens on tcp:127.0.0.1:6653

Ports
 number  port   device           link  received   bytes  sent  bytes  dropped
──────────────────────────────────────────────────────────────────────────────────────────
      1  veth1  interface veth1  up       1,000  60,000     7    420  1,234: missed 1,234

Workers
 worker  CPU  packets  vectors  sleeps  jobs  dropped
───────────────────────────────────────────────────────────
      0    2    1,000       10       5     1  9: no_room 9

Flow caches
 worker  microflow hits  microflows  megaflow hits  megaflows  masks  packets to tables
────────────────────────────────────────────────────────────────────────────────────────
      0          90.0 %          40         50.0 %          7      3                 50

Tables
 table  entries  lookups  matches
──────────────────────────────────
     3       12    1,000      999

Controllers
 address             state      role    received   sent  dropped packet-ins
────────────────────────────────────────────────────────────────────────────
 tcp:192.0.2.1:6653  connected  master         8  1,009                   4
";
    assert_eq!(shown.stdout, expected);
    let report = switch("show br0 --format json", &run_dir).exits(0).json();
    assert_eq!(report, serde_json::to_value(status()).unwrap());
    let rows = switch("show --format csv", &run_dir).exits(0).csv();
    assert_eq!(rows[0].last().unwrap(), "dropped_packets");
    let row = [
        "1",
        "veth1",
        "interface veth1",
        "up",
        "1000",
        "60000",
        "7",
        "420",
        "1234",
    ];
    assert_eq!(rows[1], row);
    assert_eq!(
        server.join().unwrap(),
        [Request::Show, Request::Show, Request::Show]
    );
}

#[test]
fn ports_are_added_and_removed() {
    let folder = Folder::new();
    let run_dir = folder.path("");
    let refusal = Reply::error(&"the port `veth1` has the number 1 already");
    let server = serve(
        &run_dir,
        "br0",
        vec![Reply::done(), Reply::done(), refusal, Reply::done()],
    );
    switch("add-port veth1 --number 1", &run_dir)
        .exits(0)
        .complains("note: switch `br0` has the port `veth1` with the number 1\n");
    let added = switch(
        "add-port rec --number 4 --type pcap --send out.pcap --switch br0 -q",
        &run_dir,
    );
    added.exits(0).silent();
    let run = switch("add-port veth2 --number 1", &run_dir).exits(2);
    let expected = "error: switch `br0`: the port `veth1` has the number 1 already\n";
    assert_eq!(run.stderr, expected);
    switch("del-port veth1", &run_dir)
        .exits(0)
        .complains("note: switch `br0` has removed the port `veth1`\n");
    let requests = server.join().unwrap();
    let interface = |name: &str| PortSettings {
        number: 1,
        name: name.to_owned(),
        device: DeviceSettings::Interface {
            interface: name.to_owned(),
        },
    };
    let recorder = PortSettings {
        number: 4,
        name: "rec".to_owned(),
        device: DeviceSettings::Pcap {
            receive: None,
            send: Some(std::path::absolute("out.pcap").unwrap()),
        },
    };
    let ports = [interface("veth1"), recorder, interface("veth2")];
    let mut expected: Vec<Request> = ports.map(|port| Request::AddPort { port }).into();
    expected.push(Request::DelPort {
        name: "veth1".to_owned(),
    });
    assert_eq!(requests, expected);
}

/// Nothing is sent for a port with a mistake.
#[test]
fn ports_with_mistakes_are_refused() {
    let folder = Folder::new();
    let run_dir = folder.path("");
    for (arguments, message) in [
        (
            "add-port a --number 1 --type memory --interface b",
            "error: `interface`: `interface` on a port of type memory; expected `type = ",
        ),
        (
            "add-port a --number 1 --type pcap",
            "error: `type`: a port of type pcap without a file; expected `receive = ",
        ),
        (
            "add-port a-very-long-name --number 1",
            "error: `name`: `a-very-long-name`; expected the name of a port: 1 to 15 bytes",
        ),
        ("add-port a --number 0", "0 is not in 1..=4294967040"),
        ("add-port a", "--number <N>"),
        (
            "add-port a --number 1 --type dpdk",
            "[possible values: interface, tap, pcap, memory]",
        ),
    ] {
        switch(arguments, &run_dir).exits(2).complains(message);
    }
}

#[test]
fn a_reload_lists_its_changes() {
    let folder = Folder::new();
    let run_dir = folder.path("");
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
    let status = ReloadStatus {
        added_ports: list(&["veth2", "veth3"]),
        removed_controllers: list(&["tcp:192.0.2.1:6653"]),
        restart_keys: list(&["workers"]),
        ..ReloadStatus::default()
    };
    let failed = ReloadStatus {
        failures: list(&["port `veth4`: there is no interface `veth4`"]),
        ..ReloadStatus::default()
    };
    let mistake = Reply::error(&"br0.toml:1:1: unknown key `x`");
    let server = serve(
        &run_dir,
        "br0",
        vec![
            Reply::ok(&status),
            Reply::ok(&status),
            Reply::ok(&ReloadStatus::default()),
            Reply::ok(&failed),
            mistake,
        ],
    );
    let text = switch("reload", &run_dir).exits(0).silent();
    let expected = "\
\x20Switch     br0
 Removed    controller tcp:192.0.2.1:6653
 Added      port veth2
            port veth3
 At restart workers
";
    assert_eq!(text.stdout, expected);
    let rows = switch("reload br0 --format csv", &run_dir).exits(0).csv();
    let expected = [
        ["change", "item"],
        ["removed_controllers", "tcp:192.0.2.1:6653"],
        ["added_ports", "veth2"],
        ["added_ports", "veth3"],
        ["restart_keys", "workers"],
    ];
    assert_eq!(rows, expected);
    switch("reload", &run_dir)
        .exits(0)
        .silent()
        .prints(" the configuration has not changed\n");
    let report = switch("reload --format json", &run_dir).exits(1).json();
    assert_eq!(report["switch"], "br0");
    assert_eq!(
        report["failures"][0],
        "port `veth4`: there is no interface `veth4`"
    );
    switch("reload", &run_dir)
        .exits(2)
        .complains("error: switch `br0`: br0.toml:1:1: unknown key `x`\n");
    assert_eq!(server.join().unwrap().len(), 5);
}

#[test]
fn a_switch_is_stopped() {
    let folder = Folder::new();
    let run_dir = folder.path("");
    let server = serve(&run_dir, "br-1", vec![Reply::done()]);
    let run = switch("stop", &run_dir).exits(0);
    assert_eq!(run.stderr, "note: switch `br-1` is stopping\n");
    assert_eq!(run.stdout, "");
    assert_eq!(server.join().unwrap(), [Request::Stop]);
}

#[test]
fn a_switch_that_is_not_running_is_an_error() {
    let folder = Folder::new();
    let run_dir = folder.path("run");
    std::fs::create_dir(&run_dir).unwrap();
    let run = switch("show", &run_dir).exits(2);
    let expected = format!("error: no switch is running in {run_dir}\nhelp: --run-dir DIR names ");
    assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
    let socket = |name: &str| socket_path(Path::new(&run_dir), name);
    let _a = UnixListener::bind(socket("a")).unwrap();
    let run = switch("stop br0", &run_dir).exits(2);
    let expected = format!(
        "error: no switch named `br0` is running: there is no socket {run_dir}/br0.ctl\n\
         help: running switches: a\n"
    );
    assert_eq!(run.stderr, expected);
    let _b = UnixListener::bind(socket("b")).unwrap();
    let run = switch("del-port x", &run_dir).exits(2);
    let expected =
        format!("error: 2 switches are running in {run_dir}: a, b\nhelp: name one of them\n");
    assert_eq!(run.stderr, expected);
    drop(UnixListener::bind(socket("old")).unwrap());
    switch("reload old", &run_dir)
        .exits(2)
        .complains("no switch named `old` is running: nothing listens at");
}

/// The default folder follows the user.
#[test]
fn the_default_folder_is_named() {
    let output = program()
        .args(["switch", "show", "no-such-switch"])
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("/classyard/no-such-switch.ctl"),
        "{message}"
    );
}

#[test]
fn commands_of_the_switch_have_help() {
    for command in [
        "check-config",
        "show",
        "add-port",
        "del-port",
        "reload",
        "stop",
    ] {
        run(&format!("switch {command} --help"))
            .exits(0)
            .silent()
            .prints("Example");
        run("switch --help")
            .exits(0)
            .prints(&format!("\n  {command} "));
        run("completions bash")
            .exits(0)
            .prints(&format!("classyard__subcmd__switch,{command})"));
    }
    run("switch").exits(2).complains("Usage: classyard switch");
}
