//! The switch that a command is for, and requests to it.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use classyard_report::failure::Failure;
use classyard_switch::config::default_run_dir;
use classyard_switch::control::{ControlClient, ControlError, Request, find_switch};
use serde::de::DeserializeOwned;

/// The flag of commands for running switches.
#[derive(Debug, clap::Args)]
pub(super) struct RunDir {
    /// The folder of the switch's sockets, by default /run/classyard for root and
    /// $XDG_RUNTIME_DIR/classyard for other users
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

/// The switch that a command is for, with its name as the only argument.
#[derive(Debug, clap::Args)]
pub(super) struct NamedSwitch {
    /// The name of the switch; without it, the only running switch
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    run_dir: RunDir,
}

impl NamedSwitch {
    /// Connects to the switch.
    pub(super) fn connect(&self) -> Result<Target, Failure> {
        self.run_dir.connect(self.name.as_deref())
    }
}

/// A connection to a running switch.
pub(super) struct Target {
    /// The name of the switch.
    pub(super) name: String,
    client: ControlClient,
}

impl RunDir {
    /// Connects to the switch `name`, or to the only running switch.
    pub(super) fn connect(&self, name: Option<&str>) -> Result<Target, Failure> {
        let run_dir = self.run_dir.clone().unwrap_or_else(default_run_dir);
        let path = find_switch(&run_dir, name).map_err(|error| failure(&error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Target {
            name: name.into_owned(),
            client: ControlClient::connect(&path).map_err(|error| failure(&error))?,
        })
    }
}

impl Target {
    /// Sends a request. Returns the data of the reply.
    ///
    /// # Errors
    /// [`Failure`]: the connection failed, or the switch refused the request.
    pub(super) fn request<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        let reply = self.client.request(request);
        let reply = reply.map_err(|error| failure(&error))?;
        let data = reply.data();
        data.map_err(|message| Failure::usage(format!("switch `{}`: {message}", self.name)))
    }
}

impl Target {
    /// Sets the longest time that the switch may take for an answer.
    pub(super) fn wait_at_most(&mut self, time: Duration) -> Result<(), Failure> {
        let set = self.client.set_timeout(Some(time));
        set.map_err(|error| failure(&error))
    }

    /// Returns the connection, for the bytes that follow a reply.
    pub(super) fn into_stream(self) -> BufReader<UnixStream> {
        self.client.into_stream()
    }
}

fn failure(error: &ControlError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error.help() {
        Some(help) => failure.with_help(help),
        None => failure,
    }
}
