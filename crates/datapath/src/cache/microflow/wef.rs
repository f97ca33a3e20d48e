//! `wef`: the well-exploited flow cache.
//!
//! # Idea
//! The cache holds flows that are active now, rather than those that came last: a flow is
//! taken in when its packet comes soon after its previous one (see `activity`). To use
//! all of its room, a flow may be in three buckets, its own and both neighbours; a full
//! neighbourhood makes room by moving flows outwards, bucket by bucket.
//!
//! # Data layout
//! ```text
//! bucket      b−1            b             b+1           4 entries each (see `timed`)
//!         │ · · x −1 │ │ x 0 · · · │ │ x +1 · · · │      offset: bucket − own bucket
//! tag         signature (30 bits) ‖ offset (2 bits): 1 = 0, 2 = +1, 3 = −1
//! ```
//! The tag says where the entry's own bucket is, so that an entry can move without its
//! hash, and a flow of a neighbouring bucket with the same signature is not mistaken.
//!
//! # Lookup
//! ```text
//! b ← bucket(flow)
//! for (bucket, offset) in (b, 0), (b+1, +1), (b−1, −1):
//!     entry with tag signature ‖ offset: its time ← now, return its decision
//! ```
//!
//! # Insertion of an active flow
//! ```text
//! a vacancy in b, b+1 or b−1, in this order: the flow goes there
//! else d ← +1 or −1 at random; from b+d outwards, at most `kicks` times:
//!     choose an entry of the bucket with offset −d, else 0; the longest idle of these
//!     if the next bucket in direction d has a vacancy:
//!         all chosen entries move on by d; the flow goes where the first one was
//! else the flow replaces the longest idle entry of b
//! ```
//! An entry with offset −d returns to its own bucket when it moves by d.
//!
//! # Cost
//! A lookup reads up to 3 adjacent buckets of 48 bytes; 12 bytes a flow, and 8 bytes for
//! each slot of the table of latest flows.
//!
//! # Where we differ from the paper, and why
//! The chain of moves is searched before anything moves: when it ends without a vacancy,
//! no flow in transit is lost. If one direction has no vacancy, the other is tried. The
//! entry with the longest idle time is searched in the flow's own bucket (§4.2.2). The
//! paper gives no timeout for the cache; the default is the 10 s of its flow entries.
//!
//! # References
//! [FTS25] §4.2, Figs. 4–6, Alg. 1.
//!
//! [FTS25]: classyard::papers#fts25

use super::active::{ActiveFlows, Hashing, MOST_KICKS, Room};
use super::random::{Random, bucket_of};
use super::timed::{Bucket, Mark, Tick, signature};

/// The well-exploited flow cache. Buckets have `WAYS` entries.
pub type Wef<const WAYS: usize = 4> = ActiveFlows<WAYS, Neighbours>;

/// A flow is in its own bucket or beside it.
#[derive(Clone, Debug)]
pub struct Neighbours {
    kicks: usize,
    random: Random,
}

/// Marks of tags: the offset of an entry's bucket from the flow's own one.
const OWN: Mark = 1;
const ABOVE: Mark = 2;
const BELOW: Mark = 3;
const MARK: u32 = 3;

/// A way along the buckets.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    /// The mark of entries that are one bucket off in this direction.
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

    /// The neighbour of a bucket; the first and the last one are neighbours.
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
            // A chain of moves does not come back to where it began.
            kicks: kicks.min(buckets.saturating_sub(2)),
            random: Random::new(seed),
        }
    }

    #[inline]
    fn place(&self, buckets: &[Bucket<WAYS>], flow: u64) -> Option<(usize, usize)> {
        let signature = signature(flow);
        let own = bucket_of(flow, buckets.len());
        if let Some(way) = buckets[own].find(signature | OWN) {
            return Some((own, way));
        }
        for direction in [Direction::Up, Direction::Down] {
            let bucket = direction.next(own, buckets.len());
            if let Some(way) = buckets[bucket].find(signature | direction.mark()) {
                return Some((bucket, way));
            }
        }
        None
    }

    fn room(&mut self, buckets: &mut [Bucket<WAYS>], flow: u64, now: Tick) -> Room {
        let own = bucket_of(flow, buckets.len());
        let room = |bucket, way, mark, is_vacant| Room {
            bucket,
            way,
            tag: signature(flow) | mark,
            is_vacant,
        };
        if let Some(way) = buckets[own].vacancy() {
            return room(own, way, OWN, true);
        }
        if let Some((bucket, way, direction)) = self.room_beside(buckets, own, now) {
            return room(bucket, way, direction.mark(), true);
        }
        let way = buckets[own].longest_idle(now, |_| true);
        room(own, way.expect("it is full"), OWN, false)
    }
}

impl Neighbours {
    /// A vacancy in a neighbour of a bucket, made by moving flows if need be.
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

    /// Moves an entry of a full bucket on in a direction, and others before it so that it
    /// can. Returns the entry that became vacant.
    fn kick<const WAYS: usize>(
        &self,
        buckets: &mut [Bucket<WAYS>],
        from: usize,
        direction: Direction,
        now: Tick,
    ) -> Option<usize> {
        let mut chosen = [0; MOST_KICKS];
        let mut bucket = from;
        for kicks in 0..self.kicks {
            // It returns to its own bucket, or else leaves it.
            let held = &buckets[bucket];
            let returns = direction.other().mark();
            let way = held
                .longest_idle(now, |tag| tag & MARK == returns)
                .or_else(|| held.longest_idle(now, |tag| tag & MARK == OWN))?;
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

/// Moves the chosen entries of successive buckets on by one, the last one first, into
/// a vacancy.
fn move_along<const WAYS: usize>(
    buckets: &mut [Bucket<WAYS>],
    (bucket, vacancy): (usize, usize),
    chosen: &[usize],
    direction: Direction,
) {
    let (mut to, mut to_way) = (bucket, vacancy);
    for &way in chosen.iter().rev() {
        let from = direction.other().next(to, buckets.len());
        let mut entry = buckets[from].entry(way);
        entry.tag = match entry.tag & MARK {
            OWN => entry.tag & !MARK | direction.mark(),
            _ => entry.tag & !MARK | OWN,
        };
        buckets[to].put(to_way, entry);
        (to, to_way) = (from, way);
    }
}
