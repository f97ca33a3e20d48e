//! Caches of active flows: the common part of `wef` and `cuckoo`. They differ in the
//! buckets that a flow may be in, which their [`Hashing`] determines.
//!
//! [FTS25]: classyard::papers#fts25

use super::activity::Activity;
use super::latest::{Latest, Recorded};
use super::timed::{Bucket, Entry, Scan, Tick};
use super::{MegaflowId, MicroflowCache, Usage};

/// Settings of a cache of active flows.
#[derive(Clone, Debug)]
pub struct ActiveConfig {
    /// The maximum number of flows; rounded down to whole buckets, at least one bucket.
    pub flows: usize,
    /// A flow is active if one of its packets comes at most this time after the flow's
    /// previous packet, in nanoseconds. With `None`, the threshold adapts to the traffic, so
    /// that the active flows just fill the cache.
    pub threshold_ns: Option<u64>,
    /// A flow that is idle for more than this time is removed, in nanoseconds.
    pub timeout_ns: u64,
    /// The maximum number of flows that are moved to insert one, at most 32.
    pub kicks: usize,
    /// The number of latest packets that are recorded, to find active flows. Rounded down to
    /// a multiple of eight, at least eight.
    pub latest: usize,
    /// The objects whose latest packets are recorded.
    pub recorded: Recorded,
}

/// The number of latest packets that are recorded for each flow of the cache, so that flows with
/// one packet do not displace the flows that are about to be active. Measured in
/// `bench/records/constants.md` (Microflow caches: thresholds).
const LATEST_PER_FLOW: usize = 4;

/// The bound of that number, for caches of fewer flows. It is 8 MiB.
const MAX_LATEST: usize = 1 << 20;

impl ActiveConfig {
    /// Returns settings for `flows` flows; otherwise as in the paper: a tuned threshold,
    /// timeouts of 10 s, and the latest packet of each flow.
    #[must_use]
    pub fn new(flows: usize) -> ActiveConfig {
        ActiveConfig {
            flows,
            threshold_ns: None,
            timeout_ns: 10_000_000_000,
            kicks: 8,
            latest: (LATEST_PER_FLOW * flows).clamp(64, MAX_LATEST.max(flows)),
            recorded: Recorded::Flows,
        }
    }
}

/// The largest possible value of `kicks`. It bounds the work of an insertion, and its array
/// of chosen entries.
pub(crate) const MAX_KICKS: usize = 32;

/// The entry for a new flow.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub(super) bucket: usize,
    pub(super) way: usize,
    pub(super) tag: u32,
    /// True if no other flow is evicted.
    pub(super) is_vacant: bool,
}

/// The buckets that a flow may be in, and the method to make room in them.
pub trait Hashing<const WAYS: usize> {
    /// Returns a hashing over `buckets` buckets that moves at most `kicks` flows to
    /// insert one.
    fn new(buckets: usize, kicks: usize, seed: u64) -> Self;

    /// Returns the bucket and entry of a flow, or `None` if the flow is not in the cache.
    fn place(&self, buckets: &[Bucket<WAYS>], flow: u64) -> Option<(usize, usize)>;

    /// Returns the entry for a flow that is not in the cache. May move other flows.
    fn room(&mut self, buckets: &mut [Bucket<WAYS>], flow: u64, now: Tick) -> Room;
}

/// A cache of active flows, in buckets of `WAYS` entries.
#[derive(Clone, Debug)]
pub struct ActiveFlows<const WAYS: usize, H> {
    buckets: Box<[Bucket<WAYS>]>,
    hashing: H,
    activity: Activity,
    scan: Scan,
    used: usize,
    admitted: u64,
    evicted: u64,
}

impl<const WAYS: usize, H: Hashing<WAYS>> ActiveFlows<WAYS, H> {
    /// Returns an empty cache.
    #[must_use]
    pub fn new(config: &ActiveConfig, seed: u64) -> ActiveFlows<WAYS, H> {
        let buckets = (config.flows / WAYS).max(1);
        ActiveFlows {
            buckets: vec![Bucket::EMPTY; buckets].into_boxed_slice(),
            hashing: H::new(buckets, config.kicks.min(MAX_KICKS), seed),
            activity: Activity::new(
                Latest::new(config.recorded, config.latest, seed.rotate_left(32)),
                config.threshold_ns,
                config.flows,
            ),
            scan: Scan::new(config.timeout_ns),
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }

    /// Returns the threshold of packet inter-arrival times, in nanoseconds.
    #[must_use]
    pub fn threshold_ns(&self) -> u64 {
        self.activity.threshold_ns()
    }

    /// Inserts an active flow that is not in the cache.
    fn insert(&mut self, flow: u64, megaflow: MegaflowId, now: Tick) {
        let room = self.hashing.room(&mut self.buckets, flow, now);
        let bucket = &mut self.buckets[room.bucket];
        let idle = now.since(bucket.times[room.way]);
        let entry = Entry {
            tag: room.tag,
            megaflow,
            time: now,
        };
        bucket.put(room.way, entry);
        self.admitted += 1;
        match room.is_vacant {
            true => self.used += 1,
            false => self.evicted += 1,
        }
        self.activity.admitted((!room.is_vacant).then_some(idle));
    }

    fn expire(&mut self, now: Tick) {
        let expired = self.scan.step(&mut self.buckets, now);
        self.used -= expired;
        self.evicted += expired as u64;
    }
}

impl<const WAYS: usize, H> MicroflowCache for ActiveFlows<WAYS, H>
where
    H: Hashing<WAYS> + std::fmt::Debug + Send,
{
    fn look_up(&mut self, flows: &[u64], now: u64, found: &mut [MegaflowId]) {
        let tick = Tick::at(now);
        self.expire(tick);
        for (&flow, found) in flows.iter().zip(found) {
            *found = match self.hashing.place(&self.buckets, flow) {
                Some((bucket, way)) => {
                    let bucket = &mut self.buckets[bucket];
                    bucket.times[way] = tick;
                    bucket.megaflows[way]
                }
                None => MegaflowId::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, megaflow: MegaflowId, now: u64) -> bool {
        if !megaflow.is_some() {
            return false;
        }
        let tick = Tick::at(now);
        self.expire(tick);
        let is_active = self.activity.note(flow, megaflow, tick);
        if let Some((bucket, way)) = self.hashing.place(&self.buckets, flow) {
            self.buckets[bucket].megaflows[way] = megaflow;
            return false;
        }
        if is_active {
            self.insert(flow, megaflow, tick);
        }
        is_active
    }

    fn forget(&mut self, flow: u64, wrong: MegaflowId) {
        if let Some((bucket, way)) = self.hashing.place(&self.buckets, flow)
            && self.buckets[bucket].megaflows[way] == wrong
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
