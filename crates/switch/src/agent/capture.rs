//! Captures of ports for people, as pcapng.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use classyard_datapath::PortNo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::connection::Shared;
use super::ports::OpenPort;
use super::state::State;
use super::status;
use crate::control::{CaptureLimits, Reply};
use crate::pcapng;
use crate::worker::{CapturedFrame, Command, Direction};

/// Frames that may wait for the reader of a capture.
const MAX_WAITING_FRAMES: usize = 1024;

/// The longest time of a capture without a limit: a day.
const LONGEST_CAPTURE: Duration = Duration::from_secs(86_400);

/// Sends the frames of a port (`None`: of all ports) until a limit is reached or the reader
/// closes the connection.
///
/// # Errors
/// The error of the connection.
pub(super) async fn capture(
    state: &Shared,
    port: Option<&str>,
    limits: CaptureLimits,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let begun = state.borrow_mut().begin_capture(port);
    let (mut frames, names) = match begun {
        Ok(begun) => begun,
        Err(reason) => {
            return writer
                .write_all(Reply::error(&reason).line().as_bytes())
                .await;
        }
    };
    let _end = End(state);
    status::caches(state).await;
    writer.write_all(Reply::done().line().as_bytes()).await?;
    let mut bytes = pcapng::header();
    let mut interfaces = Interfaces::default();
    for (port, name) in names {
        interfaces.place(port, Some(name), &mut bytes);
    }
    writer.write_all(&bytes).await?;
    let time = limits
        .max_seconds
        .map_or(LONGEST_CAPTURE, Duration::from_secs);
    let end = Instant::now() + time.min(LONGEST_CAPTURE);
    let max_bytes = limits
        .max_packet_bytes
        .map_or(usize::MAX, |bytes| bytes as usize);
    let start = state.borrow().wall_start();
    let mut left = limits.max_packets.unwrap_or(u64::MAX);
    let mut ignored = [0; 64];
    while left > 0 {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            () = sleep_until(end) => None,
            count = reader.read(&mut ignored) => match count {
                Ok(1..) => continue,
                _ => None,
            },
        };
        let Some(frame) = frame else {
            break;
        };
        bytes.clear();
        let name = |port: &OpenPort| port.settings.name.clone();
        let name = state.borrow().ports.get(&frame.port).map(name);
        let interface = interfaces.place(frame.port, name, &mut bytes);
        let is_sent = frame.direction == Direction::Sent;
        let time = start + frame.time;
        pcapng::packet(
            &mut bytes,
            interface,
            time,
            is_sent,
            &frame.bytes,
            max_bytes,
        );
        writer.write_all(&bytes).await?;
        left -= 1;
    }
    writer.flush().await
}

/// Ends the capture when it is dropped.
struct End<'s>(&'s Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().end_capture();
    }
}

/// Captured frames as they come.
type Frames = mpsc::Receiver<CapturedFrame>;

/// Ports and their names.
type Names = Vec<(PortNo, String)>;

/// The interfaces of a capture. A port that is added, or that has a new name, is a new interface.
#[derive(Default)]
struct Interfaces {
    /// The place and the name of each port's interface.
    of_ports: BTreeMap<PortNo, (u32, String)>,
    count: u32,
}

impl Interfaces {
    /// Returns the place of a port's interface. A new interface is appended to `bytes`. `name` is
    /// `None` for a port that was removed.
    fn place(&mut self, port: PortNo, name: Option<String>, bytes: &mut Vec<u8>) -> u32 {
        match self.of_ports.get(&port) {
            Some((place, known)) if name.as_ref().is_none_or(|name| name == known) => *place,
            _ => {
                let name = name.unwrap_or_else(|| port.to_string());
                pcapng::interface(bytes, &name);
                let place = self.count;
                self.of_ports.insert(port, (place, name));
                self.count += 1;
                place
            }
        }
    }
}

impl State {
    /// Begins a capture. Returns its frames, and the captured ports with their names.
    fn begin_capture(&mut self, port: Option<&str>) -> Result<(Frames, Names), String> {
        if self.capture.is_some() {
            return Err("another capture is running; end it first".to_owned());
        }
        let number = match port {
            Some(name) => Some(self.port_named(name)?),
            None => None,
        };
        let captured = self
            .ports
            .iter()
            .filter(|(port, _)| number.is_none_or(|it| it == **port));
        let names = captured.map(|(&port, open)| (port, open.settings.name.clone()));
        let names = names.collect();
        let (sender, frames) = mpsc::channel(MAX_WAITING_FRAMES);
        self.capture = Some(sender);
        self.command_all(|| Command::Capture(Some(number)));
        Ok((frames, names))
    }

    fn end_capture(&mut self) {
        self.capture = None;
        self.command_all(|| Command::Capture(None));
    }

    /// Passes on a captured frame of a worker. A frame for which the reader has no room is dropped.
    pub(super) fn captured(&mut self, worker: usize, frame: CapturedFrame) {
        if let Some(capture) = &self.capture
            && capture.try_send(frame).is_err()
        {
            self.workers[worker].drop_captured_frame();
        }
    }

    /// Returns the time from 1970 to the start of the switch's clock.
    fn wall_start(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().saturating_sub(self.clock.now())
    }
}
