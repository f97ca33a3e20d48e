//! What a tuple space would cost, from the tables that it would have.
//!
//! Bytes follow from the structures: records and ids are reserved for all rules,
//! slots double. Times are sums of prices: a lookup probes the tables whose best
//! rule is better than its winner, and compares the rules of the chains that it
//! meets, in its winner's table and in others.

#![allow(clippy::cast_precision_loss)] // estimates

use super::arena::{Arena, EntryIndex};
use super::slots::Slots;
use super::{Form, Table, TableNumber};
use crate::engine::adapter::at_width;
use crate::estimate::{Costs, Shape, Tuple, grown, map_bytes, whole};
use crate::machine::Work;
use crate::rule::RuleId;
use crate::schema::Schema;

// Instructions; what they were fitted to: see `crate::estimate`.
/// A lookup, whatever it probes.
const LOOKUP: f64 = 80.0;
/// Hashing a key and finding an empty slot, and for each word of the key.
const PROBE: f64 = 30.0;
const PROBE_WORD: f64 = 5.0;
/// Comparing a rule, without fetching it.
const COMPARE: f64 = 40.0;
/// An update, without fetching what it reads and writes; for each word of the
/// key; and making or dropping a table.
const UPDATE: f64 = 700.0;
const UPDATE_WORD: f64 = 30.0;
const TABLE: f64 = 1500.0;
/// Lines that an update fetches, one after the other: of the ids, of slots, of
/// records and of tables.
const FETCHED: [f64; 4] = [4.0, 2.0, 6.0, 2.0];
/// Looking whether a rule fits a table.
const FIT: f64 = 15.0;
/// Storing and linking a rule while building, and the part of an update's
/// fetches that this has: ids and records are written in their order.
const STORE: f64 = 550.0;
const STORE_FETCHED: f64 = 0.25;
/// Bits of a mask for which half of the keys that are in no rule of a table find
/// one that is.
const HALF: f64 = 16.0;

/// A table of a space to come.
#[derive(Clone, Debug)]
pub(in crate::engine) struct TableEstimate {
    pub(in crate::engine) rules: f64,
    /// Different masked keys.
    pub(in crate::engine) keys: f64,
    /// The share of all rules that are better than the table's best.
    pub(in crate::engine) best: f64,
    /// The bits of its mask.
    pub(in crate::engine) bits: f64,
}

/// The part of a mask's bits that random values would need to differ as much:
/// few protocols and ports are in use.
const TOLD: f64 = 0.5;

/// How many times fewer keys there are under half of the bits, as a power of two.
const LOST: f64 = 3.0;

impl TableEstimate {
    /// No rules yet.
    pub(in crate::engine) fn empty() -> TableEstimate {
        TableEstimate {
            rules: 0.0,
            keys: 0.0,
            best: 1.0,
            bits: 0.0,
        }
    }

    /// The rules of a tuple under a mask that has no other bits than its own.
    pub(in crate::engine) fn of_tuple(tuple: &Tuple, mask: &[u64]) -> TableEstimate {
        let all = ones(&tuple.mask);
        let bits = ones(mask);
        let share = if all > 0.0 { bits / all } else { 1.0 };
        let mut keys = tuple.keys as f64;
        if share < 1.0 {
            keys = (keys * share.powf(LOST)).clamp(1.0, most_keys(mask));
        }
        TableEstimate {
            rules: tuple.rules as f64,
            keys,
            best: tuple.best,
            bits,
        }
    }

    /// With the rules of another.
    pub(in crate::engine) fn add(&mut self, other: &TableEstimate) {
        self.rules += other.rules;
        self.keys += other.keys;
        self.best = self.best.min(other.best);
        if self.bits == 0.0 {
            self.bits = other.bits;
        }
    }

    /// Rules of a chain, in the mean over keys.
    fn chain(&self) -> f64 {
        self.rules / self.keys.max(1.0)
    }
}

/// The most different values that rules have under a mask.
pub(in crate::engine) fn most_keys(mask: &[u64]) -> f64 {
    (ones(mask) * TOLD).exp2()
}

/// The number of a mask's bits.
fn ones(mask: &[u64]) -> f64 {
    f64::from(mask.iter().map(|word| word.count_ones()).sum::<u32>())
}

/// How the table of a rule is found.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Placing {
    /// In a map from masks.
    ByMask,
    /// One table is tried after the other.
    ByTrial {
        /// What choosing masks and moving rules costs while building, in
        /// instructions a rule.
        moves: f64,
    },
}

/// What is known of a space before it is built.
pub(in crate::engine) struct SpaceEstimate<'a> {
    pub(in crate::engine) shape: &'a Shape,
    pub(in crate::engine) form: Form,
    pub(in crate::engine) placing: Placing,
}

impl SpaceEstimate<'_> {
    /// The space with these tables.
    pub(in crate::engine) fn estimate(
        &self,
        tables: impl IntoIterator<Item = TableEstimate>,
    ) -> Costs {
        let tables: Vec<TableEstimate> = tables.into_iter().collect();
        let (schema, rules) = (self.shape.schema(), self.shape.rules());
        let keys = tables.iter().map(|table| whole(table.keys.round()));
        let slots = match self.form {
            Form::Private => keys.map(Slots::bytes_for).sum(),
            Form::Shared => {
                let own = tables.len() * Slots::bytes_for(0);
                Slots::bytes_for(keys.sum()) + own
            }
        };
        let records = at_width!(schema, records(schema, rules));
        let ids = map_bytes::<RuleId, EntryIndex>(rules);
        let table = at_width!(schema, table_bytes()) + size_of::<(u64, TableNumber)>();
        let bytes = records + ids + slots + grown(tables.len()) * table;

        let words = schema.key_words() as f64;
        let record_lines = (records as f64 / 64.0 / rules.max(1) as f64).max(1.0);
        let all = (rules as f64).max(1.0);
        let (mut probes, mut compares) = (0.0, 0.0);
        for table in &tables {
            let found = (-table.bits / HALF).exp2();
            let probing = 1.0 - table.best;
            let own = table.rules / all;
            let chain = table.chain();
            probes += probing;
            compares += own * (1.0 + (chain - 1.0) * 0.5);
            compares += (probing - own).max(0.0) * found * chain;
        }
        let instructions = LOOKUP + probes * (PROBE + PROBE_WORD * words) + compares * COMPARE;
        let batch = Work::of(instructions)
            .reading_ahead(probes, slots)
            .reading_ahead(compares * record_lines, records);
        let single = Work::of(instructions)
            .mispredicting(1.0)
            .reading_ahead(probes, slots)
            .reading(compares, records);

        let places = [ids, slots, records, tables.len() * table];
        let fetching = |part: f64| {
            let fetches = places.iter().zip(FETCHED);
            fetches.fold(Work::default(), |work, (&bytes, lines)| {
                work.reading(lines * part, bytes)
            })
        };
        let making = (tables.len() as f64 / all).min(1.0) * TABLE;
        let (find, moves) = match self.placing {
            Placing::ByMask => (0.0, 0.0),
            Placing::ByTrial { moves } => (FIT * 0.5 * tables.len() as f64, moves),
        };
        let chains: f64 = tables.iter().map(|t| t.rules / all * t.chain()).sum();
        let store = Work::of(STORE + UPDATE_WORD * words + making + find + moves)
            .reading(0.5 * chains, records)
            + fetching(STORE_FETCHED);
        // A rule that comes looks for a table and walks a chain; one that goes
        // needs no table found.
        let update = Work::of(UPDATE + UPDATE_WORD * words + making + 0.5 * find)
            .reading(0.25 * chains, records)
            + fetching(1.0);
        Costs {
            bytes,
            build: store * all,
            batch,
            single,
            update: Some(update),
        }
    }
}

fn records<const W: usize>(schema: &Schema, rules: usize) -> usize {
    Arena::<W>::bytes_for(schema, rules)
}

fn table_bytes<const W: usize>() -> usize {
    size_of::<Table<W>>()
}
