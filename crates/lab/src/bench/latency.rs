//! Quantiles of many durations.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer durations are recorded as this one.
const LONGEST_DURATION: Duration = Duration::from_secs(3_600);

/// The number of significant decimal digits that are kept of a duration.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of durations, with a precision of a nanosecond or three digits,
/// whichever is coarser. It allocates all memory when it is created; recording
/// allocates nothing.
#[derive(Clone)]
pub(crate) struct Durations(Histogram<u32>);

impl Durations {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Durations {
        let histogram =
            Histogram::new_with_bounds(1, nanoseconds(LONGEST_DURATION), SIGNIFICANT_DIGITS);
        Durations(histogram.expect("the bounds are in order, three digits are allowed"))
    }

    /// Records a duration.
    #[inline]
    pub(crate) fn record(&mut self, duration: Duration) {
        self.0.saturating_record(nanoseconds(duration));
    }

    /// Adds all durations of another histogram.
    pub(crate) fn add(&mut self, other: &Durations) {
        self.0
            .add(&other.0)
            .expect("all histograms here have the same bounds");
    }

    /// Returns the quantiles, or `None` if the histogram is empty.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        if self.0.is_empty() {
            return None;
        }
        let quantile = |share| seconds(self.0.value_at_quantile(share));
        Some(Quantiles {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: seconds(self.0.max()),
        })
    }
}

/// Quantiles of durations, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Quantiles {
    /// The names of the quantiles, in order.
    pub(crate) const NAMES: [&str; 5] = ["p50", "p90", "p99", "p999", "max"];

    /// Returns the quantiles, in the order of their names.
    pub(crate) fn values(&self) -> [f64; 5] {
        [self.p50, self.p90, self.p99, self.p999, self.max]
    }
}

/// Formats seconds as microseconds with three digits, for people.
pub(crate) fn microseconds(seconds: f64) -> String {
    let value = seconds * 1e6;
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_precision_loss)] // bounded by the longest duration
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_durations() {
        let mut durations = Durations::new();
        assert_eq!(durations.quantiles(), None);
        for microsecond in 1..=1000 {
            durations.record(Duration::from_micros(microsecond));
        }
        let mut durations_of_both = Durations::new();
        durations_of_both.record(Duration::from_millis(5));
        durations_of_both.add(&durations);
        let quantiles = durations_of_both.quantiles().unwrap().values();
        for (found, right) in quantiles
            .into_iter()
            .zip([501e-6, 901e-6, 991e-6, 1000e-6, 5e-3])
        {
            assert!((found / right - 1.0).abs() < 0.002, "{found} for {right}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_kept_at_the_bound() {
        let mut durations = Durations::new();
        durations.record(Duration::MAX);
        let longest = durations.quantiles().unwrap().max;
        assert!((longest / 3_600.0 - 1.0).abs() < 0.002, "{longest}");
        durations.record(Duration::ZERO);
        assert!(durations.quantiles().unwrap().p50 < 1e-8);
    }

    #[test]
    fn microseconds_have_three_digits() {
        let shown = [0.123e-6, 1.5e-6, 12.34e-6, 123.4e-6, 12_345e-6].map(microseconds);
        assert_eq!(shown, ["0.12", "1.50", "12.3", "123", "12345"]);
    }
}
