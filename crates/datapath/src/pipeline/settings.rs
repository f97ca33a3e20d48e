//! How a pipeline is kept.

use super::choice::FlowHash;
use crate::flow_table::TableSettings;

/// How a pipeline is kept: its tables, and the hash by which select groups choose.
///
/// ```
/// use classyard::EngineSpec;
/// use classyard_datapath::TableSettings;
/// use classyard_datapath::pipeline::{Pipeline, PipelineSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tables = TableSettings::new(EngineSpec::parse("forest")?)?;
/// // The same buckets in every process, for a test.
/// let settings = PipelineSettings::new(tables).select_seed(7);
/// let pipeline = Pipeline::new(settings);
/// assert!(pipeline.flows().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PipelineSettings {
    pub(super) tables: TableSettings,
    pub(super) select_hash: Option<FlowHash>,
}

impl PipelineSettings {
    /// Settings with a seed of select groups that differs from pipeline to pipeline.
    #[must_use]
    pub fn new(tables: TableSettings) -> PipelineSettings {
        PipelineSettings {
            tables,
            select_hash: None,
        }
    }

    /// Has select groups choose by this seed, the same way in every process. Senders of
    /// packets must not have it.
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
