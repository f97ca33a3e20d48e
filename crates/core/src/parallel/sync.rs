//! The concurrency primitives of the pool.
//!
//! The tests under the model checker compile `rounds.rs` with a module of the same
//! interface and checked types, so the tested code is the code that runs.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The number of checks in [`wait_briefly`], and the number of checks between two yields.
/// A check takes 20 to 40 ns, so a thread waits for 20 to 40 µs before it sleeps. Waking a
/// sleeping thread takes about as long.
const CHECKS: usize = 1024;
const CHECKS_PER_YIELD: usize = 64;

/// Checks a condition for some microseconds, or until it is true. Yields in between, for a
/// thread on the same processor that makes the condition true.
pub(super) fn wait_briefly(condition: impl Fn() -> bool) {
    for check in 1..=CHECKS {
        if condition() {
            return;
        }
        match check % CHECKS_PER_YIELD {
            0 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}
