//! The data of replies: the state of a running switch.

use classyard_datapath::pipeline::CacheStatus;
use classyard_ports::QueueCounts;
use serde::{Deserialize, Serialize};

use crate::config::{Address, ControllerSettings, PortSettings, Reload};

/// The state of a running switch. Counts begin when the switch starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// The name.
    pub name: String,
    /// The datapath id, such as `00:00:00:00:00:00:00:01`.
    pub datapath_id: String,
    /// The seconds since the start.
    pub uptime_seconds: u64,
    /// The time of these counts in nanoseconds since the start, for rates between two states.
    #[serde(default)]
    pub uptime_ns: u64,
    /// The version of the program.
    pub version: String,
    /// The workers, by number.
    pub workers: Vec<WorkerStatus>,
    /// The ports, by number.
    pub ports: Vec<PortStatus>,
    /// The flow tables that have entries or looked packets up, by number.
    pub tables: Vec<TableStatus>,
    /// The controllers of the configuration, then the controllers that connected.
    pub controllers: Vec<ControllerStatus>,
    /// The addresses on which the switch accepts controllers.
    pub listeners: Vec<String>,
}

/// The state of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The number, from 0.
    pub worker: usize,
    /// The CPU that the worker is bound to, if any.
    pub cpu: Option<usize>,
    /// Packets that the worker received.
    pub packets: u64,
    /// Vectors of packets that the worker processed. A vector has up to 256 packets.
    pub vectors: u64,
    /// Times that the worker slept because it had no packets.
    pub sleeps: u64,
    /// The time in nanoseconds that the worker spent with packets and commands, without waiting
    /// for them.
    #[serde(default)]
    pub busy_ns: u64,
    /// Jobs that the agent gave to the worker, such as packets from controllers.
    pub jobs: u64,
    /// Packets that the worker dropped, by reason. Ports have further drops.
    pub drops: Vec<DropCount>,
    /// The counts of the flow caches, if the worker has any.
    pub caches: Option<CacheCounts>,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCount {
    /// The name of the reason, such as `no_room`.
    pub reason: String,
    /// The number of packets.
    pub packets: u64,
}

/// The counts of a worker's flow caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Packets looked up in the microflow cache.
    pub microflow_lookups: u64,
    /// Hits of the microflow cache.
    pub microflow_hits: u64,
    /// Flows in the microflow cache.
    pub microflows: usize,
    /// Vectors that bypassed the microflow cache.
    pub microflow_bypasses: u64,
    /// Packets looked up among megaflows.
    pub megaflow_lookups: u64,
    /// Hits among megaflows.
    pub megaflow_hits: u64,
    /// Masks probed by these lookups.
    pub megaflow_probes: u64,
    /// Vectors that bypassed the megaflows.
    pub megaflow_bypasses: u64,
    /// Cached megaflows.
    pub megaflows: usize,
    /// Different masks of cached megaflows.
    pub masks: usize,
    /// Packets that the tables processed, from the first table.
    pub by_tables: u64,
}

impl From<&CacheStatus> for CacheCounts {
    fn from(status: &CacheStatus) -> CacheCounts {
        CacheCounts {
            microflow_lookups: status.microflow_lookups,
            microflow_hits: status.microflow_hits,
            microflows: status.microflows.used,
            microflow_bypasses: status.microflow_bypasses,
            megaflow_lookups: status.megaflow_lookups,
            megaflow_hits: status.megaflow_hits,
            megaflow_probes: status.megaflow_probes,
            megaflow_bypasses: status.megaflow_bypasses,
            megaflows: status.megaflows,
            masks: status.masks,
            by_tables: status.by_tables,
        }
    }
}

/// The state of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// The OpenFlow number.
    pub number: u32,
    /// The name.
    pub name: String,
    /// The device, such as `interface veth1`.
    pub device: String,
    /// The state of the link.
    pub link: Link,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets that were dropped, by reason. Reasons without packets are left out.
    pub drops: Vec<DropCount>,
}

/// The state of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// The port sends and receives.
    Up,
    /// The device has no link, or is switched off.
    Down,
    /// The device is not there any more.
    Gone,
}

impl Link {
    /// Returns the word for JSON and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Link::Up => "up",
            Link::Down => "down",
            Link::Gone => "gone",
        }
    }
}

/// Returns the packets that a port dropped, by reason. Reasons without packets are left out.
#[must_use]
pub fn port_drops(counts: &QueueCounts) -> Vec<DropCount> {
    let reasons = [
        ("missed", counts.missed),
        ("received_too_long", counts.received_too_long),
        ("received_invalid", counts.received_invalid),
        ("no_room", counts.no_room),
        ("sent_too_long", counts.sent_too_long),
        ("refused", counts.refused),
    ];
    let reasons = reasons.into_iter().filter(|(_, packets)| *packets > 0);
    let drops = reasons.map(|(reason, packets)| DropCount {
        reason: reason.to_owned(),
        packets,
    });
    drops.collect()
}

/// The state of a flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStatus {
    /// The number.
    pub table: u8,
    /// The number of entries.
    pub entries: usize,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that an entry matched.
    pub matches: u64,
}

/// The state of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerStatus {
    /// The address, such as `tcp:192.0.2.1:6653`.
    pub address: String,
    /// The state of the connection.
    pub state: ConnectionState,
    /// The role, if the controller is connected.
    pub role: Option<Role>,
    /// Messages received.
    pub received_messages: u64,
    /// Messages sent.
    pub sent_messages: u64,
    /// Packets for the controller that were dropped since it reads too slowly.
    pub dropped_packet_ins: u64,
}

/// The state of a connection to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionState {
    /// The switch is connecting, or both ends have not yet said hello.
    Connecting,
    /// Messages are exchanged.
    Connected,
    /// The switch waits before it connects again.
    Waiting,
}

impl ConnectionState {
    /// Returns the word for JSON and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Waiting => "waiting",
        }
    }
}

/// The role of a controller (OpenFlow 1.3.5 §6.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The controller changes the switch, and so may others.
    Equal,
    /// The controller changes the switch, and it is the only master.
    Master,
    /// The controller only reads.
    Slave,
}

impl Role {
    /// Returns the word for JSON and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Equal => "equal",
            Role::Master => "master",
            Role::Slave => "slave",
        }
    }
}

/// The changes that a reload of the configuration made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadStatus {
    /// The names of ports that were removed.
    pub removed_ports: Vec<String>,
    /// The names of ports that were added.
    pub added_ports: Vec<String>,
    /// The addresses of controllers that were disconnected.
    pub removed_controllers: Vec<String>,
    /// The addresses of controllers that the switch connects to.
    pub added_controllers: Vec<String>,
    /// The addresses of listeners that were closed.
    pub removed_listeners: Vec<String>,
    /// The addresses of listeners that were opened.
    pub added_listeners: Vec<String>,
    /// The keys with a new value that takes effect when the switch is started again.
    pub restart_keys: Vec<String>,
    /// The changes that failed, each with its reason. The lists above lack them.
    pub failures: Vec<String>,
}

impl ReloadStatus {
    /// Notes that a port could not be removed.
    pub(crate) fn fail_removed_port(&mut self, name: &str, reason: String) {
        self.removed_ports.retain(|removed| removed != name);
        self.failures.push(reason);
    }

    /// Notes that a port could not be added.
    pub(crate) fn fail_added_port(&mut self, name: &str, reason: String) {
        self.added_ports.retain(|added| added != name);
        self.failures.push(reason);
    }

    /// Notes that a listening socket could not be opened.
    pub(crate) fn fail_added_listener(&mut self, address: &str, reason: String) {
        self.added_listeners.retain(|added| added != address);
        self.failures.push(reason);
    }
}

impl From<&Reload> for ReloadStatus {
    /// Returns the status of a reload whose changes all succeed.
    fn from(reload: &Reload) -> ReloadStatus {
        let ports = |ports: &[PortSettings]| ports.iter().map(|port| port.name.clone()).collect();
        let controllers = |controllers: &[ControllerSettings]| {
            let addresses = controllers.iter().map(|it| it.address.to_string());
            addresses.collect()
        };
        let listeners = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect();
        ReloadStatus {
            removed_ports: ports(&reload.removed_ports),
            added_ports: ports(&reload.added_ports),
            removed_controllers: controllers(&reload.removed_controllers),
            added_controllers: controllers(&reload.added_controllers),
            removed_listeners: listeners(&reload.removed_listeners),
            added_listeners: listeners(&reload.added_listeners),
            restart_keys: reload.restart_keys.iter().map(|&key| key.into()).collect(),
            failures: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::SwitchSettings;

    #[test]
    fn reasons_without_packets_are_left_out() {
        assert_eq!(port_drops(&QueueCounts::default()), []);
        let counts = QueueCounts {
            received_packets: 9,
            missed: 1,
            received_too_long: 2,
            received_invalid: 6,
            no_room: 3,
            sent_too_long: 4,
            refused: 5,
            ..QueueCounts::default()
        };
        let drops = port_drops(&counts);
        let drops: Vec<(&str, u64)> = drops.iter().map(|it| (&*it.reason, it.packets)).collect();
        assert_eq!(
            drops,
            [
                ("missed", 1),
                ("received_too_long", 2),
                ("received_invalid", 6),
                ("no_room", 3),
                ("sent_too_long", 4),
                ("refused", 5)
            ]
        );
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/switch.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (reason, _) in drops {
            assert!(page.contains(&format!("\n| `{reason}` | ")), "{reason}");
        }
    }

    #[test]
    fn words_are_those_of_json() {
        fn json(value: &impl Serialize) -> String {
            let value = serde_json::to_value(value).unwrap();
            value.as_str().unwrap().to_owned()
        }
        for link in [Link::Up, Link::Down, Link::Gone] {
            assert_eq!(json(&link), link.word());
        }
        for role in [Role::Equal, Role::Master, Role::Slave] {
            assert_eq!(json(&role), role.word());
        }
        for state in [
            ConnectionState::Connecting,
            ConnectionState::Connected,
            ConnectionState::Waiting,
        ] {
            assert_eq!(json(&state), state.word());
        }
    }

    #[test]
    fn a_reload_is_described_by_names() {
        let read = |text: &str| SwitchSettings::parse(text, Path::new("/etc/br0.toml")).unwrap();
        let old = read("[listen]\nopenflow = [\"unix:a\"]\n");
        let new = read(
            "[switch]\nworkers = 2\n[[port]]\nnumber = 1\nname = \"veth1\"\n\
             [[controller]]\naddress = \"tcp:192.0.2.1:6653\"\n",
        );
        let expected = ReloadStatus {
            added_ports: vec!["veth1".to_owned()],
            added_controllers: vec!["tcp:192.0.2.1:6653".to_owned()],
            removed_listeners: vec!["unix:/etc/a".to_owned()],
            restart_keys: vec!["workers".to_owned()],
            ..ReloadStatus::default()
        };
        assert_eq!(ReloadStatus::from(&old.difference(&new)), expected);
        let back = ReloadStatus::from(&new.difference(&old));
        assert_eq!(back.removed_ports, expected.added_ports);
        assert_eq!(back.removed_controllers, expected.added_controllers);
        assert_eq!(back.added_listeners, expected.removed_listeners);
    }
}
