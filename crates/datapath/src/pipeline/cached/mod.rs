//! Flow caches before the tables.
//!
//! | module | contents |
//! |---|---|
//! | `caches` | the caches of a worker: lookup of a vector, misses, changes of entries |
//! | `learn` | learning: the packets that are recorded in the tables, and the programs of their paths |
//! | `listing` | the cached megaflows and their decisions, for reports |
//! | `proactive` | megaflows that are stored before packets arrive |
//! | `selector` | the cache selector: chooses at run time which caches are used |
//! | `settings`, `status` | settings of caches, and their reports |

pub(super) mod caches;
pub(super) mod learn;
pub(super) mod listing;
pub(super) mod proactive;
mod selector;
pub(super) mod settings;
pub(super) mod status;
