//! Requests for memory and the bytes of it, counted for each thread.

// The allocator is what counts here.
#![allow(unsafe_code)]
// Tests use one kind of count or the other.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Requests of this thread to the allocator for memory.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has allocated, less those that it has freed: below
    /// zero where it frees what others have allocated.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    /// The most of these since they were last looked at.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

fn count() {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

/// `come` bytes are allocated, and then `go` bytes are freed.
fn change(come: usize, go: usize) {
    let size = |bytes: usize| isize::try_from(bytes).expect("no allocation is larger");
    let with = BYTES.with(Cell::get) + size(come);
    PEAK.with(|peak| peak.set(peak.get().max(with)));
    BYTES.with(|bytes| bytes.set(with - size(go)));
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        change(layout.size(), 0);
        // SAFETY: the caller's promises are those that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        change(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        change(0, layout.size());
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // As if there were always a new place: it often must be.
        change(size, layout.size());
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many requests for memory this thread makes meanwhile.
pub(crate) fn requests(work: impl FnOnce()) -> usize {
    let before = REQUESTS.with(Cell::get);
    work();
    REQUESTS.with(Cell::get) - before
}

/// Bytes of memory that some work on this thread took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    /// The most at once, beyond what there was before.
    pub(crate) peak: usize,
    /// What is left of it, what the work returned included; what it freed of
    /// before counts against it.
    pub(crate) left: isize,
}

/// How many bytes this thread takes meanwhile.
pub(crate) fn bytes<T>(work: impl FnOnce() -> T) -> (T, Bytes) {
    let before = BYTES.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = work();
    let bytes = Bytes {
        peak: usize::try_from(PEAK.with(Cell::get) - before).expect("at least as before"),
        left: BYTES.with(Cell::get) - before,
    };
    (result, bytes)
}
