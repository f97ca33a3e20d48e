//! Results of `bench`, read from JSON or CSV.

use std::path::Path;

use classyard_report::failure::Failure;
use classyard_report::input::{count, read_text, source_name};
use classyard_workload::limits::FileLimit;
use serde::Deserialize;

/// Lookups alone or next to a writer: two measurements that are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Alone,
    Mixed,
}

/// One engine on one rule set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// The rule set's name, without its size.
    pub(super) set: String,
    /// The requested number of rules, or the actual one.
    pub(super) size: usize,
    /// The engine with its options, or the peer's name.
    pub(super) engine: String,
    /// True for a peer's row.
    pub(super) peer: bool,
    /// Headers per second.
    pub(super) lookups: f64,
    /// Updates per second, if they were measured.
    pub(super) updates: Option<f64>,
    /// The update rate that the writer of the mixed load was set to.
    target: Option<String>,
    /// The 99.9% quantile of batch times in the mixed load, in seconds.
    pub(super) batch_p999: Option<f64>,
    /// Estimated and measured times, if both are known.
    pub(super) times: Times,
}

/// Estimated and measured nanoseconds.
pub(super) type Pair = Option<(f64, f64)>;

/// Estimated and measured times of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) batch: Pair,
    pub(super) single: Pair,
    pub(super) update: Pair,
}

impl Row {
    /// Returns the writer's update rate in the mixed load, as a word.
    pub(super) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }
}

/// Files of results take some hundred bytes a row.
const RESULTS: FileLimit = FileLimit {
    bytes: 64 << 20,
    what: "a file of results",
};

/// The contents of the files.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) rows: Vec<Row>,
    /// Engines and sets that are not drawn: with wrong answers, or failed.
    pub(super) wrong: Vec<String>,
    pub(super) failed: Vec<String>,
}

impl Results {
    /// Adds the rows of a file.
    pub(super) fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let text = read_text(path, RESULTS)?;
        let source = source_name(path);
        let refuse = |reason: String| {
            Failure::usage(format!("{source}: not a result of bench: {reason}"))
                .with_help("`classyard bench --format json` makes them")
        };
        let records: Vec<Record> = if text.trim_start().starts_with('[') {
            let rows: Vec<Json> =
                serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
            rows.into_iter().map(Record::from).collect()
        } else if text.trim_start().starts_with('{') {
            // One object per line.
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let rows = lines.map(|line| serde_json::from_str::<Json>(line).map(Record::from));
            let rows: Result<_, _> = rows.collect();
            rows.map_err(|error| refuse(error.to_string()))?
        } else {
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let rows = reader.deserialize::<Csv>().map(|row| row.map(Record::from));
            let rows: Result<_, _> = rows.collect();
            rows.map_err(|error| refuse(error.to_string()))?
        };
        for record in records {
            let what = format!("{} on {}", record.engine, record.set);
            self.add(record)
                .map_err(|reason| refuse(format!("{what} {reason}")))?;
        }
        Ok(())
    }

    fn add(&mut self, record: Record) -> Result<(), String> {
        let what = format!("{} on {}", record.engine, record.set);
        if record.failed {
            self.failed.push(what);
            return Ok(());
        }
        if record.wrong.ok_or("has no number of wrong answers")? > 0 {
            self.wrong.push(what);
            return Ok(());
        }
        let (kind, lookups) = match (record.alone, record.mixed) {
            (Some(rate), _) => (Kind::Alone, rate),
            (None, Some(rate)) => (Kind::Mixed, rate),
            (None, None) => return Err("has no rate of lookups".to_owned()),
        };
        if !(lookups > 0.0 && lookups.is_finite()) {
            // No header was looked up: the run was too short for one batch.
            self.failed.push(what);
            return Ok(());
        }
        let (set, size) = set_and_size(&record.set, record.rules);
        let row = Row {
            kind,
            set,
            size,
            peer: record.peer.is_some(),
            engine: match record.peer {
                Some(peer) => format!("{peer}{PEER_MARK}{}", record.engine),
                None => record.engine,
            },
            lookups,
            updates: record.updates.filter(|&rate| rate > 0.0),
            target: record.target,
            batch_p999: record.batch_p999,
            times: record.times,
        };
        let is_same_point = |other: &Row| {
            other.kind == row.kind
                && other.set == row.set
                && other.size == row.size
                && other.engine == row.engine
                && other.target == row.target
        };
        match self.rows.iter_mut().find(|other| is_same_point(other)) {
            Some(place) => *place = row,
            None => self.rows.push(row),
        }
        Ok(())
    }

    /// Keeps the fastest row of each peer on a set, under the peer's name.
    pub(super) fn keep_best_of_peers(&mut self) {
        let mut best_rows: Vec<Row> = Vec::new();
        for mut row in self.rows.drain(..) {
            if let Some((peer, _)) = row.engine.split_once(PEER_MARK) {
                row.engine = peer.to_owned();
            }
            let is_same_peer = |other: &&mut Row| {
                row.peer
                    && other.peer
                    && (&other.engine, &other.set, other.size) == (&row.engine, &row.set, row.size)
            };
            match best_rows.iter_mut().find(is_same_peer) {
                Some(best) if best.lookups >= row.lookups => {}
                Some(best) => *best = row,
                None => best_rows.push(row),
            }
        }
        self.rows = best_rows;
    }

    /// Returns the engines and peers, in the order of first appearance.
    pub(super) fn engines(&self) -> Vec<String> {
        let mut engines: Vec<String> = Vec::new();
        for row in &self.rows {
            if !engines.contains(&row.engine) {
                engines.push(row.engine.clone());
            }
        }
        engines
    }
}

/// Separates a peer's name from the row's engine; no name contains it.
const PEER_MARK: char = '\0';

/// Splits a name: `acl1 64k` is the set `acl1` of 64,000 rules, even if the
/// generator found a few less. Other names have no size.
fn set_and_size(name: &str, rules: usize) -> (String, usize) {
    if let Some((set, size)) = name.rsplit_once(' ')
        && let Ok(size) = count(size)
        && rules <= size
        && rules >= size / 2
    {
        return (set.to_owned(), size);
    }
    (name.to_owned(), rules)
}

/// A row of a JSON or CSV file.
struct Record {
    set: String,
    engine: String,
    rules: usize,
    alone: Option<f64>,
    mixed: Option<f64>,
    updates: Option<f64>,
    target: Option<String>,
    batch_p999: Option<f64>,
    times: Times,
    wrong: Option<usize>,
    peer: Option<String>,
    failed: bool,
}

#[derive(Deserialize)]
struct Json {
    set: String,
    engine: String,
    rules: usize,
    batch_headers_per_second: Option<Median>,
    single_headers_per_second: Option<Median>,
    estimate: Option<Estimate>,
    lookups_per_second: Option<Median>,
    updates_per_second: Option<Median>,
    target: Option<String>,
    batch_seconds: Option<P999>,
    wrong: Option<usize>,
    peer: Option<Peer>,
    failed: Option<String>,
}

#[derive(Deserialize)]
struct Median {
    median: f64,
}

#[derive(Deserialize)]
struct Estimate {
    lookup_ns: Option<f64>,
    single_ns: Option<f64>,
    update_ns: Option<f64>,
}

#[derive(Deserialize)]
struct P999 {
    p999: f64,
}

#[derive(Deserialize)]
struct Peer {
    name: String,
}

impl From<Json> for Record {
    fn from(row: Json) -> Record {
        let median = |rate: Option<Median>| rate.map(|rate| rate.median);
        let beside = |estimated: Option<f64>, rate: &Option<Median>| {
            let rate = rate.as_ref()?.median;
            let (estimated, measured) = (estimated?, 1e9 / rate);
            (estimated > 0.0 && rate > 0.0).then_some((estimated, measured))
        };
        let times = row.estimate.map_or(Times::default(), |estimate| Times {
            batch: beside(estimate.lookup_ns, &row.batch_headers_per_second),
            single: beside(estimate.single_ns, &row.single_headers_per_second),
            update: beside(estimate.update_ns, &row.updates_per_second),
        });
        Record {
            times,
            set: row.set,
            engine: row.engine,
            rules: row.rules,
            alone: median(row.batch_headers_per_second),
            mixed: median(row.lookups_per_second),
            updates: median(row.updates_per_second),
            target: row.target,
            batch_p999: row.batch_seconds.map(|batch| batch.p999),
            wrong: row.wrong,
            peer: row.peer.map(|peer| peer.name),
            failed: row.failed.is_some(),
        }
    }
}

#[derive(Deserialize)]
struct Csv {
    set: String,
    engine: String,
    rules: usize,
    batch_median: Option<f64>,
    lookups_median: Option<f64>,
    updates_median: Option<f64>,
    target: Option<String>,
    batch_seconds_p999: Option<f64>,
    wrong: Option<usize>,
    peer: Option<String>,
    failed: Option<String>,
}

impl From<Csv> for Record {
    fn from(row: Csv) -> Record {
        Record {
            set: row.set,
            engine: row.engine,
            rules: row.rules,
            alone: row.batch_median,
            mixed: row.lookups_median,
            updates: row.updates_median,
            target: row.target,
            batch_p999: row.batch_seconds_p999,
            times: Times::default(),
            wrong: row.wrong,
            peer: row.peer,
            failed: row.failed.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_may_say_their_size() {
        let parted = |name, rules| set_and_size(name, rules);
        assert_eq!(parted("acl1 64k", 63_990), ("acl1".to_owned(), 64_000));
        assert_eq!(parted("acl1 64k", 10), ("acl1 64k".to_owned(), 10));
        assert_eq!(parted("my acl", 10), ("my acl".to_owned(), 10));
        assert_eq!(parted("acl.rules", 10), ("acl.rules".to_owned(), 10));
    }

    fn record(engine: &str, peer: Option<&str>, rate: f64) -> Record {
        Record {
            set: "acl1 1k".to_owned(),
            engine: engine.to_owned(),
            rules: 1_000,
            alone: Some(rate),
            mixed: None,
            updates: None,
            target: None,
            batch_p999: None,
            times: Times::default(),
            wrong: Some(0),
            peer: peer.map(str::to_owned),
            failed: false,
        }
    }

    #[test]
    fn the_last_of_the_same_counts_and_the_best_of_a_peer() {
        let mut results = Results::default();
        for (engine, peer, rate) in [
            ("forest", None, 5.0),
            ("p:one", Some("p"), 7.0),
            ("p:two", Some("p"), 8.0),
            ("p:one", Some("p"), 6.0),
            ("forest", None, 4.0),
        ] {
            results.add(record(engine, peer, rate)).unwrap();
        }
        assert_eq!(results.rows.len(), 3);
        results.keep_best_of_peers();
        let rows = results.rows.iter();
        let rates = rows.map(|row| (row.engine.as_str(), row.lookups));
        assert_eq!(rates.collect::<Vec<_>>(), [("forest", 4.0), ("p", 8.0)]);
    }

    #[test]
    fn wrong_rows_are_set_aside_and_incomplete_ones_refused() {
        let mut results = Results::default();
        let wrong = Record {
            wrong: Some(1),
            ..record("forest", None, 5.0)
        };
        results.add(wrong).unwrap();
        assert_eq!((results.rows.len(), results.wrong.len()), (0, 1));
        let empty = Record {
            alone: None,
            ..record("forest", None, 5.0)
        };
        assert!(results.add(empty).is_err());
    }
}
