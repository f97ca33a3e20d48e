//! Loading and changing many groups and entries. The work must grow linearly, so these
//! tests only have to end.

use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::{
    Command, FlowChange, FlowMod, FlowStore, Instructions, RemovalReason,
};
use classyard_datapath::group::{GroupCommand, GroupMod, GroupStore, GroupType};
use classyard_datapath::pipeline::{Change, Message};
use classyard_datapath::{ErrorCode, Field, FlowMatch, GroupId, MatchField, PortNo};

use crate::frames::Dice;
use crate::limits::{bucket, entry, group, output, pipeline, to};

const NOW: Duration = Duration::ZERO;

#[test]
fn many_chains_of_groups_load_and_go() {
    // Chains of 30 groups; in the second round they replace existing groups.
    let mut store = GroupStore::new();
    for round in 0..2 {
        for id in 0..40_000 {
            let action = match id % 30 {
                0 => output(PortNo(2)),
                _ => to(id - 1),
            };
            let Message::Group(mut message) = group(id, GroupType::All, vec![bucket(&[action])])
            else {
                unreachable!("a group");
            };
            if round > 0 {
                message.command = GroupCommand::Modify;
            }
            store.apply(&message).unwrap();
        }
    }
    let delete = GroupMod::delete(GroupId(29));
    store.apply(&delete).unwrap();
    let refused = store.apply(&GroupMod::delete(GroupId(5))).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ChainedGroup);
    let changes = store.apply(&GroupMod::delete(GroupId::ALL)).unwrap();
    assert_eq!(changes.len(), 39_999);
    let empty = store.clone();
    store.undo(changes);
    assert_eq!(store.iter().len(), 39_999);
    assert_eq!(store.actions(GroupId(28)), Some(58));
    store.apply(&GroupMod::delete(GroupId::ALL)).unwrap();
    assert_eq!(store, empty);
}

fn address(value: u32, length: u32) -> MatchField {
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    MatchField {
        field: Field::Ipv4Dst,
        value: u128::from(value & mask),
        mask: u128::from(mask),
    }
}

fn checked(values: Vec<MatchField>) -> FlowMod {
    let ipv4 = MatchField::exact(Field::EthType, 0x800);
    let flow = FlowMatch::new(values.into_iter().chain([ipv4])).unwrap();
    let mut message = FlowMod::new(Command::Add, flow);
    message.flags.check_overlap = true;
    message
}

#[test]
fn deleting_all_groups_removes_the_entries_that_use_them() {
    let mut pipeline = pipeline();
    let groups = (0..4000).map(|id| group(id, GroupType::All, Vec::new()));
    let mut messages: Vec<Message> = groups.collect();
    for number in 0..20_000 {
        let mut message = checked(vec![address(number << 8, 24)]);
        message.flags.check_overlap = false;
        // Every fifth entry has no group.
        let uses = (number % 5 > 0).then(|| to(number % 4000));
        message.instructions = Arc::new(Instructions {
            apply: uses.into_iter().collect(),
            ..Instructions::default()
        });
        messages.push(Message::Flow(message));
    }
    pipeline.apply(&messages, NOW).unwrap();
    let delete = Message::Group(GroupMod::delete(GroupId::ALL));
    let changes = pipeline.apply(&[delete], NOW).unwrap();
    let is_removal = |change: &&Change| {
        let reason = RemovalReason::GroupDelete;
        matches!(change, Change::Flow(FlowChange::Removed(_, why)) if *why == reason)
    };
    assert_eq!(changes.iter().filter(is_removal).count(), 16_000);
    assert_eq!(pipeline.flows().len(), 4000);
    assert_eq!(pipeline.groups().iter().len(), 0);
    // A refused bundle restores all groups, with the entries that use them.
    pipeline.apply(&messages, NOW).unwrap();
    let delete = || Message::Group(GroupMod::delete(GroupId::ALL));
    let wrong = entry(Instructions {
        apply: vec![to(1)],
        ..Instructions::default()
    });
    pipeline.apply(&[delete(), wrong], NOW).unwrap_err();
    assert_eq!(pipeline.flows().len(), 20_000);
    pipeline.apply(&[delete()], NOW).unwrap();
    assert_eq!(pipeline.flows().len(), 4000);
}

#[test]
fn many_entries_are_checked_for_overlaps() {
    let mut store = FlowStore::new();
    // Prefixes of five lengths that do not overlap, at one priority.
    for number in 0..40_000_u32 {
        let length = 20 + number % 5;
        let message = checked(vec![address(number << 12, length)]);
        store.apply(&message, NOW).unwrap();
    }
    let wide = checked(vec![address(0, 8)]);
    let refused = store.apply(&wide, NOW).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FlowModOverlap);
}

#[test]
fn many_entries_with_masks_of_their_own_are_checked_for_overlaps() {
    let mut dice = Dice(11);
    let mut store = FlowStore::new();
    for number in 0..20_000_u32 {
        let mask = u128::from(dice.below(1 << 32));
        let random = MatchField {
            field: Field::Ipv4Src,
            value: u128::from(dice.below(1 << 32)) & mask,
            mask,
        };
        let own = MatchField {
            field: Field::Metadata,
            value: u128::from(number),
            mask: 0xffff,
        };
        store.apply(&checked(vec![random, own]), NOW).unwrap();
    }
    let same = MatchField {
        field: Field::Metadata,
        value: 7,
        mask: 0xffff,
    };
    let refused = store.apply(&checked(vec![same]), NOW).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FlowModOverlap);
}

/// Compares the index with a comparison of every entry, for matches of few bits.
#[test]
fn overlaps_are_those_that_the_matches_have() {
    let mut dice = Dice(3);
    let (mut refused, mut added) = (0, 0);
    for _ in 0..40 {
        let mut store = FlowStore::new();
        for _ in 0..150 {
            let mut values = Vec::new();
            for (field, bits) in [
                (Field::Ipv4Dst, 4),
                (Field::Ipv4Src, 3),
                (Field::Metadata, 3),
            ] {
                let mask = u128::from(dice.below(1 << bits));
                if mask != 0 && !dice.one_in(3) {
                    let value = u128::from(dice.below(1 << bits)) & mask;
                    values.push(MatchField { field, value, mask });
                }
            }
            let mut message = checked(values);
            message.priority = dice.below(3) as u16;
            if dice.one_in(4) {
                message.command = Command::Delete {
                    strict: dice.one_in(2),
                };
            }
            message.flags.check_overlap = !dice.one_in(4);
            let expected = store.iter().any(|entry| {
                entry.priority == message.priority && entry.flow.overlaps(&message.flow)
            });
            let is_checked = message.command == Command::Add && message.flags.check_overlap;
            match store.apply(&message, NOW) {
                Ok(changes) => {
                    assert!(!(is_checked && expected), "{message}");
                    added += usize::from(is_checked);
                    if dice.one_in(4) {
                        store.undo(changes);
                    }
                }
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::FlowModOverlap);
                    assert!(expected, "{message}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 500 && added > 500, "{refused} {added}");
}
