//! Settings of a switch, and the TOML files that have them.
//!
//! ```toml
//! [switch]
//! name = "br0"
//! workers = 2
//! cpus = [2, 3]
//!
//! [[port]]
//! number = 1
//! name = "veth1"
//!
//! [[controller]]
//! address = "tcp:192.0.2.1:6653"
//!
//! [listen]
//! openflow = ["tcp:127.0.0.1:6653"]
//! ```
//!
//! `docs/switch.md` describes all keys. Unknown keys are mistakes. A file with a mistake is
//! not used at all, and all its mistakes are reported together.

mod address;
mod error;
mod faults;
mod port;
mod read;
mod reload;
mod section;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard::EngineSpec;

use crate::tls::TlsSettings;

pub use address::{Address, MAX_SOCKET_PATH_BYTES};
pub use error::ConfigError;
pub use port::{DeviceParts, DeviceSettings, MAX_PORT_NUMBER, PortSettings};
pub use read::MAX_FILE_BYTES;
pub use reload::Reload;
pub use values::{datapath_id_text, duration_text};

/// The largest number of workers.
pub const MAX_WORKERS: usize = 64;

/// The settings of a switch.
#[derive(Clone, Debug)]
pub struct SwitchSettings {
    /// The name, 1 to 15 bytes. It names the files of the switch in
    /// [`run_dir`](Self::run_dir).
    pub name: String,
    /// The datapath id, not 0. If it is `None`, the switch derives it from the address of
    /// its first port.
    pub datapath_id: Option<u64>,
    /// The number of threads that process packets, 1 to [`MAX_WORKERS`].
    pub workers: usize,
    /// The CPU of each worker, or an empty list if the system chooses.
    pub cpus: Vec<usize>,
    /// The engine of each flow table. It takes updates.
    pub engine: EngineSpec,
    /// The strategy of workers that have no packets.
    pub poll: Poll,
    /// The behavior of the switch without a controller.
    pub fail_mode: FailMode,
    /// A file of flows, groups and meters as `ovs-ofctl` accepts them, loaded when the
    /// switch starts.
    pub flows: Option<PathBuf>,
    /// The folder of sockets.
    pub run_dir: PathBuf,
    /// Packets that the switch sends to controllers in a second, at most.
    pub max_packet_ins_per_second: u32,
    /// Packets that the switch sends to controllers immediately after a pause, at most.
    pub max_packet_in_burst: u32,
    /// The ports. Numbers, names, interfaces and written files are distinct.
    pub ports: Vec<PortSettings>,
    /// The controllers that the switch connects to. Addresses are distinct.
    pub controllers: Vec<ControllerSettings>,
    /// The addresses on which the switch accepts controllers. They are distinct.
    pub listeners: Vec<Address>,
    /// The PEM files for `ssl:` addresses.
    pub tls: Option<TlsSettings>,
}

/// The strategy of workers that have no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poll {
    /// A worker without packets sleeps until a packet arrives (`poll = "sleep"`).
    #[default]
    Sleep,
    /// Workers never sleep. Each takes a whole CPU (`poll = "always"`).
    Always,
}

impl Poll {
    /// Returns the word for files: `sleep` or `always`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Poll::Sleep => "sleep",
            Poll::Always => "always",
        }
    }
}

/// The behavior of a switch without a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailMode {
    /// Packets still follow the flow entries (`fail-mode = "secure"`, OpenFlow 1.3.5 §6.3.2).
    #[default]
    Secure,
}

impl FailMode {
    /// Returns the word for files: `secure`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FailMode::Secure => "secure",
        }
    }
}

/// A controller that the switch connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// The address.
    pub address: Address,
    /// The switch sends an echo request to a controller that has sent nothing for this time,
    /// and closes the connection if nothing arrives for this time again.
    pub probe_interval: Duration,
    /// The longest time between two attempts to connect.
    pub max_backoff: Duration,
}

impl ControllerSettings {
    /// The default of [`probe_interval`](Self::probe_interval).
    pub const PROBE_INTERVAL: Duration = Duration::from_secs(5);

    /// The default of [`max_backoff`](Self::max_backoff).
    pub const MAX_BACKOFF: Duration = Duration::from_secs(8);

    /// Returns a controller with the defaults.
    #[must_use]
    pub fn new(address: Address) -> ControllerSettings {
        ControllerSettings {
            address,
            probe_interval: ControllerSettings::PROBE_INTERVAL,
            max_backoff: ControllerSettings::MAX_BACKOFF,
        }
    }
}

impl SwitchSettings {
    /// Reads a configuration file. Paths in it are relative to the folder of the file.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, is too long, or has mistakes.
    pub fn read(path: &Path) -> Result<SwitchSettings, ConfigError> {
        let text = read::text_of(path)?;
        SwitchSettings::parse(&text, path)
    }

    /// Parses the text of a configuration file. `path` is the file's path for messages, and
    /// paths in the text are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError::Bad`] with all mistakes of the text, or [`ConfigError::TooLong`].
    pub fn parse(text: &str, path: &Path) -> Result<SwitchSettings, ConfigError> {
        read::parse(text, path)
    }

    /// Returns the text of a file of flows with a line for each port, so that flows can name
    /// ports. The lines come last, so that mistakes have the line numbers of the file.
    #[must_use]
    pub fn flows_with_ports(&self, flows: &str) -> String {
        let ports = self.ports.iter();
        let lines = ports.map(|port| format!("\nport={},name=\"{}\"", port.number, port.name));
        format!("{flows}{}", lines.collect::<String>())
    }

    /// Returns the differences between these settings and `new`.
    #[must_use]
    pub fn difference(&self, new: &SwitchSettings) -> Reload {
        reload::difference(self, new)
    }
}

impl Default for SwitchSettings {
    /// Returns a switch `br0` with one worker and without ports, controllers and listeners.
    fn default() -> SwitchSettings {
        SwitchSettings {
            name: "br0".to_owned(),
            datapath_id: None,
            workers: 1,
            cpus: Vec::new(),
            engine: EngineSpec::parse("forest").expect("the library has the engine"),
            poll: Poll::default(),
            fail_mode: FailMode::default(),
            flows: None,
            run_dir: default_run_dir(),
            max_packet_ins_per_second: 10_000,
            max_packet_in_burst: 1_000,
            ports: Vec::new(),
            controllers: Vec::new(),
            listeners: Vec::new(),
            tls: None,
        }
    }
}

/// Returns the default folder of sockets: `/run/classyard` for root, and
/// `$XDG_RUNTIME_DIR/classyard` or `/run/user/UID/classyard` for other users.
#[must_use]
pub fn default_run_dir() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return PathBuf::from("/run/classyard");
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute());
    let folder = folder.unwrap_or_else(|| format!("/run/user/{}", user.as_raw()).into());
    folder.join("classyard")
}

#[cfg(test)]
mod tests;
