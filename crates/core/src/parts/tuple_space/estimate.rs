//! Estimated costs of a tuple space, from the tables that it would have.
//!
//! Bytes follow from the structures: memory for records and ids is reserved for all
//! rules, and slots double. Probes and comparisons of lookups are counted over a sample.

#![allow(clippy::cast_precision_loss)] // estimates

use super::arena::{Arena, EntryIndex};
use super::slots::Slots;
use super::{Form, Table, TableNumber};
use crate::contract::adapter::at_width;
use crate::contract::observe::{Met, Prices};
use crate::cost::estimate::{Costs, Shape, Tuple, grown, map_bytes, whole};
use crate::cost::machine::Work;
use crate::model::rule::RuleId;
use crate::model::schema::Schema;

/// Costs of updates and of building; `crate::cost::estimate` describes the fit.
#[derive(Clone, Copy, Debug)]
struct Changes {
    /// Instructions of an update, for each word of a key beyond two, and for each
    /// table.
    update: f64,
    update_word: f64,
    update_table: f64,
    /// Cache lines that an update reads one after the other.
    lines: f64,
    /// Instructions of placing a rule in a build, in the same three parts.
    place: f64,
    place_word: f64,
    place_table: f64,
}

/// For tables in a map from masks.
const BY_MASK: Changes = Changes {
    update: 650.0,
    update_word: 71.0,
    update_table: 0.5,
    lines: 9.0,
    place: 1060.0,
    place_word: 190.0,
    place_table: 0.0,
};

/// For tables that are tried one after the other.
const BY_TRIAL: Changes = Changes {
    update: 590.0,
    update_word: 15.0,
    update_table: 1.5,
    lines: 13.0,
    place: 1250.0,
    place_word: 100.0,
    place_table: 10.0,
};

/// Fixed instructions of a build; `crate::cost::estimate` describes the fit.
const BUILD_WORK: f64 = 2.0e5;

/// A table of a planned space.
#[derive(Clone, Debug)]
pub(crate) struct TableEstimate {
    pub(crate) rules: f64,
    /// Different masked keys.
    pub(crate) keys: f64,
    /// The share of all rules that are better than the table's best.
    pub(crate) best: f64,
}

/// The share of a mask's bits that determine the number of different values: few
/// protocols and ports are in use. Measured in `bench/records/constants.md`
/// (Estimates of TupleMerge).
const EFFECTIVE_BITS_SHARE: f64 = 0.5;

/// Halving a mask's bits divides the number of keys by two to this power. Measured
/// in `bench/records/constants.md` (Estimates of TupleMerge).
const KEYS_POWER: f64 = 3.0;

impl TableEstimate {
    /// Returns a table without rules.
    pub(crate) fn empty() -> TableEstimate {
        TableEstimate {
            rules: 0.0,
            keys: 0.0,
            best: 1.0,
        }
    }

    /// Returns a table with the rules of a tuple, under a mask that is part of the
    /// tuple's.
    pub(crate) fn of_tuple(tuple: &Tuple, mask: &[u64]) -> TableEstimate {
        let tuple_bits = ones(&tuple.mask);
        let bits = ones(mask);
        let share = if tuple_bits > 0.0 {
            bits / tuple_bits
        } else {
            1.0
        };
        let mut keys = tuple.keys as f64;
        if share < 1.0 {
            keys = (keys * share.powf(KEYS_POWER)).clamp(1.0, most_keys(mask));
        }
        TableEstimate {
            rules: tuple.rules as f64,
            keys,
            best: tuple.best,
        }
    }

    /// Adds the rules of another table.
    pub(crate) fn add(&mut self, other: &TableEstimate) {
        self.rules += other.rules;
        self.keys += other.keys;
        self.best = self.best.min(other.best);
    }
}

/// Returns the largest number of different values that rules have under a mask.
pub(crate) fn most_keys(mask: &[u64]) -> f64 {
    (ones(mask) * EFFECTIVE_BITS_SHARE).exp2()
}

/// The number of one bits in a mask.
fn ones(mask: &[u64]) -> f64 {
    f64::from(mask.iter().map(|word| word.count_ones()).sum::<u32>())
}

/// The way to find the table of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Placing {
    /// In a map from masks.
    ByMask,
    /// By trying one table after the other.
    ByTrial {
        /// Instructions a rule for choosing masks and moving rules in a build.
        moves: f64,
    },
}

/// The data of a space that its estimate depends on.
pub(crate) struct SpaceEstimate<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) form: Form,
    pub(crate) placing: Placing,
    /// Probes and comparisons of a lookup.
    pub(crate) met: Met,
    /// Costs of lookups, in batches and single.
    pub(crate) prices: [Prices; 2],
}

impl SpaceEstimate<'_> {
    /// Returns the costs of a space with these tables.
    pub(crate) fn estimate(&self, tables: impl IntoIterator<Item = TableEstimate>) -> Costs {
        let tables: Vec<TableEstimate> = tables.into_iter().collect();
        let (schema, rules) = (self.shape.schema(), self.shape.rules());
        let keys = tables.iter().map(|table| whole(table.keys.round()));
        let slots = match self.form {
            Form::Private => keys.map(Slots::bytes_for).sum(),
            Form::Shared => {
                let private = tables.len() * Slots::bytes_for(0);
                Slots::bytes_for(keys.sum()) + private
            }
        };
        let records = at_width!(schema, records(schema, rules));
        let ids = map_bytes::<RuleId, EntryIndex>(rules);
        let table = at_width!(schema, table_bytes()) + size_of::<(u64, TableNumber)>();
        let bytes = records + ids + slots + grown(tables.len()) * table;

        let rule_count = (rules as f64).max(1.0);
        let batch = self.prices[0].batch(&self.met, self.shape, bytes);
        let single = self.prices[1].single(&self.met, self.shape, bytes);
        let (changes, moves) = match self.placing {
            Placing::ByMask => (BY_MASK, 0.0),
            Placing::ByTrial { moves } => (BY_TRIAL, moves),
        };
        let (tables, extra_words) = (
            tables.len() as f64,
            (schema.key_words() as f64 - 2.0).max(0.0),
        );
        let placing =
            changes.place + changes.place_word * extra_words + changes.place_table * tables;
        let update =
            changes.update + changes.update_word * extra_words + changes.update_table * tables;
        Costs {
            bytes,
            build: Work::of(BUILD_WORK + (placing + moves) * rule_count),
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
