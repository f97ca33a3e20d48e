//! The cost of lookups under a plan, estimated from a sample of the rules.
//!
//! Five estimators, and the model that combines them:
//!
//! | file | estimates | from |
//! |---|---|---|
//! | [`sample`] | the rules | some rules, each with the number of rules that it represents |
//! | [`headers`] | the traffic | a header for each of some sampled rules |
//! | [`buckets`] | lengths and number of a table's buckets | pairs of sampled rules with equal bits under the mask ([`counters`]) |
//! | [`compares`] | the runs of a table with which a header is compared | sampled rules in the headers' buckets |
//! | [`prices`] | nanoseconds | counts, at prices fitted to measured times |
//! | [`model`] | the cost of a plan | all of the above |
//!
//! Work is bounded. It is counted in words of masks and rules read
//! ([`Sample::words`], [`Model::words`]). Masks are compared only by the words in
//! which they have bits. So the width of a key matters only when rules are drawn and
//! hashed.

/// Words of masks and rules read that count as one step of a
/// [`Monitor`](crate::budget::monitor::Monitor)'s work. Bounds the time until a build can be
/// stopped.
pub(super) const WORDS_PER_WORK_STEP: usize = 16;

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
