//! What instructions, mispredicted branches and cache lines cost here.
//!
//! Each is the least CPU time of several runs: what a run has more is the
//! machine's other work.

#![allow(clippy::cast_precision_loss)] // counts

use std::hint::black_box;

use classyard::machine::Curve;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bench::timed;

/// Working sets of the curves, in bytes: from the first cache to memory.
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

/// A cache line, which says where to go next.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line {
    next: u32,
}

/// The two curves.
pub(super) struct Curves {
    pub(super) dependent: Curve,
    pub(super) overlapped: Curve,
}

/// How much is measured.
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
    /// Seconds.
    pub(super) const FULL: Effort = Effort {
        reads: 400_000,
        runs: 5,
        largest: 256 << 20,
    };

    /// As little as shows that it works.
    pub(super) const QUICK: Effort = Effort {
        reads: 5_000,
        runs: 2,
        largest: 1 << 20,
    };

    fn sets(self) -> impl Iterator<Item = usize> {
        SETS.into_iter().filter(move |&bytes| bytes <= self.largest)
    }

    /// How many steps [`curves`] has.
    pub(super) fn steps(self) -> usize {
        self.sets().count()
    }
}

/// Nanoseconds of a unit of work: the least of some runs.
fn least(effort: Effort, units: usize, mut run: impl FnMut() -> u64) -> f64 {
    let runs = (0..effort.runs).map(|_| {
        let (value, seconds) = timed(&mut run);
        black_box(value);
        seconds * 1e9 / units as f64
    });
    runs.fold(f64::INFINITY, f64::min)
}

/// Lines in a random cycle, each of which names the next.
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

/// Measures both curves; `done` hears of each working set.
pub(super) fn curves(effort: Effort, mut done: impl FnMut(usize)) -> Curves {
    let (mut dependent, mut overlapped) = (Vec::new(), Vec::new());
    for bytes in effort.sets() {
        let lines = cycle(bytes / size_of::<Line>());
        let mut at = 0_u32;
        // Also brings all lines into the caches that have room for them.
        let warm = effort.reads.max(lines.len());
        for _ in 0..warm.min(lines.len()) {
            at = lines[at as usize].next;
        }
        let chased = least(effort, effort.reads, || {
            for _ in 0..effort.reads {
                at = lines[at as usize].next;
            }
            u64::from(at)
        });
        // A power of two, so that masking a random number is an index.
        let mask = lines.len() - 1;
        let mut number = u64::from(at);
        let together = least(effort, effort.reads, || {
            let mut sum = 0;
            for _ in 0..effort.reads {
                // Of the number alone, so that the next read waits for none.
                number += 1;
                let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let random = (random ^ random >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd);
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

/// A curve through measured points. Where a larger set seems to be faster, that is
/// noise.
fn rising(points: &[(f64, f64)]) -> Curve {
    let mut least = 0.01;
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|&(bytes, ns)| {
            least = ns.max(least);
            (bytes, least)
        })
        .collect();
    Curve::new(&points).expect("increasing sizes, and times that do not decrease")
}

/// Instructions of a round of [`instruction_ns`], as a compiler makes them for
/// x86-64: seven for each of four numbers, and three for the loop.
const ROUND: usize = 31;

/// Nanoseconds for an instruction of code that mixes as hashing and comparing do:
/// four numbers are worked on at once, so several instructions run at once.
pub(super) fn instruction_ns(effort: Effort) -> f64 {
    let rounds = effort.reads / 4;
    let each = least(effort, rounds * ROUND, || {
        let mut numbers = black_box([1_u64, 2, 3, 4]);
        let mut found = 0;
        for _ in 0..rounds {
            for number in &mut numbers {
                *number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
                *number ^= *number >> 29;
                *number = number.rotate_left(13) ^ 0x5555;
                found += u64::from(*number & 7 == 3);
            }
        }
        found ^ numbers[0] ^ numbers[1] ^ numbers[2] ^ numbers[3]
    });
    each.max(1e-3)
}

/// Nanoseconds for a branch that is not foreseen: what random branches take more
/// than such as are always taken, half of which are wrong.
pub(super) fn misprediction_ns(effort: Effort) -> f64 {
    const BRANCHES: usize = 1 << 16;
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(1);
    let random: Vec<bool> = (0..BRANCHES).map(|_| dice.random_bool(0.5)).collect();
    let always = vec![true; BRANCHES];
    let [random, always] = [random, always].map(|branches| {
        least(effort, BRANCHES, || {
            let (mut taken, mut not_taken) = (0_u64, 0_u64);
            for &branch in &branches {
                // Neither side can be computed before the branch is known.
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
            let mut at = 0;
            for step in 1..=lines {
                at = cycle[at].next as usize;
                assert_eq!(at == 0, step == lines, "{lines} lines, step {step}");
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
