//! Huge pages: fewer address translations for large structures.
//!
//! A lookup in a set of a million rules touches a few random lines in a hundred
//! megabytes. With 4 KiB pages, nearly each of these accesses needs a page
//! table walk, and the page table does not fit in the nearer caches either.

/// Size of a huge page. Smaller allocations are left alone.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 1 << 21;

/// Requests huge pages for the first `words` words of a vector's allocation, if
/// they fill at least one huge page. Does nothing if the system has no huge
/// pages or refuses.
///
/// Call it before or after a build writes the words. Do not use it for capacity
/// that updates fill: the first touch of a huge page waits until the page is
/// allocated and cleared, which took over four milliseconds in one case.
pub(crate) fn ask_for_huge_pages(memory: &Vec<u64>, words: usize) {
    #[cfg(target_os = "linux")]
    {
        let bytes = words.min(memory.capacity()) * size_of::<u64>();
        let address = memory.as_ptr().addr();
        let skipped = address.next_multiple_of(HUGE_PAGE_BYTES) - address;
        if bytes < skipped + HUGE_PAGE_BYTES {
            return;
        }
        let whole = (bytes - skipped) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        let start = memory
            .as_ptr()
            .cast_mut()
            .cast::<u8>()
            .wrapping_add(skipped);
        // SAFETY: the range is inside of the vector's allocation, and the
        // advice changes the pages behind it, not their contents.
        let outcome =
            unsafe { rustix::mm::madvise(start.cast(), whole, rustix::mm::Advice::LinuxHugepage) };
        // Huge pages affect only speed, so a failure is ignored.
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
