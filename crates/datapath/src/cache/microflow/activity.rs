//! Detection of active flows as in [FTS25] §4.2.2, for caches that admit only active
//! flows.
//!
//! # Idea
//! Packets of a flow come in batches. A flow is *active* if a packet comes soon after the
//! flow's previous packet: the packet inter-arrival time (PIT) is at most a threshold. A
//! table of bounded size has the times of the latest packets of flows (see `latest`).
//!
//! Note(flow, megaflow, now):
//! ```text
//! idle   ← now − time of the flow's previous packet, if the table has it
//! time of the flow's previous packet ← now
//! active ← idle ≤ threshold
//! ```
//! # The threshold
//! Unless the threshold is fixed, it adapts to the cache. If many admissions evict a flow
//! that is still active (idle for less than the threshold), there are more active flows
//! than room, and the threshold falls. If few do, it rises.
//!
//! # Where we differ from the paper, and why
//! Alg. 1 stores the latest packet of each flow entry, so it only finds flows that send two
//! successive packets of their entry. The text (§4.2.2) measures the time since the previous
//! packet of the same flow, and so do we. `Recorded::Decisions` is the algorithm to the
//! letter, except that we compare a packet with the previous one (line 22) before we store it
//! (line 17), not after.
//!
//! Hits are not recorded: that would need a second random memory access for every packet,
//! and a hit's flow is already cached. So a flow that was evicted is admitted again after
//! two packets.
//!
//! # References
//! [FTS25] §4.2.2, Alg. 1.
//!
//! [FTS25]: classyard::papers#fts25

use super::MegaflowId;
use super::latest::Latest;
use super::timed::Tick;

/// Distinguishes active flows from others.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    latest: Latest,
    /// The threshold in ticks.
    threshold: u32,
    tuning: Option<Tuning>,
}

/// Counts since the last change of the threshold.
#[derive(Clone, Debug)]
struct Tuning {
    /// The number of offers between two changes.
    period: u32,
    offers: u32,
    admitted: u32,
    /// The number of admitted flows that replaced an active flow.
    replaced: u32,
}

/// The first value of a tuned threshold: the paper's 256 ms ([FTS25] §6.2).
pub(super) const FIRST_THRESHOLD: u64 = 256_000_000;

/// Bounds of the threshold in ticks: 1 ms, and 10 s as the timeout of the paper's flow
/// entries ([FTS25] §6.1). Measured in `bench/records/constants.md` (Microflow caches:
/// thresholds).
const MIN_THRESHOLD_TICKS: u32 = 16;
const MAX_THRESHOLD_TICKS: u32 = 152_588;

impl Activity {
    /// Returns a detector with a table of latest packets. The threshold is `threshold_ns`,
    /// or is tuned for a cache of `flows` flows.
    pub(super) fn new(latest: Latest, threshold_ns: Option<u64>, flows: usize) -> Activity {
        let period = u32::try_from(flows / 4).unwrap_or(u32::MAX).max(64);
        let tuning = Tuning {
            period,
            offers: 0,
            admitted: 0,
            replaced: 0,
        };
        Activity {
            latest,
            threshold: Tick::length(threshold_ns.unwrap_or(FIRST_THRESHOLD)),
            tuning: threshold_ns.is_none().then_some(tuning),
        }
    }

    /// Records a packet of a flow that was not found. Returns true if the flow is active.
    #[inline]
    pub(super) fn note(&mut self, flow: u64, megaflow: MegaflowId, now: Tick) -> bool {
        let threshold = self.threshold;
        let idle = self.latest.replace(flow, megaflow, now, threshold);
        if let Some(tuning) = &mut self.tuning {
            tuning.offers += 1;
            if tuning.offers >= tuning.period {
                self.threshold = tuning.next(self.threshold);
            }
        }
        idle.is_some_and(|idle| idle <= threshold)
    }

    /// Records an admitted flow. `replaced_idle` is the idle time in ticks of the flow
    /// that it replaced, if any.
    #[inline]
    pub(super) fn admitted(&mut self, replaced_idle: Option<u32>) {
        if let Some(tuning) = &mut self.tuning {
            tuning.admitted += 1;
            let was_active = replaced_idle.is_some_and(|idle| idle <= self.threshold);
            tuning.replaced += u32::from(was_active);
        }
    }

    /// Returns the threshold in nanoseconds.
    pub(super) fn threshold_ns(&self) -> u64 {
        u64::from(self.threshold) << 16
    }

    pub(super) fn bytes(&self) -> usize {
        self.latest.bytes()
    }
}

impl Tuning {
    /// Returns the threshold after a period: an eighth more or less, or unchanged.
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
        next.clamp(MIN_THRESHOLD_TICKS, MAX_THRESHOLD_TICKS)
    }
}
