//! The tuple space: tables of rules, found by masked key. `tss` and the forms of
//! `tuplemerge` share it; they differ in the table that they choose for a rule.
//!
//! # Idea
//! A *table* has a mask. A rule may be in the table if all bits of the mask are exact in
//! the rule, so every key that the rule matches has the rule's bits under the mask
//! ([TM19] §III.B). The hash of these bits of a key leads to the only chain of rules in
//! the table that can match. Each rule of the chain is compared with the key, including
//! ranges. Tables are ordered by their best rules, and a lookup ends when no later table
//! can improve its candidate.
//!
//! # Data layout
//! ```text
//! order   [ best | table ] [ best | table ] …          best first
//!                    │
//! tables  [ mask | best | rules | slots ]              one for each mask
//!                                   │
//! slots   [ tag | head ] [ tag | head ] …              linear probing, 8 B a slot
//!                    │
//! arena   [ value | mask | high | rank | next | table ] ──next──▶ …
//!           one rule, one cache line for IPv4            best rank first
//!
//! ids     { rule id → arena index }                    [TM19]'s map F
//! ```
//! In the shared form of [TM19] §III.D, all tables use one array of slots, and the hash
//! includes the table's number.
//!
//! Updates write the members and lookups read them. A layer above shares the whole space
//! with concurrent readers.
//!
//! # Lookup
//! See [`lookup`]: single keys, batches, and masked lookups.
//!
//! # Cost
//! Lookup: one hash and one slot for each table probed, one cache line for each rule
//! compared. Update: one probe in `ids`, one in a table, and a walk along one chain.
//! Memory in addition to the rules: 16 bytes a record, 13 to 26 a bucket, 10 to 20 a
//! rule in `ids`.
//!
//! # References
//! [TM19] §II.B.2 (tuple space search), §III.
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use hashbrown::{HashMap, hash_map};

use crate::budget::memory::{bytes_of, map_bytes};
use crate::budget::monitor::{Monitor, unwatched};
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::schema::Schema;
use crate::model::seed::splitmix;
use crate::model::seed::{MapState, Seed};
use crate::parts::simd::prefetch;
use crate::parts::sort::sort;

mod arena;
mod engine;
mod estimate;
mod lookup;
mod slots;

pub(crate) use arena::{Arena, EntryIndex};
pub(crate) use engine::{Placement, TupleEngine, place_one_by_one};
pub(crate) use estimate::{Placing, SpaceEstimate, TableEstimate, most_keys};

use arena::Entry;
use slots::{Slots, Tag};

/// A table of a tuple space. The number of a removed table is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableNumber(u32);

/// Returns the table of an entry of `order`.
fn number_of(&(_, number): &(u64, TableNumber)) -> TableNumber {
    number
}

impl TableNumber {
    const NONE: TableNumber = TableNumber(u32::MAX);

    /// Returns the table with that number.
    pub(crate) fn new(number: u32) -> TableNumber {
        TableNumber(number)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The new numbers of tables after compaction.
pub(crate) struct Renumbered(Vec<TableNumber>);

impl Renumbered {
    /// Returns the new number of a table that was kept.
    pub(crate) fn of(&self, table: TableNumber) -> TableNumber {
        self.0[table.index()]
    }
}

/// Tables have slots of their own, or share one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A hash index for each table.
    Private,
    /// One hash index keyed by table number and masked key ([TM19] §III.D.1).
    ///
    /// [TM19]: crate::papers#tm19
    Shared,
}

#[derive(Clone, Debug)]
struct Table<const W: usize> {
    mask: [u64; W],
    /// A bound: no rule of the table has a better rank. Exact, except between the
    /// removal of the best rule and the next [`TupleSpace::tighten`].
    best: u64,
    /// Added to hashes, so that tables with shared slots have different tags.
    salt: u64,
    slots: Slots,
    rules: usize,
    /// The best rule was removed and `best` is not yet corrected.
    stale: bool,
    /// Removals since `best` was exact.
    removed: usize,
    mark: Mark,
}

/// The use of a table while a plan is being installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// The plan's table with that number.
    Planned(usize),
    /// A table as at other times.
    Usual,
    /// Draining: accepts no rule, its rules are being moved out.
    Draining,
}

/// The tables, their order, and their rules.
pub(crate) struct TupleSpace<const W: usize> {
    schema: Arc<Schema>,
    arena: Arena<W>,
    tables: Vec<Table<W>>,
    free: Vec<TableNumber>,
    /// `(best, table)` of every table in use, ascending: best first.
    order: Vec<(u64, TableNumber)>,
    shared: Option<Slots>,
    ids: HashMap<RuleId, EntryIndex, MapState>,
    hasher: Hasher<W>,
    /// The number of changes since the space was made.
    changes: u64,
    /// The state that makes salts. Numbers of tables are reused, salts are not.
    salts: u64,
}

/// A stale bound is corrected after about 1 / `TIGHTEN_SHARE` of a table's rules were
/// removed, so removals take O(1) amortised in any order.
const TIGHTEN_SHARE: usize = 16;

/// The number of tables that move in the order for one step of work. It sets how often a
/// build reports progress, as does the next number.
const SHIFTED_TABLES_PER_STEP: usize = 64;

/// The number of records searched for one step of work.
const RECORDS_PER_STEP: usize = 8;

impl<const W: usize> TupleSpace<W> {
    pub(crate) fn new(schema: &Arc<Schema>, form: Form, seed: Seed) -> TupleSpace<W> {
        let mut state = seed.number();
        let hasher = Hasher::new(&mut state);
        TupleSpace {
            schema: Arc::clone(schema),
            arena: Arena::new(schema),
            tables: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            shared: (form == Form::Shared).then(Slots::new),
            ids: HashMap::default(),
            hasher,
            changes: 0,
            salts: splitmix(&mut state),
        }
    }

    /// Reserves memory for the first rules.
    pub(crate) fn reserve(
        &mut self,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let ids = map_bytes::<RuleId, EntryIndex>(rules);
        let shared = self.shared.as_ref().map_or(0, Slots::bytes);
        let memory = monitor.memory();
        memory.keep(shared + self.arena.reserved_bytes(rules).saturating_add(ids))?;
        self.arena.reserve(rules);
        self.ids.reserve(rules);
        Ok(())
    }

    /// Returns the least number of bytes for a space with `rules` rules.
    pub(crate) fn least_bytes(&self, rules: usize) -> usize {
        let ids = map_bytes::<RuleId, EntryIndex>(rules);
        self.arena.reserved_bytes(rules).saturating_add(ids)
    }

    /// The number of rules.
    pub(crate) fn len(&self) -> usize {
        self.arena.len()
    }

    /// The number of tables.
    pub(crate) fn table_count(&self) -> usize {
        self.order.len()
    }

    /// True if a rule has that id. Prefetches the rule's record, since an update of the
    /// rule usually follows.
    pub(crate) fn contains(&self, id: RuleId) -> bool {
        let entry = self.find(id);
        if let Some(entry) = entry {
            prefetch(self.arena.get(entry));
        }
        entry.is_some()
    }

    /// Appends a rule's packed words and returns its priority, or `None` if no rule has
    /// the id.
    pub(crate) fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let entry = *self.ids.get(&id)?;
        let rule = self.arena.packed(&self.schema, entry);
        for part in [rule.value, rule.mask, rule.high] {
            words.extend_from_slice(part);
        }
        self.arena.get(entry).winner().priority()
    }

    /// Returns a rule's action, or `None` if no rule has the id.
    pub(crate) fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.arena.get(self.find(id)?).action)
    }

    /// Returns all rules, in no particular order.
    pub(crate) fn winners(&self) -> Vec<Winner> {
        let entries = self.ids.values();
        entries
            .map(|&entry| self.arena.get(entry).winner())
            .collect()
    }

    /// Returns the tables and their masks, ordered by their best rules.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (TableNumber, &[u64; W])> {
        self.order
            .iter()
            .map(|&(_, number)| (number, &self.tables[number.index()].mask))
    }

    pub(crate) fn mask(&self, table: TableNumber) -> &[u64; W] {
        &self.tables[table.index()].mask
    }

    /// The number of rules in a table.
    pub(crate) fn rules_in(&self, table: TableNumber) -> usize {
        self.tables[table.index()].rules
    }

    pub(crate) fn mark(&self, table: TableNumber) -> Mark {
        self.tables[table.index()].mark
    }

    pub(crate) fn set_mark(&mut self, table: TableNumber, mark: Mark) {
        self.tables[table.index()].mark = mark;
    }

    /// Returns the number of tables that a lookup probes before no other table can have
    /// a rule better than that rank.
    pub(crate) fn tables_above(&self, rank: u64) -> usize {
        self.order.partition_point(|&(best, _)| best <= rank)
    }

    /// The number of records, used or not. Positions are smaller than this.
    pub(crate) fn records(&self) -> usize {
        self.arena.records()
    }

    /// Returns the rule in the record at a position, if it is in a table.
    pub(crate) fn record(&self, position: usize) -> Option<EntryIndex> {
        self.arena.record(position)
    }

    /// Returns the record of the rule with that id.
    pub(crate) fn find(&self, id: RuleId) -> Option<EntryIndex> {
        self.ids.get(&id).copied()
    }

    /// Returns the table of a rule.
    pub(crate) fn table_of(&self, entry: EntryIndex) -> TableNumber {
        self.arena.get(entry).table
    }

    pub(crate) fn entry(&self, entry: EntryIndex) -> &Entry<W> {
        self.arena.get(entry)
    }

    /// Stores a rule, in no table yet. Returns `None` if its id exists.
    pub(crate) fn store(&mut self, rule: &RuleRef<'_>) -> Option<EntryIndex> {
        let hash_map::Entry::Vacant(id) = self.ids.entry(rule.id()) else {
            return None;
        };
        self.changes += 1;
        Some(*id.insert(self.arena.add(rule)))
    }

    /// Makes an empty table.
    pub(crate) fn new_table(
        &mut self,
        mask: [u64; W],
        monitor: &mut Monitor<'_>,
    ) -> Result<TableNumber, BuildError> {
        monitor.memory().room_to_keep(&mut self.order)?;
        if self.free.is_empty() {
            monitor.memory().keep(Slots::LEAST_BYTES)?;
            monitor.memory().room_to_keep(&mut self.tables)?;
        }
        // Entries of the order move now, and again when the table gets its best rule.
        monitor.work(1 + self.order.len() / SHIFTED_TABLES_PER_STEP)?;
        let number = self.free.pop().unwrap_or_else(|| {
            TableNumber(u32::try_from(self.tables.len()).expect("fewer tables than rules"))
        });
        let table = Table {
            mask,
            best: u64::MAX,
            salt: if self.shared.is_some() {
                splitmix(&mut self.salts)
            } else {
                0
            },
            slots: Slots::new(),
            rules: 0,
            stale: false,
            removed: 0,
            mark: Mark::Usual,
        };
        if number.index() == self.tables.len() {
            self.tables.push(table);
        } else {
            self.tables[number.index()] = table;
        }
        self.order.push((u64::MAX, number));
        let last = self.order.len() - 1;
        self.sift(last);
        Ok(number)
    }

    /// Puts a stored rule into a table whose mask it fits.
    pub(crate) fn link(
        &mut self,
        table: TableNumber,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let rule = *self.arena.get(entry);
        debug_assert!(rule.fits(self.mask(table)));
        let tag = self.tag(table, &rule.value);
        match self.bucket(table, tag, &rule.value) {
            None => {
                self.slots_mut(table).insert(tag, entry, monitor)?;
                self.arena.get_mut(entry).next = EntryIndex::NONE;
            }
            Some((position, head)) if rule.rank < self.arena.get(head).rank => {
                self.slots_mut(table).set_head(position, entry);
                self.arena.get_mut(entry).next = head;
            }
            Some((_, head)) => {
                let mut before = head;
                loop {
                    monitor.work(1)?;
                    let next = self.arena.get(before).next;
                    if next == EntryIndex::NONE || rule.rank < self.arena.get(next).rank {
                        self.arena.get_mut(before).next = entry;
                        self.arena.get_mut(entry).next = next;
                        break;
                    }
                    before = next;
                }
            }
        }
        self.arena.get_mut(entry).table = table;
        self.tables[table.index()].rules += 1;
        if rule.rank < self.tables[table.index()].best {
            self.set_best(table, rule.rank);
        }
        Ok(())
    }

    /// Removes a rule from its table; the rule stays stored. An empty table stays until
    /// [`drop_if_empty`](Self::drop_if_empty).
    pub(crate) fn unlink(
        &mut self,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<TableNumber, BuildError> {
        let rule = *self.arena.get(entry);
        let number = rule.table;
        let tag = self.tag(number, &rule.value);
        let (position, head) = self
            .bucket(number, tag, &rule.value)
            .expect("a linked rule has a bucket");
        if head == entry {
            if rule.next == EntryIndex::NONE {
                self.slots_mut(number).remove(position, monitor)?;
            } else {
                self.slots_mut(number).set_head(position, rule.next);
            }
        } else {
            let mut before = head;
            while self.arena.get(before).next != entry {
                monitor.work(1)?;
                before = self.arena.get(before).next;
            }
            self.arena.get_mut(before).next = rule.next;
        }
        self.arena.get_mut(entry).table = TableNumber::NONE;
        let table = &mut self.tables[number.index()];
        table.rules -= 1;
        table.removed += 1;
        table.stale |= rule.rank == table.best;
        if table.stale && table.rules > 0 {
            self.tighten(number, monitor)?;
        }
        Ok(number)
    }

    /// Removes a rule from its table and from memory. Returns its table, or `None` if no
    /// rule has that id.
    pub(crate) fn remove(&mut self, id: RuleId) -> Option<TableNumber> {
        let entry = self.ids.remove(&id)?;
        let table = unwatched(|monitor| self.unlink(entry, monitor));
        self.arena.remove(entry);
        self.changes += 1;
        Some(table)
    }

    /// If most records are free, compacts rules and tables and frees the memory. Takes
    /// O(n) for the n remaining rules, at most once in n/2 removals. Returns the new
    /// numbers of tables.
    pub(crate) fn compact_if_sparse(&mut self) -> Option<Renumbered> {
        if !self.arena.is_sparse() {
            return None;
        }
        let mut numbers = vec![TableNumber::NONE; self.tables.len()];
        self.order.sort_unstable_by_key(number_of);
        for (next, (_, number)) in (0..).zip(&mut self.order) {
            numbers[number.index()] = TableNumber(next);
            *number = TableNumber(next);
        }
        self.order.sort_unstable();
        self.order.shrink_to_fit();
        let mut number = numbers.iter();
        self.tables
            .retain(|_| *number.next().expect("one each") != TableNumber::NONE);
        self.tables.shrink_to_fit();
        self.free = Vec::new();
        let moved = self.arena.compact(|number| numbers[number.index()]);
        for entry in self.ids.values_mut() {
            *entry = moved.to(*entry);
        }
        self.ids.shrink_to(self.ids.len());
        let private = self.tables.iter_mut().map(|table| &mut table.slots);
        for slots in private.chain(&mut self.shared) {
            slots.move_heads(|head| moved.to(head));
        }
        Some(Renumbered(numbers))
    }

    /// Removes a table if it has no rules; returns true if it did. Other tables keep
    /// their numbers and their order.
    pub(crate) fn drop_if_empty(&mut self, number: TableNumber) -> bool {
        let table = &mut self.tables[number.index()];
        if table.rules > 0 {
            return false;
        }
        let position = self.order.binary_search(&(table.best, number));
        self.order
            .remove(position.expect("every table is in the order"));
        table.slots = Slots::new();
        self.free.push(number);
        if self.order.is_empty() {
            self.tables = Vec::new();
            self.free = Vec::new();
        }
        true
    }

    /// Returns the rules of a table with the same masked key as `entry`, best first.
    /// `entry` need not be linked.
    pub(crate) fn chain(
        &self,
        table: TableNumber,
        entry: EntryIndex,
    ) -> impl Iterator<Item = EntryIndex> + '_ {
        let value = &self.arena.get(entry).value;
        let tag = self.tag(table, value);
        let head = self
            .bucket(table, tag, value)
            .map_or(EntryIndex::NONE, |(_, head)| head);
        self.walk(head)
    }

    /// Moves rules that fit the mask of `to` from `from` to `to`, if their chain in `to`
    /// does not grow longer than `limit`. Returns the number of moved rules.
    pub(crate) fn move_fitting(
        &mut self,
        from: TableNumber,
        to: TableNumber,
        limit: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let mask = *self.mask(to);
        let bytes = bytes_of::<EntryIndex>(self.tables[from.index()].rules);
        monitor.memory().take(bytes)?;
        let mut moving = Vec::with_capacity(self.tables[from.index()].rules);
        self.visit(from, monitor, |entry, rule| {
            if rule.fits(&mask) {
                moving.push(entry);
            }
        })?;
        let mut moved_rules = 0;
        for &entry in &moving {
            monitor.work(1)?;
            if self.chain(to, entry).take(limit).count() < limit {
                self.unlink(entry, monitor)?;
                self.link(to, entry, monitor)?;
                moved_rules += 1;
            }
        }
        drop(moving);
        monitor.memory().give_back(bytes);
        Ok(moved_rules)
    }

    /// Sorts stored rules, best first.
    pub(crate) fn sort_by_rank(
        &self,
        rules: &mut Vec<EntryIndex>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        // With a copy of each rank, since each comparison would otherwise wait for
        // memory.
        let bytes = bytes_of::<(u64, EntryIndex)>(rules.len());
        monitor.memory().take(bytes)?;
        let mut ranked = Vec::with_capacity(rules.len());
        for &entry in &*rules {
            ranked.push((self.arena.get(entry).rank, entry));
            monitor.work(1)?;
        }
        sort(&mut ranked, monitor)?;
        for (to, (_, entry)) in rules.iter_mut().zip(&ranked) {
            *to = *entry;
        }
        drop(ranked);
        monitor.memory().give_back(bytes);
        Ok(())
    }

    /// Returns all stored rules, also rules that are in no table.
    pub(crate) fn stored(&self) -> Vec<EntryIndex> {
        self.ids.values().copied().collect()
    }

    /// Removes all tables; the rules stay stored.
    pub(crate) fn unlink_all(&mut self) {
        self.tables.clear();
        self.free.clear();
        self.order.clear();
        if self.shared.is_some() {
            self.shared = Some(Slots::new());
        }
    }

    /// The hash function.
    pub(crate) fn hasher(&self) -> Hasher<W> {
        self.hasher
    }

    /// The number of insertions and removals so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Calls `see` for each rule of a table.
    fn visit(
        &self,
        table: TableNumber,
        monitor: &mut Monitor<'_>,
        mut see: impl FnMut(EntryIndex, &Entry<W>),
    ) -> Result<(), BuildError> {
        if self.shared.is_none() {
            for head in self.tables[table.index()].slots.heads() {
                for entry in self.walk(head) {
                    see(entry, self.arena.get(entry));
                    monitor.work(1)?;
                }
            }
            return Ok(());
        }
        // Shared slots do not record the table of a chain.
        let mut start = 0;
        while start < self.arena.records() {
            let stop = self.arena.records().min(start + Monitor::STEPS);
            for entry in self.arena.linked_to(table, start..stop) {
                see(entry, self.arena.get(entry));
            }
            monitor.work((stop - start) / RECORDS_PER_STEP)?;
            start = stop;
        }
        Ok(())
    }

    fn walk(&self, head: EntryIndex) -> impl Iterator<Item = EntryIndex> + '_ {
        let mut next = head;
        std::iter::from_fn(move || {
            (next != EntryIndex::NONE).then(|| {
                let entry = next;
                next = self.arena.get(entry).next;
                entry
            })
        })
    }

    /// Corrects a bound that became too good, if enough rules were removed to pay for a
    /// scan of the table.
    fn tighten(
        &mut self,
        number: TableNumber,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let table = &self.tables[number.index()];
        let cost = if self.shared.is_some() {
            self.arena.len()
        } else {
            table.slots.used()
        };
        if table.removed * TIGHTEN_SHARE < cost {
            return Ok(());
        }
        let mut best = u64::MAX;
        self.visit(number, monitor, |_, rule| best = best.min(rule.rank))?;
        self.set_best(number, best);
        let table = &mut self.tables[number.index()];
        table.stale = false;
        table.removed = 0;
        Ok(())
    }

    /// Changes a table's bound, and moves its entry in the order.
    fn set_best(&mut self, number: TableNumber, best: u64) {
        let table = &mut self.tables[number.index()];
        let position = self.order.binary_search(&(table.best, number));
        let position = position.expect("every table is in the order");
        table.best = best;
        table.stale = false;
        self.order[position].0 = best;
        self.sift(position);
    }

    /// Moves an entry of the order to its sorted position.
    fn sift(&mut self, place: usize) {
        let entry = self.order[place];
        let (before, after) = (&self.order[..place], &self.order[place + 1..]);
        let target = before.partition_point(|other| *other < entry);
        if target < place {
            self.order[target..=place].rotate_right(1);
        } else {
            let later = after.partition_point(|other| *other < entry);
            self.order[place..=place + later].rotate_left(1);
        }
    }

    fn slots(&self, table: TableNumber) -> &Slots {
        self.shared
            .as_ref()
            .unwrap_or(&self.tables[table.index()].slots)
    }

    fn slots_mut(&mut self, table: TableNumber) -> &mut Slots {
        self.shared
            .as_mut()
            .unwrap_or(&mut self.tables[table.index()].slots)
    }

    fn tag(&self, table: TableNumber, key: &[u64; W]) -> Tag {
        let table = &self.tables[table.index()];
        self.hasher.hash(table.salt, &table.mask, key)
    }

    /// Returns the bucket of a masked key: its slot and the head of its chain.
    fn bucket(&self, table: TableNumber, tag: Tag, key: &[u64; W]) -> Option<(usize, EntryIndex)> {
        self.slots(table)
            .with_tag(tag)
            .find(|&(_, head)| self.belongs(table, head, key))
    }

    /// True if a chain belongs to a masked key. Another key or another table may have
    /// the same tag.
    #[inline]
    fn belongs(&self, number: TableNumber, head: EntryIndex, key: &[u64; W]) -> bool {
        let entry = self.arena.get(head);
        let mask = &self.tables[number.index()].mask;
        entry.table == number
            && (0..W).all(|word| (entry.value[word] ^ key[word]) & mask[word] == 0)
    }

    /// Bytes held, including the rules.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.capacity() * size_of::<Table<W>>()
            + self.order.capacity() * size_of::<(u64, TableNumber)>();
        let slots: usize = self.tables.iter().map(|table| table.slots.bytes()).sum();
        let shared = self.shared.as_ref().map_or(0, Slots::bytes);
        self.arena.bytes() + tables + slots + shared + self.ids.allocation_size()
    }
}

/// A space's hash function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher<const W: usize> {
    secrets: [u64; W],
    /// Multiplies words without a partner; odd.
    multiplier: u64,
}

impl<const W: usize> Hasher<W> {
    fn new(state: &mut u64) -> Hasher<W> {
        Hasher {
            secrets: std::array::from_fn(|_| splitmix(state)),
            multiplier: splitmix(state) | 1,
        }
    }

    /// Hashes a key under a mask: the sum of a folded multiplication for each pair of
    /// words; each pair has secrets of its own.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the tag is 32 of the 64 bits
    pub(crate) fn hash(&self, salt: u64, mask: &[u64; W], key: &[u64; W]) -> Tag {
        let word = |w: usize| (key[w] & mask[w]) ^ self.secrets[w];
        let mut sum = salt;
        let mut w = 0;
        while w + 1 < W {
            sum = sum.wrapping_add(folded(word(w), word(w + 1)));
            w += 2;
        }
        if W % 2 == 1 {
            sum = sum.wrapping_add(folded(word(W - 1), self.multiplier));
        }
        if W > 2 {
            sum = folded(sum ^ self.secrets[0], self.multiplier);
        }
        (sum ^ (sum >> 32)) as Tag
    }
}

/// Returns the exclusive or of the halves of the 128-bit product.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the two halves
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
