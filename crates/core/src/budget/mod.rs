//! What a build may take: its progress, and the memory that it counts.

pub(crate) mod memory;
pub(crate) mod monitor;
pub mod progress;
