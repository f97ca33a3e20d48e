//! Times of lookups, and the engine's counts of their work.

use std::collections::BTreeMap;

use classyard::classifier::MetricValue;
use classyard::policy::PartId;
use classyard::{
    Classifier, EngineSpec, KeySlice, Limits, NoProgress, Policy, PolicyClassifier, Scratch, Winner,
};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::{Study, TOGETHER};
use crate::bench::{Spread, timed};
use crate::cores::{Clocks, Crew, first_objection};
use crate::counters::{Counted, Counters};
use crate::reproduce::statistics::coordinate;

/// Times of lookups with one rule set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lookups {
    pub(super) rules: usize,
    /// Nanoseconds of CPU time for a header, for each of [`TOGETHER`].
    pub(super) ns: Vec<f64>,
    /// For each of [`TOGETHER`], the time of each pass; `ns` has the medians.
    pub(super) passes: Vec<Vec<f64>>,
    /// The engine's counts in its structure, by name.
    pub(super) counts: BTreeMap<String, f64>,
    pub(super) bytes: usize,
    pub(super) wrong: usize,
    pub(super) events: Events,
}

/// The processor's counts for a header.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Events {
    /// Counts of a header looked up alone, and in the largest batches.
    pub(super) single: Option<Counted>,
    pub(super) batch: Option<Counted>,
    /// The reason why the processor did not count.
    pub(super) refusal: Option<String>,
}

impl Events {
    /// Counts the events of one pass over the keys, one by one and in batches.
    fn of(classifier: &dyn Classifier, keys: KeySlice<'_>) -> Events {
        let counted = Counters::open().and_then(|counters| {
            let mut scratch = Scratch::new();
            let mut count = |together: usize| {
                let counted = counters.count(|| {
                    std::hint::black_box(pass(classifier, keys, together, &mut scratch));
                });
                counted.map(|counted| counted.each_of(coordinate(keys.len())))
            };
            Ok((count(1)?, count(TOGETHER[TOGETHER.len() - 1])?))
        });
        match counted {
            Ok((single, batch)) => Events {
                single: Some(single),
                batch: Some(batch),
                refusal: None,
            },
            Err(error) => Events {
                refusal: Some(error.to_string()),
                ..Events::default()
            },
        }
    }
}

impl Lookups {
    /// Times lookups of an engine over the rules of the policy's only part.
    pub(super) fn over(
        policy: &Policy,
        classifier: &dyn Classifier,
        keys: KeySlice<'_>,
        repeats: usize,
    ) -> Lookups {
        let (samples, keys) = passes(classifier, keys, repeats);
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
        let rules = policy.part(PartId::FIRST);
        let checked = keys.iter().take(CHECKED_HEADERS);
        let wrong = checked.filter(|key| classifier.classify_one(key) != rules.scan(key));
        Lookups {
            rules: policy.len(),
            wrong: wrong.count(),
            ns: medians(&samples),
            passes: samples,
            events: Events::of(classifier, keys),
            counts: counts.collect(),
            bytes: stats.bytes(),
        }
    }

    /// The times of each pass with the fewest headers together: one.
    pub(super) fn single_passes(&self) -> &[f64] {
        self.passes.first().map_or(&[], Vec::as_slice)
    }

    /// The times of each pass with the most headers together.
    pub(super) fn batch_passes(&self) -> &[f64] {
        self.passes.last().map_or(&[], Vec::as_slice)
    }
}

/// Headers classified per second of elapsed time by several threads, each with headers of
/// its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Threads {
    /// The rate of all threads together.
    pub(super) rate: f64,
    /// For each pass, the rate of all threads over the rate of one thread, measured in
    /// alternation.
    pub(super) ratios: Vec<f64>,
    /// The reason why the rates do not show what the processors can do, if there is one.
    pub(super) objection: Option<String>,
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
pub(super) const CHECKED_HEADERS: usize = 300;

/// The elapsed time of a run of threads in seconds.
const RUN_SECONDS: f64 = 0.2;
const SHORT_RUN_SECONDS: f64 = 0.05;

/// Builds an engine over rules.
pub(super) fn built(engine: &str, policy: &Policy) -> Result<PolicyClassifier, Failure> {
    let spec = EngineSpec::parse(engine).expect("a registered engine with these options");
    Ok(policy.build(&spec.seeded(0), &Limits::default(), &mut NoProgress)?)
}

/// Looks up all keys, `together` at a time. Returns a value that depends on the answers.
pub(super) fn pass(
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

/// Returns the first keys, as many as fit into the time of a pass.
pub(super) fn fitting<'k>(
    classifier: &dyn Classifier,
    keys: KeySlice<'k>,
    scratch: &mut Scratch,
) -> KeySlice<'k> {
    let probed = PROBED_HEADERS.min(keys.len());
    let (_, seconds) = timed(|| pass(classifier, keys.range(0..probed), 16, scratch));
    let each = seconds / coordinate(probed.max(1));
    let count = at_most(PASS_SECONDS / each, keys.len()).max(probed);
    keys.range(0..count)
}

/// Times lookups of the keys that fit into one pass. Returns the nanoseconds per header for
/// each of [`TOGETHER`] and each pass, and the keys.
pub(super) fn passes<'k>(
    classifier: &dyn Classifier,
    keys: KeySlice<'k>,
    repeats: usize,
) -> (Vec<Vec<f64>>, KeySlice<'k>) {
    let mut scratch = Scratch::new();
    let keys = fitting(classifier, keys, &mut scratch);
    let count = keys.len();
    let mut samples = vec![Vec::new(); TOGETHER.len()];
    for repeat in 0..=repeats {
        for (&together, samples) in TOGETHER.iter().zip(&mut samples) {
            let (folded, seconds) = timed(|| pass(classifier, keys, together, &mut scratch));
            std::hint::black_box(folded);
            // The first pass warms the caches.
            if repeat > 0 {
                samples.push(seconds * 1e9 / coordinate(count));
            }
        }
    }
    (samples, keys)
}

/// Returns the median of the passes for each of [`TOGETHER`].
pub(super) fn medians(samples: &[Vec<f64>]) -> Vec<f64> {
    let median = |samples: &Vec<f64>| Spread::of(samples).map_or(0.0, |s| s.median);
    samples.iter().map(median).collect()
}

impl Study<'_> {
    pub(super) fn dec14_repeats(&self) -> usize {
        if self.args.quick {
            FEW_TIMED_PASSES
        } else {
            TIMED_PASSES
        }
    }

    /// Times lookups of an engine over `rules` rules: the median of a few passes for each
    /// number of headers together. Returns stored times if there are any.
    pub(super) fn dec14_lookups(&mut self, engine: &str, rules: usize) -> Result<Lookups, Failure> {
        let point = format!("lookups {engine}, {rules} rules, with passes and events");
        let engine = engine.to_owned();
        self.point(&point, |study| {
            let policy = study.dec14_policy(rules, 0)?;
            let trace = study.dec14_trace(&policy, 0)?;
            let classifier = built(&engine, &policy)?;
            let classifier = classifier.part(PartId::FIRST);
            let (_, keys) = trace.parts().next().expect("one part");
            let repeats = study.dec14_repeats();
            Ok(Lookups::over(&policy, classifier, keys.as_slice(), repeats))
        })
    }

    /// Times threads that look up headers in one shared structure, by elapsed time. A batch
    /// is split over the threads, so each packet stays on one core. Returns stored times if
    /// there are any.
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
            study.dec14_threads_over(classifier, keys.as_slice(), threads)
        })
    }

    /// Times threads that look up keys in one shared structure, by elapsed time.
    pub(super) fn dec14_threads_over(
        &self,
        classifier: &dyn Classifier,
        keys: KeySlice<'_>,
        threads: usize,
    ) -> Result<Threads, Failure> {
        let seconds = if self.args.quick {
            SHORT_RUN_SECONDS
        } else {
            RUN_SECONDS
        };
        let mut crews = [Crew::start(1)?, Crew::start(threads)?];
        let (mut samples, mut clocks) = ([vec![], vec![]], [Clocks::default(); 2]);
        for _ in 0..self.dec14_repeats() {
            for (side, crew) in crews.iter_mut().enumerate() {
                let (headers, run) = look_up_for(crew, classifier, keys, seconds);
                samples[side].push(coordinate(headers) / run.wall);
                clocks[side].add(run);
            }
        }
        let median = |samples: &[f64]| Spread::of(samples).map_or(0.0, |s| s.median);
        let passes = samples[1].iter().zip(&samples[0]);
        Ok(Threads {
            ratios: passes.map(|(all, alone)| all / alone).collect(),
            rate: median(&samples[1]),
            objection: first_objection(&[(1, clocks[0]), (threads, clocks[1])]),
        })
    }
}

/// Looks keys up repeatedly, for at least `seconds`. Returns the number of lookups and the
/// times.
fn look_up_for(
    crew: &mut Crew,
    classifier: &dyn Classifier,
    keys: KeySlice<'_>,
    seconds: f64,
) -> (usize, Clocks) {
    let mut winners = vec![Winner::MISS; keys.len()];
    // Wakes the threads and warms the caches.
    crew.pool().classify_batch(classifier, keys, &mut winners);
    let (mut headers, mut clocks) = (0, Clocks::default());
    while headers == 0 || clocks.wall < seconds {
        let pool = crew.pool();
        let ((), pass) = Clocks::time(|| pool.classify_batch(classifier, keys, &mut winners));
        clocks.add(pass);
        headers += keys.len().max(1);
    }
    std::hint::black_box(&winners);
    (headers, clocks)
}

/// Converts a count to a whole number of at most `max`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
fn at_most(count: f64, max: usize) -> usize {
    count.clamp(0.0, coordinate(max)) as usize
}
