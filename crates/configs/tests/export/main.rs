//! Rules written as configurations of firewalls, and read again.

mod cisco;
mod kernel;
mod kernel_sets;
mod random;
#[path = "../common/random_numbers.rs"]
mod random_numbers;
mod refusals;
mod round_trips;
mod support;
