//! `bit-vector`: for each field, the rules that match there as bits; one AND joins
//! the fields.
//!
//! # Idea
//! The ends of all rules' intervals cut a field into elementary intervals. All values
//! of an elementary interval are matched by the same rules. So each interval has
//! a vector with one bit for each rule, best first. A lookup finds the interval of
//! each field in a range tree and joins the vectors word by word: the first bit that
//! is set in all vectors is the winner.
//!
//! # Data layout
//! ```text
//! field 0:  starts  [ 0 | 10.0.0.0 | 10.1.0.0 | … ]   of intervals, in a tree
//!           rows    [ 0 |    1     |    0     | … ]    the vector of each
//! rows:     [ 1011… ][ 0011… ] …     of all fields; joined in blocks of 512 bits
//! rules:    best first
//! ```
//! Intervals of one field with the same rules share a vector. Any two prefixes are
//! nested or disjoint. So prefixes need one vector each, and one vector for all other
//! values. A field that is a wildcard in every rule has no vectors.
//!
//! # Build
//! ```text
//! for each field:
//!     events = (low, rule) and (high + 1, rule) of every rule, sorted
//!     current = no bits
//!     for each distinct position of an event:
//!         flip the bits of its rules in current
//!         row = the row that equals current, or current as a new row
//! ```
//!
//! # Lookup
//! ```text
//! rows = for each field: the row of the last start that is not above the value
//! for words of 64 rules, from the best:
//!     bits = AND of that word in all rows
//!     for each bit: if the rule is not hidden and really matches: it wins
//! ```
//! Batches search sixteen headers in one field at the same time, so that their reads
//! overlap, and prefetch the rows.
//!
//! # Cost
//! n rules, d fields, at most 2n + 1 intervals in each: lookup O(d log n + d n / 64),
//! memory and build time O(d n²). 2,000 rules of five fields take a few megabytes,
//! 64,000 rules more than a gigabyte. The option `mebibytes` limits this memory. The
//! engine takes no updates; `hide` takes O(log n).
//!
//! # Where we differ from the paper, and why
//! [SFL17] names the method and refers to its first publication, in which each
//! interval has a vector. In ours, each distinct set of rules has a vector. All gaps
//! between hosts have the same set, which halves the memory. A value under a mask
//! with holes is not an interval. Such a rule is in all intervals between its
//! smallest and its largest value, and is compared in full before it can win. Fields
//! of up to 128 bits are searched like all other fields.
//!
//! # References
//! [SFL17] §V, ref. 5 (Lakshman and Stiliadis, SIGCOMM 1998); [DEC14] ref. 4.
//!
//! [SFL17]: crate::papers#sfl17
//! [DEC14]: crate::papers#dec14

mod field;
mod fill;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::contract::adapter::Algorithm;
use crate::contract::classifier::{LookupTrace, Metric, Probe};
use crate::contract::observe::{Met, Prices};
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::rule::{RuleId, Winner};
use crate::model::schema::{MAX_FIELDS, prefix_mask};
use crate::parts::range_tree::GROUP;
use crate::parts::ranked::RankedRules;
use crate::parts::simd::bits::{Block, WORDS, common, first_common};
use crate::parts::simd::{Isa, prefetch};
use crate::parts::unwildcard;

pub(crate) use field::Field;

/// Returns the counts of lookups. Probes are searched fields. Comparisons are blocks
/// that are read until one has a rule. Beyond the first block, they grow with the
/// number of rules.
#[allow(clippy::cast_precision_loss)] // an estimate
pub(crate) fn met(spec: &EngineSpec, shape: &Shape) -> Result<Met, BuildError> {
    let counts = Met::of(spec, shape, [0.0, 0.0])?;
    let searched = shape.fields().iter();
    let fields = searched
        .filter(|field| field.prefixes + field.ranges > 0)
        .count() as f64;
    let blocks = (counts.probes - fields).max(1.0);
    let beyond_one = |rules: usize| (blocks_of(rules).max(2) - 1) as f64;
    let sampled = shape.sample().len().min(shape.rules());
    let times = beyond_one(shape.rules()) / beyond_one(sampled);
    Ok(Met {
        probes: fields,
        compared: 1.0 + (blocks - 1.0) * times,
    })
}

/// Predicts a row for each prefix of a field, two for each range, and one for all
/// other values.
#[allow(clippy::cast_precision_loss)] // an estimate
pub(crate) fn memory_and_building(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let (schema, rules) = (shape.schema(), shape.rules());
    let row_bytes = bytes_of::<Block>(blocks_of(rules));
    let mut bytes = RankedRules::bytes_of(schema, rules);
    let mut vectors = 0_usize;
    let (mut fields, mut intervals, mut copied) = (0.0_f64, 0.0, 0.0);
    for (field, of_field) in schema.fields().iter().zip(shape.fields()) {
        let cuts = 2 * (of_field.prefixes + of_field.ranges);
        if cuts == 0 {
            continue;
        }
        let rows = (of_field.prefixes + 2 * of_field.ranges + 1).min(cuts + 1);
        vectors = vectors.saturating_add(rows.saturating_mul(row_bytes));
        bytes += Field::bytes_of(field.width(), cuts + 1) + size_of::<Field>();
        fields += 1.0;
        intervals += (cuts + 1) as f64;
        copied += (cuts + 1) as f64 * row_bytes as f64;
    }
    check_vectors(spec, vectors)?;
    bytes = bytes.saturating_add(vectors);
    let fields = fields.max(1.0);
    let sorting = rules as f64 * fields * RULE_INSTRUCTIONS + intervals * INTERVAL_INSTRUCTIONS;
    Ok(Costs {
        bytes,
        build: Work::of(sorting + copied * BYTE_INSTRUCTIONS),
        ..Costs::default()
    })
}

/// Refuses vectors of more bytes than the specification allows. Their bytes grow with
/// the square of the number of rules.
fn check_vectors(spec: &EngineSpec, bytes: usize) -> Result<(), BuildError> {
    let limit = spec.options().whole("mebibytes").saturating_mul(1 << 20);
    if bytes > limit {
        return Err(BuildError::TooManyBytes {
            needed: bytes,
            limit,
        });
    }
    Ok(())
}

/// Costs of lookups in batches and of single lookups. `crate::cost::estimate` describes the
/// measurements behind them.
pub(crate) const BATCH: Prices = Prices {
    lookup: 160.0,
    probe: 130.0,
    compare: 36.4,
    lines: 15.0,
    ..Prices::NONE
};
pub(crate) const SINGLE: Prices = Prices {
    lookup: 258.0,
    probe: 163.0,
    probe_word: 2.2,
    compare: 30.0,
    lines: 1.5,
    ..Prices::NONE
};

// Numbers of instructions. `crate::cost::estimate` describes the measurements behind them.
/// To sort the ends of a rule in a field, twice.
const RULE_INSTRUCTIONS: f64 = 1500.0;
/// To make an interval.
const INTERVAL_INSTRUCTIONS: f64 = 200.0;
/// To copy or compare a byte of a row.
const BYTE_INSTRUCTIONS: f64 = 1.2;

/// Blocks that count as one step of work. It sets how often a build reports progress.
const STEP_BLOCKS: usize = 32;

/// The number of rules for which a block has bits.
pub(crate) const BLOCK_RULES: usize = WORDS * 64;

/// The number of blocks in a row with a bit for each rule.
pub(crate) fn blocks_of(rules: usize) -> usize {
    rules.div_ceil(BLOCK_RULES)
}

/// Rules as bits of vectors. Duplicates share the vectors.
#[derive(Clone)]
pub(crate) struct BitVector {
    isa: Isa,
    /// The rules, best first. All vectors have bits in this order.
    pub(crate) rules: RankedRules,
    /// The fields that are not wildcards in all rules, or one field if all are.
    pub(crate) fields: Arc<Vec<Field>>,
    rows: Arc<Vec<Block>>,
    /// The number of blocks in a row.
    row_blocks: usize,
}

/// The rows of the fields for one header, as offsets into all rows.
type Offsets<const F: usize> = [usize; F];

impl BitVector {
    /// Bytes held, including spare capacity and the rules themselves.
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.fields.iter();
        let fields = fields.map(Field::bytes);
        self.rules.bytes()
            + bytes_of::<Field>(self.fields.capacity())
            + bytes_of::<Block>(self.rows.capacity())
            + fields.sum::<usize>()
    }

    /// Finds the rows of a key, with room for `F` fields. There may be fewer fields.
    fn offsets<const F: usize>(&self, key: &[u64]) -> Offsets<F> {
        let mut offsets = [0; F];
        for (offset, field) in offsets.iter_mut().zip(self.fields.iter()) {
            *offset = field.row(key) * self.row_blocks;
        }
        offsets
    }

    /// Returns the best rule in all rows that beats `best` and matches, or `best`.
    #[inline]
    fn first(&self, offsets: &[usize], key: &[u64], best: Winner) -> Winner {
        let end_block = blocks_of(self.rules.better_than(best));
        let mut first_block = 0;
        while let Some((block, bits)) =
            first_common(self.isa, &self.rows, offsets, first_block, end_block)
        {
            for place in places(&bits, block) {
                let rank = self.rules.winner(place);
                if !rank.beats(best) {
                    return best;
                }
                if self.rules.matches_inside(place, key) {
                    return rank;
                }
            }
            first_block = block + 1;
        }
        best
    }

    /// Returns the rules that are in all rows and beat `best`, up to the first match.
    fn candidates(&self, key: &[u64], best: Winner) -> impl Iterator<Item = usize> {
        let offsets = self.offsets::<MAX_FIELDS>(key);
        let fields = self.fields.len();
        let blocks = 0..self.row_blocks;
        let blocks =
            blocks.map(move |block| (block, common(&self.rows, &offsets[..fields], block)));
        let mut matched = false;
        let candidates = blocks.flat_map(|(block, bits)| places(&bits, block).collect::<Vec<_>>());
        let candidates = candidates.take_while(move |&place| self.rules.winner(place).beats(best));
        let not_hidden = candidates.filter(|&place| !self.rules.is_hidden(place));
        not_hidden.take_while(move |&place| {
            let continues = !matched;
            matched |= self.rules.matches_inside(place, key);
            continues
        })
    }

    /// Looks up a key, with room for `F` fields.
    fn improve_with<const F: usize>(&self, key: &[u64], best: Winner) -> Winner {
        let offsets = self.offsets::<F>(key);
        self.first(&offsets[..self.fields.len()], key, best)
    }

    /// Looks up a whole group of keys.
    fn improve_group<const W: usize>(
        &self,
        keys: &[[u64; W]; GROUP],
        winners: &mut [Winner],
        offsets: &mut [usize],
    ) {
        let fields = self.fields.len();
        let mut intervals = [0; GROUP];
        for (number, field) in self.fields.iter().enumerate() {
            field
                .intervals
                .find_each(&field.placement, keys, &mut intervals);
            for (key, &interval) in intervals.iter().enumerate() {
                let offset = field.rows[interval] as usize * self.row_blocks;
                if let Some(word) = self.rows.get(offset) {
                    prefetch(word);
                }
                offsets[key * fields + number] = offset;
            }
        }
        let offsets = offsets.chunks_exact(fields);
        for ((key, winner), offsets) in keys.iter().zip(winners).zip(offsets) {
            *winner = self.first(offsets, key, *winner);
        }
    }
}

/// Returns the places of the bits of a block, in ascending order.
pub(crate) fn places(bits: &[u64; WORDS], block: usize) -> impl Iterator<Item = usize> {
    bits.iter().enumerate().flat_map(move |(word, &bits)| {
        let first = (block * WORDS + word) * 64;
        std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)))
            .take_while(|&bits| bits != 0)
            .map(move |bits| first + bits.trailing_zeros() as usize)
    })
}

impl<const W: usize> Algorithm<W> for BitVector {
    /// The rows of a group of keys, key by key.
    type Buffers = Vec<usize>;

    fn build(request: &mut BuildRequest<'_>) -> Result<BitVector, BuildError> {
        let (rules, limits) = (request.rules, request.limits);
        let spec = request.spec;
        let isa = spec.options().choice("isa");
        let mut monitor = request.monitor();
        let mut built = BitVector {
            isa: Isa::named(isa).expect("the specification was checked"),
            rules: RankedRules::build(rules, limits, &mut monitor)?,
            fields: Arc::default(),
            rows: Arc::default(),
            row_blocks: blocks_of(rules.len()),
        };
        built.fill_rows(spec, u64::MAX, &mut monitor)?;
        Ok(built)
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        match self.fields.len() {
            0..=8 => self.improve_with::<8>(key, best),
            9..=16 => self.improve_with::<16>(key, best),
            _ => self.improve_with::<MAX_FIELDS>(key, best),
        }
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], offsets: &mut Vec<usize>) {
        offsets.resize(GROUP * self.fields.len(), 0);
        let (groups, rest) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP)) {
            self.improve_group(keys, winners, offsets);
        }
        for (key, winner) in rest.iter().zip(of_rest) {
            *winner = self.improve(key, *winner);
        }
    }

    /// Every rule that is better than the outcome is missing from the row of some
    /// field. The mask needs enough fields to exclude all of these rules, and in each
    /// of these fields the bits that determine the interval of the value. Fields with
    /// few such bits come first.
    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let winner = self.improve(key, best);
        let better = self.rules.better_than(winner);
        let offsets = self.offsets::<MAX_FIELDS>(key);
        let count = self.fields.len();
        let mut fields: [(u32, usize); MAX_FIELDS] = [(0, 0); MAX_FIELDS];
        for (number, field) in self.fields.iter().enumerate() {
            fields[number] = (field.leading_bits(self.rules.schema(), key), number);
        }
        fields[..count].sort_unstable();
        let mut chosen = 0;
        for block in 0..blocks_of(better) {
            let joined = common(&self.rows, &offsets[..count], block);
            let mut bits = first_bits(better - block * BLOCK_RULES);
            for (word, hidden) in bits.iter_mut().zip(&self.rules.hidden()[block * WORDS..]) {
                *word &= !hidden;
            }
            let in_all: [u64; WORDS] = std::array::from_fn(|word| bits[word] & joined[word]);
            for place in places(&in_all, block) {
                unwildcard::refute(&self.rules.rule(place), key, mask);
            }
            for (order, (_, number)) in fields[..count].iter().enumerate() {
                if order >= chosen && bits == in_all {
                    break;
                }
                let row = &self.rows[offsets[*number] + block];
                for (bits, row) in bits.iter_mut().zip(row.iter()) {
                    *bits &= row;
                }
                chosen = chosen.max(order + 1);
            }
        }
        for (length, number) in &fields[..chosen] {
            let field = &self.fields[*number];
            let width = self.rules.schema().field(field.id).width();
            field.placement.set_bits(mask, prefix_mask(width, *length));
        }
        if winner.beats(best) {
            unwildcard::confirm(&self.rules.rule(better), key, mask);
        }
        winner
    }

    /// Returns a probe for the vector of each field, then a probe for each joined
    /// block.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut searched_bits = vec![0; W];
        let mut probes = Vec::with_capacity(self.fields.len());
        let offsets = self.offsets::<MAX_FIELDS>(key);
        for (number, field) in self.fields.iter().enumerate() {
            let mut mask = vec![0; W];
            let width = self.rules.schema().field(field.id).width();
            let bits = prefix_mask(width, width);
            field.placement.set_bits(&mut mask, bits);
            field.placement.set_bits(&mut searched_bits, bits);
            let row = &self.rows[offsets[number]..][..self.row_blocks];
            probes.push(Probe {
                table: number,
                mask,
                rules: row
                    .iter()
                    .flat_map(|block| block.iter())
                    .map(|word| word.count_ones() as usize)
                    .sum(),
                compared: Vec::new(),
                winner: Winner::MISS,
            });
        }
        let winner = self.improve(key, Winner::MISS);
        let candidates: Vec<usize> = self.candidates(key, Winner::MISS).collect();
        for block in 0..self.row_blocks {
            let rules = (self.rules.len() - block * BLOCK_RULES).min(BLOCK_RULES);
            let in_block = candidates
                .iter()
                .filter(|&place| place / BLOCK_RULES == block);
            let compared: Vec<RuleId> = in_block
                .filter_map(|&place| self.rules.winner(place).rule())
                .collect();
            let won = winner.rule().is_some() && compared.last().copied() == winner.rule();
            probes.push(Probe {
                table: self.fields.len() + block,
                mask: searched_bits.clone(),
                rules,
                compared,
                winner: if won { winner } else { Winner::MISS },
            });
            if won {
                break;
            }
        }
        LookupTrace {
            probes,
            tables: self.fields.len() + self.row_blocks,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.rules.present()
    }

    fn tables(&self) -> usize {
        self.fields.len()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let intervals = self.fields.iter().map(|field| field.intervals.len());
        let vectors = self.rows.len().checked_div(self.row_blocks).unwrap_or(0);
        vec![
            Metric::count("intervals", intervals.sum()),
            Metric::count("bit vectors", vectors),
        ]
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        Some(self.rules.hide(id))
    }

    fn duplicate(&self) -> Option<BitVector> {
        Some(self.clone())
    }
}

/// Returns the first `bits` bits of a block, or all if it has fewer.
pub(crate) fn first_bits(bits: usize) -> [u64; WORDS] {
    std::array::from_fn(|word| match bits.saturating_sub(word * 64) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    })
}
