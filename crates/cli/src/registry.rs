//! The engines that this command line knows.

use std::sync::OnceLock;

use classyard::EngineSpec;
use classyard::engine::{ENGINES, Engine};
use classyard::error::SpecError;

/// The engine that commands take when none is named.
pub(crate) const DEFAULT: &str = "forest";

/// Argument parsers are plain functions, so there is one list for the process.
static REGISTRY: OnceLock<&'static [Engine]> = OnceLock::new();

/// Sets the engines. The first call counts.
pub(crate) fn set(engines: &'static [Engine]) {
    let _ = REGISTRY.set(engines);
}

/// The engines: those that were set, or those of the library.
pub(crate) fn engines() -> &'static [Engine] {
    REGISTRY.get().copied().unwrap_or(ENGINES)
}

/// Reads an engine's specification.
pub(crate) fn parse(text: &str) -> Result<EngineSpec, SpecError> {
    EngineSpec::parse_in(engines(), text)
}

/// Every engine with its defaults.
pub(crate) fn all() -> impl Iterator<Item = EngineSpec> {
    EngineSpec::all_in(engines())
}
