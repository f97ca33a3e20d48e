//! Why a command ends without success, and with which exit code.

use std::fmt::Display;
use std::io;
use std::path::Path;

use classyard::BuildError;
use classyard::error::SpecError;
use classyard_workload::diagnostic::ReadError;

/// Answers differ or problems were found: what the command looks
/// for. Or rules were lost in writing.
pub(crate) const EXIT_DIFFERENT: u8 = 1;

/// Bad usage or unreadable input.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Answers differ, problems were found or rules were lost; the report has
    /// said so already.
    Different,
    /// The command cannot be carried out as asked.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// An input cannot be read.
    Read(ReadError),
    /// Writing to standard output failed.
    Output(io::Error),
    /// A signal ended the input early; what was read was reported.
    Interrupted {
        /// The exit code, which tells the signal.
        code: u8,
    },
}

impl Failure {
    /// A command that cannot be carried out as asked.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage {
            message: message.into(),
            help: None,
        }
    }

    /// The same, with what to do about it.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Failure {
        match self {
            Failure::Usage { message, .. } => Failure::Usage {
                message,
                help: Some(help.into()),
            },
            other => other,
        }
    }

    /// A file that cannot be written.
    pub(crate) fn file(path: &Path, error: impl Display) -> Failure {
        Failure::usage(format!("{}: {error}", path.display()))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
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
