//! `classyard switch add-port` and `del-port`: ports of a running switch.

use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::reporter::Reporter;
use classyard_switch::config::{DeviceParts, MAX_PORT_NUMBER, PortSettings};
use classyard_switch::control::Request;

use super::target::RunDir;

/// The type of a port's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Type {
    /// An existing network interface
    Interface,
    /// A TAP device, made if it does not exist
    Tap,
    /// Captures in files
    Pcap,
    /// Memory, for programs that run a switch inside
    Memory,
}

/// Add a port to a running switch
///
/// The port exists until it is removed, until a reload of the configuration removes it, or
/// until the switch stops. Add it to the configuration file to keep it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch add-port veth1 --number 1
  classyard switch add-port uplink --number 2 --interface eth1 --switch br0
  classyard switch add-port vm0 --number 3 --type tap
  classyard switch add-port recorder --number 4 --type pcap --send out.pcap")]
pub(crate) struct AddArgs {
    /// The name of the port, at most 15 bytes
    #[arg(value_name = "PORT")]
    port: String,

    /// The OpenFlow number of the port
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PORT_NUMBER)))]
    number: u32,

    /// The type of the device
    #[arg(
        long = "type",
        value_enum,
        default_value = "interface",
        value_name = "TYPE"
    )]
    kind: Type,

    /// The network interface of a port of type interface or tap; without it, the name of the
    /// port
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// The capture whose packets a port of type pcap receives
    #[arg(long, value_name = "FILE")]
    receive: Option<PathBuf>,

    /// The capture that gets the packets that a port of type pcap sends
    #[arg(long, value_name = "FILE")]
    send: Option<PathBuf>,

    /// The name of the switch; without it, the only running switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,

    #[command(flatten)]
    run_dir: RunDir,
}

/// Remove a port from a running switch
///
/// Flows that name the port stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch del-port veth1
  classyard switch del-port veth1 --switch br0")]
pub(crate) struct DelArgs {
    /// The name of the port
    #[arg(value_name = "PORT")]
    port: String,

    /// The name of the switch; without it, the only running switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,

    #[command(flatten)]
    run_dir: RunDir,
}

/// Adds a port.
pub(super) fn add(args: &AddArgs, reporter: Reporter) -> Result<(), Failure> {
    let port = args.settings()?;
    let mut target = args.run_dir.connect(args.switch.as_deref())?;
    target.request::<()>(&Request::AddPort { port })?;
    reporter.note(&format!(
        "switch `{}` has the port `{}` with the number {}",
        target.name, args.port, args.number
    ));
    Ok(())
}

/// Removes a port.
pub(super) fn delete(args: &DelArgs, reporter: Reporter) -> Result<(), Failure> {
    let mut target = args.run_dir.connect(args.switch.as_deref())?;
    let name = args.port.clone();
    target.request::<()>(&Request::DelPort { name })?;
    let note = format!(
        "switch `{}` has removed the port `{}`",
        target.name, args.port
    );
    reporter.note(&note);
    Ok(())
}

impl AddArgs {
    /// Returns the settings of the port, with absolute paths.
    fn settings(&self) -> Result<PortSettings, Failure> {
        let type_name = match self.kind {
            Type::Interface => "interface",
            Type::Tap => "tap",
            Type::Pcap => "pcap",
            Type::Memory => "memory",
        };
        let absolute = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let parts = DeviceParts {
            interface: self.interface.clone(),
            receive: absolute(&self.receive)?,
            send: absolute(&self.send)?,
        };
        PortSettings::new(self.number, &self.port, type_name, parts).map_err(Failure::usage)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::file(path, error))
}
