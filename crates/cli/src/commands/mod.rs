//! The commands, one file or folder each, and modules that some of them share.

pub(crate) mod advise;
mod analysis_failure;
pub(crate) mod check;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod formats;
pub(crate) mod generate;
mod headers;
pub(crate) mod inspect;
pub(crate) mod lint;
pub(crate) mod minimise;
mod named_rules;
pub(crate) mod plot;
pub(crate) mod profiles;
pub(crate) mod query;
pub(crate) mod replay;
mod rows;
mod script;
mod statements;
pub(crate) mod switch;
pub(crate) mod trace;
mod two_files;
