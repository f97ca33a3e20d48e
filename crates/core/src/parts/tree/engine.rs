//! A decision tree as an engine: rules, nodes, and the lists of the leaves.
//!
//! A [`TreeKind`] says how a tree grows and what its nodes are.

use std::sync::Arc;

use super::{List, Lists, MOST_RULES, Outline, TreePrices};
use crate::budget::monitor::Monitor;
use crate::contract::adapter::Algorithm;
use crate::contract::classifier::{LookupTrace, Metric, Probe};
use crate::contract::spec::{BuildRequest, EngineSpec};
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::rule::{RuleId, Winner};
use crate::parts::ranked::RankedRules;

/// The number of keys that a batch looks up together. Measured in `bench/records/constants.md`
/// (HyperSplit).
pub(crate) const GROUP_KEYS: usize = 16;

/// The nodes of a tree.
pub(crate) trait TreeNodes: Send + Sync + 'static {
    /// A node.
    type Node;

    /// Returns the list of a key's leaf. Calls `show` with each node on the way.
    fn leaf<const W: usize>(&self, key: &[u64; W], show: impl FnMut(&Self::Node)) -> List;

    /// Returns the lists of the leaves of several keys.
    fn leaves<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS]) -> [List; GROUP_KEYS];

    /// Adds to `mask` the bits of a key that determine the child of a node.
    fn want(node: &Self::Node, key: &[u64], mask: &mut [u64]);

    /// The number of nodes.
    fn len(&self) -> usize;

    /// Bytes held.
    fn bytes(&self) -> usize;

    /// Bytes held by a number of nodes.
    fn bytes_of(nodes: usize) -> usize;
}

/// A tree that was grown.
pub(crate) struct Grown<N> {
    pub(crate) nodes: N,
    pub(crate) lists: Lists,
    pub(crate) outline: Outline,
    /// The number of rules that were clipped or copied to children.
    pub(crate) copies: usize,
}

/// A kind of decision tree.
pub(crate) trait TreeKind: Send + Sync + 'static {
    /// Its nodes.
    type Nodes: TreeNodes;

    /// The name of the engine, for errors.
    const NAME: &'static str;

    /// The prices of its work.
    const PRICES: TreePrices;

    /// Grows a tree with the options of a specification, whose bounds are those of
    /// `rule_count` rules.
    ///
    /// # Errors
    /// The errors of a [`Monitor`], and of limits.
    fn grow(
        spec: &EngineSpec,
        rules: &RankedRules,
        rule_count: usize,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grown<Self::Nodes>, BuildError>;
}

/// Refuses more rules than a tree can number.
pub(super) fn check_rules<K: TreeKind>(rules: usize) -> Result<(), BuildError> {
    if rules > MOST_RULES {
        return Err(BuildError::EngineFull {
            engine: K::NAME.to_owned(),
            rules,
            limit: MOST_RULES,
        });
    }
    Ok(())
}

/// The engine: rules at the leaves of a tree. Duplicates share the tree.
pub(crate) struct TreeEngine<K: TreeKind> {
    rules: RankedRules,
    tree: Arc<Grown<K::Nodes>>,
}

impl<K: TreeKind> Clone for TreeEngine<K> {
    fn clone(&self) -> TreeEngine<K> {
        TreeEngine {
            rules: self.rules.clone(),
            tree: Arc::clone(&self.tree),
        }
    }
}

impl<K: TreeKind> TreeEngine<K> {
    /// Builds a tree over rules, with the options of a specification.
    pub(crate) fn over(
        spec: &EngineSpec,
        rules: RankedRules,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<TreeEngine<K>, BuildError> {
        let tree = K::grow(spec, &rules, rules.len(), limits, monitor)?;
        Ok(TreeEngine {
            rules,
            tree: Arc::new(tree),
        })
    }

    /// The rules, best first.
    pub(crate) fn ranked(&self) -> &RankedRules {
        &self.rules
    }

    /// The rules, to hide some of them.
    pub(crate) fn ranked_mut(&mut self) -> &mut RankedRules {
        &mut self.rules
    }

    /// The shape of the tree.
    pub(crate) fn outline(&self) -> &Outline {
        &self.tree.outline
    }

    /// Looks up a whole group of keys.
    #[inline]
    fn improve_group<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS], winners: &mut [Winner]) {
        let lists = &self.tree.lists;
        let leaves = self.tree.nodes.leaves(keys);
        for list in leaves {
            lists.prefetch(list);
        }
        for list in leaves {
            if let Some(place) = lists.first(list) {
                self.rules.prefetch(place);
            }
        }
        for ((key, winner), list) in keys.iter().zip(winners).zip(leaves) {
            *winner = lists.improve(&self.rules, list, key, *winner);
        }
    }
}

impl<K: TreeKind, const W: usize> Algorithm<W> for TreeEngine<K> {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<TreeEngine<K>, BuildError> {
        let (spec, rules, limits) = (request.spec, request.rules, request.limits);
        check_rules::<K>(rules.len())?;
        let mut monitor = request.monitor();
        let rules = RankedRules::build(rules, limits, &mut monitor)?;
        TreeEngine::over(spec, rules, limits, &mut monitor)
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
        let show = |node: &_| K::Nodes::want(node, key, mask);
        let list = self.tree.nodes.leaf(key, show);
        (self.tree.lists).improve_masked(&self.rules, list, key, best, mask)
    }

    /// A trace has a table without rules for each node on the way, and a table with
    /// rules for the leaf.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut probes = Vec::new();
        let mut path_mask = vec![0; W];
        let list = self.tree.nodes.leaf(key, |node| {
            let mut mask = vec![0; W];
            K::Nodes::want(node, key, &mut mask);
            K::Nodes::want(node, key, &mut path_mask);
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

    fn duplicate(&self) -> Option<TreeEngine<K>> {
        Some(self.clone())
    }
}

impl<N: TreeNodes> Grown<N> {
    /// Bytes held by nodes and lists.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.bytes() + self.lists.bytes()
    }
}
