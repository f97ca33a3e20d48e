//! Where the rules of a tuple space lie: one aligned record each, reused after
//! removal.

use std::ops::Range;

use crate::packed::PackedRule;
use crate::rule::{ActionId, RuleId, RuleRef, Winner};
use crate::schema::{RangeField, Schema};

use super::TableNumber;

/// A rule's record in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct EntryIndex(u32);

impl EntryIndex {
    /// No record: the end of a chain.
    pub(in crate::engine) const NONE: EntryIndex = EntryIndex(u32::MAX);

    /// The record of that number, which is not that of [`NONE`](Self::NONE).
    #[inline]
    pub(in crate::engine) fn from_number(number: u32) -> EntryIndex {
        EntryIndex(number)
    }

    #[inline]
    pub(in crate::engine) fn number(self) -> u32 {
        self.0
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where records are after a [compaction](Arena::compact).
pub(in crate::engine) struct Moved(Vec<EntryIndex>);

impl Moved {
    pub(in crate::engine) fn to(&self, index: EntryIndex) -> EntryIndex {
        match index {
            EntryIndex::NONE => EntryIndex::NONE,
            index => self.0[index.index()],
        }
    }
}

/// Records of an arena that is small enough as it is.
const SMALL: usize = 16;

/// A rule with the fields of its chain.
///
/// For IPv4 five-tuples this is 60 of the 64 bytes of one cache line, so that
/// comparing a rule costs one memory access.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::engine) struct Entry<const W: usize> {
    pub(in crate::engine) value: [u64; W],
    pub(in crate::engine) mask: [u64; W],
    /// The upper ends of ranges, while one word holds them all.
    high: u64,
    pub(in crate::engine) rank: u64,
    pub(in crate::engine) next: EntryIndex,
    pub(in crate::engine) table: TableNumber,
    pub(in crate::engine) action: ActionId,
}

impl<const W: usize> Entry<W> {
    /// The id of the rule.
    #[allow(clippy::cast_possible_truncation)] // the low half of a rank is the id
    pub(in crate::engine) fn id(&self) -> RuleId {
        RuleId::new(self.rank as u32).expect("stored rules have valid ids")
    }

    /// The outcome when this rule wins.
    pub(in crate::engine) fn winner(&self) -> Winner {
        Winner::from_rank(self.rank)
    }

    /// Whether every bit of a table's mask is exact in the rule.
    #[inline]
    pub(in crate::engine) fn fits(&self, mask: &[u64; W]) -> bool {
        mask.iter()
            .zip(&self.mask)
            .all(|(table, rule)| table & !rule == 0)
    }
}

/// A range field whose place in key and upper ends is known to be one part.
#[derive(Clone, Copy, Debug)]
struct NarrowRange {
    word: usize,
    shift: u32,
    high_shift: u32,
    ones: u64,
}

/// How ranges are checked: almost every schema's upper ends fit in one word.
#[derive(Clone, Debug)]
enum Ranges {
    /// Upper ends in [`Entry::high`].
    Narrow(Box<[NarrowRange]>),
    /// Upper ends in [`Arena::highs`].
    Wide(Box<[RangeField]>),
}

/// All records.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Arena<const W: usize> {
    entries: Vec<Entry<W>>,
    /// Upper ends, a row for each record, when one word does not hold them.
    highs: Vec<u64>,
    /// Words of a row of upper ends.
    high_words: usize,
    ranges: Ranges,
    free: EntryIndex,
    live: usize,
}

impl<const W: usize> Arena<W> {
    pub(in crate::engine) fn new(schema: &Schema) -> Arena<W> {
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

    /// Makes room for exactly that many more rules.
    pub(in crate::engine) fn reserve(&mut self, rules: usize) {
        self.entries.reserve_exact(rules);
        if matches!(self.ranges, Ranges::Wide(_)) {
            self.highs.reserve_exact(rules * self.high_words);
        }
    }

    /// Bytes that [`reserve`](Self::reserve) takes for the first rules.
    pub(in crate::engine) fn reserved_bytes(&self, rules: usize) -> usize {
        let highs = match self.ranges {
            Ranges::Narrow(_) => 0,
            Ranges::Wide(_) => self.high_words * size_of::<u64>(),
        };
        rules.saturating_mul(size_of::<Entry<W>>() + highs)
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.live
    }

    /// Stores a rule that is in no table yet.
    pub(in crate::engine) fn add(&mut self, rule: &RuleRef<'_>) -> EntryIndex {
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
                // A quarter instead of the usual doubling: records are large,
                // and the spare ones count as memory per rule.
                let more = self.entries.len() / 4 + 16;
                self.entries.reserve_exact(more);
                if wide {
                    self.highs.reserve_exact(more * high.len());
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

    /// Forgets a rule that is in no table any more.
    pub(in crate::engine) fn remove(&mut self, index: EntryIndex) {
        self.entries[index.index()].next = self.free;
        self.free = index;
        self.live -= 1;
    }

    /// The same for a rule that is noted as being in one still.
    pub(in crate::engine) fn remove_unlinked(&mut self, index: EntryIndex) {
        self.get_mut(index).table = TableNumber::NONE;
        self.remove(index);
    }

    /// Whether three fifths of the records, of many, hold nothing.
    pub(in crate::engine) fn is_sparse(&self) -> bool {
        self.entries.capacity() > SMALL && self.live * 5 < self.entries.capacity() * 2
    }

    /// Moves the rules, which must all be in tables, together and gives the
    /// rest of the memory back. Tables get other numbers. Returns the new place
    /// of each record.
    pub(in crate::engine) fn compact(
        &mut self,
        table: impl Fn(TableNumber) -> TableNumber,
    ) -> Moved {
        let mut places = vec![EntryIndex::NONE; self.entries.len()];
        let mut entries: Vec<Entry<W>> = Vec::with_capacity(self.live);
        let mut highs = Vec::new();
        let wide = matches!(self.ranges, Ranges::Wide(_));
        if wide {
            highs.reserve_exact(self.live * self.high_words);
        }
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.table != TableNumber::NONE {
                let place = u32::try_from(entries.len()).expect("fewer rules than ids");
                places[index] = EntryIndex(place);
                entries.push(*entry);
                if wide {
                    highs.extend_from_slice(
                        &self.highs[index * self.high_words..][..self.high_words],
                    );
                }
            }
        }
        let moved = Moved(places);
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

    /// Gives spare room back; returns how many bytes were held before.
    pub(in crate::engine) fn shrink(&mut self) -> usize {
        let before = self.bytes();
        self.entries.shrink_to_fit();
        self.highs.shrink_to_fit();
        before
    }

    /// Records, used or not.
    pub(in crate::engine) fn records(&self) -> usize {
        self.entries.len()
    }

    /// The record at a position, if its rule is in a table.
    pub(in crate::engine) fn record(&self, position: usize) -> Option<EntryIndex> {
        let used = self.entries.get(position)?.table != TableNumber::NONE;
        used.then(|| EntryIndex(u32::try_from(position).expect("fewer rules than ids")))
    }

    #[inline]
    pub(in crate::engine) fn get(&self, index: EntryIndex) -> &Entry<W> {
        &self.entries[index.index()]
    }

    #[inline]
    pub(in crate::engine) fn get_mut(&mut self, index: EntryIndex) -> &mut Entry<W> {
        &mut self.entries[index.index()]
    }

    /// Whether a rule matches a key.
    #[inline]
    pub(in crate::engine) fn matches(&self, index: EntryIndex, key: &[u64; W]) -> bool {
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
                let found = (key[range.word] >> range.shift) & range.ones;
                let low = (entry.value[range.word] >> range.shift) & range.ones;
                let high = (entry.high >> range.high_shift) & range.ones;
                (low..=high).contains(&found)
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

    /// The rules of a table, found by looking at every record of a part of them.
    pub(in crate::engine) fn linked_to(
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

    /// The rule in the form that un-wildcarding works on.
    pub(in crate::engine) fn packed<'a>(
        &'a self,
        schema: &'a Schema,
        index: EntryIndex,
    ) -> PackedRule<'a> {
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

    /// Bytes held, spare room included.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<W>>() + self.highs.capacity() * size_of::<u64>()
    }

    /// Bytes that an arena holds after room for `rules` rules was reserved.
    pub(in crate::engine) fn bytes_for(schema: &Schema, rules: usize) -> usize {
        let wide = match schema.high_words() {
            0 | 1 => 0,
            words => words * size_of::<u64>(),
        };
        rules * (size_of::<Entry<W>>() + wide)
    }
}
