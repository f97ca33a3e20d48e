//! The time since the switch started.

use std::time::{Duration, Instant};

/// The clock that all threads of a switch share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Duration {
        self.start.elapsed()
    }
}
