//! A pipeline of flow tables: what becomes of packets (OpenFlow 1.3.5 §5.1).
//!
//! # A vector's way
//! Packets come in vectors. All of them are looked up in table 0 together, those that
//! an entry sends on in the next table that has any, and so on: tables only lead to
//! later ones, so one pass over them is enough.
//! ```text
//! for each table, in order, that packets are to go to:
//!     winners = the table's, for all of these packets together
//!     for each packet: count, and carry the winner's instructions out
//!         apply:  actions, at once          goto: the packet waits for that table
//!         write:  into its action set       else: its action set is carried out
//! ```
//! A packet that no entry of a table matches is dropped: an entry of priority 0 that
//! matches everything, the table-miss entry, says otherwise.
//!
//! # Changes
//! A message changes the stores of entries and groups, and then the tables and what
//! stands beside them, by the changes that the stores say. A bundle of messages is
//! made as a whole or not at all.

mod counters;
mod ports;
mod process;
mod side;

use std::time::Duration;

use classyard::RuleId;

pub use counters::{Count, Counters, GroupCount, TableCount};
pub use ports::{PortState, Ports};
pub use process::{Buffers, PacketInReason, Sink, flow_hash};

use crate::action::{Action, GroupId};
use crate::error::{ErrorCode, OpenFlowError};
use crate::flow::{
    FlowChange, FlowEntry, FlowMod, FlowStore, Instructions, RemovalReason, TableId,
};
use crate::flow_table::{TableError, TableSettings};
use crate::group::{Group, GroupChange, GroupMod, GroupStore};
use crate::packet::Packet;
use side::Side;

/// A message that changes a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Flow entries.
    Flow(FlowMod),
    /// Groups.
    Group(GroupMod),
}

/// Flow tables, groups and ports.
pub struct Pipeline {
    flows: FlowStore,
    groups: GroupStore,
    side: Side,
}

/// What a message changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A flow entry.
    Flow(FlowChange),
    /// A group.
    Group(GroupChange),
}

impl Pipeline {
    /// A pipeline without entries, groups and ports.
    #[must_use]
    pub fn new(settings: TableSettings) -> Pipeline {
        Pipeline {
            flows: FlowStore::new(),
            groups: GroupStore::new(),
            side: Side::new(settings),
        }
    }

    /// The flow entries.
    #[must_use]
    pub fn flows(&self) -> &FlowStore {
        &self.flows
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &GroupStore {
        &self.groups
    }

    /// The ports, to be changed.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.side.ports
    }

    /// Carries messages out, all or none. Returns what was changed, in order;
    /// [`Counters::follow`] begins at 0 where that says so.
    ///
    /// # Errors
    /// The position of the first message that cannot be carried out, and why.
    /// Nothing is changed then.
    pub fn apply(
        &mut self,
        messages: &[Message],
        now: Duration,
    ) -> Result<Vec<Change>, (usize, OpenFlowError)> {
        let (mut changes, mut ends) = (Vec::new(), Vec::new());
        for (number, message) in messages.iter().enumerate() {
            if let Err(error) = self.change(message, now, &mut changes) {
                self.undo(changes);
                return Err((number, error));
            }
            ends.push(changes.len());
        }
        if let Err((change, error)) = self.side.make(&changes) {
            self.undo(changes);
            // The message that made the change.
            return Err((ends.partition_point(|&end| end <= change), error));
        }
        Ok(changes)
    }

    /// Makes one engine of two in tables that have flows with fields which came late,
    /// so that lookups ask one. Answers stay the same. Takes about as long as building
    /// these tables: for after loading, and for quiet times.
    ///
    /// # Errors
    /// [`TableError`]; tables that were merged before stay so.
    pub fn merge(&mut self) -> Result<(), TableError> {
        self.side.merge()
    }

    /// Processes a vector of packets.
    pub fn process(
        &self,
        packets: &mut [Packet],
        counters: &mut Counters,
        buffers: &mut Buffers,
        sink: &mut impl Sink,
    ) {
        process::process(&self.side, packets, counters, buffers, sink);
    }

    /// Changes the stores as a message says.
    fn change(
        &mut self,
        message: &Message,
        now: Duration,
        changes: &mut Vec<Change>,
    ) -> Result<(), OpenFlowError> {
        match message {
            Message::Flow(message) => {
                self.check_references(&message.instructions)?;
                let made = self.flows.apply(message, now)?;
                changes.extend(made.into_iter().map(Change::Flow));
            }
            Message::Group(message) => {
                let made = self.groups.apply(message)?;
                for change in made {
                    let gone = match &change {
                        GroupChange::Removed(group) => Some(group.id),
                        _ => None,
                    };
                    changes.push(Change::Group(change));
                    if let Some(group) = gone {
                        self.remove_users(group, changes);
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the flow entries that use a group, which is gone.
    fn remove_users(&mut self, group: GroupId, changes: &mut Vec<Change>) {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let entries = tables.flat_map(|table| self.flows.table(table));
        let users = entries.filter(|entry| entry.instructions.uses_group(group));
        let ids: Vec<RuleId> = users.map(|entry| entry.id).collect();
        for id in ids {
            let removed = self.flows.remove(id, RemovalReason::GroupDelete);
            changes.extend(removed.map(Change::Flow));
        }
    }

    /// Checks that what instructions refer to is there.
    fn check_references(&self, instructions: &Instructions) -> Result<(), OpenFlowError> {
        if instructions.meter.is_some() {
            let message = format!("{instructions}: meters are not supported");
            return Err(OpenFlowError::new(
                ErrorCode::UnsupportedInstruction,
                message,
            ));
        }
        for action in instructions.apply.iter().chain(&instructions.write) {
            if let Action::Group(group) = action
                && self.groups.get(*group).is_none()
            {
                let message = format!("{instructions}: there is no group {group}");
                return Err(OpenFlowError::new(ErrorCode::BadOutGroup, message));
            }
        }
        Ok(())
    }

    /// Takes changes of the stores back.
    fn undo(&mut self, changes: Vec<Change>) {
        for change in changes.into_iter().rev() {
            match change {
                Change::Flow(change) => self.flows.undo(vec![change]),
                Change::Group(change) => self.groups.undo(vec![change]),
            }
        }
    }
}

impl Change {
    /// What a flow entry was, and what it is.
    fn flow(&self) -> Option<(Option<&FlowEntry>, Option<&FlowEntry>)> {
        match self {
            Change::Flow(FlowChange::Added(new)) => Some((None, Some(new))),
            Change::Flow(FlowChange::Changed { old, new, .. }) => Some((Some(old), Some(new))),
            Change::Flow(FlowChange::Removed(old, _)) => Some((Some(old), None)),
            Change::Group(_) => None,
        }
    }

    /// What a group was, and what it is.
    fn group(&self) -> Option<(Option<&Group>, Option<&Group>)> {
        match self {
            Change::Group(GroupChange::Added(new)) => Some((None, Some(new))),
            Change::Group(GroupChange::Changed { old, new }) => Some((Some(old), Some(new))),
            Change::Group(GroupChange::Removed(old)) => Some((Some(old), None)),
            Change::Flow(_) => None,
        }
    }
}
