//! `classyard switch run --demo`: a switch between two hosts, and the way of a ping through it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use classyard_datapath::Packet;
use classyard_datapath::TableSettings;
use classyard_datapath::pipeline::{Pipeline, PipelineSettings, Step};
use classyard_datapath::text::{self, Filled};
use classyard_report::failure::Failure;
use classyard_report::interrupt::{self, SoftStop};
use classyard_report::output::stdout;
use classyard_report::reporter::Reporter;
use classyard_switch::config::{DeviceSettings, PortSettings, SwitchSettings};
use classyard_switch::control::{CaptureLimits, ControlClient, Request, SwitchStatus, socket_path};
use classyard_switch::{StopHandle, Switch, SwitchError};
use classyard_workload::capture::{CaptureReader, ReadOptions};
use classyard_workload::diagnostic::ReadError;
use serde::de::DeserializeOwned;

mod hosts;
mod namespaces;
mod ping;
mod story;

use hosts::Hosts;
use story::PortFrame;

/// The flow entries.
const FLOWS: &str = include_str!("../../../../embedded/demo.flows");

/// The name of the switch.
const NAME: &str = "demo";

/// The frames of a ping: the request in and out, the reply in and out.
const PING_FRAMES: usize = 4;

/// The seconds that the capture of a ping takes at most.
const CAPTURE_SECONDS: u64 = 5;

/// The longest wait for the start of the switch, and for its counts.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two looks at the switch.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the demonstration. With `keep`, the switch and the hosts stay until a signal comes.
pub(super) fn run(keep: bool, reporter: Reporter) -> Result<(), Failure> {
    // The first signal ends the demonstration, which removes what it has made.
    let _soft_stop = SoftStop::hold();
    let folder = RunFolder::new()?;
    let mut hosts = Hosts::new();
    let mut settings = SwitchSettings {
        name: NAME.to_owned(),
        run_dir: folder.0.clone(),
        flows: Some(folder.0.join("demo.flows")),
        ports: hosts.ports(),
        ..SwitchSettings::default()
    };
    let mut switch = Switch::new(settings.clone()).handle_signals();
    hosts.connect(&mut switch);
    // It ends before the hosts are removed.
    let running = RunningSwitch::start(switch)?;
    settings.ports = [1, 2].map(memory_port).into();
    let filled = filled(&settings)?;
    let told = tell(&hosts, &filled, &folder.0, keep);
    interrupt::outcome()?;
    told?;
    if keep {
        reporter.note("the switch is running; Ctrl-C ends it and removes the hosts");
        while !interrupt::is_requested() && !running.has_ended() {
            std::thread::sleep(PAUSE);
        }
    }
    running.stop()
}

/// Sends the ping and writes the text.
fn tell(hosts: &Hosts, filled: &Filled, run_dir: &Path, keep: bool) -> Result<(), Failure> {
    let mut out = stdout();
    story::begin(&mut out, hosts, filled).map_err(Failure::Output)?;
    out.flush().map_err(Failure::Output)?;
    let frames = frames_of_ping(hosts, run_dir)?;
    for frames in frames.chunks_exact(2) {
        check(&filled.pipeline, &frames[0], &frames[1])?;
    }
    let [request, request_sent, reply, reply_sent] = &frames;
    for (step, way) in [
        ((3, "Ping"), [request, request_sent]),
        ((4, "Answer"), [reply, reply_sent]),
    ] {
        story::way(&mut out, step, filled, way).map_err(Failure::Output)?;
    }
    let status = wait("the counts of the ping", || {
        let status: SwitchStatus = ask(&mut client(run_dir).ok()?, &Request::Show).ok()?;
        let counts = status.tables.iter().map(|table| table.lookups);
        (counts.sum::<u64>() >= 6).then_some(status)
    })?;
    story::counts(&mut out, &status).map_err(Failure::Output)?;
    story::next(&mut out, hosts, keep.then_some(run_dir)).map_err(Failure::Output)?;
    out.flush().map_err(Failure::Output)
}

/// Sends a ping. Returns the frames that the switch received and sent.
fn frames_of_ping(hosts: &Hosts, run_dir: &Path) -> Result<[PortFrame; PING_FRAMES], Failure> {
    let mut client = client(run_dir)?;
    let limits = CaptureLimits {
        max_seconds: Some(CAPTURE_SECONDS),
        ..CaptureLimits::default()
    };
    ask::<()>(&mut client, &Request::Capture { port: None, limits })?;
    let ping = hosts.ping();
    interrupt::outcome()?;
    ping.map_err(|reason| Failure::usage(format!("the ping has no answer: {reason}")))?;
    let mut reader =
        CaptureReader::new("the capture", client.into_stream(), &ReadOptions::STREAMED)?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record()? {
        if !ping::is_icmp(record.frame) {
            continue;
        }
        let bytes = record.frame.to_vec();
        // The capture has an interface for each port, in the order of their numbers.
        let port = record.packet.interface + 1;
        frames.push(PortFrame { port, bytes });
        if frames.len() == PING_FRAMES {
            break;
        }
    }
    let count = frames.len();
    frames.try_into().map_err(|_| {
        let message = format!("the capture has {count} frames of the ping, not {PING_FRAMES}");
        Failure::usage(message)
    })
}

/// Checks that the switch sent a frame as the trace says, which comes from another copy of the
/// flow entries.
fn check(pipeline: &Pipeline, received: &PortFrame, sent: &PortFrame) -> Result<(), Failure> {
    let packet = Packet::new(&received.bytes, received.port);
    let trace = pipeline.trace_winners(&packet, Duration::ZERO);
    let is_same = trace.steps.iter().any(|step| match step {
        Step::Sent { port, bytes, .. } => port.0 == sent.port && *bytes == sent.bytes,
        _ => false,
    });
    match is_same {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the switch sent a frame by port {} that the trace of its flow entries lacks",
            sent.port
        ))),
    }
}

fn memory_port(number: u32) -> PortSettings {
    PortSettings {
        number,
        name: format!("host{number}"),
        device: DeviceSettings::Memory,
    }
}

/// Returns a copy of the pipeline that the switch has, for traces.
fn filled(settings: &SwitchSettings) -> Result<Filled, Failure> {
    let tables = TableSettings::new(settings.engine.clone())?;
    let pipeline = Pipeline::new(PipelineSettings::new(tables));
    let flows = settings.flows_with_ports(FLOWS);
    let filled = text::fill(pipeline, "demo.flows", &flows, false, Duration::ZERO);
    Ok(filled.map_err(ReadError::Bad)?)
}

fn client(run_dir: &Path) -> Result<ControlClient, Failure> {
    let client = ControlClient::connect(&socket_path(run_dir, NAME));
    client.map_err(|error| Failure::usage(error.to_string()))
}

/// Sends a request to the switch. Returns the data of the reply.
fn ask<T: DeserializeOwned>(client: &mut ControlClient, request: &Request) -> Result<T, Failure> {
    let reply = client.request(request);
    let reply = reply.map_err(|error| Failure::usage(error.to_string()))?;
    reply.data().map_err(Failure::usage)
}

/// Waits until `look` returns a value.
fn wait<T>(noun: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, Failure> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        interrupt::outcome()?;
        if let Some(value) = look() {
            return Ok(value);
        }
        std::thread::sleep(PAUSE);
    }
    let seconds = PATIENCE.as_secs();
    Err(Failure::usage(format!(
        "the switch does not report {noun} within {seconds} s"
    )))
}

/// A folder of this run, with the flow entries and the sockets. It is removed when this is
/// dropped.
struct RunFolder(PathBuf);

impl RunFolder {
    fn new() -> Result<RunFolder, Failure> {
        let name = format!("classyard-demo-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // An existing folder is somebody else's.
        std::fs::create_dir(&folder).map_err(|error| Failure::file(&folder, error))?;
        let folder = RunFolder(folder);
        let file = folder.0.join("demo.flows");
        std::fs::write(&file, FLOWS).map_err(|error| Failure::file(&file, error))?;
        Ok(folder)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::error!("{} is left: {error}", self.0.display());
        }
    }
}

/// A switch that runs on a thread. It is stopped when this is dropped.
struct RunningSwitch {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
}

impl RunningSwitch {
    /// Starts a switch, and waits until it is ready.
    fn start(switch: Switch) -> Result<RunningSwitch, Failure> {
        let stop = switch.stop_handle();
        let (sender, ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            switch.run(|_| {
                // The other end waits for it, unless it has given up.
                let _gone = sender.send(());
            })
        });
        let running = RunningSwitch {
            stop,
            thread: Some(thread),
        };
        match ready.recv_timeout(PATIENCE) {
            Ok(()) => Ok(running),
            // The thread has ended with an error, or is stopped.
            Err(_) => {
                running.stop()?;
                Err(Failure::usage("the switch does not start"))
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the switch.
    ///
    /// # Errors
    /// The error that ended it.
    fn stop(mut self) -> Result<(), Failure> {
        self.join()
    }

    fn join(&mut self) -> Result<(), Failure> {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(Failure::usage(error.to_string())),
            Some(Err(_)) => Err(Failure::usage(
                "the switch ended by an error of the program",
            )),
        }
    }
}

impl Drop for RunningSwitch {
    fn drop(&mut self) {
        if let Err(failure) = self.join() {
            tracing::error!("the switch has failed: {failure:?}");
        }
    }
}
