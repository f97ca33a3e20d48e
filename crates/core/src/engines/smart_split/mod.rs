//! `smart-split`: one or several decision trees, of the kinds with the fastest predicted
//! lookups.
//!
//! # Idea
//! Decision trees copy rules when they cut nodes. Most copies arise if some rules are
//! wide in one field and others in another: a cut in any field copies many rules.
//! Dividing rules into sets of similar rules, each with a tree of its own, makes smaller
//! trees, but a lookup searches several. Which is faster depends on the rules, so it is
//! predicted from a sample.
//!
//! # Data layout
//! ```text
//! trees:   [ hyper-split or hyper-cuts, with its rules ] …   best rule first
//! best:    [ rank of the tree's best rule ] …
//! ```
//!
//! # Build
//! ```text
//! fields = the two widest in which some rules are large and others small: an
//!          interval of more than 2^(bits / 2) values is large
//! ways:    all rules in one set; split by the first field; by the second; by both
//! for each way, each set: build a tree of each kind over a sample of 512 rules,
//!          predict memory, depth and list of the whole tree, and from them its lookups
//! take the way and the kinds with the fastest lookups
//! build each tree over its rules
//! ```
//! A class without sampled rules has no tree of its own: it joins the rules that are
//! large in both fields.
//!
//! # Lookup
//! ```text
//! for tree in trees:
//!     stop if the winner is better than the tree's best rule
//!     improve the winner by the tree
//! ```
//! A batch visits the trees one after the other, and skips keys whose winner a tree
//! cannot improve.
//!
//! # Cost
//! The sum of the trees' costs. The choice takes some tens of milliseconds, whatever the
//! number of rules. The engine takes no updates; `hide` takes O(log n).
//!
//! # Where we differ from the paper, and why
//! He et al. predict memory from the numbers of rules that are large or small in the
//! addresses. Their trees are not bounded, so memory decides between one tree and
//! several. Our trees are bounded (`places`), so copying rules makes lists longer. We
//! predict lookups from trees over a sample; memory counts as the cost of reading a
//! node. They choose between HyperSplit and HyperCuts by the uniformity of small
//! intervals; we use the same prediction for both. Our two fields may be any of the
//! schema, not only addresses.
//!
//! # References
//! [HXSM14]; [TM19] §IV.D.
//!
//! [HXSM14]: crate::papers#hxsm14
//! [TM19]: crate::papers#tm19

mod classes;
mod plan;
#[cfg(test)]
mod tests;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::adapter::{Algorithm, EveryWidth, build_static};
use crate::contract::classifier::{LookupTrace, Metric};
use crate::contract::options::EngineOption;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Shape, sample_of};
use crate::cost::machine::Machine;
use crate::engines::hyper_cuts::HyperCuts;
use crate::engines::hyper_split::HyperSplit;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::rule::{RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::parts::ranked::RankedRules;
use crate::parts::tree::{MOST_RULES, Outline, indices};

use classes::Subset;
use plan::{Kind, Plan, Rules};

/// Name of the phase for the progress callback.
const CHOOSING: &str = "choosing trees";

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "smart-split",
    summary: "one decision tree or several, of the kinds that are predicted to be fastest",
    paper: "[HXSM14]; [TM19] §IV.D",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::choice(
            "trees",
            &["auto", "hyper-split", "hyper-cuts", "several"],
            "what there may be: anything, one tree of a kind, or several trees where rules can be parted",
        ),
        EngineOption::whole(
            "binth",
            (1, 1 << 16),
            8,
            "nodes of at most this many rules are not cut",
        ),
        EngineOption::whole("spfac", (1, 64), 2, "as for `hyper-cuts`"),
        EngineOption::whole(
            "places",
            (1, 1 << 16),
            32,
            "as for `hyper-split` and `hyper-cuts`",
        ),
    ],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate,
};

fn check_rules(rules: usize) -> Result<(), BuildError> {
    if rules > MOST_RULES {
        return Err(BuildError::EngineFull {
            engine: ENGINE.name.to_owned(),
            rules,
            limit: MOST_RULES,
        });
    }
    Ok(())
}

/// The work of choosing, in builds of all chosen trees over a sample. Measured in
/// `bench/records/constants.md` (Estimates of other engines).
const CHOOSING_BUILDS: f64 = 4.0;

#[allow(clippy::cast_precision_loss)] // an estimate
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let rules = Rules {
        rules: shape.sample(),
        some: &indices(shape),
        count: shape.rules(),
    };
    let predicted = unwatched(|monitor| {
        let plan = Plan::choose(spec, rules, monitor)?;
        let mut predicted = plan.predict(spec, rules, monitor)?;
        let choosing = CHOOSING_BUILDS * plan::SAMPLE_RULES as f64 / rules.count.max(1) as f64;
        predicted.build = predicted.build * (1.0 + choosing);
        predicted.bytes += container_bytes(plan.trees.len());
        Ok(predicted)
    });
    Ok(predicted.costs())
}

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = SmartSplit;
}

/// A tree over some of the rules.
#[derive(Clone)]
enum Tree {
    Split(HyperSplit),
    Cuts(HyperCuts),
}

/// Calls a method of a tree of either kind.
macro_rules! of_tree {
    ($tree:expr, $inner:ident => $call:expr) => {
        match $tree {
            Tree::Split($inner) => $call,
            Tree::Cuts($inner) => $call,
        }
    };
}

/// The trees, best rule first.
#[derive(Clone)]
struct SmartSplit {
    trees: Vec<Tree>,
    /// The best rule of each tree.
    best: Vec<Winner>,
    plan: Plan,
}

/// Keys of a batch whose winner a tree may improve.
#[derive(Default)]
struct Left<const W: usize> {
    keys: Vec<[u64; W]>,
    winners: Vec<Winner>,
    at: Vec<usize>,
}

/// Bytes of the lists for `trees` trees.
fn container_bytes(trees: usize) -> usize {
    bytes_of::<Tree>(trees) + bytes_of::<Winner>(trees) + bytes_of::<(Subset, Kind)>(trees)
}

impl Tree {
    /// Builds a tree over the rules of a subset.
    fn build(
        spec: &EngineSpec,
        rules: &RuleSet,
        plan: &Plan,
        (subset, kind): (Subset, Kind),
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<Tree, BuildError> {
        let indices = (0..=u32::MAX).take(rules.len());
        let is_in_subset = |at: &u32| plan.classes.has(subset, &rules.rule(*at as usize));
        let mut count = 0;
        for at in indices.clone() {
            count += usize::from(is_in_subset(&at));
            monitor.work(1)?;
        }
        let chosen = indices.filter(is_in_subset);
        let rules = RankedRules::build_some(rules, count, chosen, limits, monitor)?;
        Ok(match kind {
            Kind::Split => Tree::Split(HyperSplit::over(spec, rules, limits, monitor)?),
            Kind::Cuts => Tree::Cuts(HyperCuts::over(spec, rules, limits, monitor)?),
        })
    }

    /// Returns the best rule, hidden or not.
    fn best(&self) -> Winner {
        let rules = of_tree!(self, tree => tree.ranked());
        if rules.len() == 0 {
            Winner::MISS
        } else {
            rules.winner(0)
        }
    }

    fn outline(&self) -> &Outline {
        of_tree!(self, tree => tree.outline())
    }

    fn hide(&mut self, id: RuleId) -> bool {
        of_tree!(self, tree => tree.ranked_mut()).hide(id)
    }
}

impl SmartSplit {
    /// The number of trees of a kind.
    fn count(&self, kind: Kind) -> usize {
        self.plan.trees.iter().filter(|tree| tree.1 == kind).count()
    }
}

impl<const W: usize> Algorithm<W> for SmartSplit {
    type Buffers = Left<W>;

    fn build(request: &mut BuildRequest<'_>) -> Result<SmartSplit, BuildError> {
        let (spec, rules, limits) = (request.spec, request.rules, *request.limits);
        check_rules(rules.len())?;
        let mut monitor = request.monitor();
        monitor.begin(CHOOSING, 0)?;
        let sample: Vec<u32> = sample_of(rules.len()).collect();
        let sampled = Rules {
            rules,
            some: &sample,
            count: rules.len(),
        };
        let plan = monitor.aside(|monitor| Plan::choose(spec, sampled, monitor))?;
        let mut held = container_bytes(plan.trees.len());
        monitor.memory().keep(held)?;
        let mut trees = Vec::with_capacity(plan.trees.len());
        for &(subset, kind) in &plan.trees {
            let limits = Limits {
                bytes: limits.bytes.saturating_sub(held),
                ..limits
            };
            let tree = Tree::build(spec, rules, &plan, (subset, kind), &limits, &mut monitor);
            let tree = tree.map_err(|error| with_held(error, held))?;
            held = held.saturating_add(of_tree!(&tree, tree => Algorithm::<W>::bytes(tree)));
            trees.push(tree);
        }
        sort_best_first(&mut trees);
        let best = trees.iter().map(Tree::best).collect();
        Ok(SmartSplit { trees, best, plan })
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let mut winner = best;
        for (tree, of_tree) in self.trees.iter().zip(&self.best) {
            if !of_tree.beats(winner) {
                break;
            }
            winner = of_tree!(tree, tree => tree.improve(key, winner));
        }
        winner
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], improvable: &mut Left<W>) {
        improvable.make_room(keys.len());
        for (tree, of_tree) in self.trees.iter().zip(&self.best) {
            if winners.iter().all(|winner| of_tree.beats(*winner)) {
                of_tree!(tree, tree => tree.improve_batch(keys, winners, &mut ()));
                continue;
            }
            improvable.fill(keys, winners, *of_tree);
            if improvable.at.is_empty() {
                break;
            }
            of_tree!(tree, tree => tree.improve_batch(&improvable.keys, &mut improvable.winners, &mut ()));
            for (&at, &winner) in improvable.at.iter().zip(&improvable.winners) {
                winners[at] = winner;
            }
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let mut winner = best;
        for (tree, of_tree) in self.trees.iter().zip(&self.best) {
            if !of_tree.beats(winner) {
                break;
            }
            winner = of_tree!(tree, tree => tree.improve_masked(key, winner, mask));
        }
        winner
    }

    /// Lists the probes of each tree, one tree after the other, without the trees that
    /// cannot have a better rule.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut total = LookupTrace {
            probes: Vec::new(),
            tables: 0,
            winner: Winner::MISS,
        };
        for (tree, of_tree) in self.trees.iter().zip(&self.best) {
            if !of_tree.beats(total.winner) {
                break;
            }
            let trace = of_tree!(tree, tree => Algorithm::<W>::trace(tree, key));
            for mut probe in trace.probes {
                probe.table += total.tables;
                total.probes.push(probe);
            }
            total.tables += trace.tables;
            if trace.winner.beats(total.winner) {
                total.winner = trace.winner;
            }
        }
        total
    }

    fn rules(&self) -> usize {
        let rules = |tree: &Tree| of_tree!(tree, tree => Algorithm::<W>::rules(tree));
        self.trees.iter().map(rules).sum()
    }

    fn tables(&self) -> usize {
        self.trees.len()
    }

    fn bytes(&self) -> usize {
        let bytes = |tree: &Tree| of_tree!(tree, tree => Algorithm::<W>::bytes(tree));
        self.trees.iter().map(bytes).sum::<usize>() + container_bytes(self.trees.len())
    }

    fn metrics(&self) -> Vec<Metric> {
        let outlines = self.trees.iter().map(Tree::outline);
        let max_of = |size: fn(&Outline) -> usize| outlines.clone().map(size).max().unwrap_or(0);
        let predicted = &self.plan.predicted;
        let predicted_ns = Machine::default().ns(&predicted.batch);
        vec![
            Metric::count("trees", self.trees.len()),
            Metric::count("hyper-split trees", self.count(Kind::Split)),
            Metric::count("hyper-cuts trees", self.count(Kind::Cuts)),
            Metric::word("parted by", self.plan.parted_by()),
            Metric::bytes("predicted bytes", predicted.bytes),
            Metric::nanoseconds("predicted lookup", predicted_ns),
            Metric::nanoseconds("predicted lookup, one tree", self.plan.one_tree_ns),
            Metric::count("depth", max_of(|outline| outline.depth)),
            Metric::count("longest list", max_of(|outline| outline.longest)),
        ]
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let mut trees = self.trees.iter_mut();
        Some(trees.any(|tree| tree.hide(id)))
    }

    fn duplicate(&self) -> Option<SmartSplit> {
        Some(self.clone())
    }
}

impl<const W: usize> Left<W> {
    /// Reserves memory for a batch, so that later batches of its size allocate nothing.
    fn make_room(&mut self, headers: usize) {
        self.clear();
        self.keys.reserve(headers);
        self.winners.reserve(headers);
        self.at.reserve(headers);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.winners.clear();
        self.at.clear();
    }

    /// Collects the keys whose winner is worse than `best`.
    fn fill(&mut self, keys: &[[u64; W]], winners: &[Winner], best: Winner) {
        self.clear();
        for (at, (key, winner)) in keys.iter().zip(winners).enumerate() {
            if best.beats(*winner) {
                self.keys.push(*key);
                self.winners.push(*winner);
                self.at.push(at);
            }
        }
    }
}

fn sort_best_first(trees: &mut [Tree]) {
    trees.sort_unstable_by_key(|tree| tree.best().rank());
}

/// Adds the `held` bytes of other trees to a refusal for too many bytes.
fn with_held(error: BuildError, held: usize) -> BuildError {
    match error {
        BuildError::TooManyBytes { needed, limit } => BuildError::TooManyBytes {
            needed: needed.saturating_add(held),
            limit: limit.saturating_add(held),
        },
        other => other,
    }
}
