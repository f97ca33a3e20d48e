//! `classify` on the embedded example and on files.

use std::fmt::Write as _;
use std::fs;

use classyard::{Policy, PolicyTrace};
use classyard_workload::capture::{self, read_capture_file};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{read_policy_file, read_trace_file};

use crate::support::{Folder, RULES, TRACE, example, program, run, run_with, words};

/// Returns the winners that a scan of all rules finds.
fn scanned(policy: &Policy, trace: &PolicyTrace) -> Vec<String> {
    let winner = |(part, key): (_, &[u64])| {
        let winner = policy.part(part).scan(key);
        let position = winner.rule().and_then(|id| policy.position(id));
        position.map_or("-".to_owned(), |position| position.to_string())
    };
    trace.iter().map(winner).collect()
}

fn policy(path: &str) -> Policy {
    let options = ReadOptions::default();
    read_policy_file(path.as_ref(), None, None, &options)
        .expect("the rules are good")
        .value
}

/// Replaces figures that differ from run to run, or that a better engine would
/// change.
fn masked(report: &str) -> String {
    let mut text = String::new();
    let mut masking = false;
    for line in report.lines() {
        masking = match line.split_ascii_whitespace().next() {
            Some("Engine" | "Rate") => true,
            Some(_) if line.starts_with("      ") => masking,
            _ => false,
        };
        match line.split_ascii_whitespace().next() {
            Some(label @ ("Engine" | "Rate")) => {
                let _ = writeln!(text, " {label} (masked)");
            }
            _ if masking => {}
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

#[test]
fn the_embedded_example_has_the_known_report() {
    let run = run("classify").exits(0).silent();
    assert!(run.stdout.contains(" Engine     forest by default: "));
    assert!(run.stdout.contains(" headers/s, "));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/golden/classify.txt");
    let found = masked(&run.stdout);
    // CLASSYARD_GOLDEN=write accepts the new report as the expected one.
    if std::env::var_os("CLASSYARD_GOLDEN").is_some_and(|word| word == "write") {
        fs::write(path, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(path).unwrap());
}

#[test]
fn the_json_report_has_its_keys_and_the_figures_of_the_example() {
    let report = run("classify --format json").exits(0).silent().json();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let known = [
        "actions",
        "engine",
        "hits",
        "input",
        "misses",
        "never_hit",
        "rate",
        "rules",
        "rules_hit",
        "seconds",
    ];
    for key in known {
        assert!(
            keys.iter().any(|found| *found == key),
            "no {key} in {keys:?}"
        );
    }
    // The figures are from the example's own description.
    let action = |name: &str| {
        let actions = report["actions"].as_array().unwrap();
        let row = actions.iter().find(|row| row["action"] == name).unwrap();
        ["rules", "rules_hit", "headers"].map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(action("allow"), [80, 73, 1335]);
    assert_eq!(action("drop"), [42, 15, 297]);
    assert_eq!(action("log"), [15, 14, 283]);
    assert_eq!(action("reject"), [11, 9, 12]);
    assert_eq!(report["rules"]["count"], 148);
    assert_eq!(report["input"]["packets"]["count"], 1988);
    assert_eq!(report["input"]["headers"], 1927);
    assert_eq!(report["never_hit"]["count"], 37);
    assert_eq!(report["rules_hit"], 111);
    assert_eq!(report["hits"].as_array().unwrap().len(), 111);
    let first = &report["hits"][0];
    assert_eq!(
        (&first["rule"], &first["name"], &first["headers"]),
        (&147.into(), &"default".into(), &253.into())
    );
    for key in ["id", "action", "priority", "match", "bytes", "share"] {
        assert!(first.get(key).is_some(), "a hit without {key}");
    }
    assert_eq!(report["misses"]["headers"], 0);
    let rate = &report["rate"]["headers_per_second"];
    for key in ["min", "median", "max"] {
        assert!(rate[key].as_f64().unwrap() > 0.0);
    }
    let left = &report["input"]["packets"]["without_header"][0];
    assert_eq!(
        (&left["name"], &left["packets"]),
        (&"arp".into(), &61.into())
    );
}

#[test]
fn csv_has_a_row_for_each_rule_that_was_hit() {
    let run = run("classify --format csv").exits(0).silent();
    let lines = run.lines();
    assert_eq!(
        lines[0],
        "rule,id,name,action,priority,match,headers,bytes,share,line"
    );
    assert_eq!(lines.len(), 112);
    assert!(
        lines[1].starts_with("147,147,default,drop,1,any,253,39893,0.1312"),
        "{}",
        lines[1]
    );
}

#[test]
fn winners_of_a_capture_are_those_of_a_scan() {
    let (rules, packets) = (example("office.rules"), example("office.pcap"));
    let policy = policy(&rules);
    let capture = read_capture_file(&packets, &capture::ReadOptions::default()).unwrap();
    let headers = capture.classify_input(policy.schemas()).unwrap();
    let mut expected = vec!["x".to_owned(); capture.packets().len()];
    let winners = scanned(&policy, &headers.trace);
    for (packet, winner) in headers.packet_of.iter().zip(winners) {
        expected[*packet as usize] = winner;
    }
    let folder = Folder::new();
    for engine in [
        "linear",
        "tss",
        "tuplemerge:c=2",
        "tuplemerge-offline",
        "tuplemerge-vpp",
        "partition-sort",
        "cut-split",
        "decomposition",
    ] {
        let file = folder.path("winners");
        let arguments = format!(
            "classify -r {rules} -c {packets} -e {engine} --repeat 1 --winners {file} --quiet"
        );
        run(&arguments).exits(0).silent().prints("Never hit");
        let found = folder.read("winners");
        assert!(found.ends_with('\n'));
        assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{engine}");
    }
    // The same packets in another format; to standard output, without a report.
    let pcapng = example("office.pcapng.gz");
    let run = run(&format!("classify -r {rules} -c {pcapng} --winners -")).exits(0);
    assert_eq!(run.lines(), expected);
}

#[test]
fn winners_of_a_trace_are_those_of_a_scan() {
    let folder = Folder::new();
    let (rules, trace) = (folder.path("rules"), folder.path("trace"));
    run(&format!("generate --profile acl1 -n 2k -o {rules} -q")).exits(0);
    run(&format!(
        "generate trace -r {rules} -k corners -n 4k -o {trace} -q"
    ))
    .exits(0);
    let policy = policy(&rules);
    let headers = read_trace_file(trace.as_ref(), None, false, &ReadOptions::default()).unwrap();
    let expected = scanned(&policy, &headers.value.headers);
    assert!(
        expected.contains(&"-".to_owned()),
        "some headers should miss"
    );
    let run = run(&format!(
        "classify -r {rules} -t {trace} --winners - --repeat 1 -q"
    ));
    assert_eq!(run.exits(0).lines(), expected);
}

#[test]
fn files_may_be_packed_or_come_on_standard_input() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let expected = "0\n1\n-\n2\n";
    let plain = run(&format!("classify -r {rules} -t {trace} --winners -"));
    assert_eq!(plain.exits(0).stdout, expected);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, RULES.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let gzip = folder.file("rules.gz", &packed);
    let unpacked = run(&format!("classify -r {gzip} -t {trace} --winners -"));
    assert_eq!(unpacked.exits(0).stdout, expected);
    for input in [RULES.as_bytes(), &packed] {
        let arguments = format!("classify -r - -t {trace} --winners -");
        let run = run_with(&words(&arguments), input);
        assert_eq!(run.exits(0).stdout, expected);
    }
    let run = run_with(
        &words(&format!("classify -r {rules} -t - --winners -")),
        TRACE.as_bytes(),
    );
    assert_eq!(run.exits(0).stdout, expected);
}

#[test]
fn a_report_on_a_trace_speaks_of_headers_and_misses() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let arguments = format!("classify -r {rules} -t {trace} --repeat 2");
    let table = run(&arguments).exits(0).silent();
    let table = table
        .prints("4 headers from")
        .prints("no rule matches")
        .prints("every rule was hit");
    assert!(!table.stdout.contains("bytes\n"), "{}", table.stdout);
    let report = run(&format!("{arguments} --format json")).json();
    assert_eq!(report["misses"]["headers"], 1);
    assert_eq!(report["misses"]["share"], 0.25);
    assert_eq!(report["rate"]["passes"], 2);
    assert_eq!(report["input"]["kind"], "trace");
    assert!(report["hits"][0].get("bytes").is_none());
    assert_eq!(report["never_hit"]["rules"].as_array().unwrap().len(), 0);
}

#[test]
fn top_and_all_choose_what_is_listed() {
    let rows = |flag: &str| {
        let report = run(&format!("classify --format json {flag}")).json();
        report["hits"].as_array().unwrap().len()
    };
    assert_eq!(
        (rows("--top 0"), rows("--top 3"), rows("--all")),
        (0, 3, 111)
    );
    run("classify --all").exits(0).prints("bogon6-6bone");
    run("classify --top 5")
        .exits(0)
        .prints("and 106 more rules");
    run("classify --top 5 --all")
        .exits(2)
        .complains("cannot be used with");
}

#[test]
fn output_that_is_read_in_part_is_no_error() {
    let mut child = program()
        .args(["classify", "--all"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_empty_trace_is_no_trouble() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", ""));
    run(&format!("classify -r {rules} -t {trace}"))
        .exits(0)
        .prints("0 headers");
    let winners = run(&format!("classify -r {rules} -t {trace} --winners -"));
    assert_eq!(winners.exits(0).stdout, "");
}

#[test]
fn a_cut_off_capture_gives_what_was_readable_and_a_warning() {
    let bytes = fs::read(example("office.pcap")).unwrap();
    let folder = Folder::new();
    let cut = folder.file("cut.pcap", &bytes[..10_000]);
    let rules = example("office.rules");
    let run = run(&format!("classify -r {rules} -c {cut} --format json"));
    let run = run
        .exits(0)
        .complains("warning")
        .complains("the file ends inside");
    let packets = run.json()["input"]["packets"]["count"].as_u64().unwrap();
    assert!((10..1988).contains(&packets), "{packets}");
}

/// Returns a capture of these Ethernet frames.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        for word in [0, 0, length, length] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn frames_that_end_inside_a_vlan_tag_are_counted_as_such() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let mut frames = Vec::new();
    for tags in [
        &[[0x81, 0, 0, 5]][..],
        &[[0x88, 0xa8, 0, 5], [0x81, 0, 0, 6]],
        &[[0x91, 0, 0, 5], [0x81, 0, 0, 6], [0x81, 0, 0, 7]],
    ] {
        // Ends right after the last tag's own EtherType, and inside the tag.
        for cut in [0, 1, 2, 3] {
            let mut frame: Vec<u8> = addresses.to_vec();
            frame.extend(tags.iter().flatten());
            frame.extend([0x08, 0x00]);
            frame.truncate(frame.len() - 4 + cut);
            frames.push(frame);
        }
    }
    let packets = folder.file("cut.pcap", pcap(&frames));
    let arguments = format!("classify {rules} -c {packets} --repeat 1");
    let report = run(&format!("{arguments} --format json")).exits(2).json();
    let counters = report["input"]["packets"]["counters"].as_array().unwrap();
    let count = |name: &str| {
        let found = counters.iter().find(|counter| counter["name"] == name);
        found.map_or(0, |counter| counter["packets"].as_u64().unwrap())
    };
    assert_eq!((count("packets"), count("truncated-vlan")), (12, 12));
    assert_eq!(count("truncated-ethernet"), 0);
    let run = run(&arguments).exits(2).prints("odd: 12 truncated-vlan");
    run.complains("has a header for these rules: 12 unreadable");
}
