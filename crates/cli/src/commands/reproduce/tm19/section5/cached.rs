//! One rule set with and without caches before its pipeline.
//!
//! Workers with and without caches share a pipeline. Each kind of traffic has workers of
//! its own, so that a cache knows only what is measured.

use std::collections::HashMap;

use classyard::{Policy, RuleId};
use classyard_datapath::lab::microflow::KINDS;
use classyard_datapath::pipeline::{CacheSettings, Clock, Pipeline};
use serde::{Deserialize, Serialize};

use super::acl::Acl;
use super::frames::{Frames, Traffic};
use super::measure::{FEW_TURNS, SHORT_TURN, TURN, TURNS, WARM_UP};
use super::runner::VectorWorker;
use super::{CONTENDERS, FOREST, TM, TSS, WORKLOADS};
use crate::bench::Spread;
use crate::commands::reproduce::Study;
use crate::commands::reproduce::statistics::coordinate;
use crate::failure::Failure;
use crate::input::caches::clock;

/// Whose pipelines get caches. The first one without caches is what all are held against:
/// it is the fastest.
pub(super) const CACHED: [usize; 3] = [FOREST, TM, TSS];

/// What a worker has before the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    Nothing,
    /// The paper's cache: the flows that are seen most often, and no megaflows.
    HeavyHitter,
    /// What workers have unless told otherwise: our cache of single flows, and megaflows.
    Ours,
}

impl Front {
    /// All, in the order of [`Point::rates`].
    pub(super) const ALL: [Front; 3] = [Front::Nothing, Front::HeavyHitter, Front::Ours];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Front::Nothing => "none",
            Front::HeavyHitter => "heavy-hitter",
            Front::Ours => "adaptive and megaflows",
        }
    }

    /// The settings with room for so many flows.
    fn settings(self, flows: usize) -> Option<CacheSettings> {
        // The paper's cache is asked for every packet. Ours is passed by where it does
        // not pay for itself.
        let (name, megaflows, clock): (_, _, Option<Clock>) = match self {
            Front::Nothing => return None,
            Front::HeavyHitter => ("heavy-hitter", false, None),
            Front::Ours => ("adaptive", true, Some(clock)),
        };
        let kind = KINDS.iter().find(|kind| kind.name == name);
        // Hits are to be the same in every process.
        let settings = CacheSettings::new().seed(0).clock(clock);
        let settings = settings.megaflows(megaflows).max_masks(MASKS);
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

/// Masks of megaflows: the default of `replay`.
const MASKS: usize = 32;

/// Flows that caches have room for. The paper does not say how many its cache has room
/// for. Its gains are great up to 4k rules and gone at 32k; here that many hold nearly all
/// flows of the synthetic traffic of 4k rules (17k to 36k of 200,000 packets), and a
/// quarter of those of 64k.
const FLOWS: usize = 32_768;

/// How often all frames are processed before anything is timed, and the seconds after
/// which that ends in any case. At most 32 packets of a vector are learned, so that caches
/// are not full after the first time.
pub(super) const PASSES: usize = 2;
pub(super) const LEARNING: f64 = 1.0;
pub(super) const SHORT_LEARNING: f64 = 0.05;

/// What is known of one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Flows that caches have room for.
    pub(super) room: usize,
    /// Flows of the traffic, by workload.
    pub(super) flows: [usize; 2],
    /// Packets over which the counters of entries were compared, of each worker.
    pub(super) compared: usize,
    /// Packets a second, by workload, engine ([`CACHED`]) and cache ([`Front::ALL`]).
    pub(super) rates: [[[f64; 3]; CACHED.len()]; 2],
    /// The share of packets, while that was measured, which the caches knew.
    pub(super) known: [[[f64; 3]; CACHED.len()]; 2],
}

/// A worker, and what was measured of it.
struct Candidate {
    vectors: VectorWorker,
    rates: Vec<f64>,
    /// What its caches knew and what it had sent when it was first timed.
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

    /// The share of packets that the caches knew since then.
    fn known(&self) -> f64 {
        let (known, sent) = progress(&self.vectors);
        let known = usize::try_from(known - self.before.0).unwrap_or(usize::MAX);
        coordinate(known) / coordinate((sent - self.before.1).max(1))
    }
}

/// Packets that caches knew, and packets that were sent.
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
    let acl = Acl::of(policy)?;
    let mut pipelines = Vec::new();
    for place in CACHED {
        pipelines.push(acl.pipeline(CONTENDERS[place].engine)?);
    }
    let seconds = if quick { SHORT_LEARNING } else { LEARNING };
    let mut candidates: [Vec<Candidate>; 2] = Default::default();
    let mut compared = usize::MAX;
    for ((workload, _), (frames, candidates)) in WORKLOADS
        .iter()
        .zip(traffic.frames.iter().zip(&mut candidates))
    {
        // What the first pipeline counts without caches, by the number of vectors.
        let mut rights: HashMap<usize, Counted> = HashMap::new();
        for (engine, place) in CACHED.into_iter().enumerate() {
            for front in Front::ALL {
                if front == Front::Nothing {
                    let vectors = front.worker(&mut pipelines[engine], FLOWS);
                    candidates.push(Candidate::new(vectors));
                    continue;
                }
                let most = PASSES * frames.vectors();
                let counted =
                    Counted::of(&mut pipelines[engine], front, frames, (most, Some(seconds)));
                let right = rights.entry(counted.vectors).or_insert_with(|| {
                    let exactly = (counted.vectors, None);
                    Counted::of(&mut pipelines[0], Front::Nothing, frames, exactly)
                });
                compared = compared.min(counted.worker.nowhere.sent);
                counted.compare(right).map_err(|what| {
                    Failure::usage(format!(
                        "WRONG: {} rules of {}, {workload} traffic, {} with {}: {what}",
                        policy.len(),
                        policy.name(),
                        CONTENDERS[place].engine,
                        front.name()
                    ))
                })?;
                candidates.push(Candidate::new(counted.worker));
            }
        }
    }
    let (turns, turn) = match quick {
        true => (FEW_TURNS, SHORT_TURN),
        false => (TURNS, TURN),
    };
    for _ in 0..turns {
        for (frames, candidates) in traffic.frames.iter().zip(&mut candidates) {
            for candidate in candidates {
                candidate.vectors.run(frames, turn * WARM_UP);
                let rate = candidate.vectors.run(frames, turn);
                candidate.rates.push(rate);
            }
        }
    }
    let median = |rates: &[f64]| Spread::of(rates).expect("measured").median;
    let of = |value: &dyn Fn(&Candidate) -> f64| {
        [0, 1].map(|workload: usize| {
            std::array::from_fn(|engine| {
                let first = engine * Front::ALL.len();
                std::array::from_fn(|front| value(&candidates[workload][first + front]))
            })
        })
    };
    Ok(Point {
        room: FLOWS,
        flows: [0, 1].map(|workload: usize| traffic.frames[workload].flows()),
        compared,
        rates: of(&|candidate| median(&candidate.rates)),
        known: of(&Candidate::known),
    })
}

/// Packets by the entry that they are counted for; entries without packets left out.
type Counts = HashMap<RuleId, u64>;

fn counts(pipeline: &Pipeline) -> Counts {
    let entries = pipeline.flows().iter();
    let counts = entries.map(|entry| (entry.id, pipeline.flow_count(entry.id).packets));
    counts.filter(|&(_, packets)| packets > 0).collect()
}

/// A worker that has processed some vectors, and what it has counted.
struct Counted {
    worker: VectorWorker,
    vectors: usize,
    counts: Counts,
}

impl Counted {
    /// A new worker processes so many vectors, or fewer when so many seconds are over.
    fn of(
        pipeline: &mut Pipeline,
        front: Front,
        frames: &Frames,
        (most, seconds): (usize, Option<f64>),
    ) -> Counted {
        let before = counts(pipeline);
        let mut worker = front.worker(pipeline, FLOWS);
        let vectors = worker.some(frames, most, seconds);
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

    /// Holds what was counted and sent against what a worker without caches has.
    fn compare(&self, right: &Counted) -> Result<(), String> {
        let sent = [self, right].map(|one| one.worker.nowhere.sent);
        if sent[0] != sent[1] {
            return Err(format!("{} of {} packets are sent", sent[0], sent[1]));
        }
        let of = |counted: &Counted, id| counted.counts.get(id).copied().unwrap_or(0);
        let mut ids = right.counts.keys().chain(self.counts.keys());
        match ids.find(|id| of(self, id) != of(right, id)) {
            None => Ok(()),
            Some(id) => Err(format!(
                "{} packets are counted for {id:?}, which wins {} without a cache",
                of(self, id),
                of(right, id)
            )),
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
    use crate::input::family::FamilyName;

    #[test]
    fn caches_change_no_winner_and_a_wrong_counter_is_found() {
        let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let policy = generated_policy(family, 200, 1, &mut NoProgress).unwrap();
        let traffic = Traffic::of(&policy, 3_000, 1).unwrap();
        let acl = Acl::of(&policy).unwrap();
        for frames in &traffic.frames {
            let all = (PASSES * frames.vectors(), None);
            let mut none = acl.pipeline("linear").unwrap();
            let right = Counted::of(&mut none, Front::Nothing, frames, all);
            // Each packet is counted in both tables.
            let sum = right.counts.values().sum::<u64>();
            assert_eq!(sum, 2 * (PASSES * frames.len()) as u64);
            for place in CACHED {
                let mut pipeline = acl.pipeline(CONTENDERS[place].engine).unwrap();
                for front in Front::ALL {
                    let mut counted = Counted::of(&mut pipeline, front, frames, all);
                    assert_eq!(counted.compare(&right), Ok(()));
                    let status = counted.worker.caches();
                    let known = status.microflow_hits + status.megaflow_hits;
                    assert_eq!(known > 0, front != Front::Nothing, "{front:?}");
                    let is_paper = front == Front::HeavyHitter;
                    assert!(!is_paper || status.megaflow_lookups == 0, "{status:?}");
                    *counted.counts.values_mut().next().unwrap() += 1;
                    assert!(counted.compare(&right).is_err());
                    counted.counts.clear();
                    assert!(counted.compare(&right).is_err());
                }
            }
        }
    }
}
