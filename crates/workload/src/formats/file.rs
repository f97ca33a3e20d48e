//! Reading whole files and streams, with a limit in bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{Fault, text};
use crate::diagnostic::{Problems, ReadError};
use crate::limits::FileLimit;

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of compressed files that are refused, with the programs that unpack
/// them.
const UNREAD: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (b"BZh", "bzip2"),
];

/// The maximum number of bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// Reads a text file. A gzip file is unpacked, whatever its name.
///
/// # Errors
/// [`ReadError::Io`] if the file cannot be read or unpacked, [`ReadError::TooLong`] if it
/// has more bytes than the limit, [`ReadError::Bad`] with line and column if it is not
/// UTF-8, [`ReadError::Format`] if it is compressed with another program.
pub fn read_text_file(path: &Path, limit: FileLimit) -> Result<String, ReadError> {
    let source = path.display().to_string();
    match File::open(path) {
        Ok(file) => read_text_from(&source, file, limit),
        Err(error) => Err(ReadError::Io {
            file: source,
            error,
        }),
    }
}

/// Reads a text from a stream, to its end. `source` names it in messages.
///
/// # Errors
/// As [`read_text_file`].
pub fn read_text_from(
    source: &str,
    stream: impl Read,
    limit: FileLimit,
) -> Result<String, ReadError> {
    let bytes = read_bytes_from(source, stream, limit)?;
    if let Some((_, program)) = UNREAD.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(ReadError::Format {
            file: source.to_owned(),
            found: format!("the file is packed with {program}"),
            expected: "plain text or gzip; unpack the file first".to_owned(),
        });
    }
    into_text(source, bytes)
}

/// Reads a stream to its end. A gzip stream is unpacked. `source` names it in messages.
///
/// Holds at most the limit and 64 KiB, even if the stream would unpack to more.
///
/// # Errors
/// [`ReadError::Io`] if the stream cannot be read or unpacked, [`ReadError::TooLong`] if
/// it has more bytes than the limit.
pub fn read_bytes_from(
    source: &str,
    mut stream: impl Read,
    limit: FileLimit,
) -> Result<Vec<u8>, ReadError> {
    let io = |error| ReadError::Io {
        file: source.to_owned(),
        error,
    };
    let mut start = Vec::with_capacity(GZIP.len());
    let magic = GZIP.len() as u64;
    stream
        .by_ref()
        .take(magic)
        .read_to_end(&mut start)
        .map_err(io)?;
    let packed = start == GZIP;
    let whole = io::Cursor::new(start).chain(stream);
    let read = if packed {
        read_up_to(MultiGzDecoder::new(whole), limit.bytes)
    } else {
        read_up_to(whole, limit.bytes)
    };
    read.map_err(io)?.ok_or_else(|| ReadError::TooLong {
        file: source.to_owned(),
        limit,
    })
}

/// Returns all bytes of a stream, or `None` if there are more than `max_bytes`.
fn read_up_to(mut stream: impl Read, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let limit = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    loop {
        let length = bytes.len();
        if length > limit {
            return Ok(None);
        }
        if bytes.capacity() - length < CHUNK_BYTES {
            // Doubles the buffer, up to the limit and one chunk.
            let max_growth = (limit - length).saturating_add(CHUNK_BYTES);
            bytes.try_reserve_exact(length.max(CHUNK_BYTES).min(max_growth))?;
        }
        bytes.resize(length + CHUNK_BYTES, 0);
        let read = match stream.read(&mut bytes[length..]) {
            Ok(0) => {
                bytes.truncate(length);
                return Ok(Some(bytes));
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        bytes.truncate(length + read);
    }
}

/// Converts bytes to text. The error has the position of the first byte that is not UTF-8.
fn into_text(source: &str, bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(valid).copied().unwrap_or(0);
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        let mut problems = Problems::new(source);
        if let Some((number, line)) = text::lines(&before).last() {
            let line_end = &line[line.len()..];
            let message = format!("byte {byte:#04x} is not UTF-8");
            let fault = Fault::new(line_end, message, "UTF-8 text");
            problems.push(fault.at(number, line));
        }
        ReadError::Bad(problems)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    const LIMIT: FileLimit = FileLimit::TEXT;

    #[test]
    fn bytes_that_are_no_text_are_found_by_line_and_column() {
        let error = into_text("f", b"ab\ncd\xff\n".to_vec()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "f:2:3: byte 0xff is not UTF-8; expected UTF-8 text"
        );
        let error = into_text("f", b"\xef\xbb\xbf\xff".to_vec()).unwrap_err();
        assert!(error.to_string().starts_with("f:1:1:"), "{error}");
    }

    #[test]
    fn gzip_is_unpacked_and_other_packers_are_named() {
        let folder = std::env::temp_dir().join(format!("classyard-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("rules");
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"hello\n").unwrap();
        let packed = packer.finish().unwrap();
        fs::write(&path, &packed).unwrap();
        assert_eq!(read_text_file(&path, LIMIT).unwrap(), "hello\n");
        // Two gzip members in a row, as parallel packers write them.
        fs::write(&path, [packed.as_slice(), &packed].concat()).unwrap();
        assert_eq!(read_text_file(&path, LIMIT).unwrap(), "hello\nhello\n");
        fs::write(&path, &packed[..packed.len() - 4]).unwrap();
        let cut = read_text_file(&path, LIMIT).unwrap_err();
        assert!(matches!(cut, ReadError::Io { .. }), "{cut}");
        fs::write(&path, b"\xfd7zXZ\0....").unwrap();
        assert!(
            read_text_file(&path, LIMIT)
                .unwrap_err()
                .to_string()
                .contains("xz")
        );
        fs::remove_dir_all(&folder).unwrap();
        let missing = read_text_file(&path, LIMIT).unwrap_err().to_string();
        assert!(missing.contains("rules: "), "{missing}");
    }

    /// An endless stream that counts the bytes read from it.
    struct Endless {
        taken: u64,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            self.taken += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&vec![b' '; 200_000]).unwrap();
        let packed = packer.finish().unwrap();
        let read = |stream: &[u8], bytes| read_text_from("f", stream, LIMIT.with_bytes(bytes));
        for stream in [packed.as_slice(), &[b' '; 200_000]] {
            assert_eq!(read(stream, 200_000).unwrap().len(), 200_000);
            assert_eq!(read(stream, u64::MAX).unwrap().len(), 200_000);
            for bytes in [0, 1, 65_536, 199_999] {
                let error = read(stream, bytes).unwrap_err();
                assert_eq!(
                    error.to_string(),
                    format!(
                        "f: more than {bytes} bytes, counted after unpacking: the limit for \
                         a file of rules or headers"
                    )
                );
            }
        }
        assert_eq!(read(b"", 0).unwrap(), "");
        let mut endless = Endless { taken: 0 };
        let read = read_bytes_from("f", &mut endless, LIMIT.with_bytes(1_000_000));
        assert!(matches!(read, Err(ReadError::TooLong { .. })));
        assert!(endless.taken < 1_200_000, "{}", endless.taken);
    }
}
