//! The names of the PEM files, and errors.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::Tls;

/// True if the program has TLS, by its feature `tls`.
pub const IS_SUPPORTED: bool = cfg!(feature = "tls");

/// The PEM files of a switch. A switch reads them when it starts, and again at each reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsSettings {
    /// The private key of the switch, not encrypted.
    pub private_key: PathBuf,
    /// The certificate of the switch, followed by the certificates of CAs between it and the
    /// CA that controllers trust.
    pub certificate: PathBuf,
    /// The certificates of the CAs that sign the certificates of controllers.
    pub ca_certificate: PathBuf,
}

impl TlsSettings {
    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    /// [`TlsError`] for the first file that cannot be used.
    pub fn check(&self) -> Result<(), TlsError> {
        Tls::load(self).map(|_| ())
    }
}

/// A reason why TLS cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be opened or read.
    Io {
        /// The file.
        file: PathBuf,
        /// The key of `[tls]` that names the file.
        key: &'static str,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file has other contents than expected.
    Bad {
        /// The file.
        file: PathBuf,
        /// The key of `[tls]` that names the file.
        key: &'static str,
        /// The contents found.
        found: String,
        /// The contents expected, or a remedy.
        expected: String,
    },
    /// An address is `ssl:`, but the settings name no files.
    NoFiles,
    /// The program was built without the feature `tls`.
    NoFeature,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Io { file, key, error } => write!(
                f,
                "{}: {error}; `{key}` of `[tls]` must name a PEM file that this user can read",
                file.display()
            ),
            TlsError::Bad {
                file,
                key,
                found,
                expected,
            } => write!(
                f,
                "{}: {found}; `{key}` of `[tls]` needs {expected}",
                file.display()
            ),
            TlsError::NoFiles => f.write_str(
                "an `ssl:` address needs the table `[tls]` with `private-key`, `certificate` and \
                 `ca-certificate`",
            ),
            TlsError::NoFeature => f.write_str(
                "this program was built without TLS; build it with the feature `tls`, which is on \
                 by default",
            ),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TlsError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
