//! Caches of single flows.
//!
//! # Idea
//! A flow is known by a hash of its header. A cache leads from the hash to the decision
//! that was made for the flow when it was last seen. It keeps a *signature*, some bits of
//! the hash, and compares nothing else; so an answer may be wrong, by chance or because
//! the decision is another one by now. Who asks holds it against the packet: the decision
//! has the key and mask of the packets that it is right for. So a cache never changes
//! what becomes of a packet, only how fast.
//!
//! ```text
//! header ─▶ hash ─▶ bucket and signature ─▶ decision ─▶ does it cover the header?
//!                                                         yes: hit      no: miss
//! ```
//!
//! What a cache takes in, where it keeps it and what it gives up for it differ: see the
//! registry, [`KINDS`].
//!
//! | module | what it has |
//! |---|---|
//! | [`active`] | what `wef` and `cuckoo` have in common |
//! | [`wef`] | active flows, three buckets next to each other ([FTS25]) |
//! | [`cuckoo`] | active flows, two buckets by cuckoo hashing ([FTS25]) |
//! | [`emc`] | one in a hundred flows, two places (Open vSwitch) |
//! | [`heavy_hitter`] | the most frequent flows ([TM19]) |
//! | [`adaptive`] | buckets of one cache line, admission by what misses less (ours) |
//!
//! [FTS25]: classyard::papers#fts25
//! [TM19]: classyard::papers#tm19

use std::fmt;

pub mod active;
mod activity;
pub mod adaptive;
pub mod cuckoo;
pub mod emc;
pub mod heavy_hitter;
mod random;
mod timed;
pub mod wef;

/// The number of a decision that a cache leads to. `u32::MAX` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decision(u32);

impl Decision {
    /// No decision.
    pub const NONE: Decision = Decision(u32::MAX);

    /// The decision of a number; `None` for `u32::MAX`.
    #[must_use]
    pub const fn new(number: u32) -> Option<Decision> {
        match number {
            u32::MAX => None,
            _ => Some(Decision(number)),
        }
    }

    /// Whether it is one.
    #[inline]
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }

    /// Its number; `u32::MAX` of [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// How full a cache is, and what it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Flows that it has room for.
    pub capacity: usize,
    /// Flows that are in it.
    pub used: usize,
    /// Bytes that it holds, all of its tables together.
    pub bytes: usize,
    /// Flows that it took in.
    pub admitted: u64,
    /// Flows that were given up for others, or for being idle.
    pub evicted: u64,
}

/// A cache of single flows.
///
/// Flows are told by hashes of 64 bits, computed with a seed that nobody outside knows.
/// Times are in nanoseconds and do not go backwards.
pub trait MicroflowCache: fmt::Debug + Send {
    /// For each flow the decision that it may have, or [`Decision::NONE`]; as many as
    /// flows.
    fn look_up(&mut self, flows: &[u64], now: u64, found: &mut [Decision]);

    /// A flow was not found, and this is its decision. The cache takes it in or not.
    fn offer(&mut self, flow: u64, decision: Decision, now: u64);

    /// What the cache said of a flow does not cover it: the answer goes, unless it is
    /// another one by now.
    fn forget(&mut self, flow: u64, wrong: Decision);

    /// How full it is.
    fn usage(&self) -> Usage;
}

/// A kind of cache that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is from: a paper's key and section, or a system.
    pub source: &'static str,
    /// A cache of at most so many flows, with a seed for what it does at random.
    pub build: fn(flows: usize, seed: u64) -> Box<dyn MicroflowCache>,
}

/// All kinds of caches.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "wef",
        source: "[FTS25] §4.2",
        build: |flows, seed| Box::new(wef::Wef::<4>::new(&active::ActiveConfig::new(flows), seed)),
    },
    Kind {
        name: "cuckoo",
        source: "[FTS25] §2, CuckooFlow",
        build: |flows, seed| {
            Box::new(cuckoo::Cuckoo::<4>::new(
                &active::ActiveConfig::new(flows),
                seed,
            ))
        },
    },
    Kind {
        name: "emc",
        source: "Open vSwitch, exact match cache",
        build: |flows, seed| Box::new(emc::Emc::new(&emc::EmcConfig::new(flows), seed)),
    },
    Kind {
        name: "heavy-hitter",
        source: "[TM19] §III.D.2",
        build: |flows, _| {
            let config = heavy_hitter::HeavyHitterConfig::new(flows);
            Box::new(heavy_hitter::HeavyHitter::new(&config))
        },
    },
    Kind {
        name: "adaptive",
        source: "ours",
        build: |flows, _| Box::new(adaptive::Adaptive::new(flows)),
    },
];

#[cfg(test)]
mod tests;
