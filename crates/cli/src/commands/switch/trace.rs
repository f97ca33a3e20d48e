//! `classyard switch trace`: the path of a packet through the tables of a running switch.

use std::time::Duration;

use classyard_report::failure::Failure;
use classyard_report::output::OutputArgs;
use classyard_switch::control::{LiveTrace, Request, TraceSource, frame_bytes};

use super::target::NamedSwitch;
use crate::commands::trace::TraceReport;

/// The time in addition to `--seconds` that the switch has for its answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Trace one packet through the tables of a running switch: the flows that it hits, and why
///
/// Reports what `classyard trace` reports, for the flows, groups, meters and ports that the
/// switch has at this moment. Then comes the megaflow that a worker adds for the packet. The
/// packet is not sent. The switch counts nothing, takes no tokens of meters, and goes on
/// forwarding.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch trace --flow in_port=veth1,tcp,nw_dst=10.0.0.1,tp_dst=80
  classyard switch trace br0 --frame 0200000000010200000000020800450000...
  classyard switch trace --next veth1 --seconds 60
      the next packet that port veth1 receives
  classyard switch trace --flow arp --in-port 2 --format json")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,

    #[command(flatten)]
    packet: PacketArgs,

    /// The input port of the packet, by number or name; without it, 1
    #[arg(
        long,
        value_name = "PORT",
        conflicts_with = "next",
        help_heading = "Input"
    )]
    in_port: Option<String>,

    /// The seconds to wait for the packet of --next
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = "Input")]
    seconds: u64,

    /// Show N flows of each table that nearly won
    #[arg(long, default_value = "2", value_name = "N")]
    near: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// The flags that give the packet. Exactly one is given.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct PacketArgs {
    /// An Ethernet frame in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = frame, help_heading = "Input")]
    frame: Option<String>,

    /// Fields of a packet in the syntax of ovs-ofctl; other fields are 0
    #[arg(long, value_name = "FIELDS", help_heading = "Input")]
    flow: Option<String>,

    /// The next packet that a port receives; the number or name of the port
    #[arg(long, value_name = "PORT", help_heading = "Input")]
    next: Option<String>,
}

/// Checks the digits of a frame, for the argument parser.
fn frame(text: &str) -> Result<String, String> {
    frame_bytes(text).map(|_| text.to_owned())
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    target.wait_at_most(Duration::from_secs(args.seconds) + ANSWER_TIME)?;
    let trace: LiveTrace = target.request(&Request::Trace {
        packet: args.source(),
        near: args.near,
    })?;
    args.output.report(&TraceReport::live(&target.name, trace))
}

impl Args {
    fn source(&self) -> TraceSource {
        let PacketArgs { frame, flow, next } = &self.packet;
        let in_port = self.in_port.clone();
        match (frame, flow, next) {
            (Some(bytes), _, _) => TraceSource::Frame {
                bytes: bytes.clone(),
                in_port,
            },
            (None, Some(fields), _) => TraceSource::Flow {
                fields: fields.clone(),
                in_port,
            },
            (None, None, port) => TraceSource::Next {
                port: port.clone().unwrap_or_default(),
                max_seconds: self.seconds,
            },
        }
    }
}
