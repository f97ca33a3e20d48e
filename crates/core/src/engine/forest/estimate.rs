//! What a forest would cost, from tuples instead of rules.
//!
//! ```text
//! for tuple, the commonest first:
//!     join the table whose mask keeps most bits in common with it, if these
//!     are enough to tell the rules apart; or make one
//! ```
//! Enough are some more bits than the buckets need, since bits of rules are no
//! random numbers. That says how large tables are. What lookups meet is found out
//! over a sample.

#![allow(clippy::cast_precision_loss)] // estimates

use super::settings::{NAME, wants_fingerprints};
use super::structure::Structure;
use crate::engine::EngineSpec;
use crate::engine::adapter::at_width;
use crate::engine::observe::{Growth, Met, Prices};
use crate::error::BuildError;
use crate::estimate::{Costs, Shape, Tuple, whole};
use crate::machine::Work;

/// Tuples that are looked at: the commonest. The others join the tables of
/// these.
const LOOKED_AT: usize = 1024;

/// The bits that a mask has for each bit that random values would need.
const BITS: f64 = 1.5;

/// Rules of a bucket, against the mean that learning aims at.
const BUCKET: f64 = 0.75;

/// How what lookups meet grows with the number of rules.
const GROWTH: Growth = [0.0, 0.3];

/// What lookups cost, in batches and alone; what it was fitted to: see
/// `crate::estimate`.
const BATCH: Prices = Prices {
    lookup: 15.0,
    probe_word: 0.7,
    compare: 12.0,
    compare_word: 3.0,
    probe_lines: 3.5,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    probe: 134.0,
    probe_word: 9.8,
    compare: 26.0,
    compare_word: 6.2,
    lines: 0.5,
    ..Prices::NONE
};
/// The same where runs begin with fingerprints, of fifteen fields.
const BATCH_WIDE: Prices = Prices {
    lookup: 10.0,
    probe: 24.0,
    compare: 21.0,
    probe_lines: 2.3,
    ..Prices::NONE
};
const SINGLE_WIDE: Prices = Prices {
    lookup: 470.0,
    probe: 137.0,
    compare: 30.0,
    ..Prices::NONE
};

// Instructions; what they were fitted to: see `crate::estimate`.
/// Going to nested tables.
const NESTED: f64 = 900.0;
/// An update, without fetching what it writes, and for each word of the row.
const UPDATE: f64 = 1700.0;
const UPDATE_WORD: f64 = 65.0;
/// Lines that an update reads, one after the other.
const UPDATE_LINES: f64 = 11.0;
/// Learning: once, and for each tuple, each less for fewer rules than those; for
/// all tuples at most; dealing a rule out.
const LEARN: f64 = 7.0e7;
const LEARN_TUPLE: f64 = 3.0e5;
const LEARN_FEW: [f64; 2] = [500.0, 5000.0];
const LEARN_MOST: f64 = 3.0e8;
const DEAL: f64 = 2000.0;
/// How many times that is where runs begin with fingerprints, for which more is
/// searched.
const LEARN_WIDE: f64 = 3.0;

/// A table of the root.
struct Table {
    mask: Vec<u64>,
    rules: f64,
    keys: f64,
}

impl Table {
    fn new(tuple: &Tuple) -> Table {
        Table {
            mask: tuple.mask.to_vec(),
            rules: tuple.rules as f64,
            keys: tuple.keys as f64,
        }
    }

    fn add(&mut self, tuple: &Tuple) {
        self.rules += tuple.rules as f64;
        self.keys += tuple.keys as f64;
    }

    /// Slots that hold anything: no more than the mask has values.
    fn buckets(&self, target: f64) -> f64 {
        let wanted = (self.rules / (target * BUCKET)).min(self.keys).max(1.0);
        wanted.min(f64::from(common(&self.mask, &self.mask)).exp2())
    }
}

/// The bits that two masks have in common.
fn common(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}

/// The tables of the root, as far as they are worth one.
fn tables(shape: &Shape, target: f64) -> Vec<Table> {
    let (looked_at, others) = shape.tuples().split_at(shape.tuples().len().min(LOOKED_AT));
    let mut tables: Vec<Table> = Vec::new();
    for tuple in looked_at {
        let enough = |table: &Table| {
            let rules = table.rules + tuple.rules as f64;
            let needed = (rules / target).max(1.0).log2() * BITS;
            f64::from(common(&table.mask, &tuple.mask)) >= needed
        };
        let fitting = tables.iter_mut().filter(|table| enough(table));
        match fitting.max_by_key(|table| common(&table.mask, &tuple.mask)) {
            Some(table) => {
                for (bits, other) in table.mask.iter_mut().zip(&tuple.mask) {
                    *bits &= other;
                }
                table.add(tuple);
            }
            None => tables.push(Table::new(tuple)),
        }
    }
    if let Some(largest) = tables.first_mut() {
        others.iter().for_each(|tuple| largest.add(tuple));
    }
    tables
}

/// For [`Engine::estimate`](crate::engine::Engine::estimate).
pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    at_width!(shape.schema(), at(spec, shape))
}

fn at<const W: usize>(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let (schema, rules) = (shape.schema(), shape.rules());
    let options = spec.options();
    let fingerprints = wants_fingerprints(options.choice("fingerprints"), shape.sample());
    let capacity = Structure::<W>::capacity_for(schema, fingerprints);
    if rules > capacity {
        return Err(BuildError::EngineFull {
            engine: NAME.to_owned(),
            rules,
            limit: capacity,
        });
    }
    let (target, most) = (options.whole("bucket") as f64, options.whole("most") as f64);
    let tables = tables(shape, target);
    let all = (rules as f64).max(1.0);

    let (mut slots, mut count) = (0, 0);
    let mut nested = 0.0;
    for table in &tables {
        let buckets = table.buckets(target);
        slots += whole(buckets.ceil()).next_power_of_two();
        count += 1;
        let run = table.rules / buckets;
        let own = table.rules / all;
        if run > most {
            // Tables for each bucket, of as many slots as it has keys.
            nested += own;
            count += whole(buckets);
            slots += whole(table.rules / target);
        }
    }
    let rows = Structure::<W>::rule_bytes_for(schema, fingerprints, rules, shape.id_groups());
    let bytes = rows + Structure::<W>::table_bytes_for(count, slots);

    let met = Met::of(spec, shape, GROWTH)?;
    let (batch, single) = match fingerprints {
        true => (BATCH_WIDE, SINGLE_WIDE),
        false => (BATCH, SINGLE),
    };
    let few = (all / LEARN_FEW[0]).min(1.0);
    let some = (all / LEARN_FEW[1]).min(1.0);
    let kinds = LEARN_TUPLE * shape.tuples().len() as f64;
    let more_search = if fingerprints { LEARN_WIDE } else { 1.0 };
    let learning = more_search * (LEARN * few + (kinds * some).min(LEARN_MOST));
    let more = (W as f64 - 2.0).max(0.0);
    let update =
        Work::of(UPDATE + UPDATE_WORD * more + nested * NESTED).reading(UPDATE_LINES, bytes);
    Ok(Costs {
        bytes,
        build: Work::of(learning + DEAL * all),
        batch: batch.batch(&met, shape, bytes),
        single: single.single(&met, shape, bytes),
        update: Some(update),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::schema::Schema;

    fn shape(tuples: &[([u32; 5], usize)]) -> Shape {
        let schema = Schema::ipv4_5tuple();
        let tuples = tuples.iter();
        let tuples = tuples.map(|(lengths, rules)| Tuple::of_lengths(&schema, lengths, *rules));
        Shape::new(&schema, tuples.collect())
    }

    #[test]
    fn tuples_share_a_table_while_enough_bits_are_left() {
        let alike = shape(&[([32, 32, 0, 0, 8], 5000), ([32, 24, 0, 16, 0], 4000)]);
        let [both] = &tables(&alike, 2.0)[..] else {
            panic!("more than one table");
        };
        assert_eq!(common(&both.mask, &both.mask), 32 + 24);
        let apart = shape(&[([32, 0, 0, 0, 8], 5000), ([0, 32, 0, 0, 8], 4000)]);
        assert_eq!(tables(&apart, 2.0).len(), 2);
        // Eight bits are enough for a few.
        let few = shape(&[([32, 0, 0, 0, 8], 20), ([0, 32, 0, 0, 8], 20)]);
        assert_eq!(tables(&few, 2.0).len(), 1);
    }

    /// One table is probed where all rules have the same mask, several where masks
    /// have no bits in common.
    #[test]
    fn rules_of_masks_apart_are_slower() {
        let spec = EngineSpec::named("forest").unwrap();
        let estimate = |tuples: &[([u32; 5], usize)]| {
            let estimate = spec.estimate(&shape(tuples), &Limits::default());
            estimate.unwrap().lookup_ns
        };
        let alike = estimate(&[([32, 32, 16, 16, 8], 2000)]);
        let apart = estimate(&[
            ([32, 0, 0, 0, 0], 500),
            ([0, 32, 0, 0, 0], 500),
            ([0, 0, 16, 0, 0], 500),
            ([0, 0, 0, 16, 0], 500),
        ]);
        assert!(apart > 1.2 * alike, "{apart} ns, {alike} ns");
    }
}
