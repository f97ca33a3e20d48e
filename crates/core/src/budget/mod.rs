//! Progress, cancellation and memory accounting of builds.

pub(crate) mod memory;
pub(crate) mod monitor;
pub mod progress;
