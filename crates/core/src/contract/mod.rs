//! The contract between engines and their users.
//!
//! | module | contents |
//! |---|---|
//! | `classifier`, `reoptimise` | what users of a classifier call |
//! | `adapter` | what an engine implements |
//! | `spec`, `options`, `parse` | an engine's entry in a registry, and its specification with options |
//! | `observe` | an engine built over a sample of rules, for estimates |

pub mod adapter;
pub mod classifier;
pub(crate) mod observe;
pub(crate) mod options;
pub(crate) mod parse;
pub mod reoptimise;
pub(crate) mod spec;
