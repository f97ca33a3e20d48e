//! The search that probes the hash tables of all masks in the order of [FTS25] eq. 3, which
//! each packet may change.
//!
//! ```text
//! order:  table 3 ▸ table 0 ▸ table 7 ▸ …      by metric, the largest first
//! packet of a vector matches in a table: the table moves ahead (see `tuple_order`)
//! ```
//! The packets of a vector are looked up table by table, so that their buckets are prefetched
//! together. A table that packets match moves ahead of tables that were probed before, so the
//! tables behind it stay in place, and each packet is looked up in every table at most once.
//!
//! # Where we differ from the paper, and why
//! A packet is looked up in the order that the previous vector left, not the previous packet.
//! Hash tables grow, so their load factors are at most 4.
//!
//! [FTS25]: classyard::papers#fts25

use super::search::Search;
use super::{Found, Megaflows};
use crate::bits::Words;
use crate::cache::microflow::MegaflowId;
use crate::cache::tuple_order::{TupleOrder, TupleSettings};

/// The order of tables by eq. 3. Tables are tuples, by their numbers.
pub(super) struct SortedTables(TupleOrder);

impl SortedTables {
    /// Returns a search without tables.
    pub(super) fn new(settings: TupleSettings) -> SortedTables {
        SortedTables(TupleOrder::new(settings))
    }
}

impl Search for SortedTables {
    fn find<'k, P>(
        &mut self,
        megaflows: &mut Megaflows<P>,
        _: bool,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        mut found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) -> u64 {
        let mut probes = 0;
        for position in 0..self.0.tuples().len() {
            let number = self.0.tuples()[position];
            if packet_indices.is_empty() {
                break;
            }
            if megaflows.tables[number].len() == 0 {
                continue;
            }
            probes += packet_indices.len() as u64;
            let hits = megaflows.find_in_table(number, &key, packet_indices, &mut found);
            let load_factor = megaflows.tables[number].load();
            let mut place = position;
            for _ in 0..hits.counted {
                place = self.0.reference(place, load_factor);
            }
        }
        probes
    }

    fn table_added(&mut self) {
        self.0.push();
    }

    fn table_replaced(&mut self, table: usize) {
        self.0.reset(table);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
