//! Commands with several threads: the same answers as with one, and rates that say
//! whether the threads had their processors.

use serde_json::Value;

use crate::support::{Folder, Run, example, run, run_with, words};

#[test]
fn winners_and_counts_do_not_depend_on_threads() {
    let folder = Folder::new();
    let rules = folder.path("rules");
    let trace = folder.path("trace");
    run(&format!("generate --profile acl1 -n 300 -o {rules}")).exits(0);
    run(&format!("generate trace {rules} -n 20k -o {trace}")).exits(0);
    let (office, capture) = (example("office.rules"), example("office.pcap"));
    for input in [
        format!("-r {rules} -t {trace}"),
        format!("-r {office} -c {capture}"),
    ] {
        let of = |threads: &str, more: &str| {
            let arguments = format!("classify {input} --threads {threads} {more}");
            run(&arguments).exits(0)
        };
        let report = |threads: &str| of(threads, "--repeat 2 --format json").json();
        let (winners, alone) = (of("1", "--winners -").stdout, report("1"));
        assert!(winners.lines().count() > 1000);
        assert_eq!(alone["rate"]["threads"], 1);
        for threads in ["2", "5"] {
            assert_eq!(of(threads, "--winners -").stdout, winners);
            let together = report(threads);
            for key in ["hits", "misses", "actions", "never_hit", "input"] {
                assert_eq!(together[key], alone[key], "{key}");
            }
            let rate = &together["rate"];
            assert_eq!(rate["threads"].to_string(), threads);
            assert!(rate["processors"].as_u64() >= Some(1));
            let share = rate["cpu_share"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&share), "{share}");
            assert_eq!(rate["passes"], 2);
        }
    }
}

/// A live capture is looked up in chunks, each on all threads.
#[test]
fn packets_from_a_pipe_are_looked_up_on_threads() {
    let (rules, capture) = (example("office.rules"), example("office.pcap"));
    let packets = std::fs::read(capture).unwrap();
    let counts = |threads: &str| {
        let arguments =
            format!("classify -r {rules} -c - --every 5s --threads {threads} --format json");
        let report = run_with(&words(&arguments), &packets).exits(0);
        let last: Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
        (last["hits"].clone(), last["misses"].clone())
    };
    assert_eq!(counts("1"), counts("3"));
}

#[test]
fn checks_do_not_depend_on_threads() {
    let cases = |threads: &str| {
        let arguments = "check --profiles fw1 --sizes 200 --families dual -n 9k --changes 50 \
            --format json --threads";
        let report = run(&format!("{arguments} {threads}")).exits(0).json();
        let case = report["cases"][0].clone();
        (case["compared"].clone(), case["repeat"].clone())
    };
    let (alone, repeat) = cases("1");
    assert!(!repeat.to_string().contains("--threads"));
    let (together, repeat) = cases("3");
    assert_eq!(together, alone);
    assert!(repeat.to_string().contains("--threads 3"), "{repeat}");
}

/// Rounds run on threads of their own, and are reported in the order of their seeds.
#[test]
fn rounds_do_not_depend_on_threads() {
    let rounds = |threads: &str| {
        let arguments = "check --schemas 5 --seed 3 --changes 60 -e linear,tss --format json";
        let report = run(&format!("{arguments} --threads {threads}")).exits(0);
        let mut report = report.json();
        let rounds = report["rounds"].as_array_mut().unwrap();
        for round in rounds.iter_mut() {
            round["seconds"] = Value::Null;
        }
        assert_eq!(rounds.len(), 5);
        (report["rounds"].clone(), report["compared"].clone())
    };
    let alone = rounds("1");
    assert_eq!(alone.0[4]["seed"], 7);
    assert_eq!(rounds("2"), alone);
}

#[test]
fn a_benchmark_has_rates_of_threads() {
    let arguments = "bench --profiles acl1 --sizes 100 --headers 5k --quick \
        -e forest,linear,decomposition --threads 2";
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    for row in report.as_array().unwrap() {
        assert_eq!(row["wrong"], 0);
        let threads = &row["threads"];
        assert_eq!(threads["threads"], 2);
        for rate in ["headers_per_second", "alone_headers_per_second"] {
            assert!(threads[rate]["median"].as_f64() > Some(0.0));
        }
        // There is either a ratio or a reason.
        assert_ne!(
            threads["scaling"].is_null(),
            threads["no_scaling"].is_null()
        );
    }
    let table = run(arguments).exits(0);
    let table = table.prints("2 threads M/s").prints("scaling");
    table.prints("interleaved runs of 2 threads and of one, by elapsed time");
    let rows = run(&format!("{arguments} --format csv")).exits(0).csv();
    let column = |name: &str| rows[0].iter().position(|cell| cell == name).unwrap();
    let [threads, ratio, reason] = ["threads", "scaling", "no_scaling"].map(column);
    for row in &rows[1..] {
        assert_eq!(row[threads], "2");
        assert_ne!(row[ratio].is_empty(), row[reason].is_empty(), "{row:?}");
    }
    // Without the option there are no such rates.
    let report = run("bench --profiles acl1 --sizes 100 --quick -e linear --format json");
    assert!(report.exits(0).json()[0]["threads"].is_null());
}

/// Two threads on one processor: the rate of both is the rate of one. Each thread has half
/// of the time, so a rate of CPU time would be twice as high.
#[cfg(target_os = "linux")]
#[test]
fn two_threads_on_one_processor_have_no_scaling() {
    let arguments = "bench --profiles acl1 --sizes 100 --headers 20k --repeat 2 -e linear,forest \
        --threads 2 --format";
    let Some(report) = on_one_processor(&format!("{arguments} json")) else {
        return;
    };
    for row in report.exits(0).json().as_array().unwrap() {
        let threads = &row["threads"];
        assert_eq!(threads["processors"], 1);
        assert_eq!(threads["scaling"], Value::Null);
        let reason = threads["no_scaling"].as_str().unwrap();
        assert!(reason.contains("only 1 processor"), "{reason}");
        // The process has one processor, so two threads cannot have had more than half of
        // their time. The clocks are read one after the other.
        let share = threads["cpu_share"].as_f64().unwrap();
        assert!(share < 0.55, "{share}");
        assert_eq!(row["wrong"], 0);
    }
    let table = on_one_processor(&format!("{arguments} table")).unwrap();
    table
        .exits(0)
        .prints("forest: no scaling: 2 threads, but the process may use only 1 processor");

    let classify = "classify --threads 2";
    let report = on_one_processor(&format!("{classify} --format json")).unwrap();
    let report = report.exits(0).json();
    let doubt = report["rate"]["doubt"].as_str().unwrap();
    assert!(doubt.contains("only 1 processor"), "{doubt}");
    assert_eq!(report["rate"]["processors"], 1);
    on_one_processor(classify)
        .unwrap()
        .exits(0)
        .prints("2 threads, by elapsed time")
        .prints("the process may use only 1 processor");
}

/// Runs the program on one processor. Returns `None` if the system has no `taskset`.
#[cfg(target_os = "linux")]
fn on_one_processor(arguments: &str) -> Option<Run> {
    use crate::support::program;
    use std::process::Command;

    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.unwrap().trim().split([',', '-']).next().unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", first]).arg(program().get_program());
    let Ok(output) = command.args(words(arguments)).output() else {
        eprintln!("skipped: there is no taskset");
        return None;
    };
    Some(Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    })
}

#[test]
fn thread_counts_are_checked() {
    for (arguments, complaint) in [
        ("classify --threads 0", "`0` is not a number of threads"),
        ("check --threads 257", "expected 1 to 256"),
        ("bench --threads two", "`two` is not a number of threads"),
        ("bench --threads 2 --mixed 1k", "cannot be used with"),
        ("bench --threads 2 --reoptimise", "cannot be used with"),
        ("bench --threads 2 --auto", "cannot be used with"),
    ] {
        run(arguments).exits(2).complains(complaint);
    }
}
