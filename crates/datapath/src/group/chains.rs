//! Relations between groups: chains of groups that send packets to each other, the
//! maximum number of actions in a chain, and groups that watch each other.
//!
//! # Idea
//! Each group has two numbers: the length of the longest chain that begins with it, and the
//! maximum number of actions for a packet in it. They are computed from the groups that it
//! sends packets to. A new group has no users, so only its own numbers are computed, and
//! loading groups takes time linear in their buckets. A modified group changes the numbers
//! of its users. They are recomputed from the shortest chain to the longest, each once.
//!
//! If a group reaches another group, its chain is longer. So a search for loops visits
//! only groups whose chain is longer than the target's chain.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bucket, Group, GroupType};
use crate::action::{Action, GroupId};
use crate::error::{ErrorCode, OpenFlowError};
use crate::limits::{MAX_GROUP_DEPTH, MAX_PACKET_ACTIONS};

/// The maximum work for a packet in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChainCost {
    /// Groups in the longest chain that begins with this group.
    depth: usize,
    /// Actions and visits of buckets, including all groups that follow.
    pub(super) actions: u64,
}

type Groups = BTreeMap<GroupId, Group>;
type Users = BTreeMap<GroupId, BTreeSet<GroupId>>;

/// The relations between groups, and the maximum work in each group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chains {
    costs: BTreeMap<GroupId, ChainCost>,
    /// For each group, the groups that send packets to it.
    senders: Users,
    /// For each group, the groups that watch it.
    watchers: Users,
}

/// Returns the groups that a group sends packets to.
fn targets(group: &Group) -> BTreeSet<GroupId> {
    group.buckets.iter().flat_map(Bucket::next).collect()
}

/// Returns the groups that a group watches.
fn watched(group: &Group) -> BTreeSet<GroupId> {
    let buckets = group.buckets.iter();
    buckets.filter_map(|bucket| bucket.watch_group).collect()
}

impl Chains {
    /// Returns the maximum work for a packet in a group.
    pub(super) fn cost(&self, id: GroupId) -> Option<ChainCost> {
        self.costs.get(&id).copied()
    }

    /// Returns another group that sends packets to the group or watches it.
    pub(super) fn user(&self, id: GroupId) -> Option<GroupId> {
        let users = [&self.senders, &self.watchers];
        let users = users.into_iter().filter_map(|users| users.get(&id));
        users.flatten().find(|&&user| user != id).copied()
    }

    /// Returns true if packets in the group `from` can reach the group `to`.
    pub(super) fn sends(&self, groups: &Groups, from: GroupId, to: GroupId) -> bool {
        let depth = |id| self.cost(id).map_or(0, |cost| cost.depth);
        let shortest = depth(to);
        leads(groups, from, to, |group| {
            let mut next = targets(group);
            next.retain(|&id| id == to || depth(id) > shortest);
            next
        })
    }

    /// Returns true if the group `from` watches the group `to`, directly or through other
    /// groups.
    pub(super) fn watches(groups: &Groups, from: GroupId, to: GroupId) -> bool {
        leads(groups, from, to, watched)
    }

    /// Returns the new costs of all groups whose costs change if `new` is added or replaces
    /// a group. The groups must have no loop.
    fn settle(&self, groups: &Groups, new: &Group) -> BTreeMap<GroupId, ChainCost> {
        let mut changed: BTreeMap<GroupId, ChainCost> = BTreeMap::new();
        // Users have a longer chain than the group that they use.
        let mut waiting = BTreeSet::from([(0, new.id)]);
        while let Some((_, id)) = waiting.pop_first() {
            let group = match id == new.id {
                true => Some(new),
                false => groups.get(&id),
            };
            let Some(group) = group else { continue };
            let known = |id: &GroupId| changed.get(id).or_else(|| self.costs.get(id));
            let cost = cost_of(group, |id| known(&id).copied().unwrap_or_default());
            if self.costs.get(&id) == Some(&cost) {
                continue;
            }
            changed.insert(id, cost);
            for user in self.senders.get(&id).into_iter().flatten() {
                let depth = self.cost(*user).map_or(0, |cost| cost.depth);
                waiting.insert((depth, *user));
            }
        }
        changed
    }

    /// Checks that after adding or replacing a group, no chain is longer than
    /// [`MAX_GROUP_DEPTH`], and no packet takes more than [`MAX_PACKET_ACTIONS`] actions in a
    /// group.
    pub(super) fn check(&self, groups: &Groups, new: &Group) -> Result<(), OpenFlowError> {
        let changed = self.settle(groups, new);
        for (id, cost) in &changed {
            if cost.depth > MAX_GROUP_DEPTH {
                let message = format!(
                    "group {}: packets in group {id} would pass {} groups one after the other; \
                     at most {MAX_GROUP_DEPTH} are possible",
                    new.id, cost.depth
                );
                let code = ErrorCode::ChainingUnsupported;
                return Err(OpenFlowError::new(code, message));
            }
        }
        for (id, cost) in &changed {
            if cost.actions > u64::from(MAX_PACKET_ACTIONS) {
                let message = format!(
                    "group {}: a packet in group {id} would take up to {} actions, buckets \
                     included; at most {MAX_PACKET_ACTIONS} are possible",
                    new.id, cost.actions
                );
                return Err(OpenFlowError::new(ErrorCode::OutOfBuckets, message));
            }
        }
        Ok(())
    }

    /// Updates the uses after `new` is added, or replaces `old`. `groups` has the other
    /// groups.
    pub(super) fn put(&mut self, groups: &Groups, old: Option<&Group>, new: &Group) {
        let changed = self.settle(groups, new);
        if let Some(old) = old {
            self.unlink(old);
        }
        for target in targets(new) {
            self.senders.entry(target).or_default().insert(new.id);
        }
        for target in watched(new) {
            self.watchers.entry(target).or_default().insert(new.id);
        }
        self.costs.extend(changed);
    }

    /// Updates the uses after a group is removed.
    pub(super) fn remove(&mut self, old: &Group) {
        self.unlink(old);
        self.costs.remove(&old.id);
    }

    fn unlink(&mut self, old: &Group) {
        for target in targets(old) {
            take(&mut self.senders, target, old.id);
        }
        for target in watched(old) {
            take(&mut self.watchers, target, old.id);
        }
    }
}

fn take(users: &mut Users, target: GroupId, user: GroupId) {
    if let Some(set) = users.get_mut(&target) {
        set.remove(&user);
        if set.is_empty() {
            users.remove(&target);
        }
    }
}

/// Returns the maximum work for a packet in a group. `next_cost` returns the work in a group
/// that it sends packets to.
fn cost_of(group: &Group, next_cost: impl Fn(GroupId) -> ChainCost) -> ChainCost {
    let mut cost = ChainCost {
        depth: 1,
        actions: 0,
    };
    for bucket in &group.buckets {
        let mut actions = 1 + bucket.actions.len() as u64;
        for action in &bucket.actions {
            if let Action::Group(next) = action {
                let next = next_cost(*next);
                actions = actions.saturating_add(next.actions);
                cost.depth = cost.depth.max(next.depth + 1);
            }
        }
        cost.actions = match group.kind {
            GroupType::All => cost.actions.saturating_add(actions),
            _ => cost.actions.max(actions),
        };
    }
    cost
}

/// Returns true if a path leads from the group `from` to the group `to`. Visits each group
/// once.
fn leads(
    groups: &Groups,
    from: GroupId,
    to: GroupId,
    next: impl Fn(&Group) -> BTreeSet<GroupId>,
) -> bool {
    let mut waiting = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if id == to {
            return true;
        }
        if let Some(group) = groups.get(&id).filter(|_| seen.insert(id)) {
            waiting.extend(next(group));
        }
    }
    false
}
