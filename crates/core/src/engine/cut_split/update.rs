//! Insertion and removal, and how trees are kept in shape.
//!
//! ```text
//! insert(rule):
//!     tree = that of the rule's class; the list, if the rule's box meets more than
//!            `spread` leaves of it
//!     add the rule to each leaf that its box meets
//!     grow each of these anew that has reached 2 × binth rules, or 2, 4, … times
//!            as many: it becomes a small tree of its own
//!     rules that are in more than 2 × `spread` leaves by now go to the list
//! remove(rule):
//!     take the rule out of each leaf that its box meets; on the way back
//!     two leaves of a split with at most `binth` rules become one
//!     a cut with fewer places than half of its children is grown anew
//! ```

use std::sync::Arc;

use crate::engine::tree::Grid;
use crate::monitor::unwatched;

use super::fields::{Ends, Fields, Selected, class};
use super::grow::{Grow, MOST_DEPTH, Ranked, words_of};
use super::node::{Draft, Leaf, Node, Nodes};
use super::rows::Rows;
use super::trees::{MOST_PLACES, Trees};

/// Leaves of more rules are not split by updates: what that takes is bounded.
const MOST_SPLIT: usize = 256;

/// A leaf that is split may come to have that many times as many places.
const MORE_PLACES: usize = 2;

/// A rule whose leaves are split may come to be in that many times as many leaves
/// as when it is inserted. Then it goes to the list.
const MORE_SPREAD: usize = 2;

/// The best rank of a tree whose best rule went is looked for after this share of
/// its rules went as well.
const TIGHTEN_SHARE: usize = 16;

/// A change of one tree.
struct Change<'a, const W: usize> {
    fields: &'a Fields,
    nodes: &'a mut Nodes,
    rows: &'a mut Rows<W>,
    ends: &'a mut [Ends],
    binth: usize,
    is_frozen: bool,
    /// Nodes that are to be grown anew, each with a point of its box.
    mend: Vec<(u32, Vec<u128>)>,
}

impl<const W: usize> Change<'_, W> {
    /// The children of a node whose boxes the rule's interval meets.
    fn children(&self, node: &Node) -> std::ops::RangeInclusive<u32> {
        let (low, high) = self.ends[node.field()];
        self.fields.branch(node, low)..=self.fields.branch(node, high)
    }

    /// Counts the leaves that the rule's box meets, up to one more than `most`.
    fn count(&mut self, at: u32, most: usize) -> usize {
        let node = *self.nodes.node(at);
        if node.is_leaf() {
            return 1;
        }
        let (field, children) = (node.field(), self.children(&node));
        let whole = self.ends[field];
        let mut count = 0;
        for child in children {
            self.ends[field] = self.fields.clip(&node, child, whole);
            count += self.count(node.child() + child, most.saturating_sub(count));
            if count > most {
                break;
            }
        }
        self.ends[field] = whole;
        count
    }

    fn point(&self) -> Vec<u128> {
        self.ends.iter().map(|ends| ends.0).collect()
    }

    /// Adds a row to each leaf that the rule's box meets; their number.
    fn insert(&mut self, at: u32, row: &[u64]) -> usize {
        let node = *self.nodes.node(at);
        if node.is_leaf() {
            let leaf = self.rows.insert(node.rows(), row);
            *self.nodes.node_mut(at) = Node::leaf(at, leaf);
            let len = leaf.len as usize;
            if len >= 2 * self.binth && len.is_power_of_two() && len <= MOST_SPLIT {
                self.mend.push((at, self.point()));
            }
            return 1;
        }
        let (field, children) = (node.field(), self.children(&node));
        let whole = self.ends[field];
        let mut placed = 0;
        for child in children {
            self.ends[field] = self.fields.clip(&node, child, whole);
            placed += self.insert(node.child() + child, row);
        }
        self.ends[field] = whole;
        self.add_places(at, placed.cast_signed());
        placed
    }

    /// Notes that leaves below a node have more places, or fewer.
    fn add_places(&mut self, at: u32, more: isize) {
        let node = self.nodes.node_mut(at);
        if node.bits() > 0 {
            *node = node.with_places(places_below(node).saturating_add_signed(more));
        }
    }

    /// Removes the row of a rank from each leaf that the rule's box meets. Returns
    /// how many more places there are, which is negative.
    fn remove(&mut self, at: u32, rank: u64) -> isize {
        let node = *self.nodes.node(at);
        if node.is_leaf() {
            let Some(leaf) = self.rows.remove(node.rows(), rank) else {
                return 0;
            };
            *self.nodes.node_mut(at) = Node::leaf(at, leaf);
            return -1;
        }
        let (field, children) = (node.field(), self.children(&node));
        let whole = self.ends[field];
        let mut more = 0;
        for child in children {
            self.ends[field] = self.fields.clip(&node, child, whole);
            more += self.remove(node.child() + child, rank);
        }
        self.ends[field] = whole;
        if node.is_split() {
            if !self.is_frozen {
                more += self.join(at, &node);
            }
            return more;
        }
        self.add_places(at, more);
        if !self.is_frozen && 2 * places_below(self.nodes.node(at)) < 1 << node.bits() {
            self.mend.push((at, self.point()));
        }
        more
    }

    /// Makes one leaf of the two of a split, if they have few rules.
    fn join(&mut self, at: u32, node: &Node) -> isize {
        let pair = [0, 1].map(|child| *self.nodes.node(node.child() + child));
        if !pair.iter().all(Node::is_leaf) {
            return 0;
        }
        let pair = pair.map(|leaf| leaf.rows());
        let before = (pair[0].len + pair[1].len) as usize;
        if before > 2 * self.binth || self.rows.distinct(pair) > self.binth {
            return 0;
        }
        let rows = self.rows.merged(pair);
        let stride = 1 + self.fields.schema.rule_words();
        let count = rows.len() / stride;
        for leaf in pair {
            self.rows.free(leaf);
        }
        self.nodes.free(node.child(), 1);
        let leaf = self
            .rows
            .store(count, rows.chunks_exact(stride).map(rank_and_words));
        *self.nodes.node_mut(at) = Node::leaf(at, leaf);
        count.cast_signed() - before.cast_signed()
    }
}

/// The parts of a row.
pub(super) fn rank_and_words(row: &[u64]) -> (u64, &[u64]) {
    (row[0], &row[1..])
}

/// What a cut has counted.
fn places_below(cut: &Node) -> usize {
    usize::try_from(cut.value()).expect("places are bounded")
}

impl<const W: usize> Trees<W> {
    fn change(&mut self) -> Change<'_, W> {
        Change {
            fields: &self.fields,
            nodes: &mut self.nodes,
            rows: &mut self.rows,
            ends: &mut self.ends,
            binth: self.settings.binth,
            is_frozen: self.is_frozen,
            mend: Vec::new(),
        }
    }

    /// The row of a rule of a tree, by a key that the rule matches.
    pub(super) fn find(&self, tree: usize, key: &[u64; W], rank: u64) -> Option<&[u64]> {
        let leaf = self.nodes.leaf(self.trees[tree].root, key, |_| ());
        self.rows.find(leaf, rank)
    }

    /// Adds a rule; the number of its tree.
    pub(super) fn insert(&mut self, row: &[u64]) -> usize {
        let mut ends = std::mem::take(&mut self.ends);
        self.fields.all_ends(&row[1..], &mut ends);
        self.ends = ends;
        let class = class(&self.selected, &|field| self.ends[field]);
        let (mut tree, spread) = (usize::from(self.of_class[class]), self.settings.spread);
        let list = self.list();
        let root = self.trees[tree].root;
        let is_full = self.trees[tree].places >= MOST_PLACES;
        if is_full || self.change().count(root, spread) > spread {
            tree = list;
        }
        let root = self.trees[tree].root;
        let mut change = self.change();
        let placed = change.insert(root, row);
        let mend = change.mend;
        let to = &mut self.trees[tree];
        (to.rules, to.places) = (to.rules + 1, to.places + placed);
        if row[0] < to.best {
            (to.best, to.lost) = (row[0], 0);
            self.sort();
        }
        if tree != list {
            for (at, point) in mend {
                self.regrow(tree, at, &point);
            }
            self.move_to_list(tree);
        }
        self.tidy();
        tree
    }

    /// Moves the rules to the list that have come to be in too many leaves of a
    /// tree, and notes their ranks.
    fn move_to_list(&mut self, tree: usize) {
        for row in std::mem::take(&mut self.spread) {
            self.take_out(tree, &row);
            let list = self.list();
            let root = self.trees[list].root;
            let placed = self.change().insert(root, &row);
            let to = &mut self.trees[list];
            (to.rules, to.places) = (to.rules + 1, to.places + placed);
            if row[0] < to.best {
                (to.best, to.lost) = (row[0], 0);
                self.sort();
            }
            self.moved.push(row[0]);
        }
    }

    /// Removes a rule from its tree.
    pub(super) fn remove(&mut self, tree: usize, row: &[u64]) {
        self.take_out(tree, row);
        self.tidy();
    }

    fn take_out(&mut self, tree: usize, row: &[u64]) {
        let mut ends = std::mem::take(&mut self.ends);
        self.fields.all_ends(&row[1..], &mut ends);
        self.ends = ends;
        let root = self.trees[tree].root;
        let mut change = self.change();
        let more = change.remove(root, row[0]);
        let mend = change.mend;
        let of = &mut self.trees[tree];
        of.rules -= 1;
        of.places = of.places.saturating_add_signed(more);
        // Nodes above others came later. What was below them is gone then, and what
        // is in its place may be made again as well.
        for (at, point) in mend.into_iter().rev() {
            self.regrow(tree, at, &point);
        }
        self.tighten(tree, row[0]);
    }

    /// Corrects the bound of a tree that lost a rule: at once where that is
    /// cheap, else when enough rules went.
    fn tighten(&mut self, tree: usize, rank: u64) {
        let of = &mut self.trees[tree];
        if of.lost > 0 || rank == of.best {
            of.lost += 1;
        }
        let root = self.nodes.node(of.root);
        let is_cheap = root.is_leaf() || of.rules == 0;
        if of.lost == 0 || !(is_cheap || of.lost * TIGHTEN_SHARE > of.rules) {
            return;
        }
        let root = of.root;
        let mut best = u64::MAX;
        self.each_leaf(root, |trees, leaf| {
            let first = trees.rows.rows(leaf).next();
            best = first.map_or(best, |row| best.min(row[0]));
        });
        let of = &mut self.trees[tree];
        (of.best, of.lost) = (best, 0);
        self.sort();
    }

    /// Visits the leaves below a node.
    fn each_leaf(&self, root: u32, mut visit: impl FnMut(&Self, Leaf)) {
        let mut left = vec![root];
        while let Some(at) = left.pop() {
            let node = self.nodes.node(at);
            if node.is_leaf() {
                visit(self, node.rows());
            } else {
                left.extend((0..1 << node.fan_bits()).map(|child| node.child() + child));
            }
        }
    }

    /// Makes the part of a tree below a node again. A point says where the node's
    /// box is.
    fn regrow(&mut self, tree: usize, at: u32, point: &[u128]) {
        let root = self.trees[tree].root;
        let mut of_box = self.fields.everything();
        let (mut index, mut depth) = (root, 0);
        while index != at {
            let node = *self.nodes.node(index);
            if node.is_leaf() {
                return; // It was made again, as a part of another one.
            }
            let field = node.field();
            let child = self.fields.branch(&node, point[field]);
            of_box[field] = self.fields.clip(&node, child, of_box[field]);
            (index, depth) = (node.child() + child, depth + 1);
        }
        if depth >= MOST_DEPTH {
            return;
        }
        let stride = Rows::<W>::stride(&self.fields.schema);
        let mut found: Vec<&[u64]> = Vec::new();
        let mut before = 0;
        let mut left = vec![at];
        while let Some(at) = left.pop() {
            let node = self.nodes.node(at);
            if node.is_leaf() {
                found.extend(self.rows.rows(node.rows()));
                before += node.rows().len as usize;
            } else {
                left.extend((0..1 << node.fan_bits()).map(|child| node.child() + child));
            }
        }
        sort_best_first(&mut found);
        let rows: Vec<u64> = found.concat();
        let count = rows.len() / stride;
        let was_leaf = self.nodes.node(at).is_leaf();
        let of = &self.trees[tree];
        let bound = of.rules.saturating_mul(self.settings.places);
        let bound = bound.min(MOST_PLACES);
        if was_leaf && of.places + count > bound {
            return; // Rules are in as many leaves as they may be.
        }
        let cuts: Vec<Selected> = (self.selected.iter().enumerate())
            .filter(|(number, _)| of.cuts >> number & 1 != 0)
            .map(|(_, &selected)| selected)
            .collect();
        let draft = unwatched(|monitor| {
            let words = |place: usize| words_of(&rows, stride, place);
            let ranked = Ranked {
                fields: &self.fields,
                count,
                words: &words,
            };
            let grid = Grid::new(&ranked, monitor)?;
            let mut growing =
                Grow::new(&grid, &self.fields, &self.settings, cuts, &of_box, monitor)?;
            let most = count * MORE_PLACES;
            growing.tree((0..=u32::MAX).take(count), most, depth, monitor)?;
            Ok(growing.finish(monitor))
        });
        if was_leaf && draft.root_is_leaf() {
            return;
        }
        self.free_below(at);
        let places = unwatched(|monitor| {
            self.plant_node(at, &draft, 0, monitor, &mut |trees, leaf, _| {
                let row = |&place: &u32| &rows[place as usize * stride..][..stride];
                let rows = leaf.iter().map(row).map(rank_and_words);
                Ok(trees.rows.store(leaf.len(), rows))
            })
        });
        let more = places.cast_signed() - before.cast_signed();
        let of = &mut self.trees[tree];
        of.places = of.places.saturating_add_signed(more);
        let fields = Arc::clone(&self.fields);
        let mut index = root;
        while index != at {
            self.change().add_places(index, more);
            let node = self.nodes.node(index);
            index = node.child() + fields.branch(node, point[node.field()]);
        }
        if was_leaf {
            self.note_spread_rules(root, &draft, &rows, stride);
        }
    }

    /// Notes the rules that a leaf's new tree has in several leaves, and that are
    /// in too many leaves of the whole tree now.
    fn note_spread_rules(&mut self, root: u32, draft: &Draft, rows: &[u64], stride: usize) {
        let most = MORE_SPREAD * self.settings.spread;
        let mut places = draft.lists.clone();
        places.sort_unstable();
        for same in places.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
            let row = &rows[same[0] as usize * stride..][..stride];
            let mut ends = std::mem::take(&mut self.ends);
            self.fields.all_ends(&row[1..], &mut ends);
            self.ends = ends;
            let is_noted = self.spread.iter().any(|noted| noted[0] == row[0]);
            if !is_noted && self.change().count(root, most) > most {
                self.spread.push(row.to_vec());
            }
        }
    }

    /// Gives back all nodes below one, and the rows of all leaves.
    fn free_below(&mut self, at: u32) {
        let node = *self.nodes.node(at);
        if node.is_leaf() {
            self.rows.free(node.rows());
        } else {
            for child in 0..1 << node.fan_bits() {
                self.free_below(node.child() + child);
            }
            self.nodes.free(node.child(), node.fan_bits());
        }
        *self.nodes.node_mut(at) = Node::leaf(at, Leaf::default());
    }

    /// Moves nodes or rows together when half of their memory is not used.
    pub(super) fn tidy(&mut self) {
        if self.is_frozen {
            return;
        }
        if self.rows.is_sparse() {
            let used = self.rows.used();
            let mut rows = Rows::with_room(&self.fields.schema, used + used / 8);
            for at in 0..self.nodes.end() {
                let node = *self.nodes.node(at);
                if node.is_leaf() && node.rows().len > 0 {
                    let leaf = node.rows();
                    let leaf =
                        rows.store(leaf.len as usize, self.rows.rows(leaf).map(rank_and_words));
                    *self.nodes.node_mut(at) = Node::leaf(at, leaf);
                }
            }
            self.rows = rows;
        }
        if self.nodes.is_sparse() {
            let used = self.nodes.used();
            let old = std::mem::replace(&mut self.nodes, Nodes::with_room(used + used / 8 + 8));
            for number in 0..self.trees.len() {
                let root = self.nodes.alloc(1);
                *self.nodes.node_mut(root + 1) = Node::EMPTY;
                let from = std::mem::replace(&mut self.trees[number].root, root);
                self.copy_node(&old, from, root);
            }
            self.sort();
        }
    }

    fn copy_node(&mut self, old: &Nodes, from: u32, to: u32) {
        let node = *old.node(from);
        if node.is_leaf() {
            *self.nodes.node_mut(to) = Node::leaf(to, node.rows());
            return;
        }
        let child = self.nodes.alloc(node.fan_bits());
        *self.nodes.node_mut(to) = node.with_children(child);
        for number in 0..1 << node.fan_bits() {
            self.copy_node(old, node.child() + number, child + number);
        }
    }
}

/// Sorts rows by rank and removes all but one row of each rank.
fn sort_best_first(rows: &mut Vec<&[u64]>) {
    rows.sort_unstable_by_key(|row| row[0]);
    rows.dedup_by_key(|row| row[0]);
}
