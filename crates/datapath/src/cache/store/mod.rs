//! The megaflows of a worker: keys under masks, and the paths of the packets that they
//! cover.
//!
//! A megaflow is right for every packet that it covers: all of them take its path. So if
//! several megaflows cover a packet, any of them will do, and the first match ends the
//! search. The megaflows of one mask are in a table ([`table`]). The tables most likely
//! to match are probed first ([FTS25] §4.3.2). Alternatively an engine of the registry
//! returns the row that covers a packet ([`index`]); the rows stay in the tables.
//!
//! # Bounds
//! The settings limit the number of masks and megaflows, whatever packets come. If all
//! masks are in use, a megaflow with another mask gets an existing mask that has all of
//! its bits and perhaps more: it covers fewer packets, and is still right. The last mask
//! is reserved for megaflows that fit no other mask; it has every bit where packets
//! differ. If all megaflows are in use, a few are compared, and the one that was idle
//! longest is removed.
//!
//! # Changes
//! - An entry that is removed, or gets other instructions, closes the paths on which it
//!   wins.
//! - A new entry may take packets from entries of lower priority: from megaflows that
//!   overlap it and whose winner in its table it beats. These are found by their
//!   signatures ([`signature`]).
//! - If there are too many changes to check, a new *era* begins.
//!
//! A megaflow is *stale* if its path is closed, if a new entry may take some of its
//! packets, or if it is of an older era. A stale megaflow decides nothing. The next
//! packet that it covers passes the pipeline, and the path learned from that packet
//! replaces the megaflow.

mod index;
mod signature;
mod table;

use classyard::{EngineSpec, Winner};

use self::index::{Buffers, Index};
use self::signature::Demand;
use self::table::{MAX_PATHS, MaskTable, Row, Secret, State};
use super::bits::{Known, Words};
use super::entry_paths::PathId;
use super::microflow::CachedDecision;
use super::path::{Path, Paths};
use crate::flow::TableId;
use crate::key::KEY_WORDS;

pub(crate) use self::index::schema as index_schema;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The maximum number of masks, 2 to [`MAX_MASKS`].
    pub(crate) masks: usize,
    /// The maximum number of megaflows, 1 to [`MAX_MEGAFLOWS`].
    pub(crate) megaflows: usize,
}

/// The largest possible limit of masks. It bounds the tables that a packet is looked up in.
pub(crate) const MAX_MASKS: usize = 128;

/// The largest possible limit of megaflows. It bounds the memory of a store.
pub(crate) const MAX_MEGAFLOWS: usize = 1 << 23;

/// The number of bits of a decision that hold the row. The other 8 bits hold the table.
const ROW_BITS: u32 = 24;

/// The bound on the share that a hit adds to a table's weight: λ of [FTS25] eq. 3, typically
/// 4 (§4.3.2).
const WEIGHT_TRUNCATION: f64 = 4.0;

/// Every n-th search probes all tables, to measure whether more tables save time.
const FULL_SEARCH_INTERVAL: u32 = 16;

/// The number of packets whose rows are prefetched together.
const PREFETCH_PACKETS: usize = 64;

/// The number of rows compared to find a row that was idle for long.
const EVICTION_TRIES: usize = 8;

/// The result of a search for a packet's megaflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The packet's path.
    Path(PathId),
    /// The packet's megaflow is stale, so the pipeline must decide.
    Stale,
    /// No megaflow covers the packet.
    Nothing,
}

/// A megaflow that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) decision: CachedDecision,
    pub(crate) path: PathId,
    /// True if the path has a new program.
    pub(crate) is_new: bool,
}

/// A new entry.
pub(crate) struct Added {
    pub(crate) table: TableId,
    pub(crate) winner: Winner,
    /// The bits of keys that it compares.
    pub(crate) match_bits: Vec<Known>,
}

/// Counters of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreCounts {
    /// The number of packets looked up, added up over tables.
    pub(crate) probes: u64,
    /// The number of added megaflows.
    pub(crate) added: u64,
    /// The number of megaflows removed to make room.
    pub(crate) evicted: u64,
    /// The number of megaflows made stale by new entries.
    pub(crate) outdated: u64,
    /// The number of megaflows that got a mask with more bits than they need.
    pub(crate) narrowed: u64,
    /// The number of eras begun.
    pub(crate) eras: u64,
}

/// The megaflows of a worker, and their paths.
pub(crate) struct Store<P> {
    bounds: Bounds,
    secret: Secret,
    tables: Vec<MaskTable>,
    /// The engine that finds rows, unless tables are probed one by one. It has exactly
    /// the rows of the tables, and is dropped if it refuses a row.
    index: Option<Index>,
    looked_up: Buffers,
    /// The tables in the order of probing.
    order: Vec<usize>,
    /// The weight of recent hits in each table.
    weights: Vec<f64>,
    /// The recent packets looked up in each table, and the hits.
    recent_use: Vec<(f64, f64)>,
    /// The number of tables, from the first, whose probes save time.
    worth: usize,
    /// The number of searches so far.
    searches: u32,
    used: usize,
    pub(crate) paths: Paths<P>,
    demand: Demand,
    era: u32,
    tick: u8,
    /// The position at which the next search for an idle megaflow begins.
    hand: (usize, Row),
    pub(crate) counts: StoreCounts,
    /// Buffer for rows that a change may affect.
    rows: Vec<usize>,
}

impl<P> Store<P> {
    /// # Panics
    /// If the bounds are outside of the ranges of [`Bounds`].
    pub(crate) fn new(bounds: Bounds, seed: u64) -> Store<P> {
        assert!((2..=MAX_MASKS).contains(&bounds.masks), "{bounds:?}");
        assert!(
            (1..=MAX_MEGAFLOWS).contains(&bounds.megaflows),
            "{bounds:?}"
        );
        Store {
            bounds,
            secret: Secret([seed, seed.rotate_left(32) | 1].map(mix)),
            tables: Vec::new(),
            index: None,
            looked_up: Buffers::default(),
            order: Vec::new(),
            weights: Vec::new(),
            recent_use: Vec::new(),
            worth: MAX_MASKS,
            searches: 0,
            used: 0,
            paths: Paths::default(),
            demand: Demand::default(),
            era: 0,
            tick: 0,
            hand: (0, 0),
            counts: StoreCounts::default(),
            rows: Vec::new(),
        }
    }

    /// Makes the store use an engine, which gets a seed, or hash tables for `None`.
    pub(crate) fn found_by(mut self, spec: Option<&EngineSpec>, seed: u64) -> Store<P> {
        let spec = spec.cloned();
        let index = spec.map(|spec| Index::new(spec.seeded(mix(seed))));
        self.index = index.and_then(Result::ok);
        self
    }

    /// Returns the number of megaflows.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Returns the number of masks in use.
    pub(crate) fn masks(&self) -> usize {
        self.tables.iter().filter(|table| table.len() > 0).count()
    }

    /// Returns the bytes held, without paths.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(MaskTable::bytes);
        tables.sum::<usize>() + self.index.as_ref().map_or(0, Index::bytes)
    }

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
    fn is_stale(&self, state: State) -> bool {
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
        self.searches = self.searches.wrapping_add(1);
        let tables = match all || self.searches.is_multiple_of(FULL_SEARCH_INTERVAL) {
            true => self.order.len(),
            false => self.worth.min(self.order.len()),
        };
        for at in 0..tables {
            let number = self.order[at];
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
                    let position = places[first + offset];
                    let row = self.tables[number].find(key(position), hashes[offset]);
                    let known = row.map(|row| (row, self.known(number, row)));
                    match known {
                        Some((row, known)) if known != Found::Nothing => {
                            hits += 1;
                            found(position, decision(number, row), known);
                        }
                        _ => {
                            places[kept] = position;
                            kept += 1;
                        }
                    }
                }
                first += chunk_len;
            }
            places.truncate(kept);
            let share = 1.0 / self.tables[number].load();
            let share = share.clamp(1.0 / WEIGHT_TRUNCATION, WEIGHT_TRUNCATION);
            self.weights[number] += f64::from(hits) * share;
            let (probed_packets, hit_packets) = &mut self.recent_use[number];
            #[allow(clippy::cast_precision_loss)] // packets of a vector
            let searched = searched as f64;
            (*probed_packets, *hit_packets) =
                (*probed_packets + searched, *hit_packets + f64::from(hits));
        }
    }

    /// Sorts tables by hit weight, halves all weights and advances the idle clock. A hit
    /// saves the time of `saved` probes of one table.
    pub(crate) fn tick(&mut self, saved: f64) {
        self.tick = self.tick.wrapping_add(1);
        let weights = &mut self.weights;
        self.order
            .sort_by(|&one, &other| weights[other].total_cmp(&weights[one]));
        for weight in weights {
            *weight /= 2.0;
        }
        self.worth = self.worth(saved);
        for (probed_packets, hit_packets) in &mut self.recent_use {
            *probed_packets /= 2.0;
            *hit_packets /= 2.0;
        }
        let settled = self.index.as_mut().map(Index::settle);
        if settled.is_some_and(|settled| settled.is_err()) {
            self.index = None;
        }
    }

    /// Returns the number of tables, in order, whose probes save time, if a hit saves the
    /// time of `saved` probes. Packets that miss the first tables do not probe later
    /// tables with too few hits.
    fn worth(&self, saved: f64) -> usize {
        // The share of packets that is left for the next table.
        let mut share_left = 1.0;
        let (mut sum, mut best_sum, mut worth) = (0.0, 0.0, 0);
        for (at, &number) in self.order.iter().enumerate() {
            let (probed_packets, hit_packets) = self.recent_use[number];
            if probed_packets < 1.0 || self.tables[number].len() == 0 {
                continue;
            }
            let share = hit_packets / probed_packets;
            sum += share_left * (share * saved - 1.0);
            share_left *= 1.0 - share;
            if sum > best_sum {
                (best_sum, worth) = (sum, at + 1);
            }
        }
        worth
    }

    /// Adds a megaflow: packets that agree with `key` on the bits of `mask` take `path`.
    /// An existing megaflow for the same key, under a mask that has these bits, gets the
    /// path. Returns `None` if there are too many paths.
    pub(crate) fn insert(
        &mut self,
        key: &Words,
        mask: &Words,
        path: &Path,
        program: impl FnOnce(&Path) -> P,
    ) -> Option<Kept> {
        if self.paths.len() >= MAX_PATHS / 2 {
            return None;
        }
        let table = self.table_for(mask);
        let set: Vec<Known> = path
            .steps
            .iter()
            .flat_map(|step| &step.set)
            .copied()
            .collect();
        let (path, is_new) = self.paths.refer(path, self.era, program);
        let result = |table, row| {
            Some(Kept {
                decision: decision(table, row),
                path,
                is_new,
            })
        };
        let state = State {
            path,
            tick: self.tick,
            era: self.era,
        };
        let hash = self.tables[table].hash(key, self.secret);
        if let Some(row) = self.tables[table].find(key, hash) {
            let old = self.tables[table].state(row).path;
            self.tables[table].renew(row, state, &set);
            self.paths.release(old);
            return result(table, row);
        }
        if self.used >= self.bounds.megaflows {
            self.give_one_up();
        }
        let (secret, demand) = (self.secret, &self.demand);
        let (row, given_up) = self.tables[table].insert(key, state, &set, secret, demand);
        match given_up {
            Some(path) => {
                self.paths.release(path);
                self.counts.evicted += 1;
            }
            None => self.used += 1,
        }
        self.counts.added += 1;
        self.index_row(table, row);
        result(table, row)
    }

    /// Adds a new row to the index, or replaces a reused row.
    fn index_row(&mut self, table: usize, row: Row) {
        let Some(index) = &mut self.index else {
            return;
        };
        let mask_table = &self.tables[table];
        let megaflow = (decision(table, row), mask_table.key(row), mask_table.mask());
        if index.insert(megaflow, megaflows(&self.tables)).is_err() {
            self.index = None;
        }
    }

    /// Returns the table whose mask has all bits of a mask, and few others.
    fn table_for(&mut self, mask: &Words) -> usize {
        let extra = |table: &MaskTable| {
            let words = table.mask().iter().zip(mask);
            let lacks = words.clone().any(|(own, wanted)| wanted & !own != 0);
            let extra = words
                .map(|(own, wanted)| (own & !wanted).count_ones())
                .sum::<u32>();
            (!lacks).then_some(extra)
        };
        let fitting = self.tables.iter().enumerate();
        let fitting = fitting.filter_map(|(number, table)| Some((extra(table)?, number)));
        let fitting = fitting.min();
        if let Some((0, number)) = fitting {
            return number;
        }
        // The last mask is reserved for megaflows that fit no other.
        if self.tables.len() + 1 < self.bounds.masks {
            return self.add_table(*mask);
        }
        let empty = self.tables.iter().position(|table| table.len() == 0);
        if let Some(number) = empty.filter(|&number| number + 1 < self.bounds.masks) {
            self.tables[number] = MaskTable::new(*mask);
            self.weights[number] = 0.0;
            self.recent_use[number] = (0.0, 0.0);
            return number;
        }
        self.counts.narrowed += 1;
        match fitting {
            Some((_, number)) => number,
            None => {
                let last = self.bounds.masks - 1;
                let mut wide_mask = *mask;
                for table in &self.tables {
                    let words = wide_mask.iter_mut().zip(table.mask());
                    words.for_each(|(wide_mask, own)| *wide_mask |= own);
                }
                // Whole words, so that few megaflows make the mask still wider.
                wide_mask
                    .iter_mut()
                    .filter(|word| **word != 0)
                    .for_each(|word| *word = u64::MAX);
                if last < self.tables.len() {
                    self.clear_table(last);
                    self.tables[last] = MaskTable::new(wide_mask);
                    return last;
                }
                self.add_table(wide_mask)
            }
        }
    }

    fn add_table(&mut self, mask: Words) -> usize {
        self.tables.push(MaskTable::new(mask));
        self.weights.push(0.0);
        self.recent_use.push((0.0, 0.0));
        self.order.push(self.tables.len() - 1);
        self.tables.len() - 1
    }

    fn clear_table(&mut self, table: usize) {
        for row in 0..self.tables[table].rows() {
            if self.tables[table].has(row) {
                self.remove(table, row);
            }
        }
    }

    /// Makes room for a megaflow: compares a few and removes the one that was idle
    /// longest.
    fn give_one_up(&mut self) {
        let mut oldest = None;
        let mut looked_at = 0;
        while looked_at < EVICTION_TRIES {
            let (mut table, mut row) = self.hand;
            if table >= self.tables.len() {
                (table, row) = (0, 0);
            }
            if row >= self.tables[table].rows() {
                self.hand = (table + 1, 0);
                continue;
            }
            self.hand = (table, row + 1);
            if !self.tables[table].has(row) {
                continue;
            }
            looked_at += 1;
            let state = self.tables[table].state(row);
            let age = match self.paths.program(state.path) {
                None => u16::MAX,
                Some(_) => u16::from(self.tick.wrapping_sub(state.tick)),
            };
            if oldest.is_none_or(|(other, _, _)| age > other) {
                oldest = Some((age, table, row));
            }
            if self.used < EVICTION_TRIES && looked_at >= self.used {
                break;
            }
        }
        if let Some((_, table, row)) = oldest {
            self.remove(table, row);
            self.counts.evicted += 1;
        }
    }

    fn remove(&mut self, table: usize, row: Row) {
        let path = self.tables[table].state(row).path;
        self.tables[table].remove(row, self.secret);
        if let Some(index) = &mut self.index
            && index.remove(decision(table, row)).is_err()
        {
            self.index = None;
        }
        self.paths.release(path);
        self.used -= 1;
    }

    /// Makes the megaflows stale that may lose packets to new entries.
    pub(crate) fn entries_added(&mut self, added: &[Added]) {
        for added in added {
            self.demand.note(&added.match_bits);
        }
        let mut rows = std::mem::take(&mut self.rows);
        for number in 0..self.tables.len() {
            // The signatures of a table are in cache for all entries after the first.
            for added in added {
                rows.clear();
                self.tables[number].overlapping(&added.match_bits, &mut rows);
                for &row in &rows {
                    let row = Row::try_from(row).expect("24 bits");
                    if self.tables[number].has(row) && self.takes_from(added, (number, row)) {
                        let state = self.tables[number].state(row);
                        // Any era except the present one.
                        let era = !self.era;
                        self.tables[number].set_state(row, State { era, ..state });
                        self.counts.outdated += 1;
                    }
                }
            }
        }
        self.rows = rows;
    }

    /// True if a new entry takes packets from a megaflow that was right.
    fn takes_from(&self, added: &Added, (number, row): (usize, Row)) -> bool {
        let megaflows = &self.tables[number];
        let state = megaflows.state(row);
        if self.is_stale(state) {
            return false;
        }
        let (path, _) = self.paths.get(state.path);
        let step = path.steps.iter().find(|step| step.table == added.table);
        step.is_some_and(|step| {
            added.winner.beats(step.winner) && megaflows.overlaps(row, &added.match_bits, &step.set)
        })
    }

    /// Makes all megaflows stale.
    pub(crate) fn begin_era(&mut self) {
        self.counts.eras += 1;
        match self.era.checked_add(1) {
            Some(era) => self.era = era,
            // The era overflows: remove all megaflows, so that none seems to be of a
            // later era.
            None => {
                (0..self.tables.len()).for_each(|table| self.clear_table(table));
                self.era = 0;
            }
        }
    }

    /// Removes a stale megaflow, if it still exists.
    pub(crate) fn drop_stale(&mut self, decision: CachedDecision, key: &Words) {
        let (table, row) = parts(decision);
        let stale = |mask_table: &MaskTable| {
            mask_table.covers(row, key) && self.is_stale(mask_table.state(row))
        };
        if self.tables.get(table).is_some_and(stale) {
            self.remove(table, row);
        }
    }

    /// Returns the key, mask and path of a decision's megaflow.
    pub(crate) fn megaflow(&self, decision: CachedDecision) -> Option<(Words, Words, PathId)> {
        let (table, row) = parts(decision);
        let table = self.tables.get(table)?;
        let state = table.has(row).then(|| table.state(row))?;
        Some((table.key(row), *table.mask(), state.path))
    }

    /// Returns the key, mask and path of every megaflow.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Words, Words, PathId)> {
        megaflows(&self.tables).map(|(decision, key, mask)| {
            let (table, row) = parts(decision);
            (key, *mask, self.tables[table].state(row).path)
        })
    }
}

/// Returns all megaflows of some tables.
fn megaflows(tables: &[MaskTable]) -> impl Iterator<Item = index::Megaflow<'_>> {
    tables.iter().enumerate().flat_map(|(number, table)| {
        let rows = (0..table.rows()).filter(|&row| table.has(row));
        rows.map(move |row| (decision(number, row), table.key(row), table.mask()))
    })
}

fn decision(table: usize, row: Row) -> CachedDecision {
    let table = u32::try_from(table).expect("few masks");
    CachedDecision::new(table << ROW_BITS | row).expect("fewer masks than 255")
}

#[inline]
fn parts(decision: CachedDecision) -> (usize, Row) {
    let number = decision.number();
    (
        (number >> ROW_BITS) as usize,
        number & ((1 << ROW_BITS) - 1),
    )
}

/// Mixes the bits of a seed.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    (mixed ^ mixed >> 32) | 1
}

const _: () = assert!(KEY_WORDS < 256);

#[cfg(test)]
mod tests;
