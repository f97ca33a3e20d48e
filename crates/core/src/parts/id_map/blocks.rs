//! The blocks of one size class.
//!
//! # Idea
//! Blocks have no gaps: the last block moves to the place of a removed block. Blocks are
//! in chunks that are never moved, so growing copies nothing.
//!
//! # Data layout
//! ```text
//! chunk    headers  | page 32, present 16 | …       6 bytes a block
//!          values   | value × capacity | …          1024 values
//! ```
//! Unused slots of a block have copies of other values. Only the first chunk is
//! reallocated as it grows and shrinks, so a map of few rules is small.
//!
//! # Cost
//! An update copies one block, makes or frees one chunk of at most 1024 values and
//! headers, and reallocates at most the first chunk and the array of chunks (to half or
//! twice the size). The array has 48 bytes for each 1024 values. An empty chunk is freed
//! when the chunk before it is half empty.

use super::work;
use crate::budget::memory::grown;
use crate::parts::simd::prefetch;

/// The binary logarithm of the values in a chunk: 8 KB for values of 8 bytes. It bounds
/// the memory that an update allocates.
const CHUNK_BITS: u32 = 10;

/// The number of bits of a block's number: 2^32 ids have 2^28 pages.
const NUMBER_BITS: u32 = 28;

/// A block of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockAt {
    pub(super) class: usize,
    pub(super) block: usize,
}

impl BlockAt {
    /// Returns the block as 31 bits, which are not 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 2^32 ids have 2^28 pages
    pub(super) fn packed(self) -> u32 {
        (self.class as u32 + 1) << NUMBER_BITS | self.block as u32
    }

    #[inline]
    pub(super) fn unpacked(bits: u32) -> BlockAt {
        BlockAt {
            class: (bits >> NUMBER_BITS) as usize - 1,
            block: (bits & ((1 << NUMBER_BITS) - 1)) as usize,
        }
    }
}

/// A block's page number, and the bitmap of the ids that are present in the page.
#[derive(Clone, Copy)]
struct Header([u16; 3]);

impl Header {
    #[allow(clippy::cast_possible_truncation)] // taken apart
    fn new(page: u32, present: u16) -> Header {
        Header([page as u16, (page >> 16) as u16, present])
    }

    fn page(self) -> u32 {
        u32::from(self.0[0]) | u32::from(self.0[1]) << 16
    }
}

struct Chunk<V> {
    headers: Vec<Header>,
    values: Vec<V>,
}

/// The blocks of one capacity.
pub(super) struct Blocks<V> {
    /// The binary logarithm of the capacity.
    bits: u32,
    chunks: Vec<Chunk<V>>,
    blocks: usize,
}

/// Frees half of a vector's capacity if three quarters are unused.
fn trim<T>(items: &mut Vec<T>) {
    if items.len() <= items.capacity() / 4 {
        items.shrink_to(items.capacity() / 2);
    }
}

impl<V: Copy> Blocks<V> {
    /// Makes an empty class of blocks with two to the power of `bits` values.
    pub(super) fn new(bits: u32) -> Blocks<V> {
        Blocks {
            bits,
            chunks: Vec::new(),
            blocks: 0,
        }
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks
    }

    /// The number of values that fit in a block.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        1 << self.bits
    }

    /// The binary logarithm of the number of blocks in a chunk.
    #[inline]
    fn chunk_bits(&self) -> u32 {
        CHUNK_BITS - self.bits
    }

    /// Returns a block's chunk, and its index there.
    #[inline]
    fn find(&self, block: usize) -> (&Chunk<V>, usize) {
        let index = block & ((1 << self.chunk_bits()) - 1);
        (&self.chunks[block >> self.chunk_bits()], index)
    }

    #[inline]
    fn find_mut(&mut self, block: usize) -> (&mut Chunk<V>, usize) {
        let bits = self.chunk_bits();
        (&mut self.chunks[block >> bits], block & ((1 << bits) - 1))
    }

    /// Returns the page of a block.
    pub(super) fn page(&self, block: usize) -> u32 {
        let (chunk, at) = self.find(block);
        chunk.headers[at].page()
    }

    /// Returns the bitmap of the page's present ids.
    #[inline]
    pub(super) fn present(&self, block: usize) -> u16 {
        let (chunk, at) = self.find(block);
        chunk.headers[at].0[2]
    }

    pub(super) fn set_present(&mut self, block: usize, present: u16) {
        let (chunk, at) = self.find_mut(block);
        chunk.headers[at].0[2] = present;
    }

    /// Prefetches a block's header, and a value that is at or before index `place`.
    #[inline]
    pub(super) fn prefetch(&self, block: usize, place: usize) {
        let (chunk, at) = self.find(block);
        let place = place.min(self.capacity() - 1);
        prefetch(&chunk.headers[at]);
        prefetch(&chunk.values[(at << self.bits) + place]);
    }

    #[inline]
    pub(super) fn value(&self, block: usize, place: usize) -> V {
        let (chunk, at) = self.find(block);
        chunk.values[(at << self.bits) + place]
    }

    #[inline]
    pub(super) fn value_mut(&mut self, block: usize, place: usize) -> &mut V {
        let bits = self.bits;
        let (chunk, at) = self.find_mut(block);
        &mut chunk.values[(at << bits) + place]
    }

    /// Returns a block's values, including unused slots.
    pub(super) fn values(&self, block: usize) -> &[V] {
        let (chunk, at) = self.find(block);
        &chunk.values[at << self.bits..][..self.capacity()]
    }

    /// Inserts a value at index `rank`, in a block that is not full.
    pub(super) fn insert(&mut self, block: usize, rank: usize, value: V, present: u16) {
        let (bits, last) = (self.bits, present.count_ones() as usize - 1);
        let (chunk, at) = self.find_mut(block);
        chunk.headers[at].0[2] = present;
        let values = &mut chunk.values[at << bits..][..=last];
        work::moved(last - rank + 1);
        values.copy_within(rank..last, rank + 1);
        values[rank] = value;
    }

    /// Removes the value at index `rank`.
    pub(super) fn take(&mut self, block: usize, rank: usize, present: u16) {
        let (bits, remaining) = (self.bits, present.count_ones() as usize);
        let (chunk, at) = self.find_mut(block);
        chunk.headers[at].0[2] = present;
        work::moved(remaining - rank);
        chunk.values[at << bits..][..=remaining].copy_within(rank + 1.., rank);
    }

    /// Adds a block; returns its number. The length of `values` is the capacity.
    pub(super) fn push(&mut self, page: u32, present: u16, values: &[V]) -> usize {
        debug_assert_eq!(values.len(), self.capacity());
        let number = self.blocks;
        let chunk = number >> self.chunk_bits();
        if chunk == self.chunks.len() {
            let room = if chunk == 0 {
                0
            } else {
                1 << self.chunk_bits()
            };
            self.chunks.push(Chunk {
                headers: Vec::with_capacity(room),
                values: Vec::with_capacity(room << self.bits),
            });
        }
        let chunk = &mut self.chunks[chunk];
        chunk.headers.push(Header::new(page, present));
        chunk.values.extend_from_slice(values);
        work::moved(values.len());
        self.blocks += 1;
        number
    }

    /// Removes a block and gives its number to the last block. Returns the page of the
    /// moved block, or `None` if `block` was the last.
    pub(super) fn swap_remove(&mut self, block: usize) -> Option<u32> {
        let last = self.blocks - 1;
        let (bits, capacity) = (self.bits, self.capacity());
        let moved = (block != last).then(|| {
            let (chunk, at) = self.find_mut(last);
            let header = chunk.headers[at];
            // Taken out while the other chunk is written.
            let values = std::mem::take(&mut chunk.values);
            let source = at << bits;
            let (chunk, at) = self.find_mut(block);
            chunk.headers[at] = header;
            let target = at << bits;
            work::moved(capacity);
            let same_chunk = chunk.values.is_empty();
            if !same_chunk {
                chunk.values[target..target + capacity]
                    .copy_from_slice(&values[source..source + capacity]);
            }
            let (chunk, _) = self.find_mut(last);
            chunk.values = values;
            if same_chunk {
                chunk.values.copy_within(source..source + capacity, target);
            }
            header.page()
        });
        self.drop_last();
        moved
    }

    fn drop_last(&mut self) {
        let bits = self.bits;
        self.blocks -= 1;
        if self.blocks == 0 {
            self.chunks = Vec::new();
            return;
        }
        let (chunk, at) = self.find_mut(self.blocks);
        chunk.headers.truncate(at);
        chunk.values.truncate(at << bits);
        let used = (self.blocks - 1) >> self.chunk_bits();
        if used == 0 {
            let chunk = &mut self.chunks[0];
            trim(&mut chunk.headers);
            trim(&mut chunk.values);
        }
        let (chunk, _) = self.find(self.blocks - 1);
        if chunk.headers.len() * 2 <= 1 << self.chunk_bits() {
            self.drop_spare(used + 1);
        }
    }

    /// Frees the empty chunk after the last used chunk, if there is one.
    fn drop_spare(&mut self, spare: usize) {
        if spare < self.chunks.len() {
            self.chunks.pop();
            trim(&mut self.chunks);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // All chunks except the first are made with full capacity, and keep it.
        let mut chunks = self.chunks.iter().map(|chunk| {
            chunk.headers.capacity() * size_of::<Header>()
                + chunk.values.capacity() * size_of::<V>()
        });
        let first = chunks.next().unwrap_or(0);
        let later_chunks = self.chunks.len().saturating_sub(1);
        let later_chunk =
            (size_of::<Header>() << self.chunk_bits()) + (size_of::<V>() << CHUNK_BITS);
        debug_assert!(chunks.next_back().is_none_or(|last| last == later_chunk));
        first + later_chunks * later_chunk + self.chunks.capacity() * size_of::<Chunk<V>>()
    }

    /// Bytes of `blocks` blocks of that capacity.
    pub(super) fn bytes_for(blocks: usize, capacity: usize) -> usize {
        let chunk = (1 << CHUNK_BITS) / capacity;
        let room = if blocks <= chunk {
            grown(blocks)
        } else {
            blocks.next_multiple_of(chunk)
        };
        room * (size_of::<Header>() + capacity * size_of::<V>())
            + grown(blocks.div_ceil(chunk)) * size_of::<Chunk<V>>()
    }
}
