//! Flow caches before the tables.
//!
//! | module | contents |
//! |---|---|
//! | `caches` | the caches of a worker, and the lookup of a vector in them |
//! | `misses` | packets that miss: recorded in the tables, and their paths cached |
//! | `follow` | changes of entries applied to the caches |
//! | `selector` | the cache selector: chooses at run time which caches are used |
//! | `learn` | learning paths from packets in the tables |
//! | `program` | the combined actions of a path |
//! | `flow_hash`, `seen` | hashes of flows, and flows seen recently |
//! | `settings`, `status` | settings of caches, and their reports |

pub(super) mod caches;
pub(super) mod flow_hash;
pub(super) mod follow;
pub(super) mod learn;
pub(super) mod misses;
pub(super) mod program;
pub(super) mod seen;
pub(super) mod selector;
pub(super) mod settings;
pub(super) mod status;
