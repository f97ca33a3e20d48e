//! `reproduce tm19 --section 5` with Open vSwitch. A small script replaces the program that
//! measures it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Run, run};

/// Replies like `bench/peers/ovs/run`, for 600 packets.
const FAKE: &str = r#"#!/bin/sh
echo "$@" > "$0.arguments"
for folder in "$@"; do :; done
echo '{"peer": "open-vswitch", "protocol": 1, "version": "Fake 7", "max_packets": 1000}'
while read -r command; do
    echo "$command" >> "$0.commands"
    case "$command" in
    load)
        cp "$folder/pipeline" "$0.pipeline"
        wc -c < "$folder/capture" > "$0.bytes"
        echo '{"packets": 600, "distinct": 9, "load_seconds": 0.5, "settled_seconds": null, "counts": null}' ;;
    turn)
        echo '{"packets_per_second": 2000, "clocks_per_packet": 9, "emc_share": 0.25, "megaflow_share": 0.75, "lookups_per_hit": 3.5, "upcalls_per_second": 0.0, "megaflows": 40}' ;;
    unload) echo '{}' ;;
    esac
done
"#;

const COMMAND: &str = "reproduce tm19 --section 5 --quick --headers 600";

/// Runs the figures of Open vSwitch with the fake program, after replacing some of its text.
fn run_with_fake(folder: &Folder, change: (&str, &str), more: &str) -> Run {
    assert!(FAKE.contains(change.0));
    let fake = folder.script("fake", &FAKE.replacen(change.0, change.1, 1));
    let out = folder.path("figures");
    let figures = "--figures pipeline-frameworks,pipeline-seeds";
    run(&format!(
        "{COMMAND} {figures} --open-vswitch {fake}:settle=1,seconds=2 --out {out} {more}"
    ))
}

/// Returns the cases of a claim's comparison.
fn cases(report: &Value, section: usize, claim: usize, part: usize) -> Vec<Value> {
    let claim = &report["sections"][section]["claims"][claim];
    claim["parts"][part]["cases"].as_array().unwrap().clone()
}

#[test]
fn open_vswitch_is_measured_in_turns() {
    let folder = Folder::new();
    let profiles = "--sizes 1k --profiles acl1,acl2,fw1,fw2,ipc1";
    let report = run_with_fake(&folder, ("", ""), &format!("{profiles} --format json"));
    let report = report.exits(0).json();

    // Our engines process more than 2,500 packets a second, and 1k is the only size.
    let real = cases(&report, 0, 0, 0);
    assert_eq!(real.len(), 7);
    assert_eq!(
        (&real[0]["name"], &real[0]["samples"]),
        (&"1k".into(), &5.into())
    );
    assert_eq!(real[0]["outcome"], "holds");
    assert!(real[0]["low"].as_f64().unwrap() > 2.0, "{}", real[0]);
    let left_out = real[1]["measured"].as_str().unwrap();
    assert!(left_out.contains("left out"), "{left_out}");
    // The gap is not small, and 64k rules are not measured.
    assert_eq!(cases(&report, 0, 1, 0)[0]["outcome"], "does not hold");
    assert_eq!(cases(&report, 1, 0, 0).len(), 11);

    let out = folder.path("figures");
    let read = |name: &str| fs::read_to_string(Path::new(&out).join(name)).unwrap();
    let frameworks = read("pipeline-frameworks.csv");
    let row = "1000,synthetic,Open vSwitch (OVS TSS),EMC and megaflows,0.0020";
    assert!(frameworks.contains(row), "{frameworks}");
    let seeds = read("pipeline-seeds.csv");
    assert_eq!(seeds.matches("Open vSwitch").count(), 5 * 2, "{seeds}");
    let switch = read("pipeline-open-vswitch.csv");
    assert_eq!(switch.lines().count(), 1 + 5 * 2, "{switch}");
    let row = switch.lines().nth(1).unwrap();
    assert!(row.starts_with("acl1,1000,synthetic,"), "{row}");
    assert!(
        row.ends_with(",2000,0.2500,0.7500,3.50,0,40,0.50,,"),
        "{row}"
    );
    assert!(read("report.html").contains("Fake 7 is measured in the same turns"));

    // Each of five rule sets has two workloads of five turns.
    let arguments = folder.read("fake.arguments");
    assert!(
        arguments.starts_with("--settle=1 --seconds=2 --commands /"),
        "{arguments}"
    );
    let commands = folder.read("fake.commands");
    let of_workload = "load\nturn\nturn\nturn\nturn\nturn\nunload\n";
    assert_eq!(commands, of_workload.repeat(5 * 2));
    let pipeline = folder.read("fake.pipeline");
    assert!(pipeline.starts_with("table=0,cookie=1,"), "{pipeline}");
    assert!(
        pipeline.ends_with("table=1,in_port=1 actions=output:2\n"),
        "{pipeline}"
    );
    // A file header, and 600 packets of 60 bytes with their headers.
    assert_eq!(
        folder.read("fake.bytes").trim(),
        (24 + 600 * (16 + 60)).to_string()
    );

    // The measurements are kept, and those without Open vSwitch are others.
    run_with_fake(&folder, ("", ""), profiles)
        .exits(0)
        .complains("going on after 10 measurements");
    assert_eq!(folder.read("fake.commands"), of_workload.repeat(5 * 2));
}

#[test]
fn a_program_that_cannot_measure_ends_the_command_first() {
    let hello = r#"echo '{"peer": "open-vswitch", "protocol": 1"#;
    for (change, complaint) in [
        (
            (
                hello,
                r#"echo '{"error": "missing: ovs-vsctl"}'; exit 2; echo '{"#,
            ),
            "missing: ovs-vsctl",
        ),
        (
            (hello, "echo 'the roof fell in' >&2; exit 3; echo '{"),
            "3; the roof fell in",
        ),
        ((hello, r#"echo '{"protocol": 2"#), "protocol 2, not 1"),
        (
            (r#""max_packets": 1000"#, r#""max_packets": 500"#),
            "at most 500 packets, and traces have 600",
        ),
    ] {
        let folder = Folder::new();
        run_with_fake(&folder, change, "--profiles acl1 --sizes 40")
            .exits(2)
            .complains("--open-vswitch ")
            .complains(complaint);
        assert!(!Path::new(&folder.path("figures/report.html")).exists());
        let points = fs::read_to_string(folder.path("figures/points.ndjson"));
        assert!(points.is_err() || points.unwrap().lines().count() == 1);
    }
}

#[test]
fn a_failure_while_measuring_is_reported() {
    for (change, complaint) in [
        (
            (r#""packets": 600"#, r#""packets": 599"#),
            "it read 599 packets of 600",
        ),
        (
            (r#""counts": null"#, r#""counts": {"1": 70000}"#),
            "it counts 70000 packets for entry 1",
        ),
        (
            (r#""counts": null"#, r#""counts": {}"#),
            "of 600 packets are in the count of no entry",
        ),
        (
            (
                r#"echo '{"packets_per_second""#,
                r#"echo '{"error": "no packets came"}'; : '{"#,
            ),
            "no packets came",
        ),
    ] {
        let folder = Folder::new();
        run_with_fake(&folder, change, "--profiles acl1 --sizes 40")
            .exits(2)
            .complains(complaint);
        assert!(!Path::new(&folder.path("figures/report.html")).exists());
    }
}

#[test]
fn open_vswitch_is_for_two_figures_of_section_5() {
    let folder = Folder::new();
    let out = folder.path("figures");
    for (command, complaint) in [
        (
            "tm19 --open-vswitch fake",
            "--open-vswitch is for section 5 of tm19",
        ),
        (
            "tm19 --section 5 --figures pipeline-cache --open-vswitch fake",
            "for the figures pipeline-frameworks and pipeline-seeds",
        ),
        (
            "tm19 --section 5 --open-vswitch /no/such/program",
            "has no program /no/such/program",
        ),
        (
            "tm19 --section 5 --open-vswitch fake:memory",
            "`memory` lacks =VALUE",
        ),
        ("fts25 --open-vswitch fake", "unexpected argument"),
    ] {
        run(&format!("reproduce {command} --out {out}"))
            .exits(2)
            .complains(complaint);
    }
    assert!(!Path::new(&out).exists());
}
