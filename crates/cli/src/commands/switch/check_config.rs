//! `classyard switch check-config`: checks a configuration file and its flows.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use classyard_datapath::TableSettings;
use classyard_datapath::pipeline::{Pipeline, PipelineSettings};
use classyard_datapath::text;
use classyard_report::failure::Failure;
use classyard_report::output::style::{counted, grouped};
use classyard_report::output::table::{Side, Table, fact, heading};
use classyard_report::output::{OutputArgs, Report, csv, join};
use classyard_report::reporter::Reporter;
use classyard_switch::config::{
    ConfigError, ControllerSettings, PortSettings, SwitchSettings, datapath_id_text, duration_text,
};
use classyard_switch::tls::TlsSettings;
use classyard_workload::diagnostic::ReadError;
use classyard_workload::formats::read_text_file;
use classyard_workload::limits::FileLimit;
use serde::Serialize;

/// Check the configuration of a switch and its file of flows
///
/// All mistakes are listed with line and column. Nothing is opened except these files and the
/// PEM files of TLS, so interfaces and controllers need not exist.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch check-config br0.toml
  classyard switch check-config /etc/classyard/br0.toml --format json

The exit code is 2 if a file has mistakes.")]
pub(crate) struct Args {
    /// The configuration file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct ConfigReport {
    file: String,
    name: String,
    datapath_id: Option<String>,
    workers: usize,
    cpus: Vec<usize>,
    engine: String,
    poll: &'static str,
    fail_mode: &'static str,
    flows: Option<FlowsReport>,
    run_dir: String,
    max_packet_ins_per_second: u32,
    max_packet_in_burst: u32,
    ports: Vec<PortSettings>,
    controllers: Vec<ControllerReport>,
    listeners: Vec<String>,
    tls: Option<TlsSettings>,
}

/// The contents of the file of flows.
#[derive(Serialize)]
struct FlowsReport {
    file: String,
    flows: usize,
    groups: usize,
    meters: usize,
}

#[derive(Serialize)]
struct ControllerReport {
    address: String,
    probe_interval_seconds: f64,
    max_backoff_seconds: f64,
    #[serde(skip)]
    probe_interval: Duration,
    #[serde(skip)]
    max_backoff: Duration,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let settings = SwitchSettings::read(&args.file).map_err(failure)?;
    let flows = flows_report(&settings, reporter)?;
    if let Some(tls) = &settings.tls {
        let checked = tls.check();
        checked.map_err(|error| Failure::usage(error.to_string()))?;
    }
    let report = ConfigReport {
        file: args.file.display().to_string(),
        datapath_id: settings.datapath_id.map(datapath_id_text),
        engine: settings.engine.to_string(),
        poll: settings.poll.word(),
        fail_mode: settings.fail_mode.word(),
        flows,
        run_dir: settings.run_dir.display().to_string(),
        controllers: settings.controllers.iter().map(controller_report).collect(),
        listeners: settings.listeners.iter().map(ToString::to_string).collect(),
        name: settings.name,
        workers: settings.workers,
        cpus: settings.cpus,
        max_packet_ins_per_second: settings.max_packet_ins_per_second,
        max_packet_in_burst: settings.max_packet_in_burst,
        ports: settings.ports,
        tls: settings.tls,
    };
    args.output.report(&report)
}

pub(super) fn failure(error: ConfigError) -> Failure {
    match error {
        ConfigError::Io { file, error } => Failure::Read(ReadError::Io { file, error }),
        ConfigError::Bad(problems) => Failure::Read(ReadError::Bad(problems)),
        other => Failure::usage(other.to_string()),
    }
}

/// Loads the flows into a pipeline, as a switch with these settings does.
fn flows_report(
    settings: &SwitchSettings,
    reporter: Reporter,
) -> Result<Option<FlowsReport>, Failure> {
    let Some(path) = &settings.flows else {
        return Ok(None);
    };
    let file = path.display().to_string();
    let content = settings.flows_with_ports(&read_text_file(path, FileLimit::TEXT)?);
    let tables = TableSettings::new(settings.engine.clone())?;
    let pipeline = Pipeline::new(PipelineSettings::new(tables));
    let filled = text::fill(pipeline, &file, &content, false, Duration::ZERO);
    let filled = filled.map_err(ReadError::Bad)?;
    for note in filled.notes {
        reporter.warn(&format!("{file}: {note}"));
    }
    let pipeline = filled.pipeline;
    Ok(Some(FlowsReport {
        file,
        flows: pipeline.flows().iter().count(),
        groups: pipeline.groups().iter().count(),
        meters: pipeline.meters().iter().count(),
    }))
}

fn controller_report(controller: &ControllerSettings) -> ControllerReport {
    ControllerReport {
        address: controller.address.to_string(),
        probe_interval_seconds: controller.probe_interval.as_secs_f64(),
        max_backoff_seconds: controller.max_backoff.as_secs_f64(),
        probe_interval: controller.probe_interval,
        max_backoff: controller.max_backoff,
    }
}

/// Returns the names of the PEM files, one a line.
fn files(tls: &TlsSettings) -> String {
    let files = [
        ("private key", &tls.private_key),
        ("certificate", &tls.certificate),
        ("CA", &tls.ca_certificate),
    ];
    let lines = files.map(|(name, file)| format!("{name} {}", file.display()));
    lines.join("\n")
}

impl ConfigReport {
    fn switch_facts(&self, out: &mut dyn Write) -> io::Result<()> {
        let id = self.datapath_id.as_deref();
        let id = id.unwrap_or("from the address of the first port");
        fact(out, "Switch", format!("{}, datapath id {id}", self.name))?;
        let workers = counted(self.workers, "worker");
        let placed = match self.cpus.len() {
            0 => String::new(),
            1 => format!(" on CPU {}", self.cpus[0]),
            _ => format!(" on CPUs {}", join(&self.cpus, ", ")),
        };
        fact(
            out,
            "Workers",
            format!("{workers}{placed}, poll {}", self.poll),
        )?;
        fact(out, "Engine", &self.engine)?;
        if let Some(flows) = &self.flows {
            let counts = [
                counted(flows.flows, "flow"),
                counted(flows.groups, "group"),
                counted(flows.meters, "meter"),
            ];
            fact(
                out,
                "Flows",
                format!("{} from {}", counts.join(", "), flows.file),
            )?;
        }
        fact(out, "Fail mode", self.fail_mode)?;
        let packets = counted(self.max_packet_ins_per_second, "packet");
        let burst = grouped(self.max_packet_in_burst);
        let limit = format!("at most {packets} a second, {burst} in a burst");
        fact(out, "Packet-ins", limit)?;
        fact(out, "Run folder", &self.run_dir)?;
        if !self.listeners.is_empty() {
            fact(out, "Listens on", self.listeners.join("\n"))?;
        }
        match &self.tls {
            None => Ok(()),
            Some(tls) => fact(out, "TLS", files(tls)),
        }
    }
}

impl Report for ConfigReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.switch_facts(out)?;
        if !self.ports.is_empty() {
            writeln!(out)?;
            heading(out, "Ports")?;
            let columns = [
                ("number", Side::Right),
                ("port", Side::Left),
                ("device", Side::Left),
            ];
            let mut table = Table::new(&columns);
            for port in &self.ports {
                let number = port.number.to_string();
                table.row(vec![number, port.name.clone(), port.device.to_string()]);
            }
            table.write(out)?;
        }
        if !self.controllers.is_empty() {
            writeln!(out)?;
            heading(out, "Controllers")?;
            let columns = [
                ("address", Side::Left),
                ("probe interval", Side::Right),
                ("longest back-off", Side::Right),
            ];
            let mut table = Table::new(&columns);
            for controller in &self.controllers {
                table.row(vec![
                    controller.address.clone(),
                    duration_text(controller.probe_interval),
                    duration_text(controller.max_backoff),
                ]);
            }
            table.write(out)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"number", &"name", &"type", &"device"])?;
        for port in &self.ports {
            let type_name = port.device.type_name();
            out.row(&[&port.number, &port.name, &type_name, &port.device])?;
        }
        Ok(())
    }
}
