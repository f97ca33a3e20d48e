//! `classyard switch run`: runs a switch until a signal stops it.

use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::interrupt::SoftStop;
use classyard_report::reporter::Reporter;
use classyard_switch::Switch;
use classyard_switch::config::SwitchSettings;
use tracing::level_filters::LevelFilter;

use super::check_config::failure;
use super::demo;

/// The text of mistakes in options.
const OPTIONS: &str = "options";

/// Run a switch until SIGTERM or SIGINT stops it
///
/// The switch reads a configuration file, or its ports and sockets are options. It listens on
/// RUN_DIR/NAME.mgmt for OpenFlow 1.3, and on RUN_DIR/NAME.ctl for the other `switch` commands.
/// A second SIGTERM or SIGINT ends it without delay. SIGHUP lets it read the file again. Network interfaces need CAP_NET_RAW and CAP_NET_ADMIN,
/// which root has.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch run --demo
      a ping through a switch between two hosts, made for this and removed at the end
  classyard switch run br0.toml
  classyard switch run --port veth1 --port veth2
      a switch br0 with the ports 1 and 2
  classyard switch run --port veth1 --port veth2 -p br0.flows -C tcp:192.0.2.1:6653
  classyard switch run -C ssl:192.0.2.1 --private-key k.pem --certificate c.pem --ca-certificate ca.pem
      a controller over TLS

`ovs-ofctl` finds the switch by its name if OVS_RUNDIR is the run folder:
  OVS_RUNDIR=/run/classyard ovs-ofctl -O OpenFlow13 dump-flows br0")]
pub(crate) struct Args {
    /// The configuration file; docs/switch.md describes it
    #[arg(value_name = "FILE", conflicts_with_all = ["port", "tap", "pipeline", "controller", "listen", "private_key", "certificate", "ca_certificate", "workers", "name", "run_dir"])]
    file: Option<PathBuf>,

    /// Show a ping's way through a small switch between two hosts, and end
    ///
    /// The hosts are network namespaces, which need root, `ip` and `ping`. Without them, the
    /// hosts are in memory. Everything is removed at the end, also after Ctrl-C.
    #[arg(long, conflicts_with_all = ["file", "port", "tap", "pipeline", "controller", "listen", "private_key", "certificate", "ca_certificate", "workers", "name", "run_dir"])]
    demo: bool,

    /// With --demo, leave the switch and the hosts running until Ctrl-C
    #[arg(long, requires = "demo")]
    keep: bool,

    /// A network interface as port; the first is port 1
    #[arg(long, value_name = "INTERFACE")]
    port: Vec<String>,

    /// A TAP device as port, made if there is none; its number follows the ports of --port
    #[arg(long, value_name = "NAME")]
    tap: Vec<String>,

    /// Flows, groups and meters in the syntax of `ovs-ofctl`, present from the start
    #[arg(short, long, value_name = "FILE")]
    pipeline: Option<PathBuf>,

    /// A controller to connect to: tcp:HOST:PORT, ssl:HOST:PORT (TLS) or unix:PATH
    #[arg(short = 'C', long, value_name = "ADDRESS")]
    controller: Vec<String>,

    /// An address to listen on: tcp:ADDRESS:PORT, ssl:ADDRESS:PORT (TLS) or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,

    /// For ssl: addresses, the private key of the switch, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_certificate"])]
    private_key: Option<PathBuf>,

    /// For ssl: addresses, the certificate of the switch, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "ca_certificate"])]
    certificate: Option<PathBuf>,

    /// For ssl: addresses, the CA that signs the certificates of controllers, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "certificate"])]
    ca_certificate: Option<PathBuf>,

    /// Threads that process packets [default: 1]
    #[arg(long, value_name = "COUNT")]
    workers: Option<u8>,

    /// The name of the switch [default: br0]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The folder of sockets, by default /run/classyard for root and
    /// $XDG_RUNTIME_DIR/classyard for other users
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,

    /// The least important messages of the log on standard error
    #[arg(long, default_value = "info", value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug"])]
    log: String,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if args.demo {
        args.begin_log();
        return demo::run(args.keep, reporter);
    }
    let settings = match &args.file {
        Some(file) => SwitchSettings::read(file).map_err(failure)?,
        None => args.settings()?,
    };
    args.begin_log();
    let mut switch = Switch::new(settings).handle_signals().return_free_memory();
    if let Some(file) = &args.file {
        let file = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
        switch = switch.configuration(file);
    }
    let mut soft_stop = None;
    let ended = switch.run(|ready| {
        // The switch has handlers of its own: it closes its ports and removes its sockets.
        soft_stop = Some(SoftStop::hold());
        let listeners: Vec<String> = ready.listeners.iter().map(ToString::to_string).collect();
        let ports = match ready.ports {
            1 => "1 port".to_owned(),
            count => format!("{count} ports"),
        };
        reporter.note(&format!(
            "switch `{}` with {ports} is ready; OpenFlow on {}",
            ready.name,
            listeners.join(", ")
        ));
    });
    ended.map_err(|error| Failure::usage(error.to_string()))
}

impl Args {
    /// Writes the log to standard error from now on.
    fn begin_log(&self) {
        let level: LevelFilter = self.log.parse().expect("a level of the list");
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_target(false)
            // Other crates of a build may turn colors on, which files should not have.
            .with_ansi(false)
            .init();
    }

    /// Returns the settings of a configuration file with the values of the options.
    fn settings(&self) -> Result<SwitchSettings, Failure> {
        let text = self.configuration()?;
        SwitchSettings::parse(&text, Path::new(OPTIONS)).map_err(failure)
    }

    fn configuration(&self) -> Result<String, Failure> {
        let mut text = "[switch]\n".to_owned();
        let mut line = |key: &str, value: toml::Value| {
            text.push_str(&format!("{key} = {value}\n"));
        };
        if let Some(name) = &self.name {
            line("name", name.as_str().into());
        }
        if let Some(workers) = self.workers {
            line("workers", i64::from(workers).into());
        }
        for (key, path) in [("flows", &self.pipeline), ("run-dir", &self.run_dir)] {
            if let Some(path) = path {
                line(key, absolute(path)?);
            }
        }
        let ports = self.port.iter().map(|port| (port, "interface"));
        let ports = ports.chain(self.tap.iter().map(|port| (port, "tap")));
        for (number, (port, kind)) in (1..).zip(ports) {
            let name = toml::Value::from(port.as_str());
            text.push_str(&format!(
                "[[port]]\nnumber = {number}\nname = {name}\ntype = \"{kind}\"\n"
            ));
        }
        for address in &self.controller {
            let address = toml::Value::from(address.as_str());
            text.push_str(&format!("[[controller]]\naddress = {address}\n"));
        }
        let listeners: Vec<toml::Value> = self.listen.iter().map(|it| it.as_str().into()).collect();
        let listeners = toml::Value::from(listeners);
        text.push_str(&format!("[listen]\nopenflow = {listeners}\n"));
        let files = [
            ("private-key", &self.private_key),
            ("certificate", &self.certificate),
            ("ca-certificate", &self.ca_certificate),
        ];
        if self.private_key.is_some() {
            text.push_str("[tls]\n");
        }
        for (key, path) in files {
            if let Some(path) = path {
                text.push_str(&format!("{key} = {}\n", absolute(path)?));
            }
        }
        Ok(text)
    }
}

/// Returns the absolute path of a file as a text of TOML.
fn absolute(path: &Path) -> Result<toml::Value, Failure> {
    let path = std::path::absolute(path).map_err(|error| Failure::file(path, error))?;
    Ok(path.display().to_string().into())
}
