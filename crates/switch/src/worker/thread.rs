//! The loop of a worker: it takes commands, receives from each queue in turn, processes and sends.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use classyard_datapath::Packet;
use classyard_datapath::pipeline::Worker;
use classyard_openflow::agent::Job;
use rtrb::{Consumer, RingBuffer};
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::sync::Notify;

use super::channel::{AgentEnd, Command, MAX_COMMANDS, MAX_REPORTS, Report, Reports};
use super::counters::{WorkerCounters, WorkerCounts};
use super::outputs::Outputs;
use super::sleeper::Waker;
use crate::clock::Clock;

/// Packets of a vector at most.
const VECTOR_PACKETS: usize = 256;

/// Time without frames and commands after which a worker sleeps. Going to sleep and waking takes
/// some microseconds.
const AWAKE_TIME: Duration = Duration::from_micros(50);

/// The longest sleep. After it the worker reads the counts of its devices.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The sleep of a worker with a queue without descriptor, and of a worker whose reports wait.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Rows of megaflows that a worker lists between two vectors. A row takes less than 1 µs, and
/// packets wait during this time.
const LISTED_ROWS: usize = 128;

/// The parts of a worker.
pub(crate) struct WorkerParts {
    /// The number of the worker, from 0.
    pub(crate) number: usize,
    pub(crate) worker: Worker,
    /// The processor that the worker runs on, or `None` for any.
    pub(crate) cpu: Option<usize>,
    /// True if the worker never sleeps.
    pub(crate) is_polling: bool,
    pub(crate) clock: Clock,
    /// Wakes the agent.
    pub(crate) agent: Arc<Notify>,
}

/// A running worker, for the agent.
pub(crate) struct WorkerHandle {
    pub(crate) end: AgentEnd,
    waker: Waker,
    counters: Arc<WorkerCounters>,
    cpu: Option<usize>,
    /// Captured frames that the worker reported, and that the reader of the capture had no room
    /// for.
    late_frames: u64,
    thread: Option<JoinHandle<()>>,
}

impl WorkerHandle {
    pub(crate) fn counts(&self) -> WorkerCounts {
        let mut counts = self.counters.read();
        counts.capture_full += self.late_frames;
        counts
    }

    /// Counts a captured frame that the reader of the capture had no room for.
    pub(crate) fn drop_captured_frame(&mut self) {
        self.late_frames += 1;
    }

    /// The processor that the worker runs on, or `None` for any.
    pub(crate) fn cpu(&self) -> Option<usize> {
        self.cpu
    }

    /// Gives the commands to the worker, and wakes it.
    pub(crate) fn hand_over(&mut self) {
        if self.end.hand_over() {
            self.waker.wake();
        }
    }

    /// Ends the worker, and waits for its end.
    pub(crate) fn stop(&mut self) {
        self.end.command(Command::Stop);
        while let Some(thread) = &self.thread
            && !thread.is_finished()
        {
            self.hand_over();
            while self.end.report().is_some() {}
            std::thread::sleep(SHORT_SLEEP);
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a worker panicked");
        }
    }
}

impl WorkerParts {
    /// Starts the thread of a worker.
    ///
    /// # Errors
    /// The system's error if it has no thread left, or if the worker cannot run on its processor.
    pub(crate) fn start(self) -> io::Result<WorkerHandle> {
        let (commands, command_end) = RingBuffer::new(MAX_COMMANDS);
        let (report_end, reports) = RingBuffer::new(MAX_REPORTS);
        let counters = Arc::new(WorkerCounters::default());
        let waker = Waker::new()?;
        let thread = Thread {
            worker: self.worker,
            outputs: Outputs::new(Reports::new(report_end, self.agent), Arc::clone(&counters)),
            packets: vec![Packet::default(); VECTOR_PACKETS],
            commands: command_end,
            waker: waker.clone(),
            clock: self.clock,
            counters: Arc::clone(&counters),
            is_polling: self.is_polling,
        };
        let name = format!("worker {}", self.number);
        let (sender, pinned) = std::sync::mpsc::channel();
        let cpu = self.cpu;
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let pinning = cpu.map_or(Ok(()), pin);
            let is_pinned = pinning.is_ok();
            // The receiver waits for this message.
            let _sent = sender.send(pinning);
            if is_pinned {
                thread.run();
            }
        })?;
        pinned.recv().expect("the thread sends a message")?;
        Ok(WorkerHandle {
            end: AgentEnd::new(commands, reports),
            waker,
            counters,
            cpu,
            late_frames: 0,
            thread: Some(thread),
        })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Lets this thread run on one processor only.
fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

/// The state of a worker's thread.
struct Thread {
    worker: Worker,
    outputs: Outputs,
    packets: Vec<Packet>,
    commands: Consumer<Command>,
    waker: Waker,
    clock: Clock,
    counters: Arc<WorkerCounters>,
    is_polling: bool,
}

impl Thread {
    fn run(mut self) {
        let mut busy = Instant::now();
        let mut counted = busy;
        // The end of the previous turn.
        let mut turn_begin = busy;
        while let Some(commands) = self.take_commands() {
            let packets = self.receive_all();
            let is_delivered = self.outputs.reports.hand_over();
            let now = Instant::now();
            let mut turn_end = now;
            if commands + packets > 0 {
                busy = now;
                self.counters.busy_ns.add(nanoseconds(now - turn_begin));
            } else if now - busy >= AWAKE_TIME && !self.is_polling {
                self.sleep(is_delivered);
                turn_end = Instant::now();
            }
            turn_begin = turn_end;
            if now - counted >= LONGEST_SLEEP {
                self.outputs.update_counts();
                counted = now;
            }
        }
    }

    /// Sleeps until something arrives.
    fn sleep(&mut self, is_delivered: bool) {
        let time = match is_delivered && self.outputs.can_sleep() {
            true => LONGEST_SLEEP,
            false => SHORT_SLEEP,
        };
        self.counters.sleeps.add(1);
        if let Err(error) = self.waker.sleep(self.outputs.descriptors(), time) {
            tracing::error!("a worker cannot sleep: {error}");
            std::thread::sleep(SHORT_SLEEP);
        }
    }

    /// Carries out the commands that have arrived. Returns their number, or `None` after the last
    /// command.
    fn take_commands(&mut self) -> Option<usize> {
        let mut count = 0;
        let mut done = Vec::new();
        while let Ok(command) = self.commands.pop() {
            count += 1;
            match command {
                Command::Add(queues) => {
                    for (port, queue) in queues {
                        self.outputs.add(port, queue);
                    }
                }
                Command::Remove(port) => self.outputs.remove(port),
                Command::Capture(captured) => self.outputs.capture(captured),
                Command::Execute(job) => {
                    self.execute(&job);
                    done.push(job.number);
                }
                Command::Status(asker) => {
                    // The asker may have gone.
                    let _gone = asker.send(self.worker.caches());
                }
                Command::Megaflows(place, asker) => {
                    let part = self.worker.megaflows(place, LISTED_ROWS);
                    let _gone = asker.send(part.unwrap_or_default());
                }
                Command::Next(port, asker) => self.outputs.await_packet(port, asker),
                Command::Stop => {
                    self.outputs.flush();
                    return None;
                }
            }
        }
        // A job is done when its packets are with the devices.
        self.outputs.flush();
        for number in done {
            self.outputs.reports.insist(Report::JobDone(number));
        }
        Some(count)
    }

    /// Carries out the actions of a controller's packet.
    fn execute(&mut self, job: &Job) {
        let now = self.clock.now();
        self.outputs.now = now;
        let packet = Packet::new(&job.frame, job.in_port.0);
        let executed = self
            .worker
            .execute(&job.actions, &packet, now, &mut self.outputs);
        match executed {
            Ok(()) => self.counters.jobs.add(1),
            Err(error) => {
                self.counters.refused_jobs.add(1);
                tracing::warn!("a packet of a controller is dropped: {error}");
            }
        }
    }

    /// Receives a vector from each queue, processes it and sends its packets. Returns the number
    /// of packets.
    fn receive_all(&mut self) -> usize {
        let mut all = 0;
        for place in 0..self.outputs.len() {
            self.outputs.now = self.clock.now();
            let received = self.outputs.receive(place, &mut self.packets);
            if received == 0 {
                continue;
            }
            let now = self.outputs.now;
            self.worker
                .process(&mut self.packets[..received], now, &mut self.outputs);
            self.outputs.flush();
            self.counters.vectors.add(1);
            self.counters.packets.add(received as u64);
            all += received;
        }
        all
    }
}
