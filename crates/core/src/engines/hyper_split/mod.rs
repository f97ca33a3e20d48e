//! `hyper-split`: a binary tree that compares one field in each node; rules at the
//! leaves.
//!
//! # Idea
//! The ends of all rules' intervals cut each field into elementary intervals. A node
//! represents a box of keys, and the rules that match some key of the box. The root's
//! box has all keys. A node splits its box in two before an elementary interval of
//! one field. A rule that overlaps both parts is in both. A lookup descends to the
//! leaf whose box contains the key, and compares the few rules of its list.
//!
//! # Data layout
//! ```text
//! nodes:   line 0  [ root |      | 2  3 ]        a node has 16 bytes; siblings
//!          line 1  [ 4  5 | 6  7 ]               are in one cache line
//!
//! inner:   [ value 64 | child 32 | word 16 | shift 16 ]
//! leaf:    [ 11 | 0 | rules 29 | first 32 | itself 32 | 0 | 63 ]
//!
//! lists:   [ place place … ] [ place … ] …       each ascending, equal lists once
//! rules:   best first
//! ```
//! A node shifts a word of the key left until the field's highest bit is the highest,
//! and compares the word with `value`. Bits of other fields below do not matter,
//! because they are zero in `value`. So a node needs no description of its field. A
//! field of more than 64 bits is compared by its upper 64 bits, or by its lower bits
//! in a box whose upper bits are all equal.
//!
//! # Build
//! ```text
//! node(rules, box, places):
//!     stop if there are at most `binth` rules
//!     for each field: cut the box at the ends of the rules;
//!                     mean = mean number of rules in a part
//!     split the field with the smallest mean, where half of the sum of rules
//!                     of all its parts is below
//!     stop if no field separates rules, or both parts have more than `places` rules
//!     give each part its share of `places`; unused places go to the next part
//! ```
//! A rule that covers a node's whole box ends the node's list: worse rules cannot win
//! there. If a node has more than 512 rules, fields are judged by a sample of at most
//! 512 rules at equal distances.
//!
//! # Lookup
//! ```text
//! node = root
//! until node is a leaf: node = child + (word << shift >= value)
//! for rules of its list, best first: the first that matches wins
//! ```
//! A leaf sends every key to itself. So batches move sixteen keys down together,
//! without a branch, until no key moves any more.
//!
//! # Cost
//! n rules, d fields: lookup O(d log n) nodes and one list. Memory O(n): lists have
//! together at most `places` × n places, 64 × n by default, and there are fewer nodes
//! than places. If rules overlap so much that this is not enough, lists stay long,
//! and are longer the more rules there are. Build: O(d n log n) for each level of the
//! tree, and at most 64 clipped rules for each place. The engine takes no updates;
//! `hide` takes O(log n). If a key's winner is hidden and ended its list by covering
//! the box, the key is compared with all worse rules, one by one.
//!
//! # Where we differ from the paper, and why
//! Qi et al. split until every leaf has at most `binth` rules. Rules of firewalls
//! overlap so much that the memory explodes: 10,000 rules take up to gigabytes. Ours
//! bounds the places, so every rule set has a tree of a known size. This tree is also
//! faster if the larger one does not fit the caches.
//!
//! They choose a field by all rules of a node. Ours uses a sample if there are many
//! rules.
//!
//! Fields of any width are served. A value under a mask with holes is not an
//! interval: such a rule is in all boxes between its smallest and its largest value,
//! and covers none.
//!
//! # References
//! [SFL17] §V, ref. 8; [TM19] §II.B, ref. 16: Y. Qi, L. Xu, B. Yang, Y. Xue, J. Li:
//! *Packet Classification Algorithms: From Theory to Practice*, INFOCOM 2009.
//!
//! [SFL17]: crate::papers#sfl17 [TM19]: crate::papers#tm19

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
use crate::parts::tree::{Lists, MOST_RULES, Outline};

pub(super) use choose::{Chooser, Cut};

pub(super) use estimate::predict;
use grow::{Bounds, Grow};
use node::Nodes;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "hyper-split",
    summary: "a binary tree that compares one field in each node; rules at the leaves",
    paper: "[SFL17] §V, ref. 8; [TM19] §II.B, ref. 16",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "binth",
            (1, 1 << 16),
            8,
            "nodes of at most this many rules are not split",
        ),
        EngineOption::whole(
            "places",
            (1, 1 << 16),
            64,
            "how many leaves a rule may be in, in the mean; leaves stay long where more are needed",
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
    type At<const W: usize> = HyperSplit;
}

/// The engine: rules at the leaves of a binary tree. Duplicates share the tree.
#[derive(Clone)]
pub(super) struct HyperSplit {
    rules: RankedRules,
    nodes: Arc<Nodes>,
    outline: Outline,
    lists: Arc<Lists>,
}

impl HyperSplit {
    /// Builds a tree over rules, with the options of a specification.
    pub(super) fn over(
        spec: &EngineSpec,
        rules: RankedRules,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<HyperSplit, BuildError> {
        let bounds = Bounds::new(spec, rules.len());
        let grown = Grow::tree(&rules, limits, bounds, monitor)?;
        Ok(HyperSplit {
            rules,
            nodes: Arc::new(grown.nodes),
            outline: grown.outline,
            lists: Arc::new(grown.lists),
        })
    }

    pub(super) fn ranked(&self) -> &RankedRules {
        &self.rules
    }

    pub(super) fn ranked_mut(&mut self) -> &mut RankedRules {
        &mut self.rules
    }

    pub(super) fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Looks up a whole group of keys.
    #[inline]
    fn improve_group<const W: usize>(&self, keys: &[[u64; W]; GROUP_KEYS], winners: &mut [Winner]) {
        let mut node_of = [0_u32; GROUP_KEYS];
        loop {
            let mut moved = 0;
            for (node, key) in node_of.iter_mut().zip(keys) {
                let next = self.nodes.next(*node, key);
                moved |= next ^ *node;
                *node = next;
            }
            if moved == 0 {
                break;
            }
        }
        let lists = node_of.map(|node| self.nodes.node(node).list());
        for list in lists {
            self.lists.prefetch(list);
        }
        for list in lists {
            if let Some(place) = self.lists.first(list) {
                self.rules.prefetch(place);
            }
        }
        for ((key, winner), list) in keys.iter().zip(winners).zip(lists) {
            *winner = self.lists.improve(&self.rules, list, key, *winner);
        }
    }
}

impl<const W: usize> Algorithm<W> for HyperSplit {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<HyperSplit, BuildError> {
        let (spec, rules, limits) = (request.spec, request.rules, request.limits);
        check_rules(rules.len())?;
        let mut monitor = request.monitor();
        let rules = RankedRules::build(rules, limits, &mut monitor)?;
        HyperSplit::over(spec, rules, limits, &mut monitor)
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let list = self.nodes.leaf(key, |_| ());
        self.lists.improve(&self.rules, list, key, best)
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
        let list = self.nodes.leaf(key, |node| node.want(key, mask));
        (self.lists).improve_masked(&self.rules, list, key, best, mask)
    }

    /// A trace has a table without rules for each node on the way, and a table with
    /// rules for the leaf.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut probes = Vec::new();
        let mut path_mask = vec![0; W];
        let list = self.nodes.leaf(key, |node| {
            let mut mask = vec![0; W];
            node.want(key, &mut mask);
            node.want(key, &mut path_mask);
            probes.push(Probe {
                table: probes.len(),
                mask,
                rules: 0,
                compared: Vec::new(),
                winner: Winner::MISS,
            });
        });
        let (compared, winner) = self.lists.trace(&self.rules, list, key);
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
        self.rules.bytes() + self.nodes.bytes() + self.lists.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::count("leaves", self.outline.leaves),
            Metric::count("places", self.outline.places),
            Metric::count("places stored", self.lists.places()),
            Metric::count("depth", self.outline.depth),
            Metric::count("longest list", self.outline.longest),
        ]
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        Some(self.rules.hide(id))
    }

    fn duplicate(&self) -> Option<HyperSplit> {
        Some(self.clone())
    }
}
