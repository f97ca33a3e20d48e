//! Ports of a switch: devices that receive and send frames.
//!
//! A device is opened with a number of queues ([`Device::open`]). Each worker of the switch owns a
//! queue of each port, so sending and receiving take no lock.
//!
//! ```text
//! device ─▶ Queue::receive ─▶ packets ─▶ worker ─▶ Queue::send ─▶ Queue::flush ─▶ device
//! ```
//! | module | contents |
//! |---|---|
//! | `queue` | the interface of queues |
//! | `counters` | counts of packets, bytes and drops, which other threads read |

mod counters;
mod queue;

pub use counters::{Counters, QueueCounts};
pub use queue::{Queue, Sent};
