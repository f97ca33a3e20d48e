//! Groups of actions, and the messages that change them (OpenFlow 1.3.5 §5.6, §6.5,
//! §7.3.4.2).

mod chains;
mod store;

pub use store::{GroupChange, GroupCommand, GroupMod, GroupStore};

use crate::action::{self, Action, GroupId, PortNo};
use crate::error::{ErrorCode, OpenFlowError};

impl GroupId {
    /// The largest group number.
    pub const MAX: GroupId = GroupId(0xffff_ff00);
    /// All groups; used only in deletions.
    pub const ALL: GroupId = GroupId(0xffff_fffc);
}

impl std::fmt::Display for GroupId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of a group, which selects the buckets for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupType {
    /// All buckets, each with a copy of the packet.
    All,
    /// A live bucket, chosen by the packet's flow and the buckets' weights.
    Select,
    /// The only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// A bucket of a group: an action set, with a weight and the items that it watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The bucket's share of the packets, relative to the weights of the other live buckets.
    /// Must be 0 except in a [`GroupType::Select`] group.
    pub weight: u16,
    /// The bucket is live while this port is live. If it also watches a group, one live item
    /// is enough.
    pub watch_port: Option<PortNo>,
    /// The bucket is live while this group has a live bucket.
    pub watch_group: Option<GroupId>,
    /// The actions. They form an action set: the last action of each kind is carried out, in
    /// the order of kinds.
    pub actions: Vec<Action>,
}

impl Bucket {
    /// Returns the groups that the bucket sends packets to.
    fn next(&self) -> impl Iterator<Item = GroupId> {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }
}

/// A group of actions.
///
/// ```
/// use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupStore, GroupType};
/// use classyard_datapath::{Action, GroupId, PortNo};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bucket = |port| Bucket {
///     weight: 1,
///     actions: vec![Action::Output { port: PortNo(port), max_len: 0 }],
///     ..Bucket::default()
/// };
/// let group = Group {
///     id: GroupId(1),
///     kind: GroupType::Select,
///     buckets: vec![bucket(1), bucket(2)],
/// };
/// let mut groups = GroupStore::new();
/// groups.apply(&GroupMod { command: GroupCommand::Add, group })?;
/// // The maximum work for a packet: a visit of a bucket and its action.
/// assert_eq!(groups.actions(GroupId(1)), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The number of the group.
    pub id: GroupId,
    /// The type.
    pub kind: GroupType,
    /// The buckets. A group without buckets drops packets.
    pub buckets: Vec<Bucket>,
}

impl Group {
    /// Returns the ports that buckets watch or send packets to, also reserved ports. A port
    /// may occur several times.
    pub fn named_ports(&self) -> impl Iterator<Item = PortNo> {
        self.buckets.iter().flat_map(|bucket| {
            let outputs = bucket.actions.iter().filter_map(Action::output_port);
            bucket.watch_port.into_iter().chain(outputs)
        })
    }

    /// Checks a group without the other groups. Actions are not checked against a match, since
    /// a group may receive packets of any kind.
    fn check(&self) -> Result<(), OpenFlowError> {
        let refuse = |code, why: String| {
            let message = format!("group {}: {why}", self.id);
            Err(OpenFlowError::new(code, message))
        };
        if self.id > GroupId::MAX {
            let why = format!("groups have numbers up to {}", GroupId::MAX);
            return refuse(ErrorCode::InvalidGroup, why);
        }
        if self.kind == GroupType::Indirect && self.buckets.len() != 1 {
            let why = format!(
                "an indirect group has exactly one bucket, not {}",
                self.buckets.len()
            );
            return refuse(ErrorCode::InvalidGroup, why);
        }
        for (number, bucket) in self.buckets.iter().enumerate() {
            if bucket.weight != 0 && self.kind != GroupType::Select {
                let why = format!("bucket {number} has a weight; only select groups have weights");
                return refuse(ErrorCode::InvalidGroup, why);
            }
            let watches = bucket.watch_port.is_some() || bucket.watch_group.is_some();
            if self.kind == GroupType::FastFailover && !watches {
                let why = format!("bucket {number} watches no port and no group");
                return refuse(ErrorCode::BadWatch, why);
            }
            action::check_length(&bucket.actions)?;
            for action in &bucket.actions {
                action::check_alone(action)?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Group {
    /// Writes the group in the syntax of `ovs-ofctl`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            GroupType::All => "all",
            GroupType::Select => "select",
            GroupType::Indirect => "indirect",
            GroupType::FastFailover => "ff",
        };
        write!(f, "group_id={},type={kind}", self.id)?;
        for bucket in &self.buckets {
            let mut parts = Vec::new();
            // Also writes the weights of an invalid group.
            if bucket.weight != 0 || self.kind == GroupType::Select {
                parts.push(format!("weight:{}", bucket.weight));
            }
            if let Some(PortNo(port)) = bucket.watch_port {
                parts.push(format!("watch_port:{port}"));
            }
            if let Some(group) = bucket.watch_group {
                parts.push(format!("watch_group:{group}"));
            }
            let actions: Vec<String> = bucket.actions.iter().map(ToString::to_string).collect();
            parts.push(format!("actions={}", actions.join(",")));
            write!(f, ",bucket={}", parts.join(","))?;
        }
        Ok(())
    }
}
