//! Changes of a pipeline, which both sides carry out.

use std::sync::Arc;

use classyard::table::{ChangeLog, MAX_DEFERRED};

use super::limiter::Limiter;
use super::ports::PortState;
use super::tally::{CounterId, GroupCounters};
use crate::action::PortNo;
use crate::flow::{FlowChange, FlowEntry, TableConfig, TableMod};
use crate::group::{Group, GroupChange};
use crate::meter::{Meter, MeterChange};

/// A change of a pipeline, made by a message or a timeout.
#[derive(Clone, Debug)]
pub enum Change {
    /// A flow entry that was added, changed or removed.
    Flow(FlowChange),
    /// A group that was added, changed or removed, with its counters.
    Group(GroupChange, GroupCountersChange),
    /// A meter that was added, changed or removed, with its limiter.
    Meter(MeterChange, LimiterChange),
    /// The configuration of a table: the message and the old configuration.
    Table(TableMod, TableConfig),
    /// The state of a port.
    Port {
        /// The port.
        port: PortNo,
        /// The old state; `None` if the port did not exist.
        old: Option<PortState>,
        /// The new state; `None` if the port is removed.
        new: Option<PortState>,
    },
}

/// The numbers of a group's counters in the workers' counter arrays, before and after
/// a change.
#[derive(Clone, Debug)]
pub struct GroupCountersChange(pub(in crate::pipeline) Box<BeforeAfter<GroupCounters>>);

/// The token buckets and counters of a meter, before and after a change.
#[derive(Clone, Debug)]
pub struct LimiterChange(pub(in crate::pipeline) BeforeAfter<Arc<Limiter>>);

/// Data that belongs to a group or meter, before and after a change.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct BeforeAfter<T> {
    pub(in crate::pipeline) old: Option<T>,
    pub(in crate::pipeline) new: Option<T>,
}

/// Data with several counters.
pub(in crate::pipeline) trait HasCounters {
    fn counters(&self) -> Vec<CounterId>;
}

impl HasCounters for GroupCounters {
    fn counters(&self) -> Vec<CounterId> {
        std::iter::once(self.all)
            .chain(self.buckets.iter().copied())
            .collect()
    }
}

impl HasCounters for Arc<Limiter> {
    fn counters(&self) -> Vec<CounterId> {
        std::iter::once(self.counter)
            .chain(self.bands.iter().copied())
            .collect()
    }
}

fn counters<T: HasCounters>(counted: Option<&T>) -> Vec<CounterId> {
    counted.map(T::counters).unwrap_or_default()
}

/// Returns the counters that are new after a change.
pub(in crate::pipeline) fn new_counters<T: HasCounters>(change: &BeforeAfter<T>) -> Vec<CounterId> {
    let (old, mut new) = (counters(change.old.as_ref()), counters(change.new.as_ref()));
    new.retain(|counter| !old.contains(counter));
    new
}

/// Returns the counters that are no longer used after a change.
pub(in crate::pipeline) fn freed_counters<T: HasCounters>(
    change: &BeforeAfter<T>,
) -> Vec<CounterId> {
    let (mut old, new) = (counters(change.old.as_ref()), counters(change.new.as_ref()));
    old.retain(|counter| !new.contains(counter));
    old
}

/// Accepted changes that a side lacks, in order.
#[derive(Default)]
pub(in crate::pipeline) struct Changes(pub(in crate::pipeline) Vec<Change>);

/// The maximum number of changes for which a list without changes keeps memory.
const MAX_KEPT: usize = MAX_DEFERRED;

impl ChangeLog for Changes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self, keep: usize) {
        self.0.clear();
        self.0.shrink_to(keep.min(MAX_KEPT));
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Change>()
    }
}

impl Change {
    /// Returns the old and the new flow entry; `None` for other changes.
    pub(in crate::pipeline) fn flow(&self) -> Option<(Option<&FlowEntry>, Option<&FlowEntry>)> {
        match self {
            Change::Flow(FlowChange::Added(new)) => Some((None, Some(new))),
            Change::Flow(FlowChange::Changed { old, new, .. }) => {
                Some((Some(&**old), Some(&**new)))
            }
            Change::Flow(FlowChange::Removed(old, _)) => Some((Some(old), None)),
            _ => None,
        }
    }
}

/// Returns the group after a change; `None` if it was removed.
pub(in crate::pipeline) fn new_group(change: &GroupChange) -> Option<&Group> {
    match change {
        GroupChange::Added(new) | GroupChange::Changed { new, .. } => Some(new),
        GroupChange::Removed(_) => None,
    }
}

/// Returns the meter after a change; `None` if it was removed.
pub(in crate::pipeline) fn new_meter(change: &MeterChange) -> Option<&Meter> {
    match change {
        MeterChange::Added(new) | MeterChange::Changed { new, .. } => Some(new),
        MeterChange::Removed(_) => None,
    }
}
