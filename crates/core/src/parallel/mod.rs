//! Lookups of one batch on several threads.
//!
//! A [`LookupPool`] splits a batch into chunks. The thread that calls the pool and the
//! pool's workers take chunks until none remain. The order of results is the order of
//! keys, whatever thread looked a key up.
//!
//! The threads belong to the caller, who may name, pin or prioritise them: a
//! [`LookupWorker`] helps on the thread that calls [`LookupWorker::run`]. Any number of
//! workers may be running. A batch never waits for a worker that has not begun to help.
//!
//! ```
//! use classyard::parallel::LookupPool;
//! use classyard::prelude::*;
//!
//! let schema = Schema::ipv4_5tuple();
//! let mut rules = RuleSet::new(&schema);
//! rules.push(Rule::builder(&schema).id(0).field("dport", 80).build()?.view())?;
//! let classifier = EngineSpec::parse("forest")?.builder().build(&rules)?;
//! let mut keys = KeyVec::new(&schema);
//! for port in 0..10_000 {
//!     keys.push(&[1, 2, 40_000, port, 6])?;
//! }
//!
//! // Two threads: this one and a worker.
//! let (mut pool, workers) = LookupPool::new(1);
//! let threads: Vec<_> = (workers.into_iter())
//!     .map(|worker| std::thread::spawn(move || worker.run()))
//!     .collect();
//! let mut winners = vec![Winner::MISS; keys.len()];
//! pool.classify_batch(&*classifier, keys.as_slice(), &mut winners);
//! assert_eq!(winners[80].rule(), Some(RuleId::new(0)?));
//! assert_eq!(winners.iter().filter(|winner| winner.is_miss()).count(), 9_999);
//!
//! drop(pool); // ends the workers
//! for thread in threads {
//!     thread.join().expect("workers do not panic");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Live tables
//! A [`Guard`](crate::table::Guard) is pinned by the calling thread and lends its
//! classifier to the pool: `pool.classify_batch(guard.classifier(), keys, winners)`. All
//! threads see the pinned version.
//!
//! # Memory
//! Every thread keeps a [`Scratch`] from batch to batch. After the first batches of a
//! thread, a call allocates nothing.
//!
//! # Cost
//! A call costs its thread 1 µs in addition to the lookups, or some 10 µs if workers sleep
//! and must be woken. Workers sleep after some 30 µs without work. So batches of a few
//! hundred keys gain little. `bench/records/threads.md` has measurements.

mod rounds;
mod sync;

use std::sync::{Mutex, PoisonError};

use crate::contract::classifier::{BATCH, Classifier, Scratch};
use crate::model::key::KeySlice;
use crate::model::rule::Winner;
use crate::policy::{PolicyClassifier, PolicyTrace};

/// The number of chunks for each thread if a batch is short. More chunks balance threads
/// that start late; fewer chunks have longer batches for the engine.
const CHUNKS_PER_THREAD: usize = 4;

/// The granularity of chunks in keys, and the minimum. 64 winners have 512 bytes, so only
/// the lines at the ends of chunks are written by two threads. 64 keys cost an engine 1 to
/// 10 µs, far more than taking a chunk.
const CHUNK_STEP: usize = 64;

/// Looks up batches on the calling thread and on workers.
///
/// The pool is for one caller at a time. Dropping it ends its workers.
pub struct LookupPool {
    caller: rounds::Caller<Scratch>,
    /// The working memory of the calling thread.
    scratch: Scratch,
    /// The winners of one part of a policy.
    part_winners: Vec<Winner>,
}

/// Helps a [`LookupPool`] on the thread that calls [`run`](Self::run).
pub struct LookupWorker {
    worker: rounds::Worker<Scratch>,
}

impl LookupWorker {
    /// Helps with the pool's batches. Returns after the pool was dropped.
    ///
    /// If an engine panics on this thread, the panic is resumed on the thread that called
    /// the pool, and the worker continues with the next batch.
    pub fn run(self) {
        self.worker.run();
    }
}

impl LookupPool {
    /// Returns a pool and `workers` workers for it. With 0 workers, the calling thread
    /// does all lookups.
    #[must_use]
    pub fn new(workers: usize) -> (LookupPool, Vec<LookupWorker>) {
        let (caller, workers) = rounds::crew(workers);
        let pool = LookupPool {
            caller,
            scratch: Scratch::new(),
            part_winners: Vec::new(),
        };
        let workers = workers.into_iter().map(|worker| LookupWorker { worker });
        (pool, workers.collect())
    }

    /// Does [`Classifier::classify_batch`] on all threads.
    ///
    /// # Panics
    /// As for [`Classifier::classify_batch`]. The pool can be used after a panic; the
    /// contents of `winners` are then undefined.
    pub fn classify_batch(
        &mut self,
        classifier: &dyn Classifier,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
    ) {
        self.look_up(keys, winners, &|keys, winners, scratch| {
            classifier.classify_batch(keys, winners, scratch);
        });
    }

    /// Does [`Classifier::improve_batch`] on all threads.
    ///
    /// # Panics
    /// As for [`Classifier::improve_batch`]. The pool can be used after a panic; the
    /// contents of `winners` are then undefined.
    pub fn improve_batch(
        &mut self,
        classifier: &dyn Classifier,
        keys: KeySlice<'_>,
        winners: &mut [Winner],
    ) {
        self.look_up(keys, winners, &|keys, winners, scratch| {
            classifier.improve_batch(keys, winners, scratch);
        });
    }

    /// Does [`PolicyClassifier::classify`] on all threads. For a policy of several parts,
    /// the pool keeps 8 bytes for each header of the longest part so far.
    ///
    /// # Panics
    /// As for [`PolicyClassifier::classify`]. The pool can be used after a panic; the
    /// contents of `winners` are then undefined.
    pub fn classify(
        &mut self,
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        winners: &mut [Winner],
    ) {
        let parts = classifier.parts();
        let trace_parts = trace.parts().count();
        assert_eq!(trace_parts, parts.len(), "a trace of another policy");
        assert_eq!(trace.len(), winners.len(), "one winner for each header");
        if let ([only], Some((_, keys))) = (parts, trace.parts().next()) {
            self.classify_batch(only.as_ref(), keys.as_slice(), winners);
            return;
        }
        let mut part_winners = std::mem::take(&mut self.part_winners);
        for (classifier, (part, keys)) in parts.iter().zip(trace.parts()) {
            part_winners.resize(keys.len(), Winner::MISS);
            self.classify_batch(classifier.as_ref(), keys.as_slice(), &mut part_winners);
            let headers = winners.iter_mut().enumerate();
            let of_part = headers.filter(|(index, _)| trace.part_of(*index) == part);
            for ((_, winner), part_winner) in of_part.zip(&part_winners) {
                *winner = *part_winner;
            }
        }
        self.part_winners = part_winners;
    }

    /// Calls `look_up` with chunks of a batch, on all threads.
    fn look_up(&mut self, keys: KeySlice<'_>, winners: &mut [Winner], look_up: &LookUp<'_>) {
        assert_eq!(keys.len(), winners.len(), "one winner for each key");
        let size = chunk_size(keys.len(), self.caller.workers() + 1);
        let chunks = keys.len().div_ceil(size);
        if chunks <= 1 {
            look_up(keys, winners, &mut self.scratch);
            return;
        }
        let remaining = Mutex::new((keys, winners));
        let task = |scratch: &mut Scratch| {
            while let Some((keys, winners)) = next_chunk(&remaining, size) {
                look_up(keys, winners, scratch);
            }
        };
        match self.caller.workers() {
            0 => task(&mut self.scratch),
            _ => self.caller.run(chunks - 1, &task, &mut self.scratch),
        }
    }
}

/// Looks up the keys of a chunk.
type LookUp<'a> = dyn Fn(KeySlice<'_>, &mut [Winner], &mut Scratch) + Sync + 'a;

/// Returns the number of keys in a chunk: [`BATCH`], or less if there are several threads
/// and the batch is too short for [`CHUNKS_PER_THREAD`].
fn chunk_size(keys: usize, threads: usize) -> usize {
    if threads == 1 {
        return BATCH;
    }
    let even = keys.div_ceil(CHUNKS_PER_THREAD * threads);
    even.next_multiple_of(CHUNK_STEP).clamp(CHUNK_STEP, BATCH)
}

/// Removes the first `size` keys and their winners, or as many as remain. Returns `None`
/// if none remain.
fn next_chunk<'k, 'w>(
    remaining: &Mutex<(KeySlice<'k>, &'w mut [Winner])>,
    size: usize,
) -> Option<(KeySlice<'k>, &'w mut [Winner])> {
    let mut remaining = remaining.lock().unwrap_or_else(PoisonError::into_inner);
    let (keys, winners) = &mut *remaining;
    let length = size.min(keys.len());
    let (chunk, rest) = std::mem::take(winners).split_at_mut(length);
    let chunk_keys = keys.range(0..length);
    *keys = keys.range(length..keys.len());
    *winners = rest;
    (length > 0).then_some((chunk_keys, chunk))
}
