//! The cost of engines: the work of their operations, and prices of work on a machine.

pub mod estimate;
pub mod machine;
