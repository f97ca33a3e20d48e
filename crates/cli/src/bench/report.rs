//! Benchmark results as a table, JSON or CSV.

use std::io::{self, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::measure::Spread;

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

/// Writes all measurements as one JSON array.
pub(crate) fn write_json(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, results)?;
    writeln!(out)
}

/// Writes one line for each measurement, medians with minimum and maximum.
pub(crate) fn write_csv(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "set,engine,rules,build_seconds,bytes,index_bytes,tables")?;
    for rate in ["batch", "single", "updates", "updates_with_lookups"] {
        write!(out, ",{rate}_min,{rate}_median,{rate}_max")?;
    }
    writeln!(out, ",wrong")?;
    for r in results {
        write!(
            out,
            "{},{},{},{},{},{},{}",
            r.set, r.engine, r.rules, r.build_seconds, r.bytes, r.index_bytes, r.tables
        )?;
        let rates = [
            Some(r.batch_headers_per_second),
            Some(r.single_headers_per_second),
            r.updates_per_second,
            r.updates_with_lookups_per_second,
        ];
        for rate in rates {
            match rate {
                Some(Spread { min, median, max }) => {
                    write!(out, ",{min:.0},{median:.0},{max:.0}")?;
                }
                None => write!(out, ",,,")?,
            }
        }
        writeln!(out, ",{}", r.wrong)?;
    }
    Ok(())
}

/// Writes a table for people, and the ratios of the engines to the first one.
pub(crate) fn write_table(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    let updates = results.iter().any(|r| r.updates_per_second.is_some());
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec![
        "set", "engine", "rules", "tables", "build s", "B/rule", "batch M/s", "single M/s",
    ];
    if updates {
        header.extend(["updates M/s", "with lookups"]);
    }
    header.push("wrong");
    table.set_header(header);
    for r in results {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let mut row = vec![
            Cell::new(&r.set),
            Cell::new(&r.engine),
            number(r.rules.to_string()),
            number(r.tables.to_string()),
            number(format!("{:.3}", r.build_seconds)),
            number(format!("{:.0}", per_rule(r.bytes, r.rules))),
            number(millions(Some(r.batch_headers_per_second))),
            number(millions(Some(r.single_headers_per_second))),
        ];
        if updates {
            row.push(number(millions(r.updates_per_second)));
            row.push(number(millions(r.updates_with_lookups_per_second)));
        }
        row.push(number(r.wrong.to_string()));
        table.add_row(row);
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "rates: median (min-max) of repeats in turns, in the thread's CPU time; batches of 256"
    )?;
    write_ratios(results, out)
}

fn write_ratios(results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    let engines = distinct(results);
    let [base, others @ ..] = engines.as_slice() else {
        return Ok(());
    };
    for other in others {
        let mean = |rate: &dyn Fn(&Measurement) -> Option<Spread>| {
            let ratios = sets(results).into_iter().filter_map(|set| {
                let find = |engine: &str| {
                    let one = results.iter().find(|r| r.set == set && r.engine == engine)?;
                    rate(one).map(|spread| spread.median)
                };
                Some(find(other)? / find(base)?)
            });
            geometric_mean(&ratios.collect::<Vec<f64>>())
        };
        let mut parts = Vec::new();
        let rates: [(&str, &dyn Fn(&Measurement) -> Option<Spread>); 3] = [
            ("batch", &|r| Some(r.batch_headers_per_second)),
            ("single", &|r| Some(r.single_headers_per_second)),
            ("updates", &|r| r.updates_per_second),
        ];
        for (name, rate) in rates {
            if let Some(mean) = mean(rate) {
                parts.push(format!("{name} {mean:.2}x"));
            }
        }
        writeln!(out, "{other} / {base}, geometric mean over sets: {}", parts.join(", "))?;
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
