//! The block format: sections of blocks, each with a type and a length.
//!
//! This file finds the blocks and bounds them; what is inside the common ones
//! is left to `pcap-parser`, which never sees more than one whole block.

use pcap_parser::{
    EPB_MAGIC, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SHB_MAGIC,
    SPB_MAGIC, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};

use super::read::{Flow, Found, Reader, count};
use super::{Interface, Trouble};
use crate::diagnostic::ReadError;
use crate::packet::LinkType;

/// The packet block that enhanced packet blocks have replaced.
const OBSOLETE_PACKET: u32 = 2;

/// Type, length and the length again.
const SHORTEST: u32 = 12;

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

/// Reads all blocks.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<(), ReadError> {
    let bytes = reader.bytes;
    let mut section = match first_section(bytes) {
        Ok(section) => section,
        Err(found) => return Err(reader.format_error(found)),
    };
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && !rest.is_empty()
    {
        // A section header has its own byte order.
        if rest.first_chunk().is_some_and(|&magic| is_magic(magic)) {
            match ByteOrder::of_section(rest) {
                Some(Ok(order)) => section = Section::new(order, reader),
                Some(Err(found)) => {
                    reader.warn(
                        at,
                        Trouble::Corrupt {
                            found,
                            expected: "a section header".into(),
                        },
                    );
                    break;
                }
                None => {
                    reader.truncated(at, "a section header", u64::from(SHORTEST));
                    break;
                }
            }
        }
        let Some((kind, length)) = section.order.block_header(rest) else {
            reader.truncated(at, "the header of a block", 8);
            break;
        };
        if length < SHORTEST {
            let trouble = Trouble::Corrupt {
                found: format!("a block of {length} bytes"),
                expected: format!("at least {SHORTEST}"),
            };
            reader.warn(at, trouble);
            break;
        }
        let Some(block) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length))
        else {
            reader.truncated(at, "a block", u64::from(length));
            break;
        };
        if section.block(reader, at, kind, block)? == Flow::Stop {
            break;
        }
        at += block.len();
    }
    Ok(())
}

/// The first section header must be whole, or this is no capture.
fn first_section(bytes: &[u8]) -> Result<Section, String> {
    let order = match ByteOrder::of_section(bytes) {
        Some(Ok(order)) => order,
        Some(Err(found)) => return Err(found),
        None => {
            return Err(format!(
                "only {} bytes of a pcapng section header",
                bytes.len()
            ));
        }
    };
    match parse_sectionheaderblock(bytes) {
        Ok((_, header)) if header.major_version == 1 => Ok(Section {
            order,
            first_interface: 0,
            clocks: Vec::new(),
        }),
        Ok((_, header)) => Err(format!(
            "version {}.{} of the pcapng format",
            header.major_version, header.minor_version
        )),
        Err(_) => Err("a pcapng section header that is cut off or malformed".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
#[derive(Clone, Copy)]
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
struct Section {
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
    fn new(order: ByteOrder, reader: &Reader<'_>) -> Section {
        Section {
            order,
            first_interface: reader.interfaces.len(),
            clocks: Vec::new(),
        }
    }

    fn block(
        &mut self,
        reader: &mut Reader<'_>,
        at: usize,
        kind: u32,
        block: &[u8],
    ) -> Result<Flow, ReadError> {
        let fixed = match kind {
            SHB_MAGIC => return Ok(Flow::On),
            IDB_MAGIC => {
                self.interface(reader, at, block);
                return Ok(Flow::On);
            }
            EPB_MAGIC => self.enhanced(block),
            SPB_MAGIC => self.simple(reader, block),
            OBSOLETE_PACKET => self.obsolete(block),
            other => {
                *reader.skipped_blocks.entry(other).or_insert(0) += 1;
                return Ok(Flow::On);
            }
        };
        let Some(fixed) = fixed else {
            let reason = "its lengths contradict each other".to_owned();
            reader.warn(
                at,
                Trouble::BadBlock {
                    block: kind,
                    reason,
                },
            );
            return Ok(Flow::On);
        };
        let position = self
            .first_interface
            .saturating_add(fixed.interface as usize);
        let known = self.clocks.get(fixed.interface as usize);
        let (Some(clock), Some(interface)) = (known, reader.interfaces.get(position)) else {
            let reason = format!(
                "its interface {} is none of the section's {}",
                fixed.interface,
                self.clocks.len()
            );
            reader.warn(
                at,
                Trouble::BadBlock {
                    block: kind,
                    reason,
                },
            );
            return Ok(Flow::On);
        };
        let found = Found {
            offset: at + fixed.data,
            captured: fixed.captured,
            original: fixed.original,
            timestamp_ns: fixed.ticks.map_or(0, |(high, low)| clock.nanos(high, low)),
            interface: u32::try_from(position).unwrap_or(u32::MAX),
            link: interface.link,
        };
        reader.packet(at, &found)
    }

    /// An interface description. One that is malformed still counts, so that
    /// those after it keep their numbers.
    fn interface(&mut self, reader: &mut Reader<'_>, at: usize, block: &[u8]) {
        let parsed = match self.order {
            ByteOrder::Little => parse_interfacedescriptionblock_le(block),
            ByteOrder::Big => parse_interfacedescriptionblock_be(block),
        };
        let (interface, clock) = match parsed {
            Ok((_, description)) => (
                self.describe(&description),
                self.clock(&description.options),
            ),
            Err(_) => {
                let reason = "an interface description that is malformed".to_owned();
                reader.warn(
                    at,
                    Trouble::BadBlock {
                        block: IDB_MAGIC,
                        reason,
                    },
                );
                (
                    Interface {
                        link: LinkType::Other(u16::MAX),
                        snap_length: 0,
                        name: None,
                    },
                    self.clock(&[]),
                )
            }
        };
        reader.interface(at, interface);
        self.clocks.push(clock);
    }

    fn describe(&self, description: &InterfaceDescriptionBlock<'_>) -> Interface {
        let number = u16::try_from(description.linktype.0).unwrap_or(u16::MAX);
        Interface {
            link: LinkType::from_number(number),
            snap_length: description.snaplen,
            name: option(&description.options, OptionCode::IfName)
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
    fn simple(&self, reader: &Reader<'_>, block: &[u8]) -> Option<Fixed> {
        let (_, packet) = match self.order {
            ByteOrder::Little => parse_simplepacketblock_le(block),
            ByteOrder::Big => parse_simplepacketblock_be(block),
        }
        .ok()?;
        let snap = reader
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
