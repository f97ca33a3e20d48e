//! All flow entries of all tables, changed by messages.
//!
//! A message makes several changes or none. Each change has all that it takes to undo
//! it, so that several messages can be made together or not at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;

use super::entries::Entries;
use super::entry::{FlowEntry, TableId};
use super::instructions::Instructions;
use super::match_index::MatchIndex;
use super::modify::{Command, FlowMod};
use super::overlaps::OverlapIndex;
use super::table_config::{TableConfig, TableMod};
use super::users::{Used, Users};
use super::widths::Widths;
use crate::error::{ErrorCode, OpenFlowError};
use crate::flow_match::FlowMatch;

/// Why an entry is gone (`ofp_flow_removed_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// No packet came for the time of its idle timeout.
    IdleTimeout,
    /// The time of its hard timeout is over.
    HardTimeout,
    /// It was deleted.
    Delete,
    /// A group that it used was deleted.
    GroupDelete,
    /// A meter that it used was deleted.
    MeterDelete,
    /// The table was full, and another entry counted more.
    Eviction,
}

impl RemovalReason {
    /// What it is called.
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

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowChange {
    /// It was added.
    Added(FlowEntry),
    /// It has other instructions, or all is new but match and priority.
    Changed {
        /// What it was.
        old: Box<FlowEntry>,
        /// What it is.
        new: Box<FlowEntry>,
        /// Its counters begin at 0.
        reset_counts: bool,
    },
    /// It is gone.
    Removed(FlowEntry, RemovalReason),
}

/// Instructions beside one for each entry that are kept although no entry may have
/// them.
const SPARE: usize = 256;

/// When an entry has to go: the least important first, then the oldest.
type Turn = (u16, Duration, RuleId);

fn turn(entry: &FlowEntry) -> Turn {
    (entry.importance, entry.added, entry.id)
}

/// All flow entries.
#[derive(Clone, Debug, Default)]
pub struct FlowStore {
    entries: Entries,
    by_match: MatchIndex,
    tables: BTreeMap<TableId, BTreeSet<RuleId>>,
    configs: BTreeMap<TableId, TableConfig>,
    /// In tables with eviction: entries in the order in which they go.
    leaving: BTreeMap<TableId, BTreeSet<Turn>>,
    widths: Widths,
    users: Users,
    /// Of tables that got a message with `check_overlap`.
    overlaps: BTreeMap<TableId, OverlapIndex>,
    /// Numbers below `next` that no entry has.
    free: BTreeSet<u32>,
    /// Numbers of entries that are gone and that something may still refer to.
    retired: HashSet<u32>,
    next: u32,
    /// Each of the instructions once, however many entries have the same: packets of
    /// many entries then need few lines of memory.
    instructions: HashSet<Arc<Instructions>>,
}

impl FlowStore {
    /// No entry.
    #[must_use]
    pub fn new() -> FlowStore {
        FlowStore::default()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An entry by its number.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&FlowEntry> {
        self.entries.get(&id)
    }

    /// All entries, table by table and by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &FlowEntry> {
        let ids = self.tables.values().flatten();
        ids.map(|id| &self.entries[id])
    }

    /// The entries of a table, by their numbers.
    pub fn table(&self, table: TableId) -> impl Iterator<Item = &FlowEntry> {
        let ids = self.tables.get(&table).into_iter().flatten();
        ids.map(|id| &self.entries[id])
    }

    /// How a table is configured.
    #[must_use]
    pub fn config(&self, table: TableId) -> TableConfig {
        self.configs.get(&table).copied().unwrap_or_default()
    }

    /// Configures a table; returns how it was configured.
    ///
    /// # Errors
    /// [`OpenFlowError`]; nothing is changed then.
    pub fn configure(&mut self, message: &TableMod) -> Result<TableConfig, OpenFlowError> {
        let TableMod { table, config } = *message;
        if !table.is_table() {
            let message = format!("there is no table {table} to configure");
            return Err(OpenFlowError::new(ErrorCode::TableModBadTable, message));
        }
        if config.max_entries > TableConfig::MOST {
            let message = format!(
                "table {table}: {} entries; at most {} are possible",
                config.max_entries,
                TableConfig::MOST
            );
            return Err(OpenFlowError::new(ErrorCode::TableModBadConfig, message));
        }
        if config.eviction {
            let turns = self.table(table).map(turn).collect();
            self.leaving.insert(table, turns);
        } else {
            self.leaving.remove(&table);
        }
        let old = self.configs.insert(table, config);
        Ok(old.unwrap_or_default())
    }

    /// Frees the number of an entry that is gone. A number is not given to a new entry
    /// before: workers that count packets by numbers may still count for the old one.
    pub fn release(&mut self, id: RuleId) {
        if self.retired.remove(&id.get()) {
            self.free.insert(id.get());
        }
    }

    /// Carries a message out; what was changed, in the order in which it was.
    ///
    /// # Errors
    /// [`OpenFlowError`]; nothing is changed then.
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

    /// Takes back what the last messages changed: all changes since some moment, in
    /// the order in which they were made.
    ///
    /// # Panics
    /// When these are not the last changes.
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

    /// Removes an entry for a reason of the switch's own.
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

    /// Sees to it that a table has room for an entry more.
    fn make_room(&mut self, message: &FlowMod) -> Result<Option<FlowChange>, OpenFlowError> {
        let config = self.config(message.table);
        let held = self.tables.get(&message.table).map_or(0, BTreeSet::len);
        if held < config.max_entries as usize {
            return Ok(None);
        }
        let turns = self.leaving.get(&message.table);
        let first = turns.and_then(BTreeSet::first).copied();
        match first.filter(|(importance, ..)| *importance <= message.importance) {
            Some((.., id)) => Ok(self.remove(id, RemovalReason::Eviction)),
            None => {
                let message = format!(
                    "table {} is full: it has {held} entries and may have {}{}",
                    message.table,
                    config.max_entries,
                    match config.eviction {
                        true => ", all of more importance",
                        false => "",
                    }
                );
                Err(OpenFlowError::new(ErrorCode::FlowModTableFull, message))
            }
        }
    }

    /// Refuses an entry beside one of the same priority that some packet matches as
    /// well, even if that is one with the same match.
    fn check_overlap(&mut self, message: &FlowMod) -> Result<(), OpenFlowError> {
        let table = message.table;
        if !self.overlaps.contains_key(&table) {
            let index = OverlapIndex::new(self.table(table));
            self.overlaps.insert(table, index);
        }
        let index = self.overlaps.get_mut(&table).expect("it is there now");
        let entries = &self.entries;
        let flow = |id: RuleId| &*entries[&id].flow;
        match index.overlapping(message.priority, &message.flow, flow) {
            None => Ok(()),
            Some(other) => {
                let other = &self.entries[&other];
                let message = format!(
                    "{}: the entry {} has the same priority, {}, and matches some of the same packets",
                    message.flow, other.flow, other.priority
                );
                Err(OpenFlowError::new(ErrorCode::FlowModOverlap, message))
            }
        }
    }

    /// Returns the entries that use a group or meter, table by table and by their
    /// numbers.
    pub(crate) fn users(&self, used: Used) -> impl Iterator<Item = RuleId> {
        self.users.of(used)
    }

    fn modify(&mut self, message: &FlowMod) -> Result<Vec<FlowChange>, OpenFlowError> {
        let ids = self.meant(message);
        // Instructions fit each of the matches, or nothing is changed.
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

    /// The entries that a modification or deletion means, table by table and by their
    /// numbers.
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

    /// The same instructions, in memory that all entries share which have them.
    fn shared(&mut self, instructions: &Arc<Instructions>) -> Arc<Instructions> {
        if let Some(known) = self.instructions.get(instructions) {
            return Arc::clone(known);
        }
        if self.instructions.len() > self.entries.len() + SPARE {
            // Those that no entry has any more.
            self.instructions
                .retain(|known| Arc::strong_count(known) > 1);
        }
        self.instructions.insert(Arc::clone(instructions));
        Arc::clone(instructions)
    }

    fn smallest_free(&self) -> Result<RuleId, OpenFlowError> {
        let number = self.free.first().copied().unwrap_or(self.next);
        RuleId::new(number).map_err(|_| {
            let message = "the switch has as many flow entries as there are numbers".to_owned();
            OpenFlowError::new(ErrorCode::FlowModTableFull, message)
        })
    }

    /// Puts an entry in the place of the one with its number, which is returned.
    fn put_over(&mut self, entry: FlowEntry) -> FlowEntry {
        let (id, new) = (entry.id, turn(&entry));
        let turns = self.leaving.get_mut(&entry.table);
        let old = self.entries.insert(id, entry).expect("a known entry");
        self.users.remove(&old);
        self.users.add(&self.entries[&id]);
        if let Some(turns) = turns {
            turns.remove(&turn(&old));
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
            turns.insert(turn(&entry));
        }
        self.tables.entry(entry.table).or_default().insert(id);
        let before = self.entries.insert(id, entry);
        assert!(before.is_none(), "a number is of one entry");
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
            turns.remove(&turn(&entry));
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
