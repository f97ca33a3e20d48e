//! Captures: packets out of pcap and pcapng files, and into pcap files.
//!
//! [`read_capture_file`], [`read_capture_from`] and [`read_capture`] read
//!
//! * pcap in either byte order, with micro- or nanosecond timestamps;
//! * pcapng, with sections of either byte order, several interfaces, each with
//!   its own link type and timestamp resolution, and enhanced, simple and
//!   obsolete packet blocks; other blocks are skipped and counted;
//! * each of these compressed with gzip.
//!
//! What a file is follows from its first bytes, never from its name.
//!
//! # Damaged files
//!
//! Captures are often cut off: a disk was full, a program was killed. A file is
//! refused only if not even its header can be read. Otherwise the [`Capture`]
//! has every packet before the damage, and its [`Warning`]s say at which byte
//! reading ended, after how many packets, and what was missing. A pcapng block
//! that is malformed inside is skipped with a warning; reading goes on behind
//! it.
//!
//! # Memory
//!
//! A [`CaptureReader`] gives one packet after the other and holds a buffer of
//! 64 KiB, or as much as the longest packet takes; it reads streams of any
//! length, also such that never end. A [`Capture`] holds all packets: their
//! captured bytes and 32 bytes for each.
//!
//! Lengths that a file claims never cause an allocation: memory grows with the
//! bytes that arrive. [`ReadOptions`] bound the bytes, the packets and the
//! length of a packet; a packet that is longer is skipped with a warning.
//! [`crate::limits`] has the defaults.
//!
//! # Other links
//!
//! [`ethernet_frame`] gives a packet of another link, such as `tcpdump -i any` captures
//! it, an Ethernet header, for programs that take Ethernet alone.
//!
//! # Headers
//!
//! [`Capture::classify_input`] parses all packets into the headers that a policy
//! needs and counts those that the policy has no part for; [`PacketHeaders`]
//! does so packet by packet. The rules for what
//! becomes of fragments, ICMP and the like are those of [`packet`](crate::packet).

use std::collections::BTreeMap;

use crate::limits::{self, FileLimit};
use crate::packet::{LinkType, Parsed, parse};

mod ethernet;
mod headers;
mod input;
mod pcap;
mod pcapng;
mod read;
mod warning;
mod write;

pub mod frame;

#[cfg(test)]
mod tests;

pub use ethernet::{NoEthernetFrame, ethernet_frame};
pub use headers::{CaptureTrace, HeadersError, PacketHeaders};
pub use read::{CaptureReader, Record, read_capture, read_capture_file, read_capture_from};
pub use warning::{Trouble, Warning};
pub use write::{PcapWriter, TraceReport, WriteError, write_trace};

/// How to read a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The most packets; one more is an error.
    pub limit: usize,
    /// Read this number of packets and leave the rest, with a warning.
    pub first: Option<usize>,
    /// The most bytes, counted after decompression; one more is an error.
    pub max_bytes: u64,
    /// The most captured bytes of a packet; one that has more is skipped with a
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

    /// For captures that are streamed ([`CaptureReader`]): all packets, however
    /// many there are, of at most [`limits::MAX_RECORD`] bytes.
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
    /// The same limits.
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

/// Where packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What the frames start with.
    pub link: LinkType,
    /// The most bytes kept of each packet; 0 for no limit.
    pub snap_length: u32,
    /// The interface's name, if the file has it: its first 255 bytes.
    pub name: Option<String>,
}

/// One captured packet; [`Capture::frame`] has its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    offset: u64,
    captured: u32,
    /// How long the packet was on the wire.
    pub original_length: u32,
    /// When it was captured, in nanoseconds since 1970; 0 where the file does
    /// not say (simple packet blocks).
    pub timestamp_ns: u64,
    /// What its first bytes are.
    pub link: LinkType,
    /// Its interface, as a position in [`Capture::interfaces`].
    pub interface: u32,
}

impl Packet {
    /// How many bytes of the packet the capture has.
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
    /// The file's name.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The file's format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// All interfaces, in file order and across sections.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// All packets, in file order.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// What is wrong with the file: the first
    /// [`SHOWN`](crate::diagnostic::SHOWN) of its problems.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The number of problems beyond those.
    #[must_use]
    pub fn more_warnings(&self) -> u64 {
        self.more_warnings
    }

    /// The pcapng block types that carry no packets or are not known, each with
    /// the number of such blocks; the first 256 of them.
    pub fn skipped_blocks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.skipped_blocks
            .iter()
            .map(|(&kind, &count)| (kind, count))
    }

    /// The number of blocks of other such types.
    #[must_use]
    pub fn more_skipped_blocks(&self) -> u64 {
        self.more_skipped_blocks
    }

    /// The captured bytes of the packet at a position.
    ///
    /// # Panics
    /// When there is no such packet.
    #[must_use]
    pub fn frame(&self, index: usize) -> &[u8] {
        self.bytes_of(&self.packets[index])
    }

    /// All packets with their captured bytes, in file order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (&Packet, &[u8])> {
        self.packets
            .iter()
            .map(|packet| (packet, self.bytes_of(packet)))
    }

    /// All packets, parsed, in file order.
    pub fn parsed(&self) -> impl ExactSizeIterator<Item = Parsed> + '_ {
        self.frames()
            .map(|(packet, frame)| parse(frame, packet.link))
    }

    fn bytes_of(&self, packet: &Packet) -> &[u8] {
        // The readers made sure that the bytes are there.
        usize::try_from(packet.offset)
            .ok()
            .and_then(|start| self.bytes.get(start..)?.get(..packet.captured as usize))
            .unwrap_or(&[])
    }
}
