//! Flow caches: paths through the pipeline that later packets reuse.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | microflow caches, which store the megaflow that may cover a flow |
//! | `tuple_order` | the order of tuples by use ([FTS25] eq. 3) |
//! | [`sorted_tuples`] | a tuple space as in [FTS25], for measurements; only `classyard_datapath::lab` uses it |
//! | `store` | megaflows: keys under masks, and the paths of the packets that they cover |
//! | `path` | the tables that look a packet up, and the entries that win there; the changes of entries that close paths |
//!
//! [FTS25]: classyard::papers#fts25

pub mod microflow;
pub(crate) mod path;
pub mod sorted_tuples;
pub(crate) mod store;
pub(crate) mod tuple_order;
