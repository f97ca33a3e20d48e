//! `advise` ranks engines and gives reasons.

use serde_json::Value;

use crate::support::{Folder, run};

fn numbers(row: &Value, names: &[&str]) -> Vec<f64> {
    let number = |name: &&str| {
        row[*name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {row}"))
    };
    names.iter().map(number).collect()
}

#[test]
fn engines_are_ranked_with_reasons() {
    let report = run("advise --format json").exits(0).silent().json();
    assert_eq!(report["machine"]["source"], "default");
    assert_eq!(report["load"]["batch"], 256);
    assert!(report["load"]["lookups_per_update"].is_null());
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    for part in parts {
        let candidates = part["candidates"].as_array().unwrap();
        assert_eq!(part["advice"], candidates[0]["engine"]);
        assert!(part["excluded"].as_array().unwrap().is_empty());
        let plain = classyard::EngineSpec::all().filter(|spec| spec.inner().is_none());
        assert_eq!(candidates.len(), plain.count());
        let mut before = 0.0;
        for row in candidates {
            let names = ["ns", "lookup_ns", "update_ns", "build_seconds", "factor_ns"];
            let [ns, lookup_ns, update_ns, build, factor] = numbers(row, &names)[..] else {
                panic!("{row}");
            };
            assert!(ns >= before && build > 0.0, "{row}");
            assert_eq!((ns, update_ns, factor), (lookup_ns, 0.0, 0.0), "{row}");
            before = ns;
            let parts = ["instructions_ns", "mispredictions_ns", "reads_ns"];
            let sum: f64 = numbers(row, &parts).iter().sum();
            assert!((sum - lookup_ns).abs() < 1e-6, "{row}");
            assert!(row["bytes"].as_u64().unwrap() > 0);
            assert!(row["tried_ns"].is_null());
        }
    }
    run("advise")
        .exits(0)
        .prints("batches of 256 headers, rules do not change, one core")
        .prints("ipv6-5tuple, 54 rules")
        .prints("instructions");
    run("advise --format csv")
        .exits(0)
        .prints("ipv4-5tuple,forest,");
}

/// Engines that take no updates are ranked as `sfl`, with its cost.
#[test]
fn updates_count() {
    let command = "advise --lookups-per-update 2k --batch 1 --cores 2 --format json";
    let report = run(command).exits(0).json();
    assert_eq!(report["load"]["lookups_per_update"], 2000.0);
    let candidates = report["parts"][0]["candidates"].as_array().unwrap();
    let engines: Vec<&str> = candidates
        .iter()
        .map(|row| row["engine"].as_str().unwrap())
        .collect();
    assert!(engines.contains(&"sfl(rfc):lookups=2000"), "{engines:?}");
    assert!(!engines.contains(&"rfc"), "{engines:?}");
    assert!(
        candidates
            .iter()
            .all(|row| row["update_ns"].as_f64().unwrap() > 0.0)
    );
    run("advise --lookups-per-update 2k --batch 1 --cores 2")
        .exits(0)
        .prints("headers one by one, an update after every 2000 lookups, 2 cores");
}

#[test]
fn engines_are_tried_out() {
    let report = run("advise --try 2 --format json").exits(0).json();
    for part in report["parts"].as_array().unwrap() {
        let candidates = part["candidates"].as_array().unwrap();
        let tried = candidates.iter().filter(|row| !row["tried_ns"].is_null());
        let tried: Vec<&Value> = tried.collect();
        assert_eq!(tried.len(), 2);
        assert!(tried.iter().any(|row| row["engine"] == part["advice"]));
    }
}

#[test]
fn limits_exclude() {
    let folder = Folder::new();
    let rules = folder.path("rules");
    run(&format!("generate --profile acl1 --rules 500 -o {rules}")).exits(0);
    let report = run(&format!(
        "advise {rules} --limit-engine-bytes 50k --format json"
    ));
    let report = report.exits(0).json();
    let part = &report["parts"][0];
    let excluded = part["excluded"].as_array().unwrap();
    let reason = |row: &Value| row["reason"].as_str().unwrap().contains("bytes");
    assert!(
        !excluded.is_empty() && excluded.iter().all(reason),
        "{excluded:?}"
    );
    let candidates = part["candidates"].as_array().unwrap();
    assert!(!candidates.is_empty());
    assert!(
        candidates
            .iter()
            .all(|row| row["bytes"].as_u64().unwrap() <= 51_200)
    );
    run(&format!("advise {rules} --limit-engine-bytes 1k"))
        .exits(0)
        .prints("none: no engine is within the limits");
    run(&format!("advise {rules} --try 3 --limit-engine-bytes 1k"))
        .exits(2)
        .complains("limit");
}

#[test]
fn loads_are_checked() {
    for flags in [
        "--batch 0",
        "--cores 0",
        "--lookups-per-update 0",
        "--batch x",
    ] {
        run(&format!("advise {flags}"))
            .exits(2)
            .complains("invalid value");
    }
}

/// `auto` chooses the engine that `advise` ranks first over both parts together, or
/// the next one if that exceeds a limit.
#[test]
fn auto_takes_what_is_advised() {
    let note = "note: auto chooses ";
    let chosen = |arguments: &str| {
        let run = run(&format!("classify --engine auto {arguments} --format json")).exits(0);
        let report = run.json();
        let spec = report["engine"]["spec"].as_str().unwrap();
        let name = spec.split(':').next().unwrap().to_owned();
        run.complains(&format!("{note}{name}"));
        (name, report)
    };
    let (free, report) = chosen("");
    let plain = run("classify --format json").exits(0).json();
    assert_eq!(report["rules"], plain["rules"], "the same winners");
    assert_eq!(report["engine"]["asked_for"], true);
    // The sum over both parts decides.
    let advice = run("advise --format json").exits(0).json();
    let parts = advice["parts"].as_array().unwrap();
    let ns = |engine: &str| {
        let of_part = |part: &Value| {
            let candidates = part["candidates"].as_array().unwrap();
            let row = candidates.iter().find(|row| row["engine"] == engine);
            row.unwrap()["ns"].as_f64().unwrap()
        };
        parts.iter().map(of_part).sum::<f64>()
    };
    let best = ns(&free);
    for row in parts[0]["candidates"].as_array().unwrap() {
        let engine = row["engine"].as_str().unwrap();
        assert!(best <= ns(engine), "{free} was taken, {engine} is better");
    }
    let limit = report["engine"]["parts"][0]["bytes"].as_u64().unwrap() - 1;
    let (limited, report) = chosen(&format!("--limit-engine-bytes {limit}"));
    assert_ne!(limited, free);
    for part in report["engine"]["parts"].as_array().unwrap() {
        assert!(part["bytes"].as_u64().unwrap() <= limit, "{part}");
    }
    run("classify --engine auto --limit-engine-bytes 1K")
        .exits(2)
        .complains("no engine can be built within the limits");
    run("explain -e auto").exits(0).complains(note);
}
