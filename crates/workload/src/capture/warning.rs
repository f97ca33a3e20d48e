//! What is wrong with a capture that can be read all the same.

use std::fmt;

use super::LinkType;

/// One problem of a capture file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The byte, counted from 0 and after decompression, where the trouble
    /// starts.
    pub offset: u64,
    /// How many packets had been read by then.
    pub packets: u64,
    /// What the trouble is.
    pub trouble: Trouble,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The file ends too early. Reading ended here.
    Truncated {
        /// What the file ends in.
        what: &'static str,
        /// How many bytes it takes.
        needed: u64,
        /// How many bytes are left.
        left: u64,
    },
    /// What is here makes no sense, so that what follows cannot be found.
    /// Reading ended here.
    Corrupt {
        /// What is here.
        found: String,
        /// What should be here.
        expected: String,
    },
    /// A block that makes no sense was skipped.
    BadBlock {
        /// The block's type.
        block: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// The compressed data is damaged or ends too early; this is where the
    /// bytes that could be decompressed end.
    Gzip {
        /// What the decompressor said.
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
    /// As many packets as were asked for have been read; the rest was left.
    Stopped,
}

impl fmt::Display for Warning {
    /// One line: where, then what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "byte {}, after {} packets: {}",
            self.offset, self.packets, self.trouble
        )
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Truncated { what, needed, left } => write!(
                f,
                "the file ends inside {what}, which takes {needed} bytes; {left} are left"
            ),
            Trouble::Corrupt { found, expected } => {
                write!(f, "{found}; expected {expected}; the rest was left")
            }
            Trouble::BadBlock { block, reason } => {
                write!(f, "skipped a block of type {block:#x}: {reason}")
            }
            Trouble::Gzip { reason } => {
                write!(f, "the compressed data is damaged or cut off ({reason})")
            }
            Trouble::UnknownLink { interface, link } => write!(
                f,
                "frames of interface {interface} cannot be parsed: {link} is not supported"
            ),
            Trouble::LongPacket { length, limit } => write!(
                f,
                "skipped a packet of {length} bytes; at most {limit} are read"
            ),
            Trouble::Stopped => {
                f.write_str("as many packets as were asked for; the rest was left unread")
            }
        }
    }
}
