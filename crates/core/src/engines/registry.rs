//! The registry: the list of all engines, and specifications that name them.

use std::str::FromStr;

use super::{
    bit_vector, cut_split, decomposition, forest, hyper_cuts, hyper_split, linear, partition_sort,
    rfc, sfl, smart_split, tss, tuplemerge,
};
use crate::contract::parse::find;
use crate::contract::spec::Engine;
use crate::contract::spec::EngineSpec;
use crate::model::error::{BuildError, SpecError};

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

/// Returns the engine with a name.
///
/// # Errors
/// [`SpecError::UnknownEngine`], with the names of all engines.
pub fn engine(name: &str) -> Result<&'static Engine, SpecError> {
    find(ENGINES, name, name, 0)
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

impl EngineSpec {
    /// Reads `NAME`, `NAME:OPTION=VALUE:…` or `NAME(INNER):OPTION=VALUE:…`.
    ///
    /// # Errors
    /// [`SpecError`] with the column, the reason and the allowed values.
    pub fn parse(text: &str) -> Result<EngineSpec, SpecError> {
        EngineSpec::parse_in(ENGINES, text)
    }

    /// Returns an engine with its defaults.
    ///
    /// # Errors
    /// [`SpecError`] if no engine has the name, or the engine requires an inner
    /// engine.
    pub fn named(name: &str) -> Result<EngineSpec, SpecError> {
        EngineSpec::named_in(ENGINES, name)
    }

    /// Every registered engine with its defaults. Engines that wrap another engine
    /// appear once for each engine that they can wrap.
    pub fn all() -> impl Iterator<Item = EngineSpec> {
        EngineSpec::all_in(ENGINES)
    }
}

impl FromStr for EngineSpec {
    type Err = SpecError;

    /// Calls [`EngineSpec::parse`].
    fn from_str(text: &str) -> Result<EngineSpec, SpecError> {
        EngineSpec::parse(text)
    }
}
