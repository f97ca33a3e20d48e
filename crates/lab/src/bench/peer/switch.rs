//! A peer that is a whole switch, such as Open vSwitch.
//!
//! The program reads the files `pipeline` (flow entries, as `ovs-ofctl add-flows` does) and
//! `capture` (a pcap file) in a folder, and executes commands. `bench/peers/ovs/README.md`
//! documents the commands and their replies.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::process::{Process, write_file};
use super::spec::PeerSpec;

/// The version of the protocol between this program and switches.
const PROTOCOL_VERSION: u32 = 1;

/// The time that a reply may take: `bench --peer-limit`'s default. Open vSwitch may wait for
/// its caches twice, 60 seconds each.
const REPLY_LIMIT: Duration = Duration::from_secs(300);

/// The names of the files that a switch reads.
const PIPELINE: &str = "pipeline";
const CAPTURE: &str = "capture";

/// A switch's description of itself.
#[derive(Deserialize)]
struct Hello {
    version: String,
    protocol: u32,
    max_packets: usize,
}

/// The reply to a pipeline with its packets.
#[derive(Debug, Deserialize)]
pub(crate) struct LoadedSwitch {
    /// The number of packets in the capture.
    pub(crate) packets: usize,
    /// Seconds to load the flow entries.
    pub(crate) load_seconds: f64,
    /// Seconds until the caches were filled; `None` if they were not within the time limit.
    pub(crate) settled_seconds: Option<f64>,
    /// Packets by cookie after each packet has come once, without entries that counted no
    /// packet; `None` if not all packets came within the time limit.
    pub(crate) counts: Option<HashMap<u64, u64>>,
}

/// The rate of a switch in one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SwitchRate {
    /// Packets per second of CPU time of the thread that processes them.
    pub(crate) packets_per_second: f64,
    /// Shares of packets that the exact match cache and the megaflows knew.
    pub(crate) emc_share: f64,
    pub(crate) megaflow_share: f64,
    /// Hash tables that were probed for each megaflow hit.
    pub(crate) lookups_per_hit: f64,
    pub(crate) upcalls_per_second: f64,
    /// Megaflows at the end of the turn.
    pub(crate) megaflows: usize,
}

/// The reply to commands without a result.
#[derive(Deserialize)]
struct Done {}

/// A running switch program. It measures only while it executes a command.
pub(crate) struct SwitchPeer {
    option: &'static str,
    spec: PeerSpec,
    hello: Hello,
    process: Process,
}

impl SwitchPeer {
    /// Starts the program, which reports if it lacks something. `option` is the option of
    /// the command line that names it.
    ///
    /// # Errors
    /// [`Failure`] if the program is missing, does not start, or cannot measure.
    pub(crate) fn start(option: &'static str, spec: &PeerSpec) -> Result<SwitchPeer, Failure> {
        let spec = spec.find()?;
        let fail = |reason: String| {
            failure(option, &spec, &reason).with_help(format!(
                "nothing was measured; without {option}, everything but Open vSwitch is measured"
            ))
        };
        let arguments =
            |folder: &Path| Ok(vec!["--commands".into(), folder.as_os_str().to_owned()]);
        let mut process = Process::start(&spec, arguments, REPLY_LIMIT).map_err(fail)?;
        let hello: Hello = process.reply("starting").map_err(fail)?;
        if hello.protocol != PROTOCOL_VERSION {
            return Err(fail(format!(
                "it uses protocol {}, not {PROTOCOL_VERSION}",
                hello.protocol
            )));
        }
        Ok(SwitchPeer {
            option,
            spec,
            hello,
            process,
        })
    }

    /// The name and version of the switch.
    pub(crate) fn version(&self) -> &str {
        &self.hello.version
    }

    /// The number of packets that a capture may have.
    pub(crate) fn max_packets(&self) -> usize {
        self.hello.max_packets
    }

    /// Returns an error about the program.
    pub(crate) fn failure(&self, reason: &str) -> Failure {
        failure(self.option, &self.spec, reason)
    }

    /// Gives the switch flow entries and the bytes of a capture, and waits for its caches.
    ///
    /// # Errors
    /// [`Failure`] with the reason of the program.
    pub(crate) fn load(&mut self, pipeline: &str, capture: &[u8]) -> Result<LoadedSwitch, Failure> {
        for (name, bytes) in [(PIPELINE, pipeline.as_bytes()), (CAPTURE, capture)] {
            let path = self.process.file(name);
            let written = write_file(&path, |file| file.write_all(bytes));
            written.map_err(|error| Failure::file(&path, error))?;
        }
        self.ask("load")
    }

    /// Measures the switch, and stops its threads again.
    ///
    /// # Errors
    /// [`Failure`] with the reason of the program.
    pub(crate) fn turn(&mut self) -> Result<SwitchRate, Failure> {
        self.ask("turn")
    }

    /// Ends the switch; the program waits for other flow entries.
    ///
    /// # Errors
    /// [`Failure`] with the reason of the program.
    pub(crate) fn unload(&mut self) -> Result<(), Failure> {
        let Done {} = self.ask("unload")?;
        for name in [PIPELINE, CAPTURE] {
            self.process.forget(name);
        }
        Ok(())
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, command: &str) -> Result<T, Failure> {
        let reply = self.process.ask(command);
        reply.map_err(|reason| self.failure(&reason))
    }
}

fn failure(option: &str, spec: &PeerSpec, reason: &str) -> Failure {
    Failure::usage(format!("{option} {}: {reason}", spec.program().display()))
}
