//! `classyard trace`: the path of one packet through a pipeline.

use std::time::Duration;

use classyard_datapath::Packet;
use classyard_datapath::pipeline::{CacheAnswer, Discard, Pipeline, Worker};
use classyard_report::failure::Failure;
use classyard_report::input::caches::CacheArgs;
use classyard_report::input::frames::FrameStream;
use classyard_report::input::switch::{SwitchArgs, add_ports};
use classyard_report::interrupt;
use classyard_report::output::OutputArgs;
use classyard_report::output::style::counted;
use classyard_report::reporter::Reporter;

mod report;

use report::{TraceReport, Traced};

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
  classyard trace -p switch.flows --frame 0200000000010200000000020800450000...
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

/// Parses hexadecimal digits, with or without spaces and colons, for the argument
/// parser.
fn frame(text: &str) -> Result<FrameBytes, String> {
    let digits = text
        .chars()
        .filter(|character| !matches!(character, ' ' | ':' | '\n'));
    let digits: Option<Vec<u8>> = digits
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    match digits {
        Some(digits) if !digits.is_empty() && digits.len() % 2 == 0 => {
            let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
            Ok(FrameBytes(bytes.collect()))
        }
        Some(digits) => Err(format!(
            "{}; expected two for each byte of a frame",
            counted(digits.len(), "digit")
        )),
        None => Err("not a frame; expected hexadecimal digits, two for each byte".to_owned()),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    args.switch.check(None, reporter)?;
    args.caches.check()?;
    let (mut pipeline, lines) = args.switch.load(reporter)?;
    if args.caches.has_megaflows() {
        args.switch.plan_masks(&mut pipeline, reporter)?;
    }
    if let Some(FrameBytes(bytes)) = &args.frame {
        let in_port = args.switch.in_port.unwrap_or(1);
        add_ports(&mut pipeline, std::iter::once(in_port));
        let packet = Packet::new(bytes, in_port);
        let story = pipeline.trace(&packet, Duration::ZERO, args.near);
        let mut worker = args.caches.patient_worker(&mut pipeline)?;
        let traced = Traced {
            source: "the command line".to_owned(),
            number: None,
            in_port,
            time: Duration::ZERO,
            packet: &packet,
            caches: ask(&mut worker, &packet, Duration::ZERO),
        };
        return args
            .output
            .report(&TraceReport::new(&lines, &traced, &story));
    }
    let mut frames = FrameStream::open(&args.switch, &mut pipeline)?;
    let mut worker = args.caches.patient_worker(&mut pipeline)?;
    seek(&mut frames, args.packet, (&mut pipeline, &mut worker))?;
    frames.warn(reporter);
    let frame = frames.frame();
    pipeline.expire(frame.time);
    let packet = Packet::new(frame.bytes, frame.in_port);
    let story = pipeline.trace(&packet, frame.time, args.near);
    let traced = Traced {
        source: frames.source().to_owned(),
        number: Some(frame.number),
        in_port: frame.in_port,
        time: frame.time,
        packet: &packet,
        caches: ask(&mut worker, &packet, frame.time),
    };
    args.output
        .report(&TraceReport::new(&lines, &traced, &story))
}

/// Reads a capture up to a packet and processes the packets before it.
fn seek(
    frames: &mut FrameStream,
    number: usize,
    (pipeline, worker): (&mut Pipeline, &mut Worker),
) -> Result<(), Failure> {
    if number == 0 {
        return Err(Failure::usage(
            "there is no packet 0; packets are counted from 1",
        ));
    }
    while frames.advance(pipeline)? {
        let frame = frames.frame();
        if frame.number == number {
            return Ok(());
        }
        if frame.number > number {
            break;
        }
        pipeline.expire(frame.time);
        let mut before = [Packet::new(frame.bytes, frame.in_port)];
        worker.process(&mut before, frame.time, &mut Discard);
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
