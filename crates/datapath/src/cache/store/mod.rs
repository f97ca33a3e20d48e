//! The megaflows of a worker: keys under masks, and the paths of the packets that they
//! cover.
//!
//! All packets that a megaflow covers take the megaflow's path. So if several megaflows
//! cover a packet, each of them gives the right path, and the first match ends the search.
//! The megaflows of one mask are in a table ([`table`]). There are two ways to search
//! ([`rows`]): the tables are probed, those most likely to match first ([`order`]), or an
//! engine of the registry returns the row that covers a packet ([`index`]). The rows are
//! in the tables in both cases.
//!
//! # Bounds
//! The settings limit the number of masks and megaflows, whatever packets arrive. If all
//! masks are in use, a megaflow with another mask gets an existing mask that has all of
//! its bits and perhaps more: it covers fewer packets, and is still right. The last mask
//! is reserved for megaflows that fit no other mask; it has all bits of every key word
//! that some mask uses. If the maximum number of megaflows is cached, a few are compared,
//! and the megaflow that was idle longest is removed.
//!
//! # Changes
//! - An entry that is removed, or gets other instructions, closes the paths on which it
//!   wins.
//! - A new entry may take packets from entries of lower priority: from megaflows that
//!   overlap it and whose winner in its table it beats. These are found by their
//!   signatures ([`signature`]).
//! - If there are too many changes to check, a new *era* begins.
//!
//! A megaflow is *stale* if its path is closed, if a new entry may win some of its
//! packets, or if it is of an older era. A stale megaflow is not used. The tables process
//! the next packet that it covers, and the path learned from that packet replaces the
//! megaflow.

mod index;
mod insert;
mod invalidate;
mod order;
mod rows;
mod search;
mod signature;
mod table;

use classyard::{EngineSpec, Winner};

use self::rows::{PREFETCH_PACKETS, Rows, Search};
use self::search::ChosenSearch;
use self::signature::Demand;
use self::table::{MaskTable, Row, Secret};
use super::bits::{Known, Words};
use super::entry_paths::PathId;
use super::microflow::CachedDecision;
use super::path::Paths;
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
    pub(crate) has_new_program: bool,
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
    rows: Rows<P>,
    search: ChosenSearch,
    /// The number of megaflows.
    used: usize,
    demand: Demand,
    /// The position at which the next search for an idle megaflow begins.
    hand: (usize, Row),
    pub(crate) counts: StoreCounts,
    /// Buffer for rows that a change may affect.
    affected: Vec<usize>,
}

impl<P> Store<P> {
    /// Returns a store that finds megaflows by an engine, which gets a seed, or by hash
    /// tables for `None`.
    ///
    /// # Panics
    /// If the bounds are outside of the ranges of [`Bounds`].
    pub(crate) fn new(bounds: Bounds, engine: Option<&EngineSpec>, seed: u64) -> Store<P> {
        assert!((2..=MAX_MASKS).contains(&bounds.masks), "{bounds:?}");
        assert!(
            (1..=MAX_MEGAFLOWS).contains(&bounds.megaflows),
            "{bounds:?}"
        );
        let engine = engine.map(|spec| spec.clone().seeded(mix(seed)));
        Store {
            bounds,
            rows: Rows {
                secret: Secret([seed, seed.rotate_left(32) | 1].map(mix)),
                tables: Vec::new(),
                paths: Paths::default(),
                era: 0,
                tick: 0,
            },
            search: ChosenSearch::new(engine),
            used: 0,
            demand: Demand::default(),
            hand: (0, 0),
            counts: StoreCounts::default(),
            affected: Vec::new(),
        }
    }

    /// Returns the paths of the megaflows.
    pub(crate) fn paths(&self) -> &Paths<P> {
        &self.rows.paths
    }

    /// Returns the paths of the megaflows, to be changed.
    pub(crate) fn paths_mut(&mut self) -> &mut Paths<P> {
        &mut self.rows.paths
    }

    /// Returns the number of megaflows.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Returns the number of masks in use.
    pub(crate) fn masks(&self) -> usize {
        let tables = self.rows.tables.iter();
        tables.filter(|table| table.len() > 0).count()
    }

    /// Returns the bytes held, without paths.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.rows.tables.iter().map(MaskTable::bytes);
        tables.sum::<usize>() + self.search.bytes()
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
            self.rows.fetch(rows);
            for &(place, decision) in decisions {
                found(place, decision, self.rows.check(decision, key(place)));
            }
        }
    }

    /// Checks whether the megaflow of a decision covers a key.
    pub(crate) fn check(&mut self, decision: CachedDecision, key: &Words) -> Found {
        self.rows.check(decision, key)
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
        let probes = self.search.find(&mut self.rows, all, key, places, found);
        self.counts.probes += probes;
    }

    /// Adapts the search to recent packets and advances the idle clock. A hit saves the
    /// time of `saved` probes of one table.
    pub(crate) fn tick(&mut self, saved: f64) {
        self.rows.tick = self.rows.tick.wrapping_add(1);
        if self.search.tick(&self.rows, saved).is_err() {
            self.search.replace_engine(&self.rows);
        }
    }

    /// Returns the key, mask and path of a decision's megaflow.
    pub(crate) fn megaflow(&self, decision: CachedDecision) -> Option<(Words, Words, PathId)> {
        let (table, row) = parts(decision);
        let table = self.rows.tables.get(table)?;
        let state = table.has(row).then(|| table.state(row))?;
        Some((table.key(row), *table.mask(), state.path))
    }

    /// Returns the key, mask and path of every megaflow.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Words, Words, PathId)> {
        self.rows.megaflows().map(|(decision, key, mask)| {
            let (table, row) = parts(decision);
            (key, *mask, self.rows.tables[table].state(row).path)
        })
    }
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
