//! The engine that `auto` chooses, compared with the fastest one.
//!
//! All engines are measured, so the cost of each load with each engine is known.
//! `auto` uses either estimates alone, or estimates and the better of two extra
//! runs of each of its first few engines; these runs are not part of the
//! measurement.

use std::io::{self, Write};
use std::time::Duration;

use classyard::engine::auto::Load;
use classyard::estimate::Estimate;
use classyard_report::output::table::{Side, Table};
use classyard_report::run::Finished;
use serde::Serialize;

use super::measure::geometric_mean;
use super::row::{Measurement, Row};
use crate::estimates::EstimateRow;

/// The number of engines with extra runs.
const TRIED_ENGINES: usize = 4;

/// A choice is good if its rate is at least this share of the fastest engine's
/// rate.
const GOOD_SHARE: f64 = 0.85;

/// Returns the loads with their names.
fn loads() -> [(&'static str, Load); 6] {
    let load = Load::default();
    [
        ("batches", load),
        ("single", load.with_batch(1)),
        (
            "batches, 100k/update",
            load.with_lookups_per_update(100_000.0),
        ),
        ("batches, 1k/update", load.with_lookups_per_update(1000.0)),
        ("batches, 10/update", load.with_lookups_per_update(10.0)),
        (
            "single, 1k/update",
            load.with_batch(1).with_lookups_per_update(1000.0),
        ),
    ]
}

/// A choice and how good it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ChoiceRow {
    /// The rule set.
    pub(crate) set: String,
    /// Rules in the set.
    pub(crate) rules: usize,
    /// The load.
    pub(crate) load: &'static str,
    /// The engine that is predicted to be the fastest.
    pub(crate) predicted: String,
    /// Its measured rate divided by the fastest engine's rate.
    pub(crate) predicted_share: f64,
    /// The fastest of the first few engines in their extra runs.
    pub(crate) tried: String,
    /// Its measured rate divided by the fastest engine's rate.
    pub(crate) tried_share: f64,
    /// The fastest engine as measured.
    pub(crate) best: String,
    /// Its time per lookup in nanoseconds.
    pub(crate) best_ns: f64,
    /// The number of engines that were measured for the load.
    pub(crate) engines: usize,
}

impl Finished for ChoiceRow {
    fn summary(&self) -> String {
        let ChoiceRow {
            set,
            load,
            predicted,
            predicted_share,
            tried,
            tried_share,
            best,
            ..
        } = self;
        format!(
            "{set}, {load}: {predicted} at {predicted_share:.2} of {best}, tried out {tried} at \
             {tried_share:.2}"
        )
    }
}

/// An engine's cost under a load, in nanoseconds per lookup.
struct Candidate<'a> {
    engine: &'a str,
    predicted: f64,
    tried: f64,
    measured: f64,
}

/// Returns the choices on one rule set, a row for each load.
pub(crate) fn choices(rows: &[Row]) -> Vec<ChoiceRow> {
    let measured: Vec<&Measurement> = rows.iter().filter_map(Row::measured).collect();
    let of_loads = loads().into_iter().filter_map(|(name, load)| {
        let candidates = measured.iter().filter_map(|row| candidate(row, &load));
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();
        candidates.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        let best = least(&candidates, |one| one.measured)?;
        let predicted = candidates.first()?;
        let tried = least(&candidates[..candidates.len().min(TRIED_ENGINES)], |one| {
            one.tried
        })?;
        let row = measured.first()?;
        Some(ChoiceRow {
            set: row.set.clone(),
            rules: row.rules,
            load: name,
            predicted: predicted.engine.to_owned(),
            predicted_share: best.measured / predicted.measured,
            tried: tried.engine.to_owned(),
            tried_share: best.measured / tried.measured,
            best: best.engine.to_owned(),
            best_ns: best.measured,
            engines: candidates.len(),
        })
    });
    of_loads.collect()
}

fn least<'a, 'r>(
    candidates: &'a [Candidate<'r>],
    ns: impl Fn(&Candidate<'r>) -> f64,
) -> Option<&'a Candidate<'r>> {
    candidates.iter().min_by(|a, b| ns(a).total_cmp(&ns(b)))
}

/// Returns an engine's cost under a load, or `None` if the engine is not a
/// candidate: if rules do not change, wrappers are left out in favour of the
/// engines that they wrap.
fn candidate<'a>(row: &'a Measurement, load: &Load) -> Option<Candidate<'a>> {
    let wraps = row.engine.contains('(');
    if load.lookups_per_update().is_none() && wraps {
        return None;
    }
    let estimate: &EstimateRow = row.estimate.as_ref()?;
    let update_ns = row.updates_per_second.map(|rate| 1e9 / rate.median);
    let ns_per_lookup = |lookup_ns: f64, single_ns: f64, update_ns: Option<f64>| {
        let estimate = Estimate {
            bytes: 0,
            build: Duration::ZERO,
            lookup_ns,
            single_ns,
            update_ns,
        };
        let updates = load.update_ns(&estimate)?;
        Some(load.ns_per_lookup(load.lookup_ns(&estimate), updates))
    };
    let [batch, single] = [row.batch_headers_per_second, row.single_headers_per_second];
    let [tried_batch, tried_single] = row.trial?;
    Some(Candidate {
        engine: &row.engine,
        predicted: ns_per_lookup(estimate.lookup_ns, estimate.single_ns, estimate.update_ns)?,
        // The extra runs have no updates.
        tried: ns_per_lookup(1e9 / tried_batch, 1e9 / tried_single, estimate.update_ns)?,
        measured: ns_per_lookup(1e9 / batch.median, 1e9 / single.median, update_ns)?,
    })
}

/// Writes the choices and the number of good ones.
pub(crate) fn write_choices(rows: &[ChoiceRow], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("set", Side::Left),
        ("load", Side::Left),
        ("predicted", Side::Left),
        ("its rate / best", Side::Right),
        ("tried out", Side::Left),
        ("its rate / best", Side::Right),
        ("best", Side::Left),
        ("ns", Side::Right),
    ]);
    for row in rows {
        table.row(vec![
            row.set.clone(),
            row.load.to_owned(),
            row.predicted.clone(),
            format!("{:.2}", row.predicted_share),
            row.tried.clone(),
            format!("{:.2}", row.tried_share),
            row.best.clone(),
            format!("{:.1}", row.best_ns),
        ]);
    }
    table.write(out)?;
    type Share = fn(&ChoiceRow) -> f64;
    let kinds: [(&str, Share); 2] = [
        ("by prediction alone", |row| row.predicted_share),
        ("the first tried out", |row| row.tried_share),
    ];
    for (name, share) in kinds {
        let shares: Vec<f64> = rows.iter().map(share).collect();
        let good = shares.iter().filter(|&&share| share >= GOOD_SHARE).count();
        let mean = geometric_mean(&shares).unwrap_or(1.0);
        let min = shares.iter().copied().fold(1.0, f64::min);
        writeln!(
            out,
            "{name}: {good} of {} within 15 % of the best engine's rate; mean {mean:.2}, min \
             {min:.2} of it",
            shares.len()
        )?;
    }
    Ok(())
}
