//! The search in the tables of a store, one after the other: those most likely to match
//! first ([FTS25] §4.3.2).

use super::rows::{PREFETCH_PACKETS, Rows, Search};
use super::table::Row;
use super::{Found, MAX_MASKS, decision};
use crate::cache::bits::Words;
use crate::cache::microflow::CachedDecision;
use crate::flow_table::TableError;

/// The bound λ of [FTS25] eq. 3: a hit adds 1/λ to λ to a table's weight. Typically 4
/// (§4.3.2).
const WEIGHT_TRUNCATION: f64 = 4.0;

/// Every n-th search probes all tables, to measure whether more tables save time.
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

    /// Begins a search. Returns how many tables to probe: all of them if `all` is true,
    /// otherwise those that save time, and now and then all, to measure whether more tables
    /// save time.
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
        rows: &mut Rows<P>,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        mut found: impl FnMut(usize, CachedDecision, Found),
    ) -> u64 {
        let mut probes = 0;
        for position in 0..self.begin(all) {
            let number = self.order[position];
            if places.is_empty() {
                break;
            }
            if rows.tables[number].len() == 0 {
                continue;
            }
            let searched = places.len();
            probes += searched as u64;
            let hits = find_in_table(rows, number, &key, places, &mut found);
            self.note_hits(number, searched, hits, rows.tables[number].load());
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

    fn row_added<P>(&mut self, _: &Rows<P>, _: usize, _: Row) -> Result<(), TableError> {
        Ok(())
    }

    fn row_removed(&mut self, _: CachedDecision) -> Result<(), TableError> {
        Ok(())
    }

    fn tick<P>(&mut self, rows: &Rows<P>, saved: f64) -> Result<(), TableError> {
        self.sort(saved, |table| rows.tables[table].len() > 0);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<usize>() + self.recent.capacity() * size_of::<Use>()
    }
}

/// Looks up the keys at `places` in one table. Returns the number of hits; the places of
/// the other keys stay.
#[inline]
fn find_in_table<'k, P>(
    rows: &mut Rows<P>,
    number: usize,
    key: impl Fn(usize) -> &'k Words,
    places: &mut Vec<usize>,
    mut found: impl FnMut(usize, CachedDecision, Found),
) -> u32 {
    let mut hashes = [0; PREFETCH_PACKETS];
    let (mut hits, mut kept, mut first) = (0, 0, 0);
    while first < places.len() {
        let chunk_len = (places.len() - first).min(hashes.len());
        // Computes all hashes first, so that the buckets are prefetched together.
        let mut touched = 0;
        for (hash, &place) in hashes.iter_mut().zip(&places[first..first + chunk_len]) {
            *hash = rows.tables[number].hash(key(place), rows.secret);
            touched |= rows.tables[number].touch(*hash);
        }
        std::hint::black_box(touched);
        let candidates = hashes[..chunk_len].iter();
        let candidates = candidates.filter_map(|&hash| rows.tables[number].candidate(hash));
        rows.fetch(candidates.map(|row| (number, row)));
        for offset in 0..chunk_len {
            let place = places[first + offset];
            match rows.tables[number].find(key(place), hashes[offset]) {
                Some(row) => {
                    hits += 1;
                    let result = rows.hit(number, row);
                    found(place, decision(number, row), result);
                }
                None => {
                    places[kept] = place;
                    kept += 1;
                }
            }
        }
        first += chunk_len;
    }
    places.truncate(kept);
    hits
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
