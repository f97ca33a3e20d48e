//! The cost of engines: the work of their operations, and the time of this work on a
//! machine.

pub mod estimate;
pub mod machine;
