//! The hash index of a table: maps a masked key's tag to a chain of rules.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::parts::simd::prefetch_early;

use super::arena::EntryIndex;

/// 32 bits of a masked key's hash. The low bits choose the home slot; all bits are
/// compared.
pub(super) type Tag = u32;

/// A bucket: the chain of rules that share a masked key, best first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) tag: Tag,
    /// [`EntryIndex::NONE`] in an empty slot.
    pub(super) head: EntryIndex,
}

impl Slot {
    const EMPTY: Slot = Slot {
        tag: 0,
        head: EntryIndex::NONE,
    };

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.head == EntryIndex::NONE
    }
}

/// The smallest number of slots. Eight slots are one cache line.
const MIN_SLOTS: usize = 8;

/// Open addressing with linear probing. A removal moves later slots back instead of
/// leaving a tombstone. The load factor is at most 5/8: most probes end in the home
/// slot, and a bucket takes 13 to 26 bytes.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    used: usize,
}

impl Slots {
    /// Bytes of an index without buckets.
    pub(super) const LEAST_BYTES: usize = MIN_SLOTS * size_of::<Slot>();

    pub(super) fn new() -> Slots {
        Slots {
            slots: vec![Slot::EMPTY; MIN_SLOTS],
            used: 0,
        }
    }

    #[inline]
    fn home(&self, tag: Tag) -> usize {
        tag as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, position: usize) -> usize {
        (position + 1) & (self.slots.len() - 1)
    }

    /// Prefetches the home slot's cache line.
    #[inline]
    pub(super) fn prefetch(&self, tag: Tag) {
        prefetch_early(&self.slots[self.home(tag)]);
    }

    /// Returns the home slot.
    #[inline]
    pub(super) fn first(&self, tag: Tag) -> Slot {
        self.slots[self.home(tag)]
    }

    /// Returns the buckets with that tag, in probe order: usually none or one. Different
    /// masked keys may share a tag.
    #[inline]
    pub(super) fn with_tag(&self, tag: Tag) -> impl Iterator<Item = (usize, EntryIndex)> + '_ {
        let mut position = self.home(tag);
        std::iter::from_fn(move || {
            loop {
                let slot = self.slots[position];
                let found_at = position;
                if slot.is_empty() {
                    return None;
                }
                position = self.after(position);
                if slot.tag == tag {
                    return Some((found_at, slot.head));
                }
            }
        })
    }

    /// Adds a bucket.
    pub(super) fn insert(
        &mut self,
        tag: Tag,
        head: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        if (self.used + 1) * 8 > self.slots.len() * 5 {
            self.resize(self.slots.len() * 2, monitor)?;
        }
        self.used += 1;
        self.place(Slot { tag, head });
        Ok(())
    }

    fn place(&mut self, slot: Slot) {
        let mut position = self.home(slot.tag);
        while !self.slots[position].is_empty() {
            position = self.after(position);
        }
        self.slots[position] = slot;
    }

    fn resize(&mut self, len: usize, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let memory = monitor.memory();
        memory.replace(self.bytes(), bytes_of::<Slot>(len))?;
        let old = std::mem::replace(&mut self.slots, vec![Slot::EMPTY; len]);
        for some in old.chunks(Monitor::STEPS) {
            for &slot in some.iter().filter(|slot| !slot.is_empty()) {
                self.place(slot);
            }
            monitor.work(some.len())?;
        }
        Ok(())
    }

    /// Replaces the head of a bucket's chain.
    pub(super) fn set_head(&mut self, position: usize, head: EntryIndex) {
        self.slots[position].head = head;
    }

    /// Removes a bucket and closes the gap.
    pub(super) fn remove(
        &mut self,
        position: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let mut gap = position;
        let mut next = self.after(gap);
        while !self.slots[next].is_empty() {
            // A slot may move back to the gap unless its home lies between the two.
            let home = self.home(self.slots[next].tag);
            let len = self.slots.len();
            let from_home = (next + len - home) & (len - 1);
            let from_gap = (next + len - gap) & (len - 1);
            if from_home >= from_gap {
                self.slots[gap] = self.slots[next];
                gap = next;
            }
            next = self.after(next);
        }
        self.slots[gap] = Slot::EMPTY;
        self.used -= 1;
        if self.slots.len() > MIN_SLOTS && self.used * 8 < self.slots.len() {
            self.resize(self.slots.len() / 2, monitor)?;
        }
        Ok(())
    }

    /// The number of buckets.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Updates the heads of all chains after records have moved.
    pub(super) fn move_heads(&mut self, moved: impl Fn(EntryIndex) -> EntryIndex) {
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_empty()) {
            slot.head = moved(slot.head);
        }
    }

    /// The heads of all chains.
    pub(super) fn heads(&self) -> impl Iterator<Item = EntryIndex> + '_ {
        self.slots
            .iter()
            .filter(|slot| !slot.is_empty())
            .map(|slot| slot.head)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Bytes of an index with `buckets` buckets.
    pub(super) fn bytes_for(buckets: usize) -> usize {
        let slots = (buckets * 8).div_ceil(5).next_power_of_two();
        slots.max(MIN_SLOTS) * size_of::<Slot>()
    }
}
