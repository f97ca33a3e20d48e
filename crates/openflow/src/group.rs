//! Messages about groups: changes, descriptions, statistics (OpenFlow 1.3.5 §7.3.4.2,
//! §7.3.5.8 to §7.3.5.10).

use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::{GroupId, PortNo};

use crate::action::read_actions;
use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, layout};

/// Stands for no group that a bucket watches (`OFPG_ANY`).
const NO_GROUP: GroupId = GroupId(0xffff_ffff);

/// The bytes of a bucket without actions.
const BUCKET_BYTES: usize = 16;

impl Wire for GroupType {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        match reader.get::<u8>()? {
            0 => Ok(GroupType::All),
            1 => Ok(GroupType::Select),
            2 => Ok(GroupType::Indirect),
            3 => Ok(GroupType::FastFailover),
            unknown => {
                let message = format!("a group of type {unknown}; the types are 0 to 3");
                Err(Fault::new(Code::BAD_GROUP_TYPE, message))
            }
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put::<u8>(&match self {
            GroupType::All => 0,
            GroupType::Select => 1,
            GroupType::Indirect => 2,
            GroupType::FastFailover => 3,
        });
    }
}

impl Wire for Bucket {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut item = reader.or(Code::BAD_BUCKET);
        let length = usize::from(item.get::<u16>()?);
        if length < BUCKET_BYTES || !length.is_multiple_of(8) {
            let message =
                format!("a bucket of length {length}; it has {BUCKET_BYTES} bytes and its actions");
            return Err(Fault::new(Code::BAD_BUCKET, message));
        }
        let weight = item.get()?;
        let (port, group): (PortNo, GroupId) = (item.get()?, item.get()?);
        item.skip(4)?;
        // The length of the list is a matter of the bucket, not of its actions.
        let mut actions = item.part(length - BUCKET_BYTES)?;
        let bucket = Bucket {
            weight,
            watch_port: Some(port).filter(|port| *port != PortNo::ANY),
            watch_group: Some(group).filter(|group| *group != NO_GROUP),
            actions: read_actions(&mut actions, length - BUCKET_BYTES)?,
        };
        reader.skip(length)?;
        Ok(bucket)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.put(&self.weight);
        writer.put(&self.watch_port.unwrap_or(PortNo::ANY));
        writer.put(&self.watch_group.unwrap_or(NO_GROUP));
        writer.skip(4);
        writer.list(&self.actions);
        writer.set_length(start, writer.len() - start);
    }
}

/// A change of a group (`ofp_group_mod`).
impl Wire for GroupMod {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let command = match reader.get::<u16>()? {
            0 => GroupCommand::Add,
            1 => GroupCommand::Modify,
            2 => GroupCommand::Delete,
            unknown => {
                let message = format!("command {unknown}; group messages have the commands 0 to 2");
                return Err(Fault::new(Code::BAD_GROUP_COMMAND, message));
            }
        };
        let kind = reader.get()?;
        reader.skip(1)?;
        let id = reader.get()?;
        let buckets = reader.list()?;
        Ok(GroupMod {
            command,
            group: Group { id, kind, buckets },
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put::<u16>(&match self.command {
            GroupCommand::Add => 0,
            GroupCommand::Modify => 1,
            GroupCommand::Delete => 2,
        });
        writer.put(&self.group.kind);
        writer.skip(1);
        writer.put(&self.group.id);
        writer.list(&self.group.buckets);
    }
}

/// A group's description (`ofp_group_desc`), an item of a reply. It begins with its length.
impl Wire for Group {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let length: u16 = reader.get()?;
        let mut item = reader.part(usize::from(length).saturating_sub(2))?;
        let kind = item.get()?;
        item.skip(1)?;
        Ok(Group {
            id: item.get()?,
            kind,
            buckets: item.list()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.put(&self.kind);
        writer.skip(1);
        writer.put(&self.id);
        writer.list(&self.buckets);
        writer.set_length(start, writer.len() - start);
    }
}

layout! {
    /// Packets and bytes of a bucket (`ofp_bucket_counter`).
    pub struct BucketStats {
        /// Packets.
        packets: u64,
        /// Bytes.
        bytes: u64,
    }
}

/// Statistics of a group (`ofp_group_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub group: GroupId,
    /// The entries and groups that use the group.
    pub references: u32,
    /// Packets that were sent to the group.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// The seconds of the group's life until now.
    pub seconds: u32,
    /// The nanoseconds beyond `seconds`.
    pub nanoseconds: u32,
    /// The counts of each bucket.
    pub buckets: Vec<BucketStats>,
}

/// An item of a reply. It begins with its length.
impl Wire for GroupStats {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let length: u16 = reader.get()?;
        let mut item = reader.part(usize::from(length).saturating_sub(2))?;
        item.skip(2)?;
        let (group, references) = (item.get()?, item.get()?);
        item.skip(4)?;
        Ok(GroupStats {
            group,
            references,
            packets: item.get()?,
            bytes: item.get()?,
            seconds: item.get()?,
            nanoseconds: item.get()?,
            buckets: item.list()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.skip(2);
        writer.put(&self.group);
        writer.put(&self.references);
        writer.skip(4);
        writer.put(&self.packets);
        writer.put(&self.bytes);
        writer.put(&self.seconds);
        writer.put(&self.nanoseconds);
        writer.list(&self.buckets);
        writer.set_length(start, writer.len() - start);
    }
}

layout! {
    /// The groups that a switch supports (`ofp_group_features`).
    pub struct GroupFeatures {
        /// A bit for each supported type.
        types: u32,
        /// Capabilities (`ofp_group_capabilities`).
        capabilities: u32,
        /// The maximum number of groups of each type.
        max_groups: Quad<u32>,
        /// The types of actions in the buckets of each type, as bits.
        actions: Quad<u32>,
    }
}

/// Four values, one for each type of group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quad<T>(pub [T; 4]);

impl<T: Wire> Wire for Quad<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Quad([
            reader.get()?,
            reader.get()?,
            reader.get()?,
            reader.get()?,
        ]))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.list(&self.0);
    }
}
