//! The megaflows of a worker: keys under masks, and the paths of the packets that they
//! cover.
//!
//! All packets that a megaflow covers take the megaflow's path. So if several megaflows
//! cover a packet, each of them gives the right path, and the first match ends the search.
//!
//! The megaflows of one mask are the rows of a hash table, the *mask table*. The tables of
//! the pipeline are called *flow tables* here. There are three ways to search for the row of
//! a packet ([`Search`]):
//!
//! ```text
//!       ┌▶ ProbeOrder: probes mask tables, those most likely to match first ─┐
//! key ──┼▶ SortedTables: probes mask tables in the order of [FTS25] eq. 3 ───┼▶ row ─▶ path,
//!       └▶ Index: an engine of the registry returns the row ─────────────────┘  unless stale
//! ```
//! With a clock, `ProbeOrder` leaves out mask tables whose probes take more time than their
//! hits save, except in every 16th search.
//!
//! This file has the lookup and insertion of megaflows, and the changes that make them stale.
//!
//! | module | contents |
//! |---|---|
//! | [`room`] | the mask table that gets a megaflow, and what makes room for it |
//! | [`tables`] | the hash table of one mask: a row has a megaflow's key under the mask and its state; [`MaskTable::covers`] compares a packet's key under the mask with a row |
//! | [`search`] | the trait of searches, and the search that probes the tables by recent hits |
//! | [`tuples`] | the search that probes all tables in the order of [FTS25] eq. 3 |
//! | [`index`] | the search by an engine |
//! | [`finder`] | the settings that choose a search |
//! | [`listing`] | the list of all megaflows, in parts |
//! | [`signature`] | 32 bits of each key, to find the megaflows that a new entry overlaps |
//!
//! # Bounds
//! The settings limit the number of masks and megaflows, whatever packets arrive: by default to
//! 32 and 131,072. If all masks are in use, a megaflow with another mask gets an existing mask
//! that has all of its bits and perhaps more: it covers fewer packets, and is still right. The
//! last mask is reserved for megaflows that fit no other mask: when it must be widened, it gets
//! all bits of every key word that some mask uses then. If the maximum number of megaflows is
//! cached, a few are compared, and the megaflow that was idle longest is removed.
//!
//! A mask table keeps the rows of removed megaflows for later ones. If traffic moves from
//! mask to mask, many tables may have many free rows. So before the mask tables together get
//! more rows than twice the maximum number of megaflows, the table with the largest share of
//! free rows is compacted. Its megaflows get other numbers; microflow caches then miss once.
//! A table doubles its buckets when they are half full, and compacting reduces them. Doubling
//! and compacting visit all rows of the table while packets wait. The time of an insertion is
//! constant on average, but not in the worst case.
//!
//! # Changes
//! - A removed entry closes the paths on which it wins. A modified entry gives them new
//!   programs, or closes them if packets take other paths.
//! - A new entry may take packets from entries of lower priority: from megaflows that
//!   overlap it and whose winner in the entry's flow table it beats. These are found by
//!   their signatures ([`signature`]).
//! - If there are too many changes to check, or too many megaflows to compare with new
//!   entries, a new *era* begins.
//!
//! A megaflow is *stale* if its path is closed, if a new entry may win some of its
//! packets, or if it is of another era. A stale megaflow is not used: the flow tables process
//! the packets that it covers. When such a packet is recorded, the stale megaflow is
//! removed, and a megaflow with the recorded path is added, perhaps with another mask.
//!
//! [FTS25]: classyard::papers#fts25

mod finder;
mod index;
mod listing;
mod room;
mod search;
mod signature;
mod tables;
mod tuples;

use classyard::Winner;
use classyard::author::splitmix;

pub use self::finder::Finder;
use self::finder::Method;
use self::index::Index;
pub(crate) use self::listing::StorePlace;
use self::search::{ProbeOrder, Search};
use self::signature::Demand;
use self::tables::{LAST_ERA, MAX_PATHS, MaskTable, Row, STALE, State};
use self::tuples::SortedTables;
use super::microflow::MegaflowId;
use super::path::{Path, PathId, Paths};
use crate::bits::{Known, Words};
use crate::flow::TableId;
use crate::hash::Secret;
use crate::key::KEY_WORDS;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The maximum number of masks, 2 to [`MAX_MASKS`].
    pub(crate) masks: usize,
    /// The maximum number of megaflows, 1 to [`MAX_MEGAFLOWS`].
    pub(crate) megaflows: usize,
}

/// The largest possible limit of masks. It bounds the mask tables that a packet is looked up
/// in.
pub(crate) const MAX_MASKS: usize = 128;

/// The largest possible limit of megaflows. It bounds the rows of all mask tables, to
/// twice this number.
pub(crate) const MAX_MEGAFLOWS: usize = 1 << 23;

/// The number of bits of a [`MegaflowId`] that hold the row. The other 8 bits hold the table.
const ROW_BITS: u32 = 24;

/// The number of packets whose rows are prefetched together. Measured in
/// `bench/records/constants.md` (Megaflows).
const PREFETCH_PACKETS: usize = 64;

/// Maximum number of megaflows to compare in full with new entries before a vector, which takes
/// about 15 ms. If the signatures of more megaflows agree with new entries, a new era begins. A
/// signature leaves out bits that actions write, so all signatures agree with an entry that
/// matches only such bits. Measured in `bench/records/caches.md` (Changes).
const MAX_COMPARED_MEGAFLOWS: usize = 1 << 18;

/// The result of a search for a packet's megaflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The packet's path.
    Path(PathId),
    /// The packet's megaflow is stale, so the flow tables process the packet.
    Stale,
    /// No megaflow covers the packet.
    Nothing,
}

/// A megaflow that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredMegaflow {
    pub(crate) megaflow: MegaflowId,
    pub(crate) path: PathId,
    /// True if the path has a new program.
    pub(crate) has_new_program: bool,
}

/// A new entry.
pub(crate) struct NewEntry {
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
    megaflows: Megaflows<P>,
    search: ChosenSearch,
    /// The number of megaflows.
    used: usize,
    /// The number of times that new entries matched each bit: it chooses the bits of
    /// signatures.
    demand: Demand,
    /// The position at which the next search for an idle megaflow begins.
    hand: (usize, Row),
    pub(crate) counts: StoreCounts,
    /// Buffer for rows that a change may affect.
    affected: Vec<usize>,
}

/// The megaflows of a store, and the paths of their packets.
struct Megaflows<P> {
    secret: Secret,
    /// A table for each mask.
    tables: Vec<MaskTable>,
    paths: Paths<P>,
    /// From 1 to [`LAST_ERA`].
    era: u32,
    tick: u16,
}

/// The id, key and mask of a megaflow.
type Megaflow<'m> = (MegaflowId, Words, &'m Words);

/// The hits of a search in one table.
#[derive(Clone, Copy, Debug)]
struct Hits {
    all: u32,
    /// The hits for which the callback returned true.
    counted: u32,
}

/// The search that the settings of a store choose.
enum ChosenSearch {
    /// Probes the tables of masks one by one, in an order that changes at times.
    Tables(ProbeOrder),
    /// Probes the tables of masks one by one, in an order that changes with each packet.
    Tuples(SortedTables),
    /// Looks packets up in an engine, which has exactly the rows of the tables.
    Engine(Index),
}

/// Calls a method of the chosen search.
macro_rules! chosen {
    ($chosen:expr, $search:ident => $call:expr) => {
        match $chosen {
            ChosenSearch::Tables($search) => $call,
            ChosenSearch::Tuples($search) => $call,
            ChosenSearch::Engine($search) => $call,
        }
    };
}
use chosen;

impl<P> Store<P> {
    /// Returns a store whose finder gets a seed. If the finder is an engine that cannot be
    /// built, the store probes the hash tables.
    ///
    /// # Panics
    /// If the bounds are outside of the ranges of [`Bounds`].
    pub(crate) fn new(bounds: Bounds, finder: &Finder, seed: u64) -> Store<P> {
        assert!((2..=MAX_MASKS).contains(&bounds.masks), "{bounds:?}");
        assert!(
            (1..=MAX_MEGAFLOWS).contains(&bounds.megaflows),
            "{bounds:?}"
        );
        let by_default = || ChosenSearch::Tables(ProbeOrder::default());
        let search = match &finder.0 {
            Method::Sorted => by_default(),
            Method::SortedTuples(settings) => ChosenSearch::Tuples(SortedTables::new(*settings)),
            Method::Engine(spec) => Index::new(spec.clone().seeded(splitmix(&mut seed.clone())))
                .map_or_else(|_| by_default(), ChosenSearch::Engine),
        };
        Store {
            bounds,
            megaflows: Megaflows {
                secret: Secret::new(seed),
                tables: Vec::new(),
                paths: Paths::default(),
                era: STALE + 1,
                tick: 0,
            },
            search,
            used: 0,
            demand: Demand::default(),
            hand: (0, 0),
            counts: StoreCounts::default(),
            affected: Vec::new(),
        }
    }

    /// Looks up the packets of a vector that `packet_indices` lists. Passes each result with
    /// its megaflow to `found`. Packets without a megaflow stay in `packet_indices`. Unless `all`
    /// is true, the search may leave out mask tables whose probes take more time than they save.
    ///
    /// `found` returns false if the hit does not count for the order of masks in
    /// [`SortedTables`]. Other searches ignore this result.
    pub(crate) fn find<'k>(
        &mut self,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) {
        let megaflows = &mut self.megaflows;
        let probes = chosen!(&mut self.search, search => search.find(megaflows, all, key, packet_indices, found));
        self.counts.probes += probes;
    }

    /// Checks for each packet of `to_check` whether the megaflow covers its key, and passes
    /// the result to `found`.
    ///
    /// Rows and paths are scattered in memory, so the rows of many packets are prefetched
    /// together before any is read.
    pub(crate) fn check_all<'k>(
        &mut self,
        to_check: &[(usize, MegaflowId)],
        key: impl Fn(usize) -> &'k Words,
        mut found: impl FnMut(usize, MegaflowId, Found),
    ) {
        for chunk in to_check.chunks(PREFETCH_PACKETS) {
            let rows = chunk.iter().map(|&(_, megaflow)| table_and_row(megaflow));
            self.megaflows.fetch(rows);
            for &(packet_index, megaflow) in chunk {
                found(
                    packet_index,
                    megaflow,
                    self.megaflows.check(megaflow, key(packet_index)),
                );
            }
        }
    }

    /// Checks whether a megaflow covers a key.
    pub(crate) fn check(&mut self, megaflow: MegaflowId, key: &Words) -> Found {
        self.megaflows.check(megaflow, key)
    }

    /// Adapts the search to recent packets and advances the idle clock. A hit saves the
    /// time of `saved` probes of one table.
    pub(crate) fn tick(&mut self, saved: f64) {
        self.megaflows.tick = self.megaflows.tick.wrapping_add(1);
        let result = chosen!(&mut self.search, search => search.tick(&self.megaflows, saved));
        if result.is_err() {
            self.probe_tables();
        }
    }

    /// Returns the paths of the megaflows.
    pub(crate) fn paths(&self) -> &Paths<P> {
        &self.megaflows.paths
    }

    /// Returns the paths of the megaflows, to be changed.
    pub(crate) fn paths_mut(&mut self) -> &mut Paths<P> {
        &mut self.megaflows.paths
    }

    /// Returns the number of megaflows.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Returns the number of rows, including free rows.
    pub(crate) fn rows(&self) -> usize {
        let tables = self.megaflows.tables.iter();
        tables.map(|table| table.rows() as usize).sum()
    }

    /// Returns the number of masks in use.
    pub(crate) fn masks(&self) -> usize {
        let tables = self.megaflows.tables.iter();
        tables.filter(|table| table.len() > 0).count()
    }

    /// Returns the bytes held, without paths.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.megaflows.tables.iter().map(MaskTable::bytes);
        tables.sum::<usize>() + chosen!(&self.search, search => search.bytes())
    }

    /// Returns the key, mask and path of a megaflow, if it exists.
    pub(crate) fn megaflow(&self, megaflow: MegaflowId) -> Option<(Words, Words, PathId)> {
        let (table, row) = table_and_row(megaflow);
        let table = self.megaflows.tables.get(table)?;
        let state = table.has(row).then(|| table.state(row))?;
        Some((table.key(row), *table.mask(), state.path))
    }

    /// Returns the key, mask and path of every megaflow.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Words, Words, PathId)> {
        self.megaflows.megaflows().map(|(megaflow, key, mask)| {
            let (table, row) = table_and_row(megaflow);
            (key, *mask, self.megaflows.tables[table].state(row).path)
        })
    }
}

impl<P> Megaflows<P> {
    /// Returns all megaflows.
    fn megaflows(&self) -> impl Iterator<Item = Megaflow<'_>> {
        self.tables.iter().enumerate().flat_map(|(number, table)| {
            let rows = (0..table.rows()).filter(|&row| table.has(row));
            rows.map(move |row| (megaflow_id(number, row), table.key(row), table.mask()))
        })
    }

    /// Returns the megaflow of a row.
    fn megaflow(&self, table: usize, row: Row) -> Megaflow<'_> {
        let mask_table = &self.tables[table];
        (
            megaflow_id(table, row),
            mask_table.key(row),
            mask_table.mask(),
        )
    }

    /// Looks up the keys at `packet_indices` in one table. Returns the number of hits; the
    /// indices of the other keys stay. Searches call this for one table after the other,
    /// until every packet has a megaflow.
    #[inline]
    fn find_in_table<'k>(
        &mut self,
        number: usize,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        mut found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) -> Hits {
        let mut hashes = [0; PREFETCH_PACKETS];
        let mut hits = Hits { all: 0, counted: 0 };
        let (mut kept, mut first) = (0, 0);
        while first < packet_indices.len() {
            let chunk_len = (packet_indices.len() - first).min(hashes.len());
            // Computes all hashes first, so that the buckets are prefetched together.
            let mut touched = 0;
            for (hash, &packet_index) in hashes
                .iter_mut()
                .zip(&packet_indices[first..first + chunk_len])
            {
                *hash = self.tables[number].hash(key(packet_index), self.secret);
                touched |= self.tables[number].touch(*hash);
            }
            std::hint::black_box(touched);
            let candidates = hashes[..chunk_len].iter();
            let candidates = candidates.filter_map(|&hash| self.tables[number].candidate(hash));
            self.fetch(candidates.map(|row| (number, row)));
            for offset in 0..chunk_len {
                let packet_index = packet_indices[first + offset];
                match self.tables[number].find(key(packet_index), hashes[offset]) {
                    Some(row) => {
                        let result = self.hit(number, row);
                        let is_counted = found(packet_index, megaflow_id(number, row), result);
                        hits.all += 1;
                        hits.counted += u32::from(is_counted);
                    }
                    None => {
                        packet_indices[kept] = packet_index;
                        kept += 1;
                    }
                }
            }
            first += chunk_len;
        }
        packet_indices.truncate(kept);
        hits
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

    /// Checks whether a megaflow covers a key.
    #[inline]
    fn check(&mut self, megaflow: MegaflowId, key: &Words) -> Found {
        let (table, row) = table_and_row(megaflow);
        match self.tables.get(table) {
            Some(mask_table) if mask_table.covers(row, key) => self.hit(table, row),
            _ => Found::Nothing,
        }
    }

    /// Returns the result for a packet that the megaflow of a row covers, and records its
    /// use.
    #[inline]
    fn hit(&mut self, table: usize, row: Row) -> Found {
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
}

/// Adding megaflows.
impl<P> Store<P> {
    /// Adds a megaflow: packets that agree with `key` on the bits of `mask` take `path`. The
    /// mask of its table may have more bits. If the table already has a megaflow for the
    /// key, that megaflow gets the path. Returns `None` if there are too many paths.
    pub(crate) fn insert(
        &mut self,
        key: &Words,
        mask: &Words,
        path: &Path,
        program: impl FnOnce(&Path) -> P,
    ) -> Option<StoredMegaflow> {
        if self.megaflows.paths.len() >= MAX_PATHS / 2 {
            return None;
        }
        let table = self.table_for(mask);
        let set: Vec<Known> = path
            .steps
            .iter()
            .flat_map(|step| &step.set)
            .copied()
            .collect();
        let (path, has_new_program) = self
            .megaflows
            .paths
            .refer(path, self.megaflows.era, program);
        let result = |table, row| {
            Some(StoredMegaflow {
                megaflow: megaflow_id(table, row),
                path,
                has_new_program,
            })
        };
        let state = State {
            path,
            tick: self.megaflows.tick,
            era: self.megaflows.era,
        };
        let hash = self.megaflows.tables[table].hash(key, self.megaflows.secret);
        if let Some(row) = self.megaflows.tables[table].find(key, hash) {
            let old = self.megaflows.tables[table].state(row).path;
            self.megaflows.tables[table].replace_path(row, state, &set);
            self.megaflows.paths.release(old);
            return result(table, row);
        }
        if self.used >= self.bounds.megaflows {
            self.give_one_up();
        }
        self.limit_rows(table);
        let (secret, demand) = (self.megaflows.secret, &self.demand);
        // If the bucket is full, the megaflow that was idle longest in it is replaced.
        let (row, given_up) = self.megaflows.tables[table].insert(key, state, &set, secret, demand);
        match given_up {
            Some(path) => {
                self.megaflows.paths.release(path);
                self.counts.evicted += 1;
            }
            None => self.used += 1,
        }
        self.counts.added += 1;
        let added =
            chosen!(&mut self.search, search => search.row_added(&self.megaflows, table, row));
        if added.is_err() {
            self.probe_tables();
        }
        result(table, row)
    }
}

/// Changes of entries, which make megaflows stale.
impl<P> Store<P> {
    /// Marks every megaflow as stale if a new entry may win some of its packets. Begins an era
    /// if this takes more than [`MAX_COMPARED_MEGAFLOWS`] comparisons.
    pub(crate) fn entries_added(&mut self, added: &[NewEntry]) {
        for added in added {
            self.demand.note(&added.match_bits);
        }
        let mut rows = std::mem::take(&mut self.affected);
        let mut compared = 0;
        'all: for number in 0..self.megaflows.tables.len() {
            // The signatures of a table are in cache for all entries after the first.
            for added in added {
                rows.clear();
                self.megaflows.tables[number].overlapping(&added.match_bits, &mut rows);
                compared += rows.len();
                if compared > MAX_COMPARED_MEGAFLOWS {
                    self.begin_era();
                    break 'all;
                }
                for &row in &rows {
                    let row = Row::try_from(row).expect("24 bits");
                    if self.megaflows.tables[number].has(row)
                        && self.takes_from(added, (number, row))
                    {
                        let state = self.megaflows.tables[number].state(row);
                        let stale = State {
                            era: STALE,
                            ..state
                        };
                        self.megaflows.tables[number].set_state(row, stale);
                        self.counts.outdated += 1;
                    }
                }
            }
        }
        self.affected = rows;
    }

    /// True if a new entry may win packets of a megaflow that is not stale.
    fn takes_from(&self, added: &NewEntry, (number, row): (usize, Row)) -> bool {
        let mask_table = &self.megaflows.tables[number];
        let state = mask_table.state(row);
        if self.megaflows.is_stale(state) {
            return false;
        }
        let (path, _) = self.megaflows.paths.get(state.path);
        let step = path.steps.iter().find(|step| step.table == added.table);
        step.is_some_and(|step| {
            added.winner.beats(step.winner)
                && mask_table.overlaps(row, &added.match_bits, &step.set)
        })
    }

    /// Makes all megaflows stale.
    pub(crate) fn begin_era(&mut self) {
        self.counts.eras += 1;
        self.megaflows.era += 1;
        if self.megaflows.era > LAST_ERA {
            // Eras begin again. No megaflow may seem to be of a later era.
            (0..self.megaflows.tables.len()).for_each(|table| self.clear_table(table));
            self.megaflows.era = STALE + 1;
        }
    }

    /// Removes a stale megaflow, if it still exists, and its path if no other megaflow has it.
    pub(crate) fn drop_stale(&mut self, megaflow: MegaflowId, key: &Words) {
        let (table, row) = table_and_row(megaflow);
        let stale = |mask_table: &MaskTable| {
            mask_table.covers(row, key) && self.megaflows.is_stale(mask_table.state(row))
        };
        if self.megaflows.tables.get(table).is_some_and(stale) {
            self.remove(table, row);
        }
    }
}

/// Returns the id of the megaflow in a row of a table.
fn megaflow_id(table: usize, row: Row) -> MegaflowId {
    let table = u32::try_from(table).expect("few masks");
    MegaflowId::new(table << ROW_BITS | row).expect("fewer masks than 255")
}

/// Returns the table and the row of a megaflow.
#[inline]
fn table_and_row(megaflow: MegaflowId) -> (usize, Row) {
    let number = megaflow.number();
    (
        (number >> ROW_BITS) as usize,
        number & ((1 << ROW_BITS) - 1),
    )
}

const _: () = assert!(KEY_WORDS < 256);

#[cfg(test)]
mod tests;
