//! Captures: reads packets from pcap and pcapng files, and writes pcap files.
//!
//! [`read_capture_file`], [`read_capture_from`] and [`read_capture`] read
//!
//! * pcap in either byte order, with micro- or nanosecond timestamps;
//! * pcapng, with sections of either byte order, several interfaces, each with its own
//!   link type and timestamp resolution, and enhanced, simple and obsolete packet
//!   blocks; other blocks are skipped and counted;
//! * each of these compressed with gzip.
//!
//! The first bytes of a file determine its format; its name does not matter.
//!
//! # Damaged files
//!
//! Captures are often cut off because a disk was full or a program was killed. A file
//! is rejected only if not even its header can be read. Otherwise the [`Capture`] has
//! every packet before the damage, and its [`Warning`]s report the byte at which
//! reading ended, the number of packets before it, and the missing item. A pcapng block
//! with malformed content is skipped with a warning, and reading continues after it.
//! # Memory
//!
//! A [`CaptureReader`] returns one packet after the other and holds a buffer of 64 KiB,
//! or as much as the longest packet needs. It reads streams of any length, including
//! endless streams. A [`Capture`] holds all packets: their captured bytes plus 32 bytes
//! for each packet.
//!
//! The lengths in a file never cause an allocation by themselves: memory grows with the
//! bytes that arrive. [`ReadOptions`] limit the bytes, the packets and the length of a
//! packet; a longer packet is skipped with a warning. [`crate::limits`] has the
//! defaults.
//!
//! # Other links
//!
//! [`ethernet_frame`] adds an Ethernet header to a packet of another link type, such as
//! packets of `tcpdump -i any`, for programs that accept only Ethernet.
//!
//! # Headers
//!
//! [`Capture::classify_input`] parses all packets into the headers that a policy needs,
//! and counts packets that fit no part of the policy. [`HeaderExtractor`] does this
//! packet by packet. The module [`packet`](crate::packet) describes the headers of
//! fragments, ICMP and the like.

use std::collections::BTreeMap;

use crate::limits::{self, FileLimit};
use crate::packet::{LinkType, Parsed, parse};

mod ethernet;
mod headers;
mod input;
mod pcap;
mod pcapng;
mod read;
mod state;
mod warning;
mod write;

pub mod frame;

#[cfg(test)]
mod tests;

pub use ethernet::{NoEthernetFrame, ethernet_frame};
pub use headers::{CaptureTrace, HeaderExtractor, HeadersError};
pub use read::{CaptureReader, Record, read_capture, read_capture_file, read_capture_from};
pub use warning::{CaptureProblem, Warning};
pub use write::{PcapWriter, TraceReport, WriteError, write_trace};

/// Options for reading a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The maximum number of packets; one more is an error.
    pub limit: usize,
    /// Read this number of packets and ignore the rest, with a warning.
    pub first: Option<usize>,
    /// The maximum number of bytes, counted after decompression; one more is an error.
    pub max_bytes: u64,
    /// The maximum captured bytes of a packet; a longer packet is skipped with a
    /// warning.
    pub max_record: u32,
}

impl ReadOptions {
    /// For captures that are held in memory: all packets, within the default
    /// [`limits`].
    pub const DEFAULT: ReadOptions = ReadOptions {
        limit: limits::MAX_ENTRIES,
        first: None,
        max_bytes: FileLimit::CAPTURE.bytes,
        max_record: limits::MAX_RECORD,
    };

    /// For captures that are streamed ([`CaptureReader`]): any number of packets, each
    /// of at most [`limits::MAX_RECORD`] bytes.
    pub const STREAMED: ReadOptions = ReadOptions {
        limit: usize::MAX,
        max_bytes: u64::MAX,
        ..ReadOptions::DEFAULT
    };

    /// Returns these options with at most `limit` packets.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns these options with the `first` packets only.
    #[must_use]
    pub const fn with_first(mut self, first: Option<usize>) -> Self {
        self.first = first;
        self
    }

    /// Returns these options with at most `max_bytes` bytes of a capture.
    #[must_use]
    pub const fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Returns these options with at most `max_record` captured bytes of a packet.
    #[must_use]
    pub const fn with_max_record(mut self, max_record: u32) -> Self {
        self.max_record = max_record;
        self
    }
}

impl Default for ReadOptions {
    /// [`ReadOptions::DEFAULT`].
    fn default() -> ReadOptions {
        ReadOptions::DEFAULT
    }
}

impl From<&crate::diagnostic::ReadOptions> for ReadOptions {
    /// Takes over the limits.
    fn from(options: &crate::diagnostic::ReadOptions) -> ReadOptions {
        ReadOptions {
            limit: options.limit,
            max_bytes: options.max_bytes,
            ..ReadOptions::default()
        }
    }
}

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format.
    Pcap,
    /// The block format.
    Pcapng,
}

/// An interface that packets were captured on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kind of header that frames start with.
    pub link: LinkType,
    /// The maximum number of bytes kept of each packet; 0 for no limit.
    pub snap_length: u32,
    /// The interface's name, if the file has it: its first 255 bytes.
    pub name: Option<String>,
}

/// One captured packet; [`Capture::frame`] has its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    offset: u64,
    captured: u32,
    /// The packet's length on the wire in bytes.
    pub original_length: u32,
    /// The capture time in nanoseconds since 1970; 0 if the file does not have it
    /// (simple packet blocks).
    pub timestamp_ns: u64,
    /// The kind of header that the frame starts with.
    pub link: LinkType,
    /// Its interface, as a position in [`Capture::interfaces`].
    pub interface: u32,
}

impl Packet {
    /// Returns the number of bytes of the packet in the capture.
    #[must_use]
    pub fn captured_length(&self) -> u32 {
        self.captured
    }
}

/// The packets of a capture file.
#[derive(Clone, Debug)]
pub struct Capture {
    source: String,
    format: Format,
    interfaces: Vec<Interface>,
    packets: Vec<Packet>,
    bytes: Vec<u8>,
    warnings: Vec<Warning>,
    more_warnings: u64,
    skipped_blocks: BTreeMap<u32, u64>,
    more_skipped_blocks: u64,
}

impl Capture {
    /// Returns the file's name.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the file's format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns all interfaces, in file order and across sections.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns all packets, in file order.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// Returns the first [`SHOWN`](crate::diagnostic::SHOWN) problems of the file.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the number of problems that [`warnings`](Self::warnings) omits.
    #[must_use]
    pub fn more_warnings(&self) -> u64 {
        self.more_warnings
    }

    /// Returns the pcapng block types that have no packets or are not supported, each
    /// with its number of blocks. The list has the first 256 such types.
    pub fn skipped_blocks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.skipped_blocks
            .iter()
            .map(|(&kind, &count)| (kind, count))
    }

    /// Returns the number of blocks of types that
    /// [`skipped_blocks`](Self::skipped_blocks) omits.
    #[must_use]
    pub fn more_skipped_blocks(&self) -> u64 {
        self.more_skipped_blocks
    }

    /// Returns the captured bytes of the packet at position `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[must_use]
    pub fn frame(&self, index: usize) -> &[u8] {
        self.bytes_of(&self.packets[index])
    }

    /// Iterates over all packets with their captured bytes, in file order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (&Packet, &[u8])> {
        self.packets
            .iter()
            .map(|packet| (packet, self.bytes_of(packet)))
    }

    /// Iterates over all packets, parsed, in file order.
    pub fn parsed(&self) -> impl ExactSizeIterator<Item = Parsed> + '_ {
        self.frames()
            .map(|(packet, frame)| parse(frame, packet.link))
    }

    fn bytes_of(&self, packet: &Packet) -> &[u8] {
        // The readers have checked that the bytes are present.
        usize::try_from(packet.offset)
            .ok()
            .and_then(|start| self.bytes.get(start..)?.get(..packet.captured as usize))
            .unwrap_or(&[])
    }
}
