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

mod grow;
mod node;
#[cfg(test)]
mod tests;

use crate::budget::monitor::Monitor;
use crate::contract::adapter::{EveryWidth, build_static};
use crate::contract::observe::Prices;
use crate::contract::options::EngineOption;
use crate::contract::spec::{Engine, EngineSpec, Wraps};
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::parts::ranked::RankedRules;
use crate::parts::tree::{Grown, TreeEngine, TreeKind, TreePrices, estimate};

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
    estimate: estimate::<Split>,
};

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = HyperSplit;
}

/// The engine: rules at the leaves of a binary tree.
pub(super) type HyperSplit = TreeEngine<Split>;

/// The kind of tree.
pub(super) struct Split;

impl TreeKind for Split {
    type Nodes = Nodes;

    const NAME: &'static str = ENGINE.name;

    const PRICES: TreePrices = TreePrices {
        batch: Prices {
            lookup: 188.0,
            probe: 19.5,
            probe_word: 0.9,
            compare: 22.0,
            compare_word: 1.8,
            probe_lines: 0.5,
            ..Prices::NONE
        },
        single: Prices {
            probe: 69.0,
            probe_word: 1.2,
            compare: 20.0,
            compare_word: 1.4,
            lines: 1.5,
            ..Prices::NONE
        },
        copy: 600.0,
        field: 600.0,
        child_copy: 320.0,
        child_copy_field: 0.0,
        min_nodes: 2,
        bounds_nodes: false,
    };

    fn grow(
        spec: &EngineSpec,
        rules: &RankedRules,
        rule_count: usize,
        limits: &Limits,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grown<Nodes>, BuildError> {
        Grow::tree(rules, limits, Bounds::new(spec, rule_count), monitor)
    }
}
