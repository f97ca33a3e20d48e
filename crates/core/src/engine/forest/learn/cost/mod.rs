//! What lookups will cost under a plan, estimated from a sample of the rules.
//!
//! Five estimators, each in a file of its own, and what puts them together:
//!
//! | file | estimates | from |
//! |---|---|---|
//! | [`sample`] | the rules | some rules, each with the number that it stands for |
//! | [`headers`] | the traffic | a header for each of some sampled rules |
//! | [`buckets`] | lengths and number of a table's buckets | pairs of sampled rules that meet under the mask ([`counters`]) |
//! | [`compares`] | the runs that a header is compared with in a table | sampled rules that headers meet there |
//! | [`prices`] | nanoseconds | counts, at prices fitted to measured times |
//! | [`model`] | the cost of a plan | all of the above |
//!
//! The work is counted in words of masks and rules that were read
//! ([`Sample::words`], [`Model::words`]), to be bounded: masks are compared by the
//! words in which they have bits, so the width of a key counts where rules are
//! drawn and hashed.

/// Words of masks and rules that are read, as much work as a step of a
/// [`Monitor`](crate::monitor::Monitor).
pub(super) const WORDS: usize = 16;

mod buckets;
mod compares;
mod counters;
mod headers;
mod model;
mod prices;
mod sample;

pub(super) use headers::Headers;
pub(super) use model::Model;
pub(crate) use prices::Cost;
pub(super) use prices::Prices;
pub(super) use sample::{Drawn, Sample};
