//! Rulesets of nftables, in text and JSON.

mod chains;
mod faults;
mod fields;
mod files;
mod json;
mod mutations;
mod random;
mod statements;
mod support;
