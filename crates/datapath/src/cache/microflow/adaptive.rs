//! `adaptive`: buckets of one cache line, whose admission follows the traffic.
//!
//! # Idea
//! A lookup reads one cache line and compares its ten signatures at once. What stays in a
//! bucket is decided by two bits an entry, by *re-reference interval prediction*: a hit
//! says that the flow comes again soon, a new entry has to show it. So a flood of flows
//! with a packet each replaces one another, rather than flows that are in use.
//!
//! Where even that costs too much, flows are admitted at their second packet only; where
//! flows come in short batches, this costs a hit for each batch. Which of the two is
//! better is measured: a few buckets always do the one, as many always the other, and
//! the rest follows those that miss less (*set dueling*).
//!
//! # Data layout
//! ```text
//! bucket, 64 bytes, one cache line
//! │ signatures 10 × u16 │ state u32 │ decisions 10 × u32 │
//! state:     │ bits 0..20: 10 predictions of 2 bits │ bits 20..30: entry is occupied │
//! prediction: 0 soon … 3 late; an entry with 3 is given up
//! seen:      │ u8 │ u8 │ …  one for each flow of the capacity: which flow missed there last
//! ```
//!
//! # Lookup
//! ```text
//! ways ← signatures = signature, as bits, and occupied
//! none: miss; else its prediction ← 0, return its decision
//! ```
//!
//! # Insertion
//! ```text
//! a vacant entry takes the flow, else
//! the bucket admits at the second packet, and seen[hash] is not the flow's:
//!     seen[hash] ← the flow's
//! else the flow replaces the first entry with prediction 3; if there is none, all
//!     predictions grow until there is
//! a new entry has prediction 2
//! ```
//!
//! # Cost
//! A lookup reads 1 cache line and writes it when the prediction changes; 7.4 bytes a
//! flow. Signatures have 16 bits: one in 6,500 lookups of a flow that is not cached gives
//! another flow's decision, which the caller finds out.
//!
//! # References
//! A. Jaleel et al.: High performance cache replacement using re-reference interval
//! prediction (RRIP). ISCA 2010 (static RRIP, 2 bits). M. Qureshi et al.: Adaptive
//! insertion policies for high performance caching. ISCA 2007 (set dueling). Admission at
//! the second sight: G. Einziger, R. Friedman, B. Manes: TinyLFU. ACM Transactions on
//! Storage 13 (4), 2017 (the doorkeeper).

use super::random::{bucket_of, low, scaled};
use super::{Decision, MicroflowCache, Usage};

/// Entries of a bucket: as many as a cache line holds, with a state.
const WAYS: usize = 10;

/// The lowest bit of each prediction.
const ONES: u32 = 0x5_5555;

/// All bits of predictions.
const PREDICTIONS: u32 = (1 << (2 * WAYS)) - 1;

/// What a new entry's prediction is: late, unless it comes again.
const NEW: u32 = 2;

/// One bucket in so many always admits, and one never at first sight.
const LEADERS: usize = 32;

/// The balance of the duel stays within this.
const BALANCE: i32 = 1_024;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Line {
    signatures: [u16; WAYS],
    state: u32,
    decisions: [Decision; WAYS],
}

const _: () = assert!(std::mem::size_of::<Line>() == 64);

const EMPTY: Line = Line {
    signatures: [0; WAYS],
    state: 0,
    decisions: [Decision::NONE; WAYS],
};

impl Line {
    /// The entry with that signature.
    #[inline]
    fn find(&self, signature: u16) -> Option<usize> {
        let mut ways = 0_u32;
        for (way, &held) in self.signatures.iter().enumerate() {
            ways |= u32::from(held == signature) << way;
        }
        let ways = ways & self.occupied();
        (ways != 0).then(|| first(ways))
    }

    /// Which entries are occupied, as bits.
    #[inline]
    fn occupied(&self) -> u32 {
        self.state >> (2 * WAYS)
    }

    fn vacancy(&self) -> Option<usize> {
        let vacant = !self.occupied() & ((1 << WAYS) - 1);
        (vacant != 0).then(|| first(vacant))
    }

    #[inline]
    fn predict(&mut self, way: usize, prediction: u32) {
        let shift = 2 * way;
        self.state = self.state & !(3 << shift) | prediction << shift;
    }

    /// The entry to give up; the bucket is full.
    fn victim(&mut self) -> usize {
        loop {
            let late = self.state & (self.state >> 1) & ONES;
            if late != 0 {
                return first(late) / 2;
            }
            // No prediction is 3, so none overflows into the next one.
            debug_assert!(self.state & PREDICTIONS & (self.state >> 1) & ONES == 0);
            self.state += ONES;
        }
    }

    fn put(&mut self, way: usize, signature: u16, decision: Decision) {
        self.signatures[way] = signature;
        self.decisions[way] = decision;
        self.state |= 1 << (2 * WAYS + way);
        self.predict(way, NEW);
    }
}

/// The number of the lowest bit that is set.
#[inline]
fn first(bits: u32) -> usize {
    bits.trailing_zeros() as usize
}

/// The signature of a flow: the low 16 bits of its hash.
#[inline]
fn signature(flow: u64) -> u16 {
    #[allow(clippy::cast_possible_truncation)] // what it is for
    let signature = flow as u16;
    signature
}

/// A cache that adapts its admission.
#[derive(Clone, Debug)]
pub struct Adaptive {
    lines: Box<[Line]>,
    seen: Box<[u8]>,
    /// Misses of buckets that admit at first sight, less those of buckets that do not.
    balance: i32,
    used: usize,
    admitted: u64,
    evicted: u64,
}

/// When a bucket admits flows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    First,
    Second,
    Follow,
}

impl Adaptive {
    /// An empty cache of at most so many flows; rounded down to whole buckets of 10, at
    /// least one bucket.
    #[must_use]
    pub fn new(flows: usize) -> Adaptive {
        let buckets = (flows / WAYS).max(1);
        Adaptive {
            lines: vec![EMPTY; buckets].into_boxed_slice(),
            seen: vec![0; buckets * WAYS].into_boxed_slice(),
            balance: 0,
            used: 0,
            admitted: 0,
            evicted: 0,
        }
    }

    fn admission(&self, bucket: usize) -> Admission {
        let among = LEADERS.min(self.lines.len());
        match bucket % among {
            0 => Admission::First,
            place if place == among / 2 => Admission::Second,
            _ => Admission::Follow,
        }
    }

    /// Whether a full bucket admits a flow that was not found.
    fn admits(&mut self, flow: u64, bucket: usize) -> bool {
        let admission = self.admission(bucket);
        match admission {
            Admission::First => self.balance = (self.balance + 1).min(BALANCE),
            Admission::Second => self.balance = (self.balance - 1).max(-BALANCE),
            Admission::Follow => {}
        }
        let at_first =
            admission == Admission::First || admission == Admission::Follow && self.balance <= 0;
        if at_first {
            return true;
        }
        let slot = scaled(u64::from(low(flow >> 16)), self.seen.len());
        let slot = &mut self.seen[slot];
        // Another byte than those that chose the slot.
        let [mark, ..] = flow.to_le_bytes();
        std::mem::replace(slot, mark) == mark
    }
}

impl MicroflowCache for Adaptive {
    fn look_up(&mut self, flows: &[u64], _now: u64, found: &mut [Decision]) {
        for (&flow, found) in flows.iter().zip(found) {
            let bucket = bucket_of(flow, self.lines.len());
            let line = &mut self.lines[bucket];
            *found = match line.find(signature(flow)) {
                Some(way) => {
                    line.predict(way, 0);
                    line.decisions[way]
                }
                None => Decision::NONE,
            };
        }
    }

    fn offer(&mut self, flow: u64, decision: Decision, _now: u64) {
        if !decision.is_some() {
            return;
        }
        let bucket = bucket_of(flow, self.lines.len());
        let line = &mut self.lines[bucket];
        if let Some(way) = line.find(signature(flow)) {
            line.decisions[way] = decision;
            return;
        }
        let way = if let Some(vacant) = line.vacancy() {
            self.used += 1;
            vacant
        } else if self.admits(flow, bucket) {
            self.evicted += 1;
            self.lines[bucket].victim()
        } else {
            return;
        };
        self.admitted += 1;
        self.lines[bucket].put(way, signature(flow), decision);
    }

    fn forget(&mut self, flow: u64, wrong: Decision) {
        let bucket = bucket_of(flow, self.lines.len());
        let line = &mut self.lines[bucket];
        if let Some(way) = line.find(signature(flow))
            && line.decisions[way] == wrong
        {
            line.state &= !(1 << (2 * WAYS + way));
            line.decisions[way] = Decision::NONE;
            self.used -= 1;
        }
    }

    fn usage(&self) -> Usage {
        let bytes = std::mem::size_of_val(&*self.lines) + std::mem::size_of_val(&*self.seen);
        Usage {
            capacity: self.lines.len() * WAYS,
            used: self.used,
            bytes,
            admitted: self.admitted,
            evicted: self.evicted,
        }
    }
}
