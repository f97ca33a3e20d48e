//! `adaptive`: buckets of one cache line; the traffic selects the admission policy.
//!
//! # Idea
//! A lookup reads one cache line and compares its ten signatures together. Each entry has
//! two bits for *re-reference interval prediction*: after a hit, the flow's next packet
//! is predicted to come soon; for a new entry, it is predicted to come late. So
//! one-packet flows in a flood replace each other, and not the flows in use.
//!
//! If floods still cost too much, flows can be admitted only at their second packet. If
//! flows come in short batches, this costs one hit per batch. The cache measures which
//! policy is better: a few buckets always use one policy, equally many the other, and the
//! remaining buckets follow the policy with fewer misses (*set dueling*).
//!
//! # Data layout
//! ```text
//! bucket, 64 bytes, one cache line
//! │ signatures 10 × u16 │ state u32 │ megaflows 10 × u32 │
//! state:     │ bits 0..20: 10 predictions of 2 bits │ bits 20..30: entry is occupied │
//! prediction: 0 soon … 3 late; an entry with 3 may be evicted
//! seen:      │ u8 │ u8 │ …  one per flow of the capacity: identifies the last flow that missed
//! ```
//!
//! # Lookup
//! ```text
//! ways ← signatures = signature, as bits, and occupied
//! none: miss; else its prediction ← 0, return its megaflow
//! ```
//!
//! # Insertion
//! ```text
//! a vacant entry takes the flow, else
//! the bucket admits at the second packet, and seen[hash] is not this flow:
//!     seen[hash] ← this flow
//! else the flow replaces the first entry with prediction 3; if there is none, all
//!     predictions are incremented until there is one
//! a new entry has prediction 2
//! ```
//!
//! A lookup reads 1 cache line, and writes it if the prediction changes; 7.4 bytes per
//! flow. Signatures have 16 bits: one in 6,500 lookups of a flow that is not cached
//! returns another flow's megaflow, which the caller detects.
//!
//! # References
//! A. Jaleel et al.: High performance cache replacement using re-reference interval
//! prediction (RRIP). ISCA 2010 (static RRIP, 2 bits). M. Qureshi et al.: Adaptive
//! insertion policies for high performance caching. ISCA 2007 (set dueling). Admission at
//! the second sight: G. Einziger, R. Friedman, B. Manes: TinyLFU. ACM Transactions on
//! Storage 13 (4), 2017 (the doorkeeper).

use super::random::{bucket_of, low, scaled};
use super::{MegaflowId, MicroflowCache, Usage};

/// The entries of a bucket: as many as fit into a cache line with the state.
const LINE_WAYS: usize = 10;

/// The lowest bit of each prediction.
const PREDICTION_LOW_BITS: u32 = 0x5_5555;

/// All bits of the predictions.
const PREDICTION_BITS: u32 = (1 << (2 * LINE_WAYS)) - 1;

/// The prediction of a new entry: late, unless the flow comes again. As in static RRIP with
/// 2 bits (see References).
const NEW_PREDICTION: u32 = 2;

/// One bucket in this number always admits at the first packet, and one at the second.
/// Measured in `bench/records/constants.md` (Microflow caches).
const LEADER_INTERVAL: usize = 32;

/// The bound on the absolute value of `balance`. Measured in `bench/records/constants.md`
/// (Microflow caches).
const MAX_BALANCE: i32 = 1_024;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Line {
    signatures: [u16; LINE_WAYS],
    state: u32,
    megaflows: [MegaflowId; LINE_WAYS],
}

const _: () = assert!(std::mem::size_of::<Line>() == 64);

const EMPTY: Line = Line {
    signatures: [0; LINE_WAYS],
    state: 0,
    megaflows: [MegaflowId::NONE; LINE_WAYS],
};

impl Line {
    /// Returns the entry with a signature.
    #[inline]
    fn find(&self, signature: u16) -> Option<usize> {
        let mut ways = 0_u32;
        for (way, &held) in self.signatures.iter().enumerate() {
            ways |= u32::from(held == signature) << way;
        }
        let ways = ways & self.occupied();
        (ways != 0).then(|| first(ways))
    }

    /// Returns the occupied entries, as bits.
    #[inline]
    fn occupied(&self) -> u32 {
        self.state >> (2 * LINE_WAYS)
    }

    fn vacancy(&self) -> Option<usize> {
        let vacant = !self.occupied() & ((1 << LINE_WAYS) - 1);
        (vacant != 0).then(|| first(vacant))
    }

    #[inline]
    fn predict(&mut self, way: usize, prediction: u32) {
        let shift = 2 * way;
        self.state = self.state & !(3 << shift) | prediction << shift;
    }

    /// Returns the entry to evict from a full bucket.
    fn victim(&mut self) -> usize {
        loop {
            let late = self.state & (self.state >> 1) & PREDICTION_LOW_BITS;
            if late != 0 {
                return first(late) / 2;
            }
            // No prediction is 3, so none overflows into the next.
            debug_assert!(
                self.state & PREDICTION_BITS & (self.state >> 1) & PREDICTION_LOW_BITS == 0
            );
            self.state += PREDICTION_LOW_BITS;
        }
    }

    fn put(&mut self, way: usize, signature: u16, megaflow: MegaflowId) {
        self.signatures[way] = signature;
        self.megaflows[way] = megaflow;
        self.state |= 1 << (2 * LINE_WAYS + way);
        self.predict(way, NEW_PREDICTION);
    }
}

/// Returns the index of the lowest set bit.
#[inline]
fn first(bits: u32) -> usize {
    bits.trailing_zeros() as usize
}

/// Returns the signature of a flow: the low 16 bits of its hash.
#[inline]
fn signature(flow: u64) -> u16 {
    #[allow(clippy::cast_possible_truncation)] // only the low bits
    let signature = flow as u16;
    signature
}

/// A cache that adapts its admission.
#[derive(Clone, Debug)]
pub struct Adaptive {
    lines: Box<[Line]>,
    seen: Box<[u8]>,
    /// Misses of buckets that admit at the first packet, minus misses of buckets that
    /// admit at the second.
    balance: i32,
    used: usize,
    admitted: u64,
    evicted: u64,
}

/// The admission policy of a bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    First,
    Second,
    Follow,
}

impl Adaptive {
    /// Returns an empty cache of at most `flows` flows, rounded down to whole buckets of
    /// 10, but at least one bucket.
    #[must_use]
    pub fn new(flows: usize) -> Adaptive {
        let buckets = (flows / LINE_WAYS).max(1);
        Adaptive {
            lines: vec![EMPTY; buckets].into_boxed_slice(),
            seen: vec![0; buckets * LINE_WAYS].into_boxed_slice(),
            balance: 0,
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }

    fn admission(&self, bucket: usize) -> Admission {
        let among = LEADER_INTERVAL.min(self.lines.len());
        match bucket % among {
            0 => Admission::First,
            place if place == among / 2 => Admission::Second,
            _ => Admission::Follow,
        }
    }

    /// True if a full bucket admits a flow that was not found.
    fn admits(&mut self, flow: u64, bucket: usize) -> bool {
        let admission = self.admission(bucket);
        match admission {
            Admission::First => self.balance = (self.balance + 1).min(MAX_BALANCE),
            Admission::Second => self.balance = (self.balance - 1).max(-MAX_BALANCE),
            Admission::Follow => {}
        }
        let at_first =
            admission == Admission::First || admission == Admission::Follow && self.balance <= 0;
        if at_first {
            return true;
        }
        let slot = scaled(u64::from(low(flow >> 16)), self.seen.len());
        let slot = &mut self.seen[slot];
        // Uses another byte than the choice of the slot.
        let [mark, ..] = flow.to_le_bytes();
        std::mem::replace(slot, mark) == mark
    }
}

impl MicroflowCache for Adaptive {
    fn look_up(&mut self, flows: &[u64], _now: u64, found: &mut [MegaflowId]) {
        for (&flow, found) in flows.iter().zip(found) {
            let bucket = bucket_of(flow, self.lines.len());
            let line = &mut self.lines[bucket];
            *found = match line.find(signature(flow)) {
                Some(way) => {
                    line.predict(way, 0);
                    line.megaflows[way]
                }
                None => MegaflowId::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, megaflow: MegaflowId, _now: u64) -> bool {
        if !megaflow.is_some() {
            return false;
        }
        let bucket = bucket_of(flow, self.lines.len());
        let line = &mut self.lines[bucket];
        if let Some(way) = line.find(signature(flow)) {
            line.megaflows[way] = megaflow;
            return false;
        }
        let way = if let Some(vacant) = line.vacancy() {
            self.used += 1;
            vacant
        } else if self.admits(flow, bucket) {
            self.evicted += 1;
            self.lines[bucket].victim()
        } else {
            return false;
        };
        self.admitted += 1;
        self.lines[bucket].put(way, signature(flow), megaflow);
        false
    }

    fn forget(&mut self, flow: u64, wrong: MegaflowId) {
        let bucket = bucket_of(flow, self.lines.len());
        let line = &mut self.lines[bucket];
        if let Some(way) = line.find(signature(flow))
            && line.megaflows[way] == wrong
        {
            line.state &= !(1 << (2 * LINE_WAYS + way));
            line.megaflows[way] = MegaflowId::NONE;
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        let bytes = std::mem::size_of_val(&*self.lines) + std::mem::size_of_val(&*self.seen);
        Usage {
            capacity: self.lines.len() * LINE_WAYS,
            used: self.used,
            bytes,
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
