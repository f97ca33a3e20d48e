//! What finds the megaflow that covers a packet.

use std::fmt;

use classyard::{BuildError, EngineSpec};

use super::store::index_schema;

/// What finds the megaflow that covers a packet: hash tables, one for each mask, asked in
/// the order of what was found in them lately, unless it is an engine.
#[derive(Clone, Debug, Default)]
pub struct Finder(Option<EngineSpec>);

impl Finder {
    /// The word for the hash tables.
    pub const SORTED: &'static str = "sorted";

    /// An engine, over a rule for each megaflow.
    ///
    /// # Errors
    /// [`BuildError`] where the engine takes no updates, does not serve the fields of
    /// megaflows, or has an option that this host lacks.
    pub fn engine(spec: EngineSpec) -> Result<Finder, BuildError> {
        if !spec.is_dynamic() {
            return Err(classyard::engine::takes_no_updates(&spec.to_string()));
        }
        spec.available()?;
        spec.accepts(&index_schema())?;
        Ok(Finder(Some(spec)))
    }

    /// The engine, if it is one.
    pub(crate) fn spec(&self) -> Option<&EngineSpec> {
        self.0.as_ref()
    }
}

impl fmt::Display for Finder {
    /// As `--megaflow-engine` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str(Finder::SORTED),
            Some(spec) => spec.fmt(f),
        }
    }
}
