//! Counts of a worker. The worker writes them, the agent reads them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a worker at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerCounts {
    /// Vectors of packets.
    pub(crate) vectors: u64,
    /// Packets received.
    pub(crate) packets: u64,
    /// Times that the worker slept.
    pub(crate) sleeps: u64,
    /// Time with packets and commands, in nanoseconds.
    pub(crate) busy_ns: u64,
    /// Packets of controllers that were carried out.
    pub(crate) jobs: u64,
    /// Packets of controllers with actions that could not be carried out any more.
    pub(crate) refused_jobs: u64,
    /// Packets sent to a port that the worker does not have.
    pub(crate) no_port: u64,
    /// Packets for controllers that were dropped, since too many of the same port were waiting.
    pub(crate) controller_full: u64,
    /// Captured frames that were dropped, since too many were waiting.
    pub(crate) capture_full: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counts for one thread to write and for others to read.
        #[derive(Debug, Default)]
        pub(crate) struct WorkerCounters {
            $(pub(crate) $name: Counter,)*
        }

        impl WorkerCounters {
            pub(crate) fn read(&self) -> WorkerCounts {
                WorkerCounts {
                    $($name: self.$name.0.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

counters!(
    vectors,
    packets,
    sleeps,
    busy_ns,
    jobs,
    refused_jobs,
    no_port,
    controller_full,
    capture_full,
);

/// A number that one thread increases.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(count);
        self.0.store(sum, Ordering::Relaxed);
    }
}
