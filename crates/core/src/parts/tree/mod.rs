//! Shared parts of decision trees: rules in terms of elementary intervals, lists of
//! rules at leaves, and the search of a list.
//!
//! # Idea
//! A decision tree cuts the space of all keys into boxes. A node stands for a box, which
//! has one interval in each field, and for the rules that match some key in the box. A
//! lookup descends to the leaf whose box contains the key, and searches the leaf's
//! rules, best first. Trees differ in how they cut a node.
//!
//! - [`Grid`] has the ends of all rules as numbers of elementary intervals, so that
//!   building compares 32 bits, whatever the width of a field.
//! - [`Lists`] has the lists of all leaves. Equal lists are stored once.
//! - [`List`] is one list, with its search.
//! - [`TreeEngine`] is the engine over nodes and lists; a [`TreeKind`] says how its tree
//!   grows.
//! - [`PerRule`] is the size of a tree for each rule, extrapolated from a sample.

mod costs;
mod engine;
mod grid;
#[cfg(test)]
pub(crate) mod kit;
mod list;
mod predict;
pub(crate) mod split;

pub(crate) use costs::{estimate, predict};
pub(crate) use engine::{GROUP_KEYS, Grown, TreeEngine, TreeKind, TreeNodes};
pub(crate) use grid::{Entry, Grid, Intervals, Side, Span};
pub(crate) use list::{List, Lists, Sharing};
pub(crate) use predict::{PerRule, Prediction, TreePrices, indices};

use crate::budget::memory::Memory;
use crate::model::error::BuildError;

/// The largest number of rules in a tree: positions of rules and numbers of elementary
/// intervals have 32 bits.
pub(crate) const MOST_RULES: usize = 1 << 28;

/// The shape of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outline {
    /// Leaves; a leaf that several nodes share counts once.
    pub(crate) leaves: usize,
    /// Places of all leaves; a shared list counts for each leaf.
    pub(crate) places: usize,
    /// The largest number of nodes above a leaf.
    pub(crate) depth: usize,
    /// The largest number of places in a leaf.
    pub(crate) longest: usize,
    /// The mean number of nodes above a leaf, and of rules in its list, over headers of
    /// random rules.
    pub(crate) mean_depth: f64,
    pub(crate) mean_rules: f64,
}

impl Outline {
    /// Counts a leaf. `weight` is the share of headers that reach it.
    #[allow(clippy::cast_precision_loss)] // means
    pub(crate) fn add_leaf(&mut self, depth: usize, rules: usize, weight: f64) {
        self.leaves += 1;
        self.places += rules;
        self.depth = self.depth.max(depth);
        self.longest = self.longest.max(rules);
        self.mean_depth += depth as f64 * weight;
        self.mean_rules += rules as f64 * weight;
    }
}

/// Makes room for `more` items in a vector of working memory, which is counted by its
/// capacity.
pub(crate) fn room_for<T>(
    memory: &mut Memory,
    items: &mut Vec<T>,
    more: usize,
) -> Result<(), BuildError> {
    let needed = items.len().saturating_add(more);
    if needed > items.capacity() {
        let (old, new) = (items.capacity(), needed.max(2 * items.capacity()));
        memory.take(new.saturating_mul(size_of::<T>()))?;
        items.reserve_exact(new - items.len());
        memory.give_back(old * size_of::<T>());
    }
    Ok(())
}

/// Appends an item to a vector of working memory.
pub(crate) fn push<T>(memory: &mut Memory, items: &mut Vec<T>, item: T) -> Result<(), BuildError> {
    room_for(memory, items, 1)?;
    items.push(item);
    Ok(())
}

/// Appends items to a vector of working memory.
pub(crate) fn extend<T: Copy>(
    memory: &mut Memory,
    items: &mut Vec<T>,
    more: &[T],
) -> Result<(), BuildError> {
    room_for(memory, items, more.len())?;
    items.extend_from_slice(more);
    Ok(())
}
