//! Certificates for tests, made when the tests run.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// The name in all certificates of switches and controllers.
pub(crate) const SUBJECT: &str = "somebody.test";

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The certificate as PEM.
    pub(crate) pem: String,
}

/// The private key and the certificate of a switch or a controller, as PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) key: String,
    pub(crate) certificate: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Signs a certificate that is valid now.
    pub(crate) fn sign(&self) -> Identity {
        self.sign_for(1975, 4096)
    }

    /// Signs a certificate that is valid from one year to another.
    pub(crate) fn sign_for(&self, first_year: i32, last_year: i32) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([SUBJECT.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(first_year, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).expect("a signature");
        Identity {
            key: key.serialize_pem(),
            certificate: certificate.pem(),
        }
    }
}

/// A folder of a test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("classyard-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Writes `key.pem`, `cert.pem` and `ca.pem`.
    pub(crate) fn write_identity(&self, identity: &Identity, trusted: &Authority) {
        self.write("key.pem", &identity.key);
        self.write("cert.pem", &identity.certificate);
        self.write("ca.pem", &trusted.pem);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}
