//! The order of messages: tables, meters, groups, flows; groups that others refer to
//! come first.

use std::collections::HashMap;

use super::Located;
use crate::action::{Action, GroupId};
use crate::group::Group;
use crate::pipeline::Message;

/// The messages in the order in which a pipeline takes them.
pub(super) fn ordered(located: Vec<Located>) -> Vec<Located> {
    let mut kinds: [Vec<Located>; 4] = Default::default();
    for one in located {
        let kind = match one.message {
            Message::Table(_) | Message::Port(..) => 0,
            Message::Meter(_) => 1,
            Message::Group(_) => 2,
            Message::Flow(_) => 3,
        };
        kinds[kind].push(one);
    }
    let [mut all, meters, groups, flows] = kinds;
    all.extend(meters);
    all.extend(groups_in_order(groups));
    all.extend(flows);
    all
}

/// Groups after those that they refer to, otherwise in the order of the text. Groups in
/// a circle stay in that order; a pipeline refuses them.
fn groups_in_order(groups: Vec<Located>) -> Vec<Located> {
    let group = |at: usize| match &groups[at].message {
        Message::Group(message) => Some(&message.group),
        _ => None,
    };
    let mut places: HashMap<GroupId, usize> = HashMap::new();
    for at in 0..groups.len() {
        if let Some(group) = group(at) {
            places.entry(group.id).or_insert(at);
        }
    }
    let mut order = Vec::with_capacity(groups.len());
    let mut is_begun = vec![false; groups.len()];
    for start in 0..groups.len() {
        if std::mem::replace(&mut is_begun[start], true) {
            continue;
        }
        // A path of groups, each with the groups that are still to come before it.
        let before = |at: usize| group(at).map(referred).unwrap_or_default();
        let mut path = vec![(start, before(start))];
        while let Some((at, rest)) = path.last_mut() {
            let next = rest.pop().and_then(|id| places.get(&id).copied());
            match next {
                Some(next) if !is_begun[next] => {
                    is_begun[next] = true;
                    path.push((next, before(next)));
                }
                Some(_) => {}
                None if rest.is_empty() => {
                    order.push(*at);
                    path.pop();
                }
                None => {}
            }
        }
    }
    let mut groups: Vec<Option<Located>> = groups.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| groups[at].take())
        .collect()
}

/// The groups that a group refers to, the last first.
fn referred(group: &Group) -> Vec<GroupId> {
    let of = |action: &Action| match action {
        Action::Group(id) => Some(*id),
        _ => None,
    };
    let ids = group.buckets.iter().flat_map(|bucket| {
        let actions = bucket.actions.iter().filter_map(of);
        bucket.watch_group.into_iter().chain(actions)
    });
    let mut ids: Vec<GroupId> = ids.collect();
    ids.reverse();
    ids
}
