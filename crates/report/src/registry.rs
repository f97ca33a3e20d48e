//! The engines that this command line offers.

use std::sync::OnceLock;

use classyard::EngineSpec;
use classyard::engine::{ENGINES, Engine};
use classyard::error::SpecError;

/// The engine that commands use by default.
pub const DEFAULT: &str = "forest";

/// Argument parsers are plain functions, so the list is global to the process.
static REGISTRY: OnceLock<&'static [Engine]> = OnceLock::new();

/// Sets the engines. Calls after the first have no effect.
pub fn set(engines: &'static [Engine]) {
    let _ = REGISTRY.set(engines);
}

/// Returns the engines that were set, or the library's engines.
pub fn engines() -> &'static [Engine] {
    REGISTRY.get().copied().unwrap_or(ENGINES)
}

/// Reads an engine's specification.
pub fn parse(text: &str) -> Result<EngineSpec, SpecError> {
    EngineSpec::parse_in(engines(), text)
}

/// Returns every engine with its default options.
pub fn all() -> impl Iterator<Item = EngineSpec> {
    EngineSpec::all_in(engines())
}
