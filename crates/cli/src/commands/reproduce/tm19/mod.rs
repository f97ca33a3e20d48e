//! [TM19] §IV: the simulation of algorithms.
//!
//! [TM19]: classyard::papers#tm19

pub(super) mod collision_limit;
pub(super) mod growth;
pub(super) mod offline;
pub(super) mod online;
mod online_claims;
pub(super) mod partitions;
mod sheet;
pub(super) mod tables;
