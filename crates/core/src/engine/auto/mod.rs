//! Choosing an engine.
//!
//! # Idea
//! Which engine is the fastest depends on the rules, on what there is of lookups
//! and updates, and on the machine. All of them can say what they would cost before
//! they are built ([`Costs`](crate::estimate::Costs)), so [`Auto`] asks all, and
//! ranks them by what a lookup costs with its share of updates under a [`Load`].
//! Predictions of engines that are about as fast may come in the wrong order; so
//! the best few can be built and timed over headers as well, with a clock that the
//! caller has.
//!
//! ```text
//! rank:    for each engine that comes into question:
//!              costs over the shape of the rules, within the limits
//!              ns = lookup + updates / lookups, one core; other cores: see Load
//! build:   for the candidates, the fastest first: build; stop when one is built
//! try out: the first candidates that can be built play against the best so far,
//!          in turns, over the same headers; the faster one stays
//! review:  rank again; say so if another engine is now better by a margin
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
//! Ranking takes up to some tens of milliseconds for each engine, since most build
//! themselves over a sample. Trying out builds the best few over all rules.
//!
//! # References
//! [DEC14] §IV; [SFL17] §IV for engines that take no updates themselves.
//!
//! [DEC14]: crate::papers#dec14
//! [SFL17]: crate::papers#sfl17

use std::time::Duration;

use super::{ENGINES, Engine, EngineSpec, observe};
use crate::classifier::{Classifier, Scratch};
use crate::error::BuildError;
use crate::estimate::Shape;
use crate::key::{KeySlice, KeyVec};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::rule::Winner;
use crate::ruleset::RuleSet;

mod load;
mod rank;

pub use load::Load;
pub use rank::{Breakdown, Candidate, Excluded, Ranking};

/// Chooses engines.
#[derive(Clone, Debug)]
pub struct Auto {
    load: Load,
    limits: Limits,
    machine: Machine,
    engines: Option<Vec<EngineSpec>>,
    registry: &'static [Engine],
    margin: f64,
}

/// A classifier, and why it is this one.
pub struct Choice {
    /// The classifier.
    pub classifier: Box<dyn Classifier>,
    /// Its engine.
    pub spec: EngineSpec,
    /// All engines, as they were predicted.
    pub ranking: Ranking,
    /// Those that were predicted to be faster, and were not built.
    pub refused: Vec<Excluded>,
    /// Those that were tried out, in the order of their predictions; none where
    /// nothing was.
    pub trials: Vec<Trial>,
}

/// An engine that was tried out.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The engine.
    pub spec: EngineSpec,
    /// Nanoseconds that were measured for a lookup.
    pub lookup_ns: f64,
    /// Nanoseconds from one lookup to the next with that, updates as predicted.
    pub ns: f64,
}

/// How engines are tried out.
pub struct TryOut<'a> {
    /// Headers to look up, such as those of the last packets.
    pub keys: KeySlice<'a>,
    /// How many engines are tried out.
    pub candidates: usize,
    /// How often each looks all headers up; the fastest time counts.
    pub rounds: usize,
    /// Time that passed since some moment: best CPU time of this thread.
    pub clock: &'a mut dyn FnMut() -> Duration,
}

/// Whether an engine is still the right one.
#[derive(Clone, Debug)]
pub struct Review {
    /// All engines over the rules as they are now.
    pub ranking: Ranking,
    /// What the engine of now costs, in nanoseconds a lookup; `None` if it could
    /// not be built any more.
    pub now_ns: Option<f64>,
    /// The engine that should take its place: better by the margin.
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
            margin: MARGIN,
        }
    }
}

/// By how much another engine must be better before it takes the place of one that
/// is built: more than predictions are wrong by, mostly (`bench/README.md`).
const MARGIN: f64 = 1.3;

impl Auto {
    /// With what the classifier is to be used for.
    #[must_use]
    pub fn with_load(self, load: Load) -> Auto {
        Auto { load, ..self }
    }

    /// With what must not be exceeded.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Auto {
        Auto { limits, ..self }
    }

    /// With what work costs.
    #[must_use]
    pub fn with_machine(self, machine: Machine) -> Auto {
        Auto { machine, ..self }
    }

    /// With the engines that come into question, in place of all that are
    /// registered.
    #[must_use]
    pub fn with_engines(self, engines: Vec<EngineSpec>) -> Auto {
        Auto {
            engines: Some(engines),
            ..self
        }
    }

    /// With the engines of another registry.
    #[must_use]
    pub fn with_registry(self, registry: &'static [Engine]) -> Auto {
        Auto { registry, ..self }
    }

    /// With the factor by which another engine must be better before a
    /// [review](Self::review) says so; 1.3 by default.
    ///
    /// # Panics
    /// When it is below 1.
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

    /// All engines that come into question, by predicted cost over rules of a
    /// shape.
    #[must_use]
    pub fn rank(&self, shape: &Shape) -> Ranking {
        let all;
        let engines = match &self.engines {
            Some(engines) => engines,
            None => {
                all = rank::engines_for(self.registry, &self.load);
                &all
            }
        };
        Ranking::of(engines, shape, &self.limits, &self.load, &self.machine)
    }

    /// Builds the engine that is predicted to be the fastest; where it meets a
    /// limit, the next.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer cancels. The error of the last
    /// candidate when none can be built; that of an excluded engine when there is
    /// no candidate.
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

    /// Builds the engines that are predicted to be the fastest, one after the
    /// other, and keeps the one that looks headers up fastest. At most two are
    /// there at a time; both count for the limit on peak bytes, and where one more
    /// does not fit beside the best so far, that one stays.
    ///
    /// # Errors
    /// Those of [`build`](Self::build).
    ///
    /// # Panics
    /// When there are no headers, candidates or rounds, or the headers are of
    /// another schema.
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
            // What both took in the same rounds decides.
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

    /// Nanoseconds a lookup of two classifiers, or of one, in turns.
    #[allow(clippy::cast_precision_loss)] // counts of headers
    fn play(
        &self,
        how: &mut TryOut<'_>,
        best: Option<&dyn Classifier>,
        challenger: &dyn Classifier,
    ) -> (f64, f64) {
        let mut scratch = Scratch::new();
        let mut least = [f64::INFINITY; 2];
        let each = 1e9 / how.keys.len() as f64;
        // The first round warms caches and makes room in the scratch.
        for round in 0..=how.rounds {
            for (least, classifier) in least.iter_mut().zip([best, Some(challenger)]) {
                let Some(classifier) = classifier else {
                    continue;
                };
                let before = (how.clock)();
                look_up(classifier, how.keys, self.load.batch(), &mut scratch);
                let taken = (how.clock)().saturating_sub(before);
                if round > 0 {
                    *least = least.min(taken.as_secs_f64() * each);
                }
            }
        }
        (least[0], least[1])
    }

    /// Whether an engine is still the right one now that rules are these. Ranking
    /// takes some tenths of a second: call it when the number of rules has changed
    /// by half, or every few minutes, rather than after each update.
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

/// Looks headers up in batches of so many.
fn look_up(classifier: &dyn Classifier, keys: KeySlice<'_>, batch: usize, scratch: &mut Scratch) {
    if batch == 1 {
        for key in keys.iter() {
            std::hint::black_box(classifier.classify_one(key));
        }
        return;
    }
    let mut winners = vec![Winner::MISS; batch];
    for first in (0..keys.len()).step_by(batch) {
        let some = keys.range(first..keys.len().min(first + batch));
        let winners = &mut winners[..some.len()];
        classifier.classify_batch(some, winners, scratch);
        std::hint::black_box(winners);
    }
}

/// Headers to try engines out with where there are none of real packets: corners
/// of the rules, as ClassBench draws them, each rule as likely as the other. There
/// are none of no rules.
#[must_use]
pub fn headers_of(rules: &RuleSet, count: usize) -> KeyVec {
    observe::corners(rules, count)
}

/// An engine that was not built, unless the observer stopped building.
fn passed_over(spec: &EngineSpec, reason: BuildError) -> Result<Excluded, BuildError> {
    match reason {
        BuildError::Stopped { .. } => Err(reason),
        reason => Ok(Excluded {
            spec: spec.clone(),
            reason,
        }),
    }
}

/// Why there is no engine: what the last one said that was tried, or else the
/// first that was asked.
fn none_built(mut refused: Vec<Excluded>, ranking: Ranking) -> BuildError {
    let last = refused
        .pop()
        .or_else(|| ranking.excluded.into_iter().next());
    last.map_or_else(
        || crate::engine::takes_no_updates("auto"),
        |excluded| excluded.reason,
    )
}

#[cfg(test)]
mod tests;
