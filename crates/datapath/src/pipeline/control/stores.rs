//! Stores of all entries, groups, meters and ports. They check messages, carry them out and
//! undo them. Removing a group or meter also removes the entries that use it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;

use super::message::Message;
use crate::action::{Action, GroupId, PortNo};
use crate::error::{ApplyError, ErrorCode, OpenFlowError};
use crate::flow::{Command, FlowStore, Instructions, RemovalReason, Used};
use crate::group::{GroupChange, GroupStore};
use crate::limits::MAX_PACKET_ACTIONS;
use crate::meter::{MeterChange, MeterId, MeterStore};
use crate::pipeline::run::change::{
    BeforeAfter, Change, GroupCountersChange, LimiterChange, new_counters, new_group, new_meter,
};
use crate::pipeline::run::limiter::Limiter;
use crate::pipeline::run::ports::Ports;
use crate::pipeline::run::tally::{CounterBook, GroupCounters};

/// The entries, groups, meters and ports of a pipeline.
#[derive(Default)]
pub(super) struct Stores {
    pub(in crate::pipeline) flows: FlowStore,
    pub(in crate::pipeline) groups: GroupStore,
    pub(in crate::pipeline) meters: MeterStore,
    pub(in crate::pipeline) ports: Ports,
    pub(super) book: CounterBook,
    group_counters: HashMap<GroupId, GroupCounters>,
    limiters: HashMap<MeterId, Arc<Limiter>>,
}

impl Stores {
    /// Carries out all messages or none. Returns the changes in order.
    ///
    /// # Errors
    /// The index of the first message that cannot be carried out, and the reason.
    pub(in crate::pipeline) fn apply(
        &mut self,
        messages: &[Message],
        now: Duration,
    ) -> Result<Vec<Change>, ApplyError> {
        self.apply_counted(messages, now, |_| {})
    }

    /// Carries out messages as [`apply`](Self::apply) does. After each message, calls `count`
    /// with the number of changes so far.
    pub(in crate::pipeline) fn apply_counted(
        &mut self,
        messages: &[Message],
        now: Duration,
        mut count: impl FnMut(usize),
    ) -> Result<Vec<Change>, ApplyError> {
        let mut changes = Vec::with_capacity(messages.len());
        for (number, message) in messages.iter().enumerate() {
            if let Err(error) = self.change(message, now, &mut changes) {
                self.undo(changes);
                return Err(ApplyError::new(number, error));
            }
            count(changes.len());
        }
        Ok(changes)
    }

    fn change(
        &mut self,
        message: &Message,
        now: Duration,
        changes: &mut Vec<Change>,
    ) -> Result<(), OpenFlowError> {
        match message {
            Message::Flow(message) => {
                // A deletion does not use its instructions.
                if !matches!(message.command, Command::Delete { .. }) {
                    self.check_references(&message.instructions)?;
                }
                let flow_changes = self.flows.apply(message, now)?;
                changes.extend(flow_changes.into_iter().map(Change::Flow));
            }
            Message::Group(message) => {
                for change in self.groups.apply(message)? {
                    let removed = match &change {
                        GroupChange::Removed(group) => Some(group.id),
                        _ => None,
                    };
                    let counters =
                        GroupCountersChange(Box::new(self.assign_group_counters(&change)));
                    changes.push(Change::Group(change, counters));
                    if let Some(group) = removed {
                        self.remove_users(Used::Group(group), RemovalReason::GroupDelete, changes);
                    }
                }
            }
            Message::Meter(message) => {
                for change in self.meters.apply(message)? {
                    let removed = match &change {
                        MeterChange::Removed(meter) => Some(meter.id),
                        _ => None,
                    };
                    let limiter = LimiterChange(self.assign_limiter(&change));
                    changes.push(Change::Meter(change, limiter));
                    if let Some(meter) = removed {
                        self.remove_users(Used::Meter(meter), RemovalReason::MeterDelete, changes);
                    }
                }
            }
            Message::Table(message) => {
                let old = self.flows.configure(message)?;
                changes.push(Change::Table(*message, old));
            }
            Message::Port(port, state) => {
                if !port.is_physical() && *port != PortNo::LOCAL {
                    let message = format!("{port} is not a port");
                    return Err(OpenFlowError::new(ErrorCode::BadPort, message));
                }
                let old = self.ports.set(*port, *state);
                changes.push(Change::Port {
                    port: *port,
                    old,
                    new: *state,
                });
            }
        }
        Ok(())
    }

    /// Undoes changes.
    pub(super) fn undo(&mut self, changes: Vec<Change>) {
        for change in changes.into_iter().rev() {
            match change {
                Change::Flow(change) => self.flows.undo(vec![change]),
                Change::Group(change, GroupCountersChange(counters)) => {
                    let id = match &change {
                        GroupChange::Added(group) | GroupChange::Removed(group) => group.id,
                        GroupChange::Changed { new, .. } => new.id,
                    };
                    for counter in new_counters(&counters) {
                        self.book.give_back(counter);
                    }
                    put(&mut self.group_counters, id, counters.old);
                    self.groups.undo(vec![change]);
                }
                Change::Meter(change, LimiterChange(counters)) => {
                    let id = match &change {
                        MeterChange::Added(meter) | MeterChange::Removed(meter) => meter.id,
                        MeterChange::Changed { new, .. } => new.id,
                    };
                    for counter in new_counters(&counters) {
                        self.book.give_back(counter);
                    }
                    put(&mut self.limiters, id, counters.old);
                    self.meters.undo(vec![change]);
                }
                Change::Table(message, old) => {
                    let message = crate::flow::TableMod {
                        config: old,
                        ..message
                    };
                    let undone = self.flows.configure(&message);
                    undone.expect("the table was configured so before");
                }
                Change::Port { port, old, .. } => {
                    self.ports.set(port, old);
                }
            }
        }
    }

    /// Removes an expired entry.
    pub(super) fn expire(&mut self, id: RuleId, reason: RemovalReason) -> Option<Change> {
        self.flows.remove(id, reason).map(Change::Flow)
    }

    /// Returns the counters of a group.
    pub(super) fn group_counters(&self, id: GroupId) -> Option<&GroupCounters> {
        self.group_counters.get(&id)
    }

    /// Returns the limiter of a meter.
    pub(in crate::pipeline) fn limiter(&self, id: MeterId) -> Option<&Arc<Limiter>> {
        self.limiters.get(&id)
    }

    /// Removes the flow entries that use a removed group or meter.
    fn remove_users(&mut self, used: Used, reason: RemovalReason, changes: &mut Vec<Change>) {
        let ids: Vec<RuleId> = self.flows.users(used).collect();
        for id in ids {
            let removed = self.flows.remove(id, reason);
            changes.extend(removed.map(Change::Flow));
        }
    }

    /// Checks that the groups and meters that instructions use exist, and that the actions
    /// to apply do not exceed the limit of a packet.
    fn check_references(&self, instructions: &Instructions) -> Result<(), OpenFlowError> {
        if let Some(meter) = instructions.meter
            && self.meters.get(meter).is_none()
        {
            let message = format!("{instructions}: there is no meter {meter}");
            return Err(OpenFlowError::new(ErrorCode::InvalidMeter, message));
        }
        for action in instructions.apply.iter().chain(&instructions.write) {
            if let Action::Group(group) = action
                && self.groups.get(*group).is_none()
            {
                let message = format!("{instructions}: there is no group {group}");
                return Err(OpenFlowError::new(ErrorCode::BadOutGroup, message));
            }
        }
        self.check_work(&instructions.apply)
    }

    /// Checks that a list of actions, with its present groups, takes no more actions than a
    /// packet may.
    fn check_work(&self, actions: &[Action]) -> Result<(), OpenFlowError> {
        let mut work = actions.len() as u64;
        for action in actions {
            if let Action::Group(group) = action {
                work = work.saturating_add(self.groups.actions(*group).unwrap_or(0));
            }
        }
        if work <= u64::from(MAX_PACKET_ACTIONS) {
            return Ok(());
        }
        let message = format!(
            "a list of {} actions takes up to {work}, with the groups in it; at most \
             {MAX_PACKET_ACTIONS} are possible",
            actions.len()
        );
        Err(OpenFlowError::new(ErrorCode::TooManyActions, message))
    }

    /// Assigns counters after a change of a group. The group keeps its counter. Its
    /// buckets get new counters, since a modification clears their counters (§7.3.4.2).
    fn assign_group_counters(&mut self, change: &GroupChange) -> BeforeAfter<GroupCounters> {
        let id = match change {
            GroupChange::Added(group) | GroupChange::Removed(group) => group.id,
            GroupChange::Changed { new, .. } => new.id,
        };
        let old = self.group_counters.remove(&id);
        let new = new_group(change).map(|group| {
            let group_counter = match &old {
                Some(counters) => counters.all,
                None => self.book.take(),
            };
            let buckets = group.buckets.iter().map(|_| self.book.take());
            GroupCounters {
                all: group_counter,
                buckets: buckets.collect(),
            }
        });
        put(&mut self.group_counters, id, new.clone());
        BeforeAfter { old, new }
    }

    /// Assigns counters after a change of a meter. Its token buckets are full again.
    fn assign_limiter(&mut self, change: &MeterChange) -> BeforeAfter<Arc<Limiter>> {
        let id = match change {
            MeterChange::Added(meter) | MeterChange::Removed(meter) => meter.id,
            MeterChange::Changed { new, .. } => new.id,
        };
        let old = self.limiters.remove(&id);
        let new = new_meter(change).map(|meter| {
            let meter_counter = match &old {
                Some(limiter) => limiter.counter,
                None => self.book.take(),
            };
            let bands = meter.bands.iter().map(|_| self.book.take());
            let bands = bands.collect();
            Arc::new(Limiter::new(meter, meter_counter, bands))
        });
        put(&mut self.limiters, id, new.clone());
        BeforeAfter { old, new }
    }
}

fn put<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}
