//! The performance model: from what the engine counts in its structure to
//! nanoseconds.
//!
//! The engine says how many instructions a lookup is, and how many lines of which
//! part of the structure it reads. The machine says what a line takes that lies in
//! so many bytes. What the processor makes of the instructions, and how much of the
//! reads it hides, are the constants that are fitted, as λ, α, β and η in the paper,
//! to the smallest rule sets.

use std::collections::BTreeMap;

use classyard::{Machine, Work};

use super::TOGETHER;
use super::measure::Lookups;

/// Parts of a lookup's time before the constants: instructions, nanoseconds of
/// reads, and one.
pub(super) type Parts = [f64; 3];

/// Constants for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fitted {
    pub(super) constants: Parts,
}

/// What the paper's eq. 5 sums up, for headers that are looked up one by one or in
/// batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Single,
    Batch,
}

/// A number that the engine counts.
pub(super) fn count(counts: &BTreeMap<String, f64>, name: &str) -> f64 {
    counts.get(name).copied().unwrap_or(0.0)
}

/// Lines that a lookup reads of each part of the structure, with the part's bytes.
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

/// The reads of a lookup.
pub(super) fn reads(counts: &BTreeMap<String, f64>, mode: Mode) -> Work {
    let all = lines(counts);
    // All that is read may be in use at once.
    let whole = all.iter().map(|(_, _, bytes)| bytes).sum();
    let mut work = Work::default();
    for (_, lines, bytes) in all {
        work = match mode {
            Mode::Batch => work.reading_ahead(lines, whole),
            // The first line of each part waits for the part before.
            Mode::Single => work
                .reading(lines.min(1.0), bytes)
                .reading_ahead((lines - 1.0).max(0.0), bytes),
        };
    }
    work
}

/// The parts of a lookup's time.
pub(super) fn parts(lookups: &Lookups, mode: Mode, machine: &Machine) -> Parts {
    let instructions = count(&lookups.counts, "instructions a lookup");
    let reads = machine.ns(&reads(&lookups.counts, mode));
    [instructions, reads, 1.0]
}

/// The measured time of a lookup.
pub(super) fn measured(lookups: &Lookups, mode: Mode) -> f64 {
    match mode {
        Mode::Single => lookups.ns[0],
        Mode::Batch => lookups.ns[TOGETHER.len() - 1],
    }
}

impl Fitted {
    /// The constants, none below 0, whose predictions are nearest to measured times:
    /// the least sum of squares of relative errors.
    pub(super) fn to(points: &[(Parts, f64)]) -> Fitted {
        let relative: Vec<Parts> = points
            .iter()
            .map(|(parts, time)| parts.map(|part| part / time.max(1e-9)))
            .collect();
        let mut best = (f64::INFINITY, Parts::default());
        // Where a constant would be below 0 it is 0: each choice of the others.
        for choice in 1_usize..8 {
            let used: Vec<usize> = (0..3).filter(|part| choice >> part & 1 == 1).collect();
            let Some(solved) = least_squares(&relative, &used) else {
                continue;
            };
            if solved.iter().any(|&constant| constant < 0.0) {
                continue;
            }
            let errors = relative.iter().map(|parts| {
                let sum: f64 = parts.iter().zip(solved).map(|(a, b)| a * b).sum();
                (sum - 1.0).powi(2)
            });
            let error: f64 = errors.sum();
            if error + 1e-12 < best.0 {
                best = (error, solved);
            }
        }
        Fitted { constants: best.1 }
    }

    /// The predicted time.
    pub(super) fn predict(self, parts: Parts) -> f64 {
        let products = self.constants.iter().zip(parts);
        products.map(|(constant, part)| constant * part).sum()
    }
}

/// Solves the normal equations for a sum of some parts that is 1 everywhere.
fn least_squares(rows: &[Parts], used: &[usize]) -> Option<Parts> {
    let size = used.len();
    let mut system = vec![vec![0.0; size + 1]; size];
    for row in rows {
        for (i, equation) in system.iter_mut().enumerate() {
            for (j, cell) in equation.iter_mut().take(size).enumerate() {
                *cell += row[used[i]] * row[used[j]];
            }
            equation[size] += row[used[i]];
        }
    }
    for pivot in 0..size {
        let scale = system[pivot][pivot];
        if scale.abs() < 1e-15 {
            return None;
        }
        for cell in &mut system[pivot] {
            *cell /= scale;
        }
        for other in (0..size).filter(|&other| other != pivot) {
            let factor = system[other][pivot];
            let of_pivot = system[pivot].clone();
            for (cell, pivot) in system[other].iter_mut().zip(of_pivot) {
                *cell -= factor * pivot;
            }
        }
    }
    let mut solved = Parts::default();
    for (&part, equation) in used.iter().zip(&system) {
        solved[part] = equation[size];
    }
    Some(solved)
}

/// A relative error, as the paper defines it.
pub(super) fn error(predicted: f64, measured: f64) -> f64 {
    (predicted - measured) / measured.max(1e-9)
}

/// The error that the paper claims.
pub(super) const PAPER_ERROR: f64 = 0.1;

/// How many of some errors are as small as the paper claims.
pub(super) fn within(errors: &[f64]) -> usize {
    let small = errors.iter().filter(|error| error.abs() <= PAPER_ERROR);
    small.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_again_and_none_is_negative() {
        let rows = [
            [100.0, 10.0, 1.0],
            [120.0, 40.0, 1.0],
            [150.0, 15.0, 1.0],
            [300.0, 90.0, 1.0],
        ];
        let constants = [0.2, 0.5, 3.0];
        let time = |row: &Parts| Fitted { constants }.predict(*row);
        let points: Vec<(Parts, f64)> = rows.iter().map(|row| (*row, time(row))).collect();
        let fitted = Fitted::to(&points);
        for (found, expected) in fitted.constants.iter().zip(constants) {
            assert!((found - expected).abs() < 1e-6, "{fitted:?}");
        }
        // Times that fall as reads grow.
        let falling: Vec<(Parts, f64)> = [10.0, 20.0, 40.0]
            .iter()
            .map(|&reads| ([100.0, reads, 1.0], 50.0 - reads / 2.0))
            .collect();
        let fitted = Fitted::to(&falling);
        assert!(fitted.constants.iter().all(|&constant| constant >= 0.0));
        assert_eq!(fitted.constants[1], 0.0);
        assert_eq!(within(&[0.05, -0.1, 0.2]), 2);
    }
}
