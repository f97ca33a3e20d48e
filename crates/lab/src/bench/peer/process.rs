//! Starts a peer's program, sends it commands, and stops it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::PeerSpec;

/// The time that a program which has closed its output may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a program may take to end itself before it is killed. Open vSwitch stops
/// threads and removes files.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between two looks at a program that is about to exit.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running program. Dropping it stops the program and removes its files.
pub(super) struct Process {
    child: Child,
    commands: ChildStdin,
    replies: Receiver<io::Result<String>>,
    limit: Duration,
    /// The reason why it accepts no more commands.
    gone: Option<String>,
    // Dropped last, after the program has been stopped.
    folder: Folder,
}

impl Process {
    /// Starts a peer's program. `arguments` receives the folder for its files, and returns
    /// the arguments that follow the options.
    pub(super) fn start(
        spec: &PeerSpec,
        arguments: impl FnOnce(&Path) -> io::Result<Vec<OsString>>,
        limit: Duration,
    ) -> Result<Process, String> {
        let folder = Folder::new().map_err(|error| format!("a folder for it: {error}"))?;
        let arguments = arguments(&folder.0)
            .map_err(|error| format!("files in {}: {error}", folder.0.display()))?;
        let complaints = File::create(folder.0.join("complaints")).map_err(|e| e.to_string())?;
        let mut child = Command::new(spec.program())
            .args(spec.options().iter().map(|option| format!("--{option}")))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", spec.program().display()))?;
        let commands = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, replies) = mpsc::channel();
        // This thread ends with the program, or when the receiver is dropped.
        thread::spawn(move || {
            let mut lines = output.lines();
            while lines.next().is_some_and(|line| sender.send(line).is_ok()) {}
        });
        Ok(Process {
            child,
            commands,
            replies,
            limit,
            gone: None,
            folder,
        })
    }

    /// Returns the path of a file for the program.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// Removes a file that the program has read.
    pub(super) fn forget(&self, name: &str) {
        // If this fails, the file is removed with the folder.
        let _ = fs::remove_file(self.file(name));
    }

    /// Sends a command and waits for the reply.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, command: &str) -> Result<T, String> {
        if self.gone.is_none() {
            // If the program has exited, reading the reply reports it.
            let _ = writeln!(self.commands, "{command}");
        }
        self.reply(command)
    }

    /// Waits for the reply to the current command.
    pub(super) fn reply<T: DeserializeOwned>(&mut self, doing: &str) -> Result<T, String> {
        if let Some(reason) = &self.gone {
            return Err(reason.clone());
        }
        let line = match self.replies.recv_timeout(self.limit) {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => return Err(self.lose(format!("its output: {error}"))),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.limit.as_secs_f64();
                return Err(self.lose(format!("`{doing}` took more than {seconds} s")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let exit_reason = self.last_words();
                return Err(self.lose(format!("the program ended during `{doing}`: {exit_reason}")));
            }
        };
        let value: Value = serde_json::from_str(&line)
            .map_err(|error| self.lose(format!("a reply that is not JSON, {error}: {line}")))?;
        if let Some(reason) = value.get("error") {
            return Err(reason.as_str().unwrap_or(&line).to_owned());
        }
        serde_json::from_value(value)
            .map_err(|error| self.lose(format!("a reply to `{doing}` with {error}: {line}")))
    }

    /// Stops the program and stores the reason.
    fn lose(&mut self, reason: String) -> String {
        self.stop();
        self.gone = Some(reason.clone());
        reason
    }

    fn stop(&mut self) {
        // The program may have exited already.
        if self.status_within(Duration::ZERO).is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if self.status_within(STOP_TIMEOUT).is_none() {
                let _ = self.child.kill();
            }
        }
        let _ = self.child.wait();
    }

    /// Waits for the program to exit; `None` if it is running after `time`.
    fn status_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if began.elapsed() < time => thread::sleep(POLL_INTERVAL),
                status => return status.ok().flatten(),
            }
        }
    }

    /// Returns the program's exit status and its last error output.
    fn last_words(&mut self) -> String {
        let status = self.status_within(EXIT_TIMEOUT);
        let status = status.map_or_else(
            || "its output is closed".to_owned(),
            |status| status.to_string(),
        );
        let complaints = fs::read(self.file("complaints")).unwrap_or_default();
        let complaints = String::from_utf8_lossy(&complaints);
        match complaints
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
        {
            Some(line) => format!("{status}; {}", line.trim()),
            None => status,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("classyard-peer-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files are left in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a file of a peer's input.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write(&mut file)?;
    file.flush()
}
