//! Lookups: single, in batches, with a mask, and step by step.

use super::Decomposition;
use super::candidates::{Plain, Tests};
use super::field::Class;
use super::screen::Entry;
use crate::contract::classifier::{LookupTrace, Probe};
use crate::model::rule::{RuleId, Winner};
use crate::model::schema::MAX_FIELDS;
use crate::parts::bit_vectors::{BLOCK_RULES, blocks_of, first_bits, places};
use crate::parts::range_tree::GROUP;
use crate::parts::simd::bits::{WORDS, common};
use crate::parts::simd::prefetch;
use crate::parts::unwildcard;

/// The number of keys of a batch that are searched together. Measured in
/// `bench/records/constants.md` (Decomposition).
const CHUNK_KEYS: usize = 4 * GROUP;

/// Results of the searches of a chunk.
#[derive(Default)]
pub(super) struct Buffers {
    /// For each key, the lists of all fields with lists.
    lists: Vec<u32>,
    /// For each key, the vectors of all fields with vectors.
    rows: Vec<usize>,
}

impl Decomposition {
    /// Returns the better of `best` and the best rule that matches.
    #[inline]
    pub(super) fn look_up<const W: usize>(&self, key: &[u64; W], best: Winner) -> Winner {
        match self.shared.fields.len() {
            0..=8 => self.look_up_with::<W, 8>(key, best),
            9..=16 => self.look_up_with::<W, 16>(key, best),
            _ => self.look_up_with::<W, MAX_FIELDS>(key, best),
        }
    }

    /// Looks up a key, with room for `F` fields.
    #[inline]
    fn look_up_with<const W: usize, const F: usize>(&self, key: &[u64; W], best: Winner) -> Winner {
        let (mut lists, mut rows) = ([0; F], [0; F]);
        let (listing, joining) = self.search(key, &mut lists, &mut rows);
        self.finish(key, &lists[..listing], &rows[..joining], best)
    }

    /// Searches all fields. Returns the number of lists and the number of vectors,
    /// which is at least one.
    #[inline(always)]
    pub(super) fn search(
        &self,
        key: &[u64],
        lists: &mut [u32],
        rows: &mut [usize],
    ) -> (usize, usize) {
        let (mut listing, mut joining) = (0, 0);
        for field in &self.shared.fields {
            let class = field.class(key);
            if field.has_lists {
                lists[listing] = class.list;
                listing += 1;
            }
            if field.has_rows {
                rows[joining] = class.row as usize;
                joining += 1;
            }
        }
        // Without fields, all rules are candidates, and the first vector has all
        // rules.
        (listing, joining.max(1))
    }

    /// Returns the better of `best` and the best matching rule of lists and vectors.
    #[inline(always)]
    fn finish<const W: usize>(
        &self,
        key: &[u64; W],
        lists: &[u32],
        rows: &[usize],
        best: Winner,
    ) -> Winner {
        let better = self.rules.better_than(best);
        let mut tests = Plain { engine: self, key };
        let place = self.first_place(&mut tests, lists, rows, better);
        match place < better {
            true => self.rules.winner(place),
            false => best,
        }
    }

    /// Looks up a batch.
    pub(super) fn look_up_batch<const W: usize>(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        let (listing, joining) = (self.shared.listing, self.shared.joining.max(1));
        buffers.lists.resize(CHUNK_KEYS * listing, 0);
        buffers.rows.clear();
        buffers.rows.resize(CHUNK_KEYS * joining, 0);
        let (groups, rest) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP);
        let winners = of_groups.chunks_mut(CHUNK_KEYS);
        for (groups, winners) in groups.chunks(CHUNK_KEYS / GROUP).zip(winners) {
            self.look_up_chunk(groups, winners, buffers);
        }
        for (key, winner) in rest.iter().zip(of_rest) {
            *winner = self.look_up(key, *winner);
        }
    }

    /// Looks up several groups, at most [`CHUNK_KEYS`] keys. It searches each field
    /// for all keys and prefetches lists and vectors. Then it finishes one key after
    /// the other.
    fn look_up_chunk<const W: usize>(
        &self,
        groups: &[[[u64; W]; GROUP]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        self.search_chunk(groups, buffers);
        let (listing, joining) = (self.shared.listing, self.shared.joining.max(1));
        let lists = (0..).map(|key| &buffers.lists[key * listing..][..listing]);
        let rows = buffers.rows.chunks_exact(joining);
        let searched = lists.zip(rows);
        for ((key, winner), (lists, rows)) in
            groups.as_flattened().iter().zip(winners).zip(searched)
        {
            *winner = self.finish(key, lists, rows, *winner);
        }
    }

    /// Searches all fields for several groups.
    fn search_chunk<const W: usize>(&self, groups: &[[[u64; W]; GROUP]], buffers: &mut Buffers) {
        let shared = &*self.shared;
        let (listing, joining) = (shared.listing, shared.joining.max(1));
        let mut classes = [Class { row: 0, list: 0 }; GROUP];
        let (mut list, mut row) = (0, 0);
        for field in &shared.fields {
            for (number, keys) in groups.iter().enumerate() {
                field.classes_of(keys, &mut classes);
                if field.has_lists {
                    let lists = &mut buffers.lists[number * GROUP * listing + list..];
                    for (list, class) in lists.iter_mut().step_by(listing).zip(&classes) {
                        *list = class.list;
                        prefetch(&shared.store.lists[class.list as usize]);
                    }
                }
                if field.has_rows {
                    let rows = &mut buffers.rows[number * GROUP * joining + row..];
                    for (row, class) in rows.iter_mut().step_by(joining).zip(&classes) {
                        *row = class.row as usize;
                        prefetch(&shared.store.rows[class.row as usize]);
                    }
                }
            }
            list += usize::from(field.has_lists);
            row += usize::from(field.has_rows);
        }
    }

    /// Calls `show` with the place of each candidate below `bound` that is not hidden.
    fn candidates(&self, lists: &[u32], rows: &[usize], bound: usize, mut show: impl FnMut(usize)) {
        let shared = &*self.shared;
        let store = &shared.store;
        // Returns true if the place is below the bound.
        let mut visit = |entry: Entry| {
            let is_better = entry.place() < bound;
            if is_better && !self.rules.is_hidden(entry.place()) {
                show(entry.place());
            }
            is_better
        };
        let blocks = blocks_of(shared.wide.len().min(bound));
        'vectors: for block in 0..blocks {
            let bits = common(&store.rows, rows, store.summary + block);
            for bit in places(&bits, block) {
                if !visit(shared.wide[bit]) {
                    break 'vectors;
                }
            }
        }
        for &list in lists {
            for &entry in &store.lists[list as usize..] {
                if !visit(entry) {
                    break;
                }
            }
        }
    }

    /// Does the same as [`look_up`](Self::look_up), and sets the bits of the key that
    /// the outcome depends on.
    ///
    /// Each rule that is better than the outcome was compared, or it is missing from
    /// the list or from some vector of the key's values. Then the mask needs the bits
    /// that determine these values: in fields with lists of better rules, and in
    /// enough fields with vectors to exclude all better rules. Fields with few such
    /// bits come first.
    pub(super) fn look_up_masked<const W: usize>(
        &self,
        key: &[u64; W],
        best: Winner,
        mask: &mut [u64; W],
    ) -> Winner {
        let winner = self.look_up(key, best);
        let better = self.rules.better_than(winner);
        let (shared, schema) = (&*self.shared, self.rules.schema());
        let (mut lists, mut rows) = ([0; MAX_FIELDS], [0; MAX_FIELDS]);
        let (listing, joining) = self.search(key, &mut lists, &mut rows);
        let mut needed = [false; MAX_FIELDS];
        for (needed, field) in needed.iter_mut().zip(&shared.fields) {
            *needed = field.has_lists && (field.first_listed as usize) < better;
        }
        // Fields with vectors: the cost in bits, the row and the field's number.
        let mut order = [(0, 0, 0); MAX_FIELDS];
        let with_rows = shared
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.has_rows);
        for (row, (number, field)) in with_rows.enumerate() {
            let bits = if needed[number] {
                0
            } else {
                field.bits(schema, key)
            };
            order[row] = (bits, row, number);
        }
        let order = &mut order[..shared.joining];
        order.sort_unstable();
        let within = shared.wide.partition_point(|entry| entry.place() < better);
        for block in 0..within.div_ceil(BLOCK_RULES) {
            let row_block = shared.store.summary + block;
            let in_all = common(&shared.store.rows, &rows[..joining], row_block);
            let mut bits = first_bits(within - block * BLOCK_RULES);
            let in_all: [u64; WORDS] = std::array::from_fn(|word| bits[word] & in_all[word]);
            for &(_, row, number) in order.iter() {
                if !needed[number] && bits == in_all {
                    continue;
                }
                needed[number] = true;
                let row = &shared.store.rows[rows[row] + row_block];
                for (bits, row) in bits.iter_mut().zip(row.iter()) {
                    *bits &= row;
                }
            }
        }
        for (field, _) in shared
            .fields
            .iter()
            .zip(needed)
            .filter(|(_, needed)| *needed)
        {
            field.want(schema, key, mask);
        }
        self.candidates(&lists[..listing], &rows[..joining], better, |place| {
            unwildcard::refute(&self.rules.rule(place), key, mask);
        });
        if winner.beats(best) {
            unwildcard::confirm(&self.rules.rule(better), key, mask);
        }
        winner
    }

    /// Returns a trace. Each field is a table, which has the rules of the key's list
    /// and vector. A last table has all rules, and the rules that were compared.
    pub(super) fn trace_of<const W: usize>(&self, key: &[u64; W]) -> LookupTrace {
        let (shared, schema) = (&*self.shared, self.rules.schema());
        let mut probes = Vec::with_capacity(shared.fields.len() + 1);
        let mut searched_bits = vec![0; W];
        for (table, field) in shared.fields.iter().enumerate() {
            let mut mask = vec![0; W];
            for member in &field.members {
                let max_value = schema.field(member.id).max_value();
                member.placement.set_bits(&mut mask, max_value);
                member.placement.set_bits(&mut searched_bits, max_value);
            }
            let class = field.class(key);
            let list = shared.store.lists[class.list as usize..].iter();
            let listed = list.take_while(|&&entry| entry != Entry::END).count();
            let row = shared.store.rows.get(class.row as usize..);
            let blocks = shared.store.row_blocks - shared.store.summary;
            let row = row
                .unwrap_or(&[])
                .iter()
                .skip(shared.store.summary)
                .take(blocks);
            let set = row.flat_map(|block| block.iter().map(|word| word.count_ones() as usize));
            probes.push(Probe {
                table,
                mask,
                rules: listed + if field.has_rows { set.sum() } else { 0 },
                compared: Vec::new(),
                winner: Winner::MISS,
            });
        }
        let winner = self.look_up(key, Winner::MISS);
        let (mut lists, mut rows) = ([0; MAX_FIELDS], [0; MAX_FIELDS]);
        let (listing, joining) = self.search(key, &mut lists, &mut rows);
        let mut tests = Traced {
            engine: self,
            key,
            compared: Vec::new(),
        };
        let bound = self.rules.len();
        self.first_place(&mut tests, &lists[..listing], &rows[..joining], bound);
        probes.push(Probe {
            table: shared.fields.len(),
            mask: searched_bits,
            rules: self.rules.len(),
            compared: tests.compared,
            winner,
        });
        LookupTrace {
            tables: probes.len(),
            probes,
            winner,
        }
    }
}

/// Tests a key, and records the rules that are compared and not hidden.
struct Traced<'a> {
    engine: &'a Decomposition,
    key: &'a [u64],
    compared: Vec<RuleId>,
}

impl Tests for Traced<'_> {
    fn passes(&mut self, entry: Entry) -> bool {
        self.engine.shared.screens.passes_words(entry, self.key)
    }

    fn matches(&mut self, place: usize) -> bool {
        let rules = &self.engine.rules;
        if !rules.is_hidden(place) {
            self.compared.extend(rules.winner(place).rule());
        }
        rules.matches(place, self.key)
    }
}
