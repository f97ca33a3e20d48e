//! The block format: sections of blocks, each with a type and a length.
//!
//! This file finds the blocks and limits their lengths. `pcap-parser` parses the
//! content of the common blocks, and receives only one whole block at a time.

use std::io::Read;

use pcap_parser::{
    EPB_MAGIC, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SHB_MAGIC,
    SPB_MAGIC, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};

use super::input::Input;
use super::state::{Next, State, count, format_error};
use super::{CaptureProblem, Interface, Packet};
use crate::diagnostic::ReadError;
use crate::packet::LinkType;

/// The old packet block, replaced by enhanced packet blocks.
const OBSOLETE_PACKET: u32 = 2;

/// The shortest block in bytes: type, length and the length again.
const MIN_BLOCK_LENGTH: u32 = 12;

/// The maximum bytes of a packet block in addition to the packet: its fixed part and
/// its options, each of at most 64 KiB.
const AROUND_PACKET: u32 = 1 << 17;

/// The longest section header or interface description that is parsed, in bytes.
const LONGEST_OTHER: u32 = 1 << 20;

/// The maximum number of bytes kept of an interface's name.
const LONGEST_NAME: usize = 255;

/// The offset of the packet in an enhanced or obsolete packet block, in bytes.
const PACKET_DATA: usize = 28;

/// The offset of the packet in a simple packet block, in bytes.
const SIMPLE_DATA: usize = 12;

/// The timestamp resolution without an option of the interface: microseconds.
const DEFAULT_RESOLUTION: u8 = 6;

/// True if `magic` begins a pcapng file. (The type of the section header is the same in
/// either byte order.)
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) == SHB_MAGIC
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the byte order in a section header; `None` if the header is cut off.
    fn of_section(block: &[u8]) -> Option<Result<ByteOrder, String>> {
        let mark = block.get(8..)?.first_chunk()?;
        Some(match mark {
            [0x4d, 0x3c, 0x2b, 0x1a] => Ok(ByteOrder::Little),
            [0x1a, 0x2b, 0x3c, 0x4d] => Ok(ByteOrder::Big),
            [a, b, c, d] => Err(format!(
                "a pcapng section header with the byte-order mark {a:02x}{b:02x}{c:02x}{d:02x}"
            )),
        })
    }

    fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        let &field = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            ByteOrder::Little => u16::from_le_bytes(field),
            ByteOrder::Big => u16::from_be_bytes(field),
        })
    }

    fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        let &field = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            ByteOrder::Little => u32::from_le_bytes(field),
            ByteOrder::Big => u32::from_be_bytes(field),
        })
    }

    /// Returns type and length of the block at the start of `bytes`.
    fn block_header(self, bytes: &[u8]) -> Option<(u32, u32)> {
        Some((self.u32_at(bytes, 0)?, self.u32_at(bytes, 4)?))
    }
}

/// The timestamp resolution and offset of an interface.
#[derive(Clone, Copy, Debug)]
struct Clock {
    resolution: u8,
    offset_seconds: i64,
}

impl Clock {
    /// Converts the two halves of a timestamp to nanoseconds since 1970. Times before
    /// 1970 or after 2554 become the nearest time in that range.
    fn nanos(self, high: u32, low: u32) -> u64 {
        let units = (u128::from(high) << 32) | u128::from(low);
        // At most 2^64 * 10^9 < 2^94.
        let scaled = units * 1_000_000_000;
        let exponent = u32::from(self.resolution & 0x7f);
        let nanos = if self.resolution & 0x80 != 0 {
            scaled >> exponent
        } else {
            10_u128.checked_pow(exponent).map_or(0, |per| scaled / per)
        };
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(nanos.saturating_add(offset).max(0)).unwrap_or(u64::MAX)
    }
}

/// The current section.
#[derive(Debug)]
pub(super) struct Section {
    order: ByteOrder,
    /// Interface numbers start at 0 in each section. This is the position of the
    /// section's interface 0 in the list of all interfaces.
    first_interface: usize,
    clocks: Vec<Clock>,
}

/// The fixed part of a packet block.
struct Fixed {
    interface: u32,
    ticks: Option<(u32, u32)>,
    captured: u32,
    original: u32,
    data: usize,
}

impl Section {
    /// Reads the first section header without consuming it. If it is incomplete, the
    /// file is not a capture.
    pub(super) fn first<R: Read>(input: &mut Input<R>) -> Result<Section, ReadError> {
        let start = input.fill(MIN_BLOCK_LENGTH as usize)?;
        let order = match ByteOrder::of_section(start) {
            Some(Ok(order)) => order,
            Some(Err(description)) => return Err(format_error(input, description)),
            None => {
                let description = format!("only {} bytes of a pcapng section header", start.len());
                return Err(format_error(input, description));
            }
        };
        let length = order.block_header(start).map_or(0, |(_, length)| length);
        if length > LONGEST_OTHER {
            let description = format!("a pcapng section header of {length} bytes");
            return Err(format_error(input, description));
        }
        let header = input.fill(length as usize)?;
        let description = match parse_sectionheaderblock(header) {
            Ok((_, header)) if header.major_version == 1 => {
                return Ok(Section {
                    order,
                    first_interface: 0,
                    clocks: Vec::new(),
                });
            }
            Ok((_, header)) => format!(
                "version {}.{} of the pcapng format",
                header.major_version, header.minor_version
            ),
            Err(_) => "a pcapng section header that is cut off or malformed".to_owned(),
        };
        Err(format_error(input, description))
    }

    /// Returns the next packet, and processes the blocks before it.
    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>, state: &mut State) -> Next {
        loop {
            let block_offset = input.offset();
            let header_bytes = input.fill(8)?;
            if header_bytes.is_empty() {
                return Ok(None);
            }
            // A section header has its own byte order.
            if header_bytes
                .first_chunk()
                .is_some_and(|&magic| is_magic(magic))
            {
                let header_bytes = input.fill(MIN_BLOCK_LENGTH as usize)?;
                match ByteOrder::of_section(header_bytes) {
                    Some(Ok(order)) => {
                        self.order = order;
                        self.first_interface = state.interfaces.len();
                        self.clocks.clear();
                    }
                    Some(Err(found)) => {
                        let expected = "a section header".into();
                        state.warn(block_offset, CaptureProblem::Corrupt { found, expected });
                        return Ok(None);
                    }
                    None => {
                        let available = count(header_bytes.len());
                        state.truncated(
                            block_offset,
                            "a section header",
                            u64::from(MIN_BLOCK_LENGTH),
                            available,
                        );
                        return Ok(None);
                    }
                }
            }
            let header_bytes = input.buffered();
            let Some((kind, length)) = self.order.block_header(header_bytes) else {
                state.truncated(
                    block_offset,
                    "the header of a block",
                    8,
                    count(header_bytes.len()),
                );
                return Ok(None);
            };
            if length < MIN_BLOCK_LENGTH {
                let problem = CaptureProblem::Corrupt {
                    found: format!("a block of {length} bytes"),
                    expected: format!("at least {MIN_BLOCK_LENGTH}"),
                };
                state.warn(block_offset, problem);
                return Ok(None);
            }
            let longest = match kind {
                EPB_MAGIC | SPB_MAGIC | OBSOLETE_PACKET => {
                    state.options.max_record.saturating_add(AROUND_PACKET)
                }
                IDB_MAGIC => LONGEST_OTHER,
                // The content of other blocks is not parsed.
                _ => 0,
            };
            if length > longest {
                let available = self.skip(input, state, block_offset, kind, length)?;
                if available < u64::from(length) {
                    return Ok(None);
                }
                continue;
            }
            // At most the limit plus the overhead of a packet block.
            let length = length as usize;
            let block_bytes = input.fill(length)?;
            let Some(block) = block_bytes.get(..length) else {
                state.truncated(
                    block_offset,
                    "a block",
                    count(length),
                    count(block_bytes.len()),
                );
                return Ok(None);
            };
            if kind == IDB_MAGIC {
                let described = self.interface(block);
                input.take(length);
                self.add_interface(input, state, block_offset, described)?;
                continue;
            }
            let Some((packet, data)) = self.packet(state, block_offset, kind, block) else {
                input.take(length);
                continue;
            };
            if packet.captured > state.options.max_record {
                let (taken, limit) = (length, state.options.max_record);
                let length = packet.captured;
                state.warn(block_offset, CaptureProblem::LongPacket { length, limit });
                input.take(taken);
                continue;
            }
            if !state.packet(input.source(), block_offset)? {
                return Ok(None);
            }
            let start = input.take(length).start + data;
            return Ok(Some((packet, start..start + packet.captured as usize)));
        }
    }

    /// Returns the length of the block at the start of `bytes`, if it is known.
    pub(super) fn length(&self, bytes: &[u8]) -> Option<u64> {
        let order = match ByteOrder::of_section(bytes) {
            Some(Ok(order)) if bytes.first_chunk().is_some_and(|&magic| is_magic(magic)) => order,
            _ => self.order,
        };
        order.block_header(bytes).map(|(_, length)| length.into())
    }

    /// Skips a block that is too long to hold or whose content is not parsed. Returns
    /// how many of its bytes are present.
    fn skip<R: Read>(
        &mut self,
        input: &mut Input<R>,
        state: &mut State,
        block_offset: u64,
        kind: u32,
        length: u32,
    ) -> Result<u64, ReadError> {
        // The captured length is at the same offset in both block types.
        let captured = match kind {
            EPB_MAGIC | OBSOLETE_PACKET => self.order.u32_at(input.fill(24)?, 20),
            _ => None,
        };
        let available = input.skip(length.into())?;
        if available < u64::from(length) {
            state.truncated(block_offset, "a block", length.into(), available);
            return Ok(available);
        }
        match kind {
            SHB_MAGIC => {}
            EPB_MAGIC | SPB_MAGIC | OBSOLETE_PACKET => {
                let limit = state.options.max_record;
                let length = captured.unwrap_or(length);
                state.warn(block_offset, CaptureProblem::LongPacket { length, limit });
            }
            IDB_MAGIC => self.add_interface(input, state, block_offset, None)?,
            other => state.skipped_block(other),
        }
        Ok(available)
    }

    /// Returns the packet of a block and the offset of its bytes in the block. If the
    /// block is malformed, warns and returns `None`.
    fn packet(
        &self,
        state: &mut State,
        block_offset: u64,
        kind: u32,
        block: &[u8],
    ) -> Option<(Packet, usize)> {
        let fixed = match kind {
            EPB_MAGIC => self.enhanced(block),
            SPB_MAGIC => self.simple(state, block),
            _ => self.obsolete(block),
        };
        let reason = match fixed {
            None => "its lengths contradict each other".to_owned(),
            Some(fixed) => {
                let position = self
                    .first_interface
                    .saturating_add(fixed.interface as usize);
                let known = self.clocks.get(fixed.interface as usize);
                if let (Some(clock), Some(interface)) = (known, state.interfaces.get(position)) {
                    let packet = Packet {
                        offset: 0,
                        captured: fixed.captured,
                        original_length: fixed.original,
                        timestamp_ns: fixed.ticks.map_or(0, |(high, low)| clock.nanos(high, low)),
                        link: interface.link,
                        interface: u32::try_from(position).unwrap_or(u32::MAX),
                    };
                    return Some((packet, fixed.data));
                }
                format!(
                    "its interface {} is none of the section's {}",
                    fixed.interface,
                    self.clocks.len()
                )
            }
        };
        state.warn(
            block_offset,
            CaptureProblem::BadBlock {
                block: kind,
                reason,
            },
        );
        None
    }

    /// Parses an interface description; `None` if it is malformed.
    fn interface(&self, block: &[u8]) -> Option<(Interface, Clock)> {
        let (_, description) = match self.order {
            ByteOrder::Little => parse_interfacedescriptionblock_le(block),
            ByteOrder::Big => parse_interfacedescriptionblock_be(block),
        }
        .ok()?;
        Some((
            self.describe(&description),
            self.clock(&description.options),
        ))
    }

    /// Adds an interface. A malformed one counts too, so that later interfaces keep
    /// their numbers.
    fn add_interface<R: Read>(
        &mut self,
        input: &Input<R>,
        state: &mut State,
        block_offset: u64,
        described: Option<(Interface, Clock)>,
    ) -> Result<(), ReadError> {
        let (interface, clock) = described.unwrap_or_else(|| {
            let reason = "an interface description that is malformed".to_owned();
            state.warn(
                block_offset,
                CaptureProblem::BadBlock {
                    block: IDB_MAGIC,
                    reason,
                },
            );
            let interface = Interface {
                link: LinkType::Other(u16::MAX),
                snap_length: 0,
                name: None,
            };
            (interface, self.clock(&[]))
        });
        state.interface(input.source(), block_offset, interface)?;
        self.clocks.push(clock);
        Ok(())
    }

    fn describe(&self, description: &InterfaceDescriptionBlock<'_>) -> Interface {
        let number = u16::try_from(description.linktype.0).unwrap_or(u16::MAX);
        Interface {
            link: LinkType::from_number(number),
            snap_length: description.snaplen,
            name: option(&description.options, OptionCode::IfName)
                .map(|name| &name[..name.len().min(LONGEST_NAME)])
                .map(|name| String::from_utf8_lossy(name).into_owned()),
        }
    }

    fn clock(&self, options: &[PcapNGOption<'_>]) -> Clock {
        let resolution = option(options, OptionCode::IfTsresol).and_then(|value| value.first());
        let offset = option(options, OptionCode::IfTsoffset)
            .and_then(|value| value.first_chunk())
            .map_or(0, |&value| match self.order {
                ByteOrder::Little => i64::from_le_bytes(value),
                ByteOrder::Big => i64::from_be_bytes(value),
            });
        Clock {
            resolution: resolution.copied().unwrap_or(DEFAULT_RESOLUTION),
            offset_seconds: offset,
        }
    }

    fn enhanced(&self, block: &[u8]) -> Option<Fixed> {
        let (_, packet) = match self.order {
            ByteOrder::Little => parse_enhancedpacketblock_le(block),
            ByteOrder::Big => parse_enhancedpacketblock_be(block),
        }
        .ok()?;
        Some(Fixed {
            interface: packet.if_id,
            ticks: Some((packet.ts_high, packet.ts_low)),
            captured: packet.caplen,
            original: packet.origlen,
            data: PACKET_DATA,
        })
    }

    /// Reads a simple packet block. It has no captured length: the captured length is
    /// the smaller of the original length and the snap length of the section's first
    /// interface.
    fn simple(&self, state: &State, block: &[u8]) -> Option<Fixed> {
        let (_, packet) = match self.order {
            ByteOrder::Little => parse_simplepacketblock_le(block),
            ByteOrder::Big => parse_simplepacketblock_be(block),
        }
        .ok()?;
        let snap = state
            .interfaces
            .get(self.first_interface)
            .map_or(0, |interface| interface.snap_length);
        let captured = if snap == 0 {
            packet.origlen
        } else {
            packet.origlen.min(snap)
        };
        Some(Fixed {
            interface: 0,
            ticks: None,
            captured: captured.min(u32::try_from(packet.data.len()).ok()?),
            original: packet.origlen,
            data: SIMPLE_DATA,
        })
    }

    fn obsolete(&self, block: &[u8]) -> Option<Fixed> {
        let order = self.order;
        let captured = order.u32_at(block, 20)?;
        let min_length = count(PACKET_DATA) + u64::from(captured) + 4;
        if min_length > count(block.len()) {
            return None;
        }
        Some(Fixed {
            interface: u32::from(order.u16_at(block, 8)?),
            ticks: Some((order.u32_at(block, 12)?, order.u32_at(block, 16)?)),
            captured,
            original: order.u32_at(block, 24)?,
            data: PACKET_DATA,
        })
    }
}

/// Returns the value of the first option with `code`.
fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options
        .iter()
        .find(|option| option.code == code)
        .and_then(|option| option.as_bytes().ok())
}
