//! `classyard replay`: a capture through a pipeline of flow tables.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use classyard::Progress as _;
use classyard_datapath::pipeline::{CacheStatus, Pipeline, RemovedFlow, Worker};
use classyard_datapath::{Field, Flaw, Packet, PacketKey, PortNo};
use classyard_report::failure::Failure;
use classyard_report::input::caches::CacheArgs;
use classyard_report::input::frames::{Frame, FrameStream, HeldFrames};
use classyard_report::input::switch::SwitchArgs;
use classyard_report::interrupt::{self, SoftStop};
use classyard_report::output::{Format, OutputArgs};
use classyard_report::reporter::Reporter;

mod caches;
mod ports;
mod rate;
mod report;

use ports::OutPorts;
use rate::RateArgs;
use report::{CaptureRow, ReplayReport};

use super::script::ScriptRun;

/// Run a capture through a pipeline of OpenFlow tables: what goes where, and by
/// which flow
///
/// The pipeline is a file of flows, groups and meters as ovs-ofctl accepts them.
/// Every packet is processed at its capture time; the reported hits of the flow caches
/// are the hits at these times. The input port of a packet is port 1, or in a pcapng
/// file the port of its interface. All ports that the pipeline names are up, unless a
/// line such as port=1,link=down describes them; the port of an interface is up once
/// the capture has declared it. The capture is read packet by packet and not held in
/// memory, except the packets for measuring the rate. Without files, runs the embedded
/// example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard replay
      the embedded example: an office's traffic and a switch at its edge
  classyard replay -p switch.flows -c dump.pcapng.gz
  classyard replay -p switch.flows -c dump.pcap -o out
      and what goes out by each port, as out/port-2.pcap and so on
  classyard replay -p switch.flows -c dump.pcap --pace 10
      at ten times the captured speed; without --pace, without waiting
  classyard replay -p switch.flows -c dump.pcap --seconds 5 --workers 2 --change-rate 100k
      how fast two threads are while flows change
  classyard replay -p switch.flows -c dump.pcap --script changes.script
      with changes of flows, groups, meters and ports, one per line:
        at=1.5s add table=0,priority=9,tcp,tp_dst=80 actions=output:2
        before=100 delete table=0,tcp
        before=2000 port=1,link=down
  classyard replay -p switch.flows -c dump.pcap --top 10
      only the ten flows with most packets
  tcpdump -w - | classyard replay -p switch.flows -c -
      live: Ctrl-C ends it with the report
  classyard replay -p switch.flows -c dump.pcap --seconds 5 --megaflow-engine tuplemerge:c=10
      TupleMerge finds megaflows, not one hash table for each mask
  classyard replay -p switch.flows -c dump.pcap --caches fasttss:threshold=256ms --cache-flows 8k
      FastTSS: a cache of active flows, and megaflows in sorted hash tables")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: SwitchArgs,

    /// Replay at N times the captured speed; by default, without waiting
    ///
    /// Timeouts and meters use the capture's time in either case.
    #[arg(long, value_name = "N", value_parser = pace, help_heading = "Input")]
    pace: Option<f64>,

    /// Write the output of each port to DIR/port-N.pcap, and packets to the
    /// controller to DIR/controller.pcap
    ///
    /// Each file always ends after a complete packet, even if the command is
    /// interrupted or the disk is full.
    #[arg(
        short,
        long,
        alias = "out",
        value_name = "DIR",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,

    /// List the N flows with the most packets; 0 lists none
    ///
    /// By default, lists all flows by table and priority. A table for people has only
    /// the 1,000 flows with the most packets.
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// Change the pipeline at times of the capture or before packets, as the lines of
    /// FILE say; - for standard input
    ///
    /// A line has a moment and a change. at=1.5s is a time after the first packet;
    /// before=100 is before packet 100 of the capture. The change is a line of a pipeline
    /// after add, modify, modify_strict, delete or delete_strict, or after group or meter
    /// and one of these words. A line such as port=1,link=down changes a port.
    ///
    /// The changes that are due before a packet apply in the order of their times, at
    /// equal times in the order of the lines. A bad line is an error before the first
    /// packet. A change that the pipeline refuses ends the command without a report.
    /// Caches are used for every packet, and the report has the megaflows that each
    /// change made stale. The rate is measured afterwards, with the pipeline as the
    /// script leaves it.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    script: Option<PathBuf>,

    #[command(flatten)]
    rate: RateArgs,

    #[command(flatten)]
    caches: CacheArgs,

    #[command(flatten)]
    report: OutputArgs,
}

fn pace(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(pace) if pace > 0.0 && pace <= 1e9 => Ok(pace),
        _ => Err(format!(
            "bad pace `{text}`; expected a number above 0, such as 1 or 0.5"
        )),
    }
}

/// The maximum number of flows in a table for people, unless the user chooses one.
const TABLE_FLOWS: usize = 1_000;

impl Args {
    /// Returns the number of flows that the report lists, or `None` for all.
    /// A number means the flows with the most packets.
    fn listed_flows(&self, flows: usize) -> Option<usize> {
        let is_long = self.report.format == Format::Table && flows > TABLE_FLOWS;
        self.top.or(is_long.then_some(TABLE_FLOWS))
    }
}

/// Packets per vector.
const VECTOR_PACKETS: usize = 256;

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let script = args.script.as_deref();
    args.switch.check(script, reporter)?;
    let (pipeline, lines) = args.switch.load(reporter)?;
    let script = script.map(|path| args.switch.read_script(path, &lines));
    let script = script.transpose()?;
    // The process ends after the report. To free a million flows would take a second.
    let mut pipeline = ManuallyDrop::new(pipeline);
    args.rate.check(&pipeline)?;
    args.caches.check()?;
    if args.caches.has_megaflows() {
        args.switch.plan_masks(&mut pipeline, reporter)?;
    }
    let mut replayed = Replayed {
        ports: OutPorts::new(args.output.as_deref())?,
        malformed: vec![0; Flaw::ALL.len()],
        removed: Vec::new(),
        held: args.rate.held_frames(),
        caches: None,
        packet: [Packet::default()],
        script: None,
    };
    let mut frames = FrameStream::open(&args.switch, &mut pipeline)?;
    replayed.script = script.map(|script| ScriptRun::begin(script, &mut pipeline));
    replayed.run(&mut pipeline, &mut frames, args, reporter)?;
    replayed.ports.flush()?;
    frames.check()?;
    frames.warn(reporter);
    let capture = CaptureRow {
        source: frames.source().to_owned(),
        packets: frames.packets_read() - frames.packets_left_out(),
        left_out: frames.packets_left_out(),
        malformed: report::malformed(&replayed.malformed),
    };
    let end_time = frames.frame().time;
    let top = args.listed_flows(pipeline.flows().len());
    let mut report = ReplayReport::new(&pipeline, &lines, &replayed, capture, top);
    // After an interrupt the user waits for the report, so nothing is measured.
    if interrupt::outcome().is_ok() {
        let workers = (0..args.rate.workers).map(|_| args.caches.worker(&mut pipeline));
        let workers = workers.collect::<Result<_, _>>()?;
        report.rate = rate::measure(
            &args.rate,
            (&mut *pipeline, workers),
            (&replayed.held, end_time),
            reporter.progress(),
        );
    }
    report.note_held_packets(reporter);
    if let Some(script) = &replayed.script {
        script.note_waiting(reporter);
    }
    args.report.report(&report)?;
    interrupt::outcome()
}

/// The results for the packets.
struct Replayed {
    ports: OutPorts,
    /// Packet counts by kind of malformation.
    malformed: Vec<u64>,
    /// Flows that expired or were evicted.
    removed: Vec<RemovedFlow>,
    /// Packets for measuring the rate.
    held: HeldFrames,
    /// The contents and counters of the caches, if there are any.
    caches: Option<CacheStatus>,
    /// The packet that is being processed.
    packet: [Packet; 1],
    /// The script, if there is one.
    script: Option<ScriptRun>,
}

/// Packets between two reports of progress.
const PACKETS_PER_REPORT: usize = 1 << 14;

impl Replayed {
    /// Processes one packet after the other, at its time.
    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        frames: &mut FrameStream,
        args: &Args,
        reporter: Reporter,
    ) -> Result<(), Failure> {
        // Ctrl-C ends the capture; the command then reports the packets so far.
        let _soft_stop = SoftStop::hold();
        // The caches are used for every packet, so the report has the hit rates of the capture.
        let mut worker = args.caches.patient_worker(pipeline)?;
        let (mut progress, begin) = (reporter.progress(), Instant::now());
        while frames.advance(pipeline)? {
            let frame = frames.frame();
            let is_due = args.pace.is_some() || frame.number.is_multiple_of(PACKETS_PER_REPORT);
            if is_due && let Some(extent) = frames.extent() {
                let _ = progress.report("replaying", extent.read(), extent.length);
            }
            if let Some(pace) = args.pace {
                wait_until(begin, frame.time.div_f64(pace));
            }
            if let Some(script) = &mut self.script {
                script.change((pipeline, &worker), &frame, None, &mut progress)?;
            }
            pipeline.expire(frame.time);
            self.held.add(&frame);
            self.take(&mut worker, &frame)?;
            if let Some(script) = &mut self.script {
                script.follow_caches(&worker);
            }
        }
        self.removed = pipeline.collect_removed();
        self.caches = worker.caches();
        Ok(())
    }

    fn take(&mut self, worker: &mut Worker, frame: &Frame<'_>) -> Result<(), Failure> {
        let [packet] = &mut self.packet;
        packet.receive(frame.bytes, frame.in_port);
        let flaws = packet.parsed().flaws;
        if !flaws.is_empty() {
            flaws
                .iter()
                .for_each(|flaw| self.malformed[flaw as usize] += 1);
        }
        self.ports.received(PortNo(frame.in_port), frame);
        worker.process(&mut self.packet, frame.time, &mut self.ports);
        self.ports.check()
    }
}

/// Sleeps until `due` after `begin`, or until the command is interrupted.
fn wait_until(begin: Instant, due: Duration) {
    while let Some(left) = due.checked_sub(begin.elapsed()) {
        if interrupt::is_requested() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// Creates the folder for output packets.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))
}

/// Returns the input port of a packet.
fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
}
