//! The numbers of flow tables.

use std::fmt;

/// The number of a flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u8);

impl TableId {
    /// The last table.
    pub const LAST: TableId = TableId(253);
    /// All tables; used only in requests.
    pub const ALL: TableId = TableId(255);

    /// Returns true if a table has this number.
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
