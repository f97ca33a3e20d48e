//! One run: a reader at full speed and a writer at a rate, for a fixed time.
//!
//! ```text
//! reader                                 writer
//!   warm up                                wait for the reader
//!   ──────────────── both begin ────────────────
//!   clock                                  until the transaction is due:
//!   pin, look 256 headers up, leave          publish what is pending, if any, and
//!                                            if the publish interval is over
//!   clock: a batch's latency               clock
//!   now and then: keep the answers         apply
//!                                          clock: how long, what is visible now
//!   ──────────────── time is up ────────────────
//! ```
//!
//! If the table is re-optimised, a third thread computes plans, which the writer
//! installs as they arrive.
//!
//! The writer never sleeps, so its share of CPU time shows if it had a processor to
//! itself. Transactions are due at fixed times. A late writer makes transactions
//! without pauses until it is on time again.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::table::Version;
use classyard::table::{MAX_PENDING, RuleReplica};
use classyard::{KeySlice, PolicyTrace, Reader, Scratch, Table, Winner};

use super::super::latency::Durations;
use super::super::measure::{as_rate, thread_cpu_time};
use super::churn::Churn;
use super::live::Live;
use super::optimiser::{PartPlan, optimise};
use super::processors::{CpuPair, stay_on};

/// The number of batches per run whose answers are kept.
pub(super) const KEPT_BATCHES: u32 = 16;

/// The writer's target rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// A fixed number of updates per second; 0 means no writer.
    Of(usize),
    /// The maximum rate that the writer reaches.
    Max,
}

impl Rate {
    /// Parses `0`, `10k` or `max`, for the argument parser.
    pub(crate) fn parse(text: &str) -> Result<Rate, String> {
        if text == "max" {
            return Ok(Rate::Max);
        }
        classyard_report::input::count(text).map(Rate::Of).map_err(|_| {
            format!(
                "`{text}` is not a rate; expected updates per second such as 0, 10k or 1M, or max"
            )
        })
    }
}

/// The rate and duration of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) rate: Rate,
    /// Updates per transaction.
    pub(super) transaction: usize,
    pub(super) duration: Duration,
    pub(super) publish_interval: Duration,
    pub(super) processors: Option<CpuPair>,
    /// True if a third thread re-optimises the table.
    pub(super) reoptimise: bool,
}

/// The reader's measurements.
pub(super) struct Read {
    pub(super) spent: Spent,
    pub(super) batches: Durations,
    pub(super) kept: Vec<Kept>,
}

/// The writer's measurements.
pub(super) struct Written {
    pub(super) spent: Spent,
    /// The number of steps made.
    pub(super) steps: usize,
    /// The time until each transaction was accepted.
    pub(super) applied: Durations,
    /// The duration of calls that published pending updates.
    pub(super) published: Durations,
    /// The time from a transaction's start until it was visible to readers.
    pub(super) visible: Durations,
    /// The share of the time spent in calls of the table.
    pub(super) busy: f64,
    /// The number of plans installed.
    pub(super) plans: usize,
}

/// The work of a thread, and its time.
pub(super) struct Spent {
    done: usize,
    wall: Duration,
    cpu: Duration,
}

impl Spent {
    /// Returns the rate per second of elapsed time.
    pub(super) fn rate(&self) -> f64 {
        as_rate(self.done, self.wall.as_secs_f64().max(1e-9))
    }

    /// Returns the rate per second of CPU time.
    pub(super) fn cpu_rate(&self) -> f64 {
        as_rate(self.done, self.cpu.as_secs_f64().max(1e-9))
    }

    /// Returns CPU time divided by elapsed time.
    pub(super) fn cpu_share(&self) -> f64 {
        share(self.cpu, self.wall).min(1.0)
    }
}

/// A batch's answers, and the version that gave them.
pub(super) struct Kept {
    pub(super) version: Version,
    pub(super) part: PartId,
    /// The index of the batch's first header within its part.
    pub(super) first: usize,
    pub(super) winners: Vec<Winner>,
}

/// A batch of the trace.
struct Batch<'a> {
    part: PartId,
    first: usize,
    keys: KeySlice<'a>,
}

/// Runs both threads for the given time.
pub(super) fn run<L: Live>(
    live: &mut L,
    table: &Table<L::Side>,
    churn: &Churn,
    trace: &PolicyTrace,
    pace: Pace,
) -> (Read, Option<Written>) {
    let writing = pace.rate != Rate::Of(0);
    let ready = Barrier::new(2 + usize::from(writing));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(table, trace, pace, &ready, &over));
        let (sender, plans) = sync_channel(1);
        let parts: Vec<PartId> = trace.parts().map(|(part, _)| part).collect();
        if writing && pace.reoptimise {
            let (reader, over) = (table.reader(), &over);
            scope.spawn(move || optimise::<L>(reader, &parts, pace.processors, &sender, over));
        }
        let (ready, over) = (&ready, &over);
        let writing =
            writing.then(|| scope.spawn(move || write(live, churn, pace, &plans, ready, over)));
        ready.wait();
        std::thread::sleep(pace.duration);
        over.store(true, Ordering::Relaxed);
        let read = reading.join().expect("the reader does not panic");
        let written = writing.map(|thread| thread.join().expect("the writer does not panic"));
        (read, written)
    })
}

fn read<S: RuleReplica>(
    table: &Table<S>,
    trace: &PolicyTrace,
    pace: Pace,
    ready: &Barrier,
    over: &AtomicBool,
) -> Read {
    if let Some(pair) = pace.processors {
        stay_on(pair.reader);
    }
    let batches = batches_of(trace);
    let mut looker = Looker {
        reader: table.reader(),
        scratch: Scratch::new(),
        winners: vec![Winner::MISS; BATCH],
    };
    let mut latencies = Durations::new();
    let mut kept_batches = blank(&batches);
    let (mut next_kept, mut taken) = (pace.duration / (2 * KEPT_BATCHES), 0);

    let warming = Instant::now();
    for batch in &batches {
        looker.look(batch);
        if warming.elapsed() > pace.duration / 4 {
            break;
        }
    }
    ready.wait();
    let watch = Watch::start();
    let (mut next, mut done) = (0, 0);
    // Looks up at least one batch, however late the thread began. A trace without
    // headers has no batch.
    while done == 0 || !over.load(Ordering::Relaxed) {
        let Some(batch) = batches.get(next) else {
            break;
        };
        let start = Instant::now();
        let version = looker.look(batch);
        let batch_end = Instant::now();
        latencies.record(batch_end - start);
        done += batch.keys.len();
        if batch_end - watch.wall >= next_kept
            && let Some(keep) = kept_batches.get_mut(taken)
        {
            keep.version = version;
            keep.part = batch.part;
            keep.first = batch.first;
            keep.winners.clear();
            let winners = &looker.winners[..batch.keys.len()];
            keep.winners.extend_from_slice(winners);
            taken += 1;
            next_kept += pace.duration / KEPT_BATCHES;
        }
        next += 1;
        if next == batches.len() {
            next = 0;
        }
    }
    kept_batches.truncate(taken);
    Read {
        spent: watch.stop(done),
        batches: latencies,
        kept: kept_batches,
    }
}

fn batches_of(trace: &PolicyTrace) -> Vec<Batch<'_>> {
    let parts = trace.parts().flat_map(|(part, keys)| {
        let batches = keys.batches(BATCH).enumerate();
        batches.map(move |(index, keys)| Batch {
            part,
            first: index * BATCH,
            keys,
        })
    });
    parts.collect()
}

/// Allocates space for the kept answers, so that nothing is allocated later.
fn blank(batches: &[Batch<'_>]) -> Vec<Kept> {
    let Some(first) = batches.first() else {
        return Vec::new();
    };
    let kept_batches = (0..KEPT_BATCHES).map(|_| Kept {
        version: Version::default(),
        part: first.part,
        first: 0,
        winners: Vec::with_capacity(BATCH),
    });
    kept_batches.collect()
}

/// A reader with the buffers for a batch.
struct Looker<S: RuleReplica> {
    reader: Reader<S>,
    scratch: Scratch,
    winners: Vec<Winner>,
}

impl<S: RuleReplica> Looker<S> {
    /// Looks up a batch with a new pin.
    #[inline]
    fn look(&mut self, batch: &Batch<'_>) -> Version {
        let winners = &mut self.winners[..batch.keys.len()];
        winners.fill(Winner::MISS);
        let guard = self.reader.pin();
        let classifier = guard.part(batch.part);
        classifier.classify_batch(batch.keys, winners, &mut self.scratch);
        guard.version()
    }
}

fn write<L: Live>(
    live: &mut L,
    churn: &Churn,
    pace: Pace,
    plans: &Receiver<PartPlan>,
    ready: &Barrier,
    over: &AtomicBool,
) -> Written {
    if let Some(pair) = pace.processors {
        stay_on(pair.writer);
    }
    let Pace {
        rate, transaction, ..
    } = pace;
    let interval = match rate {
        Rate::Of(rate) => number(transaction) / number(rate),
        Rate::Max => 0.0,
    };
    let mut applied = Durations::new();
    let (mut published, mut visible) = (Durations::new(), Durations::new());
    // At most `MAX_PENDING` changes wait to become visible.
    let mut waiting = VecDeque::with_capacity(MAX_PENDING / transaction + 2);
    let mut busy = Duration::ZERO;
    let (mut transactions, mut installed) = (0, 0);
    live.writer().set_publish_interval(pace.publish_interval);

    ready.wait();
    let watch = Watch::start();
    'run: loop {
        let due = watch.wall + Duration::from_secs_f64(number(transactions) * interval);
        let first = transactions * transaction;
        live.prepare((first..first + transaction).map(|made| churn.step(made)));
        loop {
            // Makes at least one transaction, however late the thread began.
            if transactions > 0 && over.load(Ordering::Relaxed) {
                break 'run;
            }
            let now = Instant::now();
            if let Ok((part, plan)) = plans.try_recv() {
                live.writer().set_now(now - watch.wall);
                assert!(live.install(part, &plan), "a plan of this engine");
                installed += 1;
                busy += now.elapsed();
                published.record(now.elapsed());
                continue;
            }
            if now >= due {
                break;
            }
            if waiting.is_empty() {
                std::hint::spin_loop();
                continue;
            }
            live.writer().set_now(now - watch.wall);
            let done = live.writer().publish_if_due();
            let published_at = Instant::now();
            busy += published_at - now;
            if done {
                published.record(published_at - now);
            }
            seen(
                &mut waiting,
                live.writer().visible(),
                published_at,
                &mut visible,
            );
        }
        let start = Instant::now();
        live.writer().set_now(start - watch.wall);
        let accepted = live.apply();
        let accepted_at = Instant::now();
        let version = accepted.expect("the list was made for these rules");
        busy += accepted_at - start;
        applied.record(accepted_at - start);
        waiting.push_back((version, start));
        seen(
            &mut waiting,
            live.writer().visible(),
            accepted_at,
            &mut visible,
        );
        transactions += 1;
    }
    let spent = watch.stop(transactions * transaction);
    live.writer().publish();
    seen(
        &mut waiting,
        live.writer().visible(),
        Instant::now(),
        &mut visible,
    );
    Written {
        steps: transactions * transaction,
        applied,
        published,
        visible,
        busy: share(busy, spent.wall),
        plans: installed,
        spent,
    }
}

/// Records the delay of the transactions that have become visible.
fn seen(
    waiting: &mut VecDeque<(Version, Instant)>,
    visible: Version,
    now: Instant,
    durations: &mut Durations,
) {
    while let Some(&(version, start)) = waiting.front()
        && version <= visible
    {
        durations.record(now - start);
        waiting.pop_front();
    }
}

/// A thread's two clocks.
struct Watch {
    wall: Instant,
    cpu: Duration,
}

impl Watch {
    fn start() -> Watch {
        Watch {
            wall: Instant::now(),
            cpu: thread_cpu_time(),
        }
    }

    fn stop(&self, done: usize) -> Spent {
        Spent {
            done,
            wall: self.wall.elapsed(),
            cpu: thread_cpu_time().saturating_sub(self.cpu),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
fn number(count: usize) -> f64 {
    count as f64
}

fn share(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!(Rate::parse("0"), Ok(Rate::Of(0)));
        assert_eq!(Rate::parse("10k"), Ok(Rate::Of(10_000)));
        assert_eq!(Rate::parse("max"), Ok(Rate::Max));
        for bad in ["", "fast", "-1", "Max"] {
            assert!(Rate::parse(bad).unwrap_err().contains("is not a rate"));
        }
    }
}
