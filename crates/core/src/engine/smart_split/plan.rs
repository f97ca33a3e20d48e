//! Which trees there are to be: what each way would cost, and the cheapest.

use super::classes::{Classes, Subset};
use crate::engine::tree::Prediction;
use crate::engine::{EngineSpec, hyper_cuts, hyper_split};
use crate::error::BuildError;
use crate::machine::Machine;
use crate::monitor::Monitor;
use crate::ruleset::RuleSet;

/// The most rules by which ways are compared.
pub(super) const SAMPLE: usize = 512;

/// Fewer rules have one tree.
const FEW: usize = 64;

/// A kind of tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Split,
    Cuts,
}

impl Kind {
    /// What a tree over `count` rules would be, of which there is a sample.
    fn predict(
        self,
        spec: &EngineSpec,
        rules: &RuleSet,
        some: &[u32],
        count: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Prediction, BuildError> {
        match self {
            Kind::Split => hyper_split::predict(spec, rules, some, count, monitor),
            Kind::Cuts => hyper_cuts::predict(spec, rules, some, count, monitor),
        }
    }
}

/// Rules that a plan is for: how many, and a sample of them by index in a rule set.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) rules: &'a RuleSet,
    pub(super) some: &'a [u32],
    pub(super) count: usize,
}

/// The trees that are to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) classes: Classes,
    /// Which rules each has, and its kind.
    pub(super) trees: Vec<(Subset, Kind)>,
    /// What they were predicted to be together; nothing where there was no choice.
    pub(super) predicted: Prediction,
    /// What lookups in one tree were predicted to take.
    pub(super) one_tree_ns: f64,
}

impl Plan {
    /// By how much rules are parted.
    pub(super) fn parted_by(&self) -> &'static str {
        match self.trees.len() {
            1 => "nothing",
            2 => "one field",
            _ => "two fields",
        }
    }

    /// The way with the fastest lookups that the option `trees` allows.
    ///
    /// # Errors
    /// Those of a [`Monitor`].
    pub(super) fn choose(
        spec: &EngineSpec,
        of: Rules<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan, BuildError> {
        let step = of.some.len().div_ceil(SAMPLE).max(1);
        let some: Vec<u32> = of.some.iter().copied().step_by(step).collect();
        let of = Rules { some: &some, ..of };
        let classes = Classes::of(of.rules, of.some);
        let one = |kind| Plan {
            classes,
            trees: vec![(Subset::ALL, kind)],
            predicted: Prediction::default(),
            one_tree_ns: 0.0,
        };
        let several = match spec.options().choice("trees") {
            "hyper-split" => return Ok(one(Kind::Split)),
            "hyper-cuts" => return Ok(one(Kind::Cuts)),
            word => word == "several",
        };
        if of.count <= FEW {
            return Ok(one(Kind::Split));
        }
        let mut ways = classes.ways(of.rules, of.some);
        if several && ways.len() > 1 {
            ways.remove(0);
        }
        let machine = Machine::default();
        let lookup_ns = |plan: &Plan| machine.ns(&plan.predicted.batch);
        let mut best: Option<Plan> = None;
        let mut one_tree_ns = 0.0;
        for way in ways {
            let mut plan = Plan {
                trees: Vec::new(),
                ..one(Kind::Split)
            };
            for subset in way {
                let (kind, predicted) = plan.best_kind(spec, of, subset, monitor)?;
                plan.trees.push((subset, kind));
                plan.predicted = plan.predicted.and(predicted);
            }
            if plan.trees.len() == 1 {
                one_tree_ns = lookup_ns(&plan);
            }
            let is_faster = |best: &Plan| lookup_ns(&plan) < lookup_ns(best);
            if best.as_ref().is_none_or(is_faster) {
                best = Some(plan);
            }
        }
        let best = best.expect("one tree is a way");
        Ok(Plan {
            one_tree_ns,
            ..best
        })
    }

    /// The kind of tree with the fastest lookups for some classes.
    fn best_kind(
        &self,
        spec: &EngineSpec,
        of: Rules<'_>,
        subset: Subset,
        monitor: &mut Monitor<'_>,
    ) -> Result<(Kind, Prediction), BuildError> {
        let (some, count) = self.part(of, subset);
        let split = Kind::Split.predict(spec, of.rules, &some, count, monitor)?;
        let cuts = Kind::Cuts.predict(spec, of.rules, &some, count, monitor)?;
        let machine = Machine::default();
        Ok(if machine.ns(&cuts.batch) < machine.ns(&split.batch) {
            (Kind::Cuts, cuts)
        } else {
            (Kind::Split, split)
        })
    }

    /// What the planned trees would be.
    ///
    /// # Errors
    /// Those of a [`Monitor`].
    pub(super) fn predict(
        &self,
        spec: &EngineSpec,
        of: Rules<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Prediction, BuildError> {
        let mut all = Prediction::default();
        for &(subset, kind) in &self.trees {
            let (some, count) = self.part(of, subset);
            all = all.and(kind.predict(spec, of.rules, &some, count, monitor)?);
        }
        Ok(all)
    }

    /// The sample's rules of some classes, and how many of all rules these stand
    /// for.
    fn part(&self, of: Rules<'_>, subset: Subset) -> (Vec<u32>, usize) {
        let some = self.classes.only(of.rules, of.some, subset);
        let share = some.len() as u128 * of.count as u128 / of.some.len().max(1) as u128;
        (some, usize::try_from(share).expect("at most all rules"))
    }
}
