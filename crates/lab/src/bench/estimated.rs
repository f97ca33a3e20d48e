//! Compares estimates with measurements.

use std::io::{self, Write};

use classyard::machine::Machine;
use classyard::{BuildError, EngineSpec};

use super::measure::geometric_mean;
use super::row::Measurement;
use crate::estimates::{EstimateRow, Shapes};

/// Estimates the cost of an engine on a subject. Updates are measured with half of
/// the rules in the table, so they are estimated for half of the rules.
///
/// # Errors
/// The [`BuildError`] that building would return.
pub(super) fn estimate(
    shapes: &Shapes,
    engine: &EngineSpec,
    machine: &Machine,
) -> Result<EstimateRow, BuildError> {
    let mut estimate = shapes.estimate(engine, machine)?;
    if engine.is_dynamic() {
        estimate.update_ns = shapes.halves().estimate(engine, machine)?.update_ns;
    }
    Ok(estimate)
}

/// An estimated figure divided by the measured one, if both are known.
type Ratio = fn(&Measurement, &EstimateRow) -> Option<f64>;

#[allow(clippy::cast_precision_loss)] // ratios
const RATIOS: [(&str, Ratio); 5] = [
    ("bytes", |measured, estimate| {
        Some(estimate.bytes as f64 / measured.bytes? as f64)
    }),
    ("build", |measured, estimate| {
        Some(estimate.build_seconds / measured.build_seconds)
    }),
    ("lookup", |measured, estimate| {
        let rate = measured.batch_headers_per_second.median;
        Some(estimate.lookup_ns * 1e-9 * rate)
    }),
    ("single", |measured, estimate| {
        let rate = measured.single_headers_per_second.median;
        Some(estimate.single_ns * 1e-9 * rate)
    }),
    ("update", |measured, estimate| {
        let rate = measured.updates_per_second?.median;
        Some(estimate.update_ns? * 1e-9 * rate)
    }),
];

/// Writes for each engine the ratios of estimated to measured figures: the
/// geometric mean over sets, and the ratio that is furthest from 1.
pub(super) fn write(results: &[&Measurement], out: &mut dyn Write) -> io::Result<()> {
    let mut engines: Vec<&str> = Vec::new();
    for row in results {
        if !engines.contains(&row.engine.as_str()) {
            engines.push(&row.engine);
        }
    }
    for engine in engines {
        let rows = results.iter().filter(|row| row.engine == engine);
        let known = rows.filter_map(|row| Some((*row, row.estimate.as_ref()?)));
        let known: Vec<(&Measurement, &EstimateRow)> = known.collect();
        let parts = RATIOS.iter().filter_map(|(name, ratio)| {
            let ratios = known.iter().filter_map(|(row, estimate)| {
                let ratio = ratio(row, estimate)?;
                (ratio > 0.0 && ratio.is_finite()).then_some((ratio, row.set.as_str()))
            });
            let ratios: Vec<(f64, &str)> = ratios.collect();
            let values: Vec<f64> = ratios.iter().map(|&(ratio, _)| ratio).collect();
            let log_distance = |ratio: f64| ratio.ln().abs();
            let worst = ratios
                .iter()
                .max_by(|a, b| log_distance(a.0).total_cmp(&log_distance(b.0)));
            let (mean, (worst, set)) = (geometric_mean(&values)?, worst?);
            Some(match ratios.len() {
                1 => format!("{name} {mean:.2}x"),
                _ => format!("{name} {mean:.2}x ({worst:.2}x on {set})"),
            })
        });
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            writeln!(
                out,
                "{engine}, estimated / measured, geometric mean over sets (and worst): {}",
                parts.join(", ")
            )?;
        }
    }
    Ok(())
}
