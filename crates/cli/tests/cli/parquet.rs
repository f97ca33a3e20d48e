//! `classify --parquet`: flow logs in Parquet files.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{Folder, program, run};

/// Rules of both families.
const RULES: &str = "\
schema dual-5tuple
allow proto=tcp src=10.0.0.0/8 dport=443   name=web
allow family=ipv6 proto=tcp dport=443      name=web6
log   dport=53                             name=dns
drop  src=10.0.0.0/8                       name=default
";

/// Columns of an AWS flow log with six rows.
fn vpc_log() -> Vec<(&'static str, ArrayRef)> {
    let text = |values: [Option<&str>; 6]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let number = |values: [Option<i32>; 6]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
    let (a, b) = (Some("10.0.0.1"), Some("192.0.2.1"));
    let (six, accept) = (Some("2001:db8::1"), Some("ACCEPT"));
    vec![
        ("srcaddr", text([a, six, a, a, b, Some("-")])),
        ("dstaddr", text([b, six, b, b, b, Some("-")])),
        (
            "srcport",
            number([Some(1), Some(2), Some(3), Some(4), Some(5), None]),
        ),
        (
            "dstport",
            number([Some(443), Some(443), Some(53), Some(80), Some(80), None]),
        ),
        (
            "protocol",
            number([Some(6), Some(6), Some(17), Some(6), Some(6), None]),
        ),
        (
            "bytes",
            Arc::new(Int64Array::from_iter_values(0..6)) as ArrayRef,
        ),
        (
            "action",
            text([accept, Some("REJECT"), accept, accept, accept, Some("-")]),
        ),
    ]
}

fn write(path: impl AsRef<Path>, columns: Vec<(&'static str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A folder with rules and two logs.
fn example() -> (Folder, String) {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    std::fs::create_dir_all(folder.path("logs/day=2")).unwrap();
    std::fs::create_dir_all(folder.path("logs/day=1")).unwrap();
    write(folder.path("logs/day=1/a.parquet"), vpc_log());
    write(folder.path("logs/day=2/b.parquet"), vpc_log());
    (folder, rules)
}

fn read(path: impl AsRef<Path>) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches.into_iter().next().unwrap()
}

#[test]
fn flow_logs_have_counts_disagreements_and_results() {
    let (folder, rules) = example();
    let (logs, hits) = (folder.path("logs"), folder.path("hits.parquet"));
    let command = format!("classify -r {rules} --parquet {logs} --columns vpc -o {hits}");
    let report = run(&format!("{command} --format json"))
        .exits(0)
        .silent()
        .json();
    assert_eq!(report["input"]["kind"], "parquet");
    assert_eq!(report["misses"]["headers"], 2);
    assert!(report["rate"].is_null());
    let logs = &report["logs"];
    for (key, value) in [
        ("files", 2),
        ("rows", 12),
        ("null_rows", 2),
        ("other_family_rows", 0),
    ] {
        assert_eq!(logs[key], value, "{key}");
    }
    let named = |name: &str| {
        let hits = report["hits"].as_array().unwrap();
        hits.iter().find(|hit| hit["name"] == name).unwrap()["headers"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(["web", "web6", "dns", "default"].map(named), [2, 2, 2, 2]);
    let verdicts = &logs["verdicts"];
    for (key, value) in [
        ("agreeing", 2),
        ("disagreeing", 4),
        ("without_rule", 2),
        ("null", 0),
    ] {
        assert_eq!(verdicts[key], value, "{key}");
    }
    assert_eq!(verdicts["unknown_actions"][0]["name"], "log");
    assert_eq!(verdicts["disagreements"][1]["verdict"], "REJECT");
    let example = &verdicts["examples"][0];
    assert_eq!(
        (&example["row"], &example["name"]),
        (&1.into(), &"web6".into())
    );
    assert!(
        example["file"]
            .as_str()
            .unwrap()
            .ends_with("logs/day=1/a.parquet")
    );
    assert_eq!(
        example["header"],
        "src=2001:db8::1 dst=2001:db8::1 sport=2 dport=443 proto=tcp"
    );

    let results = read(&hits);
    let names: Vec<String> = results
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let added = ["policy_matched", "policy_rule", "policy_action"];
    assert_eq!(names[6..], [&["action"], &added[..]].concat());
    let rule = results.column_by_name("policy_rule").unwrap();
    let rule = rule.as_primitive::<UInt32Type>().iter();
    let of_file = [Some(0), Some(1), Some(2), Some(3), None, None];
    assert_eq!(rule.collect::<Vec<_>>(), [of_file, of_file].concat());
    let matched = results
        .column_by_name("policy_matched")
        .unwrap()
        .as_boolean();
    assert_eq!((matched.value(4), matched.is_null(5)), (false, true));
    let bytes = results
        .column_by_name("bytes")
        .unwrap()
        .as_primitive::<Int64Type>();
    assert_eq!(bytes.value(7), 1);

    // The table has the same counts; the verdict `log` can be given a meaning.
    let table = run(&format!("{command} --threads 2 --verdict-names log=permit"))
        .exits(0)
        .silent();
    let table = table
        .prints("12 rows of 2 files from ")
        .prints("2 rows with a null");
    table
        .prints("4 of 8 differ (50.0 %) from the actions")
        .prints("src=2001:db8::1");
}

#[test]
fn parquet_goes_to_standard_output_without_a_report() {
    let (folder, rules) = example();
    let pattern = folder.path("logs/*/*.parquet");
    let out = folder.path("out.parquet");
    let mut command = program();
    command.args([
        "classify",
        &rules,
        "--columns",
        "vpc",
        "--keep-columns",
        "bytes",
        "-o",
        "-",
    ]);
    command.args(["--prefix", "", "--parquet", &pattern]);
    let status = command
        .stdout(File::create(&out).unwrap())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let results = read(&out);
    let names: Vec<String> = results
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    assert_eq!(names, ["bytes", "matched", "rule", "action"]);
    assert_eq!(results.num_rows(), 12);
}

#[test]
fn a_failed_run_leaves_the_old_results() {
    let (folder, rules) = example();
    let logs = folder.path("logs");
    let mut bad = vpc_log();
    bad[0].1 = Arc::new(StringArray::from(vec!["10.0.0.1", "x", "-", "-", "-", "-"]));
    write(folder.path("logs/day=2/c.parquet"), bad);
    let hits = folder.file("hits.parquet", "old");
    let command = format!("classify -r {rules} --parquet {logs} --columns vpc -o {hits}");
    run(&command)
        .exits(2)
        .complains("c.parquet: column `srcaddr`, row 1: `x`; expected an IPv4");
    assert_eq!(folder.read("hits.parquet"), "old");
    let names = std::fs::read_dir(folder.path("")).unwrap();
    assert_eq!(names.count(), 3, "no temporary file is left");
}

#[test]
fn mistakes_are_explained() {
    let (folder, rules) = example();
    let log = folder.path("logs/day=1/a.parquet");
    let command = |rest: &str| run(&format!("classify -r {rules} --parquet {log} {rest}")).exits(2);
    let complaint = command("-o {log}".replace("{log}", &log).as_str());
    complaint
        .complains("--output")
        .complains("would replace the input");
    command("")
        .complains("no column `src`; the columns are `srcaddr`")
        .complains("--columns maps fields: a preset (fields, vpc,");
    command("--columns vpd").complains("did you mean `vpc`?");
    command("--columns vpc --prefix= -o x")
        .complains("the column `action` exists already")
        .complains("--prefix TEXT");
    command("--columns vpc --verdict action2").complains("no column `action2` for verdicts");
    command("--columns vpc --verdict-names A=b").complains("expected WORD=permit or WORD=deny");
    command("--columns vpc -c x.pcap").complains("cannot be used with");
    command("--columns vpc --every 5s").complains("cannot be used with");
    command("--columns vpc --keep-columns none").complains("--output");
    run("classify --columns vpc")
        .exits(2)
        .complains("--parquet");
    run(&format!("classify --parquet {log}"))
        .exits(2)
        .complains("--parquet needs rules");
    let none = folder.path("*.parquet");
    run(&format!("classify -r {rules} --parquet {none}"))
        .exits(2)
        .complains("no file matches `");
    let text = folder.file("text.parquet", "src,dst");
    run(&format!("classify -r {rules} --parquet {text}"))
        .exits(2)
        .complains("expected a Parquet file");
}
