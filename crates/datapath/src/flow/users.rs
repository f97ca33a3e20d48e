//! The entries that use each group and meter. When a group or meter is deleted, its
//! entries are found without a search of all entries.

use std::collections::{BTreeSet, HashMap};

use classyard::RuleId;

use super::entry::FlowEntry;
use super::table_id::TableId;
use crate::action::GroupId;
use crate::meter::MeterId;

/// A group or meter that an entry may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    Group(GroupId),
    Meter(MeterId),
}

/// The entries of each group and meter, in the order of tables and numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Users(HashMap<Used, BTreeSet<(TableId, RuleId)>>);

fn used(entry: &FlowEntry) -> impl Iterator<Item = Used> {
    let meter = entry.instructions.meter.map(Used::Meter);
    let groups = entry.instructions.groups().into_iter().map(Used::Group);
    groups.chain(meter)
}

impl Users {
    pub(super) fn add(&mut self, entry: &FlowEntry) {
        for used in used(entry) {
            let users = self.0.entry(used).or_default();
            users.insert((entry.table, entry.id));
        }
    }

    pub(super) fn remove(&mut self, entry: &FlowEntry) {
        for used in used(entry) {
            if let Some(users) = self.0.get_mut(&used) {
                users.remove(&(entry.table, entry.id));
                if users.is_empty() {
                    self.0.remove(&used);
                }
            }
        }
    }

    /// Returns the entries that use a group or meter.
    pub(super) fn of(&self, used: Used) -> impl Iterator<Item = RuleId> {
        self.0.get(&used).into_iter().flatten().map(|&(_, id)| id)
    }
}
