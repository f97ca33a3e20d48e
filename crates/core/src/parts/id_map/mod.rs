//! A map from rule ids to small values that grows and shrinks without pauses.
//!
//! # Idea
//! Sixteen consecutive ids are a *page*. The values of a page's ids are packed, in the
//! order of the ids, in a *block* of 1, 2, 4, 8 or 16 values. A bitmap records which ids
//! are present; the number of bits before an id's bit is the index of its value. So
//! consecutive ids, as from files, cost little more than their values, and a lone id
//! costs a block of one value. A page that outgrows its block moves to the next class; a
//! page that fills at most a quarter of its block moves down. In a block of 16, each id
//! has a fixed slot, so that the value can be read before the bitmap has arrived from
//! memory.
//!
//! # Data layout
//! ```text
//! index    page number ─▶ class, block                  an array for the lowest
//!                                                       pages, a hash table for
//!                                                       others ([`index`])
//! classes  16:  page, present 0110…  │ value × 16 │ …   6 bytes a header ([`blocks`])
//!           8:  page, present        │ value × 8  │ …
//!           …
//!           1:  page, present        │ value      │ …
//! ```
//! The blocks of a class have no gaps: the last block fills the place of a removed
//! block. Blocks are in chunks, which are not copied when the class grows.
//!
//! # Cost
//! Lookup: a slot of the index, a header, a value. Memory for values of 8 bytes: 9 to 10
//! bytes an id if ids are dense, 24 to 34 if each id has a page of its own and ids are
//! only added.
//!
//! Each operation does at most the following: it copies three blocks (the page's own
//! block twice, and the block that fills a gap), sweeps 16 slots of an old hash table,
//! moves four pages between the two parts of the index, probes a few clusters of the
//! hash table, and makes or frees a few pieces of memory of 16 KB. Nothing large is
//! copied. Only arrays of descriptors grow as a whole, by 16 or 24 bytes for each 16 KB
//! of the index and by 48 for each 1024 values.

use std::fmt;

use crate::model::rule::RuleId;

mod blocks;
mod direct;
mod hashed;
mod index;
#[cfg(test)]
mod tests;

use blocks::{BlockAt, Blocks};
use index::Index;

/// The number of ids in a page: the bits of a header's bitmap.
const PAGE_IDS: usize = 16;

/// The number of classes: capacities are two to the power of 0 to 4.
const CLASS_COUNT: usize = 5;

/// A map from rule ids to values, in an order of its own.
pub(crate) struct IdMap<V: Copy> {
    index: Index,
    /// Ordered by capacity, from 1 value to 16.
    classes: [Blocks<V>; CLASS_COUNT],
    len: usize,
}

/// The position of an id's value; valid until an id is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    at: BlockAt,
    place: usize,
}

/// Returns an id's page, and its number in the page.
#[allow(clippy::cast_possible_truncation)] // the page size is small
fn split(id: RuleId) -> (u32, u32) {
    (id.get() / PAGE_IDS as u32, id.get() % PAGE_IDS as u32)
}

/// Returns the number of present ids before an id.
fn rank(present: u16, id: u32) -> usize {
    (present & ((1 << id) - 1)).count_ones() as usize
}

fn has(present: u16, id: u32) -> bool {
    present >> id & 1 != 0
}

/// The class of blocks with a slot for each id.
const FULL_CLASS: usize = CLASS_COUNT - 1;

/// Returns the index of an id's value in a block of a class.
#[inline]
fn place(class: usize, present: u16, id: u32) -> usize {
    if class == FULL_CLASS {
        id as usize
    } else {
        rank(present, id)
    }
}

/// Returns the values of the present ids, each at its index in a block of a class.
/// `values` are in the order of the ids; `rest` fills unused slots.
fn laid_out<V: Copy>(
    class: usize,
    present: u16,
    values: impl Iterator<Item = V>,
    rest: V,
) -> [V; PAGE_IDS] {
    let mut out = [rest; PAGE_IDS];
    for (id, value) in ids_of(present).zip(values) {
        work::moved(1);
        out[place(class, present, id)] = value;
    }
    out
}

/// The present ids.
fn ids_of(present: u16) -> impl Iterator<Item = u32> {
    (0..).take(PAGE_IDS).filter(move |&id| has(present, id))
}

impl<V: Copy> IdMap<V> {
    /// Returns an empty map. The seed decides the slots of the index's entries, so
    /// an attacker who chooses ids should not know it.
    pub(crate) fn new(seed: u64) -> IdMap<V> {
        let mut bits = 0..;
        IdMap {
            index: Index::new(seed),
            classes: std::array::from_fn(|_| Blocks::new(bits.next().expect("endless"))),
            len: 0,
        }
    }

    /// The number of ids.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the block of an id's value, and its index there.
    #[inline]
    fn find(&self, id: RuleId) -> Option<(BlockAt, usize)> {
        let (page, id) = split(id);
        let at = self.index.get(page)?;
        let present = self.classes[at.class].present(at.block);
        has(present, id).then(|| (at, place(at.class, present, id)))
    }

    /// Returns the value of an id.
    #[inline]
    pub(crate) fn get(&self, id: RuleId) -> Option<V> {
        let (at, place) = self.find(id)?;
        Some(self.classes[at.class].value(at.block, place))
    }

    /// Returns the value of an id, for changes.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: RuleId) -> Option<&mut V> {
        let (at, place) = self.find(id)?;
        Some(self.classes[at.class].value_mut(at.block, place))
    }

    /// True if the id exists.
    #[inline]
    pub(crate) fn contains(&self, id: RuleId) -> bool {
        self.find(id).is_some()
    }

    /// Prefetches what finding an id reads, except for the index.
    #[inline]
    pub(crate) fn prefetch(&self, id: RuleId) {
        let (page, id) = split(id);
        if let Some(at) = self.index.get(page) {
            self.classes[at.class].prefetch(at.block, id as usize);
        }
    }

    /// Sets the value of an id; returns the previous value. If the id exists, no
    /// position changes.
    pub(crate) fn set(&mut self, id: RuleId, value: V) -> Option<V> {
        match self.insert(id, value) {
            Ok(_) => None,
            Err(position) => Some(std::mem::replace(self.at_mut(position), value)),
        }
    }

    /// Adds an id with a value, and returns the position of the value. If the id exists,
    /// changes nothing and returns its position as an error. Positions are valid until
    /// an id is added or removed.
    pub(crate) fn insert(&mut self, id: RuleId, value: V) -> Result<Position, Position> {
        let (page, id) = split(id);
        let Some(at) = self.index.get(page) else {
            self.len += 1;
            self.index.sweep();
            let block = self.classes[0].push(page, 1 << id, &[value]);
            let at = BlockAt { class: 0, block };
            self.index.insert(page, at);
            return Ok(Position { at, place: 0 });
        };
        let blocks = &mut self.classes[at.class];
        let present = blocks.present(at.block);
        let place = place(at.class, present, id);
        if has(present, id) {
            return Err(Position { at, place });
        }
        self.len += 1;
        self.index.sweep();
        let count = present.count_ones() as usize;
        let present = present | 1 << id;
        if at.class == FULL_CLASS {
            blocks.set_present(at.block, present);
            *blocks.value_mut(at.block, place) = value;
        } else if count < blocks.capacity() {
            blocks.insert(at.block, place, value, present);
        } else {
            let (before, after) = blocks.values(at.block).split_at(place);
            let values = before.iter().chain([&value]).chain(after).copied();
            let block_values = laid_out(at.class + 1, present, values, value);
            let at = self.change_class(page, at, at.class + 1, present, &block_values);
            let place = self::place(at.class, present, id);
            return Ok(Position { at, place });
        }
        Ok(Position { at, place })
    }

    /// Adds ids with values. Consecutive ids of a page in ascending order are added
    /// together.
    pub(crate) fn extend(&mut self, ids: impl IntoIterator<Item = (RuleId, V)>) {
        let mut ids = ids.into_iter().peekable();
        while let Some((id, value)) = ids.next() {
            let (page, mut last) = split(id);
            let (mut present, mut values, mut count) = (1 << last, [value; PAGE_IDS], 1);
            while let Some((id, value)) = ids.next_if(|&(id, _)| {
                let (next, id) = split(id);
                next == page && id > last
            }) {
                last = split(id).1;
                present |= 1 << last;
                values[count] = value;
                count += 1;
            }
            self.add_page(page, present, &values);
        }
    }

    /// Adds ids of a page, with their values in the order of the ids.
    fn add_page(&mut self, page: u32, present: u16, values: &[V; PAGE_IDS]) {
        if self.index.get(page).is_some() {
            for (id, &value) in ids_of(present).zip(values) {
                let id = RuleId::from_index(page as usize * PAGE_IDS + id as usize);
                self.set(id, value);
            }
            return;
        }
        let count = present.count_ones() as usize;
        self.len += count;
        for _ in 0..count {
            self.index.sweep();
        }
        let class = count.next_power_of_two().ilog2() as usize;
        let values = laid_out(class, present, values.iter().copied(), values[0]);
        let blocks = &mut self.classes[class];
        let block = blocks.push(page, present, &values[..blocks.capacity()]);
        self.index.insert(page, BlockAt { class, block });
    }

    /// Returns the value at a position, for changes.
    #[inline]
    pub(crate) fn at_mut(&mut self, position: Position) -> &mut V {
        let Position { at, place } = position;
        self.classes[at.class].value_mut(at.block, place)
    }

    /// Removes an id; returns its value.
    pub(crate) fn remove(&mut self, id: RuleId) -> Option<V> {
        let (at, held) = self.find(id)?;
        let (page, id) = split(id);
        self.len -= 1;
        self.index.sweep();
        let blocks = &mut self.classes[at.class];
        let value = blocks.value(at.block, held);
        let before = blocks.present(at.block);
        let present = before & !(1 << id);
        let remaining = present.count_ones() as usize;
        if remaining == 0 {
            self.index.remove(page);
            self.free(at);
        } else if remaining <= blocks.capacity() / 4 {
            let old_values = blocks.values(at.block);
            let values = ids_of(present).map(|id| old_values[place(at.class, before, id)]);
            let block_values = laid_out(at.class - 1, present, values, value);
            self.change_class(page, at, at.class - 1, present, &block_values);
        } else if at.class == FULL_CLASS {
            blocks.set_present(at.block, present);
        } else {
            blocks.take(at.block, held, present);
        }
        Some(value)
    }

    /// Moves a page to a block of another class.
    fn change_class(
        &mut self,
        page: u32,
        at: BlockAt,
        class: usize,
        present: u16,
        values: &[V; PAGE_IDS],
    ) -> BlockAt {
        let blocks = &mut self.classes[class];
        let block = blocks.push(page, present, &values[..blocks.capacity()]);
        let new_block = BlockAt { class, block };
        self.index.set(page, new_block);
        self.free(at);
        new_block
    }

    /// Frees a block that no page uses any more.
    fn free(&mut self, at: BlockAt) {
        if let Some(moved) = self.classes[at.class].swap_remove(at.block) {
            self.index.set(moved, at);
        }
    }

    /// The number of positions, used or not: at most four for each id.
    pub(crate) fn entries(&self) -> usize {
        let values = self.classes.iter();
        values.map(|blocks| blocks.len() * blocks.capacity()).sum()
    }

    /// Returns the id at a position below [`IdMap::entries`], if the position is used,
    /// and its value. While no id is added or removed, each id has exactly one position.
    /// An addition or removal may change the position of any id, so a walk over the
    /// positions may then visit an id twice or miss it. A walk that must visit all ids
    /// repeats until nothing is left.
    pub(crate) fn entry(&self, position: usize) -> Option<(RuleId, V)> {
        let mut index = position;
        // Full pages first: additions and removals of single ids do not move them.
        for blocks in self.classes.iter().rev() {
            let positions = blocks.len() * blocks.capacity();
            if index >= positions {
                index -= positions;
                continue;
            }
            let (block, slot) = (index / blocks.capacity(), index % blocks.capacity());
            let present = blocks.present(block);
            let id = if blocks.capacity() == PAGE_IDS {
                Some(slot).filter(|&id| present >> id & 1 != 0)?
            } else {
                ids_of(present).nth(slot)? as usize
            };
            let id = RuleId::from_index(blocks.page(block) as usize * PAGE_IDS + id);
            return Some((id, blocks.value(block, slot)));
        }
        None
    }

    /// All ids with their values, in the order of their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RuleId, V)> {
        (0..self.entries()).filter_map(|position| self.entry(position))
    }

    /// Bytes held, including unused capacity.
    pub(crate) fn bytes(&self) -> usize {
        self.index.bytes() + self.classes.iter().map(Blocks::bytes).sum::<usize>()
    }

    /// Returns the approximate number of bytes that a map holds after adding `ids` ids
    /// in `pages` pages, the same number in each.
    pub(crate) fn bytes_for(ids: usize, pages: usize) -> usize {
        if ids == 0 {
            return 0;
        }
        let each = ids.div_ceil(pages).min(PAGE_IDS).next_power_of_two();
        Index::bytes_for(pages) + Blocks::<V>::bytes_for(pages, each)
    }
}

impl<V: Copy> fmt::Debug for IdMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdMap")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Counts the work of operations, for tests of its bounds. Not in release builds, which
/// measure times.
#[cfg(all(test, debug_assertions))]
mod work {
    use std::cell::Cell;

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Work {
        /// Values and index entries written.
        pub(crate) moved: usize,
        /// Index slots read to find an entry or a free slot.
        pub(crate) probed: usize,
        /// Slots of an old index swept.
        pub(crate) swept: usize,
    }

    thread_local! {
        static WORK: Cell<Work> = Cell::default();
    }

    fn count(add: impl FnOnce(&mut Work)) {
        let mut work = WORK.get();
        add(&mut work);
        WORK.set(work);
    }

    pub(crate) fn moved(count_of: usize) {
        count(|work| work.moved += count_of);
    }

    pub(crate) fn probed() {
        count(|work| work.probed += 1);
    }

    pub(crate) fn swept() {
        count(|work| work.swept += 1);
    }

    /// The work since the last call.
    pub(crate) fn take() -> Work {
        WORK.take()
    }
}

#[cfg(not(all(test, debug_assertions)))]
mod work {
    #[inline]
    pub(crate) fn moved(_: usize) {}

    #[inline]
    pub(crate) fn probed() {}

    #[inline]
    pub(crate) fn swept() {}
}
