//! Vector code of lookups. Each kernel has a scalar fallback for every processor.
//!
//! A batch goes through a table in three steps:
//! ```text
//! active    list the keys that the table may improve
//! probe     hash them, read their slots, test signatures
//! compare   compare keys with runs of rules; wide keys by fingerprints first
//! ```
//! The instruction set is an argument, a [`crate::parts::simd::Isa`]; holding one proves
//! that the processor has the instructions. It changes speed, never results.
//! Functions check their arguments once for a batch, so that every call from safe
//! code is sound.
//!
//! This folder, `simd/` and `table/left_right.rs` are the only places with
//! unsafe code.

#![allow(unsafe_code)]

pub(super) mod active;
pub(super) mod compare;
pub(super) mod fingerprint;
pub(super) mod keys;
pub(super) mod probe;
pub(super) mod wide;
