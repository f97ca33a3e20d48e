//! Caches of active flows: what `wef` and `cuckoo` have in common. They differ in where a
//! flow may be, which is their [`Hashing`].
//!
//! [FTS25]: classyard::papers#fts25

use super::activity::Activity;
use super::timed::{Bucket, Entry, Scan, Tick};
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

/// Where a new flow goes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub(super) bucket: usize,
    pub(super) way: usize,
    pub(super) tag: u32,
    /// No other flow is given up for it.
    pub(super) is_vacant: bool,
}

/// In which buckets a flow may be, and how room is made for one.
pub trait Hashing<const WAYS: usize> {
    /// For so many buckets, with at most so many flows moved for one.
    fn new(buckets: usize, kicks: usize, seed: u64) -> Self;

    /// Where a flow is: bucket and entry.
    fn place(&self, buckets: &[Bucket<WAYS>], flow: u64) -> Option<(usize, usize)>;

    /// Where a flow goes that is not there. Others may have been moved for it.
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
    /// An empty cache.
    #[must_use]
    pub fn new(config: &ActiveConfig, seed: u64) -> ActiveFlows<WAYS, H> {
        let buckets = (config.flows / WAYS).max(1);
        ActiveFlows {
            buckets: vec![Bucket::EMPTY; buckets].into_boxed_slice(),
            hashing: H::new(buckets, config.kicks.min(MOST_KICKS), seed),
            activity: Activity::new(config.latest, config.threshold_ns, config.flows),
            scan: Scan::new(config.timeout_ns),
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

    /// Puts an active flow into the cache, which does not have it.
    fn insert(&mut self, flow: u64, decision: Decision, now: Tick) {
        let room = self.hashing.room(&mut self.buckets, flow, now);
        let bucket = &mut self.buckets[room.bucket];
        let idle = now.since(bucket.times[room.way]);
        let entry = Entry {
            tag: room.tag,
            decision,
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
    fn look_up(&mut self, flows: &[u64], now: u64, found: &mut [Decision]) {
        let now = Tick::at(now);
        self.expire(now);
        for (&flow, found) in flows.iter().zip(found) {
            *found = match self.hashing.place(&self.buckets, flow) {
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
        if let Some((bucket, way)) = self.hashing.place(&self.buckets, flow) {
            self.buckets[bucket].decisions[way] = decision;
        } else if is_active {
            self.insert(flow, decision, now);
        }
    }

    fn forget(&mut self, flow: u64, wrong: Decision) {
        if let Some((bucket, way)) = self.hashing.place(&self.buckets, flow)
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
