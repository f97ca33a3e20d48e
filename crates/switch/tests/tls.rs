//! A running switch and controllers of rustls that connect over TLS.

// `.ci/run` checks tests for 32 bits without the crate that makes certificates.
#![cfg(all(feature = "tls", target_pointer_width = "64"))]

mod authority;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use classyard_openflow::Message;
use classyard_openflow::switch::Hello;
use classyard_switch::config::SwitchSettings;
use classyard_switch::control::{ControlClient, Request, socket_path};
use classyard_switch::{StopHandle, Switch, SwitchError};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    SupportedProtocolVersion,
};

use authority::{Authority, Folder, Identity, SUBJECT};

/// The longest wait for anything that must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running switch with a configuration file.
struct Running {
    folder: Folder,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
}

impl Running {
    /// Starts a switch with the files of the folder and these tables of the configuration.
    fn start(folder: Folder, tables: &str) -> Running {
        let file = folder.write("br0.toml", &configuration(tables));
        let settings = SwitchSettings::read(&file).expect("a good configuration");
        let switch = Switch::new(settings).configuration(file);
        let stop = switch.stop_handle();
        let (sender, ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            switch.run(|_| {
                // The test waits for it, unless it has failed.
                let _failed = sender.send(());
            })
        });
        ready.recv_timeout(PATIENCE).expect("a running switch");
        Running {
            folder,
            stop,
            thread: Some(thread),
        }
    }

    fn reload(&self) -> Result<serde_json::Value, String> {
        let path = socket_path(self.folder.path(), "br0");
        let mut client = ControlClient::connect(&path).expect("a running switch");
        client.request(&Request::Reload).expect("a reply").data()
    }

    fn stop(mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        ended
            .expect("a thread")
            .expect("no panic")
            .expect("no error");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _panic = thread.join();
        }
    }
}

fn configuration(tables: &str) -> String {
    format!(
        "[switch]\nrun-dir = \".\"\n[tls]\nprivate-key = \"key.pem\"\n\
         certificate = \"cert.pem\"\nca-certificate = \"ca.pem\"\n{tables}"
    )
}

/// Starts a switch that listens for controllers. Returns it and its TCP port.
fn listening(identity: &Identity, trusted: &Authority) -> (Running, u16) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let folder = Folder::new();
    folder.write_identity(identity, trusted);
    let listen = format!("[listen]\nopenflow = [\"pssl:{port}:127.0.0.1\"]\n");
    (Running::start(folder, &listen), port)
}

fn roots(authority: &Authority) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.pem.as_bytes());
    roots
        .add(certificate.expect("a certificate"))
        .expect("an authority");
    Arc::new(roots)
}

fn key(identity: &Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
    (
        vec![certificate.expect("a certificate")],
        key.expect("a key"),
    )
}

/// A connection of a controller.
type Client = StreamOwned<ClientConnection, TcpStream>;

/// Connects to a switch. The handshake is carried out with the first message.
fn connect(
    port: u16,
    identity: &Identity,
    trusted: &Authority,
    version: &'static SupportedProtocolVersion,
) -> Client {
    let (chain, key) = key(identity);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version of the provider")
        .with_root_certificates(roots(trusted))
        .with_client_auth_cert(chain, key)
        .expect("a good certificate");
    let name = ServerName::try_from(SUBJECT).expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a good configuration");
    StreamOwned::new(client, tcp(port))
}

fn tcp(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a listening switch");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout of a socket");
    stream
}

fn send(stream: &mut impl Write, message: &Message) -> io::Result<()> {
    stream.write_all(&message.to_bytes(1))?;
    stream.flush()
}

fn read(stream: &mut impl Read) -> io::Result<Message> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes)?;
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    bytes.resize(length, 0);
    stream.read_exact(&mut bytes[8..])?;
    Ok(Message::read(&bytes).expect("a right message").1)
}

/// Exchanges hellos.
fn greet(stream: &mut (impl Read + Write)) -> io::Result<()> {
    send(stream, &Message::Hello(Hello::only_1_3()))?;
    match read(stream)? {
        Message::Hello(_) => Ok(()),
        other => panic!("{other:?} instead of a hello"),
    }
}

/// Fails the test unless the switch answers an echo request.
#[track_caller]
fn assert_alive(stream: &mut (impl Read + Write)) {
    send(stream, &Message::EchoRequest(b"echo".to_vec())).expect("an open connection");
    let reply = read(stream).expect("a reply");
    assert_eq!(reply, Message::EchoReply(b"echo".to_vec()));
}

#[test]
fn controllers_connect_over_tls() {
    let authority = Authority::new("one");
    let (switch, port) = listening(&authority.sign(), &authority);
    for version in [&TLS12, &TLS13] {
        let mut client = connect(port, &authority.sign(), &authority, version);
        greet(&mut client).expect("a hello");
        assert_alive(&mut client);
        let used = client.conn.protocol_version();
        assert_eq!(used, Some(version.version));
    }
    switch.stop();
}

#[test]
fn the_switch_connects_to_controllers_over_tls() {
    let authority = Authority::new("one");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let folder = Folder::new();
    folder.write_identity(&authority.sign(), &authority);
    let controller = format!("[[controller]]\naddress = \"ssl:127.0.0.1:{port}\"\n");
    let switch = Running::start(folder, &controller);
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(&authority), provider.clone());
    let (chain, key) = key(&authority.sign());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_client_cert_verifier(verifier.build().expect("an authority"))
        .with_single_cert(chain, key)
        .expect("a good certificate");
    let (stream, _) = listener.accept().expect("a connection of the switch");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout of a socket");
    let server = ServerConnection::new(Arc::new(config)).expect("a good configuration");
    let mut stream = StreamOwned::new(server, stream);
    greet(&mut stream).expect("a hello");
    assert_alive(&mut stream);
    assert!(stream.conn.peer_certificates().is_some());
    switch.stop();
}

/// Replies that the other end does not read yet are sent when it reads.
#[test]
fn a_slow_reader_gets_all_replies() {
    let authority = Authority::new("one");
    let (switch, port) = listening(&authority.sign(), &authority);
    let mut client = connect(port, &authority.sign(), &authority, &TLS13);
    greet(&mut client).expect("a hello");
    let count: u16 = 3_000;
    let text = |number: u16| number.to_be_bytes().repeat(512);
    for number in 0..count {
        send(&mut client, &Message::EchoRequest(text(number))).expect("an open connection");
    }
    for number in 0..count {
        let reply = read(&mut client).expect("a reply");
        assert!(reply == Message::EchoReply(text(number)), "reply {number}");
    }
    switch.stop();
}

#[test]
fn wrong_peers_are_refused_and_others_stay() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let (switch, port) = listening(&authority.sign(), &authority);
    let mut good = connect(port, &authority.sign(), &authority, &TLS13);
    greet(&mut good).expect("a hello");
    for identity in [other.sign(), authority.sign_for(1975, 2020)] {
        for version in [&TLS12, &TLS13] {
            let mut bad = connect(port, &identity, &authority, version);
            let error = greet(&mut bad).expect_err("a refusal");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
            assert_alive(&mut good);
        }
    }
    let mut plain = tcp(port);
    let hello = Message::Hello(Hello::only_1_3()).to_bytes(1);
    plain.write_all(&hello).expect("an open connection");
    let mut answer = Vec::new();
    // The answer is an alert of TLS, after which the switch closes the connection.
    let _reset = plain.read_to_end(&mut answer);
    assert_ne!(answer.first(), Some(&4), "OpenFlow without TLS");
    assert_alive(&mut good);
    switch.stop();
}

/// Peers that connect and send nothing are closed, and controllers after them get their turn.
#[test]
fn silent_peers_end_after_the_time_of_a_handshake() {
    let authority = Authority::new("one");
    let (switch, port) = listening(&authority.sign(), &authority);
    let mut good = connect(port, &authority.sign(), &authority, &TLS13);
    greet(&mut good).expect("a hello");
    let mut silent: Vec<TcpStream> = (0..20).map(|_| tcp(port)).collect();
    assert_alive(&mut good);
    let mut late = connect(port, &authority.sign(), &authority, &TLS13);
    greet(&mut late).expect("a hello");
    let mut byte = [0];
    assert_eq!(silent[0].read(&mut byte).expect("the end"), 0);
    assert_alive(&mut good);
    switch.stop();
}

#[test]
fn a_reload_reads_the_files_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (switch, port) = listening(&old.sign(), &old);
    let mut first = connect(port, &old.sign(), &old, &TLS13);
    greet(&mut first).expect("a hello");
    switch.folder.write_identity(&new.sign(), &new);
    let mut before = connect(port, &old.sign(), &old, &TLS13);
    greet(&mut before).expect("files are read at a reload only");
    switch.reload().expect("a reload");
    let mut second = connect(port, &new.sign(), &new, &TLS13);
    greet(&mut second).expect("a hello with the new files");
    assert!(greet(&mut connect(port, &old.sign(), &new, &TLS13)).is_err());
    assert!(greet(&mut connect(port, &new.sign(), &old, &TLS13)).is_err());
    assert_alive(&mut first);
    let key = switch.folder.write("key.pem", "no key");
    let error = switch.reload().expect_err("a refusal");
    let message = format!("{}: no private key, but no PEM section; ", key.display());
    assert!(error.starts_with(&message), "{error}");
    greet(&mut connect(port, &new.sign(), &new, &TLS13)).expect("the files before the mistake");
    assert_alive(&mut second);
    switch.stop();
}

/// A switch with a bad file does not start.
#[test]
fn a_switch_does_not_start_with_a_bad_file() {
    let authority = Authority::new("one");
    let folder = Folder::new();
    folder.write_identity(&authority.sign(), &authority);
    let ca = folder.write("ca.pem", "");
    let file = folder.write("br0.toml", &configuration(""));
    let settings = SwitchSettings::read(&file).expect("a good configuration");
    let switch = Switch::new(settings.clone());
    let error = switch.run(|_| panic!("it starts")).expect_err("an error");
    let message = format!("{}: no certificate, but no PEM section; ", ca.display());
    assert!(error.to_string().starts_with(&message), "{error}");
    let address = "ssl:127.0.0.1:1";
    let text = format!(
        "{}[listen]\nopenflow = [\"{address}\"]\n",
        configuration("")
    );
    let settings = SwitchSettings {
        tls: None,
        ..SwitchSettings::parse(&text, &file).expect("a good configuration")
    };
    let error = Switch::new(settings).run(|_| panic!("it starts"));
    let message = "an `ssl:` address needs the table `[tls]`";
    assert!(error.unwrap_err().to_string().starts_with(message));
}
