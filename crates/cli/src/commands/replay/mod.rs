//! `classyard replay`: a capture through a pipeline of flow tables.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use classyard::Progress as _;
use classyard_datapath::pipeline::{Pipeline, RemovedFlow, Worker};
use classyard_datapath::{Field, Flaw, Packet, PacketKey, PortNo};

use crate::failure::Failure;
use crate::input::caches::CacheArgs;
use crate::input::switch::{Frame, Frames, SwitchArgs, add_ports};
use crate::output::OutputArgs;
use crate::reporter::Reporter;

mod caches;
mod ports;
mod rate;
mod report;

use ports::OutPorts;
use rate::RateArgs;
use report::{CaptureRow, ReplayReport};

/// Run a capture through a pipeline of OpenFlow tables: what goes where, and by which flow
///
/// The pipeline is a file of flows, groups and meters as ovs-ofctl takes them. Every
/// packet of the capture comes in by port 1, or those of a pcapng file by one port for
/// each interface, at its own time. All ports that the pipeline names are there and up.
/// Without files, the embedded example is run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard replay
      the embedded example: an office's traffic and a switch at its edge
  classyard replay -p switch.flows -c dump.pcapng.gz
  classyard replay -p switch.flows -c dump.pcap --out out
      and what goes out by each port, as out/port-2.pcap and so on
  classyard replay -p switch.flows -c dump.pcap --pace 10
      ten times as fast as it was captured; without --pace, at once
  classyard replay -p switch.flows -c dump.pcap --seconds 5 --workers 2 --changes 100k
      how fast two threads are while flows change
  classyard replay -p switch.flows -c dump.pcap --seconds 5 --megaflow-engine tuplemerge:c=10
      TupleMerge finds megaflows, not one hash table for each mask")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: SwitchArgs,

    /// Wait between packets as the capture did, so many times as fast; without it, not
    /// at all. Timeouts and meters go by the capture's time in any case
    #[arg(long, value_name = "TIMES", value_parser = pace, help_heading = "Input")]
    pace: Option<f64>,

    /// Write what goes out by each port to DIR/port-N.pcap, and what goes to the
    /// controller to DIR/controller.pcap
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,

    #[command(flatten)]
    rate: RateArgs,

    #[command(flatten)]
    caches: CacheArgs,

    #[command(flatten)]
    output: OutputArgs,
}

fn pace(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(pace) if pace > 0.0 && pace <= 1e9 => Ok(pace),
        _ => Err(format!(
            "`{text}` is no pace; expected a number above 0, such as 1 or 0.5"
        )),
    }
}

/// Packets of a vector.
const VECTOR: usize = 256;

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    args.switch.check(reporter)?;
    let (mut pipeline, lines) = args.switch.load(reporter)?;
    args.rate.check(&pipeline)?;
    let capture = args.switch.read_capture(reporter)?;
    let frames = Frames::of(&capture, args.switch.in_port, reporter)?;
    add_ports(&mut pipeline, frames.all.iter().map(|frame| frame.in_port));
    let mut replayed = Replayed {
        ports: OutPorts::new(args.out.as_deref())?,
        malformed: vec![0; Flaw::ALL.len()],
        removed: Vec::new(),
    };
    replayed.run(&mut pipeline, &frames, args, reporter)?;
    let capture = CaptureRow {
        source: capture.source().to_owned(),
        packets: frames.all.len(),
        left_out: frames.left_out,
        malformed: report::malformed(&replayed.malformed),
    };
    let mut report = ReplayReport::new(&pipeline, &lines, &replayed, capture);
    let workers = (0..args.rate.workers).map(|_| args.caches.worker(&mut pipeline));
    let workers = workers.collect();
    report.rate = rate::measure(
        &args.rate,
        (&mut pipeline, workers),
        &frames,
        reporter.progress(),
    );
    replayed.ports.finish()?;
    args.output.report(&report)
}

/// What became of the packets.
struct Replayed {
    ports: OutPorts,
    /// Packets by what is malformed about them.
    malformed: Vec<u64>,
    /// Flows whose time was over.
    removed: Vec<RemovedFlow>,
}

impl Replayed {
    /// Takes one packet after the other, at its time.
    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        frames: &Frames<'_>,
        args: &Args,
        reporter: Reporter,
    ) -> Result<(), Failure> {
        let mut worker = args.caches.worker(pipeline);
        let (mut progress, begin) = (reporter.progress(), Instant::now());
        for (done, frame) in frames.all.iter().enumerate() {
            if let Some(pace) = args.pace {
                let due = frame.time.div_f64(pace);
                while let Some(left) = due.checked_sub(begin.elapsed()) {
                    // Nobody stops it.
                    let _ = progress.report("replaying", done, frames.all.len());
                    std::thread::sleep(left.min(Duration::from_millis(100)));
                }
            }
            pipeline.expire(frame.time);
            self.take(&mut worker, frame)?;
        }
        self.removed = pipeline.collect_removed();
        Ok(())
    }

    fn take(&mut self, worker: &mut Worker, frame: &Frame<'_>) -> Result<(), Failure> {
        let mut packet = [Packet::new(&frame.bytes, frame.in_port)];
        for (number, &flaw) in Flaw::ALL.iter().enumerate() {
            self.malformed[number] += u64::from(packet[0].parsed().flaws.contains(flaw));
        }
        self.ports.received(PortNo(frame.in_port), frame);
        worker.process(&mut packet, frame.time, &mut self.ports);
        self.ports.check()
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
