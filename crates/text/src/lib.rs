//! Reading text: lines, problems with line and column, and the syntax of `ovs-ofctl`.
//!
//! | module | what it has |
//! |---|---|
//! | [`line`](mod@line) | the lines of a text, and quoting parts of them in messages |
//! | `fault` | [`Fault`]: a problem with a part of a line |
//! | `problem` | [`Problem`], [`Problems`]: the first problems of a file, and their number by reason |
//! | [`ofctl`] | flows, groups and meters as `ovs-ofctl` prints and takes them |
//! | [`overlap`] | pairs of flows of equal priority that one packet may match |
//!
//! The readers of rule files (`classyard-workload`) and of pipelines
//! (`classyard-datapath`) use this crate, so both accept the same flows and report the
//! same errors. Nothing here opens a file. No input makes it panic.

#![forbid(unsafe_code)]

mod fault;
pub mod line;
pub mod ofctl;
pub mod overlap;
mod problem;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;

pub use fault::Fault;
pub use problem::{Problem, Problems, SHOWN};
