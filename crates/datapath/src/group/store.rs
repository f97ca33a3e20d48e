//! All groups, changed by messages, which can be taken back.

use std::collections::{BTreeMap, BTreeSet};

use super::chains::Chains;
use super::{Group, GroupType};
use crate::action::GroupId;
use crate::error::{ErrorCode, OpenFlowError};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCommand {
    /// Adds a group that is not there.
    Add,
    /// Replaces type and buckets of a group that is there. It goes on counting; its
    /// buckets count from 0.
    Modify,
    /// Deletes a group, if it is there, or all.
    Delete,
}

/// A message that changes groups (`ofp_group_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// What is to be done.
    pub command: GroupCommand,
    /// The group, or what it is to be. Deletions look at its number alone.
    pub group: Group,
}

impl GroupMod {
    /// A message that deletes a group, or all.
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

/// What became of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// It was added.
    Added(Group),
    /// It has other buckets.
    Changed {
        /// What it was.
        old: Group,
        /// What it is.
        new: Group,
    },
    /// It is gone, and with it all flow entries that use it.
    Removed(Group),
}

/// All groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStore {
    groups: BTreeMap<GroupId, Group>,
    chains: Chains,
}

impl GroupStore {
    /// No group.
    #[must_use]
    pub fn new() -> GroupStore {
        GroupStore::default()
    }

    /// A group by its number.
    #[must_use]
    pub fn get(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// All groups, by their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.values()
    }

    /// Carries a message out; what was changed.
    ///
    /// # Errors
    /// [`OpenFlowError`]; nothing is changed then.
    pub fn apply(&mut self, message: &GroupMod) -> Result<Vec<GroupChange>, OpenFlowError> {
        let group = &message.group;
        match message.command {
            GroupCommand::Add => {
                if self.groups.contains_key(&group.id) {
                    let message = format!("group {} is there already; modify it", group.id);
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
                    old: old.expect("it is there"),
                    new: group.clone(),
                }])
            }
            GroupCommand::Delete if group.id == GroupId::ALL => {
                self.chains = Chains::default();
                let all = std::mem::take(&mut self.groups);
                Ok(all.into_values().map(GroupChange::Removed).collect())
            }
            GroupCommand::Delete => self.delete(group.id),
        }
    }

    /// Takes back what the last messages changed: all changes since some moment, in
    /// the order in which they were made.
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

    /// Returns the most actions that a packet may take in a group, buckets included
    /// (see [`limits`](crate::limits)).
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
            && let Some(other) = self.chains.user(id)
        {
            let message = format!("group {id} is used by group {other}; delete that first");
            return Err(OpenFlowError::new(ErrorCode::ChainedGroup, message));
        }
        let removed = self.take_out(id);
        Ok(removed.into_iter().map(GroupChange::Removed).collect())
    }

    /// Checks a group that is to be there with the others. Only one that is there
    /// already can be reached from others.
    fn check(&self, group: &Group) -> Result<(), OpenFlowError> {
        group.check()?;
        let is_there = self.groups.contains_key(&group.id);
        let (mut known, mut known_watched) = (BTreeSet::new(), BTreeSet::new());
        for bucket in &group.buckets {
            for next in bucket.next().filter(|&next| known.insert(next)) {
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
            let Some(watched) = watched.filter(|&watched| known_watched.insert(watched)) else {
                continue;
            };
            let why = if watched == group.id
                || is_there && Chains::watches(&self.groups, watched, group.id)
            {
                "would watch itself by way of"
            } else if !self.groups.contains_key(&watched) {
                "would watch, but there is no,"
            } else {
                continue;
            };
            let message = format!("group {} {why} group {watched}", group.id);
            return Err(OpenFlowError::new(ErrorCode::BadWatch, message));
        }
        self.chains.check(&self.groups, group)
    }
}
