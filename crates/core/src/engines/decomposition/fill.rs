//! Fills the vectors, lists and searches of the fields.

use hashbrown::HashMap;

use super::BLOCKS_PER_STEP;
use super::cuckoo::Cuckoo;
use super::field::{Class, Field, Member, Numbers, Search};
use super::pick::{NO_LIST, Plan, Subset, is_open};
use super::screen::{Entry, Screens};
use crate::budget::memory::{bytes_of, map_bytes};
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, Part, Placement};
use crate::model::seed::MapState;
use crate::parts::bit_vectors::blocks_of;
use crate::parts::projection::{Projection, hash_of};
use crate::parts::range_tree::RangeTree;
use crate::parts::ranked::RankedRules;
use crate::parts::simd::Aligned;
use crate::parts::simd::bits::{Block, WORDS};

/// The bit number of a rule that is in a list of the field.
const LISTED_BIT: u32 = u32::MAX;

/// Vectors and lists of all fields.
#[derive(Default)]
pub(super) struct Store {
    /// The number of blocks in a vector, including its summary, which comes first.
    pub(super) row_blocks: usize,
    /// The number of blocks in a summary, which has a bit for each other block that
    /// has any rule. Short vectors have no summary.
    pub(super) summary: usize,
    /// Vectors. The first vector has all rules.
    pub(super) rows: Vec<Block>,
    /// Rules in ascending order of places, and [`Entry::END`] after each list. The
    /// first list is empty.
    pub(super) lists: Vec<Entry>,
}

impl Store {
    /// Makes a store with the first vector and the first list. `wide` is the number
    /// of rules in vectors.
    pub(super) fn new(
        wide: usize,
        with_summary: bool,
        monitor: &mut Monitor<'_>,
    ) -> Result<Store, BuildError> {
        let (summary, row_blocks) = sizes(wide, with_summary);
        monitor
            .memory()
            .keep(bytes_of::<Block>(row_blocks) + bytes_of::<Entry>(1))?;
        let mut store = Store {
            row_blocks,
            summary,
            rows: Vec::with_capacity(row_blocks),
            lists: Vec::with_capacity(1),
        };
        store.rows.resize(row_blocks, Aligned([0; WORDS]));
        for bit in 0..wide {
            flip(&mut store.rows, summary, bit);
        }
        summarise(&mut store.rows, summary);
        store.lists.push(Entry::END);
        Ok(store)
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Block>(self.rows.capacity()) + bytes_of::<Entry>(self.lists.capacity())
    }

    /// Makes room for `more` further vectors.
    fn room_for_rows(&mut self, more: usize, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let needed = (self.rows.len()).saturating_add(more.saturating_mul(self.row_blocks));
        let old = self.rows.capacity();
        if needed > old {
            let bytes = bytes_of::<Block>;
            monitor.memory().replace(bytes(old), bytes(needed))?;
            self.rows.reserve_exact(needed - self.rows.len());
        }
        Ok(())
    }

    /// Adds a vector. Returns the position of its first block.
    fn push_row(&mut self, row: &[Block], monitor: &mut Monitor<'_>) -> Result<u32, BuildError> {
        if self.rows.capacity() - self.rows.len() < self.row_blocks {
            // Two sets had the same hash when sets were counted.
            self.room_for_rows(1 + self.rows.len() / 2 / self.row_blocks.max(1), monitor)?;
        }
        let start = u32::try_from(self.rows.len()).expect("vectors are bounded");
        self.rows.extend_from_slice(row);
        monitor.work(self.row_blocks.div_ceil(BLOCKS_PER_STEP))?;
        Ok(start)
    }

    fn row(&self, start: u32) -> &[Block] {
        &self.rows[start as usize..][..self.row_blocks]
    }

    /// Adds a list. Returns the position of its first entry.
    fn push_list(
        &mut self,
        list: impl IntoIterator<Item = Entry>,
        monitor: &mut Monitor<'_>,
    ) -> Result<u32, BuildError> {
        let start = u32::try_from(self.lists.len()).expect("lists are bounded");
        for entry in list.into_iter().chain([Entry::END]) {
            monitor.memory().room_to_keep(&mut self.lists)?;
            self.lists.push(entry);
        }
        Ok(start)
    }

    /// Frees spare capacity.
    pub(super) fn finish(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let (old, new) = (self.bytes(), [self.rows.len(), self.lists.len()]);
        let new = bytes_of::<Block>(new[0]) + bytes_of::<Entry>(new[1]);
        if old > new {
            monitor.memory().replace(old, new)?;
            self.rows.shrink_to_fit();
            self.lists.shrink_to_fit();
        }
        Ok(())
    }
}

/// Flips the bit of a rule, or of a block in a summary.
fn flip(row: &mut [Block], summary: usize, bit: usize) {
    let word = bit / 64;
    row[summary + word / WORDS][word % WORDS] ^= 1 << (bit % 64);
}

/// Returns the number of blocks in a summary, and in a vector with its summary, for
/// `wide` rules in vectors.
pub(super) fn sizes(wide: usize, with_summary: bool) -> (usize, usize) {
    let blocks = blocks_of(wide);
    let summary = if with_summary { blocks_of(blocks) } else { 0 };
    (summary, summary + blocks)
}

/// Computes the summary of a vector.
fn summarise(row: &mut [Block], summary: usize) {
    let (heads, blocks) = row.split_at_mut(summary);
    if heads.is_empty() {
        return;
    }
    heads.fill(Aligned([0; WORDS]));
    for (number, block) in blocks.iter().enumerate() {
        if block.0 != [0; WORDS] {
            flip(heads, 0, number);
        }
    }
}

/// The rules, plan and settings of a fill.
pub(super) struct Filling<'a> {
    pub(super) rules: &'a RankedRules,
    pub(super) plan: &'a Plan,
    pub(super) screens: &'a Screens,
    /// The largest number of vectors of a field.
    pub(super) most_rows: usize,
    pub(super) seed: u64,
    /// A mask over hashes: all bits, except in tests.
    pub(super) hash_bits: u64,
}

/// A field after the first sweep, with the rules that name a value.
struct Swept {
    /// The bit number of each rule or [`LISTED_BIT`], in ascending order of places.
    bits: Vec<u32>,
    projection: Projection,
    /// The number of elementary intervals, the number of sets of rules in vectors,
    /// and the number of intervals with another set than the interval before.
    intervals: usize,
    sets: usize,
    changes: usize,
}

/// The state of a sweep over a field's intervals.
struct Sweep {
    row: Vec<Block>,
    row_hash: u64,
    /// True if the vector has changed since the last interval.
    is_changed: bool,
    list: Vec<u32>,
    list_hash: u64,
}

impl Filling<'_> {
    /// Returns the entry of the rule at a place.
    pub(super) fn entry(&self, place: u32) -> Entry {
        let screen = self.plan.screen_of[place as usize];
        self.screens.entry(self.rules, place, screen)
    }

    fn hash(&self, number: u32) -> u64 {
        hash_of(number) & self.hash_bits
    }

    /// Gathers the events of a field, and counts its intervals and vectors.
    fn sweep(
        &self,
        id: FieldId,
        has_rows: bool,
        monitor: &mut Monitor<'_>,
    ) -> Result<(Vec<u32>, Swept), BuildError> {
        let number = u8::try_from(id.index()).expect("a field's index is a byte");
        let mut next = 0;
        let mut member = |place: usize, list: u8| {
            let bit = next;
            next += u32::from(list == NO_LIST);
            match list {
                NO_LIST if has_rows && !is_open(self.rules, place, id) => Some(bit),
                list if list == number => Some(LISTED_BIT),
                _ => None,
            }
        };
        let (mut places, mut bits) = (Vec::new(), Vec::new());
        for (place, &list) in (0..=u32::MAX).zip(&self.plan.list_of) {
            if let Some(bit) = member(place as usize, list) {
                monitor.memory().room(&mut places)?;
                places.push(place);
                monitor.memory().room(&mut bits)?;
                bits.push(bit);
            }
            monitor.work(usize::from(place % 8 == 0))?;
        }
        let mut projection = Projection::with_room(places.len(), monitor)?;
        let subset = Subset {
            rules: self.rules,
            places: &places,
        };
        projection.gather(&subset, id, monitor)?;
        let mut swept = Swept {
            bits,
            projection,
            intervals: 0,
            sets: 0,
            changes: 0,
        };
        let mut sets: HashMap<u64, (), MapState> = HashMap::default();
        let (mut hash, mut is_changed) = (0, false);
        let (mut intervals, mut changes) = (0, 0);
        swept.projection.intervals(|_, events, last| {
            for event in events {
                match swept.bits[event.place as usize] {
                    LISTED_BIT => {}
                    bit => {
                        hash ^= self.hash(bit);
                        is_changed = true;
                    }
                }
            }
            if last {
                intervals += 1;
                changes += usize::from(std::mem::take(&mut is_changed));
                monitor.memory().room_in_map(&mut sets)?;
                sets.insert(hash, ());
            }
            monitor.work(events.len())
        })?;
        (swept.intervals, swept.changes) = (intervals, changes);
        swept.sets = sets.len();
        monitor.memory().give_back(sets.allocation_size());
        Ok((places, swept))
    }

    /// Makes a field with its vectors and lists.
    pub(super) fn fill(
        &self,
        id: FieldId,
        has_rows: bool,
        store: &mut Store,
        monitor: &mut Monitor<'_>,
    ) -> Result<Field, BuildError> {
        let (places, swept) = self.sweep(id, has_rows, monitor)?;
        let schema = self.rules.schema();
        let width = schema.field(id).width();
        let blocks = if has_rows { store.row_blocks } else { 0 };
        let tree_bytes = RangeTree::bytes_of(width, swept.intervals);
        monitor.memory().keep(tree_bytes + size_of::<Member>())?;
        let working = bytes_of::<Block>(blocks)
            + bytes_of::<u32>(swept.intervals)
            + map_bytes::<u64, u32>(swept.sets);
        monitor.memory().take(working)?;
        let mut sweep = Sweep {
            row: store.rows[..blocks].to_vec(),
            row_hash: 0,
            is_changed: false,
            list: Vec::new(),
            list_hash: 0,
        };
        for &bit in swept.bits.iter().filter(|&&bit| bit != LISTED_BIT) {
            flip(&mut sweep.row, store.summary, bit as usize);
        }
        summarise(&mut sweep.row, if has_rows { store.summary } else { 0 });
        monitor.work(swept.bits.len() / 8)?;
        // If there are more sets than vectors, neighbouring sets share a vector.
        let max_rows = self.most_rows.max(2);
        let together = match swept.sets > max_rows {
            true => swept.changes.div_ceil(max_rows - 1),
            false => 1,
        };
        if has_rows {
            store.room_for_rows(swept.sets.min(max_rows) + 1, monitor)?;
        }
        let open = Class {
            row: match has_rows {
                true => store.push_row(&sweep.row, monitor)?,
                false => 0,
            },
            list: 0,
        };
        let mut rows: HashMap<u64, u32, MapState> =
            HashMap::with_capacity_and_hasher(swept.sets, MapState::default());
        rows.insert(0, open.row);
        let mut lists: HashMap<u64, u32, MapState> = HashMap::default();
        let mut classes = Classes::new(open, monitor)?;
        let mut intervals = RangeTree::with_capacity(width, swept.intervals);
        let mut numbers: Vec<u32> = Vec::with_capacity(swept.intervals);
        let mut first_listed = u32::MAX;
        // The last shared vector, and the number of further sets that may share it.
        let mut shared = (open.row, 0);
        let mut row_start = open.row;
        swept.projection.intervals(|start, events, last| {
            for event in events {
                let place = places[event.place as usize];
                match swept.bits[event.place as usize] {
                    LISTED_BIT => {
                        sweep.toggle_listed(place);
                        sweep.list_hash ^= self.hash(place);
                        first_listed = first_listed.min(place);
                    }
                    bit => {
                        flip(&mut sweep.row, store.summary, bit as usize);
                        sweep.row_hash ^= self.hash(bit);
                        sweep.is_changed = true;
                    }
                }
            }
            monitor.advance(events.len())?;
            if !last {
                return Ok(());
            }
            if sweep.is_changed {
                sweep.is_changed = false;
                summarise(&mut sweep.row, store.summary);
                monitor.work(blocks.div_ceil(BLOCKS_PER_STEP))?;
                row_start = match together {
                    _ if store.row(open.row) == sweep.row => open.row,
                    1 => {
                        let known = rows.get(&sweep.row_hash).copied();
                        // Different sets may have the same hash.
                        match known.filter(|&row_start| store.row(row_start) == sweep.row) {
                            Some(row_start) => row_start,
                            None => {
                                let row_start = store.push_row(&sweep.row, monitor)?;
                                rows.insert(sweep.row_hash, row_start);
                                row_start
                            }
                        }
                    }
                    together => {
                        if shared.1 == 0 {
                            shared = (store.push_row(&sweep.row, monitor)?, together);
                        }
                        let shared_row = &mut store.rows[shared.0 as usize..][..blocks];
                        for (shared_row, row) in shared_row.iter_mut().zip(&sweep.row) {
                            for (shared_row, row) in shared_row.iter_mut().zip(row.iter()) {
                                *shared_row |= row;
                            }
                        }
                        shared.1 -= 1;
                        shared.0
                    }
                };
            }
            let known = lists.get(&sweep.list_hash).copied();
            let list =
                match known.filter(|&list_start| is_list(&store.lists, list_start, &sweep.list)) {
                    _ if sweep.list.is_empty() => 0,
                    Some(list_start) => list_start,
                    None => {
                        let list = sweep.list.iter().map(|&place| self.entry(place));
                        let list_start = store.push_list(list, monitor)?;
                        monitor.memory().room_in_map(&mut lists)?;
                        lists.insert(sweep.list_hash, list_start);
                        list_start
                    }
                };
            intervals.push(start);
            numbers.push(classes.number(
                Class {
                    row: row_start,
                    list,
                },
                monitor,
            )?);
            Ok(())
        })?;
        intervals.finish();
        monitor.memory().give_back(lists.allocation_size());
        let placement = *schema.placement(id);
        drop((rows, lists, sweep));
        swept.projection.finish(monitor);
        let freed_bytes = bytes_of::<u32>(places.capacity() + swept.bits.capacity());
        drop((places, swept.bits));
        monitor.memory().give_back(freed_bytes);
        let (classes, class_numbers) = (classes.list, classes.known);
        monitor.memory().give_back(class_numbers.allocation_size());
        drop(class_numbers);
        let finds = match (first_listed != u32::MAX, has_rows) {
            (true, false) => Numbers::Lists,
            (false, true) => Numbers::Rows(open.row),
            _ => Numbers::Classes,
        };
        let values = Found {
            intervals: &intervals,
            classes: &classes,
            finds,
        };
        let (search, finds) = self.search(&values, &placement, width, numbers, monitor)?;
        monitor.memory().give_back(working);
        Ok(Field {
            members: vec![Member {
                id,
                placement,
                intervals,
            }],
            search,
            classes,
            numbers: finds,
            has_lists: first_listed != u32::MAX,
            has_rows,
            first_listed,
        })
    }

    /// Returns the fastest search for a field's intervals. `numbers` has the class
    /// number of each interval.
    fn search(
        &self,
        field_values: &Found<'_>,
        placement: &Placement,
        width: u32,
        mut numbers: Vec<u32>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(Search, Numbers), BuildError> {
        let intervals = field_values.intervals;
        let max_value = u128::MAX >> (128 - width);
        // There is one class more than values if rules name all values.
        let fits = numbers.iter().all(|&number| number <= u16::MAX.into());
        if fits && is_direct(width, self.rules.len()) {
            let values = 1 << width;
            let bytes = bytes_of::<u16>(values) + size_of::<(Part, u32)>();
            monitor.memory().keep(bytes)?;
            let mut table = Vec::with_capacity(values);
            for (interval, &number) in numbers.iter().enumerate() {
                let number = u16::try_from(number).expect("no more classes than values");
                let (_, high) = intervals.ends(interval, max_value);
                let behind = usize::try_from(high).expect("at most sixteen bits") + 1;
                table.resize(behind, number);
            }
            monitor.work(values / 16)?;
            let parts = vec![(placement.low, 0)];
            return Ok((Search::Direct { parts, table }, Numbers::Classes));
        }
        let named = || {
            numbers
                .iter()
                .enumerate()
                .filter(|(_, number)| **number > 0)
        };
        let is_single = |interval: usize| {
            let (low, high) = intervals.ends(interval, max_value);
            low == high
        };
        let count = named().count();
        if count >= MIN_HASHED_VALUES && named().all(|(interval, _)| is_single(interval)) {
            let bytes = bytes_of::<(u128, u32)>(count);
            monitor.memory().take(bytes)?;
            let mut values = Vec::with_capacity(count);
            values.extend(named().map(|(interval, &number)| {
                let number = field_values.number(number);
                (intervals.ends(interval, max_value).0, number)
            }));
            let table = Cuckoo::build(&values, self.seed, self.hash_bits, monitor)?;
            drop(values);
            monitor.memory().give_back(bytes);
            if let Some(table) = table {
                return Ok((Search::Hash(table), field_values.finds));
            }
        }
        monitor.memory().keep(bytes_of::<u32>(numbers.len()))?;
        for number in &mut numbers {
            *number = field_values.number(*number);
        }
        Ok((Search::Tree(numbers), field_values.finds))
    }
}

/// The values of a field, and the numbers that a search returns.
struct Found<'a> {
    intervals: &'a RangeTree,
    classes: &'a [Class],
    finds: Numbers,
}

impl Found<'_> {
    /// Returns the number that a search returns for a class.
    fn number(&self, number: u32) -> u32 {
        self.finds.of(self.classes[number as usize], number)
    }
}

/// The smallest number of values for a hash table. Fewer values are searched in a
/// range tree of one or two levels. Measured in `bench/records/constants.md`
/// (Decomposition).
const MIN_HASHED_VALUES: usize = 8;

/// True if a field has a table with an entry for each value: at most sixteen bytes
/// for each rule.
pub(super) fn is_direct(width: u32, rules: usize) -> bool {
    width <= 16 && bytes_of::<u16>(1 << width) <= rules.saturating_mul(16).max(512)
}

/// True if the list of places `list` begins at position `start`.
fn is_list(lists: &[Entry], start: u32, list: &[u32]) -> bool {
    let stored = lists[start as usize..].iter().map(|entry| entry.place());
    let list = list.iter().map(|&place| place as usize);
    let mut pairs = stored.zip(list.chain([Entry::END.place()]));
    pairs.all(|(stored, place)| stored == place)
}

impl Sweep {
    /// Adds a place to the list, or removes it.
    fn toggle_listed(&mut self, place: u32) {
        match self.list.binary_search(&place) {
            Ok(at) => drop(self.list.remove(at)),
            Err(at) => self.list.insert(at, place),
        }
    }
}

/// The classes of a field, by number.
struct Classes {
    list: Vec<Class>,
    known: HashMap<Class, u32, MapState>,
}

impl Classes {
    fn new(open: Class, monitor: &mut Monitor<'_>) -> Result<Classes, BuildError> {
        let mut classes = Classes {
            list: Vec::new(),
            known: HashMap::default(),
        };
        classes.number(open, monitor)?;
        Ok(classes)
    }

    /// Returns the number of a class. Adds new classes.
    fn number(&mut self, class: Class, monitor: &mut Monitor<'_>) -> Result<u32, BuildError> {
        if let Some(&number) = self.known.get(&class) {
            return Ok(number);
        }
        let number = u32::try_from(self.list.len()).expect("no more classes than intervals");
        monitor.memory().room_in_map(&mut self.known)?;
        self.known.insert(class, number);
        monitor.memory().room_to_keep(&mut self.list)?;
        self.list.push(class);
        Ok(number)
    }
}

/// Joins short fields to a superfield, which is searched in one step. Its classes are
/// the combinations of the fields' classes. Its vectors are the AND of the fields'
/// vectors, which are in the store `from`.
pub(super) fn join(
    fields: Vec<Field>,
    from: &Store,
    to: &mut Store,
    monitor: &mut Monitor<'_>,
) -> Result<Field, BuildError> {
    let blocks = to.row_blocks;
    let counts = fields.iter().map(|field| field.classes.len());
    let product: usize = counts.clone().product();
    let bits: u32 = fields.iter().map(|field| direct_bits(&field.search)).sum();
    let values = 1_usize << bits;
    let bytes = bytes_of::<Class>(product)
        + bytes_of::<u16>(values)
        + bytes_of::<(Part, u32)>(fields.len())
        + bytes_of::<Member>(fields.len());
    monitor.memory().keep(bytes)?;
    to.room_for_rows(product, monitor)?;
    let mut classes = Vec::with_capacity(product);
    monitor.memory().take(bytes_of::<Block>(blocks))?;
    let mut row = vec![Aligned([0; WORDS]); blocks];
    for combination in 0..product {
        row.clone_from_slice(&to.rows[..blocks]);
        let mut remaining = combination;
        for field in &fields {
            let class = field.classes[remaining % field.classes.len()];
            remaining /= field.classes.len();
            for (row, field_row) in row.iter_mut().zip(from.row(class.row)) {
                for (row, field_row) in row.iter_mut().zip(field_row.iter()) {
                    *row &= field_row;
                }
            }
        }
        summarise(&mut row, to.summary);
        let row = to.push_row(&row, monitor)?;
        classes.push(Class { row, list: 0 });
    }
    drop(row);
    monitor.memory().give_back(bytes_of::<Block>(blocks));
    let mut table = Vec::with_capacity(values);
    for value in 0..values {
        let (mut shift, mut times, mut number) = (0, 1, 0);
        for field in &fields {
            let Search::Direct { table, .. } = &field.search else {
                unreachable!("short fields have a table of all values");
            };
            let width = direct_bits(&field.search);
            let field_value = (value >> shift) & ((1 << width) - 1);
            number += times * usize::from(table[field_value]);
            times *= field.classes.len();
            shift += width;
        }
        table.push(u16::try_from(number).expect("no more classes than values"));
        monitor.work(usize::from(value % 16 == 0))?;
    }
    let mut parts = Vec::with_capacity(fields.len());
    let mut members = Vec::with_capacity(fields.len());
    let mut shift = 0;
    for mut field in fields {
        parts.push((field.members[0].placement.low, shift));
        shift += direct_bits(&field.search);
        members.push(field.members.remove(0));
        // Counts everything except the memory that the member still holds.
        let bytes = field.bytes();
        drop(field);
        monitor.memory().drop_kept(bytes);
    }
    Ok(Field {
        members,
        search: Search::Direct { parts, table },
        classes,
        numbers: Numbers::Classes,
        has_lists: false,
        has_rows: true,
        first_listed: u32::MAX,
    })
}

/// The number of bits of a field with a table of all values; 0 without such a table.
pub(super) fn direct_bits(search: &Search) -> u32 {
    match search {
        Search::Direct { table, .. } => table.len().trailing_zeros(),
        _ => 0,
    }
}
