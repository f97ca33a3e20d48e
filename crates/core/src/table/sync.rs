//! The concurrency primitives that the protocol uses.
//!
//! The tests under the model checker compile `left_right.rs` with a module of the same
//! interface and checked types, so the tested code is the code that runs.

pub(super) use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
pub(super) use std::sync::{Arc, Mutex, MutexGuard};

/// A value that is accessed through pointers. An access lasts as long as its `Reading`
/// or `Writing`, which the model checker tracks.
pub(super) struct Cell<T>(std::cell::UnsafeCell<T>);

impl<T> Cell<T> {
    pub(super) fn new(value: T) -> Cell<T> {
        Cell(std::cell::UnsafeCell::new(value))
    }

    /// Begins a read access.
    pub(super) fn read(&self) -> Reading<T> {
        Reading(self.0.get())
    }

    /// Begins a write access.
    pub(super) fn write(&self) -> Writing<T> {
        Writing(self.0.get())
    }
}

/// A read access.
pub(super) struct Reading<T>(*const T);

impl<T> Reading<T> {
    pub(super) fn pointer(&self) -> *const T {
        self.0
    }
}

/// A write access.
pub(super) struct Writing<T>(*mut T);

impl<T> Writing<T> {
    pub(super) fn pointer(&self) -> *mut T {
        self.0
    }
}

/// Backs off while the writer waits for a reader; `attempt` counts consecutive tries,
/// from 0. Spins at first, since a batch is over within microseconds; then yields, since
/// an interrupted reader needs the processor; then sleeps for 100 µs, since a guard that
/// is kept for long should not cost a whole processor.
pub(super) fn back_off(attempt: u32) {
    match attempt {
        0..8 => (0..1 << attempt).for_each(|_| std::hint::spin_loop()),
        8..512 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(100)),
    }
}
