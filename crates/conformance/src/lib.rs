//! The test kit of classyard: checks that the answers of a classifier are right by definition.
//!
//! The kit is a product: `classyard check` runs it on users' rules and traffic, and
//! authors of engines can run it on their own engines. So the kit does not assert. It
//! reports its findings and counts its checks. Each omitted check is a [`Skip`] with a
//! reason.
//!
//! | part | purpose |
//! |---|---|
//! | [`random`] | difficult rules, headers, schemas and updates, from a seed or from a fuzzer's bytes |
//! | [`oracle`] | the definition of right answers: a plain list of rules with updates |
//! | [`differential`] | compares any engines with the oracle, over a stream of updates |
//! | [`rounds`] | differential runs over many random schemas |
//! | [`collider`] | compares several engines with each other, over a trace of headers |
//! | [`vectors`] | cases written by hand, with their answers, in files |
//!
//! Not only the winner is checked. The mask of a masked lookup is checked *exactly*: no
//! header that is equal to the looked-up header on the mask's bits may have another
//! outcome ([`oracle::Oracle::escape`]).

mod calls;
mod case;
pub mod collider;
pub mod differential;
pub mod oracle;
pub mod random;
pub mod rounds;
mod subject;
pub mod text;
pub mod vectors;

pub use subject::{BuildFn, Skip, Subject, Variants, isa_specs, variant_specs, variants};

/// The examples of `README.md` are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
