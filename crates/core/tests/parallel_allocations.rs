//! Lookups on several threads allocate nothing once every thread has a warm scratch.
//!
//! One test in a process: its allocator counts the requests of all threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use classyard::classifier::{BATCH, LookupTrace, Stats};
use classyard::parallel::LookupPool;
use classyard::{
    ActionId, Classifier, EngineSpec, FieldMatch, KeySlice, KeyVec, Priority, RuleId, RuleSet,
    Schema, Scratch, Winner,
};

mod allocations;

use allocations::requests_of_all_threads;

const THREADS: usize = 3;

/// Warms the scratch of every thread: the first calls wait for each other, so they run on
/// different threads, and each of them looks up all keys.
struct Warming<'a> {
    engine: &'a dyn Classifier,
    keys: &'a KeyVec,
    calls: AtomicUsize,
    barrier: Barrier,
}

impl Classifier for Warming<'_> {
    fn engine(&self) -> &'static str {
        "warming"
    }

    fn schema(&self) -> &Arc<Schema> {
        self.engine.schema()
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        if self.calls.fetch_add(1, Ordering::SeqCst) < THREADS {
            self.barrier.wait();
            for keys in self.keys.batches(BATCH) {
                let mut winners = [Winner::MISS; BATCH];
                let winners = &mut winners[..keys.len()];
                self.engine.improve_batch(keys, winners, scratch);
            }
        }
        self.engine.improve_batch(keys, winners, scratch);
    }

    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        self.engine.improve_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        self.engine.trace(key)
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }
}

#[test]
fn parallel_lookups_allocate_nothing_once_warm() {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    for number in 0..300_u32 {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Exact(u128::from(number / 2));
        matches[4] = FieldMatch::Exact(u128::from(number % 3));
        let id = RuleId::new(number).unwrap();
        let priority = Priority(number % 7);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    let mut keys = KeyVec::new(&schema);
    for number in 0..5000_u128 {
        keys.push(&[1, 2, 3, number * 7 % 160, number % 3]).unwrap();
    }
    let expected: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
    let (mut pool, workers) = LookupPool::new(THREADS - 1);
    let threads: Vec<_> = (workers.into_iter())
        .map(|worker| std::thread::spawn(move || worker.run()))
        .collect();
    let mut winners = vec![Winner::MISS; keys.len()];
    // The counter works, and counts other threads.
    let vectors = || drop(std::thread::spawn(|| drop(vec![0_u8; 100])).join());
    assert!(requests_of_all_threads(vectors) > 0);
    for spec in EngineSpec::all() {
        let engine = spec.builder().build(&rules).unwrap();
        let warming = Warming {
            engine: &*engine,
            keys: &keys,
            calls: AtomicUsize::new(0),
            barrier: Barrier::new(THREADS),
        };
        pool.classify_batch(&warming, keys.as_slice(), &mut winners);
        assert_eq!(winners, expected, "{spec}");
        let requests = requests_of_all_threads(|| {
            for length in [1000, 5000, 0, 1, 129, 5000] {
                let batch = keys.as_slice().range(0..length);
                pool.classify_batch(&*engine, batch, &mut winners[..length]);
            }
        });
        assert_eq!(winners, expected, "{spec}");
        assert_eq!(requests, 0, "{spec}");
    }
    drop(pool);
    for thread in threads {
        thread.join().unwrap();
    }
}
