//! The clock rate of the processor, from chains of instructions of known latency.
//!
//! A chain has steps that each wait for the step before, so a step takes the latencies of
//! its instructions and no less. The compiler cannot shorten either chain: a sum of
//! rotated numbers and a square have no shorter form for several steps. (A multiplication
//! by a constant has one: two steps are one multiplication by the constant's square.)
//!
//! The latencies are assumptions about the processor, so two chains with different
//! instructions are measured. [`judged`] refuses a rate if they disagree, and a rate that
//! no processor has. Code without optimisation keeps the number in memory; there the
//! chains disagree.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use crate::bench::timed;

/// Steps of a run of a chain.
const CHAIN_STEPS: u32 = 10_000_000;

/// Runs of each chain; the shortest counts, because other work on the machine only adds
/// time.
const CHAIN_RUNS: usize = 5;

/// Cycles of a step of the chain of rotations: one for the rotation, one for the addition.
const ROTATION_STEP_CYCLES: f64 = 2.0;

/// Cycles of a step of the chain of squares: three for the multiplication of 64 bits, one
/// for the exclusive or, on x86-64 of Intel and AMD since 2011.
const SQUARE_STEP_CYCLES: f64 = 4.0;

/// An odd number with bits in all bytes.
const MIXED_BITS: u64 = 0x5851_f42d_4c95_7f2d;

/// The accepted rates in GHz.
const MIN_GIGAHERTZ: f64 = 1.0;
const MAX_GIGAHERTZ: f64 = 6.0;

/// The largest accepted ratio of the two chains' rates.
const MAX_CHAIN_RATIO: f64 = 1.1;

/// The clock rates that the two chains give, in GHz.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chains {
    pub(super) rotations: f64,
    pub(super) squares: f64,
}

/// Times both chains.
pub(super) fn measure() -> Chains {
    Chains {
        rotations: gigahertz(ROTATION_STEP_CYCLES, |number| {
            number.rotate_left(7).wrapping_add(MIXED_BITS)
        }),
        squares: gigahertz(SQUARE_STEP_CYCLES, |number| {
            number.wrapping_mul(number) ^ MIXED_BITS
        }),
    }
}

/// Returns the rate in GHz from the shortest run of a chain.
fn gigahertz(step_cycles: f64, step: impl Fn(u64) -> u64) -> f64 {
    let runs = (0..CHAIN_RUNS).map(|_| {
        let (_, seconds) = timed(|| {
            let mut number = black_box(1_u64);
            for _ in 0..CHAIN_STEPS {
                number = step(number);
            }
            black_box(number)
        });
        seconds
    });
    let shortest = runs.fold(f64::INFINITY, f64::min);
    step_cycles * f64::from(CHAIN_STEPS) / shortest / 1e9
}

/// Returns the rate in GHz: the mean of both chains.
///
/// # Errors
/// The reason why the rate is refused: a chain's rate is implausible, or the rates
/// disagree.
pub(super) fn judged(chains: Chains) -> Result<f64, String> {
    let rates = [chains.rotations, chains.squares];
    let ratio = rates[0].max(rates[1]) / rates[0].min(rates[1]);
    let in_range = |rate: &f64| (MIN_GIGAHERTZ..=MAX_GIGAHERTZ).contains(rate);
    if !rates.iter().all(in_range) {
        return Err(format!(
            "the chains give {:.2} and {:.2} GHz; expected {MIN_GIGAHERTZ} to {MAX_GIGAHERTZ} GHz",
            rates[0], rates[1]
        ));
    }
    if ratio > MAX_CHAIN_RATIO {
        return Err(format!(
            "the chains give {:.2} and {:.2} GHz; expected rates that differ by a factor of at \
             most {MAX_CHAIN_RATIO}",
            rates[0], rates[1]
        ));
    }
    Ok(f64::midpoint(rates[0], rates[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rotations: f64, squares: f64) -> Result<f64, String> {
        judged(Chains { rotations, squares })
    }

    #[test]
    fn plausible_rates_that_agree_are_accepted() {
        assert_eq!(rates(2.0, 2.0), Ok(2.0));
        assert_eq!(rates(3.5, 3.75), Ok(3.625));
        assert_eq!(rates(1.0, 1.0), Ok(1.0));
        assert_eq!(rates(6.0, 6.0), Ok(6.0));
    }

    #[test]
    fn implausible_rates_and_chains_that_disagree_are_refused() {
        for (rotations, squares) in [
            (29.3, 29.3),
            (0.3, 0.3),
            (3.6, 29.3),
            (0.5, 2.0),
            (f64::INFINITY, 3.0),
            (f64::NAN, 3.0),
        ] {
            let refusal = rates(rotations, squares).unwrap_err();
            assert!(refusal.contains("expected 1 to 6 GHz"), "{refusal}");
        }
        let refusal = rates(3.6, 2.7).unwrap_err();
        assert!(
            refusal.contains("3.60 and 2.70 GHz; expected rates that differ"),
            "{refusal}"
        );
    }

    #[test]
    fn both_chains_take_time() {
        let chains = measure();
        assert!(chains.rotations > 0.0 && chains.rotations.is_finite());
        assert!(chains.squares > 0.0 && chains.squares.is_finite());
    }
}
