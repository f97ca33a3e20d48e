//! The searches for the row of a packet, and the default search: it probes the hash tables of
//! all masks one after the other, those most likely to match first ([FTS25] §4.3.2).
//!
//! ```text
//! order:  table 3 ▸ table 0 ▸      │ table 7 ▸ …    by weight of recent hits, the largest first
//!         probed in every search   │ probed in every 16th search: too few hits
//! ```
//! [`tick`](Search::tick) sorts the tables and halves their weights.
//!
//! [FTS25]: classyard::papers#fts25

use super::tables::Row;
use super::{Found, MAX_MASKS, Megaflows};
use crate::bits::Words;
use crate::cache::microflow::MegaflowId;
use crate::table_settings::TableError;

/// A way to find the megaflow of a packet among the rows of a store.
pub(super) trait Search {
    /// Looks up the packets of a vector that `packet_indices` lists. Passes each result with
    /// its megaflow to `found`; keys without a megaflow stay in `packet_indices`. If `all` is
    /// false, may leave out searches that take more time than they save.
    ///
    /// `found` returns false if its packet does not count as a reference of a tuple ([FTS25]
    /// Alg. 1, lines 22 to 31): its flow entered the microflow cache.
    ///
    /// Returns the number of packets looked up, added up over tables.
    fn find<'k, P>(
        &mut self,
        megaflows: &mut Megaflows<P>,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) -> u64;

    /// Called after a table was added as the last of `megaflows`.
    fn table_added(&mut self);

    /// Called after an empty table was replaced by a table for another mask.
    fn table_replaced(&mut self, table: usize);

    /// Called after a megaflow was added to a row.
    ///
    /// # Errors
    /// The error of an engine that refuses the megaflow.
    fn row_added<P>(
        &mut self,
        megaflows: &Megaflows<P>,
        table: usize,
        row: Row,
    ) -> Result<(), TableError> {
        let _ = (megaflows, table, row);
        Ok(())
    }

    /// Called after a megaflow was removed.
    ///
    /// # Errors
    /// The error of an engine that refuses the removal.
    fn row_removed(&mut self, megaflow: MegaflowId) -> Result<(), TableError> {
        let _ = megaflow;
        Ok(())
    }

    /// Adapts the search to recent packets and changes. A hit saves the time of `saved`
    /// probes of one table.
    ///
    /// # Errors
    /// The error of an engine that cannot be rebuilt.
    fn tick<P>(&mut self, megaflows: &Megaflows<P>, saved: f64) -> Result<(), TableError> {
        let _ = (megaflows, saved);
        Ok(())
    }

    /// Returns the bytes held.
    fn bytes(&self) -> usize;
}

/// The bound λ of [FTS25] eq. 3: a hit adds 1/λ to λ to a table's weight. Typically 4
/// (§4.3.2).
const WEIGHT_TRUNCATION: f64 = 4.0;

/// Every n-th search probes all tables, to measure whether more tables save time.
/// Measured in `bench/records/constants.md` (Megaflows).
const FULL_SEARCH_INTERVAL: u32 = 16;

/// The use of a table by recent packets.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// The weight of hits.
    weight: f64,
    /// The packets looked up.
    packets: f64,
    /// The hits.
    hits: f64,
}

/// The order of tables, given by their numbers, and how many of them save time.
pub(super) struct ProbeOrder {
    order: Vec<usize>,
    /// The recent use of each table, by its number.
    recent: Vec<Use>,
    /// The number of tables, from the first, whose probes save time.
    worth: usize,
    /// The number of searches so far.
    searches: u32,
}

impl Default for ProbeOrder {
    fn default() -> ProbeOrder {
        ProbeOrder {
            order: Vec::new(),
            recent: Vec::new(),
            worth: MAX_MASKS,
            searches: 0,
        }
    }
}

impl ProbeOrder {
    /// Returns the order of tables that were not used yet.
    pub(super) fn of_tables(count: usize) -> ProbeOrder {
        let mut order = ProbeOrder::default();
        (0..count).for_each(|_| order.table_added());
        order
    }

    /// Begins a search. Returns the number of tables to probe: all tables if `all` is true,
    /// and in every [`FULL_SEARCH_INTERVAL`]th search. Otherwise returns the number of tables
    /// whose probes save time.
    fn begin(&mut self, all: bool) -> usize {
        self.searches = self.searches.wrapping_add(1);
        match all || self.searches.is_multiple_of(FULL_SEARCH_INTERVAL) {
            true => self.order.len(),
            false => self.worth.min(self.order.len()),
        }
    }

    /// Records a search of a table whose buckets hold `load` megaflows on average.
    fn note_hits(&mut self, table: usize, packets: usize, hits: u32, load: f64) {
        let share = (1.0 / load).clamp(1.0 / WEIGHT_TRUNCATION, WEIGHT_TRUNCATION);
        let recent = &mut self.recent[table];
        recent.weight += f64::from(hits) * share;
        #[allow(clippy::cast_precision_loss)] // packets of a vector
        let packets = packets as f64;
        recent.packets += packets;
        recent.hits += f64::from(hits);
    }

    /// Sorts tables by hit weight and halves all use. A hit saves the time of `saved` probes
    /// of one table. `is_used` is true for tables with megaflows.
    fn sort(&mut self, saved: f64, is_used: impl Fn(usize) -> bool) {
        let recent = &self.recent;
        self.order
            .sort_by(|&one, &other| recent[other].weight.total_cmp(&recent[one].weight));
        self.worth = self.worth(saved, is_used);
        for recent in &mut self.recent {
            recent.weight /= 2.0;
            recent.packets /= 2.0;
            recent.hits /= 2.0;
        }
    }

    /// Returns the number of tables, in order, whose probes save time, if a hit saves the
    /// time of `saved` probes. Packets that miss the first tables do not probe later
    /// tables with too few hits.
    fn worth(&self, saved: f64, is_used: impl Fn(usize) -> bool) -> usize {
        // The share of packets that is left for the next table.
        let mut share_left = 1.0;
        let (mut sum, mut best_sum, mut worth) = (0.0, 0.0, 0);
        for (position, &number) in self.order.iter().enumerate() {
            let Use { packets, hits, .. } = self.recent[number];
            if packets < 1.0 || !is_used(number) {
                continue;
            }
            let share = hits / packets;
            sum += share_left * (share * saved - 1.0);
            share_left *= 1.0 - share;
            if sum > best_sum {
                (best_sum, worth) = (sum, position + 1);
            }
        }
        worth
    }
}

impl Search for ProbeOrder {
    fn find<'k, P>(
        &mut self,
        megaflows: &mut Megaflows<P>,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        mut found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) -> u64 {
        let mut probes = 0;
        for position in 0..self.begin(all) {
            let number = self.order[position];
            if packet_indices.is_empty() {
                break;
            }
            if megaflows.tables[number].len() == 0 {
                continue;
            }
            let searched = packet_indices.len();
            probes += searched as u64;
            let hits = megaflows.find_in_table(number, &key, packet_indices, &mut found);
            self.note_hits(number, searched, hits.all, megaflows.tables[number].load());
        }
        probes
    }

    fn table_added(&mut self) {
        self.order.push(self.recent.len());
        self.recent.push(Use::default());
    }

    fn table_replaced(&mut self, table: usize) {
        self.recent[table] = Use::default();
    }

    fn tick<P>(&mut self, megaflows: &Megaflows<P>, saved: f64) -> Result<(), TableError> {
        self.sort(saved, |table| megaflows.tables[table].len() > 0);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<usize>() + self.recent.capacity() * size_of::<Use>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_hits_come_first_and_those_without_are_left_out() {
        let mut order = ProbeOrder::of_tables(3);
        assert_eq!(order.begin(false), 3);
        order.note_hits(0, 100, 1, 1.0);
        order.note_hits(1, 100, 60, 1.0);
        order.note_hits(2, 40, 30, 1.0);
        // A hit saves four probes: table 0 has too few hits to be probed.
        order.sort(4.0, |_| true);
        assert_eq!(order.order, [1, 2, 0]);
        assert_eq!((order.begin(false), order.begin(true)), (2, 3));
        // Every sixteenth search probes all tables.
        let full = (0..FULL_SEARCH_INTERVAL).filter(|_| order.begin(false) == 3);
        assert_eq!(full.count(), 1);
        order.sort(4.0, |table| table != 1);
        assert_eq!(order.begin(false), 2);
    }

    #[test]
    fn a_full_table_weighs_less_for_each_hit() {
        let mut order = ProbeOrder::of_tables(2);
        order.note_hits(0, 10, 5, 4.0);
        order.note_hits(1, 10, 4, 0.5);
        order.sort(4.0, |_| true);
        assert_eq!(order.order, [1, 0]);
        order.table_replaced(1);
        order.sort(4.0, |_| true);
        assert_eq!(order.order, [0, 1]);
    }
}
