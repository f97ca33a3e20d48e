//! Parquet files and their footers.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use crate::error::LogError;

/// The bytes at the beginning and at the end of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// The last bytes of a file whose footer is encrypted.
const ENCRYPTED_MAGIC: [u8; 4] = *b"PARE";

/// An open file and its footer.
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) footer: ArrowReaderMetadata,
}

impl OpenFile {
    /// Opens a file and reads its footer.
    pub(crate) fn open(path: &Path) -> Result<OpenFile, LogError> {
        let mut file = File::open(path).map_err(LogError::io(path))?;
        check_magic(path, &mut file)?;
        let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        let footer = footer.map_err(|error| LogError::damaged(path, error))?;
        Ok(OpenFile { file, footer })
    }

    /// Returns the number of rows of each row group.
    pub(crate) fn group_rows(&self, path: &Path) -> Result<Vec<u64>, LogError> {
        let groups = self.footer.metadata().row_groups().iter();
        let rows = groups.map(|group| u64::try_from(group.num_rows()).ok());
        rows.collect::<Option<_>>().ok_or_else(|| {
            let message = "a row group has a negative number of rows".to_owned();
            LogError::damaged(path, parquet::errors::ParquetError::General(message))
        })
    }
}

fn check_magic(path: &Path, file: &mut File) -> Result<(), LogError> {
    let not_parquet = |found: String, help| LogError::NotParquet {
        file: path.to_owned(),
        found,
        help,
    };
    let length = file.metadata().map_err(LogError::io(path))?.len();
    let mut first_bytes = Vec::new();
    let mut last_bytes = [0; MAGIC.len()];
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut first_bytes)
        .map_err(LogError::io(path))?;
    if first_bytes.is_empty() {
        return Err(not_parquet(
            "the file is empty".to_owned(),
            "write it again",
        ));
    }
    if first_bytes != MAGIC && first_bytes != ENCRYPTED_MAGIC {
        let contents = format!("the file begins with `{}`", first_bytes.escape_ascii());
        let is_gzip = first_bytes.starts_with(&[0x1f, 0x8b]);
        let help = match is_gzip {
            true => "unpack it with gzip -d",
            false => "convert it, or leave it out",
        };
        return Err(not_parquet(contents, help));
    }
    if length >= 2 * MAGIC.len() as u64 {
        file.seek(SeekFrom::End(-4))
            .and_then(|_| file.read_exact(&mut last_bytes))
            .map_err(LogError::io(path))?;
    }
    if last_bytes == ENCRYPTED_MAGIC || first_bytes == ENCRYPTED_MAGIC {
        let help = "encrypted files cannot be read; decrypt it";
        return Err(not_parquet("the footer is encrypted".to_owned(), help));
    }
    if last_bytes != MAGIC {
        let contents = "the file has no footer at its end, so it is truncated".to_owned();
        return Err(not_parquet(contents, "copy or write it again"));
    }
    Ok(())
}
