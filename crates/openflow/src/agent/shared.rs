//! What all sessions share: the identity of the switch, its ports, jobs for workers.

use std::collections::BTreeMap;
use std::time::Duration;

use classyard_datapath::group::GroupChange;
use classyard_datapath::meter::MeterChange;
use classyard_datapath::pipeline::{Change, Pipeline, PortState};
use classyard_datapath::{Action, GroupId, MeterId, PortNo};

use super::table_features::TableFeatures;
use crate::switch::SwitchConfig;

/// The number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(super) u64);

/// The switch, as the agent describes it to controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchIdentity {
    /// The number of the switch.
    pub datapath_id: u64,
    /// The manufacturer, up to 255 bytes.
    pub manufacturer: String,
    /// The hardware, up to 255 bytes.
    pub hardware: String,
    /// The software with its version, up to 255 bytes.
    pub software: String,
    /// The serial number, up to 31 bytes.
    pub serial_number: String,
    /// The name of the switch, up to 255 bytes.
    pub name: String,
}

/// The description of a port that the pipeline does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDetails {
    /// The hardware address.
    pub address: [u8; 6],
    /// True if the port is administratively down.
    pub is_down: bool,
    /// True if no packets of the port go to the controller.
    pub no_packet_in: bool,
    /// The time when the port was added.
    pub added: Duration,
}

/// A port, as the agent knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownPort {
    pub(super) details: PortDetails,
    /// True if the device of the port has a link. The port is up if it has a link and is not
    /// administratively down.
    pub(super) has_link: bool,
    /// True if a controller turned reception off. A port that is down does not receive either.
    pub(super) no_receive: bool,
}

/// Counts of a port; `None` for a counter that the port does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Packets and bytes received.
    pub received: Option<(u64, u64)>,
    /// Packets and bytes sent.
    pub sent: Option<(u64, u64)>,
    /// Packets dropped at reception, and before sending.
    pub dropped: Option<(u64, u64)>,
    /// Errors of reception and of sending.
    pub errors: Option<(u64, u64)>,
}

/// A packet of a controller, for a worker. The caller says when it is done
/// ([`Agent::job_done`](super::Agent::job_done)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of the job.
    pub number: u64,
    /// The port that the packet counts as received from.
    pub in_port: PortNo,
    /// The actions.
    pub actions: Vec<Action>,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The switch around the agent during a call.
pub struct Surroundings<'a> {
    /// The pipeline.
    pub pipeline: &'a mut Pipeline,
    /// Returns the counts of a port.
    pub port_counts: &'a dyn Fn(PortNo) -> PortCounts,
    /// The time, since any fixed point.
    pub now: Duration,
}

/// Data of all sessions.
pub(super) struct Shared {
    pub(super) identity: SwitchIdentity,
    pub(super) config: SwitchConfig,
    /// The generation of the latest election of a primary controller.
    pub(super) generation: Option<u64>,
    pub(super) ports: BTreeMap<PortNo, KnownPort>,
    pub(super) groups_added: BTreeMap<GroupId, Duration>,
    pub(super) meters_added: BTreeMap<MeterId, Duration>,
    pub(super) jobs: Vec<Job>,
    pub(super) next_job: u64,
    pub(super) table_features: TableFeatures,
}

/// The bytes of a packet that the controller gets by default.
const FIRST_MISS_SEND_LEN: u16 = 128;

impl Shared {
    pub(super) fn new(identity: SwitchIdentity) -> Shared {
        Shared {
            identity,
            config: SwitchConfig {
                flags: 0,
                miss_send_len: FIRST_MISS_SEND_LEN,
            },
            generation: None,
            ports: BTreeMap::new(),
            groups_added: BTreeMap::new(),
            meters_added: BTreeMap::new(),
            jobs: Vec::new(),
            next_job: 0,
            table_features: TableFeatures::default(),
        }
    }

    /// Returns the state and the description of a port after a change of its device. The flags
    /// of controllers stay.
    pub(super) fn known_port(
        &self,
        port: PortNo,
        state: PortState,
        details: PortDetails,
    ) -> (PortState, KnownPort) {
        let known = match self.ports.get(&port) {
            Some(old) => KnownPort {
                details: PortDetails {
                    is_down: old.details.is_down,
                    no_packet_in: old.details.no_packet_in,
                    ..details
                },
                has_link: state.is_up,
                no_receive: old.no_receive,
            },
            None => KnownPort {
                details,
                has_link: state.is_up,
                no_receive: state.no_receive,
            },
        };
        let state = PortState {
            is_up: state.is_up && !known.details.is_down,
            no_receive: known.no_receive || known.details.is_down,
            ..state
        };
        (state, known)
    }

    /// Notes when groups and meters were added.
    pub(super) fn note(&mut self, changes: &[Change], time: Duration) {
        for change in changes {
            match change {
                Change::Group(GroupChange::Added(group), _) => {
                    self.groups_added.insert(group.id, time);
                }
                Change::Group(GroupChange::Removed(group), _) => {
                    self.groups_added.remove(&group.id);
                }
                Change::Meter(MeterChange::Added(meter), _) => {
                    self.meters_added.insert(meter.id, time);
                }
                Change::Meter(MeterChange::Removed(meter), _) => {
                    self.meters_added.remove(&meter.id);
                }
                _ => {}
            }
        }
    }
}
