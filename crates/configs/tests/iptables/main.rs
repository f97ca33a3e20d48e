//! Reading of `iptables-save`, `ip6tables-save` and `ipset save`.

mod bad;
mod hostile;
mod interpreter;
mod matches;
mod mutations;
mod random;
#[path = "../common/random_numbers.rs"]
mod random_numbers;
mod realistic;
mod returns;
mod sets;
mod support;
mod targets;
