//! `emc`: the exact match cache of Open vSwitch.
//!
//! # Idea
//! A flow has two possible entries, from different parts of its hash. Few flows are
//! admitted: a random one in a hundred of the flows that are not found. So flows with
//! many packets are admitted sooner or later, and floods of one-packet flows change
//! little.
//!
//! # Data layout
//! ```text
//! entry: │ signature u32 │ megaflow u32 │       n entries; vacant: megaflow = none
//! entries of a flow: high 32 bits of its hash → 0..n, and middle 32 bits → 0..n
//! ```
//!
//! # Lookup
//! ```text
//! for each of its entries: if it has the signature, return its megaflow
//! ```
//!
//! # Insertion
//! ```text
//! with probability 1 / `one_in`: the flow replaces
//!     a vacant entry, the first one first; else the entry with the smaller signature
//! ```
//!
//! # Cost
//! A lookup reads up to 2 entries; 8 bytes per flow.
//!
//! # Where we differ, and why
//! Open vSwitch stores the whole header and compares it; here the caller compares the
//! megaflow with the packet, as for all caches. In Open vSwitch, an entry is dead when
//! its flow is removed from the datapath; here an entry is removed when its megaflow
//! proves wrong. If both entries are alive, Open vSwitch also replaces the entry with the
//! smaller hash.
//!
//! # References
//! Open vSwitch, `lib/dpif-netdev-private-dfc.h` and `emc_insert` of
//! `lib/dpif-netdev.c`; the options `emc-insert-inv-prob` (100) and 8,192 entries.

use super::random::{Random, low, scaled};
use super::{MegaflowId, MicroflowCache, Usage};

/// Settings of the exact match cache.
#[derive(Clone, Debug)]
pub struct EmcConfig {
    /// The maximum number of flows, at least 1.
    pub flows: usize,
    /// One in `one_in` flows that were not found is admitted; at least 1.
    pub one_in: u32,
}

impl EmcConfig {
    /// Returns settings for `flows` flows, with Open vSwitch's probability of 1/100.
    #[must_use]
    pub fn new(flows: usize) -> EmcConfig {
        EmcConfig { flows, one_in: 100 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    signature: u32,
    megaflow: MegaflowId,
}

const VACANT: Entry = Entry {
    signature: 0,
    megaflow: MegaflowId::NONE,
};

/// Open vSwitch's exact match cache.
#[derive(Clone, Debug)]
pub struct Emc {
    entries: Box<[Entry]>,
    one_in: u32,
    random: Random,
    used: usize,
    admitted: u64,
    evicted: u64,
}

impl Emc {
    /// Returns an empty cache.
    #[must_use]
    pub fn new(config: &EmcConfig, seed: u64) -> Emc {
        Emc {
            entries: vec![VACANT; config.flows.max(1)].into_boxed_slice(),
            one_in: config.one_in.max(1),
            random: Random::new(seed),
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }

    /// Returns the two possible entries of a flow.
    #[inline]
    fn places(&self, flow: u64) -> [usize; 2] {
        let entries = self.entries.len();
        [
            scaled(flow >> 32, entries),
            scaled(u64::from(low(flow >> 16)), entries),
        ]
    }

    /// Returns the entry of a flow.
    #[inline]
    fn place(&self, flow: u64) -> Option<usize> {
        let signature = low(flow);
        let is_it = |place: &usize| {
            let entry = self.entries[*place];
            entry.signature == signature && entry.megaflow.is_some()
        };
        self.places(flow).into_iter().find(is_it)
    }
}

impl MicroflowCache for Emc {
    fn look_up(&mut self, flows: &[u64], _now: u64, found: &mut [MegaflowId]) {
        for (&flow, found) in flows.iter().zip(found) {
            *found = match self.place(flow) {
                Some(place) => self.entries[place].megaflow,
                None => MegaflowId::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, megaflow: MegaflowId, _now: u64) -> bool {
        if !megaflow.is_some() {
            return false;
        }
        if let Some(place) = self.place(flow) {
            self.entries[place].megaflow = megaflow;
            return false;
        }
        if self.one_in > 1 && self.random.below(self.one_in as usize) != 0 {
            return false;
        }
        // A vacant entry is chosen first, then the smaller signature.
        let [first, second] = self.places(flow);
        let rank = |place: usize| {
            let entry = self.entries[place];
            (entry.megaflow.is_some(), entry.signature)
        };
        let victim = if rank(second) < rank(first) {
            second
        } else {
            first
        };
        match self.entries[victim].megaflow.is_some() {
            true => self.evicted += 1,
            false => self.used += 1,
        }
        self.admitted += 1;
        self.entries[victim] = Entry {
            signature: low(flow),
            megaflow,
        };
        false
    }

    fn forget(&mut self, flow: u64, wrong: MegaflowId) {
        if let Some(place) = self.place(flow)
            && self.entries[place].megaflow == wrong
        {
            self.entries[place] = VACANT;
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            capacity: self.entries.len(),
            used: self.used,
            bytes: std::mem::size_of_val(&*self.entries),
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
