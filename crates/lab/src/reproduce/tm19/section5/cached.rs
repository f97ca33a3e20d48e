//! One rule set with and without caches in front of its pipeline, and Open vSwitch.
//!
//! Workers with and without caches share a pipeline. Each kind of traffic has its own
//! workers, so that a cache stores only flows of the measured traffic.

use std::collections::HashMap;

use classyard::{Policy, RuleId};
use classyard_datapath::lab::microflow::KINDS;
use classyard_datapath::pipeline::{CacheSettings, Clock, Pipeline};
use classyard_report::failure::Failure;
use classyard_report::input::caches::clock;
use serde::{Deserialize, Serialize};

use super::acl::Acl;
use super::frames::{Frames, Traffic};
use super::measure::{FEW_TURNS, SHORT_TURN_SECONDS, TURN_COUNT, TURN_SECONDS, WARM_UP_SHARE};
use super::open_vswitch::{SwitchContender, SwitchRun};
use super::runner::VectorWorker;
use super::{CONTENDERS, FOREST, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS};
use crate::bench::Spread;
use crate::reproduce::Study;
use crate::reproduce::statistics::coordinate;

/// The contenders whose pipelines get caches. All are compared with the first one without
/// caches, which is the fastest.
pub(super) const CACHED: [usize; 3] = [FOREST, TUPLE_MERGE, TUPLE_SPACE];

/// The cache in front of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    Nothing,
    /// The paper's cache: the most frequent flows, and no megaflows.
    HeavyHitter,
    /// The default of workers: our microflow cache, and megaflows.
    Ours,
}

impl Front {
    /// All caches, in the order of [`Point::turns`].
    pub(super) const ALL: [Front; 3] = [Front::Nothing, Front::HeavyHitter, Front::Ours];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Front::Nothing => "none",
            Front::HeavyHitter => "heavy-hitter",
            Front::Ours => "adaptive and megaflows",
        }
    }

    /// Returns the settings of a cache for `flows` flows.
    fn settings(self, flows: usize) -> Option<CacheSettings> {
        // The paper's cache is probed for every packet. Our cache is bypassed when it
        // does not reduce the time.
        let (name, megaflows, clock): (_, _, Option<Clock>) = match self {
            Front::Nothing => return None,
            Front::HeavyHitter => ("heavy-hitter", false, None),
            Front::Ours => ("adaptive", true, Some(clock)),
        };
        let kind = KINDS.iter().find(|kind| kind.name == name);
        // A fixed seed gives the same hits in every process.
        let settings = CacheSettings::new().seed(0).clock(clock);
        let settings = settings.megaflows(megaflows).max_masks(MAX_MASKS);
        let kind = *kind.expect("a registered cache");
        let settings = settings.and_then(|settings| settings.microflows(kind, flows));
        let settings = settings.and_then(|settings| settings.max_megaflows(flows));
        Some(settings.expect("counts in their ranges"))
    }

    fn worker(self, pipeline: &mut Pipeline, flows: usize) -> VectorWorker {
        VectorWorker::new(match self.settings(flows) {
            Some(settings) => pipeline.cached_worker(settings),
            None => pipeline.worker(),
        })
    }
}

/// The maximum number of megaflow masks: the default of `replay`.
const MAX_MASKS: usize = 32;

/// The capacity of caches in flows. The paper does not state the capacity of its cache.
/// Its gains are large up to 4k rules and vanish at 32k; here 32,768 flows hold nearly
/// all flows of the synthetic traffic of 4k rules (17k to 36k of 200,000 packets), and a
/// quarter of the flows of 64k rules.
const CACHE_FLOWS: usize = 32_768;

/// Passes over all frames before anything is timed, and the seconds after which the
/// passes end early. At most 32 packets of a vector are learned, so that caches are not
/// full after the first pass.
pub(super) const LEARNING_PASSES: usize = 2;
pub(super) const LEARNING_SECONDS: f64 = 1.0;
pub(super) const SHORT_LEARNING_SECONDS: f64 = 0.05;

/// Measured values of one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// The capacity of caches, in flows.
    pub(super) room: usize,
    /// Flows of the traffic, by workload.
    pub(super) flows: [usize; 2],
    /// Packets of each worker over which the counters of entries were compared.
    pub(super) compared: usize,
    /// Packets a second in each turn, by workload, engine ([`CACHED`]) and cache
    /// ([`Front::ALL`]).
    pub(super) turns: [[[Vec<f64>; 3]; CACHED.len()]; 2],
    /// The hit rate of the caches in the same runs.
    pub(super) known: [[[f64; 3]; CACHED.len()]; 2],
    /// Open vSwitch in the same turns, by workload.
    pub(super) open_vswitch: Option<[SwitchRun; 2]>,
}

impl Point {
    /// Returns the packets a second of an engine with a cache: the median of its turns.
    pub(super) fn rate(&self, workload: usize, engine: usize, front: usize) -> f64 {
        let rates = &self.turns[workload][engine][front];
        Spread::of(rates).expect("measured").median
    }
}

/// A worker and its measured rates.
struct Candidate {
    vectors: VectorWorker,
    rates: Vec<f64>,
    /// Cache hits and sent packets before the first timed run.
    before: (u64, usize),
}

impl Candidate {
    fn new(vectors: VectorWorker) -> Candidate {
        Candidate {
            before: progress(&vectors),
            vectors,
            rates: Vec::new(),
        }
    }

    /// Measures one turn of `seconds`.
    fn turn(&mut self, frames: &Frames, seconds: f64) {
        self.vectors.run(frames, seconds * WARM_UP_SHARE);
        self.rates.push(self.vectors.run(frames, seconds));
    }

    /// Returns the hit rate since `before`.
    fn known(&self) -> f64 {
        let (known, sent) = progress(&self.vectors);
        let known = usize::try_from(known - self.before.0).unwrap_or(usize::MAX);
        coordinate(known) / coordinate((sent - self.before.1).max(1))
    }
}

/// Returns cache hits and the number of sent packets.
fn progress(vectors: &VectorWorker) -> (u64, usize) {
    let status = vectors.caches();
    (
        status.microflow_hits + status.megaflow_hits,
        vectors.nowhere.sent,
    )
}

/// Measures a rule set.
pub(super) fn measure(study: &Study<'_>, policy: &Policy, list: usize) -> Result<Point, Failure> {
    let traffic = Traffic::of(policy, study.headers(), study.list_seed(list))?;
    let quick = study.args.quick;
    let mut switch = SwitchContender::new(study, policy, list)?;
    let acl = Acl::of(policy)?;
    let mut pipelines = Vec::new();
    for place in CACHED {
        pipelines.push(acl.pipeline(CONTENDERS[place].engine)?);
    }
    let seconds = if quick {
        SHORT_LEARNING_SECONDS
    } else {
        LEARNING_SECONDS
    };
    let mut candidates: [Vec<Candidate>; 2] = Default::default();
    let mut compared = usize::MAX;
    for (workload, candidates) in candidates.iter_mut().enumerate() {
        let frames = &traffic.frames[workload];
        let warmed = warmed(&mut pipelines, frames, seconds).map_err(|what| {
            Failure::usage(format!(
                "WRONG: {} rules of {}, {} traffic, {what}",
                policy.len(),
                policy.name(),
                WORKLOADS[workload].0
            ))
        })?;
        compared = compared.min(warmed.compared);
        *candidates = warmed.candidates;
    }
    let (turns, turn) = match quick {
        // An interval of Open vSwitch needs five turns, which take longer than ours.
        true if switch.is_none() => (FEW_TURNS, SHORT_TURN_SECONDS),
        true => (TURN_COUNT, SHORT_TURN_SECONDS),
        false => (TURN_COUNT, TURN_SECONDS),
    };
    for (workload, candidates) in candidates.iter_mut().enumerate() {
        let frames = &traffic.frames[workload];
        if let Some(switch) = &mut switch {
            switch.load(workload)?;
        }
        for _ in 0..turns {
            for candidate in &mut *candidates {
                candidate.turn(frames, turn);
            }
            if let Some(switch) = &mut switch {
                switch.turn(workload)?;
            }
        }
        if let Some(switch) = &mut switch {
            switch.unload()?;
        }
    }
    Ok(Point {
        room: CACHE_FLOWS,
        flows: [0, 1].map(|workload: usize| traffic.frames[workload].flows()),
        compared,
        turns: by_candidate(&candidates, |candidate| candidate.rates.clone()),
        known: by_candidate(&candidates, Candidate::known),
        open_vswitch: switch.map(SwitchContender::runs),
    })
}

/// Returns a value of each candidate, by workload, engine and cache.
fn by_candidate<T>(
    candidates: &[Vec<Candidate>; 2],
    value: impl Fn(&Candidate) -> T,
) -> [[[T; 3]; CACHED.len()]; 2] {
    [0, 1].map(|workload: usize| {
        std::array::from_fn(|engine| {
            let first = engine * Front::ALL.len();
            std::array::from_fn(|front| value(&candidates[workload][first + front]))
        })
    })
}

/// Workers whose caches have learned one kind of traffic.
struct Warmed {
    /// A worker for each engine and cache, in this order.
    candidates: Vec<Candidate>,
    /// Packets of each worker over which the counters of entries were compared.
    compared: usize,
}

/// Returns workers that have processed all frames, or frames for `seconds`.
///
/// # Errors
/// A message with the engine and its cache, if the counters of entries differ from those
/// without a cache.
fn warmed(pipelines: &mut [Pipeline], frames: &Frames, seconds: f64) -> Result<Warmed, String> {
    let mut warmed = Warmed {
        candidates: Vec::new(),
        compared: usize::MAX,
    };
    // The counters of the first pipeline without caches, by the number of vectors.
    let mut expected_counts: HashMap<usize, Counted> = HashMap::new();
    for (engine, place) in CACHED.into_iter().enumerate() {
        for front in Front::ALL {
            if front == Front::Nothing {
                let vectors = front.worker(&mut pipelines[engine], CACHE_FLOWS);
                warmed.candidates.push(Candidate::new(vectors));
                continue;
            }
            let max_vectors = LEARNING_PASSES * frames.vectors();
            let counted = Counted::of(
                &mut pipelines[engine],
                front,
                frames,
                (max_vectors, Some(seconds)),
            );
            let expected = expected_counts.entry(counted.vectors).or_insert_with(|| {
                let exactly = (counted.vectors, None);
                Counted::of(&mut pipelines[0], Front::Nothing, frames, exactly)
            });
            warmed.compared = warmed.compared.min(counted.worker.nowhere.sent);
            counted.compare(expected).map_err(|what| {
                let engine = CONTENDERS[place].engine;
                format!("{engine} with {}: {what}", front.name())
            })?;
            warmed.candidates.push(Candidate::new(counted.worker));
        }
    }
    Ok(warmed)
}

/// Packet counts by entry, without entries that counted no packet.
type Counts = HashMap<RuleId, u64>;

fn counts(pipeline: &Pipeline) -> Counts {
    let entries = pipeline.flows().iter();
    let counts = entries.map(|entry| (entry.id, pipeline.flow_count(entry.id).packets));
    counts.filter(|&(_, packets)| packets > 0).collect()
}

/// A worker that has processed some vectors, and its counters.
struct Counted {
    worker: VectorWorker,
    vectors: usize,
    counts: Counts,
}

impl Counted {
    /// Processes `max_vectors` vectors with a new worker, or fewer if `seconds` are over.
    fn of(
        pipeline: &mut Pipeline,
        front: Front,
        frames: &Frames,
        (max_vectors, seconds): (usize, Option<f64>),
    ) -> Counted {
        let before = counts(pipeline);
        let mut worker = front.worker(pipeline, CACHE_FLOWS);
        let vectors = worker.some(frames, max_vectors, seconds);
        let mut counts = counts(pipeline);
        counts.retain(|id, packets| {
            *packets -= before.get(id).copied().unwrap_or(0);
            *packets > 0
        });
        Counted {
            worker,
            vectors,
            counts,
        }
    }

    /// Compares counters and sent packets with the values of a worker without caches.
    fn compare(&self, expected: &Counted) -> Result<(), String> {
        let sent = [self, expected].map(|one| one.worker.nowhere.sent);
        if sent[0] != sent[1] {
            return Err(format!("{} of {} packets are sent", sent[0], sent[1]));
        }
        let packets = |counted: &Counted, id| counted.counts.get(id).copied().unwrap_or(0);
        let mut ids = expected.counts.keys().chain(self.counts.keys());
        match ids.find(|id| packets(self, id) != packets(expected, id)) {
            None => Ok(()),
            Some(id) => Err(format!(
                "{} packets are counted for {id:?}, which wins {} without a cache",
                packets(self, id),
                packets(expected, id)
            )),
        }
    }
}

#[cfg(test)]
impl Point {
    /// Creates a point of one turn with given millions of packets a second, by workload,
    /// engine and cache.
    pub(super) fn of_rates(rates: [[[f64; 3]; CACHED.len()]; 2]) -> Point {
        Point {
            room: 100,
            flows: [300, 200],
            compared: 400,
            turns: rates.map(|engines| engines.map(|fronts| fronts.map(|rate| vec![rate * 1e6]))),
            known: [[[0.0, 0.5, 0.75]; CACHED.len()]; 2],
            open_vswitch: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use classyard::NoProgress;
    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::generated_policy;
    use classyard_report::input::family::FamilyName;

    #[test]
    fn caches_change_no_winner_and_a_wrong_counter_is_found() {
        let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let policy = generated_policy(family, 200, 1, &mut NoProgress).unwrap();
        let traffic = Traffic::of(&policy, 3_000, 1).unwrap();
        let acl = Acl::of(&policy).unwrap();
        for frames in &traffic.frames {
            let whole_run = (LEARNING_PASSES * frames.vectors(), None);
            let mut none = acl.pipeline("linear").unwrap();
            let expected = Counted::of(&mut none, Front::Nothing, frames, whole_run);
            // Each packet is counted in both tables.
            let sum = expected.counts.values().sum::<u64>();
            assert_eq!(sum, 2 * (LEARNING_PASSES * frames.len()) as u64);
            for place in CACHED {
                let mut pipeline = acl.pipeline(CONTENDERS[place].engine).unwrap();
                for front in Front::ALL {
                    let mut counted = Counted::of(&mut pipeline, front, frames, whole_run);
                    assert_eq!(counted.compare(&expected), Ok(()));
                    let status = counted.worker.caches();
                    let known = status.microflow_hits + status.megaflow_hits;
                    assert_eq!(known > 0, front != Front::Nothing, "{front:?}");
                    let is_paper = front == Front::HeavyHitter;
                    assert!(!is_paper || status.megaflow_lookups == 0, "{status:?}");
                    *counted.counts.values_mut().next().unwrap() += 1;
                    assert!(counted.compare(&expected).is_err());
                    counted.counts.clear();
                    assert!(counted.compare(&expected).is_err());
                }
            }
        }
    }
}
