//! An array that maps the lowest page numbers to blocks.
//!
//! Pages without a block have an entry of 0. The number of entries is a power of two,
//! which the index sets.
//!
//! # Data layout
//! ```text
//! segment   0, or the page's block, 4 bytes │ …    4096 entries
//! segments  segment │ – │ segment                  made zeroed at first use
//! ```
//! An array of up to 4096 entries is one segment of that length.

use super::blocks::BlockAt;

/// The binary logarithm of the number of entries in a segment of 16 KB. It bounds the
/// memory that an update allocates.
const SEGMENT_BITS: u32 = 12;
const SEGMENT_ENTRIES: usize = 1 << SEGMENT_BITS;

/// An array of blocks.
#[derive(Default)]
pub(super) struct Direct {
    /// A segment without entries stands for pages without blocks.
    segments: Vec<Vec<u32>>,
    /// The number of pages with a block.
    used: usize,
}

impl Direct {
    /// Returns the block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        let segment = self.segments.get(page as usize >> SEGMENT_BITS)?;
        let entry = *segment.get(page as usize % SEGMENT_ENTRIES)?;
        (entry != 0).then(|| BlockAt::unpacked(entry))
    }

    /// Sets the block of a page, which must be within the array.
    pub(super) fn set(&mut self, page: u32, at: BlockAt) {
        let entry = self.entry(page);
        let is_new = *entry == 0;
        *entry = at.packed();
        self.used += usize::from(is_new);
    }

    /// Removes the block of a page; returns the block.
    pub(super) fn take(&mut self, page: u32) -> Option<BlockAt> {
        let block = self.get(page)?;
        *self.entry(page) = 0;
        self.used -= 1;
        Some(block)
    }

    fn entry(&mut self, page: u32) -> &mut u32 {
        let segment = &mut self.segments[page as usize >> SEGMENT_BITS];
        if segment.is_empty() {
            *segment = vec![0; SEGMENT_ENTRIES];
        }
        &mut segment[page as usize % SEGMENT_ENTRIES]
    }

    /// The number of pages with a block.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Changes the number of entries, to a power of two. Entries that are cut off must
    /// be 0.
    pub(super) fn resize(&mut self, entries: usize) {
        if entries >= SEGMENT_ENTRIES {
            // A segment that is shorter than others is the only one.
            if let Some(first) = self.segments.first_mut()
                && !first.is_empty()
            {
                first.resize(SEGMENT_ENTRIES, 0);
            }
            self.segments
                .resize_with(entries / SEGMENT_ENTRIES, Vec::new);
        } else {
            self.segments.resize_with(1, Vec::new);
            self.segments[0].resize(entries, 0);
            self.segments[0].shrink_to_fit();
        }
        self.segments.shrink_to_fit();
    }

    /// Bytes of an array of `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        entries * size_of::<u32>() + entries.div_ceil(SEGMENT_ENTRIES) * size_of::<Vec<u32>>()
    }

    pub(super) fn bytes(&self) -> usize {
        let entries: usize = self.segments.iter().map(Vec::capacity).sum();
        entries * size_of::<u32>() + self.segments.capacity() * size_of::<Vec<u32>>()
    }
}
