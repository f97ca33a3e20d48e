//! The capture reader: detects the format of a stream and reads its packets one by one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::input::Input;
use super::state::{State, count, format_error};
use super::{
    Capture, CaptureProblem, Format, Interface, Packet, ReadOptions, Warning, pcap, pcapng,
};
use crate::diagnostic::ReadError;

/// Reads a capture that is in memory already. `source` names it in messages.
///
/// # Errors
/// [`ReadError::Format`] if this is not a capture, or its header is incomplete;
/// [`ReadError::Limit`] if it has more packets than the options allow, or more than
/// 65,536 interfaces; [`ReadError::TooLong`] if it has more bytes than the options
/// allow.
pub fn read_capture(
    source: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    read_capture_from(source, bytes, options)
}

/// Reads a capture from a stream, to its end. `source` names it in messages.
///
/// # Errors
/// As [`read_capture`], and [`ReadError::Io`] if the stream fails.
pub fn read_capture_from(
    source: &str,
    stream: impl Read,
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    let options = ReadOptions {
        // Positions of packets must fit into 32 bits.
        limit: options.limit.min(u32::MAX as usize),
        ..*options
    };
    let mut reader = CaptureReader::new(source, stream, &options)?;
    let mut packets = Vec::new();
    let mut bytes = Vec::new();
    while let Some(Record { mut packet, frame }) = reader.next_record()? {
        packet.offset = count(bytes.len());
        bytes.extend_from_slice(frame);
        packets.push(packet);
    }
    let format = reader.format();
    let State {
        interfaces,
        warnings,
        more_warnings,
        skipped_blocks,
        more_skipped_blocks,
        ..
    } = reader.state;
    Ok(Capture {
        source: source.to_owned(),
        format,
        interfaces,
        packets,
        bytes,
        warnings,
        more_warnings,
        skipped_blocks,
        more_skipped_blocks,
    })
}

/// Reads a capture file.
///
/// # Errors
/// As [`read_capture`], and [`ReadError::Io`] if the file cannot be read.
pub fn read_capture_file(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    let source = path.as_ref().display().to_string();
    match File::open(path) {
        Ok(file) => read_capture_from(&source, file, options),
        Err(error) => Err(ReadError::Io {
            file: source,
            error,
        }),
    }
}

/// Reads the packets of a capture one by one, from a stream of any length.
///
/// Only a buffer is held in memory: 64 KiB, or as much as the longest record needs
/// within [`ReadOptions::max_record`]. An endless stream, such as a pipe from a
/// capturing program, is read as it arrives: the reader never waits for more than the
/// next record.
///
/// ```
/// use classyard_workload::capture::{CaptureReader, PcapWriter, ReadOptions};
/// use classyard_workload::packet::LinkType;
///
/// let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet)?;
/// writer.packet(0, 60, &[0; 60])?;
/// let bytes = writer.finish()?;
///
/// let options = ReadOptions::STREAMED;
/// let mut reader = CaptureReader::new("example", bytes.as_slice(), &options)?;
/// while let Some(record) = reader.next_record()? {
///     println!("{} bytes", record.frame.len());
/// }
/// for warning in reader.warnings() {
///     eprintln!("{}: {warning}", reader.source());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CaptureReader<R> {
    pub(super) input: Input<R>,
    decoder: Decoder,
    state: State,
    ended: bool,
}

/// A packet of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The packet's time, interface and length.
    pub packet: Packet,
    /// The packet's captured bytes.
    pub frame: &'a [u8],
}

#[derive(Debug)]
enum Decoder {
    Pcap(pcap::Records),
    Pcapng(pcapng::Section),
}

impl<R: Read> CaptureReader<R> {
    /// Reads a capture's header. `source` names the capture in messages.
    ///
    /// # Errors
    /// [`ReadError::Format`] if this is not a capture, or its header is incomplete;
    /// [`ReadError::Io`] if the stream fails.
    pub fn new(
        source: &str,
        stream: R,
        options: &ReadOptions,
    ) -> Result<CaptureReader<R>, ReadError> {
        let mut input = Input::new(source, stream, options.max_bytes)?;
        let mut state = State::new(options);
        let decoder = match input.fill(4)?.first_chunk() {
            Some(&magic) if pcapng::is_magic(magic) => {
                Decoder::Pcapng(pcapng::Section::first(&mut input)?)
            }
            Some(&magic) if pcap::is_magic(magic) => {
                Decoder::Pcap(pcap::Records::open(&mut input, &mut state)?)
            }
            _ => return Err(not_a_capture(&mut input)?),
        };
        Ok(CaptureReader {
            input,
            decoder,
            state,
            ended: false,
        })
    }

    /// Returns the next packet. Returns `None` at the end of the stream, at damage that
    /// reading cannot continue after, or after [`ReadOptions::first`] packets.
    ///
    /// # Errors
    /// [`ReadError::Limit`] if there are more packets than the options allow, or more
    /// than 65,536 interfaces; [`ReadError::TooLong`] if there are more bytes than the
    /// options allow; [`ReadError::Io`] if the stream fails.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let (input, state) = (&mut self.input, &mut self.state);
        let next_packet = match &mut self.decoder {
            Decoder::Pcap(records) => records.next(input, state)?,
            Decoder::Pcapng(section) => section.next(input, state)?,
        };
        let Some((packet, range)) = next_packet else {
            self.ended = true;
            if let Some(reason) = self.input.damage() {
                let reason = reason.to_owned();
                self.state
                    .warn(self.input.total(), CaptureProblem::Gzip { reason });
            }
            return Ok(None);
        };
        let frame = self.input.taken(range);
        Ok(Some(Record { packet, frame }))
    }

    /// True if the whole next record is in memory, so that
    /// [`next_record`](CaptureReader::next_record) will not wait for the stream.
    #[must_use]
    pub fn is_buffered(&self) -> bool {
        let buffered = self.input.buffered();
        let length = match &self.decoder {
            Decoder::Pcap(records) => records.length(buffered),
            Decoder::Pcapng(section) => section.length(buffered),
        };
        self.ended || length.is_some_and(|length| length <= count(buffered.len()))
    }

    /// Returns the capture's name.
    #[must_use]
    pub fn source(&self) -> &str {
        self.input.source()
    }

    /// Returns the capture's format.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.decoder {
            Decoder::Pcap(_) => Format::Pcap,
            Decoder::Pcapng(_) => Format::Pcapng,
        }
    }

    /// Returns the interfaces so far, in file order and across sections.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.state.interfaces
    }

    /// Returns the number of packets so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.state.packets
    }

    /// Returns the first [`SHOWN`](crate::diagnostic::SHOWN) problems so far.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.state.warnings
    }

    /// Returns the number of problems that [`warnings`](Self::warnings) omits.
    #[must_use]
    pub fn more_warnings(&self) -> u64 {
        self.state.more_warnings
    }

    /// Returns the pcapng block types so far that have no packets or are not supported,
    /// each with its number of blocks. The list has the first 256 such types.
    pub fn skipped_blocks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let blocks = self.state.skipped_blocks.iter();
        blocks.map(|(&kind, &count)| (kind, count))
    }

    /// Returns the number of blocks of types that
    /// [`skipped_blocks`](Self::skipped_blocks) omits.
    #[must_use]
    pub fn more_skipped_blocks(&self) -> u64 {
        self.state.more_skipped_blocks
    }
}

fn not_a_capture<R: Read>(input: &mut Input<R>) -> Result<ReadError, ReadError> {
    let bytes = input.fill(64)?;
    let text = bytes
        .iter()
        .take(64)
        .all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let hex: String = bytes
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let description = if !bytes.is_empty() {
        let kind = if text { "a text file" } else { "a file" };
        format!("{kind} that starts with {hex}")
    } else if let Some(reason) = input.damage() {
        format!("gzip data of which nothing can be decompressed ({reason})")
    } else {
        "an empty file".to_owned()
    };
    Ok(format_error(input, description))
}
