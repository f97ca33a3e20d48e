//! Times lookups in the thread's own CPU time.

use std::time::Duration;

use classyard::classifier::BATCH;
use classyard::{PolicyClassifier, PolicyTrace, Scratch, Winner};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Returns the CPU time that this thread has used. On shared machines it is
/// steadier than elapsed time, because it stops while other processes run.
pub fn thread_cpu_time() -> Duration {
    let cpu_clock = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(cpu_clock.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(cpu_clock.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Runs `work` and returns its result and its CPU time in seconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = thread_cpu_time();
    let value = work();
    let spent = thread_cpu_time().saturating_sub(before);
    (value, spent.as_secs_f64().max(1e-9))
}

/// Minimum, median and maximum of several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` without samples.
    pub(crate) fn of(samples: &[f64]) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Spread { min, median, max })
    }
}

/// Returns the headers classified per second of CPU time, in batches of [`BATCH`].
pub(crate) fn batch_rate(
    classifier: &PolicyClassifier,
    trace: &PolicyTrace,
    scratch: &mut Scratch,
) -> f64 {
    let mut winners = [Winner::MISS; BATCH];
    let (folded, seconds) = timed(|| {
        let mut folded = 0;
        for (part, keys) in trace.parts() {
            for keys in keys.batches(BATCH) {
                let winners = &mut winners[..keys.len()];
                classifier.part(part).classify_batch(keys, winners, scratch);
                folded ^= winners[0].rank();
            }
        }
        folded
    });
    std::hint::black_box(folded);
    as_rate(trace.len(), seconds)
}

/// Returns the headers classified per second of CPU time, in single lookups.
pub(crate) fn single_rate(classifier: &PolicyClassifier, trace: &PolicyTrace) -> f64 {
    let (folded, seconds) = timed(|| {
        let mut folded = 0;
        for (part, keys) in trace.parts() {
            let classifier = classifier.part(part);
            for key in keys.as_slice().iter() {
                folded ^= classifier.classify_one(key).rank();
            }
        }
        folded
    });
    std::hint::black_box(folded);
    as_rate(trace.len(), seconds)
}

/// Returns a count per second.
#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
pub(crate) fn as_rate(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// Returns the geometric mean of ratios, or `None` if there are none.
#[allow(clippy::cast_precision_loss)] // a few dozen ratios
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_a_middle() {
        assert_eq!(Spread::of(&[]), None);
        let odd = Spread::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(&[4.0, 1.0]).unwrap().median, 2.5);
    }

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}
