//! The options of a forest: its shape, and features to turn off.

use crate::model::ruleset::RuleSet;

/// The name under which the engine is registered.
pub(super) const NAME: &str = "forest";

/// The options that decide the shape of a forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The mean number of rules in a bucket that learning aims at.
    pub(super) target: usize,
    /// The most rules of a run, unless no mask can split it.
    pub(super) most: usize,
    /// The seed of the hash functions.
    pub(super) seed: u64,
    /// A feature to turn off.
    pub(super) without: Option<Feature>,
}

/// The values of the option `fingerprints`.
pub(super) const FINGERPRINTS: [&str; 3] = ["auto", "on", "off"];

/// The most rules sampled to decide about fingerprints. Bounds the time of deciding.
const MAX_SAMPLED_RULES: usize = 1024;

/// With fewer sampled rules, `auto` uses no fingerprints: few rules need few tables,
/// whatever their masks. Measured in `bench/records/constants.md` (Forest, wide
/// rules).
const MIN_SAMPLED_RULES: usize = 128;

/// True if the option asks for fingerprints, or if it is `auto` and they pay for
/// `rules`.
///
/// Fingerprints pay if a header is compared with several runs, most of them without
/// a match. That is the case if few rules share a mask, since then no table serves
/// many rules. With few masks, most headers reach only the run of their rule, and
/// one comparison of all columns is faster. On rules of fifteen fields, each left
/// open at random, fingerprints make batches 1.6 to 2 times as fast. On rules of
/// flow tables and of IPv6, batches are 0.8 to 1.1 times and single lookups 0.4 to
/// 0.75 times as fast (November 2026, Intel Xeon model 207; `classyard bench -e
/// forest:fingerprints=on,forest:fingerprints=off`, see
/// `bench/records/forest-experiments.md`).
pub(super) fn wants_fingerprints(option: &str, rules: &RuleSet) -> bool {
    let step = rules.len().div_ceil(MAX_SAMPLED_RULES).max(1);
    match option {
        "on" => true,
        "off" => false,
        _ => {
            let sampled = (0..rules.len()).step_by(step);
            let mut masks: Vec<&[u64]> = sampled.map(|index| rules.rule(index).mask()).collect();
            let count = masks.len();
            masks.sort_unstable();
            masks.dedup();
            count >= MIN_SAMPLED_RULES && masks.len() > count / 2
        }
    }
}

impl Settings {
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.without != Some(feature)
    }
}

/// The features that make the engine fast. Turning one off changes speed, never
/// results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// Masks of any bits. Without: masks of the leading bits of fields, as in
    /// tuples.
    AnyBits,
    /// Nested tables in full buckets. Without: long runs.
    NestedTables,
    /// Conflict marks. Without: lookups probe every table with better rules.
    ConflictMarks,
    /// Huge pages.
    HugePages,
    /// Eight keys hashed and eight slots read at a time.
    Vectors,
    /// Four or eight rules compared at a time.
    Blocks,
    /// Prefetching.
    Prefetch,
}

impl Feature {
    /// The names of features to turn off; the first name is for none.
    pub(super) const NAMES: [&'static str; 8] = [
        "nothing",
        "masks",
        "nested",
        "conflicts",
        "pages",
        "vectors",
        "blocks",
        "prefetch",
    ];

    pub(super) fn named(name: &str) -> Option<Feature> {
        match name {
            "masks" => Some(Feature::AnyBits),
            "nested" => Some(Feature::NestedTables),
            "conflicts" => Some(Feature::ConflictMarks),
            "pages" => Some(Feature::HugePages),
            "vectors" => Some(Feature::Vectors),
            "blocks" => Some(Feature::Blocks),
            "prefetch" => Some(Feature::Prefetch),
            _ => None,
        }
    }
}
