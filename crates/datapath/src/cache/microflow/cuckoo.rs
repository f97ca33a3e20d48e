//! `cuckoo`: CuckooFlow, a cache of active flows with cuckoo hashing.
//!
//! # Idea
//! Like `wef`, the cache holds flows that are active now (see `activity`), but with
//! another hashing: a flow may be in two buckets, anywhere in the cache. If both buckets
//! of a new flow are full, an entry moves to its other bucket, which may make another
//! entry move.
//!
//! # Data layout
//! ```text
//! bucket a          bucket b = (h(signature) − a) mod n      4 entries each (see `timed`)
//! tag               signature (30 bits) ‖ 1
//! ```
//! Each of the two buckets follows from the other bucket and the signature, so an entry
//! can move although its full hash is not stored.
//!
//! # Lookup
//! ```text
//! a ← bucket(flow), b ← other(a, signature)
//! for bucket in a, b: entry with the tag: its time ← now, return its megaflow
//! ```
//!
//! # Insertion of an active flow
//! ```text
//! if a or b has a vacancy: the flow goes there
//! else, starting at a or b at random, at most `kicks` times:
//!     choose an entry of the bucket at random
//!     if its other bucket has a vacancy: all chosen entries move, the last one first;
//!         the flow gets the place of the first one
//! else the flow replaces the longest idle entry of a
//! ```
//!
//! # Cost
//! A lookup reads up to 2 distant buckets of 48 bytes; 12 bytes per flow, and 8 bytes for
//! each latest packet that is recorded.
//!
//! # Where we differ from the paper, and why
//! [FTS25] describes CuckooFlow in only one paragraph. Buckets, signatures, timeouts, the
//! search before any move and the choice of the evicted entry are as in `wef`, so that
//! only the hashing differs. A chain of moves ends if it reaches an entry twice.
//!
//! # References
//! [FTS25] §2 and §6.2, of Xiong et al., CuckooFlow, ISPA 2019.
//!
//! [FTS25]: classyard::papers#fts25

use super::active::{ActiveFlows, Hashing, MAX_KICKS, Room};
use super::random::{Random, bucket_of, mixed, scaled};
use super::timed::{Bucket, Mark, Tick, signature};

/// CuckooFlow's cache. Buckets have `WAYS` entries.
pub type Cuckoo<const WAYS: usize = 4> = ActiveFlows<WAYS, TwoBuckets>;

/// A flow is in one of two buckets, anywhere in the cache.
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
    /// Returns the other bucket of an entry with a tag.
    #[inline]
    fn other(&self, bucket: usize, tag: u32) -> usize {
        let buckets = self.buckets;
        let sum = scaled(mixed(u64::from(tag)) >> 32, buckets);
        match sum >= bucket {
            true => sum - bucket,
            false => sum + buckets - bucket,
        }
    }

    /// Returns the tag of a flow and its two buckets.
    #[inline]
    fn candidates(&self, flow: u64) -> (u32, [usize; 2]) {
        let tag = signature(flow) | HELD;
        let first = bucket_of(flow, self.buckets);
        (tag, [first, self.other(first, tag)])
    }

    /// Moves an entry of a full bucket to its other bucket, after moving further entries
    /// to make room there. Returns the entry that became vacant.
    fn kick<const WAYS: usize>(
        &mut self,
        buckets: &mut [Bucket<WAYS>],
        start: usize,
    ) -> Option<usize> {
        let mut chain = [(0, 0); MAX_KICKS];
        let mut bucket = start;
        for kicks in 0..self.kicks {
            let way = self.random.below(WAYS);
            if chain[..kicks].contains(&(bucket, way)) {
                return None;
            }
            chain[kicks] = (bucket, way);
            let next = self.other(bucket, buckets[bucket].tags[way]);
            if let Some(vacancy) = buckets[next].vacancy() {
                let mut target = (next, vacancy);
                for &from in chain[..=kicks].iter().rev() {
                    let entry = buckets[from.0].entry(from.1);
                    buckets[target.0].put(target.1, entry);
                    target = from;
                }
                return Some(target.1);
            }
            bucket = next;
        }
        None
    }
}
