//! Ports in this process, for tests and demonstrations.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use classyard_datapath::Packet;
use classyard_datapath::packet::Offload;

use crate::counters::{Counters, QueueCounts};
use crate::queue::{Queue, Sent};
use crate::sys::event::Event;

/// The maximum number of frames that wait in a direction: for each queue, and for the peer.
const MAX_FRAMES: usize = 4_096;

/// A frame and the work that is left on it.
type MemoryFrame = (Vec<u8>, Offload);

/// The other end of a memory device. Clones are of the same device.
#[derive(Clone, Debug)]
pub struct MemoryPeer(Arc<Shared>);

/// The frames of a device.
#[derive(Debug)]
struct Shared {
    inputs: Vec<Input>,
    output: Mutex<VecDeque<MemoryFrame>>,
    is_up: AtomicBool,
}

/// Frames to a queue.
#[derive(Debug)]
struct Input {
    waiting: Mutex<Waiting>,
    /// Set while frames wait.
    event: Event,
}

#[derive(Debug, Default)]
struct Waiting {
    frames: VecDeque<MemoryFrame>,
    /// Frames that found no room.
    missed: u64,
    /// Buffers of frames that were received, to be filled again.
    spare: Vec<Vec<u8>>,
}

impl MemoryPeer {
    /// Sends a frame to a queue of the device. Returns false if the frame was dropped: there is
    /// no such queue, the link is down, or 4,096 frames wait. The last case counts as missed.
    #[must_use]
    pub fn send(&self, queue: usize, frame: &[u8], offload: Offload) -> bool {
        let Some(input) = self.0.inputs.get(queue) else {
            return false;
        };
        if !self.0.is_up() {
            return false;
        }
        let mut waiting = lock(&input.waiting);
        if waiting.frames.len() >= MAX_FRAMES {
            waiting.missed += 1;
            return false;
        }
        let mut bytes = waiting.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        waiting.frames.push_back((bytes, offload));
        if waiting.frames.len() == 1 {
            input.event.set();
        }
        true
    }

    /// Returns the next frame that a queue of the device sent, and the work that is left on it.
    #[must_use]
    pub fn receive(&self) -> Option<(Vec<u8>, Offload)> {
        lock(&self.0.output).pop_front()
    }

    /// Switches the link on or off. Frames in both directions are dropped while it is off.
    pub fn set_link(&self, is_up: bool) {
        self.0.is_up.store(is_up, Ordering::Relaxed);
    }

    /// True if the link is on.
    pub(crate) fn is_up(&self) -> bool {
        self.0.is_up()
    }
}

impl Shared {
    /// True if the link is up.
    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }
}

/// Opens a memory device with a queue for each of `counters`.
///
/// # Errors
/// The system has no more descriptors.
pub(crate) fn open(counters: &[Arc<Counters>]) -> io::Result<(Vec<Box<dyn Queue>>, MemoryPeer)> {
    let mut inputs = Vec::new();
    for _ in counters {
        inputs.push(Input {
            waiting: Mutex::default(),
            event: Event::new()?,
        });
    }
    let shared = Arc::new(Shared {
        inputs,
        output: Mutex::default(),
        is_up: AtomicBool::new(true),
    });
    let mut queues: Vec<Box<dyn Queue>> = Vec::new();
    for (number, counters) in counters.iter().enumerate() {
        queues.push(Box::new(MemoryQueue {
            shared: Arc::clone(&shared),
            number,
            taken: Vec::new(),
            outgoing: Vec::new(),
            counters: Arc::clone(counters),
        }));
    }
    Ok((queues, MemoryPeer(shared)))
}

/// A queue of a memory device.
#[derive(Debug)]
struct MemoryQueue {
    shared: Arc<Shared>,
    number: usize,
    /// Frames that are being received.
    taken: Vec<MemoryFrame>,
    /// Frames that the next flush sends.
    outgoing: Vec<MemoryFrame>,
    counters: Arc<Counters>,
}

impl Queue for MemoryQueue {
    fn receive(&mut self, packets: &mut [Packet], in_port: u32) -> io::Result<usize> {
        let mut counts = QueueCounts::default();
        let input = &self.shared.inputs[self.number];
        let mut waiting = lock(&input.waiting);
        counts.missed = std::mem::take(&mut waiting.missed);
        let received = self.taken.drain(..).map(|(bytes, _)| bytes);
        waiting.spare.extend(received);
        let count = waiting.frames.len().min(packets.len());
        self.taken.extend(waiting.frames.drain(..count));
        if count > 0 && waiting.frames.is_empty() {
            input.event.clear();
        }
        drop(waiting);
        for (packet, (bytes, offload)) in packets.iter_mut().zip(&self.taken) {
            packet.receive_offloaded(bytes, in_port, *offload);
            counts.received_packets += 1;
            counts.received_bytes += bytes.len() as u64;
        }
        self.counters.add(&counts);
        Ok(count)
    }

    fn send(&mut self, packet: &Packet) -> Sent {
        if self.outgoing.len() >= MAX_FRAMES {
            self.counters.add(&QueueCounts {
                no_room: 1,
                ..QueueCounts::default()
            });
            return Sent::NoRoom;
        }
        let frame = (packet.bytes().to_vec(), packet.offload());
        self.outgoing.push(frame);
        Sent::Queued
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let mut counts = QueueCounts::default();
        if !self.shared.is_up() {
            counts.refused = self.outgoing.len() as u64;
            self.outgoing.clear();
            self.counters.add(&counts);
            return Err(io::ErrorKind::NetworkDown.into());
        }
        let mut output = lock(&self.shared.output);
        for frame in self.outgoing.drain(..) {
            if output.len() < MAX_FRAMES {
                counts.sent_packets += 1;
                counts.sent_bytes += frame.0.len() as u64;
                output.push_back(frame);
            } else {
                counts.no_room += 1;
            }
        }
        drop(output);
        self.counters.add(&counts);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.inputs[self.number].event.as_fd())
    }

    fn update_counts(&mut self) {
        let mut waiting = lock(&self.shared.inputs[self.number].waiting);
        let missed = std::mem::take(&mut waiting.missed);
        drop(waiting);
        self.counters.add(&QueueCounts {
            missed,
            ..QueueCounts::default()
        });
    }
}

/// Locks a mutex. No panic can leave its contents half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
