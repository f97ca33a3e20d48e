//! The classic capture format: a header of 24 bytes, then one record for each
//! packet.

use std::io::Read;

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use super::input::Input;
use super::state::{Next, State, count, format_error};
use super::{CaptureProblem, Interface, Packet};
use crate::diagnostic::ReadError;
use crate::packet::LinkType;

/// The length of the file header in bytes.
const FILE_HEADER_LENGTH: usize = 24;

/// The length of a record's header in bytes.
const RECORD_HEADER_LENGTH: usize = 16;

/// The length of a record's header in the format of some old Linux systems.
const MODIFIED_RECORD_HEADER_LENGTH: usize = 24;

/// A record longer than both this and the file's snap length is treated as damage, as
/// in libpcap (`MAXIMUM_SNAPLEN`).
const MAX_CAPTURED_LENGTH: u32 = 262_144;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// True if `magic` begins a pcap file.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    matches!(
        u32::from_le_bytes(magic),
        0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0xa1b2_cd34
    )
}

/// Returns the link type. The upper 16 bits of the field, which say if frames end with
/// a checksum, are ignored.
fn link_type(header: &PcapHeader) -> LinkType {
    let [_, _, high, low] = header.network.0.to_be_bytes();
    LinkType::from_number(u16::from_be_bytes([high, low]))
}

type ParseRecord =
    for<'a> fn(&'a [u8]) -> IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// The record format of one file.
#[derive(Debug)]
pub(super) struct Records {
    parse: ParseRecord,
    header: usize,
    big_endian: bool,
    nanos_per_unit: u64,
    snap_length: u32,
    interface: u32,
    link: LinkType,
}

impl Records {
    /// Reads the file header.
    pub(super) fn open<R: Read>(
        input: &mut Input<R>,
        state: &mut State,
    ) -> Result<Records, ReadError> {
        let bytes = input.fill(FILE_HEADER_LENGTH)?;
        let parsed = parse_pcap_header(bytes).map(|(_, header)| header);
        let Ok(header) = parsed else {
            let description = format!(
                "only {} of the {FILE_HEADER_LENGTH} bytes of a pcap header",
                bytes.len()
            );
            return Err(format_error(input, description));
        };
        if header.version_major != 2 {
            let description = format!(
                "version {}.{} of the pcap format",
                header.version_major, header.version_minor
            );
            return Err(format_error(input, description));
        }
        input.take(FILE_HEADER_LENGTH);
        let link = link_type(&header);
        let interface = Interface {
            link,
            snap_length: header.snaplen,
            name: None,
        };
        let interface = state.interface(input.source(), 0, interface)?;
        let big_endian = header.is_bigendian();
        let (parse, length): (ParseRecord, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, MODIFIED_RECORD_HEADER_LENGTH)
        } else if big_endian {
            (parse_pcap_frame_be, RECORD_HEADER_LENGTH)
        } else {
            (parse_pcap_frame, RECORD_HEADER_LENGTH)
        };
        Ok(Records {
            parse,
            header: length,
            big_endian,
            nanos_per_unit: if header.is_nanosecond_precision() {
                1
            } else {
                1000
            },
            snap_length: header.snaplen,
            interface,
            link,
        })
    }

    /// Returns the next packet. Packets longer than the options allow are skipped.
    pub(super) fn next<R: Read>(&self, input: &mut Input<R>, state: &mut State) -> Next {
        loop {
            let record_offset = input.offset();
            let header_bytes = input.fill(self.header)?;
            if header_bytes.is_empty() {
                return Ok(None);
            }
            let Some(captured) = self.captured_length(header_bytes) else {
                let available = count(header_bytes.len());
                state.truncated(
                    record_offset,
                    "the header of a packet",
                    count(self.header),
                    available,
                );
                return Ok(None);
            };
            let longest = self.snap_length.max(MAX_CAPTURED_LENGTH);
            if captured > longest {
                let problem = CaptureProblem::Corrupt {
                    found: format!("a packet of {captured} bytes"),
                    expected: format!("at most {longest}"),
                };
                state.warn(record_offset, problem);
                return Ok(None);
            }
            let needed = count(self.header) + u64::from(captured);
            let limit = state.options.max_record;
            if captured > limit {
                let available = input.skip(needed)?;
                if available < needed {
                    state.truncated(record_offset, "a packet", needed, available);
                    return Ok(None);
                }
                let length = captured;
                state.warn(record_offset, CaptureProblem::LongPacket { length, limit });
                continue;
            }
            // At most the limit plus a header.
            let length = self.header + captured as usize;
            let record_bytes = input.fill(length)?;
            let Ok((_, record)) = (self.parse)(&record_bytes[..record_bytes.len().min(length)])
            else {
                let available = count(record_bytes.len());
                state.truncated(record_offset, "a packet", needed, available);
                return Ok(None);
            };
            let packet = Packet {
                offset: 0,
                captured,
                original_length: record.origlen,
                timestamp_ns: self.timestamp_ns(&record),
                link: self.link,
                interface: self.interface,
            };
            if !state.packet(input.source(), record_offset)? {
                return Ok(None);
            }
            let range = input.take(length);
            return Ok(Some((packet, range.start + self.header..range.end)));
        }
    }

    /// Returns the length of the record at the start of `bytes`, if it is known.
    pub(super) fn length(&self, bytes: &[u8]) -> Option<u64> {
        Some(count(self.header) + u64::from(self.captured_length(bytes)?))
    }

    /// Returns the captured length in the record header at the start of `bytes`; `None`
    /// if the header is incomplete.
    fn captured_length(&self, bytes: &[u8]) -> Option<u32> {
        let header = bytes.get(..self.header)?;
        let &field = header.get(8..)?.first_chunk()?;
        Some(if self.big_endian {
            u32::from_be_bytes(field)
        } else {
            u32::from_le_bytes(field)
        })
    }

    fn timestamp_ns(&self, record: &LegacyPcapBlock<'_>) -> u64 {
        // Both products fit: 2^32 * 10^9 < 2^62.
        u64::from(record.ts_sec) * NANOS_PER_SECOND
            + u64::from(record.ts_usec) * self.nanos_per_unit
    }
}
