//! Chooses an engine for rules, a load and a machine.
//!
//! # Idea
//! The fastest engine depends on the rules, on the numbers of lookups and updates, and on
//! the machine. Every engine can predict its costs before it is built
//! ([`Costs`](crate::cost::estimate::Costs)). [`Auto`] predicts the costs of all engines,
//! and ranks engines by the time of a lookup plus its share of the updates under a
//! [`Load`]. If two engines are about equally fast, predictions may rank them in the
//! wrong order. So [`Auto::try_out`] can build the best few engines and time them over
//! headers, with the caller's clock.
//!
//! ```text
//! rank:    for each engine that fits the load:
//!              costs over the shape of the rules, within the limits
//!              ns = lookup + updates / lookups, one core; other cores: see Load
//! build:   for the candidates, the fastest first: build; stop when one is built
//! try out: the first candidates that can be built are timed against the best so far,
//!          interleaved, over the same headers; the faster one stays
//! review:  rank again; return another engine if it is now better by a margin
//! ```
//!
//! ```
//! use classyard::engine::auto::{Auto, Load};
//! use classyard::{Limits, NoProgress, Rule, RuleSet, Schema};
//!
//! let schema = Schema::ipv4_5tuple();
//! let mut rules = RuleSet::new(&schema);
//! for port in 0..1000_u16 {
//!     let rule = Rule::builder(&schema).id(u32::from(port)).field("dport", port);
//!     rules.push(rule.build()?.view())?;
//! }
//! let auto = Auto::default()
//!     .with_load(Load::default().with_lookups_per_update(1000.0))
//!     .with_limits(Limits::default().with_bytes(1 << 20));
//! let chosen = auto.build(&rules, &mut NoProgress)?;
//! assert!(chosen.classifier.stats().bytes() <= 1 << 20);
//! println!("{}, as predicted {:.1} ns", chosen.spec, chosen.ranking.candidates[0].ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//! Ranking takes up to some tens of milliseconds for each engine, since it builds most
//! engines over a sample. `try_out` builds the best few engines over all rules.
//!
//! # References
//! [DEC14] §IV; [SFL17] §IV for static engines.
//!
//! [DEC14]: crate::papers#dec14
//! [SFL17]: crate::papers#sfl17

use std::time::Duration;

use crate::budget::memory::Memory;
use crate::budget::progress::Progress;
use crate::contract::classifier::{Classifier, Scratch};
use crate::contract::observe;
use crate::contract::spec::Engine;
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::Shape;
use crate::cost::machine::Machine;
use crate::engines::registry::ENGINES;
use crate::model::error::BuildError;
use crate::model::key::{KeySlice, KeyVec};
use crate::model::limits::Limits;
use crate::model::rule::Winner;
use crate::model::ruleset::RuleSet;

mod load;
mod rank;

pub use load::Load;
pub use rank::{Breakdown, Candidate, Excluded, Ranking};

/// Chooses engines by predicted and measured costs.
#[derive(Clone, Debug)]
pub struct Auto {
    load: Load,
    limits: Limits,
    machine: Machine,
    engines: Option<Vec<EngineSpec>>,
    registry: &'static [Engine],
    margin: f64,
}

/// A classifier, and the reasons for its choice.
pub struct Choice {
    /// The classifier.
    pub classifier: Box<dyn Classifier>,
    /// Its engine.
    pub spec: EngineSpec,
    /// All engines, with their predicted costs.
    pub ranking: Ranking,
    /// Engines that were predicted to be faster, but could not be built.
    pub refused: Vec<Excluded>,
    /// Engines that were tried out, in the order of their predictions; empty after
    /// [`Auto::build`].
    pub trials: Vec<Trial>,
}

/// An engine that was tried out, with its times.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The engine.
    pub spec: EngineSpec,
    /// Measured nanoseconds for a lookup.
    pub lookup_ns: f64,
    /// Nanoseconds from one lookup to the next, with measured lookups and predicted
    /// updates.
    pub ns: f64,
}

/// The settings of a trial.
pub struct TryOut<'a> {
    /// Headers to look up, such as the headers of recent packets.
    pub keys: KeySlice<'a>,
    /// The number of engines to try out.
    pub candidates: usize,
    /// The number of times that each engine looks up all headers. The shortest time is
    /// the result.
    pub rounds: usize,
    /// Returns the time since a fixed moment. The CPU time of this thread is the best
    /// clock.
    pub clock: &'a mut dyn FnMut() -> Duration,
}

/// The result of a review: the current engine, or a better one.
#[derive(Clone, Debug)]
pub struct Review {
    /// All engines, over the current rules.
    pub ranking: Ranking,
    /// Predicted nanoseconds from one lookup to the next with the current engine; `None`
    /// if this engine can no longer be built.
    pub now_ns: Option<f64>,
    /// An engine that is better than the current engine by the margin.
    pub better: Option<EngineSpec>,
}

/// No limits, the default load and machine, all engines.
impl Default for Auto {
    fn default() -> Auto {
        Auto {
            load: Load::default(),
            limits: Limits::default(),
            machine: Machine::default(),
            engines: None,
            registry: ENGINES,
            margin: REVIEW_MARGIN,
        }
    }
}

/// The factor by which another engine must be better before a review returns it. Most
/// predictions are wrong by less (`bench/README.md`, Estimates).
const REVIEW_MARGIN: f64 = 1.3;

impl Auto {
    /// Sets the load: the intended use of the classifier.
    #[must_use]
    pub fn with_load(self, load: Load) -> Auto {
        Auto { load, ..self }
    }

    /// Sets the limits on rules and memory.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Auto {
        Auto { limits, ..self }
    }

    /// Sets the machine, for predicted times.
    #[must_use]
    pub fn with_machine(self, machine: Machine) -> Auto {
        Auto { machine, ..self }
    }

    /// Sets the engines to choose from, in place of all registered engines.
    #[must_use]
    pub fn with_engines(self, engines: Vec<EngineSpec>) -> Auto {
        Auto {
            engines: Some(engines),
            ..self
        }
    }

    /// Sets the registry.
    #[must_use]
    pub fn with_registry(self, registry: &'static [Engine]) -> Auto {
        Auto { registry, ..self }
    }

    /// Sets the factor by which another engine must be better before a
    /// [review](Self::review) returns it; 1.3 by default.
    ///
    /// # Panics
    /// If `margin` is below 1.
    #[must_use]
    pub fn with_margin(self, margin: f64) -> Auto {
        assert!(margin >= 1.0, "a factor of at least 1");
        Auto { margin, ..self }
    }

    /// The load.
    #[must_use]
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Ranks all engines to choose from, by predicted cost over rules of a shape.
    #[must_use]
    pub fn rank(&self, shape: &Shape) -> Ranking {
        let registered;
        let engines = match &self.engines {
            Some(engines) => engines,
            None => {
                registered = rank::engines_for(self.registry, &self.load);
                &registered
            }
        };
        Ranking::of(engines, shape, &self.limits, &self.load, &self.machine)
    }

    /// Builds the engine that is predicted to be the fastest. If the engine cannot be
    /// built, for example because it exceeds a limit, builds the next one.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels. If no candidate can be
    /// built, the error of the last candidate. If there is no candidate, the error of an
    /// excluded engine.
    pub fn build(
        &self,
        rules: &RuleSet,
        progress: &mut dyn Progress,
    ) -> Result<Choice, BuildError> {
        let ranking = self.rank(&Shape::of(rules));
        let mut refused = Vec::new();
        for candidate in &ranking.candidates {
            match candidate.spec.build(rules, &self.limits, progress) {
                Ok(classifier) => {
                    return Ok(Choice {
                        classifier,
                        spec: candidate.spec.clone(),
                        ranking,
                        refused,
                        trials: Vec::new(),
                    });
                }
                Err(reason) => refused.push(passed_over(&candidate.spec, reason)?),
            }
        }
        Err(none_built(refused, ranking))
    }

    /// Builds the engines that are predicted to be the fastest, one after the other, and
    /// times their lookups. Keeps the engine with the shortest time from one lookup to
    /// the next, with measured lookups and predicted updates. At most two engines exist
    /// at a time. The limit on peak bytes applies to both together. If the next engine
    /// does not fit in memory next to the fastest one so far, the fastest one so far
    /// stays.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    ///
    /// # Panics
    /// If there are no headers, candidates or rounds, or the headers have another
    /// schema.
    pub fn try_out(
        &self,
        rules: &RuleSet,
        how: &mut TryOut<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Choice, BuildError> {
        assert!(!how.keys.is_empty(), "headers to look up");
        assert!(how.candidates > 0 && how.rounds > 0, "something to do");
        let ranking = self.rank(&Shape::of(rules));
        let (mut refused, mut trials) = (Vec::new(), Vec::new());
        let mut best: Option<(usize, Box<dyn Classifier>)> = None;
        for candidate in &ranking.candidates {
            if trials.len() == how.candidates {
                break;
            }
            let mut memory = Memory::new(&self.limits);
            let held = best.as_ref().map_or(0, |(_, best)| best.stats().bytes());
            let built = memory.take(held).and_then(|()| {
                let limits = &self.limits;
                candidate
                    .spec
                    .build_within(rules, limits, progress, &mut memory)
            });
            let challenger = match built {
                Ok(challenger) => challenger,
                Err(reason) => {
                    refused.push(passed_over(&candidate.spec, reason)?);
                    continue;
                }
            };
            let (old, lookup_ns) = self.play(how, best.as_ref().map(|b| &*b.1), &*challenger);
            let score = |lookup_ns, update_ns| self.load.ns_per_lookup(lookup_ns, update_ns);
            let trial = Trial {
                spec: candidate.spec.clone(),
                lookup_ns,
                ns: score(lookup_ns, candidate.update_ns),
            };
            // Both times are from the same rounds.
            let wins = best.as_ref().is_none_or(|(at, _)| {
                let of_best = trials.get(*at).map(|trial: &Trial| trial.spec.clone());
                let of_best = of_best.and_then(|spec| ranking.candidate(&spec));
                let update_ns = of_best.map_or(0.0, |best| best.update_ns);
                trial.ns < score(old, update_ns)
            });
            if wins {
                best = Some((trials.len(), challenger));
            }
            trials.push(trial);
        }
        let Some((at, classifier)) = best else {
            return Err(none_built(refused, ranking));
        };
        Ok(Choice {
            classifier,
            spec: trials[at].spec.clone(),
            ranking,
            refused,
            trials,
        })
    }

    /// Times two classifiers, or one, in interleaved rounds. Returns the nanoseconds for
    /// a lookup of each; infinity if there is no `best`.
    #[allow(clippy::cast_precision_loss)] // counts of headers
    fn play(
        &self,
        how: &mut TryOut<'_>,
        best: Option<&dyn Classifier>,
        challenger: &dyn Classifier,
    ) -> (f64, f64) {
        let mut scratch = Scratch::new();
        let mut least_ns = [f64::INFINITY; 2];
        let ns_per_header = 1e9 / how.keys.len() as f64;
        // The first round warms caches and allocates scratch memory.
        for round in 0..=how.rounds {
            for (least_ns, classifier) in least_ns.iter_mut().zip([best, Some(challenger)]) {
                let Some(classifier) = classifier else {
                    continue;
                };
                let before = (how.clock)();
                look_up(classifier, how.keys, self.load.batch(), &mut scratch);
                let taken = (how.clock)().saturating_sub(before);
                if round > 0 {
                    *least_ns = least_ns.min(taken.as_secs_f64() * ns_per_header);
                }
            }
        }
        (least_ns[0], least_ns[1])
    }

    /// Ranks all engines over the current rules. Returns another engine if it is better
    /// than the engine `now` by the margin. A review takes some tenths of a second. Call
    /// it when the number of rules has changed by half, or every few minutes, not after
    /// each update.
    #[must_use]
    pub fn review(&self, now: &EngineSpec, rules: &RuleSet) -> Review {
        let ranking = self.rank(&Shape::of(rules));
        let now_ns = ranking.candidate(now).map(|candidate| candidate.ns);
        let first = ranking.candidates.first();
        let better = first.filter(|first| {
            first.spec != *now && now_ns.is_none_or(|now_ns| first.ns * self.margin < now_ns)
        });
        Review {
            better: better.map(|first| first.spec.clone()),
            now_ns,
            ranking,
        }
    }
}

/// Looks up all keys in batches of `batch` keys.
fn look_up(classifier: &dyn Classifier, keys: KeySlice<'_>, batch: usize, scratch: &mut Scratch) {
    if batch == 1 {
        for key in keys.iter() {
            std::hint::black_box(classifier.classify_one(key));
        }
        return;
    }
    let mut winners = vec![Winner::MISS; batch];
    for first in (0..keys.len()).step_by(batch) {
        let batch_keys = keys.range(first..keys.len().min(first + batch));
        let winners = &mut winners[..batch_keys.len()];
        classifier.classify_batch(batch_keys, winners, scratch);
        std::hint::black_box(winners);
    }
}

/// Returns `count` made-up headers, for trials without captured packets. Each header is a
/// corner of a rule, as in ClassBench, and every rule is equally likely. Empty if there
/// are no rules.
#[must_use]
pub fn headers_of(rules: &RuleSet, count: usize) -> KeyVec {
    observe::corners(rules, count)
}

/// Returns the engine as an excluded one, or the error if the progress callback
/// cancelled.
fn passed_over(spec: &EngineSpec, reason: BuildError) -> Result<Excluded, BuildError> {
    match reason {
        BuildError::Stopped { .. } => Err(reason),
        reason => Ok(Excluded {
            spec: spec.clone(),
            reason,
        }),
    }
}

/// Returns the error if no engine was built: the error of the last engine that was
/// tried, or of the first excluded engine.
fn none_built(mut refused: Vec<Excluded>, ranking: Ranking) -> BuildError {
    let last = refused
        .pop()
        .or_else(|| ranking.excluded.into_iter().next());
    last.map_or_else(
        || crate::engines::registry::takes_no_updates("auto"),
        |excluded| excluded.reason,
    )
}

#[cfg(test)]
mod tests;
