//! Kernels of lookups, written once for all instruction sets
//! ([`crate::parts::simd::vector`]).
//!
//! A batch goes through a table in three steps:
//! ```text
//! active    list the keys that the table may improve
//! probe     hash them, read their slots, test signatures
//! compare   compare keys with runs of rules; wide keys by fingerprints first
//! ```
//! The instruction set is an argument, a [`crate::parts::simd::Isa`]; holding one proves
//! that the processor has the instructions. It changes speed, never results.
//! Functions check their arguments, so that every call from safe code is sound.
//!
//! | file | contents |
//! |---|---|
//! | [`active`] | the keys of a batch, and which of them are active |
//! | [`keys`] | keys with their winners, as the comparing kernels take them |
//! | [`fingerprint`] | fingerprints of keys and rules |
//! | [`probe`] | one table for many keys |
//! | [`compare`], [`wide`] | keys with runs of rules; with fingerprints |

#![allow(unsafe_code)]

pub(super) mod active;
pub(super) mod compare;
pub(super) mod fingerprint;
pub(super) mod keys;
pub(super) mod probe;
pub(super) mod wide;
