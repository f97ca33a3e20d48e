//! The classic capture format: a header of 24 bytes, then one record for each
//! packet.

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use super::read::{Flow, Found, Reader, count};
use super::{Interface, Trouble};
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

/// Reads all records.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<(), ReadError> {
    let header = match parse_pcap_header(reader.bytes) {
        Ok((_, header)) => header,
        Err(_) => {
            let found = format!(
                "only {} of the {HEADER} bytes of a pcap header",
                reader.bytes.len()
            );
            return Err(reader.format_error(found));
        }
    };
    if header.version_major != 2 {
        let found = format!(
            "version {}.{} of the pcap format",
            header.version_major, header.version_minor
        );
        return Err(reader.format_error(found));
    }
    let records = Records::new(&header);
    let link = link_type(&header);
    let interface = reader.interface(
        0,
        Interface {
            link,
            snap_length: header.snaplen,
            name: None,
        },
    );

    let longest = header.snaplen.max(LONGEST);
    let mut at = HEADER;
    while let Some(rest) = reader.bytes.get(at..)
        && !rest.is_empty()
    {
        let Some(captured) = records.captured_length(rest) else {
            reader.truncated(at, "the header of a packet", count(records.header));
            break;
        };
        if captured > longest {
            let trouble = Trouble::Corrupt {
                found: format!("a packet of {captured} bytes"),
                expected: format!("at most {longest}"),
            };
            reader.warn(at, trouble);
            break;
        }
        let Ok((after, record)) = (records.parse)(rest) else {
            let needed = count(records.header) + u64::from(captured);
            reader.truncated(at, "a packet", needed);
            break;
        };
        let found = Found {
            offset: at + records.header,
            captured: record.caplen,
            original: record.origlen,
            timestamp_ns: records.timestamp_ns(&record),
            interface,
            link,
        };
        if reader.packet(at, &found)? == Flow::Stop {
            break;
        }
        at = reader.bytes.len() - after.len();
    }
    Ok(())
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
struct Records {
    parse: ParseRecord,
    header: usize,
    big_endian: bool,
    nanos_per_unit: u64,
}

impl Records {
    fn new(header: &PcapHeader) -> Records {
        let big_endian = header.is_bigendian();
        let (parse, length): (ParseRecord, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, MODIFIED_RECORD)
        } else if big_endian {
            (parse_pcap_frame_be, RECORD)
        } else {
            (parse_pcap_frame, RECORD)
        };
        Records {
            parse,
            header: length,
            big_endian,
            nanos_per_unit: if header.is_nanosecond_precision() {
                1
            } else {
                1000
            },
        }
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
