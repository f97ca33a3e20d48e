//! Descriptions of ports, and news about them for the controllers.

use classyard_datapath::PortNo;

use super::session::Session;
use super::shared::{Shared, Surroundings};
use super::turn::Turn;
use crate::message::Message;
use crate::port::{Port, PortStatus, config, state};

/// A change of a port (`ofp_port_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortChange {
    /// The port was added.
    Added,
    /// The port was removed.
    Deleted,
    /// The port changed.
    Modified,
}

/// Sends a message to the sessions that `is_chosen` accepts. A session with too many unsent bytes
/// does not get it.
pub(super) fn send_event<'s>(
    sessions: impl Iterator<Item = &'s mut Session>,
    is_chosen: impl Fn(&Session) -> bool,
    message: &Message,
) {
    for session in sessions {
        if !is_chosen(session) {
            continue;
        }
        match session.is_full() {
            true => session.counts.dropped_events += 1,
            false => session.send(0, message),
        }
    }
}

pub(super) fn announce<'s>(
    sessions: impl Iterator<Item = &'s mut Session>,
    change: PortChange,
    port: &Port,
) {
    let reason = change as u8;
    let message = Message::PortStatus(PortStatus {
        reason,
        port: port.clone(),
    });
    let is_chosen = |session: &Session| session.gets(|masks| &masks.port_status, reason);
    send_event(sessions, is_chosen, &message);
}

impl Turn<'_, '_> {
    /// Informs all controllers about a port.
    pub(super) fn announce_port(&mut self, port: PortNo, change: PortChange) {
        if let Some(description) = describe(self.shared, self.around, port) {
            let session = std::iter::once(&mut *self.session);
            announce(
                self.others.values_mut().chain(session),
                change,
                &description,
            );
        }
    }
}

/// Returns the description of a port.
pub(super) fn describe(shared: &Shared, around: &Surroundings<'_>, port: PortNo) -> Option<Port> {
    let known = around.pipeline.ports().get(port)?;
    let described = shared.ports.get(&port).copied().unwrap_or_default();
    let details = described.details;
    let flags = |flags: &[(bool, u32)]| {
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.fold(0, |all, (_, flag)| all | flag)
    };
    let mut name = [0; 16];
    if let Some(known) = &known.name {
        let bytes = known.as_str().as_bytes();
        name[..bytes.len()].copy_from_slice(bytes);
    }
    let speed = known.speed.map_or(0, |speed| speed.0);
    Some(Port {
        number: port,
        address: details.address,
        name,
        config: flags(&[
            (details.is_down, config::DOWN),
            (described.no_receive, config::NO_RECEIVE),
            (known.no_forward, config::NO_FORWARD),
            (details.no_packet_in, config::NO_PACKET_IN),
        ]),
        state: flags(&[(!known.is_up, state::LINK_DOWN), (known.is_up, state::LIVE)]),
        current: 0,
        advertised: 0,
        supported: 0,
        peer: 0,
        current_speed: speed,
        max_speed: speed,
    })
}
