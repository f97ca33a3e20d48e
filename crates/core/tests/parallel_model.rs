//! Model checking of the pool's rounds: within bounds, tries every interleaving
//! of threads.
//!
//! This compiles the library's own source file `rounds.rs` with the checker's
//! types. The task borrows from the caller's frame; each model checks that no
//! worker runs it after the round, that all work is done exactly once, and that
//! every thread ends.

// The checker supports only 64-bit targets.
#![cfg(target_arch = "x86_64")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};

#[path = "../src/parallel/rounds.rs"]
mod rounds;

/// A replacement of `parallel/sync.rs` with checked types.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    /// Threads sleep immediately, so the search covers all that a wait may skip.
    pub(super) fn wait_briefly(condition: impl Fn() -> bool) {
        let _ = condition();
    }
}

/// Tries all executions with up to `preemptions` interruptions.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// Runs rounds of `pieces` pieces of work and counts how often each was done.
fn rounds_of_pieces(workers: usize, helpers: usize, rounds: usize, pieces: usize) {
    let (mut caller, helping) = rounds::crew::<usize>(workers);
    assert_eq!(caller.workers(), workers);
    let threads: Vec<_> = (helping.into_iter())
        .map(|worker| loom::thread::spawn(move || worker.run()))
        .collect();
    for _ in 0..rounds {
        let remaining = Mutex::new(pieces);
        // A cell that is checked for access after it was dropped.
        let done = AtomicUsize::new(0);
        let task = |own: &mut usize| {
            loop {
                let mut remaining = remaining.lock().unwrap();
                if *remaining == 0 {
                    return;
                }
                *remaining -= 1;
                drop(remaining);
                *own += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        caller.run(helpers, &task, &mut 0);
        assert_eq!(done.load(Ordering::Relaxed), pieces);
    }
    drop(caller);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn one_worker_helps_with_two_rounds() {
    model(3, || rounds_of_pieces(1, 1, 2, 2));
}

#[test]
fn two_workers_help_with_a_round() {
    model(2, || rounds_of_pieces(2, 2, 1, 2));
}

#[test]
fn one_of_two_workers_is_woken() {
    model(2, || rounds_of_pieces(2, 1, 1, 2));
}

#[test]
fn a_pool_without_rounds_ends_its_workers() {
    model(3, || rounds_of_pieces(2, 2, 0, 0));
}

#[test]
fn a_panic_of_a_worker_reaches_the_caller_and_the_next_round_works() {
    model(2, || {
        let (mut caller, mut helping) = rounds::crew::<usize>(1);
        let worker = helping.remove(0);
        let thread = loom::thread::spawn(move || worker.run());
        let turn = AtomicUsize::new(0);
        let task = |own: &mut usize| {
            // The caller's context is 7; only a worker panics.
            if *own != 7 {
                turn.fetch_add(1, Ordering::Relaxed);
                std::panic::resume_unwind(Box::new("worker"));
            }
        };
        let first = catch_unwind(AssertUnwindSafe(|| caller.run(1, &task, &mut 7)));
        assert_eq!(first.is_err(), turn.load(Ordering::Relaxed) == 1);
        let done = AtomicUsize::new(0);
        let count = |_: &mut usize| {
            done.fetch_add(1, Ordering::Relaxed);
        };
        caller.run(1, &count, &mut 7);
        assert!(done.load(Ordering::Relaxed) >= 1);
        drop(caller);
        thread.join().unwrap();
    });
}

#[test]
fn a_panic_of_the_caller_waits_for_the_worker() {
    model(2, || {
        let (mut caller, mut helping) = rounds::crew::<usize>(1);
        let worker = helping.remove(0);
        let thread = loom::thread::spawn(move || worker.run());
        let called = {
            let (began, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let task = |own: &mut usize| {
                if *own == 7 {
                    std::panic::resume_unwind(Box::new("caller"));
                }
                began.fetch_add(1, Ordering::Relaxed);
                ended.fetch_add(1, Ordering::Relaxed);
            };
            let called = catch_unwind(AssertUnwindSafe(|| caller.run(1, &task, &mut 7)));
            // The worker is inside of the task no more.
            let counts = (began.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
            assert_eq!(counts.0, counts.1);
            called
        };
        assert_eq!(called.unwrap_err().downcast_ref(), Some(&"caller"));
        drop(caller);
        thread.join().unwrap();
    });
}
