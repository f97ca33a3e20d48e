//! A worker that processes vectors of frames.

use std::time::{Duration, Instant};

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{
    CacheStatus, Node, Observer, PacketInReason, Pipeline, Sink, Worker,
};
use classyard_datapath::{Packet, PortNo};

use super::VECTOR_PACKETS;
use super::frames::Frames;
use crate::bench::{Spread, thread_cpu_time};
use crate::reproduce::statistics::coordinate;

/// A sink that drops packets and counts them.
#[derive(Default)]
pub(super) struct Nowhere {
    pub(super) sent: usize,
}

impl Sink for Nowhere {
    fn send(&mut self, _: PortNo, _: Option<u32>, packet: &Packet) {
        self.sent += 1;
        std::hint::black_box(packet.bytes());
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), packet: &Packet) {
        std::hint::black_box(packet.bytes());
    }
}

/// A pipeline with a worker that has no caches.
pub(super) struct Runner {
    pub(super) pipeline: Pipeline,
    pub(super) vectors: VectorWorker,
}

/// A worker with its vector and its sink. A pipeline may have several.
pub(super) struct VectorWorker {
    worker: Worker,
    pub(super) packets: Vec<Packet>,
    pub(super) nowhere: Nowhere,
    /// The index of the next vector of frames.
    next: usize,
    /// The index of the next frame that is processed alone.
    next_single: usize,
}

/// The time of a vector, in seconds for each packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorTime {
    /// From receiving the frames until every packet has ended.
    pub(super) whole: f64,
    /// Only the lookup in the access list.
    pub(super) lookup: f64,
}

impl Runner {
    pub(super) fn new(mut pipeline: Pipeline) -> Runner {
        let vectors = VectorWorker::new(pipeline.worker());
        Runner { pipeline, vectors }
    }
}

impl VectorWorker {
    pub(super) fn new(worker: Worker) -> VectorWorker {
        VectorWorker {
            worker,
            packets: vec![Packet::default(); VECTOR_PACKETS],
            nowhere: Nowhere::default(),
            next: 0,
            next_single: 0,
        }
    }

    /// Returns the counters of the worker's caches; all 0 without caches.
    pub(super) fn caches(&self) -> CacheStatus {
        self.worker.caches().unwrap_or_default()
    }

    /// Processes at most `max_vectors` vectors, until `seconds` are over, and returns
    /// their number.
    pub(super) fn some(
        &mut self,
        frames: &Frames,
        max_vectors: usize,
        seconds: Option<f64>,
    ) -> usize {
        let deadline = seconds.map(|seconds| thread_cpu_time() + Duration::from_secs_f64(seconds));
        for done in 0..max_vectors {
            if deadline.is_some_and(|deadline| thread_cpu_time() >= deadline) {
                return done;
            }
            let vector = self.next(frames);
            self.vector(frames, vector);
        }
        max_vectors
    }

    /// Processes a vector and returns its number of packets.
    fn vector(&mut self, frames: &Frames, vector: usize) -> usize {
        let count = frames.receive(vector, &mut self.packets);
        let packets = &mut self.packets[..count];
        self.worker
            .process(packets, Duration::ZERO, &mut self.nowhere);
        count
    }

    /// Processes a vector with an observer and returns its number of packets. They are at
    /// the beginning of `packets`.
    pub(super) fn observe(
        &mut self,
        frames: &Frames,
        vector: usize,
        observer: &mut dyn Observer,
    ) -> usize {
        let count = frames.receive(vector, &mut self.packets);
        let packets = &mut self.packets[..count];
        let now = Duration::ZERO;
        self.worker
            .process_observed(packets, now, &mut self.nowhere, observer);
        count
    }

    fn next(&mut self, frames: &Frames) -> usize {
        let vector = self.next % frames.vectors();
        self.next = vector + 1;
        vector
    }

    /// Processes vectors for `seconds`, at least one vector, and returns packets a second
    /// of CPU time.
    pub(super) fn run(&mut self, frames: &Frames, seconds: f64) -> f64 {
        let begin = thread_cpu_time();
        let deadline = begin + Duration::from_secs_f64(seconds);
        let mut packets = 0;
        loop {
            let vector = self.next(frames);
            packets += self.vector(frames, vector);
            let now = thread_cpu_time();
            if now >= deadline {
                let spent = now.saturating_sub(begin).as_secs_f64();
                return coordinate(packets) / spent.max(1e-9);
            }
        }
    }

    /// Processes vectors for `seconds`, at least one vector, and times each vector.
    pub(super) fn time(&mut self, frames: &Frames, seconds: f64, times: &mut Vec<VectorTime>) {
        let deadline = thread_cpu_time() + Duration::from_secs_f64(seconds);
        loop {
            let vector = self.next(frames);
            let begin = thread_cpu_time();
            let count = frames.receive(vector, &mut self.packets);
            let parsed = thread_cpu_time();
            let mut looked_up = None;
            let mut note = |node, _| {
                if node == Node::Tables && looked_up.is_none() {
                    looked_up = Some(thread_cpu_time());
                }
            };
            let packets = &mut self.packets[..count];
            let sink = &mut self.nowhere;
            self.worker
                .process_timed(packets, Duration::ZERO, sink, &mut note);
            let done = thread_cpu_time();
            let each = |from: Duration, to: Duration| {
                to.saturating_sub(from).as_secs_f64() / coordinate(count)
            };
            times.push(VectorTime {
                whole: each(begin, done),
                lookup: each(parsed, looked_up.unwrap_or(done)),
            });
            if done >= deadline {
                return;
            }
        }
    }

    /// Processes packets one by one for `seconds`, at least one packet. Times each packet as
    /// a vector of its own, by the wall clock, since reading the thread's CPU time takes as
    /// long as a lookup. Subtracts `clock_seconds`, the time of one reading, for each
    /// reading within a measured time.
    pub(super) fn time_single(
        &mut self,
        frames: &Frames,
        seconds: f64,
        clock_seconds: f64,
        times: &mut Vec<VectorTime>,
    ) {
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        loop {
            let index = self.next_single % frames.len();
            self.next_single = index + 1;
            let begin = Instant::now();
            frames.receive_one(index, &mut self.packets[0]);
            let parsed = Instant::now();
            let mut looked_up = None;
            let mut note = |node, _| {
                if node == Node::Tables && looked_up.is_none() {
                    looked_up = Some(Instant::now());
                }
            };
            let sink = &mut self.nowhere;
            self.worker
                .process_timed(&mut self.packets[..1], Duration::ZERO, sink, &mut note);
            let done = Instant::now();
            let spent = |from: Instant, to: Instant, readings: f64| {
                let seconds = to.saturating_duration_since(from).as_secs_f64();
                (seconds - readings * clock_seconds).max(0.0)
            };
            times.push(VectorTime {
                whole: spent(begin, done, 3.0),
                lookup: spent(parsed, looked_up.unwrap_or(done), 1.0),
            });
            if done >= deadline {
                return;
            }
        }
    }
}

/// Readings of the clock that measure its cost.
const CLOCK_READINGS: usize = 10_001;

/// Returns the median time between two successive readings of the wall clock, in seconds.
pub(super) fn clock_cost() -> f64 {
    let mut last = Instant::now();
    let gaps = (0..CLOCK_READINGS).map(|_| {
        let now = Instant::now();
        let gap = now.saturating_duration_since(last);
        last = now;
        gap.as_secs_f64()
    });
    let gaps: Vec<f64> = gaps.collect();
    Spread::of(&gaps).expect("measured").median
}
