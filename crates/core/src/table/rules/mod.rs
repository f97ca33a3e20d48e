//! Tables of rules: one engine, or an engine for each part of a policy, with the cookies
//! of their rules.

mod accepted;
mod engine;
mod log;
mod parts;
mod policy;
mod reoptimise;

pub use accepted::AcceptedRules;
pub use engine::EngineReplica;
pub use log::RuleLog;
pub use parts::RuleReplica;
pub use policy::{PolicyReplica, PolicyTable, PolicyWriter};
pub use reoptimise::InstallPlan;
