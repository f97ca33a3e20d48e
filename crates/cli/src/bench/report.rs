//! Benchmark results as a table, JSON or CSV.

use std::io::{self, Write};

use serde::Serialize;

use super::measure::Spread;
use crate::output::csv;
use crate::output::table::{Side, Table};

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
    /// Bytes of the built engine, rules included.
    pub(crate) bytes: usize,
    /// Of these, bytes beyond the packed rules.
    pub(crate) index_bytes: usize,
    /// Tables that lookups may visit.
    pub(crate) tables: usize,
    /// Headers per second, in batches of 256.
    pub(crate) batch_headers_per_second: Spread,
    /// Headers per second, one call for each.
    pub(crate) single_headers_per_second: Spread,
    /// Rule changes per second; absent unless asked for.
    pub(crate) updates_per_second: Option<Spread>,
    /// Rule changes per second with four lookups after each, their time
    /// included.
    pub(crate) updates_with_lookups_per_second: Option<Spread>,
    /// Headers with a wrong answer, before and after updates.
    pub(crate) wrong: usize,
}

/// Writes one row for each measurement.
pub(crate) fn write_csv(results: &[Measurement], out: &mut csv::Writer<'_>) -> io::Result<()> {
    let mut heading = vec![
        "set".to_owned(),
        "engine".to_owned(),
        "rules".to_owned(),
        "build_seconds".to_owned(),
        "bytes".to_owned(),
        "index_bytes".to_owned(),
        "tables".to_owned(),
    ];
    for rate in ["batch", "single", "updates", "updates_with_lookups"] {
        heading.extend(["min", "median", "max"].map(|which| format!("{rate}_{which}")));
    }
    heading.push("wrong".to_owned());
    row(out, &heading)?;
    for r in results {
        let mut cells = vec![
            r.set.clone(),
            r.engine.clone(),
            r.rules.to_string(),
            r.build_seconds.to_string(),
            r.bytes.to_string(),
            r.index_bytes.to_string(),
            r.tables.to_string(),
        ];
        let rates = [
            Some(r.batch_headers_per_second),
            Some(r.single_headers_per_second),
            r.updates_per_second,
            r.updates_with_lookups_per_second,
        ];
        for rate in rates {
            let figure = |of: fn(&Spread) -> f64| rate.as_ref().map(|s| format!("{:.0}", of(s)));
            let figures = [figure(|s| s.min), figure(|s| s.median), figure(|s| s.max)];
            cells.extend(figures.map(Option::unwrap_or_default));
        }
        cells.push(r.wrong.to_string());
        row(out, &cells)?;
    }
    Ok(())
}

fn row(out: &mut csv::Writer<'_>, cells: &[String]) -> io::Result<()> {
    let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
    out.row(&cells)
}

/// Writes a table for people, and the ratios of the engines to the first one.
pub(crate) fn write_table(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    let updates = results.iter().any(|r| r.updates_per_second.is_some());
    let mut columns = vec![
        ("set", Side::Left),
        ("engine", Side::Left),
        ("rules", Side::Right),
        ("tables", Side::Right),
        ("build s", Side::Right),
        ("bytes/rule", Side::Right),
        ("batch M/s", Side::Right),
        ("single M/s", Side::Right),
    ];
    if updates {
        columns.push(("updates M/s", Side::Right));
        columns.push(("with lookups", Side::Right));
    }
    columns.push(("wrong", Side::Right));
    let mut table = Table::new(&columns);
    for r in results {
        let mut row = vec![
            r.set.clone(),
            r.engine.clone(),
            r.rules.to_string(),
            r.tables.to_string(),
            format!("{:.3}", r.build_seconds),
            format!("{:.0}", per_rule(r.bytes, r.rules)),
            millions(Some(r.batch_headers_per_second)),
            millions(Some(r.single_headers_per_second)),
        ];
        if updates {
            row.push(millions(r.updates_per_second));
            row.push(millions(r.updates_with_lookups_per_second));
        }
        row.push(r.wrong.to_string());
        table.row(row);
    }
    table.write(out)?;
    writeln!(out)?;
    writeln!(
        out,
        "rates: median (min-max) of repeats in turns, in the thread's CPU time; batches of 256"
    )?;
    write_ratios(results, out)
}

/// One of a measurement's rates.
type Rate = fn(&Measurement) -> Option<Spread>;

fn write_ratios(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    let engines = distinct(results);
    let [base, others @ ..] = engines.as_slice() else {
        return Ok(());
    };
    for other in others {
        let mean = |rate: Rate| {
            let ratios = sets(results).into_iter().filter_map(|set| {
                let find = |engine: &str| {
                    let one = results
                        .iter()
                        .find(|r| r.set == set && r.engine == engine)?;
                    rate(one).map(|spread| spread.median)
                };
                Some(find(other)? / find(base)?)
            });
            geometric_mean(&ratios.collect::<Vec<f64>>())
        };
        let mut parts = Vec::new();
        let rates: [(&str, Rate); 3] = [
            ("batch", |r| Some(r.batch_headers_per_second)),
            ("single", |r| Some(r.single_headers_per_second)),
            ("updates", |r| r.updates_per_second),
        ];
        for (name, rate) in rates {
            if let Some(mean) = mean(rate) {
                parts.push(format!("{name} {mean:.2}x"));
            }
        }
        writeln!(
            out,
            "{other} / {base}, geometric mean over sets: {}",
            parts.join(", ")
        )?;
    }
    Ok(())
}

fn distinct(results: &[Measurement]) -> Vec<&str> {
    let mut engines: Vec<&str> = Vec::new();
    for r in results {
        if !engines.contains(&r.engine.as_str()) {
            engines.push(&r.engine);
        }
    }
    engines
}

fn sets(results: &[Measurement]) -> Vec<&str> {
    let mut sets: Vec<&str> = results.iter().map(|r| r.set.as_str()).collect();
    sets.dedup();
    sets
}

/// The mean of ratios; `None` for none.
#[allow(clippy::cast_precision_loss)] // a few dozen ratios
pub(crate) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

#[allow(clippy::cast_precision_loss)] // for people
fn per_rule(bytes: usize, rules: usize) -> f64 {
    bytes as f64 / rules.max(1) as f64
}

fn millions(rate: Option<Spread>) -> String {
    match rate {
        Some(Spread { min, median, max }) => {
            format!("{:.2} ({:.2}-{:.2})", median / 1e6, min / 1e6, max / 1e6)
        }
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}
