//! Which entries use a group or a meter, so that what is deleted is found without a
//! search of all entries.

use std::collections::{BTreeSet, HashMap};

use classyard::RuleId;

use super::entry::{FlowEntry, TableId};
use crate::action::GroupId;
use crate::meter::MeterId;

/// What an entry may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    Group(GroupId),
    Meter(MeterId),
}

/// Entries by what they use, table by table and by their numbers.
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

    /// Returns the entries that use something.
    pub(super) fn of(&self, used: Used) -> impl Iterator<Item = RuleId> {
        self.0.get(&used).into_iter().flatten().map(|&(_, id)| id)
    }
}
