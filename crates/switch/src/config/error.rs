//! Reasons why a configuration file cannot be read.

use std::fmt;
use std::io;

use classyard_text::Problems;

/// A reason why a configuration file cannot be read. Nothing of the file is used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be opened or read.
    Io {
        /// The file.
        file: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file has more bytes than a configuration may have.
    TooLong {
        /// The file.
        file: String,
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The file has mistakes, each with line and column.
    Bad(Problems),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Io { file, error } => write!(f, "{file}: {error}"),
            ConfigError::TooLong { file, max_bytes } => write!(
                f,
                "{file}: more than {max_bytes} bytes, the limit for a configuration file"
            ),
            ConfigError::Bad(problems) => problems.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConfigError::Io { error, .. } => Some(error),
            ConfigError::TooLong { .. } => None,
            ConfigError::Bad(problems) => Some(problems),
        }
    }
}
