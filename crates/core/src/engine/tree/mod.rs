//! What decision trees share: rules in terms of elementary intervals, lists of
//! rules at leaves, and the search of such a list.
//!
//! # Idea
//! A decision tree cuts the space of all keys into boxes. A node stands for a
//! box, which has one interval in each field, and for the rules that match some
//! key of it; a lookup goes down to the leaf whose box the key is in, and
//! searches its rules, best first. Trees differ in how a node is cut.
//!
//! - [`Grid`] has the ends of all rules as numbers of elementary intervals, so
//!   that building compares 32 bits, whatever the width of a field.
//! - [`Lists`] has the lists of all leaves. Equal ones are stored once.
//! - [`List`] is one of them, and how it is searched.

mod grid;
mod list;

pub(super) use grid::{Entry, Grid, Intervals, Span};
pub(super) use list::{List, Lists, Sharing};

use crate::error::BuildError;
use crate::memory::Memory;

/// The most rules of a tree: their places, and the numbers of their elementary
/// intervals, have 32 bits.
pub(super) const MOST_RULES: usize = 1 << 28;

/// Makes room for more items of a vector of working memory, which is counted by
/// its capacity.
fn room_for<T>(memory: &mut Memory, items: &mut Vec<T>, more: usize) -> Result<(), BuildError> {
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
pub(super) fn push<T>(memory: &mut Memory, items: &mut Vec<T>, item: T) -> Result<(), BuildError> {
    room_for(memory, items, 1)?;
    items.push(item);
    Ok(())
}

/// Appends items to a vector of working memory.
pub(super) fn extend<T: Copy>(
    memory: &mut Memory,
    items: &mut Vec<T>,
    more: &[T],
) -> Result<(), BuildError> {
    room_for(memory, items, more.len())?;
    items.extend_from_slice(more);
    Ok(())
}
