//! Flow entries, and the messages that change them (OpenFlow 1.3.5 §5.2, §6.4).
//!
//! | module | contents |
//! |---|---|
//! | `table_id` | the numbers of tables |
//! | `instructions` | instructions for the packets that an entry wins |
//! | `entry` | an entry: match, priority, cookie, timeouts, flags |
//! | `modify` | the messages that add, modify and delete entries |
//! | `table_config` | configuration of a table |
//! | `widths` | the fields that a table's entries match |
//! | `entries` | entries, indexed by number |
//! | `overlaps` | search for overlapping entries of the same priority |
//! | `users` | the entries that use a group or meter |
//! | `store` | all entries of all tables, changed by these messages |

mod entries;
mod entry;
mod instructions;
mod match_index;
mod modify;
mod overlaps;
mod store;
mod table_config;
mod table_id;
mod users;
mod widths;

pub use entry::{FlowEntry, FlowFlags};
pub use instructions::Instructions;
pub use modify::{Command, FlowMod};
pub use store::{FlowChange, FlowStore, RemovalReason};
pub use table_config::{TableConfig, TableMod};
pub use table_id::TableId;
pub(crate) use users::Used;
