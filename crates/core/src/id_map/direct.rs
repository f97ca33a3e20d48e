//! The lowest page numbers to blocks: an array.
//!
//! Pages without a block have an entry of 0. The array has a power of two of
//! entries; who fills it decides how many.
//!
//! # Data layout
//! ```text
//! segment   0, or where the page's block is, 4 bytes │ …      4096 entries
//! segments  segment │ – │ segment                  made zeroed at first use
//! ```
//! An array of up to 4096 entries is one segment, of that length.

use super::blocks::BlockAt;

/// The binary logarithm of the entries in a segment, 16 KB.
const SEGMENT_BITS: u32 = 12;
const SEGMENT: usize = 1 << SEGMENT_BITS;

/// The array.
#[derive(Default)]
pub(super) struct Direct {
    /// Segments without entries stand for pages without blocks.
    segments: Vec<Vec<u32>>,
    /// Pages that have a block.
    used: usize,
}

impl Direct {
    /// The block of a page.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<BlockAt> {
        let segment = self.segments.get(page as usize >> SEGMENT_BITS)?;
        let entry = *segment.get(page as usize % SEGMENT)?;
        (entry != 0).then(|| BlockAt::unpacked(entry))
    }

    /// Gives a page of the array a block.
    pub(super) fn set(&mut self, page: u32, at: BlockAt) {
        let entry = self.entry(page);
        let is_new = *entry == 0;
        *entry = at.packed();
        self.used += usize::from(is_new);
    }

    /// Takes a page's block away; returns it.
    pub(super) fn take(&mut self, page: u32) -> Option<BlockAt> {
        let at = self.get(page)?;
        *self.entry(page) = 0;
        self.used -= 1;
        Some(at)
    }

    fn entry(&mut self, page: u32) -> &mut u32 {
        let segment = &mut self.segments[page as usize >> SEGMENT_BITS];
        if segment.is_empty() {
            *segment = vec![0; SEGMENT];
        }
        &mut segment[page as usize % SEGMENT]
    }

    /// The number of pages that have a block.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Changes the number of entries, to a power of two. Those cut off must be
    /// 0.
    pub(super) fn resize(&mut self, entries: usize) {
        if entries >= SEGMENT {
            // Whatever is a segment of less is the only one.
            if let Some(first) = self.segments.first_mut()
                && !first.is_empty()
            {
                first.resize(SEGMENT, 0);
            }
            self.segments.resize_with(entries / SEGMENT, Vec::new);
        } else {
            self.segments.resize_with(1, Vec::new);
            self.segments[0].resize(entries, 0);
            self.segments[0].shrink_to_fit();
        }
        self.segments.shrink_to_fit();
    }

    /// Bytes of an array of `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        entries * size_of::<u32>() + entries.div_ceil(SEGMENT) * size_of::<Vec<u32>>()
    }

    pub(super) fn bytes(&self) -> usize {
        let entries: usize = self.segments.iter().map(Vec::capacity).sum();
        entries * size_of::<u32>() + self.segments.capacity() * size_of::<Vec<u32>>()
    }
}
