//! Benchmark results as a table or CSV.

use std::io::{self, Write};

use classyard_report::output::csv;
use classyard_report::output::table::{Side, Table};

use super::latency::{Quantiles, microseconds};
use super::measure::{Spread, geometric_mean};
use super::row::{Failed, Measurement, Row};
use super::threads::ThreadRates;
use super::updates::GROUPED_CHANGES;
use super::{estimated, threads, versus};

/// Writes one row for each measurement.
pub(crate) fn write_csv(results: &[Row], out: &mut csv::Writer<'_>) -> io::Result<()> {
    let mut heading = vec![
        "set".to_owned(),
        "engine".to_owned(),
        "rules".to_owned(),
        "build_seconds".to_owned(),
        "bytes".to_owned(),
        "index_bytes".to_owned(),
        "tables".to_owned(),
    ];
    for rate in [
        "batch",
        "single",
        "updates",
        "updates_in_groups",
        "updates_with_lookups",
    ] {
        heading.extend(["min", "median", "max"].map(|which| format!("{rate}_{which}")));
    }
    for time in ["update_seconds", "update_wall_seconds"] {
        heading.extend(Quantiles::NAMES.map(|which| format!("{time}_{which}")));
    }
    for spread in ["rule_reading_seconds", "batch_share_after_updates"] {
        heading.extend(["min", "median", "max"].map(|which| format!("{spread}_{which}")));
    }
    heading.extend(
        [
            "bytes",
            "build_seconds",
            "lookup_ns",
            "single_ns",
            "update_ns",
        ]
        .map(|which| format!("estimated_{which}")),
    );
    heading.extend(ThreadRates::COLUMNS.map(str::to_owned));
    heading.extend(["wrong", "peer", "best_of_peer", "failed"].map(str::to_owned));
    row(out, &heading)?;
    for r in results {
        let r = match r {
            Row::Measured(measurement) => measurement,
            Row::Failed(failed) => {
                let mut cells = vec![String::new(); heading.len()];
                cells[0].clone_from(&failed.set);
                cells[1].clone_from(&failed.engine);
                cells[2] = failed.rules.to_string();
                cells[heading.len() - 3].clone_from(&failed.peer);
                cells[heading.len() - 1].clone_from(&failed.failed);
                row(out, &cells)?;
                continue;
            }
        };
        let mut cells = vec![
            r.set.clone(),
            r.engine.clone(),
            r.rules.to_string(),
            r.build_seconds.to_string(),
            csv::optional(r.bytes.as_ref()),
            csv::optional(r.index_bytes.as_ref()),
            csv::optional(r.tables.as_ref()),
        ];
        let rates = [
            Some(r.batch_headers_per_second),
            Some(r.single_headers_per_second),
            r.updates_per_second,
            r.updates_in_groups_per_second,
            r.updates_with_lookups_per_second,
        ];
        for rate in rates {
            let figure = |of: fn(&Spread) -> f64| rate.as_ref().map(|s| format!("{:.0}", of(s)));
            let figures = [figure(|s| s.min), figure(|s| s.median), figure(|s| s.max)];
            cells.extend(figures.map(Option::unwrap_or_default));
        }
        for time in [r.update_seconds, r.update_wall_seconds] {
            let figures = time.map(|q| q.values().map(|seconds| format!("{seconds:.9}")));
            cells.extend(figures.unwrap_or_default());
        }
        for (spread, decimals) in [
            (r.rule_reading_seconds, 10),
            (r.batch_share_after_updates, 3),
        ] {
            let figure = |figure: f64| format!("{figure:.decimals$}");
            let figures = spread.map(|s| [s.min, s.median, s.max].map(figure));
            cells.extend(figures.unwrap_or_default());
        }
        let estimate = r.estimate.as_ref();
        cells.push(csv::optional(estimate.map(|e| &e.bytes)));
        cells.push(csv::optional(estimate.map(|e| &e.build_seconds)));
        cells.push(csv::optional(estimate.map(|e| &e.lookup_ns)));
        cells.push(csv::optional(estimate.map(|e| &e.single_ns)));
        cells.push(csv::optional(estimate.and_then(|e| e.update_ns.as_ref())));
        match &r.threads {
            Some(rates) => cells.extend(rates.cells()),
            None => cells.extend(ThreadRates::COLUMNS.map(|_| String::new())),
        }
        cells.push(r.wrong.to_string());
        cells.push(csv::optional(r.peer.as_ref().map(|peer| &peer.name)));
        cells.push(csv::optional(r.peer.as_ref().map(|peer| &peer.best)));
        cells.push(String::new());
        row(out, &cells)?;
    }
    Ok(())
}

fn row(out: &mut csv::Writer<'_>, cells: &[String]) -> io::Result<()> {
    let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
    out.row(&cells)
}

/// Writes the part of changes that goes to reading rules: the median of each set.
fn write_reading(measured: &[&Measurement], out: &mut dyn Write) -> io::Result<()> {
    let mut times: Vec<(&str, f64)> = Vec::new();
    for row in measured {
        if let Some(reading) = &row.rule_reading_seconds
            && times.last().is_none_or(|(set, _)| *set != row.set)
        {
            times.push((&row.set, reading.median * 1e9));
        }
    }
    let times: Vec<String> = (times.iter())
        .map(|(set, nanoseconds)| format!("{nanoseconds:.0} ns in {set}"))
        .collect();
    writeln!(
        out,
        "each update reads its rule from the list's memory, which is part of its time: {}",
        times.join(", ")
    )
}

/// Writes a table for people, the ratios of the engines to the first one, and their
/// ratios to peers.
pub(crate) fn write_table(results: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let measured: Vec<&Measurement> = results.iter().filter_map(Row::measured).collect();
    let updates = measured.iter().any(|r| r.updates_per_second.is_some());
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
    let threads = measured.iter().find_map(|r| r.threads.as_ref());
    let together = threads.map(|rates| format!("{} threads M/s", rates.count()));
    if let Some(together) = &together {
        columns.push((together, Side::Right));
        columns.push(("one M/s", Side::Right));
        columns.push(("scaling", Side::Right));
    }
    if updates {
        columns.push(("updates M/s", Side::Right));
        columns.push(("in groups", Side::Right));
        columns.push(("with lookups", Side::Right));
        columns.push(("lookups after", Side::Right));
        columns.push(("one us p99.9", Side::Right));
        columns.push(("max", Side::Right));
        columns.push(("max elapsed", Side::Right));
    }
    columns.push(("wrong", Side::Right));
    let mut table = Table::new(&columns);
    for row in results {
        table.row(cells(row, together.is_some(), updates, columns.len()));
    }
    table.write(out)?;
    writeln!(out)?;
    writeln!(
        out,
        "rates: median (min-max) of interleaved repeats, in the thread's CPU time; batches of 256"
    )?;
    if updates {
        writeln!(
            out,
            "in groups: {GROUPED_CHANGES} changes in a transaction; lookups after: batch M/s after \
             the updates divided by those of a new build; one: a single update, microseconds of \
             CPU time and of elapsed time, each the minimum of its repeats"
        )?;
        write_reading(&measured, out)?;
    }
    let of_threads = measured.iter().filter_map(|r| {
        let rates = r.threads.as_ref()?;
        Some((r.set.as_str(), r.engine.as_str(), rates))
    });
    threads::write(of_threads, out)?;
    let ours: Vec<&Measurement> = measured.into_iter().filter(|r| r.peer.is_none()).collect();
    write_ratios(&ours, out)?;
    estimated::write(&ours, out)?;
    for failed in results.iter().filter_map(Row::failure) {
        let Failed {
            set,
            engine,
            failed,
            ..
        } = failed;
        writeln!(out, "{engine} fails on {set}: {failed}")?;
    }
    versus::write(results, out)
}

fn cells(row: &Row, threads: bool, updates: bool, columns: usize) -> Vec<String> {
    let r = match row {
        Row::Measured(measurement) => measurement,
        Row::Failed(failed) => {
            let mut cells = vec!["-".to_owned(); columns];
            cells[0].clone_from(&failed.set);
            cells[1].clone_from(&failed.engine);
            cells[2] = failed.rules.to_string();
            "fails".clone_into(&mut cells[6]);
            return cells;
        }
    };
    let best = r.peer.as_ref().is_some_and(|peer| peer.best);
    let dash = || "-".to_owned();
    let mut cells = vec![
        r.set.clone(),
        format!("{}{}", r.engine, if best { " (best)" } else { "" }),
        r.rules.to_string(),
        r.tables.map_or_else(dash, |tables| tables.to_string()),
        format!("{:.3}", r.build_seconds),
        r.bytes
            .map_or_else(dash, |bytes| format!("{:.0}", per_rule(bytes, r.rules))),
        millions(Some(r.batch_headers_per_second)),
        millions(Some(r.single_headers_per_second)),
    ];
    if threads {
        let rates = r.threads.as_ref().map(ThreadRates::table_cells);
        cells.extend(rates.unwrap_or_else(|| [dash(), dash(), dash()]));
    }
    if updates {
        cells.push(millions(r.updates_per_second));
        cells.push(millions(r.updates_in_groups_per_second));
        cells.push(millions(r.updates_with_lookups_per_second));
        let share = r.batch_share_after_updates.as_ref();
        cells.push(share.map_or_else(dash, |share| format!("{:.2}x", share.median)));
        let micros = |q: Option<Quantiles>, of: fn(&Quantiles) -> f64| {
            q.as_ref().map_or_else(dash, |q| microseconds(of(q)))
        };
        cells.push(micros(r.update_seconds, |q| q.p999));
        cells.push(micros(r.update_seconds, |q| q.max));
        cells.push(micros(r.update_wall_seconds, |q| q.max));
    }
    cells.push(r.wrong.to_string());
    cells
}

/// Selects a rate of a measurement.
type Rate = fn(&Measurement) -> Option<Spread>;

fn write_ratios(results: &[&Measurement], out: &mut dyn Write) -> io::Result<()> {
    let engines = distinct(results);
    let [base, others @ ..] = engines.as_slice() else {
        return Ok(());
    };
    for other in others {
        let mean = |rate: Rate| {
            let ratios = sets(results).into_iter().filter_map(|set| {
                let find = |engine: &str| {
                    let measurement = results
                        .iter()
                        .find(|r| r.set == set && r.engine == engine)?;
                    rate(measurement).map(|spread| spread.median)
                };
                Some(find(other)? / find(base)?)
            });
            geometric_mean(&ratios.collect::<Vec<f64>>())
        };
        let mut parts = Vec::new();
        let rates: [(&str, Rate); 4] = [
            ("batch", |r| Some(r.batch_headers_per_second)),
            ("single", |r| Some(r.single_headers_per_second)),
            ("updates", |r| r.updates_per_second),
            ("updates in groups", |r| r.updates_in_groups_per_second),
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

fn distinct<'a>(results: &[&'a Measurement]) -> Vec<&'a str> {
    let mut engines: Vec<&'a str> = Vec::new();
    for r in results {
        if !engines.contains(&r.engine.as_str()) {
            engines.push(&r.engine);
        }
    }
    engines
}

fn sets<'a>(results: &[&'a Measurement]) -> Vec<&'a str> {
    let mut sets: Vec<&'a str> = results.iter().map(|r| r.set.as_str()).collect();
    sets.dedup();
    sets
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
