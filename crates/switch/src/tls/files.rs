//! Reading of PEM files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject, SectionKind};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore};

use super::settings::{TlsError, TlsSettings};

/// The largest number of bytes of a PEM file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The keys that the provider can use.
const USABLE_KEYS: &str =
    "a key of RSA with 2,048 bits or more, of ECDSA on P-256 or P-384, or of Ed25519";

/// A PEM file, and the key of the configuration that names it.
struct PemFile<'a> {
    path: &'a Path,
    key: &'static str,
}

/// Reads the private key and the certificate of the switch.
///
/// # Errors
/// [`TlsError`]: a file cannot be read, or the two do not belong together.
pub(super) fn certified_key(
    settings: &TlsSettings,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let file = PemFile {
        path: &settings.certificate,
        key: "certificate",
    };
    let chain = file.certificates()?;
    let key_file = PemFile {
        path: &settings.private_key,
        key: "private-key",
    };
    let key = provider.key_provider.load_private_key(key_file.key()?);
    let key = key.map_err(|error| {
        key_file.bad(
            format!("the private key cannot be used: {error}"),
            USABLE_KEYS,
        )
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // A key that does not show its public part cannot be compared.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
        Err(Error::InconsistentKeys(_)) => {
            let certificate = settings.certificate.display();
            let fault =
                format!("the private key does not belong to the certificate in {certificate}");
            Err(key_file.bad(fault, "the key that this certificate was made for"))
        }
        Err(error) => Err(file.unusable(&error)),
    }
}

/// Reads the certificates of the CAs.
///
/// # Errors
/// [`TlsError`]: the file cannot be read, or has a certificate that cannot be used.
pub(super) fn roots(settings: &TlsSettings) -> Result<Arc<RootCertStore>, TlsError> {
    let file = PemFile {
        path: &settings.ca_certificate,
        key: "ca-certificate",
    };
    let mut roots = RootCertStore::empty();
    for certificate in file.certificates()? {
        roots
            .add(certificate)
            .map_err(|error| file.unusable(&error))?;
    }
    Ok(Arc::new(roots))
}

impl PemFile<'_> {
    fn bad(&self, found: impl Into<String>, expected: &str) -> TlsError {
        TlsError::Bad {
            file: self.path.to_owned(),
            key: self.key,
            found: found.into(),
            expected: expected.to_owned(),
        }
    }

    fn unusable(&self, error: &Error) -> TlsError {
        let fault = format!("a certificate cannot be used: {error}");
        self.bad(fault, "certificates of X.509 version 3")
    }

    fn bytes(&self) -> Result<Vec<u8>, TlsError> {
        let io_error = |error| TlsError::Io {
            file: self.path.to_owned(),
            key: self.key,
            error,
        };
        let file = File::open(self.path).map_err(io_error)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        match read.map_err(io_error)? as u64 > MAX_FILE_BYTES {
            true => Err(self.bad(
                format!("the file has more than {MAX_FILE_BYTES} bytes"),
                "a shorter file",
            )),
            false => Ok(bytes),
        }
    }

    /// Returns the sections of the file. `expected` describes the sections that it needs.
    fn sections(&self, expected: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, TlsError> {
        let bytes = self.bytes()?;
        let is_encrypted = bytes.windows(9).any(|window| window == b"ENCRYPTED");
        if is_encrypted {
            let remedy = "a key without passphrase; `openssl pkey -in OLD -out NEW` removes it";
            return Err(self.bad("the private key is encrypted", remedy));
        }
        let sections: Result<Vec<_>, pem::Error> = PemObject::pem_slice_iter(&bytes).collect();
        sections.map_err(|error| self.bad(damage(&error), expected))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let expected = "a certificate between `-----BEGIN CERTIFICATE-----` and \
                        `-----END CERTIFICATE-----`";
        let sections = self.sections(expected)?;
        let fault = format!("no certificate, but {}", contents(&sections));
        let certificates = sections.into_iter();
        let certificates: Vec<_> = certificates
            .filter_map(|(kind, bytes)| CertificateDer::from_pem(kind, bytes))
            .collect();
        match certificates.is_empty() {
            true => Err(self.bad(fault, expected)),
            false => Ok(certificates),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let expected = "a private key between `-----BEGIN PRIVATE KEY-----` and \
                        `-----END PRIVATE KEY-----`";
        let sections = self.sections(expected)?;
        let fault = format!("no private key, but {}", contents(&sections));
        let mut keys = sections.into_iter();
        let key = keys.find_map(|(kind, bytes)| PrivateKeyDer::from_pem(kind, bytes));
        key.ok_or_else(|| self.bad(fault, expected))
    }
}

/// Returns the damage of a PEM file.
fn damage(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a PEM section has no end".to_owned(),
        pem::Error::IllegalSectionStart { .. } => {
            "a line that begins a PEM section is damaged".to_owned()
        }
        pem::Error::Base64Decode(_) => "a PEM section is not in base64".to_owned(),
        error => error.to_string(),
    }
}

/// Returns the numbers of sections by kind, for messages.
fn contents(sections: &[(SectionKind, Vec<u8>)]) -> String {
    let is_key = |kind: &SectionKind| {
        matches!(
            kind,
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
        )
    };
    let count = |is_of_kind: &dyn Fn(&SectionKind) -> bool| {
        sections.iter().filter(|(kind, _)| is_of_kind(kind)).count()
    };
    let certificates = count(&|kind| *kind == SectionKind::Certificate);
    let keys = count(&is_key);
    let other_sections = sections.len() - certificates - keys;
    let counts = [
        (certificates, "certificate"),
        (keys, "private key"),
        (other_sections, "other section"),
    ];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let texts: Vec<String> = counts
        .map(|(number, noun)| classyard_text::line::counted(number, noun))
        .collect();
    match texts.is_empty() {
        true => "no PEM section".to_owned(),
        false => texts.join(" and "),
    }
}
