//! Switches that run as processes of their own, and the commands for them. The ports are
//! captures and memory, so the tests need no rights.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use classyard_workload::capture::{Capture, ReadOptions, read_capture};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Folder, Run, example, program, run};

/// The longest wait for anything that must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two looks at something that must come.
const PAUSE: Duration = Duration::from_millis(10);

/// Frames of the example's capture, and frames that are not cut off.
const FRAMES: u64 = 1_988;
const WHOLE_FRAMES: u64 = 1_541;

/// Bytes before the first record of a pcap file, and before the frame of each record.
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// Waits until `look` returns a value.
#[track_caller]
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what}");
        thread::sleep(PAUSE);
    }
}

/// A process that runs in the background. It is killed when this is dropped.
pub(crate) struct Background {
    child: Child,
    /// The lines of standard error until now.
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts the program with arguments separated by spaces.
    pub(crate) fn start(arguments: &str) -> Background {
        let mut child = program()
            .args(arguments.split_ascii_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("it was asked for")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                copy.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Background {
            child,
            log,
            reader: Some(reader),
        }
    }

    /// Starts a switch. Returns when it is ready.
    pub(crate) fn switch(arguments: &str) -> Background {
        let mut switch = Background::start(&format!("switch run {arguments}"));
        switch.wait_for(" is ready; OpenFlow on unix:");
        switch
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until standard error has a text.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        wait(&format!("{text:?} on standard error"), || {
            let has_ended = self.child.try_wait().expect("a child").is_some();
            let log = self.log();
            assert!(!has_ended || log.contains(text), "it has ended:\n{log}");
            log.contains(text).then_some(())
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a running child");
    }

    /// Waits for the end of the process. Returns its exit code, if no signal ended it, and
    /// standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let status = wait("end of the process", || {
            self.child.try_wait().expect("a child")
        });
        self.reader.take().map(JoinHandle::join);
        (status.code(), self.log())
    }

    /// Fails the test unless the process ends with the exit code 0.
    #[track_caller]
    pub(crate) fn ends_well(mut self) {
        let (code, log) = self.end();
        assert_eq!(code, Some(0), "{log}");
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes `br0.toml`, which has its sockets in `run`. Returns its path.
pub(crate) fn configuration(folder: &Folder, keys: &str, ports: &str) -> String {
    let text = format!("[switch]\nrun-dir = \"run\"\n{keys}\n{ports}");
    folder.file("br0.toml", text)
}

/// Returns the table of a port in memory.
pub(crate) fn memory(number: u32) -> String {
    format!("[[port]]\nnumber = {number}\nname = \"p{number}\"\ntype = \"memory\"\n")
}

/// Runs a command for the switches of a folder.
pub(crate) fn switch(folder: &Folder, command: &str) -> Run {
    run(&format!(
        "switch {command} --run-dir {}",
        folder.path("run")
    ))
}

/// Waits until the second port has sent `frames` frames. Returns the output of `show`.
pub(crate) fn wait_until_sent(folder: &Folder, frames: u64) -> serde_json::Value {
    wait("count of sent frames", || {
        let status = switch(folder, "show --format json").exits(0).json();
        (status["ports"][1]["sent_packets"] == frames).then_some(status)
    })
}

/// Returns the frames of a capture that are not cut off.
fn whole_frames(capture: &Capture) -> Vec<&[u8]> {
    let frames = capture.frames();
    let whole = frames.filter(|(packet, _)| packet.captured_length() == packet.original_length);
    whole.map(|(_, frame)| frame).collect()
}

fn read(path: &str) -> Capture {
    let bytes = fs::read(path).expect("a file");
    read_capture(path, &bytes, &ReadOptions::DEFAULT).expect("a right capture")
}

/// Writes the first whole frames of the example's capture to a file. Returns its path.
fn short_capture(folder: &Folder, name: &str, frames: usize) -> String {
    let office = fs::read(example("office.pcap")).expect("a file");
    let (header, mut rest) = office.split_at(FILE_HEADER_BYTES);
    let mut short = header.to_vec();
    let mut count = 0;
    while count < frames {
        let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let (captured, original) = (number(8), number(12));
        let record = rest.split_at(RECORD_HEADER_BYTES + captured as usize);
        if captured == original {
            short.extend_from_slice(record.0);
            count += 1;
        }
        rest = record.1;
    }
    folder.file(name, short)
}

#[test]
fn a_switch_runs_until_it_is_terminated() {
    let folder = Folder::new();
    folder.file(
        "br0.flows",
        "# Two flows.\ntable=0,priority=5,in_port=p1 actions=goto_table:1\n\
         table=1,priority=0 actions=output:rec\n",
    );
    let recorder = "[[port]]\nnumber = 9\nname = \"rec\"\ntype = \"pcap\"\nsend = \"rec.pcap\"\n";
    let ports = memory(1) + &memory(2) + recorder;
    let keys = "flows = \"br0.flows\"\ndatapath-id = 7";
    let running = Background::switch(&configuration(&folder, keys, &ports));
    let run_dir = folder.path("run");
    let ready =
        format!("note: switch `br0` with 3 ports is ready; OpenFlow on unix:{run_dir}/br0.mgmt\n");
    assert_eq!(running.log(), ready);
    assert!(folder.has("run/br0.ctl") && folder.has("run/br0.mgmt"));
    let report = switch(&folder, "show br0 --format json").exits(0).json();
    assert_eq!(report["datapath_id"], "00:00:00:00:00:00:00:07");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["ports"][2]["name"], "rec");
    assert_eq!(report["ports"][2]["link"], "up");
    let entries = report["tables"].as_array().unwrap().iter();
    let entries: Vec<_> = entries.map(|table| &table["entries"]).collect();
    assert_eq!(entries, [1, 1]);
    switch(&folder, "show")
        .exits(0)
        .silent()
        .prints(" Switch     br0, datapath id 00:00:00:00:00:00:00:07\n")
        .prints("\n      1  p1    memory")
        .prints(&format!(
            "\n      9  rec   pcap send {}",
            folder.path("rec.pcap")
        ));
    let dump = switch(&folder, "dump").exits(0).silent().stdout;
    let expected = "\
port=1,name=p1
port=2,name=p2
port=9,name=rec
table=0,priority=5,in_port=1 actions=goto_table:1
table=1,priority=0 actions=output:9
";
    assert_eq!(dump, expected);
    let dump = folder.file("dump.flows", dump);
    let frame = "02000000000102000000000288b50000";
    run(&format!("trace -p {dump} --in-port 1 --frame {frame}"))
        .exits(0)
        .silent()
        .prints("Table 1, 1 flow")
        .prints("out by port 9");
    running.signal(Signal::TERM);
    running.ends_well();
    assert!(!folder.has("run/br0.ctl") && !folder.has("run/br0.mgmt"));
    switch(&folder, "show")
        .exits(2)
        .complains("error: no switch is running in ");
}

/// Returns a frame's Ethernet header and, of an IPv4 packet without options, its protocol,
/// addresses and ports. Other frames are flows of their own.
fn flow_of(frame: &[u8]) -> Vec<u8> {
    match frame {
        frame if frame.len() >= 38 && frame[12..15] == [0x08, 0x00, 0x45] => {
            [&frame[..14], &frame[23..24], &frame[26..38]].concat()
        }
        frame => frame.to_vec(),
    }
}

/// Returns the frames of each flow, in order.
fn flows<'f>(frames: &[&'f [u8]]) -> BTreeMap<Vec<u8>, Vec<&'f [u8]>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for frame in frames {
        flows.entry(flow_of(frame)).or_default().push(*frame);
    }
    flows
}

/// The frames of a capture arrive in another one, byte for byte. Each flow keeps its order.
#[test]
fn frames_pass_from_one_capture_to_another() {
    let folder = Folder::new();
    folder.file("br0.flows", "in_port=1 actions=output:2\n");
    let office = example("office.pcap");
    let ports = format!(
        "[[port]]\nnumber = 1\nname = \"in\"\ntype = \"pcap\"\nreceive = \"{office}\"\n\
         [[port]]\nnumber = 2\nname = \"out\"\ntype = \"pcap\"\nsend = \"out.pcap\"\n"
    );
    let file = configuration(&folder, "workers = 2\nflows = \"br0.flows\"", &ports);
    let running = Background::switch(&file);
    let status = wait_until_sent(&folder, WHOLE_FRAMES);
    let ports = &status["ports"];
    assert_eq!(ports[0]["received_packets"], WHOLE_FRAMES);
    assert_eq!(ports[0]["received_bytes"], ports[1]["sent_bytes"]);
    let drops = serde_json::json!([
        {"reason": "received_too_long", "packets": FRAMES - WHOLE_FRAMES},
    ]);
    assert_eq!(ports[0]["drops"], drops);
    assert_eq!(status["tables"][0]["matches"], WHOLE_FRAMES);
    let (received, sent) = (read(&office), read(&folder.path("out.pcap")));
    assert_eq!(received.frames().len() as u64, FRAMES);
    let (received, sent) = (whole_frames(&received), whole_frames(&sent));
    assert_eq!(sent.len() as u64, WHOLE_FRAMES);
    let (received, sent) = (flows(&received), flows(&sent));
    assert!(received.len() > 100, "{} flows", received.len());
    assert!(received == sent, "other frames were sent");
    running.signal(Signal::INT);
    running.ends_well();
    assert_eq!(
        read(&folder.path("out.pcap")).frames().len() as u64,
        WHOLE_FRAMES
    );
}

#[test]
fn ports_of_a_running_switch_change() {
    let folder = Folder::new();
    folder.file("br0.flows", "in_port=3 actions=output:2\n");
    let file = configuration(&folder, "flows = \"br0.flows\"", &memory(1));
    let running = Background::switch(&file);
    let frames = short_capture(&folder, "in.pcap", 20);
    let old = folder.file("old.pcap", "");
    let out = folder.path("out.pcap");
    let missing = folder.path("missing.pcap");
    for (arguments, message) in [
        (
            "add-port p2 --number 1 --type memory".to_owned(),
            "port `p1` has the number 1 already\n".to_owned(),
        ),
        (
            "add-port p1 --number 2 --type memory".to_owned(),
            "port `p1` has the name `p1` already\n".to_owned(),
        ),
        (
            "add-port nosuch0 --number 2".to_owned(),
            "port nosuch0: no network interface `nosuch0`".to_owned(),
        ),
        (
            format!("add-port out --number 2 --type pcap --send {old}"),
            format!("port out: `{old}` exists; choose the name of a new file for sent frames\n"),
        ),
        (
            format!("add-port in --number 2 --type pcap --receive {missing}"),
            format!("port in: cannot open the capture `{missing}`: No such file"),
        ),
        (
            "del-port p2".to_owned(),
            "there is no port `p2`; the ports are p1\n".to_owned(),
        ),
    ] {
        let message = format!("error: switch `br0`: {message}");
        switch(&folder, &arguments).exits(2).complains(&message);
    }
    switch(
        &folder,
        &format!("add-port out --number 2 --type pcap --send {out}"),
    )
    .exits(0)
    .complains("note: switch `br0` has the port `out` with the number 2\n");
    switch(
        &folder,
        &format!("add-port in --number 3 --type pcap --receive {frames}"),
    )
    .exits(0);
    wait_until_sent(&folder, 20);
    assert_eq!(whole_frames(&read(&out)), whole_frames(&read(&frames)));
    for port in ["in", "p1", "out"] {
        switch(&folder, &format!("del-port {port}"))
            .exits(0)
            .complains(&format!(
                "note: switch `br0` has removed the port `{port}`\n"
            ));
    }
    let status = switch(&folder, "show --format json").exits(0).json();
    assert_eq!(status["ports"], serde_json::json!([]));
    switch(&folder, "del-port p1")
        .exits(2)
        .complains("error: switch `br0`: there is no port `p1`; the switch has no ports\n");
    // The flow that names a removed port stays.
    switch(&folder, "dump")
        .exits(0)
        .prints("in_port=3 actions=output:2\n");
    drop(running);
}

/// Starts a capture of a switch. Returns when the switch has begun it.
fn capture(folder: &Folder, arguments: &str, file: &str) -> Background {
    let (run_dir, path) = (folder.path("run"), folder.path(file));
    let command = format!("switch capture {arguments} -w {path} --run-dir {run_dir}");
    let capture = Background::start(&command);
    wait("begin of a capture", || {
        let length = fs::metadata(&path).map(|file| file.len());
        length.is_ok_and(|bytes| bytes > 0).then_some(())
    });
    capture
}

#[test]
fn frames_of_ports_are_captured() {
    let folder = Folder::new();
    folder.file("br0.flows", "actions=output:2\n");
    let file = configuration(&folder, "flows = \"br0.flows\"", &(memory(1) + &memory(2)));
    let running = Background::switch(&file);
    let frames = short_capture(&folder, "in.pcap", 20);
    let original = read(&frames);
    let original = whole_frames(&original);
    switch(&folder, &format!("capture p3 -w {}", folder.path("none")))
        .exits(2)
        .complains("error: switch `br0`: there is no port `p3`; the ports are p1, p2\n");
    assert!(!folder.has("none"));

    let sent = capture(&folder, "p2 -n 12", "sent.pcapng");
    switch(&folder, &format!("capture -w {}", folder.path("none")))
        .exits(2)
        .complains("error: switch `br0`: another capture is running; end it first\n");
    let receive = format!("--type pcap --receive {frames}");
    switch(&folder, &format!("add-port a --number 3 {receive}")).exits(0);
    sent.ends_well();
    let sent = read(&folder.path("sent.pcapng"));
    assert_eq!(whole_frames(&sent), original[..12]);
    let names = sent.interfaces().iter().map(|it| it.name.as_deref());
    assert!(names.eq([Some("p2")]));

    // A capture of all ports has the frames of a port that is added during the capture.
    let all = capture(&folder, "--count 40 --snap 30", "all.pcapng");
    switch(&folder, &format!("add-port b --number 4 {receive}")).exits(0);
    all.ends_well();
    let all = read(&folder.path("all.pcapng"));
    for name in ["b", "p2"] {
        let of_port = all.frames().filter(|(packet, _)| {
            let interface = &all.interfaces()[packet.interface as usize];
            interface.name.as_deref() == Some(name)
        });
        let expected = original.iter().map(|frame| &frame[..frame.len().min(30)]);
        assert!(of_port.map(|(_, bytes)| bytes).eq(expected), "{name}");
    }
    assert_eq!(all.frames().len(), 40);
    let status = switch(&folder, "show --format json").exits(0).json();
    assert_eq!(status["workers"][0]["drops"], serde_json::json!([]));
    drop(running);
}

#[test]
fn a_configuration_is_read_again() {
    let folder = Folder::new();
    let file = configuration(&folder, "", &(memory(1) + &memory(2)));
    let mut running = Background::switch(&file);
    switch(&folder, "reload")
        .exits(0)
        .prints(" the configuration has not changed\n");
    let listen = "[listen]\nopenflow = [\"unix:run/second\"]\n";
    let ports = memory(1) + &memory(3) + listen;
    configuration(&folder, "workers = 2\nmax-packet-in-burst = 5", &ports);
    let second = format!("unix:{}", folder.path("run/second"));
    let expected = format!(
        "\
\x20Switch     br0
 Removed    port p2
 Added      port p3
            listener {second}
 At restart workers
            max-packet-in-burst
"
    );
    assert_eq!(switch(&folder, "reload").exits(0).stdout, expected);
    let status = switch(&folder, "show --format json").exits(0).json();
    assert_eq!(status["ports"][1]["name"], "p3");
    assert_eq!(status["listeners"], serde_json::json!([second]));
    assert_eq!(status["workers"].as_array().unwrap().len(), 1);

    // A file with a mistake changes nothing.
    configuration(&folder, "workers = 0", &memory(7));
    switch(&folder, "reload")
        .exits(2)
        .complains(&format!("error: switch `br0`: {file}:3:11: "));
    running.signal(Signal::HUP);
    running.wait_for(&format!("ERROR reload: {file}:3:11: "));
    let status = switch(&folder, "show --format json").exits(0).json();
    assert_eq!(status["ports"][1]["name"], "p3");

    // A port that cannot be added does not hinder others.
    let missing = "[[port]]\nnumber = 5\nname = \"nosuch0\"\n";
    configuration(&folder, "", &(memory(1) + &memory(4) + missing));
    let report = switch(&folder, "reload --format json").exits(1).json();
    assert_eq!(report["added_ports"], serde_json::json!(["p4"]));
    let failure = report["failures"][0].as_str().unwrap();
    assert!(
        failure.contains("no network interface `nosuch0`"),
        "{failure}"
    );

    // SIGHUP reads the file as well.
    configuration(&folder, "", &memory(6));
    running.signal(Signal::HUP);
    wait("port p6", || {
        let status = switch(&folder, "show --format json").exits(0).json();
        let ports = status["ports"].as_array().unwrap();
        (ports.len() == 1 && ports[0]["name"] == "p6").then_some(())
    });
    running.signal(Signal::TERM);
    running.ends_well();
}

#[test]
fn a_switch_is_stopped_by_a_command() {
    let folder = Folder::new();
    let running = Background::switch(&configuration(&folder, "", &memory(1)));
    let stop = switch(&folder, "stop br0").exits(0);
    assert_eq!(stop.stderr, "note: switch `br0` is stopping\n");
    running.ends_well();
    assert_eq!(fs::read_dir(folder.path("run")).unwrap().count(), 0);
}

#[test]
fn two_switches_of_one_name_do_not_run() {
    let folder = Folder::new();
    let first = Background::switch(&configuration(&folder, "", &memory(1)));
    // The second switch opens no port.
    let recorder = "[[port]]\nnumber = 9\nname = \"rec\"\ntype = \"pcap\"\nsend = \"rec.pcap\"\n";
    let file = configuration(&folder, "", recorder);
    let second = run(&format!("switch run {file}")).exits(2);
    let expected = format!(
        "error: unix:{}: cannot listen: address in use; another process listens there, perhaps \
         a switch of the same name\n",
        folder.path("run/br0.ctl")
    );
    assert_eq!(second.stderr, expected);
    assert!(!folder.has("rec.pcap"));
    switch(&folder, "show").exits(0).prints("\n      1  p1  ");
    let file = configuration(&folder, "name = \"br1\"", "");
    let other = Background::switch(&file);
    switch(&folder, "show")
        .exits(2)
        .complains(": br0, br1\nhelp: name one of them\n");
    switch(&folder, "show br1").exits(0);
    drop((first, other));
}

/// A killed switch leaves its sockets behind. The next one replaces them.
#[test]
fn sockets_of_a_killed_switch_are_replaced() {
    let folder = Folder::new();
    let file = configuration(&folder, "", &memory(1));
    let mut killed = Background::switch(&file);
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().0, None);
    assert!(folder.has("run/br0.ctl") && folder.has("run/br0.mgmt"));
    switch(&folder, "show br0")
        .exits(2)
        .complains("no switch named `br0` is running: nothing listens at ");
    let running = Background::switch(&file);
    switch(&folder, "show").exits(0).prints(" Switch     br0");
    running.signal(Signal::TERM);
    running.ends_well();
    assert_eq!(fs::read_dir(folder.path("run")).unwrap().count(), 0);
}

/// A socket path that other files use is left alone.
#[test]
fn other_files_are_not_replaced() {
    let folder = Folder::new();
    let file = configuration(&folder, "", "");
    fs::create_dir(folder.path("run")).unwrap();
    folder.file("run/br0.ctl", "mine");
    run(&format!("switch run {file}"))
        .exits(2)
        .complains("/run/br0.ctl: cannot listen: ");
    assert_eq!(folder.read("run/br0.ctl"), "mine");
}

#[test]
fn a_switch_that_cannot_start_says_why() {
    let folder = Folder::new();
    folder.file("bad.flows", "actions=drop\ntable=0,prio=1\n");
    folder.file("a-file", "");
    let interface = "[[port]]\nnumber = 1\nname = \"wan\"\ninterface = \"nosuch0\"\n";
    let receive = "[[port]]\nnumber = 1\nname = \"in\"\ntype = \"pcap\"\nreceive = \"a-file\"\n";
    for (keys, ports, message) in [
        (
            "",
            interface,
            "error: port wan: no network interface `nosuch0`".to_owned(),
        ),
        (
            "",
            receive,
            format!("error: port in: {}", folder.path("a-file")),
        ),
        (
            "flows = \"bad.flows\"",
            "",
            format!("error: {}:2:9: ", folder.path("bad.flows")),
        ),
        (
            "flows = \"no.flows\"",
            "",
            format!(
                "error: {}: No such file or directory",
                folder.path("no.flows")
            ),
        ),
        (
            "cpus = [1023]",
            "",
            "error: worker 0 cannot start: ".to_owned(),
        ),
    ] {
        let file = configuration(&folder, keys, ports);
        run(&format!("switch run {file}"))
            .exits(2)
            .complains(&message);
    }
    let file = folder.file("br1.toml", "[switch]\nrun-dir = \"a-file/run\"\n");
    run(&format!("switch run {file}")).exits(2).complains(&format!(
        "error: {}: the folder of sockets cannot be made: Not a directory (os error 20); choose \
         another one (`run-dir`)\n",
        folder.path("a-file/run")
    ));
    let file = configuration(&folder, "wokers = 2", "");
    run(&format!("switch run {file}"))
        .exits(2)
        .complains("error: unknown key `wokers` in `[switch]`\n")
        .complains("br0.toml:3:1\n");
    for (options, message) in [
        (
            "--port nosuch0",
            "error: port nosuch0: no network interface `nosuch0`",
        ),
        ("--port eth0 --port eth0", "is used twice"),
        ("--tap a-name-of-18-bytes", "expected"),
        ("-C tls:c:6653", "expected `ssl:HOST:PORT`"),
        ("--private-key k.pem", "--certificate <FILE>"),
        ("--workers 0", "expected"),
        ("-p no.flows", "no.flows: No such file or directory"),
    ] {
        let run_dir = folder.path("run");
        run(&format!("switch run {options} --run-dir {run_dir}"))
            .exits(2)
            .complains(message);
    }
    run(&format!("switch run {file} --port eth0"))
        .exits(2)
        .complains("cannot be used with");
}

/// Without ports, a switch waits for `add-port`.
#[test]
fn options_take_the_place_of_a_file() {
    let folder = Folder::new();
    let run_dir = folder.path("run");
    let flows = folder.file("f.flows", "actions=drop\n");
    let socket = folder.path("socket");
    let options =
        format!("--name sw7 --workers 2 -p {flows} --listen unix:{socket} --run-dir {run_dir}");
    let running = Background::switch(&options);
    let ready = format!(
        "note: switch `sw7` with 0 ports is ready; OpenFlow on unix:{run_dir}/sw7.mgmt, \
         unix:{socket}\n"
    );
    assert_eq!(running.log(), ready);
    let status = switch(&folder, "show --format json").exits(0).json();
    assert_eq!(status["workers"].as_array().unwrap().len(), 2);
    switch(&folder, "dump")
        .exits(0)
        .prints("table=0,priority=32768 actions=drop\n");
    switch(&folder, "reload")
        .exits(2)
        .complains("error: switch `sw7`: the switch was started without a configuration file\n");
    switch(&folder, "add-port p1 --number 1 --type memory").exits(0);
    // A switch may be quiet.
    let quiet = format!("switch run --quiet --name quiet --run-dir {run_dir}");
    let quiet = Background::start(&quiet);
    wait("control socket", || {
        (switch(&folder, "show quiet").code == 0).then_some(())
    });
    switch(&folder, "stop quiet").exits(0);
    assert_eq!(quiet.log(), "");
    quiet.ends_well();
    running.signal(Signal::TERM);
    running.ends_well();
    assert!(!folder.has("socket"));
}

#[test]
fn ovs_ofctl_finds_the_switch_by_name() {
    if Command::new("ovs-ofctl").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED ovs_ofctl_finds_the_switch_by_name: no ovs-ofctl (package \
             openvswitch-common)"
        );
        return;
    }
    let folder = Folder::new();
    folder.file("br0.flows", "priority=5,in_port=1 actions=output:2\n");
    let file = configuration(&folder, "flows = \"br0.flows\"", &(memory(1) + &memory(2)));
    let running = Background::switch(&file);
    let ofctl = |command: &str| {
        let output = Command::new("ovs-ofctl")
            .args(["-O", "OpenFlow13", "--no-names", "--no-stats"])
            .args(command.split_ascii_whitespace())
            .env("OVS_RUNDIR", folder.path("run"))
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        ofctl("dump-flows br0").trim(),
        "priority=5,in_port=1 actions=output:2"
    );
    ofctl("add-flow br0 priority=6,in_port=2,actions=output:1");
    switch(&folder, "dump")
        .exits(0)
        .prints("table=0,priority=6,in_port=2 actions=output:1\n");
    drop(running);
}
