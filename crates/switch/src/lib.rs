//! A virtual OpenFlow switch: ports, workers, an agent that controllers drive.

#![forbid(unsafe_code)]

mod agent;
mod clock;
pub mod config;
pub mod control;
mod error;
mod pcapng;
mod switch;
mod worker;

pub use agent::Ready;
pub use error::SwitchError;
pub use switch::{StopHandle, Switch};
