//! Random schemas, rules, headers and updates that are difficult for engines.
//!
//! Uniformly random rules rarely overlap, and uniformly random headers rarely match. So
//! rules draw their values from small pools: prefixes nest, masks have holes, and ranges
//! share ends, touch, and cross the borders of bytes, lanes and words. Rules repeat each
//! other with other priorities. Headers are corners of rules, values on both sides of such
//! borders, values one step outside of a rule, and points where two rules overlap.
//!
//! All choices come from [`Dice`]: from a seed or from a fuzzer's bytes. So the same
//! generators serve tests and fuzzing.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

mod borders;
mod headers;
mod rules;
mod schemas;
mod updates;

pub use headers::{draw_header, draw_member};
pub use rules::RuleMaker;
pub use schemas::random_schema;
pub use updates::Churn;

/// A source of random choices.
pub trait Dice {
    /// Returns a number below `bound`, approximately uniform; 0 if `bound` is 0.
    fn below(&mut self, bound: usize) -> usize;

    /// Returns 64 random bits.
    fn word(&mut self) -> u64;

    /// True if the source is exhausted. All further draws are 0.
    fn spent(&self) -> bool {
        false
    }
}

impl dyn Dice + '_ {
    /// True with probability `1 / n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// True with a probability of `percent` %.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a random element of `things`.
    ///
    /// # Panics
    /// If `things` is empty.
    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }

    /// Returns a number of at most `width` bits. `width` must be at most 128.
    pub fn bits(&mut self, width: u32) -> u128 {
        if width == 0 {
            return 0;
        }
        let low = u128::from(self.word());
        let high = if width > 64 {
            u128::from(self.word())
        } else {
            0
        };
        (high << 64 | low) & (u128::MAX >> (128 - width))
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: u128, high: u128) -> u128 {
        match high - low {
            u128::MAX => self.bits(128),
            0 => low,
            distance => {
                let bits = self.bits(128 - distance.leading_zeros());
                low + bits % (distance + 1)
            }
        }
    }

    /// Puts `things` into a random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

/// Random choices from a seed.
#[derive(Clone, Debug)]
pub struct SeededDice(Xoshiro256PlusPlus);

impl SeededDice {
    /// Returns dice with that seed.
    #[must_use]
    pub fn new(seed: u64) -> SeededDice {
        SeededDice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
}

impl Dice for SeededDice {
    fn below(&mut self, bound: usize) -> usize {
        // The upper half of a product. Its bias is below bound / 2^64.
        let product = u128::from(self.0.next_u64()) * bound as u128;
        usize::try_from(product >> 64).expect("below bound")
    }

    fn word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Choices from bytes. Each choice reads as few bytes as possible, so that a fuzzer's
/// change of a byte changes a single choice.
#[derive(Clone, Debug)]
pub struct ByteDice<'a> {
    left: &'a [u8],
}

impl<'a> ByteDice<'a> {
    /// Returns dice that read `bytes`, then zeros.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> ByteDice<'a> {
        ByteDice { left: bytes }
    }

    fn read(&mut self, count: usize) -> u64 {
        let (head, tail) = self.left.split_at(count.min(self.left.len()));
        self.left = tail;
        head.iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

impl Dice for ByteDice<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let bytes = match bound {
            0 | 1 => return 0,
            2..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 8,
        };
        let bound = bound as u64;
        usize::try_from(self.read(bytes) % bound).expect("below bound")
    }

    fn word(&mut self) -> u64 {
        self.read(8)
    }

    fn spent(&self) -> bool {
        self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_keep_their_bounds() {
        let bytes: Vec<u8> = (0..=255).cycle().take(9000).collect();
        let (mut seeded, mut read) = (SeededDice::new(1), ByteDice::new(&bytes));
        for dice in [&mut seeded as &mut dyn Dice, &mut read] {
            for bound in [0, 1, 2, 3, 255, 256, 257, 70_000] {
                assert!(dice.below(bound) <= bound.saturating_sub(1));
            }
            for width in [0, 1, 63, 64, 65, 127, 128] {
                let bits = dice.bits(width);
                assert!(width == 128 || bits >> width == 0, "{width} {bits:x}");
            }
            for (low, high) in [(0, 0), (5, 9), (0, u128::MAX), (u128::MAX - 1, u128::MAX)] {
                let between = dice.between(low, high);
                assert!((low..=high).contains(&between));
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let draw = |seed| {
            let mut dice = SeededDice::new(seed);
            (0..100).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn spent_bytes_are_zeros() {
        let mut dice = ByteDice::new(&[7]);
        assert_eq!(dice.below(10), 7);
        assert!(dice.spent());
        assert_eq!((dice.below(10), dice.word()), (0, 0));
    }
}
