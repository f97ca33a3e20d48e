//! How often a table's sides may swap. The writer is told the time; the library
//! reads no clock.

use std::time::Duration;

/// The least time from one publication to the next, and the time now.
#[derive(Default)]
pub(super) struct PublishInterval {
    /// Zero for none.
    interval: Duration,
    /// The latest time that the caller told.
    now: Duration,
    /// When the interval began: at the last publication, or when it was set.
    /// Only ever used where there is an interval.
    begun: Duration,
}

impl PublishInterval {
    pub(super) fn get(&self) -> Duration {
        self.interval
    }

    pub(super) fn set(&mut self, interval: Duration) {
        self.interval = interval;
        self.begin();
    }

    /// It is this time now. Time never goes back.
    pub(super) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Something was published.
    pub(super) fn begin(&mut self) {
        self.begun = self.now;
    }

    /// How long ago that was.
    pub(super) fn passed(&self) -> Duration {
        self.now - self.begun
    }

    /// Whether the interval is over, or there is none.
    pub(super) fn is_over(&self) -> bool {
        self.passed() >= self.interval
    }
}
