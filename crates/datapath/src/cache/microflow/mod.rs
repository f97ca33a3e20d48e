//! Microflow caches: each slot is for a single flow.
//!
//! # Idea
//! A cache maps the hash of a flow's header to the megaflow that covered the flow's last
//! packet. It stores a *signature*, some bits of the hash, and compares nothing else. So a
//! result may be wrong, by chance or because the number of the megaflow was reused. The
//! caller compares the result with the packet: the megaflow has the key and mask of the
//! packets that it covers. So a cache changes only the speed, never the result.
//!
//! ```text
//! header ─▶ hash ─▶ bucket and signature ─▶ megaflow ─▶ does it cover the header?
//!                                                   yes: hit, or stale   no: miss
//! ```
//!
//! The caches differ in the flows that they admit, the buckets of a flow, and the flow that
//! they evict: see the registry, [`KINDS`].
//!
//! | module | what it has |
//! |---|---|
//! | [`active`] | the common part of `wef` and `cuckoo` |
//! | [`latest`] | tables of latest packets, which show the active flows ([FTS25]) |
//! | [`wef`] | active flows, in three adjacent buckets ([FTS25]) |
//! | [`cuckoo`] | active flows, in two buckets by cuckoo hashing ([FTS25]) |
//! | [`emc`] | one in a hundred flows, in two slots (Open vSwitch) |
//! | [`heavy_hitter`] | the most frequent flows ([TM19]) |
//! | [`adaptive`] | buckets of one cache line; uses the admission policy with fewer misses (ours) |
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
pub mod latest;
mod random;
mod timed;
pub mod wef;

/// The number of a megaflow. `u32::MAX` stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MegaflowId(u32);

impl MegaflowId {
    /// No megaflow.
    pub const NONE: MegaflowId = MegaflowId(u32::MAX);

    /// Returns the id with a number; `None` for `u32::MAX`.
    #[must_use]
    pub const fn new(number: u32) -> Option<MegaflowId> {
        match number {
            u32::MAX => None,
            _ => Some(MegaflowId(number)),
        }
    }

    /// True unless this is [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }

    /// Returns the number; `u32::MAX` for [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Fill level and counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The maximum number of flows.
    pub capacity: usize,
    /// The present number of flows.
    pub used: usize,
    /// The bytes of all tables of the cache.
    pub bytes: usize,
    /// The number of flows admitted so far.
    pub admitted: u64,
    /// The number of flows evicted to admit other flows, or because they were idle.
    pub evicted: u64,
}

/// A microflow cache.
///
/// Flows are identified by hashes of 64 bits, computed with a secret seed. Times are in
/// nanoseconds and never decrease.
pub trait MicroflowCache: fmt::Debug + Send {
    /// Sets `found` to the megaflow that each flow may have, or [`MegaflowId::NONE`]. Both
    /// slices have the same length.
    fn look_up(&mut self, flows: &[u64], now: u64, found: &mut [MegaflowId]);

    /// Offers the megaflow of a flow. If the cache has the flow, it replaces the flow's
    /// megaflow. Otherwise it may admit the flow.
    ///
    /// Returns true if the cache admitted the flow because the flow is active ([FTS25]
    /// Alg. 1, line 24). Caches that do not detect activity return false.
    ///
    /// [FTS25]: classyard::papers#fts25
    fn offer(&mut self, flow: u64, megaflow: MegaflowId, now: u64) -> bool;

    /// Removes a flow whose megaflow does not cover its packet, if the cache still has
    /// the megaflow `wrong` for it.
    fn forget(&mut self, flow: u64, wrong: MegaflowId);

    /// Returns the fill level and the counters.
    fn usage(&self) -> Usage;
}

/// A kind of cache, chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name on the command line.
    pub name: &'static str,
    /// The source: a paper's key and section, or a system.
    pub source: &'static str,
    /// Builds a cache of at most `flows` flows. `seed` is for its random choices.
    pub build: fn(flows: usize, seed: u64) -> Box<dyn MicroflowCache>,
    /// Builds a cache of active flows with other settings; `None` for other caches.
    pub(crate) build_active: Option<BuildActive>,
}

/// Builds a cache of active flows. The number is the seed of its random choices.
type BuildActive = fn(&active::ActiveConfig, u64) -> Box<dyn MicroflowCache>;

impl Kind {
    /// True for caches of active flows, which have settings of their own.
    #[must_use]
    pub const fn is_of_active_flows(&self) -> bool {
        self.build_active.is_some()
    }
}

fn build_wef(config: &active::ActiveConfig, seed: u64) -> Box<dyn MicroflowCache> {
    Box::new(wef::Wef::<4>::new(config, seed))
}

fn build_cuckoo(config: &active::ActiveConfig, seed: u64) -> Box<dyn MicroflowCache> {
    Box::new(cuckoo::Cuckoo::<4>::new(config, seed))
}

/// The well-exploited flow cache.
pub(crate) const WEF: Kind = Kind {
    name: "wef",
    source: "[FTS25] §4.2",
    build: |flows, seed| build_wef(&active::ActiveConfig::new(flows), seed),
    build_active: Some(build_wef),
};

/// All kinds of caches.
pub const KINDS: &[Kind] = &[
    WEF,
    Kind {
        name: "cuckoo",
        source: "[FTS25] §2, CuckooFlow",
        build: |flows, seed| build_cuckoo(&active::ActiveConfig::new(flows), seed),
        build_active: Some(build_cuckoo),
    },
    Kind {
        name: "emc",
        source: "Open vSwitch, exact match cache",
        build: |flows, seed| Box::new(emc::Emc::new(&emc::EmcConfig::new(flows), seed)),
        build_active: None,
    },
    Kind {
        name: "heavy-hitter",
        source: "[TM19] §III.D.2",
        build: |flows, _| {
            let config = heavy_hitter::HeavyHitterConfig::new(flows);
            Box::new(heavy_hitter::HeavyHitter::new(&config))
        },
        build_active: None,
    },
    Kind {
        name: "adaptive",
        source: "ours",
        build: |flows, _| Box::new(adaptive::Adaptive::new(flows)),
        build_active: None,
    },
];

#[cfg(test)]
mod tests;
