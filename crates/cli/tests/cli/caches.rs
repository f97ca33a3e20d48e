//! Flow caches of `replay` and `trace`: they do not change results, and their work
//! is reported.

use serde_json::Value;

use crate::support::run;

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
        ] {
            let with = report(&format!("--cache {kind} {size} --always-cache"));
            for part in ["tables", "flows", "groups", "meters", "ports", "controller"] {
                assert_eq!(with[part], without[part], "{kind} {size}: {part}");
            }
        }
    }
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
