//! The simulator of [SFL17] §V.C: a classifier that is fed with headers as fast
//! as it can take them while its rules change at fixed intervals.
//!
//! The paper's four roles, and who has them here:
//!
//! ```text
//! one processor      the reader: takes headers from memory and classifies them
//! the other ones     the writer: makes changes when they are due, and rebuilds
//!                    what takes no changes; sleeps otherwise
//!                    the rebuilder, for engines that are rebuilt beside
//!                    changes; sleeps otherwise
//!                    the counter: reads the reader's count a hundred times
//! ```
//!
//! Feeding is no thread of its own: headers are in memory before the run, so
//! that the reader never waits for one. No role takes time from the reader's
//! processor, whichever the engine is, and what the others do to an engine's
//! changes costs the same processors for all: so engines can be compared with
//! two processors as with the paper's eight.
//!
//! How changes are made:
//! - Engines that take changes are in a live table. If they can be
//!   re-optimised, the rebuilder does so when it is due.
//! - Other engines are built anew at every change, one after the other, as in
//!   the paper; the reader searches a list of the rules meanwhile. A change
//!   counts when its engine is built.
//!
//! [SFL17]: classyard::papers#sfl17

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use classyard::classifier::BATCH;
use classyard::reoptimise::LookupPlan;
use classyard::transaction::Change;
use classyard::{
    BuildError, Classifier, EngineSpec, KeySlice, KeyVec, Limits, NoProgress, Progress, Reader,
    RuleId, RuleSet, Scratch, Table, Transaction, Winner, Writer,
};
use serde::{Deserialize, Serialize};

use crate::bench::{CpuPair, stay_on, thread_cpu_time};

/// How often the counter reads the count.
pub(super) const SAMPLES: u32 = 100;

/// Headers whose answers are compared with a scan at the end.
const CHECKED: usize = 2_000;

/// How long the rebuilder sleeps between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// What a run does.
pub(super) struct Load<'a> {
    /// The rules that are installed at the beginning.
    pub(super) rules: &'a RuleSet,
    /// Made one by one, at equal intervals, the first at once.
    pub(super) changes: &'a [Change<'a>],
    pub(super) headers: &'a KeyVec,
    pub(super) duration: Duration,
    /// Whether headers are looked up one by one, as in the paper, or in batches.
    pub(super) single: bool,
    pub(super) processors: Option<CpuPair>,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Headers classified.
    pub(super) headers: u64,
    /// Changes made in time, of those issued.
    pub(super) changes: usize,
    /// Headers classified by the end of each of [`SAMPLES`] equal intervals.
    pub(super) counted: Vec<u64>,
    /// Answers that differ from a scan of the rules at the end.
    pub(super) wrong: usize,
    /// The share of the time in which the reader had its processor.
    pub(super) reader_share: f64,
}

/// Runs an engine under a load.
///
/// # Errors
/// When the engine cannot be built over the rules.
pub(super) fn run(spec: &EngineSpec, load: &Load<'_>) -> Result<Outcome, BuildError> {
    let listed = EngineSpec::parse("linear").expect("a registered engine");
    let (limits, mut none) = (Limits::default(), NoProgress);
    if spec.is_dynamic() {
        let (writer, table) = Table::build(load.rules, spec, &limits, &mut none)?;
        let rebuilder = table.reader();
        let view = View::Live(table.reader());
        Ok(simulate(load, view, |clock| {
            update(writer, rebuilder, load, clock)
        }))
    } else {
        let (writer, table) = Table::build(load.rules, &listed, &limits, &mut none)?;
        let engine: Arc<dyn Classifier> = Arc::from(spec.build(load.rules, &limits, &mut none)?);
        let built = Mutex::new(Some(engine));
        let view = View::Rebuilt(&built, table.reader());
        Ok(simulate(load, view, |clock| {
            rebuild(spec, writer, &built, load, clock)
        }))
    }
}

/// When things are due.
struct Clock<'a> {
    ready: &'a Barrier,
    /// Set when the time is up.
    over: &'a AtomicBool,
    start: Instant,
    interval: Duration,
    duration: Duration,
}

impl Clock<'_> {
    /// Waits until the reader is ready; time begins.
    fn begin(&mut self) {
        self.ready.wait();
        self.start = Instant::now();
    }

    fn due(&self, change: usize) -> Instant {
        let change = u32::try_from(change).unwrap_or(u32::MAX);
        self.start + self.interval.saturating_mul(change)
    }

    fn end(&self) -> Instant {
        self.start + self.duration
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || Instant::now() >= self.end()
    }
}

/// What the writer has done: changes that are finished, and changes that the
/// rules have had.
#[derive(Clone, Copy)]
struct Made {
    finished: usize,
    begun: usize,
}

fn simulate(
    load: &Load<'_>,
    mut view: View<'_>,
    write: impl FnOnce(Clock<'_>) -> Made + Send,
) -> Outcome {
    let ready = Barrier::new(3);
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let changes = u32::try_from(load.changes.len().max(1)).unwrap_or(u32::MAX);
    let clock = Clock {
        ready: &ready,
        over: &over,
        start: Instant::now(),
        interval: load.duration / changes,
        duration: load.duration,
    };
    let mut outcome = Outcome::default();
    let made = std::thread::scope(|scope| {
        let reading = scope.spawn(|| view.read(load, &ready, &over, &count));
        let writing = scope.spawn(|| {
            if let Some(pair) = load.processors {
                stay_on(pair.writer);
            }
            write(clock)
        });
        ready.wait();
        let start = Instant::now();
        for sample in 1..=SAMPLES {
            let at = start + load.duration / SAMPLES * sample;
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            outcome.counted.push(count.load(Ordering::Relaxed));
        }
        over.store(true, Ordering::Relaxed);
        outcome.reader_share = reading.join().expect("the reader does not panic");
        writing.join().expect("the writer does not panic")
    });
    outcome.headers = outcome.counted.last().copied().unwrap_or(0);
    outcome.changes = made.finished;
    let rules = after(load.rules, &load.changes[..made.begun]);
    outcome.wrong = view.wrong(load.headers, &rules);
    outcome
}

/// Rules after changes, in their order.
pub(super) fn after(rules: &RuleSet, changes: &[Change<'_>]) -> RuleSet {
    let mut changed = RuleSet::new(rules.schema());
    let gone: HashSet<RuleId> = changes.iter().map(Change::id).collect();
    let stay = rules.iter().filter(|rule| !gone.contains(&rule.id()));
    let come = changes.iter().filter_map(|change| match change {
        Change::Insert(rule) | Change::Modify(rule) => Some(*rule),
        Change::Remove(_) => None,
    });
    for rule in stay.chain(come) {
        changed.push(rule).expect("every rule is changed once");
    }
    changed
}

type Built = Mutex<Option<Arc<dyn Classifier>>>;

/// How the reader finds the engine of now.
enum View<'a> {
    /// In a live table.
    Live(Reader),
    /// Where it is built anew, or else in a list of the rules.
    Rebuilt(&'a Built, Reader),
}

impl View<'_> {
    /// Looks headers up.
    fn look(&mut self, keys: KeySlice<'_>, single: bool, out: &mut [Winner], lent: &mut Scratch) {
        let (built, reader) = match self {
            View::Live(reader) => (None, reader),
            View::Rebuilt(built, reader) => {
                let built = built.lock().unwrap_or_else(PoisonError::into_inner);
                (built.clone(), reader)
            }
        };
        match built {
            Some(engine) => classify(engine.as_ref(), keys, single, out, lent),
            None => classify(reader.pin().classifier(), keys, single, out, lent),
        }
    }

    /// Looks headers up until the time is up; says which share of the time this
    /// thread had a processor.
    fn read(
        &mut self,
        load: &Load<'_>,
        ready: &Barrier,
        over: &AtomicBool,
        count: &AtomicU64,
    ) -> f64 {
        if let Some(pair) = load.processors {
            stay_on(pair.reader);
        }
        let (mut scratch, mut winners) = (Scratch::new(), [Winner::MISS; BATCH]);
        let batches: Vec<KeySlice<'_>> = load.headers.batches(BATCH).collect();
        // Caches and processor are as warm as they get.
        for &keys in batches.iter().take(64) {
            self.look(keys, load.single, &mut winners[..keys.len()], &mut scratch);
        }
        ready.wait();
        let (wall, cpu) = (Instant::now(), thread_cpu_time());
        let mut done = 0;
        for &keys in batches.iter().cycle() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let winners = &mut winners[..keys.len()];
            self.look(keys, load.single, winners, &mut scratch);
            std::hint::black_box(&winners);
            done += keys.len() as u64;
            count.store(done, Ordering::Relaxed);
        }
        let ran = thread_cpu_time().saturating_sub(cpu);
        ran.as_secs_f64() / wall.elapsed().as_secs_f64().max(1e-9)
    }

    /// How many answers differ from a scan of the rules.
    fn wrong(&mut self, headers: &KeyVec, rules: &RuleSet) -> usize {
        let (mut scratch, mut winners) = (Scratch::new(), [Winner::MISS; BATCH]);
        let mut wrong = 0;
        for keys in headers.batches(BATCH).take(CHECKED.div_ceil(BATCH)) {
            let winners = &mut winners[..keys.len()];
            self.look(keys, false, winners, &mut scratch);
            let right = keys.iter().map(|key| rules.scan(key));
            let pairs = winners.iter().zip(right);
            wrong += pairs.filter(|(winner, right)| **winner != *right).count();
        }
        wrong
    }
}

fn classify(
    engine: &dyn Classifier,
    keys: KeySlice<'_>,
    single: bool,
    winners: &mut [Winner],
    scratch: &mut Scratch,
) {
    if single {
        for (key, winner) in keys.iter().zip(winners) {
            *winner = engine.classify_one(key);
        }
    } else {
        engine.classify_batch(keys, winners, scratch);
    }
}

/// The writer of a live table, with a rebuilder beside it.
fn update(mut writer: Writer, reader: Reader, load: &Load<'_>, mut clock: Clock<'_>) -> Made {
    let (send, plans) = sync_channel(0);
    let installed = AtomicUsize::new(0);
    let finished = std::thread::scope(|scope| {
        let over = clock.over;
        let installed = &installed;
        if let Some(pair) = load.processors {
            scope.spawn(move || {
                stay_on(pair.writer);
                plan(reader, &send, over, installed);
            });
        } else {
            scope.spawn(move || plan(reader, &send, over, installed));
        }
        clock.begin();
        let mut finished = 0;
        let mut transaction = Transaction::new();
        for (index, &change) in load.changes.iter().enumerate() {
            take_plans(&mut writer, &plans, installed, clock.due(index));
            if clock.is_over() {
                break;
            }
            transaction.clear();
            transaction.push(change);
            let applied = writer.apply(&transaction);
            applied.expect("the changes are of these rules");
            finished += 1;
        }
        take_plans(&mut writer, &plans, installed, clock.end());
        // The rebuilder must not wait for somebody to take a plan.
        drop(plans);
        finished
    });
    writer.synchronize();
    Made {
        finished,
        begun: finished,
    }
}

/// Installs plans that come until a time.
fn take_plans(
    writer: &mut Writer,
    plans: &Receiver<LookupPlan>,
    installed: &AtomicUsize,
    until: Instant,
) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match plans.recv_timeout(left) {
            Ok(plan) => {
                let _ = writer.install(&plan);
                while writer.maintain(usize::from(u16::MAX)) {}
                writer.publish();
                installed.fetch_add(1, Ordering::Release);
            }
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return;
            }
        }
    }
}

/// Computes plans when they are due. Ends with engines that have none.
fn plan(
    mut reader: Reader,
    plans: &SyncSender<LookupPlan>,
    over: &AtomicBool,
    installed: &AtomicUsize,
) {
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        let Some(drift) = reader.drift() else { return };
        if !drift.is_due() || installed.load(Ordering::Acquire) < sent {
            std::thread::sleep(PAUSE);
            continue;
        }
        // Refused by a limit or stopped: the engine of now stays.
        let Ok(Some(plan)) = reader.plan(&mut Until(over)) else {
            return;
        };
        if plans.send(plan).is_err() {
            return;
        }
        sent += 1;
    }
}

/// Lets a build go on until the time is up.
struct Until<'a>(&'a AtomicBool);

impl Progress for Until<'_> {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The writer of an engine that is built anew at every change.
fn rebuild(
    spec: &EngineSpec,
    mut list: Writer,
    built: &Built,
    load: &Load<'_>,
    mut clock: Clock<'_>,
) -> Made {
    clock.begin();
    let mut made = Made {
        finished: 0,
        begun: 0,
    };
    let mut transaction = Transaction::new();
    let replace = |engine: Option<Arc<dyn Classifier>>| {
        let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *built, engine)
    };
    for (index, &change) in load.changes.iter().enumerate() {
        let due = clock.due(index);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if clock.is_over() {
            break;
        }
        // Kept until the next one is there: the reader must not have to free it.
        let retired = replace(None);
        transaction.clear();
        transaction.push(change);
        let applied = list.apply(&transaction);
        applied.expect("the changes are of these rules");
        made.begun += 1;
        let rules = after(load.rules, &load.changes[..made.begun]);
        let engine = spec.build(&rules, &Limits::default(), &mut Until(clock.over));
        // Stopped, or refused: the list stays.
        let Ok(engine) = engine else { break };
        drop(retired);
        replace(Some(Arc::from(engine)));
        made.finished += 1;
    }
    list.synchronize();
    made
}

#[cfg(test)]
mod tests {
    use super::super::cases::{Case, Kind};
    use super::*;

    fn outcome(engine: &str, kind: Kind, single: bool) -> (Outcome, usize) {
        let case = Case::generate("acl1", 300, 20, kind, 2_000, 5).unwrap();
        let changes = case.changes();
        let load = Load {
            rules: case.initial(),
            changes: &changes,
            headers: case.headers(),
            duration: Duration::from_millis(60),
            single,
            processors: None,
        };
        let spec = EngineSpec::parse(engine).unwrap();
        (run(&spec, &load).unwrap(), changes.len())
    }

    #[test]
    fn every_kind_of_engine_answers_rightly_after_its_changes() {
        for kind in [Kind::Insert, Kind::Delete] {
            for engine in [
                "linear",
                "tss",
                "sfl(bit-vector):delta=3",
                "sfl(hyper-split):delta=0",
                "bit-vector",
            ] {
                let (outcome, issued) = outcome(engine, kind, engine != "tss");
                assert_eq!(outcome.wrong, 0, "{engine} {kind:?}");
                assert!(outcome.changes <= issued, "{engine} {kind:?}");
                assert_eq!(outcome.counted.len(), SAMPLES as usize);
                assert!(outcome.counted.is_sorted());
            }
        }
    }

    #[test]
    fn a_lost_change_is_found() {
        let case = Case::generate("acl1", 300, 20, Kind::Delete, 2_000, 5).unwrap();
        let changes = case.changes();
        let spec = EngineSpec::parse("linear").unwrap();
        let limits = Limits::default();
        let built = Table::build(case.initial(), &spec, &limits, &mut NoProgress);
        let (_, table) = built.unwrap();
        let mut view = View::Live(table.reader());
        assert_eq!(view.wrong(case.headers(), case.initial()), 0);
        let changed = after(case.initial(), &changes);
        assert_eq!(changed.len(), 280);
        assert!(view.wrong(case.headers(), &changed) > 0);
    }
}
