//! The buckets of a table: their lengths and number, estimated from pairs of sampled
//! rules.
//!
//! Two rules are a *pair* if they have the same bits under the table's mask. The
//! mean bucket of a rule is the rule itself and its pairs; a sampled rule counts by
//! its weight. The exact number of the table's rules, divided by the mean bucket,
//! gives the number of keys; the next power of two is the number of slots. The load
//! gives the number of keys that share a slot by chance, and of signatures that pass
//! by chance.

use super::counters::Counters;
use super::sample::Drawn;

/// Counts of a table's sampled rules.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The number of sampled rules, and of the rules that they represent.
    rules: u32,
    weights: f64,
    /// Ordered pairs of rules with the same masked key.
    pairs: f64,
    /// Different masked keys of the sampled rules.
    distinct: u32,
}

/// The buckets of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    /// The number of sampled rules.
    pub(super) sampled: u32,
    /// True if the table has rules that are not in the sample.
    pub(super) thinned: bool,
    /// The number of rules with the same masked key, in the mean over rules.
    pub(super) of_rule: f64,
    /// The number of rules with the same masked key, in the mean over keys.
    pub(super) mean: f64,
    pub(super) slots: f64,
    /// The number of rules with other keys in a rule's slot.
    pub(super) others: f64,
    /// The probability that a key without rules passes the signature.
    pub(super) by_chance: f64,
}

impl Buckets {
    /// Estimates the buckets of a table of `all` rules, with the sampled rules
    /// `sampled`. Afterwards the counters hold the weights of their masked keys.
    pub(super) fn estimate<'a, const W: usize>(
        counters: &mut Counters,
        mask: &[u64; W],
        sampled: impl Iterator<Item = &'a Drawn<W>>,
        all: f64,
    ) -> Buckets {
        let Counted {
            rules,
            weights,
            pairs,
            distinct,
        } = count(counters, mask, sampled);
        let of_rule = (1.0 + pairs / weights.max(1.0)).min(all);
        let keys = (all / of_rule).max(f64::from(distinct)).min(all);
        let slots = keys.log2().ceil().exp2();
        let load = keys / slots;
        let mean = all / keys;
        let scanned = *mask == [0; W];
        Buckets {
            sampled: rules,
            thinned: f64::from(rules) < all,
            of_rule,
            mean,
            slots,
            others: load * mean * 0.5,
            by_chance: if scanned {
                1.0
            } else {
                1.0 - (-load / 16.0).exp()
            },
        }
    }
}

/// Counts the rules of each masked key.
fn count<'a, const W: usize>(
    counters: &mut Counters,
    mask: &[u64; W],
    sampled: impl Iterator<Item = &'a Drawn<W>>,
) -> Counted {
    counters.clear();
    let mut counted = Counted {
        rules: 0,
        weights: 0.0,
        pairs: 0.0,
        distinct: 0,
    };
    for drawn in sampled {
        match counters.add(&drawn.rule.value, mask, drawn.weight) {
            Some(before) => counted.pairs += 2.0 * f64::from(before * drawn.weight),
            None => counted.distinct += 1,
        }
        counted.weights += f64::from(drawn.weight);
        counted.rules += 1;
    }
    counted
}
