//! What users choose about a forest: its shape, and features to go without.

use crate::ruleset::RuleSet;

/// The name under which the engine is registered.
pub(super) const NAME: &str = "forest";

/// What decides the shape of a forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The mean number of rules in a bucket that learning aims at.
    pub(super) target: usize,
    /// The most rules of a run that could be split.
    pub(super) most: usize,
    /// Where the hash functions begin.
    pub(super) seed: u64,
    /// A feature to go without.
    pub(super) without: Option<Feature>,
}

/// The values of the option `fingerprints`.
pub(super) const FINGERPRINTS: [&str; 3] = ["auto", "on", "off"];

/// Rules that are looked at to say whether fingerprints pay.
const SAMPLED: usize = 1024;

/// Fewer rules are in few tables, whatever their masks.
const FEW: usize = 128;

/// What the option says, for rules like these.
///
/// Fingerprints pay where a header is compared with several runs, most of them
/// without a match. That is so where hardly two rules have the same mask, so that
/// no table serves many of them. Where masks are few, most headers meet the run of
/// their rule and no other, and one comparison of all columns is faster. On rules
/// of fifteen fields that are each left open at random, fingerprints make batches
/// 1.6 to 2 times as fast, on those of flow tables and of IPv6 0.8 to 1.1 times, and
/// single lookups there 0.4 to 0.75 times (November 2026, Intel Xeon model 207; `classyard bench -e
/// forest:fingerprints=on,forest:fingerprints=off`, see
/// `bench/records/forest-experiments.md`).
pub(super) fn wants_fingerprints(option: &str, rules: &RuleSet) -> bool {
    let step = rules.len().div_ceil(SAMPLED).max(1);
    match option {
        "on" => true,
        "off" => false,
        _ => {
            let sampled = (0..rules.len()).step_by(step);
            let mut masks: Vec<&[u64]> = sampled.map(|at| rules.rule(at).mask()).collect();
            let count = masks.len();
            masks.sort_unstable();
            masks.dedup();
            count >= FEW && masks.len() > count / 2
        }
    }
}

impl Settings {
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.without != Some(feature)
    }
}

/// What makes the engine fast, piece by piece. Going without one changes speed,
/// never results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// Masks of any bits. Without: of the leading bits of fields, as tuples are.
    AnyBits,
    /// Tables nested in full buckets. Without: long runs.
    NestedTables,
    /// Conflict marks. Without: every table with better rules is looked into.
    ConflictMarks,
    /// Huge pages.
    HugePages,
    /// Eight keys hashed and eight slots read at a time.
    Vectors,
    /// Four or eight rules compared at a time.
    Blocks,
    /// Memory prefetched.
    Prefetch,
}

impl Feature {
    /// The names by which a feature is left out, after the one for none.
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
