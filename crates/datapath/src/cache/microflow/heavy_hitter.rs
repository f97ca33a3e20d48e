//! `heavy-hitter`: a cache of the flows that are seen most often.
//!
//! # Idea
//! Of the flows of a bucket those stay that have the most packets. Counting all flows
//! would need a counter for each; Misra and Gries need counters only for those that are
//! kept: a packet of a flow that is kept adds 1 to its counter, a packet of another flow
//! takes 1 from all of them, and a counter of 0 makes room. A flow with more than one in
//! five of its bucket's packets is kept for certain.
//!
//! # Data layout
//! ```text
//! one bucket, 48 bytes
//! │ signatures 4 × u32 │
//! │ decisions  4 × u32 │  none: vacant
//! │ counts     4 × u32 │
//! ```
//!
//! # Lookup
//! ```text
//! entry of the flow's bucket with its signature: its count + 1, return its decision
//! ```
//!
//! # Insertion
//! ```text
//! a vacancy, or an entry with count 0: the flow goes there, with count 1
//! else all counts of the bucket − 1
//! ```
//!
//! # Cost
//! A lookup reads one bucket of 48 bytes; 12 bytes a flow.
//!
//! # Where we differ from the paper, and why
//! The paper says that the most frequently seen flows are kept, and not how they are
//! found. Counts end at [`HeavyHitterConfig::most`], so that a flow that has ended does
//! not stay for as many packets as it had. The paper empties the cache when rules change;
//! here what a cache says is held against the packet.
//!
//! # References
//! [TM19] §III.D.2; J. Misra, D. Gries: Finding repeated elements. Science of Computer
//! Programming 2, 1982.
//!
//! [TM19]: classyard::papers#tm19

use super::random::{bucket_of, low};
use super::{Decision, MicroflowCache, Usage};

/// Entries of a bucket.
const WAYS: usize = 4;

/// What a cache of heavy hitters is made with.
#[derive(Clone, Debug)]
pub struct HeavyHitterConfig {
    /// The most flows; rounded down to whole buckets of 4, at least one bucket.
    pub flows: usize,
    /// The greatest count.
    pub most: u32,
}

impl HeavyHitterConfig {
    /// For so many flows, with counts up to 64.
    #[must_use]
    pub fn new(flows: usize) -> HeavyHitterConfig {
        HeavyHitterConfig { flows, most: 64 }
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    signatures: [u32; WAYS],
    decisions: [Decision; WAYS],
    counts: [u32; WAYS],
}

const EMPTY: Bucket = Bucket {
    signatures: [0; WAYS],
    decisions: [Decision::NONE; WAYS],
    counts: [0; WAYS],
};

impl Bucket {
    /// The entry with that signature.
    #[inline]
    fn find(&self, signature: u32) -> Option<usize> {
        let is_it =
            |&way: &usize| self.signatures[way] == signature && self.decisions[way].is_some();
        (0..WAYS).find(is_it)
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
    /// An empty cache.
    #[must_use]
    pub fn new(config: &HeavyHitterConfig) -> HeavyHitter {
        let buckets = (config.flows / WAYS).max(1);
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
    fn look_up(&mut self, flows: &[u64], _now: u64, found: &mut [Decision]) {
        for (&flow, found) in flows.iter().zip(found) {
            let place = bucket_of(flow, self.buckets.len());
            let bucket = &mut self.buckets[place];
            *found = match bucket.find(low(flow)) {
                Some(way) => {
                    let count = &mut bucket.counts[way];
                    *count = (*count + 1).min(self.most);
                    bucket.decisions[way]
                }
                None => Decision::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, decision: Decision, _now: u64) {
        if !decision.is_some() {
            return;
        }
        let place = bucket_of(flow, self.buckets.len());
        let bucket = &mut self.buckets[place];
        if let Some(way) = bucket.find(low(flow)) {
            bucket.decisions[way] = decision;
            return;
        }
        // Vacant entries have count 0, and others before them are not given up.
        let vacancy = (0..WAYS).find(|&way| !bucket.decisions[way].is_some());
        let room = vacancy.or_else(|| (0..WAYS).find(|&way| bucket.counts[way] == 0));
        let Some(way) = room else {
            for count in &mut bucket.counts {
                *count -= 1;
            }
            return;
        };
        match vacancy {
            Some(_) => self.used += 1,
            None => self.evicted += 1,
        }
        self.admitted += 1;
        bucket.signatures[way] = low(flow);
        bucket.decisions[way] = decision;
        bucket.counts[way] = 1;
    }

    fn forget(&mut self, flow: u64, wrong: Decision) {
        let place = bucket_of(flow, self.buckets.len());
        let bucket = &mut self.buckets[place];
        if let Some(way) = bucket.find(low(flow))
            && bucket.decisions[way] == wrong
        {
            bucket.decisions[way] = Decision::NONE;
            bucket.counts[way] = 0;
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            capacity: self.buckets.len() * WAYS,
            used: self.used,
            bytes: std::mem::size_of_val(&*self.buckets),
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
