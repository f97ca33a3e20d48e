//! Lookups on several threads: the answers are those of one thread, a panic of an engine
//! reaches the caller, and no thread hangs.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use classyard::classifier::{BATCH, LookupTrace, Stats};
use classyard::parallel::LookupPool;
use classyard::policy::PartId;
use classyard::{
    ActionId, Classifier, EngineSpec, FieldMatch, KeySlice, KeyVec, Policy, PolicyTrace, Priority,
    Rule, RuleId, RuleSet, Schema, Scratch, Transaction, Winner,
};

/// Lengths of batches: none, one, and lengths next to multiples of every chunk size.
const LENGTHS: [usize; 18] = [
    0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 1279, 2048, 5121,
];

/// The numbers of threads, including the calling thread.
const THREADS: std::ops::RangeInclusive<usize> = 1..=5;

/// A pool and its running threads.
struct Crew {
    pool: LookupPool,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    fn of(threads: usize) -> Crew {
        let (pool, workers) = LookupPool::new(threads - 1);
        assert_eq!(workers.len(), threads - 1);
        let workers = workers.into_iter();
        let threads = workers.map(|worker| std::thread::spawn(move || worker.run()));
        Crew {
            threads: threads.collect(),
            pool,
        }
    }

    /// Ends the pool. A worker that hangs makes this hang; a worker that has panicked
    /// fails.
    fn end(self) {
        drop(self.pool);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    *state >> 33
}

/// Returns matches on destination, destination port and protocol that often overlap.
fn matches(state: &mut u64) -> [FieldMatch; 5] {
    let low = u128::from(next(state) % 60);
    let high = low + u128::from(next(state) % 9);
    [
        FieldMatch::Any,
        FieldMatch::Prefix {
            value: u128::from(next(state) % 16) << 28,
            length: u32::try_from(next(state) % 5).unwrap(),
        },
        FieldMatch::Any,
        FieldMatch::Range { low, high },
        FieldMatch::Exact(u128::from(next(state) % 2)),
    ]
}

fn rule(schema: &Arc<Schema>, id: u32, state: &mut u64) -> Rule {
    let priority = Priority(u32::try_from(next(state) % 40).unwrap());
    let id = RuleId::new(id).unwrap();
    Rule::new(schema, id, priority, ActionId(0), &matches(state)).unwrap()
}

fn rules(count: u32) -> RuleSet {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    let mut state = 5;
    for id in 0..count {
        rules.push(rule(&schema, id, &mut state).view()).unwrap();
    }
    rules
}

fn header(state: &mut u64) -> [u128; 5] {
    let destination = u128::from(next(state) % 16) << 28;
    let port = u128::from(next(state) % 80);
    [1, destination, 3, port, u128::from(next(state) % 3)]
}

fn keys(schema: &Arc<Schema>, count: usize) -> KeyVec {
    let mut keys = KeyVec::new(schema);
    let mut state = 77;
    for _ in 0..count {
        keys.push(&header(&mut state)).unwrap();
    }
    keys
}

/// A winner that no lookup returns.
fn stale() -> Winner {
    Winner::new(Priority(u32::MAX), RuleId::new(1_000_000).unwrap())
}

#[test]
fn every_engine_answers_as_on_one_thread_at_every_length() {
    let rules = rules(150);
    let schema = Arc::clone(rules.schema());
    let keys = keys(&schema, *LENGTHS.iter().max().unwrap());
    let expected: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
    let hits = expected.iter().filter(|winner| !winner.is_miss()).count();
    assert!((500..expected.len() - 500).contains(&hits), "{hits} hits");
    let mut crews: Vec<Crew> = THREADS.map(Crew::of).collect();
    for spec in EngineSpec::all() {
        let classifier = spec.builder().build(&rules).unwrap();
        for crew in &mut crews {
            for length in LENGTHS {
                let batch = keys.as_slice().range(0..length);
                let mut winners = vec![stale(); length];
                crew.pool.classify_batch(&*classifier, batch, &mut winners);
                assert_eq!(winners, expected[..length], "{spec}, {length} keys");
                // Every second key has a better candidate.
                let best = Winner::new(Priority(u32::MAX), RuleId::new(0).unwrap());
                let candidate = |index: usize| {
                    if index.is_multiple_of(2) {
                        best
                    } else {
                        Winner::MISS
                    }
                };
                let mut winners: Vec<Winner> = (0..length).map(candidate).collect();
                crew.pool.improve_batch(&*classifier, batch, &mut winners);
                for (index, winner) in winners.iter().enumerate() {
                    let expected = if index.is_multiple_of(2) {
                        best
                    } else {
                        expected[index]
                    };
                    assert_eq!(*winner, expected, "{spec}, key {index} of {length}");
                }
            }
        }
    }
    crews.into_iter().for_each(Crew::end);
}

#[test]
fn answers_follow_updates_between_calls() {
    let schema = Schema::ipv4_5tuple();
    let keys = keys(&schema, 1500);
    let mut crews: Vec<Crew> = THREADS.map(Crew::of).collect();
    for spec in EngineSpec::all().filter(EngineSpec::is_dynamic) {
        let start = rules(60);
        let mut classifier = spec.builder().build(&start).unwrap();
        let mut oracle = EngineSpec::parse("linear")
            .unwrap()
            .builder()
            .build(&start)
            .unwrap();
        let mut state = 9;
        for step in 0..15_u32 {
            let added = rule(&schema, 1000 + step, &mut state);
            let mut change = Transaction::new();
            change.insert(added.view());
            change.remove(RuleId::new(step * 3).unwrap());
            for engine in [&mut classifier, &mut oracle] {
                engine.as_dynamic().unwrap().apply(&change).unwrap();
            }
            let mut expected = vec![stale(); keys.len()];
            oracle.classify_batch(keys.as_slice(), &mut expected, &mut Scratch::new());
            let crew = &mut crews[step as usize % THREADS.count()];
            let mut winners = vec![stale(); keys.len()];
            crew.pool
                .classify_batch(&*classifier, keys.as_slice(), &mut winners);
            assert_eq!(winners, expected, "{spec}, step {step}");
        }
    }
    crews.into_iter().for_each(Crew::end);
}

/// Sets a flag when it is dropped.
struct SetWhenDropped<'f>(&'f AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Maximum time to wait for a thread to start.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A batch sees one version, which the calling thread has pinned, while a writer publishes
/// other versions.
#[test]
fn a_batch_sees_one_version_of_a_live_table() {
    let schema = Schema::ipv4_5tuple();
    let spec = EngineSpec::parse("forest").unwrap();
    let (mut writer, table) = spec.builder().table(&RuleSet::new(&schema)).unwrap();
    let mut keys = KeyVec::new(&schema);
    for _ in 0..3000 {
        keys.push(&[1, 2, 3, 4, 5]).unwrap();
    }
    let mut crew = Crew::of(3);
    let is_done = AtomicBool::new(false);
    let min_rounds = 200;
    std::thread::scope(|scope| {
        // The writer also ends if an assertion fails.
        let _end = SetWhenDropped(&is_done);
        scope.spawn(|| {
            let mut id = 0;
            while !is_done.load(Ordering::Relaxed) {
                // Each version has one rule, which matches everything.
                let rule = Rule::builder(&schema).id(id + 1).build().unwrap();
                let mut change = Transaction::new();
                change.insert(rule.view());
                if id > 0 {
                    change.remove(RuleId::new(id).unwrap());
                }
                writer.apply(&change).unwrap();
                id += 1;
            }
        });
        let mut reader = table.reader();
        let mut versions = HashSet::new();
        let (begin, mut rounds) = (Instant::now(), 0);
        // On a busy machine the writer may start late.
        while rounds < min_rounds || versions.len() < 2 && begin.elapsed() < MAX_WAIT {
            rounds += 1;
            let guard = reader.pin();
            let mut winners = vec![stale(); keys.len()];
            crew.pool
                .classify_batch(guard.classifier(), keys.as_slice(), &mut winners);
            let one = guard.classify_one(keys.key(0));
            assert!(winners.iter().all(|&winner| winner == one));
            let transactions = guard.version().transactions();
            let rule = one.rule().map_or(0, |id| u64::from(id.get()));
            assert_eq!(rule, transactions, "the version's only rule");
            versions.insert(transactions);
        }
        assert!(versions.len() > 1, "the table never changed");
    });
    crew.end();
}

#[test]
fn winners_of_a_policy_are_in_the_order_of_the_trace() {
    for single in [true, false] {
        let mut policy = match single {
            true => Policy::single(&Schema::ipv4_5tuple()),
            false => Policy::dual_stack(),
        };
        let mut state = 3;
        for number in 0..90_u32 {
            let matches = matches(&mut state);
            let parts: Vec<(PartId, &[FieldMatch])> = policy
                .part_ids()
                .filter(|part| single || number as usize % 3 != part.index())
                .map(|part| (part, &matches[..]))
                .collect();
            let id = RuleId::new(number).unwrap();
            let priority = Priority(number % 7);
            policy.add(id, priority, ActionId(0), &parts).unwrap();
        }
        let mut crews: Vec<Crew> = THREADS.map(Crew::of).collect();
        for spec in ["linear", "forest", "tss"] {
            let spec = EngineSpec::parse(spec).unwrap();
            let classifier = spec.builder().policy(&policy).unwrap();
            for length in LENGTHS {
                let mut trace = PolicyTrace::new(policy.schemas());
                for _ in 0..length {
                    let part =
                        usize::try_from(next(&mut state) % 7).unwrap() % policy.parts().len();
                    let header = header(&mut state);
                    trace.push(PartId::from_index(part), &header).unwrap();
                }
                let mut expected = vec![stale(); length];
                classifier.classify(&trace, &mut expected, &mut Scratch::new());
                for crew in &mut crews {
                    let mut winners = vec![stale(); length];
                    crew.pool.classify(&classifier, &trace, &mut winners);
                    assert_eq!(winners, expected, "{spec}, {length} headers");
                }
            }
        }
        crews.into_iter().for_each(Crew::end);
    }
}

/// An engine that wins every lookup with a fixed rule. The first `meeting` calls wait for
/// each other, so they run on different threads. Panics in the call that gets the key with
/// the marked port.
struct Fake {
    schema: Arc<Schema>,
    meeting: Option<(usize, Barrier)>,
    calls: AtomicUsize,
    threads: Mutex<HashSet<ThreadId>>,
    largest: AtomicUsize,
}

const MARKED_PORT: u128 = 4242;

impl Fake {
    fn new(threads: usize) -> Fake {
        Fake {
            schema: Schema::ipv4_5tuple(),
            meeting: (threads > 1).then(|| (threads, Barrier::new(threads))),
            calls: AtomicUsize::new(0),
            threads: Mutex::default(),
            largest: AtomicUsize::new(0),
        }
    }

    fn winner() -> Winner {
        Winner::new(Priority(3), RuleId::new(3).unwrap())
    }
}

impl Classifier for Fake {
    fn engine(&self) -> &'static str {
        "fake"
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], _: &mut Scratch) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some((threads, barrier)) = &self.meeting
            && call < *threads
        {
            barrier.wait();
        }
        (self.threads.lock().unwrap()).insert(std::thread::current().id());
        self.largest.fetch_max(keys.len(), Ordering::SeqCst);
        let port = self.schema.field_named("sport").unwrap();
        for key in keys.iter() {
            if self.schema.get_field(key, port) == MARKED_PORT {
                resume_unwind(Box::new("marked"));
            }
        }
        winners.fill(Fake::winner());
    }

    fn improve_masked(&self, _: &[u64], _: Winner, _: &mut [u64]) -> Winner {
        unreachable!("the pool makes no masked lookups")
    }

    fn trace(&self, _: &[u64]) -> LookupTrace {
        unreachable!("the pool traces no lookups")
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// Returns keys, with the marked port at a position.
fn marked(count: usize, position: usize) -> KeyVec {
    let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
    for index in 0..count {
        let port = if index == position { MARKED_PORT } else { 7 };
        keys.push(&[1, 2, port, 4, 5]).unwrap();
    }
    keys
}

#[test]
fn all_threads_take_part_and_chunks_are_batches() {
    for threads in THREADS {
        let mut crew = Crew::of(threads);
        for count in [64 * threads, 1000 * threads, 100_000] {
            let engine = Fake::new(threads);
            let keys = marked(count, usize::MAX);
            let mut winners = vec![stale(); count];
            crew.pool
                .classify_batch(&engine, keys.as_slice(), &mut winners);
            assert!(winners.iter().all(|&winner| winner == Fake::winner()));
            assert_eq!(engine.threads.lock().unwrap().len(), threads);
            let largest = engine.largest.load(Ordering::SeqCst);
            assert!((64..=BATCH).contains(&largest), "{largest} keys in a chunk");
            let calls = engine.calls.load(Ordering::SeqCst);
            assert_eq!(calls, count.div_ceil(largest), "keys are looked up once");
        }
        crew.end();
    }
}

/// The marked key is in the first, a middle or the last chunk, so the thread that panics
/// differs. All threads take part, and none hangs afterwards.
#[test]
fn a_panic_reaches_the_caller_and_the_pool_stays_usable() {
    for threads in THREADS {
        let mut crew = Crew::of(threads);
        let count = 4 * 64 * threads;
        for round in 0..30 {
            let engine = Fake::new(threads);
            let keys = marked(count, round * 97 % count);
            let mut winners = vec![stale(); count];
            let pool = &mut crew.pool;
            let call = || pool.classify_batch(&engine, keys.as_slice(), &mut winners);
            let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&"marked"));

            let engine = Fake::new(threads);
            let keys = marked(count, usize::MAX);
            let mut winners = vec![stale(); count];
            crew.pool
                .classify_batch(&engine, keys.as_slice(), &mut winners);
            assert!(winners.iter().all(|&winner| winner == Fake::winner()));
            assert_eq!(engine.threads.lock().unwrap().len(), threads);
        }
        crew.end();
    }
}

/// Workers that never run, run late, or end early are not waited for.
#[test]
fn a_batch_does_not_wait_for_workers_that_do_not_run() {
    let keys = marked(5000, usize::MAX);
    let (mut pool, mut workers) = LookupPool::new(3);
    let mut winners = vec![stale(); keys.len()];
    pool.classify_batch(&Fake::new(1), keys.as_slice(), &mut winners);
    assert!(winners.iter().all(|&winner| winner == Fake::winner()));
    drop(workers.pop());
    let late = workers.pop().unwrap();
    let thread = std::thread::spawn(move || late.run());
    pool.classify_batch(&Fake::new(2), keys.as_slice(), &mut winners);
    drop(pool);
    thread.join().unwrap();
    // After its pool was dropped, a worker returns immediately.
    workers.pop().unwrap().run();
}

#[test]
#[should_panic = "one winner for each key"]
fn a_batch_has_a_winner_for_each_key() {
    let (mut pool, _) = LookupPool::new(0);
    let keys = marked(3, 0);
    pool.classify_batch(&Fake::new(1), keys.as_slice(), &mut [Winner::MISS; 2]);
}
