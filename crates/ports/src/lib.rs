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
//! | `counters` | counts of packets, bytes and drops, which other threads read |
//! | `error` | reasons why a port cannot be opened |
//! | `ethernet` | the first headers of a frame |
//! | `link` | the link of a device |
//! | `queue` | the interface of queues |
//! | `software` | checksums and segments that the other end does not take |
//! | `virtio` | the header in front of frames on which work is left |
//! | `room` | the length of frames that an interface takes |
//! | `sys` | system calls |
//! | `kernel_interface` | settings and link of an interface of Linux |
//! | `outgoing` | frames that wait to be sent by a packet socket |
//! | `interface` | network interfaces, by packet sockets |
//! | `tap` | TAP devices |
//! | `capture` | files of captured packets |
//! | `memory` | ports in this process |
//! | `device` | devices of all kinds |

mod capture;
mod counters;
mod device;
mod error;
mod ethernet;
mod interface;
mod kernel_interface;
mod link;
mod memory;
mod outgoing;
mod queue;
mod room;
mod software;
mod sys;
mod tap;
mod virtio;

pub use counters::{Counters, QueueCounts};
pub use device::{Device, DeviceSettings, memory};
pub use error::OpenError;
pub use link::Link;
pub use memory::MemoryPeer;
pub use queue::{Queue, Sent};
pub use sys::event::Event;
pub use sys::netlink::LinkEvents;

/// The maximum number of queues of a port. Linux lets 256 sockets share an interface.
pub const MAX_QUEUES: usize = 256;

/// The longest frame that a queue receives, in bytes: the longest IPv4 packet in a frame with
/// two tags. Hosts leave frames of this length to be cut into segments.
const MAX_FRAME_BYTES: usize = 65_535 + 22;

/// The examples of `README.md` are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
