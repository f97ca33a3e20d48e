//! `reproduce` with own rules and headers in the figures of caches and switches.

use serde_json::Value;

use crate::reproduce_own::{CAPTURE, FILTERS, HEADERS, measures_no_claim, rows};
use crate::support::{Folder, run};

/// Returns a number of a row.
fn number(row: &Value, column: &str) -> f64 {
    row[column].as_str().unwrap().parse().unwrap()
}

/// The flows of own rules and headers, which are few enough to count: naive flows have all
/// mask bits of the rules above.
#[test]
fn fch14_counts_flows_and_masks_of_own_rules() {
    let folder = Folder::new();
    let rules = folder.file(
        "ports.rules",
        "schema ipv4-5tuple\n\
         drop proto=tcp dport=1024-1030\n\
         drop proto=tcp dport=80\n\
         allow proto=tcp\n",
    );
    // Ports 80, 81, 82, 80 and 1029, and UDP.
    let trace = folder.file(
        "ports.trace",
        "1 2 3 80 6\n1 2 3 81 6\n1 2 3 82 6\n1 2 3 80 6\n1 2 3 1029 6\n1 2 3 80 17\n",
    );
    let out = folder.path("figures");
    let acls =
        format!("reproduce fch14 -r {rules} -t {trace} --figures acls --out {out} --format json");
    measures_no_claim(&run(&acls).exits(0).json());
    let flows = rows(&out, "own-acls.csv");
    let algorithms: Vec<&str> = flows
        .iter()
        .map(|row| row["algorithm"].as_str().unwrap())
        .collect();
    assert_eq!(algorithms.len(), 5);
    assert_eq!((algorithms[0], algorithms[3]), ("naive", "decision tree"));
    for row in &flows {
        assert_eq!(row["rule_set"], rules.as_str());
        assert_eq!((&row["rules"], &row["wrong"]), (&"3".into(), &"0".into()));
        assert!(number(row, "masks") <= number(row, "flows"), "{row}");
        assert!(number(row, "flows") <= number(&flows[0], "flows"), "{row}");
        assert!(number(row, "flows") >= 4.0, "a flow has one winner: {row}");
    }
    // Five headers: port 1029 wins its rule under a mask of its block, and all others miss
    // each block and port 80. The naive flows have all of these bits.
    assert_eq!(flows[0]["flows"], "5");
    assert_eq!(flows[0]["shuffled_flows"], "5");
    // The headers of a capture, and headers that are drawn from the rules.
    for (index, headers) in [format!("-c {CAPTURE}"), "--headers 500".to_owned()]
        .iter()
        .enumerate()
    {
        let out = folder.path(&format!("more{index}"));
        let command = format!("reproduce fch14 --quick -r {rules} {headers} --out {out}");
        let done = run(&format!("{command} --format json")).exits(0);
        let report = done
            .complains("left out: providers cannot use --rules")
            .json();
        measures_no_claim(&report);
        for row in rows(&out, "own-cost.csv")
            .iter()
            .chain(&rows(&out, "own-acls.csv"))
        {
            assert_eq!(row["wrong"], "0", "{row}");
            assert_eq!(row["not_built"], "", "{row}");
        }
        for row in &rows(&out, "own-cost.csv") {
            for column in ["classify_ns", "flow_ns", "prepare_ms"] {
                assert!(number(row, column) > 0.0, "{row}");
            }
        }
    }
    // Keys of other widths, and rules with too many values under masks.
    let wide = folder.file(
        "wide.rules",
        "schema ipv6-5tuple\ndrop src=2001:db8::/32 dport=1-65534\nallow proto=tcp\n",
    );
    let out = folder.path("wide");
    let command = format!("reproduce fch14 --quick -r {wide} --figures acls --headers 300");
    run(&format!("{command} --out {out}")).exits(0);
    for row in &rows(&out, "own-acls.csv") {
        assert_eq!(
            (&row["wrong"], &row["not_built"]),
            (&"0".into(), &"".into())
        );
    }
    let ranges = "drop sport=1-65534 dport=1-65534\n".repeat(160);
    let many = folder.file("many.rules", format!("schema ipv4-5tuple\n{ranges}"));
    let out = folder.path("many");
    let command = format!("reproduce fch14 --quick -r {many} --figures acls --headers 300");
    run(&format!("{command} --out {out}")).exits(0);
    for row in &rows(&out, "own-acls.csv") {
        let reason = row["not_built"].as_str().unwrap();
        assert!(
            reason.contains("more than 131072 values under masks"),
            "{row}"
        );
    }
    let both = folder.file("both.rules", "schema dual-5tuple\nallow proto=tcp\n");
    run(&format!(
        "reproduce fch14 -r {both} --figures acls --out {}",
        folder.path("both")
    ))
    .exits(2)
    .complains("figure `acls` of fch14 needs rules of one schema");
}

#[test]
fn tm19_has_own_access_lists_in_the_switch() {
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("acl.rules", FILTERS),
        folder.file("acl.trace", HEADERS),
    );
    let out = folder.path("switch");
    let inputs = format!("-e tss:mask=addresses -r {rules} -t {trace}");
    let figures = "pipeline-tables,pipeline-throughput,pipeline-times";
    let command = format!("reproduce tm19 --section 5 --quick {inputs} --out {out}");
    let done = run(&format!("{command} --figures {figures} --format json")).exits(0);
    let report = done.json();
    measures_no_claim(&report);
    assert_eq!(report["sections"].as_array().unwrap().len(), 3);
    for (file, columns) in [
        (
            "pipeline-tables",
            &["entries", "tables_alone", "tables"][..],
        ),
        ("pipeline-throughput", &["mpps"]),
        (
            "pipeline-times",
            &[
                "lookup_p50_us",
                "lookup_p99_us",
                "whole_p50_us",
                "vector_lookup_p50_us",
            ],
        ),
    ] {
        let rows = rows(&out, &format!("own-{file}.csv"));
        let engines: Vec<&str> = rows
            .iter()
            .map(|row| row["engine"].as_str().unwrap())
            .collect();
        let expected = [
            "linear",
            "tss",
            "tuplemerge",
            "forest",
            "tss:mask=addresses",
        ];
        assert_eq!(engines, expected, "{file}");
        for row in &rows {
            assert_eq!(row["rule_set"], rules.as_str());
            for &column in columns {
                let is_linear = row["engine"] == "linear" && column.starts_with("tables");
                assert!(number(row, column) > 0.0 || is_linear, "{file} {row}");
            }
        }
    }
    // Ranges of ports become several entries.
    let tables = rows(&out, "own-pipeline-tables.csv");
    assert!(number(&tables[0], "entries") > 6.0, "{}", tables[0]);

    // A capture has the headers. Figures that cannot use the inputs are left out.
    let captured = format!("reproduce tm19 --section 5 --quick -r {rules} -c {CAPTURE}");
    let out = folder.path("captured");
    run(&format!("{captured} --out {out} --format json"))
        .exits(0)
        .complains("left out: pipeline-cache cannot use --rules")
        .complains("left out: pipeline-seeds cannot use --rules");
    assert_eq!(rows(&out, "own-pipeline-throughput.csv").len(), 4);

    let out = folder.path("refused");
    let ipv6 = folder.file("six.rules", "schema ipv6-5tuple\nallow proto=tcp\n");
    for (arguments, complaint) in [
        (
            format!("-r {ipv6} --figures pipeline-tables"),
            "figures of section 5 need ipv4-5tuple",
        ),
        (
            format!("-r {rules} -e bit-vector --figures pipeline-times"),
            "cannot use --engines bit-vector, which takes no updates",
        ),
    ] {
        run(&format!(
            "reproduce tm19 --section 5 {arguments} --out {out}"
        ))
        .exits(2)
        .complains(complaint);
    }
}
