//! [TM19] §IV: the simulation of algorithms; §V: engines in a virtual switch.
//!
//! [TM19]: classyard::papers#tm19

pub(super) mod collision_limit;
pub(super) mod growth;
pub(super) mod offline;
pub(super) mod online;
mod online_claims;
mod online_engines;
pub(super) mod partitions;
pub(super) mod section5;
mod sheet;
pub(super) mod tables;
