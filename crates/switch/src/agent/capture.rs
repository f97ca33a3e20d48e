//! Captures of ports for people, as pcapng.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use classyard_datapath::PortNo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::connection::Shared;
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
    let (mut frames, interfaces) = match begun {
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
    let names = interfaces.values().map(|(_, name)| name.as_str());
    writer.write_all(&pcapng::header(names)).await?;
    let time = limits
        .max_seconds
        .map_or(LONGEST_CAPTURE, Duration::from_secs);
    let end = Instant::now() + time.min(LONGEST_CAPTURE);
    let max_bytes = limits
        .max_packet_bytes
        .map_or(usize::MAX, |bytes| bytes as usize);
    let start = state.borrow().wall_start();
    let mut left = limits.max_packets.unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
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
        let Some((interface, _)) = interfaces.get(&frame.port) else {
            continue;
        };
        bytes.clear();
        let is_sent = frame.direction == Direction::Sent;
        let time = start + frame.time;
        pcapng::packet(
            &mut bytes,
            *interface,
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

/// The places and names of captured interfaces, by port.
type Interfaces = BTreeMap<PortNo, (u32, String)>;

impl State {
    fn begin_capture(
        &mut self,
        port: Option<&str>,
    ) -> Result<(mpsc::Receiver<CapturedFrame>, Interfaces), String> {
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
        let interfaces = (0..)
            .zip(names)
            .map(|(place, (port, name))| (port, (place, name)));
        let interfaces = interfaces.collect();
        let (sender, frames) = mpsc::channel(MAX_WAITING_FRAMES);
        self.capture = Some(sender);
        self.command_all(|| Command::Capture(Some(number)));
        Ok((frames, interfaces))
    }

    fn end_capture(&mut self) {
        self.capture = None;
        self.command_all(|| Command::Capture(None));
    }

    fn command_all(&mut self, command: impl Fn() -> Command) {
        for worker in &mut self.workers {
            worker.end.command(command());
            worker.hand_over();
        }
    }

    /// Passes a captured frame on. A frame for which the reader has no room is dropped.
    pub(super) fn captured(&mut self, frame: CapturedFrame) {
        if let Some(capture) = &self.capture
            && capture.try_send(frame).is_err()
        {
            self.dropped_captures += 1;
        }
    }

    /// Returns the time from 1970 to the start of the switch's clock.
    fn wall_start(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().saturating_sub(self.clock.now())
    }
}
