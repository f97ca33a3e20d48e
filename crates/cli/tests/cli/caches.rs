//! Flow caches of `replay` and `trace`: they do not change results, and their work
//! is reported.

use serde_json::Value;

use crate::support::{Folder, run};

#[test]
fn caches_of_every_kind_change_nothing() {
    let report = |caches: &str| {
        let arguments = format!("replay --seconds 0 {caches} --format json");
        run(&arguments).exits(0).json()
    };
    let without = report("--cache none --megaflows 0");
    for kind in ["adaptive", "wef", "cuckoo", "emc", "heavy-hitter", "none"] {
        for size in [
            "--cache-flows 4 --megaflows 6 --masks 2",
            "--cache-flows 1k",
            "--megaflow-engine tuplemerge:c=10",
            "--megaflow-engine sorted-tuples:lambda=2:normalise=3 --masks 4",
        ] {
            let with = report(&format!("--cache {kind} {size} --always-cache"));
            for part in ["tables", "flows", "groups", "meters", "ports", "controller"] {
                assert_eq!(with[part], without[part], "{kind} {size}: {part}");
            }
        }
    }
}

#[test]
fn the_caches_of_a_scheme_change_nothing() {
    let report = |caches: &str| {
        let arguments = format!("replay --seconds 0 {caches} --format json");
        run(&arguments).exits(0).json()
    };
    let without = report("--cache none --megaflows 0");
    for caches in [
        "--caches fasttss",
        "--caches fasttss --cache-flows 4 --megaflows 6 --masks 2 --always-cache",
        "--caches fasttss:threshold=1s:timeout=500ms:kicks=2:latest=64:lambda=12:normalise=9",
    ] {
        let with = report(caches);
        for part in ["tables", "flows", "groups", "meters", "ports", "controller"] {
            assert_eq!(with[part], without[part], "{caches}: {part}");
        }
        assert!(
            with["caches"]["megaflow_hits"].as_u64() > Some(0),
            "{caches}"
        );
    }
}

#[test]
fn bad_options_of_caches_are_explained() {
    for (caches, reasons) in [
        ("--caches fasttss:kick=4", ["has no option `kick`", "kicks"]),
        (
            "--caches fasttss:kicks=99",
            ["expected 0 to 32", "found `99`"],
        ),
        ("--caches fasttss:threshold=256", ["256ms", "found `256`"]),
        (
            "--caches fasttss:lambda=0.5",
            ["lambda", "from 1.001 to 1000"],
        ),
        ("--caches slowtss", ["unknown scheme `slowtss`", "fasttss"]),
        ("--caches fasttss --cache wef", ["--caches", "--cache"]),
        (
            "--caches fasttss --megaflow-engine tss",
            ["--caches", "cannot be used"],
        ),
        (
            "--caches fasttss --megaflows 0",
            ["needs megaflows", "--cache wef"],
        ),
        ("--cache emc:kicks=4", ["`emc` has no options", "kicks"]),
        (
            "--cache wef:lambda=4",
            ["`wef` has no option `lambda`", "threshold"],
        ),
        (
            "--megaflow-engine sorted-tuples:kicks=4",
            ["no option `kicks`", "lambda"],
        ),
    ] {
        for command in ["replay", "trace"] {
            let failed = run(&format!("{command} {caches}")).exits(2);
            let [first, second] = reasons;
            failed.complains(first).complains(second);
        }
    }
    let help = run("replay --help").exits(0);
    let mut help = help.prints("fasttss:threshold=256ms:timeout=1s:kicks=4:lambda=4");
    for option in [
        "threshold",
        "timeout",
        "kicks",
        "latest",
        "lambda",
        "normalise",
    ] {
        help = help.prints(&format!("- {option}: "));
    }
}

/// Returns a pcap file of UDP packets at `step_ms` milliseconds from each other. Their flows
/// take turns.
fn capture(flows: u16, packets: u32, step_ms: u32) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..packets {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1,
        ]);
        let source_port = u16::try_from(number % u32::from(flows)).unwrap();
        frame.extend(source_port.to_be_bytes());
        frame.extend([0, 53, 0, 8, 0, 0]);
        let ms = number * step_ms;
        let length = u32::try_from(frame.len()).unwrap();
        for word in [ms / 1_000, ms % 1_000 * 1_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The hits of a capture are those at its times, for flows that share a wide megaflow.
#[test]
fn hit_rates_are_by_the_clock_of_the_capture() {
    let folder = Folder::new();
    let pipeline = folder.file("one.flows", "priority=0 actions=output:2\n");
    let fast = folder.file("fast.pcap", capture(50, 2_000, 1));
    let slow = folder.file("slow.pcap", capture(50, 500, 100));
    let hits = |capture: &str, caches: &str| {
        let arguments = format!("replay -p {pipeline} -c {capture} {caches} --format json");
        let report = run(&arguments).exits(0).json();
        assert_eq!(report["caches"]["megaflows"], 1, "{caches}");
        assert_eq!(report["caches"]["microflow_bypasses"], 0, "{caches}");
        report["caches"]["microflow_hits"].as_u64().unwrap()
    };
    for caches in [
        "--cache wef:threshold=100ms",
        "--cache cuckoo:threshold=100ms",
        "--caches fasttss:threshold=100ms",
    ] {
        // A flow's packets come after 50 ms. Only its first two miss, and the very first
        // packet is of no megaflow yet.
        for seconds in ["--seconds 0", "--seconds 0.05"] {
            let of_fast = hits(&fast, &format!("{caches} {seconds}"));
            assert!((1_890..=1_900).contains(&of_fast), "{caches}: {of_fast}");
        }
        // A flow's packets come after 5 s.
        assert_eq!(hits(&slow, &format!("{caches} --seconds 0")), 0, "{caches}");
    }
    let of_adaptive = hits(&slow, "--cache adaptive --seconds 0");
    assert!(of_adaptive > 440, "{of_adaptive}");
    // The rate is measured with the times of the capture as well.
    let arguments = format!("replay -p {pipeline} -c {slow} --cache wef:threshold=1ms");
    let measured = run(&format!(
        "{arguments} --seconds 0.05 --always-cache --format json"
    ));
    let rate = measured.exits(0).json()["rate"]["caches"].clone();
    assert!(rate["microflow_lookups"].as_u64() >= Some(500), "{rate}");
    run(&arguments)
        .exits(0)
        .prints("Microflows 0.0 % hits of 500 packets");
}

#[test]
fn every_choice_of_bits_gives_the_same_results() {
    let report = |options: &str| {
        let arguments = format!("replay --seconds 0.1 {options} --format json");
        run(&arguments).exits(0).json()
    };
    let without = report("--cache none --megaflows 0");
    for bits in [
        "auto",
        "naive",
        "common-match",
        "multi-bit",
        "prefix-tree",
        "fewest-masks",
    ] {
        let with = report(&format!(
            "--megaflow-bits {bits} --always-cache --cache none"
        ));
        for part in ["tables", "flows", "groups", "meters", "ports", "controller"] {
            assert_eq!(with[part], without[part], "{bits}: {part}");
        }
        assert!(
            with["rate"]["caches"]["megaflow_hits"].as_u64() > Some(0),
            "{bits}"
        );
    }
    run("replay --megaflow-bits few")
        .exits(2)
        .complains("unknown algorithm `few`")
        .complains("prefix-tree");
}

#[test]
fn what_caches_did_is_told() {
    let rate = |caches: &str| {
        let arguments = format!("replay --seconds 0.1 {caches} --format json");
        run(&arguments).exits(0).json()["rate"]["caches"].clone()
    };
    let caches = rate("--always-cache");
    let count = |key: &str| caches[key].as_u64().unwrap();
    assert!(count("microflow_hits") > count("microflow_lookups") / 10);
    assert!(count("microflow_hits") <= count("microflow_lookups"));
    assert!(count("megaflows") > 0 && count("masks") <= 32);
    assert_eq!(count("microflow_bypasses"), 0);
    assert_eq!(rate("--cache none --always-cache")["microflow_capacity"], 0);
    assert_eq!(rate("--cache none --megaflows 0"), Value::Null);
    run("replay --seconds 0.1")
        .exits(0)
        .prints("Microflows")
        .prints("Megaflows");
    run("replay --cache best")
        .exits(2)
        .complains("unknown cache `best`; expected");
    run("replay --megaflow-engine fastest")
        .exits(2)
        .complains("there is no engine `fastest`")
        .complains("or sorted");
    run("replay --megaflow-engine tuplemerge:c=0")
        .exits(2)
        .complains("c");
    run("trace --megaflow-engine hyper-split")
        .exits(2)
        .complains("hyper-split")
        .complains("tuplemerge");
    run("replay --masks 1").exits(2);
    run("replay --cache-flows 0").exits(2);
}

#[test]
fn a_trace_tells_what_caches_know() {
    // Only the first packet of each flow misses the caches.
    let known = |arguments: &str| {
        let report = run(&format!("trace {arguments} --format json"))
            .exits(0)
            .json();
        report["caches"].clone()
    };
    let first = known("--packet 1");
    assert_eq!(first["megaflow_hit"], false);
    let hits = (1..40).filter(|packet| {
        let caches = known(&format!("--packet {packet}"));
        if caches["microflow_hit"] == true {
            assert_eq!(caches["megaflow_hit"], true);
        }
        caches["megaflow_hit"] == true
    });
    assert!(hits.count() > 5);
    assert_eq!(known("--cache none --megaflows 0"), Value::Null);
    for engine in ["sorted", "tuplemerge", "forest:bucket=4"] {
        run(&format!("trace --megaflow-engine {engine}"))
            .exits(0)
            .prints("Caches")
            .prints("Megaflow");
    }
}

/// A pipeline of a few flows has megaflows for all packets before the first one. The results
/// are those without caches, and no packet passes the tables.
#[test]
fn proactive_megaflows_leave_no_packet_to_the_tables() {
    let folder = Folder::new();
    let pipeline = folder.file(
        "small.flows",
        "table=0,priority=9,tcp,tp_dst=443 actions=goto_table:1\n\
         table=0,priority=5,ip actions=output:2\n\
         table=1,priority=7,ip,nw_src=10.20.0.0/16 actions=mod_nw_dst:10.0.0.1,output:3\n",
    );
    let report = |caches: &str| {
        let arguments = format!("replay -p {pipeline} --seconds 0 {caches} --format json");
        run(&arguments).exits(0).json()
    };
    let without = report("--cache none --megaflows 0");
    let with = report("--proactive --masks 128");
    for part in ["tables", "flows", "ports"] {
        assert_eq!(with[part], without[part], "{part}");
    }
    let caches = &with["caches"];
    assert!(caches["proactive"].as_u64() > Some(20), "{caches}");
    assert_eq!(caches["proactive"], caches["added"]);
    assert_eq!(
        (&caches["by_tables"], &caches["learned"]),
        (&0.into(), &0.into())
    );
    let table = run(&format!(
        "replay -p {pipeline} --seconds 0 --proactive --masks 128"
    ));
    table.exits(0).prints("stored before the first packet");

    for (caches, reason, help) in [
        (
            "--proactive",
            "masks; the cache has room for 31 masks",
            "--masks COUNT, up to 128",
        ),
        (
            "--proactive=20",
            "more than 20 entries, its limit",
            "--proactive=COUNT",
        ),
        (
            "--proactive --masks 128 --megaflows 20",
            "room for 20 megaflows",
            "--megaflows COUNT",
        ),
        (
            "--proactive --megaflows 0",
            "--megaflows is 0",
            "omit --megaflows",
        ),
        ("--proactive=0", "expected 1 to 8388608", "--proactive"),
    ] {
        let failed = run(&format!("replay -p {pipeline} --seconds 0 {caches}")).exits(2);
        failed.complains(reason).complains(help);
    }
}
