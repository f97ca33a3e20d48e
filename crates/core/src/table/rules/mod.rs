//! Tables of rules: one engine, or an engine for each part of a policy, with the actions
//! and cookies of their rules.

mod accepted;
mod engine;
mod install;
mod log;
mod parts;
mod policy;
mod reoptimise;
mod rule_replica;

pub use accepted::AcceptedRules;
pub use engine::EngineReplica;
pub use install::InstallPlan;
pub use log::RuleLog;
pub use policy::{PolicyReplica, PolicyTable, PolicyWriter};
pub use rule_replica::RuleReplica;
