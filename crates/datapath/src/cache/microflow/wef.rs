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

use super::activity::Activity;
use super::random::{Random, bucket_of};
use super::timed::{Bucket, Entry, Mark, Scan, Tick, signature};
use super::{Decision, MicroflowCache, Usage};

/// What a cache of active flows is made with.
#[derive(Clone, Debug)]
pub struct ActiveConfig {
    /// The most flows; rounded down to whole buckets, at least one bucket.
    pub flows: usize,
    /// A flow is active when its packet comes at most that long after its previous one,
    /// in nanoseconds. `None`: tuned, so that the cache is just full.
    pub threshold_ns: Option<u64>,
    /// A flow that is idle for longer is removed, in nanoseconds.
    pub timeout_ns: u64,
    /// The most flows that are moved for one, at most 32.
    pub kicks: usize,
    /// Decisions whose latest flow is known.
    pub latest: usize,
}

impl ActiveConfig {
    /// For so many flows, otherwise as in the paper: a tuned threshold, timeouts of 10 s.
    #[must_use]
    pub fn new(flows: usize) -> ActiveConfig {
        ActiveConfig {
            flows,
            threshold_ns: None,
            timeout_ns: 10_000_000_000,
            kicks: 8,
            latest: (4 * flows).clamp(64, 1 << 20),
        }
    }
}

/// The most kicks of a configuration.
pub(super) const MOST_KICKS: usize = 32;

/// The well-exploited flow cache. Buckets have `WAYS` entries.
#[derive(Clone, Debug)]
pub struct Wef<const WAYS: usize = 4> {
    buckets: Box<[Bucket<WAYS>]>,
    activity: Activity,
    scan: Scan,
    kicks: usize,
    random: Random,
    used: usize,
    admitted: u64,
    evicted: u64,
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

impl<const WAYS: usize> Wef<WAYS> {
    /// An empty cache.
    #[must_use]
    pub fn new(config: &ActiveConfig, seed: u64) -> Wef<WAYS> {
        let buckets = (config.flows / WAYS).max(1);
        Wef {
            buckets: vec![Bucket::EMPTY; buckets].into_boxed_slice(),
            activity: Activity::new(config.latest, config.threshold_ns, config.flows),
            scan: Scan::new(config.timeout_ns),
            // A chain of moves does not come back to where it began.
            kicks: config.kicks.min(MOST_KICKS).min(buckets.saturating_sub(2)),
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

    /// Where a flow is: bucket and entry.
    #[inline]
    fn place(&self, flow: u64) -> Option<(usize, usize)> {
        let signature = signature(flow);
        let own = bucket_of(flow, self.buckets.len());
        if let Some(way) = self.buckets[own].find(signature | OWN) {
            return Some((own, way));
        }
        for direction in [Direction::Up, Direction::Down] {
            let bucket = direction.next(own, self.buckets.len());
            if let Some(way) = self.buckets[bucket].find(signature | direction.mark()) {
                return Some((bucket, way));
            }
        }
        None
    }

    /// Puts an active flow into the cache, which does not have it.
    fn insert(&mut self, flow: u64, decision: Decision, now: Tick) {
        let own = bucket_of(flow, self.buckets.len());
        let entry = |mark| Entry {
            tag: signature(flow) | mark,
            decision,
            time: now,
        };
        self.admitted += 1;
        if let Some(way) = self.buckets[own].vacancy() {
            self.buckets[own].put(way, entry(OWN));
        } else if let Some((bucket, way, direction)) = self.room_beside(own, now) {
            self.buckets[bucket].put(way, entry(direction.mark()));
        } else {
            let bucket = &mut self.buckets[own];
            let way = bucket.longest_idle(now, |_| true).expect("it is full");
            let idle = now.since(bucket.times[way]);
            bucket.put(way, entry(OWN));
            self.evicted += 1;
            self.activity.admitted(Some(idle));
            return;
        }
        self.used += 1;
        self.activity.admitted(None);
    }

    /// A vacancy in a neighbour of a bucket, made by moving flows if need be.
    fn room_beside(&mut self, own: usize, now: Tick) -> Option<(usize, usize, Direction)> {
        for direction in [Direction::Up, Direction::Down] {
            let bucket = direction.next(own, self.buckets.len());
            if let Some(way) = self.buckets[bucket].vacancy() {
                return Some((bucket, way, direction));
            }
        }
        let first = match self.random.coin() {
            true => Direction::Up,
            false => Direction::Down,
        };
        for direction in [first, first.other()] {
            let bucket = direction.next(own, self.buckets.len());
            if let Some(way) = self.kick(bucket, direction, now) {
                return Some((bucket, way, direction));
            }
        }
        None
    }

    /// Moves an entry of a full bucket on in a direction, and others before it so that it
    /// can. Returns the entry that became vacant.
    fn kick(&mut self, from: usize, direction: Direction, now: Tick) -> Option<usize> {
        let mut chosen = [0; MOST_KICKS];
        let mut bucket = from;
        for kicks in 0..self.kicks {
            // It returns to its own bucket, or else leaves it.
            let held = &self.buckets[bucket];
            let returns = direction.other().mark();
            let way = held
                .longest_idle(now, |tag| tag & MARK == returns)
                .or_else(|| held.longest_idle(now, |tag| tag & MARK == OWN))?;
            chosen[kicks] = way;
            let next = direction.next(bucket, self.buckets.len());
            if let Some(vacancy) = self.buckets[next].vacancy() {
                self.move_along(next, vacancy, &chosen[..=kicks], direction);
                return Some(chosen[0]);
            }
            bucket = next;
        }
        None
    }

    /// Moves the chosen entries of successive buckets on by one, the last one first, into
    /// a vacancy.
    fn move_along(
        &mut self,
        bucket: usize,
        vacancy: usize,
        chosen: &[usize],
        direction: Direction,
    ) {
        let (mut to, mut to_way) = (bucket, vacancy);
        for &way in chosen.iter().rev() {
            let from = direction.other().next(to, self.buckets.len());
            let mut entry = self.buckets[from].entry(way);
            entry.tag = match entry.tag & MARK {
                OWN => entry.tag & !MARK | direction.mark(),
                _ => entry.tag & !MARK | OWN,
            };
            self.buckets[to].put(to_way, entry);
            (to, to_way) = (from, way);
        }
    }

    fn expire(&mut self, now: Tick) {
        let expired = self.scan.step(&mut self.buckets, now);
        self.used -= expired;
        self.evicted += expired as u64;
    }
}

impl<const WAYS: usize> MicroflowCache for Wef<WAYS> {
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
