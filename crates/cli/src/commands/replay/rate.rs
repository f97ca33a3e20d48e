//! The packet rate of a pipeline: repeated passes over all packets in vectors,
//! without pauses.
//!
//! Each worker has its own thread and processes the same packets from memory, from
//! the bytes of the capture to the calls that would send them. Another thread may
//! remove and add flow entries during the measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use classyard::Progress;
use classyard_datapath::Packet;
use classyard_datapath::flow::{Command, FlowEntry, FlowMod, TableId};
use classyard_datapath::pipeline::{CacheStatus, Message, Node, Pipeline, Worker};
use classyard_lab::bench::thread_cpu_time;
use classyard_report::failure::Failure;
use classyard_report::input::frames::HeldFrames;
use classyard_report::input::limits::size;
use serde::Serialize;

use super::VECTOR_PACKETS;
use super::caches::CacheReport;
use super::ports::Nowhere;

#[derive(Debug, clap::Args)]
pub(super) struct RateArgs {
    /// Seconds to measure the packet rate for; 0 for no measurement
    #[arg(long, default_value = "0.1", value_name = "SECONDS", value_parser = seconds, help_heading = "Rate")]
    seconds: Duration,

    /// Threads that process packets; each processes all packets
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Rate")]
    pub(super) workers: u32,

    /// Flow changes per second during the measurement: a flow is removed, or added
    /// again
    ///
    /// Each change is a message by itself; changes are published every millisecond.
    #[arg(
        long = "change-rate",
        alias = "changes",
        default_value = "0",
        value_name = "N",
        value_parser = classyard_report::input::count,
        help_heading = "Rate"
    )]
    changes: usize,

    /// Change flows of this table only; by default, flows of all tables
    ///
    /// A change of a flow that every packet passes invalidates all cached flows.
    #[arg(
        long,
        value_name = "TABLE",
        requires = "changes",
        help_heading = "Rate"
    )]
    changes_in: Option<u8>,

    /// Measure with the first packets of the capture that fit into SIZE bytes of
    /// memory (32M, 1G, ...)
    ///
    /// K, M and G mean 1,024 bytes, 1,024 K and 1,024 M. The other packets are
    /// replayed, but not held; the report has the number of measured packets.
    #[arg(long, default_value = "32M", value_name = "SIZE", value_parser = size, help_heading = "Rate")]
    rate_memory: u64,

    /// Time each stage of the processing as well, which slows it down a little
    #[arg(long, help_heading = "Rate")]
    nodes: bool,
}

impl RateArgs {
    /// Returns the flows of a pipeline that are changed. Table-miss flows are not:
    /// without them the table would drop all packets.
    fn changed<'p>(&self, pipeline: &'p Pipeline) -> impl Iterator<Item = &'p FlowEntry> {
        let table = self.changes_in.map(TableId);
        let flows = pipeline.flows().iter();
        let flows = flows.filter(move |flow| table.is_none_or(|table| flow.table == table));
        flows.filter(|flow| !flow.is_table_miss())
    }

    /// Returns a pair of messages per flow: one removes it, one adds it again.
    fn messages(&self, pipeline: &Pipeline) -> Vec<[Message; 2]> {
        match self.changes {
            0 => Vec::new(),
            _ => self.changed(pipeline).map(out_and_in).collect(),
        }
    }

    /// Returns a store for the packets to measure with.
    pub(super) fn held_frames(&self) -> HeldFrames {
        let max_bytes = match self.seconds.is_zero() {
            true => 0,
            false => self.rate_memory,
        };
        HeldFrames::new(VECTOR_PACKETS, max_bytes)
    }

    /// Returns an error if changes are requested but no flow can be changed.
    pub(super) fn check(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        if self.changes == 0 || self.changed(pipeline).next().is_some() {
            return Ok(());
        }
        let location = match self.changes_in {
            Some(table) => format!("table {table}"),
            None => "the pipeline".to_owned(),
        };
        let message = format!("{location} has no flow to change except table-miss flows");
        Err(Failure::usage(message).with_help(
            "table-miss flows are not changed, since packets need them; omit --change-rate, or \
             name another table with --changes-in",
        ))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "`{text}` is not a time; expected seconds from 0 to 3600"
        )),
    }
}

/// The rate of repeated passes in vectors.
#[derive(Serialize)]
pub(super) struct Rate {
    workers: u32,
    /// Packets of the capture that were processed repeatedly.
    pub(super) held_packets: usize,
    packets: u64,
    cpu_seconds: f64,
    /// The sum over workers, each by its own CPU time.
    pub(super) packets_per_second: f64,
    /// Changes per second that were made during the measurement.
    changes_per_second: Option<f64>,
    nodes: Vec<NodeRow>,
    /// The totals of all workers' caches.
    caches: Option<CacheReport>,
}

#[derive(Serialize)]
pub(super) struct NodeRow {
    pub(super) node: &'static str,
    /// Packets processed by this stage. For tables and actions, a packet counts once
    /// per table.
    pub(super) packets: u64,
    pub(super) ns_per_packet: f64,
}

impl Rate {
    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{:.2} million packets/s of CPU time, flat out, {VECTOR_PACKETS} at a time",
            self.packets_per_second / 1e6
        );
        if self.workers > 1 {
            text += &format!(", {} workers together", self.workers);
        }
        if let Some(changes) = self.changes_per_second {
            text += &format!(", beside {:.1} thousand changes/s", changes / 1e3);
        }
        text
    }

    /// Returns the report on the flow caches, if there are any.
    pub(super) fn caches(&self) -> Option<&CacheReport> {
        self.caches.as_ref()
    }

    /// Returns the stages, if they were timed.
    pub(super) fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }
}

/// Times the stages.
struct Timer {
    is_on: bool,
    since: Instant,
    /// Packets and time of each stage.
    nodes: [(u64, Duration); Node::ALL.len()],
}

impl Timer {
    fn new(is_on: bool) -> Timer {
        Timer {
            is_on,
            since: Instant::now(),
            nodes: [(0, Duration::ZERO); Node::ALL.len()],
        }
    }

    fn begin(&mut self) {
        if self.is_on {
            self.since = Instant::now();
        }
    }

    /// Records that a stage has just processed packets.
    fn end(&mut self, node: Node, packets: usize) {
        if self.is_on {
            let stage_end = Instant::now();
            let (all, time) = &mut self.nodes[node as usize];
            *all += packets as u64;
            *time += stage_end - self.since;
            self.since = stage_end;
        }
    }
}

/// The results of one worker.
struct Done {
    packets: u64,
    cpu_seconds: f64,
    timer: Timer,
}

/// Runs passes over all packets until the time is over. A first pass, which does
/// not count, warms the caches; its end is sent to `warm`.
///
/// The clock follows the capture: a vector has the time of its last packet. The first
/// pass follows the time `replayed`, and each pass follows the one before it.
fn run(
    worker: &mut Worker,
    (frames, replayed): (&HeldFrames, Duration),
    (warm, stop): (Sender<()>, &AtomicBool),
    nodes: bool,
) -> Done {
    let mut vector = vec![Packet::default(); VECTOR_PACKETS];
    let mut timer = Timer::new(nodes);
    // Between two passes is the mean time between two vectors.
    let vectors = u32::try_from(frames.vectors().len()).unwrap_or(u32::MAX);
    let pause = (frames.duration() / vectors.max(1)).max(Duration::from_nanos(1));
    let mut pass_begin = replayed.saturating_add(pause);
    let mut pass = |timer: &mut Timer, stop: Option<&AtomicBool>| {
        let mut packets = 0;
        let begin = pass_begin;
        let pass_end = begin.saturating_add(frames.duration());
        pass_begin = pass_end.saturating_add(pause);
        for frames in frames.vectors() {
            let now = begin.saturating_add(frames.time());
            let vector = &mut vector[..frames.packet_count()];
            timer.begin();
            frames.receive(vector);
            timer.end(Node::Parse, frames.packet_count());
            if timer.is_on {
                let on_node = &mut |node, packets| timer.end(node, packets);
                worker.process_timed(vector, now, &mut Nowhere, on_node);
            } else {
                worker.process(vector, now, &mut Nowhere);
            }
            packets += frames.packet_count() as u64;
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                break;
            }
        }
        packets
    };
    // Warms the caches; this pass does not count.
    pass(&mut Timer::new(false), None);
    // The receiver may be gone if another worker has panicked.
    let _ = warm.send(());
    let (before, mut packets) = (thread_cpu_time(), 0);
    while !stop.load(Ordering::Relaxed) {
        packets += pass(&mut timer, Some(stop));
    }
    let spent = thread_cpu_time().saturating_sub(before);
    Done {
        packets,
        cpu_seconds: spent.as_secs_f64().max(1e-9),
        timer,
    }
}

/// Measures for the time that the arguments give, after the time `replayed` of the capture.
/// Returns `None` if there is nothing to measure.
pub(super) fn measure(
    args: &RateArgs,
    (pipeline, mut workers): (&mut Pipeline, Vec<Worker>),
    (frames, replayed): (&HeldFrames, Duration),
    mut progress: impl Progress,
) -> Option<Rate> {
    if frames.packets() == 0 || args.seconds.is_zero() {
        return None;
    }
    let stop = AtomicBool::new(false);
    let messages = args.messages(pipeline);
    let (done, changes) = std::thread::scope(|scope| {
        let stop = &stop;
        let (warm, are_warm) = channel();
        let threads = workers.iter_mut().map(|worker| {
            let warm = warm.clone();
            let run = move || run(worker, (frames, replayed), (warm, stop), args.nodes);
            scope.spawn(run)
        });
        let threads: Vec<_> = threads.collect();
        drop(warm);
        are_warm.iter().take(threads.len()).for_each(drop);
        let changes = match args.changes {
            0 => {
                let begin = Instant::now();
                while let Some(left) = args.seconds.checked_sub(begin.elapsed()) {
                    tell(&mut progress, begin.elapsed(), args.seconds);
                    std::thread::sleep(left.min(Duration::from_millis(100)));
                }
                None
            }
            rate => {
                let how = (rate, args.seconds);
                Some(change(pipeline, &messages, how, &mut progress))
            }
        };
        stop.store(true, Ordering::Relaxed);
        let done = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        let done: Vec<Done> = done
            .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (done, changes)
    });
    restore(pipeline, &messages, args.seconds);
    let caches: Vec<CacheStatus> = workers.iter().filter_map(Worker::caches).collect();
    let caches = (!caches.is_empty()).then(|| CacheReport::new(&caches));
    Some(Rate {
        caches,
        held_packets: frames.packets(),
        ..summary(args.workers, &done, changes)
    })
}

fn tell(progress: &mut impl Progress, passed: Duration, all: Duration) {
    let part = |time: Duration| usize::try_from(time.as_millis()).unwrap_or(usize::MAX);
    // This progress cannot be cancelled.
    let _ = progress.report("flat out", part(passed), part(all));
}

#[allow(clippy::cast_precision_loss)] // rates
fn summary(workers: u32, done: &[Done], changes: Option<f64>) -> Rate {
    let rates = done
        .iter()
        .map(|done| done.packets as f64 / done.cpu_seconds);
    let nodes = Node::ALL.into_iter().map(|node| {
        let parts = done.iter().map(|done| done.timer.nodes[node as usize]);
        let (packets, time) = parts.fold((0, Duration::ZERO), |sum, part| {
            (sum.0 + part.0, sum.1 + part.1)
        });
        NodeRow {
            node: node.name(),
            packets,
            ns_per_packet: time.as_secs_f64() * 1e9 / (packets as f64).max(1.0),
        }
    });
    Rate {
        workers,
        held_packets: 0,
        packets: done.iter().map(|done| done.packets).sum(),
        cpu_seconds: done.iter().map(|done| done.cpu_seconds).sum(),
        packets_per_second: rates.sum(),
        changes_per_second: changes,
        nodes: nodes.filter(|node| node.packets > 0).collect(),
        caches: None,
    }
}

/// The interval between publications of changes.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(1);

/// Removes and adds entries at a rate, for a time. Returns the changes per second.
/// Some entries are still removed at the end.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn change(
    pipeline: &mut Pipeline,
    messages: &[[Message; 2]],
    (rate, time): (usize, Duration),
    progress: &mut impl Progress,
) -> f64 {
    if messages.is_empty() {
        std::thread::sleep(time);
        return 0.0;
    }
    let begin = Instant::now();
    let (mut made, mut published) = (0_usize, Duration::ZERO);
    loop {
        let elapsed = begin.elapsed();
        if elapsed >= time {
            break;
        }
        let due = (elapsed.as_secs_f64() * rate as f64) as usize;
        while made < due {
            // A sixteenth of the entries is removed at any time.
            let window = messages.len().div_ceil(16);
            let change_index = made / 2;
            let message = match made % 2 {
                0 => &messages[change_index % messages.len()][0],
                _ => &messages[(change_index + messages.len() - window) % messages.len()][1],
            };
            let made_one = pipeline.submit(std::slice::from_ref(message), elapsed);
            made_one.expect("entries that were there");
            made += 1;
            if made % 256 == 0 {
                break;
            }
        }
        if elapsed - published >= PUBLISH_INTERVAL {
            published = elapsed;
            pipeline.publish();
            pipeline.collect_removed();
            tell(progress, elapsed, time);
        } else if made >= due {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    made as f64 / begin.elapsed().as_secs_f64()
}

/// Adds all removed entries again. Runs after the measurement, since it takes long.
fn restore(pipeline: &mut Pipeline, messages: &[[Message; 2]], now: Duration) {
    if messages.is_empty() {
        return;
    }
    for [_, add] in messages {
        let added = pipeline.submit(std::slice::from_ref(add), now);
        added.expect("an entry that was there");
    }
    pipeline.publish();
    pipeline.collect_removed();
}

/// Returns the messages that remove an entry and that add it again.
fn out_and_in(entry: &FlowEntry) -> [Message; 2] {
    [Command::Delete { strict: true }, Command::Add].map(|command| {
        Message::Flow(FlowMod {
            command,
            table: entry.table,
            priority: entry.priority,
            flow: Arc::clone(&entry.flow),
            cookie: entry.cookie,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            importance: entry.importance,
            flags: entry.flags,
            instructions: Arc::clone(&entry.instructions),
            cookie_mask: 0,
            out_port: None,
            out_group: None,
        })
    })
}
