//! Looking headers up in batches, and the time it takes.

use std::time::Instant;

use classyard::classifier::BATCH;
use classyard::{KeyVec, PolicyClassifier, PolicyTrace, Progress, Scratch, Winner};
use serde::Serialize;

/// Passes are added until they have taken this long together, in seconds.
const ENOUGH: f64 = 0.25;

/// Passes that are made even so, unless the first takes longer than
/// [`LONG`].
const LEAST: usize = 3;

/// The most passes: enough even for a short trace, whose passes are quick.
const MOST: usize = 1000;

/// A first pass that took this long, in seconds, is not repeated.
const LONG: f64 = 2.0;

/// Batches between two reports of progress.
const BATCHES_PER_REPORT: usize = 256;

/// The winners of a trace and the time that each pass took.
pub(super) struct Lookups {
    /// For each part of the policy, the winners of its headers in order.
    winners: Vec<Vec<Winner>>,
    seconds: Vec<f64>,
}

/// How fast headers were looked up.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Rate {
    /// Timed passes over all headers.
    pub(super) passes: usize,
    /// Headers in a batch.
    pub(super) batch: usize,
    /// Rates of the passes.
    pub(super) headers_per_second: Spread,
    /// The time for a header in the median pass.
    pub(super) nanoseconds_per_header: f64,
}

/// The slowest, the median and the fastest of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

impl Lookups {
    /// Looks a trace up once and times it.
    pub(super) fn once(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        scratch: &mut Scratch,
    ) -> Lookups {
        let began = Instant::now();
        let mut lookups = Lookups {
            winners: Vec::new(),
            seconds: Vec::new(),
        };
        for (part, classifier) in classifier.parts().iter().enumerate() {
            let keys = trace.part(classyard::policy::PartId::from_index(part));
            let mut winners = vec![Winner::MISS; keys.len()];
            for (keys, winners) in keys.batches(BATCH).zip(winners.chunks_mut(BATCH)) {
                classifier.classify_batch(keys, winners, scratch);
            }
            lookups.winners.push(winners);
        }
        lookups.seconds.push(began.elapsed().as_secs_f64());
        lookups
    }

    /// Looks a trace up, several times for the timing.
    pub(super) fn run(
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        repeat: Option<u32>,
        progress: &mut dyn Progress,
    ) -> Lookups {
        let mut lookups = Lookups {
            winners: Vec::new(),
            seconds: Vec::new(),
        };
        let mut scratch = Scratch::new();
        let total = trace.len();
        // The first pass warms the caches up, makes the buffers and is what is
        // reported, so it may show its progress. It is timed only if it is all.
        let began = Instant::now();
        let mut done = 0;
        for (part, classifier) in classifier.parts().iter().enumerate() {
            let keys = trace.part(classyard::policy::PartId::from_index(part));
            let mut winners = vec![Winner::MISS; keys.len()];
            let batches = keys.batches(BATCH).zip(winners.chunks_mut(BATCH));
            for (index, (keys, winners)) in batches.enumerate() {
                classifier.classify_batch(keys, winners, &mut scratch);
                done += keys.len();
                if index % BATCHES_PER_REPORT == 0 {
                    let _ = progress.report("classifying", done, total);
                }
            }
            lookups.winners.push(winners);
        }
        let first = began.elapsed().as_secs_f64();
        if first >= LONG && repeat.is_none() {
            lookups.seconds.push(first);
            return lookups;
        }
        let mut winners: Vec<Vec<Winner>> = lookups
            .winners
            .iter()
            .map(|found| vec![Winner::MISS; found.len()])
            .collect();
        let wanted = repeat.map(|repeat| repeat as usize);
        let mut spent = 0.0;
        loop {
            let passes = lookups.seconds.len();
            let enough = match wanted {
                Some(wanted) => passes >= wanted,
                None => passes >= MOST || (passes >= LEAST && spent >= ENOUGH),
            };
            if enough || total == 0 {
                return lookups;
            }
            let _ = progress.report("timing", passes, wanted.unwrap_or(LEAST).max(passes));
            for found in &mut winners {
                found.fill(Winner::MISS);
            }
            let began = Instant::now();
            for (part, classifier) in classifier.parts().iter().enumerate() {
                let keys: &KeyVec = trace.part(classyard::policy::PartId::from_index(part));
                let batches = keys.batches(BATCH).zip(winners[part].chunks_mut(BATCH));
                for (keys, winners) in batches {
                    classifier.classify_batch(keys, winners, &mut scratch);
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            spent += seconds;
            lookups.seconds.push(seconds);
        }
    }

    /// The winners in the order of the trace.
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

    /// The duration of each pass.
    pub(super) fn seconds(&self) -> &[f64] {
        &self.seconds
    }
}

impl Rate {
    /// How fast `headers` headers were looked up, from the duration of each
    /// pass.
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
