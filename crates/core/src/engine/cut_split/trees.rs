//! The trees: which rules are in which, how they are looked up, and how they are
//! made from drafts.

use std::sync::Arc;

use crate::classifier::{LookupTrace, Probe};
use crate::engine::tree::Grid;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::rule::Winner;

use super::Settings;
use super::fields::{Ends, Fields, Selected, WordsAt, class, select};
use super::grow::{Grow, Ranked, winner_of};
use super::node::{Draft, Leaf, Node, Nodes};
use super::rows::{Rows, room_for};

/// What progress observers are told.
const SELECTING: &str = "selecting fields";
const GROWING: &str = "cutting and splitting";
const PLANTING: &str = "storing rules at leaves";

/// A class of rules has a tree of its own if it has this share of all rules.
const LEAST_SHARE: usize = 24;

/// The most places of a tree: rows are numbered with 32 bits.
pub(super) const MOST_PLACES: usize = 1 << 26;

/// What the trees of some rules look like, before they are stored.
pub(super) struct Outline {
    pub(super) selected: Vec<Selected>,
    /// For each class the number of its tree.
    pub(super) of_class: Vec<u8>,
    /// For each tree a bit for each selected field that it cuts.
    pub(super) cuts: Vec<usize>,
    /// The trees, except the last one, which is a list.
    pub(super) drafts: Vec<Draft>,
    /// The tree of each place.
    pub(super) of_place: Vec<u8>,
    /// Rules clipped.
    pub(super) clips: usize,
}

impl Outline {
    /// Selects fields, divides the rules into classes, and grows the trees.
    /// Counts its memory, which is [`bytes`](Self::bytes), as working memory.
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
        let places = (0..=u32::MAX).zip(&self.of_place);
        let places = places
            .filter(|&(_, &of)| of == number)
            .map(|(place, _)| place);
        let count = places.clone().count();
        monitor.begin(GROWING, count)?;
        let most = count.saturating_mul(settings.places).min(MOST_PLACES);
        let everything = fields.everything();
        let mut growing = Grow::new(grid, fields, settings, cuts, &everything, monitor)?;
        growing.tree(places, most, 0, monitor)?;
        self.clips += growing.clips;
        self.drafts.push(growing.finish(monitor));
        Ok(())
    }

    /// Rules that are in more leaves than they may be go to the list instead.
    fn move_spread_rules(
        &mut self,
        spread: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let bytes = bytes_of::<u32>(self.of_place.len());
        monitor.memory().take(bytes)?;
        let mut places = vec![0_u32; self.of_place.len()];
        for draft in &self.drafts {
            for chunk in draft.lists.chunks(Monitor::BLOCK) {
                for &place in chunk {
                    places[place as usize] += 1;
                }
                monitor.work(chunk.len() / 8)?;
            }
        }
        let list = self.list();
        for (tree, places) in self.of_place.iter_mut().zip(&places) {
            if *places as usize > spread {
                *tree = list;
            }
        }
        drop(places);
        monitor.memory().give_back(bytes);
        Ok(())
    }

    /// The number of the list.
    fn list(&self) -> u8 {
        u8::try_from(self.cuts.len()).expect("at most 16 trees")
    }

    /// The places of a leaf whose rules are in the tree still.
    fn kept<'a>(&'a self, tree: u8, places: &'a [u32]) -> impl Iterator<Item = u32> + Clone + 'a {
        let places = places.iter().copied();
        places.filter(move |&place| self.of_place[place as usize] == tree)
    }

    /// Places of all leaves and of the list, and rows of their blocks.
    pub(super) fn places(&self) -> (usize, usize) {
        let list = self.of_place.iter().filter(|&&tree| tree == self.list());
        let list = list.count();
        let (mut places, mut rows) = (list, room_for(list));
        for (tree, draft) in (0..).zip(&self.drafts) {
            for leaf in draft.nodes.iter().filter(|node| node.is_leaf()) {
                let kept = self.kept(tree, draft.places(leaf)).count();
                places += kept;
                rows += room_for(kept);
            }
        }
        (places, rows)
    }

    /// Nodes of all trees, in blocks of whole cache lines.
    pub(super) fn nodes(&self) -> usize {
        let nodes = self.drafts.iter().map(|draft| draft.nodes.len() + 2);
        nodes.sum::<usize>() + 6
    }

    /// Bytes of working memory.
    pub(super) fn bytes(&self) -> usize {
        self.of_place.capacity() + self.drafts.iter().map(Draft::bytes).sum::<usize>()
    }
}

/// The selected fields of a set of bits.
fn cut_fields(selected: &[Selected], cuts: usize) -> Vec<Selected> {
    let cut = selected.iter().enumerate();
    let cut = cut.filter(|(number, _)| cuts >> number & 1 != 0);
    cut.map(|(_, &selected)| selected).collect()
}

/// Which classes have trees of their own: for each class its tree, and for each
/// tree the fields that it cuts, as bits. A small class shares the tree of a larger
/// one which cuts some of its small fields; the last tree cuts none.
fn trees_of(sizes: &[usize], binth: usize) -> (Vec<u8>, Vec<usize>) {
    let all: usize = sizes.iter().sum();
    let least = (all / LEAST_SHARE).max(binth);
    let mut sizes = sizes.to_vec();
    let mut target: Vec<usize> = (0..sizes.len()).collect();
    let mut classes: Vec<usize> = (1..sizes.len()).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.count_ones()));
    for &class in &classes {
        // Without rules nothing is known: each class has a tree.
        if all == 0 || sizes[class] >= least {
            continue;
        }
        let others = (0..class).filter(|other| other & !class == 0);
        let to = others.max_by_key(|&other| (sizes[other], other));
        let to = to.expect("the class of big rules is among them");
        sizes[to] += std::mem::take(&mut sizes[class]);
        target[class] = to;
    }
    for &class in &classes {
        // Those that it was merged with may have been merged again.
        let mut to = class;
        while target[to] != to {
            to = target[to];
        }
        target[class] = to;
    }
    let kept = (0..sizes.len())
        .rev()
        .filter(|&class| target[class] == class);
    let cuts: Vec<usize> = kept.collect();
    let tree = |class: &usize| {
        let tree = cuts.iter().position(|cut| cut == class);
        u8::try_from(tree.expect("a class that is kept")).expect("at most 16 trees")
    };
    (target.iter().map(tree).collect(), cuts)
}

/// Counts steps that were many at once.
fn advance(steps: usize, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
    let mut left = steps;
    while left > 0 {
        let some = left.min(Monitor::BLOCK);
        monitor.advance(some)?;
        left -= some;
    }
    Ok(())
}

/// A tree, or the list, which is a leaf that is never split.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// A bit for each selected field that is cut.
    pub(super) cuts: usize,
    /// No rule of the tree has a better rank.
    pub(super) best: u64,
    pub(super) rules: usize,
    /// Places of all leaves.
    pub(super) places: usize,
    /// Rules that were removed since `best` was of one that is there; 0 where it
    /// is.
    pub(super) lost: usize,
}

/// All trees over one division into classes.
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
    /// Whether nodes stay as they are when rules go.
    pub(super) is_frozen: bool,
    /// The interval of a changed rule in each field, in a node's box.
    pub(super) ends: Vec<Ends>,
    /// Rows of rules that are in too many leaves.
    pub(super) spread: Vec<Vec<u64>>,
    /// Ranks of rules that an insertion moved to the list.
    pub(super) moved: Vec<u64>,
}

impl<const W: usize> Trees<W> {
    /// Stores the trees of an outline, whose rules, rank and words, are found by
    /// place. Counts the
    /// memory.
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
            let places =
                trees.plant_node(root, draft, 0, monitor, &mut |trees, leaf, monitor| {
                    let kept = outline.kept(number, leaf);
                    advance(kept.clone().count(), monitor)?;
                    best = kept
                        .clone()
                        .map(|place| rule(place as usize).0)
                        .fold(best, u64::min);
                    let rows = kept.clone().map(|place| rule(place as usize));
                    Ok(trees.rows.store(kept.count(), rows))
                })?;
            let tree = trees.trees.last_mut().expect("just added");
            (tree.places, tree.best) = (places, best);
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

    /// Adds a tree of one leaf without rules; its root.
    pub(super) fn add_tree(&mut self, cuts: usize) -> u32 {
        let root = self.nodes.alloc(1);
        // The other node of the pair is never met.
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

    /// Stores a node of a draft and all below it at an index. `leaf` stores the
    /// rows of a leaf. Returns the places below.
    pub(super) fn plant_node(
        &mut self,
        at: u32,
        draft: &Draft,
        from: u32,
        monitor: &mut Monitor<'_>,
        leaf: &mut impl FnMut(&mut Self, &[u32], &mut Monitor<'_>) -> Result<Leaf, BuildError>,
    ) -> Result<usize, BuildError> {
        let node = draft.nodes[from as usize];
        if node.is_leaf() {
            let rows = leaf(self, draft.places(&node), monitor)?;
            *self.nodes.node_mut(at) = Node::leaf(at, rows);
            return Ok(rows.len as usize);
        }
        monitor.work(1)?;
        let child = self.nodes.alloc(node.fan_bits());
        let mut places = 0;
        for number in 0..1 << node.fan_bits() {
            places +=
                self.plant_node(child + number, draft, node.child() + number, monitor, leaf)?;
        }
        let stored = node.with_children(child);
        *self.nodes.node_mut(at) = match node.is_split() {
            true => stored,
            false => stored.with_places(places),
        };
        Ok(places)
    }

    /// Puts the trees in the order of their best rules.
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

    /// Improves the winners of as many keys, at most 256, which go down in step.
    #[inline]
    pub(super) fn improve_group<const N: usize>(
        &self,
        keys: &[[u64; W]; N],
        winners: &mut [Winner],
    ) {
        for &(best, root) in &self.order {
            // Node 0 is a leaf without rows.
            let (mut at, mut active, mut live) = ([0_u32; N], [0_u8; N], 0);
            for (number, (at, winner)) in (0..).zip(at.iter_mut().zip(&*winners)) {
                let wants = best < winner.rank();
                *at = root * u32::from(wants);
                active[live % N] = number;
                live += usize::from(wants);
            }
            if live == 0 {
                break;
            }
            // Keys that have come to a leaf go no further.
            while live > 0 {
                let mut kept = 0;
                for turn in 0..live {
                    let number = active[turn % N];
                    let key = usize::from(number) % N;
                    let next = self.nodes.next(at[key], &keys[key]);
                    active[kept % N] = number;
                    kept += usize::from(next != at[key]);
                    at[key] = next;
                }
                live = kept;
            }
            let leaves = at.map(|at| self.nodes.node(at).rows());
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

    /// A lookup with a winner at hand, written down: a probe for each node. Says how
    /// many trees were searched.
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
                let mut of_node = vec![0; W];
                node.want(key, &mut of_node);
                node.want(key, &mut mask);
                trace.probes.push(Probe {
                    table: tree,
                    mask: of_node,
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

    /// What it takes to find a rule, of which a key is given: nodes, and rules
    /// compared.
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
        // The rules that are small in both fields go to those that are in the
        // second.
        let found = trees_of(&[100, 10, 1000, 10], 8);
        assert_eq!(found, (vec![1, 1, 0, 0], vec![2, 0]));
        let found = trees_of(&[1, 1, 1, 1000], 8);
        assert_eq!(found, (vec![1, 1, 1, 0], vec![3, 0]));
    }
}
