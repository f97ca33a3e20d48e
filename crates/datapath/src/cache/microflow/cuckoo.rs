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

use super::active::{ActiveFlows, Hashing, MOST_KICKS, Room};
use super::random::{Random, bucket_of, mixed, scaled};
use super::timed::{Bucket, Mark, Tick, signature};

/// CuckooFlow's cache. Buckets have `WAYS` entries.
pub type Cuckoo<const WAYS: usize = 4> = ActiveFlows<WAYS, TwoBuckets>;

/// A flow is in one of two buckets, anywhere.
#[derive(Clone, Debug)]
pub struct TwoBuckets {
    buckets: usize,
    kicks: usize,
    random: Random,
}

/// The mark of all tags.
const HELD: Mark = 1;

impl<const WAYS: usize> Hashing<WAYS> for TwoBuckets {
    fn new(buckets: usize, kicks: usize, seed: u64) -> TwoBuckets {
        TwoBuckets {
            buckets,
            kicks,
            random: Random::new(seed),
        }
    }

    #[inline]
    fn place(&self, buckets: &[Bucket<WAYS>], flow: u64) -> Option<(usize, usize)> {
        let (tag, candidates) = self.candidates(flow);
        let find = |bucket: usize| Some((bucket, buckets[bucket].find(tag)?));
        find(candidates[0]).or_else(|| find(candidates[1]))
    }

    fn room(&mut self, buckets: &mut [Bucket<WAYS>], flow: u64, now: Tick) -> Room {
        let (tag, candidates) = self.candidates(flow);
        let vacancy = |&bucket: &usize| Some((bucket, buckets[bucket].vacancy()?));
        let mut room = candidates.iter().find_map(vacancy);
        if room.is_none() {
            let start = candidates[usize::from(self.random.coin())];
            room = self.kick(buckets, start).map(|way| (start, way));
        }
        let is_vacant = room.is_some();
        let (bucket, way) = room.unwrap_or_else(|| {
            let way = buckets[candidates[0]].longest_idle(now, |_| true);
            (candidates[0], way.expect("it is full"))
        });
        Room {
            bucket,
            way,
            tag,
            is_vacant,
        }
    }
}

impl TwoBuckets {
    /// The other bucket of an entry with that tag.
    #[inline]
    fn other(&self, bucket: usize, tag: u32) -> usize {
        let buckets = self.buckets;
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
        let first = bucket_of(flow, self.buckets);
        (tag, [first, self.other(first, tag)])
    }

    /// Moves an entry of a full bucket to its other bucket, and others before it so that
    /// it can. Returns the entry that became vacant.
    fn kick<const WAYS: usize>(
        &mut self,
        buckets: &mut [Bucket<WAYS>],
        start: usize,
    ) -> Option<usize> {
        let mut chain = [(0, 0); MOST_KICKS];
        let mut bucket = start;
        for kicks in 0..self.kicks {
            let way = self.random.below(WAYS);
            if chain[..kicks].contains(&(bucket, way)) {
                return None;
            }
            chain[kicks] = (bucket, way);
            let next = self.other(bucket, buckets[bucket].tags[way]);
            if let Some(vacancy) = buckets[next].vacancy() {
                let mut to = (next, vacancy);
                for &from in chain[..=kicks].iter().rev() {
                    let entry = buckets[from.0].entry(from.1);
                    buckets[to.0].put(to.1, entry);
                    to = from;
                }
                return Some(to.1);
            }
            bucket = next;
        }
        None
    }
}
