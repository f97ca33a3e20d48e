//! A virtual OpenFlow switch: ports, workers, an agent that controllers drive.
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | the settings of a switch, and the TOML files that have them |
//! | [`control`] | the messages of the control socket, and a client |

#![forbid(unsafe_code)]

pub mod config;
pub mod control;
