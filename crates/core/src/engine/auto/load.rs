//! What a classifier is to be used for.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::classifier::BATCH;
use crate::estimate::Estimate;

/// Lookups and updates to come: how they are made, and how many there are of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    lookups_per_update: Option<f64>,
    batch: usize,
    cores: usize,
}

/// One core looks up in full batches, and rules do not change.
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
    /// The load with so many lookups for each rule inserted or removed.
    ///
    /// # Panics
    /// When that is no positive number.
    #[must_use]
    pub fn with_lookups_per_update(self, lookups: f64) -> Load {
        assert!(lookups > 0.0 && lookups.is_finite(), "a positive number");
        Load {
            lookups_per_update: Some(lookups),
            ..self
        }
    }

    /// The load with so many headers in a batch.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn with_batch(self, headers: usize) -> Load {
        assert!(headers > 0, "at least one header");
        Load {
            batch: headers,
            ..self
        }
    }

    /// The load on so many cores.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn with_cores(self, cores: usize) -> Load {
        assert!(cores > 0, "at least one core");
        Load { cores, ..self }
    }

    /// How many lookups there are for each update; `None` where rules do not
    /// change.
    #[must_use]
    pub fn lookups_per_update(&self) -> Option<f64> {
        self.lookups_per_update
    }

    /// How many headers are looked up together.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// How many cores there are.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Nanoseconds of a core for a header that is looked up in batches of this
    /// load. The waits that a batch does not overlap come once a batch: that is
    /// what a single lookup takes more than one of a full batch.
    #[must_use]
    pub fn lookup_ns(&self, estimate: &Estimate) -> f64 {
        let (full, single) = (estimate.lookup_ns, estimate.single_ns);
        if self.batch >= BATCH {
            return full;
        }
        full + (single - full) / self.batch as f64
    }

    /// Nanoseconds of a core for the updates that come with each lookup; nothing
    /// for an engine that takes none, as long as there are none.
    #[must_use]
    pub fn update_ns(&self, estimate: &Estimate) -> Option<f64> {
        let Some(lookups) = self.lookups_per_update else {
            return Some(0.0);
        };
        Some(estimate.update_ns? * self.sides() / lookups)
    }

    /// Nanoseconds from one lookup to the next, all cores together. One core does
    /// everything in turn. Of several, one makes the updates and the others look
    /// up, as in a [live table](crate::table), so the slower of both counts.
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

    /// How often each update is made: beside readers, once on each of two sides.
    fn sides(&self) -> f64 {
        if self.cores == 1 { 1.0 } else { 2.0 }
    }
}
