//! Reasons why a command fails, and their exit codes.

use std::fmt::Display;
use std::io;
use std::path::Path;

use classyard::BuildError;
use classyard::error::SpecError;
use classyard_workload::diagnostic::ReadError;

/// The answers differ, problems were found, or rules were lost in writing.
pub(crate) const EXIT_DIFFERENT: u8 = 1;

/// Bad usage or unreadable input.
pub const EXIT_USAGE: u8 = 2;

/// A reason why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// Answers differ, problems were found or rules were lost; the report already
    /// says so.
    Different,
    /// The command cannot be carried out as requested.
    Usage {
        /// The error.
        message: String,
        /// A way to solve the problem.
        help: Option<String>,
    },
    /// An input cannot be read.
    Read(ReadError),
    /// Writing to standard output failed.
    Output(io::Error),
    /// A signal ended the input early; the report covers the input before that.
    Interrupted {
        /// The exit code, which identifies the signal.
        code: u8,
    },
}

impl Failure {
    /// Returns a usage error with this message.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage {
            message: message.into(),
            help: None,
        }
    }

    /// Adds help to a usage error.
    pub fn with_help(self, help: impl Into<String>) -> Failure {
        match self {
            Failure::Usage { message, .. } => Failure::Usage {
                message,
                help: Some(help.into()),
            },
            other => other,
        }
    }

    /// Returns the failure for a file that cannot be written.
    pub fn file(path: &Path, error: impl Display) -> Failure {
        Failure::usage(format!("{}: {error}", path.display()))
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Different => EXIT_DIFFERENT,
            Failure::Usage { .. } | Failure::Read(_) => EXIT_USAGE,
            // The program that reads the output has closed it.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Failure::Output(_) => EXIT_USAGE,
            Failure::Interrupted { code } => *code,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure::Read(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Output(error.into())
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        Failure::usage(error.to_string())
    }
}
