//! Frames that wait to be sent by a packet socket.

use std::io;

use classyard_datapath::packet::SegmentKind;

use crate::counters::QueueCounts;
use crate::sys::packet_socket::{PacketSocket, SendBuffers};
use crate::virtio::{self, Header};

/// The maximum number of frames that wait.
const MAX_FRAMES: usize = 256;

/// Frames are sent when their bytes exceed this number.
const MAX_BYTES: usize = 256 << 10;

/// Frames that wait to be sent, each with its header in front.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    frames: Vec<WaitingFrame>,
    buffers: SendBuffers,
}

/// A frame that waits: its header and its bytes are before `end`.
#[derive(Clone, Copy, Debug)]
struct WaitingFrame {
    start: usize,
    end: usize,
    has_udp_segments: bool,
}

/// The outcome of sending.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: QueueCounts,
    /// The error of the device. The frames that were left are counted as refused.
    pub(crate) result: io::Result<()>,
    /// True if a frame with segments of UDP was refused: Linux before 6.2 has none.
    pub(crate) refused_udp_segments: bool,
}

impl Outgoing {
    /// True if no frame waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// True if the frames should be sent before another one is added.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= MAX_FRAMES || self.bytes.len() >= MAX_BYTES
    }

    /// Adds a frame.
    pub(crate) fn push(&mut self, header: &Header, frame: &[u8], kind: Option<SegmentKind>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(frame);
        self.frames.push(WaitingFrame {
            start,
            end: self.bytes.len(),
            has_udp_segments: kind == Some(SegmentKind::Udp),
        });
    }

    /// Sends all frames.
    ///
    /// A lack of room may pass while frames are sent, and the kernel may report that the
    /// interface was down earlier. So sending is tried again once. After that, a full socket
    /// drops all frames that are left, and a full device one frame.
    pub(crate) fn send(&mut self, socket: &PacketSocket) -> Outcome {
        let mut outcome = Outcome {
            counts: QueueCounts::default(),
            result: Ok(()),
            refused_udp_segments: false,
        };
        let counts = &mut outcome.counts;
        let (mut done, mut has_retried) = (0, false);
        while let Some(first) = self.frames.get(done) {
            let left = (self.frames.len() - done) as u64;
            let slices = self.frames[done..].iter();
            let slices = slices.map(|frame| &self.bytes[frame.start..frame.end]);
            let error = match socket.send(&mut self.buffers, slices) {
                Ok(sent) if sent > 0 => {
                    for frame in &self.frames[done..done + sent] {
                        counts.sent_packets += 1;
                        counts.sent_bytes +=
                            (frame.end - frame.start - virtio::HEADER_BYTES) as u64;
                    }
                    done += sent;
                    continue;
                }
                Ok(_) => io::ErrorKind::WriteZero.into(),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ENETDOWN)
                    if !has_retried =>
                {
                    has_retried = true;
                }
                Some(libc::EAGAIN | libc::ENOMEM) => {
                    counts.no_room += left;
                    break;
                }
                Some(libc::ENOBUFS) => {
                    counts.no_room += 1;
                    done += 1;
                }
                Some(libc::EINVAL | libc::EMSGSIZE) => {
                    counts.refused += 1;
                    outcome.refused_udp_segments |= first.has_udp_segments;
                    done += 1;
                }
                _ => {
                    counts.refused += left;
                    outcome.result = Err(error);
                    break;
                }
            }
        }
        self.bytes.clear();
        self.frames.clear();
        outcome
    }
}
