//! [TM19] §IV: how many tables there are, and what collisions cost.
//!
//! [TM19]: classyard::papers#tm19

pub(super) mod collision_limit;
pub(super) mod growth;
pub(super) mod partitions;
pub(super) mod tables;
