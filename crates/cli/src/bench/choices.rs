//! Which engine `auto` takes, beside which one is the fastest.
//!
//! All engines are measured, so what each load takes with each of them is known.
//! `auto` knows predictions alone, or predictions and the better of two more turns of
//! each of the first few, which are not among those that are measured.

use std::io::{self, Write};
use std::time::Duration;

use classyard::engine::auto::Load;
use classyard::estimate::Estimate;
use serde::Serialize;

use super::report::{Measurement, Row, geometric_mean};
use super::run::Finished;
use crate::estimates::EstimateRow;
use crate::output::table::{Side, Table};

/// How many engines are tried out.
const TRIED: usize = 4;

/// An engine within this share of the fastest one is as good.
const GOOD: f64 = 0.85;

/// The loads, with names.
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

/// A choice, and what it is worth.
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
    /// Its measured rate over that of the fastest.
    pub(crate) predicted_share: f64,
    /// The engine that is the fastest of the first few when they are tried out.
    pub(crate) tried: String,
    /// Its measured rate over that of the fastest.
    pub(crate) tried_share: f64,
    /// The engine that is the fastest.
    pub(crate) best: String,
    /// What a lookup takes with it, in nanoseconds.
    pub(crate) best_ns: f64,
    /// Engines that were measured for the load.
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

/// What an engine takes under a load, in nanoseconds a lookup.
struct Candidate<'a> {
    engine: &'a str,
    predicted: f64,
    tried: f64,
    measured: f64,
}

/// The choices on one rule set, a row for each load.
pub(crate) fn choices(rows: &[Row]) -> Vec<ChoiceRow> {
    let measured: Vec<&Measurement> = rows.iter().filter_map(Row::measured).collect();
    let of_loads = loads().into_iter().filter_map(|(name, load)| {
        let candidates = measured.iter().filter_map(|row| candidate(row, &load));
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();
        candidates.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        let best = least(&candidates, |one| one.measured)?;
        let predicted = candidates.first()?;
        let tried = least(&candidates[..candidates.len().min(TRIED)], |one| one.tried)?;
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

/// What an engine takes under a load, unless it is out of question: where rules do
/// not change, wrappers are, which stand for what they wrap.
fn candidate<'a>(row: &'a Measurement, load: &Load) -> Option<Candidate<'a>> {
    let wraps = row.engine.contains('(');
    if load.lookups_per_update().is_none() && wraps {
        return None;
    }
    let estimate: &EstimateRow = row.estimate.as_ref()?;
    let update_ns = row.updates_per_second.map(|rate| 1e9 / rate.median);
    let of = |lookup_ns: f64, single_ns: f64, update_ns: Option<f64>| {
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
        predicted: of(estimate.lookup_ns, estimate.single_ns, estimate.update_ns)?,
        // Updates are not tried out.
        tried: of(1e9 / tried_batch, 1e9 / tried_single, estimate.update_ns)?,
        measured: of(1e9 / batch.median, 1e9 / single.median, update_ns)?,
    })
}

/// Writes the choices, and how many of them are good.
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
        let good = shares.iter().filter(|&&share| share >= GOOD).count();
        let mean = geometric_mean(&shares).unwrap_or(1.0);
        let least = shares.iter().copied().fold(1.0, f64::min);
        writeln!(
            out,
            "{name}: {good} of {} within 15 % of the best engine's rate; mean {mean:.2}, least \
             {least:.2} of it",
            shares.len()
        )?;
    }
    Ok(())
}
