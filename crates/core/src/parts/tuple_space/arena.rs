//! The memory of a tuple space's rules: an aligned record for each, reused after
//! removal.

use std::ops::Range;

use crate::model::packed::PackedRule;
use crate::model::rule::{ActionId, RuleId, RuleRef, Winner};
use crate::model::schema::{RangeField, Schema};

use super::TableNumber;

/// A rule's record in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryIndex(u32);

impl EntryIndex {
    /// No record: the end of a chain.
    pub(crate) const NONE: EntryIndex = EntryIndex(u32::MAX);

    /// Returns the record with that number. [`NONE`](Self::NONE) has no record.
    #[inline]
    pub(crate) fn from_number(number: u32) -> EntryIndex {
        EntryIndex(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The new places of records after a [compaction](Arena::compact).
pub(crate) struct Moved(Vec<EntryIndex>);

impl Moved {
    pub(crate) fn to(&self, index: EntryIndex) -> EntryIndex {
        match index {
            EntryIndex::NONE => EntryIndex::NONE,
            index => self.0[index.index()],
        }
    }
}

/// The largest number of records in an arena that is never compacted. It bounds the
/// memory that stays unused.
const MIN_SPARSE_RECORDS: usize = 16;

/// A rule with the fields of its chain.
///
/// For IPv4 five-tuples, 60 of the 64 bytes of one cache line, so that comparing a rule
/// costs one memory access.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry<const W: usize> {
    pub(crate) value: [u64; W],
    pub(crate) mask: [u64; W],
    /// The upper ends of ranges, if they fit in one word.
    high: u64,
    pub(crate) rank: u64,
    pub(crate) next: EntryIndex,
    pub(crate) table: TableNumber,
    pub(crate) action: ActionId,
}

impl<const W: usize> Entry<W> {
    /// The id of the rule.
    #[allow(clippy::cast_possible_truncation)] // the low half of a rank is the id
    pub(crate) fn id(&self) -> RuleId {
        RuleId::new(self.rank as u32).expect("stored rules have valid ids")
    }

    /// The outcome if this rule wins.
    pub(crate) fn winner(&self) -> Winner {
        Winner::from_rank(self.rank)
    }

    /// True if every bit of a table's mask is exact in the rule.
    #[inline]
    pub(crate) fn fits(&self, mask: &[u64; W]) -> bool {
        mask.iter()
            .zip(&self.mask)
            .all(|(table, rule)| table & !rule == 0)
    }
}

/// A range field whose key bits and upper end are one part each.
#[derive(Clone, Copy, Debug)]
struct NarrowRange {
    word: usize,
    shift: u32,
    high_shift: u32,
    ones: u64,
}

/// The place of upper ends. In almost every schema they fit in one word.
#[derive(Clone, Debug)]
enum Ranges {
    /// Upper ends in [`Entry::high`].
    Narrow(Box<[NarrowRange]>),
    /// Upper ends in [`Arena::highs`].
    Wide(Box<[RangeField]>),
}

/// All records.
#[derive(Clone, Debug)]
pub(crate) struct Arena<const W: usize> {
    entries: Vec<Entry<W>>,
    /// A row of upper ends for each record, if they need more than one word.
    highs: Vec<u64>,
    /// Words of a row of upper ends.
    high_words: usize,
    ranges: Ranges,
    free: EntryIndex,
    live: usize,
}

impl<const W: usize> Arena<W> {
    pub(crate) fn new(schema: &Schema) -> Arena<W> {
        let ranges = if schema.high_words() <= 1 {
            let narrow = schema.range_fields().iter().map(|range| NarrowRange {
                word: range.key.low.word,
                shift: range.key.low.shift,
                high_shift: range.high.low.shift,
                ones: u64::MAX >> (64 - range.key.low.width),
            });
            Ranges::Narrow(narrow.collect())
        } else {
            Ranges::Wide(schema.range_fields().into())
        };
        Arena {
            entries: Vec::new(),
            highs: Vec::new(),
            high_words: schema.high_words(),
            ranges,
            free: EntryIndex::NONE,
            live: 0,
        }
    }

    /// Reserves memory for exactly `rules` more rules.
    pub(crate) fn reserve(&mut self, rules: usize) {
        self.entries.reserve_exact(rules);
        if matches!(self.ranges, Ranges::Wide(_)) {
            self.highs.reserve_exact(rules * self.high_words);
        }
    }

    /// Bytes that [`reserve`](Self::reserve) takes for the first rules.
    pub(crate) fn reserved_bytes(&self, rules: usize) -> usize {
        let highs = match self.ranges {
            Ranges::Narrow(_) => 0,
            Ranges::Wide(_) => self.high_words * size_of::<u64>(),
        };
        rules.saturating_mul(size_of::<Entry<W>>() + highs)
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Stores a rule, in no table yet.
    pub(crate) fn add(&mut self, rule: &RuleRef<'_>) -> EntryIndex {
        let high = rule.high();
        let entry = Entry {
            value: rule.value().try_into().expect("a rule of this width"),
            mask: rule.mask().try_into().expect("a rule of this width"),
            high: if high.len() == 1 { high[0] } else { 0 },
            rank: rule.winner().rank(),
            next: EntryIndex::NONE,
            table: TableNumber::NONE,
            action: rule.action(),
        };
        let wide = matches!(self.ranges, Ranges::Wide(_));
        self.live += 1;
        if self.free == EntryIndex::NONE {
            if self.entries.len() == self.entries.capacity() {
                // A quarter instead of the usual doubling: records are large, and unused
                // records count as memory per rule.
                let growth = self.entries.len() / 4 + 16;
                self.entries.reserve_exact(growth);
                if wide {
                    self.highs.reserve_exact(growth * high.len());
                }
            }
            let index =
                EntryIndex(u32::try_from(self.entries.len()).expect("fewer rules than ids"));
            self.entries.push(entry);
            if wide {
                self.highs.extend_from_slice(high);
            }
            index
        } else {
            let index = self.free;
            self.free = self.entries[index.index()].next;
            self.entries[index.index()] = entry;
            if wide {
                let row = index.index() * high.len();
                self.highs[row..row + high.len()].copy_from_slice(high);
            }
            index
        }
    }

    /// Frees the record of a rule that is in no table.
    pub(crate) fn remove(&mut self, index: EntryIndex) {
        self.entries[index.index()].next = self.free;
        self.free = index;
        self.live -= 1;
    }

    /// Frees the record of a rule that is still marked as being in a table.
    pub(crate) fn remove_unlinked(&mut self, index: EntryIndex) {
        self.get_mut(index).table = TableNumber::NONE;
        self.remove(index);
    }

    /// True if three fifths of the records are free and there are more than
    /// [`MIN_SPARSE_RECORDS`].
    pub(crate) fn is_sparse(&self) -> bool {
        self.entries.capacity() > MIN_SPARSE_RECORDS && self.live * 5 < self.entries.capacity() * 2
    }

    /// Moves the rules together and frees the unused memory. All rules must be in
    /// tables. `table` maps old numbers of tables to new ones. Returns the new place of
    /// each record.
    pub(crate) fn compact(&mut self, table: impl Fn(TableNumber) -> TableNumber) -> Moved {
        let mut new_places = vec![EntryIndex::NONE; self.entries.len()];
        let mut entries: Vec<Entry<W>> = Vec::with_capacity(self.live);
        let mut highs = Vec::new();
        let wide = matches!(self.ranges, Ranges::Wide(_));
        if wide {
            highs.reserve_exact(self.live * self.high_words);
        }
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.table != TableNumber::NONE {
                let new_index = u32::try_from(entries.len()).expect("fewer rules than ids");
                new_places[index] = EntryIndex(new_index);
                entries.push(*entry);
                if wide {
                    highs.extend_from_slice(
                        &self.highs[index * self.high_words..][..self.high_words],
                    );
                }
            }
        }
        let moved = Moved(new_places);
        for entry in &mut entries {
            entry.next = moved.to(entry.next);
            entry.table = table(entry.table);
        }
        debug_assert_eq!(entries.len(), self.live, "all rules are in tables");
        self.entries = entries;
        self.highs = highs;
        self.free = EntryIndex::NONE;
        moved
    }

    /// Frees unused capacity; returns the number of bytes held before.
    pub(crate) fn shrink(&mut self) -> usize {
        let before = self.bytes();
        self.entries.shrink_to_fit();
        self.highs.shrink_to_fit();
        before
    }

    /// The number of records, used or not.
    pub(crate) fn records(&self) -> usize {
        self.entries.len()
    }

    /// Returns the record at a position, if its rule is in a table.
    pub(crate) fn record(&self, position: usize) -> Option<EntryIndex> {
        let used = self.entries.get(position)?.table != TableNumber::NONE;
        used.then(|| EntryIndex(u32::try_from(position).expect("fewer rules than ids")))
    }

    #[inline]
    pub(crate) fn get(&self, index: EntryIndex) -> &Entry<W> {
        &self.entries[index.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: EntryIndex) -> &mut Entry<W> {
        &mut self.entries[index.index()]
    }

    /// True if a rule matches a key.
    #[inline]
    pub(crate) fn matches(&self, index: EntryIndex, key: &[u64; W]) -> bool {
        let entry = self.get(index);
        let mut differing = 0;
        for ((key, value), mask) in key.iter().zip(&entry.value).zip(&entry.mask) {
            differing |= (key ^ value) & mask;
        }
        differing == 0 && self.in_ranges(index, key)
    }

    #[inline]
    fn in_ranges(&self, index: EntryIndex, key: &[u64; W]) -> bool {
        let entry = self.get(index);
        match &self.ranges {
            Ranges::Narrow(ranges) => ranges.iter().all(|range| {
                let value = (key[range.word] >> range.shift) & range.ones;
                let low = (entry.value[range.word] >> range.shift) & range.ones;
                let high = (entry.high >> range.high_shift) & range.ones;
                (low..=high).contains(&value)
            }),
            Ranges::Wide(ranges) => {
                let high = self.wide_high(index);
                ranges
                    .iter()
                    .all(|range| range.contains(key, &entry.value, high))
            }
        }
    }

    fn wide_high(&self, index: EntryIndex) -> &[u64] {
        let row = index.index() * self.high_words;
        &self.highs[row..row + self.high_words]
    }

    /// Returns the rules of a table, by scanning a range of records.
    pub(crate) fn linked_to(
        &self,
        table: TableNumber,
        records: Range<usize>,
    ) -> impl Iterator<Item = EntryIndex> + '_ {
        let first = u32::try_from(records.start).expect("fewer rules than ids");
        (first..)
            .zip(&self.entries[records])
            .filter(move |(_, entry)| entry.table == table)
            .map(|(index, _)| EntryIndex(index))
    }

    /// Returns the rule in the form that un-wildcarding uses.
    pub(crate) fn packed<'a>(&'a self, schema: &'a Schema, index: EntryIndex) -> PackedRule<'a> {
        let entry = self.get(index);
        PackedRule {
            schema,
            value: &entry.value,
            mask: &entry.mask,
            high: match self.ranges {
                Ranges::Narrow(_) => &std::slice::from_ref(&entry.high)[..self.high_words],
                Ranges::Wide(_) => self.wide_high(index),
            },
        }
    }

    /// Bytes held, including unused capacity.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<W>>() + self.highs.capacity() * size_of::<u64>()
    }

    /// Bytes of an arena that has reserved memory for `rules` rules.
    pub(crate) fn bytes_for(schema: &Schema, rules: usize) -> usize {
        let wide = match schema.high_words() {
            0 | 1 => 0,
            words => words * size_of::<u64>(),
        };
        rules * (size_of::<Entry<W>>() + wide)
    }
}
