//! The limits of one packet's work, so that no table of groups or actions can stop a
//! worker.
//!
//! | limit | refused when installed | at run time |
//! |---|---|---|
//! | [`MAX_GROUP_DEPTH`] | a group that makes a longer chain: `GMFC_CHAINING_UNSUPPORTED` | cannot be exceeded |
//! | [`MAX_PACKET_ACTIONS`] | a group whose buckets may take more: `GMFC_OUT_OF_BUCKETS`; a list of actions that is longer, or takes more with its groups: `BAC_TOO_MANY` | the packet is dropped, [`PacketLimit::Actions`] |
//! | [`MAX_PACKET_COPIES`] | | the packet is dropped, [`PacketLimit::Copies`] |
//!
//! The limits hold for one packet on its whole way: through all tables, its action set,
//! and all groups. What it sent before it reached a limit stays sent.
//!
//! The actions that a group may take are counted before any packet comes: each bucket
//! counts as one, each of its actions as one, and a group among them with all that it
//! may take. A group of type `all` takes the sum of its buckets, another one its most
//! expensive bucket.

use std::fmt;

/// Groups that a packet may pass one after the other, each by an action of the one
/// before.
pub const MAX_GROUP_DEPTH: usize = 32;

/// Actions that are carried out for one packet; going to a bucket counts as one.
pub const MAX_PACKET_ACTIONS: u32 = 4096;

/// Packets that come out of one packet, by ports or to the controller. Not less than
/// [`MAX_PACKET_ACTIONS`]: outputs to single ports end at that limit.
pub const MAX_PACKET_COPIES: u32 = 4096;

const _: () = assert!(MAX_PACKET_COPIES >= MAX_PACKET_ACTIONS);

/// The limit that a packet was dropped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketLimit {
    /// [`MAX_PACKET_ACTIONS`].
    Actions,
    /// [`MAX_PACKET_COPIES`].
    Copies,
}

impl PacketLimit {
    /// Both limits.
    pub const ALL: [PacketLimit; 2] = [PacketLimit::Actions, PacketLimit::Copies];

    /// The reason as reports have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PacketLimit::Actions => "too many actions",
            PacketLimit::Copies => "too many copies",
        }
    }

    /// The limit.
    #[must_use]
    pub fn limit(self) -> u32 {
        match self {
            PacketLimit::Actions => MAX_PACKET_ACTIONS,
            PacketLimit::Copies => MAX_PACKET_COPIES,
        }
    }
}

impl fmt::Display for PacketLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at most {} a packet", self.name(), self.limit())
    }
}

/// Packets that were dropped at a limit, by the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Packets that reached [`MAX_PACKET_ACTIONS`].
    pub actions: u64,
    /// Packets that reached [`MAX_PACKET_COPIES`].
    pub copies: u64,
}

impl LimitCounts {
    /// Packets that were dropped at a limit.
    #[must_use]
    pub fn get(&self, limit: PacketLimit) -> u64 {
        match limit {
            PacketLimit::Actions => self.actions,
            PacketLimit::Copies => self.copies,
        }
    }
}
