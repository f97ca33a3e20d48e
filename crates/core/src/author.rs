//! Names for authors of engines. Programs that only use engines do not need
//! them.
//!
//! | names | purpose |
//! |---|---|
//! | [`Engine`], [`EngineOption`], [`EngineOptions`], [`OptionKind`], [`OptionValue`], [`Wraps`] | the entry of an engine in a registry |
//! | [`Algorithm`], [`EveryWidth`], [`build_static`] | an engine without updates |
//! | [`Updates`], [`DynamicEveryWidth`], [`build_dynamic`] | an engine with updates |
//! | [`BuildRequest`], [`Monitor`], [`Memory`], [`bytes_of`], [`grown`] | progress, cancellation and memory limits of a build |
//! | [`Costs`], [`Shape`], [`Work`], [`LineReads`] | an estimate of memory and time |
//! | [`Reoptimise`], [`Contents`], [`Drift`], [`LookupPlan`], [`Snapshot`] | a new plan for an engine while it is in use |
//! | [`splitmix`] | random numbers that a seed determines |
//! | [`fibonacci_hash`] | hashes of numbers that nobody chooses |
//! | [`Part`], [`Placement`], [`RangeField`] | the place of fields in the words of keys and rules |
//! | [`Replica`], [`RuleReplica`], [`EngineReplica`], [`PolicyReplica`], [`InstallPlan`], [`ChangeLog`], [`RuleLog`], [`Accepted`], [`AcceptedRules`] | the two copies of a live table, and the changes between them |
//!
//! [`adapter`](crate::contract::adapter) has a complete example engine.
//!
//! ```
//! use classyard::author::{Engine, Wraps};
//! use classyard::engine::ENGINES;
//!
//! let wrappers: Vec<&Engine> = ENGINES
//!     .iter()
//!     .filter(|engine| engine.wraps != Wraps::Nothing)
//!     .collect();
//! assert_eq!(wrappers[0].name, "sfl");
//! ```

pub use crate::budget::memory::{Memory, bytes_of, grown};
pub use crate::budget::monitor::Monitor;
pub use crate::contract::adapter::{
    Algorithm, DynamicEveryWidth, EveryWidth, Updates, build_dynamic, build_static,
};
pub use crate::contract::options::{EngineOption, EngineOptions, OptionKind, OptionValue};
pub use crate::contract::reoptimise::{Contents, Drift, LookupPlan, Reoptimise, Snapshot};
pub use crate::contract::spec::BuildRequest;
pub use crate::contract::spec::{Engine, Wraps};
pub use crate::cost::estimate::{Costs, Shape};
pub use crate::cost::machine::{LineReads, Work};
pub use crate::model::schema::{Part, Placement, RangeField};
pub use crate::model::seed::{fibonacci_hash, splitmix};
pub use crate::table::{
    Accepted, AcceptedRules, ChangeLog, EngineReplica, InstallPlan, PolicyReplica, Replica,
    RuleLog, RuleReplica,
};
