//! `classify` with captures that are longer than the packets held in memory, and
//! with pipes that stay open.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, example, program, run, words};

/// The number of packets in the office capture.
const OFFICE: u64 = 1988;

/// Returns the office capture's file header and its records.
fn office() -> (Vec<u8>, Vec<u8>) {
    let mut header = fs::read(example("office.pcap")).unwrap();
    let records = header.split_off(24);
    (header, records)
}

/// Packs the office capture's packets, repeated `times` times. Concatenated gzip
/// members are one valid file.
fn repeated(folder: &Folder, times: usize) -> String {
    let pack = |bytes: &[u8]| {
        let compression = flate2::Compression::fast();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), compression);
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let (header, records) = office();
    let packed = [pack(&header), pack(&records).repeat(times)].concat();
    folder.file("repeated.pcap.gz", packed)
}

/// Removes from a report what differs from run to run.
fn counts(mut report: Value) -> Value {
    let object = report.as_object_mut().unwrap();
    object.remove("rate");
    object.remove("seconds");
    report
}

#[test]
fn a_long_capture_has_the_counts_of_one_that_is_held() {
    let folder = Folder::new();
    let rules = example("office.rules");
    // More packets than are held together.
    let times = 160;
    let capture = repeated(&folder, times);
    let winners = folder.path("winners");
    // With a seed, because the report includes the size of the engine's index.
    let arguments = format!("classify -r {rules} -c {capture} -e forest:seed=1 --format json");
    let streamed = run(&format!("{arguments} --winners {winners}"))
        .exits(0)
        .silent()
        .json();
    assert_eq!(streamed["rate"]["passes"], 1);
    assert!(
        streamed["rate"]["headers_per_second"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let held = run(&format!("{arguments} --repeat 2")).exits(0).silent();
    let held = held.json();
    assert_eq!(held["rate"]["passes"], 2);
    assert_eq!(counts(streamed.clone()), counts(held));

    let once = run("classify --format json").json();
    let times = times as u64;
    assert_eq!(streamed["input"]["packets"]["count"], OFFICE * times);
    for (hit, single) in [
        (&streamed["hits"], &once["hits"]),
        (&streamed["actions"], &once["actions"]),
        (
            &streamed["input"]["packets"]["counters"],
            &once["input"]["packets"]["counters"],
        ),
    ] {
        let (hit, single) = (hit.as_array().unwrap(), single.as_array().unwrap());
        assert_eq!(hit.len(), single.len());
        for (hit, single) in hit.iter().zip(single) {
            for key in ["headers", "bytes", "packets"] {
                let single = single.get(key).and_then(Value::as_u64);
                let expected = single.map(|single| single * times);
                assert_eq!(hit.get(key).and_then(Value::as_u64), expected);
            }
            assert_eq!(hit.get("rule"), single.get("rule"));
        }
    }

    let single = run(&format!(
        "classify -r {rules} -c {} --winners -",
        example("office.pcap")
    ));
    let expected = single.exits(0).stdout.repeat(160);
    assert!(folder.read("winners") == expected, "winners differ");
    let to_stdout = run(&format!("classify -r {rules} -c {capture} --winners -"));
    assert!(to_stdout.exits(0).stdout == expected, "winners differ");
}

/// Returns the peak memory of a process in KiB.
#[cfg(target_os = "linux")]
fn peak_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

/// The target is 64 MiB beyond the rules for a capture of a gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_from_a_pipe_takes_little_memory() {
    let rules = example("office.rules");
    let (header, records) = office();
    let times = 1_000_000_000 / records.len() + 1;
    for every in [None, Some("--every 50ms")] {
        let arguments = format!(
            "classify -r {rules} -c - --format json {}",
            every.unwrap_or_default()
        );
        let mut child = program()
            .args(words(&arguments))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // A thread has to read the output, or the program would block.
        let reader = std::thread::spawn(move || std::io::read_to_string(&mut stdout).unwrap());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&header).unwrap();
        for _ in 0..times {
            stdin.write_all(&records).unwrap();
        }
        let peak = peak_memory(&child);
        drop(stdin);
        let output = reader.join().unwrap();
        assert!(child.wait().unwrap().success());
        let report: Value = match every {
            None => serde_json::from_str(&output).unwrap(),
            Some(_) => serde_json::from_str(output.lines().last().unwrap()).unwrap(),
        };
        assert_eq!(report["input"]["packets"]["count"], OFFICE * times as u64);
        eprintln!(
            "{times} times {} bytes, {every:?}: {peak} KiB",
            records.len()
        );
        assert!(peak < 64 << 10, "{peak} KiB");
    }
}

/// The program with a pipe that stays open.
struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Live {
    fn start(command: &mut Command) -> Live {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Live {
            child,
            stdin,
            lines,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Reads lines until one satisfies `wanted`.
    fn until(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.next().expect("more lines").unwrap();
            if wanted(&line) {
                return line;
            }
        }
    }
}

#[test]
fn a_pipe_that_stays_open_is_reported_once_in_a_while() {
    let folder = Folder::new();
    let winners = folder.path("winners");
    let rules = example("office.rules");
    let (header, records) = office();
    let arguments =
        format!("classify -r {rules} -c - --every 20ms --format json --top 3 --winners {winners}");
    let mut live = Live::start(program().args(words(&arguments)));
    let packets = |line: &str| {
        let report: Value = serde_json::from_str(line).unwrap();
        assert_eq!(report["interim"], true, "{line}");
        report["packets"].as_u64().unwrap()
    };
    live.write(&header);
    // Reports come even if no packet has arrived.
    live.until(|line| packets(line) == 0);
    live.write(&records);
    // All packets that have arrived are counted, including the last one, and half of
    // a further packet does no harm.
    let line = live.until(|line| packets(line) == OFFICE);
    live.write(&records[..40]);
    let report: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(report["headers"], 1927);
    assert_eq!(report["rules_hit"], 111);
    assert_eq!(report["hits"].as_array().unwrap().len(), 3);
    assert_eq!(report["hits"][0]["headers"], 253);
    assert!(report["seconds"].as_f64().unwrap() >= 0.02);
    assert_eq!(folder.read("winners").lines().count() as u64, OFFICE);
    live.write(&records[40..]);
    live.until(|line| packets(line) == 2 * OFFICE);
    drop(live.stdin.take());
    let last = live.until(|line| !line.contains("\"interim\":true"));
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["input"]["packets"]["count"], 2 * OFFICE);
    assert_eq!(last["never_hit"]["count"], 37);
    assert!(live.lines.next().is_none());
    assert!(live.child.wait().unwrap().success());
}

#[test]
fn reports_for_people_come_once_in_a_while_too() {
    let (header, records) = office();
    let rules = example("office.rules");
    let arguments = format!("classify -r {rules} -c - --every 20ms");
    let mut live = Live::start(program().args(words(&arguments)));
    live.write(&header);
    live.write(&records);
    let line = live.until(|line| line.starts_with(" After") && line.contains("1,988 packets"));
    assert!(line.contains("1,927 of them classified"), "{line}");
    live.until(|line| line.contains("icmp-from-office"));
    drop(live.stdin.take());
    live.until(|line| line.contains("1,988 packets") && line.contains("from standard input"));
    live.until(|line| line.starts_with(" Never hit"));
    assert!(live.child.wait().unwrap().success());
}

#[test]
fn reports_once_in_a_while_are_for_captures() {
    let rules = example("office.rules");
    let capture = example("office.pcap");
    let with = |flags: &str| run(&format!("classify -r {rules} -c {capture} {flags}"));
    with("--every 1s --format csv").exits(2).complains("no CSV");
    with("--every 1s --winners -")
        .exits(2)
        .complains("standard output");
    with("--every 1s --repeat 3").exits(2);
    with("--every 0s").exits(2).complains("10ms to a day");
    with("--every 1h").exits(2);
    run(&format!("classify -r {rules} --every 1s")).exits(2);
    // The end of a file ends the command; its report is the last line.
    let report = with("--every 1m --format json").exits(0).json();
    assert_eq!(report["input"]["packets"]["count"], OFFICE);
    assert!(report.get("interim").is_none());
}

/// Runs a command on a pipe with the office capture repeated `times` times. Returns
/// its peak memory once everything is written, and its report.
#[cfg(target_os = "linux")]
fn peak_of(arguments: &str, times: usize) -> (u64, Value) {
    let (header, records) = office();
    let mut child = program()
        .args(words(arguments))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut stdout).unwrap());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&header).unwrap();
    for _ in 0..times {
        stdin.write_all(&records).unwrap();
    }
    let peak = peak_memory(&child);
    drop(stdin);
    let output = reader.join().unwrap();
    assert!(child.wait().unwrap().success(), "{arguments}");
    (peak, serde_json::from_str(&output).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn replay_and_trace_hold_no_capture() {
    let (_, records) = office();
    let times = 100_000_000 / records.len() + 1;
    let packets = OFFICE * times as u64;
    let flows = example("office.flows");
    let replay = format!("replay -p {flows} -c - --format json");
    // 32 MiB of packets are held to measure the rate.
    for (more, most_kib) in [("--seconds 0", 40 << 10), ("", 80 << 10)] {
        let (peak, report) = peak_of(&format!("{replay} {more}"), times);
        assert_eq!(report["capture"]["packets"], packets);
        eprintln!("replay {more} of {packets} packets: {peak} KiB");
        assert!(peak < most_kib, "{more}: {peak} KiB");
    }
    let trace = format!("trace -p {flows} -c - --format json --packet {packets}");
    let (peak, _) = peak_of(&trace, times);
    eprintln!("trace of packet {packets}: {peak} KiB");
    assert!(peak < 40 << 10, "{peak} KiB");
}
