//! `bench --mixed`: answers and the form of the report, but not speed.

use serde_json::Value;

use crate::support::{Folder, RULES, TRACE, run};

/// Returns the rows of a tiny measurement.
fn rows(more: &str) -> Vec<Value> {
    let report = run(&format!("bench --quick --format json {more}"));
    report.exits(0).json().as_array().unwrap().clone()
}

/// Checks that all quantiles exist and are in order.
fn in_order(quantiles: &Value) {
    let names = ["p50", "p90", "p99", "p999", "max"];
    let values = names.map(|name| quantiles[name].as_f64().unwrap());
    assert!(values.is_sorted() && values[0] > 0.0, "{quantiles}");
}

#[test]
fn each_engine_has_a_row_for_each_rate() {
    // Long enough that both threads start in time on a busy machine.
    let report = run(
        "bench --profiles acl1 --sizes 300 --headers 2k --changes 2k --repeat 1 --seconds 0.3 \
         -e forest,tuplemerge --mixed 0,1k,max --format json",
    );
    let rows = report.exits(0).json().as_array().unwrap().clone();
    let named: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["engine"].as_str().unwrap(),
                row["target"].as_str().unwrap(),
            )
        })
        .collect();
    let expected =
        ["forest", "tuplemerge"].map(|engine| ["0", "1k", "max"].map(|target| (engine, target)));
    assert_eq!(named, expected.concat());
    for row in &rows {
        assert_eq!(row["wrong"], 0, "{row}");
        assert!(row["checked_batches"].as_u64() > Some(0), "{row}");
        assert_eq!(row["set"], "acl1 300");
        // A sixteenth of the rules is outside.
        assert_eq!(row["rules"], 300 - 300 / 16);
        assert!(row["lookups_per_second"]["median"].as_f64() > Some(0.0));
        assert!(row["lookups_per_cpu_second"]["median"].as_f64() > Some(0.0));
        let share = row["reader_cpu_share"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{row}");
        in_order(&row["batch_seconds"]);
    }
    let (still, slow, fast) = (&rows[0], &rows[1], &rows[2]);
    assert_eq!(still["target_updates_per_second"], 0);
    for figure in [
        "updates_per_second",
        "updates_per_cpu_second",
        "apply_seconds",
        "visible_seconds",
        "writer_cpu_share",
    ] {
        assert_eq!(still[figure], Value::Null, "there is no writer");
    }
    assert_eq!(slow["target_updates_per_second"], 1_000);
    assert_eq!(slow["transaction"], 1);
    assert_eq!(slow["updates_per_cpu_second"], Value::Null);
    assert_eq!(fast["target_updates_per_second"], Value::Null);
    assert_eq!(fast["transaction"], 100);
    let updates = |row: &Value| row["updates_per_second"]["median"].as_f64().unwrap();
    assert!(updates(slow) < updates(fast), "{slow} {fast}");
    assert!(
        updates(slow) <= 1_100.0,
        "a writer is not too early: {slow}"
    );
    assert!(fast["updates_per_cpu_second"]["median"].as_f64() > Some(0.0));
    for row in [slow, fast] {
        in_order(&row["apply_seconds"]);
        in_order(&row["visible_seconds"]);
        assert_eq!(row["plans_installed"], Value::Null, "nothing re-optimises");
    }
}

#[test]
fn tables_are_reoptimised_beside_readers_and_updates() {
    for more in ["--profiles acl1", "--profiles acl1 --family dual"] {
        let report = run(&format!(
            "bench {more} --sizes 300 --headers 2k --changes 2k --repeat 1 --seconds 0.3 \
             -e sfl(hyper-split):delta=4 --mixed 0,2k --reoptimise --format json"
        ));
        let rows = report.exits(0).json().as_array().unwrap().clone();
        for row in &rows {
            assert_eq!(row["wrong"], 0, "{row}");
        }
        let [still, changing] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!(still["plans_installed"], 0, "nothing changed");
        assert!(changing["plans_installed"].as_u64() > Some(1), "{changing}");
    }
}

/// With a publish interval, updates are accepted immediately and become visible
/// when the interval is over. The writer polls, so the delay is longer only if the
/// machine stops the writer.
#[test]
fn updates_are_published_together() {
    let rows = |interval: &str| {
        let report = run(&format!(
            "bench --profiles acl1 --sizes 300 --headers 2k --changes 2k --repeat 1 \
             --seconds 0.3 -e tuplemerge --mixed 0,1k,max {interval} --format json"
        ));
        report.exits(0).json().as_array().unwrap().clone()
    };
    let together = rows("--publish-interval 20ms");
    let visible = |row: &Value, quantile: &str| row["visible_seconds"][quantile].as_f64().unwrap();
    for row in &together {
        assert_eq!(
            (&row["wrong"], &row["publish_interval_seconds"]),
            (&0.into(), &0.02.into())
        );
    }
    for row in &together[1..] {
        // Half of the updates wait for more than a tenth of the interval.
        assert!(visible(row, "p50") > 0.002, "{row}");
        assert!(visible(row, "max") >= 0.015, "{row}");
        in_order(&row["apply_seconds"]);
    }
    let (slow, median) = (&together[1], |row: &Value| {
        row["apply_seconds"]["p50"].as_f64().unwrap()
    });
    assert!(median(slow) < 0.002, "accepting does not wait: {slow}");
    for row in rows("") {
        assert_eq!(row["publish_interval_seconds"], 0.0);
    }
}

#[test]
fn rules_of_all_families_are_updated() {
    for family in ["ipv6", "dual"] {
        for row in rows(&format!(
            "--profiles fw1 --sizes 200 --family {family} -e linear,tss,tuplemerge \
             --mixed max --transaction 7"
        )) {
            assert_eq!((&row["wrong"], &row["transaction"]), (&0.into(), &7.into()));
            assert!(row["updates_per_second"]["median"].as_f64() > Some(0.0));
        }
    }
}

#[test]
fn files_can_be_measured_and_rates_have_defaults() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let rows = rows(&format!(
        "-r {rules} -t {trace} -e tuplemerge --seconds 0.01 --processors any --mixed"
    ));
    let targets: Vec<_> = rows
        .iter()
        .map(|row| row["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, ["0", "10k", "100k", "1M", "max"]);
    let sizes: Vec<_> = rows
        .iter()
        .map(|row| row["transaction"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [1, 1, 10, 100, 100]);
    for row in &rows {
        assert_eq!((&row["wrong"], &row["rules"]), (&0.into(), &3.into()));
        assert_eq!(row["reader_processor"], Value::Null);
    }
}

#[test]
fn the_other_forms_say_the_same() {
    let measure = "bench --quick --profiles acl1 --sizes 100 -e tuplemerge --mixed 0,max";
    let table = run(measure).exits(0);
    assert!(table.lines()[0].contains("updates/s"), "{}", table.stdout);
    assert!(table.lines()[2].contains("100%"), "{}", table.stdout);
    let table = table.prints("visible: from the call of apply");
    assert!(!table.stdout.contains("publish interval"), "there is none");
    // The option's former name still works, but is hidden.
    for option in ["--publish-interval", "--hold"] {
        let together = run(&format!("{measure} {option} 500us")).exits(0);
        together.prints("publish interval: 0.5 ms at least from one publication");
    }
    let help = run("bench --help")
        .exits(0)
        .prints("--publish-interval <TIME>");
    assert!(!help.stdout.contains("--hold"), "{}", help.stdout);
    let csv = run(&format!("{measure} --format csv")).exits(0);
    let lines = csv.lines();
    assert_eq!(lines.len(), 3);
    let columns: Vec<_> = lines[0].split(',').collect();
    for column in [
        "target",
        "updates_median",
        "batch_seconds_p999",
        "publish_interval_seconds",
        "wrong",
    ] {
        assert!(columns.contains(&column), "{column} in {columns:?}");
    }
    let wrong = columns.iter().position(|&name| name == "wrong").unwrap();
    for row in &csv.csv()[1..] {
        assert_eq!(row[wrong], "0", "none is wrong: {row:?}");
    }
    assert!(lines[1].starts_with("acl1 100,tuplemerge,94,0,0,1,,,,,,,"));
    assert!(lines[2].starts_with("acl1 100,tuplemerge,94,max,,100,"));
}

/// Simulates a machine with a single processor: both threads are pinned to one
/// processor, so they cannot both have it for nine tenths of the time.
#[cfg(target_os = "linux")]
#[test]
fn a_processor_for_two_is_warned_of() {
    use crate::support::program;
    use std::process::Command;

    let mut command = Command::new("taskset");
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.unwrap().trim().split([',', '-']).next().unwrap();
    command.args(["-c", first]).arg(program().get_program());
    command.args("bench --profiles acl1 --sizes 100 --headers 1k --repeat 1".split(' '));
    command.args("-e tuplemerge --seconds 0.2 --mixed max --format csv".split(' '));
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no taskset");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("they need two idle processors"), "{said}");
    assert!(said.contains("worst: "), "{said}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (arguments, complaint) in [
        ("--mixed fast", "`fast` is not a rate"),
        ("--mixed 10k,,max", "`` is not a rate"),
        ("--mixed -1", "unexpected argument"),
        ("--mixed 1k --updates", "cannot be used with '--updates'"),
        ("--mixed 1k --peer rte_acl", "cannot be used with '--peer"),
        ("--mixed 1k --transaction 0", "expected 1 to 65536"),
        ("--mixed 1k --seconds 0", "`0` is not a time"),
        ("--mixed 1k --processors 1", "names no processors"),
        ("--mixed 1k --processors 1,1", "a processor each"),
        ("--mixed 1k --processors 0,999", "is not available"),
        ("--mixed 1k --publish-interval 10", "`10` is not a time"),
        (
            "--mixed 1k --publish-interval 2h",
            "such as 500us, 10ms or 1s",
        ),
        ("--publish-interval 10ms", "--mixed"),
        ("--transaction 5", "--mixed"),
        ("--seconds 5", "--mixed"),
    ] {
        run(&format!("bench --quick {arguments}"))
            .exits(2)
            .complains(complaint);
    }
    let folder = Folder::new();
    let empty = folder.file("empty", "schema ipv4-5tuple\n");
    let trace = folder.file("trace", TRACE);
    run(&format!("bench --quick -r {empty} -t {trace} --mixed max"))
        .exits(2)
        .complains("has no rules");
}
