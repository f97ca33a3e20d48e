//! What a tuple space would cost, from the tables that it would have.
//!
//! Bytes follow from the structures: records and ids are reserved for all rules,
//! slots double. What lookups meet is found out over a sample.

#![allow(clippy::cast_precision_loss)] // estimates

use super::arena::{Arena, EntryIndex};
use super::slots::Slots;
use super::{Form, Table, TableNumber};
use crate::engine::adapter::at_width;
use crate::engine::observe::{Met, Prices};
use crate::estimate::{Costs, Shape, Tuple, grown, map_bytes, whole};
use crate::machine::Work;
use crate::rule::RuleId;
use crate::schema::Schema;

/// What updates and building cost; what it was fitted to: see `crate::estimate`.
#[derive(Clone, Copy, Debug)]
struct Changes {
    /// Instructions of an update, for each word of a key beyond two, and for each
    /// table.
    update: f64,
    update_word: f64,
    update_table: f64,
    /// Lines that an update reads, one after the other.
    lines: f64,
    /// Instructions of placing a rule while building, likewise.
    place: f64,
    place_word: f64,
    place_table: f64,
}

/// Tables in a map from masks.
const BY_MASK: Changes = Changes {
    update: 650.0,
    update_word: 71.0,
    update_table: 0.5,
    lines: 9.0,
    place: 1060.0,
    place_word: 190.0,
    place_table: 0.0,
};

/// Tables that are tried one after the other.
const BY_TRIAL: Changes = Changes {
    update: 590.0,
    update_word: 15.0,
    update_table: 1.5,
    lines: 13.0,
    place: 1250.0,
    place_word: 100.0,
    place_table: 10.0,
};

/// Instructions of building, whatever the rules.
const BUILD: f64 = 2.0e5;

/// A table of a space to come.
#[derive(Clone, Debug)]
pub(in crate::engine) struct TableEstimate {
    pub(in crate::engine) rules: f64,
    /// Different masked keys.
    pub(in crate::engine) keys: f64,
    /// The share of all rules that are better than the table's best.
    pub(in crate::engine) best: f64,
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
        }
    }

    /// With the rules of another.
    pub(in crate::engine) fn add(&mut self, other: &TableEstimate) {
        self.rules += other.rules;
        self.keys += other.keys;
        self.best = self.best.min(other.best);
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
    /// What lookups meet.
    pub(in crate::engine) met: Met,
    /// What they cost, in batches and alone.
    pub(in crate::engine) prices: [Prices; 2],
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

        let all = (rules as f64).max(1.0);
        let batch = self.prices[0].batch(&self.met, self.shape, bytes);
        let single = self.prices[1].single(&self.met, self.shape, bytes);
        let (changes, moves) = match self.placing {
            Placing::ByMask => (BY_MASK, 0.0),
            Placing::ByTrial { moves } => (BY_TRIAL, moves),
        };
        let (tables, more) = (
            tables.len() as f64,
            (schema.key_words() as f64 - 2.0).max(0.0),
        );
        let place = changes.place + changes.place_word * more + changes.place_table * tables;
        let update = changes.update + changes.update_word * more + changes.update_table * tables;
        Costs {
            bytes,
            build: Work::of(BUILD + (place + moves) * all),
            batch,
            single,
            update: Some(Work::of(update).reading(changes.lines, bytes)),
        }
    }
}

fn records<const W: usize>(schema: &Schema, rules: usize) -> usize {
    Arena::<W>::bytes_for(schema, rules)
}

fn table_bytes<const W: usize>() -> usize {
    size_of::<Table<W>>()
}
