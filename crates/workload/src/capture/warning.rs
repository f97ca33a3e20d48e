//! Warnings about a capture that can be read in spite of problems.

use std::fmt;

use super::LinkType;

/// One problem of a capture file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The byte at which the problem starts, counted from 0 after decompression.
    pub offset: u64,
    /// The number of packets read before the problem.
    pub packets: u64,
    /// The problem.
    pub problem: CaptureProblem,
}

/// A problem of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureProblem {
    /// The file ends too early. Reading ended at this position.
    Truncated {
        /// The item that the file ends in.
        what: &'static str,
        /// The length of the item in bytes.
        needed: u64,
        /// The number of bytes available.
        left: u64,
    },
    /// The data is invalid, so the position of the next packet is unknown. Reading
    /// ended at this position.
    Corrupt {
        /// The data at this position.
        found: String,
        /// The expected data.
        expected: String,
    },
    /// An invalid block was skipped.
    BadBlock {
        /// The block's type.
        block: u32,
        /// The reason why it is invalid.
        reason: String,
    },
    /// The compressed data is damaged or ends too early. The position is the end of the
    /// bytes that could be decompressed.
    Gzip {
        /// The decompressor's error.
        reason: String,
    },
    /// The frames of an interface cannot be parsed.
    UnknownLink {
        /// The interface's position.
        interface: u32,
        /// Its link type.
        link: LinkType,
    },
    /// A packet was skipped: it is longer than
    /// [`ReadOptions::max_record`](super::ReadOptions::max_record).
    LongPacket {
        /// The captured bytes that the file claims.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// The requested number of packets has been read; the rest was ignored.
    Stopped,
}

impl fmt::Display for Warning {
    /// Writes one line: the position, then the problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "byte {}, after {} packets: {}",
            self.offset, self.packets, self.problem
        )
    }
}

impl fmt::Display for CaptureProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureProblem::Truncated { what, needed, left } => write!(
                f,
                "the file ends inside {what}, which takes {needed} bytes; {left} are left"
            ),
            CaptureProblem::Corrupt { found, expected } => {
                write!(f, "{found}; expected {expected}; the rest was not read")
            }
            CaptureProblem::BadBlock { block, reason } => {
                write!(f, "skipped a block of type {block:#x}: {reason}")
            }
            CaptureProblem::Gzip { reason } => {
                write!(f, "the compressed data is damaged or cut off ({reason})")
            }
            CaptureProblem::UnknownLink { interface, link } => write!(
                f,
                "frames of interface {interface} cannot be parsed: {link} is not supported"
            ),
            CaptureProblem::LongPacket { length, limit } => write!(
                f,
                "skipped a packet of {length} bytes; at most {limit} are read"
            ),
            CaptureProblem::Stopped => {
                f.write_str("stopped after the requested number of packets; the rest was not read")
            }
        }
    }
}
