//! `classyard trace`: the path of one packet through a pipeline.

use std::path::PathBuf;
use std::time::Duration;

use classyard_datapath::pipeline::{CacheAnswer, Discard, Pipeline, Worker};
use classyard_datapath::{Field, Packet, PortNo, text};
use classyard_report::failure::Failure;
use classyard_report::input::caches::CacheArgs;
use classyard_report::input::frames::{Frame, FrameStream};
use classyard_report::input::source_name;
use classyard_report::input::switch::{Lines, SwitchArgs, add_ports};
use classyard_report::interrupt;
use classyard_report::output::OutputArgs;
use classyard_report::output::file::is_dash;
use classyard_report::output::style::counted;
use classyard_report::reporter::Reporter;
use classyard_switch::control::frame_bytes;

mod decision;
mod items;
mod report;

use decision::DecisionObserver;
pub(super) use report::TraceReport;
use report::{Traced, TracedScript};

use super::script::{ChangeObserver, ItemLines, ScriptRun};

/// Trace one packet through a pipeline of OpenFlow tables: the flows that it hits,
/// and why
///
/// Reports each table on the packet's path: the winning flow with its line number,
/// flows that nearly won with the field that did not match, and the fields that
/// mattered. Then come meters, groups, rewritten fields, output ports, and the
/// entry in the flow caches. Earlier packets of the capture are processed first, so
/// meters, timeouts and caches have the state that they had then. The capture is
/// not held in memory. Without files, traces a packet of the embedded example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard trace
      the first packet of the embedded example
  classyard trace -p switch.flows -c dump.pcap --packet 17
  classyard trace -p switch.flows -c dump.pcap --packet 17 --script changes.script
      after the changes that are due before packet 17, and which of them altered the
      decision on it:
        at=1.5s add table=0,priority=9,tcp,tp_dst=80 actions=output:2
        before=17 port=1,link=down
  classyard trace -p switch.flows --frame 0200000000010200000000020800450000...
  classyard trace -p switch.flows --flow in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80
  classyard trace --packet 17 --format json")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: SwitchArgs,

    /// The packet's number in the capture, from 1
    #[arg(
        long,
        default_value = "1",
        value_name = "NUMBER",
        help_heading = "Input"
    )]
    packet: usize,

    /// The packet itself, an Ethernet frame in hexadecimal digits, instead of a
    /// packet of a capture
    #[arg(long, value_name = "HEX", value_parser = frame, conflicts_with_all = ["capture", "packet"], help_heading = "Input")]
    frame: Option<FrameBytes>,

    /// Fields of the packet in the syntax of ovs-ofctl, instead of a packet of a capture;
    /// other fields are 0
    #[arg(long, value_name = "FIELDS", conflicts_with_all = ["capture", "packet", "frame"], help_heading = "Input")]
    flow: Option<String>,

    /// Change the pipeline before the packet as `replay --script` does: make all changes
    /// of FILE that are due before the packet; - for standard input
    ///
    /// A line has a moment and a change, as `classyard replay --help` describes. Earlier
    /// packets of the capture pass between the changes, each at its time. The report has
    /// each change that altered the decision on the packet: the flows that it hits, and
    /// what happens to it, before and after the change. The capture is read twice, so it
    /// must be a file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["frame", "flow"],
        help_heading = "Input"
    )]
    script: Option<PathBuf>,

    /// Show N flows of each table that nearly won
    #[arg(long, default_value = "2", value_name = "N")]
    near: usize,

    #[command(flatten)]
    caches: CacheArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The bytes of a frame.
#[derive(Clone, Debug)]
struct FrameBytes(Vec<u8>);

/// Parses hexadecimal digits for the argument parser.
fn frame(text: &str) -> Result<FrameBytes, String> {
    frame_bytes(text).map(FrameBytes)
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    args.switch.check(args.script.as_deref(), reporter)?;
    args.caches.check()?;
    let (mut pipeline, lines) = args.switch.load(reporter)?;
    let script = args.script.as_deref();
    let script = script.map(|path| args.switch.read_script(path, &lines));
    let script = script.transpose()?;
    if args.caches.has_megaflows() {
        args.switch.plan_masks(&mut pipeline, reporter)?;
    }
    if let Some(packet) = args.given_packet(&pipeline)? {
        return trace_given(&packet, &mut pipeline, &lines, args);
    }
    let packet = script.is_some().then(|| find(args)).transpose()?;
    let mut frames = FrameStream::open(&args.switch, &mut pipeline)?;
    let script = script.map(|script| ScriptRun::begin(script, &mut pipeline));
    let observer = packet.as_ref();
    let mut switch = Switch {
        worker: args.caches.patient_worker(&mut pipeline)?,
        pipeline,
        script,
        observer: observer.map(|packet| DecisionObserver::new(packet, &lines)),
        reporter,
    };
    seek(&mut frames, args.packet, Some(&mut switch))?;
    frames.warn(reporter);
    let report = switch.trace(&frames, &lines, args.near);
    args.output.report(&report)
}

impl Args {
    /// Returns the packet of the command line, if there is one.
    fn given_packet(&self, pipeline: &Pipeline) -> Result<Option<Packet>, Failure> {
        let in_port = self.switch.in_port.unwrap_or(1);
        if let Some(FrameBytes(bytes)) = &self.frame {
            return Ok(Some(Packet::new(bytes, in_port)));
        }
        let Some(fields) = &self.flow else {
            return Ok(None);
        };
        match text::packet(fields, in_port, pipeline.ports()) {
            Ok(packet) => {
                let port = packet.key().get(Field::InPort);
                match self
                    .switch
                    .in_port
                    .filter(|&given| u128::from(given) != port)
                {
                    None => Ok(Some(packet)),
                    Some(given) => Err(Failure::usage(format!(
                        "--flow has in_port={port}, and --in-port is {given}"
                    ))
                    .with_help("give one of them")),
                }
            }
            Err(problem) => Err(Failure::usage(format!(
                "--flow: column {} of `{fields}`: {}",
                problem.column, problem.found
            ))
            .with_help(format!("expected {}", problem.expected))),
        }
    }
}

/// Traces a packet of the command line.
fn trace_given(
    packet: &Packet,
    pipeline: &mut Pipeline,
    lines: &Lines,
    args: &Args,
) -> Result<(), Failure> {
    let in_port = packet.key().get(Field::InPort);
    let in_port = u32::try_from(in_port).expect("32 bits");
    // A reserved port, such as the controller, is not a port of the pipeline.
    let added = Some(in_port).filter(|&port| PortNo(port).is_physical());
    add_ports(pipeline, added.into_iter());
    let story = pipeline.trace(packet, Duration::ZERO, args.near);
    let mut worker = args.caches.patient_worker(pipeline)?;
    let traced = Traced {
        source: "the command line".to_owned(),
        number: None,
        time: Duration::ZERO,
        packet,
        caches: ask(&mut worker, packet, Duration::ZERO),
        script: None,
    };
    let lines = ItemLines::new(lines, None);
    args.output.report(&TraceReport::new(lines, traced, &story))
}

/// Reads the packet to trace, before the script changes the pipeline.
fn find(args: &Args) -> Result<Packet, Failure> {
    if let Some(path) = &args.switch.capture
        && (is_dash(path) || path.metadata().is_ok_and(|metadata| !metadata.is_file()))
    {
        return Err(Failure::usage(format!(
            "{} is not a file; --script reads the capture twice",
            source_name(path)
        ))
        .with_help("save the packets to a file, and name it with -c"));
    }
    let mut frames = FrameStream::open_alone(&args.switch)?;
    seek(&mut frames, args.packet, None)?;
    let frame = frames.frame();
    Ok(Packet::new(frame.bytes, frame.in_port))
}

/// A pipeline that packets pass up to the traced one.
struct Switch<'s> {
    pipeline: Pipeline,
    worker: Worker,
    script: Option<ScriptRun>,
    /// Compares the decisions on the traced packet; `None` without a script.
    observer: Option<DecisionObserver<'s>>,
    reporter: Reporter,
}

impl Switch<'_> {
    /// Makes the changes that are due before a packet.
    fn prepare(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        if let Some(script) = &mut self.script {
            let observer = self.observer.as_mut();
            script.change(
                (&mut self.pipeline, &self.worker),
                frame,
                observer.map(|observer| observer as &mut dyn ChangeObserver),
                &mut self.reporter.progress(),
            )?;
        }
        self.pipeline.expire(frame.time);
        Ok(())
    }

    /// Processes a packet before the traced one.
    fn pass(&mut self, frame: &Frame<'_>) {
        let mut packets = [Packet::new(frame.bytes, frame.in_port)];
        self.worker.process(&mut packets, frame.time, &mut Discard);
        self.follow_caches();
    }

    fn follow_caches(&mut self) {
        if let Some(script) = &mut self.script {
            script.follow_caches(&self.worker);
        }
    }

    /// Traces the present packet of a capture, for which the switch is prepared.
    fn trace(mut self, frames: &FrameStream, lines: &Lines, near: usize) -> TraceReport {
        let frame = frames.frame();
        let packet = Packet::new(frame.bytes, frame.in_port);
        let story = self.pipeline.trace(&packet, frame.time, near);
        let caches = ask(&mut self.worker, &packet, frame.time);
        self.follow_caches();
        let altered = self.observer.map(DecisionObserver::altered);
        let script = self.script.as_ref();
        let traced = Traced {
            source: frames.source().to_owned(),
            number: Some(frame.number),
            time: frame.time,
            packet: &packet,
            caches,
            script: script.map(|script| TracedScript {
                report: script.report(),
                altered: altered.unwrap_or_default(),
            }),
        };
        TraceReport::new(ItemLines::new(lines, script), traced, &story)
    }
}

/// Reads a capture up to a packet. The packets before it pass the switch, if there is one,
/// which is prepared for the packet itself.
fn seek(
    frames: &mut FrameStream,
    number: usize,
    mut switch: Option<&mut Switch<'_>>,
) -> Result<(), Failure> {
    if number == 0 {
        return Err(Failure::usage(
            "there is no packet 0; packets are counted from 1",
        ));
    }
    loop {
        let is_read = match &mut switch {
            Some(switch) => frames.advance(&mut switch.pipeline)?,
            None => frames.read()?,
        };
        let frame = frames.frame();
        if !is_read || frame.number > number {
            break;
        }
        if let Some(switch) = &mut switch {
            switch.prepare(&frame)?;
        }
        if frame.number == number {
            return Ok(());
        }
        if let Some(switch) = &mut switch {
            switch.pass(&frame);
        }
    }
    interrupt::outcome()?;
    frames.check()?;
    let (source, packets) = (frames.source(), frames.packets_read());
    Err(Failure::usage(match number {
        _ if number <= packets => {
            format!("packet {number} of {source} cannot be made an Ethernet frame")
        }
        _ => format!(
            "there is no packet {number} in {source}; expected one of {}",
            counted(packets, "packet")
        ),
    }))
}

/// Returns what a worker's caches hold for a packet, before and after it is
/// counted. The packet's trace must be complete: counting it changes the pipeline's
/// state.
fn ask(worker: &mut Worker, packet: &Packet, now: Duration) -> Option<(CacheAnswer, CacheAnswer)> {
    let before = worker.ask_caches(packet, now)?;
    worker.process(&mut [packet.clone()], now, &mut Discard);
    Some((before, worker.ask_caches(packet, now)?))
}
