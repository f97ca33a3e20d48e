//! The store of all groups, which messages change. Changes can be undone.

use std::collections::{BTreeMap, BTreeSet};

use super::chains::Chains;
use super::{Group, GroupType};
use crate::action::GroupId;
use crate::error::{ErrorCode, OpenFlowError};

/// The command of a [`GroupMod`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCommand {
    /// Adds a new group.
    Add,
    /// Replaces type and buckets of an existing group. The group keeps its counters; its
    /// buckets count from 0.
    Modify,
    /// Deletes a group if it exists, or all groups if the number is [`GroupId::ALL`].
    Delete,
}

/// A message that changes groups (`ofp_group_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// The command.
    pub command: GroupCommand,
    /// The new or modified group. Deletions use only its number.
    pub group: Group,
}

impl GroupMod {
    /// Returns a message that deletes a group, or all groups.
    #[must_use]
    pub fn delete(id: GroupId) -> GroupMod {
        GroupMod {
            command: GroupCommand::Delete,
            group: Group {
                id,
                kind: GroupType::All,
                buckets: Vec::new(),
            },
        }
    }
}

/// A change of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// The group was added.
    Added(Group),
    /// The group was modified.
    Changed {
        /// The group before the change.
        old: Group,
        /// The group after the change.
        new: Group,
    },
    /// The group was removed. A pipeline also removes all flow entries that use it.
    Removed(Group),
}

/// The groups of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStore {
    groups: BTreeMap<GroupId, Group>,
    chains: Chains,
}

impl GroupStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> GroupStore {
        GroupStore::default()
    }

    /// Returns a group by its number.
    #[must_use]
    pub fn get(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Returns all groups, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.values()
    }

    /// Carries out a message. Returns the changes.
    ///
    /// # Errors
    /// [`OpenFlowError`]; then nothing is changed.
    pub fn apply(&mut self, message: &GroupMod) -> Result<Vec<GroupChange>, OpenFlowError> {
        let group = &message.group;
        match message.command {
            GroupCommand::Add => {
                if self.groups.contains_key(&group.id) {
                    let message = format!("group {} already exists; modify it", group.id);
                    return Err(OpenFlowError::new(ErrorCode::GroupExists, message));
                }
                self.check(group)?;
                self.put(group.clone());
                Ok(vec![GroupChange::Added(group.clone())])
            }
            GroupCommand::Modify => {
                if !self.groups.contains_key(&group.id) {
                    let message = format!("there is no group {}; add it", group.id);
                    return Err(OpenFlowError::new(ErrorCode::UnknownGroup, message));
                }
                self.check(group)?;
                let old = self.put(group.clone());
                Ok(vec![GroupChange::Changed {
                    old: old.expect("the group exists"),
                    new: group.clone(),
                }])
            }
            GroupCommand::Delete if group.id == GroupId::ALL => {
                self.chains = Chains::default();
                let groups = std::mem::take(&mut self.groups);
                Ok(groups.into_values().map(GroupChange::Removed).collect())
            }
            GroupCommand::Delete => self.delete(group.id),
        }
    }

    /// Undoes the latest changes. `changes` has them in the order of [`apply`](Self::apply).
    pub fn undo(&mut self, changes: Vec<GroupChange>) {
        for change in changes.into_iter().rev() {
            match change {
                GroupChange::Added(group) => {
                    self.take_out(group.id);
                }
                GroupChange::Changed { old, .. } | GroupChange::Removed(old) => {
                    self.put(old);
                }
            }
        }
    }

    /// Returns the maximum number of actions for a packet in a group, including visits of
    /// buckets (see [`limits`](crate::limits)).
    #[must_use]
    pub fn actions(&self, id: GroupId) -> Option<u64> {
        self.chains.cost(id).map(|cost| cost.actions)
    }

    fn put(&mut self, group: Group) -> Option<Group> {
        let old = self.groups.get(&group.id);
        self.chains.put(&self.groups, old, &group);
        self.groups.insert(group.id, group)
    }

    fn take_out(&mut self, id: GroupId) -> Option<Group> {
        let group = self.groups.remove(&id)?;
        self.chains.remove(&group);
        Some(group)
    }

    fn delete(&mut self, id: GroupId) -> Result<Vec<GroupChange>, OpenFlowError> {
        if self.groups.contains_key(&id)
            && let Some(user) = self.chains.user(id)
        {
            let message = format!("group {id} is used by group {user}; delete that first");
            return Err(OpenFlowError::new(ErrorCode::ChainedGroup, message));
        }
        let removed = self.take_out(id);
        Ok(removed.into_iter().map(GroupChange::Removed).collect())
    }

    /// Checks a new or modified group together with the other groups. Only an existing group
    /// can be reached from other groups.
    fn check(&self, group: &Group) -> Result<(), OpenFlowError> {
        group.check()?;
        let is_there = self.groups.contains_key(&group.id);
        let (mut checked, mut checked_watched) = (BTreeSet::new(), BTreeSet::new());
        for bucket in &group.buckets {
            for next in bucket.next().filter(|&next| checked.insert(next)) {
                let message = if next != group.id && !self.groups.contains_key(&next) {
                    let message = format!("group {}: there is no group {next}", group.id);
                    return Err(OpenFlowError::new(ErrorCode::BadOutGroup, message));
                } else if next == group.id
                    || is_there && self.chains.sends(&self.groups, next, group.id)
                {
                    format!(
                        "group {}: packets would come back to it by way of group {next}",
                        group.id
                    )
                } else {
                    continue;
                };
                return Err(OpenFlowError::new(ErrorCode::GroupLoop, message));
            }
            let watched = bucket.watch_group;
            let Some(watched) = watched.filter(|&watched| checked_watched.insert(watched)) else {
                continue;
            };
            let why = if watched == group.id
                || is_there && Chains::watches(&self.groups, watched, group.id)
            {
                "would watch itself by way of"
            } else if !self.groups.contains_key(&watched) {
                "would watch the missing"
            } else {
                continue;
            };
            let message = format!("group {} {why} group {watched}", group.id);
            return Err(OpenFlowError::new(ErrorCode::BadWatch, message));
        }
        self.chains.check(&self.groups, group)
    }
}
