//! Flow caches: decisions of the pipeline that are kept for later packets.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | caches of single flows: they say where a flow's decision may be |
//! | [`sorted_tuples`] | a tuple space whose tuples are kept in the order of their use |
//! | `finder` | what finds the megaflow that covers a packet |
//! | `store` | megaflows: keys under masks, and the paths of the packets that they cover |
//! | `path` | the tables that packets are looked up in, and the entries that win them there |
//! | `entry_paths` | the paths of each entry |
//! | `change` | changes of entries, as far as cached flows depend on them |
//! | `bits` | bits of a key |

pub(crate) mod bits;
pub(crate) mod change;
pub(crate) mod entry_paths;
pub(crate) mod finder;
pub mod microflow;
pub(crate) mod path;
pub mod sorted_tuples;
pub(crate) mod store;
