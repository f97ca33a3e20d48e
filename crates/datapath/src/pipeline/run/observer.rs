//! Observers of packets in the pipeline, to time its nodes or to trace one packet.

use classyard::RuleId;

use crate::action::{Action, GroupId};
use crate::flow::TableId;
use crate::limits::PacketLimit;
use crate::meter::{BandKind, MeterId};
use crate::packet::Packet;

/// The parts of the pipeline that can be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Parses frames into keys. The caller of the worker does this and reports this node.
    Parse,
    /// Looks packets up in the microflow cache, in a worker with caches.
    Microflows,
    /// Looks packets up among the megaflows: all packets, or the misses of the microflow
    /// cache.
    Megaflows,
    /// Runs the programs of packets that hit a cache.
    Paths,
    /// Looks packets up in a table.
    Tables,
    /// Carries out the instructions of entries: actions, groups, meters, output.
    Actions,
}

impl Node {
    /// All nodes, in the order of processing.
    pub const ALL: [Node; 6] = [
        Node::Parse,
        Node::Microflows,
        Node::Megaflows,
        Node::Paths,
        Node::Tables,
        Node::Actions,
    ];

    /// Returns the name of the node.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Node::Parse => "parse",
            Node::Microflows => "microflows",
            Node::Megaflows => "megaflows",
            Node::Paths => "paths",
            Node::Tables => "tables",
            Node::Actions => "actions",
        }
    }
}

/// Receives the steps of packets. The default methods do nothing and cost nothing.
pub trait Observer {
    /// A node has just processed `packets` packets.
    fn node(&mut self, node: Node, packets: usize) {
        let _ = (node, packets);
    }

    /// A packet was looked up in a table.
    fn looked_up(&mut self, table: TableId, winner: Option<RuleId>, packet: &Packet) {
        let _ = (table, winner, packet);
    }

    /// A packet reached a meter. `band` is the number and kind of the applied band; `None`
    /// if no rate was exceeded.
    fn metered(&mut self, meter: MeterId, band: Option<(usize, BandKind)>) {
        let _ = (meter, band);
    }

    /// An action is about to be carried out for a packet.
    fn acting(&mut self, action: &Action, packet: &Packet) {
        let _ = (action, packet);
    }

    /// An action that can change the packet was carried out, or a meter has changed it.
    fn changed(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// The packet's action set will be carried out next.
    fn action_set(&mut self) {}

    /// A packet goes to a bucket of a group; `None` if no bucket is live.
    fn bucket(&mut self, group: GroupId, bucket: Option<usize>) {
        let _ = (group, bucket);
    }

    /// The bucket's actions are done.
    fn bucket_done(&mut self) {}

    /// A packet was dropped at a limit: no action follows.
    fn limited(&mut self, limit: PacketLimit) {
        let _ = limit;
    }

    /// Returns true if meters only report what they would do, without taking tokens.
    fn is_rehearsal(&self) -> bool {
        false
    }
}

/// Reports nodes and their packets, and nothing else.
pub(in crate::pipeline) struct Nodes<'n>(pub(in crate::pipeline) &'n mut dyn FnMut(Node, usize));

impl Observer for Nodes<'_> {
    #[inline]
    fn node(&mut self, node: Node, packets: usize) {
        (self.0)(node, packets);
    }
}

/// An observer that does nothing.
pub(in crate::pipeline) struct Unobserved;

impl Observer for Unobserved {}
