//! Who watches packets on their way: to time the nodes that they pass, or to tell one
//! packet's story.

use classyard::RuleId;

use crate::action::{Action, GroupId};
use crate::flow::TableId;
use crate::limits::PacketLimit;
use crate::meter::{BandKind, MeterId};
use crate::packet::Packet;

/// The parts of the way that can be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Frames become keys; the caller's to report.
    Parse,
    /// The cache of single flows; in a worker with caches.
    Microflows,
    /// The cache of megaflows; for packets that the one of single flows did not know.
    Megaflows,
    /// What is done with packets whose path is known.
    Paths,
    /// The lookup of the packets that are in a table.
    Tables,
    /// What the entries say: actions, groups, meters, output.
    Actions,
}

impl Node {
    /// All of them, in the order of a packet's way.
    pub const ALL: [Node; 6] = [
        Node::Parse,
        Node::Microflows,
        Node::Megaflows,
        Node::Paths,
        Node::Tables,
        Node::Actions,
    ];

    /// What it is called.
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

/// Watches packets. By default nothing is done about what happens, and costs nothing.
pub trait Observer {
    /// A node has processed that many packets just now.
    fn node(&mut self, node: Node, packets: usize) {
        let _ = (node, packets);
    }

    /// A packet was looked up in a table.
    fn looked_up(&mut self, table: TableId, winner: Option<RuleId>, packet: &Packet) {
        let _ = (table, winner, packet);
    }

    /// A meter has let a packet pass, or a band of it was applied.
    fn metered(&mut self, meter: MeterId, band: Option<(usize, BandKind)>) {
        let _ = (meter, band);
    }

    /// A packet is about to be sent, given to a group or changed.
    fn acting(&mut self, action: &Action, packet: &Packet) {
        let _ = (action, packet);
    }

    /// It was changed.
    fn changed(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// Its action set is carried out now.
    fn action_set(&mut self) {}

    /// A packet goes to a bucket of a group; `None` where no bucket is live.
    fn bucket(&mut self, group: GroupId, bucket: Option<usize>) {
        let _ = (group, bucket);
    }

    /// It has been there.
    fn bucket_done(&mut self) {}

    /// A packet was dropped at a limit: no action follows.
    fn limited(&mut self, limit: PacketLimit) {
        let _ = limit;
    }

    /// Whether meters are only asked what they would say.
    fn is_rehearsal(&self) -> bool {
        false
    }
}

/// Reports nodes and their packets, and nothing else.
pub(super) struct Nodes<'n>(pub(super) &'n mut dyn FnMut(Node, usize));

impl Observer for Nodes<'_> {
    #[inline]
    fn node(&mut self, node: Node, packets: usize) {
        (self.0)(node, packets);
    }
}

/// Nobody watches.
pub(super) struct Unobserved;

impl Observer for Unobserved {}
