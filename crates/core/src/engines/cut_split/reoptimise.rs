//! Re-optimisation: builds trees for the current rules during updates and lookups.
//!
//! # Idea
//! Each look at the engine copies some hundred rules. On any thread, fields are
//! selected and trees are grown from the copy. The plan is the inner nodes of these
//! trees. Installation begins with trees of these nodes, whose leaves have no rows.
//! All rules that are inserted from then on go to the new trees, and each step moves
//! a current rule of the old trees. Lookups search old and new trees until the old
//! trees have no rules. So a plan does not need the changes since the snapshot.
//!
//! # Cost
//! The plan's nodes are copied when installation begins: 16 bytes for each, less than
//! a millisecond for 64k rules. A step is a removal and an insertion.

use std::any::Any;
use std::sync::Arc;

use super::fields::{Fields, Selected};
use super::grow::{winner_of, words_of};
use super::node::{Draft, Leaf, Node, Nodes};
use super::rows::Rows;
use super::trees::{Outline, Trees};
use super::{CutSplit, ENGINE, Settings};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::reoptimise::{Contents, Drift, LookupPlan, Reoptimise, Snapshot};
use crate::model::error::BuildError;
use crate::parts::sort::sort_by_key;

/// Steps that each change makes while a plan is being installed. Measured in
/// `bench/records/constants.md` (CutSplit and TupleMerge, re-optimisation).
pub(super) const STEPS_PER_CHANGE: usize = 4;

/// Positions of the map of ids that each look reads. It bounds the time that a look keeps
/// a reader pinned.
const POSITIONS_PER_LOOK: usize = 1 << 9;

/// The number of rules whose lookups are counted for the cost. Measured in
/// `bench/records/constants.md` (CutSplit and TupleMerge, re-optimisation).
const SAMPLE_RULES: usize = 256;

/// Skipped nodes that count as a step. It bounds the work of a step.
const SKIPPED_NODES_PER_STEP: u32 = 16;

/// Copied nodes that count as a step. It sets how often the computation of a plan reports
/// progress.
const COPIED_NODES_PER_STEP: usize = 16;

/// Largest numbers of nodes for each rule, and of further nodes, of a plan that fits
/// its rules. They bound the memory of nodes after rules were removed.
const MAX_NODES_PER_RULE: usize = 8;
const MAX_EXTRA_NODES: usize = 1 << 10;

/// A snapshot: rows of rules, copied in several looks.
struct Copied {
    fields: Arc<Fields>,
    settings: Settings,
    stride: usize,
    /// The next position in the map of ids.
    position: usize,
    rows: Vec<u64>,
}

/// A plan: trees without rules.
struct Plan {
    selected: Vec<Selected>,
    of_class: Vec<u8>,
    cuts: Vec<usize>,
    drafts: Vec<Draft>,
}

impl Contents for Copied {
    fn compute(&self, monitor: &mut Monitor<'_>) -> Result<Arc<dyn Any + Send + Sync>, BuildError> {
        let count = self.rows.len() / self.stride;
        monitor.begin("sorting rules", count)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let mut order: Vec<u32> = (0..=u32::MAX).take(count).collect();
        let rank = |&index: &u32| self.rows[index as usize * self.stride];
        sort_by_key(&mut order, rank, monitor)?;
        // A rule that changed during the looks may have been copied twice.
        order.dedup_by_key(|index| rank(index));
        let words = |place: usize| words_of(&self.rows, self.stride, order[place] as usize);
        let outline = Outline::new(&self.fields, &self.settings, order.len(), &words, monitor)?;
        let mut drafts = Vec::with_capacity(outline.drafts.len());
        let before = outline.bytes();
        let mut bytes = 0;
        for draft in outline.drafts {
            let nodes = draft.nodes.len();
            monitor.memory().take(bytes_of::<Node>(nodes))?;
            bytes += bytes_of::<Node>(nodes);
            let mut without_rules = Vec::with_capacity(nodes);
            for chunk in draft.nodes.chunks(Monitor::BLOCK) {
                without_rules.extend(chunk.iter().map(|node| match node.is_leaf() {
                    true => Node::EMPTY,
                    false => *node,
                }));
                monitor.work(1 + chunk.len() / COPIED_NODES_PER_STEP)?;
            }
            drafts.push(Draft {
                nodes: without_rules,
                lists: Vec::new(),
            });
        }
        drop(order);
        monitor.memory().give_back(before + bytes_of::<u32>(count));
        debug_assert!(bytes <= monitor.memory().held());
        Ok(Arc::new(Plan {
            selected: outline.selected,
            of_class: outline.of_class,
            cuts: outline.cuts,
            drafts,
        }))
    }
}

/// The progress of an installation.
#[derive(Debug, Default)]
pub(super) struct Installing {
    /// The next node of the old trees.
    at: u32,
    /// The plan to install next.
    waiting: Option<LookupPlan>,
}

impl Plan {
    /// Returns the plan's trees, without rules.
    fn trees<const W: usize>(&self, fields: &Arc<Fields>, settings: &Settings) -> Trees<W> {
        let nodes = self.drafts.iter().map(|draft| draft.nodes.len() + 2);
        let mut trees = Trees {
            fields: Arc::clone(fields),
            settings: *settings,
            selected: self.selected.clone(),
            of_class: self.of_class.clone(),
            trees: Vec::new(),
            order: Vec::new(),
            nodes: Nodes::with_room(nodes.sum::<usize>() + 6),
            rows: Rows::with_room(&fields.schema, 0),
            is_frozen: true,
            ends: Vec::new(),
            spread: Vec::new(),
            moved: Vec::new(),
        };
        for (draft, &cuts) in self.drafts.iter().zip(&self.cuts) {
            let root = trees.add_tree(cuts);
            unwatched(|monitor| {
                let mut leaf =
                    |_: &mut Trees<W>, _: &[u32], _: &mut Monitor<'_>| Ok(Leaf::default());
                trees.plant_node(root, draft, 0, monitor, &mut leaf)
            });
        }
        trees.add_tree(0);
        trees
    }
}

impl<const W: usize> CutSplit<W> {
    /// Returns the mean number of nodes that a lookup of a rule visits and of rules
    /// that it compares, counted for a sample of the rules.
    pub(super) fn cost(&self) -> f64 {
        let positions = self.ids.entries();
        let (mut sum, mut count) = (0, 0_u32);
        for sample in 0..SAMPLE_RULES {
            let range = sample * positions / SAMPLE_RULES..(sample + 1) * positions / SAMPLE_RULES;
            let Some((id, known)) = { range }.find_map(|position| self.ids.entry(position)) else {
                continue;
            };
            let rank = Self::rank(id, &known);
            sum += 1 + self.trees.cost(&known.key, rank);
            sum += self
                .old
                .as_ref()
                .map_or(0, |old| old.cost(&known.key, rank));
            count += 1;
        }
        if count == 0 {
            // The cost of looking up the first rule, once it is there: a leaf and a
            // rule.
            return 2.0;
        }
        f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / f64::from(count)
    }

    /// Makes some steps of an installation, if a plan is being installed.
    pub(super) fn install_some(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.install_next() {
                return;
            }
        }
    }

    /// Moves a rule, or skips some nodes. Returns `false` if no plan is being
    /// installed.
    fn install_next(&mut self) -> bool {
        let Some(old) = &mut self.old else {
            return false;
        };
        let end_node = old
            .nodes
            .end()
            .min(self.installing.at.saturating_add(SKIPPED_NODES_PER_STEP));
        for node_index in self.installing.at..end_node {
            self.installing.at = node_index;
            let node = old.nodes.node(node_index);
            if !node.is_leaf() || node.rows().len == 0 {
                continue;
            }
            let row = old
                .rows
                .rows(node.rows())
                .next()
                .expect("it is not empty")
                .to_vec();
            let id = winner_of(&row).rule().expect("a rule's rank");
            let known = self.ids.get_mut(id).expect("all rules are known");
            old.remove(usize::from(known.tree), &row);
            let tree = self.trees.insert(&row);
            known.tree = u8::try_from(tree).expect("at most 17 trees");
            known.side = self.side;
            self.note_moved();
            return true;
        }
        self.installing.at = end_node;
        if end_node == old.nodes.end() {
            self.end_installing();
        }
        true
    }

    fn end_installing(&mut self) {
        self.old = None;
        self.trees.is_frozen = false;
        self.trees.tidy();
        if self.trees.nodes.used() > MAX_EXTRA_NODES + MAX_NODES_PER_RULE * self.ids.len() {
            // The plan was computed for other rules, and there are now few.
            unwatched(|monitor| self.make_anew(monitor));
        }
        self.fitted = self.cost();
        if let Some(plan) = self.installing.waiting.take() {
            let begun = self.install(&plan);
            debug_assert!(begun, "it was accepted before");
        }
    }
}

impl<const W: usize> Reoptimise for CutSplit<W> {
    fn drift(&self) -> Drift {
        Drift {
            current: self.cost(),
            fitted: self.fitted,
            installing: self.is_installing(),
        }
    }

    fn look(&self, snapshot: &mut Snapshot) -> bool {
        let copied = snapshot.contents(ENGINE.name, self.schema(), self.changes, || Copied {
            fields: Arc::clone(&self.fields),
            settings: self.settings,
            stride: Rows::<W>::stride(self.schema()),
            position: 0,
            rows: Vec::new(),
        });
        let positions = self.ids.entries();
        let next_position = positions.min(copied.position.saturating_add(POSITIONS_PER_LOOK));
        for position in copied.position.min(next_position)..next_position {
            if let Some((id, known)) = self.ids.entry(position) {
                copied.rows.extend_from_slice(self.row(id, &known));
            }
        }
        copied.position = next_position;
        if next_position < positions {
            return false;
        }
        snapshot.complete()
    }

    fn install(&mut self, plan: &LookupPlan) -> bool {
        let Some(contents) = plan.get::<Plan>(ENGINE.name, self.schema()) else {
            return false;
        };
        if self.old.is_some() {
            self.installing.waiting = Some(plan.clone());
            return true;
        }
        let trees = contents.trees(&self.fields, &self.settings);
        let mut old = std::mem::replace(&mut self.trees, trees);
        old.is_frozen = true;
        self.old = Some(old);
        self.side = !self.side;
        self.installing.at = 0;
        if self.ids.is_empty() {
            // No rule has to be moved.
            self.end_installing();
        }
        true
    }

    fn step(&mut self, steps: usize) -> bool {
        self.install_some(steps);
        self.is_installing()
    }

    fn is_installing(&self) -> bool {
        self.old.is_some()
    }
}
