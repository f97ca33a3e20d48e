//! Groups and lists of actions near the limits of one packet's work: long chains,
//! fan-outs that double with each group, groups that watch each other, long lists.

use std::sync::Arc;

use classyard_conformance::random::Dice;
use classyard_datapath::flow::{Command, FlowMod, Instructions, TableId};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline::Message;
use classyard_datapath::{Action, FlowMatch, GroupId, PortNo};

use super::messages::Held;

/// The first number of ladders' groups; other messages use lower numbers.
const FIRST_GROUP: u32 = 100;

fn output(port: PortNo) -> Action {
    Action::Output { port, max_len: 0 }
}

fn some_output(dice: &mut dyn Dice) -> Action {
    let ports = [PortNo(1), PortNo(2), PortNo::FLOOD, PortNo::IN_PORT];
    output(*dice.pick(&ports))
}

/// Returns a message that adds a group, or modifies it if it exists.
fn group(held: &Held, id: u32, kind: GroupType, buckets: Vec<Bucket>) -> Message {
    let id = GroupId(id);
    let command = match held.groups.contains(&id) {
        true => GroupCommand::Modify,
        false => GroupCommand::Add,
    };
    Message::Group(GroupMod {
        command,
        group: Group { id, kind, buckets },
    })
}

fn acting(actions: Vec<Action>) -> Bucket {
    Bucket {
        actions,
        ..Bucket::default()
    }
}

/// Returns an entry for all packets of the first table.
fn entry(apply: Vec<Action>, write: Vec<Action>, goto_table: Option<TableId>) -> Message {
    let mut message = FlowMod::new(Command::Add, FlowMatch::default());
    message.priority = 4;
    message.instructions = Arc::new(Instructions {
        apply,
        write,
        goto_table,
        ..Instructions::default()
    });
    Message::Flow(message)
}

/// Returns a chain of groups with one bucket each, about as long as the limit of chains.
fn chain(held: &Held, dice: &mut dyn Dice) -> Vec<Message> {
    let length = 29 + count(dice.below(6));
    let groups = (0..length).map(|step| {
        let mut actions = vec![output(PortNo(1 + step % 3))];
        if step > 0 {
            actions.push(Action::Group(GroupId(FIRST_GROUP + step - 1)));
        }
        let mut bucket = acting(actions);
        let kind = *dice.pick(&[
            GroupType::All,
            GroupType::Indirect,
            GroupType::Select,
            GroupType::FastFailover,
        ]);
        match kind {
            GroupType::Select => bucket.weight = 1,
            GroupType::FastFailover => bucket.watch_port = Some(PortNo(1)),
            _ => {}
        }
        group(held, FIRST_GROUP + step, kind, vec![bucket])
    });
    let mut messages: Vec<Message> = groups.collect();
    let last = GroupId(FIRST_GROUP + length - 1);
    messages.push(entry(vec![Action::Group(last)], Vec::new(), None));
    messages
}

/// Returns groups that double the packets of the previous group: ten of them need 4,092
/// actions.
fn fan_out(held: &Held, dice: &mut dyn Dice) -> Vec<Message> {
    let length = 8 + count(dice.below(4));
    let ends = [some_output(dice), some_output(dice)];
    let groups = (0..length).map(|step| {
        let bucket = |end| match step {
            0 => acting(vec![end]),
            _ => acting(vec![Action::Group(GroupId(FIRST_GROUP + step - 1))]),
        };
        let buckets = ends.map(bucket).to_vec();
        group(held, FIRST_GROUP + step, GroupType::All, buckets)
    });
    let mut messages: Vec<Message> = groups.collect();
    let last = Action::Group(GroupId(FIRST_GROUP + length - 1));
    // With ten groups, these actions come near the limit of 4,096 from either side; the
    // action set adds more.
    let mut apply = vec![some_output(dice); dice.below(6)];
    apply.push(last);
    let write = match dice.one_in(2) {
        true => vec![last],
        false => vec![some_output(dice)],
    };
    messages.push(entry(apply, write, None));
    messages
}

/// Returns groups that watch the previous group twice, and a port: each is live if the
/// previous group is.
fn watching(held: &Held, dice: &mut dyn Dice) -> Vec<Message> {
    let length = 10 + count(dice.below(30));
    let port = PortNo(1 + count(dice.below(4)));
    let groups = (0..length).map(|step| {
        let mut bucket = acting(vec![output(PortNo(1 + step % 3))]);
        match step {
            0 => bucket.watch_port = Some(port),
            _ => bucket.watch_group = Some(GroupId(FIRST_GROUP + step - 1)),
        }
        let mut buckets = vec![bucket.clone(), bucket];
        if dice.one_in(12) {
            buckets[1].watch_port = Some(PortNo(2));
        }
        group(held, FIRST_GROUP + step, GroupType::FastFailover, buckets)
    });
    let mut messages: Vec<Message> = groups.collect();
    let last = Action::Group(GroupId(FIRST_GROUP + length - 1));
    messages.push(entry(vec![last], Vec::new(), None));
    messages
}

/// Returns a list of actions about as long as the limit of lists, or a list that floods
/// more packets than the limit of copies.
fn list(later: Option<TableId>, dice: &mut dyn Dice) -> Vec<Message> {
    let apply = match dice.below(3) {
        0 => vec![some_output(dice); 4090 + dice.below(9)],
        1 => vec![output(PortNo::FLOOD); 900 + dice.below(1200)],
        _ => vec![Action::SetQueue(1); 4090 + dice.below(7)],
    };
    vec![entry(apply, vec![some_output(dice)], later)]
}

/// Returns messages that delete the groups of ladders, from the last one to the first.
fn removal(held: &Held) -> Vec<Message> {
    let groups = held.groups.iter().rev();
    let ladder = groups.filter(|group| group.0 >= FIRST_GROUP);
    let delete = |group: &GroupId| Message::Group(GroupMod::delete(*group));
    ladder.map(delete).collect()
}

fn count(small: usize) -> u32 {
    u32::try_from(small).expect("a small number")
}

/// Returns messages that build something near a limit, to be applied one by one.
pub(crate) fn messages(held: &Held, later: Option<TableId>, dice: &mut dyn Dice) -> Vec<Message> {
    match dice.below(9) {
        0..2 => chain(held, dice),
        2..5 => fan_out(held, dice),
        5 => watching(held, dice),
        6..8 => list(later, dice),
        _ => removal(held),
    }
}
