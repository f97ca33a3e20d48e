//! Traces of single packets, for people to read.

pub(super) mod trace;
