//! The list of all megaflows of a store, in parts.

use super::Store;
use super::tables::Row;
use crate::bits::Words;
use crate::cache::path::PathId;

/// A row of a mask table. The default is the first row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StorePlace {
    table: usize,
    row: Row,
}

/// A megaflow in a list.
pub(crate) struct ListedMegaflow<'m> {
    pub(crate) key: Words,
    pub(crate) mask: &'m Words,
    pub(crate) path: PathId,
    pub(crate) is_stale: bool,
}

impl<P> Store<P> {
    /// Passes the megaflows among the next `max_rows` rows to `listed`, beginning at a place.
    /// Returns the place of the next row, or `None` after the last row.
    pub(crate) fn list<'s>(
        &'s self,
        place: StorePlace,
        max_rows: usize,
        mut listed: impl FnMut(ListedMegaflow<'s>),
    ) -> Option<StorePlace> {
        let megaflows = &self.megaflows;
        let StorePlace { mut table, mut row } = place;
        for _ in 0..max_rows {
            while row >= megaflows.tables.get(table)?.rows() {
                (table, row) = (table + 1, 0);
            }
            let mask_table = &megaflows.tables[table];
            if mask_table.has(row) {
                let state = mask_table.state(row);
                listed(ListedMegaflow {
                    key: mask_table.key(row),
                    mask: mask_table.mask(),
                    path: state.path,
                    is_stale: megaflows.is_stale(state),
                });
            }
            row += 1;
        }
        Some(StorePlace { table, row })
    }
}
