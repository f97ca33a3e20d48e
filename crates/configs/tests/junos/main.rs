//! Configurations of Juniper devices.

mod faults;
mod filters;
mod helper;
mod inheritance;
mod notation;
mod policies;
mod random;
