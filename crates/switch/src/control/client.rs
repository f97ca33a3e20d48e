//! A client of the control socket.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::message::{MAX_REPLY_BYTES, MAX_REQUEST_BYTES, Reply, Request};
use super::socket_path;

/// The extension of control sockets.
const EXTENSION: &str = "ctl";

/// The time that a client waits for the switch, unless it is changed.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a running switch.
#[derive(Debug)]
pub struct ControlClient {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    timeout: Option<Duration>,
}

/// A reason why a request has no reply.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// No switch listens at the path.
    NotRunning {
        /// The path of the control socket.
        path: PathBuf,
        /// True if the socket is there, so that a switch did not end in order.
        has_socket: bool,
        /// The names of the switches that run in the folder.
        running: Vec<String>,
    },
    /// No switch runs in the folder.
    NoneRunning {
        /// The folder.
        run_dir: PathBuf,
    },
    /// Several switches run in the folder, and none was named.
    SeveralRunning {
        /// The folder.
        run_dir: PathBuf,
        /// Their names.
        running: Vec<String>,
    },
    /// The user must not connect to the switch.
    NoPermission {
        /// The path of the control socket.
        path: PathBuf,
    },
    /// The connection failed.
    Io {
        /// The path of the control socket.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The switch did not answer in time.
    Timeout {
        /// The path of the control socket.
        path: PathBuf,
        /// The time.
        timeout: Duration,
    },
    /// The switch closed the connection before it answered.
    Closed {
        /// The path of the control socket.
        path: PathBuf,
    },
    /// The request or the reply is longer than allowed.
    TooLong {
        /// `request` or `reply`.
        message: &'static str,
        /// The limit in bytes.
        max_bytes: usize,
    },
    /// The reply is unreadable.
    BadReply {
        /// The path of the control socket.
        path: PathBuf,
        /// The first mistake.
        error: serde_json::Error,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::NotRunning {
                path, has_socket, ..
            } => {
                let (name, path) = (name_of(path).unwrap_or_default(), path.display());
                match has_socket {
                    true => write!(
                        f,
                        "no switch named `{name}` is running: nothing listens at {path}"
                    ),
                    false => write!(
                        f,
                        "no switch named `{name}` is running: there is no socket {path}"
                    ),
                }
            }
            ControlError::NoneRunning { run_dir } => {
                write!(f, "no switch is running in {}", run_dir.display())
            }
            ControlError::SeveralRunning { run_dir, running } => write!(
                f,
                "{} switches are running in {}: {}",
                running.len(),
                run_dir.display(),
                running.join(", ")
            ),
            ControlError::NoPermission { path } => {
                write!(f, "no permission to connect to {}", path.display())
            }
            ControlError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            ControlError::Timeout { path, timeout } => write!(
                f,
                "the switch at {} has not answered for {} s",
                path.display(),
                timeout.as_secs()
            ),
            ControlError::Closed { path } => write!(
                f,
                "the switch at {} closed the connection without an answer",
                path.display()
            ),
            ControlError::TooLong { message, max_bytes } => {
                write!(f, "the {message} has more than {max_bytes} bytes")
            }
            ControlError::BadReply { path, error } => write!(
                f,
                "the switch at {} sent an unreadable reply: {error}",
                path.display()
            ),
        }
    }
}

impl ControlError {
    /// Returns a remedy, if one is known.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            ControlError::NotRunning { running, .. } if running.is_empty() => {
                Some("no switch is running in this folder; --run-dir DIR names another".to_owned())
            }
            ControlError::NotRunning { running, .. } => {
                Some(format!("running switches: {}", running.join(", ")))
            }
            ControlError::NoneRunning { .. } => Some(
                "--run-dir DIR names the folder of the switch: its `run-dir`, by default \
                 /run/classyard for root and $XDG_RUNTIME_DIR/classyard for other users"
                    .to_owned(),
            ),
            ControlError::SeveralRunning { .. } => Some("name one of them".to_owned()),
            ControlError::NoPermission { .. } => {
                Some("run the command as root, or as the user who started the switch".to_owned())
            }
            ControlError::BadReply { .. } => {
                Some("the switch may have another version than this command".to_owned())
            }
            _ => None,
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ControlError::Io { error, .. } => Some(error),
            ControlError::BadReply { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl ControlClient {
    /// Connects to the control socket at `path`. [`find_switch`] returns the path of a
    /// running switch.
    ///
    /// # Errors
    /// [`ControlError`]: no switch listens there, or the user must not connect.
    pub fn connect(path: &Path) -> Result<ControlClient, ControlError> {
        let stream = UnixStream::connect(path).map_err(|error| connect_error(path, error))?;
        let mut client = ControlClient {
            path: path.to_owned(),
            stream: BufReader::new(stream),
            timeout: None,
        };
        client.set_timeout(Some(DEFAULT_TIMEOUT))?;
        Ok(client)
    }

    /// Sets the longest time that the switch may take for an answer, 30 seconds unless it is
    /// set. `None` waits for ever.
    ///
    /// # Errors
    /// [`ControlError::Io`] if the time is 0.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ControlError> {
        let stream = self.stream.get_ref();
        let set = stream.set_read_timeout(timeout);
        let set = set.and_then(|()| stream.set_write_timeout(timeout));
        set.map_err(|error| self.io_error(error))?;
        self.timeout = timeout;
        Ok(())
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// [`ControlError`]: the connection failed, or the reply is unreadable. A refusal is a
    /// [`Reply`].
    pub fn request(&mut self, request: &Request) -> Result<Reply, ControlError> {
        let mut line = serde_json::to_vec(request).map_err(|error| self.io_error(error.into()))?;
        if line.len() > MAX_REQUEST_BYTES {
            return Err(ControlError::TooLong {
                message: "request",
                max_bytes: MAX_REQUEST_BYTES,
            });
        }
        line.push(b'\n');
        match self.stream.get_mut().write_all(&line) {
            // The switch has refused the connection and closed it. The reply says why.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.map_err(|error| self.io_error(error))?,
        }
        let mut reply = Vec::new();
        let max_bytes = MAX_REPLY_BYTES as u64 + 1;
        let read = (&mut self.stream)
            .take(max_bytes)
            .read_until(b'\n', &mut reply);
        read.map_err(|error| self.io_error(error))?;
        if reply.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(match reply.len() > MAX_REPLY_BYTES {
                true => ControlError::TooLong {
                    message: "reply",
                    max_bytes: MAX_REPLY_BYTES,
                },
                false => ControlError::Closed {
                    path: self.path.clone(),
                },
            });
        }
        serde_json::from_slice(&reply).map_err(|error| ControlError::BadReply {
            path: self.path.clone(),
            error,
        })
    }

    /// Returns the connection, to read the bytes that follow the reply to
    /// [`Request::Capture`].
    #[must_use]
    pub fn into_stream(self) -> BufReader<UnixStream> {
        self.stream
    }

    fn io_error(&self, error: io::Error) -> ControlError {
        let path = self.path.clone();
        match (error.kind(), self.timeout) {
            (ErrorKind::WouldBlock | ErrorKind::TimedOut, Some(timeout)) => {
                ControlError::Timeout { path, timeout }
            }
            (ErrorKind::BrokenPipe | ErrorKind::ConnectionReset, _) => {
                ControlError::Closed { path }
            }
            _ => ControlError::Io { path, error },
        }
    }
}

fn connect_error(path: &Path, error: io::Error) -> ControlError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            let run_dir = path.parent().unwrap_or(Path::new(""));
            ControlError::NotRunning {
                has_socket: error.kind() == ErrorKind::ConnectionRefused,
                running: running_switches(run_dir),
                path,
            }
        }
        ErrorKind::PermissionDenied => ControlError::NoPermission { path },
        _ => ControlError::Io { path, error },
    }
}

/// Returns the name of the switch with this control socket.
fn name_of(path: &Path) -> Option<String> {
    let is_socket = path.extension().is_some_and(|it| it == EXTENSION);
    let name = path.file_stem().filter(|_| is_socket)?;
    Some(name.to_string_lossy().into_owned())
}

/// Returns the names of the switches that run in a folder, in alphabetical order. A folder
/// that cannot be read has none.
#[must_use]
pub fn running_switches(run_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run_dir).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> = paths.filter_map(|path| running_name(&path)).collect();
    names.sort();
    names
}

/// Returns the name of the switch with this control socket, if it is running. A socket that
/// only refuses this user belongs to a running switch.
fn running_name(path: &Path) -> Option<String> {
    let name = name_of(path)?;
    match UnixStream::connect(path) {
        Ok(_) => Some(name),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(name),
        Err(_) => None,
    }
}

/// Returns the path of the control socket of the switch `name`, or of the only switch that
/// runs in the folder.
///
/// # Errors
/// [`ControlError`] if `name` is `None` and not exactly one switch is running.
pub fn find_switch(run_dir: &Path, name: Option<&str>) -> Result<PathBuf, ControlError> {
    if let Some(name) = name {
        return Ok(socket_path(run_dir, name));
    }
    let running = running_switches(run_dir);
    let run_dir = run_dir.to_owned();
    match running.as_slice() {
        [] => Err(ControlError::NoneRunning { run_dir }),
        [name] => Ok(socket_path(&run_dir, name)),
        _ => Err(ControlError::SeveralRunning { run_dir, running }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, JoinHandle};

    use super::*;

    /// A folder that is removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("classyard-ctl-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        /// Listens as the switch `name`.
        fn listen(&self, name: &str) -> UnixListener {
            UnixListener::bind(socket_path(&self.0, name)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Accepts one connection, reads `lines` lines, and answers with bytes.
    fn serve(listener: UnixListener, lines: usize, answer: Vec<u8>) -> JoinHandle<Vec<String>> {
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut read = Vec::new();
            for _ in 0..lines {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                read.push(line);
            }
            // The client may have closed the connection.
            let _ = reader.get_mut().write_all(&answer);
            read
        })
    }

    #[test]
    fn a_refusal_is_read_after_the_switch_has_closed_the_connection() {
        let folder = Folder::new();
        let refusal = Reply::error(&"too many connections");
        let server = serve(folder.listen("br0"), 0, refusal.line().into_bytes());
        let path = socket_path(&folder.0, "br0");
        let mut client = ControlClient::connect(&path).unwrap();
        server.join().unwrap();
        assert_eq!(client.request(&Request::Reload).unwrap(), refusal);
    }

    #[test]
    fn a_request_is_answered() {
        let folder = Folder::new();
        let mut answer = Reply::error(&"no such port").line();
        answer.push_str("the bytes that follow");
        let server = serve(folder.listen("br0"), 1, answer.into_bytes());
        let path = socket_path(&folder.0, "br0");
        let mut client = ControlClient::connect(&path).unwrap();
        let reply = client.request(&Request::Reload).unwrap();
        assert_eq!(reply, Reply::error(&"no such port"));
        let mut following = String::new();
        client.into_stream().read_to_string(&mut following).unwrap();
        assert_eq!(following, "the bytes that follow");
        assert_eq!(server.join().unwrap(), ["{\"request\":\"reload\"}\n"]);
    }

    fn answer_of(answer: &[u8]) -> ControlError {
        let folder = Folder::new();
        let server = serve(folder.listen("br0"), 1, answer.to_vec());
        let path = socket_path(&folder.0, "br0");
        let mut client = ControlClient::connect(&path).unwrap();
        let error = client.request(&Request::Show).unwrap_err();
        drop(client);
        server.join().unwrap();
        error
    }

    #[test]
    fn bad_answers_are_errors() {
        let error = answer_of(b"");
        assert!(
            error
                .to_string()
                .ends_with("closed the connection without an answer")
        );
        let error = answer_of(b"{\"reply\":\"ok\"");
        assert!(matches!(error, ControlError::Closed { .. }), "{error}");
        let error = answer_of(b"{\"reply\":\"maybe\"}\n");
        assert!(
            error
                .to_string()
                .contains("unreadable reply: unknown variant `maybe`")
        );
        assert!(error.help().unwrap().contains("another version"));
        let error = answer_of(&vec![b' '; MAX_REPLY_BYTES + 2]);
        assert_eq!(error.to_string(), "the reply has more than 67108864 bytes");
    }

    #[test]
    fn a_long_request_is_not_sent() {
        let folder = Folder::new();
        let _listener = folder.listen("br0");
        let mut client = ControlClient::connect(&socket_path(&folder.0, "br0")).unwrap();
        let name = "x".repeat(MAX_REQUEST_BYTES);
        let error = client.request(&Request::DelPort { name }).unwrap_err();
        assert_eq!(error.to_string(), "the request has more than 1048576 bytes");
    }

    #[test]
    fn a_silent_switch_is_an_error() {
        let folder = Folder::new();
        let _listener = folder.listen("br0");
        let mut client = ControlClient::connect(&socket_path(&folder.0, "br0")).unwrap();
        assert!(client.set_timeout(Some(Duration::ZERO)).is_err());
        client.set_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = client.request(&Request::Show).unwrap_err();
        assert!(
            error.to_string().ends_with("has not answered for 0 s"),
            "{error}"
        );
    }

    #[test]
    fn switches_are_found_by_name() {
        let folder = Folder::new();
        let dir = folder.0.as_path();
        let error = find_switch(dir, None).unwrap_err();
        let none = format!("no switch is running in {}", dir.display());
        assert_eq!(error.to_string(), none);
        assert!(error.help().unwrap().contains("--run-dir DIR"));
        // A socket of a switch that was killed, and other files.
        drop(folder.listen("old"));
        std::fs::write(dir.join("br0.flows"), "").unwrap();
        let missing = ControlClient::connect(&socket_path(dir, "old")).unwrap_err();
        assert!(
            missing.to_string().contains("nothing listens at"),
            "{missing}"
        );
        assert!(missing.help().unwrap().contains("no switch is running"));
        let _b = folder.listen("b");
        assert_eq!(find_switch(dir, None).unwrap(), dir.join("b.ctl"));
        let _a = folder.listen("a");
        assert_eq!(running_switches(dir), ["a", "b"]);
        let error = find_switch(dir, None).unwrap_err();
        let several = format!("2 switches are running in {}: a, b", dir.display());
        assert_eq!(error.to_string(), several);
        let path = find_switch(dir, Some("c")).unwrap();
        let error = ControlClient::connect(&path).unwrap_err();
        let expected = format!(
            "no switch named `c` is running: there is no socket {}",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.help().unwrap(), "running switches: a, b");
    }
}
