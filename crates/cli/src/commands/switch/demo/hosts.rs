//! The two hosts of the demonstration.

use std::time::{Duration, Instant};

use classyard_datapath::packet::Offload;
use classyard_ports::MemoryPeer;
use classyard_report::interrupt;
use classyard_switch::Switch;
use classyard_switch::config::{DeviceSettings, PortSettings};

use super::namespaces::Namespaces;
use super::ping;

/// The time that a frame may take through the switch.
const FRAME_TIME: Duration = Duration::from_secs(2);

/// The pause between two looks at a frame.
const FRAME_PAUSE: Duration = Duration::from_millis(1);

/// The two hosts. Host 1 is behind port 1.
pub(super) enum Hosts {
    /// Hosts of the kernel.
    Namespaces(Namespaces),
    /// Hosts in this process.
    Memory {
        /// The reason why namespaces cannot be made.
        reason: String,
        /// The other ends of the ports.
        peers: Vec<MemoryPeer>,
    },
}

impl Hosts {
    /// Makes hosts in network namespaces, or in memory if that is not possible.
    pub(super) fn new() -> Hosts {
        match Namespaces::new() {
            Ok(namespaces) => Hosts::Namespaces(namespaces),
            Err(reason) => Hosts::Memory {
                reason,
                peers: Vec::new(),
            },
        }
    }

    /// Returns the ports to the hosts in namespaces.
    pub(super) fn ports(&self) -> Vec<PortSettings> {
        let Hosts::Namespaces(namespaces) = self else {
            return Vec::new();
        };
        let interfaces = (1..).zip(namespaces.interfaces());
        let ports = interfaces.map(|(number, interface)| PortSettings {
            number,
            name: format!("host{number}"),
            device: DeviceSettings::Interface {
                interface: interface.clone(),
            },
        });
        ports.collect()
    }

    /// Adds the ports to hosts in memory.
    pub(super) fn connect(&mut self, switch: &mut Switch) {
        if let Hosts::Memory { peers, .. } = self {
            let ports = [1, 2].map(|number| switch.memory_port(number, &format!("host{number}")));
            peers.extend(ports);
        }
    }

    /// Sends a ping from host 1 to host 2, which answers.
    ///
    /// # Errors
    /// The reason, for people, if the answer does not come.
    pub(super) fn ping(&self) -> Result<(), String> {
        let peers = match self {
            Hosts::Namespaces(namespaces) => return namespaces.ping(),
            Hosts::Memory { peers, .. } => peers,
        };
        send(&peers[0], &ping::request(1, 2))?;
        let request = receive(&peers[1], 2)?;
        send(&peers[1], &ping::reply(&request))?;
        receive(&peers[0], 1).map(|_| ())
    }
}

fn send(peer: &MemoryPeer, frame: &[u8]) -> Result<(), String> {
    match peer.send(0, frame, Offload::NONE) {
        true => Ok(()),
        false => Err("the switch takes no frame".to_owned()),
    }
}

/// Waits for a frame of ICMP for a host.
fn receive(peer: &MemoryPeer, host: usize) -> Result<Vec<u8>, String> {
    let begin = Instant::now();
    while begin.elapsed() < FRAME_TIME && !interrupt::is_requested() {
        match peer.receive() {
            Some((frame, _)) if ping::is_icmp(&frame) => return Ok(frame),
            Some(_) => {}
            None => std::thread::sleep(FRAME_PAUSE),
        }
    }
    let seconds = FRAME_TIME.as_secs();
    Err(format!("no frame reached host{host} within {seconds} s"))
}
