//! Finding the megaflows of packets.

use super::table::{Row, State};
use super::{Found, Store, decision, parts};
use crate::cache::bits::Words;
use crate::cache::entry_paths::PathId;
use crate::cache::microflow::CachedDecision;

/// The number of packets whose rows are prefetched together.
const PREFETCH_PACKETS: usize = 64;

impl<P> Store<P> {
    /// Checks for each decision whether its megaflow covers the key of its packet, and
    /// passes the result to `found`.
    ///
    /// Rows and paths are scattered in memory, so the rows of many packets are prefetched
    /// together before any is read.
    pub(crate) fn check_all<'k>(
        &mut self,
        decisions: &[(usize, CachedDecision)],
        key: impl Fn(usize) -> &'k Words,
        mut found: impl FnMut(usize, CachedDecision, Found),
    ) {
        for decisions in decisions.chunks(PREFETCH_PACKETS) {
            let rows = decisions.iter().map(|&(_, decision)| parts(decision));
            self.fetch(rows);
            for &(place, decision) in decisions {
                found(place, decision, self.check(decision, key(place)));
            }
        }
    }

    /// Prefetches rows of tables and their paths: at most [`PREFETCH_PACKETS`].
    fn fetch(&self, rows: impl Iterator<Item = (usize, Row)>) {
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
    pub(crate) fn check(&mut self, decision: CachedDecision, key: &Words) -> Found {
        let (table, row) = parts(decision);
        match self.tables.get(table) {
            Some(mask_table) if mask_table.covers(row, key) => self.known(table, row),
            _ => Found::Nothing,
        }
    }

    /// Returns the result for packets of a megaflow, and records its use.
    #[inline]
    fn known(&mut self, table: usize, row: Row) -> Found {
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

    /// Looks up the keys at `places` of a vector. Passes each result with its decision to
    /// `found`; keys without a megaflow stay in `places`. Probes all tables if `all` is
    /// true, otherwise only the tables that save time.
    pub(crate) fn find<'k>(
        &mut self,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        found: impl FnMut(usize, CachedDecision, Found),
    ) {
        match self.index {
            Some(_) => self.find_by_engine(key, places, found),
            None => self.find_in_tables(all, key, places, found),
        }
    }

    fn find_by_engine<'k>(
        &mut self,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        mut found: impl FnMut(usize, CachedDecision, Found),
    ) {
        let mut buffers = std::mem::take(&mut self.looked_up);
        if let Some(index) = &self.index {
            self.counts.probes += places.len() as u64;
            index.look_up(places.iter().map(|&place| key(place)), &mut buffers);
        }
        let mut number = 0;
        places.retain(|&place| {
            let decision = buffers.decision(number);
            number += 1;
            match decision.and_then(|decision| self.confirm(decision, key(place))) {
                Some((decision, known)) => found(place, decision, known),
                None => return true,
            }
            false
        });
        self.looked_up = buffers;
    }

    /// Compares the index's result for a key with the row, since the index leaves out
    /// some bits.
    fn confirm(
        &mut self,
        decision: CachedDecision,
        key: &Words,
    ) -> Option<(CachedDecision, Found)> {
        match self.check(decision, key) {
            Found::Nothing => None,
            known => Some((decision, known)),
        }
    }

    fn find_in_tables<'k>(
        &mut self,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        mut found: impl FnMut(usize, CachedDecision, Found),
    ) {
        let mut hashes = [0; PREFETCH_PACKETS];
        let tables = self.probes.begin(all);
        for position in 0..tables {
            let number = self.probes.at(position);
            if places.is_empty() {
                return;
            }
            if self.tables[number].len() == 0 {
                continue;
            }
            self.counts.probes += places.len() as u64;
            let searched = places.len();
            let (mut hits, mut kept, mut first) = (0_u32, 0, 0);
            while first < places.len() {
                let chunk_len = (places.len() - first).min(hashes.len());
                // Computes all hashes first, so that the buckets are prefetched together.
                let mut touched = 0;
                for (hash, &place) in hashes.iter_mut().zip(&places[first..first + chunk_len]) {
                    *hash = self.tables[number].hash(key(place), self.secret);
                    touched |= self.tables[number].touch(*hash);
                }
                std::hint::black_box(touched);
                let rows = hashes[..chunk_len].iter();
                let rows = rows.filter_map(|&hash| self.tables[number].candidate(hash));
                self.fetch(rows.map(|row| (number, row)));
                for offset in 0..chunk_len {
                    let place = places[first + offset];
                    let row = self.tables[number].find(key(place), hashes[offset]);
                    match row {
                        Some(row) => {
                            hits += 1;
                            let result = self.known(number, row);
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
            let load = self.tables[number].load();
            self.probes.record(number, searched, hits, load);
        }
    }
}
