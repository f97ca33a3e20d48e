//! The input of `replay` and `trace`: a pipeline, and the packets of a capture.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::FlowEntry;
use classyard_datapath::group::Group;
use classyard_datapath::pipeline::{Message, Pipeline, PipelineSettings, PortState};
use classyard_datapath::text::{self, Filled, Script};
use classyard_datapath::{Field, GroupId, MegaflowBits, MeterId, PortNo, TableSettings};
use classyard_workload::capture;
use classyard_workload::diagnostic::ReadError;

use super::files::only_one_from_stdin;
use super::headers::{OpenCapture, open_capture};
use super::limits::{ByteLimit, RecordLimit};
use super::{read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::reporter::Reporter;

/// When a flow brings a new field, engines of tables with fewer rules are rebuilt.
const REBUILD_BELOW: usize = 1_000;

/// The flags that name a pipeline and its packets.
#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// The pipeline: flows, groups and meters as ovs-ofctl accepts them, and ports such
    /// as port=1,name=eth0,link=down,speed=10G, one per line
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pipeline: Option<PathBuf>,

    /// Packets: a pcap or pcapng file, plain or gzip'd; - for standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub capture: Option<PathBuf>,

    /// The input port of all packets; without it, 1, or the interface number in a
    /// pcapng file, from 1
    #[arg(long, value_name = "PORT", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..=0xffff_ff00))]
    pub in_port: Option<u32>,

    /// Skip bad lines of the pipeline and use the good ones
    ///
    /// Standard error has the number of skipped lines and the reasons. Without the
    /// flag, a single bad line is an error and nothing is loaded.
    #[arg(long, help_heading = "Input")]
    skip_bad: bool,

    #[command(flatten)]
    bytes: ByteLimit,

    #[command(flatten)]
    record: RecordLimit,

    /// The engine of each table: NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`)
    #[arg(short, long, default_value = "forest", value_name = "SPEC", value_parser = super::engine)]
    engine: EngineSpec,

    /// The algorithm that chooses the bits that a megaflow matches on: auto, naive,
    /// common-match, multi-bit, prefix-tree or fewest-masks
    ///
    /// With all algorithms, the same flow wins all packets of a megaflow. Fewer bits make
    /// wider megaflows, so fewer packets pass the tables. `auto` follows changes of flows;
    /// the others are computed again after a change.
    #[arg(
        long,
        default_value_t,
        value_name = "ALGORITHM",
        help_heading = "Flow caches"
    )]
    megaflow_bits: MegaflowBits,

    /// The seed of the hash that spreads packets over the buckets of select groups;
    /// runs with the same seed choose the same buckets
    #[arg(long, value_name = "N", default_value_t = 0)]
    select_seed: u64,
}

impl SwitchArgs {
    /// Checks the arguments against each other. `script` is the script of changes, if the
    /// command has one.
    pub fn check(&self, script: Option<&Path>, reporter: Reporter) -> Result<(), Failure> {
        only_one_from_stdin(&[
            ("pipeline", self.pipeline.as_deref()),
            ("capture", self.capture.as_deref()),
            ("script", script),
        ])?;
        if self.pipeline.is_none() && self.capture.is_some() {
            reporter.note("no pipeline given, so the embedded example's is used");
        }
        match self.engine.is_dynamic() {
            true => Ok(()),
            false => Err(classyard::engine::takes_no_updates(&self.engine.to_string()).into()),
        }
    }

    /// Loads the pipeline and the line number of each of its parts.
    pub fn load(&self, reporter: Reporter) -> Result<(Pipeline, Lines), Failure> {
        let (name, content) = match &self.pipeline {
            Some(path) => (source_name(path), read_text(path, self.bytes.text())?),
            None => (
                embedded::PIPELINE_NAME.to_owned(),
                embedded::PIPELINE.to_owned(),
            ),
        };
        let tables = TableSettings::new(self.engine.clone())?
            .rebuild_below(REBUILD_BELOW)
            .megaflow_bits(self.megaflow_bits);
        let settings = PipelineSettings::new(tables);
        let pipeline = Pipeline::new(settings.select_seed(self.select_seed));
        let filled = text::fill(pipeline, &name, &content, self.skip_bad, Duration::ZERO);
        let Filled {
            pipeline,
            lines,
            port_numbers,
            skipped,
            notes,
        } = filled.map_err(ReadError::Bad)?;
        reporter.skipped(&skipped);
        for note in notes {
            reporter.note(&format!("{name}: {note}"));
        }
        let lines = Lines {
            source: name,
            lines,
            port_numbers,
        };
        Ok((pipeline, lines))
    }

    /// Reads a script of changes for a pipeline with these lines.
    ///
    /// # Errors
    /// If the file cannot be read, or has bad lines.
    pub fn read_script(&self, path: &Path, lines: &Lines) -> Result<Script, Failure> {
        let text = read_text(path, self.bytes.text())?;
        let script = Script::read(&source_name(path), text, lines.port_numbers.clone());
        Ok(script.map_err(ReadError::Bad)?)
    }

    /// Plans the masks of megaflows for tables whose flows differ in few bits.
    ///
    /// # Errors
    /// If the user interrupts it.
    pub fn plan_masks(&self, pipeline: &mut Pipeline, reporter: Reporter) -> Result<(), Failure> {
        let (mut planner, mut progress) = (pipeline.planner(), reporter.progress());
        while let Some(plan) = planner.plan(&mut progress)? {
            pipeline.install(plan);
            while pipeline.maintain(usize::MAX) {}
        }
        Ok(())
    }

    /// Opens the capture or the embedded example for reading packet by packet.
    pub fn open_capture(&self) -> Result<OpenCapture, Failure> {
        let default = capture::ReadOptions::STREAMED;
        let options = default
            .with_max_bytes(self.bytes.limit_bytes.unwrap_or(default.max_bytes))
            .with_max_record(self.record.limit_record.unwrap_or(default.max_record));
        open_capture(self.capture.as_deref(), &options)
    }
}

/// The line numbers of a pipeline's parts in its file. If several lines define a
/// part, the last one counts.
pub struct Lines {
    /// The file's name.
    pub source: String,
    lines: text::Lines,
    /// Numbers of ports by name.
    port_numbers: BTreeMap<String, u32>,
}

impl Lines {
    /// Returns the line of a flow.
    pub fn flow(&self, entry: &FlowEntry) -> Option<usize> {
        self.lines.flow(entry.id)
    }

    /// Returns the line of a group.
    pub fn group(&self, group: GroupId) -> Option<usize> {
        self.lines.group(group)
    }

    /// Returns the line of a port.
    pub fn port(&self, port: PortNo) -> Option<usize> {
        self.lines.port(port)
    }

    /// Returns the ports that lines describe.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> {
        self.lines.ports()
    }

    /// Returns the line of a meter.
    pub fn meter(&self, meter: MeterId) -> Option<usize> {
        self.lines.meter(meter)
    }
}

/// Adds the input ports and all ports that the pipeline names, all of them up. Existing
/// ports keep their state.
pub fn add_ports(pipeline: &mut Pipeline, in_ports: impl Iterator<Item = u32>) {
    let mut ports: BTreeSet<PortNo> = in_ports.map(PortNo).collect();
    for entry in pipeline.flows().iter() {
        if let Some(value) = entry.flow.get(Field::InPort) {
            ports.extend(u32::try_from(value.value).map(PortNo));
        }
        ports.extend(entry.instructions.output_ports());
    }
    ports.extend(pipeline.groups().iter().flat_map(Group::named_ports));
    add_missing_ports(pipeline, ports.into_iter(), Duration::ZERO);
}

/// Adds the ports that do not exist yet, all of them up. Reserved ports are left out.
pub fn add_missing_ports(
    pipeline: &mut Pipeline,
    ports: impl Iterator<Item = PortNo>,
    now: Duration,
) {
    let missing = ports.filter(|&port| port.is_physical() && pipeline.ports().get(port).is_none());
    let missing = missing.map(|port| Message::Port(port, Some(PortState::default())));
    let missing: Vec<Message> = missing.collect();
    let added = pipeline.apply(&missing, now);
    added.expect("numbers of ports");
}
