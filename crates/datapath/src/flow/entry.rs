//! An entry of a flow table.

use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;

use super::instructions::Instructions;
use super::table_id::TableId;
use crate::flow_match::FlowMatch;

/// Flags of an entry (`ofp_flow_mod_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // they are bits of the protocol
pub struct FlowFlags {
    /// The controller receives a message when the entry is removed.
    pub send_removed: bool,
    /// The entry is refused if it overlaps an entry of the same priority.
    pub check_overlap: bool,
    /// The counters of a replaced or modified entry are set to 0.
    pub reset_counts: bool,
    /// Packets need not be counted.
    pub no_packet_counts: bool,
    /// Bytes need not be counted.
    pub no_byte_counts: bool,
}

/// An entry of a flow table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// The number of the entry among the entries of all tables. At equal priority the lower
    /// number wins; OpenFlow does not define the winner.
    pub id: RuleId,
    /// The table of the entry.
    pub table: TableId,
    /// The priority; the higher priority wins.
    pub priority: u16,
    /// The match, which selects the packets of the entry.
    pub flow: Arc<FlowMatch>,
    /// The instructions for these packets.
    pub instructions: Arc<Instructions>,
    /// A number chosen by the controller.
    pub cookie: u64,
    /// Seconds without a packet after which the entry expires; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry expires; 0 for never.
    pub hard_timeout: u16,
    /// A full table evicts entries of less importance first.
    pub importance: u16,
    /// The flags of the entry.
    pub flags: FlowFlags,
    /// The time when the entry was added.
    pub added: Duration,
}

impl FlowEntry {
    /// Returns true for a table-miss entry: priority 0, every packet.
    #[must_use]
    pub fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.flow.matches_all()
    }
}
