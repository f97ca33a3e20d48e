//! `hyper-cuts`: a tree whose nodes cut several fields at once into equal parts;
//! rules at the leaves.
//!
//! # Idea
//! A node stands for a box of keys, at first all of them, and for the rules that
//! match some key of it. It is cut in some fields, in each into a power of two of
//! equal parts, so it has a child for each combination of parts, and the bits of a
//! key that say which are the number of the child. A rule that reaches into
//! several children is in all of them. A lookup goes down to a leaf, and compares
//! the few rules of its list.
//!
//! # Data layout
//! ```text
//! nodes:   [ root ] [ children of the root … ] [ children of a node … ] …
//!
//! node:    [ piece 16 | piece 16 | piece 16 | piece 16 | first 32 | length 32 ]
//! piece:   [ 0 | word 5 | shift 6 | bits 4 ]       bits of a key
//! inner:   first: its first child                  length: all ones
//! leaf:    first, length: its list                 pieces: none
//!
//! lists:   [ place place … ] [ place … ] …       each ascending, equal ones once
//! rules:   best first
//! ```
//! A child is a node of 16 bytes, not a pointer to one, so each level costs one
//! access to memory. Children that are equal have copies of one node, and so what
//! is below it once.
//!
//! # Build
//! ```text
//! node(rules, box, places):
//!     make the box as small as the rules allow                 region compaction
//!     drop rules that one of the best 32 covers in the box           rule overlap
//!     stop if rules are at most `binth`
//!     fields = those with at least as many different intervals of rules as the mean
//!     while children are at most `spfac` × √rules, and the cost gets less:
//!         double the parts of the field where the cost gets least
//!     children with the same rules become one                  node merging
//!     stop if children and their rules are more than `places`
//!     give each child its share of `places`; what one does not need the next gets
//! ```
//! The cost of a cut is the number of rules of the child in which a header of a
//! random rule is, in the mean, times the fourth root of how often a rule is in
//! children. Where doubling helps in no field, doubling several times at once may.
//! If the paper's fields do not help, all others are tried. Where a node has more
//! than 256 rules, as many of them at equal distances stand for all.
//!
//! A header of a box that was cut away by compaction matches no rule of the node.
//! So nodes do not test for it: wherever it goes from there, no rule of the list
//! matches. Merged children have the smallest box of equal bits around all of
//! them, for the same reason.
//!
//! # Lookup
//! ```text
//! node = root
//! until node is a leaf: node = first child + pieces of the key, joined
//! for rules of its list, best first: the first that matches wins
//! ```
//! Batches move sixteen keys down in step until all are at leaves, and prefetch
//! each key's next node.
//!
//! # Cost
//! n rules, d fields: lookup a few nodes (O(log n) of them, at most as many as the
//! key has bits) and one list. Memory O(n): nodes and places of lists are at most
//! `places` × n together, 32 × n by default. Where rules overlap so much that this
//! does not suffice, lists stay long, the longer the more rules there are.
//! Building makes at most 64 copies of rules for each place, and for each node
//! tries some tens of cuts over at most 256 rules. Updates are not taken; `hide`
//! takes O(log n). A key that matches a hidden rule for which worse ones were left
//! out of the list is compared with all worse rules, one by one.
//!
//! # Where we differ from the paper, and why
//! Singh et al. cut until every leaf has at most `binth` rules, which for firewalls
//! can take gigabytes. Ours bounds nodes and places, so every rule set has a tree
//! of a known size.
//! Their parts are equal pieces of any box. Ours have a power of two of values and
//! are aligned, so a key's bits are the number of its child and nodes need no
//! division; compaction shrinks a box to such a piece.
//! They choose the numbers of cuts by the mean and the largest number of rules in
//! children and by how many children are empty; we by one cost, which is what
//! lookups pay.
//! Rules that all children have are not moved up into the node: every lookup would
//! compare them at every node on its way, before better rules of the leaf. Equal
//! lists are stored once instead, and a list ends at the first rule that covers
//! its box.
//! Nodes cut at most four fields and read at most 12 bits.
//! Fields of any width are served. A value under a mask with holes is no interval:
//! such a rule is in all boxes between its smallest and its largest value, and
//! covers none.
//!
//! # References
//! [SBVW03]; [TM19] §II.B.
//!
//! [SBVW03]: crate::papers#sbvw03
//! [TM19]: crate::papers#tm19

mod boxes;
mod choose;
mod estimate;
mod grow;
mod node;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::classifier::{LookupTrace, Metric, Probe};
use crate::engine::adapter::{Algorithm, BuildRequest, Family, build_static};
use crate::engine::ranked::RankedRules;
use crate::engine::tree::{Lists, MOST_RULES, Outline};
use crate::engine::{Engine, EngineOption, EngineSpec, Wraps};
use crate::error::BuildError;
use crate::limits::Limits;
use crate::monitor::Monitor;
use crate::rule::{RuleId, Winner};
use crate::simd::prefetch;

pub(super) use estimate::predict;
use grow::{Bounds, Grow};
use node::Nodes;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "hyper-cuts",
    summary: "a tree whose nodes cut several fields into equal parts; rules at the leaves",
    paper: "[SBVW03]; [TM19] §II.B",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "binth",
            (1, 1 << 16),
            8,
            "nodes of at most this many rules are not cut",
        ),
        EngineOption::whole(
            "spfac",
            (1, 64),
            2,
            "a node of n rules has at most this many times the square root of n children",
        ),
        EngineOption::whole(
            "places",
            (1, 1 << 16),
            32,
            "nodes and rules in leaves for each rule, at most; leaves stay long where more are needed",
        ),
    ],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate: estimate::estimate,
};

/// Refuses more rules than can be numbered.
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

/// Keys of a batch that are looked up in step with each other.
const GROUP: usize = 16;

/// The engine at every key width.
struct AnyWidth;

impl Family for AnyWidth {
    type At<const W: usize> = HyperCuts;
}

/// Rules at the leaves of a tree. Duplicates share the tree.
#[derive(Clone)]
pub(super) struct HyperCuts {
    rules: RankedRules,
    tree: Arc<Tree>,
}

/// A tree.
struct Tree {
    nodes: Nodes,
    lists: Lists,
    outline: Outline,
}

impl HyperCuts {
    /// Builds a tree over rules, to the options of a specification.
    pub(super) fn over(
        spec: &EngineSpec,
        rules: RankedRules,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<HyperCuts, BuildError> {
        let bounds = Bounds::new(spec, rules.len());
        let grown = Grow::tree(&rules, limits, bounds, monitor)?;
        let tree = Tree {
            nodes: grown.nodes,
            lists: grown.lists,
            outline: grown.outline,
        };
        Ok(HyperCuts {
            rules,
            tree: Arc::new(tree),
        })
    }

    pub(super) fn ranked(&self) -> &RankedRules {
        &self.rules
    }

    pub(super) fn ranked_mut(&mut self) -> &mut RankedRules {
        &mut self.rules
    }

    pub(super) fn outline(&self) -> &Outline {
        &self.tree.outline
    }

    /// Looks a whole group up.
    #[inline]
    fn improve_group<const W: usize>(&self, keys: &[[u64; W]; GROUP], winners: &mut [Winner]) {
        let (nodes, lists) = (&self.tree.nodes, &self.tree.lists);
        let mut at = [0_u32; GROUP];
        // Lanes that are not at a leaf yet, as far as is known.
        let mut lanes: [usize; GROUP] = std::array::from_fn(|lane| lane);
        let mut active = GROUP;
        while active > 0 {
            let mut kept = 0;
            for turn in 0..active {
                let lane = lanes[turn];
                let node = nodes.node(at[lane]);
                let (is_inner, next) = (!node.is_leaf(), node.next(&keys[lane]));
                // A choice without a branch: where a key's leaf is, is no pattern.
                at[lane] = if is_inner { next } else { at[lane] };
                prefetch(nodes.node(at[lane]));
                lanes[kept] = lane;
                kept += usize::from(is_inner);
            }
            active = kept;
        }
        let found = at.map(|at| nodes.node(at).list());
        for list in found {
            lists.prefetch(list);
        }
        for list in found {
            if let Some(place) = lists.first(list) {
                self.rules.prefetch(place);
            }
        }
        for ((key, winner), list) in keys.iter().zip(winners).zip(found) {
            *winner = lists.improve(&self.rules, list, key, *winner);
        }
    }
}

impl<const W: usize> Algorithm<W> for HyperCuts {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<HyperCuts, BuildError> {
        let (spec, rules, limits) = (request.spec, request.rules, request.limits);
        check_rules(rules.len())?;
        let mut monitor = request.monitor();
        let rules = RankedRules::build(rules, limits, &mut monitor)?;
        HyperCuts::over(spec, rules, limits, &mut monitor)
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let list = self.tree.nodes.leaf(key, |_| ());
        self.tree.lists.improve(&self.rules, list, key, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], (): &mut ()) {
        let (groups, rest) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP)) {
            self.improve_group(keys, winners);
        }
        for (key, winner) in rest.iter().zip(of_rest) {
            *winner = self.improve(key, *winner);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let list = self.tree.nodes.leaf(key, |node| node.want(mask));
        (self.tree.lists).improve_masked(&self.rules, list, key, best, mask)
    }

    /// Every node on the way is a table without rules, the leaf one with rules.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut probes = Vec::new();
        let mut all = vec![0; W];
        let list = self.tree.nodes.leaf(key, |node| {
            let mut mask = vec![0; W];
            node.want(&mut mask);
            node.want(&mut all);
            probes.push(Probe {
                table: probes.len(),
                mask,
                rules: 0,
                compared: Vec::new(),
                winner: Winner::MISS,
            });
        });
        let (compared, winner) = self.tree.lists.trace(&self.rules, list, key);
        probes.push(Probe {
            table: probes.len(),
            mask: all,
            rules: compared.len().max(list.len as usize),
            compared,
            winner,
        });
        LookupTrace {
            tables: probes.len(),
            probes,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.rules.present()
    }

    fn tables(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.rules.bytes() + self.tree.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let (tree, outline) = (&self.tree, &self.tree.outline);
        vec![
            Metric::count("nodes", tree.nodes.len()),
            Metric::count("leaves", outline.leaves),
            Metric::count("places", outline.places),
            Metric::count("places stored", tree.lists.places()),
            Metric::count("depth", outline.depth),
            Metric::count("longest list", outline.longest),
        ]
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        Some(self.rules.hide(id))
    }

    fn duplicate(&self) -> Option<HyperCuts> {
        Some(self.clone())
    }
}

impl Tree {
    fn bytes(&self) -> usize {
        self.nodes.bytes() + self.lists.bytes()
    }
}
