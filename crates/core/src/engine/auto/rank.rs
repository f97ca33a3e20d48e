//! Which engine is predicted to be the fastest.

use std::fmt;

use super::load::Load;
use crate::engine::{Engine, EngineSpec, Wraps};
use crate::error::BuildError;
use crate::estimate::{Costs, Estimate, Shape};
use crate::limits::Limits;
use crate::machine::{Levels, Machine, Work};

/// An engine that could be built, and what it is predicted to cost.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The engine, with its options.
    pub spec: EngineSpec,
    /// What it would do.
    pub costs: Costs,
    /// What that takes on the machine.
    pub estimate: Estimate,
    /// Nanoseconds of a core for a lookup under the load.
    pub lookup_ns: f64,
    /// Nanoseconds of a core for the updates that come with each lookup.
    pub update_ns: f64,
    /// Nanoseconds from one lookup to the next, by which candidates are ranked.
    pub ns: f64,
}

/// An engine that is none of the candidates.
#[derive(Clone, Debug)]
pub struct Excluded {
    /// The engine, with its options.
    pub spec: EngineSpec,
    /// Why.
    pub reason: BuildError,
}

/// What a lookup's time is made of, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// Instructions.
    pub instructions_ns: f64,
    /// Branches that were not foreseen.
    pub mispredictions_ns: f64,
    /// Reading cache lines.
    pub reads_ns: f64,
    /// What calibration found that the work does not say; may be negative.
    pub factor_ns: f64,
    /// The lines that are read, by where they are found.
    pub lines: Levels,
}

/// Engines by predicted cost.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Those that could be built, the fastest first.
    pub candidates: Vec<Candidate>,
    /// The others.
    pub excluded: Vec<Excluded>,
}

impl Candidate {
    fn new(
        spec: EngineSpec,
        costs: Costs,
        load: &Load,
        machine: &Machine,
    ) -> Result<Candidate, Excluded> {
        let estimate = spec.priced(&costs, machine);
        let Some(update_ns) = load.update_ns(&estimate) else {
            let reason = crate::engine::takes_no_updates(spec.engine().name);
            return Err(Excluded { spec, reason });
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

    /// What its lookups' time is made of.
    #[must_use]
    pub fn breakdown(&self, load: &Load, machine: &Machine) -> Breakdown {
        let work = self.lookup_work(load);
        let instructions_ns = work.instructions * machine.instruction_ns();
        let mispredictions_ns = work.mispredictions * machine.misprediction_ns();
        let all = machine.ns(&work);
        Breakdown {
            instructions_ns,
            mispredictions_ns,
            reads_ns: all - instructions_ns - mispredictions_ns,
            factor_ns: self.lookup_ns - all,
            lines: machine.levels(&work),
        }
    }

    /// The work of a lookup, between that of a single one and that of a batch as
    /// the load's batches are.
    fn lookup_work(&self, load: &Load) -> Work {
        if load.batch() >= crate::classifier::BATCH {
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
                Err(reason) => Err(Excluded {
                    spec: spec.clone(),
                    reason,
                }),
            };
            match candidate {
                Ok(candidate) => ranking.candidates.push(candidate),
                Err(excluded) => ranking.excluded.push(excluded),
            }
        }
        ranking.sort();
        ranking
    }

    /// Sorts candidates by cost; those of the same cost stay in their order.
    pub(super) fn sort(&mut self) {
        self.candidates.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    }

    /// The candidate of an engine.
    #[must_use]
    pub fn candidate(&self, spec: &EngineSpec) -> Option<&Candidate> {
        self.candidates.iter().find(|other| other.spec == *spec)
    }
}

/// The engines of a registry that come into question: where rules do not change,
/// each that wraps none; otherwise those that take updates, and the others within
/// `sfl`, which is told how many lookups there are for an update.
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
