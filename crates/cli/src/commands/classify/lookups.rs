//! Lookups in batches, and their timing.

use std::time::Instant;

use classyard::classifier::BATCH;
use classyard::{PolicyClassifier, PolicyTrace, Progress, Scratch, Winner};
use serde::Serialize;

/// Timed passes stop once they have taken this long together, in seconds.
const MIN_TIMED_SECONDS: f64 = 0.25;

/// The minimum number of passes, unless the first takes longer than
/// [`MAX_FIRST_PASS_SECONDS`].
const MIN_PASSES: usize = 3;

/// The maximum number of passes, reached by short traces whose passes are quick.
const MAX_PASSES: usize = 1000;

/// A first pass that took this long, in seconds, is not repeated.
const MAX_FIRST_PASS_SECONDS: f64 = 2.0;

/// Batches between two reports of progress.
const BATCHES_PER_REPORT: usize = 256;

/// The winners of a trace and the duration of each pass.
pub(super) struct Lookups {
    /// For each part of the policy, the winners of its headers in order.
    winners: Vec<Vec<Winner>>,
    seconds: Vec<f64>,
}

/// The lookup rate.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Rate {
    /// The number of timed passes over all headers.
    pub(super) passes: usize,
    /// The number of headers per batch.
    pub(super) batch: usize,
    /// The rates of the passes.
    pub(super) headers_per_second: Spread,
    /// The time per header in the median pass.
    pub(super) nanoseconds_per_header: f64,
}

/// The slowest, the median and the fastest of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

/// Returns a miss for each header of each part.
fn misses(trace: &PolicyTrace) -> Vec<Vec<Winner>> {
    let lengths = trace.parts().map(|(_, keys)| keys.len());
    lengths.map(|length| vec![Winner::MISS; length]).collect()
}

/// Looks a trace up in batches of [`BATCH`], and calls `after_batch` with the number of
/// headers of each batch. Overwrites `winners`, which has the winners of each part in
/// the order of the part's headers.
///
/// This loop is not [`PolicyClassifier::classify`], which also copies the winners of a
/// policy of several parts into the order of the trace. Timed passes leave out that
/// copy; [`Lookups::in_order`] reads the winners in this order afterwards.
#[inline]
fn look_up(
    classifier: &PolicyClassifier,
    trace: &PolicyTrace,
    winners: &mut [Vec<Winner>],
    scratch: &mut Scratch,
    mut after_batch: impl FnMut(usize),
) {
    let parts = classifier.parts().iter().zip(trace.parts()).zip(winners);
    for ((part_classifier, (_, part_keys)), part_winners) in parts {
        let batches = part_keys.batches(BATCH).zip(part_winners.chunks_mut(BATCH));
        for (keys, winners) in batches {
            part_classifier.classify_batch(keys, winners, scratch);
            after_batch(keys.len());
        }
    }
}

impl Lookups {
    /// Looks a trace up once and times it.
    pub(super) fn once(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        scratch: &mut Scratch,
    ) -> Lookups {
        let began = Instant::now();
        let mut winners = misses(trace);
        look_up(classifier, trace, &mut winners, scratch, |_| {});
        Lookups {
            winners,
            seconds: vec![began.elapsed().as_secs_f64()],
        }
    }

    /// Looks a trace up several times for timing.
    pub(super) fn run(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        repeat: Option<u32>,
        progress: &mut dyn Progress,
    ) -> Lookups {
        let mut scratch = Scratch::new();
        let total = trace.len();
        // The first pass warms the caches, allocates the buffers and provides the
        // reported winners, so it may show its progress. It is timed only if it is the
        // only pass.
        let began = Instant::now();
        let mut lookups = Lookups {
            winners: misses(trace),
            seconds: Vec::new(),
        };
        let (mut batches, mut done) = (0, 0);
        let winners = &mut lookups.winners;
        look_up(classifier, trace, winners, &mut scratch, |headers| {
            done += headers;
            if batches % BATCHES_PER_REPORT == 0 {
                let _ = progress.report("classifying", done, total);
            }
            batches += 1;
        });
        let first = began.elapsed().as_secs_f64();
        if first >= MAX_FIRST_PASS_SECONDS && repeat.is_none() {
            lookups.seconds.push(first);
            return lookups;
        }
        let mut winners = misses(trace);
        let requested_passes = repeat.map(|repeat| repeat as usize);
        let mut spent = 0.0;
        loop {
            let passes = lookups.seconds.len();
            let enough = match requested_passes {
                Some(requested_passes) => passes >= requested_passes,
                None => {
                    passes >= MAX_PASSES || (passes >= MIN_PASSES && spent >= MIN_TIMED_SECONDS)
                }
            };
            if enough || total == 0 {
                return lookups;
            }
            let _ = progress.report(
                "timing",
                passes,
                requested_passes.unwrap_or(MIN_PASSES).max(passes),
            );
            for part_winners in &mut winners {
                part_winners.fill(Winner::MISS);
            }
            let began = Instant::now();
            look_up(classifier, trace, &mut winners, &mut scratch, |_| {});
            let seconds = began.elapsed().as_secs_f64();
            spent += seconds;
            lookups.seconds.push(seconds);
        }
    }

    /// Returns the winners in the order of the trace.
    pub(super) fn in_order<'a>(
        &'a self,
        trace: &'a PolicyTrace,
    ) -> impl Iterator<Item = Winner> + 'a {
        let mut rows = vec![0; self.winners.len()];
        (0..trace.len()).map(move |index| {
            let part = trace.part_of(index).index();
            let winner = self.winners[part][rows[part]];
            rows[part] += 1;
            winner
        })
    }

    /// Returns the duration of each pass.
    pub(super) fn seconds(&self) -> &[f64] {
        &self.seconds
    }
}

impl Rate {
    /// Computes the rate of `headers` lookups from the duration of each pass.
    #[allow(clippy::cast_precision_loss)] // rates are shown with few digits
    pub(super) fn new(seconds: &[f64], headers: usize) -> Rate {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        if headers == 0 || median == 0.0 {
            return Rate {
                batch: BATCH,
                ..Rate::default()
            };
        }
        let headers = headers as f64;
        Rate {
            passes: sorted.len(),
            batch: BATCH,
            headers_per_second: Spread {
                min: headers / sorted[sorted.len() - 1],
                median: headers / median,
                max: headers / sorted[0],
            },
            nanoseconds_per_header: median / headers * 1e9,
        }
    }
}
