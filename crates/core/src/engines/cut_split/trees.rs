//! The trees: the division of rules into trees, lookups, and building from drafts.

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::classifier::{LookupTrace, Probe};
use crate::model::error::BuildError;
use crate::model::rule::Winner;
use crate::parts::tree::Grid;

use super::Settings;
use super::fields::{Ends, Fields, Selected, WordsAt, class, select};
use super::grow::{Grow, Ranked, winner_of};
use super::node::{Draft, Leaf, Node, Nodes};
use super::rows::{Rows, room_for};

/// Names of the build's stages.
const SELECTING: &str = "selecting fields";
const GROWING: &str = "cutting and splitting";
const PLANTING: &str = "storing rules at leaves";

/// A class of rules has its own tree if its rules are at least all rules divided by
/// this number. Measured in `bench/records/constants.md` (CutSplit).
const MIN_CLASS_DIVISOR: usize = 24;

/// The largest number of places in a tree: rows are numbered with 32 bits. A place is
/// a rule in a leaf.
pub(super) const MAX_PLACES: usize = 1 << 26;

/// Trees that are grown, but not stored yet.
pub(super) struct Outline {
    pub(super) selected: Vec<Selected>,
    /// The number of each class's tree.
    pub(super) of_class: Vec<u8>,
    /// For each tree, a bit for each selected field that it cuts.
    pub(super) cuts: Vec<usize>,
    /// The trees, except the last one, which is a list.
    pub(super) drafts: Vec<Draft>,
    /// The tree of each place.
    pub(super) of_place: Vec<u8>,
    /// The number of clipped rules.
    pub(super) clips: usize,
}

impl Outline {
    /// Selects fields, divides the rules into classes, and grows the trees. Counts
    /// its memory, which is [`bytes`](Self::bytes), as working memory.
    pub(super) fn new<'a>(
        fields: &'a Fields,
        settings: &'a Settings,
        count: usize,
        words: &WordsAt<'a, '_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Outline, BuildError> {
        monitor.begin(SELECTING, count)?;
        let selected = select(fields, settings.fields, count, words, monitor)?;
        monitor.memory().take(count)?;
        let mut of_place = Vec::with_capacity(count);
        let mut sizes = vec![0; 1 << selected.len()];
        for place in 0..count {
            let class = class(&selected, &|field| fields.ends(field, words(place)));
            sizes[class] += 1;
            of_place.push(u8::try_from(class).expect("at most 16 classes"));
            monitor.advance(1)?;
        }
        let (of_class, cuts) = trees_of(&sizes, settings.binth);
        for class in &mut of_place {
            *class = of_class[usize::from(*class)];
        }
        let ranked = Ranked {
            fields,
            count,
            words,
        };
        let grid = Grid::new(&ranked, monitor)?;
        let mut outline = Outline {
            selected,
            of_class,
            cuts,
            drafts: Vec::new(),
            of_place,
            clips: 0,
        };
        for tree in 0..outline.cuts.len() {
            outline.grow(tree, fields, settings, &grid, monitor)?;
        }
        let grid_bytes = grid.bytes();
        drop(grid);
        monitor.memory().give_back(grid_bytes);
        outline.move_spread_rules(settings.spread, monitor)?;
        Ok(outline)
    }

    fn grow(
        &mut self,
        tree: usize,
        fields: &Fields,
        settings: &Settings,
        grid: &Grid,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let cuts = cut_fields(&self.selected, self.cuts[tree]);
        let number = u8::try_from(tree).expect("at most 16 trees");
        let tree_places = (0..=u32::MAX).zip(&self.of_place);
        let tree_places = tree_places
            .filter(|&(_, &tree)| tree == number)
            .map(|(place, _)| place);
        let count = tree_places.clone().count();
        monitor.begin(GROWING, count)?;
        let max_places = count.saturating_mul(settings.places).min(MAX_PLACES);
        let everything = fields.everything();
        let mut growing = Grow::new(grid, fields, settings, cuts, &everything, monitor)?;
        growing.tree(tree_places, max_places, 0, monitor)?;
        self.clips += growing.clips;
        self.drafts.push(growing.finish(monitor));
        Ok(())
    }

    /// Moves rules that are in more than `spread` leaves to the list.
    fn move_spread_rules(
        &mut self,
        spread: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let bytes = bytes_of::<u32>(self.of_place.len());
        monitor.memory().take(bytes)?;
        let mut leaves = vec![0_u32; self.of_place.len()];
        for draft in &self.drafts {
            for chunk in draft.lists.chunks(Monitor::BLOCK) {
                for &place in chunk {
                    leaves[place as usize] += 1;
                }
                monitor.work(chunk.len() / 8)?;
            }
        }
        let list = self.list();
        for (tree, leaves) in self.of_place.iter_mut().zip(&leaves) {
            if *leaves as usize > spread {
                *tree = list;
            }
        }
        drop(leaves);
        monitor.memory().give_back(bytes);
        Ok(())
    }

    /// The number of the list.
    fn list(&self) -> u8 {
        u8::try_from(self.cuts.len()).expect("at most 16 trees")
    }

    /// Returns the places of a leaf whose rules are still in the tree.
    fn kept<'a>(
        &'a self,
        tree: u8,
        leaf_places: &'a [u32],
    ) -> impl Iterator<Item = u32> + Clone + 'a {
        let leaf_places = leaf_places.iter().copied();
        leaf_places.filter(move |&place| self.of_place[place as usize] == tree)
    }

    /// Returns the number of places in all leaves and in the list, and the rows of
    /// their blocks.
    pub(super) fn places(&self) -> (usize, usize) {
        let list = self.of_place.iter().filter(|&&tree| tree == self.list());
        let list = list.count();
        let (mut places, mut rows) = (list, room_for(list));
        for (tree, draft) in (0..).zip(&self.drafts) {
            for leaf in draft.nodes.iter().filter(|node| node.is_leaf()) {
                let remaining = self.kept(tree, draft.places(leaf)).count();
                places += remaining;
                rows += room_for(remaining);
            }
        }
        (places, rows)
    }

    /// The number of nodes of all trees, in blocks of whole cache lines.
    pub(super) fn nodes(&self) -> usize {
        let nodes = self.drafts.iter().map(|draft| draft.nodes.len() + 2);
        nodes.sum::<usize>() + 6
    }

    /// Bytes of working memory.
    pub(super) fn bytes(&self) -> usize {
        self.of_place.capacity() + self.drafts.iter().map(Draft::bytes).sum::<usize>()
    }
}

/// Returns the selected fields whose bits are set in `cuts`.
fn cut_fields(selected: &[Selected], cuts: usize) -> Vec<Selected> {
    let cut = selected.iter().enumerate();
    let cut = cut.filter(|(number, _)| cuts >> number & 1 != 0);
    cut.map(|(_, &selected)| selected).collect()
}

/// Returns the tree of each class, and the fields that each tree cuts, as bits. A
/// small class shares the tree of a larger class that cuts some of its small fields.
/// The last tree cuts no field.
fn trees_of(sizes: &[usize], binth: usize) -> (Vec<u8>, Vec<usize>) {
    let total: usize = sizes.iter().sum();
    let min_rules = (total / MIN_CLASS_DIVISOR).max(binth);
    let mut sizes = sizes.to_vec();
    let mut target: Vec<usize> = (0..sizes.len()).collect();
    let mut classes: Vec<usize> = (1..sizes.len()).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.count_ones()));
    for &class in &classes {
        // Without rules, the sizes of classes are unknown, so each class has a tree.
        if total == 0 || sizes[class] >= min_rules {
            continue;
        }
        let larger = (0..class).filter(|larger_class| larger_class & !class == 0);
        let larger_class = larger.max_by_key(|&larger_class| (sizes[larger_class], larger_class));
        let larger_class = larger_class.expect("the class of big rules is among them");
        sizes[larger_class] += std::mem::take(&mut sizes[class]);
        target[class] = larger_class;
    }
    for &class in &classes {
        // The class that it was merged into may have been merged into another class.
        let mut merged = class;
        while target[merged] != merged {
            merged = target[merged];
        }
        target[class] = merged;
    }
    let own_trees = (0..sizes.len())
        .rev()
        .filter(|&class| target[class] == class);
    let cuts: Vec<usize> = own_trees.collect();
    let tree = |class: &usize| {
        let tree = cuts.iter().position(|cut| cut == class);
        u8::try_from(tree.expect("a class that is kept")).expect("at most 16 trees")
    };
    (target.iter().map(tree).collect(), cuts)
}

/// Counts many steps, in blocks.
fn advance(steps: usize, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
    let mut remaining = steps;
    while remaining > 0 {
        let chunk = remaining.min(Monitor::BLOCK);
        monitor.advance(chunk)?;
        remaining -= chunk;
    }
    Ok(())
}

/// A tree, or the list, which is a leaf that is never split.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// A bit for each selected field that is cut.
    pub(super) cuts: usize,
    /// A bound on ranks: no rule of the tree has a better rank.
    pub(super) best: u64,
    pub(super) rules: usize,
    /// The number of places in all leaves.
    pub(super) places: usize,
    /// The number of rules that were removed since the rule with rank `best` was
    /// removed; 0 if that rule is present.
    pub(super) lost: usize,
}

/// All trees of a division into classes.
pub(super) struct Trees<const W: usize> {
    pub(super) fields: Arc<Fields>,
    pub(super) settings: Settings,
    pub(super) selected: Vec<Selected>,
    pub(super) of_class: Vec<u8>,
    pub(super) trees: Vec<Tree>,
    /// The best rank and the root of each tree, ascending.
    pub(super) order: Vec<(u64, u32)>,
    pub(super) nodes: Nodes,
    pub(super) rows: Rows<W>,
    /// True while removals do not change nodes.
    pub(super) is_frozen: bool,
    /// The intervals of the changed rule in all fields, clipped to a node's box.
    pub(super) ends: Vec<Ends>,
    /// Rows of rules that are in too many leaves.
    pub(super) spread: Vec<Vec<u64>>,
    /// Ranks of rules that an insertion moved to the list.
    pub(super) moved: Vec<u64>,
}

impl<const W: usize> Trees<W> {
    /// Stores the trees of an outline. `rule` returns the rank and words of the rule
    /// at a place. Counts the memory.
    pub(super) fn plant<'a>(
        fields: &Arc<Fields>,
        settings: &Settings,
        outline: &Outline,
        rule: &dyn Fn(usize) -> (u64, &'a [u64]),
        monitor: &mut Monitor<'_>,
    ) -> Result<Trees<W>, BuildError> {
        let (places, rows) = outline.places();
        let nodes = outline.nodes();
        monitor.begin(PLANTING, places)?;
        let bytes =
            Nodes::bytes_of(nodes).saturating_add(Rows::<W>::bytes_of(&fields.schema, rows));
        monitor.memory().keep(bytes)?;
        let mut trees = Trees {
            fields: Arc::clone(fields),
            settings: *settings,
            selected: outline.selected.clone(),
            of_class: outline.of_class.clone(),
            trees: Vec::new(),
            order: Vec::new(),
            nodes: Nodes::with_room(nodes),
            rows: Rows::with_room(&fields.schema, rows),
            is_frozen: false,
            ends: Vec::new(),
            spread: Vec::new(),
            moved: Vec::new(),
        };
        for (number, draft) in (0..).zip(&outline.drafts) {
            let root = trees.add_tree(outline.cuts[usize::from(number)]);
            let mut best = u64::MAX;
            let planted =
                trees.plant_node(root, draft, 0, monitor, &mut |trees, leaf, monitor| {
                    let remaining = outline.kept(number, leaf);
                    advance(remaining.clone().count(), monitor)?;
                    best = remaining
                        .clone()
                        .map(|place| rule(place as usize).0)
                        .fold(best, u64::min);
                    let rows = remaining.clone().map(|place| rule(place as usize));
                    Ok(trees.rows.store(remaining.count(), rows))
                })?;
            let tree = trees.trees.last_mut().expect("just added");
            (tree.places, tree.best) = (planted, best);
        }
        let list = outline.list();
        let root = trees.add_tree(0);
        let listed = (0..)
            .zip(&outline.of_place)
            .filter(|&(_, &tree)| tree == list);
        let listed = listed.map(|(place, _): (usize, _)| place);
        let count = listed.clone().count();
        advance(count, monitor)?;
        let leaf = trees.rows.store(count, listed.map(rule));
        *trees.nodes.node_mut(root) = Node::leaf(root, leaf);
        for &tree in &outline.of_place {
            trees.trees[usize::from(tree)].rules += 1;
        }
        let tree = trees.trees.last_mut().expect("just added");
        tree.places = count;
        tree.best = trees.rows.rows(leaf).next().map_or(u64::MAX, |row| row[0]);
        trees.sort();
        Ok(trees)
    }

    /// Adds a tree with one leaf and no rules. Returns its root.
    pub(super) fn add_tree(&mut self, cuts: usize) -> u32 {
        let root = self.nodes.alloc(1);
        // The other node of the pair is never visited.
        *self.nodes.node_mut(root) = Node::leaf(root, Leaf::default());
        self.trees.push(Tree {
            root,
            cuts,
            best: u64::MAX,
            rules: 0,
            places: 0,
            lost: 0,
        });
        root
    }

    /// Stores a node of a draft, and all nodes below it, at an index. `leaf` stores
    /// the rows of a leaf. Returns the number of places below the node.
    pub(super) fn plant_node(
        &mut self,
        index: u32,
        draft: &Draft,
        draft_index: u32,
        monitor: &mut Monitor<'_>,
        leaf: &mut impl FnMut(&mut Self, &[u32], &mut Monitor<'_>) -> Result<Leaf, BuildError>,
    ) -> Result<usize, BuildError> {
        let node = draft.nodes[draft_index as usize];
        if node.is_leaf() {
            let rows = leaf(self, draft.places(&node), monitor)?;
            *self.nodes.node_mut(index) = Node::leaf(index, rows);
            return Ok(rows.len as usize);
        }
        monitor.work(1)?;
        let child = self.nodes.alloc(node.fan_bits());
        let mut places_below = 0;
        for number in 0..1 << node.fan_bits() {
            places_below +=
                self.plant_node(child + number, draft, node.child() + number, monitor, leaf)?;
        }
        let stored = node.with_children(child);
        *self.nodes.node_mut(index) = match node.is_split() {
            true => stored,
            false => stored.with_places(places_below),
        };
        Ok(places_below)
    }

    /// Sorts the trees by their best rules.
    pub(super) fn sort(&mut self) {
        self.order.clear();
        let present = self.trees.iter().filter(|tree| tree.rules > 0);
        self.order
            .extend(present.map(|tree| (tree.best, tree.root)));
        self.order.sort_unstable();
    }

    /// The number of the list.
    pub(super) fn list(&self) -> usize {
        self.trees.len() - 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.bytes() + self.rows.bytes()
    }

    /// The number of trees with rules.
    pub(super) fn present(&self) -> usize {
        self.order.len()
    }

    pub(super) fn places(&self) -> usize {
        self.trees.iter().map(|tree| tree.places).sum()
    }

    #[inline(always)]
    pub(super) fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let mut winner = best;
        for &(best, root) in &self.order {
            if best >= winner.rank() {
                break;
            }
            let leaf = self.nodes.leaf(root, key, |_| ());
            winner = self.rows.improve(leaf, key, winner);
        }
        winner
    }

    /// Improves the winners of `N` keys, at most 256. The keys descend together.
    #[inline]
    pub(super) fn improve_group<const N: usize>(
        &self,
        keys: &[[u64; W]; N],
        winners: &mut [Winner],
    ) {
        for &(best, root) in &self.order {
            // Node 0 is a leaf without rows.
            let (mut nodes, mut active, mut live) = ([0_u32; N], [0_u8; N], 0);
            for (number, (node, winner)) in (0..).zip(nodes.iter_mut().zip(&*winners)) {
                let is_searched = best < winner.rank();
                *node = root * u32::from(is_searched);
                active[live % N] = number;
                live += usize::from(is_searched);
            }
            if live == 0 {
                break;
            }
            // A key that has reached a leaf is no longer active.
            while live > 0 {
                let mut still_live = 0;
                for turn in 0..live {
                    let number = active[turn % N];
                    let key = usize::from(number) % N;
                    let next = self.nodes.next(nodes[key], &keys[key]);
                    active[still_live % N] = number;
                    still_live += usize::from(next != nodes[key]);
                    nodes[key] = next;
                }
                live = still_live;
            }
            let leaves = nodes.map(|node| self.nodes.node(node).rows());
            for leaf in leaves {
                self.rows.prefetch(leaf);
            }
            for ((key, winner), leaf) in keys.iter().zip(&mut *winners).zip(leaves) {
                *winner = self.rows.improve(leaf, key, *winner);
            }
        }
    }

    pub(super) fn improve_masked(
        &self,
        key: &[u64; W],
        best: Winner,
        mask: &mut [u64; W],
    ) -> Winner {
        let mut winner = best;
        for &(best, root) in &self.order {
            if best >= winner.rank() {
                break;
            }
            let leaf = self.nodes.leaf(root, key, |node| node.want(key, mask));
            winner = (self.rows).improve_masked(&self.fields.schema, leaf, key, winner, mask);
        }
        winner
    }

    /// Looks up a key with a winner at hand, and records a probe for each node.
    /// Returns the number of searched trees.
    pub(super) fn trace(&self, key: &[u64; W], trace: &mut LookupTrace) -> usize {
        let mut searched = 0;
        for &(best, root) in &self.order {
            if best >= trace.winner.rank() {
                break;
            }
            searched += 1;
            let tree = self.trees.iter().position(|tree| tree.root == root);
            let tree = tree.expect("a tree in the order");
            let mut mask = vec![0; W];
            let leaf = self.nodes.leaf(root, key, |node| {
                let mut node_mask = vec![0; W];
                node.want(key, &mut node_mask);
                node.want(key, &mut mask);
                trace.probes.push(Probe {
                    table: tree,
                    mask: node_mask,
                    rules: 0,
                    compared: Vec::new(),
                    winner: Winner::MISS,
                });
            });
            let mut compared = Vec::new();
            let winner = self.rows.compare(leaf, key, trace.winner, |row, _| {
                compared.extend(winner_of(row).rule());
            });
            trace.probes.push(Probe {
                table: tree,
                mask,
                rules: self.trees[tree].rules,
                compared,
                winner: if winner.beats(trace.winner) {
                    winner
                } else {
                    Winner::MISS
                },
            });
            trace.winner = winner;
        }
        searched
    }

    /// Returns the cost of finding a rule by a key that it matches: the number of nodes
    /// visited and rules compared.
    pub(super) fn cost(&self, key: &[u64; W], rank: u64) -> usize {
        let mut cost = 0;
        for &(_, root) in self.order.iter().take_while(|tree| tree.0 <= rank) {
            let leaf = self.nodes.leaf(root, key, |_| cost += 1);
            cost += 1 + self.rows.position(leaf, rank);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::trees_of;

    #[test]
    fn small_classes_share_the_trees_of_larger_ones() {
        assert_eq!(trees_of(&[0], 8), (vec![0], vec![0]));
        assert_eq!(
            trees_of(&[0, 0, 0, 0], 8),
            (vec![3, 2, 1, 0], vec![3, 2, 1, 0])
        );
        // Rules that are small in both fields go to the rules that are small in the
        // second field.
        let division = trees_of(&[100, 10, 1000, 10], 8);
        assert_eq!(division, (vec![1, 1, 0, 0], vec![2, 0]));
        let division = trees_of(&[1, 1, 1, 1000], 8);
        assert_eq!(division, (vec![1, 1, 1, 0], vec![3, 0]));
    }
}
