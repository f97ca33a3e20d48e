//! A pipeline of flow tables that processes packets (OpenFlow 1.3.5 §5.1).
//!
//! # Processing of a vector
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
//! A packet that matches no entry of a table is dropped. A table-miss entry (priority 0,
//! matches every packet) replaces this default with its instructions.
//!
//! # Changes
//! ```text
//! messages ─▶ stores ─▶ changes ─▶ log ─▶ side A ◀─ workers
//!             refuse                 └──▶ side B
//! ```
//! A message changes the stores of entries, groups, meters and ports. The side that no
//! worker uses gets these changes, then the sides are swapped, and the other side gets them
//! before the next swap. Each side has all data for processing packets
//! ([`classyard::table`]). A worker pins a side for a vector. A bundle of messages is
//! carried out as a whole or not at all.
//!
//! | module | contents |
//! |---|---|
//! | `run` | processing of packets in the tables |
//! | `cached` | flow caches before the tables |
//! | `worker` | the workers, each with counters and caches of its own |
//! | `control` | the pipeline: messages, timeouts, statistics |
//! | `watch` | traces of single packets |

mod cached;
mod control;
mod run;
mod watch;
mod worker;

pub use crate::cache::microflow::{KINDS, Kind};
pub use crate::cache::store::Finder;
pub use crate::cache::tuple_order::{LambdaError, TupleSettings};
pub use crate::megaflow::cross_product::TooManyEntries;
pub use cached::learn::Decision;
pub use cached::listing::{CachedMegaflow, MegaflowPart, MegaflowPlace};
pub use cached::proactive::{ProactiveError, ProactiveMegaflows};
pub use cached::settings::{ActiveFlowSettings, CacheSettings, CacheSettingsError, Clock};
pub use cached::status::{CacheAnswer, CacheStatus, Megaflow};
pub use control::features::TableFeatures;
pub use control::live::{Pipeline, RemovedFlow};
pub use control::message::Message;
pub use control::planner::Planner;
pub use control::settings::PipelineSettings;
pub use run::change::{Change, GroupCountersChange, LimiterChange};
pub use run::choice::FlowHash;
pub use run::counts::{Count, GroupCount, MeterCount, TableCount};
pub use run::description::{PortName, PortSpeed};
pub use run::observer::{Node, Observer};
pub use run::ports::{PortState, Ports};
pub use run::side::Plan;
pub use run::sink::{Discard, PacketInReason, Sink};
pub use watch::trace::{Difference, FieldChange, Lookup, NearMiss, PacketTrace, Step};
pub use worker::Worker;
