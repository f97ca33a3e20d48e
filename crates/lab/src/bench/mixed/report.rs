//! Results of the mixed load as a table, JSON or CSV.

use std::io::{self, Write};

use classyard_report::output::csv;
use classyard_report::output::style::counted;
use classyard_report::output::table::{Side, Table};
use classyard_report::run::Finished;
use serde::Serialize;

use super::super::latency::{Quantiles, microseconds};
use super::super::measure::Spread;

/// One engine on one rule set at one rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MixedRow {
    /// The rule set.
    pub(crate) set: String,
    /// The engine with its options.
    pub(crate) engine: String,
    /// Rules in the table at the start; the number stays about the same.
    pub(crate) rules: usize,
    /// The rate as a word.
    pub(crate) target: String,
    /// The target rate in updates per second; absent for the maximum rate.
    pub(crate) target_updates_per_second: Option<usize>,
    /// Updates in a transaction.
    pub(crate) transaction: usize,
    /// The minimum time from one publication to the next.
    pub(crate) publish_interval_seconds: f64,
    /// Updates accepted per second; absent, like all of the writer's figures, if
    /// there was no writer.
    pub(crate) updates_per_second: Option<Spread>,
    /// Updates per second of the writer's CPU time; only if the writer never waited
    /// for a transaction's due time.
    pub(crate) updates_per_cpu_second: Option<Spread>,
    /// Headers looked up per second.
    pub(crate) lookups_per_second: Spread,
    /// Headers looked up per second of the reader's CPU time.
    pub(crate) lookups_per_cpu_second: Spread,
    /// The time from before a batch's pin until after its answers.
    pub(crate) batch_seconds: Option<Quantiles>,
    /// The time until a transaction was accepted.
    pub(crate) apply_seconds: Option<Quantiles>,
    /// The time to publish pending updates, between transactions.
    pub(crate) publish_seconds: Option<Quantiles>,
    /// The time from a transaction's start until it was visible to readers.
    pub(crate) visible_seconds: Option<Quantiles>,
    /// CPU time divided by elapsed time, the minimum of the repeats.
    pub(crate) reader_cpu_share: f64,
    pub(crate) writer_cpu_share: Option<f64>,
    /// The share of its time that the writer spent in calls of the table.
    pub(crate) writer_busy_share: Option<f64>,
    /// The processors that the threads were pinned to, if any.
    pub(crate) reader_processor: Option<usize>,
    pub(crate) writer_processor: Option<usize>,
    /// Plans installed in all repeats; absent if nothing re-optimised the table.
    pub(crate) plans_installed: Option<usize>,
    /// The number of batches whose answers were compared with a scan of their
    /// version.
    pub(crate) checked_batches: usize,
    /// Wrong answers in these batches and after the run.
    pub(crate) wrong: usize,
}

impl MixedRow {
    /// Returns the smaller share of CPU time of the two threads.
    pub(crate) fn least_cpu_share(&self) -> f64 {
        let writer = self.writer_cpu_share.unwrap_or(1.0);
        self.reader_cpu_share.min(writer)
    }

    /// Returns the duration of the writer's longest call of the table.
    fn longest_call(&self) -> Option<f64> {
        let calls = [self.apply_seconds, self.publish_seconds];
        let longest = calls.into_iter().flatten().map(|calls| calls.max);
        longest.reduce(f64::max)
    }
}

impl Finished for MixedRow {
    fn summary(&self) -> String {
        format!(
            "{}, {} at {}: {:.2} million headers/s, {}",
            self.set,
            self.engine,
            self.target,
            self.lookups_per_second.median / 1e6,
            counted(self.wrong, "wrong answer")
        )
    }
}

/// Writes one row for each measurement.
pub(crate) fn write_csv(rows: &[MixedRow], out: &mut csv::Writer<'_>) -> io::Result<()> {
    let words = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let mut heading: Vec<String> = words(&[
        "set",
        "engine",
        "rules",
        "target",
        "target_updates_per_second",
        "transaction",
    ]);
    for rate in ["updates", "updates_cpu", "lookups", "lookups_cpu"] {
        heading.extend(["min", "median", "max"].map(|which| format!("{rate}_{which}")));
    }
    for time in [
        "batch_seconds",
        "apply_seconds",
        "publish_seconds",
        "visible_seconds",
    ] {
        heading.extend(Quantiles::NAMES.map(|which| format!("{time}_{which}")));
    }
    heading.extend::<Vec<String>>(words(&[
        "reader_cpu_share",
        "writer_cpu_share",
        "writer_busy_share",
        "reader_processor",
        "writer_processor",
        "publish_interval_seconds",
        "plans_installed",
        "checked_batches",
        "wrong",
    ]));
    row(out, &heading)?;
    for r in rows {
        let mut cells = vec![
            r.set.clone(),
            r.engine.clone(),
            r.rules.to_string(),
            r.target.clone(),
            csv::optional(r.target_updates_per_second.as_ref()),
            r.transaction.to_string(),
        ];
        let rates = [
            r.updates_per_second,
            r.updates_per_cpu_second,
            Some(r.lookups_per_second),
            Some(r.lookups_per_cpu_second),
        ];
        for rate in rates {
            let figures = rate.map(|s| [s.min, s.median, s.max].map(|rate| format!("{rate:.0}")));
            cells.extend(figures.unwrap_or_default());
        }
        for time in [
            r.batch_seconds,
            r.apply_seconds,
            r.publish_seconds,
            r.visible_seconds,
        ] {
            let figures = time.map(|q| q.values().map(|seconds| format!("{seconds:.9}")));
            cells.extend(figures.unwrap_or_default());
        }
        let share = |share: Option<f64>| share.map(|s| format!("{s:.3}")).unwrap_or_default();
        cells.extend([
            share(Some(r.reader_cpu_share)),
            share(r.writer_cpu_share),
            share(r.writer_busy_share),
            csv::optional(r.reader_processor.as_ref()),
            csv::optional(r.writer_processor.as_ref()),
            format!("{:.9}", r.publish_interval_seconds),
            csv::optional(r.plans_installed.as_ref()),
            r.checked_batches.to_string(),
            r.wrong.to_string(),
        ]);
        row(out, &cells)?;
    }
    Ok(())
}

fn row(out: &mut csv::Writer<'_>, cells: &[String]) -> io::Result<()> {
    let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
    out.row(&cells)
}

/// Writes a table for people.
pub(crate) fn write_table(rows: &[MixedRow], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("set", Side::Left),
        ("engine", Side::Left),
        ("target/s", Side::Right),
        ("each", Side::Right),
        ("updates/s", Side::Right),
        ("lookups M/s", Side::Right),
        ("M/CPU s", Side::Right),
        ("against 0", Side::Right),
        ("batch us p50", Side::Right),
        ("p90", Side::Right),
        ("p99", Side::Right),
        ("p99.9", Side::Right),
        ("max", Side::Right),
        ("visible us p50", Side::Right),
        ("p99", Side::Right),
        ("max", Side::Right),
        ("apply us p50", Side::Right),
        ("longest call", Side::Right),
        ("CPU r/w", Side::Right),
        ("busy", Side::Right),
        ("plans", Side::Right),
        ("wrong", Side::Right),
    ]);
    for r in rows {
        let dash = || "-".to_owned();
        let percent =
            |share: Option<f64>| share.map_or_else(dash, |s| format!("{:.0}%", 100.0 * s));
        let Spread { min, median, max } = r.lookups_per_second;
        let mut cells = vec![
            r.set.clone(),
            r.engine.clone(),
            r.target.clone(),
            match r.updates_per_second {
                Some(_) => r.transaction.to_string(),
                None => dash(),
            },
            r.updates_per_second
                .map_or_else(dash, |spread| rounded(spread.median)),
            format!("{:.2} ({:.2}-{:.2})", median / 1e6, min / 1e6, max / 1e6),
            format!("{:.2}", r.lookups_per_cpu_second.median / 1e6),
            still(rows, r).map_or_else(dash, |still| percent(Some(median / still))),
        ];
        let micros = |q: Option<Quantiles>, of: fn(&Quantiles) -> f64| {
            q.as_ref().map_or_else(dash, |q| microseconds(of(q)))
        };
        let batch = |of| micros(r.batch_seconds, of);
        let visible = |of| micros(r.visible_seconds, of);
        let apply = |of| micros(r.apply_seconds, of);
        cells.extend([
            batch(|q| q.p50),
            batch(|q| q.p90),
            batch(|q| q.p99),
            batch(|q| q.p999),
            batch(|q| q.max),
            visible(|q| q.p50),
            visible(|q| q.p99),
            visible(|q| q.max),
            apply(|q| q.p50),
            r.longest_call().map_or_else(dash, microseconds),
            match r.writer_cpu_share {
                Some(writer) => format!("{:.2}/{writer:.2}", r.reader_cpu_share),
                None => format!("{:.2}", r.reader_cpu_share),
            },
            percent(r.writer_busy_share),
            r.plans_installed
                .map_or_else(dash, |plans| plans.to_string()),
            r.wrong.to_string(),
        ]);
        table.row(cells);
    }
    table.write(out)?;
    let interval = match rows.first() {
        Some(row) if row.publish_interval_seconds > 0.0 => format!(
            "; includes checks of the publish interval\npublish interval: {} ms at \
             least from one publication of accepted updates to the next",
            1e3 * row.publish_interval_seconds
        ),
        _ => String::new(),
    };
    write!(
        out,
        "
target/s, updates/s: target and actual rate of updates; each: updates per transaction
lookups: median (min-max) of interleaved repeats, per second of elapsed time; M/CPU s: per second
  of the reader's CPU time; against 0: the median divided by the median without a writer
batch: 256 headers, from before the pin to after the answers; visible: from the call of apply
  until readers can see the update; apply: until it is accepted; longest call: of apply, or of
  publishing in between; elapsed microseconds, all repeats
CPU r/w: reader's and writer's CPU time divided by elapsed time, the minimum of the repeats; busy:
  share of the writer's time in apply and publish{interval}
plans: re-optimisations installed in all repeats; the thread that computes them shares the
  writer's processor
wrong: answers that differ from a scan, in batches kept during the runs and after them
"
    )
}

/// Returns the same engine's lookup rate on the same set without a writer.
fn still(rows: &[MixedRow], row: &MixedRow) -> Option<f64> {
    let is_without_writer = |other: &&MixedRow| {
        other.set == row.set
            && other.engine == row.engine
            && other.target_updates_per_second == Some(0)
    };
    let still = rows.iter().find(is_without_writer)?;
    Some(still.lookups_per_second.median)
}

/// Formats a rate with three digits, for people: `12.3k`, `1.23M`.
fn rounded(rate: f64) -> String {
    match rate {
        r if r >= 999_500.0 => format!("{:.2}M", r / 1e6),
        r if r >= 9_995.0 => format!("{:.1}k", r / 1e3),
        r => format!("{r:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded() {
        let shown = [0.0, 950.0, 12_345.0, 999_499.0, 1_234_567.0].map(rounded);
        assert_eq!(shown, ["0", "950", "12.3k", "999.5k", "1.23M"]);
    }
}
