//! Limits on the work for one packet, so that no set of groups or actions can stop a
//! worker.
//!
//! | limit | refused when installed | at run time |
//! |---|---|---|
//! | [`MAX_GROUP_DEPTH`] | a group that makes a longer chain: `GMFC_CHAINING_UNSUPPORTED` | cannot be exceeded |
//! | [`MAX_PACKET_ACTIONS`] | a group whose buckets may take more: `GMFC_OUT_OF_BUCKETS`; a list of actions that is longer, or takes more with its groups: `BAC_TOO_MANY` | the packet is dropped, [`PacketLimit::Actions`] |
//! | [`MAX_PACKET_COPIES`] | | the packet is dropped, [`PacketLimit::Copies`] |
//!
//! The limits apply to all work for one packet: all tables, its action set and all groups.
//! Copies sent before a limit was reached stay sent.
//!
//! The actions that a group may take are counted when it is installed: one for each
//! bucket, one for each of its actions, and for a group among these also all actions that
//! this group may take. For a group of type `all`, the buckets are added up; for other
//! types, the most expensive bucket counts.

use std::fmt;

/// The maximum length of a chain of groups, each reached by an action of the previous
/// group.
pub const MAX_GROUP_DEPTH: usize = 32;

/// Actions that are carried out for one packet; entering a bucket counts as one.
pub const MAX_PACKET_ACTIONS: u32 = 4096;

/// Copies of one packet that are sent to ports or to the controller. At least
/// [`MAX_PACKET_ACTIONS`], so outputs to single ports reach that limit first.
pub const MAX_PACKET_COPIES: u32 = 4096;

const _: () = assert!(MAX_PACKET_COPIES >= MAX_PACKET_ACTIONS);

/// The limit at which a packet was dropped.
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

    /// Returns the reason as it appears in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PacketLimit::Actions => "too many actions",
            PacketLimit::Copies => "too many copies",
        }
    }

    /// Returns the value of the limit.
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

/// The number of packets dropped at each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Packets that reached [`MAX_PACKET_ACTIONS`].
    pub actions: u64,
    /// Packets that reached [`MAX_PACKET_COPIES`].
    pub copies: u64,
}

impl LimitCounts {
    /// Returns the number of packets dropped at `limit`.
    #[must_use]
    pub fn get(&self, limit: PacketLimit) -> u64 {
        match limit {
            PacketLimit::Actions => self.actions,
            PacketLimit::Copies => self.copies,
        }
    }
}
