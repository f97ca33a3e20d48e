//! How hard to try: what a plan may cost to learn, by what it is for.

/// What a greedy plan may cost, in rules compared with steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// For one bit of one mask: decides the size of the sample.
    pub(crate) step: usize,
    /// For all masks: no further bit or mask is looked for once it is spent.
    pub(crate) total: usize,
}

/// Which tables a plan is for, and when it is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// All headers go through it, so it is worth a lot of work.
    Root,
    /// The root of a few rules, learned within an update that may read that many
    /// words.
    SmallRoot(usize),
    /// One of thousands.
    Nested,
    /// Learned within an update that may read that many words.
    Split(usize),
}

impl Level {
    pub(crate) fn is_root(self) -> bool {
        matches!(self, Level::Root | Level::SmallRoot(_))
    }
}

/// How hard to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Greedy plans to begin with.
    pub(crate) starts: usize,
    /// How many of these are improved.
    pub(crate) improved: usize,
    /// The largest sample.
    pub(crate) sample: usize,
    /// Rules and headers looked at when improving, all together.
    pub(crate) work: usize,
    /// The most headers.
    pub(crate) headers: usize,
    /// Rules compared with steps for a greedy plan.
    pub(crate) greedy: Work,
    /// Words read, all together, before the plan is taken as it is.
    pub(crate) words: usize,
}

impl Effort {
    /// The effort for `rules` rules whose keys have `width` words, and whose runs
    /// have fingerprints or not.
    pub(crate) fn of(level: Level, rules: usize, width: usize, fingerprints: bool) -> Effort {
        // Runs have fingerprints where nearly every rule has a mask of its own: then
        // there are many more plans to choose from.
        let more = if fingerprints { FOR_MANY_KINDS } else { 1 };
        let root = Effort {
            starts: 3,
            improved: 2,
            sample: (rules / 4).clamp(2048, 1 << 14),
            work: more * (1_000_000 + rules * 500).min(12_000_000),
            headers: HEADERS,
            // Where buckets are to be a millionth of the rules, a small
            // sample sees no pairs at all.
            greedy: Work {
                step: rules.clamp(1 << 16, 1 << 19),
                total: 1 << 25,
            },
            words: more * 200_000_000,
        };
        let nested = Effort {
            starts: 1,
            improved: 1,
            sample: 512,
            work: (rules * 100).min(1_000_000),
            headers: HEADERS,
            greedy: Work {
                step: 1 << 15,
                total: (rules << 9).clamp(1 << 20, 1 << 23),
            },
            words: (rules * 1000).clamp(4_000_000, 50_000_000),
        };
        // Within an update: less of everything whose cost grows with the width
        // of the key.
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

/// How much more work is worth it where nearly every rule has a mask of its own.
/// Over fifteen fields eight times the work makes lookups 1.07 to 1.3 times as fast.
const FOR_MANY_KINDS: usize = 8;

/// Headers to judge a plan with, at most.
const HEADERS: usize = 512;
