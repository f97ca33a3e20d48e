//! A reference interpreter of an OpenFlow 1.3.5 switch: packets in, packets out,
//! counters, timeouts, errors. It is written from the text of the specification and of
//! docs/datapath.md, obvious and slow.
//!
//! It shares no logic with `classyard-datapath`, only the plain data that messages
//! consist of. So where both agree, two readings of the text agree; [`equivalence`]
//! compares them packet by packet.
//!
//! | module | what it has |
//! |---|---|
//! | `fields` | what OpenFlow says of each field |
//! | `frame` | from the bytes of a frame to the fields that it has |
//! | `packet` | a packet on its way |
//! | `rewrite`, `sums` | actions that change a packet, and its checksums |
//! | `matching` | matches: packets, other matches, what may be |
//! | `actions` | checks of actions, and the order of action sets |
//! | `state` | all that a switch knows |
//! | `flows`, `groups`, `meters` | messages about each of these |
//! | `switch` | bundles, timeouts, and the way of a packet |
//! | [`equivalence`] | random worlds, through the datapath and the reference |

#![forbid(unsafe_code)]

mod actions;
pub mod equivalence;
mod fields;
mod flows;
mod frame;
mod groups;
mod matching;
mod meters;
mod packet;
mod rewrite;
mod state;
mod sums;
mod switch;

pub use matching::check as check_match;
pub use packet::Packet;
pub use state::{Counted, CountedGroup, CountedMeter};
pub use switch::{Event, Reference};
