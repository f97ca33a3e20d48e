//! A byte stream with a bounded buffer, decompressed if it is gzip.

use std::io::{self, Chain, Cursor, Read};
use std::ops::Range;

use flate2::read::MultiGzDecoder;

use crate::diagnostic::ReadError;
use crate::limits::FileLimit;

/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The initial length of the buffer, which is enough for most records. The buffer grows
/// to the longest record that really arrives.
const INITIAL_BUFFER_LENGTH: usize = 1 << 16;

/// A stream that records if it failed. This distinguishes an error of the stream from
/// an error of the decompressor above it.
#[derive(Debug)]
struct Watched<R> {
    stream: R,
    failed: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.stream.read(buffer);
        if let Err(error) = &result {
            self.failed = error.kind() != io::ErrorKind::Interrupted;
        }
        result
    }
}

/// The first bytes, which were read to detect gzip, and the rest of the stream.
type Whole<R> = Chain<Cursor<Vec<u8>>, Watched<R>>;

#[derive(Debug)]
enum Unpacked<R> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
}

/// A stream and the part of it that is in memory.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: String,
    stream: Unpacked<R>,
    buffer: Vec<u8>,
    /// The range of the buffer with bytes that are not yet consumed.
    filled: Range<usize>,
    /// The number of bytes consumed.
    offset: u64,
    /// The number of bytes read.
    total: u64,
    limit: FileLimit,
    ended: bool,
    /// The decompressor's error, if it failed.
    damage: Option<String>,
}

impl<R: Read> Input<R> {
    /// Opens a stream and reads its first two bytes.
    pub(super) fn new(source: &str, stream: R, max_bytes: u64) -> Result<Input<R>, ReadError> {
        let mut watched = Watched {
            stream,
            failed: false,
        };
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        let magic = GZIP_MAGIC.len() as u64;
        let read = watched.by_ref().take(magic).read_to_end(&mut start);
        read.map_err(|error| ReadError::Io {
            file: source.to_owned(),
            error,
        })?;
        let packed = start == GZIP_MAGIC;
        let whole = Cursor::new(start).chain(watched);
        Ok(Input {
            source: source.to_owned(),
            stream: if packed {
                Unpacked::Gzip(Box::new(MultiGzDecoder::new(whole)))
            } else {
                Unpacked::Plain(whole)
            },
            buffer: vec![0; INITIAL_BUFFER_LENGTH],
            filled: 0..0,
            offset: 0,
            total: 0,
            limit: FileLimit::CAPTURE.with_bytes(max_bytes),
            ended: false,
            damage: None,
        })
    }

    /// Returns the file's name.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of bytes consumed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes read; after the end of the stream, the stream's
    /// length.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the decompressor's error, if it failed.
    pub(super) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Returns the bytes in memory that are not yet consumed.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Returns the bytes that are not yet consumed: at least `wanted` bytes, fewer only
    /// at the end of the stream. The caller bounds `wanted`; memory grows with the
    /// bytes that arrive.
    ///
    /// Never waits for more than `wanted` bytes.
    pub(super) fn fill(&mut self, wanted: usize) -> Result<&[u8], ReadError> {
        while self.filled.len() < wanted && !self.ended {
            if self.buffer.len() - self.filled.start < wanted {
                let length = self.filled.len();
                if self.filled.start > 0 {
                    self.buffer.copy_within(self.filled.clone(), 0);
                    self.filled = 0..length;
                }
                if length == self.buffer.len() {
                    let grown = wanted.min(2 * length);
                    self.buffer.resize(grown, 0);
                }
            }
            let filled_end = self.filled.end;
            self.filled.end += self.read(filled_end)?;
        }
        Ok(self.buffered())
    }

    /// Consumes at most `count` bytes that are in memory. Returns their range in the
    /// buffer, which is valid until the next read.
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let start = self.filled.start;
        let end = (start + count).min(self.filled.end);
        self.filled.start = end;
        self.offset += (end - start) as u64;
        start..end
    }

    /// Returns the bytes that [`take`](Input::take) consumed.
    pub(super) fn taken(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or(&[])
    }

    /// Consumes `count` bytes, or all bytes if there are fewer, without keeping them.
    /// Returns their number.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64, ReadError> {
        let mut remaining = count;
        while remaining > 0 {
            if self.filled.is_empty() {
                if self.ended {
                    break;
                }
                self.filled = 0..0;
                self.filled.end = self.read(0)?;
            }
            let step = usize::try_from(remaining).unwrap_or(usize::MAX);
            remaining -= self.take(step).len() as u64;
        }
        Ok(count - remaining)
    }

    /// Returns the buffer's length.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Reads into the buffer from position `start` on. Returns the number of bytes
    /// read.
    fn read(&mut self, start: usize) -> Result<usize, ReadError> {
        let room = &mut self.buffer[start..];
        let result = match &mut self.stream {
            Unpacked::Plain(stream) => stream.read(room),
            Unpacked::Gzip(stream) => stream.read(room),
        };
        let failed = match &self.stream {
            Unpacked::Plain(_) => true,
            Unpacked::Gzip(stream) => stream.get_ref().get_ref().1.failed,
        };
        match result {
            Ok(0) => {
                self.ended = true;
                Ok(0)
            }
            Ok(count) => {
                self.total += count as u64;
                if self.total > self.limit.bytes {
                    return Err(ReadError::TooLong {
                        file: self.source.clone(),
                        limit: self.limit,
                    });
                }
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if failed => Err(ReadError::Io {
                file: self.source.clone(),
                error,
            }),
            // Bytes before the damage are kept.
            Err(error) => {
                self.damage = Some(error.to_string());
                self.ended = true;
                Ok(0)
            }
        }
    }
}
