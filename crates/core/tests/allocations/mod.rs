//! Counts of allocation requests and bytes for each thread, and of bytes for the process.

// Implements a global allocator.
#![allow(unsafe_code)]
// Each test uses only some of the counts.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// This thread's allocation requests.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has allocated minus bytes that it has freed.
    /// Below zero if it frees memory from other threads.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    /// The maximum of `BYTES` since the last reset.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The allocation requests of all threads.
static ALL_REQUESTS: AtomicUsize = AtomicUsize::new(0);
/// Bytes that all threads hold.
static ALL_BYTES: AtomicIsize = AtomicIsize::new(0);
/// The maximum of `ALL_BYTES` since the last reset.
static ALL_PEAK: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator with counters.
struct Counting;

fn count() {
    ALL_REQUESTS.fetch_add(1, Relaxed);
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

/// Counts `come` allocated bytes, then `go` freed bytes.
fn change(come: usize, go: usize) {
    let size = |bytes: usize| isize::try_from(bytes).expect("no allocation is larger");
    let with = BYTES.with(Cell::get) + size(come);
    PEAK.with(|peak| peak.set(peak.get().max(with)));
    BYTES.with(|bytes| bytes.set(with - size(go)));
    // A large block grows in place, by new pages.
    let grown = size(come) - size(go);
    ALL_PEAK.fetch_max(ALL_BYTES.fetch_add(grown, Relaxed) + grown, Relaxed);
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        change(layout.size(), 0);
        // SAFETY: the caller's promises are the same that `System` requires.
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
        // Counted as if the memory always moved, which is often the case.
        change(size, layout.size());
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocation requests of this thread during `work`.
pub(crate) fn requests(work: impl FnOnce()) -> usize {
    let before = REQUESTS.with(Cell::get);
    work();
    REQUESTS.with(Cell::get) - before
}

/// Returns the number of allocation requests of all threads during `work`. Exact if no
/// other test runs in the process.
pub(crate) fn requests_of_all_threads(work: impl FnOnce()) -> usize {
    let before = ALL_REQUESTS.load(Relaxed);
    work();
    ALL_REQUESTS.load(Relaxed) - before
}

/// Bytes of memory that work on this thread allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    /// The peak above the bytes held before.
    pub(crate) peak: usize,
    /// Bytes still held after the work, including its result, minus older
    /// memory that it freed.
    pub(crate) left: isize,
}

/// Returns the result of `work` and the bytes that it allocated on this thread.
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

/// Returns the result of `work` and the bytes that all threads allocated meanwhile. Exact if
/// no other test runs in the process.
pub(crate) fn bytes_of_all_threads<T>(work: impl FnOnce() -> T) -> (T, Bytes) {
    let before = ALL_BYTES.load(Relaxed);
    ALL_PEAK.store(before, Relaxed);
    let result = work();
    let bytes = Bytes {
        peak: usize::try_from(ALL_PEAK.load(Relaxed) - before).expect("at least as before"),
        left: ALL_BYTES.load(Relaxed) - before,
    };
    (result, bytes)
}
