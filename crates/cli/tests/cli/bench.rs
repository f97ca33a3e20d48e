//! `bench` with updates, and with peers. A small script replaces an external
//! classifier, so that nothing needs to be installed; if the real one is built, it
//! is tested as well.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, RULES, Run, TRACE, program, run, run_with, words};

/// Answers correctly for the rules and the trace of the support module.
const FAKE: &str = r#"#!/bin/sh
echo "$@" > "$0.arguments"
echo '{"peer": "fake", "version": "fake 1", "protocol": 1, "algorithms": ["one", "two"]}'
while read -r command algorithm last; do
    case "$command" in
    build) echo '{"cpu_seconds": 0.5, "wall_seconds": 0.5}' ;;
    stats) echo '{"bytes": 300, "index_bytes": null, "tables": 2}' ;;
    pass)
        case "$algorithm" in
        one) echo '{"headers": 4, "cpu_seconds": 0.001, "wall_seconds": 0.001}' ;;
        two) echo '{"headers": 4, "cpu_seconds": 0.002, "wall_seconds": 0.002}' ;;
        esac ;;
    winners)
        printf '\001\000\000\000\002\000\000\000\000\000\000\000\003\000\000\000' > "$last"
        echo '{"headers": 4}' ;;
    esac
done
"#;

/// Rules, a trace and a fake peer.
struct Scene {
    folder: Folder,
    arguments: String,
}

impl Scene {
    /// Creates a scene with the fake peer, after replacing some of its text.
    fn new(change: (&str, &str)) -> Scene {
        assert!(FAKE.contains(change.0));
        let folder = Folder::new();
        let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
        folder.script("fake", &FAKE.replacen(change.0, change.1, 1));
        let arguments = format!("bench -r {rules} -t {trace} -e linear,tuplemerge --repeat 2");
        Scene { folder, arguments }
    }

    fn run(&self, more: &str) -> Run {
        let fake = self.folder.path("fake");
        run(&format!("{} --peer fake={fake} {more}", self.arguments))
    }

    /// Returns the JSON rows; the run has to succeed.
    fn rows(&self, more: &str) -> Vec<Value> {
        let report = self.run(&format!("{more} --format json")).exits(0).json();
        report.as_array().unwrap().clone()
    }
}

/// Returns a scene with the unchanged fake peer.
fn scene() -> Scene {
    Scene::new(("", ""))
}

#[test]
fn peers_stand_beside_engines() {
    let rows = scene().rows("");
    let engines: Vec<_> = rows
        .iter()
        .map(|row| row["engine"].as_str().unwrap())
        .collect();
    assert_eq!(engines, ["linear", "tuplemerge", "fake:one", "fake:two"]);
    assert!(rows.iter().all(|row| row["wrong"] == 0));
    assert_eq!(rows[0]["peer"], Value::Null);
    let one = &rows[2];
    assert_eq!(one["batch_headers_per_second"]["median"], 4000.0);
    assert_eq!(one["single_headers_per_second"]["median"], 4000.0);
    assert_eq!(one["updates_per_second"], Value::Null);
    assert_eq!((&one["bytes"], &one["tables"]), (&300.into(), &2.into()));
    assert_eq!(one["index_bytes"], Value::Null);
    assert_eq!(one["build_seconds"], 0.5);
    let peer = &one["peer"];
    assert_eq!(
        (&peer["name"], &peer["version"]),
        (&"fake".into(), &"fake 1".into())
    );
    assert_eq!(
        (&peer["algorithm"], &peer["best"]),
        (&"one".into(), &true.into())
    );
    assert_eq!(rows[3]["peer"]["best"], false);
}

#[test]
fn single_updates_are_timed() {
    let measure = "bench --quick --profiles acl1 --sizes 200 -e tuplemerge,linear";
    for row in run(&format!("{measure} --format json"))
        .exits(0)
        .json()
        .as_array()
        .unwrap()
    {
        assert_eq!(row["update_seconds"], Value::Null);
        assert_eq!(row["update_wall_seconds"], Value::Null);
    }
    let updates = format!("{measure} --updates");
    let report = run(&format!("{updates} --format json")).exits(0).json();
    for row in report.as_array().unwrap() {
        assert_eq!(row["wrong"], 0);
        assert!(row["updates_per_second"]["median"].as_f64() > Some(0.0));
        for times in ["update_seconds", "update_wall_seconds"] {
            let at = |name: &str| row[times][name].as_f64().unwrap();
            let values = ["p50", "p99", "p999", "max"].map(at);
            assert!(values.is_sorted(), "{row}");
            // No update of 200 rules takes a second of CPU time.
            assert!(
                values[3] > 0.0 && (values[3] < 1.0 || times != "update_seconds"),
                "{row}"
            );
        }
    }
    run(&updates)
        .exits(0)
        .prints("one us p99.9")
        .prints("one: a single update");
    let csv = run(&format!("{updates} --format csv")).exits(0);
    let columns = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let lines = csv.lines();
    let place = columns(lines[0])
        .iter()
        .position(|name| name == "update_seconds_max")
        .unwrap();
    let longest: f64 = columns(lines[1])[place].parse().unwrap();
    assert!(longest > 0.0);
}

#[test]
fn engines_are_held_against_the_best() {
    scene()
        .run("")
        .exits(0)
        .prints("fake:one (best)")
        .prints("best of fake")
        .prints("tuplemerge / best of fake, batches, 3: geometric mean");
    let csv = scene().run("--format csv").exits(0);
    let rows = csv.csv();
    let place = rows[0].iter().position(|name| name == "wrong").unwrap();
    let cells = |row: usize| rows[row][place..place + 4].to_vec();
    assert_eq!(cells(0), ["wrong", "peer", "best_of_peer", "failed"]);
    assert_eq!(cells(1), ["0", "", "", ""]);
    assert_eq!(cells(3), ["0", "fake", "true", ""]);
}

#[test]
fn options_are_handed_on() {
    let scene = scene();
    let fake = scene.folder.path("fake");
    let arguments = format!(
        "{} --peer fake={fake}:a=1,b=2 --format json",
        scene.arguments
    );
    let report = run(&arguments).exits(0).json();
    assert_eq!(report[2]["engine"], "fake:one,a=1,b=2");
    assert_eq!(report[2]["peer"]["options"][1], "b=2");
    let given = scene.folder.read("fake.arguments");
    assert!(given.starts_with("--a=1 --b=2 /"), "{given}");
}

#[test]
fn wrong_answers_are_found() {
    // Reports the third rule for a header that no rule matches.
    let scene = Scene::new((r"\000\000\000\000\003", r"\003\000\000\000\003"));
    let run = scene.run("--format json").exits(1);
    let rows = run.json();
    assert_eq!(
        (&rows[1]["wrong"], &rows[2]["wrong"]),
        (&0.into(), &1.into())
    );
    assert_eq!(
        rows[2]["peer"]["best"], false,
        "wrong answers are not the best"
    );
}

/// Returns the reason for the failure of the peer's first row, and the number of
/// engine rows.
fn reason(scene: &Scene, more: &str) -> String {
    let rows = scene.rows(more);
    assert!(rows.iter().filter(|row| row["wrong"] == 0).count() >= 2);
    let failed = rows[2]["failed"].as_str();
    failed.unwrap_or_else(|| panic!("{rows:?}")).to_owned()
}

#[test]
fn a_build_that_fails_is_reported() {
    let scene = Scene::new((
        r#"echo '{"cpu_seconds": 0.5, "wall_seconds": 0.5}'"#,
        r#"echo '{"error": "too many nodes"}'"#,
    ));
    assert_eq!(reason(&scene, ""), "too many nodes");
    let rows = scene.rows("");
    assert_eq!((rows.len(), &rows[2]["engine"]), (3, &"fake".into()));
    let table = scene.run("").exits(0).prints("fails on");
    table.prints(": too many nodes");
    let csv = scene.run("--format csv").exits(0);
    let rows = csv.csv();
    let place = rows[0].iter().position(|name| name == "peer").unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last[place..place + 3], ["fake", "", "too many nodes"]);
}

#[test]
fn a_program_that_ends_is_reported() {
    let scene = Scene::new((
        r#"two) echo '{"headers": 4, "cpu_seconds": 0.002, "wall_seconds": 0.002}'"#,
        r#"two) echo "the roof fell in" >&2; exit 3"#,
    ));
    let rows = scene.rows("");
    // The program has ended, so all its rows fail.
    for row in &rows[2..] {
        let reason = row["failed"].as_str().unwrap();
        assert!(reason.contains("during `pass two 256`"), "{reason}");
        assert!(reason.contains("3; the roof fell in"), "{reason}");
    }
    assert_eq!(
        (&rows[0]["wrong"], &rows[1]["wrong"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    let scene = Scene::new(("build) ", "build) exec sleep 60; "));
    assert_eq!(
        reason(&scene, "--peer-limit 1"),
        "`build` took more than 1 s"
    );
}

#[test]
fn nonsense_is_reported() {
    let no_json = Scene::new(("echo '{\"bytes\"", "echo '[\"bytes\""));
    assert!(reason(&no_json, "").contains("not JSON"));
    let lacks = Scene::new(("echo '{\"headers\": 4}'", "echo '{}'"));
    assert!(reason(&lacks, "").contains("missing field `headers`"));
    let other = Scene::new(("\"protocol\": 1", "\"protocol\": 2"));
    assert!(reason(&other, "").contains("protocol 2"));
    let beyond = Scene::new((r"'\001\000", r"'\011\000"));
    assert!(reason(&beyond, "").contains("a winner 9 of 3 rules"));
    let short = Scene::new((r"\003\000\000\000'", "'"));
    assert!(reason(&short, "").contains("3 winners for 4 headers"));
}

#[test]
fn rules_of_two_families_are_too_much_for_peers() {
    let scene = scene();
    let fake = scene.folder.path("fake");
    let generated = "bench --quick --profiles acl1 --sizes 100 --family dual -e tuplemerge";
    let report = run(&format!("{generated} --peer fake={fake} --format json"));
    let reason = report.exits(0).json()[1]["failed"].clone();
    assert!(
        reason.as_str().unwrap().contains("one kind of header"),
        "{reason}"
    );
}

#[test]
fn what_is_not_there_is_explained() {
    run("bench --peer rte_alc")
        .exits(2)
        .complains("did you mean `rte_acl`?");
    run("bench --peer mine=/no/such/program")
        .exits(2)
        .complains("no program /no/such/program");
    // Searches another place for the program: a peer may be built next to its usual
    // folder.
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("target/release")).unwrap();
    let copy = folder.path("target/release/classyard");
    let original = program().get_program().to_owned();
    let copied = Command::new("cp").arg(original).arg(&copy).status();
    assert!(copied.unwrap().success());
    let output = Command::new(copy)
        .args(["bench", "--peer", "rte_acl"])
        .current_dir(folder.path("target"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("the peer `rte_acl` is not built"),
        "{message}"
    );
    assert!(message.contains("bench/peers/build rte_acl"), "{message}");
}

/// Returns the vector instructions of this processor for which rte_acl has an
/// algorithm.
fn expected_algorithms() -> Vec<&'static str> {
    #[cfg(not(target_arch = "x86_64"))]
    let algorithms = vec!["scalar"];
    #[cfg(target_arch = "x86_64")]
    let mut algorithms = vec!["scalar"];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("sse4.1") {
            algorithms.push("sse");
        }
        if is_x86_feature_detected!("avx2") {
            algorithms.push("avx2");
        }
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512bw");
        if wide {
            algorithms.extend(["avx512x16", "avx512x32"]);
        }
    }
    algorithms
}

#[test]
fn the_real_rte_acl_answers_as_we_do() {
    let mut checked = 0;
    for (family, pages) in [("ipv4", "thp"), ("ipv6", "thp"), ("ipv4", "4k")] {
        let arguments = format!(
            "bench --quick --profiles acl1,acl2,fw1,ipc1 --sizes 300 --family {family} \
             -e tuplemerge --peer rte_acl:memory=1536,pages={pages} --format json"
        );
        let run = run_with(&words(&arguments), &[]);
        if run.code == 2 && run.stderr.contains("is not built") {
            eprintln!("skipped: rte_acl is not built; bench/peers/build builds it");
            return;
        }
        let report = run.exits(0).json();
        for set in report
            .as_array()
            .unwrap()
            .chunk_by(|a, b| a["set"] == b["set"])
        {
            let its: Vec<_> = set.iter().filter(|row| row["peer"].is_object()).collect();
            let algorithms: Vec<_> = its.iter().map(|row| &row["peer"]["algorithm"]).collect();
            assert_eq!(algorithms, expected_algorithms(), "{set:?}");
            assert!(set.iter().all(|row| row["wrong"] == 0), "{set:?}");
            assert!(
                its.iter().all(|row| row["bytes"].as_u64() > Some(0)),
                "{set:?}"
            );
            checked += its.len();
        }
    }
    eprintln!(
        "rte_acl: {checked} measurements with {:?}",
        expected_algorithms()
    );
}

#[test]
fn reoptimisation_makes_lookups_as_fast_as_rebuilding() {
    let arguments = "bench --reoptimise --profiles acl1 --sizes 2k --quick -e tss,forest";
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    // Only one of the two engines can be re-optimised.
    let [row] = report.as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(row["engine"], "forest");
    assert_eq!(row["wrong"], 0);
    let number = |name: &str| row[name].as_f64().unwrap();
    assert!(
        number("counted_grown") > 1.5 * number("counted_first"),
        "{row}"
    );
    assert!(number("counted_adopted") < number("counted_grown"), "{row}");
    for name in ["grown_ns", "adopting_ns", "adopted_ns", "rebuilt_ns"] {
        assert!(number(name) > 0.0, "{row}");
    }
    assert!(
        row["adopting"]["count"].as_u64().unwrap() >= 2000 / 8,
        "{row}"
    );
    run(arguments).exits(0).prints("acl1 2k").prints("adopted");
    let csv = run(&format!("{arguments} --format csv")).exits(0);
    assert_eq!(csv.csv().len(), 2);
    run("bench --reoptimise --updates").exits(2);
}

#[test]
fn all_engines_are_measured_when_asked_for() {
    let arguments = "bench --quick --profiles acl1 --sizes 100 --headers 500 --format csv";
    let lines = |engines: &str| {
        let run = run(&format!("{arguments} --engines {engines}")).exits(0);
        run.lines().len() - 1
    };
    assert_eq!(lines("all"), classyard::EngineSpec::all().count());
    assert_eq!(lines("tss,tss:mask=no-ports,tss"), 2);
}
