//! Lookups in batches on one or several threads, and their timing.

use classyard::classifier::BATCH;
use classyard::{PolicyClassifier, PolicyTrace, Progress, Winner};
use classyard_lab::cores::{Clocks, Crew, objection, usable_processors};
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

/// Headers between two reports of progress. Timed passes have no reports.
const HEADERS_PER_REPORT: usize = 256 * BATCH;

/// The winners of a trace and the times of each pass.
pub(super) struct Lookups {
    /// For each part of the policy, the winners of its headers in order.
    winners: Vec<Vec<Winner>>,
    passes: Vec<Clocks>,
}

/// The lookup rate.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Rate {
    /// The number of timed passes over all headers.
    pub(super) passes: usize,
    /// The maximum number of headers per batch.
    pub(super) batch: usize,
    /// The number of threads.
    pub(super) threads: usize,
    /// The number of processors that the process may use.
    pub(super) processors: usize,
    /// The share of the elapsed time for which all threads had processors.
    pub(super) cpu_share: f64,
    /// The reason why the rate does not show what the threads can do, if there is one.
    pub(super) doubt: Option<String>,
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

/// Looks a trace up, at most `span` headers at a time, and calls `after_span` with their
/// number. Overwrites `winners`, which has the winners of each part in the order of the
/// part's headers.
///
/// This loop is not [`PolicyClassifier::classify`], which also copies the winners of a
/// policy of several parts into the order of the trace. Timed passes leave out that
/// copy; [`Lookups::in_order`] reads the winners in this order afterwards.
fn look_up(
    classifier: &PolicyClassifier,
    trace: &PolicyTrace,
    winners: &mut [Vec<Winner>],
    crew: &mut Crew,
    span: usize,
    mut after_span: impl FnMut(usize),
) {
    let parts = classifier.parts().iter().zip(trace.parts()).zip(winners);
    for ((part_classifier, (_, part_keys)), part_winners) in parts {
        let spans = part_keys.batches(span).zip(part_winners.chunks_mut(span));
        for (keys, winners) in spans {
            let pool = crew.pool();
            pool.classify_batch(part_classifier.as_ref(), keys, winners);
            after_span(keys.len());
        }
    }
}

impl Lookups {
    /// Looks a trace up once and times it.
    pub(super) fn once(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        crew: &mut Crew,
    ) -> Lookups {
        let (winners, clocks) = Clocks::time(|| {
            let mut winners = misses(trace);
            let span = trace.len().max(1);
            look_up(classifier, trace, &mut winners, crew, span, |_| {});
            winners
        });
        Lookups {
            winners,
            passes: vec![clocks],
        }
    }

    /// Looks a trace up several times for timing.
    pub(super) fn run(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        repeat: Option<u32>,
        crew: &mut Crew,
        progress: &mut dyn Progress,
    ) -> Lookups {
        let total = trace.len();
        // The reported winners are those of the first pass. This pass also warms the caches
        // and allocates the buffers, and its time includes showing the progress, so it is
        // timed only if it is the only pass.
        let mut lookups = Lookups {
            winners: misses(trace),
            passes: Vec::new(),
        };
        let mut done = 0;
        let winners = &mut lookups.winners;
        let ((), first) = Clocks::time(|| {
            look_up(
                classifier,
                trace,
                winners,
                crew,
                HEADERS_PER_REPORT,
                |headers| {
                    done += headers;
                    let _ = progress.report("classifying", done, total);
                },
            );
        });
        if first.wall >= MAX_FIRST_PASS_SECONDS && repeat.is_none() {
            lookups.passes.push(first);
            return lookups;
        }
        let mut winners = misses(trace);
        let requested_passes = repeat.map(|repeat| repeat as usize);
        let mut spent = 0.0;
        loop {
            let passes = lookups.passes.len();
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
            let ((), clocks) =
                Clocks::time(|| look_up(classifier, trace, &mut winners, crew, total, |_| {}));
            spent += clocks.wall;
            lookups.passes.push(clocks);
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

    /// Returns the times of each pass.
    pub(super) fn passes(&self) -> &[Clocks] {
        &self.passes
    }
}

impl Rate {
    /// Computes the rate of `headers` lookups on `threads` threads from the times of each
    /// pass.
    #[allow(clippy::cast_precision_loss)] // rates are shown with few digits
    pub(super) fn new(passes: &[Clocks], headers: usize, threads: usize) -> Rate {
        let mut sorted: Vec<f64> = passes.iter().map(|clocks| clocks.wall).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let mut total = Clocks::default();
        passes.iter().for_each(|clocks| total.add(*clocks));
        let processors = usable_processors();
        let cpu_share = total.cpu_share(threads);
        let rate = Rate {
            batch: BATCH,
            threads,
            processors,
            cpu_share,
            ..Rate::default()
        };
        if headers == 0 || median == 0.0 {
            return rate;
        }
        let headers = headers as f64;
        Rate {
            passes: sorted.len(),
            doubt: objection(threads, processors, cpu_share),
            headers_per_second: Spread {
                min: headers / sorted[sorted.len() - 1],
                median: headers / median,
                max: headers / sorted[0],
            },
            nanoseconds_per_header: median / headers * 1e9,
            ..rate
        }
    }
}
