//! The open ports of the switch.

use std::collections::BTreeMap;
use std::time::Duration;

use classyard_datapath::PortNo;
use classyard_datapath::pipeline::{PortName, PortSpeed, PortState};
use classyard_openflow::agent::{PortCounts, PortDetails};
use classyard_ports::{self as ports, Device, Link, OpenError, Queue, QueueCounts};

use crate::config::{DeviceSettings, PortSettings};

/// The queues of a port, one for each worker.
pub(crate) type Queues = Vec<Box<dyn Queue>>;

/// A port with its device and its queues.
pub(crate) type Opened = (PortSettings, Device, Queues);

/// A port of the switch.
pub(super) struct OpenPort {
    pub(super) settings: PortSettings,
    /// The device; `None` while it is closed after an error.
    pub(super) device: Option<Device>,
    /// The error that closed the device.
    pub(super) error: Option<String>,
    pub(super) link: Link,
    /// The time when the port was added.
    added: Duration,
    /// The counts of earlier devices of the port.
    former: QueueCounts,
}

/// The link of a port whose device is closed.
const NO_LINK: Link = Link {
    is_up: false,
    address: [0; 6],
    speed_kbit: None,
    mtu: 0,
};

impl OpenPort {
    pub(super) fn new(settings: PortSettings, device: Device, now: Duration) -> OpenPort {
        let link = device.link().unwrap_or(NO_LINK);
        OpenPort {
            settings,
            device: Some(device),
            error: None,
            link,
            added: now,
            former: QueueCounts::default(),
        }
    }

    /// Closes the device after an error.
    pub(super) fn close(&mut self, error: String) {
        if let Some(device) = self.device.take() {
            self.former += device.counts();
        }
        self.error = Some(error);
        self.link.is_up = false;
    }

    /// Replaces a closed device.
    pub(super) fn reopen(&mut self, device: Device) {
        self.link = device.link().unwrap_or(NO_LINK);
        self.device = Some(device);
        self.error = None;
    }

    /// Reads the link of the device. Returns true if it changed.
    pub(super) fn read_link(&mut self) -> bool {
        let Some(device) = &self.device else {
            return false;
        };
        let link = device.link().unwrap_or(Link {
            // A TAP device that was moved to another namespace is not seen any more.
            is_up: matches!(self.settings.device, DeviceSettings::Tap { .. }),
            ..self.link
        });
        let is_new = link != self.link;
        self.link = link;
        is_new
    }

    pub(super) fn counts(&self) -> QueueCounts {
        let mut counts = self.former;
        counts += self.device.as_ref().map(Device::counts).unwrap_or_default();
        counts
    }

    /// Returns the port as the pipeline and the controllers see it. `old` is its present state,
    /// whose flags stay.
    pub(super) fn description(&self, old: Option<PortState>) -> (PortState, PortDetails) {
        let state = PortState {
            is_up: self.link.is_up,
            name: PortName::new(&self.settings.name),
            speed: self.link.speed_kbit.map(PortSpeed),
            ..old.unwrap_or_default()
        };
        let details = PortDetails {
            address: self.link.address,
            added: self.added,
            ..PortDetails::default()
        };
        (state, details)
    }
}

/// Returns the counts of a port for controllers.
pub(super) fn port_counts(ports: &BTreeMap<PortNo, OpenPort>, port: PortNo) -> PortCounts {
    let Some(port) = ports.get(&port) else {
        return PortCounts::default();
    };
    let counts = port.counts();
    PortCounts {
        received: Some((counts.received_packets, counts.received_bytes)),
        sent: Some((counts.sent_packets, counts.sent_bytes)),
        dropped: Some((
            counts.missed + counts.received_too_long + counts.received_invalid,
            counts.no_room + counts.sent_too_long,
        )),
        errors: Some((0, counts.refused)),
    }
}

/// Returns what a port's device is opened on; `None` for memory.
pub(super) fn device_of(settings: &DeviceSettings) -> Option<ports::DeviceSettings> {
    Some(match settings.clone() {
        DeviceSettings::Interface { interface } => {
            ports::DeviceSettings::Interface { name: interface }
        }
        DeviceSettings::Tap { interface } => ports::DeviceSettings::Tap { name: interface },
        DeviceSettings::Pcap { receive, send } => ports::DeviceSettings::Capture { receive, send },
        DeviceSettings::Memory => return None,
    })
}

/// Opens the device of a port, with a queue for each worker.
pub(crate) fn open(
    settings: &DeviceSettings,
    workers: usize,
) -> Result<(Device, Queues), OpenError> {
    match device_of(settings) {
        Some(settings) => Device::open(&settings, workers),
        None => {
            // Nobody has the other end: the port receives nothing.
            let (device, queues, _) = ports::memory(workers);
            Ok((device, queues))
        }
    }
}
