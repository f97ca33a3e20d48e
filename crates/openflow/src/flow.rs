//! Messages about flow entries: changes, removals, statistics (OpenFlow 1.3.5 §7.3.4.1,
//! §7.3.5.2, §7.3.5.3, §7.4.2).

use std::sync::Arc;

use classyard_datapath::flow::{Command, FlowFlags, FlowMod, Instructions, RemovalReason, TableId};
use classyard_datapath::{FlowMatch, GroupId, PortNo};

use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, layout};

/// Stands for no buffer (`OFP_NO_BUFFER`). This switch buffers no packets.
pub(crate) const NO_BUFFER: u32 = 0xffff_ffff;

/// Stands for any group in requests (`OFPG_ANY`).
const ANY_GROUP: GroupId = GroupId(0xffff_ffff);

/// Commands of flow messages (`ofp_flow_mod_command`).
mod command {
    pub(super) const ADD: u8 = 0;
    pub(super) const MODIFY: u8 = 1;
    pub(super) const MODIFY_STRICT: u8 = 2;
    pub(super) const DELETE: u8 = 3;
    pub(super) const DELETE_STRICT: u8 = 4;
}

/// Flags of flow messages (`ofp_flow_mod_flags`), in the order of [`FlowFlags`].
mod flag {
    pub(super) const SEND_REMOVED: u16 = 1 << 0;
    pub(super) const CHECK_OVERLAP: u16 = 1 << 1;
    pub(super) const RESET_COUNTS: u16 = 1 << 2;
    pub(super) const NO_PACKET_COUNTS: u16 = 1 << 3;
    pub(super) const NO_BYTE_COUNTS: u16 = 1 << 4;
    pub(super) const ALL: u16 = (1 << 5) - 1;
}

impl Wire for FlowFlags {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let bits: u16 = reader.get()?;
        if bits & !flag::ALL != 0 {
            let message = format!("flags {bits:#06x}; OpenFlow 1.3 has {:#06x}", flag::ALL);
            return Err(Fault::new(Code::BAD_FLOW_FLAGS, message));
        }
        let has = |flag| bits & flag != 0;
        Ok(FlowFlags {
            send_removed: has(flag::SEND_REMOVED),
            check_overlap: has(flag::CHECK_OVERLAP),
            reset_counts: has(flag::RESET_COUNTS),
            no_packet_counts: has(flag::NO_PACKET_COUNTS),
            no_byte_counts: has(flag::NO_BYTE_COUNTS),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let bits = [
            (self.send_removed, flag::SEND_REMOVED),
            (self.check_overlap, flag::CHECK_OVERLAP),
            (self.reset_counts, flag::RESET_COUNTS),
            (self.no_packet_counts, flag::NO_PACKET_COUNTS),
            (self.no_byte_counts, flag::NO_BYTE_COUNTS),
        ];
        let set = bits.iter().filter(|(is_set, _)| *is_set);
        writer.put(&set.fold(0, |all, (_, bit)| all | bit));
    }
}

/// A change of flow entries (`ofp_flow_mod`). The importance, which OpenFlow 1.3 has not, is
/// 0.
impl Wire for FlowMod {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (cookie, cookie_mask) = (reader.get()?, reader.get()?);
        let table = reader.get()?;
        let command = read_command(reader.get()?)?;
        let (idle_timeout, hard_timeout) = (reader.get()?, reader.get()?);
        let priority = reader.get()?;
        let buffer: u32 = reader.get()?;
        // Deletions have no packet, whatever the number.
        if buffer != NO_BUFFER && !matches!(command, Command::Delete { .. }) {
            let message = format!("buffer {buffer}; this switch buffers no packets");
            return Err(Fault::new(Code::BUFFER_UNKNOWN, message));
        }
        let (out_port, out_group) = (reader.get()?, reader.get()?);
        let flags = reader.get()?;
        reader.skip(2)?;
        Ok(FlowMod {
            command,
            table,
            priority,
            flow: reader.get()?,
            cookie,
            cookie_mask,
            idle_timeout,
            hard_timeout,
            importance: 0,
            flags,
            out_port: Some(out_port).filter(|port| *port != PortNo::ANY),
            out_group: Some(out_group).filter(|group| *group != ANY_GROUP),
            instructions: Arc::new(reader.get()?),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.cookie);
        writer.put(&self.cookie_mask);
        writer.put(&self.table);
        writer.put(&match self.command {
            Command::Add => command::ADD,
            Command::Modify { strict: false } => command::MODIFY,
            Command::Modify { strict: true } => command::MODIFY_STRICT,
            Command::Delete { strict: false } => command::DELETE,
            Command::Delete { strict: true } => command::DELETE_STRICT,
        });
        writer.put(&self.idle_timeout);
        writer.put(&self.hard_timeout);
        writer.put(&self.priority);
        writer.put(&NO_BUFFER);
        writer.put(&self.out_port.unwrap_or(PortNo::ANY));
        writer.put(&self.out_group.unwrap_or(ANY_GROUP));
        writer.put(&self.flags);
        writer.skip(2);
        writer.put(&self.flow);
        writer.put(&*self.instructions);
    }
}

fn read_command(number: u8) -> Result<Command, Fault> {
    match number {
        command::ADD => Ok(Command::Add),
        command::MODIFY => Ok(Command::Modify { strict: false }),
        command::MODIFY_STRICT => Ok(Command::Modify { strict: true }),
        command::DELETE => Ok(Command::Delete { strict: false }),
        command::DELETE_STRICT => Ok(Command::Delete { strict: true }),
        unknown => {
            let message = format!("command {unknown}; flow messages have the commands 0 to 4");
            Err(Fault::new(Code::BAD_FLOW_COMMAND, message))
        }
    }
}

/// Reasons of removals (`ofp_flow_removed_reason`). OpenFlow 1.3 has no eviction; it becomes a
/// deletion.
impl Wire for RemovalReason {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        removal_reason(reader.get::<u8>()?.into())
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&removal_number(*self));
    }
}

/// Returns the reason with a number.
pub(crate) fn removal_reason(number: u16) -> Result<RemovalReason, Fault> {
    match number {
        0 => Ok(RemovalReason::IdleTimeout),
        1 => Ok(RemovalReason::HardTimeout),
        2 => Ok(RemovalReason::Delete),
        3 => Ok(RemovalReason::GroupDelete),
        4 => Ok(RemovalReason::MeterDelete),
        unknown => {
            let message = format!("an entry was removed for the unknown reason {unknown}");
            Err(Fault::new(Code::BAD_LENGTH, message))
        }
    }
}

/// Returns the number of a reason; a mask of reasons has it as a bit.
pub(crate) fn removal_number(reason: RemovalReason) -> u8 {
    match reason {
        RemovalReason::IdleTimeout => 0,
        RemovalReason::HardTimeout => 1,
        RemovalReason::Delete | RemovalReason::Eviction => 2,
        RemovalReason::GroupDelete => 3,
        RemovalReason::MeterDelete => 4,
    }
}

layout! {
    /// An entry that was removed, for the controller (`ofp_flow_removed`, §7.4.2).
    pub struct FlowRemoved {
        /// The entry's cookie.
        cookie: u64,
        /// The entry's priority.
        priority: u16,
        /// The reason.
        reason: RemovalReason,
        /// The entry's table.
        table: TableId,
        /// The seconds of the entry's life.
        seconds: u32,
        /// The nanoseconds beyond `seconds`.
        nanoseconds: u32,
        /// The entry's idle timeout, in seconds.
        idle_timeout: u16,
        /// The entry's hard timeout, in seconds.
        hard_timeout: u16,
        /// The packets that it won.
        packets: u64,
        /// The bytes of these packets.
        bytes: u64,
        /// The entry's match.
        flow: Arc<FlowMatch>,
    }
}

layout! {
    /// A request for statistics of entries: of each entry, or of all together
    /// (`ofp_flow_stats_request`, `ofp_aggregate_stats_request`).
    pub struct FlowRequest {
        /// The table, or all tables.
        table: TableId,
        /// Only entries that send packets to this port; [`PortNo::ANY`] for no restriction.
        [3] out_port: PortNo,
        /// Only entries that use this group; 2^32 − 1 for no restriction.
        out_group: GroupId,
        /// The cookie.
        [4] cookie: u64,
        /// The bits of cookies that are compared.
        cookie_mask: u64,
        /// Only entries whose matches are the same or more specific.
        flow: Arc<FlowMatch>,
    }
}

impl FlowRequest {
    /// Returns the port that entries must send packets to, if there is one.
    #[must_use]
    pub fn out_port(&self) -> Option<PortNo> {
        Some(self.out_port).filter(|port| *port != PortNo::ANY)
    }

    /// Returns the group that entries must use, if there is one.
    #[must_use]
    pub fn out_group(&self) -> Option<GroupId> {
        Some(self.out_group).filter(|group| *group != ANY_GROUP)
    }
}

layout! {
    /// Statistics of several entries together (`ofp_aggregate_stats_reply`).
    pub struct AggregateStats {
        /// Packets that the entries won.
        packets: u64,
        /// The bytes of these packets.
        bytes: u64,
        /// The number of entries.
        flows: u32,
    } [4]
}

/// Statistics of an entry (`ofp_flow_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The entry's table.
    pub table: TableId,
    /// The seconds of the entry's life until now.
    pub seconds: u32,
    /// The nanoseconds beyond `seconds`.
    pub nanoseconds: u32,
    /// The entry's priority.
    pub priority: u16,
    /// The entry's idle timeout, in seconds.
    pub idle_timeout: u16,
    /// The entry's hard timeout, in seconds.
    pub hard_timeout: u16,
    /// The entry's flags.
    pub flags: FlowFlags,
    /// The entry's cookie.
    pub cookie: u64,
    /// The packets that it won.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// The entry's match.
    pub flow: Arc<FlowMatch>,
    /// The entry's instructions.
    pub instructions: Arc<Instructions>,
}

/// An item of a reply. It begins with its length.
impl Wire for FlowStats {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let length: u16 = reader.get()?;
        let mut item = reader.part(usize::from(length).saturating_sub(2))?;
        let table = item.get()?;
        item.skip(1)?;
        let (seconds, nanoseconds) = (item.get()?, item.get()?);
        let priority = item.get()?;
        let (idle_timeout, hard_timeout) = (item.get()?, item.get()?);
        let flags = item.get()?;
        item.skip(4)?;
        Ok(FlowStats {
            table,
            seconds,
            nanoseconds,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            cookie: item.get()?,
            packets: item.get()?,
            bytes: item.get()?,
            flow: item.get()?,
            instructions: Arc::new(item.get()?),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.put(&self.table);
        writer.skip(1);
        writer.put(&self.seconds);
        writer.put(&self.nanoseconds);
        writer.put(&self.priority);
        writer.put(&self.idle_timeout);
        writer.put(&self.hard_timeout);
        writer.put(&self.flags);
        writer.skip(4);
        writer.put(&self.cookie);
        writer.put(&self.packets);
        writer.put(&self.bytes);
        writer.put(&self.flow);
        writer.put(&*self.instructions);
        writer.set_length(start, writer.len() - start);
    }
}
