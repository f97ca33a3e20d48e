//! Logs that cannot be looked up.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use classyard::{NoProgress, Policy};
use classyard_arrow::{BuiltPolicy, Mapping};
use classyard_parquet::{Keep, LogColumns, LogError, Logs, Lookups, Summary, VerdictNames};

use crate::random::{Kind, actions, log, policy, rng, rows, write};
use crate::{Folder, build, classify, columns};

/// A folder with a good log of 900 rows in 3 row groups, and rules.
fn example() -> (Folder, Policy, PathBuf) {
    let folder = Folder::new();
    let mut rng = rng(5);
    let policy = policy(&mut rng, true);
    let path = folder.path("good.parquet");
    write(
        &path,
        &log(&rows(&mut rng, 900, true, false), Kind::Text),
        300,
        true,
    );
    (folder, policy, path)
}

fn message(result: Result<(Summary, Vec<u8>), LogError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_file_that_is_no_complete_parquet_file_is_named() {
    let (folder, policy, good) = example();
    let bytes = fs::read(&good).unwrap();
    let path = folder.path("bad.parquet");
    let failed = |contents: &[u8]| {
        fs::write(&path, contents).unwrap();
        let paths = vec![good.clone(), path.clone()];
        let text = message(classify(
            &policy,
            paths,
            columns(&policy, Keep::All),
            1,
            &folder,
        ));
        let (file, text) = text.split_once("bad.parquet: ").unwrap();
        assert!(!file.contains("good.parquet"));
        // No row was read: the results were not begun.
        assert!(!folder.path("results").exists());
        text.to_owned()
    };
    assert!(failed(b"").starts_with("the file is empty; expected a Parquet file; "));
    assert!(failed(b"src,dst\n").starts_with("the file begins with `src,`; expected a Parquet"));
    assert!(failed(b"\x1f\x8b\x08\x00....").ends_with("unpack it with gzip -d"));
    assert!(failed(&bytes[..bytes.len() / 2]).contains("it is truncated"));
    // The footer has another length than it says.
    let mut changed = bytes.clone();
    let length = changed.len();
    changed[length - 8..length - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(failed(&changed).contains("; the file is damaged, or uses a part of Parquet"));
}

/// Returns a log with one column replaced, or removed for `None`.
fn with_column(log: &RecordBatch, name: &str, column: Option<&ArrayRef>) -> RecordBatch {
    let fields = log.schema_ref().fields().iter().zip(log.columns());
    let columns = fields.filter_map(|(field, old)| {
        let column = match field.name() == name {
            true => Arc::clone(column?),
            false => Arc::clone(old),
        };
        Some((field.name().clone(), column, true))
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn columns_are_checked_in_all_files_before_a_row_is_read() {
    let (folder, policy, good) = example();
    let path = folder.path("bad.parquet");
    let log = log(&rows(&mut rng(6), 10, false, false), Kind::Text);
    let failed = |name, column, change: &dyn Fn(LogColumns) -> LogColumns| {
        write(&path, &with_column(&log, name, column), 300, true);
        let paths = vec![good.clone(), path.clone()];
        let columns = change(columns(&policy, Keep::None));
        let text = message(classify(&policy, paths, columns, 1, &folder));
        assert!(!folder.path("results").exists());
        text
    };
    let same = |columns| columns;
    let text = failed("dport", None, &same);
    assert!(text.contains("bad.parquet: field `dport`: no column `dport`; the columns are `src`"));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 10]));
    let text = failed("src", Some(&floats), &same);
    assert!(text.contains("bad.parquet: column `src` for the field `src` is of type Float64"));
    let text = failed("verdict", Some(&floats), &same);
    assert!(text.contains("the column `verdict` of verdicts is of type Float64; expected strings"));
    let text = failed("verdict", None, &same);
    assert!(text.contains("bad.parquet: no column `verdict` for verdicts; the columns are src, "));
    let keep = |names: &[&str]| Keep::Columns(names.iter().map(|&name| name.to_owned()).collect());
    let text = failed("bytes", None, &|columns| LogColumns {
        keep: keep(&["bytes"]),
        ..columns
    });
    assert!(text.contains("bad.parquet: no column `bytes` for the results"));
    let text = failed("bytes", Some(&floats), &|columns| LogColumns {
        keep: Keep::All,
        ..columns
    });
    assert!(text.contains("bad.parquet: the column `"), "{text}");
    assert!(
        text.contains("DOUBLE bytes") && text.contains("INT64 bytes"),
        "{text}"
    );
    let mapping = Mapping::parse("fields,size=bytes").unwrap();
    let text = failed("none", None, &|columns| LogColumns {
        mapping: mapping.clone(),
        ..columns
    });
    assert!(text.contains("good.parquet: there is no field `size`; the fields are `src`"));
}

#[test]
fn a_result_cannot_have_the_name_of_a_kept_column() {
    let (folder, policy, good) = example();
    let log = log(&rows(&mut rng(6), 10, false, false), Kind::Text);
    let rule: ArrayRef = Arc::new(StringArray::from(vec!["x"; 10]));
    let renamed = log.columns()[..6].iter().zip(log.schema_ref().fields());
    let mut renamed: Vec<_> = renamed
        .map(|(c, f)| (f.name().clone(), Arc::clone(c), true))
        .collect();
    renamed.push(("rule".to_owned(), rule, true));
    let path = folder.path("clash.parquet");
    write(
        &path,
        &RecordBatch::try_from_iter_with_nullable(renamed).unwrap(),
        300,
        true,
    );
    let columns = |prefix: &str| LogColumns {
        prefix: prefix.to_owned(),
        verdict: None,
        ..columns(&policy, Keep::All)
    };
    let run = |prefix| classify(&policy, vec![path.clone()], columns(prefix), 1, &folder);
    let text = message(run(""));
    assert!(
        text.contains("clash.parquet: the column `rule` exists already"),
        "{text}"
    );
    assert!(run("my_").is_ok());
    let _ = good;
}

#[test]
fn an_error_in_the_middle_names_the_row_for_every_number_of_threads() {
    let (folder, policy, good) = example();
    let mut texts: Vec<String> = (0..900).map(|row| format!("10.0.0.{}", row % 32)).collect();
    texts[700] = "10.0.0.x".to_owned();
    texts[850] = "-".to_owned();
    let log = log(&rows(&mut rng(6), 900, false, false), Kind::Text);
    let bad: ArrayRef = Arc::new(StringArray::from(texts));
    let path = folder.path("bad.parquet");
    for has_dictionaries in [false, true] {
        let log = with_column(&log, "src", Some(&bad));
        write(&path, &log, 300, has_dictionaries);
        for threads in 1..4 {
            let paths = vec![good.clone(), path.clone(), good.clone()];
            let columns = columns(&policy, Keep::Columns(vec!["sport".to_owned()]));
            let text = message(classify(&policy, paths, columns, threads, &folder));
            let expected =
                "bad.parquet: column `src`, row 700: `10.0.0.x`; expected an IPv4 or IPv6";
            assert!(text.contains(expected), "{text}");
        }
    }
}

/// Fails after some bytes.
struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0);
        self.0 -= fits;
        match fits {
            0 => Err(io::ErrorKind::StorageFull.into()),
            fits => Ok(fits),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn results_that_cannot_be_written_are_an_error() {
    let (_folder, policy, good) = example();
    let classifier = build(&policy, "forest");
    let rules = BuiltPolicy {
        policy: &policy,
        classifier: &classifier,
    };
    let lookups = Lookups {
        rules: &rules,
        actions: &actions(),
        verdicts: &VerdictNames::default(),
        threads: 2,
    };
    let logs = Logs::open(vec![good], columns(&policy, Keep::All), true).unwrap();
    for bytes in [0, 2, 500, 5000] {
        let out = FullDisk(bytes);
        match logs.classify(&lookups, Some(out), &mut NoProgress) {
            Err(LogError::Output(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            other => panic!("{bytes}: {other:?}"),
        }
    }
}
