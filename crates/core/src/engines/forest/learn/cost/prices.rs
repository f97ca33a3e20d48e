//! The prices: nanoseconds for the parts of a lookup.
//!
//! Probing a larger table costs more, since its slots come from caches further away.
//! The price of a run depends on its length; a match ends the comparison after half
//! of the rules in the mean:
//! ```text
//! run(n) = compare + the blocks and cache lines beyond a few rules         n ≤ most
//!        = compare + nested × (1 + log2(n / most) / 3)                    otherwise
//! ```
//! The numbers were fitted to measured times; see [`Prices::of`].

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use crate::engines::forest::kernels::compare::MAX_SHORT_RUN;
use crate::engines::forest::learn::effort::Level;

/// The prices of the parts of a lookup, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// Hashing a header and reading a slot from a cache near the core;
    /// [`Prices::probe`] has the prices of larger tables.
    pub(super) least_probe: f64,
    /// Comparing with a run of few rules.
    compare: f64,
    /// The additional price of a block of eight, compared with few rules.
    wide: f64,
    /// A branch misprediction: the run has another block.
    miss: f64,
    /// Each further block.
    block: f64,
    /// A cache line of a run.
    line: f64,
    /// A step to nested tables instead of a run: rounds of few keys, no vectors.
    nested: f64,
    /// The most rules of a run.
    most: f64,
}

/// Lines of a run at the full price; the processor prefetches later lines. Measured
/// in `bench/records/constants.md` (Forest).
const FULL_PRICE_LINES: f64 = 8.0;

impl Prices {
    /// The prices were fitted to the times of lookups in 60 rule sets of 1k to 1M
    /// rules, under four settings each, from counted probes, compares, blocks and
    /// nested visits (Zen 4, November 2026; `bench/records/forest-experiments.md`,
    /// "prices fitted again"), and rounded. Groups of sets differ by half.
    ///
    /// Runs with fingerprints cost less for each rule. Their prices were chosen
    /// among eight sets of prices by the times of fifteen fields (Intel Xeon model
    /// 207, November 2026; `bench/records/forest-experiments.md`).
    pub(crate) fn of(level: Level, rules: usize, most: usize, fingerprints: bool) -> Prices {
        // The prices depend on the memory that holds the rules: a cache near the
        // core, a far cache or main memory.
        let (line, nested) = match rules {
            0..=10_000 => (0.8, 90.0),
            10_001..=100_000 => (0.9, 110.0),
            _ => (1.2, 140.0),
        };
        let prices = Prices {
            // Vectors of keys in the root, one key after the other in nested tables.
            least_probe: if level.is_root() { 3.0 } else { 45.0 },
            compare: 3.0,
            wide: 3.5,
            miss: 3.0,
            block: 3.0,
            line,
            nested,
            most: most as f64,
        };
        if !fingerprints {
            return prices;
        }
        Prices {
            compare: 4.0,
            wide: 3.0,
            miss: 2.0,
            block: 2.0,
            line: 0.5 * line,
            ..prices
        }
    }

    /// Returns the price of probing a table of `slots` slots.
    pub(super) fn probe(&self, slots: f64) -> f64 {
        let factor = if slots <= 4096.0 {
            1.0 // 32 KiB
        } else if slots <= 65_536.0 {
            1.3 // 512 KiB
        } else if slots <= 1_048_576.0 {
            2.0
        } else {
            3.0
        };
        self.least_probe * factor
    }

    /// Returns the price of comparing with a run of `rules` rules, or of the step to
    /// nested tables if there are too many rules for a run.
    pub(super) fn run(&self, rules: f64) -> f64 {
        if rules <= self.most {
            let wide = ((rules - MAX_SHORT_RUN as f64) / MAX_SHORT_RUN as f64).clamp(0.0, 1.0);
            let further = (rules - 8.0).max(0.0);
            // A match ends the comparison: half of the blocks in the mean.
            let lines = rules * 0.75;
            let lines = lines.min(FULL_PRICE_LINES) + 0.5 * (lines - FULL_PRICE_LINES).max(0.0);
            self.compare
                + self.wide * wide
                + self.miss * (further / 8.0).min(1.0)
                + self.block * further / 16.0
                + self.line * lines
        } else {
            self.compare + self.wide + self.nested * (1.0 + (rules / self.most).log2() / 3.0)
        }
    }
}

/// The mean cost of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Visited tables of the chain.
    pub(crate) probes: f64,
    /// Compared runs and visited nested tables.
    pub(crate) compares: f64,
    /// Nanoseconds.
    pub(crate) time: f64,
    /// The number of bits in all masks.
    pub(super) bits: u32,
}

/// The price of a mask bit in nanoseconds, when plans are compared. Of two equally
/// fast plans, the plan with shorter masks serves more of the rules that are
/// inserted later, and its tables need fewer slots. Measured in
/// `bench/records/constants.md` (Forest).
const BIT_PRICE: f64 = 0.005;

impl Cost {
    /// The value to minimise.
    pub(crate) fn total(&self) -> f64 {
        self.time + BIT_PRICE * f64::from(self.bits)
    }

    pub(super) fn add(&mut self, other: &Cost) {
        self.probes += other.probes;
        self.compares += other.compares;
        self.time += other.time;
    }
}
