//! Commands of the agent to a worker, and reports of a worker to the agent.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{CacheStatus, MegaflowPart, MegaflowPlace, PacketInReason};
use classyard_datapath::{Packet, PortNo};
use classyard_openflow::agent::Job;
use classyard_ports::Queue;
use rtrb::{Consumer, Producer, PushError};
use tokio::sync::{Notify, mpsc, oneshot};

/// Commands that may wait for a worker. Each may have a frame of 64 KiB.
pub(crate) const MAX_COMMANDS: usize = 256;

/// Reports of a worker that may wait for the agent.
pub(crate) const MAX_REPORTS: usize = 4096;

/// Packets of one port that may wait for a controller, for each worker. A port with more of them
/// leaves the room of the ring to others.
pub(crate) const MAX_PACKET_INS: usize = 64;

/// A command of the agent.
pub(crate) enum Command {
    /// New ports, with the worker's queue of each. The worker receives from none of them before
    /// it can send to all.
    Add(Vec<(PortNo, Box<dyn Queue>)>),
    /// The worker closes its queue of a port.
    Remove(PortNo),
    /// A packet of a controller.
    Execute(Job),
    /// The worker reports the frames of a port (`None`: of all ports), or of no port any more.
    Capture(Option<Option<PortNo>>),
    /// The worker sends the state of its caches.
    Status(oneshot::Sender<Option<CacheStatus>>),
    /// The worker sends a part of the list of its megaflows.
    Megaflows(MegaflowPlace, oneshot::Sender<MegaflowPart>),
    /// The worker sends a copy of the next packet that it receives from a port, if the channel has
    /// room.
    Next(PortNo, mpsc::Sender<Packet>),
    /// The worker ends.
    Stop,
}

/// A report of a worker.
pub(crate) enum Report {
    /// A packet for the controllers.
    PacketIn(PacketInReport),
    /// The worker has carried out the job with this number.
    JobDone(u64),
    /// The queue of a port gave an error and is closed.
    PortFailed(PortNo, io::Error),
    /// A frame of a captured port.
    Captured(CapturedFrame),
}

/// A packet for the controllers.
pub(crate) struct PacketInReport {
    pub(crate) reason: PacketInReason,
    pub(crate) max_len: u16,
    pub(crate) table: TableId,
    pub(crate) cookie: u64,
    pub(crate) packet: Box<Packet>,
    /// Free again when the packet is sent or dropped.
    pub(crate) _place: WaitingPlace,
}

/// Captured frames of a worker that may wait for their reader.
pub(crate) const MAX_CAPTURED: usize = 256;

/// The direction of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Received,
    Sent,
}

/// A frame of a captured port.
pub(crate) struct CapturedFrame {
    pub(crate) port: PortNo,
    pub(crate) direction: Direction,
    pub(crate) time: Duration,
    pub(crate) bytes: Vec<u8>,
    /// Free again when the frame is written or dropped.
    pub(crate) _place: WaitingPlace,
}

/// The packets that wait for a controller or for the reader of a capture.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

/// A place of [`Waiting`]. Dropping it frees the place.
pub(crate) struct WaitingPlace(Arc<AtomicUsize>);

impl Waiting {
    /// Takes a place, unless `limit` places are taken. Only one thread may call this.
    pub(crate) fn take(&self, limit: usize) -> Option<WaitingPlace> {
        if self.0.load(Ordering::Relaxed) >= limit {
            return None;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(WaitingPlace(Arc::clone(&self.0)))
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The worker's end of its reports.
pub(crate) struct Reports {
    ring: Producer<Report>,
    /// Reports that must arrive, while the ring is full. Each answers a command or closes a
    /// queue, so there are at most as many as commands and ports.
    backlog: VecDeque<Report>,
    /// Wakes the agent.
    agent: Arc<Notify>,
    is_new: bool,
}

impl Reports {
    pub(crate) fn new(ring: Producer<Report>, agent: Arc<Notify>) -> Reports {
        Reports {
            ring,
            backlog: VecDeque::new(),
            agent,
            is_new: false,
        }
    }

    /// Reports an event. Returns false if the ring is full; then the report is dropped.
    pub(crate) fn offer(&mut self, report: Report) -> bool {
        self.is_new = true;
        self.ring.push(report).is_ok()
    }

    /// Reports an event now or later.
    pub(crate) fn insist(&mut self, report: Report) {
        self.is_new = true;
        self.backlog.push_back(report);
    }

    /// Hands over what waits, and wakes the agent if there is anything new. Returns false if
    /// reports still wait.
    pub(crate) fn hand_over(&mut self) -> bool {
        while let Some(report) = self.backlog.pop_front() {
            if let Err(PushError::Full(report)) = self.ring.push(report) {
                self.backlog.push_front(report);
                break;
            }
        }
        if std::mem::take(&mut self.is_new) {
            self.agent.notify_one();
        }
        self.backlog.is_empty()
    }
}

/// The agent's end of the rings of a worker.
pub(crate) struct AgentEnd {
    commands: Producer<Command>,
    reports: Consumer<Report>,
    /// Commands that wait for room in the ring.
    waiting: VecDeque<Command>,
}

impl AgentEnd {
    pub(crate) fn new(commands: Producer<Command>, reports: Consumer<Report>) -> AgentEnd {
        AgentEnd {
            commands,
            reports,
            waiting: VecDeque::new(),
        }
    }

    /// Appends a command. [`hand_over`](Self::hand_over) gives it to the worker.
    pub(crate) fn command(&mut self, command: Command) {
        self.waiting.push_back(command);
    }

    /// The commands that wait for room in the ring.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives commands to the worker, as many as the ring has room for. Returns true if there were
    /// any.
    pub(crate) fn hand_over(&mut self) -> bool {
        let mut is_any = false;
        while let Some(command) = self.waiting.pop_front() {
            if let Err(PushError::Full(command)) = self.commands.push(command) {
                self.waiting.push_front(command);
                break;
            }
            is_any = true;
        }
        is_any
    }

    pub(crate) fn report(&mut self) -> Option<Report> {
        self.reports.pop().ok()
    }

    /// True if the worker has ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reports.is_abandoned()
    }
}
