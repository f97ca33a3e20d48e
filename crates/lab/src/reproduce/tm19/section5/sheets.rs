//! Measured values of all rule sets.

use classyard::Policy;
use classyard_report::failure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frames::Traffic;
use super::measure::{Point, measure};
use super::{FEW_SIZES, SIZES, mpps};
use crate::reproduce::Study;
use crate::reproduce::statistics::coordinate;
use crate::reproduce::tm19::sheet::{At, Sheet};

/// Values of all contenders for each rule set.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) sizes: Vec<usize>,
    pub(super) names: Vec<String>,
    /// Millions of packets a second, by workload.
    pub(super) rates: [Sheet; 2],
    /// Numbers of tables outside of a pipeline, and in the contenders' access lists.
    pub(super) simulated: Sheet,
    pub(super) tables: Sheet,
    /// Entries for each rule: of the unchanged rules, and with single ports.
    pub(super) entries: Sheet,
    pub(super) points: Vec<(At, Point)>,
}

/// Returns the numbers of rules of a reproduction, ascending.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    let mut sizes = study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES });
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the greatest number of rules of a reproduction.
pub(super) fn largest(study: &Study<'_>) -> usize {
    sizes(study).last().copied().expect("at least one size")
}

/// Returns the number of rule sets for each profile and size.
pub(super) fn lists(study: &Study<'_>) -> usize {
    study.args.sets.unwrap_or(1)
}

/// Returns the names of the profiles.
pub(super) fn names(study: &Study<'_>) -> Vec<String> {
    study
        .profiles
        .iter()
        .map(|(name, _)| name.clone())
        .collect()
}

/// Measures all rule sets of these sizes, or returns stored measurements. `measure`
/// receives the rule set and its number; the result is stored under the name `what`.
pub(super) fn points<T: Serialize + DeserializeOwned>(
    study: &mut Study<'_>,
    what: &str,
    sizes: &[usize],
    measure: impl Fn(&Study<'_>, &Policy, usize) -> Result<T, Failure>,
) -> Result<Vec<(At, T)>, Failure> {
    let profiles = study.profiles.clone();
    study.expect_points(sizes.len() * profiles.len() * lists(study));
    let mut points = Vec::new();
    for (place, &size) in sizes.iter().enumerate() {
        for (number, (name, profile)) in profiles.iter().enumerate() {
            for list in 0..lists(study) {
                let point = format!("{what} {name} {size} {list}, {}", study.headers());
                let point = study.point(&point, |study| {
                    let policy = study.policy_of(profile, size, list)?;
                    measure(study, &policy, list)
                })?;
                points.push(((number, place), point));
            }
        }
    }
    Ok(points)
}

/// Shares of a rule set's traffic by the rules that it matches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Matched {
    /// The share of the default rule's traffic that only the default rule matches.
    default_share: f64,
    /// The share of packets won by the ten most frequent winners, by workload.
    few_shares: [f64; 2],
}

/// Returns shares of traffic by profile and size, without timing: the share of the
/// default rule's traffic that only the default rule matches, and each workload's share
/// won by the ten most frequent winners.
pub(super) fn matched(study: &mut Study<'_>, sizes: &[usize]) -> Result<Sheet, Failure> {
    let points = points(study, "pipeline traffic", sizes, |study, policy, list| {
        let traffic = Traffic::of(policy, study.headers(), study.list_seed(list))?;
        Ok(Matched {
            default_share: traffic.default_share,
            few_shares: traffic.few_shares,
        })
    })?;
    let mut sheet = Sheet::default();
    for (at, matched) in points {
        let [synthetic, real] = matched.few_shares;
        sheet.add(at, vec![matched.default_share, real, synthetic]);
    }
    Ok(sheet)
}

/// Measures all rule sets of these sizes, or returns stored measurements.
pub(super) fn measured(study: &mut Study<'_>, sizes: Vec<usize>) -> Result<Measured, Failure> {
    let points = points(study, "pipeline", &sizes, measure)?;
    let mut measured = Measured {
        names: names(study),
        ..Measured::default()
    };
    for (at, point) in points {
        measured.add(at, point);
    }
    measured.sizes = sizes;
    Ok(measured)
}

impl Measured {
    fn add(&mut self, at: At, point: Point) {
        for (sheet, rates) in self.rates.iter_mut().zip(&point.rates) {
            sheet.add(at, rates.iter().map(|&rate| mpps(rate)).collect());
        }
        let column = |counts: &[usize]| counts.iter().map(|&count| coordinate(count)).collect();
        self.simulated.add(at, column(&point.simulated));
        self.tables.add(at, column(&point.tables));
        let rules = coordinate(point.rules.max(1));
        let entries = point.flows.map(|flows| coordinate(flows) / rules);
        self.entries.add(at, entries.to_vec());
        self.points.push((at, point));
    }

    /// Returns a contender's throughput with a workload: the mean over rule sets of a
    /// size, in millions of packets a second.
    pub(super) fn rate(&self, workload: usize, contender: usize, place: usize) -> f64 {
        let mean = self.rates[workload].mean(contender, |at| at.1 == place);
        mean.unwrap_or(0.0)
    }

    /// Returns the ratio for one profile.
    pub(super) fn gain_of(
        &self,
        workload: usize,
        (a, b): (usize, usize),
        number: usize,
        place: usize,
    ) -> f64 {
        let ratio = self.rates[workload].ratio(a, b, |at| at == (number, place));
        ratio.unwrap_or(0.0)
    }

    /// Returns the report's note on the comparison of answers.
    pub(super) fn remarks(&self) -> String {
        let compared = self.points.iter().map(|(_, point)| point.compared);
        format!(
            " Before anything is timed, all engines have decided alike, entry by entry, with the \
             same counters: they are held against linear over {} packets or more of a rule set, a \
             few of which are held against a scan of the rules, and against each other over more.",
            compared.min().unwrap_or(0)
        )
    }
}

/// Formats a value like `12.3`, with fewer decimal places for greater values.
pub(super) fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
impl Measured {
    /// Creates five rule sets of one profile with given rates for each size and workload.
    pub(super) fn of_rates(
        sizes: &[usize],
        rates: impl Fn(usize, usize) -> [f64; super::CONTENDERS.len()],
    ) -> Measured {
        let mut measured = Measured {
            names: vec!["acl1".to_owned()],
            ..Measured::default()
        };
        for (place, &size) in sizes.iter().enumerate() {
            for _ in 0..5 {
                let point = Point {
                    rules: size,
                    flows: [2 * size, size],
                    default_share: 0.95,
                    compared: 256,
                    simulated: [10, 8, 20, 7],
                    fragments: [29, 9],
                    tables: [1, 27, 6, 5, 15, 4, 0],
                    rates: [0, 1].map(|workload| rates(workload, place).map(|rate| rate * 1e6)),
                };
                measured.add((0, place), point);
            }
        }
        measured.sizes = sizes.to_vec();
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_RULE_TRAFFIC, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE};
    use super::*;

    #[test]
    fn gains_are_of_mean_rates() {
        let measured = Measured::of_rates(&[100, 200], |workload, place| {
            let slower = coordinate(place + 1) * coordinate(workload + 1);
            [1.0, 2.0, 8.0, 16.0, 4.0, 9.0, 20.0].map(|rate: f64| rate / slower)
        });
        assert!((measured.rate(SYNTHETIC_TRAFFIC, TUPLE_MERGE, 0) - 8.0).abs() < 1e-9);
        assert!((measured.rate(DEFAULT_RULE_TRAFFIC, TUPLE_MERGE, 1) - 2.0).abs() < 1e-9);
        assert!(
            (measured.gain_of(DEFAULT_RULE_TRAFFIC, (TUPLE_MERGE, TUPLE_SPACE), 0, 1) - 4.0).abs()
                < 1e-9
        );
        assert!(measured.remarks().contains("over 256 packets or more"));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [1234.5, 12.34, 1.234, 0.01234].map(short);
        assert_eq!(texts, ["1234", "12.3", "1.23", "0.0123"]);
    }
}
