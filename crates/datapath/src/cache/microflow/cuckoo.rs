//! `cuckoo`: a cache of active flows with cuckoo hashing, CuckooFlow.
//!
//! # Idea
//! Like `wef` the cache holds flows that are active now (see `activity`), by other
//! hashing: a flow may be in two buckets, anywhere in the cache. A new flow whose buckets
//! are both full makes an entry move to its other bucket, which may make another move.
//!
//! # Data layout
//! ```text
//! bucket a          bucket b = (h(signature) − a) mod n      4 entries each (see `timed`)
//! tag               signature (30 bits) ‖ 1
//! ```
//! Each of the two buckets follows from the other one and the signature, so an entry can
//! move without its hash.
//!
//! # Lookup
//! ```text
//! a ← bucket(flow), b ← other(a, signature)
//! for bucket in a, b: entry with the tag: its time ← now, return its decision
//! ```
//!
//! # Insertion of an active flow
//! ```text
//! a vacancy in a or b: the flow goes there
//! else from a or b, at random, at most `kicks` times:
//!     choose an entry of the bucket at random
//!     if its other bucket has a vacancy: all chosen entries move on, the last one first;
//!         the flow goes where the first one was
//! else the flow replaces the longest idle entry of a
//! ```
//!
//! # Cost
//! A lookup reads up to 2 buckets of 48 bytes, far from each other; 12 bytes a flow, and
//! 8 bytes for each slot of the table of latest flows.
//!
//! # Where we differ from the paper, and why
//! [FTS25] describes CuckooFlow in a paragraph only. Buckets, signatures, timeouts, the
//! search before any move and the choice of the entry that is given up are those of
//! `wef`, so that the two differ in hashing alone. A chain of moves that comes to an
//! entry for the second time ends there.
//!
//! # References
//! [FTS25] §2 and §6.2, of Xiong et al., CuckooFlow, ISPA 2019.
//!
//! [FTS25]: classyard::papers#fts25

use super::activity::Activity;
use super::random::{Random, bucket_of, mixed, scaled};
use super::timed::{Bucket, Entry, Mark, Scan, Tick, signature};
use super::wef::{ActiveConfig, MOST_KICKS};
use super::{Decision, MicroflowCache, Usage};

/// CuckooFlow's cache. Buckets have `WAYS` entries.
#[derive(Clone, Debug)]
pub struct Cuckoo<const WAYS: usize = 4> {
    buckets: Box<[Bucket<WAYS>]>,
    activity: Activity,
    scan: Scan,
    kicks: usize,
    random: Random,
    used: usize,
    admitted: u64,
    evicted: u64,
}

/// The mark of all tags.
const HELD: Mark = 1;

impl<const WAYS: usize> Cuckoo<WAYS> {
    /// An empty cache.
    #[must_use]
    pub fn new(config: &ActiveConfig, seed: u64) -> Cuckoo<WAYS> {
        let buckets = (config.flows / WAYS).max(1);
        Cuckoo {
            buckets: vec![Bucket::EMPTY; buckets].into_boxed_slice(),
            activity: Activity::new(config.latest, config.threshold_ns, config.flows),
            scan: Scan::new(config.timeout_ns),
            kicks: config.kicks.min(MOST_KICKS),
            random: Random::new(seed),
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }

    /// The threshold of packet inter-arrival times, in nanoseconds.
    #[must_use]
    pub fn threshold_ns(&self) -> u64 {
        self.activity.threshold_ns()
    }

    /// The other bucket of an entry with that tag.
    #[inline]
    fn other(&self, bucket: usize, tag: u32) -> usize {
        let buckets = self.buckets.len();
        let sum = scaled(mixed(u64::from(tag)) >> 32, buckets);
        match sum >= bucket {
            true => sum - bucket,
            false => sum + buckets - bucket,
        }
    }

    /// The tag of a flow and its two buckets.
    #[inline]
    fn candidates(&self, flow: u64) -> (u32, [usize; 2]) {
        let tag = signature(flow) | HELD;
        let first = bucket_of(flow, self.buckets.len());
        (tag, [first, self.other(first, tag)])
    }

    /// Where a flow is: bucket and entry.
    #[inline]
    fn place(&self, flow: u64) -> Option<(usize, usize)> {
        let (tag, candidates) = self.candidates(flow);
        let find = |bucket: usize| Some((bucket, self.buckets[bucket].find(tag)?));
        find(candidates[0]).or_else(|| find(candidates[1]))
    }

    /// Puts an active flow into the cache, which does not have it.
    fn insert(&mut self, flow: u64, decision: Decision, now: Tick) {
        let (tag, candidates) = self.candidates(flow);
        let entry = Entry {
            tag,
            decision,
            time: now,
        };
        self.admitted += 1;
        let vacancy = |&bucket: &usize| Some((bucket, self.buckets[bucket].vacancy()?));
        let mut room = candidates.iter().find_map(vacancy);
        if room.is_none() {
            let start = candidates[usize::from(self.random.coin())];
            room = self.kick(start).map(|way| (start, way));
        }
        if let Some((bucket, way)) = room {
            self.buckets[bucket].put(way, entry);
            self.used += 1;
            self.activity.admitted(None);
            return;
        }
        let bucket = &mut self.buckets[candidates[0]];
        let way = bucket.longest_idle(now, |_| true).expect("it is full");
        let idle = now.since(bucket.times[way]);
        bucket.put(way, entry);
        self.evicted += 1;
        self.activity.admitted(Some(idle));
    }

    /// Moves an entry of a full bucket to its other bucket, and others before it so that
    /// it can. Returns the entry that became vacant.
    fn kick(&mut self, start: usize) -> Option<usize> {
        let mut chain = [(0, 0); MOST_KICKS];
        let mut bucket = start;
        for kicks in 0..self.kicks {
            let way = self.random.below(WAYS);
            if chain[..kicks].contains(&(bucket, way)) {
                return None;
            }
            chain[kicks] = (bucket, way);
            let next = self.other(bucket, self.buckets[bucket].tags[way]);
            if let Some(vacancy) = self.buckets[next].vacancy() {
                let mut to = (next, vacancy);
                for &from in chain[..=kicks].iter().rev() {
                    let entry = self.buckets[from.0].entry(from.1);
                    self.buckets[to.0].put(to.1, entry);
                    to = from;
                }
                return Some(to.1);
            }
            bucket = next;
        }
        None
    }

    fn expire(&mut self, now: Tick) {
        let expired = self.scan.step(&mut self.buckets, now);
        self.used -= expired;
        self.evicted += expired as u64;
    }
}

impl<const WAYS: usize> MicroflowCache for Cuckoo<WAYS> {
    fn look_up(&mut self, flows: &[u64], now: u64, found: &mut [Decision]) {
        let now = Tick::at(now);
        self.expire(now);
        for (&flow, found) in flows.iter().zip(found) {
            *found = match self.place(flow) {
                Some((bucket, way)) => {
                    let bucket = &mut self.buckets[bucket];
                    bucket.times[way] = now;
                    bucket.decisions[way]
                }
                None => Decision::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, decision: Decision, now: u64) {
        if !decision.is_some() {
            return;
        }
        let now = Tick::at(now);
        self.expire(now);
        let is_active = self.activity.note(flow, decision, now);
        if let Some((bucket, way)) = self.place(flow) {
            self.buckets[bucket].decisions[way] = decision;
        } else if is_active {
            self.insert(flow, decision, now);
        }
    }

    fn forget(&mut self, flow: u64, wrong: Decision) {
        if let Some((bucket, way)) = self.place(flow)
            && self.buckets[bucket].decisions[way] == wrong
        {
            self.buckets[bucket].clear(way);
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            capacity: self.buckets.len() * WAYS,
            used: self.used,
            bytes: std::mem::size_of_val(&*self.buckets) + self.activity.bytes(),
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
