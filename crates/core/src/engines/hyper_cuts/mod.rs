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
    estimate: estimate::<Cuts>,
};

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = HyperCuts;
}

/// The engine: rules at the leaves of a tree.
pub(super) type HyperCuts = TreeEngine<Cuts>;

/// The kind of tree.
pub(super) struct Cuts;

impl TreeKind for Cuts {
    type Nodes = Nodes;

    const NAME: &'static str = ENGINE.name;

    const PRICES: TreePrices = TreePrices {
        batch: Prices {
            lookup: 189.0,
            probe: 77.0,
            probe_word: 0.8,
            compare: 20.3,
            compare_word: 2.15,
            probe_lines: 1.0,
            ..Prices::NONE
        },
        single: Prices {
            probe: 112.5,
            probe_word: 0.2,
            compare: 17.9,
            compare_word: 2.1,
            lines: 1.6,
            ..Prices::NONE
        },
        copy: 600.0,
        field: 600.0,
        child_copy: 1100.0,
        child_copy_field: 300.0,
        min_nodes: 1,
        bounds_nodes: true,
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
