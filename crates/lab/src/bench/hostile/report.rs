//! The figures as a table, JSON or CSV, with their ratios to the friendly case.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::output::style::counted;
use classyard_report::output::table::{Side, Table};
use classyard_report::output::{Report, csv};
use classyard_report::run::Finished;
use serde::Serialize;

use super::super::measure::geometric_mean;
use super::super::size_name;

/// Tables or rules per header.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Work {
    pub(crate) mean: f64,
    pub(crate) worst: usize,
}

impl Work {
    #[allow(clippy::cast_precision_loss)] // for people
    pub(super) fn of(counts: &[usize]) -> Work {
        let sum: usize = counts.iter().sum();
        Work {
            mean: sum as f64 / counts.len().max(1) as f64,
            worst: counts.iter().copied().max().unwrap_or(0),
        }
    }
}

/// One engine on one rule set with one kind of headers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LookupRow {
    pub(crate) set: String,
    pub(crate) traffic: &'static str,
    #[serde(skip)]
    pub(crate) size: usize,
    pub(crate) engine: String,
    pub(crate) friendly: bool,
    pub(crate) rules: usize,
    pub(crate) build_seconds: f64,
    pub(crate) bytes_per_rule: f64,
    /// Nanoseconds per header, in batches of 256.
    pub(crate) batch_ns: f64,
    /// Nanoseconds per header, in single lookups.
    pub(crate) single_ns: f64,
    pub(crate) tables: Work,
    pub(crate) compared: Work,
    pub(crate) wrong: usize,
    /// Ratios to the geometric mean of the friendly rows; absent for friendly rows.
    pub(crate) ratios: Option<LookupRatios>,
}

/// Ratios to friendly rules.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LookupRatios {
    pub(crate) batch: f64,
    pub(crate) single: f64,
    pub(crate) tables: f64,
    pub(crate) compared: f64,
    pub(crate) bytes: f64,
    pub(crate) build: f64,
}

/// The cost of single changes, and the engine's state after them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Changes {
    /// The number of rules at the end.
    pub(crate) rules: usize,
    pub(crate) steps: usize,
    pub(crate) mean_ns: f64,
    pub(crate) p999_ns: f64,
    pub(crate) max_ns: f64,
    pub(crate) bytes_per_rule: f64,
    /// Bytes divided by the bytes of an engine newly built over the last rules.
    pub(crate) bytes_over_fresh: f64,
    /// Time of batches, divided by the time with the newly built engine.
    pub(crate) batch_over_fresh: f64,
    pub(crate) wrong: usize,
}

impl Changes {
    /// Sets the times from nanoseconds in increasing order.
    #[allow(clippy::cast_precision_loss)] // for people
    pub(super) fn times(&mut self, sorted: &[f64]) {
        let Some(&last) = sorted.last() else { return };
        self.mean_ns = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let rank = (sorted.len() * 999).div_ceil(1000);
        self.p999_ns = sorted[rank.max(1) - 1];
        self.max_ns = last;
    }
}

/// One engine with one list of changes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UpdateRow {
    pub(crate) set: String,
    pub(crate) list: &'static str,
    #[serde(skip)]
    pub(crate) size: usize,
    pub(crate) engine: String,
    pub(crate) friendly: bool,
    #[serde(flatten)]
    pub(crate) measured: Changes,
    /// Ratios to the geometric mean of the friendly rows; absent for friendly rows.
    pub(crate) ratios: Option<UpdateRatios>,
}

/// Ratios to friendly rules.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct UpdateRatios {
    pub(crate) mean: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    pub(crate) bytes: f64,
}

/// A row that has been measured.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HostileRow<'a> {
    Lookups(&'a LookupRow),
    Updates(&'a UpdateRow),
}

impl Finished for HostileRow<'_> {
    fn summary(&self) -> String {
        match self {
            HostileRow::Lookups(row) => format!(
                "{} {}, {}, headers {}: {:.1} ns per header in batches, {}",
                row.set,
                size_name(row.size),
                row.engine,
                row.traffic,
                row.batch_ns,
                counted(row.wrong, "wrong answer")
            ),
            HostileRow::Updates(row) => format!(
                "{} {}, {}, updates {}: {:.0} ns an update, {}",
                row.set,
                size_name(row.size),
                row.engine,
                row.list,
                row.measured.mean_ns,
                counted(row.measured.wrong, "wrong answer")
            ),
        }
    }
}

/// All rows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Results {
    pub(crate) lookups: Vec<LookupRow>,
    pub(crate) updates: Vec<UpdateRow>,
}

impl Results {
    /// True if any answer was wrong.
    pub(crate) fn any_wrong(&self) -> bool {
        let lookups = self.lookups.iter().map(|row| row.wrong);
        let updates = self.updates.iter().map(|row| row.measured.wrong);
        lookups.chain(updates).any(|wrong| wrong > 0)
    }

    /// Adds a row, if there is one, with its ratios, and passes it to `finished`.
    pub(super) fn push(
        &mut self,
        row: Option<UpdateRow>,
        finished: &mut dyn FnMut(HostileRow<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(row) = row else { return Ok(()) };
        self.updates.push(row);
        self.compare();
        let row = self.updates.last().expect("it was added");
        finished(HostileRow::Updates(row))
    }

    /// Sets the ratios to the friendly rows.
    pub(super) fn compare(&mut self) {
        let friendly: Vec<LookupRow> = self
            .lookups
            .iter()
            .filter(|r| r.friendly)
            .cloned()
            .collect();
        for row in self.lookups.iter_mut().filter(|row| !row.friendly) {
            let is_same_case = |f: &&LookupRow| f.size == row.size && f.engine == row.engine;
            let ratio = |of: fn(&LookupRow) -> f64| {
                let base = friendly.iter().filter(is_same_case).map(of);
                geometric_mean(&base.collect::<Vec<_>>()).map(|base| of(row) / base)
            };
            row.ratios = (|| {
                Some(LookupRatios {
                    batch: ratio(|r| r.batch_ns)?,
                    single: ratio(|r| r.single_ns)?,
                    tables: ratio(|r| r.tables.mean)?,
                    compared: ratio(|r| r.compared.mean)?,
                    bytes: ratio(|r| r.bytes_per_rule)?,
                    build: ratio(|r| r.build_seconds)?,
                })
            })();
        }
        let friendly: Vec<UpdateRow> = self
            .updates
            .iter()
            .filter(|r| r.friendly)
            .cloned()
            .collect();
        for row in self.updates.iter_mut().filter(|row| !row.friendly) {
            let is_same_case = |f: &&UpdateRow| f.size == row.size && f.engine == row.engine;
            let ratio = |of: fn(&Changes) -> f64| {
                let base = friendly
                    .iter()
                    .filter(is_same_case)
                    .map(|row| of(&row.measured));
                geometric_mean(&base.collect::<Vec<_>>()).map(|base| of(&row.measured) / base)
            };
            row.ratios = (|| {
                Some(UpdateRatios {
                    mean: ratio(|r| r.mean_ns)?,
                    p999: ratio(|r| r.p999_ns)?,
                    max: ratio(|r| r.max_ns)?,
                    bytes: ratio(|r| r.bytes_per_rule)?,
                })
            })();
        }
    }
}

/// Returns a figure with its ratio to the friendly case.
fn with(figure: String, ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if ratio >= 100.0 => format!("{figure} ({ratio:.0}x)"),
        Some(ratio) => format!("{figure} ({ratio:.1}x)"),
        None => figure,
    }
}

impl Report for Results {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[
            ("set", Side::Left),
            ("traffic", Side::Left),
            ("engine", Side::Left),
            ("rules", Side::Right),
            ("batch ns", Side::Right),
            ("single ns", Side::Right),
            ("tables", Side::Right),
            ("most", Side::Right),
            ("compared", Side::Right),
            ("most", Side::Right),
            ("bytes/rule", Side::Right),
            ("build s", Side::Right),
            ("wrong", Side::Right),
        ]);
        for r in &self.lookups {
            let ratio = |of: fn(&LookupRatios) -> f64| r.ratios.as_ref().map(of);
            table.row(vec![
                format!("{} {}", r.set, size_name(r.size)),
                r.traffic.to_owned(),
                r.engine.clone(),
                r.rules.to_string(),
                with(format!("{:.1}", r.batch_ns), ratio(|r| r.batch)),
                with(format!("{:.1}", r.single_ns), ratio(|r| r.single)),
                with(format!("{:.1}", r.tables.mean), ratio(|r| r.tables)),
                r.tables.worst.to_string(),
                with(format!("{:.1}", r.compared.mean), ratio(|r| r.compared)),
                r.compared.worst.to_string(),
                with(format!("{:.0}", r.bytes_per_rule), ratio(|r| r.bytes)),
                with(format!("{:.3}", r.build_seconds), ratio(|r| r.build)),
                r.wrong.to_string(),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
        let mut table = Table::new(&[
            ("set", Side::Left),
            ("list", Side::Left),
            ("engine", Side::Left),
            ("rules", Side::Right),
            ("changes", Side::Right),
            ("mean ns", Side::Right),
            ("p99.9 ns", Side::Right),
            ("max µs", Side::Right),
            ("bytes/rule", Side::Right),
            ("of fresh", Side::Right),
            ("batch of fresh", Side::Right),
            ("wrong", Side::Right),
        ]);
        for r in &self.updates {
            let ratio = |of: fn(&UpdateRatios) -> f64| r.ratios.as_ref().map(of);
            let m = &r.measured;
            table.row(vec![
                format!("{} {}", r.set, size_name(r.size)),
                r.list.to_owned(),
                r.engine.clone(),
                m.rules.to_string(),
                m.steps.to_string(),
                with(format!("{:.0}", m.mean_ns), ratio(|r| r.mean)),
                with(format!("{:.0}", m.p999_ns), ratio(|r| r.p999)),
                with(format!("{:.1}", m.max_ns / 1e3), ratio(|r| r.max)),
                with(format!("{:.0}", m.bytes_per_rule), ratio(|r| r.bytes)),
                format!("{:.2}x", m.bytes_over_fresh),
                format!("{:.2}x", m.batch_over_fresh),
                m.wrong.to_string(),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
        writeln!(
            out,
            "in brackets: divided by the geometric mean of the friendly sets of that size, with \
             the same engine"
        )?;
        writeln!(
            out,
            "CPU time of one thread; lookups: median of repeats; a change: the minimum of its \
             repeats"
        )
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"kind",
            &"set",
            &"traffic_or_list",
            &"engine",
            &"rules",
            &"friendly",
            &"batch_ns",
            &"single_ns",
            &"tables_mean",
            &"tables_worst",
            &"compared_mean",
            &"compared_worst",
            &"build_seconds",
            &"changes",
            &"update_mean_ns",
            &"update_p999_ns",
            &"update_max_ns",
            &"bytes_per_rule",
            &"bytes_over_fresh",
            &"batch_over_fresh",
            &"wrong",
            &"batch_or_mean_ratio",
            &"single_or_p999_ratio",
            &"max_ratio",
            &"bytes_ratio",
        ])?;
        let none = "";
        for r in &self.lookups {
            let ratio =
                |of: fn(&LookupRatios) -> f64| csv::optional(r.ratios.as_ref().map(of).as_ref());
            out.row(&[
                &"lookup",
                &r.set,
                &r.traffic,
                &r.engine,
                &r.rules,
                &r.friendly,
                &r.batch_ns,
                &r.single_ns,
                &r.tables.mean,
                &r.tables.worst,
                &r.compared.mean,
                &r.compared.worst,
                &r.build_seconds,
                &none,
                &none,
                &none,
                &none,
                &r.bytes_per_rule,
                &none,
                &none,
                &r.wrong,
                &ratio(|r| r.batch),
                &ratio(|r| r.single),
                &none,
                &ratio(|r| r.bytes),
            ])?;
        }
        for r in &self.updates {
            let m = &r.measured;
            let ratio =
                |of: fn(&UpdateRatios) -> f64| csv::optional(r.ratios.as_ref().map(of).as_ref());
            out.row(&[
                &"update",
                &r.set,
                &r.list,
                &r.engine,
                &m.rules,
                &r.friendly,
                &none,
                &none,
                &none,
                &none,
                &none,
                &none,
                &none,
                &m.steps,
                &m.mean_ns,
                &m.p999_ns,
                &m.max_ns,
                &m.bytes_per_rule,
                &m.bytes_over_fresh,
                &m.batch_over_fresh,
                &m.wrong,
                &ratio(|r| r.mean),
                &ratio(|r| r.p999),
                &ratio(|r| r.max),
                &ratio(|r| r.bytes),
            ])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_change_is_the_last_and_one_in_a_thousand_before_it() {
        let mut changes = Changes::default();
        let times: Vec<f64> = (1..=2000).map(f64::from).collect();
        changes.times(&times);
        assert_eq!((changes.p999_ns, changes.max_ns), (1998.0, 2000.0));
        assert_eq!(changes.mean_ns, 1000.5);
        changes.times(&[5.0]);
        assert_eq!((changes.p999_ns, changes.max_ns), (5.0, 5.0));
    }
}
