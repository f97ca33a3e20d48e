//! Configuration of a flow table: its maximum of entries, and eviction from a full table.

use std::fmt;

use super::table_id::TableId;

/// The configuration of a flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// The maximum number of entries.
    pub max_entries: u32,
    /// If true, a new entry in a full table replaces an entry that is not more important:
    /// the least important entry, among these the oldest, among these the entry with the
    /// lowest number.
    pub eviction: bool,
}

impl TableConfig {
    /// The largest value of `max_entries`.
    pub const MAX_ENTRIES: u32 = 1 << 22;
}

impl Default for TableConfig {
    /// Returns a maximum of one million entries, without eviction.
    fn default() -> TableConfig {
        TableConfig {
            max_entries: 1_000_000,
            eviction: false,
        }
    }
}

/// A message that configures a table (`ofp_table_mod` of OpenFlow 1.4). Existing entries
/// stay, even if they exceed the new maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableMod {
    /// The table.
    pub table: TableId,
    /// The new configuration.
    pub config: TableConfig,
}

impl fmt::Display for TableMod {
    /// Writes a line of a pipeline's text.
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
