//! The complete state of a switch: entries, groups, meters, tables, ports, counters. A
//! bundle is applied to a copy of it first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::{FlowEntry, RemovalReason, TableConfig, TableId};
use classyard_datapath::group::Group;
use classyard_datapath::limits::LimitCounts;
use classyard_datapath::pipeline::{
    Count, GroupCount, MeterCount, PortState, RemovedFlow, TableCount,
};
use classyard_datapath::{GroupId, MeterId, PortNo};

use crate::metering::Running;

/// A flow entry with its counters.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The entry.
    pub entry: FlowEntry,
    /// Packets and bytes that it has matched since it was added, or since its counters
    /// were reset.
    pub count: Count,
    /// The time of its last matching packet.
    pub last_match: Option<Duration>,
}

/// A group with its counters.
#[derive(Clone, Debug)]
pub struct CountedGroup {
    /// The group.
    pub group: Arc<Group>,
    /// Packets and bytes that it has processed.
    pub count: GroupCount,
}

/// A meter with its token buckets and counters.
#[derive(Clone, Debug)]
pub struct CountedMeter {
    /// The meter, and the fill levels of its buckets.
    pub(crate) running: Running,
    /// Packets and bytes that it has processed.
    pub count: MeterCount,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Sorted by table, then by number.
    pub(crate) entries: Vec<Counted>,
    pub(crate) groups: BTreeMap<GroupId, CountedGroup>,
    pub(crate) meters: BTreeMap<MeterId, CountedMeter>,
    pub(crate) tables: BTreeMap<TableId, TableConfig>,
    pub(crate) table_counts: BTreeMap<TableId, TableCount>,
    pub(crate) ports: BTreeMap<PortNo, PortState>,
    /// Packets that were dropped at a limit.
    pub(crate) limits: LimitCounts,
    /// Removed entries that have not been collected. Their numbers are not reused.
    pub(crate) removed: Vec<RemovedFlow>,
}

impl State {
    /// Returns the smallest number that no entry and no uncollected removed entry has.
    pub(crate) fn free_number(&self) -> u32 {
        let current_entries = self.entries.iter().map(|counted| &counted.entry);
        let removed_entries = self.removed.iter().map(|removed| &removed.entry);
        let used: BTreeSet<u32> = current_entries
            .chain(removed_entries)
            .map(|entry| entry.id.get())
            .collect();
        let mut numbers = 0..;
        numbers
            .find(|number| !used.contains(number))
            .expect("there are fewer entries than numbers")
    }

    pub(crate) fn put_in(&mut self, entry: FlowEntry) {
        self.entries.push(Counted {
            entry,
            count: Count::default(),
            last_match: None,
        });
        self.entries
            .sort_by_key(|counted| (counted.entry.table, counted.entry.id));
    }

    /// Removes the entries for which `is_meant` returns true.
    pub(crate) fn remove(
        &mut self,
        reason: RemovalReason,
        now: Duration,
        is_meant: impl Fn(&Counted) -> bool,
    ) {
        let (removed_entries, remaining) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|counted| is_meant(counted));
        self.entries = remaining;
        let removed_entries: Vec<Counted> = removed_entries;
        self.removed
            .extend(removed_entries.into_iter().map(|counted| RemovedFlow {
                duration: now.saturating_sub(counted.entry.added),
                count: counted.count,
                reason,
                entry: counted.entry,
            }));
    }
}

pub(crate) fn add(count: &mut Count, bytes: usize) {
    count.packets += 1;
    count.bytes += bytes as u64;
}
