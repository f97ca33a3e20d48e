//! TLS in a build without the feature `tls`: there is none.

use std::io;

use tokio::net::TcpStream;

use super::settings::{TlsError, TlsSettings};

/// No value of this type exists.
pub(crate) enum Tls {}

impl Tls {
    /// Refuses to use TLS.
    ///
    /// # Errors
    /// Always [`TlsError::NoFeature`].
    pub(crate) fn load(_: &TlsSettings) -> Result<Tls, TlsError> {
        Err(TlsError::NoFeature)
    }

    pub(crate) async fn accept(&self, _: TcpStream) -> Result<TcpStream, String> {
        match *self {}
    }

    pub(crate) async fn connect(&self, _: &str, _: TcpStream) -> Result<TcpStream, String> {
        match *self {}
    }
}

/// Returns the reason why a connection ended.
pub(crate) fn reason(error: &io::Error) -> String {
    error.to_string()
}
