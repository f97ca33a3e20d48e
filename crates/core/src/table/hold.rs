//! How often a table's sides may change places, and the only clock that the
//! library reads: the writer's, and only where there is a hold.

use std::time::{Duration, Instant};

/// A time that must pass from one publishing to the next.
pub(super) struct Hold {
    hold: Duration,
    /// When it began: at the last publishing, or when it was set. Absent where
    /// there never was one.
    begun: Option<Instant>,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
}

impl Default for Hold {
    /// None.
    fn default() -> Hold {
        Hold {
            hold: Duration::ZERO,
            begun: None,
            clock: Box::new(Instant::now),
        }
    }
}

impl Hold {
    pub(super) fn get(&self) -> Duration {
        self.hold
    }

    pub(super) fn set(&mut self, hold: Duration) {
        self.hold = hold;
        self.begin();
    }

    pub(super) fn set_clock(&mut self, clock: Box<dyn Fn() -> Instant + Send + Sync>) {
        self.clock = clock;
        self.begin();
    }

    /// Something was published.
    pub(super) fn begin(&mut self) {
        if !self.hold.is_zero() {
            self.begun = Some((self.clock)());
        }
    }

    /// How long ago that was.
    pub(super) fn passed(&self) -> Duration {
        self.begun.map_or(Duration::MAX, |begun| {
            (self.clock)().saturating_duration_since(begun)
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.hold.is_zero() || self.passed() >= self.hold
    }
}
