//! Insertion and removal of rules, and maintenance of the trees.
//!
//! ```text
//! insert(rule):
//!     tree = the tree of the rule's class; the list, if the rule's box overlaps more
//!            than `spread` leaves of the tree
//!     add the rule to each leaf that its box overlaps
//!     regrow each of these leaves whose number of rules is now a power of two, and
//!            at least 2 × binth: it becomes a small tree
//!     rules that are now in more than 2 × `spread` leaves go to the list
//! remove(rule):
//!     remove the rule from each leaf that its box overlaps; on the way back
//!     two leaves of a split with at most `binth` rules become one
//!     a cut with fewer places than half of its children is regrown
//! ```

use std::sync::Arc;

use crate::budget::monitor::unwatched;
use crate::parts::tree::Grid;

use super::fields::{Ends, Fields, Selected, class};
use super::grow::{Grow, MAX_DEPTH, Ranked, words_of};
use super::node::{Draft, Leaf, Node, Nodes};
use super::rows::Rows;
use super::trees::{MAX_PLACES, Trees};

/// The largest leaf in rules that an update splits. It bounds the cost of an update.
const MAX_SPLIT_RULES: usize = 256;

/// Splitting a leaf may multiply its places by this factor. It bounds memory.
const MAX_PLACES_FACTOR: usize = 2;

/// Splitting leaves may multiply a rule's limit of leaves by this factor. Beyond this
/// limit, the rule goes to the list.
const MAX_SPREAD_FACTOR: usize = 2;

/// After its best rule was removed, a tree searches for its new best rank when it has
/// lost its number of rules divided by this number. It bounds the mean work of a removal.
const TIGHTEN_DIVISOR: usize = 16;

/// A change of one tree.
struct Change<'a, const W: usize> {
    fields: &'a Fields,
    nodes: &'a mut Nodes,
    rows: &'a mut Rows<W>,
    ends: &'a mut [Ends],
    binth: usize,
    is_frozen: bool,
    /// Nodes to regrow, each with a point of its box.
    mend: Vec<(u32, Vec<u128>)>,
}

impl<const W: usize> Change<'_, W> {
    /// Returns the children whose boxes overlap the rule's interval.
    fn children(&self, node: &Node) -> std::ops::RangeInclusive<u32> {
        let (low, high) = self.ends[node.field()];
        self.fields.branch(node, low)..=self.fields.branch(node, high)
    }

    /// Counts the leaves that the rule's box overlaps. Stops when the count exceeds
    /// `max_leaves`.
    fn count(&mut self, index: u32, max_leaves: usize) -> usize {
        let node = *self.nodes.node(index);
        if node.is_leaf() {
            return 1;
        }
        let (field, children) = (node.field(), self.children(&node));
        let whole = self.ends[field];
        let mut count = 0;
        for child in children {
            self.ends[field] = self.fields.clip(&node, child, whole);
            count += self.count(node.child() + child, max_leaves.saturating_sub(count));
            if count > max_leaves {
                break;
            }
        }
        self.ends[field] = whole;
        count
    }

    fn point(&self) -> Vec<u128> {
        self.ends.iter().map(|ends| ends.0).collect()
    }

    /// Adds a row to each leaf that the rule's box overlaps. Returns the number of
    /// leaves.
    fn insert(&mut self, index: u32, row: &[u64]) -> usize {
        let node = *self.nodes.node(index);
        if node.is_leaf() {
            let leaf = self.rows.insert(node.rows(), row);
            *self.nodes.node_mut(index) = Node::leaf(index, leaf);
            let len = leaf.len as usize;
            if len >= 2 * self.binth && len.is_power_of_two() && len <= MAX_SPLIT_RULES {
                self.mend.push((index, self.point()));
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
        self.add_places(index, placed.cast_signed());
        placed
    }

    /// Adds `delta` to the count of places below a cut.
    fn add_places(&mut self, index: u32, delta: isize) {
        let node = self.nodes.node_mut(index);
        if node.bits() > 0 {
            *node = node.with_places(places_below(node).saturating_add_signed(delta));
        }
    }

    /// Removes the row with a rank from each leaf that the rule's box overlaps.
    /// Returns the change in the number of places, which is not positive.
    fn remove(&mut self, index: u32, rank: u64) -> isize {
        let node = *self.nodes.node(index);
        if node.is_leaf() {
            let Some(leaf) = self.rows.remove(node.rows(), rank) else {
                return 0;
            };
            *self.nodes.node_mut(index) = Node::leaf(index, leaf);
            return -1;
        }
        let (field, children) = (node.field(), self.children(&node));
        let whole = self.ends[field];
        let mut delta = 0;
        for child in children {
            self.ends[field] = self.fields.clip(&node, child, whole);
            delta += self.remove(node.child() + child, rank);
        }
        self.ends[field] = whole;
        if node.is_split() {
            if !self.is_frozen {
                delta += self.join(index, &node);
            }
            return delta;
        }
        self.add_places(index, delta);
        if !self.is_frozen && 2 * places_below(self.nodes.node(index)) < 1 << node.bits() {
            self.mend.push((index, self.point()));
        }
        delta
    }

    /// Joins the two leaves of a split, if together they have few rules. Returns the
    /// change in the number of places.
    fn join(&mut self, index: u32, node: &Node) -> isize {
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
        *self.nodes.node_mut(index) = Node::leaf(index, leaf);
        count.cast_signed() - before.cast_signed()
    }
}

/// Returns the rank and the words of a row.
pub(super) fn rank_and_words(row: &[u64]) -> (u64, &[u64]) {
    (row[0], &row[1..])
}

/// Returns the number of places below a cut.
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

    /// Returns the row of a rule in a tree, by a key that the rule matches.
    pub(super) fn find(&self, tree: usize, key: &[u64; W], rank: u64) -> Option<&[u64]> {
        let leaf = self.nodes.leaf(self.trees[tree].root, key, |_| ());
        self.rows.find(leaf, rank)
    }

    /// Adds a rule. Returns the number of its tree.
    pub(super) fn insert(&mut self, row: &[u64]) -> usize {
        let mut ends = std::mem::take(&mut self.ends);
        self.fields.all_ends(&row[1..], &mut ends);
        self.ends = ends;
        let class = class(&self.selected, &|field| self.ends[field]);
        let (mut tree, spread) = (usize::from(self.of_class[class]), self.settings.spread);
        let list = self.list();
        let root = self.trees[tree].root;
        let is_full = self.trees[tree].places >= MAX_PLACES;
        if is_full || self.change().count(root, spread) > spread {
            tree = list;
        }
        let root = self.trees[tree].root;
        let mut change = self.change();
        let placed = change.insert(root, row);
        let mend = change.mend;
        let changed = &mut self.trees[tree];
        (changed.rules, changed.places) = (changed.rules + 1, changed.places + placed);
        if row[0] < changed.best {
            (changed.best, changed.lost) = (row[0], 0);
            self.sort();
        }
        if tree != list {
            for (index, point) in mend {
                self.regrow(tree, index, &point);
            }
            self.move_to_list(tree);
        }
        self.tidy();
        tree
    }

    /// Moves rules that are now in too many leaves of a tree to the list, and records
    /// their ranks.
    fn move_to_list(&mut self, tree: usize) {
        for row in std::mem::take(&mut self.spread) {
            self.take_out(tree, &row);
            let list = self.list();
            let root = self.trees[list].root;
            let placed = self.change().insert(root, &row);
            let list_tree = &mut self.trees[list];
            (list_tree.rules, list_tree.places) = (list_tree.rules + 1, list_tree.places + placed);
            if row[0] < list_tree.best {
                (list_tree.best, list_tree.lost) = (row[0], 0);
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
        let delta = change.remove(root, row[0]);
        let mend = change.mend;
        let changed = &mut self.trees[tree];
        changed.rules -= 1;
        changed.places = changed.places.saturating_add_signed(delta);
        // Nodes near the root come last in `mend`, so they are regrown first.
        // Regrowing a node frees the nodes below it. A node that has taken the place
        // of a freed one may be regrown as well.
        for (index, point) in mend.into_iter().rev() {
            self.regrow(tree, index, &point);
        }
        self.tighten(tree, row[0]);
    }

    /// Corrects the `best` bound of a tree that has lost a rule: immediately if this
    /// is cheap, otherwise after enough removals.
    fn tighten(&mut self, tree: usize, rank: u64) {
        let changed = &mut self.trees[tree];
        if changed.lost > 0 || rank == changed.best {
            changed.lost += 1;
        }
        let root = self.nodes.node(changed.root);
        let is_cheap = root.is_leaf() || changed.rules == 0;
        if changed.lost == 0 || !(is_cheap || changed.lost * TIGHTEN_DIVISOR > changed.rules) {
            return;
        }
        let root = changed.root;
        let mut best = u64::MAX;
        self.each_leaf(root, |trees, leaf| {
            let first = trees.rows.rows(leaf).next();
            best = first.map_or(best, |row| best.min(row[0]));
        });
        let changed = &mut self.trees[tree];
        (changed.best, changed.lost) = (best, 0);
        self.sort();
    }

    /// Visits the leaves below a node.
    fn each_leaf(&self, root: u32, mut visit: impl FnMut(&Self, Leaf)) {
        let mut pending = vec![root];
        while let Some(index) = pending.pop() {
            let node = self.nodes.node(index);
            if node.is_leaf() {
                visit(self, node.rows());
            } else {
                pending.extend((0..1 << node.fan_bits()).map(|child| node.child() + child));
            }
        }
    }

    /// Regrows the part of a tree below a node. `point` is a point of the node's box.
    fn regrow(&mut self, tree: usize, at: u32, point: &[u128]) {
        let root = self.trees[tree].root;
        let mut of_box = self.fields.everything();
        let (mut index, mut depth) = (root, 0);
        while index != at {
            let node = *self.nodes.node(index);
            if node.is_leaf() {
                return; // The node was freed when another node was regrown.
            }
            let field = node.field();
            let child = self.fields.branch(&node, point[field]);
            of_box[field] = self.fields.clip(&node, child, of_box[field]);
            (index, depth) = (node.child() + child, depth + 1);
        }
        if depth >= MAX_DEPTH {
            return;
        }
        let stride = Rows::<W>::stride(&self.fields.schema);
        let mut leaf_rows: Vec<&[u64]> = Vec::new();
        let mut before = 0;
        let mut pending = vec![at];
        while let Some(at) = pending.pop() {
            let node = self.nodes.node(at);
            if node.is_leaf() {
                leaf_rows.extend(self.rows.rows(node.rows()));
                before += node.rows().len as usize;
            } else {
                pending.extend((0..1 << node.fan_bits()).map(|child| node.child() + child));
            }
        }
        sort_best_first(&mut leaf_rows);
        let rows: Vec<u64> = leaf_rows.concat();
        let count = rows.len() / stride;
        let was_leaf = self.nodes.node(at).is_leaf();
        let regrown = &self.trees[tree];
        let bound = regrown.rules.saturating_mul(self.settings.places);
        let bound = bound.min(MAX_PLACES);
        if was_leaf && regrown.places + count > bound {
            return; // Rules are in as many leaves as allowed.
        }
        let cuts: Vec<Selected> = (self.selected.iter().enumerate())
            .filter(|(number, _)| regrown.cuts >> number & 1 != 0)
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
            let max_places = count * MAX_PLACES_FACTOR;
            growing.tree((0..=u32::MAX).take(count), max_places, depth, monitor)?;
            Ok(growing.finish(monitor))
        });
        if was_leaf && draft.root_is_leaf() {
            return;
        }
        self.free_below(at);
        let new_places = unwatched(|monitor| {
            self.plant_node(at, &draft, 0, monitor, &mut |trees, leaf, _| {
                let row = |&place: &u32| &rows[place as usize * stride..][..stride];
                let rows = leaf.iter().map(row).map(rank_and_words);
                Ok(trees.rows.store(leaf.len(), rows))
            })
        });
        let delta = new_places.cast_signed() - before.cast_signed();
        let regrown = &mut self.trees[tree];
        regrown.places = regrown.places.saturating_add_signed(delta);
        let fields = Arc::clone(&self.fields);
        let mut index = root;
        while index != at {
            self.change().add_places(index, delta);
            let node = self.nodes.node(index);
            index = node.child() + fields.branch(node, point[node.field()]);
        }
        if was_leaf {
            self.note_spread_rules(root, &draft, &rows, stride);
        }
    }

    /// Records rules that a leaf's new tree has in several leaves and that are now in
    /// too many leaves of the whole tree.
    fn note_spread_rules(&mut self, root: u32, draft: &Draft, rows: &[u64], stride: usize) {
        let max_leaves = MAX_SPREAD_FACTOR * self.settings.spread;
        let mut listed = draft.lists.clone();
        listed.sort_unstable();
        for copies in listed
            .chunk_by(|a, b| a == b)
            .filter(|copies| copies.len() > 1)
        {
            let row = &rows[copies[0] as usize * stride..][..stride];
            let mut ends = std::mem::take(&mut self.ends);
            self.fields.all_ends(&row[1..], &mut ends);
            self.ends = ends;
            let is_noted = self.spread.iter().any(|noted| noted[0] == row[0]);
            if !is_noted && self.change().count(root, max_leaves) > max_leaves {
                self.spread.push(row.to_vec());
            }
        }
    }

    /// Frees all nodes below a node, and the rows of all leaves.
    fn free_below(&mut self, index: u32) {
        let node = *self.nodes.node(index);
        if node.is_leaf() {
            self.rows.free(node.rows());
        } else {
            for child in 0..1 << node.fan_bits() {
                self.free_below(node.child() + child);
            }
            self.nodes.free(node.child(), node.fan_bits());
        }
        *self.nodes.node_mut(index) = Node::leaf(index, Leaf::default());
    }

    /// Compacts nodes or rows if half of their memory is unused.
    pub(super) fn tidy(&mut self) {
        if self.is_frozen {
            return;
        }
        if self.rows.is_sparse() {
            let used = self.rows.used();
            let mut rows = Rows::with_room(&self.fields.schema, used + used / 8);
            for index in 0..self.nodes.end() {
                let node = *self.nodes.node(index);
                if node.is_leaf() && node.rows().len > 0 {
                    let leaf = node.rows();
                    let leaf =
                        rows.store(leaf.len as usize, self.rows.rows(leaf).map(rank_and_words));
                    *self.nodes.node_mut(index) = Node::leaf(index, leaf);
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
                let old_root = std::mem::replace(&mut self.trees[number].root, root);
                self.copy_node(&old, old_root, root);
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

/// Sorts rows by rank and keeps one row of each rank.
fn sort_best_first(rows: &mut Vec<&[u64]>) {
    rows.sort_unstable_by_key(|row| row[0]);
    rows.dedup_by_key(|row| row[0]);
}
