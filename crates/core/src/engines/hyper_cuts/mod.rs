//! `hyper-cuts`: a tree whose nodes cut several fields together into equal parts;
//! rules at the leaves.
//!
//! # Idea
//! A node represents a box of keys, and the rules that match some key of the box. The
//! root's box has all keys. A node cuts its box in some fields, each into a power of
//! two of equal parts, and has a child for each combination of parts. The bits of a
//! key that select the parts are the number of the child. A rule that overlaps
//! several children is in all of them. A lookup descends to a leaf, and compares the
//! few rules of its list.
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
//! lists:   [ place place … ] [ place … ] …       each ascending, equal lists once
//! rules:   best first
//! ```
//! A child is a node of 16 bytes, not a pointer to a node, so each level costs one
//! memory access. Equal children have copies of one node, so the nodes below it are
//! stored once.
//!
//! # Build
//! ```text
//! node(rules, box, places):
//!     make the box as small as the rules allow                 region compaction
//!     drop rules that one of the best 32 covers in the box           rule overlap
//!     stop if there are at most `binth` rules
//!     fields = fields whose number of different rule intervals is at least the mean
//!     while there are at most `spfac` × √rules children, and the cost decreases:
//!         double the parts of the field with the lowest resulting cost
//!     children with the same rules become one                  node merging
//!     stop if children and their rules are more than `places`
//!     give each child its share of `places`; unused places go to the next child
//! ```
//! The cost of a cut is a product: the mean number of rules in the child that a
//! header of a random rule is in, times the fourth root of the mean number of
//! children with a rule. If no field gains by one doubling, several doublings
//! together may gain. If the paper's fields do not gain, all other fields are tried.
//! If a node has more than 256 rules, a sample of at most 256 rules at equal
//! distances is used instead.
//!
//! Compaction may cut away a part of the box. A header of this part matches no rule
//! of the node. So nodes do not test for it: wherever it goes from there, no rule of
//! the list matches. For the same reason, merged children have the smallest box of
//! equal bits that contains all of them.
//!
//! # Lookup
//! ```text
//! node = root
//! until node is a leaf: node = first child + pieces of the key, joined
//! for rules of its list, best first: the first that matches wins
//! ```
//! Batches move sixteen keys down together until all are at leaves, and prefetch each
//! key's next node.
//!
//! # Cost
//! n rules, d fields: lookup a few nodes (O(log n), at most as many as the key has
//! bits) and one list. Memory O(n): nodes and places of lists are together at most
//! `places` × n, 32 × n by default. If rules overlap so much that this is not enough,
//! lists stay long, and are longer the more rules there are. A build makes at most 64
//! copies of rules for each place, and tries some tens of cuts over at most 256 rules
//! for each node. The engine takes no updates; `hide` takes O(log n). Lists leave out
//! rules that a better rule covers. If a key matches such a better rule and that rule
//! is hidden, the key is compared with all worse rules, one by one.
//!
//! # Where we differ from the paper, and why
//! Singh et al. cut until every leaf has at most `binth` rules, which can take
//! gigabytes for firewalls. Ours bounds nodes and places, so every rule set has a
//! tree of a known size.
//!
//! Their parts are equal pieces of any box. Ours have a power of two of values and
//! are aligned. So a key's bits are the number of its child, and nodes need no
//! division; compaction shrinks a box to such a piece.
//!
//! They choose the numbers of cuts by the mean and the largest number of rules in
//! children and by the number of empty children. We choose them by one cost, which is
//! the cost of lookups.
//!
//! Rules that all children have are not moved up into the node. Every lookup would
//! compare them at every node on its way, before better rules of the leaf. Instead,
//! equal lists are stored once, and a list ends at the first rule that covers its
//! box.
//!
//! Nodes cut at most four fields and read at most 12 bits. Fields of any width are
//! served. A value under a mask with holes is not an interval: such a rule is in all
//! boxes between its smallest and its largest value, and covers none.
//!
//! # References
//! [SBVW03]; [TM19] §II.B.
//!
//! [SBVW03]: crate::papers#sbvw03 [TM19]: crate::papers#tm19

mod boxes;
mod choose;
mod estimate;
mod grow;
mod node;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::budget::monitor::Monitor;
use crate::contract::adapter::{Algorithm, Family, build_static};
use crate::contract::classifier::{LookupTrace, Metric, Probe};
use crate::contract::options::EngineOption;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::rule::{RuleId, Winner};
use crate::parts::ranked::RankedRules;
use crate::parts::simd::prefetch;
use crate::parts::tree::{Lists, MOST_RULES, Outline};

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

/// Refuses more rules than the engine can number.
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

/// The number of keys that a batch looks up together.
const GROUP_KEYS: usize = 16;

/// The engine at every key width.
struct AnyWidth;

impl Family for AnyWidth {
    type At<const W: usize> = HyperCuts;
}

/// The engine: rules at the leaves of a tree. Duplicates share the tree.
#[derive(Clone)]
pub(super) struct HyperCuts {
    rules: RankedRules,
    tree: Arc<Tree>,
}

/// The nodes and lists of a tree.
struct Tree {
    nodes: Nodes,
    lists: Lists,
    outline: Outline,
}

impl HyperCuts {
    /// Builds a tree over rules, with the options of a specification.
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

    /// Looks up a whole group of keys.
    #[inline]
    fn improve_group<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS], winners: &mut [Winner]) {
        let (nodes, lists) = (&self.tree.nodes, &self.tree.lists);
        let mut node_of = [0_u32; GROUP_KEYS];
        // Lanes of keys that may not be at a leaf yet.
        let mut lanes: [usize; GROUP_KEYS] = std::array::from_fn(|lane| lane);
        let mut active = GROUP_KEYS;
        while active > 0 {
            let mut still_active = 0;
            for turn in 0..active {
                let lane = lanes[turn];
                let node = nodes.node(node_of[lane]);
                let (is_inner, next) = (!node.is_leaf(), node.next(&keys[lane]));
                // Written without a branch, because the levels of leaves follow no
                // pattern.
                node_of[lane] = if is_inner { next } else { node_of[lane] };
                prefetch(nodes.node(node_of[lane]));
                lanes[still_active] = lane;
                still_active += usize::from(is_inner);
            }
            active = still_active;
        }
        let leaf_lists = node_of.map(|node| nodes.node(node).list());
        for list in leaf_lists {
            lists.prefetch(list);
        }
        for list in leaf_lists {
            if let Some(place) = lists.first(list) {
                self.rules.prefetch(place);
            }
        }
        for ((key, winner), list) in keys.iter().zip(winners).zip(leaf_lists) {
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
        let (groups, rest) = keys.as_chunks::<GROUP_KEYS>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP_KEYS);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP_KEYS)) {
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

    /// A trace has a table without rules for each node on the way, and a table with
    /// rules for the leaf.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut probes = Vec::new();
        let mut path_mask = vec![0; W];
        let list = self.tree.nodes.leaf(key, |node| {
            let mut mask = vec![0; W];
            node.want(&mut mask);
            node.want(&mut path_mask);
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
            mask: path_mask,
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
