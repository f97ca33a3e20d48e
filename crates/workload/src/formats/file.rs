//! Opening a file, and nothing else.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{Fault, text};
use crate::diagnostic::{Problems, ReadError};

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of packed files that are not read, with the programs that
/// unpack them.
const UNREAD: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (b"BZh", "bzip2"),
];

/// Reads a text file; one that is gzip is unpacked, whatever its name.
///
/// # Errors
/// [`ReadError::Io`] when it cannot be read or unpacked, [`ReadError::Bad`]
/// with line and column when it is not UTF-8, [`ReadError::Format`] when it is
/// packed in another way.
pub fn read_text_file(path: &Path) -> Result<String, ReadError> {
    let source = path.display().to_string();
    let io = |error: io::Error| ReadError::Io {
        file: source.clone(),
        error,
    };
    let mut bytes = fs::read(path).map_err(io)?;
    if bytes.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes.as_slice())
            .read_to_end(&mut unpacked)
            .map_err(io)?;
        bytes = unpacked;
    }
    if let Some((_, program)) = UNREAD.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(ReadError::Format {
            file: source,
            found: format!("the file is packed with {program}"),
            expected: "plain text or gzip; unpack the file first".to_owned(),
        });
    }
    into_text(&source, bytes)
}

/// Bytes as text, or where they stop to be.
fn into_text(source: &str, bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(valid).copied().unwrap_or(0);
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        let mut problems = Problems::new(source);
        if let Some((number, line)) = text::lines(&before).last() {
            let end = &line[line.len()..];
            let fault = Fault::new(end, format!("byte {byte:#04x} is not UTF-8"), "UTF-8 text");
            problems.push(fault.at(number, line));
        }
        ReadError::Bad(problems)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

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
        assert_eq!(read_text_file(&path).unwrap(), "hello\n");
        // Two members in a row, as parallel packers write them.
        fs::write(&path, [packed.as_slice(), &packed].concat()).unwrap();
        assert_eq!(read_text_file(&path).unwrap(), "hello\nhello\n");
        fs::write(&path, &packed[..packed.len() - 4]).unwrap();
        let cut = read_text_file(&path).unwrap_err();
        assert!(matches!(cut, ReadError::Io { .. }), "{cut}");
        fs::write(&path, b"\xfd7zXZ\0....").unwrap();
        assert!(
            read_text_file(&path)
                .unwrap_err()
                .to_string()
                .contains("xz")
        );
        fs::remove_dir_all(&folder).unwrap();
        let missing = read_text_file(&path).unwrap_err().to_string();
        assert!(missing.contains("rules: "), "{missing}");
    }
}
