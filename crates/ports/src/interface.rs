//! Network interfaces, by packet sockets of Linux: a ring for received frames, and many frames
//! in one system call for sent frames.
//!
//! Frames that are longer than a slot of the ring, such as frames to be cut into segments, wait
//! in the socket. Their slots say so, which keeps the order.
//!
//! With several queues, the sockets form a group, and the kernel spreads flows over it by a hash.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use classyard_datapath::Packet;
use classyard_datapath::packet::SegmentKind;

use crate::MAX_FRAME_BYTES;
use crate::counters::{Counters, QueueCounts};
use crate::error::OpenError;
use crate::ethernet::{self, TAG_BYTES, TYPE_PLACE};
use crate::kernel_interface::KernelInterface;
use crate::outgoing::Outgoing;
use crate::queue::{Queue, Sent};
use crate::room::{fits, packet_fits};
use crate::software::Software;
use crate::sys::packet_socket::{LongFrame, PacketSocket};
use crate::sys::ring::Ring;
use crate::virtio::{self, Header};

/// The bytes of all rings of a port.
const PORT_RING_BYTES: usize = 4 << 20;

/// Calls of `receive` without a frame from one look for errors of the socket to the next. A look
/// is a system call.
const CALLS_BETWEEN_LOOKS: u32 = 64;

/// The capability that packet sockets need.
const NEEDED_CAPABILITY: &str = "cap_net_raw";

/// Opens the queues of an interface, one for each of `counters`.
pub(crate) fn open(
    name: &str,
    interface: &KernelInterface,
    counters: &[Arc<Counters>],
) -> Result<Vec<Box<dyn Queue>>, OpenError> {
    let failed =
        |operation| move |error| OpenError::of_interface(name, operation, NEEDED_CAPABILITY, error);
    let frame_bytes = interface.mtu() as usize + ethernet::HEADER_BYTES + TAG_BYTES;
    let ring_bytes = PORT_RING_BYTES / counters.len().max(1);
    let mut queues = Vec::new();
    for counters in counters {
        let socket = PacketSocket::open().map_err(failed("open a packet socket"))?;
        let options = socket.set_options();
        options.map_err(failed("set the options of a packet socket"))?;
        let ring = Ring::open(&socket, ring_bytes, frame_bytes);
        let ring = ring.map_err(failed("allocate the ring for received frames"))?;
        let bound = socket.bind(interface.index());
        bound.map_err(failed("receive from it"))?;
        let promiscuous = socket.make_promiscuous(interface.index());
        promiscuous.map_err(failed("receive frames to all addresses"))?;
        queues.push(InterfaceQueue {
            socket,
            ring,
            long: LongFrame::new(MAX_FRAME_BYTES),
            tagged: Vec::new(),
            outgoing: Outgoing::default(),
            software: Software::default(),
            interface: interface.clone(),
            counters: Arc::clone(counters),
            pending: None,
            empty_calls: 0,
            is_down: false,
            takes_udp_segments: true,
        });
    }
    if queues.len() > 1 {
        let mut group = None;
        for queue in &queues {
            let joined = queue.socket.share(group);
            group = Some(joined.map_err(failed("spread its frames over several queues"))?);
        }
        // Until all were in the group, each socket received all frames.
        queues.iter_mut().for_each(InterfaceQueue::discard);
    }
    let boxed = queues.into_iter();
    Ok(boxed
        .map(|queue| Box::new(queue) as Box<dyn Queue>)
        .collect())
}

/// A queue of an interface.
#[derive(Debug)]
struct InterfaceQueue {
    socket: PacketSocket,
    ring: Ring,
    long: LongFrame,
    /// A frame whose tag is put back.
    tagged: Vec<u8>,
    outgoing: Outgoing,
    software: Software,
    interface: KernelInterface,
    counters: Arc<Counters>,
    /// An error that the next call returns.
    pending: Option<io::Error>,
    /// Calls of `receive` without a frame since the last look for errors.
    empty_calls: u32,
    /// True if the interface was down when the socket was looked at last.
    is_down: bool,
    /// False if the kernel has refused segments of UDP.
    takes_udp_segments: bool,
}

impl Queue for InterfaceQueue {
    fn receive(&mut self, packets: &mut [Packet], in_port: u32) -> io::Result<usize> {
        let mut counts = QueueCounts::default();
        let mut filled = 0;
        while let Some(packet) = packets.get_mut(filled) {
            match self.receive_one(packet, in_port, &mut counts) {
                Some(true) => filled += 1,
                Some(false) => {}
                None => break,
            }
        }
        self.counters.add(&counts);
        if filled > 0 {
            self.is_down = false;
            return Ok(filled);
        }
        if let Some(error) = self.pending.take() {
            return Err(self.classified(error));
        }
        self.empty_calls += 1;
        if self.empty_calls == CALLS_BETWEEN_LOOKS {
            self.empty_calls = 0;
            self.look()?;
        }
        Ok(0)
    }

    fn send(&mut self, packet: &Packet) -> Sent {
        let mtu = self.interface.mtu();
        if !packet_fits(packet, mtu) {
            self.counters.add(&QueueCounts {
                sent_too_long: 1,
                ..QueueCounts::default()
            });
            return Sent::TooLong;
        }
        let offload = packet.offload();
        let kind = offload.segmentation.map(|cut| cut.kind);
        let is_taken = kind != Some(SegmentKind::Udp) || self.takes_udp_segments;
        match virtio::write(&offload, packet.bytes()) {
            Some(header) if is_taken => self.push(&header, packet.bytes(), kind),
            _ => {
                let mut software = std::mem::take(&mut self.software);
                software.frames(packet, |frame| self.push_finished(frame, mtu));
                self.software = software;
            }
        }
        Sent::Queued
    }

    fn flush(&mut self) -> io::Result<()> {
        self.transmit();
        match self.pending.take() {
            Some(error) => Err(self.classified(error)),
            None => Ok(()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn update_counts(&mut self) {
        if let Ok(drops) = self.socket.drops() {
            self.counters.add(&QueueCounts {
                missed: u64::from(drops),
                ..QueueCounts::default()
            });
        }
        // If the interface has vanished, sending and receiving say so.
        let _ = self.interface.update_mtu();
    }
}

impl InterfaceQueue {
    /// Receives the next frame. Returns `None` if there is none, and false if the frame was
    /// dropped.
    #[inline]
    fn receive_one(
        &mut self,
        packet: &mut Packet,
        in_port: u32,
        counts: &mut QueueCounts,
    ) -> Option<bool> {
        let slot = self.ring.next()?;
        if slot.is_in_socket() {
            drop(slot);
            return Some(self.receive_long(packet, in_port, counts));
        }
        if slot.is_outgoing() {
            return Some(false);
        }
        if slot.is_cut_off() {
            // The socket had no room for the rest.
            counts.missed += 1;
            return Some(false);
        }
        let Some((header, frame)) = slot.frame() else {
            counts.received_invalid += 1;
            return Some(false);
        };
        let Some(tag) = slot.tag() else {
            return Some(take(&header, frame, 0, packet, in_port, counts));
        };
        let Some((addresses, rest)) = frame.split_at_checked(TYPE_PLACE) else {
            counts.received_invalid += 1;
            return Some(false);
        };
        self.tagged.clear();
        for part in [addresses, &tag, rest] {
            self.tagged.extend_from_slice(part);
        }
        Some(take(
            &header,
            &self.tagged,
            TAG_BYTES,
            packet,
            in_port,
            counts,
        ))
    }

    /// Receives a frame that is longer than a slot. Returns false if it was dropped.
    fn receive_long(
        &mut self,
        packet: &mut Packet,
        in_port: u32,
        counts: &mut QueueCounts,
    ) -> bool {
        let mut received = self.socket.receive(&mut self.long);
        if let Err(error) = received {
            // The error is of the interface, and hides the frame once.
            self.pending.get_or_insert(error);
            received = self.socket.receive(&mut self.long);
        }
        let Ok(Some(long)) = received else {
            counts.missed += 1;
            return false;
        };
        if long.is_outgoing {
            return false;
        }
        let Some(frame) = long.frame else {
            counts.received_too_long += 1;
            return false;
        };
        take(&long.header, frame, long.tag_bytes, packet, in_port, counts)
    }

    /// Drops the frames that have arrived.
    fn discard(&mut self) {
        let (mut packet, mut counts) = (Packet::default(), QueueCounts::default());
        while self.receive_one(&mut packet, 0, &mut counts).is_some() {}
        let _ = self.socket.drops();
    }

    /// Adds a frame for the next flush.
    fn push(&mut self, header: &Header, frame: &[u8], kind: Option<SegmentKind>) {
        if self.outgoing.is_full() {
            self.transmit();
        }
        self.outgoing.push(header, frame, kind);
    }

    /// Adds a frame without work left, if it fits.
    fn push_finished(&mut self, frame: &[u8], mtu: u32) {
        if fits(frame, mtu) {
            self.push(&Header::default(), frame, None);
        } else {
            self.counters.add(&QueueCounts {
                sent_too_long: 1,
                ..QueueCounts::default()
            });
        }
    }

    /// Sends the frames that wait. An error is kept for the next flush.
    fn transmit(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let outcome = self.outgoing.send(&self.socket);
        self.counters.add(&outcome.counts);
        self.takes_udp_segments &= !outcome.refused_udp_segments;
        if let Err(error) = outcome.result {
            self.pending.get_or_insert(error);
        }
    }

    /// Looks for an error of the socket: the interface went down, or vanished.
    fn look(&mut self) -> io::Result<()> {
        if let Err(error) = self.socket.take_error() {
            return Err(self.classified(error));
        }
        if self.is_down && self.socket.has_lost_interface() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        Ok(())
    }

    /// Returns an error of the socket as the caller gets it. The kernel says that the interface
    /// is down if it vanished as well.
    fn classified(&mut self, error: io::Error) -> io::Error {
        let is_gone = error.raw_os_error() == Some(libc::ENXIO);
        self.is_down |= error.kind() == io::ErrorKind::NetworkDown;
        if is_gone || self.is_down && self.socket.has_lost_interface() {
            return io::Error::from_raw_os_error(libc::ENODEV);
        }
        error
    }
}

/// Receives a frame with its header into a packet. Returns false if the frame was dropped.
#[inline]
fn take(
    header: &Header,
    frame: &[u8],
    tag_bytes: usize,
    packet: &mut Packet,
    in_port: u32,
    counts: &mut QueueCounts,
) -> bool {
    let Ok(offload) = virtio::read(header, frame, tag_bytes) else {
        counts.received_invalid += 1;
        return false;
    };
    packet.receive_offloaded(frame, in_port, offload);
    counts.received_packets += 1;
    counts.received_bytes += frame.len() as u64;
    true
}
