//! All groups, changed by messages, which can be taken back.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bucket, Group, GroupType};
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
                self.groups.insert(group.id, group.clone());
                Ok(vec![GroupChange::Added(group.clone())])
            }
            GroupCommand::Modify => {
                if !self.groups.contains_key(&group.id) {
                    let message = format!("there is no group {}; add it", group.id);
                    return Err(OpenFlowError::new(ErrorCode::UnknownGroup, message));
                }
                self.check(group)?;
                let old = self.groups.insert(group.id, group.clone());
                Ok(vec![GroupChange::Changed {
                    old: old.expect("it is there"),
                    new: group.clone(),
                }])
            }
            GroupCommand::Delete if group.id == GroupId::ALL => {
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
                    self.groups.remove(&group.id);
                }
                GroupChange::Changed { old, .. } | GroupChange::Removed(old) => {
                    self.groups.insert(old.id, old);
                }
            }
        }
    }

    fn delete(&mut self, id: GroupId) -> Result<Vec<GroupChange>, OpenFlowError> {
        let uses = |bucket: &Bucket| {
            bucket.watch_group == Some(id) || bucket.next().any(|next| next == id)
        };
        let mut others = self.groups.values().filter(|group| group.id != id);
        if self.groups.contains_key(&id)
            && let Some(other) = others.find(|group| group.buckets.iter().any(uses))
        {
            let message = format!(
                "group {id} is used by group {}; delete that first",
                other.id
            );
            return Err(OpenFlowError::new(ErrorCode::ChainedGroup, message));
        }
        let removed = self.groups.remove(&id);
        Ok(removed.into_iter().map(GroupChange::Removed).collect())
    }

    /// Checks a group that is to be there beside the others.
    fn check(&self, group: &Group) -> Result<(), OpenFlowError> {
        group.check()?;
        for bucket in &group.buckets {
            for next in bucket.next() {
                if next != group.id && !self.groups.contains_key(&next) {
                    let message = format!("group {}: there is no group {next}", group.id);
                    return Err(OpenFlowError::new(ErrorCode::BadOutGroup, message));
                }
                if next == group.id
                    || self.leads_to(next, group.id, |bucket| bucket.next().collect())
                {
                    let message = format!(
                        "group {}: packets would come back to it by way of group {next}",
                        group.id
                    );
                    return Err(OpenFlowError::new(ErrorCode::GroupLoop, message));
                }
            }
            let Some(watched) = bucket.watch_group else {
                continue;
            };
            let watches = |bucket: &Bucket| bucket.watch_group.into_iter().collect();
            let why = if watched == group.id || self.leads_to(watched, group.id, watches) {
                "would watch itself by way of"
            } else if !self.groups.contains_key(&watched) {
                "would watch, but there is no,"
            } else {
                continue;
            };
            let message = format!("group {} {why} group {watched}", group.id);
            return Err(OpenFlowError::new(ErrorCode::BadWatch, message));
        }
        Ok(())
    }

    /// Whether a way leads from a group to another one, over the groups that buckets
    /// have.
    fn leads_to(&self, from: GroupId, to: GroupId, step: impl Fn(&Bucket) -> Vec<GroupId>) -> bool {
        let mut waiting = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            let Some(group) = self.groups.get(&id).filter(|_| seen.insert(id)) else {
                continue;
            };
            for next in group.buckets.iter().flat_map(&step) {
                if next == to {
                    return true;
                }
                waiting.push(next);
            }
        }
        false
    }
}
