//! Counts the work of a lookup in the built structure: the performance model of
//! [DEC14] §IV.C.
//!
//! # Idea
//! The structure alone determines the reads of a field's search: a cache line for
//! each level of a range tree, two entries of a hash table, one entry of a table of
//! all values. The numbers of joined blocks and of candidates also depend on headers.
//! So they are counted over lookups of headers that rules match. Both together are
//! the work of a lookup. The machine determines its time.
//!
//! # Where we differ from the paper, and why
//! - The paper computes levels and values from the number of rules and the ratio of
//!   unique values (eq. 1). We count them in the structure.
//! - The paper assumes that joining ends halfway, µ ≈ 0.5. We count where it ends.
//! - The paper counts instructions in machine code. Ours are fitted to measured
//!   times. Lookups wait for few cache lines, because other lookups run during the
//!   wait.
//! - We count candidates. The paper has none, because there a bit means that a rule
//!   matches.
//!
//! [DEC14]: crate::papers#dec14

#![allow(clippy::cast_precision_loss)] // means

use super::Decomposition;
use super::candidates::Tests;
use super::field::Search;
use super::pick::drawn_value;
use super::screen::Entry;
use crate::budget::memory::bytes_of;
use crate::contract::classifier::Metric;
use crate::cost::machine::Work;
use crate::model::schema::MAX_FIELDS;
use crate::parts::simd::bits::Block;

// Instructions of each operation: estimates from the source, not counted in machine
// code as in [DEC14] Table VII.
/// Fixed cost of a lookup.
const LOOKUP_INSTRUCTIONS: f64 = 60.0;
/// To read a node of a range tree, and to search a hash table or a table of all
/// values.
pub(super) const NODE_INSTRUCTIONS: f64 = 14.0;
pub(super) const HASH_INSTRUCTIONS: f64 = 26.0;
pub(super) const TABLE_INSTRUCTIONS: f64 = 12.0;
/// For a step of joining, and for each block in it.
const STEP_INSTRUCTIONS: f64 = 30.0;
const BLOCK_INSTRUCTIONS: f64 = 3.0;
/// To go to a list, to test a tag, and to compare a rule of four key words or fewer;
/// each further word is one more in four.
const LIST_INSTRUCTIONS: f64 = 14.0;
const ENTRY_INSTRUCTIONS: f64 = 12.0;
const COMPARE_INSTRUCTIONS: f64 = 50.0;
const COMPARE_WORD_INSTRUCTIONS: f64 = 6.0;

/// Measured costs of operations, in instructions. They include mispredicted branches,
/// because measurements do not separate branches from the instructions before them.
struct Fitted {
    lookup: f64,
    node: f64,
    hash: f64,
    table: f64,
    step: f64,
    block: f64,
    list: f64,
    entry: f64,
    compare: f64,
    /// The share of cache lines that a lookup waits for.
    waited: f64,
}

/// In batches and single. `crate::cost::estimate` describes the measurements behind them.
const BATCH: Fitted = Fitted {
    lookup: 104.0,
    node: 40.0,
    hash: 47.0,
    table: 32.0,
    step: 73.0,
    block: 21.0,
    list: 5.0,
    entry: 41.0,
    compare: 131.0,
    waited: 0.01,
};
const SINGLE: Fitted = Fitted {
    lookup: 101.0,
    node: 80.0,
    hash: 12.0,
    table: 0.0,
    step: 114.0,
    block: 0.0,
    list: 0.0,
    entry: 38.0,
    compare: 142.0,
    waited: 0.08,
};

/// The number of headers that are looked up to count.
const SAMPLE_HEADERS: usize = 256;

/// Mean counts of a lookup, and the size of the memory that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Nodes of range trees that are read.
    pub(super) levels: f64,
    /// Hash tables and tables of all values that are searched.
    pub(super) hashes: f64,
    pub(super) tables: f64,
    /// Steps of joining, and blocks of vectors that they read.
    pub(super) steps: f64,
    pub(super) blocks: f64,
    /// Entries whose tag is tested, and rules that are compared.
    pub(super) entries: f64,
    pub(super) compared: f64,
    /// Lists that are visited and not empty.
    pub(super) lists: f64,
    /// Cache lines of a rule, and words of a key.
    pub(super) rule_lines: f64,
    pub(super) key_words: f64,
    /// Bytes of searches and classes, of lists, of vectors, and of rules.
    pub(super) search_bytes: usize,
    pub(super) list_bytes: usize,
    pub(super) row_bytes: usize,
    pub(super) rule_bytes: usize,
}

impl Decomposition {
    /// Counts the work of lookups of headers that rules match.
    pub(super) fn counts(&self) -> Counts {
        let shared = &*self.shared;
        let mut counts = Counts {
            search_bytes: shared.fields.iter().map(super::Field::bytes).sum(),
            list_bytes: bytes_of::<Entry>(shared.store.lists.len() + shared.wide.len()),
            row_bytes: bytes_of::<Block>(shared.store.rows.len()),
            rule_bytes: self.rules.bytes(),
            // A rule may begin anywhere in a cache line.
            rule_lines: (self.rules.schema().rule_words() as f64 - 1.0) / 8.0 + 1.0,
            key_words: self.rules.schema().key_words() as f64,
            ..Counts::default()
        };
        for field in &shared.fields {
            match &field.search {
                Search::Direct { .. } => counts.tables += 1.0,
                Search::Hash(_) => counts.hashes += 1.0,
                Search::Tree(_) => {
                    counts.levels += field.members[0].intervals.lines() as f64;
                }
            }
        }
        let headers = SAMPLE_HEADERS.min(self.rules.len());
        let mut sums = Sums::default();
        let schema = self.rules.schema();
        let mut key = vec![0; schema.key_words()];
        let mut state = 1;
        for header in 0..headers {
            for id in schema.field_ids() {
                let value = drawn_value(&self.rules, id, header, headers, &mut state);
                schema.placement(id).set(&mut key, value);
            }
            self.count(&key, &mut sums);
        }
        let mean = |sum: usize| sum as f64 / headers.max(1) as f64;
        counts.steps = mean(sums.steps);
        counts.blocks = mean(sums.steps * shared.joining.max(1));
        counts.entries = mean(sums.entries);
        counts.compared = mean(sums.compared);
        counts.lists = mean(sums.lists);
        counts
    }

    /// Adds the counts of a key's lookup to `sums`.
    fn count(&self, key: &[u64], sums: &mut Sums) {
        let store = &self.shared.store;
        let (mut lists, mut rows) = ([0; MAX_FIELDS], [0; MAX_FIELDS]);
        let (listing, joining) = self.search(key, &mut lists, &mut rows);
        let is_filled = |&&list: &&u32| store.lists[list as usize] != Entry::END;
        sums.lists += lists[..listing].iter().filter(is_filled).count();
        let mut tests = Counted {
            engine: self,
            key,
            sums,
        };
        let bound = self.rules.len();
        self.first_place(&mut tests, &lists[..listing], &rows[..joining], bound);
    }

    /// Counts for reports and for predictions of times.
    pub(super) fn work_metrics(&self) -> Vec<Metric> {
        let counts = self.counts();
        let joining = self.shared.joining.max(1) as f64;
        let comparison = COMPARE_INSTRUCTIONS + COMPARE_WORD_INSTRUCTIONS * counts.key_words;
        vec![
            Metric::ratio("range tree nodes a lookup", counts.levels),
            Metric::ratio("hash tables a lookup", counts.hashes),
            Metric::ratio("tables of all values a lookup", counts.tables),
            Metric::ratio("joining steps a lookup", counts.steps),
            Metric::ratio("blocks of vectors a lookup", counts.blocks),
            Metric::ratio("lists met a lookup", counts.lists),
            Metric::ratio("entries a lookup", counts.entries),
            Metric::ratio("rules compared a lookup", counts.compared),
            Metric::ratio("instructions a lookup", counts.instructions()),
            Metric::ratio("fitted instructions, batch", BATCH.instructions(&counts)),
            Metric::ratio("fitted instructions, single", SINGLE.instructions(&counts)),
            Metric::ratio("lines waited for, batch", BATCH.lines(&counts)),
            Metric::ratio("lines waited for, single", SINGLE.lines(&counts)),
            Metric::ratio("instructions of a tree node", NODE_INSTRUCTIONS),
            Metric::ratio("instructions of a hash table", HASH_INSTRUCTIONS),
            Metric::ratio("instructions of a table", TABLE_INSTRUCTIONS),
            Metric::ratio(
                "instructions of a step",
                STEP_INSTRUCTIONS + BLOCK_INSTRUCTIONS * joining,
            ),
            Metric::ratio("instructions of an entry", ENTRY_INSTRUCTIONS),
            Metric::ratio("instructions of a comparison", comparison),
            Metric::ratio("lines of searches a lookup", counts.search_lines()),
            Metric::ratio(
                "lines of rules a lookup",
                counts.compared * counts.rule_lines,
            ),
            Metric::bytes("searches of fields", counts.search_bytes),
            Metric::bytes("lists and places", counts.list_bytes),
            Metric::bytes("vectors", counts.row_bytes),
            Metric::bytes("ranked rules", counts.rule_bytes),
        ]
    }
}

impl Counts {
    fn search_lines(&self) -> f64 {
        self.levels + 2.0 * self.hashes + self.tables
    }

    fn instructions(&self) -> f64 {
        LOOKUP_INSTRUCTIONS
            + self.levels * NODE_INSTRUCTIONS
            + self.hashes * HASH_INSTRUCTIONS
            + self.tables * TABLE_INSTRUCTIONS
            + self.steps * STEP_INSTRUCTIONS
            + self.blocks * BLOCK_INSTRUCTIONS
            + self.lists * LIST_INSTRUCTIONS
            + self.entries * ENTRY_INSTRUCTIONS
            + self.compared * (COMPARE_INSTRUCTIONS + COMPARE_WORD_INSTRUCTIONS * self.key_words)
    }

    /// Cache lines that a lookup reads.
    fn lines(&self) -> f64 {
        self.search_lines() + self.lists + self.blocks + self.compared * self.rule_lines
    }

    /// Bytes of all structures that a lookup reads.
    fn bytes(&self) -> usize {
        self.search_bytes + self.list_bytes + self.row_bytes + self.rule_bytes
    }

    /// The work for one header of a batch.
    pub(super) fn batch(&self) -> Work {
        BATCH.work(self)
    }

    /// The work of a single lookup.
    pub(super) fn single(&self) -> Work {
        SINGLE.work(self)
    }
}

impl Fitted {
    fn instructions(&self, counts: &Counts) -> f64 {
        self.lookup
            + counts.levels * self.node
            + counts.hashes * self.hash
            + counts.tables * self.table
            + counts.steps * self.step
            + counts.blocks * self.block
            + counts.lists * self.list
            + counts.entries * self.entry
            + counts.compared * self.compare
    }

    fn lines(&self, counts: &Counts) -> f64 {
        counts.lines() * self.waited
    }

    fn work(&self, counts: &Counts) -> Work {
        Work::of(self.instructions(counts)).reading(self.lines(counts), counts.bytes())
    }
}

/// Tests a key, and counts the work.
struct Counted<'a> {
    engine: &'a Decomposition,
    key: &'a [u64],
    sums: &'a mut Sums,
}

impl Tests for Counted<'_> {
    fn passes(&mut self, entry: Entry) -> bool {
        self.sums.entries += 1;
        self.engine.shared.screens.passes_words(entry, self.key)
    }

    fn matches(&mut self, place: usize) -> bool {
        self.sums.compared += 1;
        self.engine.rules.matches(place, self.key)
    }

    fn read(&mut self, blocks: usize) {
        self.sums.steps += blocks;
    }
}

/// Sums over several lookups.
#[derive(Default)]
struct Sums {
    steps: usize,
    entries: usize,
    compared: usize,
    lists: usize,
}
