//! Files that commands write: complete or absent, or ending after a complete
//! record, whatever stops the command.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use classyard_workload::capture::{ReadOptions, read_capture_file};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Folder, example, program, run, words};

/// A short benchmark.
const BENCH: &str = "bench --quick --sizes 20 --profiles acl1 --headers 50";

/// Returns commands that write a complete file to `OUT`, from files of a folder.
fn whole_writers(folder: &Folder) -> Vec<String> {
    let results = folder.path("bench.json");
    run(&format!("{BENCH} --format json -o {results}")).exits(0);
    // A file with comments is not rewritten in its own format.
    let text = fs::read_to_string(example("office.rules")).unwrap();
    let plain_lines = text.lines().filter(|line| !line.starts_with('#'));
    let plain_text = plain_lines.collect::<Vec<_>>().join("\n");
    let rules = folder.file("plain.rules", &plain_text);
    let mut commands = vec![
        format!("plot {results} -o OUT"),
        format!("plot {results} --estimates --output OUT"),
        "inspect --no-engines -o OUT".to_owned(),
        "generate --profile acl1 -n 500 -o OUT".to_owned(),
        "generate trace -n 500 -o OUT".to_owned(),
        format!("convert {rules} OUT --to rules"),
        format!("convert {} OUT --to trace", example("office.pcap")),
        "calibrate --quick --no-engines -o OUT".to_owned(),
        "lint --html OUT".to_owned(),
    ];
    let forms = ["table", "json", "csv"];
    commands.extend(forms.map(|form| format!("{BENCH} --format {form} -o OUT")));
    commands
}

/// Returns commands that write a file record by record to `OUT`.
fn record_writers() -> [String; 3] {
    [
        "classify --winners OUT".to_owned(),
        "classify --fields OUT".to_owned(),
        format!("{BENCH} --format ndjson -o OUT"),
    ]
}

#[test]
fn a_full_disk_is_an_error_of_every_file() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let folder = Folder::new();
    let mut commands = whole_writers(&folder);
    commands.extend(record_writers());
    // The file's name selects packets as the format.
    let capture = folder.path("full.pcap");
    symlink("/dev/full", &capture).unwrap();
    commands.push(format!("generate trace -n 500 -o {capture}"));
    commands.push("classify --action allow --write OUT".to_owned());
    for command in commands {
        let run = run(&command.replace("OUT", "/dev/full")).exits(2);
        let run = run
            .complains("error: ")
            .complains("No space left on device");
        assert!(!run.stderr.contains("wrote"), "{command}: {}", run.stderr);
        assert!(
            !run.stderr.contains("written to"),
            "{command}: {}",
            run.stderr
        );
    }
    let ports = Path::new(&folder.path("ports")).to_owned();
    fs::create_dir(&ports).unwrap();
    symlink("/dev/full", ports.join("port-3.pcap")).unwrap();
    run(&format!("replay --seconds 0 -o {}", ports.display()))
        .exits(2)
        .complains("port-3.pcap: No space left on device");
    whole_captures(&ports, &["port-3.pcap"]);
}

/// Fails the test unless all captures of a folder end after a complete packet.
/// Returns the number of packets in each.
fn whole_captures(folder: &Path, but: &[&str]) -> Vec<(String, usize)> {
    let mut counts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if but.contains(&name.as_str()) {
            continue;
        }
        let capture = read_capture_file(&path, &ReadOptions::default());
        let capture = capture.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(capture.warnings(), [], "{name}");
        counts.push((name, capture.frames().count()));
    }
    counts
}

/// Returns a command whose files are limited to 512 or 1,024 bytes, depending on
/// the shell.
fn limited(arguments: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_classyard");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -f 1; exec {program} {arguments}")])
        .stdin(Stdio::null());
    command
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_file_that_does_not_fit_leaves_the_one_before() {
    let inputs = Folder::new();
    let folder = Folder::new();
    let out = folder.file("out", "before");
    let place = Path::new(&out).parent().unwrap();
    for command in whole_writers(&inputs) {
        let output = limited(&command.replace("OUT", &out)).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("File too large"), "{command}: {said}");
        assert!(!said.contains("wrote"), "{command}: {said}");
        assert_eq!(folder.read("out"), "before", "{command}");
        assert_eq!(names(place), ["out"], "{command}");
    }
    let reproduced = folder.path("reproduced");
    let arguments = "reproduce tm19 --figures tables --sizes 20 --profiles acl1 -o";
    let output = limited(&format!("{arguments} {reproduced}")).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    for name in names(Path::new(&reproduced)) {
        assert!(!name.contains("partial"), "{name}");
        // Measurements are lines, and each line is complete.
        let text = folder.read(&format!("reproduced/{name}"));
        assert!(text.ends_with('\n'), "{name}: {text}");
    }
}

#[test]
fn records_that_fit_are_kept_whole() {
    let folder = Folder::new();
    let out = folder.path("out");
    for command in record_writers() {
        run(&command.replace("OUT", &out)).exits(0);
        let all = folder.read("out");
        let output = limited(&command.replace("OUT", &out)).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("File too large"), "{command}: {said}");
        // A row of a benchmark may be longer than the limit.
        if folder.has("out") {
            let kept = folder.read("out");
            assert!(said.contains("incomplete"), "{command}: {said}");
            assert!(kept.ends_with('\n') && kept.len() < all.len(), "{kept}");
            let is_json = command.contains("ndjson");
            assert!(is_json || all.starts_with(&kept), "{kept}");
        } else {
            assert!(said.contains("removed"), "{command}: {said}");
        }
    }
    let ports = folder.path("ports");
    let output = limited(&format!("replay --seconds 0 -o {ports}")).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    let hits = format!("{ports}/hits.pcap");
    let output = limited(&format!("classify --action allow -w {hits}")).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    assert!(Path::new(&hits).exists());
    let counts = whole_captures(Path::new(&ports), &[]);
    assert!(!counts.is_empty());
    assert!(counts.iter().any(|&(_, packets)| packets > 0), "{counts:?}");
}

fn interrupt(child: &Child) {
    let process = Pid::from_child(child);
    kill_process(process, Signal::INT).unwrap();
}

/// Waits up to a minute for a condition.
#[track_caller]
fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it takes too long"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command on a pipe with the office capture and a part of one more packet,
/// and interrupts it while the pipe is open. Returns its report.
fn interrupted(arguments: &str, is_ready: impl Fn() -> bool) -> Value {
    let bytes = fs::read(example("office.pcap")).unwrap();
    let mut child = program()
        .args(words(arguments))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&bytes).unwrap();
    stdin.write_all(&bytes[24..60]).unwrap();
    wait_for(is_ready);
    // By then the command has read the contents of the pipe.
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert!(!said.contains("ends inside"), "{said}");
    let report = String::from_utf8(output.stdout).unwrap();
    let last = report.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {report}"))
}

#[test]
fn an_interrupted_capture_is_reported_and_its_winners_are_whole() {
    let folder = Folder::new();
    let winners = folder.path("winners");
    let rules = example("office.rules");
    for every in ["", "--every 20ms"] {
        let arguments =
            format!("classify -r {rules} -c - --format ndjson --winners {winners} {every}");
        let report = interrupted(&arguments, || folder.has("winners"));
        let packets = &report["input"]["packets"]["count"];
        assert_eq!(*packets, 1988, "{every}");
        let lines = folder.read("winners").lines().count();
        assert_eq!(*packets, lines, "{every}");
    }
    let single = run(&format!(
        "classify -r {rules} -c {} --winners -",
        example("office.pcap")
    ));
    assert_eq!(single.stdout, folder.read("winners"));
}

#[test]
fn an_interrupted_replay_is_reported_and_its_captures_are_whole() {
    let folder = Folder::new();
    let ports = folder.path("ports");
    let flows = example("office.flows");
    let arguments = format!("replay -p {flows} -c - --format ndjson -o {ports}");
    let report = interrupted(&arguments, || folder.has("ports/port-2.pcap"));
    assert_eq!(report["capture"]["packets"], 1988);
    assert_eq!(report["rate"], Value::Null);
    let counts = whole_captures(Path::new(&ports), &[]);
    for row in report["ports"].as_array().unwrap() {
        let name = format!("port-{}.pcap", row["port"].as_str().unwrap());
        let written = counts.iter().find(|(one, _)| *one == name);
        let written = written.map_or(0, |&(_, packets)| packets);
        assert_eq!(row["sent_packets"], written, "{name}");
    }
    assert!(counts.len() > 3, "{counts:?}");
}

#[test]
fn an_interrupt_leaves_no_half_report_and_keeps_whole_rows() {
    let folder = Folder::new();
    let bench = "bench --profiles acl1,fw1,ipc1 --sizes 1k,2k,4k --repeat 100";
    let report = folder.file("report", "before");
    let place = Path::new(&report).parent().unwrap().to_owned();
    let start = |arguments: &str| {
        let mut command = program();
        command.args(words(arguments)).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    let mut child = start(&format!("{bench} --format json -o {report}"));
    wait_for(|| names(&place).len() == 2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    assert_eq!(folder.read("report"), "before");
    assert_eq!(names(&place), ["report"]);

    let rows = folder.path("rows");
    let bench = "bench --quick --profiles acl1,fw1,ipc1 --sizes 100,200,400,800";
    let mut child = start(&format!("{bench} --format ndjson -o {rows}"));
    wait_for(|| folder.has("rows") && !folder.read("rows").is_empty());
    interrupt(&child);
    child.wait().unwrap();
    let rows = folder.read("rows");
    assert!(rows.ends_with('\n'));
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["wrong"], 0);
    }
}

#[test]
fn special_targets_are_written_directly() {
    let folder = Folder::new();
    let expected = run("generate --profile acl1 -n 50").exits(0).stdout;
    let direct = run("generate --profile acl1 -n 50 -o /dev/stdout").exits(0);
    assert_eq!(direct.stdout, expected);
    run("generate --profile acl1 -n 50 -o /dev/null").exits(0);
    assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    let (target, link) = (folder.file("target", "before"), folder.path("link"));
    symlink(&target, &link).unwrap();
    run(&format!("generate --profile acl1 -n 50 -o {link}")).exits(0);
    assert_eq!(folder.read("target"), expected);
    run("plot nothing.json -o -").exits(2);
    run("generate --profile acl1 -n 50 -o /nowhere/at/all")
        .exits(2)
        .complains("/nowhere/at/all: No such file");
}
