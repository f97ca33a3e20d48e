//! The flags that describe a load.

use classyard::classifier::BATCH;
use classyard::engine::auto::Load;

use super::count;

/// The expected use of a classifier.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LoadArgs {
    /// Lookups per rule that is inserted or removed; without it, rules do not change
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Load")]
    lookups_per_update: Option<usize>,

    /// Headers per batch of lookups; 1 for single lookups
    #[arg(long, value_name = "N", value_parser = positive, default_value_t = BATCH, help_heading = "Load")]
    batch: usize,

    /// Cores; with several, one makes the updates and the others look up
    #[arg(long, value_name = "N", value_parser = positive, default_value_t = 1, help_heading = "Load")]
    cores: usize,
}

impl LoadArgs {
    /// Returns the load.
    pub fn load(self) -> Load {
        let load = Load::default()
            .with_batch(self.batch)
            .with_cores(self.cores);
        #[allow(clippy::cast_precision_loss)] // counts
        match self.lookups_per_update {
            Some(lookups) => load.with_lookups_per_update(lookups as f64),
            None => load,
        }
    }
}

/// Parses a count of at least 1.
fn positive(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("expected a number of at least 1".to_owned()),
        count => Ok(count),
    }
}
