//! The comparison of two rule sets.

use std::io::{self, Write};

use classyard::Policy;
use classyard::policy::PartId;
use classyard_report::failure::Failure;
use classyard_report::output::style::{grouped, three_digits};
use classyard_report::output::table::{Side, Table, remark};
use classyard_report::output::{Report, csv};
use classyard_workload::generate::compare::{Comparison, Summary};
use serde::Serialize;

/// Returns the pairs of parts of two policies that can be compared.
pub(super) fn pairs(a: &Policy, b: &Policy) -> Result<Vec<[PartId; 2]>, Failure> {
    let mut pairs = Vec::new();
    for one in a.part_ids() {
        let same_schema = |other: &PartId| b.part(*other).schema() == a.part(one).schema();
        pairs.extend(b.part_ids().find(same_schema).map(|other| [one, other]));
    }
    if pairs.is_empty() {
        return Err(Failure::usage(format!(
            "rules of {} and of {} have no schema in common to compare",
            a.name(),
            b.name()
        )));
    }
    Ok(pairs)
}

/// The comparison of two rule sets, by part.
#[derive(Serialize)]
pub(super) struct AgainstReport {
    parts: Vec<PartComparison>,
}

#[derive(Serialize)]
struct PartComparison {
    names: [String; 2],
    measures: Vec<Measure>,
    distances: Vec<Distance>,
}

#[derive(Serialize)]
struct Measure {
    measure: &'static str,
    values: [f64; 2],
    ratio: f64,
}

#[derive(Serialize)]
struct Distance {
    distribution: &'static str,
    /// Total variation: 0 for the same distribution, 1 for nothing in common.
    distance: f64,
}

impl AgainstReport {
    /// Creates a report from the comparisons of the parts.
    #[allow(clippy::cast_precision_loss)] // ratios are shown with few digits
    pub(super) fn new(comparisons: impl Iterator<Item = Comparison>) -> AgainstReport {
        type Measured = (&'static str, fn(&Summary) -> f64);
        const MEASURES: [Measured; 6] = [
            ("rules", |summary| summary.rules as f64),
            ("tuples", |summary| summary.tuples as f64),
            ("source prefixes", |summary| summary.sources as f64),
            ("destination prefixes", |summary| {
                summary.destinations as f64
            }),
            ("address pairs", |summary| summary.address_pairs as f64),
            ("matches per header", |summary| summary.matches),
        ];
        let parts = comparisons.map(|comparison| {
            let [a, b] = &comparison.summaries;
            let measures = MEASURES.map(|(measure, get)| Measure {
                measure,
                values: [get(a), get(b)],
                ratio: get(a) / get(b).max(f64::MIN_POSITIVE),
            });
            let distances = comparison.distances();
            let distances = distances.map(|(distribution, distance)| Distance {
                distribution,
                distance,
            });
            PartComparison {
                measures: measures.into(),
                distances: distances.into(),
                names: comparison.names,
            }
        });
        AgainstReport {
            parts: parts.collect(),
        }
    }
}

impl Report for AgainstReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let [a, b] = &part.names;
            let mut table = Table::new(&[
                ("", Side::Left),
                (a, Side::Right),
                (b, Side::Right),
                ("ratio", Side::Right),
            ]);
            for row in &part.measures {
                let cell = |value: f64| match row.measure {
                    "matches per header" => three_digits(value),
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
                    _ => grouped(value as u64),
                };
                let [a, b] = row.values;
                table.row(vec![
                    row.measure.to_owned(),
                    cell(a),
                    cell(b),
                    format!("{:.2}", row.ratio),
                ]);
            }
            table.write(out)?;
            writeln!(out)?;
            let mut table = Table::new(&[("distribution", Side::Left), ("distance", Side::Right)]);
            for row in &part.distances {
                table.row(vec![
                    row.distribution.to_owned(),
                    format!("{:.3}", row.distance),
                ]);
            }
            table.write(out)?;
        }
        remark(
            out,
            "distance: total variation; 0 the same, 1 nothing in common",
        )
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"measure", &"first", &"second", &"ratio"])?;
        for part in &self.parts {
            for row in &part.measures {
                out.row(&[&row.measure, &row.values[0], &row.values[1], &row.ratio])?;
            }
            for row in &part.distances {
                let name = format!("distance of {}", row.distribution);
                out.row(&[&name, &"", &"", &row.distance])?;
            }
        }
        Ok(())
    }
}
