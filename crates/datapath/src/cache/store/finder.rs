//! The settings of the lookup that finds the megaflow of a packet.

use std::fmt;

use classyard::{BuildError, EngineSpec};

use super::index::Index;
use crate::cache::tuple_order::TupleSettings;

/// The lookup that finds the megaflow of a packet: an engine, or one hash table for each
/// mask. The hash tables are probed in the order of recent hits, which is updated now and
/// then by default, or at each packet as in [FTS25].
///
/// [FTS25]: classyard::papers#fts25
#[derive(Clone, Debug, Default)]
pub struct Finder(pub(super) Method);

/// The method of a finder.
#[derive(Clone, Debug, Default)]
pub(super) enum Method {
    /// Hash tables in the order of recent hits; hash tables that save no time are left out.
    #[default]
    Sorted,
    /// Hash tables in the order of eq. 3.
    SortedTuples(TupleSettings),
    /// An engine with one rule for each megaflow.
    Engine(EngineSpec),
}

impl Finder {
    /// The name of the default in options.
    pub const SORTED: &'static str = "sorted";
    /// The name in options of hash tables that are sorted at each packet.
    pub const SORTED_TUPLES: &'static str = "sorted-tuples";

    /// Returns a finder that probes all hash tables and moves a table ahead at each packet
    /// that matches there ([FTS25] §4.3, eq. 3).
    ///
    /// [FTS25]: classyard::papers#fts25
    #[must_use]
    pub fn sorted_tuples(settings: TupleSettings) -> Finder {
        Finder(Method::SortedTuples(settings))
    }

    /// Returns a finder that uses an engine with one rule for each megaflow.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates, does not support the fields of
    /// megaflows, or has an option that this host lacks.
    pub fn engine(spec: EngineSpec) -> Result<Finder, BuildError> {
        Index::check(&spec)?;
        Ok(Finder(Method::Engine(spec)))
    }
}

impl fmt::Display for Finder {
    /// Writes the value of `--megaflow-engine`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Method::Sorted => f.write_str(Finder::SORTED),
            Method::SortedTuples(settings) => write!(
                f,
                "{}:lambda={}:normalise={}",
                Finder::SORTED_TUPLES,
                settings.lambda(),
                settings.normalise_every()
            ),
            Method::Engine(spec) => spec.fmt(f),
        }
    }
}
