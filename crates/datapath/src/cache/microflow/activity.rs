//! Which flows are active, as [FTS25] §4.2.2 defines it, for the caches that admit these
//! only.
//!
//! # Idea
//! Packets of a flow come in batches. A flow is *active* when its packet comes soon after
//! its previous one: the packet inter-arrival time (PIT) is at most a threshold. Keeping
//! the previous packet of every flow would be a table as large as the traffic. So it is
//! kept for each decision, for the latest of its flows: two packets of a flow with
//! another one of the same decision between them do not count as successive.
//!
//! ```text
//! latest │ flow 0 │ flow 1 │ …          flow: low 32 bits of its hash; time in ticks
//!        │ time 0 │ time 1 │            8 bytes per slot, a slot by the hash of a decision
//! ```
//! Note(flow, decision, now):
//! ```text
//! slot   ← latest[hash(decision)]
//! active ← slot.flow = flow and now − slot.time ≤ threshold        Alg. 1, line 22
//! slot   ← (flow, now)                                             Alg. 1, line 17
//! ```
//! # The threshold
//! Unless it is fixed, it follows the cache: when many admissions give up a flow that is
//! still active, as it was idle for less than the threshold, there are more active flows
//! than room, and the threshold falls; when few do, it rises.
//!
//! # Where we differ from the paper, and why
//! Alg. 1 stores the packet (line 17) before it compares with the previous one (line
//! 22); the comparison has to be first. Hits are not noted: it would be a second random
//! access for every packet, and a hit's flow is in the cache anyway. Decisions that share
//! a slot count as one.
//!
//! # References
//! [FTS25] §4.2.2, Alg. 1.
//!
//! [FTS25]: classyard::papers#fts25

use super::Decision;
use super::random::{low, mixed, scaled};
use super::timed::Tick;

#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    flow: u32,
    time: Tick,
}

/// Tells active flows from others.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    latest: Box<[Latest]>,
    /// In ticks.
    threshold: u32,
    tuning: Option<Tuning>,
}

/// What was seen since the threshold changed.
#[derive(Clone, Debug)]
struct Tuning {
    /// Offers until the next change.
    period: u32,
    offers: u32,
    admitted: u32,
    /// Of these, those that replaced an active flow.
    replaced: u32,
}

/// What is tuned first: the paper's 256 ms.
pub(super) const FIRST_THRESHOLD: u64 = 256_000_000;

/// The threshold stays within these, in ticks: 1 ms and 10 s, the timeout of the paper's
/// flow entries.
const LEAST: u32 = 16;
const MOST: u32 = 152_588;

impl Activity {
    /// With so many slots for decisions, and a threshold in nanoseconds or one that is
    /// tuned for a cache of so many flows.
    pub(super) fn new(slots: usize, threshold_ns: Option<u64>, flows: usize) -> Activity {
        let period = u32::try_from(flows / 4).unwrap_or(u32::MAX).max(64);
        let tuning = Tuning {
            period,
            offers: 0,
            admitted: 0,
            replaced: 0,
        };
        Activity {
            latest: vec![Latest::default(); slots.max(1)].into_boxed_slice(),
            threshold: Tick::length(threshold_ns.unwrap_or(FIRST_THRESHOLD)),
            tuning: threshold_ns.is_none().then_some(tuning),
        }
    }

    /// Notes a packet that was not found, and says whether its flow is active.
    #[inline]
    pub(super) fn note(&mut self, flow: u64, decision: Decision, now: Tick) -> bool {
        let slot = scaled(mixed(u64::from(decision.number())) >> 32, self.latest.len());
        let slot = &mut self.latest[slot];
        // A slot that was not used looks like a packet of flow 0 at time 0. At worst one
        // flow is taken in a packet early.
        let flow = low(flow);
        let is_active = slot.flow == flow && now.since(slot.time) <= self.threshold;
        *slot = Latest { flow, time: now };
        if let Some(tuning) = &mut self.tuning {
            tuning.offers += 1;
            if tuning.offers >= tuning.period {
                self.threshold = tuning.next(self.threshold);
            }
        }
        is_active
    }

    /// A flow was admitted, and maybe another one given up for it, which was idle for so
    /// many ticks.
    #[inline]
    pub(super) fn admitted(&mut self, replaced_idle: Option<u32>) {
        if let Some(tuning) = &mut self.tuning {
            tuning.admitted += 1;
            let was_active = replaced_idle.is_some_and(|idle| idle <= self.threshold);
            tuning.replaced += u32::from(was_active);
        }
    }

    /// The threshold in nanoseconds.
    pub(super) fn threshold_ns(&self) -> u64 {
        u64::from(self.threshold) << 16
    }

    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.latest)
    }
}

impl Tuning {
    /// The threshold after a period, by an eighth more or less.
    fn next(&mut self, threshold: u32) -> u32 {
        let step = threshold / 8 + 1;
        let next = if self.replaced * 4 > self.admitted {
            threshold.saturating_sub(step)
        } else if self.replaced * 16 <= self.admitted {
            threshold.saturating_add(step)
        } else {
            threshold
        };
        (self.offers, self.admitted, self.replaced) = (0, 0, 0);
        next.clamp(LEAST, MOST)
    }
}
