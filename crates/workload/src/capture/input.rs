//! A stream of bytes, unpacked if it is gzip, seen through a bounded buffer.

use std::io::{self, Chain, Cursor, Read};
use std::ops::Range;

use flate2::read::MultiGzDecoder;

use crate::diagnostic::ReadError;
use crate::limits::FileLimit;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The buffer's first length, which is enough for most records. It grows to
/// the longest record that is really there.
const BUFFER: usize = 1 << 16;

/// A stream that remembers whether it failed, which tells an error of the
/// stream from an error of the decompressor above it.
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

/// The first bytes, which were read to see what they are, and the rest.
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
    /// What is in memory and not consumed.
    filled: Range<usize>,
    /// Bytes that were consumed.
    offset: u64,
    /// Bytes that were read.
    total: u64,
    limit: FileLimit,
    ended: bool,
    /// What the decompressor said when it gave up.
    damage: Option<String>,
}

impl<R: Read> Input<R> {
    /// Reads the first two bytes.
    pub(super) fn new(source: &str, stream: R, max_bytes: u64) -> Result<Input<R>, ReadError> {
        let mut watched = Watched {
            stream,
            failed: false,
        };
        let mut start = Vec::with_capacity(GZIP.len());
        let magic = GZIP.len() as u64;
        let read = watched.by_ref().take(magic).read_to_end(&mut start);
        read.map_err(|error| ReadError::Io {
            file: source.to_owned(),
            error,
        })?;
        let packed = start == GZIP;
        let whole = Cursor::new(start).chain(watched);
        Ok(Input {
            source: source.to_owned(),
            stream: if packed {
                Unpacked::Gzip(Box::new(MultiGzDecoder::new(whole)))
            } else {
                Unpacked::Plain(whole)
            },
            buffer: vec![0; BUFFER],
            filled: 0..0,
            offset: 0,
            total: 0,
            limit: FileLimit::CAPTURE.with_bytes(max_bytes),
            ended: false,
            damage: None,
        })
    }

    /// The file's name.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Bytes that were consumed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were read: where a stream that has ended ended.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// What the decompressor said when it gave up.
    pub(super) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// What is in memory and not consumed.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// The next bytes: at least `wanted` of them, fewer only at the end of the
    /// stream. The caller bounds `wanted`; memory grows with what arrives.
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
            let end = self.filled.end;
            self.filled.end += self.read(end)?;
        }
        Ok(self.buffered())
    }

    /// Consumes at most `count` bytes that are in memory. Returns where they are
    /// in the buffer, for as long as nothing else is read.
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let start = self.filled.start;
        let end = (start + count).min(self.filled.end);
        self.filled.start = end;
        self.offset += (end - start) as u64;
        start..end
    }

    /// Bytes that [`take`](Input::take) consumed.
    pub(super) fn taken(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or(&[])
    }

    /// Consumes `count` bytes without keeping them, or as many as there are, and
    /// returns their number.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64, ReadError> {
        let mut left = count;
        while left > 0 {
            if self.filled.is_empty() {
                if self.ended {
                    break;
                }
                self.filled = 0..0;
                self.filled.end = self.read(0)?;
            }
            let step = usize::try_from(left).unwrap_or(usize::MAX);
            left -= self.take(step).len() as u64;
        }
        Ok(count - left)
    }

    /// The buffer's length.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Reads into the buffer from a position on; how many bytes came.
    fn read(&mut self, at: usize) -> Result<usize, ReadError> {
        let room = &mut self.buffer[at..];
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
            // Bytes that come before the damage are kept.
            Err(error) => {
                self.damage = Some(error.to_string());
                self.ended = true;
                Ok(0)
            }
        }
    }
}
