//! Rules written as configurations of firewalls, and read again.

mod cisco;
mod kernel;
mod random;
mod refusals;
mod round_trips;
mod support;
