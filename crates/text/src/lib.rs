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
//! Rule files (`classyard-workload`) and pipelines (`classyard-datapath`) are read with
//! it, so both take the same flows and say the same about the others. Nothing here opens
//! a file, and no input makes it panic.

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
