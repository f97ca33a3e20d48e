//! Changes of a pipeline, which both sides carry out.

use std::sync::Arc;

use super::limiter::Limiter;
use super::ports::PortState;
use super::tally::{CounterId, GroupPlaces};
use crate::action::PortNo;
use crate::flow::{FlowChange, FlowEntry, TableConfig, TableMod};
use crate::group::{Group, GroupChange};
use crate::meter::{Meter, MeterChange};

/// A change of a pipeline, made by a message or a timeout.
#[derive(Clone, Debug)]
pub enum Change {
    /// A flow entry that was added, changed or removed.
    Flow(FlowChange),
    /// A group that was added, changed or removed, with the places of its counters.
    Group(GroupChange, GroupSlots),
    /// A meter that was added, changed or removed, with its limiter.
    Meter(MeterChange, MeterSlots),
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

/// The places of a group's counters in the workers' counter arrays, before and after a
/// change.
#[derive(Clone, Debug)]
pub struct GroupSlots(pub(in crate::pipeline) Box<Places<GroupPlaces>>);

/// The token buckets and counter places of a meter, before and after a change.
#[derive(Clone, Debug)]
pub struct MeterSlots(pub(in crate::pipeline) Places<Arc<Limiter>>);

/// Data that belongs to a group or meter, before and after a change.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Places<T> {
    pub(in crate::pipeline) old: Option<T>,
    pub(in crate::pipeline) new: Option<T>,
}

/// Data with several counter places.
pub(in crate::pipeline) trait Placed {
    fn places(&self) -> Vec<CounterId>;
}

impl Placed for GroupPlaces {
    fn places(&self) -> Vec<CounterId> {
        std::iter::once(self.all)
            .chain(self.buckets.iter().copied())
            .collect()
    }
}

impl Placed for Arc<Limiter> {
    fn places(&self) -> Vec<CounterId> {
        std::iter::once(self.place)
            .chain(self.bands.iter().copied())
            .collect()
    }
}

fn places<T: Placed>(counted: Option<&T>) -> Vec<CounterId> {
    counted.map(T::places).unwrap_or_default()
}

/// Returns the counter places that are new after a change.
pub(in crate::pipeline) fn added<T: Placed>(change: &Places<T>) -> Vec<CounterId> {
    let (old, mut new) = (places(change.old.as_ref()), places(change.new.as_ref()));
    new.retain(|place| !old.contains(place));
    new
}

/// Returns the counter places that are no longer used after a change.
pub(in crate::pipeline) fn left<T: Placed>(change: &Places<T>) -> Vec<CounterId> {
    let (mut old, new) = (places(change.old.as_ref()), places(change.new.as_ref()));
    old.retain(|place| !new.contains(place));
    old
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
