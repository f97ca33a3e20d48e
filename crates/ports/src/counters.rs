//! Counts of a queue. The worker that owns the queue writes them, other threads read them.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a queue at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames that the device dropped since the queue did not take them in time.
    pub missed: u64,
    /// Frames that were dropped since they are longer than a queue takes, or cut off.
    pub received_too_long: u64,
    /// Frames that were dropped since the work left on them does not fit their headers.
    pub received_invalid: u64,
    /// Packets that were dropped since the queue or the device had no room.
    pub no_room: u64,
    /// Packets that were dropped since they are longer than the device takes.
    pub sent_too_long: u64,
    /// Packets that the device refused to send.
    pub refused: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        impl AddAssign for QueueCounts {
            fn add_assign(&mut self, other: QueueCounts) {
                $(self.$name = self.$name.wrapping_add(other.$name);)*
            }
        }

        /// Counts of a queue, for its worker to write and for other threads to read.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($name: AtomicU64,)*
        }

        impl Counters {
            /// Adds counts. Only the worker that owns the queue adds.
            pub fn add(&self, counts: &QueueCounts) {
                $(if counts.$name > 0 {
                    let sum = self.$name.load(Ordering::Relaxed).wrapping_add(counts.$name);
                    self.$name.store(sum, Ordering::Relaxed);
                })*
            }

            /// Returns the present counts.
            #[must_use]
            pub fn read(&self) -> QueueCounts {
                QueueCounts {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

counters!(
    received_packets,
    received_bytes,
    sent_packets,
    sent_bytes,
    missed,
    received_too_long,
    received_invalid,
    no_room,
    sent_too_long,
    refused,
);
