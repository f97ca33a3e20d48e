//! Flow caches: paths through the pipeline that later packets reuse.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | microflow caches, which store where a flow's decision may be |
//! | [`sorted_tuples`] | a tuple space that sorts its tuples by use; measured by `classyard_datapath::lab` only |
//! | `store` | megaflows: keys under masks, and the paths of the packets that they cover |
//! | `path` | the tables that look a packet up, and the entries that win there |
//! | `entry_paths` | numbers of paths, and the paths of each entry |
//! | `change` | the changes of entries that affect cached flows |

pub(crate) mod change;
pub(crate) mod entry_paths;
pub mod microflow;
pub(crate) mod path;
pub mod sorted_tuples;
pub(crate) mod store;
