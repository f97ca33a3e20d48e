//! Rounds: a task of one thread that other threads help with.
//!
//! # Idea
//! The caller publishes a task, wakes workers, and runs the task itself. Each worker that
//! wakes in time *enters* the round, runs the same task and *leaves*. The task takes pieces
//! of work from a shared place until no work remains. So a round needs no worker: a worker
//! that wakes late finds no task and sleeps again, and the caller never waits for it. When
//! the caller runs out of work, it withdraws the task and waits for the workers inside.
//!
//! ```text
//! caller   publish ── run task ─────────────── withdraw ── wait until inside = 0
//! worker 1     wake ── enter ── run task ── leave
//! worker 2                                             wake ── no task: sleep
//! ```
//!
//! # Correctness
//! The task is a borrowed closure, stored without its lifetime. All accesses to the state
//! are under one lock, so they have an order. A worker enters while `task` is set; the same
//! critical section increments `inside`. After the caller has cleared `task`, no worker
//! enters, and `inside` only decreases. [`Caller::run`] returns or unwinds after it has seen
//! `inside = 0` under the lock, so every call of the task happened before, and the closure
//! is still borrowed during all calls.
//!
//! The two hints are read without the lock. A wrong hint costs time only: the state is
//! read again under the lock.
//!
//! `tests/parallel_model.rs` runs this code under a model checker.
//!
//! # Panics
//! A worker catches a panic of the task, leaves, and replaces its context. The caller
//! catches a panic of its own call, ends the round, and then resumes its own panic or the
//! first panic of a worker. The next round starts with a clean state.

#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

use super::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, wait_briefly};

/// A task without the lifetime of its borrow. `C` is the context of a thread.
struct Task<C>(*const (dyn Fn(&mut C) + Sync + 'static));

impl<C> Clone for Task<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Task<C> {}

// SAFETY: the closure is `Sync`, so any thread may call it through a shared reference.
unsafe impl<C> Send for Task<C> {}

/// The message of a panic.
type Payload = Box<dyn Any + Send>;

struct State<C> {
    /// The number of the last round.
    round: usize,
    /// The task of the present round; `None` if no worker may enter.
    task: Option<Task<C>>,
    /// The number of workers that run the task.
    inside: usize,
    /// The first panic of a worker in the present round.
    panic: Option<Payload>,
    /// True after the caller was dropped.
    closed: bool,
}

struct Shared<C> {
    state: Mutex<State<C>>,
    /// Wakes workers for a new round, or to end.
    begun: Condvar,
    /// Wakes the caller when the last worker leaves.
    left: Condvar,
    /// Hints of `State::round` and `State::inside`.
    round_hint: AtomicUsize,
    inside_hint: AtomicUsize,
}

/// The thread that begins rounds.
pub(super) struct Caller<C> {
    shared: Arc<Shared<C>>,
    workers: usize,
}

/// A thread that helps.
pub(super) struct Worker<C> {
    shared: Arc<Shared<C>>,
}

/// Returns the caller and its workers.
pub(super) fn crew<C>(workers: usize) -> (Caller<C>, Vec<Worker<C>>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            round: 0,
            task: None,
            inside: 0,
            panic: None,
            closed: false,
        }),
        begun: Condvar::new(),
        left: Condvar::new(),
        round_hint: AtomicUsize::new(0),
        inside_hint: AtomicUsize::new(0),
    });
    let worker = || Worker {
        shared: Arc::clone(&shared),
    };
    let helping = (0..workers).map(|_| worker()).collect();
    (Caller { shared, workers }, helping)
}

impl<C> Shared<C> {
    /// No code under the lock panics, so a poisoned lock has a valid state.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the next round after round `last`. Returns the round and its task, or `None`
    /// after the last round.
    fn enter(&self, last: usize) -> Option<(usize, Task<C>)> {
        wait_briefly(|| self.round_hint.load(Ordering::Relaxed) != last);
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let round = state.round;
            if let Some(task) = state.task
                && round != last
            {
                state.inside += 1;
                self.inside_hint.store(state.inside, Ordering::Relaxed);
                return Some((round, task));
            }
            let woken = self.begun.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self, panic: Option<Payload>) {
        let mut state = self.lock();
        state.inside -= 1;
        if state.panic.is_none() {
            state.panic = panic;
        }
        self.inside_hint.store(state.inside, Ordering::Relaxed);
        if state.inside == 0 {
            self.left.notify_one();
        }
    }

    /// Withdraws the task and waits for the workers inside. Returns a worker's panic.
    fn end(&self) -> Option<Payload> {
        let mut state = self.lock();
        state.task = None;
        if state.inside > 0 {
            drop(state);
            wait_briefly(|| self.inside_hint.load(Ordering::Relaxed) == 0);
            state = self.lock();
        }
        while state.inside > 0 {
            let woken = self.left.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }
}

impl<C> Caller<C> {
    /// The number of workers.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Runs a task on this thread, and on up to `helpers` workers that wake before the task
    /// ends. Returns after all threads have returned from the task.
    pub(super) fn run(&mut self, helpers: usize, task: &(dyn Fn(&mut C) + Sync), own: &mut C) {
        // SAFETY: this changes the lifetime only. The task is called while it is in
        // `state.task` or by a worker that is counted in `inside`; `end` returns after
        // both have become empty. Between here and `end`, no code unwinds: panics of the
        // task are caught.
        let unbound: &(dyn Fn(&mut C) + Sync + 'static) = unsafe { std::mem::transmute(task) };
        let mut state = self.shared.lock();
        state.round = state.round.wrapping_add(1);
        state.task = Some(Task(unbound));
        (self.shared.round_hint).store(state.round, Ordering::Relaxed);
        drop(state);
        if helpers >= self.workers {
            self.shared.begun.notify_all();
        } else {
            (0..helpers).for_each(|_| self.shared.begun.notify_one());
        }
        let called = catch_unwind(AssertUnwindSafe(|| task(own)));
        let of_worker = self.shared.end();
        if let Some(payload) = called.err().or(of_worker) {
            resume_unwind(payload);
        }
    }
}

impl<C> Drop for Caller<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        (self.shared.round_hint).store(state.round.wrapping_add(1), Ordering::Relaxed);
        drop(state);
        self.shared.begun.notify_all();
    }
}

impl<C: Default> Worker<C> {
    /// Helps with rounds until the caller is dropped.
    pub(super) fn run(&self) {
        let mut context = C::default();
        let mut last = 0;
        while let Some((round, task)) = self.shared.enter(last) {
            last = round;
            let called = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: this worker has entered and not left, so `Caller::run` still
                // borrows the closure.
                let task = unsafe { &*task.0 };
                task(&mut context);
            }));
            let panicked = called.is_err();
            self.shared.leave(called.err());
            if panicked {
                context = C::default();
            }
        }
    }
}
