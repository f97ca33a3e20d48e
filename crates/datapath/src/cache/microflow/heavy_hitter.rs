//! `heavy-hitter`: a cache of the most frequent flows.
//!
//! # Idea
//! A bucket keeps the flows with the most packets. Counting all flows would need a
//! counter for each. The algorithm of Misra and Gries needs counters only for the flows
//! in the bucket: a packet of such a flow adds 1 to its counter, a packet of any other
//! flow subtracts 1 from all counters, and an entry with count 0 can be replaced. With
//! unlimited counts, a flow with more than a fifth of its bucket's packets is certainly
//! kept.
//!
//! # Data layout
//! ```text
//! one bucket, 48 bytes
//! │ signatures 4 × u32 │
//! │ megaflows  4 × u32 │  none: vacant
//! │ counts     4 × u32 │
//! ```
//!
//! # Lookup
//! ```text
//! entry of the flow's bucket with its signature: its count + 1, return its megaflow
//! ```
//!
//! # Insertion
//! ```text
//! a vacancy, or an entry with count 0: the flow goes there, with count 1
//! else all counts of the bucket − 1
//! ```
//!
//! # Cost
//! A lookup reads one bucket of 48 bytes; 12 bytes per flow.
//!
//! # Where we differ from the paper, and why
//! The paper says that the most frequent flows are kept, but not how they are found.
//! Counts are limited to [`HeavyHitterConfig::most`], so that a flow that has ended does
//! not stay for as many packets as it had. The paper empties the cache when rules change;
//! here the caller compares the result with the packet.
//!
//! # References
//! [TM19] §III.D.2; J. Misra, D. Gries: Finding repeated elements. Science of Computer
//! Programming 2, 1982.
//!
//! [TM19]: classyard::papers#tm19

use super::random::{bucket_of, low};
use super::{MegaflowId, MicroflowCache, Usage};

/// The number of entries in a bucket. Measured in `bench/records/constants.md` (Microflow
/// caches: heavy hitters).
const BUCKET_WAYS: usize = 4;

/// Settings of a cache of heavy hitters.
#[derive(Clone, Debug)]
pub struct HeavyHitterConfig {
    /// The maximum number of flows; rounded down to whole buckets of 4, at least one
    /// bucket.
    pub flows: usize,
    /// The largest count.
    pub most: u32,
}

impl HeavyHitterConfig {
    /// Returns settings for `flows` flows, with counts up to 64.
    #[must_use]
    pub fn new(flows: usize) -> HeavyHitterConfig {
        HeavyHitterConfig { flows, most: 64 }
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    signatures: [u32; BUCKET_WAYS],
    megaflows: [MegaflowId; BUCKET_WAYS],
    counts: [u32; BUCKET_WAYS],
}

const EMPTY: Bucket = Bucket {
    signatures: [0; BUCKET_WAYS],
    megaflows: [MegaflowId::NONE; BUCKET_WAYS],
    counts: [0; BUCKET_WAYS],
};

impl Bucket {
    /// Returns the entry with a signature.
    #[inline]
    fn find(&self, signature: u32) -> Option<usize> {
        let is_it =
            |&way: &usize| self.signatures[way] == signature && self.megaflows[way].is_some();
        (0..BUCKET_WAYS).find(is_it)
    }
}

/// A cache of heavy hitters.
#[derive(Clone, Debug)]
pub struct HeavyHitter {
    buckets: Box<[Bucket]>,
    most: u32,
    used: usize,
    admitted: u64,
    evicted: u64,
}

impl HeavyHitter {
    /// Returns an empty cache.
    #[must_use]
    pub fn new(config: &HeavyHitterConfig) -> HeavyHitter {
        let buckets = (config.flows / BUCKET_WAYS).max(1);
        HeavyHitter {
            buckets: vec![EMPTY; buckets].into_boxed_slice(),
            most: config.most.max(1),
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }
}

impl MicroflowCache for HeavyHitter {
    fn look_up(&mut self, flows: &[u64], _now: u64, found: &mut [MegaflowId]) {
        for (&flow, found) in flows.iter().zip(found) {
            let index = bucket_of(flow, self.buckets.len());
            let bucket = &mut self.buckets[index];
            *found = match bucket.find(low(flow)) {
                Some(way) => {
                    let count = &mut bucket.counts[way];
                    *count = (*count + 1).min(self.most);
                    bucket.megaflows[way]
                }
                None => MegaflowId::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, megaflow: MegaflowId, _now: u64) -> bool {
        if !megaflow.is_some() {
            return false;
        }
        let index = bucket_of(flow, self.buckets.len());
        let bucket = &mut self.buckets[index];
        if let Some(way) = bucket.find(low(flow)) {
            bucket.megaflows[way] = megaflow;
            return false;
        }
        // A vacant entry is used first, even after an entry with count 0.
        let vacancy = (0..BUCKET_WAYS).find(|&way| !bucket.megaflows[way].is_some());
        let room = vacancy.or_else(|| (0..BUCKET_WAYS).find(|&way| bucket.counts[way] == 0));
        let Some(way) = room else {
            for count in &mut bucket.counts {
                *count -= 1;
            }
            return false;
        };
        match vacancy {
            Some(_) => self.used += 1,
            None => self.evicted += 1,
        }
        self.admitted += 1;
        bucket.signatures[way] = low(flow);
        bucket.megaflows[way] = megaflow;
        bucket.counts[way] = 1;
        false
    }

    fn forget(&mut self, flow: u64, wrong: MegaflowId) {
        let index = bucket_of(flow, self.buckets.len());
        let bucket = &mut self.buckets[index];
        if let Some(way) = bucket.find(low(flow))
            && bucket.megaflows[way] == wrong
        {
            bucket.megaflows[way] = MegaflowId::NONE;
            bucket.counts[way] = 0;
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            capacity: self.buckets.len() * BUCKET_WAYS,
            used: self.used,
            bytes: std::mem::size_of_val(&*self.buckets),
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
