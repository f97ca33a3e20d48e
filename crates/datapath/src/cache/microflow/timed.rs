//! Buckets whose entries store the time of the flow's last packet, for the caches of
//! [FTS25].
//!
//! ```text
//! one bucket, WAYS = 4, 48 bytes
//! │ tags      4 × u32 │ signature (30 bits) ‖ mark (2 bits); mark 0: vacant        │
//! │ megaflows 4 × u32 │                                                            │
//! │ times     4 × u32 │ the flow's latest packet, in ticks of 65.5 µs              │
//! ```
//! Each cache defines the meaning of the mark: `wef` stores offsets.
//!
//! [FTS25]: classyard::papers#fts25

use super::MegaflowId;
use super::random::low;

/// A time in ticks of 2¹⁶ ns. It wraps around after 78 hours: an entry of that age looks
/// young, and expires a little later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick(u32);

impl Tick {
    pub(super) const ZERO: Tick = Tick(0);

    const NS_SHIFT: u32 = 16;

    #[inline]
    pub(super) fn at(nanoseconds: u64) -> Tick {
        Tick(low(nanoseconds >> Tick::NS_SHIFT))
    }

    /// Returns the ticks since an earlier time.
    #[inline]
    pub(super) fn since(self, earlier: Tick) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns a duration in ticks, rounded up.
    pub(super) fn length(nanoseconds: u64) -> u32 {
        let ticks = nanoseconds.div_ceil(1 << Tick::NS_SHIFT);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }
}

/// The mark of a tag: 1, 2 or 3. A vacant entry has tag 0.
pub(super) type Mark = u32;

/// Returns the signature of a flow: 30 bits, at their position in a tag.
#[inline]
pub(super) fn signature(flow: u64) -> u32 {
    low(flow) << 2
}

/// A bucket.
#[derive(Clone, Debug)]
pub struct Bucket<const WAYS: usize> {
    pub(super) tags: [u32; WAYS],
    pub(super) megaflows: [MegaflowId; WAYS],
    pub(super) times: [Tick; WAYS],
}

/// The contents of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) tag: u32,
    pub(super) megaflow: MegaflowId,
    pub(super) time: Tick,
}

impl<const WAYS: usize> Bucket<WAYS> {
    pub(super) const EMPTY: Bucket<WAYS> = Bucket {
        tags: [0; WAYS],
        megaflows: [MegaflowId::NONE; WAYS],
        times: [Tick(0); WAYS],
    };

    /// Returns the entry with a tag.
    #[inline]
    pub(super) fn find(&self, tag: u32) -> Option<usize> {
        // Compares all entries without branches; the last match is returned.
        let mut matching = WAYS;
        for (way, &held) in self.tags.iter().enumerate() {
            matching = if held == tag { way } else { matching };
        }
        (matching < WAYS).then_some(matching)
    }

    #[inline]
    pub(super) fn vacancy(&self) -> Option<usize> {
        self.find(0)
    }

    /// Returns the entry that was idle longest, among the entries whose tags are
    /// `wanted`.
    #[inline]
    pub(super) fn longest_idle(&self, now: Tick, wanted: impl Fn(u32) -> bool) -> Option<usize> {
        let ways = (0..WAYS).filter(|&way| wanted(self.tags[way]));
        ways.max_by_key(|&way| now.since(self.times[way]))
    }

    #[inline]
    pub(super) fn entry(&self, way: usize) -> Entry {
        Entry {
            tag: self.tags[way],
            megaflow: self.megaflows[way],
            time: self.times[way],
        }
    }

    #[inline]
    pub(super) fn put(&mut self, way: usize, entry: Entry) {
        self.tags[way] = entry.tag;
        self.megaflows[way] = entry.megaflow;
        self.times[way] = entry.time;
    }

    #[inline]
    pub(super) fn clear(&mut self, way: usize) {
        self.tags[way] = 0;
        self.megaflows[way] = MegaflowId::NONE;
    }
}

/// Scans all buckets once per timeout, a few at a time.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// An entry that is idle for more than this number of ticks has expired.
    timeout: u32,
    /// The next bucket to scan.
    next: usize,
    /// The time up to which buckets have been scanned.
    scanned_at: Tick,
}

/// The maximum number of buckets scanned by one call. It bounds the work of a call after a
/// long pause.
const MAX_SCAN_BUCKETS: u64 = 64;

impl Scan {
    pub(super) fn new(timeout_ns: u64) -> Scan {
        Scan {
            timeout: Tick::length(timeout_ns),
            next: 0,
            scanned_at: Tick(0),
        }
    }

    /// True if an entry with this time has expired.
    #[inline]
    fn is_over(&self, time: Tick, now: Tick) -> bool {
        now.since(time) > self.timeout
    }

    /// Empties the expired entries of the buckets that are due. Returns their number.
    #[inline]
    pub(super) fn step<const WAYS: usize>(
        &mut self,
        buckets: &mut [Bucket<WAYS>],
        now: Tick,
    ) -> usize {
        let elapsed = u64::from(now.since(self.scanned_at));
        let due = elapsed * buckets.len() as u64 / u64::from(self.timeout.max(1));
        if due == 0 {
            return 0;
        }
        self.scanned_at = now;
        let mut expired = 0;
        for _ in 0..due.min(MAX_SCAN_BUCKETS).min(buckets.len() as u64) {
            let bucket = &mut buckets[self.next];
            for way in 0..WAYS {
                if bucket.tags[way] != 0 && self.is_over(bucket.times[way], now) {
                    bucket.clear(way);
                    expired += 1;
                }
            }
            self.next = match self.next + 1 {
                end if end == buckets.len() => 0,
                next => next,
            };
        }
        expired
    }
}
