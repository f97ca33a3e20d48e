//! A reference interpreter of an OpenFlow 1.3.5 switch: packets in, packets out,
//! counters, timeouts, errors. It is written from the text of the specification and of
//! docs/datapath.md, as simply as possible and slow.
//!
//! It shares no logic with `classyard-datapath`, only the plain data of messages. So if
//! their results agree, two independent readings of the text agree; [`equivalence`]
//! compares them packet by packet.
//!
//! | module | content |
//! |---|---|
//! | `fields` | OpenFlow's properties of each field |
//! | `frame` | parses the bytes of a frame into its fields |
//! | `packet` | a packet in the pipeline |
//! | `rewrite`, `sums` | actions that change a packet, and its checksums |
//! | `matching` | matches: against packets, against other matches, and their validity |
//! | `actions` | checks of actions, and the order of action sets |
//! | `metering` | the metering of packets |
//! | `state` | the complete state of a switch |
//! | `flows`, `groups`, `meters` | messages about flow entries, groups and meters |
//! | `switch` | bundles, timeouts, and the processing of a packet |
//! | [`equivalence`] | random traffic through the datapath and the reference |

#![forbid(unsafe_code)]

mod actions;
pub mod equivalence;
mod fields;
mod flows;
mod frame;
mod groups;
mod matching;
mod metering;
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
