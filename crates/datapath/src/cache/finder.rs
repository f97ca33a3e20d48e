//! The choice of a lookup for megaflows.

use std::fmt;

use classyard::{BuildError, EngineSpec};

use super::store::index_schema;

/// The lookup that finds the megaflow of a packet: an engine, or by default one hash
/// table for each mask, probed in the order of recent hits.
#[derive(Clone, Debug, Default)]
pub struct Finder(Option<EngineSpec>);

impl Finder {
    /// The name of the hash tables in options.
    pub const SORTED: &'static str = "sorted";

    /// Returns a finder that uses an engine with one rule for each megaflow.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates, does not support the fields of
    /// megaflows, or has an option that this host lacks.
    pub fn engine(spec: EngineSpec) -> Result<Finder, BuildError> {
        if !spec.is_dynamic() {
            return Err(classyard::engine::takes_no_updates(&spec.to_string()));
        }
        spec.available()?;
        spec.accepts(&index_schema())?;
        Ok(Finder(Some(spec)))
    }

    /// Returns the engine, if the finder uses one.
    pub(crate) fn spec(&self) -> Option<&EngineSpec> {
        self.0.as_ref()
    }
}

impl fmt::Display for Finder {
    /// Writes the value of `--megaflow-engine`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str(Finder::SORTED),
            Some(spec) => spec.fmt(f),
        }
    }
}
