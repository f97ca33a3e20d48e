//! Slots of removed tables, freed in small parts with each update: freeing many
//! megabytes in one call would delay an update.

/// Words freed with each update: 256 KB. Bounds the time of an update.
const FREED_PER_UPDATE: usize = 1 << 15;

/// Arrays of slots that no table uses.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    slots: Vec<Vec<u64>>,
}

impl Leftover {
    /// Takes the slots of a table. A small array is freed immediately.
    pub(super) fn push(&mut self, slots: Vec<u64>) {
        if slots.capacity() > FREED_PER_UPDATE {
            self.slots.push(slots);
        }
    }

    /// Frees a part of the slots.
    #[inline]
    pub(super) fn free_some(&mut self) {
        if let Some(slots) = self.slots.last_mut() {
            let keep = slots.capacity().saturating_sub(FREED_PER_UPDATE);
            if keep == 0 {
                self.slots.pop();
            } else {
                // `shrink_to` keeps enough memory for the vector's length.
                slots.truncate(keep);
                slots.shrink_to(keep);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        let words: usize = self.slots.iter().map(Vec::capacity).sum();
        words * size_of::<u64>()
    }
}
