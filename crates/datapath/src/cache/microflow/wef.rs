//! `wef`: the well-exploited flow cache.
//!
//! # Idea
//! The cache holds flows that are active now instead of the latest flows: it admits a
//! flow if a packet comes soon after the flow's previous packet (see `activity`). To use
//! all of the room, a flow may be in three buckets: its own and the two neighbours. If
//! all three are full, flows are moved outwards, bucket by bucket, to make room.
//!
//! # Data layout
//! ```text
//! bucket      b−1            b             b+1           4 entries each (see `timed`)
//!         │ · · x −1 │ │ x 0 · · · │ │ x +1 · · · │      offset: bucket − own bucket
//! tag         signature (30 bits) ‖ offset (2 bits): 1 = 0, 2 = +1, 3 = −1
//! ```
//! The tag stores the position of the entry's own bucket. So an entry can move although
//! its full hash is not stored, and flows of neighbouring buckets with the same signature
//! are distinguished.
//!
//! # Lookup
//! ```text
//! b ← bucket(flow)
//! for (bucket, offset) in (b, 0), (b+1, +1), (b−1, −1):
//!     entry with tag signature ‖ offset: its time ← now, return its megaflow
//! ```
//!
//! # Insertion of an active flow
//! ```text
//! if b, b+1 or b−1 has a vacancy, in this order: the flow goes there
//! else d ← +1 or −1 at random; from b+d outwards, at most `kicks` times:
//!     choose the longest idle entry of the bucket with offset −d, or else with offset 0
//!     if the next bucket in direction d has a vacancy:
//!         all chosen entries move by d; the flow gets the place of the first one
//! else the flow replaces the longest idle entry of b
//! ```
//! An entry with offset −d returns to its own bucket when it moves by d.
//!
//! # Cost
//! A lookup reads up to 3 adjacent buckets of 48 bytes; 12 bytes per flow, and 8 bytes
//! for each latest packet that is recorded.
//!
//! # Where we differ from the paper, and why
//! The chain of moves is searched before anything moves, so no flow is lost if the chain
//! ends without a vacancy. If one direction has no vacancy, the other is tried. The
//! longest idle entry is searched in the flow's own bucket (§4.2.2). The paper gives no
//! timeout for the cache; the default is 10 s, as for its flow entries.
//!
//! # References
//! [FTS25] §4.2, Figs. 4–6, Alg. 1.
//!
//! [FTS25]: classyard::papers#fts25

use super::active::{ActiveFlows, Hashing, MAX_KICKS, Room};
use super::random::{Random, bucket_of};
use super::timed::{Bucket, Mark, Tick, signature};

/// The well-exploited flow cache. Buckets have `WAYS` entries.
pub type Wef<const WAYS: usize = 4> = ActiveFlows<WAYS, Neighbours>;

/// A flow is in its own bucket or in a neighbouring one.
#[derive(Clone, Debug)]
pub struct Neighbours {
    kicks: usize,
    random: Random,
}

/// Marks of tags: the offset from the flow's own bucket to the entry's bucket.
const OWN: Mark = 1;
const ABOVE: Mark = 2;
const BELOW: Mark = 3;
const MARK_MASK: u32 = 3;

/// A direction along the buckets.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    /// Returns the mark of entries whose bucket is one off in this direction.
    fn mark(self) -> Mark {
        match self {
            Direction::Up => ABOVE,
            Direction::Down => BELOW,
        }
    }

    fn other(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }

    /// Returns the neighbour of a bucket. The first and the last bucket are neighbours.
    #[inline]
    fn next(self, bucket: usize, buckets: usize) -> usize {
        match self {
            Direction::Up if bucket + 1 == buckets => 0,
            Direction::Up => bucket + 1,
            Direction::Down if bucket == 0 => buckets - 1,
            Direction::Down => bucket - 1,
        }
    }
}

impl<const WAYS: usize> Hashing<WAYS> for Neighbours {
    fn new(buckets: usize, kicks: usize, seed: u64) -> Neighbours {
        Neighbours {
            // A chain of moves must not return to its start.
            kicks: kicks.min(buckets.saturating_sub(2)),
            random: Random::new(seed),
        }
    }

    #[inline]
    fn place(&self, buckets: &[Bucket<WAYS>], flow: u64) -> Option<(usize, usize)> {
        let signature = signature(flow);
        let own_bucket = bucket_of(flow, buckets.len());
        if let Some(way) = buckets[own_bucket].find(signature | OWN) {
            return Some((own_bucket, way));
        }
        for direction in [Direction::Up, Direction::Down] {
            let bucket = direction.next(own_bucket, buckets.len());
            if let Some(way) = buckets[bucket].find(signature | direction.mark()) {
                return Some((bucket, way));
            }
        }
        None
    }

    fn room(&mut self, buckets: &mut [Bucket<WAYS>], flow: u64, now: Tick) -> Room {
        let own_bucket = bucket_of(flow, buckets.len());
        let room = |bucket, way, mark, is_vacant| Room {
            bucket,
            way,
            tag: signature(flow) | mark,
            is_vacant,
        };
        if let Some(way) = buckets[own_bucket].vacancy() {
            return room(own_bucket, way, OWN, true);
        }
        if let Some((bucket, way, direction)) = self.room_beside(buckets, own_bucket, now) {
            return room(bucket, way, direction.mark(), true);
        }
        let way = buckets[own_bucket].longest_idle(now, |_| true);
        room(own_bucket, way.expect("it is full"), OWN, false)
    }
}

impl Neighbours {
    /// Returns a vacancy in a neighbour of a bucket, moving flows if necessary.
    fn room_beside<const WAYS: usize>(
        &mut self,
        buckets: &mut [Bucket<WAYS>],
        own: usize,
        now: Tick,
    ) -> Option<(usize, usize, Direction)> {
        for direction in [Direction::Up, Direction::Down] {
            let bucket = direction.next(own, buckets.len());
            if let Some(way) = buckets[bucket].vacancy() {
                return Some((bucket, way, direction));
            }
        }
        let first = match self.random.coin() {
            true => Direction::Up,
            false => Direction::Down,
        };
        for direction in [first, first.other()] {
            let bucket = direction.next(own, buckets.len());
            if let Some(way) = self.kick(buckets, bucket, direction, now) {
                return Some((bucket, way, direction));
            }
        }
        None
    }

    /// Moves an entry of a full bucket in a direction, after moving further entries to
    /// make room there. Returns the entry that became vacant.
    fn kick<const WAYS: usize>(
        &self,
        buckets: &mut [Bucket<WAYS>],
        from: usize,
        direction: Direction,
        now: Tick,
    ) -> Option<usize> {
        let mut chosen = [0; MAX_KICKS];
        let mut bucket = from;
        for kicks in 0..self.kicks {
            // Prefers an entry that returns to its own bucket over an entry that leaves it.
            let held = &buckets[bucket];
            let returns = direction.other().mark();
            let way = held
                .longest_idle(now, |tag| tag & MARK_MASK == returns)
                .or_else(|| held.longest_idle(now, |tag| tag & MARK_MASK == OWN))?;
            chosen[kicks] = way;
            let next = direction.next(bucket, buckets.len());
            if let Some(vacancy) = buckets[next].vacancy() {
                move_along(buckets, (next, vacancy), &chosen[..=kicks], direction);
                return Some(chosen[0]);
            }
            bucket = next;
        }
        None
    }
}

/// Moves the chosen entries of successive buckets by one bucket into a vacancy, the last
/// one first.
fn move_along<const WAYS: usize>(
    buckets: &mut [Bucket<WAYS>],
    (bucket, vacancy): (usize, usize),
    chosen: &[usize],
    direction: Direction,
) {
    let (mut to, mut to_way) = (bucket, vacancy);
    for &way in chosen.iter().rev() {
        let source = direction.other().next(to, buckets.len());
        let mut entry = buckets[source].entry(way);
        entry.tag = match entry.tag & MARK_MASK {
            OWN => entry.tag & !MARK_MASK | direction.mark(),
            _ => entry.tag & !MARK_MASK | OWN,
        };
        buckets[to].put(to_way, entry);
        (to, to_way) = (source, way);
    }
}
