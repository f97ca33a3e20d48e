//! Measurements of classyard: `bench`, `calibrate` and `reproduce`.
//!
//! Each command is a module with its arguments and a function `run`. `classyard-cli`
//! calls them.

pub mod bench;
pub mod calibrate;
pub mod cores;
mod counters;
pub mod estimates;
pub mod reproduce;
pub mod sax_pac;
