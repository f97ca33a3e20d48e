//! The rows of benchmark results: measured candidates, and failures.

use classyard_report::output::style::counted;
use classyard_report::run::Finished;
use serde::Serialize;

use super::Subject;
use super::candidate::Shown;
use super::latency::Quantiles;
use super::measure::Spread;
use super::peer::{Origin, PeerSpec};
use super::threads::ThreadRates;
use crate::estimates::EstimateRow;

/// One engine on one rule set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    /// The rule set.
    pub(crate) set: String,
    /// The engine with its options.
    pub(crate) engine: String,
    /// Rules in the set.
    pub(crate) rules: usize,
    /// CPU seconds to build over all rules.
    pub(crate) build_seconds: f64,
    /// Bytes of the built engine, rules included; absent if a peer does not report
    /// it, like the next two.
    pub(crate) bytes: Option<usize>,
    /// The part of these bytes beyond the packed rules.
    pub(crate) index_bytes: Option<usize>,
    /// Tables that lookups may visit.
    pub(crate) tables: Option<usize>,
    /// Headers per second, in batches of 256.
    pub(crate) batch_headers_per_second: Spread,
    /// Headers per second, one call for each.
    pub(crate) single_headers_per_second: Spread,
    /// Rates of several threads; absent unless requested, and for peers.
    pub(crate) threads: Option<ThreadRates>,
    /// Rule changes per second; absent unless requested.
    pub(crate) updates_per_second: Option<Spread>,
    /// Rule changes per second in transactions of 64 changes.
    pub(crate) updates_in_groups_per_second: Option<Spread>,
    /// Rule changes per second with four lookups after each, including the time of
    /// the lookups.
    pub(crate) updates_with_lookups_per_second: Option<Spread>,
    /// The mean CPU time of a rule change that goes to reading its rule from memory,
    /// without any engine.
    pub(crate) rule_reading_seconds: Option<Spread>,
    /// Headers per second in batches after the rule changes, divided by the rate in a new
    /// engine with the same rules.
    pub(crate) batch_share_after_updates: Option<Spread>,
    /// CPU time of single rule changes; absent unless requested.
    pub(crate) update_seconds: Option<Quantiles>,
    /// Elapsed time of single rule changes.
    pub(crate) update_wall_seconds: Option<Quantiles>,
    /// The estimate before building; absent for peers.
    pub(crate) estimate: Option<EstimateRow>,
    /// The rates of the extra runs, in batches and single lookups.
    #[serde(skip)]
    pub(crate) trial: Option<[f64; 2]>,
    /// Headers with a wrong answer, before and after updates.
    pub(crate) wrong: usize,
    /// The peer that the row belongs to, absent for our engines.
    pub(crate) peer: Option<Origin>,
    /// The size group; sets of the same size are averaged.
    #[serde(skip)]
    pub(crate) size: String,
}

impl Measurement {
    /// Creates a row with the data that is known of every candidate.
    pub(super) fn new(
        subject: &Subject,
        engine: String,
        build_seconds: f64,
        shown: &Shown,
    ) -> Measurement {
        Measurement {
            set: subject.name.clone(),
            engine,
            rules: subject.policy.len(),
            build_seconds,
            bytes: None,
            index_bytes: None,
            tables: None,
            batch_headers_per_second: shown.batch,
            single_headers_per_second: shown.single,
            threads: None,
            updates_per_second: None,
            updates_in_groups_per_second: None,
            updates_with_lookups_per_second: None,
            rule_reading_seconds: None,
            batch_share_after_updates: None,
            update_seconds: None,
            update_wall_seconds: None,
            estimate: None,
            trial: shown.trial,
            wrong: shown.wrong,
            peer: None,
            size: subject.size.clone(),
        }
    }
}

/// A peer that could not be measured on a rule set, or an engine that was not
/// built.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failed {
    /// The rule set.
    pub(crate) set: String,
    /// The engine, or the peer with its algorithm if that is known.
    pub(crate) engine: String,
    /// Rules in the set.
    pub(crate) rules: usize,
    /// The reason of the failure.
    pub(crate) failed: String,
    /// The peer's name; empty for an engine.
    #[serde(skip)]
    pub(crate) peer: String,
}

impl Failed {
    /// Creates a row for a failed peer.
    pub(super) fn row(subject: &Subject, peer: &PeerSpec, engine: String, reason: &str) -> Row {
        Row::Failed(Failed {
            peer: peer.name().to_owned(),
            ..Failed::of_engine(subject, engine, reason.to_owned())
        })
    }

    /// Creates the failure of an engine that was not built.
    pub(super) fn of_engine(subject: &Subject, engine: String, reason: String) -> Failed {
        Failed {
            set: subject.name.clone(),
            engine,
            rules: subject.policy.len(),
            failed: reason,
            peer: String::new(),
        }
    }
}

/// One candidate on one rule set.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Row {
    Measured(Box<Measurement>),
    Failed(Failed),
}

impl Row {
    /// Returns the measurement, if there is one.
    pub(crate) fn measured(&self) -> Option<&Measurement> {
        match self {
            Row::Measured(measurement) => Some(measurement),
            Row::Failed(_) => None,
        }
    }

    /// Returns the failure, if it is one.
    pub(crate) fn failure(&self) -> Option<&Failed> {
        match self {
            Row::Measured(_) => None,
            Row::Failed(failed) => Some(failed),
        }
    }
}

impl Finished for Row {
    fn summary(&self) -> String {
        match self {
            Row::Measured(row) => format!(
                "{}, {}: {:.2} million headers/s in batches, {}",
                row.set,
                row.engine,
                row.batch_headers_per_second.median / 1e6,
                counted(row.wrong, "wrong answer")
            ),
            Row::Failed(row) => format!("{}, {}: fails: {}", row.set, row.engine, row.failed),
        }
    }
}
