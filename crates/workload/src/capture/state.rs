//! The state of reading a capture: interfaces, counts and warnings.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

use super::input::Input;
use super::{CaptureProblem, Interface, Packet, ReadOptions, Warning};
use crate::diagnostic::{ReadError, SHOWN};
use crate::limits::{MAX_BLOCK_KINDS, MAX_INTERFACES};
use crate::packet::LinkType;

/// The supported files, for error messages.
const EXPECTED: &str = "a pcap or pcapng capture, plain or gzip'd (one that starts with \
    a1b2c3d4, a1b23c4d or 0a0d0d0a, in either byte order)";

/// Returns the error for a file whose header cannot be read.
pub(super) fn format_error<R: Read>(input: &Input<R>, description: String) -> ReadError {
    ReadError::Format {
        file: input.source().to_owned(),
        found: description,
        expected: EXPECTED.to_owned(),
    }
}

/// A packet and the range of its bytes in the buffer; `None` when reading has ended.
pub(super) type Next = Result<Option<(Packet, Range<usize>)>, ReadError>;

/// Interfaces, counts and warnings collected while reading.
#[derive(Debug)]
pub(super) struct State {
    pub(super) options: ReadOptions,
    pub(super) interfaces: Vec<Interface>,
    pub(super) packets: u64,
    pub(super) warnings: Vec<Warning>,
    pub(super) more_warnings: u64,
    pub(super) skipped_blocks: BTreeMap<u32, u64>,
    pub(super) more_skipped_blocks: u64,
}

impl State {
    /// Returns the state before the first packet.
    pub(super) fn new(options: &ReadOptions) -> State {
        State {
            options: *options,
            interfaces: Vec::new(),
            packets: 0,
            warnings: Vec::new(),
            more_warnings: 0,
            skipped_blocks: BTreeMap::new(),
            more_skipped_blocks: 0,
        }
    }

    /// Adds an interface and returns its position.
    pub(super) fn interface(
        &mut self,
        source: &str,
        offset: u64,
        interface: Interface,
    ) -> Result<u32, ReadError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(ReadError::Limit {
                file: source.to_owned(),
                line: MAX_INTERFACES + 1,
                limit: MAX_INTERFACES,
                what: "interfaces",
            });
        }
        let link = interface.link;
        let position = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces.push(interface);
        if matches!(link, LinkType::Other(_)) {
            self.warn(
                offset,
                CaptureProblem::UnknownLink {
                    interface: position,
                    link,
                },
            );
        }
        Ok(position)
    }

    /// Counts a packet whose record begins at `offset`. Returns false if
    /// [`ReadOptions::first`] packets have been read already.
    pub(super) fn packet(&mut self, source: &str, offset: u64) -> Result<bool, ReadError> {
        let first = self.options.first;
        if first.is_some_and(|first| self.packets >= count(first)) {
            self.warn(offset, CaptureProblem::Stopped);
            return Ok(false);
        }
        let limit = self.options.limit;
        if self.packets >= count(limit) {
            return Err(ReadError::Limit {
                file: source.to_owned(),
                line: limit.saturating_add(1),
                limit,
                what: "packets",
            });
        }
        self.packets += 1;
        Ok(true)
    }

    /// Counts a block without a packet. Only a limited number of types are counted one
    /// by one, so that a hostile file cannot make the list long.
    pub(super) fn skipped_block(&mut self, kind: u32) {
        if self.skipped_blocks.len() < MAX_BLOCK_KINDS || self.skipped_blocks.contains_key(&kind) {
            *self.skipped_blocks.entry(kind).or_insert(0) += 1;
        } else {
            self.more_skipped_blocks += 1;
        }
    }

    pub(super) fn warn(&mut self, offset: u64, problem: CaptureProblem) {
        if self.warnings.len() < SHOWN {
            self.warnings.push(Warning {
                offset,
                packets: self.packets,
                problem,
            });
        } else {
            self.more_warnings += 1;
        }
    }

    /// Warns that the file ends `left` bytes after the start of the item at `offset`.
    pub(super) fn truncated(&mut self, offset: u64, what: &'static str, needed: u64, left: u64) {
        self.warn(offset, CaptureProblem::Truncated { what, needed, left });
    }
}

/// Converts a length to `u64`.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
