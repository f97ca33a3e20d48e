//! Stopping a running switch.

use std::sync::Arc;

use tokio::sync::Notify;

/// Stops a running switch, from any thread.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// Stops the switch. It sends what its queues hold, closes its connections, and ends.
    pub fn stop(&self) {
        self.0.notify_one();
    }

    /// Waits until the switch is stopped.
    pub(crate) async fn stopped(&self) {
        self.0.notified().await;
    }
}
