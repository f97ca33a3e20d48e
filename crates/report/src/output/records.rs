//! Files that grow record by record and can be read while they grow.
//!
//! A record is a line or a captured packet. The file always ends after a complete
//! record: after a failed write it is truncated to its last one.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::file::regular_target;
use crate::failure::Failure;

/// The size of the write buffer.
const BUFFER_BYTES: usize = 1 << 16;

/// A file of records. Each call of [`write`](Write::write) must pass exactly one
/// record and writes all of it. Dropping the file flushes the buffer.
pub struct RecordFile {
    path: PathBuf,
    file: File,
    /// False for devices and pipes, which cannot be truncated.
    is_regular: bool,
    /// Buffered records, and the end of each of them in the buffer.
    buffer: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes of complete records in the file.
    written_bytes: u64,
    has_failed: bool,
}

impl RecordFile {
    /// Creates a file, or truncates an existing one.
    ///
    /// # Errors
    /// [`Failure`] with the file's name.
    pub fn create(path: &Path) -> Result<RecordFile, Failure> {
        let file = File::create(path).map_err(|error| Failure::file(path, error))?;
        Ok(RecordFile::after(path, file, 0))
    }

    /// Continues a file after its `written_bytes` bytes of complete records.
    pub fn after(path: &Path, file: File, written_bytes: u64) -> RecordFile {
        RecordFile {
            path: path.to_owned(),
            file,
            is_regular: matches!(regular_target(path), Ok(Some(_))),
            buffer: Vec::new(),
            ends: Vec::new(),
            written_bytes,
            has_failed: false,
        }
    }

    /// Returns the failure for an error of this file, with help on what the file
    /// holds.
    pub fn failure(&self, error: io::Error) -> Failure {
        let failure = Failure::file(&self.path, error);
        match (self.is_regular, self.written_bytes) {
            (false, _) => failure,
            (true, 0) => failure.with_help("nothing was written, so the file was removed"),
            (true, _) => {
                failure.with_help("the file is incomplete, but each record in it is complete")
            }
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let mut done = 0;
        let result = loop {
            if done == self.buffer.len() {
                break Ok(());
            }
            match self.file.write(&self.buffer[done..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let whole = self.ends.iter().rev().find(|&&end| end <= done);
        self.written_bytes += *whole.unwrap_or(&0) as u64;
        self.buffer.clear();
        self.ends.clear();
        if result.is_err() {
            self.has_failed = true;
            self.cut_back();
        }
        result
    }

    /// Truncates the file to its last complete record, and removes a file without
    /// records. Ignores errors: the write error that came before is the one reported.
    fn cut_back(&self) {
        if !self.is_regular {
            return;
        }
        let _ = self.file.set_len(self.written_bytes);
        if self.written_bytes == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Write for RecordFile {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        if !self.buffer.is_empty() && self.buffer.len() + record.len() > BUFFER_BYTES {
            self.write_out()?;
        }
        self.buffer.extend_from_slice(record);
        self.ends.push(self.buffer.len());
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.has_failed {
            true => Err(io::Error::other("an earlier write failed")),
            false => self.write_out(),
        }
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if !self.has_failed {
            // A caller that has to report errors calls `flush` first.
            let _ = self.write_out();
        }
    }
}
