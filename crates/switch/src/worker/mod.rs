//! Workers: threads that receive packets, process them and send them.
//!
//! ```text
//!             commands: ports, packets of controllers
//!   agent  ──────────────────────────────────────────▶  worker ──▶ its queue of each port
//!          ◀──────────────────────────────────────────
//!             reports: packets for controllers, ends of commands
//! ```
//! A worker owns one queue of each port, its flow caches and its counts. Commands and reports go
//! through rings of fixed length. A worker never waits for the agent: it drops a packet for a
//! controller if the ring is full, and counts it.
//!
//! | module | contents |
//! |---|---|
//! | `counters` | counts of a worker, which the agent reads |
//! | `channel` | commands and reports |
//! | `outputs` | the queues of all ports: where the pipeline sends packets |
//! | `sleeper` | sleeping until a frame or a command arrives |
//! | `thread` | the loop of a worker |

mod channel;
mod counters;
mod outputs;
mod sleeper;
mod thread;

pub(crate) use channel::{CapturedFrame, Command, Direction, PacketInReport, Report};
#[cfg(test)]
pub(crate) use channel::{MAX_PACKET_INS, MAX_REPORTS};
pub(crate) use counters::WorkerCounts;
pub(crate) use sleeper::Waker;
pub(crate) use thread::{WorkerHandle, WorkerParts};
