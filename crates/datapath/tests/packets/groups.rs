//! Messages that change groups: refusals, and the guarantee that no packet can return to
//! a group.

use std::collections::BTreeMap;

use classyard_datapath::group::{
    Bucket, Group, GroupChange, GroupCommand, GroupMod, GroupStore, GroupType,
};
use classyard_datapath::{Action, ErrorCode, Field, GroupId, MatchField, PortNo};

use crate::frames::Dice;

fn to(groups: &[u32]) -> Bucket {
    // An action set has only one group, so several groups need several buckets.
    Bucket {
        actions: groups
            .iter()
            .map(|&id| Action::Group(GroupId(id)))
            .collect(),
        ..Bucket::default()
    }
}

fn group(id: u32, kind: GroupType, buckets: Vec<Bucket>) -> Group {
    Group {
        id: GroupId(id),
        kind,
        buckets,
    }
}

fn message(command: GroupCommand, group: Group) -> GroupMod {
    GroupMod { command, group }
}

fn watching(port: Option<u32>, group: Option<u32>) -> Bucket {
    Bucket {
        watch_port: port.map(PortNo),
        watch_group: group.map(GroupId),
        ..Bucket::default()
    }
}

#[test]
fn groups_are_refused_as_openflow_does() {
    use ErrorCode::{
        BadOutGroup, BadOutPort, BadSetType, BadWatch, ChainedGroup, GroupExists, GroupLoop,
        InvalidGroup, UnknownGroup,
    };
    use GroupCommand::{Add, Modify};
    use GroupType::{All, FastFailover, Indirect, Select};
    let weight = |weight| Bucket {
        weight,
        ..Bucket::default()
    };
    let acting = |action| Bucket {
        actions: vec![action],
        ..Bucket::default()
    };
    let output = |port| acting(Action::Output { port, max_len: 0 });
    let metadata = acting(Action::SetField(MatchField::exact(Field::Metadata, 1)));
    let delete = |id| GroupMod::delete(GroupId(id));
    let mut store = GroupStore::new();
    let steps: [(GroupMod, Result<usize, ErrorCode>); 30] = [
        (message(Add, group(1, All, vec![])), Ok(1)),
        (message(Add, group(1, All, vec![])), Err(GroupExists)),
        (message(Modify, group(2, All, vec![])), Err(UnknownGroup)),
        (
            message(Add, group(0xffff_ff01, All, vec![])),
            Err(InvalidGroup),
        ),
        (message(Add, group(2, Indirect, vec![])), Err(InvalidGroup)),
        (
            message(Add, group(2, Indirect, vec![to(&[]), to(&[])])),
            Err(InvalidGroup),
        ),
        (message(Add, group(2, Indirect, vec![to(&[1])])), Ok(1)),
        (
            message(Add, group(3, All, vec![weight(1)])),
            Err(InvalidGroup),
        ),
        (
            message(Add, group(3, Select, vec![weight(0), weight(9)])),
            Ok(1),
        ),
        (
            message(Add, group(4, FastFailover, vec![weight(0)])),
            Err(BadWatch),
        ),
        (
            message(Add, group(4, FastFailover, vec![watching(Some(1), None)])),
            Ok(1),
        ),
        (
            message(Add, group(5, FastFailover, vec![watching(None, Some(9))])),
            Err(BadWatch),
        ),
        (
            message(Add, group(5, FastFailover, vec![watching(None, Some(4))])),
            Ok(1),
        ),
        (
            message(
                Modify,
                group(4, FastFailover, vec![watching(None, Some(5))]),
            ),
            Err(BadWatch),
        ),
        (
            message(
                Modify,
                group(4, FastFailover, vec![watching(None, Some(4))]),
            ),
            Err(BadWatch),
        ),
        (
            message(Add, group(6, All, vec![to(&[7])])),
            Err(BadOutGroup),
        ),
        (message(Add, group(6, All, vec![to(&[6])])), Err(GroupLoop)),
        (message(Add, group(6, All, vec![to(&[2]), to(&[3])])), Ok(1)),
        (
            message(Modify, group(1, All, vec![to(&[6])])),
            Err(GroupLoop),
        ),
        (
            message(Modify, group(3, Select, vec![to(&[6])])),
            Err(GroupLoop),
        ),
        (message(Modify, group(3, Select, vec![to(&[1])])), Ok(1)),
        (
            message(Add, group(7, All, vec![output(PortNo::ANY)])),
            Err(BadOutPort),
        ),
        (message(Add, group(7, All, vec![metadata])), Err(BadSetType)),
        (
            message(Add, group(7, All, vec![output(PortNo::IN_PORT)])),
            Ok(1),
        ),
        (delete(1), Err(ChainedGroup)),
        (delete(4), Err(ChainedGroup)),
        (delete(6), Ok(1)),
        (delete(6), Ok(0)),
        (delete(2), Ok(1)),
        (delete(GroupId::ALL.0), Ok(5)),
    ];
    for (message, expected) in steps {
        let before = store.clone();
        let result = store.apply(&message);
        let result = result.map(|changes| changes.len()).map_err(|error| {
            assert!(error.to_string().len() > 20, "{error}");
            assert_eq!(store, before, "nothing changed");
            error.code()
        });
        assert_eq!(result, expected, "{message:?}");
    }
    assert_eq!(store.iter().len(), 0);
}

/// True if packets of a group can return to it, by following every path.
fn returns(groups: &BTreeMap<GroupId, Group>, from: GroupId, steps: usize) -> bool {
    let Some(group) = groups.get(&from) else {
        return false;
    };
    steps == 0
        || group
            .buckets
            .iter()
            .flat_map(|bucket| &bucket.actions)
            .any(|action| match action {
                Action::Group(next) => returns(groups, *next, steps - 1),
                _ => false,
            })
}

#[test]
fn no_messages_make_a_loop_and_all_can_be_taken_back() {
    let mut dice = Dice(1);
    let (mut loops, mut chained) = (0, 0);
    for _ in 0..60 {
        let mut store = GroupStore::new();
        for _ in 0..120 {
            let id = dice.below(8) as u32;
            let buckets = (0..dice.below(3)).map(|_| to(&[dice.below(8) as u32]));
            let group = group(id, GroupType::All, buckets.collect());
            let command = *dice.pick(&[
                GroupCommand::Add,
                GroupCommand::Add,
                GroupCommand::Modify,
                GroupCommand::Delete,
            ]);
            let before = store.clone();
            match store.apply(&message(command, group)) {
                Ok(changes) => {
                    if dice.one_in(4) {
                        store.undo(changes);
                        assert_eq!(store, before);
                    } else if let [GroupChange::Removed(group)] = &changes[..] {
                        assert!(store.get(group.id).is_none());
                    }
                }
                Err(error) => {
                    assert_eq!(store, before);
                    loops += usize::from(error.code() == ErrorCode::GroupLoop);
                    chained += usize::from(error.code() == ErrorCode::ChainedGroup);
                }
            }
            let groups = store
                .iter()
                .map(|group| (group.id, group.clone()))
                .collect();
            for group in store.iter() {
                assert!(!returns(&groups, group.id, 8), "{:?}", store);
            }
        }
    }
    assert!(loops > 100 && chained > 100, "{loops} {chained}");
}
