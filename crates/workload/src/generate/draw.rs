//! Random numbers that are the same on every machine.
//!
//! # Value stability
//! The generator's output is part of its interface: the same recipe gives the same
//! rules, byte for byte, on every machine and after every update of a library. So
//! nothing here uses the distributions of `rand` or `rand_distr`, whose results may
//! change from version to version. The bits come from xoshiro256++, which its
//! publication fixes. All functions on top of it are written out here in integer and
//! basic floating-point operations, which IEEE 754 fixes. Logarithms and powers come
//! from `libm`, which is the same software on every machine.

use classyard::author::splitmix;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    rng: Xoshiro256PlusPlus,
}

impl Draw {
    /// Creates the stream with the name `stream` for a seed. Streams of different names
    /// are independent, so one part of a generator can change without changing the
    /// numbers of the other parts.
    pub(crate) fn new(seed: u64, stream: &str) -> Draw {
        // FNV-1a of the name, mixed into the state together with the seed.
        let name = stream
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let mut state = seed ^ name.rotate_left(23);
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&splitmix(&mut state).to_le_bytes());
        }
        Draw {
            rng: Xoshiro256PlusPlus::from_seed(bytes),
        }
    }

    /// Returns 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Returns 128 random bits.
    pub(crate) fn bits128(&mut self) -> u128 {
        (u128::from(self.bits()) << 64) | u128::from(self.bits())
    }

    /// Returns a number from 0 (included) to 1 (excluded), in steps of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with the given probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns true half of the time.
    pub(crate) fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Returns a number below `bound`, all equally likely; `bound` is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        // Lemire's method: a 64 × 64-bit product, redrawn where it would favour
        // some values.
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if low_half(product) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while low_half(product) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        usize::try_from(product >> 64).expect("below a usize")
    }

    /// Returns a number from 0 to `max`, both included, all equally likely.
    pub(crate) fn up_to(&mut self, max: u128) -> u128 {
        if max == 0 {
            return 0;
        }
        let mask = u128::MAX >> max.leading_zeros();
        loop {
            let candidate = if mask <= u128::from(u64::MAX) {
                u128::from(self.bits()) & mask
            } else {
                self.bits128() & mask
            };
            if candidate <= max {
                return candidate;
            }
        }
    }

    /// Returns a number from `low` to `high`, both included, all equally likely.
    pub(crate) fn between(&mut self, low: u128, high: u128) -> u128 {
        low + self.up_to(high - low)
    }

    /// Returns a random item, all equally likely; there must be at least one.
    pub(crate) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns an exponentially distributed number with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Returns a normally distributed number with mean 0 and variance 1.
    pub(crate) fn normal(&mut self) -> f64 {
        // The Box–Muller method; its second number is not used.
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }

    /// Returns a Pareto distributed number: at least `scale`, with tail index `shape`.
    pub(crate) fn pareto(&mut self, shape: f64, scale: f64) -> f64 {
        scale / libm::pow(1.0 - self.unit(), 1.0 / shape)
    }
}

fn low_half(product: u128) -> u64 {
    u64::try_from(product & u128::from(u64::MAX)).expect("masked to 64 bits")
}

/// Converts a float to a whole number: truncated, 0 for negative values and NaN, and at
/// most `limit`.
pub(crate) fn whole(value: f64, limit: usize) -> usize {
    usize::try_from(whole_u64(value, limit as u64)).expect("at most the limit")
}

/// As [`whole`], for numbers that may exceed a 32-bit machine's addresses.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped before
pub(crate) fn whole_u64(value: f64, limit: u64) -> u64 {
    if value.is_nan() || value < 0.0 {
        0
    } else if value >= limit as f64 {
        limit
    } else {
        value as u64
    }
}

/// A random choice among weighted items, stored as cumulative shares of 1.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    ends: Vec<f64>,
}

impl Choice {
    /// Creates a choice with these weights; `None` if no weight is above 0. Weights
    /// that are negative, infinite or NaN count as 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = f64>) -> Option<Choice> {
        let mut total = 0.0;
        let mut ends: Vec<f64> = weights
            .into_iter()
            .map(|weight| {
                if weight > 0.0 && weight.is_finite() {
                    total += weight;
                }
                total
            })
            .collect();
        if total <= 0.0 {
            return None;
        }
        for end in &mut ends {
            *end /= total;
        }
        Some(Choice { ends })
    }

    /// Returns the item at a point from 0 to 1 of the cumulative shares.
    pub(crate) fn at(&self, point: f64) -> usize {
        let index = self.ends.partition_point(|&end| end <= point);
        if index < self.ends.len() {
            return index;
        }
        // The point is 1, or rounding left the last end slightly below the point:
        // returns the last item with a share.
        let last = self.ends[self.ends.len() - 1];
        self.ends.partition_point(|&end| end < last)
    }

    /// Returns a random item.
    pub(crate) fn draw(&self, draw: &mut Draw) -> usize {
        self.at(draw.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_fixed() {
        let mut draw = Draw::new(1, "test");
        let first: Vec<u64> = (0..3).map(|_| draw.bits()).collect();
        let mut again = Draw::new(1, "test");
        assert_eq!(first, (0..3).map(|_| again.bits()).collect::<Vec<_>>());
        assert_ne!(first[0], Draw::new(2, "test").bits());
        assert_ne!(first[0], Draw::new(1, "tess").bits());
    }

    #[test]
    fn small_bounds_are_met_evenly() {
        let mut draw = Draw::new(7, "even");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[draw.below(7)] += 1;
        }
        // Chi-square with 6 degrees of freedom: it exceeds 22.5 once in 1,000 tests.
        let chi: f64 = counts
            .iter()
            .map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 22.5, "{counts:?}");
        assert!((0..100).all(|_| draw.up_to(5) <= 5));
        assert_eq!(draw.between(9, 9), 9);
        assert!((0..100).any(|_| draw.up_to(u128::MAX) > u128::from(u64::MAX)));
    }

    #[test]
    fn means_are_what_they_should_be() {
        let mut draw = Draw::new(3, "means");
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || draw.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || draw.normal()).abs() < 0.02);
        assert!((mean(&mut || draw.pareto(3.0, 2.0)) - 3.0).abs() < 0.05);
    }

    #[test]
    fn choices_follow_the_weights_and_skip_the_empty_ones() {
        let choice = Choice::new([0.0, 3.0, 0.0, 1.0, 0.0]).unwrap();
        assert_eq!(choice.at(0.0), 1);
        assert_eq!(choice.at(0.7499), 1);
        assert_eq!(choice.at(0.75), 3);
        assert_eq!(choice.at(1.0), 3);
        assert!(Choice::new([0.0, -1.0, f64::NAN]).is_none());
        assert!(Choice::new([]).is_none());
    }

    #[test]
    fn floats_become_whole_numbers_without_surprises() {
        assert_eq!(whole(f64::NAN, 9), 0);
        assert_eq!(whole(-1.0, 9), 0);
        assert_eq!(whole(3.9, 9), 3);
        assert_eq!(whole(1e300, 9), 9);
    }
}
