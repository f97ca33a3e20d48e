//! What users choose about a forest: its shape, and features to go without.

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
    /// Fingerprints of wide keys. Without: all columns of a run compared.
    Fingerprints,
}

impl Feature {
    /// The names by which a feature is left out, after the one for none.
    pub(super) const NAMES: [&'static str; 9] = [
        "nothing",
        "masks",
        "nested",
        "conflicts",
        "pages",
        "vectors",
        "blocks",
        "prefetch",
        "fingerprints",
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
            "fingerprints" => Some(Feature::Fingerprints),
            _ => None,
        }
    }
}
