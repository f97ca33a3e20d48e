//! The order of messages: tables, meters, groups, flows. A group comes after the groups that
//! it refers to.

use std::collections::HashMap;

use super::Located;
use crate::action::{Action, GroupId};
use crate::group::Group;
use crate::pipeline::Message;

/// Sorts messages into an order that a pipeline accepts.
pub(super) fn ordered(located: Vec<Located>) -> Vec<Located> {
    let mut kinds: [Vec<Located>; 4] = Default::default();
    for line in located {
        let kind = match line.message {
            Message::Table(_) | Message::Port(..) => 0,
            Message::Meter(_) => 1,
            Message::Group(_) => 2,
            Message::Flow(_) => 3,
        };
        kinds[kind].push(line);
    }
    let [tables, meters, groups, flows] = kinds;
    let mut ordered = tables;
    ordered.extend(meters);
    ordered.extend(groups_in_order(groups));
    ordered.extend(flows);
    ordered
}

/// Sorts each group after the groups that it refers to, otherwise in the order of the
/// text. Groups that refer to each other in a loop stay in the order of the text; a
/// pipeline refuses them.
fn groups_in_order(groups: Vec<Located>) -> Vec<Located> {
    let group = |index: usize| match &groups[index].message {
        Message::Group(message) => Some(&message.group),
        _ => None,
    };
    let mut indexes: HashMap<GroupId, usize> = HashMap::new();
    for index in 0..groups.len() {
        if let Some(group) = group(index) {
            indexes.entry(group.id).or_insert(index);
        }
    }
    let mut order = Vec::with_capacity(groups.len());
    let mut is_begun = vec![false; groups.len()];
    for start in 0..groups.len() {
        if std::mem::replace(&mut is_begun[start], true) {
            continue;
        }
        // A path of groups, each with the groups that must still be placed before it.
        let before = |index: usize| group(index).map(referred).unwrap_or_default();
        let mut path = vec![(start, before(start))];
        while let Some((index, pending)) = path.last_mut() {
            let next = pending.pop().and_then(|id| indexes.get(&id).copied());
            match next {
                Some(next) if !is_begun[next] => {
                    is_begun[next] = true;
                    path.push((next, before(next)));
                }
                Some(_) => {}
                None if pending.is_empty() => {
                    order.push(*index);
                    path.pop();
                }
                None => {}
            }
        }
    }
    let mut groups: Vec<Option<Located>> = groups.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|index| groups[index].take())
        .collect()
}

/// Returns the groups that a group refers to, in reverse order.
fn referred(group: &Group) -> Vec<GroupId> {
    let target = |action: &Action| match action {
        Action::Group(id) => Some(*id),
        _ => None,
    };
    let ids = group.buckets.iter().flat_map(|bucket| {
        let actions = bucket.actions.iter().filter_map(target);
        bucket.watch_group.into_iter().chain(actions)
    });
    let mut ids: Vec<GroupId> = ids.collect();
    ids.reverse();
    ids
}
