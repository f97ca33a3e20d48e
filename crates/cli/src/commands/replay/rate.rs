//! How fast a pipeline is: passes over all packets in vectors, flat out.
//!
//! Each worker has a thread of its own and takes the same packets from memory, from
//! the bytes of the capture to the calls that would send them. Another thread may
//! remove and add flow entries meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use classyard::Progress;
use classyard_datapath::Packet;
use classyard_datapath::flow::{Command, FlowEntry, FlowMod, TableId};
use classyard_datapath::pipeline::{CacheStatus, Message, Node, Pipeline, Worker};
use serde::Serialize;

use super::VECTOR;
use super::caches::CacheReport;
use super::ports::Nowhere;
use crate::bench::thread_cpu_time;
use crate::failure::Failure;
use crate::input::frames::HeldFrames;
use crate::input::limits::size;

#[derive(Debug, clap::Args)]
pub(super) struct RateArgs {
    /// Seconds to measure the packet rate for; 0 for no measurement
    #[arg(long, default_value = "0.1", value_name = "SECONDS", value_parser = seconds, help_heading = "Rate")]
    seconds: Duration,

    /// Threads that process packets; each processes all packets
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Rate")]
    pub(super) workers: u32,

    /// Flow changes per second during the measurement: a flow is removed, or added again
    ///
    /// Each change is a message by itself; changes are published every millisecond.
    #[arg(
        long = "change-rate",
        alias = "changes",
        default_value = "0",
        value_name = "N",
        value_parser = crate::input::count,
        help_heading = "Rate"
    )]
    changes: usize,

    /// Change flows of this table alone; without it, of all tables in turn
    ///
    /// A change of a flow that every packet passes invalidates all cached flows.
    #[arg(
        long,
        value_name = "TABLE",
        requires = "changes",
        help_heading = "Rate"
    )]
    changes_in: Option<u8>,

    /// Measure with the first packets of the capture that fit into this much memory
    /// (32M, 1G, ...)
    ///
    /// K, M and G stand for 1,024 bytes, 1,024 K and 1,024 M. The other packets are
    /// replayed, but not held; the report says how many packets were measured.
    #[arg(long, default_value = "32M", value_name = "SIZE", value_parser = size, help_heading = "Rate")]
    rate_memory: u64,

    /// Time each stage of the processing as well, which slows it down a little
    #[arg(long, help_heading = "Rate")]
    nodes: bool,
}

impl RateArgs {
    /// Flows that are changed, of those of a pipeline. Table-miss flows stay: without them
    /// all packets would be gone.
    fn changed<'p>(&self, pipeline: &'p Pipeline) -> impl Iterator<Item = &'p FlowEntry> {
        let table = self.changes_in.map(TableId);
        let flows = pipeline.flows().iter();
        let flows = flows.filter(move |flow| table.is_none_or(|table| flow.table == table));
        flows.filter(|flow| !flow.is_table_miss())
    }

    /// Messages that remove each of them, and that add it again.
    fn messages(&self, pipeline: &Pipeline) -> Vec<[Message; 2]> {
        match self.changes {
            0 => Vec::new(),
            _ => self.changed(pipeline).map(out_and_in).collect(),
        }
    }

    /// A place for the packets to measure with.
    pub(super) fn held_frames(&self) -> HeldFrames {
        let max_bytes = match self.seconds.is_zero() {
            true => 0,
            false => self.rate_memory,
        };
        HeldFrames::new(VECTOR, max_bytes)
    }

    /// Whether there are flows to change where some are to be changed.
    pub(super) fn check(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        if self.changes == 0 || self.changed(pipeline).next().is_some() {
            return Ok(());
        }
        let place = match self.changes_in {
            Some(table) => format!("table {table}"),
            None => "the pipeline".to_owned(),
        };
        let message = format!("{place} has no flow to change but those for table misses");
        Err(Failure::usage(message).with_help("these stay, since packets need them; leave --change-rate out, or name a table with others with --changes-in"))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "`{text}` is no time; expected seconds from 0 to 3600"
        )),
    }
}

/// How fast it went in vectors, flat out.
#[derive(Serialize)]
pub(super) struct Rate {
    workers: u32,
    /// Packets of the capture that were processed again and again.
    pub(super) held_packets: usize,
    packets: u64,
    cpu_seconds: f64,
    /// The sum over workers, each by its own CPU time.
    pub(super) packets_per_second: f64,
    /// Changes that were made meanwhile, each second.
    changes_per_second: Option<f64>,
    nodes: Vec<NodeRow>,
    /// What the caches of all workers did.
    caches: Option<CacheReport>,
}

#[derive(Serialize)]
pub(super) struct NodeRow {
    pub(super) node: &'static str,
    /// Packets that came there: for tables and actions once for each table.
    pub(super) packets: u64,
    pub(super) ns_per_packet: f64,
}

impl Rate {
    /// A line for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{:.2} million packets/s of CPU time, flat out, {VECTOR} at a time",
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

    /// What the flow caches did, if there are some.
    pub(super) fn caches(&self) -> Option<&CacheReport> {
        self.caches.as_ref()
    }

    /// The parts of the way, where they were timed.
    pub(super) fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }
}

/// Times the parts of the way.
struct Timer {
    is_on: bool,
    since: Instant,
    /// Packets and time of each.
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

    /// Notes that a node has processed packets just now.
    fn end(&mut self, node: Node, packets: usize) {
        if self.is_on {
            let now = Instant::now();
            let (all, time) = &mut self.nodes[node as usize];
            *all += packets as u64;
            *time += now - self.since;
            self.since = now;
        }
    }
}

/// What one worker did.
struct Done {
    packets: u64,
    cpu_seconds: f64,
    timer: Timer,
}

/// Passes over all packets until time is over. Says when the first one is, which does not
/// count.
fn run(
    worker: &mut Worker,
    (frames, now): (&HeldFrames, Duration),
    (warm, stop): (Sender<()>, &AtomicBool),
    nodes: bool,
) -> Done {
    let mut vector = vec![Packet::default(); VECTOR];
    let mut timer = Timer::new(nodes);
    let mut pass = |timer: &mut Timer, stop: Option<&AtomicBool>| {
        let mut packets = 0;
        for frames in frames.vectors() {
            let vector = &mut vector[..frames.len()];
            timer.begin();
            frames.receive(vector);
            timer.end(Node::Parse, frames.len());
            if timer.is_on {
                let on_node = &mut |node, packets| timer.end(node, packets);
                worker.process_timed(vector, now, &mut Nowhere, on_node);
            } else {
                worker.process(vector, now, &mut Nowhere);
            }
            packets += frames.len() as u64;
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                break;
            }
        }
        packets
    };
    // Caches are warm after a pass that does not count.
    pass(&mut Timer::new(false), None);
    // Nobody waits any more if another worker has panicked.
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

/// Measures, for as long as the arguments say, at the time `now` of the capture. `None`
/// if there is nothing to measure.
pub(super) fn measure(
    args: &RateArgs,
    (pipeline, mut workers): (&mut Pipeline, Vec<Worker>),
    (frames, now): (&HeldFrames, Duration),
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
            let run = move || run(worker, (frames, now), (warm, stop), args.nodes);
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
    // Nobody stops it.
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

/// The time from one publication of changes to the next.
const PUBLISHED: Duration = Duration::from_millis(1);

/// Removes and adds entries at a rate, for a time; how many each second it was. Some are
/// out in the end.
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
        let now = begin.elapsed();
        if now >= time {
            break;
        }
        let due = (now.as_secs_f64() * rate as f64) as usize;
        while made < due {
            // A sixteenth of the entries is out at any time.
            let window = messages.len().div_ceil(16);
            let at = made / 2;
            let message = match made % 2 {
                0 => &messages[at % messages.len()][0],
                _ => &messages[(at + messages.len() - window) % messages.len()][1],
            };
            let made_one = pipeline.submit(std::slice::from_ref(message), now);
            made_one.expect("entries that were there");
            made += 1;
            if made % 256 == 0 {
                break;
            }
        }
        if now - published >= PUBLISHED {
            published = now;
            pipeline.publish();
            pipeline.collect_removed();
            tell(progress, now, time);
        } else if made >= due {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    made as f64 / begin.elapsed().as_secs_f64()
}

/// Adds all entries again that are out. After the measurement: it takes long.
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

/// Messages that remove an entry, and that add it again.
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
