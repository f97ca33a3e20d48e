//! An entry of a flow table.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;

use super::instructions::Instructions;
use crate::flow_match::FlowMatch;

/// The number of a flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u8);

impl TableId {
    /// The last table.
    pub const LAST: TableId = TableId(253);
    /// All tables, in requests alone.
    pub const ALL: TableId = TableId(255);

    /// Whether there is a table of that number.
    #[must_use]
    pub fn is_table(self) -> bool {
        self <= TableId::LAST
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry wants besides (`ofp_flow_mod_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // they are bits of the protocol
pub struct FlowFlags {
    /// The controller is told when the entry is gone.
    pub send_removed: bool,
    /// The entry is not added beside one of the same priority that some packet
    /// matches as well.
    pub check_overlap: bool,
    /// Counters begin at 0 where an entry is there already.
    pub reset_counts: bool,
    /// Packets need not be counted.
    pub no_packet_counts: bool,
    /// Bytes need not be counted.
    pub no_byte_counts: bool,
}

/// An entry of a flow table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// Its number among the entries of all tables. At equal priority the lower one
    /// wins, where OpenFlow leaves that open.
    pub id: RuleId,
    /// The table that it stands in.
    pub table: TableId,
    /// The higher wins.
    pub priority: u16,
    /// The packets that it matches.
    pub flow: Arc<FlowMatch>,
    /// What it does with them.
    pub instructions: Arc<Instructions>,
    /// A number of the controller's.
    pub cookie: u64,
    /// It goes after so many seconds without a packet; 0 for never.
    pub idle_timeout: u16,
    /// It goes after so many seconds; 0 for never.
    pub hard_timeout: u16,
    /// Entries of less importance go first where a table is full.
    pub importance: u16,
    /// What it wants besides.
    pub flags: FlowFlags,
    /// When it was added.
    pub added: Duration,
}

impl FlowEntry {
    /// Whether it is a table-miss entry: of priority 0, for every packet.
    #[must_use]
    pub fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.flow.values().is_empty()
    }
}
