//! The rows of a store: megaflows by mask, and what decides whether one may be used. And
//! [`Search`], a way to find the row of a packet.

use super::table::{MaskTable, Row, Secret, State};
use super::{Found, decision, parts};
use crate::cache::bits::Words;
use crate::cache::entry_paths::PathId;
use crate::cache::microflow::CachedDecision;
use crate::cache::path::Paths;
use crate::flow_table::TableError;

/// The number of packets whose rows are prefetched together.
pub(super) const PREFETCH_PACKETS: usize = 64;

/// The megaflows of a store, and the paths of their packets.
pub(super) struct Rows<P> {
    pub(super) secret: Secret,
    /// A table for each mask.
    pub(super) tables: Vec<MaskTable>,
    pub(super) paths: Paths<P>,
    pub(super) era: u32,
    pub(super) tick: u8,
}

/// The decision, key and mask of a megaflow.
pub(super) type Megaflow<'m> = (CachedDecision, Words, &'m Words);

/// A way to find the megaflow of a packet among the rows of a store.
pub(super) trait Search {
    /// Looks up the keys at `places` of a vector. Passes each result with its decision to
    /// `found`; keys without a megaflow stay in `places`. If `all` is false, may leave out
    /// searches that take more time than they save.
    ///
    /// Returns the number of packets looked up, added up over tables.
    fn find<'k, P>(
        &mut self,
        rows: &mut Rows<P>,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        found: impl FnMut(usize, CachedDecision, Found),
    ) -> u64;

    /// Called after a table was added as the last of `rows`.
    fn table_added(&mut self);

    /// Called after an empty table was replaced by a table for another mask.
    fn table_replaced(&mut self, table: usize);

    /// Called after a megaflow was added to a row.
    ///
    /// # Errors
    /// The error of an engine that refuses the megaflow.
    fn row_added<P>(&mut self, rows: &Rows<P>, table: usize, row: Row) -> Result<(), TableError>;

    /// Called after the megaflow of a decision was removed.
    ///
    /// # Errors
    /// The error of an engine that refuses the removal.
    fn row_removed(&mut self, decision: CachedDecision) -> Result<(), TableError>;

    /// Adapts the search to recent packets and changes. A hit saves the time of `saved`
    /// probes of one table.
    ///
    /// # Errors
    /// The error of an engine that cannot be rebuilt.
    fn tick<P>(&mut self, rows: &Rows<P>, saved: f64) -> Result<(), TableError>;

    /// Returns the bytes held.
    fn bytes(&self) -> usize;
}

impl<P> Rows<P> {
    /// Returns all megaflows.
    pub(super) fn megaflows(&self) -> impl Iterator<Item = Megaflow<'_>> {
        self.tables.iter().enumerate().flat_map(|(number, table)| {
            let rows = (0..table.rows()).filter(|&row| table.has(row));
            rows.map(move |row| (decision(number, row), table.key(row), table.mask()))
        })
    }

    /// Returns the megaflow of a row.
    pub(super) fn megaflow(&self, table: usize, row: Row) -> Megaflow<'_> {
        let mask_table = &self.tables[table];
        (decision(table, row), mask_table.key(row), mask_table.mask())
    }

    /// Prefetches rows of tables and their paths: at most [`PREFETCH_PACKETS`].
    pub(super) fn fetch(&self, rows: impl Iterator<Item = (usize, Row)>) {
        let mut paths = [PathId(u32::MAX); PREFETCH_PACKETS];
        let mut touched = 0;
        for (path, (table, row)) in paths.iter_mut().zip(rows) {
            let row = self
                .tables
                .get(table)
                .and_then(|table| table.touch_row(row));
            if let Some((state, last)) = row {
                *path = state.path;
                touched |= last;
            }
        }
        for path in paths {
            touched |= self.paths.touch(path);
        }
        std::hint::black_box(touched);
    }

    /// Checks whether the megaflow of a decision covers a key.
    #[inline]
    pub(super) fn check(&mut self, decision: CachedDecision, key: &Words) -> Found {
        let (table, row) = parts(decision);
        match self.tables.get(table) {
            Some(mask_table) if mask_table.covers(row, key) => self.hit(table, row),
            _ => Found::Nothing,
        }
    }

    /// Returns the result for a packet that the megaflow of a row covers, and records its
    /// use.
    #[inline]
    pub(super) fn hit(&mut self, table: usize, row: Row) -> Found {
        let state = self.tables[table].state(row);
        if self.is_stale(state) {
            return Found::Stale;
        }
        if state.tick != self.tick {
            let tick = self.tick;
            self.tables[table].set_state(row, State { tick, ..state });
        }
        Found::Path(state.path)
    }

    /// True if a megaflow may be wrong.
    #[inline]
    pub(super) fn is_stale(&self, state: State) -> bool {
        state.era != self.era || self.paths.program(state.path).is_none()
    }
}
