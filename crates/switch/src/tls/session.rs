//! Handshakes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::SingleCertAndKey;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::files::{certified_key, roots};
use super::names::AnyName;
use super::reason;
use super::settings::{TlsError, TlsSettings};

/// The time that the handshake with a controller that has connected may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// TLS 1.2 and 1.3, the versions that a configuration has by default.
const VERSIONS: &str = "the provider has TLS 1.2 and 1.3";

/// The keys and certificates of a switch, ready for handshakes.
///
/// No session is resumed: a resumed session skips the check of certificates, and sessions of
/// controllers are long.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] for the first file that cannot be used.
    pub(crate) fn load(settings: &TlsSettings) -> Result<Tls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let key = certified_key(settings, &provider)?;
        let key = Arc::new(SingleCertAndKey::from(key));
        let roots = roots(settings)?;
        let verifier = AnyName {
            roots: Arc::clone(&roots),
            algorithms: provider.signature_verification_algorithms,
        };
        let verifier_of_clients =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let verifier_of_clients = verifier_of_clients.build();
        let verifier_of_clients =
            verifier_of_clients.expect("the file has a CA, and no list of revoked certificates");
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect(VERSIONS)
            .with_client_cert_verifier(verifier_of_clients)
            .with_cert_resolver(Arc::clone(&key) as _);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect(VERSIONS)
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(key);
        client.resumption = Resumption::disabled();
        Ok(Tls {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        })
    }

    /// Carries out the handshake with a controller that has connected.
    ///
    /// # Errors
    /// The reason of a failed handshake, for people.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + use<>, String> {
        match timeout(HANDSHAKE_TIME, self.acceptor.accept(stream)).await {
            Ok(done) => done.map_err(|error| reason(&error)),
            Err(_) => Err(format!(
                "no TLS handshake within {} s",
                HANDSHAKE_TIME.as_secs()
            )),
        }
    }

    /// Carries out the handshake with the controller at `host`, which the switch has connected
    /// to. The name is sent to the controller, and not checked. The caller limits the time.
    ///
    /// # Errors
    /// The reason of a failed handshake, for people.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + use<>, String> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| format!("`{host}` is not a host name of the DNS"))?;
        let connected = self.connector.connect(name, stream).await;
        connected.map_err(|error| reason(&error))
    }
}
