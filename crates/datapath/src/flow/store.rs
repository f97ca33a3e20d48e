//! The store of all flow entries of all tables, which messages change.
//!
//! A message makes several changes or none. Each change has the data to undo it, so several
//! messages can be carried out together or not at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;

use super::entries::Entries;
use super::entry::FlowEntry;
use super::instructions::Instructions;
use super::match_index::MatchIndex;
use super::modify::{Command, FlowMod};
use super::overlaps::OverlapIndex;
use super::table_config::{TableConfig, TableMod};
use super::table_id::TableId;
use super::users::{Used, Users};
use super::widths::Widths;
use crate::error::{ErrorCode, OpenFlowError};
use crate::flow_match::FlowMatch;

/// The reason why an entry was removed (`ofp_flow_removed_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// No packet matched during the idle timeout.
    IdleTimeout,
    /// The hard timeout has passed.
    HardTimeout,
    /// A message deleted the entry.
    Delete,
    /// A group that it used was deleted.
    GroupDelete,
    /// A meter that it used was deleted.
    MeterDelete,
    /// The table was full, and a new entry replaced this entry.
    Eviction,
}

impl RemovalReason {
    /// Returns the name of the reason.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RemovalReason::IdleTimeout => "idle timeout",
            RemovalReason::HardTimeout => "hard timeout",
            RemovalReason::Delete => "deleted",
            RemovalReason::GroupDelete => "group deleted",
            RemovalReason::MeterDelete => "meter deleted",
            RemovalReason::Eviction => "evicted",
        }
    }
}

/// A change of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowChange {
    /// The entry was added.
    Added(FlowEntry),
    /// The entry has new instructions, or was replaced by an entry with the same match and
    /// priority.
    Changed {
        /// The entry before the change.
        old: Box<FlowEntry>,
        /// The entry after the change.
        new: Box<FlowEntry>,
        /// True if its counters are set to 0.
        reset_counts: bool,
    },
    /// The entry was removed.
    Removed(FlowEntry, RemovalReason),
}

/// Unused instructions are dropped when there are more instructions than entries plus this
/// number.
const MAX_SPARE_INSTRUCTIONS: usize = 256;

/// The sort key for eviction: the least important entry first, then the oldest.
type EvictionKey = (u16, Duration, RuleId);

fn eviction_key(entry: &FlowEntry) -> EvictionKey {
    (entry.importance, entry.added, entry.id)
}

/// The flow entries of all tables of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct FlowStore {
    entries: Entries,
    by_match: MatchIndex,
    tables: BTreeMap<TableId, BTreeSet<RuleId>>,
    configs: BTreeMap<TableId, TableConfig>,
    /// The entries of tables with eviction, in the order of eviction.
    leaving: BTreeMap<TableId, BTreeSet<EvictionKey>>,
    widths: Widths,
    users: Users,
    /// Indexes of tables that received a message with `check_overlap`.
    overlaps: BTreeMap<TableId, OverlapIndex>,
    /// Free numbers below `next`.
    free: BTreeSet<u32>,
    /// Numbers of removed entries that workers may still refer to.
    retired: HashSet<u32>,
    next: u32,
    /// Instructions, stored once for all entries with equal instructions. So the packets of
    /// many entries load few cache lines.
    instructions: HashSet<Arc<Instructions>>,
}

impl FlowStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> FlowStore {
        FlowStore::default()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an entry by its number.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&FlowEntry> {
        self.entries.get(&id)
    }

    /// Returns all entries, in the order of tables and numbers.
    pub fn iter(&self) -> impl Iterator<Item = &FlowEntry> {
        let ids = self.tables.values().flatten();
        ids.map(|id| &self.entries[id])
    }

    /// Returns the entries behind one, in the order of tables and numbers; all entries if
    /// `last` is `None`. The entry `last` need not exist any more.
    pub fn after(&self, last: Option<(TableId, RuleId)>) -> impl Iterator<Item = &FlowEntry> {
        let (first_table, last_id) = match last {
            Some((table, id)) => (table, Some(id)),
            None => (TableId(0), None),
        };
        let tables = self.tables.range(first_table..);
        let ids = tables.flat_map(move |(&table, ids)| {
            let last_id = last_id.filter(|_| table == first_table);
            let from = last_id.map_or(Bound::Unbounded, Bound::Excluded);
            ids.range((from, Bound::Unbounded))
        });
        ids.map(|id| &self.entries[id])
    }

    /// Returns the entries of a table, in the order of their numbers.
    pub fn table(&self, table: TableId) -> impl Iterator<Item = &FlowEntry> {
        let ids = self.tables.get(&table).into_iter().flatten();
        ids.map(|id| &self.entries[id])
    }

    /// Returns the number of entries of a table.
    #[must_use]
    pub fn table_len(&self, table: TableId) -> usize {
        self.tables.get(&table).map_or(0, BTreeSet::len)
    }

    /// Returns the configuration of a table.
    #[must_use]
    pub fn config(&self, table: TableId) -> TableConfig {
        self.configs.get(&table).copied().unwrap_or_default()
    }

    /// Configures a table. Returns the old configuration.
    ///
    /// # Errors
    /// [`OpenFlowError`] if the table does not exist or the maximum of entries is too large;
    /// then nothing is changed.
    pub fn configure(&mut self, message: &TableMod) -> Result<TableConfig, OpenFlowError> {
        let TableMod { table, config } = *message;
        if !table.is_table() {
            let message = format!("there is no table {table} to configure");
            return Err(OpenFlowError::new(ErrorCode::TableModBadTable, message));
        }
        if config.max_entries > TableConfig::MAX_ENTRIES {
            let message = format!(
                "table {table}: {} entries; at most {} are possible",
                config.max_entries,
                TableConfig::MAX_ENTRIES
            );
            return Err(OpenFlowError::new(ErrorCode::TableModBadConfig, message));
        }
        if config.eviction {
            let turns = self.table(table).map(eviction_key).collect();
            self.leaving.insert(table, turns);
        } else {
            self.leaving.remove(&table);
        }
        let old = self.configs.insert(table, config);
        Ok(old.unwrap_or_default())
    }

    /// Frees the number of a removed entry. Before this call, no new entry gets the number,
    /// since workers may still count packets for the removed entry.
    pub fn release(&mut self, id: RuleId) {
        if self.retired.remove(&id.get()) {
            self.free.insert(id.get());
        }
    }

    /// Carries out a message. Returns the changes in order.
    ///
    /// # Errors
    /// [`OpenFlowError`]; then nothing is changed.
    pub fn apply(
        &mut self,
        message: &FlowMod,
        now: Duration,
    ) -> Result<Vec<FlowChange>, OpenFlowError> {
        self.check_table(message)?;
        match message.command {
            Command::Add => self.add(message, now),
            Command::Modify { .. } => self.modify(message),
            Command::Delete { .. } => Ok(self.delete(message)),
        }
    }

    /// Undoes the latest changes. `changes` has them in the order of [`apply`](Self::apply).
    ///
    /// # Panics
    /// If these are not the latest changes.
    pub fn undo(&mut self, changes: Vec<FlowChange>) {
        for change in changes.into_iter().rev() {
            match change {
                FlowChange::Added(entry) => {
                    self.take_out(entry.id);
                    self.release(entry.id);
                }
                FlowChange::Changed { old, .. } => {
                    self.put_over(*old);
                }
                FlowChange::Removed(entry, _) => self.put_in(entry),
            }
        }
    }

    /// Removes the entry with an id, for a reason other than a message, such as a timeout.
    /// Returns `None` if no entry has this id.
    pub fn remove(&mut self, id: RuleId, reason: RemovalReason) -> Option<FlowChange> {
        let entry = self.take_out(id)?;
        Some(FlowChange::Removed(entry, reason))
    }

    fn find(&self, table: TableId, priority: u16, flow: &FlowMatch) -> Option<RuleId> {
        self.by_match.find(&self.entries, table, priority, flow)
    }

    fn check_table(&self, message: &FlowMod) -> Result<(), OpenFlowError> {
        let deletes = matches!(message.command, Command::Delete { .. });
        if message.table.is_table() || (deletes && message.table == TableId::ALL) {
            return Ok(());
        }
        let message = format!(
            "there is no table {}; tables have the numbers 0 to {}",
            message.table,
            TableId::LAST
        );
        Err(OpenFlowError::new(ErrorCode::FlowModBadTable, message))
    }

    fn add(&mut self, message: &FlowMod, now: Duration) -> Result<Vec<FlowChange>, OpenFlowError> {
        message.instructions.check(message.table, &message.flow)?;
        let known = self.find(message.table, message.priority, &message.flow);
        if message.flags.check_overlap {
            self.check_overlap(message)?;
        }
        let mut changes = Vec::new();
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.smallest_free()?;
                if let Err(error) = self.widths.check(message.table, &message.flow) {
                    let message = format!("table {}, {}: {error}", message.table, message.flow);
                    return Err(OpenFlowError::new(ErrorCode::FlowModTableFull, message));
                }
                changes.extend(self.make_room(message)?);
                id
            }
        };
        let new = FlowEntry {
            id,
            table: message.table,
            priority: message.priority,
            flow: Arc::clone(&message.flow),
            instructions: self.shared(&message.instructions),
            cookie: message.cookie,
            idle_timeout: message.idle_timeout,
            hard_timeout: message.hard_timeout,
            importance: message.importance,
            flags: message.flags,
            added: now,
        };
        if known.is_none() {
            self.put_in(new.clone());
            changes.push(FlowChange::Added(new));
            return Ok(changes);
        }
        let old = self.put_over(new.clone());
        changes.push(FlowChange::Changed {
            old: Box::new(old),
            new: Box::new(new),
            reset_counts: message.flags.reset_counts,
        });
        Ok(changes)
    }

    /// Ensures that a table has room for a new entry. Returns the eviction, if needed.
    fn make_room(&mut self, message: &FlowMod) -> Result<Option<FlowChange>, OpenFlowError> {
        let config = self.config(message.table);
        let entries = self.table_len(message.table);
        if entries < config.max_entries as usize {
            return Ok(None);
        }
        let turns = self.leaving.get(&message.table);
        let first = turns.and_then(BTreeSet::first).copied();
        match first.filter(|(importance, ..)| *importance <= message.importance) {
            Some((.., id)) => Ok(self.remove(id, RemovalReason::Eviction)),
            None => {
                let message = format!(
                    "table {} is full: it has {entries} entries and may have {}{}",
                    message.table,
                    config.max_entries,
                    match config.eviction {
                        true => ", all more important",
                        false => "",
                    }
                );
                Err(OpenFlowError::new(ErrorCode::FlowModTableFull, message))
            }
        }
    }

    /// Refuses an entry that overlaps an entry of the same priority, even if both have the
    /// same match.
    fn check_overlap(&mut self, message: &FlowMod) -> Result<(), OpenFlowError> {
        let table = message.table;
        if !self.overlaps.contains_key(&table) {
            let index = OverlapIndex::new(self.table(table));
            self.overlaps.insert(table, index);
        }
        let index = &self.overlaps[&table];
        match index.overlapping(message.priority, &message.flow) {
            None => Ok(()),
            Some(id) => {
                let overlapped = &self.entries[&id];
                let message = format!(
                    "{}: the entry {} has the same priority, {}, and matches some of the same packets",
                    message.flow, overlapped.flow, overlapped.priority
                );
                Err(OpenFlowError::new(ErrorCode::FlowModOverlap, message))
            }
        }
    }

    /// Returns the entries that use a group or meter, in the order of tables and numbers.
    pub(crate) fn users(&self, used: Used) -> impl Iterator<Item = RuleId> {
        self.users.of(used)
    }

    fn modify(&mut self, message: &FlowMod) -> Result<Vec<FlowChange>, OpenFlowError> {
        let ids = self.meant(message);
        // If the instructions do not fit an entry's match, nothing is changed.
        for id in &ids {
            let entry = &self.entries[id];
            message.instructions.check(entry.table, &entry.flow)?;
        }
        if ids.is_empty() {
            message.instructions.check(message.table, &message.flow)?;
        }
        let shared = self.shared(&message.instructions);
        let changes = ids.into_iter().map(|id| {
            let entry = self.entries.get_mut(&id).expect("a known entry");
            let old = entry.clone();
            entry.instructions = Arc::clone(&shared);
            self.users.remove(&old);
            self.users.add(entry);
            FlowChange::Changed {
                old: Box::new(old),
                new: Box::new(entry.clone()),
                reset_counts: message.flags.reset_counts,
            }
        });
        Ok(changes.collect())
    }

    fn delete(&mut self, message: &FlowMod) -> Vec<FlowChange> {
        let ids = self.meant(message);
        let removed = ids
            .into_iter()
            .filter_map(|id| self.remove(id, RemovalReason::Delete));
        removed.collect()
    }

    /// Returns the entries to modify or delete, in the order of tables and numbers.
    fn meant(&self, message: &FlowMod) -> Vec<RuleId> {
        let strict = matches!(
            message.command,
            Command::Modify { strict: true } | Command::Delete { strict: true }
        );
        let tables = self.tables.keys().copied();
        let tables =
            tables.filter(|&table| message.table == TableId::ALL || message.table == table);
        let mut meant = Vec::new();
        for table in tables {
            if strict {
                let id = self.find(table, message.priority, &message.flow);
                meant.extend(id.filter(|id| message.means(&self.entries[id])));
            } else {
                let entries = self.table(table);
                meant.extend(
                    entries
                        .filter(|entry| message.means(entry))
                        .map(|entry| entry.id),
                );
            }
        }
        meant
    }

    /// Returns the stored instructions that equal `instructions`, which all entries with
    /// these instructions share. Stores them if there are none.
    fn shared(&mut self, instructions: &Arc<Instructions>) -> Arc<Instructions> {
        if let Some(known) = self.instructions.get(instructions) {
            return Arc::clone(known);
        }
        if self.instructions.len() > self.entries.len() + MAX_SPARE_INSTRUCTIONS {
            // Drops instructions that no entry uses.
            self.instructions
                .retain(|known| Arc::strong_count(known) > 1);
        }
        self.instructions.insert(Arc::clone(instructions));
        Arc::clone(instructions)
    }

    fn smallest_free(&self) -> Result<RuleId, OpenFlowError> {
        let number = self.free.first().copied().unwrap_or(self.next);
        RuleId::new(number).map_err(|_| {
            let message = "no number is free for another flow entry".to_owned();
            OpenFlowError::new(ErrorCode::FlowModTableFull, message)
        })
    }

    /// Replaces the entry with the same number. Returns the old entry.
    fn put_over(&mut self, entry: FlowEntry) -> FlowEntry {
        let (id, new) = (entry.id, eviction_key(&entry));
        let turns = self.leaving.get_mut(&entry.table);
        let old = self.entries.insert(id, entry).expect("a known entry");
        self.users.remove(&old);
        self.users.add(&self.entries[&id]);
        if let Some(turns) = turns {
            turns.remove(&eviction_key(&old));
            turns.insert(new);
        }
        old
    }

    fn put_in(&mut self, entry: FlowEntry) {
        let (id, number) = (entry.id, entry.id.get());
        if !self.free.remove(&number) && !self.retired.remove(&number) {
            self.free.extend(self.next..number);
            self.next = self.next.max(number + 1);
        }
        self.by_match.insert(&entry);
        self.widths.add(entry.table, &entry.flow);
        self.users.add(&entry);
        if let Some(index) = self.overlaps.get_mut(&entry.table) {
            index.add(&entry);
        }
        if let Some(turns) = self.leaving.get_mut(&entry.table) {
            turns.insert(eviction_key(&entry));
        }
        self.tables.entry(entry.table).or_default().insert(id);
        let old = self.entries.insert(id, entry);
        assert!(old.is_none(), "the number has no other entry");
    }

    fn take_out(&mut self, id: RuleId) -> Option<FlowEntry> {
        let entry = self.entries.remove(&id)?;
        self.by_match.remove(&entry);
        self.widths.remove(entry.table, &entry.flow);
        self.users.remove(&entry);
        if let Some(index) = self.overlaps.get_mut(&entry.table) {
            index.remove(&entry);
        }
        if let Some(turns) = self.leaving.get_mut(&entry.table) {
            turns.remove(&eviction_key(&entry));
        }
        if let Some(ids) = self.tables.get_mut(&entry.table) {
            ids.remove(&id);
            if ids.is_empty() {
                self.tables.remove(&entry.table);
            }
        }
        self.retired.insert(id.get());
        Some(entry)
    }
}
