//! Settings of a worker's flow caches.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::cache::microflow::Kind;
use crate::cache::store::{Finder, MAX_MASKS, MAX_MEGAFLOWS};

/// Returns the time since a fixed moment. The time never decreases.
pub type Clock = fn() -> Duration;

/// The error of a cache setting that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} {what}; a worker has {} to {}", range.start(), range.end())]
pub struct CacheSettingsError {
    what: &'static str,
    count: usize,
    range: RangeInclusive<usize>,
}

impl CacheSettingsError {
    /// The values that the setting may have.
    #[must_use]
    pub fn range(&self) -> RangeInclusive<usize> {
        self.range.clone()
    }
}

fn within(
    what: &'static str,
    count: usize,
    range: RangeInclusive<usize>,
) -> Result<usize, CacheSettingsError> {
    match range.contains(&count) {
        true => Ok(count),
        false => Err(CacheSettingsError { what, count, range }),
    }
}

/// Settings of a worker's flow caches. Each count is checked when it is set.
///
/// ```
/// use classyard_datapath::pipeline::CacheSettings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = CacheSettings::new().max_megaflows(1000)?.max_masks(16)?;
/// let error = settings.max_masks(1).unwrap_err();
/// assert_eq!(error.to_string(), "1 masks of megaflows; a worker has 2 to 128");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CacheSettings {
    pub(in crate::pipeline) microflows: Option<(Kind, usize)>,
    pub(in crate::pipeline) megaflows: bool,
    pub(super) max_megaflows: usize,
    pub(super) max_masks: usize,
    pub(in crate::pipeline) finder: Finder,
    pub(super) clock: Option<Clock>,
    pub(in crate::pipeline) seed: u64,
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings::new()
    }
}

impl CacheSettings {
    /// The allowed capacities of a microflow cache, in flows. The upper end bounds the
    /// memory of a worker.
    pub const MICROFLOWS: RangeInclusive<usize> = 1..=1 << 22;
    /// The allowed values of the maximum number of megaflows. The upper end bounds the
    /// memory of a worker.
    pub const MEGAFLOWS: RangeInclusive<usize> = 1..=MAX_MEGAFLOWS;
    /// The allowed values of the maximum number of masks. The upper end bounds the number of
    /// hash tables that a packet is looked up in. One mask is reserved for megaflows that
    /// fit no other mask, so there are at least two.
    pub const MASKS: RangeInclusive<usize> = 2..=MAX_MASKS;

    /// Returns the default: up to 131,072 megaflows with up to 32 masks in hash tables, no
    /// microflow cache, no clock, and a random seed.
    #[must_use]
    pub fn new() -> CacheSettings {
        CacheSettings {
            microflows: None,
            megaflows: true,
            max_megaflows: 1 << 17,
            max_masks: 32,
            finder: Finder::default(),
            clock: None,
            seed: RandomState::new().hash_one(0_u8),
        }
    }

    /// Adds a microflow cache with a capacity of `flows`.
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`MICROFLOWS`](Self::MICROFLOWS).
    pub fn microflows(self, kind: Kind, flows: usize) -> Result<Self, CacheSettingsError> {
        let flows = within("single flows", flows, CacheSettings::MICROFLOWS)?;
        Ok(CacheSettings {
            microflows: Some((kind, flows)),
            ..self
        })
    }

    /// Turns the lookup among megaflows on or off. It handles the packets that miss the
    /// microflow cache.
    #[must_use]
    pub fn megaflows(self, is_on: bool) -> Self {
        CacheSettings {
            megaflows: is_on,
            ..self
        }
    }

    /// Sets the maximum number of megaflows.
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`MEGAFLOWS`](Self::MEGAFLOWS).
    pub fn max_megaflows(self, megaflows: usize) -> Result<Self, CacheSettingsError> {
        let max_megaflows = within("megaflows", megaflows, CacheSettings::MEGAFLOWS)?;
        Ok(CacheSettings {
            max_megaflows,
            ..self
        })
    }

    /// Sets the maximum number of masks of megaflows.
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`MASKS`](Self::MASKS).
    pub fn max_masks(self, masks: usize) -> Result<Self, CacheSettingsError> {
        let max_masks = within("masks of megaflows", masks, CacheSettings::MASKS)?;
        Ok(CacheSettings { max_masks, ..self })
    }

    /// Sets the algorithm that finds the megaflow of a packet.
    #[must_use]
    pub fn finder(self, finder: Finder) -> Self {
        CacheSettings { finder, ..self }
    }

    /// Sets the clock of the cache selector, which uses the caches with the least measured
    /// time per packet. Without a clock, every packet is looked up in all caches.
    #[must_use]
    pub fn clock(self, clock: Option<Clock>) -> Self {
        CacheSettings { clock, ..self }
    }

    /// Sets the seed of hashes and random choices, for repeatable runs. Keep it secret from
    /// senders of packets.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        CacheSettings { seed, ..self }
    }
}
