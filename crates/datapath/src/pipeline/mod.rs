//! A pipeline of flow tables: what becomes of packets (OpenFlow 1.3.5 §5.1).
//!
//! # A vector's way
//! Packets come in vectors. All of them are looked up in table 0 together, those that
//! an entry sends on in the next table that has any, and so on: tables only lead to
//! later ones, so one pass over them is enough.
//! ```text
//! for each table, in order, that packets are to go to:
//!     winners = the table's, for all of these packets together
//!     for each packet: count, and carry the winner's instructions out
//!         meter:  may drop it               write:  into its action set
//!         apply:  actions, at once          goto:   the packet waits for that table
//!                                           else:   its action set is carried out
//! ```
//! A packet that no entry of a table matches is dropped: an entry of priority 0 that
//! matches everything, the table-miss entry, says otherwise.
//!
//! # Changes
//! ```text
//! messages ─▶ stores ─▶ changes ─▶ log ─▶ side A ◀─ workers
//!             refuse                 └──▶ side B
//! ```
//! A message changes the stores of entries, groups, meters and ports; what it changed
//! there is made on two sides, one after the other, each of which has all that packets
//! are processed by ([`classyard::table`]). Workers are in one side for the length of
//! a vector. A bundle of messages is made as a whole or not at all.
//!
//! | module | what it has |
//! |---|---|
//! | `message` | messages, and the changes that they make |
//! | `stores` | what the pipeline was told |
//! | `side` | what packets are processed by |
//! | `live` | the pipeline that changes, and its workers |
//! | `process`, `actions` | vectors of packets, and what is done with each of them |
//! | `caching`, `cache_settings`, `cache_status`, `judge` | flow caches before the tables, and when they are asked |
//! | `learn` | from packets in the tables to paths |
//! | `program` | what is done with packets on a path |
//! | `choice`, `liveness` | the buckets of groups that packets go to |
//! | `settings` | how a pipeline is kept |
//! | `limiter` | meters at work |
//! | `tally`, `path_counts` | counters |
//! | `expiry` | entries whose time is over |
//! | `ports` | what is known of ports |
//! | `features` | what a table can do |
//! | `trace` | one packet's story |
//! | `observer` | who watches packets on their way |

mod actions;
mod cache_settings;
mod cache_status;
mod caching;
mod choice;
mod expiry;
mod features;
mod judge;
mod learn;
mod limiter;
mod live;
mod liveness;
mod message;
mod observer;
mod path_counts;
mod ports;
mod process;
mod program;
mod settings;
mod side;
mod stores;
mod tally;
mod trace;

pub use crate::cache::finder::Finder;
pub use crate::cache::microflow::{KINDS, Kind};
pub use cache_settings::{CacheSettings, CacheSettingsError, Clock};
pub use cache_status::{CacheAnswer, CacheStatus, Megaflow};
pub use choice::FlowHash;
pub use features::TableFeatures;
pub use live::{Pipeline, Planner, RemovedFlow, Worker};
pub use message::{Change, GroupSlots, Message, MeterSlots};
pub use observer::{Node, Observer};
pub use ports::{PortState, Ports};
pub use process::{Discard, PacketInReason, Sink};
pub use settings::PipelineSettings;
pub use side::Plan;
pub use tally::{Count, GroupCount, MeterCount, TableCount};
pub use trace::{Difference, FieldChange, Lookup, NearMiss, Step, Story};
