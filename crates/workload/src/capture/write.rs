//! The writer of pcap files.

use std::io::{self, Write};

use classyard::key::unpack;
use classyard::{PolicyTrace, Schema};
use thiserror::Error;

use super::frame::{ipv4_frame, ipv6_frame};
use crate::packet::LinkType;

/// The magic number of a file with nanosecond timestamps.
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;

/// The snap length in the file header, in bytes.
const SNAP_LENGTH: u32 = 262_144;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Writes a little-endian pcap file with nanosecond timestamps.
///
/// The file header is one call of [`Write::write_all`], and so is each packet. If the
/// stream never splits such a call, its content is a valid file at any time. Wrap files
/// in a [`BufWriter`](io::BufWriter): packets are small.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    out: W,
    /// The record of the current packet.
    record: Vec<u8>,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// The error of the stream.
    pub fn new(mut out: W, link: LinkType) -> io::Result<PcapWriter<W>> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&MAGIC_NANOS.to_le_bytes());
        header[4] = 2;
        header[6] = 4;
        header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
        header[20..22].copy_from_slice(&link.number().to_le_bytes());
        out.write_all(&header)?;
        Ok(PcapWriter {
            out,
            record: Vec::new(),
        })
    }

    /// Writes a packet with its capture time in nanoseconds since 1970, its original
    /// length and its captured bytes.
    ///
    /// # Errors
    /// The error of the stream. [`io::ErrorKind::InvalidInput`] if the time is after
    /// 2106 or the frame is longer than 262,144 bytes, which the format cannot hold; in
    /// this case nothing is written.
    pub fn packet(
        &mut self,
        timestamp_ns: u64,
        original_length: u32,
        frame: &[u8],
    ) -> io::Result<()> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let seconds = u32::try_from(timestamp_ns / NANOS_PER_SECOND)
            .map_err(|_| invalid("a pcap file cannot hold times after the year 2106"))?;
        let nanos = u32::try_from(timestamp_ns % NANOS_PER_SECOND).unwrap_or(0);
        let captured = u32::try_from(frame.len())
            .ok()
            .filter(|&captured| captured <= SNAP_LENGTH)
            .ok_or_else(|| invalid("a packet of more than 262144 bytes"))?;
        self.record.clear();
        for number in [seconds, nanos, captured, original_length] {
            self.record.extend_from_slice(&number.to_le_bytes());
        }
        self.record.extend_from_slice(frame);
        self.out.write_all(&self.record)
    }

    /// Flushes the stream; more packets may follow.
    ///
    /// # Errors
    /// The error of the stream.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the stream, to inspect it.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Flushes the stream and returns it.
    ///
    /// # Errors
    /// The error of the stream.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Counts of what [`write_trace`] wrote and what packets could not carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// Packets written: one for each header.
    pub packets: u64,
    /// Headers with a port other than 0 and a protocol without ports. Reading the file
    /// gives port 0 for both ports.
    pub ports_lost: u64,
    /// IPv6 headers with the protocol number of an extension header. Reading the file
    /// gives protocol 59.
    pub protocols_lost: u64,
}

/// A reason why a trace cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The stream failed.
    #[error("cannot write the capture: {0}")]
    Io(#[from] io::Error),
    /// Packets cannot be made from headers of the schema.
    #[error(
        "packets cannot be made from headers of the schema `{schema}`, only of ipv4-5tuple and \
         ipv6-5tuple; write this trace as text instead"
    )]
    Schema {
        /// The schema's name.
        schema: String,
    },
}

/// Writes a packet for each header of a trace; [`frame`](super::frame) describes the
/// packets. `timestamp_ns` returns the time of the packet at a position.
///
/// Reading the file back gives the same five-tuples, except for the losses that the
/// report counts.
///
/// # Errors
/// [`WriteError::Schema`] before anything is written; [`WriteError::Io`].
pub fn write_trace<W: Write>(
    out: W,
    trace: &PolicyTrace,
    timestamp_ns: impl Fn(usize) -> u64,
) -> Result<TraceReport, WriteError> {
    let (v4, v6) = (Schema::ipv4_5tuple(), Schema::ipv6_5tuple());
    for (part, _) in trace.iter() {
        let schema = trace.part(part).schema();
        if *schema != v4 && *schema != v6 {
            return Err(WriteError::Schema {
                schema: schema.name().to_owned(),
            });
        }
    }
    let mut writer = PcapWriter::new(out, LinkType::Ethernet)?;
    let mut report = TraceReport::default();
    let mut frame = Vec::new();
    for (position, (part, key)) in trace.iter().enumerate() {
        let schema = trace.part(part).schema();
        // A five-tuple has five fields.
        let header = <[u128; 5]>::try_from(unpack(schema, key)).unwrap_or([0; 5]);
        let lost = if *schema == v4 {
            ipv4_frame(&header, &mut frame)
        } else {
            ipv6_frame(&header, &mut frame)
        };
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        writer.packet(timestamp_ns(position), length, &frame)?;
        report.packets += 1;
        report.ports_lost += u64::from(lost.ports);
        report.protocols_lost += u64::from(lost.protocol);
    }
    writer.finish()?;
    Ok(report)
}
