//! The settings of a flow table, and the reasons why it refuses an entry.

use classyard::{BuildError, EngineSpec, RuleId, UpdateError};

use crate::megaflow::MegaflowBits;
use crate::projection::TooWide;

/// Settings of a flow table.
///
/// ```
/// use classyard::EngineSpec;
/// use classyard_datapath::TableSettings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = TableSettings::new(EngineSpec::parse("tuplemerge")?)?.rebuild_below(100);
/// assert_eq!(settings.engine().to_string(), "tuplemerge");
/// // An engine without updates cannot follow a controller.
/// assert!(TableSettings::new(EngineSpec::parse("rfc")?).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableSettings {
    pub(crate) engine: EngineSpec,
    pub(crate) rebuild_below: usize,
    pub(crate) megaflow_bits: MegaflowBits,
}

impl TableSettings {
    /// The default value of [`rebuild_below`](Self::rebuild_below), in rules.
    pub const USUAL_REBUILD_BELOW: usize = 256;

    /// Returns settings for tables that use this engine for each family of packets.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates, or has an option that this host does
    /// not support.
    pub fn new(engine: EngineSpec) -> Result<TableSettings, BuildError> {
        if !engine.is_dynamic() {
            return Err(classyard::engine::takes_no_updates(&engine.to_string()));
        }
        engine.available()?;
        Ok(TableSettings {
            engine,
            rebuild_below: TableSettings::USUAL_REBUILD_BELOW,
            megaflow_bits: MegaflowBits::default(),
        })
    }

    /// Sets the number of rules of a family below which its engine is rebuilt immediately
    /// when a new entry needs a wider projection.
    #[must_use]
    pub fn rebuild_below(self, rules: usize) -> TableSettings {
        TableSettings {
            rebuild_below: rules,
            ..self
        }
    }

    /// Sets the algorithm that chooses the bits of megaflows.
    #[must_use]
    pub fn megaflow_bits(self, megaflow_bits: MegaflowBits) -> TableSettings {
        TableSettings {
            megaflow_bits,
            ..self
        }
    }

    /// Returns the engine that each family uses.
    #[must_use]
    pub fn engine(&self) -> &EngineSpec {
        &self.engine
    }
}

/// The reason why an entry cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table already has an entry with this id.
    #[error("the table has an entry {0} already")]
    Known(RuleId),
    /// The table's entries have too many fields.
    #[error(transparent)]
    Wide(#[from] TooWide),
    /// The engine could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The engine refused the entry.
    #[error(transparent)]
    Update(UpdateError),
}
