//! Means of a few measurements, with their confidence intervals.

use std::fmt;

/// The two-sided 90 % quantiles of Student's t distribution for 1, 2, ...
/// degrees of freedom.
const STUDENT_90: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
];

/// The two-sided 90 % quantile of the normal distribution.
const NORMAL_90: f64 = 1.645;

/// The mean of several measurements with its 90 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// Half the width of the interval; `None` for a single measurement.
    pub(super) half_width: Option<f64>,
}

impl Mean {
    /// Returns the mean and its interval, for normally distributed measurements. The mean
    /// is 0 without samples.
    pub(super) fn of(samples: &[f64]) -> Mean {
        let count = coordinate(samples.len());
        let mean = mean(samples);
        let freedom = samples.len().saturating_sub(1);
        if freedom == 0 {
            let half_width = None;
            return Mean { mean, half_width };
        }
        let squares = samples.iter().map(|sample| (sample - mean).powi(2));
        let variance = squares.sum::<f64>() / coordinate(freedom);
        let quantile = STUDENT_90.get(freedom - 1).copied().unwrap_or(NORMAL_90);
        Mean {
            mean,
            half_width: Some(quantile * (variance / count).sqrt()),
        }
    }

    /// Returns the ends of the interval; both are the mean if there is a single
    /// measurement.
    pub(super) fn interval(self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        match self.half_width {
            Some(half) => write!(f, "{:.digits$} ± {half:.digits$}", self.mean),
            None => write!(f, "{:.digits$}", self.mean),
        }
    }
}

/// The share of intervals that contain the median that they are of, at least.
pub(super) const CONFIDENCE_SHARE: f64 = 0.9;

/// A confidence interval of a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

/// Returns the 90 % confidence interval of the median; `None` for fewer than five
/// samples, which have no such interval.
///
/// The ends are order statistics, so the interval needs no assumption about the
/// distribution except that samples are independent. Of `n` samples the `k`-th least and
/// the `k`-th greatest are the ends, with the greatest `k` for which
/// `2 P(B < k) ≤ 1 − 0.9`, where `B` is binomial with `n` trials of probability 1/2.
/// Five samples give their least and greatest (confidence 93.75 %).
pub(super) fn median_interval(samples: &[f64]) -> Option<Interval> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let trials = coordinate(count);
    // The logarithm of P(B = below); logarithms do not underflow for many trials.
    let mut log_probability = -trials * std::f64::consts::LN_2;
    let (mut tail, mut rank) = (log_probability.exp(), 0);
    while rank < count / 2 && 2.0 * tail <= 1.0 - CONFIDENCE_SHARE {
        rank += 1;
        let below = coordinate(rank);
        log_probability += ((trials - below + 1.0) / below).ln();
        tail += log_probability.exp();
    }
    let index = rank.checked_sub(1)?;
    let middle = count / 2;
    let median = match count.is_multiple_of(2) {
        true => f64::midpoint(sorted[middle - 1], sorted[middle]),
        false => sorted[middle],
    };
    Some(Interval {
        low: sorted[index],
        median,
        high: sorted[count - 1 - index],
    })
}

/// Returns the arithmetic mean; 0 without values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / coordinate(values.len().max(1))
}

/// Returns the value that a `share` of the sorted values does not exceed, by nearest
/// rank, so the result is an element; 0 without values.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * coordinate(sorted.len())).ceil();
    // Shares are between 0 and 1, so ranks are below the number of values.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (rank as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(index).copied().unwrap_or(0.0)
}

/// Converts a count to a coordinate.
#[allow(clippy::cast_precision_loss)] // far below 2^52
pub(super) fn coordinate(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_tables() {
        // 90 % of Student's t with 4 degrees of freedom: 2.132 s / √5.
        let five = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((five.mean - 3.0).abs() < 1e-12);
        let half = 2.132 * 2.5_f64.sqrt() / 5.0_f64.sqrt();
        assert!((five.half_width.unwrap() - half).abs() < 1e-12);
        assert_eq!(five.to_string(), "3.00 ± 1.51");
        assert_eq!(Mean::of(&[7.0]).to_string(), "7.00");
        assert_eq!(Mean::of(&[7.0]).interval(), (7.0, 7.0));
        assert_eq!(Mean::of(&[]), Mean::default());
        let equal_samples = Mean::of(&[2.0; 100]);
        assert_eq!(equal_samples.interval(), (2.0, 2.0));
    }

    #[test]
    fn intervals_of_medians_are_those_of_tables() {
        let interval = |count: u32| {
            let samples: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            median_interval(&samples).map(|one| (one.low, one.median, one.high))
        };
        for count in 0..5 {
            assert_eq!(interval(count), None, "{count}");
        }
        // Ranks of the sign test at 10 %, two-sided.
        assert_eq!(interval(5), Some((1.0, 3.0, 5.0)));
        assert_eq!(interval(7), Some((1.0, 4.0, 7.0)));
        assert_eq!(interval(8), Some((2.0, 4.5, 7.0)));
        assert_eq!(interval(10), Some((2.0, 5.5, 9.0)));
        assert_eq!(interval(12), Some((3.0, 6.5, 10.0)));
        assert_eq!(interval(20), Some((6.0, 10.5, 15.0)));
        assert_eq!(interval(60), Some((24.0, 30.5, 37.0)));
        let (low, median, high) = interval(4_000).unwrap();
        assert!((median - 2_000.5).abs() < 1e-9);
        // 1.645 √4000 / 2 = 52.
        assert!((low - 1_948.0).abs() <= 2.0 && (high - 2_053.0).abs() <= 2.0);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        for (share, value) in [
            (0.0, 1.0),
            (0.1, 1.0),
            (0.11, 2.0),
            (0.5, 5.0),
            (0.99, 10.0),
            (1.0, 10.0),
        ] {
            assert_eq!(quantile(&ten, share), value, "{share}");
        }
        assert_eq!(quantile(&[3.0], 0.5), 3.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
