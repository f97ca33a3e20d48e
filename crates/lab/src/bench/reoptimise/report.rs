//! The figures as a table, JSON or CSV.

use std::io::{self, Write};

use classyard_report::output::style::counted;
use classyard_report::output::table::{Side, Table};
use classyard_report::output::{Report, csv};
use classyard_report::run::Finished;
use serde::Serialize;

use super::super::size_name;

/// The durations of single changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Updates {
    pub(crate) count: usize,
    pub(crate) mean_ns: f64,
    pub(crate) p999_ns: f64,
    pub(crate) max_ns: f64,
}

impl Updates {
    /// Summarises times in nanoseconds, in any order.
    pub(super) fn of(mut times: Vec<f64>) -> Updates {
        times.sort_by(f64::total_cmp);
        let Some(&max_ns) = times.last() else {
            return Updates::default();
        };
        let rank = (times.len() * 999).div_ceil(1000);
        Updates {
            count: times.len(),
            mean_ns: times.iter().sum::<f64>() / super::count(times.len()),
            p999_ns: times[rank.max(1) - 1],
            max_ns,
        }
    }
}

/// One engine on one rule set.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReoptimiseRow {
    pub(crate) set: String,
    #[serde(skip)]
    pub(crate) size: usize,
    pub(crate) engine: String,
    pub(crate) rules: usize,
    /// The cost of a lookup by the engine's own count: right after building over the
    /// first rules, grown, and after adopting.
    pub(crate) counted_first: f64,
    pub(crate) counted_grown: f64,
    pub(crate) counted_adopted: f64,
    /// Nanoseconds per header, in batches of 256: grown, the maximum while adopting,
    /// adopted, rebuilt.
    pub(crate) grown_ns: f64,
    pub(crate) adopting_ns: f64,
    pub(crate) adopted_ns: f64,
    pub(crate) rebuilt_ns: f64,
    /// The time to take the snapshot and compute the plan, and the longest time that
    /// the classifier was read without interruption.
    pub(crate) learn_seconds: f64,
    pub(crate) look_seconds: f64,
    pub(crate) adopt_seconds: f64,
    pub(crate) rebuild_seconds: f64,
    /// Changes while growing and while adopting.
    pub(crate) growing: Updates,
    pub(crate) adopting: Updates,
    /// The peak memory while adopting, and the memory afterwards, both divided by the
    /// memory when rebuilt.
    pub(crate) adopting_bytes: f64,
    pub(crate) adopted_bytes: f64,
    pub(crate) wrong: usize,
}

impl Finished for ReoptimiseRow {
    fn summary(&self) -> String {
        format!(
            "{} {}, {}: {:.1} ns per header grown, {:.1} adopted, {}",
            self.set,
            size_name(self.size),
            self.engine,
            self.grown_ns,
            self.adopted_ns,
            counted(self.wrong, "wrong answer")
        )
    }
}

/// All rows.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct ReoptimiseResults(pub(crate) Vec<ReoptimiseRow>);

impl ReoptimiseResults {
    /// True if any answer was wrong.
    pub(crate) fn any_wrong(&self) -> bool {
        self.0.iter().any(|row| row.wrong > 0)
    }
}

impl Report for ReoptimiseResults {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[
            ("set", Side::Left),
            ("engine", Side::Left),
            ("counted", Side::Right),
            ("grown", Side::Right),
            ("adopted", Side::Right),
            ("grown ns", Side::Right),
            ("adopting", Side::Right),
            ("adopted", Side::Right),
            ("rebuilt", Side::Right),
            ("learn s", Side::Right),
            ("look µs", Side::Right),
            ("adopt µs", Side::Right),
            ("rebuild s", Side::Right),
            ("changes", Side::Right),
            ("mean ns", Side::Right),
            ("p99.9 µs", Side::Right),
            ("max µs", Side::Right),
            ("max growing", Side::Right),
            ("most bytes", Side::Right),
            ("bytes", Side::Right),
            ("wrong", Side::Right),
        ]);
        for r in &self.0 {
            table.row(vec![
                format!("{} {}", r.set, size_name(r.size)),
                r.engine.clone(),
                format!("{:.1}", r.counted_first),
                format!("{:.1}", r.counted_grown),
                format!("{:.1}", r.counted_adopted),
                format!("{:.1}", r.grown_ns),
                format!("{:.1}", r.adopting_ns),
                format!("{:.1}", r.adopted_ns),
                format!("{:.1}", r.rebuilt_ns),
                format!("{:.3}", r.learn_seconds),
                format!("{:.0}", r.look_seconds * 1e6),
                format!("{:.0}", r.adopt_seconds * 1e6),
                format!("{:.3}", r.rebuild_seconds),
                r.adopting.count.to_string(),
                format!("{:.0}", r.adopting.mean_ns),
                format!("{:.1}", r.adopting.p999_ns / 1e3),
                format!("{:.1}", r.adopting.max_ns / 1e3),
                format!("{:.1}", r.growing.max_ns / 1e3),
                format!("{:.2}x", r.adopting_bytes),
                format!("{:.2}x", r.adopted_bytes),
                r.wrong.to_string(),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
        writeln!(
            out,
            "grown from 1 % of the rules; counted: the cost of a lookup by the engine's own count, \
             for the first rules, grown, adopted; lookups: nanoseconds per header, minimum of \
             repeats, while adopting the maximum; changes: minimum of repeats for each; bytes: \
             divided by the bytes when rebuilt; CPU time of one thread"
        )
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"set",
            &"engine",
            &"rules",
            &"counted_first",
            &"counted_grown",
            &"counted_adopted",
            &"grown_ns",
            &"adopting_ns",
            &"adopted_ns",
            &"rebuilt_ns",
            &"learn_seconds",
            &"look_seconds",
            &"adopt_seconds",
            &"rebuild_seconds",
            &"changes",
            &"update_mean_ns",
            &"update_p999_ns",
            &"update_max_ns",
            &"growing_max_ns",
            &"adopting_bytes",
            &"adopted_bytes",
            &"wrong",
        ])?;
        for r in &self.0 {
            out.row(&[
                &r.set,
                &r.engine,
                &r.rules,
                &r.counted_first,
                &r.counted_grown,
                &r.counted_adopted,
                &r.grown_ns,
                &r.adopting_ns,
                &r.adopted_ns,
                &r.rebuilt_ns,
                &r.learn_seconds,
                &r.look_seconds,
                &r.adopt_seconds,
                &r.rebuild_seconds,
                &r.adopting.count,
                &r.adopting.mean_ns,
                &r.adopting.p999_ns,
                &r.adopting.max_ns,
                &r.growing.max_ns,
                &r.adopting_bytes,
                &r.adopted_bytes,
                &r.wrong,
            ])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_change_in_a_thousand_is_slower() {
        let updates = Updates::of((1..=2000).rev().map(f64::from).collect());
        assert_eq!((updates.p999_ns, updates.max_ns), (1998.0, 2000.0));
        assert_eq!((updates.count, updates.mean_ns), (2000, 1000.5));
        assert_eq!(Updates::of(Vec::new()), Updates::default());
    }
}
