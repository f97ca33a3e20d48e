//! What a thread has counted: packets and bytes of entries, tables and groups.
//!
//! Each thread has counters of its own; the sum over threads counts.

use std::collections::BTreeMap;
use std::time::Duration;

use classyard::RuleId;

use super::Change;
use crate::action::GroupId;
use crate::flow::{FlowChange, TableId};
use crate::group::GroupChange;

/// Packets and bytes. A packet has the bytes of its frame at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// What came to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCount {
    /// Packets that were looked up.
    pub lookups: u64,
    /// Those that an entry matched.
    pub matched: u64,
}

/// What came to a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Packets that were sent to it.
    pub all: Count,
    /// Those that went to each bucket.
    pub buckets: Vec<Count>,
}

/// What a thread has counted.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The time that packets come at.
    pub(super) now: Duration,
    flows: Vec<(Count, Duration)>,
    tables: BTreeMap<TableId, TableCount>,
    groups: BTreeMap<GroupId, GroupCount>,
}

impl Counters {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Counters {
        Counters::default()
    }

    /// Says what time it is for the packets that come next.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// What an entry has matched, and when it did last; `None` for never.
    #[must_use]
    pub fn flow(&self, id: RuleId) -> (Count, Option<Duration>) {
        let found = self.flows.get(id.index()).copied().unwrap_or_default();
        (found.0, (found.0.packets > 0).then_some(found.1))
    }

    /// What came to a table.
    #[must_use]
    pub fn table(&self, table: TableId) -> TableCount {
        self.tables.get(&table).copied().unwrap_or_default()
    }

    /// What came to a group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> GroupCount {
        self.groups.get(&group).cloned().unwrap_or_default()
    }

    /// Begins at 0 with entries and groups that are new or gone, and with entries whose
    /// counters are reset.
    pub fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Flow(FlowChange::Changed {
                    reset_counts: false,
                    ..
                })
                | Change::Group(GroupChange::Changed { .. }) => {}
                Change::Flow(
                    FlowChange::Added(entry)
                    | FlowChange::Removed(entry, _)
                    | FlowChange::Changed { new: entry, .. },
                ) => {
                    if let Some(found) = self.flows.get_mut(entry.id.index()) {
                        *found = Default::default();
                    }
                }
                Change::Group(GroupChange::Added(group) | GroupChange::Removed(group)) => {
                    self.groups.remove(&group.id);
                }
            }
        }
    }

    #[inline]
    pub(super) fn count_flow(&mut self, id: RuleId, bytes: usize) {
        if self.flows.len() <= id.index() {
            self.flows.resize(id.index() + 1, Default::default());
        }
        let (count, last) = &mut self.flows[id.index()];
        count.add(bytes);
        *last = self.now;
    }

    pub(super) fn count_table(&mut self, table: TableId, lookups: usize, matched: usize) {
        let count = self.tables.entry(table).or_default();
        count.lookups += lookups as u64;
        count.matched += matched as u64;
    }

    pub(super) fn count_group(&mut self, group: GroupId, bytes: usize) {
        self.groups.entry(group).or_default().all.add(bytes);
    }

    pub(super) fn count_bucket(&mut self, group: GroupId, bucket: usize, bytes: usize) {
        let buckets = &mut self.groups.entry(group).or_default().buckets;
        if buckets.len() <= bucket {
            buckets.resize(bucket + 1, Count::default());
        }
        buckets[bucket].add(bytes);
    }
}
