//! The states of a switch's ports.

use std::collections::BTreeMap;

use super::description::{PortName, PortSpeed};
use crate::action::PortNo;

/// The state of a port (`ofp_port_config`, `ofp_port_state`) and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // they are bits of the protocol
pub struct PortState {
    /// True if the port has a link.
    pub is_up: bool,
    /// If true, packets received from the port are dropped.
    pub no_receive: bool,
    /// If true, packets sent to the port are dropped.
    pub no_forward: bool,
    /// If true, flooded packets are not sent to the port.
    pub no_flood: bool,
    /// The name of the port, or `None`.
    pub name: Option<PortName>,
    /// The speed of the port, or `None` if unknown.
    pub speed: Option<PortSpeed>,
}

impl Default for PortState {
    /// Returns the state of a port with a link, without restrictions and description.
    fn default() -> PortState {
        PortState {
            is_up: true,
            no_receive: false,
            no_forward: false,
            no_flood: false,
            name: None,
            speed: None,
        }
    }
}

/// The part of a port's state that processing a packet uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passage {
    receives: bool,
    sends: bool,
}

impl PortState {
    fn passage(self) -> Passage {
        Passage {
            receives: !self.no_receive,
            sends: self.is_up && !self.no_forward,
        }
    }
}

/// Ports with numbers below this are in an array, since processing a packet looks ports up.
/// Measured in `bench/records/constants.md` (Output and counters).
const NEAR_PORTS: usize = 64;

/// The ports of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The ports with low numbers, indexed by number.
    near: [Option<Passage>; NEAR_PORTS],
    /// All ports.
    ports: BTreeMap<PortNo, PortState>,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports {
            near: [None; NEAR_PORTS],
            ports: BTreeMap::new(),
        }
    }
}

impl Ports {
    /// Sets the state of a port, or removes it. Returns the old state.
    pub(in crate::pipeline) fn set(
        &mut self,
        port: PortNo,
        state: Option<PortState>,
    ) -> Option<PortState> {
        if let Some(near) = self.near.get_mut(port.0 as usize) {
            *near = state.map(PortState::passage);
        }
        match state {
            Some(state) => self.ports.insert(port, state),
            None => self.ports.remove(&port),
        }
    }

    /// Returns all ports, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PortNo, PortState)> {
        self.ports.iter().map(|(&port, &state)| (port, state))
    }

    /// Returns the state of a port.
    #[must_use]
    pub fn get(&self, port: PortNo) -> Option<PortState> {
        self.ports.get(&port).copied()
    }

    #[inline]
    fn passage(&self, port: PortNo) -> Option<Passage> {
        match self.near.get(port.0 as usize) {
            Some(near) => *near,
            None => self.get(port).map(PortState::passage),
        }
    }

    /// Returns true if packets from a port are processed. Packets from unknown ports, such as
    /// the controller's, are processed as well.
    #[inline]
    #[must_use]
    pub fn receives(&self, port: PortNo) -> bool {
        self.passage(port).is_none_or(|passage| passage.receives)
    }

    /// Returns true if a bucket that watches the port is live.
    #[must_use]
    pub fn is_live(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|state| state.is_up)
    }

    /// Returns true if packets can be sent to a port.
    #[inline]
    #[must_use]
    pub fn sends(&self, port: PortNo) -> bool {
        self.passage(port).is_some_and(|passage| passage.sends)
    }

    /// Returns the ports for output to `ALL` or, if `flood` is set, to `FLOOD`, except
    /// `in_port`. The local port is included (§4.2, §4.5).
    pub fn others(&self, in_port: PortNo, flood: bool) -> impl Iterator<Item = PortNo> {
        let ports = self.ports.iter().filter(move |(port, state)| {
            **port != in_port && state.is_up && !state.no_forward && !(flood && state.no_flood)
        });
        ports.map(|(port, _)| *port)
    }
}

#[cfg(test)]
mod tests {
    use classyard_conformance::random::{Dice, SeededDice};

    use super::*;

    #[test]
    fn ports_are_what_was_said_last_whatever_their_numbers() {
        let mut dice = SeededDice::new(1);
        let numbers = [
            0,
            1,
            2,
            62,
            63,
            64,
            65,
            1_000_000,
            PortNo::LOCAL.0,
            u32::MAX,
        ]
        .map(PortNo);
        let (mut ports, mut model) = (Ports::default(), BTreeMap::new());
        for _ in 0..2_000 {
            let port = numbers[dice.below(numbers.len())];
            let state = PortState {
                is_up: dice.below(2) == 0,
                no_receive: dice.below(2) == 0,
                no_forward: dice.below(2) == 0,
                no_flood: dice.below(2) == 0,
                name: PortName::new(["", "eth0", "eth1"][dice.below(3)]),
                speed: (dice.below(2) == 0).then_some(PortSpeed(1_000)),
            };
            let state = (dice.below(3) > 0).then_some(state);
            let before = match state {
                Some(state) => model.insert(port, state),
                None => model.remove(&port),
            };
            assert_eq!(ports.set(port, state), before);
            let states = model.iter().map(|(&port, &state)| (port, state));
            assert!(ports.iter().eq(states));
            for port in numbers {
                let known = model.get(&port);
                assert_eq!(ports.get(port).as_ref(), known, "{port:?}");
                let receives = known.is_none_or(|state| !state.no_receive);
                let sends = known.is_some_and(|state| state.is_up && !state.no_forward);
                assert_eq!((ports.receives(port), ports.sends(port)), (receives, sends));
            }
        }
    }
}
