//! `reproduce dec14` with own engines, rules and headers.

use serde_json::Value;

use crate::reproduce_own::{FILTERS, HEADERS, measures_no_claim, rows};
use crate::support::{Folder, run};

#[test]
fn dec14_times_own_engines_by_headers_together() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let own = format!("-e tss -r {rules} -t {trace}");
    for (index, (inputs, name)) in [
        (own.as_str(), rules.as_str()),
        ("-e tss --sizes 50 --headers 300", "openflow15"),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path(&format!("figures{index}"));
        let done = run(&format!(
            "reproduce dec14 {inputs} --figures concurrency --quick --out {out} --format json"
        ));
        measures_no_claim(&done.exits(0).json());
        let times = rows(&out, "own-concurrency.csv");
        assert_eq!(times.len(), 2 + 1);
        for row in &times {
            assert_eq!(row["rule_set"], name);
            assert_eq!(row["wrong"], "0", "{row}");
        }
    }
}

#[test]
fn dec14_predicts_and_rates_own_rules() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("figures");
    let inputs = format!("-e tss -r {rules} -t {trace} --quick");
    let command = format!("reproduce dec14 {inputs} --figures latency,throughput --out {out}");
    measures_no_claim(&run(&format!("{command} --format json")).exits(0).json());
    let is_number = |row: &Value, column: &str| {
        let text = row[column].as_str().unwrap();
        text.parse::<f64>().is_ok_and(|value| value > 0.0)
    };
    let latency = rows(&out, "own-latency.csv");
    let throughput = rows(&out, "own-throughput.csv");
    assert_eq!((latency.len(), throughput.len()), (2 + 1, 4 + 1));
    for row in &latency {
        assert!(
            is_number(row, "single_ns") && is_number(row, "batch_ns"),
            "{row}"
        );
        // The model is of decomposition.
        let is_modelled = row["engine"] != "tss";
        for column in ["single_predicted_ns", "batch_predicted_ns"] {
            assert_eq!(is_number(row, column), is_modelled, "{row}");
        }
    }
    for row in &throughput {
        for column in ["single_million_per_second", "batch_million_per_second"] {
            assert!(is_number(row, column), "{row}");
        }
    }
    for row in latency.iter().chain(&throughput) {
        assert_eq!(row["rule_set"], rules.as_str());
        assert_eq!(
            (&row["wrong"], &row["not_built"]),
            (&"0".into(), &"".into())
        );
    }
}

/// Parts of dec14 that have other quantities than times of engines.
#[test]
fn dec14_counts_splits_and_forecasts_own_rules() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("figures");
    let dec14 = |inputs: &str| {
        let done = run(&format!(
            "reproduce dec14 {inputs} -r {rules} --quick --out {out} --format json"
        ));
        measures_no_claim(&done.exits(0).json());
    };
    dec14("--figures rule-sets");
    let counted = rows(&out, "own-rule-sets.csv");
    let counted = counted.iter().map(|row| (&row["field"], &row["unique"]));
    let unique = [
        ("src", 5),
        ("dst", 5),
        ("sport", 2),
        ("dport", 6),
        ("proto", 3),
    ];
    let unique =
        unique.map(|(field, unique)| (Value::from(field), Value::from(unique.to_string())));
    assert!(counted.eq(unique.iter().map(|(field, unique)| (field, unique))));

    dec14(&format!("-t {trace} --figures equations,fields"));
    let equations = &rows(&out, "own-equations.csv")[..];
    assert_eq!(equations.len(), 1);
    let number =
        |row: &Value, column: &str| -> f64 { row[column].as_str().unwrap().parse().unwrap() };
    // Six rules over five fields: one word of each vector, and half of it in the merge. Four
    // trees of log2 of 5, 5, 2 and 6 matches, and a hash table with two places.
    let levels = 5_f64.log2() * 2.0 + 1.0 + 6_f64.log2();
    let v_1 = 5.0 + 2.5 + levels + 2.0;
    let factor = number(&equations[0], "v_1") / v_1;
    let instructions = 23.0 * levels + 76.0 + 115.0;
    assert!((number(&equations[0], "v_inst") - instructions).abs() < 1e-6);
    // Without the processor's counters, λ_1 is 1.
    assert!(factor > 0.0, "{factor}");
    for column in ["latency_ns", "counts_ns", "latency_64_ns", "counts_64_ns"] {
        assert!(number(&equations[0], column) > 0.0, "{column}");
    }
    let fields = rows(&out, "own-fields.csv");
    let ways: Vec<&str> = fields
        .iter()
        .map(|row| row["way"].as_str().unwrap())
        .collect();
    assert_eq!(ways, ["one core", "a packet a core", "a field a core"]);
    are_timed(&fields, &["ns", "times_one_core"]);

    dec14(&format!("-e tss -t {trace} --figures random-headers,split"));
    let split = rows(&out, "own-split.csv");
    let columns = ["whole_ns", "part_ns", "merge_ns", "throughput_ratio"];
    assert_eq!(split.len(), 2 + 1);
    are_timed(&split, &columns);
    let kinds = rows(&out, "own-random-headers.csv");
    assert_eq!(kinds.len(), 2 + 1);
    let columns = ["bursts", "corners", "random", "own"].map(|kind| format!("{kind}_single_ns"));
    are_timed(&kinds, &columns.each_ref().map(String::as_str));

    // Times of own headers need own headers. Generated rules have fifteen fields.
    dec14("--figures random-headers");
    assert!(
        rows(&out, "own-random-headers.csv")[0]
            .get("own_single_ns")
            .is_none()
    );
    let command = "reproduce dec14 -e tss --sizes 50 --headers 300 --quick";
    let done = run(&format!(
        "{command} --out {} --format json",
        folder.path("generated")
    ));
    let report = done
        .exits(0)
        .complains("left out: rule-sets cannot use --engines")
        .json();
    let left_out = report["left_out"].as_array().unwrap().iter();
    let left_out: Vec<&str> = left_out
        .map(|one| one["figure"].as_str().unwrap())
        .collect();
    assert_eq!(left_out, ["rule-sets", "equations", "fields"]);
}

/// Checks that answers are right, and that each row has its times, unless the cores were not
/// free.
fn are_timed(rows: &[Value], columns: &[&str]) {
    for row in rows {
        assert_eq!(row["wrong"], "0", "{row}");
        let is_free = row["not_built"] == "";
        assert!(
            is_free || row["not_built"].as_str().unwrap().contains("processor"),
            "{row}"
        );
        for &column in columns {
            let value = row[column].as_str().unwrap().parse::<f64>();
            assert_eq!(value.is_ok_and(|value| value > 0.0), is_free, "{row}");
        }
    }
}

/// Own rules over other fields than the paper's, and rules that a part cannot use.
#[test]
fn dec14_refuses_rules_by_the_name_of_the_part() {
    let folder = Folder::new();
    let wide = folder.file(
        "wide.rules",
        "schema ipv6-5tuple\ndrop src=2001:db8::/32 dport=1-65534\nallow proto=tcp\n",
    );
    let out = folder.path("wide");
    let figures = "equations,fields,split,random-headers,rule-sets";
    run(&format!(
        "reproduce dec14 -r {wide} --quick --headers 300 --figures {figures} --out {out}"
    ))
    .exits(0);
    assert_eq!(rows(&out, "own-equations.csv")[0]["wrong"], "0");
    are_timed(&rows(&out, "own-fields.csv"), &["ns"]);
    let both = folder.file("both.rules", "schema dual-5tuple\nallow proto=tcp\n");
    for figure in ["equations", "fields", "split", "random-headers"] {
        let out = folder.path("both");
        run(&format!(
            "reproduce dec14 -r {both} --figures {figure} --out {out}"
        ))
        .exits(2)
        .complains(&format!(
            "figure `{figure}` of dec14 needs rules of one schema"
        ));
    }
    // Both schemas have a table.
    let out = folder.path("counted");
    run(&format!(
        "reproduce dec14 -r {both} --figures rule-sets --out {out}"
    ))
    .exits(0);
    assert_eq!(rows(&out, "own-rule-sets.csv").len(), 5 + 5);
    for figure in ["equations", "fields"] {
        run(&format!(
            "reproduce dec14 -e tss --figures {figure} --out {out}"
        ))
        .exits(2)
        .complains(&format!("figure `{figure}` of dec14 cannot use --engines"));
    }
    let many = "drop proto=tcp\n".repeat(8_001);
    let many = folder.file("many.rules", format!("schema ipv4-5tuple\n{many}"));
    let out = folder.path("many");
    run(&format!(
        "reproduce dec14 -r {many} --quick --headers 300 --figures fields --out {out}"
    ))
    .exits(0);
    let row = &rows(&out, "own-fields.csv")[0];
    let reason = row["not_built"].as_str().unwrap();
    assert!(
        reason.contains("8001 rules; the vectors of `fields` hold at most 8000"),
        "{row}"
    );
}
