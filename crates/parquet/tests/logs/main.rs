//! Logs of every type of column, compared with lookups of single headers by `linear`.

mod errors;
mod files;
mod random;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{Array, ArrayAccessor, RecordBatch, StringArray};
use classyard::prelude::*;
use classyard::{Limits, NoProgress};
use classyard_arrow::{BuiltPolicy, HeaderFields, Mapping};
use classyard_parquet::{Keep, LogColumns, LogError, Logs, Lookups, Summary, VerdictNames};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use random::{Row, actions, log, policy, rng, rows, write};

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("classyard-parquet-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn build(policy: &Policy, engine: &str) -> PolicyClassifier {
    let spec = EngineSpec::parse(engine).unwrap();
    let built = policy.build(&spec, &Limits::default(), &mut NoProgress);
    built.unwrap()
}

pub(crate) fn columns(policy: &Policy, keep: Keep) -> LogColumns {
    LogColumns {
        mapping: Mapping::parse("fields").unwrap(),
        fields: HeaderFields::of(policy),
        verdict: Some("verdict".to_owned()),
        keep,
        prefix: "new_".to_owned(),
    }
}

/// Looks up logs. Returns the counts, and the results as one batch.
pub(crate) fn classify(
    policy: &Policy,
    paths: Vec<PathBuf>,
    columns: LogColumns,
    threads: usize,
    folder: &Folder,
) -> Result<(Summary, Vec<u8>), LogError> {
    let classifier = build(policy, "forest");
    let rules = BuiltPolicy {
        policy,
        classifier: &classifier,
    };
    let lookups = Lookups {
        rules: &rules,
        actions: &actions(),
        verdicts: &VerdictNames::default(),
        threads,
    };
    let logs = Logs::open(paths, columns, true)?;
    let path = folder.path("results");
    let out = fs::File::create(&path).unwrap();
    let summary = logs.classify(&lookups, Some(out), &mut NoProgress)?;
    Ok((summary, fs::read(path).unwrap()))
}

/// Returns the results of the last run.
fn batches(folder: &Folder) -> Vec<RecordBatch> {
    let file = fs::File::open(folder.path("results")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let batches = reader.with_batch_size(1000).build().unwrap();
    batches.map(Result::unwrap).collect()
}

/// The id and the action of the rule that decides a row; `None` if it has no header.
fn decided(policy: &Policy, linear: &PolicyClassifier, row: &Row) -> Option<Option<(u32, String)>> {
    let header = FiveTuple::new(row.src?, row.dst?, row.sport?, row.dport?, row.proto?);
    let verdict = linear.classify_header(&header.expect("one family"))?;
    Some(policy.decision(verdict).map(|decision| {
        let action = policy.action_name(decision.action).unwrap();
        (decision.rule.get(), action.to_owned())
    }))
}

/// Checks the results and the counts of rows.
fn check(policy: &Policy, rows: &[Row], summary: &Summary, results: &[RecordBatch], what: &str) {
    let linear = build(policy, "linear");
    let mut expected = Summary::default();
    let mut compared = [0u64; 2];
    let mut places = results
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    for (index, row) in rows.iter().enumerate() {
        let what = format!("{what}, row {index}: {row:?}");
        let (batch, place) = places.next().unwrap_or_else(|| panic!("{what}: no result"));
        let [matched, rule, action] = ["new_matched", "new_rule", "new_action"]
            .map(|name| batch.column_by_name(name).unwrap());
        let decision = decided(policy, &linear, row);
        let matched = matched.as_boolean();
        let is_match = matched.is_valid(place).then(|| matched.value(place));
        assert_eq!(is_match, decision.as_ref().map(Option::is_some), "{what}");
        let rule = rule.as_primitive::<UInt32Type>();
        let rule = rule.is_valid(place).then(|| rule.value(place));
        let action = action.as_dictionary::<Int32Type>();
        let names = action.downcast_dict::<StringArray>().unwrap();
        let action = action
            .is_valid(place)
            .then(|| ArrayAccessor::value(&names, place).to_owned());
        assert_eq!(rule.zip(action), decision.clone().flatten(), "{what}");
        expected.rows += 1;
        match decision {
            None if row.has_null() => expected.null_rows += 1,
            None => expected.other_family_rows += 1,
            Some(None) => expected.unmatched += 1,
            Some(Some((rule, action))) => {
                *expected.hits.entry(rule).or_default() += 1;
                if let (Some(verdict), "permit" | "deny") = (row.verdict, action.as_str()) {
                    let is_permit = verdict == "ACCEPT";
                    compared[usize::from(is_permit == (action == "permit"))] += 1;
                }
            }
        }
    }
    assert!(places.next().is_none(), "{what}: more results");
    let verdicts = summary.verdicts.as_ref().unwrap();
    assert_eq!(
        [verdicts.disagreements(), verdicts.agreeing],
        compared,
        "{what}"
    );
    assert_eq!(
        summary.headers(),
        rows.len() as u64 - summary.null_rows - summary.other_family_rows
    );
    let found = Summary {
        verdicts: None,
        examples: Vec::new(),
        ..summary.clone()
    };
    assert_eq!(found, expected, "{what}");
}

#[test]
fn results_are_those_of_linear_for_every_type_and_number_of_threads() {
    let folder = Folder::new();
    for seed in 0..8 {
        let mut rng = rng(seed);
        let kinds = random::KINDS;
        for (number, kind) in kinds.into_iter().enumerate() {
            let has_v6 = kind != random::Kind::Number;
            let policy = policy(&mut rng, seed % 2 == 0);
            let mut all_rows = Vec::new();
            let mut paths = Vec::new();
            for file in 0..3 {
                let count = [1500, 0, 4000][(file + number) % 3];
                let mut rows = rows(&mut rng, count, has_v6, seed % 3 == 0);
                if kind == random::Kind::Bytes {
                    // Columns of 16 bytes have IPv6 addresses only.
                    for address in rows.iter_mut().flat_map(|row| [&mut row.src, &mut row.dst]) {
                        address.take_if(|address| address.is_ipv4());
                    }
                }
                let path = folder.path(&format!("log-{file}.parquet"));
                write(&path, &log(&rows, kind), 700, seed % 4 != 3);
                paths.push(path);
                all_rows.extend(rows);
            }
            let keep = [Keep::All, Keep::None, Keep::Columns(vec!["bytes".into()])];
            for keep in keep {
                let what = format!("seed {seed}, {kind:?}, {keep:?}");
                let columns = || columns(&policy, keep.clone());
                let run = |threads| {
                    let run = classify(&policy, paths.clone(), columns(), threads, &folder);
                    run.unwrap_or_else(|error| panic!("{what}: {error}"))
                };
                let (summary, bytes) = run(1);
                for threads in [2, 3] {
                    let (with_threads, with_threads_bytes) = run(threads);
                    assert_eq!(with_threads, summary, "{what}");
                    assert!(with_threads_bytes == bytes, "{what}");
                }
                let results = batches(&folder);
                check(&policy, &all_rows, &summary, &results, &what);
                check_kept(&all_rows, &results, &keep);
            }
        }
    }
}

fn check_kept(rows: &[Row], results: &[RecordBatch], keep: &Keep) {
    let Some(first) = results.first() else {
        return;
    };
    let names: Vec<String> = first
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let winners = ["new_matched", "new_rule", "new_action"];
    let expected: &[&str] = match keep {
        Keep::All => &["src", "dst", "sport", "dport", "proto", "bytes", "verdict"],
        Keep::None => &[],
        Keep::Columns(_) => &["bytes"],
    };
    assert_eq!(names, [expected, &winners].concat());
    if *keep == Keep::None {
        return;
    }
    let mut expected = rows.iter().map(|row| row.bytes);
    for batch in results {
        let bytes = batch.column_by_name("bytes").unwrap();
        let bytes = bytes.as_primitive::<arrow_array::types::Int64Type>();
        assert!(
            bytes
                .iter()
                .eq(expected.by_ref().take(batch.num_rows()).map(Some))
        );
    }
}

#[test]
fn examples_are_the_first_rows_that_disagree() {
    let folder = Folder::new();
    let mut rng = rng(77);
    let policy = policy(&mut rng, true);
    let linear = build(&policy, "linear");
    let files: Vec<Vec<Row>> = (0..2).map(|_| rows(&mut rng, 800, true, true)).collect();
    let paths: Vec<PathBuf> = (0..2)
        .map(|file| folder.path(&format!("{file}.parquet")))
        .collect();
    for (rows, path) in files.iter().zip(&paths) {
        write(path, &log(rows, random::Kind::Text), 300, true);
    }
    let mut expected = Vec::new();
    for (file, rows) in files.iter().enumerate() {
        for (index, row) in rows.iter().enumerate() {
            let Some(Some((rule, action))) = decided(&policy, &linear, row) else {
                continue;
            };
            let verdict = row
                .verdict
                .filter(|_| action == "permit" || action == "deny");
            if verdict.is_some_and(|verdict| (verdict == "ACCEPT") != (action == "permit")) {
                let port = u128::from(row.dport.unwrap());
                expected.push((file, index as u64, verdict.unwrap().to_owned(), rule, port));
            }
        }
    }
    let (summary, _) = classify(&policy, paths, columns(&policy, Keep::None), 2, &folder).unwrap();
    let examples = summary.examples.iter();
    let found = examples.map(|e| (e.file, e.row, e.verdict.clone(), e.rule, e.header[3]));
    assert!(expected.len() > 20);
    assert_eq!(found.collect::<Vec<_>>(), expected[..10]);
    let verdicts = summary.verdicts.unwrap();
    assert_eq!(verdicts.disagreements(), expected.len() as u64);
    // The action `log` has no meaning, and no row has an unknown verdict.
    assert!(verdicts.unclear_actions.contains_key(&2));
    assert!(verdicts.unknown.is_empty() && verdicts.null_verdicts > 0);
}
