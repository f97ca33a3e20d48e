//! Settings of a worker's flow caches.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::cache::microflow::active::{ActiveConfig, MAX_KICKS};
use crate::cache::microflow::{Kind, MicroflowCache, WEF};
use crate::cache::store::{Finder, MAX_MASKS, MAX_MEGAFLOWS};
use crate::cache::tuple_order::TupleSettings;

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
    pub(in crate::pipeline) active: ActiveFlowSettings,
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
            active: ActiveFlowSettings::default(),
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

    /// Sets the parameters of caches of active flows. Other caches ignore them.
    #[must_use]
    pub fn active_flows(self, active: ActiveFlowSettings) -> Self {
        CacheSettings { active, ..self }
    }

    /// Chooses the caches of FastTSS ([FTS25]): a `wef` cache with a capacity of `flows`, and
    /// megaflows in hash tables that each packet sorts.
    ///
    /// ```
    /// use classyard_datapath::pipeline::{ActiveFlowSettings, CacheSettings, TupleSettings};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tuples = TupleSettings::default().with_lambda(8.0)?;
    /// let active = ActiveFlowSettings::default();
    /// let settings = CacheSettings::new().fast_tss(8192, active, tuples)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`MICROFLOWS`](Self::MICROFLOWS).
    ///
    /// [FTS25]: classyard::papers#fts25
    pub fn fast_tss(
        self,
        flows: usize,
        active: ActiveFlowSettings,
        tuples: TupleSettings,
    ) -> Result<Self, CacheSettingsError> {
        let settings = self.microflows(WEF, flows)?.active_flows(active);
        Ok(settings
            .megaflows(true)
            .finder(Finder::sorted_tuples(tuples)))
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

/// Parameters of the caches of active flows, `wef` and `cuckoo` ([FTS25] §4.2).
///
/// ```
/// use std::time::Duration;
///
/// use classyard_datapath::pipeline::ActiveFlowSettings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = ActiveFlowSettings::default()
///     .threshold(Some(Duration::from_millis(256)))
///     .timeout(Duration::from_secs(1))
///     .kicks(4)?;
/// let error = settings.kicks(40).unwrap_err();
/// assert_eq!(error.to_string(), "40 kicks; a worker has 0 to 32");
/// # Ok(())
/// # }
/// ```
///
/// [FTS25]: classyard::papers#fts25
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveFlowSettings {
    threshold: Option<Duration>,
    timeout: Option<Duration>,
    kicks: Option<usize>,
    latest: Option<usize>,
}

impl ActiveFlowSettings {
    /// The allowed numbers of kicks. The upper end bounds the work to admit a flow.
    pub const KICKS: RangeInclusive<usize> = 0..=MAX_KICKS;
    /// The allowed numbers of recorded latest packets. The upper end bounds the memory of a
    /// worker: a packet takes 8 bytes.
    pub const LATEST: RangeInclusive<usize> = 8..=1 << 24;

    /// Sets the threshold: a flow is active if a packet comes at most this time after the
    /// flow's previous packet. `None`, the default, adapts the threshold to the traffic, so
    /// that the active flows just fill the cache. Times are rounded up to 65.5 µs.
    #[must_use]
    pub fn threshold(self, threshold: Option<Duration>) -> Self {
        ActiveFlowSettings { threshold, ..self }
    }

    /// Sets the time after which an idle flow is removed: 10 s by default. Times are rounded
    /// up to 65.5 µs; after 78 hours every flow is removed.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        ActiveFlowSettings {
            timeout: Some(timeout),
            ..self
        }
    }

    /// Sets the maximum number of flows that are moved to admit one: 8 by default.
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`KICKS`](Self::KICKS).
    pub fn kicks(self, kicks: usize) -> Result<Self, CacheSettingsError> {
        Ok(ActiveFlowSettings {
            kicks: Some(within("kicks", kicks, ActiveFlowSettings::KICKS)?),
            ..self
        })
    }

    /// Sets the number of flows whose latest packets are recorded. By default four times the
    /// flows of the cache, and no more than the larger of 1,048,576 and those flows.
    ///
    /// # Errors
    /// [`CacheSettingsError`] if the number is not in [`LATEST`](Self::LATEST).
    pub fn latest(self, flows: usize) -> Result<Self, CacheSettingsError> {
        let latest = within("recorded latest packets", flows, ActiveFlowSettings::LATEST)?;
        Ok(ActiveFlowSettings {
            latest: Some(latest),
            ..self
        })
    }

    /// Returns a cache of a kind.
    pub(super) fn build(self, kind: &Kind, flows: usize, seed: u64) -> Box<dyn MicroflowCache> {
        let Some(build_active) = kind.build_active else {
            return (kind.build)(flows, seed);
        };
        let mut config = ActiveConfig::new(flows);
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        config.threshold_ns = self.threshold.map(nanoseconds);
        config.timeout_ns = self.timeout.map_or(config.timeout_ns, nanoseconds);
        config.kicks = self.kicks.unwrap_or(config.kicks);
        config.latest = self.latest.unwrap_or(config.latest);
        build_active(&config, seed)
    }
}
