//! Token buckets of meters: decide whether a packet exceeds a rate.
//!
//! Each band has a token bucket, full at first and filled at the band's rate. A packet
//! takes its cost from each bucket that has enough tokens. The bands of the other buckets
//! are exceeded. Tokens are counted in billionths, so a rate adds a whole number of
//! billionths in each nanosecond, and nothing is rounded.
//!
//! All threads share a meter. A lock protects its levels and is held for a few
//! instructions.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::tally::CounterId;
use crate::meter::{Band, BandKind, Meter, MeterUnit};

/// Billionths of a token in one token.
const BILLIONTHS_PER_TOKEN: u128 = 1_000_000_000;

/// A meter with its token buckets.
#[derive(Debug)]
pub(in crate::pipeline) struct Limiter {
    meter: Meter,
    /// The counters of the meter and of its bands.
    pub(in crate::pipeline) counter: CounterId,
    pub(in crate::pipeline) bands: Vec<CounterId>,
    levels: Mutex<Levels>,
}

#[derive(Clone, Debug)]
struct Levels {
    /// The time when the buckets were last filled.
    now: Duration,
    /// The fill level of each band's bucket, in billionths of a token.
    tokens: Vec<u128>,
}

impl Limiter {
    /// Returns a meter with full buckets.
    pub(in crate::pipeline) fn new(
        meter: &Meter,
        counter: CounterId,
        bands: Vec<CounterId>,
    ) -> Limiter {
        let tokens = meter.bands.iter().map(|band| full(band, meter.unit));
        Limiter {
            levels: Mutex::new(Levels {
                now: Duration::ZERO,
                tokens: tokens.collect(),
            }),
            meter: meter.clone(),
            counter,
            bands,
        }
    }

    /// Takes the cost of a packet with `bytes` bytes at time `now`. Returns the number and
    /// kind of the exceeded band with the highest rate; `None` if no band is exceeded. If
    /// `now` is earlier than in a previous call, no tokens are added.
    pub(in crate::pipeline) fn meter(
        &self,
        bytes: usize,
        now: Duration,
    ) -> Option<(usize, BandKind)> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        self.take(&mut levels, bytes, now)
    }

    /// Returns what [`meter`](Self::meter) would return, without taking tokens.
    pub(super) fn would_meter(&self, bytes: usize, now: Duration) -> Option<(usize, BandKind)> {
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        self.take(&mut levels.clone(), bytes, now)
    }

    fn take(&self, levels: &mut Levels, bytes: usize, now: Duration) -> Option<(usize, BandKind)> {
        let passed = now.saturating_sub(levels.now).as_nanos();
        levels.now = levels.now.max(now);
        let cost = match self.meter.unit {
            MeterUnit::Packets => BILLIONTHS_PER_TOKEN,
            MeterUnit::Kilobits => bytes as u128 * 8 * BILLIONTHS_PER_TOKEN,
        };
        let mut exceeded: Option<usize> = None;
        for (number, band) in self.meter.bands.iter().enumerate() {
            let tokens = &mut levels.tokens[number];
            let rate = units(band.rate, self.meter.unit);
            let filled = tokens.saturating_add(passed.saturating_mul(rate));
            *tokens = filled.min(full(band, self.meter.unit));
            if *tokens >= cost {
                *tokens -= cost;
            } else if exceeded.is_none_or(|number| self.meter.bands[number].rate < band.rate) {
                exceeded = Some(number);
            }
        }
        exceeded.map(|number| (number, self.meter.bands[number].kind))
    }
}

/// Converts a rate or burst to tokens. A token is a packet or a bit.
fn units(number: u32, unit: MeterUnit) -> u128 {
    match unit {
        MeterUnit::Packets => u128::from(number),
        MeterUnit::Kilobits => u128::from(number) * 1000,
    }
}

/// Returns the level of a full bucket, in billionths of a token.
fn full(band: &Band, unit: MeterUnit) -> u128 {
    units(band.size(), unit) * BILLIONTHS_PER_TOKEN
}

/// Returns a DSCP with its drop precedence raised by `level`, if it is an assured forwarding
/// class (RFC 2597). Returns other DSCPs unchanged.
pub(super) fn remarked(dscp: u8, level: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if !(1..=4).contains(&class) || precedence == 0 || dscp & 1 != 0 {
        return dscp;
    }
    class << 3 | precedence.saturating_add(level).min(3) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{MeterFlags, MeterId};

    fn limiter(unit: MeterUnit, bands: &[(u32, u32)]) -> Limiter {
        let bands = bands.iter().map(|&(rate, burst)| Band {
            kind: BandKind::Drop,
            rate,
            burst,
        });
        let meter = Meter {
            id: MeterId(1),
            unit,
            flags: MeterFlags::default(),
            bands: bands.collect(),
        };
        Limiter::new(&meter, CounterId(0), vec![CounterId(1); meter.bands.len()])
    }

    #[test]
    fn packets_pass_at_the_rate_after_a_burst() {
        let meter = limiter(MeterUnit::Packets, &[(10, 3)]);
        let passed = |from: u64, to: u64| {
            let times = (from..to).map(Duration::from_millis);
            times.filter(|&now| meter.meter(60, now).is_none()).count()
        };
        assert_eq!(passed(0, 100), 3, "the burst, before the first refill");
        assert_eq!(passed(100, 2_100), 20, "ten each second");
        assert_eq!(passed(10_000, 10_001), 1);
        assert_eq!(passed(10_001, 10_100), 2, "the bucket holds three");
    }

    #[test]
    fn kilobits_are_of_a_thousand_bits() {
        let meter = limiter(MeterUnit::Kilobits, &[(1, 0)]);
        // 125 bytes each second.
        assert!(meter.would_meter(126, Duration::ZERO).is_some());
        assert_eq!(meter.meter(125, Duration::ZERO), None);
        assert!(meter.meter(1, Duration::ZERO).is_some());
        assert_eq!(meter.meter(1, Duration::from_millis(8)), None);
        assert!(meter.meter(1, Duration::from_nanos(15_999_999)).is_some());
        assert_eq!(meter.meter(1, Duration::from_millis(16)), None);
    }

    #[test]
    fn of_the_bands_that_are_exceeded_the_fastest_counts() {
        let meter = limiter(MeterUnit::Packets, &[(1, 1), (5, 2), (5, 2), (2, 3)]);
        let band = || meter.would_meter(1, Duration::ZERO).map(|(band, _)| band);
        assert_eq!(band(), None);
        let take = || meter.meter(1, Duration::ZERO).map(|(band, _)| band);
        assert_eq!(take(), None);
        assert_eq!(take(), Some(0));
        assert_eq!(take(), Some(1), "the first band of equal rate");
        assert_eq!(take(), Some(1));
    }

    #[test]
    fn classes_keep_their_number_and_drop_sooner() {
        // AF11 to AF12, AF21 to AF23, AF43 stays; EF and best effort are not AF classes.
        let cases = [
            (10, 1, 12),
            (18, 2, 22),
            (38, 1, 38),
            (46, 1, 46),
            (0, 3, 0),
            (8, 1, 8),
        ];
        for (from, level, to) in cases {
            assert_eq!(remarked(from, level), to, "{from} by {level}");
        }
        assert_eq!(remarked(10, 255), 14);
    }
}
