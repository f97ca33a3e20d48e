//! Messages that change flow entries (`ofp_flow_mod`, OpenFlow 1.3.5 §6.4, §7.3.4.1).

use std::fmt;
use std::sync::Arc;

use super::entry::{FlowEntry, FlowFlags};
use super::instructions::Instructions;
use super::table_id::TableId;
use crate::action::{GroupId, PortNo};
use crate::flow_match::FlowMatch;

/// The command of a [`FlowMod`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Adds an entry, or replaces the entry with the same match and priority.
    Add,
    /// Replaces the instructions of entries.
    Modify {
        /// If true, only of the entry with the same match and priority. Otherwise of all
        /// entries of the table whose matches are the same or more specific.
        strict: bool,
    },
    /// Removes entries.
    Delete {
        /// If true, only the entry with the same match and priority. Otherwise all entries
        /// of the table whose matches are the same or more specific.
        strict: bool,
    },
}

/// A message that changes flow entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// The command.
    pub command: Command,
    /// The table; deletions may name all tables.
    pub table: TableId,
    /// The priority of the new entry, or of the entry to modify or delete.
    pub priority: u16,
    /// The match of the new entry, or of the entries to modify or delete.
    pub flow: Arc<FlowMatch>,
    /// The cookie of the new entry, or of the entries to modify or delete.
    pub cookie: u64,
    /// The bits of cookies that modifications and deletions compare.
    pub cookie_mask: u64,
    /// The idle timeout of the new entry, in seconds; 0 for none.
    pub idle_timeout: u16,
    /// The hard timeout of the new entry, in seconds; 0 for none.
    pub hard_timeout: u16,
    /// The importance of the new entry.
    pub importance: u16,
    /// The flags of the new entry.
    pub flags: FlowFlags,
    /// Deletions apply only to entries with an output to this port; `None` for no
    /// restriction.
    pub out_port: Option<PortNo>,
    /// Deletions apply only to entries with an action that uses this group; `None` for no
    /// restriction.
    pub out_group: Option<GroupId>,
    /// The instructions of the new or modified entries.
    pub instructions: Arc<Instructions>,
}

impl FlowMod {
    /// Returns a message for a match in table 0, with the default priority of `ovs-ofctl`
    /// and without instructions.
    #[must_use]
    pub fn new(command: Command, flow: FlowMatch) -> FlowMod {
        FlowMod {
            command,
            table: TableId(0),
            priority: FlowMod::USUAL_PRIORITY,
            flow: Arc::new(flow),
            cookie: 0,
            cookie_mask: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            importance: 0,
            flags: FlowFlags::default(),
            out_port: None,
            out_group: None,
            instructions: Arc::default(),
        }
    }

    /// The priority of entries without an explicit priority.
    pub const USUAL_PRIORITY: u16 = 0x8000;

    /// Returns true if a modification or deletion applies to an entry of its table.
    pub(super) fn means(&self, entry: &FlowEntry) -> bool {
        let strict = match self.command {
            Command::Add => true,
            Command::Modify { strict } | Command::Delete { strict } => strict,
        };
        let fits = match strict {
            true => entry.priority == self.priority && entry.flow == self.flow,
            false => self.flow.includes(&entry.flow),
        };
        let cookies = self.cookie_mask & (self.cookie ^ entry.cookie) == 0;
        let filtered = match self.command {
            Command::Delete { .. } => {
                let port = self.out_port;
                let group = self.out_group;
                port.is_none_or(|port| entry.instructions.sends_to(port))
                    && group.is_none_or(|group| entry.instructions.uses_group(group))
            }
            _ => true,
        };
        fits && cookies && filtered
    }
}

impl From<&FlowEntry> for FlowMod {
    /// Returns the message that adds an entry.
    fn from(entry: &FlowEntry) -> FlowMod {
        FlowMod {
            command: Command::Add,
            table: entry.table,
            priority: entry.priority,
            flow: Arc::clone(&entry.flow),
            cookie: entry.cookie,
            cookie_mask: 0,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            importance: entry.importance,
            flags: entry.flags,
            out_port: None,
            out_group: None,
            instructions: Arc::clone(&entry.instructions),
        }
    }
}

impl fmt::Display for FlowMod {
    /// Writes the new entry in the syntax of `ovs-ofctl`, without default values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={},priority={}", self.table, self.priority)?;
        let numbers = [
            ("cookie", self.cookie),
            ("idle_timeout", u64::from(self.idle_timeout)),
            ("hard_timeout", u64::from(self.hard_timeout)),
            ("importance", u64::from(self.importance)),
        ];
        for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            write!(f, ",{name}={number:#x}")?;
        }
        let flags = [
            ("send_flow_rem", self.flags.send_removed),
            ("check_overlap", self.flags.check_overlap),
            ("reset_counts", self.flags.reset_counts),
            ("no_packet_counts", self.flags.no_packet_counts),
            ("no_byte_counts", self.flags.no_byte_counts),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            write!(f, ",{name}")?;
        }
        if !self.flow.matches_all() {
            write!(f, ",{}", self.flow)?;
        }
        write!(f, " actions={}", self.instructions)
    }
}
