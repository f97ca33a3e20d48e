//! The engines, and the registry through which everything finds them.
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
//! An engine is a file in this folder, written for the [`adapter`], and a line
//! in [`ENGINES`]. Conformance
//! and differential tests, fuzzing, benchmarks and the command line walk the
//! registry, so a new engine is in all of them at once. Tables in documents are
//! held against it.
//!
//! Users choose engines by [specification](EngineSpec): a name and options,
//! `tuplemerge:c=10`, and for engines that wrap another one that engine in
//! parentheses, `NAME(INNER):option=value`.

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
// A static, not a constant: every crate that mentions a constant of function
// pointers compiles these functions again, which are all engines at all key
// widths.
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
/// [`ENGINES`] has ours; specifications can be [read](EngineSpec::parse_in)
/// against any other list.
#[derive(Clone, Copy)]
pub struct Engine {
    /// The name by which users choose it: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// One line for people who choose.
    pub summary: &'static str,
    /// The paper and section that it comes from.
    pub paper: &'static str,
    /// Which engines it wraps.
    pub wraps: Wraps,
    /// The options that it understands.
    pub options: &'static [EngineOption],
    /// Whether classifiers built to this specification take updates.
    pub dynamic: fn(&EngineSpec) -> bool,
    /// Whether it serves a schema when built to this specification.
    pub accepts: fn(&EngineSpec, &Schema) -> Result<(), Refusal>,
    /// Builds a classifier to this specification, over a copy of the rules. May
    /// panic when `accepts` or the host refuses: call [`EngineSpec::build`],
    /// which checks first.
    pub build: BuildFn,
    /// What building to this specification over rules of a shape would make. An
    /// engine that wraps another one calls [`EngineSpec::costs`] for that
    /// one. Not called where `accepts` or the host refuses; limits are checked
    /// afterwards.
    pub estimate: EstimateFn,
}

/// How an engine builds classifiers: [`adapter::build_dynamic`] or
/// [`adapter::build_static`], or a function of a wrapper's own.
pub type BuildFn = fn(&mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError>;

/// How an engine estimates what it would cost, whatever the machine.
///
/// # Errors
/// The error that building would give, such as [`BuildError::EngineFull`].
pub type EstimateFn = fn(&EngineSpec, &Shape) -> Result<Costs, BuildError>;

/// Which engines an engine wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wraps {
    /// It stands for itself.
    Nothing,
    /// One that takes no updates.
    Static,
    /// Any one.
    Any,
}

impl Engine {
    /// For [`Engine::dynamic`]: updates are taken.
    #[must_use]
    pub fn takes_updates(_: &EngineSpec) -> bool {
        true
    }

    /// For [`Engine::dynamic`]: updates are not taken.
    #[must_use]
    pub fn takes_no_updates(_: &EngineSpec) -> bool {
        false
    }

    /// For [`Engine::accepts`]: every schema is served.
    ///
    /// # Errors
    /// Never.
    pub fn accepts_all(_: &EngineSpec, _: &Schema) -> Result<(), Refusal> {
        Ok(())
    }

    /// The option of a name.
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

/// The engine of that name.
///
/// # Errors
/// [`SpecError::UnknownEngine`], with the names that there are.
pub fn engine(name: &str) -> Result<&'static Engine, SpecError> {
    spec::find(ENGINES, name, name, 0)
}

/// [`BuildError::Static`] for an engine, with the registered engines that take
/// updates; those that wrap another one as `NAME(INNER)`.
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
