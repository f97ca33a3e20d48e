//! Rules, headers and updates that are hard for classifiers.

use crate::support::{Folder, run};

const SETS: [&str; 7] = [
    "overlapping",
    "ranges",
    "wildcards",
    "nested-prefixes",
    "alike",
    "one-bucket",
    "corners",
];

#[test]
fn every_set_is_generated_and_read_again() {
    let folder = Folder::new();
    for set in SETS {
        let file = folder.path("rules");
        run(&format!("generate --hostile {set} -n 200 -o {file}"))
            .exits(0)
            .complains("200 rules generated");
        let report = run(&format!("inspect {file} --no-engines --format json -q"));
        assert_eq!(report.exits(0).json()["rules"], 200, "{set}");
    }
    run("generate --hostile nest -n 10")
        .exits(2)
        .complains("did you mean `nested-prefixes`?");
    run("generate --hostile nested-prefixes --profile acl1 -n 10").exits(2);
}

#[test]
fn engines_agree_on_all_sets() {
    let report = run("check --hostile all --sizes 150 --updates 200 -n 500 --format json");
    let report = report.exits(0).json();
    assert_eq!(report["equal"], true);
    assert_eq!(report["cases"].as_array().unwrap().len(), SETS.len());
    run("check --hostile corner")
        .exits(2)
        .complains("did you mean `corners`?");
}

#[test]
fn headers_are_made_that_are_hard_for_an_engine() {
    let folder = Folder::new();
    let rules = folder.path("rules");
    run(&format!(
        "generate --hostile nested-prefixes -n 300 -o {rules}"
    ))
    .exits(0);
    for kind in ["worst", "one-bucket"] {
        let arguments = format!(
            "generate trace -r {rules} --kind {kind} --engine forest --candidates 200 -n 50"
        );
        let made = run(&arguments).exits(0);
        assert_eq!(made.lines().len(), 50);
        assert_eq!(run(&arguments).stdout, made.stdout);
    }
    run(&format!(
        "generate trace -r {rules} --kind worst --candidates 0"
    ))
    .exits(2)
    .complains("the number of candidates is 0");
}

#[test]
fn the_worst_cases_stand_beside_the_friendly_one() {
    let arguments = "bench --hostile nested-prefixes,ranges --sizes 200 --profiles acl1 --quick \
        --headers 300 --changes 100 -e linear,forest";
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    let lookups = report["lookups"].as_array().unwrap();
    // Friendly rules with one kind of headers, two hostile sets with five kinds; two
    // engines.
    assert_eq!(lookups.len(), 2 * (1 + 2 * 5));
    for row in lookups {
        assert_eq!(row["wrong"], 0, "{row}");
        assert!(row["batch_ns"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["compared"]["worst"].is_u64(), "{row}");
        assert_eq!(row["ratios"].is_null(), row["friendly"] == true, "{row}");
    }
    let updates = report["updates"].as_array().unwrap();
    // A shuffled list over three sets, and five lists; two engines.
    assert_eq!(updates.len(), 2 * (3 + 5));
    for row in updates {
        assert_eq!(row["wrong"], 0, "{row}");
        let time = |name: &str| row[name].as_f64().unwrap();
        assert!(time("mean_ns") <= time("max_ns"), "{row}");
        assert!(time("p999_ns") <= time("max_ns"), "{row}");
        assert!(time("bytes_over_fresh") > 0.0, "{row}");
    }
    run(arguments)
        .exits(0)
        .prints("nested-prefixes 200")
        .prints("longer-runs")
        .prints("divided by the geometric mean of the friendly sets");
    let csv = run(&format!("{arguments} --format csv")).exits(0);
    let lines = csv.lines();
    assert_eq!(lines.len(), 1 + lookups.len() + updates.len());
    assert_eq!(csv.csv().len(), lines.len());
    run("bench --hostile nest --sizes 100")
        .exits(2)
        .complains("did you mean `nested-prefixes`?");
    run("bench --hostile nested-prefixes --updates").exits(2);
}
