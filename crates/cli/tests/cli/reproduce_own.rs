//! `reproduce` with own engines, rules, headers and captures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, run};

/// A filter set as ClassBench writes it.
pub(crate) const FILTERS: &str = "\
@10.0.0.0/8\t192.168.1.0/24\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000
@10.1.0.0/16\t192.168.0.0/16\t0 : 65535\t443 : 443\t0x06/0xFF\t0x0000/0x0000
@10.1.2.0/24\t0.0.0.0/0\t1024 : 65535\t53 : 53\t0x11/0xFF\t0x0000/0x0000
@172.16.0.0/12\t192.168.1.7/32\t0 : 65535\t22 : 22\t0x06/0xFF\t0x0000/0x0000
@0.0.0.0/0\t192.168.2.0/24\t0 : 65535\t0 : 1023\t0x00/0x00\t0x0000/0x0000
@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000
";

/// Headers for these filters: addresses, ports and protocol.
pub(crate) const HEADERS: &str = "\
167837953\t3232235777\t4000\t443\t6
167837955\t3232235778\t4001\t80\t6
2886729729\t3232235783\t4002\t22\t6
134744072\t3232236034\t4003\t500\t17
";

/// The capture of the embedded example.
pub(crate) const CAPTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../report/embedded/office.pcap"
);

fn points(out: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(out).join("points.ndjson")).unwrap();
    let lines = text.lines().skip(1);
    let point = |line: &str| -> String {
        let line: Value = serde_json::from_str(line).unwrap();
        line["point"].as_str().unwrap().to_owned()
    };
    lines.map(point).collect()
}

/// Checks that a report has claims and that none of them is measured.
#[track_caller]
pub(crate) fn measures_no_claim(report: &Value) {
    let sections = report["sections"].as_array().unwrap().iter();
    let claims = sections.flat_map(|section| section["claims"].as_array().unwrap());
    let claims: Vec<&Value> = claims.collect();
    assert!(!claims.is_empty());
    for claim in claims {
        assert_eq!(claim["verdict"], "not measured", "{claim}");
        for part in claim["parts"].as_array().unwrap() {
            let measured = part["cases"][0]["measured"].as_str().unwrap();
            assert!(measured.contains("own inputs"), "{part}");
        }
    }
}

/// Returns the rows of a file by the names of their columns.
pub(crate) fn rows(out: &str, name: &str) -> Vec<Value> {
    let path = Path::new(out).join(name);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let rows = reader.deserialize::<std::collections::BTreeMap<String, String>>();
    rows.map(|row| serde_json::to_value(row.unwrap()).unwrap())
        .collect()
}

#[test]
fn tm19_shows_own_engines_rules_and_headers() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("figures");
    let engines = "-e hyper-cuts,tuplemerge:c=8";
    let offline = format!(
        "reproduce tm19 {engines} -r {rules} -t {trace} --figures offline --out {out} \
         --format json"
    );
    let report = run(&offline).exits(0).json();
    measures_no_claim(&report);
    let inputs = report["inputs"].as_array().unwrap();
    let names: Vec<&str> = inputs
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["hyper-cuts", "tuplemerge:c=8", &rules, &trace]);
    assert_eq!(inputs[2]["entries"], 6);
    assert_eq!(inputs[3]["entries"], 4);
    assert_eq!(inputs[2]["content"].as_str().unwrap().len(), 32);
    assert_eq!(report["left_out"].as_array().unwrap().len(), 0);
    let data = rows(&out, "own-offline.csv");
    assert_eq!(data.len(), 3 + 2);
    for row in &data {
        assert_eq!(row["rule_set"], rules.as_str());
        assert_eq!(row["rules"], "6");
        assert_eq!(row["wrong"], "0");
        assert_eq!(row["not_built"], "");
        assert!(row["lookup_ns"].as_str().unwrap().parse::<f64>().unwrap() > 0.0);
    }
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("Own inputs: --engines hyper-cuts, --engines tuplemerge:c=8"));
    assert!(page.contains("no claim is measured") && !page.contains("NaN"));
    assert_eq!(page.matches("<svg").count(), 4);

    // Without headers, they are drawn from the rules. Eight engines of the paper's figure.
    let tables =
        format!("reproduce tm19 {engines} -r {rules} --figures tables --out {out} --format json");
    measures_no_claim(&run(&tables).exits(0).json());
    assert_eq!(rows(&out, "own-tables.csv").len(), 8 + 2);
}

/// Measurements are kept by the contents of files: a changed rule or header is measured
/// again, and nothing else is.
#[test]
fn changed_inputs_are_measured_again() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("figures");
    let command =
        format!("reproduce tm19 -e hyper-cuts -r {rules} -t {trace} --figures offline --out {out}");
    run(&command).exits(0);
    let before = points(&out);
    assert_eq!(before.len(), 1);
    run(&command)
        .exits(0)
        .complains("going on after 1 measurement");
    assert_eq!(points(&out), before);

    // Another name of the same file changes nothing.
    let renamed = folder.file("renamed.rules", FILTERS);
    run(&command.replace(&rules, &renamed)).exits(0);
    assert_eq!(points(&out), before);

    folder.file("acl.rules", FILTERS.replace("443 : 443", "444 : 444"));
    run(&command).exits(0);
    assert_eq!(points(&out).len(), 2);
    folder.file("acl.trace", HEADERS.replace("4003", "4004"));
    run(&command).exits(0);
    assert_eq!(points(&out).len(), 3);
    run(&command.replace("hyper-cuts", "hyper-split")).exits(0);
    let after = points(&out);
    assert_eq!(after.len(), 4, "{after:?}");
    run(&command).exits(0);
    assert_eq!(points(&out), after);
}

/// A measurement of another build of the program is refused.
#[test]
fn measurements_of_another_build_are_not_used() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce tm19 --figures tables --sizes 50 --profiles acl1 --out {out}");
    run(&command).exits(0);
    let path = Path::new(&out).join("points.ndjson");
    let text = fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let build = first["build"].as_str().unwrap();
    assert_eq!(build.len(), 32);
    fs::write(&path, text.replace(build, "0123")).unwrap();
    run(&command)
        .exits(2)
        .complains("measurements of another reproduction: build 0123")
        .complains("--restart measures everything again");
    // A file of an older version has no build.
    fs::write(&path, text.replace(&format!("\"build\":\"{build}\","), "")).unwrap();
    run(&command)
        .exits(2)
        .complains("another reproduction: build unknown");
    run(&format!("{command} --restart")).exits(0);
}

/// The contents of a profile's file count, and not only its name.
#[test]
fn a_changed_profile_is_another_reproduction() {
    let folder = Folder::new();
    let profile = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../workload/profiles/acl1.toml"
    );
    let text = fs::read_to_string(profile).unwrap();
    let path = folder.file("own.toml", &text);
    let out = folder.path("figures");
    let command =
        format!("reproduce tm19 --figures tables --sizes 50 --profiles {path} --out {out}");
    run(&command).exits(0);
    run(&command)
        .exits(0)
        .complains("going on after 1 measurement");
    folder.file("own.toml", format!("{text}\n# changed\n"));
    run(&command)
        .exits(2)
        .complains("another reproduction: --profiles");
}

#[test]
fn online_takes_own_rules_and_captured_headers() {
    let folder = Folder::new();
    let rules = folder.file("acl.rules", FILTERS);
    let out = folder.path("figures");
    let done = run(&format!(
        "reproduce tm19 -e decomposition,tuplemerge:c=8 -r {rules} -r {rules} -c {CAPTURE} \
         --figures offline --out {out} --format json"
    ))
    .exits(0);
    measures_no_claim(&done.json());
    // The same rules twice are measured once.
    assert_eq!(points(&out).len(), 1);
    assert_eq!(rows(&out, "own-offline.csv").len(), 2 * (3 + 2));

    let done = run(&format!(
        "reproduce tm19 -e tuplemerge:c=8 -r {rules} --figures online --changes 50 \
         --out {out} --format json"
    ))
    .exits(0);
    measures_no_claim(&done.json());
    let online = rows(&out, "own-online.csv");
    assert_eq!(online.len(), 6 + 1);
    for row in &online {
        assert_eq!(row["wrong"], "0", "{row}");
        for column in ["update_ns", "lookup_ns", "index_bytes", "bytes"] {
            let value: f64 = row[column].as_str().unwrap().parse().unwrap();
            assert!(value > 0.0, "{row}");
        }
    }
}

/// Fig. 6 and the growth of rule sets with own engines and rules, and Figs. 7 and 8 with own
/// rules and headers.
#[test]
fn tm19_counts_tables_and_finds_collision_limits_of_own_rules() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("figures");
    let number =
        |row: &Value, column: &str| -> f64 { row[column].as_str().unwrap().parse().unwrap() };
    let done = run(&format!(
        "reproduce tm19 -e tss -r {rules} --figures partitions,growth --out {out} --format json"
    ));
    measures_no_claim(&done.exits(0).json());
    let partitions = rows(&out, "own-partitions.csv");
    let engines: Vec<&str> = partitions
        .iter()
        .map(|row| row["engine"].as_str().unwrap())
        .collect();
    assert_eq!(
        engines,
        [
            "tuplemerge",
            "tuplemerge-offline",
            "partition-sort:leaf=1",
            "tss"
        ]
    );
    // Tuple space search has a table for each mask: every filter has its own mask. The
    // filters overlap, so there are at least two sets.
    let tss = &partitions[3];
    assert_eq!(number(tss, "tables"), 6.0);
    for column in ["tables_per_set_all_fields", "tables_per_set_two_fields"] {
        let ratio = number(tss, column);
        assert!((1.0..=3.0).contains(&ratio), "{column} {ratio}");
    }
    let growth = rows(&out, "own-growth.csv");
    assert_eq!(growth.len(), 2);
    for row in &growth {
        assert_eq!(row["not_built"], "");
        assert!(number(row, "build_ms") > 0.0);
        assert!(number(row, "bytes") > number(row, "index_bytes"), "{row}");
    }
    let done = run(&format!(
        "reproduce tm19 -r {rules} -t {trace} --figures collision-limit --out {out} --format json"
    ));
    measures_no_claim(&done.exits(0).json());
    let limits = rows(&out, "own-collision-limit.csv");
    assert_eq!(limits.len(), 2);
    for row in &limits {
        assert!((1.0..=120.0).contains(&number(row, "best_c")), "{row}");
        let (best, paper) = (number(row, "best_c_ns"), number(row, "paper_c_ns"));
        assert!(0.0 < best && best <= paper, "{row}");
    }
}

/// Own engines next to the paper's over generated rules; figures that cannot use them are
/// left out and named.
#[test]
fn own_engines_are_compared_over_generated_rules() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let done = run(&format!(
        "reproduce tm19 -e bit-vector --sizes 50,100 --profiles acl1,fw1 --headers 300 \
         --out {out} --format json"
    ))
    .exits(0)
    .complains("left out: collision-limit cannot use --engines")
    .complains("left out: online cannot use --engines bit-vector");
    let report = done.json();
    measures_no_claim(&report);
    let left_out = report["left_out"].as_array().unwrap();
    let figures: BTreeSet<&str> = left_out
        .iter()
        .map(|one| one["figure"].as_str().unwrap())
        .collect();
    assert_eq!(figures, ["collision-limit", "online"].into());
    // Two profiles and sizes, and the figure's engines before the user's.
    assert_eq!(rows(&out, "own-partitions.csv").len(), 2 * 2 * (3 + 1));
    assert_eq!(rows(&out, "own-growth.csv").len(), 2 * 2 * (1 + 1));
    assert_eq!(rows(&out, "own-offline.csv").len(), 2 * 2 * 4);
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("Left out: online cannot use --engines bit-vector"));
}

#[test]
fn sfl17_changes_own_rules() {
    let folder = Folder::new();
    let rules = folder.file("acl.rules", FILTERS);
    let out = folder.path("figures");
    let command = format!(
        "reproduce sfl17 -e cut-split -r {rules} --quick --run 20ms --out {out} --format json"
    );
    let report = run(&command).exits(0).json();
    measures_no_claim(&report);
    assert_eq!(report["left_out"].as_array().unwrap().len(), 0);
    // The engines of the figures and the user's engine.
    for (file, engine_count) in [("own-updates.csv", 11 + 1), ("own-threshold.csv", 33 + 1)] {
        let runs = rows(&out, file);
        assert_eq!(runs.len(), engine_count, "{file}");
        for row in &runs {
            assert_eq!(
                (&row["wrong"], &row["not_built"]),
                (&"0".into(), &"".into()),
                "{row}"
            );
            let number = |column: &str| row[column].as_str().unwrap().parse::<f64>().unwrap();
            assert!(number("insertions_headers_per_second") >= 0.0, "{row}");
            assert!(number("deletions_headers_per_second") >= 0.0, "{row}");
            // A run of 20 ms issues one change, which a busy machine may make too late.
            for column in ["insertions_made", "deletions_made"] {
                assert!([0.0, 1.0].contains(&number(column)), "{row}");
            }
        }
    }
    let operations = rows(&out, "own-operations.csv");
    assert_eq!(operations.len(), 11 + 1);
    for row in &operations {
        assert_eq!(row["wrong"], "0", "{row}");
        assert!(
            row["deletions_lookup_ns"]
                .as_str()
                .unwrap()
                .parse::<f64>()
                .unwrap()
                > 0.0
        );
    }
}

#[test]
fn fts25_sends_own_captures_through_caches() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce fts25 -c {CAPTURE} --out {out} --format json");
    let done = run(&command)
        .exits(0)
        .complains("left out: tables cannot use --capture without --rules");
    let report = done.json();
    measures_no_claim(&report);
    assert_eq!(report["inputs"][0]["option"], "--capture");
    assert!(report["inputs"][0]["entries"].as_u64().unwrap() > 50);
    // The paper says nothing about own captures.
    assert!(!Path::new(&out).join("paper-values.csv").exists());
    let rates = rows(&out, "own-hit-rates.csv");
    assert!(rates.len() > 50);
    for row in &rates {
        assert_eq!(row["trace"], CAPTURE);
        let rate: f64 = row["hit_rate"].as_str().unwrap().parse().unwrap();
        assert!((0.0..=1.0).contains(&rate), "{row}");
    }
    let best = rates.iter().map(|row| row["hit_rate"].as_str().unwrap());
    assert!(best.into_iter().any(|rate| rate != "0.00000"));
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(!page.contains("NaN") && !page.contains("inf "));
    // Hit rates, wildcarding flows and search lengths.
    assert_eq!(page.matches("<svg").count(), 3 + 2 + 1 + 2);
    assert!(!rows(&out, "own-wildcarding-flows.csv").is_empty());
    assert_eq!(rows(&out, "own-search-length.csv").len(), 10);
    // All figures share one pass over the packets.
    let before = points(&out);
    assert_eq!(before.len(), 1);
    run(&command).exits(0);
    assert_eq!(points(&out), before);
}

/// Checks that each command is refused with a message that contains the text, before
/// anything is written.
fn are_refused(folder: &Folder, cases: &[(String, &str)]) {
    let out = folder.path("figures");
    for (arguments, complaint) in cases {
        run(&format!("reproduce {arguments} --out {out}"))
            .exits(2)
            .complains(complaint);
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn bad_files_are_refused_with_their_lines() {
    let folder = Folder::new();
    let good = folder.file("good.rules", FILTERS);
    let headers = folder.file("good.trace", HEADERS);
    let missing = folder.path("missing");
    let broken = FILTERS.replace("@10.1.2.0/24", "@10.1.2.0/99");
    let broken = folder.file("broken.rules", broken);
    let empty = folder.file("empty.rules", "");
    let no_rules = folder.file("none.rules", "schema ipv4-5tuple\n");
    let bad_headers = folder.file("bad.trace", "1\t2\t3\t4\t6\n1\t2\tx\t4\t6\n");
    let no_headers = folder.file("none.trace", "");
    let no_capture = folder.file("bad.pcap", "not a capture, but long enough to be one");
    let no_ipv4 = folder.path("arp.pcap");
    fs::write(&no_ipv4, capture(&[(7, arp())])).unwrap();
    let with = |arguments: &str| format!("tm19 -r {good} {arguments}");
    are_refused(
        &folder,
        &[
            (format!("tm19 -r {missing}"), "missing: No such file"),
            (format!("tm19 -r {broken}"), "broken.rules:3:"),
            (format!("tm19 -r {empty}"), "empty.rules"),
            (format!("tm19 -r {no_rules}"), "none.rules has no rules"),
            (with(&format!("-t {missing}")), "missing: No such file"),
            (with(&format!("-t {bad_headers}")), "bad.trace:2:"),
            (
                with(&format!("-t {no_headers}")),
                "none.trace has no header",
            ),
            (
                with(&format!("-c {no_ipv4}")),
                "has no header of ipv4-5tuple",
            ),
            (
                with(&format!("-r {good} -r {good} -t {headers} -t {headers}")),
                "2 files of --trace",
            ),
            (format!("fts25 -c {missing}"), "missing: No such file"),
            (format!("fts25 -c {no_capture}"), "bad.pcap"),
            (format!("fts25 -c {no_ipv4}"), "arp.pcap has no IPv4 packet"),
        ],
    );
}

/// Inputs that a figure cannot use, and options that contradict each other.
#[test]
fn unusable_inputs_are_refused_by_name() {
    let folder = Folder::new();
    let good = folder.file("good.rules", FILTERS);
    let headers = folder.file("good.trace", HEADERS);
    let with = |arguments: &str| format!("tm19 -r {good} {arguments}");
    let traced = |arguments: &str| with(&format!("-t {headers} {arguments}"));
    let tm19 = "figure `online` of tm19 cannot use --engines bit-vector, which takes no updates";
    are_refused(
        &folder,
        &[
            (
                "tm19 -e nosuch".to_owned(),
                "there is no engine `nosuch`; there are linear, forest",
            ),
            ("tm19 -r - -t -".to_owned(), "standard input"),
            (format!("tm19 -t {headers}"), "--rules <FILE>"),
            (traced(&format!("-c {CAPTURE}")), "cannot be used with"),
            (
                with("--sizes 1k"),
                "--sizes describes generated inputs, and --rules replaces",
            ),
            (
                traced("--headers 1k"),
                "--headers describes generated inputs, and --trace replaces",
            ),
            (
                "tm19 -e tss --figures collision-limit".to_owned(),
                "figure `collision-limit` of tm19 cannot use --engines",
            ),
            (
                traced("--figures tables"),
                "figure `tables` of tm19 cannot use --trace",
            ),
            ("tm19 -e bit-vector --figures online".to_owned(), tm19),
            (
                format!("tm19 -c {CAPTURE}"),
                "tables cannot use --capture without --rules",
            ),
            (
                "dec14 -e tss --figures rule-sets".to_owned(),
                "figure `rule-sets` of dec14 cannot use",
            ),
            (
                "fch14 -e tss".to_owned(),
                "no figure of fch14 can use these inputs: acls cannot use --engines",
            ),
            (
                format!("fch14 -c {CAPTURE} --figures cross-product"),
                "figure `cross-product` of fch14 cannot use --capture without --rules",
            ),
            (format!("fts25 -r {good}"), "tables cannot use --rules"),
            (
                format!("fts25 -r {good}"),
                "search-length: --capture without --rules",
            ),
            (
                format!("fts25 -c {CAPTURE} --figures tables"),
                "figure `tables` of fts25 cannot use",
            ),
        ],
    );
}

/// Returns a capture of Ethernet frames, each with its seconds.
fn capture(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (seconds, frame) in frames {
        let length = u32::try_from(frame.len()).unwrap();
        for word in [*seconds, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Returns an ARP packet.
fn arp() -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.resize(42, 1);
    frame
}

/// Returns a UDP packet over IPv4.
fn udp() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 1, 2, 3, 192, 168, 1, 7, 0x10, 0, 0, 53, 0, 8, 0, 0]);
    frame
}

/// Captures whose times jump, and rule sets of one rule.
#[test]
fn strange_inputs_are_measured_or_refused() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let long = folder.path("long.pcap");
    fs::write(&long, capture(&[(0, udp()), (2_000_000_000, udp())])).unwrap();
    run(&format!("reproduce fts25 -c {long} --out {out}"))
        .exits(2)
        .complains("the packets of")
        .complains("span 2000000000 s; figures take at most a day");
    // Times that decrease, and all packets in the same moment.
    for (name, times) in [("back.pcap", [50, 7]), ("once.pcap", [9, 9])] {
        let path = folder.path(name);
        let frames = times.map(|seconds| (seconds, udp()));
        fs::write(&path, capture(&[&frames[..], &[(9, arp())]].concat())).unwrap();
        let done = run(&format!(
            "reproduce fts25 -c {path} --figures hit-rates --out {out} --format json"
        ));
        let done = done.exits(0).complains("1 packet left out");
        assert_eq!(done.json()["inputs"][0]["entries"], 2);
        let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf "), "{name}");
    }
    let one = FILTERS.lines().next().unwrap();
    let one = folder.file("one.rules", format!("{one}\n"));
    for (paper, figures, file) in [
        (
            "tm19",
            "tables,online,offline,partitions,growth --changes 5",
            "own-online.csv",
        ),
        ("sfl17", "operations", "own-operations.csv"),
        ("dec14", "concurrency --quick", "own-concurrency.csv"),
    ] {
        let out = folder.path(paper);
        run(&format!(
            "reproduce {paper} -r {one} --figures {figures} --out {out}"
        ))
        .exits(0);
        for row in rows(&out, file) {
            assert_eq!(
                (&row["wrong"], &row["not_built"]),
                (&"0".into(), &"".into()),
                "{row}"
            );
        }
    }
}

/// The keys and the columns of reports are in docs/reports.md.
#[test]
fn every_key_and_column_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## reproduce\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let folder = Folder::new();
    let rules = folder.file("acl.rules", FILTERS);
    let mut names = BTreeSet::new();
    for (index, command) in [
        "tm19 --sizes 60 --profiles acl1 --headers 200 --changes 50 --sets 1".to_owned(),
        "tm19 --section 5 --quick --sizes 40 --profiles acl1 --headers 300".to_owned(),
        "sfl17 --quick --sizes 60 --profiles acl1 --headers 200 --sets 1 --run 10ms".to_owned(),
        "dec14 --quick --sizes 60,120 --headers 200".to_owned(),
        "fch14 --quick --sizes 10 --headers 200".to_owned(),
        "fts25 --quick --headers 3k".to_owned(),
        format!("tm19 -e tss -r {rules} --changes 50"),
        format!("sfl17 -r {rules} --quick --run 10ms"),
        format!("dec14 --quick -r {rules}"),
        format!("tm19 --section 5 --quick -r {rules} --headers 300"),
        format!("fch14 --quick -r {rules} --headers 200"),
        format!("fts25 -c {CAPTURE}"),
    ]
    .iter()
    .enumerate()
    {
        let out = folder.path(&format!("out{index}"));
        let done = run(&format!("reproduce {command} --format json --out {out}")).exits(0);
        keys(&done.json(), &mut names);
        for file in fs::read_dir(&out).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                let file = path.file_name().unwrap().to_str().unwrap();
                names.insert(file.to_owned());
                let text = fs::read_to_string(&path).unwrap();
                let heading = text.lines().next().unwrap();
                names.extend(heading.split(',').map(str::to_owned));
            }
        }
    }
    let is_missing = |name: &&String| !section.contains(&format!("`{name}`"));
    let missing: Vec<&String> = names.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "docs/reports.md lacks {missing:?}");
}

fn keys(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                names.insert(key.clone());
                keys(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, names)),
        _ => {}
    }
}
