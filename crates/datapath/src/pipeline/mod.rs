//! A pipeline of flow tables that processes packets (OpenFlow 1.3.5 §5.1).
//!
//! # A vector's way
//! Packets arrive in vectors. Table 0 looks up all packets of a vector together. Entries
//! send packets to later tables, which look up their packets together as well. Tables lead
//! only to later tables, so one pass over the tables is enough.
//! ```text
//! for each table with waiting packets, in order:
//!     winners = the table's lookup of all these packets together
//!     for each packet: count, and carry out the winner's instructions
//!         meter:  may drop the packet       write:  adds to its action set
//!         apply:  carries out actions       goto:   the packet waits for that table
//!                                           else:   its action set is carried out
//! ```
//! A packet that matches no entry of a table is dropped. The table-miss entry (priority 0,
//! every packet) can do something else with it.
//!
//! # Changes
//! ```text
//! messages ─▶ stores ─▶ changes ─▶ log ─▶ side A ◀─ workers
//!             refuse                 └──▶ side B
//! ```
//! A message changes the stores of entries, groups, meters and ports. Both sides
//! get these changes, one after the other. Each side has all data for processing
//! packets ([`classyard::table`]). A worker pins a side for a vector. A bundle of messages
//! is carried out as a whole or not at all.
//!
//! | module | contents |
//! |---|---|
//! | `message` | messages, and the changes that they make |
//! | `stores` | entries, groups, meters and ports of all messages |
//! | `side` | the data for processing packets |
//! | `live` | the pipeline and its workers |
//! | `sink` | receivers of the packets that the pipeline sends |
//! | `process`, `actions` | processing of vectors and of single packets |
//! | `caching`, `cache_settings`, `cache_status` | flow caches before the tables |
//! | `selector` | the cache selector: chooses at run time which caches are used |
//! | `learn` | learning paths from packets in the tables |
//! | `program` | the combined actions of a path |
//! | `choice`, `liveness` | the choice of a group's buckets |
//! | `settings` | settings of a pipeline |
//! | `limiter` | token buckets of meters |
//! | `tally`, `path_counts`, `cells` | counters of a worker |
//! | `counts` | counts of packets and bytes |
//! | `expiry` | timeouts of entries |
//! | `ports` | states of ports |
//! | `features` | features of tables |
//! | `trace` | the steps of one packet |
//! | `observer` | observers of packets |

mod actions;
mod cache_settings;
mod cache_status;
mod caching;
mod cells;
mod choice;
mod counts;
mod expiry;
mod features;
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
mod selector;
mod settings;
mod side;
mod sink;
mod stores;
mod tally;
mod trace;

pub use crate::cache::finder::Finder;
pub use crate::cache::microflow::{KINDS, Kind};
pub use cache_settings::{CacheSettings, CacheSettingsError, Clock};
pub use cache_status::{CacheAnswer, CacheStatus, Megaflow};
pub use choice::FlowHash;
pub use counts::{Count, GroupCount, MeterCount, TableCount};
pub use features::TableFeatures;
pub use live::{Pipeline, Planner, RemovedFlow, Worker};
pub use message::{Change, GroupSlots, Message, MeterSlots};
pub use observer::{Node, Observer};
pub use ports::{PortState, Ports};
pub use settings::PipelineSettings;
pub use side::Plan;
pub use sink::{Discard, PacketInReason, Sink};
pub use trace::{Difference, FieldChange, Lookup, NearMiss, Step, Story};
