//! Messages about groups (OpenFlow 1.3.5 §6.5, §7.3.4.2), and which buckets of a group
//! are live.

use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::RemovalReason;
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline::{Count, GroupCount};
use classyard_datapath::{Action, ErrorCode, GroupId};

use crate::actions;
use crate::flows::has_action;
use crate::state::{CountedGroup, State};

pub(crate) fn apply(state: &mut State, message: &GroupMod, now: Duration) -> Result<(), ErrorCode> {
    let id = message.group.id;
    match message.command {
        GroupCommand::Add if state.groups.contains_key(&id) => Err(ErrorCode::GroupExists),
        GroupCommand::Modify if !state.groups.contains_key(&id) => Err(ErrorCode::UnknownGroup),
        GroupCommand::Add | GroupCommand::Modify => {
            check(state, &message.group)?;
            put(state, &message.group);
            Ok(())
        }
        GroupCommand::Delete if id == GroupId::ALL => {
            let all: Vec<GroupId> = state.groups.keys().copied().collect();
            for id in all {
                remove(state, id, now);
            }
            Ok(())
        }
        GroupCommand::Delete => {
            let mut others = state.groups.values().filter(|other| other.group.id != id);
            let is_used = others.any(|other| {
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

/// The groups that a bucket sends packets to.
fn leads(bucket: &Bucket) -> Vec<GroupId> {
    let group = |action: &Action| match action {
        Action::Group(group) => Some(*group),
        _ => None,
    };
    bucket.actions.iter().filter_map(group).collect()
}

/// A group's statistics go on when it is modified; those of its buckets, which are
/// others, begin at 0.
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

/// Removes a group, and the entries that have it process packets.
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

/// Whether one gets from a group to another one, or is there. There is no circle among
/// the groups that are there already, so this ends.
fn reaches(
    state: &State,
    from: GroupId,
    to: GroupId,
    step: &dyn Fn(&Bucket) -> Vec<GroupId>,
) -> bool {
    from == to
        || state.groups.get(&from).is_some_and(|from| {
            let mut next = from.group.buckets.iter().flat_map(step);
            next.any(|next| reaches(state, next, to, step))
        })
}

/// Whether packets may go to a bucket (§5.6.1, §6.5): it watches nothing, or the port
/// that it watches has a link, or the group that it watches has a live bucket.
pub(crate) fn is_live(state: &State, bucket: &Bucket) -> bool {
    let port = bucket.watch_port.map(|port| {
        let port = state.ports.get(&port);
        port.is_some_and(|port| port.is_up)
    });
    let group = bucket.watch_group.map(|group| {
        let group = state.groups.get(&group);
        group.is_some_and(|group| {
            let mut buckets = group.group.buckets.iter();
            buckets.any(|bucket| is_live(state, bucket))
        })
    });
    match (port, group) {
        (None, None) => true,
        _ => port == Some(true) || group == Some(true),
    }
}
