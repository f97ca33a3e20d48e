//! The commands, one file or folder each.

pub(crate) mod bench;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod reproduce;
