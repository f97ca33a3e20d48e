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
        let report = done.json();
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

/// Lists of the ports of own rules, and cross products with own access lists.
#[test]
fn fch14_takes_ports_and_access_lists_from_own_rules() {
    let folder = Folder::new();
    let rules = folder.file(
        "ports.rules",
        "schema ipv4-5tuple\n\
         drop proto=tcp dport=1024-1030\n\
         drop proto=tcp dport=80\n\
         drop proto=udp dport=80\n\
         allow proto=tcp\n",
    );
    let out = folder.path("figures");
    let command = format!("reproduce fch14 --quick -r {rules} --out {out} --format json");
    measures_no_claim(
        &run(&format!("{command} --figures providers"))
            .exits(0)
            .json(),
    );
    let lists = rows(&out, "own-providers.csv");
    assert_eq!(lists.len(), 5);
    for row in &lists {
        assert_eq!(row["rule_set"], format!("{rules}, dport"));
        // Port 80 is in the list once.
        assert_eq!((&row["rules"], &row["wrong"]), (&"2".into(), &"0".into()));
        // All ports are sent, and a naive flow has all 16 bits, except for ports that win the
        // block 1026-1027 or 1028-1029 of a range.
        if row["algorithm"] == "naive" {
            assert!((65_500.0..65_536.0).contains(&number(row, "flows")));
        } else {
            assert!((8.0..1_000.0).contains(&number(row, "flows")), "{row}");
        }
    }
    // The ports of own headers, which are four.
    let trace = folder.file(
        "ports.trace",
        "1 2 3 80 6\n1 2 3 81 6\n1 2 3 82 6\n1 2 3 1029 6\n",
    );
    run(&format!("{command} -t {trace} --figures providers")).exits(0);
    assert_eq!(rows(&out, "own-providers.csv")[0]["flows"], "4");

    measures_no_claim(
        &run(&format!("{command} --figures cross-product"))
            .exits(0)
            .json(),
    );
    let products = rows(&out, "own-cross-product.csv");
    assert_eq!(products.len(), 4);
    for row in &products {
        assert_eq!(row["rule_set"], rules.as_str());
        let is_complete = row["not_built"] == "";
        assert!(
            is_complete || row["not_built"] == "more than 50000 entries",
            "{row}"
        );
        assert_eq!(row["entries"] == "", !is_complete, "{row}");
        // Two blocks of ports, port 80 twice and all of TCP, in both directions.
        let generated = match row["datapath"].as_str().unwrap() {
            "2 ports and 1 subnet" => 2 * 7 + 1 + 8,
            "4 ports and 2 subnets" => 4 * 7 + 2 + 8,
            "8 ports and 4 subnets" => 8 * 7 + 4 + 8,
            _ => 16 * 7 + 8 + 8,
        };
        assert_eq!(number(row, "flows"), f64::from(generated + 2 * 6), "{row}");
    }
    assert_eq!(products[0]["not_built"], "", "{}", products[0]);
    assert!(number(&products[0], "entries") > number(&products[0], "flows"));

    // Inputs that a part cannot use.
    let out = folder.path("refused");
    for (arguments, complaint) in [
        (
            format!("-r {rules} -t {trace} --figures cross-product"),
            "figure `cross-product` of fch14 cannot use --trace",
        ),
        (
            format!("-c {CAPTURE} --figures cross-product"),
            "figure `cross-product` of fch14 cannot use --capture without --rules",
        ),
        (
            "-e tss --figures providers".to_owned(),
            "figure `providers` of fch14 cannot use --engines",
        ),
    ] {
        run(&format!("reproduce fch14 {arguments} --out {out}"))
            .exits(2)
            .complains(complaint);
    }
    let portless = folder.file("hosts.rules", "schema ipv4-5tuple\ndrop src=10.0.0.0/8\n");
    run(&format!(
        "reproduce fch14 -r {portless} --figures providers --out {out}"
    ))
    .exits(2)
    .complains("figure `providers` of fch14 needs rules that match source or destination");
}

/// A capture without rules has the packets for the lists of the paper.
#[test]
fn fch14_sends_captured_ports_through_the_papers_lists() {
    let folder = Folder::new();
    let out = folder.path("figures");
    let command = format!("reproduce fch14 --quick --sizes 10,100 -c {CAPTURE} --out {out}");
    let done = run(&format!("{command} --format json")).exits(0);
    let report = done
        .complains("left out: cross-product cannot use --capture without --rules")
        .json();
    measures_no_claim(&report);
    assert_eq!(report["inputs"][0]["option"], "--capture");
    for (file, names) in [
        ("own-acls.csv", &["10 random ports", "100 random ports"][..]),
        ("own-providers.csv", &["long stand-in", "short stand-in"]),
        (
            "own-cost.csv",
            &["long stand-in", "short stand-in", "50 random ports"],
        ),
    ] {
        let rows = rows(&out, file);
        assert_eq!(rows.len(), 5 * names.len(), "{file}");
        for (row, name) in rows
            .chunks(5)
            .zip(names)
            .flat_map(|(rows, name)| rows.iter().map(move |row| (row, name)))
        {
            assert_eq!(row["rule_set"], format!("{CAPTURE}, {name}"));
            assert_eq!(
                (&row["wrong"], &row["not_built"]),
                (&"0".into(), &"".into()),
                "{row}"
            );
        }
    }
    // A naive flow has one destination port.
    let acls = rows(&out, "own-acls.csv");
    let flows = number(&acls[0], "flows");
    let packets = report["inputs"][0]["entries"].as_f64().unwrap();
    assert!((2.0..packets).contains(&flows), "{flows}");
    assert_eq!(
        (&acls[0]["masks"], &acls[0]["bits"]),
        (&"1".into(), &"16".into())
    );
    for row in &acls {
        assert!(number(row, "flows") <= flows, "{row}");
    }
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
