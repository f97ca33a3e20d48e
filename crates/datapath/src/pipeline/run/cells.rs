//! Cells of counters, which one worker writes and any thread reads.
//!
//! Cells are allocated in pieces, each twice as large as the previous one, so no cell moves.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::counts::Count;

/// Packets, bytes, and the time of the last packet.
#[derive(Default)]
#[repr(align(32))]
pub(in crate::pipeline) struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// The time of the last packet, in nanoseconds.
    last: AtomicU64,
}

impl Cell {
    /// Adds a packet. Only the worker calls this.
    #[inline]
    pub(in crate::pipeline) fn count(&self, bytes: usize, now: u64) {
        let count = Count {
            packets: 1,
            bytes: bytes as u64,
        };
        self.count_all(count, now);
    }

    /// Adds packets; the last one arrived at time `last`.
    #[inline]
    pub(super) fn count_all(&self, count: Count, last: u64) {
        let packets = self.packets.load(Relaxed) + count.packets;
        self.packets.store(packets, Relaxed);
        let bytes = self.bytes.load(Relaxed) + count.bytes;
        self.bytes.store(bytes, Relaxed);
        self.last.store(last, Relaxed);
    }

    /// Adds counts whose last packet may be earlier or later than the cell's last packet.
    pub(in crate::pipeline) fn add(&self, count: Count, last: u64) {
        self.count_all(count, last.max(self.last.load(Relaxed)));
    }

    /// Returns the number of packets.
    #[inline]
    pub(in crate::pipeline) fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    fn read(&self) -> (Count, u64) {
        let count = Count {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        };
        (count, self.last.load(Relaxed))
    }

    fn clear(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.last.store(0, Relaxed);
    }
}

/// The base-2 logarithm of the number of cells in the first piece. Measured in
/// `bench/records/constants.md` (Output and counters).
const FIRST_PIECE_BITS: usize = 6;

/// Cells, indexed by number.
#[derive(Default)]
pub(super) struct Cells {
    pieces: [OnceLock<Box<[Cell]>>; 33 - FIRST_PIECE_BITS],
}

impl Cells {
    /// Returns the piece of a cell, and the index in that piece.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // less than 32 bits
    fn at(number: u32) -> (usize, usize) {
        let number = u64::from(number) + (1 << FIRST_PIECE_BITS);
        let power = number.ilog2();
        let index = number - (1 << power);
        (power as usize - FIRST_PIECE_BITS, index as usize)
    }

    #[inline]
    pub(in crate::pipeline) fn get(&self, number: u32) -> &Cell {
        let (piece, at) = Cells::at(number);
        let cells = self.pieces[piece].get_or_init(|| {
            let cells = (0..1_usize << (piece + FIRST_PIECE_BITS)).map(|_| Cell::default());
            cells.collect()
        });
        &cells[at]
    }

    /// Returns a cell if its piece is allocated.
    fn find(&self, number: u32) -> Option<&Cell> {
        let (piece, at) = Cells::at(number);
        self.pieces[piece].get().map(|cells| &cells[at])
    }

    pub(super) fn read(&self, number: u32) -> (Count, u64) {
        self.find(number).map(Cell::read).unwrap_or_default()
    }

    pub(in crate::pipeline) fn clear(&self, number: u32) {
        if let Some(cell) = self.find(number) {
            cell.clear();
        }
    }

    /// Adds all counts of other cells.
    pub(in crate::pipeline) fn absorb(&self, other: &Cells) {
        for (piece, cells) in other.pieces.iter().enumerate() {
            let Some(cells) = cells.get() else { continue };
            let first = (1_u64 << (piece + FIRST_PIECE_BITS)) - (1 << FIRST_PIECE_BITS);
            for (number, cell) in (first..).zip(cells) {
                let (count, last) = cell.read();
                let Ok(number) = u32::try_from(number) else {
                    continue;
                };
                if count.packets > 0 {
                    self.get(number).add(count, last);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_has_a_cell_of_its_own() {
        let mut seen = BTreeSet::new();
        let numbers = (0..1000).chain([u32::MAX - 1, u32::MAX, 1 << 20, (1 << 20) - 64]);
        for number in numbers {
            let (piece, at) = Cells::at(number);
            assert!(at < 1 << (piece + FIRST_PIECE_BITS), "{number}");
            assert!(piece < Cells::default().pieces.len(), "{number}");
            assert!(seen.insert((piece, at)), "{number}");
        }
    }
}
