//! `reproduce` on a small scale.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Folder, program, run, words};

/// Returns the first claim of a JSON report about a place of the paper.
fn claim<'a>(report: &'a serde_json::Value, place: &str) -> &'a serde_json::Value {
    let sections = report["sections"].as_array().unwrap().iter();
    let mut claims = sections.flat_map(|section| section["claims"].as_array().unwrap());
    claims.find(|claim| claim["place"] == place).unwrap()
}

/// Returns the heading of a file and the cells of its rows.
fn csv(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
    let mut lines = text.lines();
    let heading = cells(lines.next().unwrap());
    (heading, lines.map(cells).collect())
}

/// Checks the paper's values of a picture: their number in the file of values, their legend
/// in the picture, and a caption in the report.
fn shows_paper_values(out: &Path, picture: &str, values: usize, legend: &[&str]) {
    let (heading, rows) = csv(&out.join("paper-values.csv"));
    assert_eq!(heading, ["picture", "line", "x", "value", "source"]);
    let rows = rows.iter().filter(|row| row[0] == picture);
    assert_eq!(rows.count(), values, "{picture}");
    let svg = fs::read_to_string(out.join(picture)).unwrap();
    let names: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("paper"))
        .collect();
    assert_eq!(names, legend, "{picture}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let shown = svg[svg.find("<svg").unwrap()..].trim_end();
    let caption = page.split(shown).nth(1).unwrap();
    assert!(caption.starts_with("\n<figcaption>"), "{picture}");
}

#[test]
fn no_figure_has_more_rules_than_were_asked_for() {
    let folder = Folder::new();
    let out = folder.path("figures");
    run(&format!(
        "reproduce tm19 --sizes 100,200 --profiles acl1,fw1 --headers 300 --changes 100 --sets 1 \
         --out {out} -q"
    ))
    .exits(0)
    .silent();
    let mut figures = 0;
    for file in fs::read_dir(&out).unwrap() {
        let path = file.unwrap().path();
        let is_csv = path.extension().is_some_and(|extension| extension == "csv");
        // The paper's values are for the paper's numbers of rules.
        if !is_csv || path.ends_with("paper-values.csv") {
            continue;
        }
        figures += 1;
        let (heading, rows) = csv(&path);
        let place = heading.iter().position(|name| name == "rules").unwrap();
        let rules: Vec<usize> = rows.iter().map(|row| row[place].parse().unwrap()).collect();
        assert!(!rules.is_empty(), "{path:?}");
        assert!(
            rules.iter().all(|&rules| rules <= 200),
            "{path:?}: {rules:?}"
        );
        assert!(
            rules.iter().any(|&rules| rules > 150),
            "{path:?}: {rules:?}"
        );
    }
    assert_eq!(figures, 6);
    run("reproduce tm19 --sizes 0")
        .exits(2)
        .complains("at least 1 rule");
}

#[test]
fn a_reproduction_goes_on_where_it_was() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command =
        format!("reproduce tm19 --figures tables --sizes 100,200 --profiles acl1,fw1 --out {out}");
    run(&command).exits(0);
    let points = Path::new(&out).join("points.ndjson");
    let report = Path::new(&out).join("report.html");
    let whole = fs::read_to_string(&points).unwrap();
    let page = fs::read_to_string(&report).unwrap();
    assert_eq!(whole.lines().count(), 1 + 4, "{whole}");

    // Simulates an interrupt in the middle of the third measurement. A kept
    // measurement gets a value that no run would measure.
    let lines: Vec<&str> = whole.lines().collect();
    let known = lines[1].replacen("\"measured\":[", "\"measured\":[777", 1);
    fs::write(
        &points,
        format!("{}\n{known}\n{}", lines[0], &lines[2][..20]),
    )
    .unwrap();
    run(&command)
        .exits(0)
        .complains("going on after 1 measurement");
    let (_, rows) = csv(&Path::new(&out).join("tables.csv"));
    assert_eq!(rows.len(), 4 * 8);
    assert!(rows[..8].iter().all(|row| row[1].starts_with("777")));
    assert!(rows[8..].iter().all(|row| !row[1].starts_with("777")));
    assert!(report.exists());

    // Other options would make other measurements.
    run(&format!("{command} --seed 2"))
        .exits(2)
        .complains("measurements of another reproduction: --seed 1")
        .complains("--restart measures everything again");
    run(&format!("{command} --restart")).exits(0);
    let again = fs::read_to_string(&report).unwrap();
    let without_run = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| !line.contains("<dt>command"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(without_run(&again), without_run(&page));
}

#[test]
fn an_unfinished_reproduction_has_no_report() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command =
        format!("reproduce tm19 --figures tables --sizes 100 --profiles acl1 --out {out}");
    run(&command).exits(0);
    let report = Path::new(&out).join("report.html");
    assert!(report.exists());
    // A measurement that cannot be read ends the command before its report.
    let points = Path::new(&out).join("points.ndjson");
    let text = fs::read_to_string(&points).unwrap();
    fs::write(
        &points,
        text.replace("\"measured\":[", "\"measured\":[\"x\","),
    )
    .unwrap();
    run(&command).exits(2).complains("is bad");
    assert!(!report.exists());
}

#[test]
fn sfl17_counts_headers_and_changes() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let done = run(&format!(
        "reproduce sfl17 --quick --sizes 200 --profiles acl1 --headers 500 --sets 1 --run 50ms \
         --out {out} --format json"
    ))
    .exits(0);
    for place in ["Figs. 5a, 5b", "Table II", "Fig. 6"] {
        claim(&done.json(), place);
    }
    claims_about_delta_have_both_forms(&done.json());
    let out = Path::new(&out);
    let (_, operations) = csv(&out.join("operations.csv"));
    assert!(!operations.is_empty());
    let (heading, updates) = csv(&out.join("updates.csv"));
    assert_eq!(heading.last().unwrap(), "reader_share");
    // Eight engines and three published forms, two kinds, four rates.
    assert_eq!(updates.len(), 11 * 2 * 4);
    assert!(updates.iter().all(|row| row[4].parse::<u64>().unwrap() > 0));
    threshold_has_both_forms(out);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("WRONG"));
    for name in [
        "operations-insertions-changes",
        "throughput-deletions",
        "threshold-insertions-10-headers",
    ] {
        assert!(out.join(format!("{name}.svg")).exists(), "{name}");
    }
    // The page contains all pictures of the folder.
    let pictures = fs::read_dir(out).unwrap().filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension == "svg")
    });
    assert_eq!(page.matches("<svg").count(), pictures.count());
    run("reproduce sfl17 --figures tables")
        .exits(2)
        .complains("sfl17 has no figure `tables`; expected some of operations, updates, threshold");
    run("reproduce sfl17 --run 1ms")
        .exits(2)
        .complains("from 10ms");
}

/// Checks that each claim of Figs. 7 and 8 has cases of the published form, and of our form
/// if the claim is about both.
fn claims_about_delta_have_both_forms(report: &serde_json::Value) {
    let sections = report["sections"].as_array().unwrap().iter();
    let claims = sections.flat_map(|section| section["claims"].as_array().unwrap());
    let claims = claims.filter(|claim| ["Fig. 7", "Fig. 8"].iter().any(|it| claim["place"] == *it));
    let mut claim_count = 0;
    for claim in claims {
        claim_count += 1;
        let is_about_waiting = claim["claim"].as_str().unwrap().contains("10 and 50");
        for part in claim["parts"].as_array().unwrap() {
            let cases = part["cases"].as_array().unwrap();
            let count_of = |form: &str| {
                let names = cases.iter().map(|case| case["name"].as_str().unwrap());
                names.filter(|name| name.contains(form)).count()
            };
            let ours = if is_about_waiting {
                0
            } else {
                count_of("published form")
            };
            assert!(count_of("published form") > 0, "{part}");
            assert_eq!(count_of("our form"), ours, "{part}");
        }
    }
    assert_eq!(claim_count, 5);
}

/// Checks the figures against δ: no buffer, and five values of δ for each form.
fn threshold_has_both_forms(out: &Path) {
    let (heading, rows) = csv(&out.join("threshold.csv"));
    assert_eq!(rows.len(), 2 * 3 * (1 + 2 * 5));
    let column = |name: &str| heading.iter().position(|column| column == name).unwrap();
    let (form, delta) = (column("form"), column("delta"));
    let deltas_of = |name: &str| -> BTreeSet<&str> {
        let rows = rows.iter().filter(|row| row[form] == name);
        rows.map(|row| row[delta].as_str()).collect()
    };
    let deltas = BTreeSet::from(["0", "5", "10", "20", "100"]);
    assert_eq!(deltas_of("paper"), deltas);
    assert_eq!(deltas_of("stable"), deltas);
    assert_eq!(deltas_of("none"), ["none"].into());
    let number = |row: &[String], name: &str| row[column(name)].parse::<u64>().unwrap();
    for row in &rows {
        assert!(number(row, "headers") > 0, "{row:?}");
        assert!(number(row, "made") <= number(row, "issued"), "{row:?}");
    }
    for kind in ["insertions", "deletions"] {
        let picture = out.join(format!("threshold-{kind}-10-changes.svg"));
        let picture = fs::read_to_string(picture).unwrap();
        for inner in ["hyper-split", "rfc", "bit-vector"] {
            assert!(picture.contains(&format!("sfl({inner}), published form")));
        }
    }
}

/// Returns the points of a file, in order.
fn points(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1);
    let point = |line: &str| -> String {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["point"].as_str().unwrap().to_owned()
    };
    lines.map(point).collect()
}

/// Ends a run by a signal that shells never ignore for their background jobs. The
/// measurements so far are kept, the reproduction is not reported as complete, and
/// the same command measures only the rest.
#[test]
fn an_interrupted_reproduction_goes_on_and_repeats_nothing() {
    let folder = Folder::new();
    let out = folder.path("figures");
    // 88 runs of 20 ms each.
    let command = format!(
        "reproduce sfl17 --figures updates --sizes 100 --profiles acl1 --headers 200 --sets 1 \
         --run 20ms --out {out}"
    );
    let file = Path::new(&out).join("points.ndjson");
    let mut child = program()
        .args(words(&command))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let kept = || fs::read_to_string(&file).unwrap_or_default();
    while kept().lines().count() < 6 {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(2));
    }
    let interrupt = format!("kill -TERM {}", child.id());
    let sent = Command::new("sh")
        .args(["-c", &interrupt])
        .status()
        .unwrap();
    assert!(sent.success());
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(15), "{status:?}");
    let report = Path::new(&out).join("report.html");
    assert!(!report.exists());

    let text = kept();
    let whole = &text[..=text.rfind('\n').unwrap()];
    let before = points(whole).len();
    assert!((5..88).contains(&before), "{before}");
    run(&command)
        .exits(0)
        .complains(&format!("going on after {before} measurements"));
    let after = kept();
    assert!(after.starts_with(whole));
    let mut all = points(&after);
    assert_eq!(all.len(), 88);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 88);
    let page = fs::read_to_string(&report).unwrap();
    assert!(page.ends_with("</html>\n"));
    assert!(page.contains("Not the whole reproduction: limited by --figures updates"));
    let left_over = fs::read_dir(&out).unwrap();
    let left_over = left_over.filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension()
            .is_some_and(|extension| extension == "part")
    });
    assert_eq!(left_over.count(), 0);
}

#[test]
fn tm19_can_be_measured_piece_by_piece() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = |more: &str| format!("reproduce tm19 --figures tables {more} --out {out}");
    let file = Path::new(&out).join("points.ndjson");
    run(&command("--sizes 100 --profiles acl1")).exits(0);
    let first = fs::read_to_string(&file).unwrap();
    run(&command("--sizes 100,200 --profiles acl1,fw1"))
        .exits(0)
        .complains("going on after 1 measurement");
    let all = fs::read_to_string(&file).unwrap();
    assert!(all.starts_with(&first));
    assert_eq!(
        points(&all),
        [
            "tables acl1 100",
            "tables acl1 200",
            "tables fw1 100",
            "tables fw1 200"
        ]
    );
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("limited by --figures tables; --sizes 100, 200; --profiles acl1, fw1."));
}

#[test]
fn tm19_times_updates_and_lookups_of_all_engines() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!(
        "reproduce tm19 --figures online,offline --sizes 100,200 --profiles acl1,fw1,ipc1 \
         --headers 300 --changes 200 --sets 2 --out {out}"
    );
    let done = run(&command).exits(0);
    for claim in [
        "§IV.B",
        "Fig. 3b",
        "Fig. 4a",
        "§IV.C",
        "§IV.D, Fig. 5",
        "§I.B",
    ] {
        assert!(done.stdout.contains(claim), "{claim}");
    }
    let out = Path::new(&out);
    for (name, engines) in [("online", 6), ("offline", 3)] {
        let (heading, rows) = csv(&out.join(format!("{name}.csv")));
        assert_eq!(rows.len(), 3 * 2 * 2 * engines, "{name}");
        assert_eq!(heading.last().unwrap(), "wrong");
        assert!(
            rows.iter().all(|row| row.last().unwrap() == "0"),
            "{rows:?}"
        );
        let place = heading.iter().position(|name| name == "lookup_ns").unwrap();
        assert!(
            rows.iter()
                .all(|row| row[place].parse::<f64>().unwrap() > 0.0)
        );
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("WRONG") && !page.contains("NaN"));
    for file in [
        "online-update-relative",
        "online-lookup-profiles",
        "online-tradeoff",
    ] {
        assert!(out.join(format!("{file}.svg")).exists(), "{file}");
    }
}

/// An engine that is not built in time is left out and named, and claims about it are not
/// measured.
#[test]
fn tm19_says_what_was_not_built_in_time() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let done = run(&format!(
        "reproduce tm19 --figures offline --sizes 8k --profiles fw1 --headers 100 --sets 1 \
         --build-time 10ms --out {out}"
    ))
    .exits(0);
    let claim = "SmartSplit classifies faster than offline TupleMerge: 0.12 µs and 0.24 µs at 64k \
                 rules.\n  not measured (0 hold, 0 do not, 2 open)";
    assert!(done.stdout.contains(claim), "{}", done.stdout);
    let (_, rows) = csv(&Path::new(&out).join("offline.csv"));
    assert!(
        rows.iter()
            .any(|row| row[3] == "smart-split" && row[4] == "no")
    );
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("Not built, and left out of means: "));
    assert!(page.contains("smart-split over fw1 8k: building took longer than the limit"));
    assert!(!page.contains("NaN"));
}

#[test]
fn dec14_predicts_what_it_measures() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce dec14 --quick --sizes 200,400,900 --headers 400 --out {out}");
    let done = run(&command).exits(0);
    for claim in ["Table III", "Fig. 2", "Fig. 3", "Fig. 4", "§IV.C"] {
        assert!(done.stdout.contains(claim), "{claim}");
    }
    let out = Path::new(&out);
    let (_, sets) = csv(&out.join("rule-sets.csv"));
    assert_eq!(sets.len(), 3 * 15);
    let (heading, latency) = csv(&out.join("latency.csv"));
    assert_eq!(heading[..3], ["rules", "fitted", "single_ns"]);
    assert_eq!(latency.len(), 3);
    // The model is fitted to the two smallest sizes; every time is a positive number.
    assert_eq!(
        [0, 1, 2].map(|row| latency[row][1].as_str()),
        ["true", "true", "false"]
    );
    for row in &latency {
        for column in [2, 3, 5, 6] {
            assert!(row[column].parse::<f64>().unwrap() > 0.0, "{row:?}");
        }
    }
    // The paper's equations are fitted to 1 and 64 headers of the two smallest sizes.
    let (heading, equations) = csv(&out.join("equations.csv"));
    assert_eq!(heading[..3], ["rules", "p", "fitted"]);
    let points: Vec<&str> = equations.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(
        points,
        ["1", "1", "1", "1", "2", "4", "8", "16", "32", "64"]
    );
    let fitted: Vec<bool> = equations.iter().map(|row| row[2] == "true").collect();
    assert_eq!(fitted[..3], [true, true, false]);
    let number = |row: &[String], column: usize| row[column].parse::<f64>().unwrap();
    for row in &equations {
        for column in [3, 4, 5, 6, 8] {
            assert!(number(row, column) > 0.0, "{row:?}");
        }
        let error = number(row, 6) / number(row, 5) - 1.0;
        assert!((error - number(row, 7)).abs() < 0.01, "{row:?}");
    }
    let column = |row: usize, column: usize| number(&equations[row], column);
    // More rules need more instructions and accesses; eq. 6 grows with P.
    assert!(column(2, 3) > column(0, 3) && column(2, 4) > column(0, 4));
    assert!(column(9, 6) >= column(3, 6));
    let (_, throughput) = csv(&out.join("throughput.csv"));
    assert!(throughput.len() >= 4 * 9);
    let (_, kinds) = csv(&out.join("random-headers.csv"));
    assert_eq!(kinds.len(), 2 * 3 * 3);
    for row in &kinds {
        // Bursts and corners come from rules.
        assert!(row[2] == "random" || row[3] == "1.0000", "{row:?}");
        for time in [4, 5] {
            assert!(row[time].parse::<f64>().unwrap() > 0.0, "{row:?}");
        }
    }
    let (_, split) = csv(&out.join("split.csv"));
    assert_eq!(split.len(), 2 * 3);
    let (_, fields) = csv(&out.join("fields.csv"));
    assert_eq!(fields.len(), 3);
    // Figures over several cores are drawn if the cores were free.
    let split_is_drawn = split.iter().any(|row| row[6] == "true");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("WRONG"));
    assert_eq!(
        page.matches("<svg").count(),
        5 + usize::from(split_is_drawn)
    );

    // Measures nothing again.
    let points = fs::read_to_string(out.join("points.ndjson")).unwrap();
    run(&command).exits(0).complains("going on after");
    assert_eq!(
        fs::read_to_string(out.join("points.ndjson")).unwrap(),
        points
    );

    run("reproduce dec14 --profiles acl1")
        .exits(2)
        .complains("unexpected argument '--profiles'");
}

/// Formulas as printed, caches compared with each other, and search lengths; on
/// short traces.
#[test]
fn fts25_compares_caches_and_formulas() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce fts25 --quick --headers 60k --out {out} --format json");
    let done = run(&command).exits(0);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    for claim in [
        "Table 1", "Table 2", "Fig. 9", "Fig. 10", "Fig. 11", "Fig. 12", "Fig. 13", "Fig. 14",
        "eq. 5", "eq. 8",
    ] {
        assert!(done.stdout.contains(claim), "{claim}");
    }
    for (place, rows) in [("Table 1", 12), ("Table 2", 16)] {
        let printed = &claim(&report, place)["parts"][0];
        let cases = printed["cases"].as_array().unwrap();
        assert_eq!(cases.len(), rows, "{printed}");
        assert!(
            cases.iter().all(|case| case["outcome"] == "holds"),
            "{printed}"
        );
    }
    // The traffic is fitted to these numbers of flows.
    let fitted = claim(&report, "Fig. 9");
    assert_eq!(fitted["verdict"], "not measured");
    assert_eq!(fitted["cases"]["open"], 2);
    let part = &fitted["parts"][1];
    assert_eq!(
        (&part["paper"], &part["cases"][0]["median"]),
        (&24_500.0.into(), &serde_json::Value::Null)
    );
    assert!(
        part["cases"][0]["measured"]
            .as_str()
            .unwrap()
            .starts_with("fitted"),
        "{part}"
    );
    assert_eq!(part["sources"][0]["title"], "wildcarding-flows.svg");
    let out = Path::new(&out);
    let (heading, caches) = csv(&out.join("hit-rates.csv"));
    let place = |name: &str| heading.iter().position(|one| one == name).unwrap();
    for row in &caches {
        let rate: f64 = row[place("hit_rate")].parse().unwrap();
        assert!(rate > 0.0 && rate < 1.0, "{row:?}");
        if row[place("comparison")] == "Bytes" && !row[place("cache")].contains("without") {
            let [bytes, most]: [usize; 2] =
                ["bytes", "x"].map(|name| row[place(name)].parse().unwrap());
            assert!(
                (most / 2..=most).contains(&bytes),
                "{row:?}: {bytes} {most}"
            );
        }
    }
    let (heading, lengths) = csv(&out.join("search-length.csv"));
    let place = |name: &str| heading.iter().position(|one| one == name).unwrap();
    // Ten schemes on two traces; sorted tuples fail fewer lookups than unsorted
    // ones.
    assert_eq!(lengths.len(), 2 * 10);
    let failed = |scheme: &str| -> f64 {
        let row = lengths
            .iter()
            .find(|row| row[place("scheme")] == scheme)
            .unwrap();
        row[place("failed_lookups")].parse().unwrap()
    };
    assert!(failed("no cache sorted") < failed("no cache unsorted"));
    let (_, rates) = csv(&out.join("cache-rates.csv"));
    assert_eq!(rates.len(), 5);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("NaN") && !page.contains("inf "));
    // One for Fig. 9, three for Figs. 10 to 12, four of all caches, Figs. 13 and 14.
    assert_eq!(page.matches("<svg").count(), 1 + 3 + 4 + 2);
    // Two traces: Fig. 9, three pictures with one hit rate each, three schemes of Fig. 14.
    for picture in ["wildcarding-flows", "hit-rates-size", "hit-rates-threshold"] {
        let picture = format!("{picture}.svg");
        shows_paper_values(out, &picture, 2, &["paper: TRACE1", "paper: TRACE2"]);
    }
    shows_paper_values(out, "hit-rates-schemes.svg", 2, &["paper"]);
    shows_paper_values(out, "search-length-all.svg", 2 * 3, &["paper"]);
    shows_paper_values(out, "search-length-tuples.svg", 0, &[]);

    // Measures nothing again.
    let points = fs::read_to_string(out.join("points.ndjson")).unwrap();
    run(&command).exits(0).complains("going on after");
    let again = fs::read_to_string(out.join("points.ndjson")).unwrap();
    assert_eq!(again, points);

    run("reproduce fts25 --sizes 1k")
        .exits(2)
        .complains("unexpected argument '--sizes'");
}

/// The access list of a pipeline: every engine decides alike, with and without
/// caches, and all figures exist.
#[test]
fn tm19_measures_engines_in_a_pipeline() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!(
        "reproduce tm19 --section 5 --quick --sizes 40,200 --profiles acl1,fw1 --headers 600 \
         --out {out}"
    );
    let done = run(&command).exits(0);
    for claim in [
        "Fig. 10",
        "Fig. 11",
        "Fig. 12",
        "Table V",
        "Fig. 13",
        "Figs. 14, 15",
        "gain of the cache, synthetic traffic: at 64k / at 1k",
    ] {
        assert!(done.stdout.contains(claim), "{claim}");
    }
    let out = Path::new(&out);
    let (heading, rates) = csv(&out.join("pipeline-throughput.csv"));
    // Two profiles, sizes and kinds of traffic, and seven candidates.
    assert_eq!(rates.len(), 2 * 2 * 2 * 7);
    let place = |name: &str| heading.iter().position(|one| one == name).unwrap();
    for row in &rates {
        assert!(row[place("packets_per_second")].parse::<f64>().unwrap() > 0.0);
        let share: f64 = row[place("default_share")].parse().unwrap();
        assert!((0.0..=1.0).contains(&share), "{row:?}");
    }
    let (_, tables) = csv(&out.join("pipeline-tables.csv"));
    assert_eq!(tables.len(), 2 * 2);
    let (_, times) = csv(&out.join("pipeline-times.csv"));
    assert_eq!(times.len(), 2 * 2 * 4 * 4);
    for row in &times {
        let micros: Vec<f64> = row[7..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!(micros[2] > 0.0 && micros.is_sorted(), "{row:?}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("WRONG") && !page.contains("NaN") && !page.contains("inf"));
    // Nothing is said about Open vSwitch or about sizes of the paper.
    assert!(page.contains("not measured: Open vSwitch, which --open-vswitch PROGRAM measures"));
    assert!(page.contains("Of 22 claims, <b class=\"holds\">0 hold</b>"));
    // One for Figs. 10 and 11, four for Fig. 12, two for Table V. Figs. 13, 14 and 15 have
    // pictures with and without caches.
    assert_eq!(page.matches("<svg").count(), 2 + 4 + 2 + 3 * 2);
    check_caches(&out.join("pipeline-cache.csv"));
    let points = fs::read_to_string(out.join("points.ndjson")).unwrap();
    let (heading, frameworks) = csv(&out.join("pipeline-frameworks.csv"));
    assert_eq!(heading, ["rules", "workload", "engine", "cache", "mpps"]);
    // Two sizes and kinds of traffic; five contenders without caches, three with caches.
    assert_eq!(frameworks.len(), 2 * 2 * (5 + 3));
    // Each rule set has its rates, its rates with caches, and the rules that its
    // traffic matches; Fig. 12 has two sizes.
    assert_eq!(points.lines().count(), 1 + 3 * 4 + 2);

    // Another figure needs no other measurements.
    run(&format!("{command} --figures pipeline-seeds"))
        .exits(0)
        .complains("going on after 14 measurements");
    let again = fs::read_to_string(out.join("points.ndjson")).unwrap();
    assert_eq!(again, points);
}

/// Table V: each engine with each kind of traffic, without a cache, with the
/// paper's caches and with ours. The command reports WRONG if an entry counts
/// different packets with a cache; this test checks that something was compared.
fn check_caches(path: &Path) {
    let (heading, rows) = csv(path);
    // Two profiles, sizes and kinds of traffic, three engines, three workers each.
    assert_eq!(rows.len(), 2 * 2 * 2 * 3 * 3);
    let place = |name: &str| heading.iter().position(|one| one == name).unwrap();
    let number = |row: &[String], name: &str| row[place(name)].parse::<f64>().unwrap();
    for workers in rows.chunks(3) {
        let caches: Vec<&str> = workers
            .iter()
            .map(|row| row[place("cache")].as_str())
            .collect();
        assert_eq!(caches, ["none", "heavy-hitter", "adaptive and megaflows"]);
        let plain = number(&workers[0], "packets_per_second");
        assert!(plain > 0.0, "{workers:?}");
        assert_eq!(number(&workers[0], "known"), 0.0, "{workers:?}");
        assert_eq!(number(&workers[0], "gain"), 1.0, "{workers:?}");
        // 600 packets have fewer flows than fit into the caches. Our caches may be
        // bypassed if they cost more time than they save.
        assert!(number(&workers[1], "known") > 0.5, "{workers:?}");
        for row in workers {
            let gain = number(row, "packets_per_second") / plain;
            assert!((number(row, "gain") / gain - 1.0).abs() < 0.01, "{row:?}");
            assert!((0.0..=1.0).contains(&number(row, "known")), "{row:?}");
            assert!(number(row, "compared") >= 256.0, "{row:?}");
            assert!(number(row, "traffic_flows") <= 600.0, "{row:?}");
            // The paper has neither of these sizes.
            assert_eq!(row[place("gain_in_paper")], "", "{row:?}");
        }
    }
}

#[test]
fn fch14_counts_flows_and_masks() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce fch14 --quick --sizes 10,60 --headers 500 --out {out}");
    let done = run(&command).exits(0);
    for claim in ["Table 4", "Table 5", "Table 6", "Fig. 2", "ours"] {
        assert!(done.stdout.contains(claim), "{claim}");
    }
    let out = Path::new(&out);
    let (heading, acls) = csv(&out.join("acls.csv"));
    assert_eq!(
        heading[..5],
        ["acls", "list", "rules", "packets", "algorithm"]
    );
    // Two sizes of five lists each, four orders, three algorithms.
    assert_eq!(acls.len(), 2 * 5 * 4 * 3);
    for orders in acls.chunks(3) {
        let number = |row: usize, column: usize| -> usize { orders[row][column].parse().unwrap() };
        let (common, tree, ours) = (number(0, 5), number(1, 5), number(2, 5));
        assert!(common < tree && ours <= common, "{orders:?}");
        assert!(number(1, 6) <= 16 && number(2, 6) <= 32, "{orders:?}");
        assert!(orders.iter().all(|row| row[7] == "0"), "{orders:?}");
    }
    let (_, providers) = csv(&out.join("providers.csv"));
    assert_eq!(providers.len(), 2 * 3);
    let (_, cost) = csv(&out.join("cost.csv"));
    assert_eq!(cost.len(), 3 * 4);
    assert!(cost.iter().all(|row| row[3].parse::<f64>().unwrap() > 0.0));
    let (heading, products) = csv(&out.join("cross-product.csv"));
    let place = |name: &str| heading.iter().position(|one| one == name).unwrap();
    assert!(products.iter().any(|row| row[place("complete")] == "true"));
    assert!(products.iter().any(|row| row[place("complete")] == "false"));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("WRONG") && !page.contains("NaN") && !page.contains("inf "));
    assert_eq!(page.matches("<svg").count(), 4);
    let algorithms = ["paper: common match", "paper: decision tree"];
    for picture in ["acls-flows.svg", "acls-masks.svg"] {
        shows_paper_values(out, picture, 2 * 5, &algorithms);
    }
    shows_paper_values(out, "cost.svg", 3 * 3, &["paper"]);
    shows_paper_values(out, "cross-product.svg", 0, &[]);

    // Measures nothing again.
    let points = fs::read_to_string(out.join("points.ndjson")).unwrap();
    run(&command).exits(0).complains("going on after");
    let again = fs::read_to_string(out.join("points.ndjson")).unwrap();
    assert_eq!(again, points);

    for (command, complaint) in [
        ("fch14 --profiles acl1", "unexpected argument '--profiles'"),
        ("fch14 --sizes 70k", "there are 65536 ports"),
    ] {
        run(&format!("reproduce {command}"))
            .exits(2)
            .complains(complaint);
    }
}

#[test]
fn sections_are_of_tm19_and_have_options_of_their_own() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let tables = format!("--figures tables --sizes 100 --profiles acl1 --out {out}");
    run(&format!("reproduce tm19 {tables}")).exits(0);
    run(&format!("reproduce tm19 --section 4 {tables}"))
        .exits(0)
        .complains("going on after 1 measurement");
    for (command, complaint) in [
        ("tm19 --section 6", "possible values: 4, 5"),
        ("sfl17 --section 5", "unexpected argument '--section'"),
        (
            "tm19 --section 5 --changes 10",
            "--changes is for section 4 of tm19",
        ),
        (
            "tm19 --section 5 --build-time 10s",
            "--build-time is for section 4 of tm19",
        ),
        ("tm19 --section 5 --run 1s", "unexpected argument '--run'"),
        (
            "tm19 --section 5 --sizes 1k,70k",
            "priorities for at most 65535 rules",
        ),
        (
            "tm19 --section 5 --figures tables",
            "tm19 --section 5 has no figure `tables`; expected some of pipeline-tables",
        ),
        (
            "tm19 --figures pipeline-tables",
            "tm19 has no figure `pipeline-tables`; expected some of tables",
        ),
    ] {
        run(&format!("reproduce {command} --out {out}"))
            .exits(2)
            .complains(complaint);
    }
}
