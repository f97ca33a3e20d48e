//! The receivers of the packets that the pipeline sends.

use crate::action::PortNo;
use crate::flow::TableId;
use crate::packet::Packet;

/// The reason why a packet goes to the controller (`ofp_packet_in_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketInReason {
    /// An action of the table-miss entry.
    NoMatch,
    /// Another action.
    Action,
    /// An action would decrement a time to live of 0 or 1.
    InvalidTtl,
}

impl PacketInReason {
    /// Returns the name of the reason.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PacketInReason::NoMatch => "no match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid TTL",
        }
    }
}

/// Receives the packets that the pipeline sends.
pub trait Sink {
    /// Receives a packet for a port, and for a queue if one was chosen.
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet);

    /// Receives a packet for the controller, which gets at most `max_len` bytes of the
    /// packet. `from` is the table and the cookie of the entry that sends the packet.
    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        from: (TableId, u64),
        packet: &Packet,
    );
}

/// A sink that drops all packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn send(&mut self, _: PortNo, _: Option<u32>, _: &Packet) {}

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {}
}
