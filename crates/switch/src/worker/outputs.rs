//! The queues of all ports of a worker: where the pipeline sends packets.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{PacketInReason, Sink};
use classyard_datapath::{Field, Packet, PortNo};
use classyard_ports::Queue;
use tokio::sync::mpsc;

use super::channel::{
    CapturedFrame, Direction, MAX_CAPTURED, MAX_PACKET_INS, PacketInReport, Report, Reports,
    Waiting,
};
use super::counters::WorkerCounters;

/// Ports with numbers below this are found in an array.
const NEAR_PORTS: usize = 1024;

/// The queues of a worker.
pub(super) struct Outputs {
    queues: Vec<PortQueue>,
    places: Places,
    /// The queues that have frames to flush.
    unflushed: Vec<usize>,
    /// Packets for controllers that came from no port of the switch, such as packet-outs.
    other_waiting: Waiting,
    /// The captured port; the inner `None` stands for all ports.
    captured: Option<Option<PortNo>>,
    waiting_captured: Waiting,
    /// Ports whose next packet somebody awaits.
    awaited: Vec<(PortNo, mpsc::Sender<Packet>)>,
    /// The time of the present vector.
    pub(super) now: Duration,
    pub(super) reports: Reports,
    counters: Arc<WorkerCounters>,
}

struct PortQueue {
    port: PortNo,
    queue: Box<dyn Queue>,
    waiting: Waiting,
    is_unflushed: bool,
}

/// The places of ports in the list of queues.
#[derive(Default)]
struct Places {
    /// Places of ports with low numbers, indexed by number.
    near: Vec<Option<usize>>,
    far: HashMap<PortNo, usize>,
}

impl Places {
    fn of<'q>(queues: impl Iterator<Item = &'q PortQueue>) -> Places {
        let mut places = Places::default();
        for (place, queue) in queues.enumerate() {
            let number = queue.port.0 as usize;
            if number >= NEAR_PORTS {
                places.far.insert(queue.port, place);
                continue;
            }
            if places.near.len() <= number {
                places.near.resize(number + 1, None);
            }
            places.near[number] = Some(place);
        }
        places
    }

    fn get(&self, port: PortNo) -> Option<usize> {
        match self.near.get(port.0 as usize) {
            Some(place) => *place,
            None => self.far.get(&port).copied(),
        }
    }
}

impl Outputs {
    pub(super) fn new(reports: Reports, counters: Arc<WorkerCounters>) -> Outputs {
        Outputs {
            queues: Vec::new(),
            places: Places::default(),
            unflushed: Vec::new(),
            other_waiting: Waiting::default(),
            captured: None,
            waiting_captured: Waiting::default(),
            awaited: Vec::new(),
            now: Duration::ZERO,
            reports,
            counters,
        }
    }

    /// Adds the queue of a port, in place of an earlier one.
    pub(super) fn add(&mut self, port: PortNo, queue: Box<dyn Queue>) {
        self.remove(port);
        self.queues.push(PortQueue {
            port,
            queue,
            waiting: Waiting::default(),
            is_unflushed: false,
        });
        self.places = Places::of(self.queues.iter());
    }

    /// Closes the queue of a port, after a flush of all queues.
    pub(super) fn remove(&mut self, port: PortNo) {
        self.flush();
        self.queues.retain(|queue| queue.port != port);
        self.places = Places::of(self.queues.iter());
    }

    pub(super) fn capture(&mut self, captured: Option<Option<PortNo>>) {
        self.captured = captured;
    }

    /// Sends a copy of the next packet of a port to `asker`.
    pub(super) fn await_packet(&mut self, port: PortNo, asker: mpsc::Sender<Packet>) {
        self.awaited.retain(|(_, asker)| !asker.is_closed());
        self.awaited.push((port, asker));
    }

    /// Sends copies of a packet of a port to all who await one.
    fn send_awaited(&mut self, port: PortNo, packet: &Packet) {
        self.awaited.retain(|(awaited, asker)| {
            if *awaited == port {
                // Another worker may have sent a packet, or the asker has gone.
                let _late = asker.try_send(packet.clone());
            }
            *awaited != port
        });
    }

    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Receives from the queue at a place. Returns the number of packets.
    pub(super) fn receive(&mut self, place: usize, packets: &mut [Packet]) -> usize {
        let Some(PortQueue { port, queue, .. }) = self.queues.get_mut(place) else {
            return 0;
        };
        let port = *port;
        match queue.receive(packets, port.0) {
            Ok(received) => {
                if self.captures(port) {
                    for packet in &packets[..received] {
                        self.report_frame(port, Direction::Received, packet);
                    }
                }
                if !self.awaited.is_empty() && received > 0 {
                    self.send_awaited(port, &packets[0]);
                }
                received
            }
            // The interface is down, and the queue works again when it is up.
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => 0,
            Err(error) => {
                self.fail(port, error);
                0
            }
        }
    }

    /// Sends what the queues hold.
    pub(super) fn flush(&mut self) {
        let mut failed = Vec::new();
        for place in self.unflushed.drain(..) {
            let queue = &mut self.queues[place];
            queue.is_unflushed = false;
            if let Err(error) = queue.queue.flush()
                && error.kind() != io::ErrorKind::NetworkDown
            {
                failed.push((queue.port, error));
            }
        }
        for (port, error) in failed {
            self.fail(port, error);
        }
    }

    pub(super) fn update_counts(&mut self) {
        for queue in &mut self.queues {
            queue.queue.update_counts();
        }
    }

    /// The descriptors of the queues that have one.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues
            .iter()
            .filter_map(|queue| queue.queue.descriptor())
    }

    /// True if each queue has a descriptor.
    pub(super) fn can_sleep(&self) -> bool {
        self.descriptors().count() == self.queues.len()
    }

    /// Closes a queue that gave an error.
    fn fail(&mut self, port: PortNo, error: io::Error) {
        self.remove(port);
        self.reports.insist(Report::PortFailed(port, error));
    }

    fn captures(&self, port: PortNo) -> bool {
        self.captured
            .is_some_and(|captured| captured.is_none_or(|captured| captured == port))
    }

    fn report_frame(&mut self, port: PortNo, direction: Direction, packet: &Packet) {
        let place = self.waiting_captured.take(MAX_CAPTURED);
        let frame = place.map(|place| CapturedFrame {
            port,
            direction,
            time: self.now,
            bytes: packet.bytes().to_vec(),
            _place: place,
        });
        if !frame.is_some_and(|frame| self.reports.offer(Report::Captured(frame))) {
            self.counters.capture_full.add(1);
        }
    }

    /// Returns the packets that wait for a controller, of the port that received a packet.
    fn waiting(&self, packet: &Packet) -> &Waiting {
        let port = u32::try_from(packet.key().get(Field::InPort)).expect("32 bits");
        match self.places.get(PortNo(port)) {
            Some(place) => &self.queues[place].waiting,
            None => &self.other_waiting,
        }
    }
}

impl Sink for Outputs {
    fn send(&mut self, port: PortNo, _queue: Option<u32>, packet: &Packet) {
        let Some(place) = self.places.get(port) else {
            self.counters.no_port.add(1);
            return;
        };
        let queue = &mut self.queues[place];
        queue.queue.send(packet);
        if !queue.is_unflushed {
            queue.is_unflushed = true;
            self.unflushed.push(place);
        }
        if self.captures(port) {
            self.report_frame(port, Direction::Sent, packet);
        }
    }

    /// Reports a packet as whole frames: with its checksum, and cut into segments.
    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        (table, cookie): (TableId, u64),
        packet: &Packet,
    ) {
        let mut frame = Vec::new();
        let mut segments = packet.segments();
        loop {
            let whole = match &mut segments {
                Some(segments) => match segments.next_into(&mut frame) {
                    true => packet.with_frame(&frame),
                    false => return,
                },
                None => {
                    let mut whole = packet.clone();
                    whole.finish_checksum();
                    whole
                }
            };
            let report = self.waiting(packet).take(MAX_PACKET_INS).map(|place| {
                Report::PacketIn(PacketInReport {
                    reason,
                    max_len,
                    table,
                    cookie,
                    packet: Box::new(whole),
                    _place: place,
                })
            });
            if !report.is_some_and(|report| self.reports.offer(report)) {
                self.counters.controller_full.add(1);
            }
            if segments.is_none() {
                return;
            }
        }
    }
}
