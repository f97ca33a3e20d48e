//! The performance model: from the engine's counts in its structure to nanoseconds.
//!
//! The engine counts the work of a lookup in its structure, in instructions and in lines
//! that the lookup waits for; the costs of these were fitted to other rule sets. The
//! machine's curve gives the time of a line in a structure of a given number of bytes.
//! One factor for each kind of lookup, like λ in the paper, is fitted here to the
//! smallest rule sets.

use std::collections::BTreeMap;

use classyard::machine::{Machine, Work};

use super::TOGETHER;
use super::measure::Lookups;
use crate::bench::geometric_mean;

/// The ratio of measured lookup times to the time of the engine's work on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) factor: f64,
}

/// The kinds of lookup for which the paper's eq. 5 sums up the work: headers one by one,
/// or in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Single,
    Batch,
}

/// Returns one of the engine's counts; 0 if it is missing.
pub(super) fn count(counts: &BTreeMap<String, f64>, name: &str) -> f64 {
    counts.get(name).copied().unwrap_or(0.0)
}

/// Returns the lines that a lookup reads in each part of the structure, with the part's
/// bytes.
pub(super) fn lines(counts: &BTreeMap<String, f64>) -> [(&'static str, f64, usize); 4] {
    [
        ("lines of searches a lookup", "searches of fields"),
        ("lists met a lookup", "lists and places"),
        ("blocks of vectors a lookup", "vectors"),
        ("lines of rules a lookup", "ranked rules"),
    ]
    .map(|(lines, part)| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of bytes
        let bytes = count(counts, part) as usize;
        (part, count(counts, lines), bytes)
    })
}

/// Returns the lines that a lookup reads, waited for or not; all parts may be in use
/// together.
pub(super) fn reads(counts: &BTreeMap<String, f64>) -> Work {
    let parts = lines(counts);
    let whole = parts.iter().map(|(_, _, bytes)| bytes).sum();
    parts.iter().fold(Work::default(), |work, (_, lines, _)| {
        work.reading_ahead(*lines, whole)
    })
}

/// Returns the time of a lookup's work on a machine, in nanoseconds.
pub(super) fn worked(lookups: &Lookups, mode: Mode, machine: &Machine) -> f64 {
    let [instructions, waited] = match mode {
        Mode::Single => ["fitted instructions, single", "lines waited for, single"],
        Mode::Batch => ["fitted instructions, batch", "lines waited for, batch"],
    };
    let number = |name| count(&lookups.counts, name);
    let bytes = lines(&lookups.counts)
        .iter()
        .map(|(_, _, bytes)| bytes)
        .sum();
    machine.ns(&Work::of(number(instructions)).reading(number(waited), bytes))
}

/// Returns the measured time of a lookup.
pub(super) fn measured(lookups: &Lookups, mode: Mode) -> f64 {
    match mode {
        Mode::Single => lookups.ns[0],
        Mode::Batch => lookups.ns[TOGETHER.len() - 1],
    }
}

impl Fitted {
    /// Fits the factor: the geometric mean of measured times divided by times of the
    /// work.
    pub(super) fn to(points: &[(f64, f64)]) -> Fitted {
        let ratios: Vec<f64> = points
            .iter()
            .map(|(worked, measured)| measured / worked.max(1e-9))
            .collect();
        Fitted {
            factor: geometric_mean(&ratios).unwrap_or(1.0),
        }
    }

    /// Returns the predicted time.
    pub(super) fn predict(self, worked: f64) -> f64 {
        self.factor * worked
    }
}

/// Returns the relative error, as the paper defines it.
pub(super) fn error(predicted: f64, measured: f64) -> f64 {
    (predicted - measured) / measured.max(1e-9)
}

/// The error that the paper claims.
pub(super) const PAPER_ERROR: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_found_again() {
        let points = [10.0, 100.0, 1000.0].map(|worked| (worked, 1.25 * worked));
        let fitted = Fitted::to(&points);
        assert!((fitted.factor - 1.25).abs() < 1e-9, "{fitted:?}");
        assert!((fitted.predict(40.0) - 50.0).abs() < 1e-6);
        assert_eq!(Fitted::to(&[]).factor, 1.0);
    }
}
