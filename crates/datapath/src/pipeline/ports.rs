//! The ports of a switch, as far as the pipeline asks for them.

use std::collections::BTreeMap;

use crate::action::PortNo;

/// What is known of a port (`ofp_port_config`, `ofp_port_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // they are bits of the protocol
pub struct PortState {
    /// Whether there is a link.
    pub is_up: bool,
    /// Packets that come in by it are dropped.
    pub no_receive: bool,
    /// Packets that are to go out by it are dropped.
    pub no_forward: bool,
    /// It is left out where packets are flooded.
    pub no_flood: bool,
}

impl Default for PortState {
    /// A port with a link, for everything.
    fn default() -> PortState {
        PortState {
            is_up: true,
            no_receive: false,
            no_forward: false,
            no_flood: false,
        }
    }
}

/// All ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    ports: BTreeMap<PortNo, PortState>,
}

impl Ports {
    /// Notes what is known of a port, or that it is gone; returns what was known.
    pub(super) fn set(&mut self, port: PortNo, state: Option<PortState>) -> Option<PortState> {
        match state {
            Some(state) => self.ports.insert(port, state),
            None => self.ports.remove(&port),
        }
    }

    /// All ports, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PortNo, PortState)> {
        self.ports.iter().map(|(&port, &state)| (port, state))
    }

    /// What is known of a port.
    #[must_use]
    pub fn get(&self, port: PortNo) -> Option<PortState> {
        self.ports.get(&port).copied()
    }

    /// Whether packets that come in by a port are taken. So are those by ports that
    /// are not known, such as the controller's.
    #[must_use]
    pub fn receives(&self, port: PortNo) -> bool {
        self.get(port).is_none_or(|state| !state.no_receive)
    }

    /// Whether a bucket that watches a port is live.
    #[must_use]
    pub fn is_live(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|state| state.is_up)
    }

    /// Whether packets go out by a port.
    #[must_use]
    pub fn sends(&self, port: PortNo) -> bool {
        self.get(port)
            .is_some_and(|state| state.is_up && !state.no_forward)
    }

    /// The ports that a packet goes out by which is sent to all, or to those that
    /// flood, and came in by one. The local port is among them (§4.2, §4.5).
    pub fn others(&self, in_port: PortNo, flood: bool) -> impl Iterator<Item = PortNo> {
        let ports = self.ports.iter().filter(move |(port, state)| {
            **port != in_port && state.is_up && !state.no_forward && !(flood && state.no_flood)
        });
        ports.map(|(port, _)| *port)
    }
}
