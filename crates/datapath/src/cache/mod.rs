//! Flow caches: decisions of the pipeline that are kept for later packets.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | caches of single flows: they say where a flow's decision may be |

pub mod microflow;
