//! How a flow table is configured: what it holds, and what goes when it is full.

use std::fmt;

use super::entry::TableId;

/// How a flow table is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// The most entries.
    pub max_entries: u32,
    /// An entry that is added to a full table takes the place of one that is of no
    /// more importance: of the least important, the one that was added first, and of
    /// those the one with the lowest number.
    pub eviction: bool,
}

impl TableConfig {
    /// The most entries that a table can be configured to hold.
    pub const MOST: u32 = 1 << 22;
}

impl Default for TableConfig {
    /// A million entries, and none is evicted.
    fn default() -> TableConfig {
        TableConfig {
            max_entries: 1_000_000,
            eviction: false,
        }
    }
}

/// A message that configures a table (`ofp_table_mod`, as OpenFlow 1.4 has it).
/// Entries that are there stay, even if they are more than the table may have now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableMod {
    /// Which table.
    pub table: TableId,
    /// How it is to be.
    pub config: TableConfig,
}

impl fmt::Display for TableMod {
    /// A line of a pipeline's text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableConfig {
            max_entries,
            eviction,
        } = self.config;
        write!(f, "table_id={},max_entries={max_entries}", self.table)?;
        match eviction {
            true => f.write_str(",eviction"),
            false => Ok(()),
        }
    }
}
