//! Times of lookups, and the engine's counts of their work.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use classyard::classifier::MetricValue;
use classyard::policy::PartId;
use classyard::{
    Classifier, EngineSpec, KeySlice, Limits, NoProgress, Policy, PolicyClassifier, Scratch, Winner,
};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::{Study, TOGETHER};
use crate::bench::{Spread, thread_cpu_time, timed};
use crate::reproduce::statistics::coordinate;

/// Times of lookups with one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lookups {
    pub(super) rules: usize,
    /// Nanoseconds of CPU time for a header, for each of [`TOGETHER`].
    pub(super) ns: Vec<f64>,
    /// The times of which `ns` has the medians, one for each pass.
    pub(super) passes: Vec<Vec<f64>>,
    /// The engine's counts in its structure, by name.
    pub(super) counts: BTreeMap<String, f64>,
    pub(super) bytes: usize,
    pub(super) wrong: usize,
}

impl Lookups {
    /// The times of each pass with the fewest headers together: one.
    pub(super) fn single_passes(&self) -> &[f64] {
        self.passes.first().map_or(&[], Vec::as_slice)
    }

    /// The times of each pass with the most headers together.
    pub(super) fn batch_passes(&self) -> &[f64] {
        self.passes.last().map_or(&[], Vec::as_slice)
    }
}

/// Headers classified per second of CPU time by several threads that run together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Threads {
    /// The sum over all threads.
    pub(super) rate: f64,
    /// One thread alone, measured in alternation with all threads.
    pub(super) alone: f64,
}

/// Timed passes of each measurement, interleaved: fewer than five have no confidence
/// interval.
const TIMED_PASSES: usize = 7;
const FEW_TIMED_PASSES: usize = 5;

/// The approximate maximum time of a pass over headers.
const PASS_SECONDS: f64 = 0.02;

/// Headers that are timed to estimate how many fit into a pass, and headers whose answers
/// are compared with a scan.
const PROBED_HEADERS: usize = 500;
const CHECKED_HEADERS: usize = 300;

/// The time for which threads run together.
const RUN_TIME: Duration = Duration::from_millis(200);
const SHORT_RUN_TIME: Duration = Duration::from_millis(50);

/// Builds an engine over rules.
pub(super) fn built(engine: &str, policy: &Policy) -> Result<PolicyClassifier, Failure> {
    let spec = EngineSpec::parse(engine).expect("a registered engine with these options");
    Ok(policy.build(&spec.seeded(0), &Limits::default(), &mut NoProgress)?)
}

/// Looks up all keys, `together` at a time. Returns a value that depends on the answers.
fn pass(
    classifier: &dyn Classifier,
    keys: KeySlice<'_>,
    together: usize,
    scratch: &mut Scratch,
) -> u64 {
    if together == 1 {
        let ranks = keys.iter().map(|key| classifier.classify_one(key).rank());
        return ranks.fold(0, |folded, rank| folded ^ rank);
    }
    let mut winners = vec![Winner::MISS; together];
    batches(keys, together).fold(0, |folded, batch| {
        let winners = &mut winners[..batch.len()];
        classifier.classify_batch(batch, winners, scratch);
        folded ^ winners[0].rank()
    })
}

/// Splits keys into batches of `size` keys; the last batch may be smaller.
pub(super) fn batches(keys: KeySlice<'_>, size: usize) -> impl Iterator<Item = KeySlice<'_>> {
    let starts = (0..keys.len()).step_by(size);
    starts.map(move |start| keys.range(start..keys.len().min(start + size)))
}

impl Study<'_> {
    fn dec14_repeats(&self) -> usize {
        if self.args.quick {
            FEW_TIMED_PASSES
        } else {
            TIMED_PASSES
        }
    }

    /// Times lookups of an engine over `rules` rules: the median of a few passes for each
    /// number of headers together. Returns stored times if there are any.
    pub(super) fn dec14_lookups(&mut self, engine: &str, rules: usize) -> Result<Lookups, Failure> {
        let point = format!("lookups {engine}, {rules} rules, with passes");
        let engine = engine.to_owned();
        self.point(&point, |study| {
            let policy = study.dec14_policy(rules, 0)?;
            let trace = study.dec14_trace(&policy, 0)?;
            let classifier = built(&engine, &policy)?;
            let classifier = classifier.part(PartId::FIRST);
            let (_, keys) = trace.parts().next().expect("one part");
            let keys = keys.as_slice();
            let mut scratch = Scratch::new();
            let probed = PROBED_HEADERS.min(keys.len());
            let (_, seconds) = timed(|| pass(classifier, keys.range(0..probed), 16, &mut scratch));
            let each = seconds / coordinate(probed.max(1));
            let count = at_most(PASS_SECONDS / each, keys.len()).max(probed);
            let keys = keys.range(0..count);
            let mut samples = vec![Vec::new(); TOGETHER.len()];
            for repeat in 0..=study.dec14_repeats() {
                for (&together, samples) in TOGETHER.iter().zip(&mut samples) {
                    let (folded, seconds) =
                        timed(|| pass(classifier, keys, together, &mut scratch));
                    std::hint::black_box(folded);
                    // The first pass warms the caches.
                    if repeat > 0 {
                        samples.push(seconds * 1e9 / coordinate(count));
                    }
                }
            }
            let median = |samples: &Vec<f64>| Spread::of(samples).map_or(0.0, |s| s.median);
            let stats = classifier.stats();
            let counts = stats.metrics.iter().filter_map(|metric| {
                let value = match metric.value {
                    MetricValue::Count(count) => coordinate(count),
                    MetricValue::Bytes(bytes) => coordinate(bytes),
                    MetricValue::Ratio(ratio) => ratio,
                    _ => return None,
                };
                Some((metric.name.to_owned(), value))
            });
            let rule_set = &policy.parts()[0];
            let checked = keys.iter().take(CHECKED_HEADERS);
            let wrong = checked.filter(|key| classifier.classify_one(key) != rule_set.scan(key));
            Ok(Lookups {
                rules: policy.len(),
                wrong: wrong.count(),
                ns: samples.iter().map(median).collect(),
                passes: samples,
                counts: counts.collect(),
                bytes: stats.bytes(),
            })
        })
    }

    /// Times threads that look up headers in one shared structure. Returns stored times
    /// if there are any.
    pub(super) fn dec14_parallel(
        &mut self,
        engine: &str,
        rules: usize,
        threads: usize,
    ) -> Result<Threads, Failure> {
        let point = format!("{threads} threads {engine}, {rules} rules");
        let engine = engine.to_owned();
        self.point(&point, |study| {
            let policy = study.dec14_policy(rules, 0)?;
            let trace = study.dec14_trace(&policy, 0)?;
            let classifier = built(&engine, &policy)?;
            let classifier = classifier.part(PartId::FIRST);
            let (_, keys) = trace.parts().next().expect("one part");
            let keys = keys.as_slice();
            let run = if study.args.quick {
                SHORT_RUN_TIME
            } else {
                RUN_TIME
            };
            let (mut alone, mut together) = (Vec::new(), Vec::new());
            for _ in 0..study.dec14_repeats() {
                alone.push(at_once(classifier, keys, 1, run));
                together.push(at_once(classifier, keys, threads, run));
            }
            let median = |samples: &[f64]| Spread::of(samples).map_or(0.0, |s| s.median);
            Ok(Threads {
                rate: median(&together),
                alone: median(&alone),
            })
        })
    }
}

/// Returns the sum over all threads of headers per second of CPU time, with the threads
/// looking up batches together.
fn at_once(classifier: &dyn Classifier, keys: KeySlice<'_>, threads: usize, run: Duration) -> f64 {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let begun: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| rate_for(classifier, keys, &barrier, run)))
            .collect();
        let rates = begun
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        rates.sum::<f64>()
    })
}

/// Returns headers per second of this thread's CPU time, over `run`.
fn rate_for(
    classifier: &dyn Classifier,
    keys: KeySlice<'_>,
    barrier: &Barrier,
    run: Duration,
) -> f64 {
    let mut scratch = Scratch::new();
    // Warms the caches.
    std::hint::black_box(pass(
        classifier,
        keys,
        classyard::classifier::BATCH,
        &mut scratch,
    ));
    barrier.wait();
    let (began, before) = (Instant::now(), thread_cpu_time());
    let mut headers = 0;
    while headers == 0 || began.elapsed() < run {
        std::hint::black_box(pass(
            classifier,
            keys,
            classyard::classifier::BATCH,
            &mut scratch,
        ));
        headers += keys.len();
    }
    let spent = thread_cpu_time().saturating_sub(before);
    coordinate(headers) / spent.as_secs_f64().max(1e-9)
}

/// Converts a count to a whole number of at most `max`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
fn at_most(count: f64, max: usize) -> usize {
    count.clamp(0.0, coordinate(max)) as usize
}
