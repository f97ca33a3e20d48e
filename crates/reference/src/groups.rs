//! Messages about groups (OpenFlow 1.3.5 §6.5, §7.3.4.2), and the liveness of a group's
//! buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::RemovalReason;
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline::{Count, GroupCount};
use classyard_datapath::{Action, ErrorCode, GroupId};

use crate::actions::{self, MAX_ACTIONS, has_action};
use crate::state::{CountedGroup, State};

/// The documented maximum of groups that a packet passes one after the other.
const MAX_DEPTH: u64 = 32;

/// The documented maximum of output packets for one input packet.
pub(crate) const MAX_COPIES: u64 = 4096;

pub(crate) fn apply(state: &mut State, message: &GroupMod, now: Duration) -> Result<(), ErrorCode> {
    let id = message.group.id;
    match message.command {
        GroupCommand::Add if state.groups.contains_key(&id) => Err(ErrorCode::GroupExists),
        GroupCommand::Modify if !state.groups.contains_key(&id) => Err(ErrorCode::UnknownGroup),
        GroupCommand::Add | GroupCommand::Modify => {
            check(state, &message.group)?;
            let mut changed = state.clone();
            put(&mut changed, &message.group);
            check_limits(&changed)?;
            put(state, &message.group);
            Ok(())
        }
        GroupCommand::Delete if id == GroupId::ALL => {
            let ids: Vec<GroupId> = state.groups.keys().copied().collect();
            for id in ids {
                remove(state, id, now);
            }
            Ok(())
        }
        GroupCommand::Delete => {
            let mut other_groups = state.groups.values().filter(|other| other.group.id != id);
            let is_used = other_groups.any(|other| {
                let mut buckets = other.group.buckets.iter();
                buckets.any(|bucket| leads(bucket).contains(&id) || bucket.watch_group == Some(id))
            });
            if is_used && state.groups.contains_key(&id) {
                return Err(ErrorCode::ChainedGroup);
            }
            remove(state, id, now);
            Ok(())
        }
    }
}

/// Returns the groups to which a bucket sends packets.
fn leads(bucket: &Bucket) -> Vec<GroupId> {
    let group = |action: &Action| match action {
        Action::Group(group) => Some(*group),
        _ => None,
    };
    bucket.actions.iter().filter_map(group).collect()
}

/// Adds or replaces a group. A modified group keeps its own statistics; the statistics of
/// its new buckets begin at 0.
fn put(state: &mut State, group: &Group) {
    let before = state.groups.get(&group.id);
    let count = GroupCount {
        all: before.map_or(Count::default(), |before| before.count.all),
        buckets: vec![Count::default(); group.buckets.len()],
    };
    let counted = CountedGroup {
        group: Arc::new(group.clone()),
        count,
    };
    state.groups.insert(group.id, counted);
}

/// Removes a group and the entries that use it.
fn remove(state: &mut State, id: GroupId, now: Duration) {
    if state.groups.remove(&id).is_some() {
        state.remove(RemovalReason::GroupDelete, now, |counted| {
            has_action(&counted.entry.instructions, &Action::Group(id))
        });
    }
}

fn check(state: &State, group: &Group) -> Result<(), ErrorCode> {
    let is_indirect = group.kind == GroupType::Indirect;
    if group.id > GroupId::MAX || is_indirect && group.buckets.len() != 1 {
        return Err(ErrorCode::InvalidGroup);
    }
    for bucket in &group.buckets {
        if group.kind != GroupType::Select && bucket.weight != 0 {
            return Err(ErrorCode::InvalidGroup);
        }
        let watches_nothing = bucket.watch_port.is_none() && bucket.watch_group.is_none();
        if group.kind == GroupType::FastFailover && watches_nothing {
            return Err(ErrorCode::BadWatch);
        }
        actions::check_length(&bucket.actions)?;
        for action in &bucket.actions {
            actions::check_alone(action)?;
        }
    }
    for bucket in &group.buckets {
        for next in leads(bucket) {
            if next != group.id && !state.groups.contains_key(&next) {
                return Err(ErrorCode::BadOutGroup);
            }
            if reaches(state, next, group.id, &leads) {
                return Err(ErrorCode::GroupLoop);
            }
        }
        if let Some(watched) = bucket.watch_group {
            let watches = |bucket: &Bucket| bucket.watch_group.into_iter().collect();
            let is_there = state.groups.contains_key(&watched);
            if !is_there || reaches(state, watched, group.id, &watches) {
                return Err(ErrorCode::BadWatch);
            }
        }
    }
    Ok(())
}

/// True if `to` can be reached from `from` by zero or more steps.
fn reaches(
    state: &State,
    from: GroupId,
    to: GroupId,
    step: &dyn Fn(&Bucket) -> Vec<GroupId>,
) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while next < reached.len() {
        if let Some(counted) = state.groups.get(&reached[next]) {
            for group in counted.group.buckets.iter().flat_map(step) {
                if !reached.contains(&group) {
                    reached.push(group);
                }
            }
        }
        next += 1;
    }
    reached.contains(&to)
}

/// The cost of a group for a packet: the longest chain of groups, and the actions. As
/// documented, a bucket counts as an action; a group of type `all` costs the sum of its
/// buckets, any other group costs its most expensive bucket.
#[derive(Clone, Copy)]
struct Cost {
    depth: u64,
    actions: u64,
}

/// Returns the costs of all groups. A group is computed after the groups to which it
/// sends packets; groups have no loops, so all are computed in the end.
fn costs(state: &State) -> BTreeMap<GroupId, Cost> {
    let mut costs: BTreeMap<GroupId, Cost> = BTreeMap::new();
    while costs.len() < state.groups.len() {
        let before = costs.len();
        for (&id, counted) in &state.groups {
            let buckets = &counted.group.buckets;
            let mut next = buckets.iter().flat_map(leads);
            if costs.contains_key(&id) || !next.all(|next| costs.contains_key(&next)) {
                continue;
            }
            let mut cost = Cost {
                depth: 1,
                actions: 0,
            };
            for bucket in buckets {
                let mut actions = 1 + bucket.actions.len() as u64;
                for next in leads(bucket) {
                    actions += costs[&next].actions;
                    cost.depth = cost.depth.max(1 + costs[&next].depth);
                }
                if counted.group.kind == GroupType::All {
                    cost.actions += actions;
                } else {
                    cost.actions = cost.actions.max(actions);
                }
            }
            costs.insert(id, cost);
        }
        assert!(costs.len() > before, "groups without a circle");
    }
    costs
}

/// The number of actions that a packet may need in a group.
pub(crate) fn actions_of(state: &State, id: GroupId) -> u64 {
    costs(state)[&id].actions
}

/// Checks the limits of all groups, chain lengths first.
fn check_limits(state: &State) -> Result<(), ErrorCode> {
    let costs = costs(state);
    if costs.values().any(|cost| cost.depth > MAX_DEPTH) {
        return Err(ErrorCode::ChainingUnsupported);
    }
    match costs.values().any(|cost| cost.actions > MAX_ACTIONS) {
        true => Err(ErrorCode::OutOfBuckets),
        false => Ok(()),
    }
}

/// Returns the groups that have a live bucket. It begins with none and repeats until no
/// further group becomes live, because a live group may make other groups live.
pub(crate) fn live_groups(state: &State) -> BTreeSet<GroupId> {
    let mut live = BTreeSet::new();
    loop {
        let before = live.len();
        for (&id, counted) in &state.groups {
            let mut buckets = counted.group.buckets.iter();
            if buckets.any(|bucket| is_live(state, &live, bucket)) {
                live.insert(id);
            }
        }
        if live.len() == before {
            return live;
        }
    }
}

/// True if packets may go to a bucket (§5.6.1, §6.5): it watches nothing, or its watched
/// port has a link, or its watched group has a live bucket.
pub(crate) fn is_live(state: &State, live: &BTreeSet<GroupId>, bucket: &Bucket) -> bool {
    let port = bucket.watch_port.map(|port| {
        let port = state.ports.get(&port);
        port.is_some_and(|port| port.is_up)
    });
    let group = bucket.watch_group.map(|group| live.contains(&group));
    match (port, group) {
        (None, None) => true,
        _ => port == Some(true) || group == Some(true),
    }
}
