//! Measures the prices of instructions, mispredicted branches and cache lines.
//!
//! Each price is the minimum CPU time of several runs: other work on the machine
//! only adds time.

#![allow(clippy::cast_precision_loss)] // counts

use std::hint::black_box;

use classyard::author::splitmix;
use classyard::machine::Curve;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bench::timed;

/// Working sets of the curves, in bytes: from the L1 cache to memory.
const SETS: [usize; 13] = [
    8 << 10,
    32 << 10,
    64 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
    256 << 20,
];

/// A cache line that holds the index of the next line.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line {
    next: u32,
}

/// The curves of dependent and overlapped reads.
pub(super) struct Curves {
    pub(super) dependent: Curve,
    pub(super) overlapped: Curve,
}

/// The amount of measuring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Lines read in a run.
    pub(super) reads: usize,
    /// Runs of each kind.
    pub(super) runs: usize,
    /// The largest working set, in bytes.
    pub(super) largest: usize,
}

impl Effort {
    /// A full calibration, which takes seconds.
    pub(super) const FULL: Effort = Effort {
        reads: 400_000,
        runs: 5,
        largest: 256 << 20,
    };

    /// The minimum for a smoke test.
    pub(super) const QUICK: Effort = Effort {
        reads: 5_000,
        runs: 2,
        largest: 1 << 20,
    };

    fn sets(self) -> impl Iterator<Item = usize> {
        SETS.into_iter().filter(move |&bytes| bytes <= self.largest)
    }

    /// Returns the number of steps of [`curves`].
    pub(super) fn steps(self) -> usize {
        self.sets().count()
    }
}

/// Returns the nanoseconds per unit of work, the minimum over the runs.
fn least(effort: Effort, units: usize, mut run: impl FnMut() -> u64) -> f64 {
    let runs = (0..effort.runs).map(|_| {
        let (value, seconds) = timed(&mut run);
        black_box(value);
        seconds * 1e9 / units as f64
    });
    runs.fold(f64::INFINITY, f64::min)
}

/// Returns lines in a random cycle, each with the index of the next.
fn cycle(lines: usize) -> Vec<Line> {
    let number = |at: usize| u32::try_from(at).expect("at most 2^32 lines");
    let mut order: Vec<u32> = (0..lines).map(number).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(1));
    let mut cycle = vec![Line { next: 0 }; lines];
    for (at, &from) in order.iter().enumerate() {
        cycle[from as usize].next = order[(at + 1) % lines];
    }
    cycle
}

/// Measures both curves; calls `done` after each working set.
pub(super) fn curves(effort: Effort, mut done: impl FnMut(usize)) -> Curves {
    let (mut dependent, mut overlapped) = (Vec::new(), Vec::new());
    for bytes in effort.sets() {
        let lines = cycle(bytes / size_of::<Line>());
        let mut line_index = 0_u32;
        // Also loads all lines into the caches that have room for them.
        let warm = effort.reads.max(lines.len());
        for _ in 0..warm.min(lines.len()) {
            line_index = lines[line_index as usize].next;
        }
        let chased = least(effort, effort.reads, || {
            for _ in 0..effort.reads {
                line_index = lines[line_index as usize].next;
            }
            u64::from(line_index)
        });
        // The number of lines is a power of two, so a masked random number is an index.
        let mask = lines.len() - 1;
        let mut number = u64::from(line_index);
        let together = least(effort, effort.reads, || {
            let mut sum = 0;
            for _ in 0..effort.reads {
                // Computed from the counter alone, so that no read waits for another.
                let random = splitmix(&mut number);
                #[allow(clippy::cast_possible_truncation)] // bits of an index
                let index = (random >> 32) as usize & mask;
                sum += u64::from(lines[index].next);
            }
            sum
        });
        dependent.push((bytes as f64, chased));
        overlapped.push((bytes as f64, together));
        done(bytes);
    }
    Curves {
        dependent: rising(&dependent),
        overlapped: rising(&overlapped),
    }
}

/// Returns a curve through measured points. A larger set that seems faster is noise
/// and is raised to the time of the smaller set.
fn rising(points: &[(f64, f64)]) -> Curve {
    let mut max_ns = 0.01;
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|&(bytes, ns)| {
            max_ns = ns.max(max_ns);
            (bytes, max_ns)
        })
        .collect();
    Curve::new(&points).expect("increasing sizes, and times that do not decrease")
}

/// Instructions per round of [`instruction_ns`], as compiled for x86-64: seven for
/// each of four numbers, and three for the loop.
const ROUND_INSTRUCTIONS: usize = 31;

/// Measures the nanoseconds per instruction of code that mixes bits like hashing
/// and comparing. Four independent numbers let several instructions run in
/// parallel.
pub(super) fn instruction_ns(effort: Effort) -> f64 {
    let rounds = effort.reads / 4;
    let each = least(effort, rounds * ROUND_INSTRUCTIONS, || {
        let mut numbers = black_box([1_u64, 2, 3, 4]);
        let mut checksum = 0;
        for _ in 0..rounds {
            for number in &mut numbers {
                *number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
                *number ^= *number >> 29;
                *number = number.rotate_left(13) ^ 0x5555;
                checksum += u64::from(*number & 7 == 3);
            }
        }
        checksum ^ numbers[0] ^ numbers[1] ^ numbers[2] ^ numbers[3]
    });
    each.max(1e-3)
}

/// Measures the nanoseconds of a mispredicted branch: the extra time of random
/// branches over always-taken ones. Half of the random branches are mispredicted.
pub(super) fn misprediction_ns(effort: Effort) -> f64 {
    const BRANCH_COUNT: usize = 1 << 16;
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(1);
    let random: Vec<bool> = (0..BRANCH_COUNT).map(|_| dice.random_bool(0.5)).collect();
    let always = vec![true; BRANCH_COUNT];
    let [random, always] = [random, always].map(|branches| {
        least(effort, BRANCH_COUNT, || {
            let (mut taken, mut not_taken) = (0_u64, 0_u64);
            for &branch in &branches {
                // Neither side can be computed before the branch is resolved.
                if branch {
                    taken = black_box(taken + 1);
                } else {
                    not_taken = black_box(not_taken + 3);
                }
            }
            taken ^ not_taken
        })
    });
    (2.0 * (random - always)).max(0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_goes_through_all_lines() {
        for lines in [1, 2, 64, 1000] {
            let cycle = cycle(lines);
            let mut line_index = 0;
            for step in 1..=lines {
                line_index = cycle[line_index].next as usize;
                assert_eq!(line_index == 0, step == lines, "{lines} lines, step {step}");
            }
        }
    }

    #[test]
    fn prices_are_numbers() {
        let effort = Effort {
            largest: 64 << 10,
            ..Effort::QUICK
        };
        let mut sets = Vec::new();
        let curves = curves(effort, |bytes| sets.push(bytes));
        assert_eq!(sets, SETS[..3]);
        assert_eq!((curves.dependent.points().len(), effort.steps()), (3, 3));
        let prices = [instruction_ns(effort), misprediction_ns(effort)];
        assert!(prices.iter().all(|ns| ns.is_finite() && *ns > 0.0));
    }

    #[test]
    fn noise_does_not_make_larger_sets_faster() {
        let curve = rising(&[(1.0, 2.0), (2.0, 1.5), (3.0, 4.0)]);
        assert_eq!(curve.points(), [(1.0, 2.0), (2.0, 2.0), (3.0, 4.0)]);
    }
}
