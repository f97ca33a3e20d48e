//! Warnings about connections that could not be made, at most one for each pause.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::sleep;

/// The least time between two warnings. Anybody who reaches a listening address can cause
/// failures, so a warning for each would let strangers fill the log.
const WARNING_PAUSE: Duration = Duration::from_secs(1);

/// Failed connections of a listening address.
#[derive(Default)]
pub(super) struct Refusals {
    /// True for [`WARNING_PAUSE`] after a warning.
    pausing: Cell<bool>,
    /// The failures since the last warning.
    unreported: Cell<usize>,
}

impl Refusals {
    /// Warns of a failure, or counts it for the warning at the end of the pause.
    pub(super) fn add(self: &Rc<Self>, peer: &str, reason: &str) {
        if !self.begins_pause() {
            tracing::debug!(peer, "no TLS connection: {reason}");
            return;
        }
        tracing::warn!(peer, "no TLS connection: {reason}");
        let refusals = Rc::clone(self);
        spawn_local(async move {
            loop {
                sleep(WARNING_PAUSE).await;
                let Some(failures) = refusals.end_pause() else {
                    return;
                };
                let seconds = WARNING_PAUSE.as_secs();
                tracing::warn!("{failures} more TLS connections failed within {seconds} s");
            }
        });
    }

    /// Counts a failure; returns true if it is the first after a pause, and begins another.
    fn begins_pause(&self) -> bool {
        let is_first = !self.pausing.replace(true);
        self.unreported
            .set(self.unreported.get() + usize::from(!is_first));
        is_first
    }

    /// Returns the number of failures in a pause, after which another begins, or `None` if
    /// there were none.
    fn end_pause(&self) -> Option<usize> {
        let failures = self.unreported.take();
        self.pausing.set(failures > 0);
        (failures > 0).then_some(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_a_pause_are_reported_together() {
        let refusals = Refusals::default();
        let warnings_of =
            |failures: usize| (0..failures).filter(|_| refusals.begins_pause()).count();
        assert_eq!(warnings_of(1), 1);
        assert_eq!(refusals.end_pause(), None);
        assert_eq!(warnings_of(1000), 1);
        assert_eq!(refusals.end_pause(), Some(999));
        assert_eq!(warnings_of(3), 0, "a report begins a pause");
        assert_eq!(refusals.end_pause(), Some(3));
        assert_eq!(refusals.end_pause(), None);
        assert_eq!(warnings_of(2), 1);
    }
}
