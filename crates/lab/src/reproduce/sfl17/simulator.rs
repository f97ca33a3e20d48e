//! The simulator of [SFL17] §V.C: a classifier looks up headers as fast as it can while
//! its rules change at fixed intervals.
//!
//! The paper's four roles, and the threads that have them here:
//!
//! ```text
//! one processor      the reader: takes headers from memory and classifies them
//! other processors   the writer: makes changes when they are due, and rebuilds
//!                    engines that take no changes; sleeps otherwise
//!                    the rebuilder, for engines that are rebuilt during
//!                    changes; sleeps otherwise
//!                    the counter: reads the reader's count a hundred times
//! ```
//!
//! No thread feeds headers: they are in memory before the run, so that the reader never
//! waits for one. No other role uses the reader's processor, for any engine, and the work
//! of changes runs on the same processors for all engines. So engines can be compared
//! with two processors as with the paper's eight.
//!
//! Changes are made in two ways:
//! - Engines that take changes are in a live table. If they can be re-optimised, the
//!   rebuilder does so when it is due.
//! - Other engines are rebuilt at every change, one build after the other, as in the
//!   paper; during a build the reader searches a list of the rules. A change counts as
//!   made when its engine is built.
//!
//! [SFL17]: classyard::papers#sfl17

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use classyard::classifier::{BATCH, MetricValue};
use classyard::reoptimise::LookupPlan;
use classyard::transaction::Change;
use classyard::{
    BuildError, Classifier, EngineSpec, KeySlice, KeyVec, Limits, NoProgress, Progress, Reader,
    RuleId, RuleSet, Scratch, Table, Transaction, Winner, Writer,
};
use serde::{Deserialize, Serialize};

use crate::bench::{CpuPair, stay_on, thread_cpu_time};

/// The number of times that the counter reads the count.
pub(super) const SAMPLE_COUNT: u32 = 100;

/// Headers whose answers are compared with a scan at the end.
const CHECKED_HEADERS: usize = 2_000;

/// The rebuilder's sleep between two checks.
const REBUILDER_PAUSE: Duration = Duration::from_millis(1);

/// The load of a run.
pub(super) struct Load<'a> {
    /// The rules installed at the beginning.
    pub(super) rules: &'a RuleSet,
    /// Changes made one by one, at equal intervals, the first immediately.
    pub(super) changes: &'a [Change<'a>],
    pub(super) headers: &'a KeyVec,
    pub(super) duration: Duration,
    /// True if headers are looked up one by one, as in the paper; false for batches.
    pub(super) single: bool,
    pub(super) processors: Option<CpuPair>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Headers classified.
    pub(super) headers: u64,
    /// Issued changes that were made in time.
    pub(super) changes: usize,
    /// Headers classified by the end of each of [`SAMPLE_COUNT`] equal intervals.
    pub(super) counted: Vec<u64>,
    /// Answers that differ from a scan of the rules at the end.
    pub(super) wrong: usize,
    /// The reader's share of its processor's time.
    pub(super) reader_share: f64,
    /// Rebuilds that were finished during the run.
    #[serde(default)]
    pub(super) rebuilds: usize,
}

/// Runs an engine under a load.
///
/// # Errors
/// If the engine cannot be built over the rules.
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

/// The times at which changes are due, and the end of the run.
struct Clock<'a> {
    ready: &'a Barrier,
    /// Set at the end of the run.
    over: &'a AtomicBool,
    start: Instant,
    interval: Duration,
    duration: Duration,
}

impl Clock<'_> {
    /// Waits until the reader is ready, then starts the time.
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

/// The writer's progress: changes that are finished, and changes that were applied to the
/// rules.
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
    let written = std::thread::scope(|scope| {
        let reading = scope.spawn(|| view.read(load, &ready, &over, &count));
        let writing = scope.spawn(|| {
            if let Some(pair) = load.processors {
                stay_on(pair.writer);
            }
            write(clock)
        });
        ready.wait();
        let start = Instant::now();
        for sample in 1..=SAMPLE_COUNT {
            let sample_time = start + load.duration / SAMPLE_COUNT * sample;
            std::thread::sleep(sample_time.saturating_duration_since(Instant::now()));
            outcome.counted.push(count.load(Ordering::Relaxed));
        }
        over.store(true, Ordering::Relaxed);
        outcome.reader_share = reading.join().expect("the reader does not panic");
        writing.join().expect("the writer does not panic")
    });
    outcome.headers = outcome.counted.last().copied().unwrap_or(0);
    outcome.changes = written.finished;
    outcome.rebuilds = view.rebuilds().unwrap_or(written.finished);
    let rules = after(load.rules, &load.changes[..written.begun]);
    outcome.wrong = view.wrong(load.headers, &rules);
    outcome
}

/// Returns the rules after all changes, in their order.
pub(super) fn after(rules: &RuleSet, changes: &[Change<'_>]) -> RuleSet {
    let mut changed = RuleSet::new(rules.schema());
    let changed_ids: HashSet<RuleId> = changes.iter().map(Change::id).collect();
    let unchanged = rules
        .iter()
        .filter(|rule| !changed_ids.contains(&rule.id()));
    let inserted = changes.iter().filter_map(|change| match change {
        Change::Insert(rule) | Change::Modify(rule) => Some(*rule),
        Change::Remove(_) => None,
    });
    for rule in unchanged.chain(inserted) {
        changed.push(rule).expect("every rule is changed once");
    }
    changed
}

type Built = Mutex<Option<Arc<dyn Classifier>>>;

/// The reader's access to the current engine.
enum View<'a> {
    /// An engine in a live table.
    Live(Reader),
    /// An engine that is rebuilt, and a list of the rules for the time of a build.
    Rebuilt(&'a Built, Reader),
}

impl View<'_> {
    /// Looks up headers.
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

    /// Looks up headers until the end of the run. Returns this thread's CPU time divided
    /// by the elapsed time.
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
        // Warms the caches and the processor up.
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

    /// Returns the number of rebuilds that an engine in a live table counted, which is 0 if
    /// it has none; `None` for an engine that is rebuilt at every change.
    fn rebuilds(&mut self) -> Option<usize> {
        let View::Live(reader) = self else {
            return None;
        };
        let stats = reader.pin().classifier().stats();
        let metric = stats.metrics.iter().find(|one| one.name == "rebuilds");
        Some(match metric.map(|one| one.value) {
            Some(MetricValue::Count(count)) => count,
            _ => 0,
        })
    }

    /// Returns the number of answers that differ from a scan of the rules.
    fn wrong(&mut self, headers: &KeyVec, rules: &RuleSet) -> usize {
        let (mut scratch, mut winners) = (Scratch::new(), [Winner::MISS; BATCH]);
        let mut wrong = 0;
        for keys in headers.batches(BATCH).take(CHECKED_HEADERS.div_ceil(BATCH)) {
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

/// Runs the writer of a live table, and a rebuilder next to it.
fn update(mut writer: Writer, reader: Reader, load: &Load<'_>, mut clock: Clock<'_>) -> Made {
    let (send, plans) = sync_channel(0);
    let installed = AtomicUsize::new(0);
    let progress = std::thread::scope(|scope| {
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
        let mut progress = Made {
            finished: 0,
            begun: 0,
        };
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
            progress.begun += 1;
            // A change that rebuilds may end after the run.
            progress.finished += usize::from(!clock.is_over());
        }
        take_plans(&mut writer, &plans, installed, clock.end());
        // The rebuilder must not wait for a receiver of its plan.
        drop(plans);
        progress
    });
    writer.synchronize();
    progress
}

/// Installs plans that arrive before `until`.
fn take_plans(
    writer: &mut Writer,
    plans: &Receiver<LookupPlan>,
    installed: &AtomicUsize,
    until: Instant,
) {
    loop {
        let timeout = until.saturating_duration_since(Instant::now());
        match plans.recv_timeout(timeout) {
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

/// Computes plans when they are due. Returns immediately if the engine has no plans.
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
            std::thread::sleep(REBUILDER_PAUSE);
            continue;
        }
        // Refused by a limit, or cancelled: the current engine stays.
        let Ok(Some(plan)) = reader.plan(&mut Until(over)) else {
            return;
        };
        if plans.send(plan).is_err() {
            return;
        }
        sent += 1;
    }
}

/// A progress callback that cancels a build at the end of the run.
struct Until<'a>(&'a AtomicBool);

impl Progress for Until<'_> {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Runs the writer of an engine that is rebuilt at every change.
fn rebuild(
    spec: &EngineSpec,
    mut list: Writer,
    built: &Built,
    load: &Load<'_>,
    mut clock: Clock<'_>,
) -> Made {
    clock.begin();
    let mut progress = Made {
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
        // The old engine lives until the next one is built, so that the reader never
        // frees it.
        let retired = replace(None);
        transaction.clear();
        transaction.push(change);
        let applied = list.apply(&transaction);
        applied.expect("the changes are of these rules");
        progress.begun += 1;
        let rules = after(load.rules, &load.changes[..progress.begun]);
        let engine = spec.build(&rules, &Limits::default(), &mut Until(clock.over));
        // Cancelled or refused: the list stays.
        let Ok(engine) = engine else { break };
        drop(retired);
        replace(Some(Arc::from(engine)));
        progress.finished += 1;
    }
    list.synchronize();
    progress
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
                if ["linear", "tss"].contains(&engine) {
                    assert_eq!(outcome.rebuilds, 0, "{engine} {kind:?}");
                }
                if engine == "bit-vector" {
                    assert_eq!(outcome.rebuilds, outcome.changes, "{kind:?}");
                }
                assert!(outcome.changes <= issued, "{engine} {kind:?}");
                assert_eq!(outcome.counted.len(), SAMPLE_COUNT as usize);
                assert!(outcome.counted.is_sorted());
            }
        }
    }

    #[test]
    fn rebuilds_of_the_published_form_are_counted() {
        let rebuilds = |delta: usize| {
            let engine = format!("sfl(bit-vector):delta={delta}:form=paper");
            let (outcome, issued) = outcome(&engine, Kind::Delete, true);
            (outcome.rebuilds, outcome.changes, issued)
        };
        // Every fourth change exceeds this δ; changes that wait together count as one.
        let (count, made, issued) = rebuilds(3);
        assert!(count <= issued / 4, "{count} of {issued}");
        assert!(count > 0 || made < 8, "none after {made}");
        let (count, _, issued) = rebuilds(1_000);
        assert_eq!((count, issued), (0, 20));
    }

    #[test]
    fn a_change_that_ends_after_the_run_is_late() {
        let case = Case::generate("acl1", 300, 1, Kind::Delete, 500, 5).unwrap();
        let spec = EngineSpec::parse("sfl(rfc):delta=0:form=paper").unwrap();
        let start = Instant::now();
        let built = spec.build(case.initial(), &Limits::default(), &mut NoProgress);
        built.unwrap();
        let load = Load {
            rules: case.initial(),
            changes: &case.changes(),
            headers: case.headers(),
            // The only change rebuilds, which takes about four times as long as the run.
            duration: start.elapsed() / 4,
            single: true,
            processors: None,
        };
        let outcome = run(&spec, &load).unwrap();
        assert_eq!((outcome.changes, outcome.wrong), (0, 0));
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
