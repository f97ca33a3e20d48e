//! Settings of a pipeline.

use crate::pipeline::run::choice::FlowHash;
use crate::table_settings::TableSettings;

/// Settings of a pipeline: its tables, and the hash of select groups.
///
/// ```
/// use classyard::EngineSpec;
/// use classyard_datapath::TableSettings;
/// use classyard_datapath::pipeline::{Pipeline, PipelineSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tables = TableSettings::new(EngineSpec::parse("forest")?)?;
/// // A test needs the same choice of buckets in every process.
/// let settings = PipelineSettings::new(tables).select_seed(7);
/// let pipeline = Pipeline::new(settings);
/// assert!(pipeline.flows().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PipelineSettings {
    pub(in crate::pipeline) tables: TableSettings,
    pub(super) select_hash: Option<FlowHash>,
}

impl PipelineSettings {
    /// Returns settings with which each pipeline gets a random seed for its select groups.
    #[must_use]
    pub fn new(tables: TableSettings) -> PipelineSettings {
        PipelineSettings {
            tables,
            select_hash: None,
        }
    }

    /// Sets the seed of the hash with which select groups choose buckets, so that the
    /// choices are the same in every process. Keep the seed secret from senders of packets:
    /// with it, they can direct many flows to one bucket.
    #[must_use]
    pub fn select_seed(self, seed: u64) -> PipelineSettings {
        PipelineSettings {
            select_hash: Some(FlowHash::seeded(seed)),
            ..self
        }
    }
}

impl From<TableSettings> for PipelineSettings {
    fn from(tables: TableSettings) -> PipelineSettings {
        PipelineSettings::new(tables)
    }
}
