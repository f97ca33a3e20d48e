//! The effort of learning a plan, by its purpose.

/// The bound of a greedy plan's work, in comparisons of a rule with a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// For one bit of one mask; determines the size of the sample.
    pub(crate) step: usize,
    /// For all masks: once it is spent, no further bit or mask is searched for.
    pub(crate) total: usize,
}

/// The tables that a plan is for, and the time when it is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The root: all headers go through it, so it is worth much work.
    Root,
    /// A root of few rules, learned within an update that may read this number of
    /// words.
    SmallRoot(usize),
    /// Nested tables, one chain of thousands.
    Nested,
    /// Nested tables learned within an update that may read this number of words.
    Split(usize),
}

impl Level {
    pub(crate) fn is_root(self) -> bool {
        matches!(self, Level::Root | Level::SmallRoot(_))
    }
}

/// The effort of learning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The number of greedy plans.
    pub(crate) starts: usize,
    /// The number of these plans that are improved.
    pub(crate) improved: usize,
    /// The largest sample, in rules.
    pub(crate) sample: usize,
    /// The total number of rules and headers read for improving plans.
    pub(crate) work: usize,
    /// The most headers.
    pub(crate) headers: usize,
    /// The work of a greedy plan.
    pub(crate) greedy: Work,
    /// The total number of words after which the best plan found is used.
    pub(crate) words: usize,
}

impl Effort {
    /// Returns the effort for `rules` rules with keys of `width` words, in runs with
    /// or without fingerprints.
    ///
    /// `bench/records/forest-experiments.md` has measurements of other efforts for
    /// the root: more greedy plans, more of them improved, samples, work, headers.
    pub(crate) fn of(level: Level, rules: usize, width: usize, fingerprints: bool) -> Effort {
        // Runs have fingerprints if nearly every rule has a mask of its own. Then
        // there are many more plans to choose from.
        let factor = if fingerprints { MANY_KINDS_FACTOR } else { 1 };
        let root = Effort {
            starts: 3,
            improved: 2,
            sample: (rules / 4).clamp(2048, 1 << 14),
            work: factor * (1_000_000 + rules * 500).min(12_000_000),
            headers: MAX_HEADERS,
            // If buckets are to have a millionth of the rules, a small sample
            // contains no pairs of one bucket.
            greedy: Work {
                step: rules.clamp(1 << 16, 1 << 19),
                total: 1 << 25,
            },
            words: factor * 200_000_000,
        };
        let nested = Effort {
            starts: 1,
            improved: 1,
            sample: 512,
            work: (rules * 100).min(1_000_000),
            headers: MAX_HEADERS,
            greedy: Work {
                step: 1 << 15,
                total: (rules << 9).clamp(1 << 20, 1 << 23),
            },
            words: (rules * 1000).clamp(4_000_000, 50_000_000),
        };
        // Within an update: less of everything whose cost grows with the width of
        // the key.
        let share = (4096 / width).clamp(128, 512);
        match level {
            Level::Root => root,
            Level::Nested => nested,
            Level::SmallRoot(words) => Effort {
                greedy: Work {
                    total: words / 8,
                    ..root.greedy
                },
                words,
                ..root
            },
            Level::Split(words) => Effort {
                sample: share,
                headers: share,
                greedy: Work {
                    total: words / 4,
                    ..nested.greedy
                },
                words,
                ..nested
            },
        }
    }
}

/// The factor of work if nearly every rule has a mask of its own. Over fifteen
/// fields, eight times the work makes lookups 1.07 to 1.3 times as fast. Once and
/// sixteen times are measured in `bench/records/forest-experiments.md`, "eight times
/// the search".
const MANY_KINDS_FACTOR: usize = 8;

/// The most headers that judge a plan. Four times as many, with more of everything,
/// are measured in `bench/records/forest-experiments.md`, "four times the headers".
const MAX_HEADERS: usize = 512;

/// The most masks of a plan. Bounds the work and the memory of learning.
pub(super) const MAX_MASKS: usize = 24;
