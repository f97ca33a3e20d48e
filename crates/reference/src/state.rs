//! Everything that a switch knows: entries, groups, meters, tables, ports, counters.
//! A bundle is tried on a copy of it.

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

use crate::meters::Running;

/// A flow entry with what it has counted.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The entry.
    pub entry: FlowEntry,
    /// What it has matched since it was added, or since its counters were reset.
    pub count: Count,
    /// When its last packet came.
    pub last_match: Option<Duration>,
}

/// A group with what it has counted.
#[derive(Clone, Debug)]
pub struct CountedGroup {
    /// The group.
    pub group: Arc<Group>,
    /// What came to it.
    pub count: GroupCount,
}

/// A meter with its token buckets and what it has counted.
#[derive(Clone, Debug)]
pub struct CountedMeter {
    /// The meter, and how full its buckets are.
    pub(crate) running: Running,
    /// What came to it.
    pub count: MeterCount,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// By their tables, then by their numbers.
    pub(crate) entries: Vec<Counted>,
    pub(crate) groups: BTreeMap<GroupId, CountedGroup>,
    pub(crate) meters: BTreeMap<MeterId, CountedMeter>,
    pub(crate) tables: BTreeMap<TableId, TableConfig>,
    pub(crate) table_counts: BTreeMap<TableId, TableCount>,
    pub(crate) ports: BTreeMap<PortNo, PortState>,
    /// Packets that were dropped at a limit.
    pub(crate) limits: LimitCounts,
    /// Entries that are gone and not collected yet. Their numbers are not given to
    /// others.
    pub(crate) removed: Vec<RemovedFlow>,
}

impl State {
    /// The smallest number that no entry has, and none had that is not collected.
    pub(crate) fn free_number(&self) -> u32 {
        let held = self.entries.iter().map(|counted| &counted.entry);
        let gone = self.removed.iter().map(|removed| &removed.entry);
        let used: BTreeSet<u32> = held.chain(gone).map(|entry| entry.id.get()).collect();
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

    /// Removes the entries that something holds of.
    pub(crate) fn remove(
        &mut self,
        reason: RemovalReason,
        now: Duration,
        is_meant: impl Fn(&Counted) -> bool,
    ) {
        let (gone, kept) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|counted| is_meant(counted));
        self.entries = kept;
        let gone: Vec<Counted> = gone;
        self.removed
            .extend(gone.into_iter().map(|counted| RemovedFlow {
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
