//! The tree of a group: the values of its rules, and the bits where they agree.

use foldhash::HashMap;

use crate::growth::make_room;

/// A branch or a leaf. The highest bit is set for branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(u32);

const BRANCH: u32 = 1 << 31;

/// A node with two children.
#[derive(Clone, Copy)]
pub(super) struct Branch {
    /// The bit that divides the rules: part of the mask × 32 + bits above it in the part.
    position: u16,
    children: [Node; 2],
    /// Some leaf below. Its values stand for the agreed values.
    leaf: u32,
    best: u64,
}

impl Branch {
    /// Returns the index of the part in the mask.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        usize::from(self.position / 32)
    }

    /// True if the bit is set in a part of a key.
    #[inline]
    pub(super) fn bit_of(&self, part: u32) -> bool {
        part >> (31 - self.position % 32) & 1 == 1
    }

    /// Returns the child for a value of the bit.
    #[inline]
    pub(super) fn child(&self, bit: usize) -> Node {
        self.children[bit]
    }
}

/// The values of the rules of one mask. Values are in the order of the mask's parts.
pub(super) struct Tree {
    masks: Box<[u32]>,
    root: Option<Node>,
    branches: Vec<Branch>,
    /// The agreed bits of branches: for each branch, a number for each part of the mask.
    agreed: Vec<u32>,
    /// The best rank of the rules with the leaf's values.
    leaves: Vec<u64>,
    /// The values of leaves: for each leaf, a number for each part of the mask.
    values: Vec<u32>,
    free_branches: Vec<u32>,
    free_leaves: Vec<u32>,
    /// All ranks of leaves with several rules, sorted.
    ranks: HashMap<u32, Vec<u64>>,
    /// Working memory: the branches from the root to a leaf, and the taken sides.
    path: Vec<(u32, usize)>,
}

impl Tree {
    /// Returns a tree without rules.
    pub(super) fn new(masks: Box<[u32]>) -> Tree {
        Tree {
            masks,
            root: None,
            branches: Vec::new(),
            agreed: Vec::new(),
            leaves: Vec::new(),
            values: Vec::new(),
            free_branches: Vec::new(),
            free_leaves: Vec::new(),
            ranks: HashMap::default(),
            path: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn root(&self) -> Option<Node> {
        self.root
    }

    /// Returns the best rank of all rules, or the worst rank without rules.
    #[inline]
    pub(super) fn best_rank(&self) -> u64 {
        self.root.map_or(u64::MAX, |root| self.best(root))
    }

    /// Returns the best rank below a node.
    #[inline]
    pub(super) fn best(&self, node: Node) -> u64 {
        match node.0 & BRANCH {
            0 => self.leaves[node.0 as usize],
            _ => self.branches[index(node)].best,
        }
    }

    /// Returns the branch, or `None` if the node is a leaf.
    #[inline]
    pub(super) fn branch(&self, node: Node) -> Option<&Branch> {
        match node.0 & BRANCH {
            0 => None,
            _ => Some(&self.branches[index(node)]),
        }
    }

    /// Returns the values of a leaf at or below the node, which has all agreed values.
    #[inline]
    pub(super) fn values(&self, node: Node) -> &[u32] {
        let leaf = self.branch(node).map_or(node.0, |branch| branch.leaf);
        list(&self.values, leaf as usize, self.masks.len())
    }

    /// Returns the bits where all rules below the node agree.
    #[inline]
    pub(super) fn agreed(&self, node: Node) -> &[u32] {
        match node.0 & BRANCH {
            0 => &self.masks,
            _ => list(&self.agreed, index(node), self.masks.len()),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let numbers = self.agreed.capacity() + self.values.capacity() + self.masks.len();
        let free = self.free_branches.capacity() + self.free_leaves.capacity();
        let ranks = self.ranks.values().map(|ranks| 8 * ranks.capacity() + 32);
        4 * (numbers + free)
            + 8 * self.leaves.capacity()
            + size_of::<Branch>() * self.branches.capacity()
            + ranks.sum::<usize>()
    }

    /// Iterates over the leaves: values, and the best rank of the rules with these values.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (&[u32], u64)> {
        let mut waiting: Vec<Node> = self.root.into_iter().collect();
        let leaves = std::iter::from_fn(move || {
            let mut node = waiting.pop()?;
            while let Some(branch) = self.branch(node) {
                waiting.push(branch.children[1]);
                node = branch.children[0];
            }
            Some(node)
        });
        leaves.map(|leaf| (self.values(leaf), self.best(leaf)))
    }

    /// Adds a rule.
    pub(super) fn insert(&mut self, values: &[u32], rank: u64) {
        let Some(root) = self.root else {
            self.root = Some(self.new_leaf(values, rank));
            return;
        };
        let nearest = self.descend(root, values, u16::MAX);
        let Some(position) = first_difference(self.values(nearest), values) else {
            self.add_rank(nearest.0, rank);
            self.extend_path(values, rank);
            return;
        };
        // The new branch stands above the first branch at a later bit.
        let sibling = self.descend(root, values, position);
        let leaf = self.new_leaf(values, rank);
        let branch = self.new_branch(position, leaf, sibling);
        match self.path.last() {
            None => self.root = Some(branch),
            Some(&(above, side)) => self.branches[above as usize].children[side] = branch,
        }
        self.extend_path(values, rank);
    }

    /// Removes a rule.
    pub(super) fn remove(&mut self, values: &[u32], rank: u64) {
        let Some(root) = self.root else {
            return;
        };
        let leaf = self.descend(root, values, u16::MAX);
        debug_assert_eq!(self.values(leaf), values, "the rule was not added");
        if self.remove_rank(leaf.0, rank) {
            self.free_leaves.push(leaf.0);
            match self.path.pop() {
                None => self.root = None,
                Some((branch, side)) => {
                    let sibling = self.branches[branch as usize].children[1 - side];
                    self.free_branches.push(branch);
                    match self.path.last() {
                        None => self.root = Some(sibling),
                        Some(&(above, side)) => {
                            self.branches[above as usize].children[side] = sibling;
                        }
                    }
                }
            }
        }
        self.update_path(leaf.0);
    }

    /// Follows values from `root` to a leaf, or to the first branch whose position is not
    /// before `end`. Puts the branches on the way into `path`.
    fn descend(&mut self, root: Node, values: &[u32], end: u16) -> Node {
        self.path.clear();
        let mut node = root;
        while let Some(branch) = self.branch(node).filter(|branch| branch.position < end) {
            let side = usize::from(branch.bit_of(values[branch.slot()]));
            let next = branch.children[side];
            self.path.push((node.0 & !BRANCH, side));
            node = next;
        }
        node
    }

    /// Updates the branches of `path` after a rule was added below them.
    fn extend_path(&mut self, values: &[u32], rank: u64) {
        for &(number, _) in &self.path {
            let branch = &mut self.branches[number as usize];
            branch.best = branch.best.min(rank);
            let first_leaf = branch.leaf as usize * values.len();
            let first = number as usize * values.len();
            let agreed = self.agreed[first..].iter_mut();
            let leaf_values = &self.values[first_leaf..];
            for ((agreed, other), value) in agreed.zip(leaf_values).zip(values) {
                *agreed &= !(other ^ value);
            }
        }
    }

    /// Updates the branches of `path` after a rule of a leaf was removed below them, the lowest
    /// first. A branch is not updated if the branch below did not change, unless it takes its
    /// values from the leaf.
    fn update_path(&mut self, leaf: u32) {
        let path = std::mem::take(&mut self.path);
        let mut has_changed = true;
        for &(branch, _) in path.iter().rev() {
            if has_changed || self.branches[branch as usize].leaf == leaf {
                has_changed = self.update(branch);
            }
        }
        self.path = path;
    }

    /// Computes agreed bits, leaf and best rank of a branch from its children. Returns true if
    /// one of them changes.
    fn update(&mut self, branch: u32) -> bool {
        let mut has_changed = false;
        let children = self.branches[branch as usize].children;
        let width = self.masks.len();
        for slot in 0..width {
            let [one, two] = children.map(|child| self.values(child)[slot]);
            let [first, second] = children.map(|child| self.agreed(child)[slot]);
            let agreed = &mut self.agreed[branch as usize * width + slot];
            let updated = first & second & !(one ^ two);
            has_changed |= *agreed != updated;
            *agreed = updated;
        }
        let [first, second] = children.map(|child| self.best(child));
        let leaf = self.branch(children[0]);
        let leaf = leaf.map_or(children[0].0, |child| child.leaf);
        let branch = &mut self.branches[branch as usize];
        has_changed |= (branch.best, branch.leaf) != (first.min(second), leaf);
        (branch.best, branch.leaf) = (first.min(second), leaf);
        has_changed
    }

    fn new_leaf(&mut self, values: &[u32], rank: u64) -> Node {
        let leaf = match self.free_leaves.pop() {
            Some(leaf) => {
                self.leaves[leaf as usize] = rank;
                let first = leaf as usize * values.len();
                self.values[first..first + values.len()].copy_from_slice(values);
                leaf
            }
            None => {
                make_room(&mut self.leaves, 1);
                self.leaves.push(rank);
                make_room(&mut self.values, values.len());
                self.values.extend_from_slice(values);
                number(self.leaves.len() - 1)
            }
        };
        Node(leaf)
    }

    /// Returns a branch above a leaf and another node, which differ at a position.
    fn new_branch(&mut self, position: u16, leaf: Node, other: Node) -> Node {
        let mut branch = Branch {
            position,
            children: [other, leaf],
            leaf: leaf.0,
            best: 0,
        };
        if !branch.bit_of(self.values(leaf)[branch.slot()]) {
            branch.children = [leaf, other];
        }
        let place = match self.free_branches.pop() {
            Some(place) => {
                self.branches[place as usize] = branch;
                place
            }
            None => {
                make_room(&mut self.branches, 1);
                self.branches.push(branch);
                let length = self.agreed.len() + self.masks.len();
                make_room(&mut self.agreed, self.masks.len());
                self.agreed.resize(length, 0);
                number(self.branches.len() - 1)
            }
        };
        self.update(place);
        Node(place | BRANCH)
    }

    /// Adds the rank of another rule with a leaf's values.
    fn add_rank(&mut self, leaf: u32, rank: u64) {
        let best = &mut self.leaves[leaf as usize];
        let ranks = self.ranks.entry(leaf).or_insert_with(|| vec![*best]);
        let place = ranks.partition_point(|&other| other < rank);
        ranks.insert(place, rank);
        *best = ranks[0];
    }

    /// Removes the rank of a rule. Returns true if the leaf has no rule left.
    fn remove_rank(&mut self, leaf: u32, rank: u64) -> bool {
        let Some(ranks) = self.ranks.get_mut(&leaf) else {
            return true;
        };
        if let Ok(place) = ranks.binary_search(&rank) {
            ranks.remove(place);
        }
        self.leaves[leaf as usize] = ranks[0];
        if ranks.len() == 1 {
            self.ranks.remove(&leaf);
        }
        false
    }
}

/// Returns the index of a branch.
#[inline]
fn index(node: Node) -> usize {
    (node.0 & !BRANCH) as usize
}

/// Returns the `number`th of the lists of `width` numbers.
#[inline]
fn list(all: &[u32], number: usize, width: usize) -> &[u32] {
    &all[number * width..(number + 1) * width]
}

/// Returns the number of a leaf or branch.
///
/// # Panics
/// If there are 2^31 rules with one mask, more than there are ids.
fn number(index: usize) -> u32 {
    let number = u32::try_from(index).expect("fewer than 2^31 rules");
    assert!(number < BRANCH, "fewer than 2^31 rules");
    number
}

/// Returns the position of the first bit where two lists of values differ.
fn first_difference(one: &[u32], two: &[u32]) -> Option<u16> {
    let mut parts = (0_u16..).zip(one.iter().zip(two));
    let (slot, (one, two)) = parts.find(|(_, (one, two))| one != two)?;
    let bit = u16::try_from((one ^ two).leading_zeros()).expect("at most 32");
    Some(32 * slot + bit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Tree {
        /// Checks all branches below a node. Returns the leaves.
        fn check(&self, node: Node) -> Vec<u32> {
            let Some(branch) = self.branch(node) else {
                return vec![node.0];
            };
            let mut leaves = self.check(branch.children[0]);
            leaves.extend(self.check(branch.children[1]));
            assert!(leaves.contains(&branch.leaf), "the values of a leaf below");
            let ranks = leaves.iter().map(|&leaf| self.leaves[leaf as usize]);
            assert_eq!(Some(branch.best), ranks.min());
            for (slot, mask) in self.masks.iter().enumerate() {
                let values = leaves.iter().map(|&leaf| self.values(Node(leaf))[slot]);
                let first = self.values(node)[slot];
                let differing = values.fold(0, |bits, value| bits | (value ^ first));
                assert_eq!(self.agreed(node)[slot], mask & !differing);
            }
            leaves
        }
    }

    proptest! {
        #[test]
        fn branches_have_the_bits_in_which_all_rules_below_agree(
            steps in prop::collection::vec((0..3u8, 0..8u32, 0..8u32, any::<prop::sample::Index>()), 1..80),
        ) {
            let mut tree = Tree::new([7, 7 << 29].into());
            let mut rules: Vec<([u32; 2], u64)> = Vec::new();
            for (rank, (step, low, high, index)) in (0..).zip(steps) {
                match step {
                    0 if !rules.is_empty() => {
                        let (values, rank) = rules.swap_remove(index.index(rules.len()));
                        tree.remove(&values, rank);
                    }
                    _ => {
                        // Better and worse ranks in turn.
                        let rank = if rank % 2 == 0 { 1000 + rank } else { 1000 - rank };
                        tree.insert(&[low, high << 29], rank);
                        rules.push(([low, high << 29], rank));
                    }
                }
                if let Some(root) = tree.root() {
                    tree.check(root);
                }
                prop_assert_eq!(tree.root().is_none(), rules.is_empty());
                prop_assert_eq!(Some(tree.best_rank()), rules.iter().map(|rule| rule.1).min().or(Some(u64::MAX)));
            }
        }
    }
}
