//! `classyard replay`: a capture through a pipeline of flow tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::pipeline::{Message, Pipeline, PortState, Worker};
use classyard_datapath::text;
use classyard_datapath::{Action, Field, Flaw, Packet, PacketKey, PortNo, TableSettings};
use classyard_workload::capture::{self, Capture};
use classyard_workload::diagnostic::{Problem, Problems, ReadError};
use classyard_workload::packet::LinkType;

use crate::embedded;
use crate::failure::Failure;
use crate::input::files::only_one_from_stdin;
use crate::input::headers::whole_capture;
use crate::input::limits::{ByteLimit, RecordLimit};
use crate::input::{read_text, source_name};
use crate::output::OutputArgs;
use crate::output::style::counted;
use crate::reporter::Reporter;

mod ports;
mod rate;
mod report;

use ports::OutPorts;
use rate::RateArgs;
use report::{CaptureRow, ReplayReport};

/// Run a capture through a pipeline of OpenFlow tables: what goes where, and by which flow
///
/// The pipeline is a file of flows and groups as ovs-ofctl takes them. Every packet
/// of the capture comes in by port 1, or those of a pcapng file by one port for each
/// interface. All ports that the pipeline names are there and up. Without files, the
/// embedded example is run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard replay
      the embedded example: an office's traffic and a switch at its edge
  classyard replay -p switch.flows -c dump.pcapng.gz
  classyard replay -p switch.flows -c dump.pcap --out out
      and what goes out by each port, as out/port-2.pcap and so on
  classyard replay -p switch.flows -c dump.pcap --format json")]
pub(crate) struct Args {
    /// The pipeline: flows and groups as ovs-ofctl takes them, one on each line
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pipeline: Option<PathBuf>,

    /// Packets: a pcap or pcapng file, plain or gzip'd; - for standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    capture: Option<PathBuf>,

    /// The port that all packets come in by; without it, 1, or the number of a
    /// pcapng file's interface, from 1
    #[arg(long, value_name = "PORT", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..=0xffff_ff00))]
    in_port: Option<u32>,

    #[command(flatten)]
    bytes: ByteLimit,

    #[command(flatten)]
    record: RecordLimit,

    /// The engine of each table: NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`)
    #[arg(short, long, default_value = "forest", value_name = "SPEC", value_parser = crate::input::engine)]
    engine: EngineSpec,

    /// Write what goes out by each port to DIR/port-N.pcap, and what goes to the
    /// controller to DIR/controller.pcap
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,

    #[command(flatten)]
    rate: RateArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Rules of a table for which an engine is built anew when a flow brings a new field.
const REBUILD_BELOW: usize = 1_000;

/// Packets of a vector.
const VECTOR: usize = 256;

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    only_one_from_stdin(&[
        ("pipeline", args.pipeline.as_deref()),
        ("capture", args.capture.as_deref()),
    ])?;
    if args.pipeline.is_none() && args.capture.is_some() {
        reporter.note("no pipeline given, so the embedded example's is used");
    }
    if !args.engine.is_dynamic() {
        return Err(classyard::engine::takes_no_updates(&args.engine.to_string()).into());
    }
    let (mut pipeline, lines) = load_pipeline(args, reporter)?;
    let capture = load_capture(args, reporter)?;
    let frames = Frames::of(&capture, args.in_port);
    if frames.left_out > 0 {
        reporter.warn(&format!(
            "{} left out: not of Ethernet",
            counted(frames.left_out, "packet")
        ));
    }
    add_ports(&mut pipeline, &frames);
    let mut replayed = Replayed {
        ports: OutPorts::new(args.out.as_deref())?,
        malformed: vec![0; Flaw::ALL.len()],
    };
    let mut worker = pipeline.worker();
    replayed.run(&mut worker, &frames)?;
    let capture = CaptureRow {
        source: capture.source().to_owned(),
        packets: frames.all.len(),
        left_out: frames.left_out,
        malformed: report::malformed(&replayed.malformed),
    };
    let mut report = ReplayReport::new(&pipeline, &lines, &replayed, capture);
    drop(worker);
    report.rate = rate::measure(&args.rate, &mut pipeline, &frames, reporter.progress());
    replayed.ports.finish()?;
    args.output.report(&report)
}

/// A frame of the capture.
struct Frame<'c> {
    bytes: &'c [u8],
    in_port: u32,
    /// Since the first packet.
    time: Duration,
    /// In nanoseconds since 1970.
    stamp: u64,
}

/// The frames of a capture that can be replayed.
struct Frames<'c> {
    all: Vec<Frame<'c>>,
    left_out: usize,
}

impl<'c> Frames<'c> {
    fn of(capture: &'c Capture, in_port: Option<u32>) -> Frames<'c> {
        let mut frames = Frames {
            all: Vec::new(),
            left_out: 0,
        };
        let mut first = None;
        for (packet, bytes) in capture.frames() {
            if packet.link != LinkType::Ethernet {
                frames.left_out += 1;
                continue;
            }
            let stamp = packet.timestamp_ns;
            let first = *first.get_or_insert(stamp);
            frames.all.push(Frame {
                bytes,
                in_port: in_port.unwrap_or(packet.interface + 1),
                time: Duration::from_nanos(stamp.saturating_sub(first)),
                stamp,
            });
        }
        frames
    }
}

/// What became of the packets.
struct Replayed {
    ports: OutPorts,
    /// Packets by what is malformed about them.
    malformed: Vec<u64>,
}

impl Replayed {
    /// Takes one packet after the other, at its time.
    fn run(&mut self, worker: &mut Worker, frames: &Frames<'_>) -> Result<(), Failure> {
        let mut packet = [Packet::default()];
        for frame in &frames.all {
            packet[0].receive(frame.bytes, frame.in_port);
            for (number, &flaw) in Flaw::ALL.iter().enumerate() {
                self.malformed[number] += u64::from(packet[0].parsed().flaws.contains(flaw));
            }
            self.ports.received(PortNo(frame.in_port), frame);
            worker.process(&mut packet, frame.time, &mut self.ports);
            self.ports.check()?;
        }
        Ok(())
    }
}

/// Where each flow and group of a pipeline was read, by its text.
type Lines = Vec<text::Located>;

fn load_pipeline(args: &Args, reporter: Reporter) -> Result<(Pipeline, Lines), Failure> {
    let (name, content) = match &args.pipeline {
        Some(path) => (source_name(path), read_text(path, args.bytes.text())?),
        None => (
            embedded::PIPELINE_NAME.to_owned(),
            embedded::PIPELINE.to_owned(),
        ),
    };
    let mut pipeline = Pipeline::new(TableSettings {
        engine: args.engine.clone(),
        rebuild_below: REBUILD_BELOW,
    });
    match text::load(&content, &mut pipeline, Duration::ZERO) {
        Ok(lines) => {
            // Engines that were filled rule by rule answer as well, only not as fast.
            if let Err(error) = pipeline.rebuild() {
                reporter.note(&format!("engines stay as they were filled: {error}"));
            }
            Ok((pipeline, lines))
        }
        Err(problems) => Err(bad_lines(&name, &content, problems).into()),
    }
}

/// Problems of a pipeline, as those of other files are shown.
fn bad_lines(name: &str, content: &str, found: Vec<text::Problem>) -> ReadError {
    let mut problems = Problems::new(name);
    for problem in found {
        let line = content.lines().nth(problem.line - 1).unwrap_or_default();
        let from = line.char_indices().nth(problem.column - 1);
        let part = &line[from.map_or(line.len(), |(at, _)| at)..];
        let end = part.char_indices().nth(problem.length);
        let part = &part[..end.map_or(part.len(), |(at, _)| at)];
        let expected = match problem.expected.is_empty() {
            true => "what a switch takes".to_owned(),
            false => problem.expected,
        };
        problems.push(Problem::at(
            problem.line,
            line,
            part,
            problem.found,
            expected,
        ));
    }
    ReadError::Bad(problems)
}

fn load_capture(args: &Args, reporter: Reporter) -> Result<Capture, Failure> {
    let default = capture::ReadOptions::default();
    let options = capture::ReadOptions {
        max_bytes: args.bytes.limit_bytes.unwrap_or(default.max_bytes),
        max_record: args.record.limit_record.unwrap_or(default.max_record),
        ..default
    };
    whole_capture(args.capture.as_deref(), &options, reporter)
}

/// Adds the ports that packets come in by, and all that the pipeline names.
fn add_ports(pipeline: &mut Pipeline, frames: &Frames<'_>) {
    let mut ports: BTreeSet<PortNo> = frames.all.iter().map(|one| PortNo(one.in_port)).collect();
    for entry in pipeline.flows().iter() {
        if let Some(value) = entry.flow.get(Field::InPort) {
            ports.extend(u32::try_from(value.value).map(PortNo));
        }
        let instructions = &entry.instructions;
        ports.extend(instructions.apply.iter().filter_map(sends_to));
        ports.extend(instructions.write.iter().filter_map(sends_to));
    }
    for bucket in pipeline.groups().iter().flat_map(|group| &group.buckets) {
        ports.extend(bucket.watch_port);
        ports.extend(bucket.actions.iter().filter_map(sends_to));
    }
    let ports = ports.into_iter().filter(|port| port.is_physical());
    let ports = ports.map(|port| Message::Port(port, Some(PortState::default())));
    let ports: Vec<Message> = ports.collect();
    let added = pipeline.apply(&ports, Duration::ZERO);
    added.expect("numbers of ports");
}

fn sends_to(action: &Action) -> Option<PortNo> {
    match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    }
}

/// The folder for what goes out.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))
}

/// The port that a packet came in by.
fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
}
