//! Slots of tables that are gone, freed a little with each update: freeing many
//! megabytes at once would keep an update waiting.

/// Words freed with each update: 256 KB.
const FREED: usize = 1 << 15;

/// Arrays of slots that no table uses.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    slots: Vec<Vec<u64>>,
}

impl Leftover {
    /// Takes the slots of a table. Few are freed at once.
    pub(super) fn push(&mut self, slots: Vec<u64>) {
        if slots.capacity() > FREED {
            self.slots.push(slots);
        }
    }

    /// Frees some.
    pub(super) fn free_some(&mut self) {
        if let Some(slots) = self.slots.last_mut() {
            let keep = slots.capacity().saturating_sub(FREED);
            if keep == 0 {
                self.slots.pop();
            } else {
                // A vector keeps room for what it holds.
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
