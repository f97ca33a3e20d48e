//! What `replay` and `trace` run: a pipeline, and the packets of a capture.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::{FlowEntry, TableId};
use classyard_datapath::pipeline::{Message, Pipeline, PortState};
use classyard_datapath::{Action, Field, FlowMatch, GroupId, MeterId, PortNo, TableSettings, text};
use classyard_workload::capture;
use classyard_workload::diagnostic::{Problem, Problems, ReadError};

use super::files::only_one_from_stdin;
use super::headers::{OpenCapture, open_capture};
use super::limits::{ByteLimit, RecordLimit};
use super::{read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::reporter::Reporter;

/// Rules of a table for which an engine is built anew when a flow brings a new field.
const REBUILD_BELOW: usize = 1_000;

/// Where a pipeline and its packets come from.
#[derive(Debug, clap::Args)]
pub(crate) struct SwitchArgs {
    /// The pipeline: flows, groups and meters as ovs-ofctl takes them, one on each line
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pipeline: Option<PathBuf>,

    /// Packets: a pcap or pcapng file, plain or gzip'd; - for standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub(crate) capture: Option<PathBuf>,

    /// The port that all packets come in by; without it, 1, or the number of a
    /// pcapng file's interface, from 1
    #[arg(long, value_name = "PORT", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..=0xffff_ff00))]
    pub(crate) in_port: Option<u32>,

    #[command(flatten)]
    bytes: ByteLimit,

    #[command(flatten)]
    record: RecordLimit,

    /// The engine of each table: NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`)
    #[arg(short, long, default_value = "forest", value_name = "SPEC", value_parser = super::engine)]
    engine: EngineSpec,
}

impl SwitchArgs {
    /// Checks the arguments against each other.
    pub(crate) fn check(&self, reporter: Reporter) -> Result<(), Failure> {
        only_one_from_stdin(&[
            ("pipeline", self.pipeline.as_deref()),
            ("capture", self.capture.as_deref()),
        ])?;
        if self.pipeline.is_none() && self.capture.is_some() {
            reporter.note("no pipeline given, so the embedded example's is used");
        }
        match self.engine.is_dynamic() {
            true => Ok(()),
            false => Err(classyard::engine::takes_no_updates(&self.engine.to_string()).into()),
        }
    }

    /// Loads the pipeline, and where each part of it stands.
    pub(crate) fn load(&self, reporter: Reporter) -> Result<(Pipeline, Lines), Failure> {
        let (name, content) = match &self.pipeline {
            Some(path) => (source_name(path), read_text(path, self.bytes.text())?),
            None => (
                embedded::PIPELINE_NAME.to_owned(),
                embedded::PIPELINE.to_owned(),
            ),
        };
        let settings = TableSettings::new(self.engine.clone())?;
        let mut pipeline = Pipeline::new(settings.rebuild_below(REBUILD_BELOW));
        match text::load(&content, &mut pipeline, Duration::ZERO) {
            Ok(located) => {
                // Engines that were filled rule by rule answer as well, only not as fast.
                if let Err(error) = pipeline.rebuild() {
                    reporter.note(&format!("engines stay as they were filled: {error}"));
                }
                Ok((pipeline, Lines::of(name, &located)))
            }
            Err(problems) => Err(bad_lines(&name, &content, problems).into()),
        }
    }

    /// Opens the capture, or the embedded one, to read it packet by packet.
    pub(crate) fn open_capture(&self) -> Result<OpenCapture, Failure> {
        let default = capture::ReadOptions::STREAMED;
        let options = capture::ReadOptions {
            max_bytes: self.bytes.limit_bytes.unwrap_or(default.max_bytes),
            max_record: self.record.limit_record.unwrap_or(default.max_record),
            ..default
        };
        open_capture(self.capture.as_deref(), &options)
    }
}

/// Where the parts of a pipeline stand in its file. The last line about one counts.
pub(crate) struct Lines {
    /// The file's name.
    pub(crate) source: String,
    flows: HashMap<(TableId, u16, Arc<FlowMatch>), usize>,
    groups: HashMap<GroupId, usize>,
    meters: HashMap<MeterId, usize>,
}

impl Lines {
    fn of(source: String, located: &[text::Located]) -> Lines {
        let mut lines = Lines {
            source,
            flows: HashMap::new(),
            groups: HashMap::new(),
            meters: HashMap::new(),
        };
        for one in located {
            match &one.message {
                Message::Flow(flow) => {
                    let key = (flow.table, flow.priority, Arc::clone(&flow.flow));
                    lines.flows.insert(key, one.line);
                }
                Message::Group(group) => {
                    lines.groups.insert(group.group.id, one.line);
                }
                Message::Meter(meter) => {
                    lines.meters.insert(meter.meter.id, one.line);
                }
                Message::Table(_) | Message::Port(..) => {}
            }
        }
        lines
    }

    /// The line of a flow.
    pub(crate) fn flow(&self, entry: &FlowEntry) -> Option<usize> {
        let key = (entry.table, entry.priority, Arc::clone(&entry.flow));
        self.flows.get(&key).copied()
    }

    /// The line of a group.
    pub(crate) fn group(&self, group: GroupId) -> Option<usize> {
        self.groups.get(&group).copied()
    }

    /// The line of a meter.
    pub(crate) fn meter(&self, meter: MeterId) -> Option<usize> {
        self.meters.get(&meter).copied()
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

/// Adds the ports that packets come in by, and all that the pipeline names; all are up.
pub(crate) fn add_ports(pipeline: &mut Pipeline, in_ports: impl Iterator<Item = u32>) {
    let mut ports: BTreeSet<PortNo> = in_ports.map(PortNo).collect();
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
