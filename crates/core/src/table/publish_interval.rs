//! The publish interval of a table. The caller sets the time; the library reads no
//! clock.

use std::time::Duration;

/// The least time from one publication to the next, and the current time.
#[derive(Default)]
pub(super) struct PublishInterval {
    /// Zero means no interval.
    interval: Duration,
    /// The latest time that the caller set.
    now: Duration,
    /// The beginning of the interval: the last publication, or the call that set the
    /// interval. Not used without an interval.
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

    /// Sets the current time. An earlier time than before is ignored.
    pub(super) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Begins a new interval, after a publication.
    pub(super) fn begin(&mut self) {
        self.begun = self.now;
    }

    /// The time since the interval began.
    pub(super) fn passed(&self) -> Duration {
        self.now - self.begun
    }

    /// True if the interval is over, or there is no interval.
    pub(super) fn is_over(&self) -> bool {
        self.passed() >= self.interval
    }
}
