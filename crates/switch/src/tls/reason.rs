//! Reasons of failed handshakes and ended connections, for people.

use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Returns the reason why a connection failed or ended.
pub(crate) fn reason(error: &io::Error) -> String {
    let tls_error = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls_error {
        Some(error) => of_tls(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the other end closed it".to_owned()
        }
        None => error.to_string(),
    }
}

fn of_tls(error: &Error) -> String {
    match error {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge,
        ) => "the other end does not speak TLS; it may use plain TCP".to_owned(),
        Error::NoCertificatesPresented => {
            "the other end has sent no certificate; give it a private key and a certificate"
                .to_owned()
        }
        Error::InvalidCertificate(error) => {
            format!("the certificate of the other end {}", of_certificate(error))
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(cause) => format!(
            "the other end has no TLS version, cipher or signature in common with the switch, \
             which has TLS 1.2 and 1.3 ({cause:?})"
        ),
        error => error.to_string(),
    }
}

/// Returns the end of a sentence about the other end's certificate.
fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; compare the clocks".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "is not signed by a CA in the file `ca-certificate`".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is for another purpose, by its extended key usage".to_owned()
        }
        error => format!("cannot be used: {error}"),
    }
}

/// Returns the reason that an alert of the other end gives.
fn of_alert(alert: AlertDescription) -> String {
    let cause = match alert {
        AlertDescription::UnknownCA => "it does not trust the CA that signed it",
        AlertDescription::CertificateExpired => "it has expired",
        AlertDescription::CertificateRevoked => "it is revoked",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown => "it gives no reason",
        AlertDescription::ProtocolVersion => {
            return "the other end supports neither TLS 1.2 nor TLS 1.3".to_owned();
        }
        alert => return format!("the other end has ended TLS with the alert {alert:?}"),
    };
    format!("the other end refuses the certificate of this switch: {cause}")
}
