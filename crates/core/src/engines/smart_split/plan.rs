//! Planning: predicts the lookups of each way to divide rules, and chooses the fastest.

use super::classes::{Classes, Subset};
use crate::budget::monitor::Monitor;
use crate::contract::spec::EngineSpec;
use crate::cost::machine::Machine;
use crate::engines::hyper_cuts::Cuts;
use crate::engines::hyper_split::Split;
use crate::model::error::BuildError;
use crate::model::ruleset::RuleSet;
use crate::parts::tree::Prediction;
use crate::parts::tree::predict;

/// The number of rules in the sample. Measured in `bench/records/constants.md`
/// (SmartSplit).
pub(super) const SAMPLE_RULES: usize = 512;

/// The largest number of rules that get a single tree without a choice. Measured in
/// `bench/records/constants.md` (SmartSplit).
const MAX_ONE_TREE_RULES: usize = 64;

/// A kind of tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Split,
    Cuts,
}

impl Kind {
    /// Predicts a tree over `count` rules from a sample of them.
    fn predict(
        self,
        spec: &EngineSpec,
        rules: &RuleSet,
        some: &[u32],
        count: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Prediction, BuildError> {
        match self {
            Kind::Split => predict::<Split>(spec, rules, some, count, monitor),
            Kind::Cuts => predict::<Cuts>(spec, rules, some, count, monitor),
        }
    }
}

/// The rules of a plan: their number, and a sample of them by index in a rule set.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) rules: &'a RuleSet,
    pub(super) some: &'a [u32],
    pub(super) count: usize,
}

/// The planned trees.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) classes: Classes,
    /// The classes of each tree, and its kind.
    pub(super) trees: Vec<(Subset, Kind)>,
    /// The prediction for all trees together; empty without a choice.
    pub(super) predicted: Prediction,
    /// The predicted time of a lookup in one tree.
    pub(super) one_tree_ns: f64,
}

impl Plan {
    /// Says how many fields divide the rules.
    pub(super) fn parted_by(&self) -> &'static str {
        match self.trees.len() {
            1 => "nothing",
            2 => "one field",
            _ => "two fields",
        }
    }

    /// Returns the way with the fastest lookups that the option `trees` allows.
    ///
    /// # Errors
    /// Errors of the [`Monitor`].
    pub(super) fn choose(
        spec: &EngineSpec,
        all_rules: Rules<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan, BuildError> {
        let step = all_rules.some.len().div_ceil(SAMPLE_RULES).max(1);
        let sample: Vec<u32> = all_rules.some.iter().copied().step_by(step).collect();
        let sampled = Rules {
            some: &sample,
            ..all_rules
        };
        let classes = Classes::of(sampled.rules, sampled.some);
        let one_tree = |kind| Plan {
            classes,
            trees: vec![(Subset::ALL, kind)],
            predicted: Prediction::default(),
            one_tree_ns: 0.0,
        };
        let several = match spec.options().choice("trees") {
            "hyper-split" => return Ok(one_tree(Kind::Split)),
            "hyper-cuts" => return Ok(one_tree(Kind::Cuts)),
            word => word == "several",
        };
        if sampled.count <= MAX_ONE_TREE_RULES {
            return Ok(one_tree(Kind::Split));
        }
        let mut ways = classes.ways(sampled.rules, sampled.some);
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
                ..one_tree(Kind::Split)
            };
            for subset in way {
                let (kind, predicted) = plan.best_kind(spec, sampled, subset, monitor)?;
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

    /// Returns the kind of tree with the fastest lookups for some classes.
    fn best_kind(
        &self,
        spec: &EngineSpec,
        rules: Rules<'_>,
        subset: Subset,
        monitor: &mut Monitor<'_>,
    ) -> Result<(Kind, Prediction), BuildError> {
        let (some, count) = self.part(rules, subset);
        let split = Kind::Split.predict(spec, rules.rules, &some, count, monitor)?;
        let cuts = Kind::Cuts.predict(spec, rules.rules, &some, count, monitor)?;
        let machine = Machine::default();
        Ok(if machine.ns(&cuts.batch) < machine.ns(&split.batch) {
            (Kind::Cuts, cuts)
        } else {
            (Kind::Split, split)
        })
    }

    /// Predicts the planned trees together.
    ///
    /// # Errors
    /// Errors of the [`Monitor`].
    pub(super) fn predict(
        &self,
        spec: &EngineSpec,
        rules: Rules<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Prediction, BuildError> {
        let mut total = Prediction::default();
        for &(subset, kind) in &self.trees {
            let (some, count) = self.part(rules, subset);
            total = total.and(kind.predict(spec, rules.rules, &some, count, monitor)?);
        }
        Ok(total)
    }

    /// Returns the sample's rules of some classes, and the number of all rules that they
    /// represent.
    fn part(&self, rules: Rules<'_>, subset: Subset) -> (Vec<u32>, usize) {
        let sample = self.classes.only(rules.rules, rules.some, subset);
        let share = sample.len() as u128 * rules.count as u128 / rules.some.len().max(1) as u128;
        (sample, usize::try_from(share).expect("at most all rules"))
    }
}
