//! Listening sockets, and connections to controllers.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::connection::{Shared, serve};
use super::refusals::Refusals;
use super::state::Peer;
use crate::config::{Address, ControllerSettings};
use crate::control::ConnectionState;
use crate::tls::{Tls, TlsError};

/// Time that a connection to a controller may take to be made.
const CONNECTING_TIME: Duration = Duration::from_secs(5);

/// The pause after a connection to a controller that could not be made or ended. It doubles with
/// each connection that is shorter than the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The pause after an error of a listening socket, such as too many open files.
pub(super) const LISTENING_PAUSE: Duration = Duration::from_millis(100);

/// TLS handshakes of a listening socket at a time. Further connections wait in the kernel.
const MAX_HANDSHAKES: usize = 16;

/// A listening socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// TLS, with the places for handshakes, and failed ones.
    Ssl(TcpListener, Arc<Semaphore>, Rc<Refusals>),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, removed when it is dropped.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may have been removed by others.
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// The error of a socket that cannot listen.
#[derive(Debug)]
pub(super) struct ListenError {
    address: String,
    cause: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { address, cause } = self;
        write!(f, "{address}: cannot listen: {cause}")?;
        match cause.kind() {
            io::ErrorKind::AddrInUse => {
                f.write_str("; another process listens there, perhaps a switch of the same name")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("; choose a folder or a port that this user may use")
            }
            io::ErrorKind::NotFound => f.write_str("; make the folder first"),
            _ => Ok(()),
        }
    }
}

impl ListenError {
    pub(super) fn new(address: &Address, cause: io::Error) -> ListenError {
        ListenError {
            address: address.to_string(),
            cause,
        }
    }
}

impl Listener {
    /// Opens a listening socket.
    pub(super) async fn open(address: &Address) -> Result<Listener, ListenError> {
        let opened = match address {
            Address::Tcp { host, port } => TcpListener::bind((host.as_str(), *port))
                .await
                .map(Listener::Tcp),
            Address::Ssl { host, port } => {
                TcpListener::bind((host.as_str(), *port))
                    .await
                    .map(|listener| {
                        let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
                        Listener::Ssl(listener, handshakes, Rc::default())
                    })
            }
            Address::Unix(path) => listen_on(path)
                .await
                .map(|(listener, file)| Listener::Unix(listener, file)),
        };
        opened.map_err(|cause| ListenError::new(address, cause))
    }

    /// Serves all connections, each with a task of its own.
    pub(super) async fn run(self, state: Shared) {
        loop {
            if let Err(error) = self.accept(&state).await {
                tracing::warn!("a connection cannot be taken: {error}");
                sleep(LISTENING_PAUSE).await;
            }
        }
    }

    async fn accept(&self, state: &Shared) -> io::Result<()> {
        let state = Shared::clone(state);
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let peer = format!("tcp:{peer}");
                spawn_local(async move { report(&state, stream, peer).await });
            }
            Listener::Ssl(listener, places, refusals) => {
                let permit = Arc::clone(places).acquire_owned().await;
                let permit = permit.expect("nobody closes it");
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let peer = format!("ssl:{peer}");
                let refusals = Rc::clone(refusals);
                spawn_local(async move {
                    if let Err(reason) = report_tls(&state, stream, &peer, permit).await {
                        refusals.add(&peer, &reason);
                    }
                });
            }
            Listener::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                let peer = format!("unix:{}", file.0.display());
                spawn_local(async move { report(&state, stream, peer).await });
            }
        }
        Ok(())
    }
}

/// Serves a connection, and logs its begin and end.
async fn report(state: &Shared, stream: impl AsyncRead + AsyncWrite, peer: String) {
    tracing::debug!(peer, "a connection begins");
    let reason = serve(state, stream, Peer::incoming(peer.clone())).await;
    tracing::debug!(peer, "the connection ends: {reason}");
}

/// Serves a connection over TLS. `permit` is held until the end of the handshake.
///
/// # Errors
/// The reason of a failed handshake, for people.
async fn report_tls(
    state: &Shared,
    stream: TcpStream,
    peer: &str,
    permit: OwnedSemaphorePermit,
) -> Result<(), String> {
    let tls = state.borrow().tls.clone();
    let handshake = match tls {
        Some(tls) => tls.accept(stream).await,
        None => Err(TlsError::NoFiles.to_string()),
    };
    drop(permit);
    report(state, handshake?, peer.to_owned()).await;
    Ok(())
}

/// Listens on a Unix socket. The file of a socket on which nobody listens is replaced.
pub(super) async fn listen_on(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            _ => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    Ok((listener, SocketFile(path.to_owned())))
}

/// Keeps a connection to a controller: connects, serves, and connects again after a pause.
async fn keep_connected(
    state: Shared,
    settings: ControllerSettings,
    connection: Rc<Cell<ConnectionState>>,
) {
    let peer = settings.address.to_string();
    let mut pause = FIRST_PAUSE;
    loop {
        connection.set(ConnectionState::Connecting);
        let tls = state.borrow().tls.clone();
        let stream = timeout(CONNECTING_TIME, reach(&settings, tls.as_deref())).await;
        let ending = match stream {
            Ok(Ok(stream)) => {
                connection.set(ConnectionState::Connected);
                tracing::info!(peer, "connected to the controller");
                let begin = Instant::now();
                let reason = serve(&state, stream, Peer::outgoing(&settings)).await;
                // With TLS 1.3, a controller refuses a certificate after the handshake.
                if begin.elapsed() >= settings.max_backoff {
                    pause = FIRST_PAUSE;
                }
                reason
            }
            Ok(Err(reason)) => reason,
            Err(_) => format!("no answer within {} s", CONNECTING_TIME.as_secs()),
        };
        tracing::warn!(peer, "no connection to the controller: {ending}");
        connection.set(ConnectionState::Waiting);
        sleep(pause).await;
        pause = (2 * pause).min(settings.max_backoff);
    }
}

/// A connection to a controller.
trait Stream: AsyncRead + AsyncWrite {}

impl<S: AsyncRead + AsyncWrite> Stream for S {}

/// Connects to a controller.
///
/// # Errors
/// The reason, for people.
async fn reach(
    settings: &ControllerSettings,
    tls: Option<&Tls>,
) -> Result<Pin<Box<dyn Stream>>, String> {
    let text_of = |error: io::Error| error.to_string();
    let (host, port) = match &settings.address {
        Address::Tcp { host, port } | Address::Ssl { host, port } => (host, *port),
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(text_of)?;
            return Ok(Box::pin(stream));
        }
    };
    let stream = TcpStream::connect((host.as_str(), port))
        .await
        .map_err(text_of)?;
    stream.set_nodelay(true).map_err(text_of)?;
    match (&settings.address, tls) {
        (Address::Ssl { .. }, Some(tls)) => Ok(Box::pin(tls.connect(host, stream).await?)),
        (Address::Ssl { .. }, None) => Err(TlsError::NoFiles.to_string()),
        _ => Ok(Box::pin(stream)),
    }
}

/// Listens on an address.
///
/// # Errors
/// [`ListenError`] if the address cannot be used.
pub(super) async fn listen(state: &Shared, address: &Address) -> Result<(), ListenError> {
    // The switch listens for its own tools in any case.
    let is_open = state.borrow().management.as_ref() == Some(address);
    let task = match is_open {
        true => None,
        false => {
            let listener = Listener::open(address).await?;
            Some(spawn_local(listener.run(Rc::clone(state))))
        }
    };
    let endpoints = &mut state.borrow_mut().endpoints;
    endpoints.add_listener(address.clone(), task);
    Ok(())
}

/// Connects to a controller, and keeps the connection.
pub(super) fn connect(state: &Shared, controller: &ControllerSettings) {
    let connection = Rc::new(Cell::new(ConnectionState::Connecting));
    let kept = keep_connected(Rc::clone(state), controller.clone(), Rc::clone(&connection));
    let task = spawn_local(kept);
    let endpoints = &mut state.borrow_mut().endpoints;
    endpoints.add_controller(controller.clone(), connection, task);
}
