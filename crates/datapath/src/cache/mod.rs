//! Flow caches: decisions of the pipeline that are kept for later packets.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | caches of single flows: they say where a flow's decision may be |
//! | [`sorted_tuples`] | a tuple space whose tuples are kept in the order of their use |

pub mod microflow;
pub mod sorted_tuples;
