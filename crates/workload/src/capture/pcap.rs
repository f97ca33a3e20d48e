//! The classic capture format: a header of 24 bytes, then one record for each
//! packet.

use std::io::Read;

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use super::input::Input;
use super::read::{Next, State, count, format_error};
use super::{Interface, Packet, Trouble};
use crate::diagnostic::ReadError;
use crate::packet::LinkType;

/// The length of the file header.
const HEADER: usize = 24;

/// The length of a record's header.
const RECORD: usize = 16;

/// The length of a record's header in the format that some old Linux systems
/// wrote.
const MODIFIED_RECORD: usize = 24;

/// Records longer than this and than the file's snap length are taken for
/// damage; libpcap draws the line at the same length (`MAXIMUM_SNAPLEN`).
const LONGEST: u32 = 262_144;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Whether a file that starts like this is a pcap file.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    matches!(
        u32::from_le_bytes(magic),
        0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0xa1b2_cd34
    )
}

/// The link type; the upper 16 bits of the field say whether frames end with a
/// checksum, which does not matter here.
fn link_type(header: &PcapHeader) -> LinkType {
    let [_, _, high, low] = header.network.0.to_be_bytes();
    LinkType::from_number(u16::from_be_bytes([high, low]))
}

type ParseRecord =
    for<'a> fn(&'a [u8]) -> IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// How the records of one file are written.
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
        let bytes = input.fill(HEADER)?;
        let parsed = parse_pcap_header(bytes).map(|(_, header)| header);
        let Ok(header) = parsed else {
            let found = format!(
                "only {} of the {HEADER} bytes of a pcap header",
                bytes.len()
            );
            return Err(format_error(input, found));
        };
        if header.version_major != 2 {
            let found = format!(
                "version {}.{} of the pcap format",
                header.version_major, header.version_minor
            );
            return Err(format_error(input, found));
        }
        input.take(HEADER);
        let link = link_type(&header);
        let interface = Interface {
            link,
            snap_length: header.snaplen,
            name: None,
        };
        let interface = state.interface(input.source(), 0, interface)?;
        let big_endian = header.is_bigendian();
        let (parse, length): (ParseRecord, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, MODIFIED_RECORD)
        } else if big_endian {
            (parse_pcap_frame_be, RECORD)
        } else {
            (parse_pcap_frame, RECORD)
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

    /// The next packet. One that is longer than the options allow is skipped.
    pub(super) fn next<R: Read>(&self, input: &mut Input<R>, state: &mut State) -> Next {
        loop {
            let at = input.offset();
            let rest = input.fill(self.header)?;
            if rest.is_empty() {
                return Ok(None);
            }
            let Some(captured) = self.captured_length(rest) else {
                let left = count(rest.len());
                state.truncated(at, "the header of a packet", count(self.header), left);
                return Ok(None);
            };
            let longest = self.snap_length.max(LONGEST);
            if captured > longest {
                let trouble = Trouble::Corrupt {
                    found: format!("a packet of {captured} bytes"),
                    expected: format!("at most {longest}"),
                };
                state.warn(at, trouble);
                return Ok(None);
            }
            let needed = count(self.header) + u64::from(captured);
            let limit = state.options.max_record;
            if captured > limit {
                let left = input.skip(needed)?;
                if left < needed {
                    state.truncated(at, "a packet", needed, left);
                    return Ok(None);
                }
                let length = captured;
                state.warn(at, Trouble::LongPacket { length, limit });
                continue;
            }
            // At most the limit and a header.
            let length = self.header + captured as usize;
            let rest = input.fill(length)?;
            let Ok((_, record)) = (self.parse)(&rest[..rest.len().min(length)]) else {
                let left = count(rest.len());
                state.truncated(at, "a packet", needed, left);
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
            if !state.packet(input.source(), at)? {
                return Ok(None);
            }
            let place = input.take(length);
            return Ok(Some((packet, place.start + self.header..place.end)));
        }
    }

    /// The length of the record that starts here, if it is known.
    pub(super) fn length(&self, rest: &[u8]) -> Option<u64> {
        Some(count(self.header) + u64::from(self.captured_length(rest)?))
    }

    /// The captured length in the header of the next record; `None` when the
    /// header is not there as a whole.
    fn captured_length(&self, rest: &[u8]) -> Option<u32> {
        let header = rest.get(..self.header)?;
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
