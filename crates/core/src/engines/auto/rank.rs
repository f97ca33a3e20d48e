//! Ranks engines by their predicted lookup times.

use std::fmt;

use super::load::Load;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Estimate, Shape};
use crate::cost::machine::{Levels, Machine, Work};
use crate::model::error::BuildError;
use crate::model::limits::Limits;

/// An engine that could be built, and its predicted costs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The engine, with its options.
    pub spec: EngineSpec,
    /// The engine's memory and work.
    pub costs: Costs,
    /// The engine's times on the machine.
    pub estimate: Estimate,
    /// Nanoseconds of a core for a lookup under the load.
    pub lookup_ns: f64,
    /// Nanoseconds of a core for updates, divided by the number of lookups.
    pub update_ns: f64,
    /// Nanoseconds from one lookup to the next. Candidates are ranked by this number.
    pub ns: f64,
}

/// An engine that is not a candidate.
#[derive(Clone, Debug)]
pub struct Excluded {
    /// The engine, with its options.
    pub spec: EngineSpec,
    /// The reason.
    pub reason: BuildError,
}

/// The parts of a lookup's time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// Instructions.
    pub instructions_ns: f64,
    /// Mispredicted branches.
    pub mispredictions_ns: f64,
    /// Reading cache lines.
    pub reads_ns: f64,
    /// The correction by the machine's [factor](Machine::factor): measured time minus
    /// computed time; may be negative.
    pub factor_ns: f64,
    /// The numbers of cache lines that a lookup reads from each cache and from memory.
    pub lines: Levels,
}

/// Engines by predicted cost.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Engines that could be built, the fastest first.
    pub candidates: Vec<Candidate>,
    /// All other engines.
    pub excluded: Vec<Excluded>,
}

impl Candidate {
    fn new(
        spec: EngineSpec,
        costs: Costs,
        load: &Load,
        machine: &Machine,
    ) -> Result<Candidate, Box<Excluded>> {
        let estimate = spec.priced(&costs, machine);
        let Some(update_ns) = load.update_ns(&estimate) else {
            let reason = crate::engines::registry::takes_no_updates(spec.engine().name);
            return Err(Box::new(Excluded { spec, reason }));
        };
        let lookup_ns = load.lookup_ns(&estimate);
        Ok(Candidate {
            ns: load.ns_per_lookup(lookup_ns, update_ns),
            spec,
            costs,
            estimate,
            lookup_ns,
            update_ns,
        })
    }

    /// Returns the parts of a lookup's time.
    #[must_use]
    pub fn breakdown(&self, load: &Load, machine: &Machine) -> Breakdown {
        let work = self.lookup_work(load);
        let instructions_ns = work.instructions * machine.instruction_ns();
        let mispredictions_ns = work.mispredictions * machine.misprediction_ns();
        let work_ns = machine.ns(&work);
        Breakdown {
            instructions_ns,
            mispredictions_ns,
            reads_ns: work_ns - instructions_ns - mispredictions_ns,
            factor_ns: self.lookup_ns - work_ns,
            lines: machine.levels(&work),
        }
    }

    /// Returns the work of a lookup in batches of the load's size. It is between the
    /// work of a single lookup and of a full batch.
    fn lookup_work(&self, load: &Load) -> Work {
        if load.batch() >= crate::contract::classifier::BATCH {
            return self.costs.batch.clone();
        }
        #[allow(clippy::cast_precision_loss)] // less than a batch
        let alone = 1.0 / load.batch() as f64;
        self.costs.batch.clone() * (1.0 - alone) + self.costs.single.clone() * alone
    }
}

impl Ranking {
    /// Ranks engines.
    pub(super) fn of(
        engines: &[EngineSpec],
        shape: &Shape,
        limits: &Limits,
        load: &Load,
        machine: &Machine,
    ) -> Ranking {
        let mut ranking = Ranking::default();
        for spec in engines {
            let costs = spec.costs(shape, limits);
            let candidate = match costs {
                Ok(costs) => Candidate::new(spec.clone(), costs, load, machine),
                Err(reason) => Err(Box::new(Excluded {
                    spec: spec.clone(),
                    reason,
                })),
            };
            match candidate {
                Ok(candidate) => ranking.candidates.push(candidate),
                Err(excluded) => ranking.excluded.push(*excluded),
            }
        }
        ranking.sort();
        ranking
    }

    /// Sorts candidates by cost. Candidates of equal cost stay in their order.
    pub(super) fn sort(&mut self) {
        self.candidates.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    }

    /// Returns the candidate of an engine.
    #[must_use]
    pub fn candidate(&self, spec: &EngineSpec) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.spec == *spec)
    }
}

/// Returns the engines of a registry that fit a load. If rules do not change, these are
/// all engines that do not wrap another engine. Otherwise, these are the dynamic engines,
/// including static engines within `sfl`. `sfl` gets the load's number of lookups for
/// each update as an option.
pub(super) fn engines_for(registry: &'static [Engine], load: &Load) -> Vec<EngineSpec> {
    let specs = EngineSpec::all_in(registry);
    let Some(lookups) = load.lookups_per_update() else {
        return specs
            .filter(|spec| spec.engine().wraps == Wraps::Nothing)
            .collect();
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
    let lookups = lookups.clamp(1.0, 1e9) as u64;
    let specs = specs.filter(EngineSpec::is_dynamic);
    let tuned = specs.map(|spec| {
        if spec.engine().name != "sfl" {
            return spec;
        }
        let inner = spec.inner().expect("it wraps another one");
        let text = format!("sfl({inner}):lookups={lookups}");
        EngineSpec::parse_in(registry, &text).expect("options of `sfl`")
    });
    tuned.collect()
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instructions {:.1} ns", self.instructions_ns)?;
        if self.mispredictions_ns >= 0.05 {
            write!(
                f,
                ", mispredicted branches {:.1} ns",
                self.mispredictions_ns
            )?;
        }
        let lines: f64 = self.lines.caches.iter().sum::<f64>() + self.lines.memory;
        if lines >= 0.05 {
            write!(f, ", {lines:.1} cache lines {:.1} ns", self.reads_ns)?;
            let [first, second, third] = self.lines.caches;
            let parts = [
                ("L1", first),
                ("L2", second),
                ("L3", third),
                ("memory", self.lines.memory),
            ];
            let parts = parts.iter().filter(|part| part.1 >= 0.05);
            let parts: Vec<String> = parts.map(|(name, n)| format!("{n:.1} {name}")).collect();
            write!(f, " ({})", parts.join(", "))?;
        }
        if self.factor_ns.abs() >= 0.05 {
            write!(f, ", calibrated {:+.1} ns", self.factor_ns)?;
        }
        Ok(())
    }
}
