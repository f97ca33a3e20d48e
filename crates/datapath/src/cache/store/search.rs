//! The search that the settings of a store choose: an engine, or the tables in order.

use classyard::EngineSpec;

use super::Found;
use super::index::Index;
use super::order::ProbeOrder;
use super::rows::{Rows, Search};
use super::table::Row;
use crate::cache::bits::Words;
use crate::cache::microflow::CachedDecision;
use crate::flow_table::TableError;

/// The chosen search.
pub(super) enum ChosenSearch {
    /// Probes the tables of masks one by one.
    Tables(ProbeOrder),
    /// Looks packets up in an engine, which has exactly the rows of the tables.
    Engine(Index),
}

impl ChosenSearch {
    /// Returns a search among no rows: by an engine, or in tables if `spec` is `None` or
    /// the engine cannot be built.
    pub(super) fn new(spec: Option<EngineSpec>) -> ChosenSearch {
        match spec.map(Index::new) {
            Some(Ok(index)) => ChosenSearch::Engine(index),
            _ => ChosenSearch::Tables(ProbeOrder::default()),
        }
    }

    /// Replaces an engine that refused a change: afterwards the tables of `rows` are
    /// probed.
    pub(super) fn replace_engine<P>(&mut self, rows: &Rows<P>) {
        *self = ChosenSearch::Tables(ProbeOrder::of_tables(rows.tables.len()));
    }

    /// Returns the index, if an engine finds the rows.
    #[cfg(test)]
    pub(super) fn index(&self) -> Option<&Index> {
        match self {
            ChosenSearch::Tables(_) => None,
            ChosenSearch::Engine(index) => Some(index),
        }
    }
}

/// Calls a method of the chosen search.
macro_rules! chosen {
    ($self:ident, $search:ident => $call:expr) => {
        match $self {
            ChosenSearch::Tables($search) => $call,
            ChosenSearch::Engine($search) => $call,
        }
    };
}

impl Search for ChosenSearch {
    fn find<'k, P>(
        &mut self,
        rows: &mut Rows<P>,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        found: impl FnMut(usize, CachedDecision, Found),
    ) -> u64 {
        chosen!(self, search => search.find(rows, all, key, places, found))
    }

    fn table_added(&mut self) {
        chosen!(self, search => search.table_added());
    }

    fn table_replaced(&mut self, table: usize) {
        chosen!(self, search => search.table_replaced(table));
    }

    fn row_added<P>(&mut self, rows: &Rows<P>, table: usize, row: Row) -> Result<(), TableError> {
        chosen!(self, search => search.row_added(rows, table, row))
    }

    fn row_removed(&mut self, decision: CachedDecision) -> Result<(), TableError> {
        chosen!(self, search => search.row_removed(decision))
    }

    fn tick<P>(&mut self, rows: &Rows<P>, saved: f64) -> Result<(), TableError> {
        chosen!(self, search => search.tick(rows, saved))
    }

    fn bytes(&self) -> usize {
        chosen!(self, search => search.bytes())
    }
}
