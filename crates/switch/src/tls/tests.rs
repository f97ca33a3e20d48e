//! PEM files, and handshakes between two ends of this module.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;

use super::authority::{Authority, Folder, Identity};
use super::files::roots;
use super::names::AnyName;
use super::{Tls, TlsSettings, reason};

fn settings(folder: &Folder) -> TlsSettings {
    TlsSettings {
        private_key: folder.path().join("key.pem"),
        certificate: folder.path().join("cert.pem"),
        ca_certificate: folder.path().join("ca.pem"),
    }
}

/// Returns an end with an identity, which trusts an authority.
fn end(identity: &Identity, trusted: &Authority) -> Tls {
    let folder = Folder::new();
    folder.write_identity(identity, trusted);
    Tls::load(&settings(&folder)).expect("good files")
}

/// The results of the two ends of a handshake.
type Results = (Result<(), String>, Result<(), String>);

/// Connects two ends and sends a byte. Returns the results of the accepting and the connecting
/// end.
fn meet(accepting: &Tls, connecting: &Tls) -> Results {
    run(accepting, async |stream| {
        let mut stream = Box::pin(connecting.connect("localhost", stream).await?);
        let read = stream.read_u8().await.map_err(|error| reason(&error));
        read.map(|byte| assert_eq!(byte, 7))
    })
}

/// Lets an end accept a connection of `connect` and send a byte. Returns the results of both.
fn run(accepting: &Tls, connect: impl AsyncFnOnce(TcpStream) -> Result<(), String>) -> Results {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let accept = async {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut stream = Box::pin(accepting.accept(stream).await?);
            stream.write_u8(7).await.expect("an open connection");
            stream.flush().await.expect("an open connection");
            Ok(())
        };
        let connect = async {
            let stream = TcpStream::connect(address).await.expect("a connection");
            connect(stream).await
        };
        tokio::join!(accept, connect)
    })
}

/// Fails the test unless a handshake failed for the reasons.
#[track_caller]
fn assert_refused(results: &Results, accepting: &str, connecting: &str) {
    let (accepted, connected) = results;
    assert_eq!(accepted, &Err(accepting.to_owned()));
    assert_eq!(connected, &Err(connecting.to_owned()));
}

#[test]
fn two_ends_of_one_authority_meet() {
    let authority = Authority::new("one");
    let (first, second) = (authority.sign(), authority.sign());
    // The certificates name another host than `localhost`.
    let results = meet(&end(&first, &authority), &end(&second, &authority));
    assert_eq!(results, (Ok(()), Ok(())));
    // Each end may have an authority of its own.
    let other = Authority::new("other");
    let results = meet(&end(&first, &other), &end(&other.sign(), &authority));
    assert_eq!(results, (Ok(()), Ok(())));
}

#[test]
fn certificates_of_others_are_refused() {
    let (one, other) = (Authority::new("one"), Authority::new("other"));
    // An authority of equal name with another key.
    let false_one = Authority::new("one");
    let good = end(&one.sign(), &one);
    let unknown = "the certificate of the other end is not signed by a CA in the file \
                   `ca-certificate`";
    let untrusted = "the other end refuses the certificate of this switch: it does not trust the \
                     CA that signed it";
    assert_refused(&meet(&good, &end(&other.sign(), &one)), unknown, untrusted);
    assert_refused(&meet(&end(&other.sign(), &one), &good), untrusted, unknown);
    let (accepted, connected) = meet(&good, &end(&false_one.sign(), &one));
    assert!(accepted.is_err() && connected.is_err());
}

#[test]
fn certificates_out_of_date_are_refused() {
    let authority = Authority::new("one");
    let good = end(&authority.sign(), &authority);
    let expired = end(&authority.sign_for(1975, 2020), &authority);
    let early = end(&authority.sign_for(4000, 4096), &authority);
    let reason = "the certificate of the other end has expired";
    let alert = "the other end refuses the certificate of this switch: it has expired";
    assert_refused(&meet(&good, &expired), reason, alert);
    assert_refused(&meet(&expired, &good), alert, reason);
    let (accepted, connected) = meet(&good, &early);
    let reason = "the certificate of the other end is not valid yet; compare the clocks";
    assert_eq!(accepted, Err(reason.to_owned()));
    assert!(connected.is_err());
}

#[test]
fn controllers_without_certificate_are_refused() {
    let authority = Authority::new("one");
    let folder = Folder::new();
    folder.write_identity(&authority.sign(), &authority);
    let settings = settings(&folder);
    let good = Tls::load(&settings).expect("good files");
    let provider = Arc::new(ring::default_provider());
    let verifier = AnyName {
        roots: roots(&settings).expect("a good file"),
        algorithms: provider.signature_verification_algorithms,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let (accepted, _) = run(&good, async |stream| {
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = connector.connect(name, stream).await;
        let mut stream = stream.map_err(|error| reason(&error))?;
        let read = stream.read_u8().await.map_err(|error| reason(&error));
        read.map(|byte| panic!("received {byte}"))
    });
    let reason = "the other end has sent no certificate; give it a private key and a certificate";
    assert_eq!(accepted, Err(reason.to_owned()));
}

#[test]
fn peers_without_tls_are_refused() {
    let authority = Authority::new("one");
    let good = end(&authority.sign(), &authority);
    let plain = "the other end does not speak TLS; it may use plain TCP";
    for bytes in [
        &b"\x04\x00\x00\x08\x00\x00\x00\x01"[..],
        b"\x06\x00\x00\x10\x00\x00\x00\x01\x00\x01\x00\x08\x00\x00\x00\x10",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let (accepted, _) = run(&good, async |mut stream| {
            stream.write_all(bytes).await.expect("an open connection");
            let mut answer = Vec::new();
            // An alert, or the end.
            let _any = stream.read_to_end(&mut answer).await;
            Ok(())
        });
        assert_eq!(accepted, Err(plain.to_owned()));
    }
    let (accepted, _) = run(&good, async |_| Ok(()));
    assert_eq!(accepted, Err("the other end closed it".to_owned()));
}

/// Files of `[tls]` with a mistake: the file, its text, and a part of the message.
fn bad_files(authority: &Authority) -> Vec<(&'static str, String, &'static str)> {
    let identity = authority.sign();
    let cut = &identity.certificate[..identity.certificate.len() / 2];
    let damaged = identity.key.replacen('\n', "\n*", 1);
    let encrypted = identity.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let empty = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let empty_key = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    vec![
        (
            "key.pem",
            String::new(),
            "no private key, but no PEM section; `private-key` of `[tls]` needs a private key between",
        ),
        (
            "key.pem",
            identity.certificate.repeat(2),
            "no private key, but 2 certificates; `private-key`",
        ),
        (
            "cert.pem",
            identity.key.clone(),
            "no certificate, but 1 private key; `certificate` of `[tls]` needs a certificate between",
        ),
        ("cert.pem", cut.to_owned(), "a PEM section has no end"),
        ("key.pem", damaged, "a PEM section is not in base64"),
        (
            "key.pem",
            encrypted,
            "the private key is encrypted; `private-key` of `[tls]` needs a key without passphrase",
        ),
        (
            "key.pem",
            empty_key.to_owned(),
            "the private key cannot be used: ",
        ),
        (
            "cert.pem",
            empty.to_owned(),
            "a certificate cannot be used: ",
        ),
        ("ca.pem", empty.to_owned(), "a certificate cannot be used: "),
        (
            "ca.pem",
            "x".repeat((1 << 20) + 1),
            "the file has more than 1048576 bytes",
        ),
        (
            "key.pem",
            authority.sign().key,
            "the private key does not belong to the certificate in ",
        ),
    ]
}

#[test]
fn bad_files_are_named() {
    let authority = Authority::new("one");
    let folder = Folder::new();
    let identity = authority.sign();
    for (name, text, message) in bad_files(&authority) {
        folder.write_identity(&identity, &authority);
        assert!(settings(&folder).check().is_ok());
        let path = folder.write(name, &text);
        let error = settings(&folder).check().unwrap_err().to_string();
        let message = format!("{}: {message}", path.display());
        assert!(error.starts_with(&message), "{error}\nexpected {message}");
    }
    for name in ["key.pem", "cert.pem", "ca.pem"] {
        folder.write_identity(&identity, &authority);
        std::fs::remove_file(folder.path().join(name)).expect("a file");
        let error = settings(&folder).check().unwrap_err().to_string();
        assert!(error.contains(&format!("/{name}: No such file")), "{error}");
        assert!(error.contains("of `[tls]` must name a PEM file"), "{error}");
    }
}
