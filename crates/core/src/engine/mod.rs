//! The engines, and the registry that lists them.
//!
//! | engine | kind | pick it when |
//! |---|---|---|
//! | `linear` | dynamic | there are a few dozen rules, or to check the others |
//! | `forest` | dynamic | lookups must be fast and rules change |
//! | `tss` | dynamic | rules change all the time and there are few distinct masks |
//! | `tuplemerge` | dynamic | rules change and lookups must be fast |
//! | `tuplemerge-offline` | dynamic | the rules are known up front and change little |
//! | `tuplemerge-vpp` | dynamic | one hash table for all is wanted, as in VPP's ACL plugin |
//! | `partition-sort` | dynamic | rules change and a published algorithm without hash tables is wanted |
//! | `bit-vector` | static | there are up to a few thousand rules; as a part of other methods |
//! | `rfc` | static | there are up to a thousand rules, or few of them overlap |
//! | `hyper-split` | static | headers come one at a time; as a part of other methods |
//! | `cut-split` | dynamic | a decision tree is wanted, and rules change |
//! | `hyper-cuts` | static | few of the rules are wide in all fields; as a part of other methods |
//! | `smart-split` | static | a decision tree is wanted and which kind is fastest is not known |
//! | `decomposition` | static | rules have many fields, such as fifteen, and do not change |
//! | `sfl(INNER)` | dynamic | a static engine is the right one, and its rules change now and then |
//!
//! An engine is a file in this folder, written for the [`adapter`], and a line in
//! [`ENGINES`]. Conformance tests, differential tests, fuzzing, benchmarks and the
//! command line walk the registry, so a new engine is in all of them immediately.
//! Tests compare tables in documents with the registry.
//!
//! Users choose engines by [specification](EngineSpec): a name and options,
//! `tuplemerge:c=10`. If an engine wraps another engine, the inner engine is in
//! parentheses: `NAME(INNER):option=value`.

use std::fmt;

use crate::classifier::Classifier;
use crate::error::{BuildError, Refusal, SpecError};
use crate::estimate::{Costs, Shape};
use crate::schema::Schema;

pub mod adapter;
pub mod auto;

mod bit_vector;
mod cut_split;
mod decomposition;
mod forest;
mod hyper_cuts;
mod hyper_split;
mod linear;
mod observe;
mod options;
mod partition_sort;
mod range_tree;
mod ranked;
mod rfc;
mod sfl;
mod smart_split;
mod spec;
#[cfg(test)]
mod tests;
mod tree;
mod tss;
mod tuple_space;
mod tuplemerge;

pub use adapter::BuildRequest;
pub use options::{EngineOption, EngineOptions, OptionKind, OptionValue};
pub use spec::{EngineSpec, MAX_NESTING};

/// All engines.
// A static, not a constant: every crate that mentions a constant of function pointers
// compiles the functions again, and these are all engines at all key widths.
pub static ENGINES: &[Engine] = &[
    linear::ENGINE,
    forest::ENGINE,
    tss::ENGINE,
    tuplemerge::ONLINE,
    tuplemerge::OFFLINE,
    tuplemerge::VPP,
    partition_sort::ENGINE,
    bit_vector::ENGINE,
    rfc::ENGINE,
    hyper_split::ENGINE,
    cut_split::ENGINE,
    hyper_cuts::ENGINE,
    smart_split::ENGINE,
    decomposition::ENGINE,
    sfl::ENGINE,
];

/// An engine's registry entry.
///
/// [`ENGINES`] has the engines of this library. Specifications can be
/// [read](EngineSpec::parse_in) with any other list.
#[derive(Clone, Copy)]
pub struct Engine {
    /// The name by which users choose the engine: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// A summary of one line, for choosing an engine.
    pub summary: &'static str,
    /// The paper and section that describes the algorithm.
    pub paper: &'static str,
    /// The kind of engines that it wraps.
    pub wraps: Wraps,
    /// The options that it takes.
    pub options: &'static [EngineOption],
    /// Returns true if classifiers built to a specification take updates.
    pub dynamic: fn(&EngineSpec) -> bool,
    /// Returns a refusal if classifiers built to a specification do not serve a
    /// schema.
    pub accepts: fn(&EngineSpec, &Schema) -> Result<(), Refusal>,
    /// Builds a classifier to a specification, over a copy of the rules. May panic if
    /// `accepts` or the host refuses: call [`EngineSpec::build`], which checks first.
    pub build: BuildFn,
    /// Estimates the costs of an engine built to a specification over rules of a
    /// shape. An engine that wraps another engine calls [`EngineSpec::costs`] for the
    /// inner engine. Not called if `accepts` or the host refuses. Limits are checked
    /// afterwards.
    pub estimate: EstimateFn,
}

/// The build function of an engine: [`adapter::build_dynamic`] or
/// [`adapter::build_static`], or a wrapper's own function.
pub type BuildFn = fn(&mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError>;

/// The estimate function of an engine: costs that do not depend on the machine.
///
/// # Errors
/// The error that the build would return, such as [`BuildError::EngineFull`].
pub type EstimateFn = fn(&EngineSpec, &Shape) -> Result<Costs, BuildError>;

/// The kind of engines that an engine wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wraps {
    /// None.
    Nothing,
    /// Any engine that takes no updates.
    Static,
    /// Any engine.
    Any,
}

impl Engine {
    /// For [`Engine::dynamic`]: the engine takes updates.
    #[must_use]
    pub fn takes_updates(_: &EngineSpec) -> bool {
        true
    }

    /// For [`Engine::dynamic`]: the engine takes no updates.
    #[must_use]
    pub fn takes_no_updates(_: &EngineSpec) -> bool {
        false
    }

    /// For [`Engine::accepts`]: the engine serves every schema.
    ///
    /// # Errors
    /// Never.
    pub fn accepts_all(_: &EngineSpec, _: &Schema) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns the option with a name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static EngineOption> {
        self.options.iter().find(|option| option.name == name)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.name)
    }
}

/// Returns the engine with a name.
///
/// # Errors
/// [`SpecError::UnknownEngine`], with the names of all engines.
pub fn engine(name: &str) -> Result<&'static Engine, SpecError> {
    spec::find(ENGINES, name, name, 0)
}

/// Returns [`BuildError::Static`] for an engine, with the names of the registered
/// engines that take updates. Wrappers are named as `NAME(INNER)`.
#[must_use]
pub fn takes_no_updates(engine: &str) -> BuildError {
    let dynamic = EngineSpec::all().filter(EngineSpec::is_dynamic);
    let mut names: Vec<String> = dynamic
        .map(|spec| match spec.inner() {
            Some(_) => format!("{}(INNER)", spec.engine().name),
            None => spec.to_string(),
        })
        .collect();
    names.dedup();
    BuildError::Static {
        engine: engine.to_owned(),
        dynamic: names.join(", "),
    }
}
