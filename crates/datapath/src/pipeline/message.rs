//! What is asked of a pipeline, and what became of it.

use std::fmt;
use std::sync::Arc;

use super::limiter::Limiter;
use super::ports::PortState;
use super::tally::{GroupPlaces, Place};
use crate::action::PortNo;
use crate::flow::{FlowChange, FlowEntry, FlowMod, TableConfig, TableMod};
use crate::group::{Group, GroupChange, GroupMod};
use crate::meter::{Meter, MeterChange, MeterMod};

/// A message that changes a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Flow entries.
    Flow(FlowMod),
    /// Groups.
    Group(GroupMod),
    /// Meters.
    Meter(MeterMod),
    /// How a table is configured.
    Table(TableMod),
    /// A port: what is known of it now, or that it is gone.
    Port(PortNo, Option<PortState>),
}

impl fmt::Display for Message {
    /// What it adds, as a line of a pipeline's text; a port as a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Flow(message) => message.fmt(f),
            Message::Group(message) => message.group.fmt(f),
            Message::Meter(message) => message.meter.fmt(f),
            Message::Table(message) => message.fmt(f),
            Message::Port(port, Some(_)) => write!(f, "# port {port}"),
            Message::Port(port, None) => write!(f, "# no port {port}"),
        }
    }
}

/// What a message changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// A flow entry.
    Flow(FlowChange),
    /// A group, and where it is counted.
    Group(GroupChange, GroupSlots),
    /// A meter, and what measures and counts for it.
    Meter(MeterChange, MeterSlots),
    /// How a table was configured before.
    Table(TableMod, TableConfig),
    /// What was known of a port, and what is.
    Port {
        /// The port.
        port: PortNo,
        /// What was known of it.
        old: Option<PortState>,
        /// What is known of it.
        new: Option<PortState>,
    },
}

/// Where a group is counted, before a change and after it.
#[derive(Clone, Debug)]
pub struct GroupSlots(pub(super) Box<Places<GroupPlaces>>);

/// What measures and counts for a meter, before a change and after it.
#[derive(Clone, Debug)]
pub struct MeterSlots(pub(super) Places<Arc<Limiter>>);

/// What stands beside a group or meter, before a change and after it.
#[derive(Clone, Debug)]
pub(super) struct Places<T> {
    pub(super) old: Option<T>,
    pub(super) new: Option<T>,
}

/// What is counted at several places.
pub(super) trait Placed {
    fn places(&self) -> Vec<Place>;
}

impl Placed for GroupPlaces {
    fn places(&self) -> Vec<Place> {
        std::iter::once(self.all)
            .chain(self.buckets.iter().copied())
            .collect()
    }
}

impl Placed for Arc<Limiter> {
    fn places(&self) -> Vec<Place> {
        std::iter::once(self.place)
            .chain(self.bands.iter().copied())
            .collect()
    }
}

fn places<T: Placed>(counted: Option<&T>) -> Vec<Place> {
    counted.map(T::places).unwrap_or_default()
}

/// Places that there were not before a change.
pub(super) fn added<T: Placed>(both: &Places<T>) -> Vec<Place> {
    let (old, mut new) = (places(both.old.as_ref()), places(both.new.as_ref()));
    new.retain(|place| !old.contains(place));
    new
}

/// Places that are not used any more after it.
pub(super) fn left<T: Placed>(both: &Places<T>) -> Vec<Place> {
    let (mut old, new) = (places(both.old.as_ref()), places(both.new.as_ref()));
    old.retain(|place| !new.contains(place));
    old
}

impl Change {
    /// What a flow entry was, and what it is.
    pub(super) fn flow(&self) -> Option<(Option<&FlowEntry>, Option<&FlowEntry>)> {
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

/// What a group is after a change.
pub(super) fn new_group(change: &GroupChange) -> Option<&Group> {
    match change {
        GroupChange::Added(new) | GroupChange::Changed { new, .. } => Some(new),
        GroupChange::Removed(_) => None,
    }
}

/// What a meter is after a change.
pub(super) fn new_meter(change: &MeterChange) -> Option<&Meter> {
    match change {
        MeterChange::Added(new) | MeterChange::Changed { new, .. } => Some(new),
        MeterChange::Removed(_) => None,
    }
}
