//! Compares messages that change flow entries with a list that is changed as the OpenFlow
//! text says. The list decides matches by trying all packets of a small world.

use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;
use classyard_datapath::flow::{
    Command, FlowChange, FlowEntry, FlowMod, FlowStore, Instructions, RemovalReason, TableId,
};
use classyard_datapath::{
    Action, ErrorCode, Field, FlowMatch, GroupId, MatchField, Packet, PortNo,
};

use crate::frames::Dice;

/// Returns all packets of the world.
fn world() -> Vec<Packet> {
    let mut packets = Vec::new();
    for port in 1..4 {
        for metadata in 0..8 {
            for kind in [0x08, 0x86, 0x99] {
                let mut frame = [0; 60];
                (frame[12], frame[13]) = (kind, if kind == 0x86 { 0xdd } else { 0 });
                let mut packet = Packet::new(&frame, port);
                packet.write_metadata(metadata, u64::MAX);
                packets.push(packet);
            }
        }
    }
    packets
}

/// Returns a match that some packets of the world have.
fn random_match(dice: &mut Dice) -> FlowMatch {
    let mut values = Vec::new();
    if dice.one_in(3) {
        values.push(MatchField::exact(
            Field::InPort,
            1 + u128::from(dice.below(2)),
        ));
    }
    if dice.one_in(2) {
        let mask = u128::from(dice.below(8));
        let value = u128::from(dice.below(8)) & mask;
        values.push(MatchField {
            field: Field::Metadata,
            value,
            mask,
        });
    }
    if dice.one_in(3) {
        let kind = *dice.pick(&[0x800, 0x86dd]);
        values.push(MatchField::exact(Field::EthType, kind));
    }
    FlowMatch::new(values).unwrap()
}

fn random_instructions(dice: &mut Dice, table: TableId) -> Instructions {
    let port = PortNo(1 + dice.below(2) as u32);
    let output = Action::Output { port, max_len: 0 };
    let group = Action::Group(GroupId(1 + dice.below(2) as u32));
    let mut instructions = Instructions::default();
    match dice.below(5) {
        0 => instructions.apply = vec![output],
        1 => instructions.write = vec![output, group],
        2 => instructions.goto_table = Some(TableId(table.0 + 1)),
        3 => instructions.metadata = Some((1, 3)),
        _ => {}
    }
    instructions
}

fn random_message(dice: &mut Dice) -> FlowMod {
    let strict = dice.one_in(2);
    let command = match dice.below(6) {
        0 => Command::Modify { strict },
        1 => Command::Delete { strict },
        _ => Command::Add,
    };
    let mut message = FlowMod::new(command, random_match(dice));
    message.table = TableId(dice.below(2) as u8);
    message.priority = dice.below(3) as u16;
    message.cookie = dice.below(4);
    message.cookie_mask = *dice.pick(&[0, 0, 1, 3]);
    message.idle_timeout = dice.below(9) as u16;
    message.flags.check_overlap = dice.one_in(4);
    message.flags.reset_counts = dice.one_in(2);
    message.instructions = Arc::new(random_instructions(dice, message.table));
    if matches!(command, Command::Delete { .. }) {
        if dice.one_in(4) {
            message.table = TableId::ALL;
        }
        if dice.one_in(3) {
            message.out_port = Some(PortNo(1));
        }
        if dice.one_in(3) {
            message.out_group = Some(GroupId(2));
        }
    }
    message
}

/// All entries, in the order of their ids.
struct Model {
    packets: Vec<Packet>,
    entries: Vec<FlowEntry>,
}

impl Model {
    fn matched<'m>(&'m self, flow: &'m FlowMatch) -> impl Iterator<Item = bool> + 'm {
        self.packets.iter().map(|packet| flow.matches(packet.key()))
    }

    fn includes(&self, wide: &FlowMatch, narrow: &FlowMatch) -> bool {
        let mut pairs = self.matched(wide).zip(self.matched(narrow));
        pairs.all(|(wide, narrow)| wide || !narrow)
    }

    fn overlaps(&self, one: &FlowMatch, two: &FlowMatch) -> bool {
        let mut pairs = self.matched(one).zip(self.matched(two));
        pairs.any(|(one, two)| one && two)
    }

    fn means(&self, message: &FlowMod, entry: &FlowEntry, strict: bool) -> bool {
        let table = message.table == TableId::ALL || message.table == entry.table;
        let fits = match strict {
            true => entry.priority == message.priority && *entry.flow == *message.flow,
            false => self.includes(&message.flow, &entry.flow),
        };
        table && fits && (entry.cookie ^ message.cookie) & message.cookie_mask == 0
    }

    /// Applies a message. Returns `None` if it is refused because of an overlap.
    fn apply(&mut self, message: &FlowMod, now: Duration) -> Option<()> {
        match message.command {
            Command::Add => {
                let mut others = self.entries.iter().filter(|entry| {
                    entry.table == message.table && entry.priority == message.priority
                });
                let overlaps = others.any(|entry| self.overlaps(&entry.flow, &message.flow));
                if message.flags.check_overlap && overlaps {
                    return None;
                }
                let same = self.entries.iter().position(|entry| {
                    (entry.table, entry.priority) == (message.table, message.priority)
                        && entry.flow == message.flow
                });
                let numbers = || self.entries.iter().map(|entry| entry.id.get());
                let id = match same {
                    Some(at) => self.entries.remove(at).id,
                    None => {
                        let free = (0..).find(|number| numbers().all(|other| other != *number));
                        RuleId::new(free.unwrap()).unwrap()
                    }
                };
                self.entries.push(FlowEntry {
                    id,
                    table: message.table,
                    priority: message.priority,
                    flow: Arc::clone(&message.flow),
                    instructions: Arc::clone(&message.instructions),
                    cookie: message.cookie,
                    idle_timeout: message.idle_timeout,
                    hard_timeout: message.hard_timeout,
                    importance: message.importance,
                    flags: message.flags,
                    added: now,
                });
                self.entries.sort_by_key(|entry| entry.id);
            }
            Command::Modify { strict } => {
                for at in 0..self.entries.len() {
                    if self.means(message, &self.entries[at], strict) {
                        self.entries[at].instructions = Arc::clone(&message.instructions);
                    }
                }
            }
            Command::Delete { strict } => {
                let outputs = |entry: &FlowEntry, action: &dyn Fn(&Action) -> bool| {
                    let Instructions { apply, write, .. } = &*entry.instructions;
                    apply.iter().chain(write).any(action)
                };
                let entries = std::mem::take(&mut self.entries);
                let stays = |entry: &FlowEntry| {
                    let port = message.out_port;
                    let group = message.out_group;
                    let is_port = |action: &Action| matches!(action, Action::Output { port: other, .. } if Some(*other) == port);
                    let is_group =
                        |action: &Action| matches!(action, Action::Group(id) if Some(*id) == group);
                    !(self.means(message, entry, strict)
                        && (port.is_none() || outputs(entry, &is_port))
                        && (group.is_none() || outputs(entry, &is_group)))
                };
                self.entries = entries.into_iter().filter(stays).collect();
            }
        }
        Some(())
    }
}

/// Returns all entries of a store, by id.
fn entries(store: &FlowStore) -> Vec<FlowEntry> {
    let tables = (0..=u8::MAX).map(TableId);
    let mut entries: Vec<FlowEntry> = tables.flat_map(|id| store.table(id)).cloned().collect();
    entries.sort_by_key(|entry| entry.id);
    assert_eq!(entries.len(), store.len());
    for entry in &entries {
        assert_eq!(store.get(entry.id), Some(entry));
    }
    entries
}

/// Checks that the changes lead from the entries before to the entries after.
fn leads_to(before: &[FlowEntry], changes: &[FlowChange], after: &[FlowEntry]) {
    let mut entries = before.to_vec();
    for change in changes {
        match change {
            FlowChange::Added(entry) => entries.push(entry.clone()),
            FlowChange::Changed { old, new, .. } => {
                let at = entries.iter().position(|entry| *entry == **old).unwrap();
                assert_eq!((old.id, &old.flow), (new.id, &new.flow));
                entries[at] = (**new).clone();
            }
            FlowChange::Removed(entry, reason) => {
                assert_eq!(*reason, RemovalReason::Delete);
                let at = entries.iter().position(|other| other == entry).unwrap();
                entries.remove(at);
            }
        }
    }
    entries.sort_by_key(|entry| entry.id);
    assert_eq!(entries, after);
}

#[test]
fn messages_change_entries_as_the_text_says_and_can_be_taken_back() {
    let mut dice = Dice(1);
    let (mut refused, mut undone, mut most) = (0, 0, 0);
    let mut reset = [0; 2];
    for _ in 0..40 {
        let mut store = FlowStore::new();
        let mut model = Model {
            packets: world(),
            entries: Vec::new(),
        };
        for step in 0..300 {
            let now = Duration::from_millis(step);
            let message = random_message(&mut dice);
            let before = entries(&store);
            let result = store.apply(&message, now);
            let after = entries(&store);
            match &result {
                Ok(changes) => leads_to(&before, changes, &after),
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::FlowModOverlap, "{error}");
                    assert_eq!(before, after, "nothing changed");
                    refused += 1;
                }
            }
            if dice.one_in(3) {
                // A bundle of this message and more, which is not committed.
                let mut changes = result.unwrap_or_default();
                for _ in 0..dice.below(5) {
                    changes.extend(
                        store
                            .apply(&random_message(&mut dice), now)
                            .unwrap_or_default(),
                    );
                }
                undone += usize::from(!changes.is_empty());
                store.undo(changes);
                assert_eq!(entries(&store), before);
                continue;
            }
            for change in result.iter().flatten() {
                if let FlowChange::Changed { reset_counts, .. } = change {
                    assert_eq!(*reset_counts, message.flags.reset_counts);
                    reset[usize::from(*reset_counts)] += 1;
                }
                if let FlowChange::Removed(gone, _) = change {
                    store.release(gone.id);
                }
            }
            assert_eq!(
                model.apply(&message, now).is_some(),
                result.is_ok(),
                "{message:?}"
            );
            assert_eq!(after, model.entries, "{message:?}");
            most = most.max(after.len());
        }
    }
    assert!(
        refused > 100 && undone > 500 && most > 20,
        "{refused} {undone} {most}"
    );
    assert!(reset.iter().all(|&times| times > 50), "{reset:?}");
}

#[test]
fn messages_are_refused_as_openflow_does() {
    use ErrorCode::{
        BadOutPort, BadTable, FlowModBadTable, InconsistentAction, UnsupportedMetadata,
    };
    let add = |table: u8, instructions: Instructions| {
        let mut message = FlowMod::new(Command::Add, FlowMatch::default());
        (message.table, message.instructions) = (TableId(table), Arc::new(instructions));
        message
    };
    let goto = |next: u8| Instructions {
        goto_table: Some(TableId(next)),
        ..Instructions::default()
    };
    let apply = |action| Instructions {
        apply: vec![action],
        ..Instructions::default()
    };
    let write = |actions: &[Action]| Instructions {
        write: actions.to_vec(),
        ..Instructions::default()
    };
    let metadata = Instructions {
        metadata: Some((4, 3)),
        ..Instructions::default()
    };
    let nowhere = Action::Output {
        port: PortNo::ANY,
        max_len: 0,
    };
    let tag = Action::SetField(MatchField::exact(Field::VlanVid, 0x1005));
    let cases = [
        (add(254, goto(255)), Err(FlowModBadTable)),
        (add(255, Instructions::default()), Err(FlowModBadTable)),
        (add(3, goto(3)), Err(BadTable)),
        (add(3, goto(2)), Err(BadTable)),
        (add(253, goto(254)), Err(BadTable)),
        (add(3, goto(4)), Ok(1)),
        (add(0, apply(nowhere)), Err(BadOutPort)),
        (add(0, apply(Action::DecrementTtl)), Err(InconsistentAction)),
        // An action set pushes the tag first, whatever the written order.
        (add(0, write(&[tag, Action::PushVlan(0x8100)])), Ok(1)),
        (add(0, apply(tag)), Err(InconsistentAction)),
        (add(0, metadata), Err(UnsupportedMetadata)),
    ];
    let mut store = FlowStore::new();
    for (message, expected) in cases {
        let result = store.apply(&message, Duration::ZERO);
        let result = result.map(|changes| changes.len()).map_err(|error| {
            assert!(error.to_string().len() > 20, "{error}");
            error.code()
        });
        assert_eq!(result, expected, "{}", message.instructions);
    }
    // A modification must fit all matching entries.
    let mut modify = FlowMod::new(Command::Modify { strict: false }, FlowMatch::default());
    (modify.table, modify.instructions) = (TableId(0), Arc::new(goto(9)));
    assert_eq!(store.apply(&modify, Duration::ZERO).unwrap().len(), 1);
    modify.instructions = Arc::new(apply(Action::DecrementTtl));
    let refused = store.apply(&modify, Duration::ZERO).unwrap_err();
    assert_eq!(refused.code(), InconsistentAction);
    assert_eq!(
        *store.table(TableId(0)).next().unwrap().instructions,
        goto(9)
    );
}

#[test]
fn instructions_are_written_as_flows_have_them() {
    use classyard_datapath::MeterId;
    let instructions = Instructions {
        meter: Some(MeterId(3)),
        apply: vec![
            Action::PushVlan(0x8100),
            Action::SetField(MatchField::exact(Field::VlanVid, 0x1005)),
            Action::Output {
                port: PortNo::CONTROLLER,
                max_len: 128,
            },
        ],
        clear: true,
        write: vec![Action::Group(GroupId(7)), Action::PopVlan],
        metadata: Some((5, 0xff)),
        goto_table: Some(TableId(4)),
    };
    assert_eq!(
        instructions.to_string(),
        "meter:3,push_vlan:0x8100,set_field:0x1005->vlan_vid,controller(max_len=128),clear_actions,\
         write_actions(group:7,pop_vlan),write_metadata:0x5/0xff,goto_table:4"
    );
    assert_eq!(Instructions::default().to_string(), "drop");
}
