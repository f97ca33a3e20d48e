//! The intended use of a classifier.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::contract::classifier::BATCH;
use crate::cost::estimate::Estimate;

/// The expected use of a classifier: lookups for each update, headers in a batch, and
/// cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    lookups_per_update: Option<f64>,
    batch: usize,
    cores: usize,
}

/// One core looks up headers in full batches, and rules do not change.
impl Default for Load {
    fn default() -> Load {
        Load {
            lookups_per_update: None,
            batch: BATCH,
            cores: 1,
        }
    }
}

impl Load {
    /// Sets the number of lookups for each inserted or removed rule.
    ///
    /// # Panics
    /// If `lookups` is not a positive number.
    #[must_use]
    pub fn with_lookups_per_update(self, lookups: f64) -> Load {
        assert!(lookups > 0.0 && lookups.is_finite(), "a positive number");
        Load {
            lookups_per_update: Some(lookups),
            ..self
        }
    }

    /// Sets the number of headers in a batch.
    ///
    /// # Panics
    /// If `headers` is 0.
    #[must_use]
    pub fn with_batch(self, headers: usize) -> Load {
        assert!(headers > 0, "at least one header");
        Load {
            batch: headers,
            ..self
        }
    }

    /// Sets the number of cores.
    ///
    /// # Panics
    /// If `cores` is 0.
    #[must_use]
    pub fn with_cores(self, cores: usize) -> Load {
        assert!(cores > 0, "at least one core");
        Load { cores, ..self }
    }

    /// The number of lookups for each update; `None` if rules do not change.
    #[must_use]
    pub fn lookups_per_update(&self) -> Option<f64> {
        self.lookups_per_update
    }

    /// The number of headers that are looked up together.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns the nanoseconds of a core for each header, in batches of this load's size.
    /// The function assumes that each batch has one wait time that it cannot overlap: the
    /// time of a single lookup minus the time for each header of a full batch.
    #[must_use]
    pub fn lookup_ns(&self, estimate: &Estimate) -> f64 {
        let (full, single) = (estimate.lookup_ns, estimate.single_ns);
        if self.batch >= BATCH {
            return full;
        }
        full + (single - full) / self.batch as f64
    }

    /// Returns the nanoseconds of a core for updates, divided by the number of lookups.
    /// `None` if the load has updates and the engine takes none.
    #[must_use]
    pub fn update_ns(&self, estimate: &Estimate) -> Option<f64> {
        let Some(lookups) = self.lookups_per_update else {
            return Some(0.0);
        };
        Some(estimate.update_ns? * self.sides() / lookups)
    }

    /// Returns the nanoseconds from one lookup to the next, over all cores. A single core
    /// does the lookups and the updates. With several cores, one core does the updates
    /// and the others do the lookups, as in a [live table](crate::table). The result is
    /// then the time of updates or the time of lookups, whichever is longer.
    #[must_use]
    pub fn ns_per_lookup(&self, lookup_ns: f64, update_ns: f64) -> f64 {
        if self.lookups_per_update.is_none() {
            return lookup_ns / self.cores as f64;
        }
        match self.cores {
            1 => lookup_ns + update_ns,
            cores => (lookup_ns / (cores - 1) as f64).max(update_ns),
        }
    }

    /// The number of times that each update is made. In a live table, an update is made
    /// on two sides.
    fn sides(&self) -> f64 {
        if self.cores == 1 { 1.0 } else { 2.0 }
    }
}
