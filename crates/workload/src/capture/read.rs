//! Finds out what a file is, decompresses it and collects its packets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{Capture, Format, Interface, Packet, ReadOptions, Trouble, Warning, pcap, pcapng};
use crate::diagnostic::{ReadError, SHOWN};
use crate::packet::LinkType;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What files are welcome, for error messages.
const EXPECTED: &str = "a pcap or pcapng capture, plain or gzip'd (one that starts with \
    a1b2c3d4, a1b23c4d or 0a0d0d0a, in either byte order)";

/// Reads a capture that is in memory already. `source` names it in messages.
///
/// # Errors
/// [`ReadError::Format`] when this is no capture, or not even its header is
/// there; [`ReadError::Limit`] when it has more packets than the options allow.
pub fn read_capture(
    source: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    if bytes.starts_with(&GZIP) {
        return read_gzip(source, bytes, options);
    }
    check_size(source, bytes.len(), options)?;
    read_plain(source, bytes.to_vec(), None, options)
}

/// Reads a capture from a stream, to its end. `source` names it in messages.
///
/// # Errors
/// As [`read_capture`], and [`ReadError::Io`] when the stream fails.
pub fn read_capture_from(
    source: &str,
    stream: impl Read,
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    let mut bytes = Vec::new();
    read_to_end(stream, &mut bytes, options).map_err(|error| ReadError::Io {
        file: source.to_owned(),
        error,
    })?;
    if bytes.starts_with(&GZIP) {
        return read_gzip(source, &bytes, options);
    }
    check_size(source, bytes.len(), options)?;
    read_plain(source, bytes, None, options)
}

/// Reads a capture file.
///
/// # Errors
/// As [`read_capture`], and [`ReadError::Io`] when the file cannot be read.
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

/// Reads until the end, or one byte more than is allowed.
fn read_to_end(stream: impl Read, bytes: &mut Vec<u8>, options: &ReadOptions) -> io::Result<()> {
    let bound = u64::try_from(options.max_bytes).unwrap_or(u64::MAX);
    stream
        .take(bound.saturating_add(1))
        .read_to_end(bytes)
        .map(|_| ())
}

fn check_size(source: &str, size: usize, options: &ReadOptions) -> Result<(), ReadError> {
    if size <= options.max_bytes {
        return Ok(());
    }
    Err(ReadError::Format {
        file: source.to_owned(),
        found: format!("more than {} bytes", options.max_bytes),
        expected: "fewer; raise the limit or split the capture".to_owned(),
    })
}

fn read_gzip(source: &str, packed: &[u8], options: &ReadOptions) -> Result<Capture, ReadError> {
    let mut bytes = Vec::new();
    // Bytes that come before the damage are kept.
    let damage = read_to_end(MultiGzDecoder::new(packed), &mut bytes, options).err();
    check_size(source, bytes.len(), options)?;
    match damage {
        Some(error) if bytes.is_empty() => Err(ReadError::Format {
            file: source.to_owned(),
            found: format!("gzip data of which nothing can be decompressed ({error})"),
            expected: EXPECTED.to_owned(),
        }),
        damage => read_plain(source, bytes, damage, options),
    }
}

fn read_plain(
    source: &str,
    bytes: Vec<u8>,
    damage: Option<io::Error>,
    options: &ReadOptions,
) -> Result<Capture, ReadError> {
    let mut reader = Reader {
        source,
        bytes: &bytes,
        options,
        interfaces: Vec::new(),
        packets: Vec::new(),
        warnings: Vec::new(),
        more_warnings: 0,
        skipped_blocks: BTreeMap::new(),
    };
    let format = match bytes.first_chunk() {
        Some(&magic) if pcapng::is_magic(magic) => Format::Pcapng,
        Some(&magic) if pcap::is_magic(magic) => Format::Pcap,
        _ => return Err(not_a_capture(source, &bytes)),
    };
    match format {
        Format::Pcap => pcap::read(&mut reader)?,
        Format::Pcapng => pcapng::read(&mut reader)?,
    }
    if let Some(error) = damage {
        reader.warn(
            bytes.len(),
            Trouble::Gzip {
                reason: error.to_string(),
            },
        );
    }
    let Reader {
        interfaces,
        packets,
        warnings,
        more_warnings,
        skipped_blocks,
        ..
    } = reader;
    Ok(Capture {
        source: source.to_owned(),
        format,
        interfaces,
        packets,
        warnings,
        more_warnings,
        skipped_blocks,
        bytes,
    })
}

fn not_a_capture(source: &str, bytes: &[u8]) -> ReadError {
    let start = &bytes[..bytes.len().min(4)];
    let text = bytes
        .iter()
        .take(64)
        .all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let found = if bytes.is_empty() {
        "an empty file".to_owned()
    } else {
        let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
        let kind = if text { "a text file" } else { "a file" };
        format!("{kind} that starts with {hex}")
    };
    ReadError::Format {
        file: source.to_owned(),
        found,
        expected: EXPECTED.to_owned(),
    }
}

/// Whether to read on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Stop,
}

/// What is collected while reading.
pub(super) struct Reader<'a> {
    source: &'a str,
    pub(super) bytes: &'a [u8],
    options: &'a ReadOptions,
    pub(super) interfaces: Vec<Interface>,
    packets: Vec<Packet>,
    warnings: Vec<Warning>,
    more_warnings: u64,
    pub(super) skipped_blocks: BTreeMap<u32, u64>,
}

/// A packet as the readers find it; all of its bytes are there.
pub(super) struct Found {
    pub(super) offset: usize,
    pub(super) captured: u32,
    pub(super) original: u32,
    pub(super) timestamp_ns: u64,
    pub(super) interface: u32,
    pub(super) link: LinkType,
}

impl Reader<'_> {
    /// Adds an interface; its position is the answer.
    pub(super) fn interface(&mut self, offset: usize, interface: Interface) -> u32 {
        let link = interface.link;
        // A file has an interface for at most every 20 bytes.
        let position = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces.push(interface);
        if matches!(link, LinkType::Other(_)) {
            self.warn(
                offset,
                Trouble::UnknownLink {
                    interface: position,
                    link,
                },
            );
        }
        position
    }

    /// Adds a packet whose record begins at `record`, unless there are enough.
    pub(super) fn packet(&mut self, record: usize, found: &Found) -> Result<Flow, ReadError> {
        if self
            .options
            .first
            .is_some_and(|first| self.packets.len() >= first)
        {
            let left = count(self.bytes.len() - record);
            self.warn(record, Trouble::Stopped { left });
            return Ok(Flow::Stop);
        }
        // Positions of packets must fit into 32 bits.
        let limit = self.options.limit.min(u32::MAX as usize);
        if self.packets.len() >= limit {
            return Err(ReadError::Limit {
                file: self.source.to_owned(),
                line: limit.saturating_add(1),
                limit,
                what: "packets",
            });
        }
        self.packets.push(Packet {
            offset: count(found.offset),
            captured: found.captured,
            original_length: found.original,
            timestamp_ns: found.timestamp_ns,
            link: found.link,
            interface: found.interface,
        });
        Ok(Flow::On)
    }

    pub(super) fn warn(&mut self, offset: usize, trouble: Trouble) {
        if self.warnings.len() < SHOWN {
            self.warnings.push(Warning {
                offset: count(offset),
                packets: count(self.packets.len()),
                trouble,
            });
        } else {
            self.more_warnings += 1;
        }
    }

    /// The file ends at its last byte inside something that starts at `offset`.
    pub(super) fn truncated(&mut self, offset: usize, what: &'static str, needed: u64) {
        let left = count(self.bytes.len() - offset);
        self.warn(offset, Trouble::Truncated { what, needed, left });
    }

    /// The error for a file whose header cannot be read.
    pub(super) fn format_error(&self, found: String) -> ReadError {
        ReadError::Format {
            file: self.source.to_owned(),
            found,
            expected: EXPECTED.to_owned(),
        }
    }
}

/// A length as it is reported.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
