//! The reasons why logs cannot be looked up.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use classyard_arrow::BatchError;
use parquet::errors::ParquetError;
use thiserror::Error;

/// Logs cannot be looked up. Rows are counted from 0 in each file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A pattern of file names is wrong.
    #[error("`{pattern}` is not a pattern of file names: {error}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The position and the reason.
        error: String,
    },
    /// No file has a name of a pattern.
    #[error("no file matches `{pattern}`")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A folder has no Parquet files.
    #[error(
        "{}: no file below this folder has a name that ends with .parquet; hidden files and names that begin with _ are left out",
        .folder.display()
    )]
    NoFiles {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder has more levels of folders than are read.
    #[error("{}: more than {limit} levels of folders; does a link lead back?", .folder.display())]
    TooDeep {
        /// The folder that was not read.
        folder: PathBuf,
        /// The maximum number of levels.
        limit: usize,
    },
    /// A file or folder cannot be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file is not a complete Parquet file.
    #[error("{}: {found}; expected a Parquet file; {help}", .file.display())]
    NotParquet {
        /// The file.
        file: PathBuf,
        /// The contents.
        found: String,
        /// A way to solve the problem.
        help: &'static str,
    },
    /// The reader of Parquet refuses a file.
    #[error(
        "{}: {}; the file is damaged, or uses a part of Parquet that is not supported; write it again",
        .file.display(), reason(.error)
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: ParquetError,
    },
    /// The columns of a file are not headers of the policy.
    #[error("{}: {error}", .file.display())]
    Batch {
        /// The file.
        file: PathBuf,
        /// The reason, with column and row.
        error: BatchError,
    },
    /// A file lacks a column.
    #[error(
        "{}: no column `{column}` for {purpose}; the columns are {}", .file.display(), .columns.join(", ")
    )]
    MissingColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The use of the column.
        purpose: &'static str,
        /// The columns of the file.
        columns: Vec<String>,
    },
    /// The column of verdicts has another type than text.
    #[error(
        "{}: the column `{column}` of verdicts is of type {found}; expected strings or a dictionary of strings",
        .file.display()
    )]
    VerdictType {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The type of the column.
        found: DataType,
    },
    /// A column of the results has the name of a column that is kept.
    #[error(
        "{}: the column `{column}` exists already, so no column of results can have this name; choose another prefix for the names of results, or keep other columns",
        .file.display()
    )]
    NameClash {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// The kept columns of two files differ.
    #[error(
        "{}: {found}, but {} has {expected}; one file cannot have both: keep columns that are the same in all files, or none",
        .file.display(), .first.display()
    )]
    OtherColumns {
        /// The file.
        file: PathBuf,
        /// The kept columns of this file.
        found: String,
        /// The first file.
        first: PathBuf,
        /// The kept columns of the first file.
        expected: String,
    },
    /// A row group is too large.
    #[error(
        "{}: row group {group} has {rows} rows; the limit is {limit}; write the file with smaller row groups",
        .file.display()
    )]
    LargeGroup {
        /// The file.
        file: PathBuf,
        /// The row group, from 0.
        group: usize,
        /// Its number of rows.
        rows: u64,
        /// The maximum number of rows.
        limit: u64,
    },
    /// A file has changed since its footer was read.
    #[error("{}: the file has changed while it was read; run the command again", .file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The results cannot be written.
    #[error("the results cannot be written: {0}")]
    Output(io::Error),
    /// A thread cannot be started.
    #[error("thread {number} cannot be started: {error}; use fewer threads")]
    Thread {
        /// The number of the thread, from 1.
        number: usize,
        /// The reason.
        error: io::Error,
    },
    /// The progress callback has ended the work.
    #[error("cancelled")]
    Cancelled,
}

/// Returns the message of an error without the word that names its kind.
fn reason(error: &ParquetError) -> String {
    let text = error.to_string();
    let kinds = ["Parquet error: ", "External: ", "Arrow: ", "EOF: "];
    let stripped = kinds.iter().find_map(|kind| text.strip_prefix(kind));
    stripped.unwrap_or(&text).to_owned()
}

impl LogError {
    /// Returns the error of a file that cannot be read.
    pub(crate) fn io(file: &Path) -> impl FnOnce(io::Error) -> LogError {
        move |error| LogError::Io {
            file: file.to_owned(),
            error,
        }
    }

    /// Returns the error of a file that the reader of Parquet refuses.
    pub(crate) fn damaged(file: &Path, error: impl Into<ParquetError>) -> LogError {
        LogError::Damaged {
            file: file.to_owned(),
            error: error.into(),
        }
    }

    /// Returns the error of results that cannot be written.
    pub(crate) fn output(error: ParquetError) -> LogError {
        let kind = |error: &(dyn std::error::Error + 'static)| {
            error.downcast_ref::<io::Error>().map(io::Error::kind)
        };
        LogError::Output(match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(inner) => io::Error::new(
                    kind(inner.as_ref()).unwrap_or(io::ErrorKind::Other),
                    inner.to_string(),
                ),
            },
            other => io::Error::other(other.to_string()),
        })
    }

    /// Returns the file at fault, if a single file is.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            LogError::NoFiles { folder: file }
            | LogError::TooDeep { folder: file, .. }
            | LogError::Io { file, .. }
            | LogError::NotParquet { file, .. }
            | LogError::Damaged { file, .. }
            | LogError::Batch { file, .. }
            | LogError::MissingColumn { file, .. }
            | LogError::VerdictType { file, .. }
            | LogError::NameClash { file, .. }
            | LogError::OtherColumns { file, .. }
            | LogError::LargeGroup { file, .. }
            | LogError::Changed { file } => Some(file),
            LogError::BadPattern { .. }
            | LogError::NoMatch { .. }
            | LogError::Output(_)
            | LogError::Thread { .. }
            | LogError::Cancelled => None,
        }
    }
}

/// A list of names for messages.
pub(crate) fn quoted(names: &[impl fmt::Display]) -> String {
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}
