//! Messages without request: packets, removed entries, changes of ports. The masks of a session
//! choose its messages.

use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{Change, Message as PipelineMessage, PacketInReason, PortState};
use classyard_datapath::{Field, FlowMatch, MatchField, Packet, PortNo};

use super::monitor::Cause;
use super::ports::{PortChange, announce, describe, send_event};
use super::sessions::Agent;
use super::shared::{PortDetails, SessionId, Surroundings};
use crate::fault::Fault;
use crate::flow::{FlowRemoved, removal_number};
use crate::message::Message;
use crate::packet::{PacketIn, packet_in_number};

/// A packet that the pipeline sent to the controller.
#[derive(Clone, Copy, Debug)]
pub struct PacketForController<'p> {
    /// The reason.
    pub reason: PacketInReason,
    /// The bytes that the controller gets at most.
    pub max_len: u16,
    /// The table of the entry that sent the packet.
    pub table: TableId,
    /// The cookie of this entry.
    pub cookie: u64,
    /// The packet.
    pub packet: &'p Packet,
}

/// The most bytes of a packet in a packet-in message, so that the message with its context has
/// at most 65,535 bytes.
const MAX_DATA_BYTES: usize = 65_535 - 128;

/// Fields of packets that a packet-in message has if they are not 0.
const CONTEXT: [Field; 2] = [Field::Metadata, Field::TunnelId];

impl Agent {
    /// Sends a packet to the controllers whose masks choose its reason.
    pub fn packet_in(&mut self, event: &PacketForController<'_>) {
        let key = event.packet.key();
        let port = u32::try_from(key.get(Field::InPort)).expect("32 bits");
        let known = self.shared.ports.get(&PortNo(port));
        if known.is_some_and(|known| known.details.no_packet_in) {
            return;
        }
        let frame = event.packet.bytes();
        let in_port = MatchField::exact(Field::InPort, u128::from(port));
        let values = CONTEXT.iter().map(|&field| (field, key.get(field)));
        let set = values.filter(|(_, value)| *value != 0);
        let fields = set.map(|(field, value)| MatchField::exact(field, value));
        let context = FlowMatch::new(std::iter::once(in_port).chain(fields));
        let data_bytes = frame.len().min(usize::from(event.max_len));
        let data_bytes = data_bytes.min(MAX_DATA_BYTES);
        let message = Message::PacketIn(PacketIn {
            buffer: PacketIn::NO_BUFFER,
            total_bytes: u16::try_from(frame.len()).unwrap_or(u16::MAX),
            reason: event.reason,
            table: event.table,
            cookie: event.cookie,
            context: Arc::new(context.expect("fields without prerequisites")),
            data: frame[..data_bytes].to_vec(),
        });
        let reason = packet_in_number(event.reason);
        let sessions = self.sessions.values_mut();
        let wanting = sessions.filter(|session| session.gets(|masks| &masks.packet_in, reason));
        for session in wanting {
            match session.is_full() {
                true => session.counts.dropped_packet_ins += 1,
                false => session.send(0, &message),
            }
        }
    }

    /// Adds a port, changes it, or removes it (`None`), and informs the controllers. A port that
    /// is changed keeps the flags that controllers gave it; `is_up` of its state is its link.
    ///
    /// # Errors
    /// [`Fault`] if the pipeline refuses the port's number.
    pub fn set_port(
        &mut self,
        port: PortNo,
        new: Option<(PortState, PortDetails)>,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let old = around.pipeline.ports().get(port);
        // The description of a removed port.
        let before = describe(&self.shared, around, port);
        let new = new.map(|(state, details)| self.shared.known_port(port, state, details));
        let message = PipelineMessage::Port(port, new.map(|(state, _)| state));
        let applied = around.pipeline.apply(&[message], around.now);
        applied.map_err(|error| Fault::from(error.error().clone()))?;
        match new {
            Some((_, known)) => self.shared.ports.insert(port, known),
            None => self.shared.ports.remove(&port),
        };
        let (change, description) = match (old, new) {
            (None, Some(_)) => (PortChange::Added, describe(&self.shared, around, port)),
            (Some(_), Some(_)) => (PortChange::Modified, describe(&self.shared, around, port)),
            (_, None) => (PortChange::Deleted, before),
        };
        if let Some(description) = description {
            announce(self.sessions.values_mut(), change, &description);
        }
        Ok(())
    }

    /// Informs the agent about changes of the pipeline that its caller has made. The agent
    /// reports changes of entries to controllers that monitor them.
    pub fn note_changes(&mut self, changes: &[Change], now: Duration) {
        self.shared.note(changes, now);
        for session in self.sessions.values_mut() {
            session.report(Cause::Switch, changes);
        }
    }

    /// Does what is due without a message: removes entries that have expired, informs the
    /// controllers about removed entries, and sends echo requests to silent controllers.
    /// Returns the sessions that did not answer for the time that `probe` gives for them.
    pub fn tick(
        &mut self,
        around: &mut Surroundings<'_>,
        probe: &dyn Fn(SessionId) -> Option<Duration>,
    ) -> Vec<SessionId> {
        let expired = around.pipeline.expire(around.now);
        self.note_changes(&expired, around.now);
        self.send_removed(around);
        let mut silent = Vec::new();
        for (&id, session) in &mut self.sessions {
            let Some(probe) = probe(id) else {
                continue;
            };
            match session.probed {
                Some(asked) if around.now.saturating_sub(asked) >= probe => silent.push(id),
                None if around.now.saturating_sub(session.heard) >= probe => {
                    session.probed = Some(around.now);
                    if session.connection.is_open() {
                        session.send(0, &Message::EchoRequest(Vec::new()));
                    }
                }
                _ => {}
            }
        }
        silent
    }

    /// Informs the controllers about removed entries for which no worker counts packets any
    /// more.
    pub fn send_removed(&mut self, around: &mut Surroundings<'_>) {
        for removed in around.pipeline.collect_removed() {
            let entry = &removed.entry;
            if !entry.flags.send_removed {
                continue;
            }
            let message = Message::FlowRemoved(FlowRemoved {
                cookie: entry.cookie,
                priority: entry.priority,
                reason: removed.reason,
                table: entry.table,
                seconds: u32::try_from(removed.duration.as_secs()).unwrap_or(u32::MAX),
                nanoseconds: removed.duration.subsec_nanos(),
                idle_timeout: entry.idle_timeout,
                hard_timeout: entry.hard_timeout,
                packets: removed.count.packets,
                bytes: removed.count.bytes,
                flow: Arc::clone(&entry.flow),
            });
            let reason = removal_number(removed.reason);
            send_event(
                self.sessions.values_mut(),
                |session| session.gets(|masks| &masks.flow_removed, reason),
                &message,
            );
        }
    }
}
