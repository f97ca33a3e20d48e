//! The block format: sections of blocks, each with a type and a length.
//!
//! This file finds the blocks and bounds them; what is inside the common ones
//! is left to `pcap-parser`, which never sees more than one whole block.

use std::io::Read;

use pcap_parser::{
    EPB_MAGIC, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SHB_MAGIC,
    SPB_MAGIC, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};

use super::input::Input;
use super::read::{Next, State, count, format_error};
use super::{Interface, Packet, Trouble};
use crate::diagnostic::ReadError;
use crate::packet::LinkType;

/// The packet block that enhanced packet blocks have replaced.
const OBSOLETE_PACKET: u32 = 2;

/// Type, length and the length again.
const SHORTEST: u32 = 12;

/// The most bytes that a packet block takes besides the packet: its fixed part
/// and its options, each of which takes at most 64 KiB.
const AROUND_PACKET: u32 = 1 << 17;

/// The longest section header and interface description that are looked at.
const LONGEST_OTHER: u32 = 1 << 20;

/// The bytes that are kept of an interface's name.
const LONGEST_NAME: usize = 255;

/// Where the packet starts in an enhanced and in an obsolete packet block.
const PACKET_DATA: usize = 28;

/// Where the packet starts in a simple packet block.
const SIMPLE_DATA: usize = 12;

/// Microseconds, unless the interface says otherwise.
const DEFAULT_RESOLUTION: u8 = 6;

/// Whether a file that starts like this is a pcapng file. (The type of the
/// section header reads the same in either byte order.)
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) == SHB_MAGIC
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The byte order that a section header announces; `None` when it is cut
    /// off.
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

    /// Type and length of the block that starts here.
    fn block_header(self, rest: &[u8]) -> Option<(u32, u32)> {
        Some((self.u32_at(rest, 0)?, self.u32_at(rest, 4)?))
    }
}

/// How an interface counts time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    resolution: u8,
    offset_seconds: i64,
}

impl Clock {
    /// Nanoseconds since 1970, from the two halves of a timestamp. Times before
    /// 1970 and after 2554 end up at the nearest of these.
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

/// The section that is being read.
#[derive(Debug)]
pub(super) struct Section {
    order: ByteOrder,
    /// Interfaces are numbered anew in each section; this is where this
    /// section's begin among all.
    first_interface: usize,
    clocks: Vec<Clock>,
}

/// What the fixed part of a packet block says.
struct Fixed {
    interface: u32,
    ticks: Option<(u32, u32)>,
    captured: u32,
    original: u32,
    data: usize,
}

impl Section {
    /// The first section header must be whole, or this is no capture. It is
    /// not consumed.
    pub(super) fn first<R: Read>(input: &mut Input<R>) -> Result<Section, ReadError> {
        let start = input.fill(SHORTEST as usize)?;
        let order = match ByteOrder::of_section(start) {
            Some(Ok(order)) => order,
            Some(Err(found)) => return Err(format_error(input, found)),
            None => {
                let found = format!("only {} bytes of a pcapng section header", start.len());
                return Err(format_error(input, found));
            }
        };
        let length = order.block_header(start).map_or(0, |(_, length)| length);
        if length > LONGEST_OTHER {
            let found = format!("a pcapng section header of {length} bytes");
            return Err(format_error(input, found));
        }
        let header = input.fill(length as usize)?;
        let found = match parse_sectionheaderblock(header) {
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
        Err(format_error(input, found))
    }

    /// The next packet; blocks without one are taken in.
    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>, state: &mut State) -> Next {
        loop {
            let at = input.offset();
            let rest = input.fill(8)?;
            if rest.is_empty() {
                return Ok(None);
            }
            // A section header has its own byte order.
            if rest.first_chunk().is_some_and(|&magic| is_magic(magic)) {
                let rest = input.fill(SHORTEST as usize)?;
                match ByteOrder::of_section(rest) {
                    Some(Ok(order)) => {
                        self.order = order;
                        self.first_interface = state.interfaces.len();
                        self.clocks.clear();
                    }
                    Some(Err(found)) => {
                        let expected = "a section header".into();
                        state.warn(at, Trouble::Corrupt { found, expected });
                        return Ok(None);
                    }
                    None => {
                        let left = count(rest.len());
                        state.truncated(at, "a section header", u64::from(SHORTEST), left);
                        return Ok(None);
                    }
                }
            }
            let rest = input.buffered();
            let Some((kind, length)) = self.order.block_header(rest) else {
                state.truncated(at, "the header of a block", 8, count(rest.len()));
                return Ok(None);
            };
            if length < SHORTEST {
                let trouble = Trouble::Corrupt {
                    found: format!("a block of {length} bytes"),
                    expected: format!("at least {SHORTEST}"),
                };
                state.warn(at, trouble);
                return Ok(None);
            }
            let longest = match kind {
                EPB_MAGIC | SPB_MAGIC | OBSOLETE_PACKET => {
                    state.options.max_record.saturating_add(AROUND_PACKET)
                }
                IDB_MAGIC => LONGEST_OTHER,
                // Nothing in them is looked at.
                _ => 0,
            };
            if length > longest {
                let left = self.skip(input, state, at, kind, length)?;
                if left < u64::from(length) {
                    return Ok(None);
                }
                continue;
            }
            // At most the limit and what stands around a packet.
            let length = length as usize;
            let rest = input.fill(length)?;
            let Some(block) = rest.get(..length) else {
                state.truncated(at, "a block", count(length), count(rest.len()));
                return Ok(None);
            };
            if kind == IDB_MAGIC {
                let described = self.interface(block);
                input.take(length);
                self.add_interface(input, state, at, described)?;
                continue;
            }
            let Some((packet, data)) = self.packet(state, at, kind, block) else {
                input.take(length);
                continue;
            };
            if packet.captured > state.options.max_record {
                let (taken, limit) = (length, state.options.max_record);
                let length = packet.captured;
                state.warn(at, Trouble::LongPacket { length, limit });
                input.take(taken);
                continue;
            }
            if !state.packet(input.source(), at)? {
                return Ok(None);
            }
            let start = input.take(length).start + data;
            return Ok(Some((packet, start..start + packet.captured as usize)));
        }
    }

    /// The length of the block that starts here, if it is known.
    pub(super) fn length(&self, rest: &[u8]) -> Option<u64> {
        let order = match ByteOrder::of_section(rest) {
            Some(Ok(order)) if rest.first_chunk().is_some_and(|&magic| is_magic(magic)) => order,
            _ => self.order,
        };
        order.block_header(rest).map(|(_, length)| length.into())
    }

    /// Skips a block that is too long to be held, or of which nothing is looked
    /// at; how many of its bytes are there.
    fn skip<R: Read>(
        &mut self,
        input: &mut Input<R>,
        state: &mut State,
        at: u64,
        kind: u32,
        length: u32,
    ) -> Result<u64, ReadError> {
        // The lengths of packets stand at the same place in these two.
        let captured = match kind {
            EPB_MAGIC | OBSOLETE_PACKET => self.order.u32_at(input.fill(24)?, 20),
            _ => None,
        };
        let left = input.skip(length.into())?;
        if left < u64::from(length) {
            state.truncated(at, "a block", length.into(), left);
            return Ok(left);
        }
        match kind {
            SHB_MAGIC => {}
            EPB_MAGIC | SPB_MAGIC | OBSOLETE_PACKET => {
                let limit = state.options.max_record;
                let length = captured.unwrap_or(length);
                state.warn(at, Trouble::LongPacket { length, limit });
            }
            IDB_MAGIC => self.add_interface(input, state, at, None)?,
            other => state.skipped_block(other),
        }
        Ok(left)
    }

    /// The packet of a block, and where in the block its bytes start; a warning
    /// and nothing if the block is malformed.
    fn packet(
        &self,
        state: &mut State,
        at: u64,
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
            at,
            Trouble::BadBlock {
                block: kind,
                reason,
            },
        );
        None
    }

    /// An interface description; `None` when it is malformed.
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

    /// Adds an interface. One that is malformed still counts, so that those
    /// after it keep their numbers.
    fn add_interface<R: Read>(
        &mut self,
        input: &Input<R>,
        state: &mut State,
        at: u64,
        described: Option<(Interface, Clock)>,
    ) -> Result<(), ReadError> {
        let (interface, clock) = described.unwrap_or_else(|| {
            let reason = "an interface description that is malformed".to_owned();
            state.warn(
                at,
                Trouble::BadBlock {
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
        state.interface(input.source(), at, interface)?;
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

    /// A simple packet has no captured length: it is the original one unless
    /// the snap length of the section's first interface is less.
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
        let kept = if snap == 0 {
            packet.origlen
        } else {
            packet.origlen.min(snap)
        };
        Some(Fixed {
            interface: 0,
            ticks: None,
            captured: kept.min(u32::try_from(packet.data.len()).ok()?),
            original: packet.origlen,
            data: SIMPLE_DATA,
        })
    }

    fn obsolete(&self, block: &[u8]) -> Option<Fixed> {
        let order = self.order;
        let captured = order.u32_at(block, 20)?;
        let end = count(PACKET_DATA) + u64::from(captured) + 4;
        if end > count(block.len()) {
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

/// The value of the first option with that code.
fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options
        .iter()
        .find(|option| option.code == code)
        .and_then(|option| option.as_bytes().ok())
}
