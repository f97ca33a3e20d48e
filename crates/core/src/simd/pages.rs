//! Huge pages: fewer translations of addresses for large structures.
//!
//! A lookup in a set of a million rules touches a few random lines in a hundred
//! megabytes. With pages of 4 KiB nearly each of them needs a walk through the
//! page table first, and that table does not fit the nearer caches either.

/// Allocations below this size are left alone.
#[cfg(target_os = "linux")]
const LEAST: usize = 1 << 21;

/// Requests huge pages for the first words of a vector's allocation, where they
/// are many. Where the system has no huge pages or refuses, nothing happens.
///
/// Call it before a build writes them, or after. Not for room that updates fill:
/// the first touch of a huge page waits until all of it is found and cleared,
/// which has been seen to take over four milliseconds.
pub(crate) fn ask_for_huge_pages(memory: &Vec<u64>, words: usize) {
    #[cfg(target_os = "linux")]
    {
        let bytes = words.min(memory.capacity()) * size_of::<u64>();
        let address = memory.as_ptr().addr();
        let skipped = address.next_multiple_of(LEAST) - address;
        if bytes < skipped + LEAST {
            return;
        }
        let whole = (bytes - skipped) / LEAST * LEAST;
        let start = memory
            .as_ptr()
            .cast_mut()
            .cast::<u8>()
            .wrapping_add(skipped);
        // SAFETY: the range is inside of the vector's allocation, and the advice
        // changes what backs it, not what it holds.
        let outcome =
            unsafe { rustix::mm::madvise(start.cast(), whole, rustix::mm::Advice::LinuxHugepage) };
        // Huge pages change speed alone, so it is no matter if there are none.
        let _ = outcome;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (memory, words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_memory_holds_stays_as_it_is() {
        for words in [0, 1, 1 << 10, 1 << 19, (1 << 20) + 12345] {
            let mut memory: Vec<u64> = Vec::with_capacity(words);
            ask_for_huge_pages(&memory, words);
            memory.extend(0..words as u64);
            ask_for_huge_pages(&memory, words / 2 + 1);
            assert!(memory.iter().copied().eq(0..words as u64));
        }
    }
}
