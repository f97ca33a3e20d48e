//! The estimated cost of a forest, from tuples instead of rules.
//!
//! ```text
//! for each tuple, the most frequent first:
//!     join the table whose mask has most bits in common with the tuple's, if
//!     these bits are enough to distinguish the rules; or else make a table
//! ```
//! Enough bits are somewhat more than the buckets need, since bits of rules are not
//! random. This gives the sizes of tables. The probes and comparisons of lookups are
//! counted on a sample.

#![allow(clippy::cast_precision_loss)] // estimates

use super::settings::{NAME, wants_fingerprints};
use super::structure::Structure;
use crate::contract::adapter::at_width;
use crate::contract::observe::{Growth, Met, Prices};
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, Tuple, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::parts::simd::Isa;

/// The most frequent tuples, which may open tables. All other tuples join the first
/// table. Bounds the time of an estimate.
const MAX_TABLE_TUPLES: usize = 1024;

/// Mask bits needed in place of each bit of a random value. Measured in
/// `bench/records/constants.md` (Estimates of forest).
const MASK_BITS_PER_NEEDED_BIT: f64 = 1.5;

/// The mean number of rules in a bucket, divided by the target of learning. Measured
/// in `bench/records/constants.md` (Estimates of forest).
const BUCKET_FILL: f64 = 0.75;

/// The growth of the sampled counts with the number of rules. `bench/README.md`
/// (Estimates) has how it was chosen.
const GROWTH: Growth = [0.0, 0.3];

/// The prices of a lookup with AVX-512, in batches and alone; `crate::cost::estimate`
/// describes the measurements that they were fitted to.
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
/// Prices for runs with fingerprints, over rules of fifteen fields.
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

/// Factors of a lookup's instructions with a set of vectors, in batches and alone; 1 with
/// AVX-512. With them, estimated times have the measured ratios of
/// `bench/records/forest-lookup.md` (With each instruction set). NEON was not measured:
/// its vectors have half the width of AVX2, so its factors are the means of AVX2 and of no
/// vectors.
fn instruction_factors(isa: Isa) -> [f64; 2] {
    const AVX2: [f64; 2] = [1.15, 1.1];
    const SCALAR: [f64; 2] = [5.3, 1.3];
    match isa.name() {
        "avx512" => [1.0, 1.0],
        "avx2" => AVX2,
        "neon" => [0, 1].map(|kind| AVX2[kind].midpoint(SCALAR[kind])),
        _ => SCALAR,
    }
}

// In instructions; `crate::cost::estimate` describes the measurements.
/// The step to nested tables.
const NESTED_WORK: f64 = 900.0;
/// An update without reading the memory that it changes, and for each word of the
/// row.
const UPDATE_WORK: f64 = 1700.0;
const UPDATE_WORD: f64 = 65.0;
/// Cache lines that an update reads, one after the other.
const UPDATE_LINES: f64 = 11.0;
/// Learning: its fixed part and the part for each tuple, which grow up to these
/// numbers of rules; the maximum for all tuples; and dealing a rule out to its
/// table.
const LEARN_WORK: f64 = 7.0e7;
const LEARN_TUPLE: f64 = 3.0e5;
const LEARN_FULL_RULES: [f64; 2] = [500.0, 5000.0];
const LEARN_TUPLES_MAX: f64 = 3.0e8;
const DEAL_WORK: f64 = 2000.0;
/// The factor of the learning cost for runs with fingerprints, which search more.
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

    /// The number of filled slots: at most the number of values under the mask.
    fn buckets(&self, target: f64) -> f64 {
        let needed = (self.rules / (target * BUCKET_FILL))
            .min(self.keys)
            .max(1.0);
        needed.min(f64::from(common(&self.mask, &self.mask)).exp2())
    }
}

/// The bits that two masks have in common.
fn common(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}

/// Returns the tables of the root.
fn tables(shape: &Shape, target: f64) -> Vec<Table> {
    let (looked_at, others) = shape
        .tuples()
        .split_at(shape.tuples().len().min(MAX_TABLE_TUPLES));
    let mut tables: Vec<Table> = Vec::new();
    for tuple in looked_at {
        let enough = |table: &Table| {
            let rules = table.rules + tuple.rules as f64;
            let needed = (rules / target).max(1.0).log2() * MASK_BITS_PER_NEEDED_BIT;
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

/// Implements [`Engine::estimate`](crate::contract::spec::Engine::estimate).
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
    let rule_count = (rules as f64).max(1.0);

    let (mut slots, mut count) = (0, 0);
    let mut nested = 0.0;
    for table in &tables {
        let buckets = table.buckets(target);
        slots += whole(buckets.ceil()).next_power_of_two();
        count += 1;
        let run = table.rules / buckets;
        let share = table.rules / rule_count;
        if run > most {
            // Nested tables for each bucket, with about one slot for each key.
            nested += share;
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
    let isa = Isa::named(options.choice("isa")).expect("the specification was checked");
    let [batch_factor, single_factor] = instruction_factors(isa);
    let base_share = (rule_count / LEARN_FULL_RULES[0]).min(1.0);
    let tuple_share = (rule_count / LEARN_FULL_RULES[1]).min(1.0);
    let kinds = LEARN_TUPLE * shape.tuples().len() as f64;
    let more_search = if fingerprints { LEARN_WIDE } else { 1.0 };
    let learning =
        more_search * (LEARN_WORK * base_share + (kinds * tuple_share).min(LEARN_TUPLES_MAX));
    let extra_words = (W as f64 - 2.0).max(0.0);
    let update = Work::of(UPDATE_WORK + UPDATE_WORD * extra_words + nested * NESTED_WORK)
        .reading(UPDATE_LINES, bytes);
    Ok(Costs {
        bytes,
        build: Work::of(learning + DEAL_WORK * rule_count),
        batch: batch.times(batch_factor).batch(&met, shape, bytes),
        single: single.times(single_factor).single(&met, shape, bytes),
        update: Some(update),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::Limits;
    use crate::model::schema::Schema;

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
        // Eight bits are enough for few rules.
        let few_rules = shape(&[([32, 0, 0, 0, 8], 20), ([0, 32, 0, 0, 8], 20)]);
        assert_eq!(tables(&few_rules, 2.0).len(), 1);
    }

    /// Lookups probe one table if all rules have the same mask, and several tables
    /// if masks have no bits in common.
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
