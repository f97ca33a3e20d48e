//! TAP devices: network interfaces of the host whose other end is a queue.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use classyard_datapath::Packet;
use classyard_datapath::packet::SegmentKind;
use rustix::io::{Errno, readv, writev};

use crate::MAX_FRAME_BYTES;
use crate::counters::{Counters, QueueCounts};
use crate::error::OpenError;
use crate::kernel_interface::KernelInterface;
use crate::queue::{Queue, Sent};
use crate::room::{fits, packet_fits};
use crate::software::Software;
use crate::sys::tun;
use crate::virtio::{self, Header};

/// The capability that TAP devices need.
const NEEDED_CAPABILITY: &str = "cap_net_admin";

/// Opens the queues of a TAP device, one for each of `counters`. A device that does not exist is
/// created and switched on.
pub(crate) fn open(
    name: &str,
    counters: &[Arc<Counters>],
) -> Result<(KernelInterface, Vec<Box<dyn Queue>>), OpenError> {
    let failed =
        |operation| move |error| OpenError::of_interface(name, operation, NEEDED_CAPABILITY, error);
    let existed = KernelInterface::find_any(name)?.is_some();
    let mut descriptors = Vec::new();
    for _ in counters {
        let descriptor = match tun::open_queue(name, true) {
            // The device was created with one queue.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && counters.len() == 1 => {
                tun::open_queue(name, false)
            }
            result => result,
        };
        descriptors.push(descriptor.map_err(|error| open_error(name, counters.len(), error))?);
    }
    let interface = KernelInterface::find(name)?;
    let mut queues: Vec<Box<dyn Queue>> = Vec::new();
    for (descriptor, counters) in descriptors.into_iter().zip(counters) {
        let udp = tun::accept_work(&descriptor);
        queues.push(Box::new(TapQueue {
            takes_udp_segments: udp.map_err(failed("leave checksums and segments to it"))?,
            descriptor,
            frame: vec![0; MAX_FRAME_BYTES].into(),
            software: Software::default(),
            interface: interface.clone(),
            counters: Arc::clone(counters),
            pending: None,
        }));
    }
    if !existed {
        interface.bring_up().map_err(failed("switch it on"))?;
    }
    Ok((interface, queues))
}

/// Returns the error for a queue that cannot be opened.
fn open_error(name: &str, queues: usize, error: io::Error) -> OpenError {
    let name_owned = || name.to_owned();
    match error.raw_os_error() {
        Some(libc::EBUSY) => OpenError::TapInUse { name: name_owned() },
        Some(libc::EINVAL) => OpenError::NotTap {
            name: name_owned(),
            queues,
        },
        Some(libc::ENOENT | libc::ENODEV) => OpenError::NoTun { name: name_owned() },
        _ => OpenError::of_interface(name, "open a TAP device", NEEDED_CAPABILITY, error),
    }
}

/// A queue of a TAP device. Frames are read and written one by one.
#[derive(Debug)]
struct TapQueue {
    descriptor: OwnedFd,
    /// A frame that is read.
    frame: Box<[u8]>,
    software: Software,
    interface: KernelInterface,
    counters: Arc<Counters>,
    /// An error that the next flush returns.
    pending: Option<io::Error>,
    takes_udp_segments: bool,
}

impl Queue for TapQueue {
    fn receive(&mut self, packets: &mut [Packet], in_port: u32) -> io::Result<usize> {
        let mut counts = QueueCounts::default();
        let (mut filled, mut result) = (0, Ok(()));
        while let Some(packet) = packets.get_mut(filled) {
            match self.receive_one(packet, in_port, &mut counts) {
                Ok(true) => filled += 1,
                Ok(false) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    result = Err(device_error(error));
                    break;
                }
            }
        }
        self.counters.add(&counts);
        // An error comes again, so it can wait until the frames are processed.
        if filled == 0 {
            result.map(|()| 0)
        } else {
            Ok(filled)
        }
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
        let header = virtio::write(&offload, packet.bytes()).filter(|_| is_taken);
        if let Some(header) = header {
            return self.write(&header, packet.bytes());
        }
        let mut software = std::mem::take(&mut self.software);
        let mut fate = Sent::Queued;
        software.frames(packet, |frame| {
            if fits(frame, mtu) {
                if self.write(&Header::default(), frame) == Sent::NoRoom {
                    fate = Sent::NoRoom;
                }
            } else {
                self.counters.add(&QueueCounts {
                    sent_too_long: 1,
                    ..QueueCounts::default()
                });
            }
        });
        self.software = software;
        fate
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pending.take().map_or(Ok(()), Err)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }

    fn update_counts(&mut self) {
        // If the device has vanished, sending and receiving say so.
        let _ = self.interface.update_mtu();
    }
}

impl TapQueue {
    /// Reads a frame. Returns false if it was dropped.
    fn receive_one(
        &mut self,
        packet: &mut Packet,
        in_port: u32,
        counts: &mut QueueCounts,
    ) -> Result<bool, Errno> {
        let mut header = Header::default();
        let mut parts = [
            IoSliceMut::new(&mut header),
            IoSliceMut::new(&mut self.frame),
        ];
        let length = readv(&self.descriptor, &mut parts)?.saturating_sub(virtio::HEADER_BYTES);
        let frame = self.frame.get(..length).filter(|frame| !frame.is_empty());
        let Some(frame) = frame else {
            counts.received_too_long += 1;
            return Ok(false);
        };
        let Ok(offload) = virtio::read(&header, frame, 0) else {
            counts.received_invalid += 1;
            return Ok(false);
        };
        packet.receive_offloaded(frame, in_port, offload);
        counts.received_packets += 1;
        counts.received_bytes += length as u64;
        Ok(true)
    }

    /// Writes a frame.
    fn write(&mut self, header: &Header, frame: &[u8]) -> Sent {
        let mut counts = QueueCounts::default();
        let parts = [IoSlice::new(header), IoSlice::new(frame)];
        let fate = loop {
            match writev(&self.descriptor, &parts) {
                Ok(_) => {
                    counts.sent_packets = 1;
                    counts.sent_bytes = frame.len() as u64;
                    break Sent::Queued;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => {
                    counts.no_room = 1;
                    break Sent::NoRoom;
                }
                Err(error) => {
                    counts.refused = 1;
                    if error != Errno::INVAL && error != Errno::MSGSIZE {
                        self.pending.get_or_insert(device_error(error));
                    }
                    break Sent::Queued;
                }
            }
        };
        self.counters.add(&counts);
        fate
    }
}

/// Returns an error of the device as the caller gets it: the kernel says EIO if the interface is
/// switched off, and EBADFD if it was deleted.
fn device_error(error: Errno) -> io::Error {
    match error {
        Errno::IO => io::ErrorKind::NetworkDown.into(),
        Errno::BADFD => Errno::NODEV.into(),
        error => error.into(),
    }
}
