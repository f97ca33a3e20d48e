//! What logs are looked up in.

use classyard_arrow::Rules;

use crate::verdict::VerdictNames;

/// The rules that logs are looked up in, and the way to do it.
#[derive(Clone, Copy)]
pub struct Lookups<'a> {
    /// The rules.
    pub rules: &'a dyn Rules,
    /// The names of actions, by their number.
    pub actions: &'a [String],
    /// The meaning of verdicts and actions.
    pub verdicts: &'a VerdictNames,
    /// The number of threads, at least 1.
    pub threads: usize,
}
