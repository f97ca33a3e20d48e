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

/// Ports with numbers below this are found without a search: they are asked for with
/// every packet.
const NEAR: usize = 64;

/// All ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Those with low numbers, by their numbers.
    near: [Option<PortState>; NEAR],
    /// All of them.
    ports: BTreeMap<PortNo, PortState>,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports {
            near: [None; NEAR],
            ports: BTreeMap::new(),
        }
    }
}

impl Ports {
    /// Notes what is known of a port, or that it is gone; returns what was known.
    pub(super) fn set(&mut self, port: PortNo, state: Option<PortState>) -> Option<PortState> {
        if let Some(near) = self.near.get_mut(port.0 as usize) {
            *near = state;
        }
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
    #[inline]
    #[must_use]
    pub fn get(&self, port: PortNo) -> Option<PortState> {
        match self.near.get(port.0 as usize) {
            Some(near) => *near,
            None => self.ports.get(&port).copied(),
        }
    }

    /// Whether packets that come in by a port are taken. So are those by ports that
    /// are not known, such as the controller's.
    #[inline]
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
    #[inline]
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

#[cfg(test)]
mod tests {
    use classyard_workload::kit::random::{Dice, SeededDice};

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
            };
            let state = (dice.below(3) > 0).then_some(state);
            let before = match state {
                Some(state) => model.insert(port, state),
                None => model.remove(&port),
            };
            assert_eq!(ports.set(port, state), before);
            assert!(ports.iter().eq(model.iter().map(|(&port, &it)| (port, it))));
            for port in numbers {
                let known = model.get(&port);
                assert_eq!(ports.get(port).as_ref(), known, "{port:?}");
                let receives = known.is_none_or(|it| !it.no_receive);
                let sends = known.is_some_and(|it| it.is_up && !it.no_forward);
                assert_eq!((ports.receives(port), ports.sends(port)), (receives, sends));
            }
        }
    }
}
