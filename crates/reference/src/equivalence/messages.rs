//! Random messages: matches derived from packets, so that packets match them; actions
//! that mostly fit; and sometimes a message that must be refused.

use std::sync::Arc;

use classyard_conformance::random::Dice;
use classyard_datapath::flow::{
    Command, FlowFlags, FlowMod, Instructions, TableConfig, TableId, TableMod,
};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::meter::{
    Band, BandKind, Meter, MeterCommand, MeterFlags, MeterMod, MeterUnit,
};
use classyard_datapath::pipeline::{Message, PortState};
use classyard_datapath::{
    Action, Field, FlowMatch, GroupId, MatchField, MeterId, OpenFlowError, PortNo,
};

use crate::actions;
use crate::fields::{Needs, VLAN_PRESENT, all_bits, facts};
use crate::matching;
use crate::packet::Packet;

/// The number of registers that matches and actions use. All fields together must fit
/// into the longest key of an engine, and the last register is reserved for the
/// comparison.
const USED_REGISTERS: usize = 4;

/// Parameters of all messages of a world.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Tables that have entries.
    pub(crate) tables: Vec<TableId>,
    /// The approximate maximum number of entries.
    pub(crate) most: usize,
    /// True if entries of all tables use meters. Packets of a vector reach later tables
    /// in another order than single packets; the first table they reach in the same
    /// order.
    pub(crate) meters_everywhere: bool,
    /// One in `wrong` messages, or parts of messages, is meant to be refused.
    pub(crate) wrong: usize,
    /// One in `timed` entries has timeouts.
    pub(crate) timed: usize,
    /// One in 20 × `tight` messages configures a table, mostly to hold few entries.
    pub(crate) tight: usize,
}

/// The contents of a switch at the time when a message is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) entries: usize,
    pub(crate) groups: Vec<GroupId>,
    pub(crate) meters: Vec<MeterId>,
}

/// The numbers of groups and meters in messages.
const GROUPS: std::ops::RangeInclusive<u32> = 1..=6;
const METERS: std::ops::RangeInclusive<u32> = 1..=4;

impl Held {
    /// Picks a group, usually an existing one.
    fn group(&self, dice: &mut dyn Dice) -> GroupId {
        match self.groups.is_empty() || dice.one_in(30) {
            true => GroupId(*dice.pick(&GROUPS.collect::<Vec<u32>>())),
            false => *dice.pick(&self.groups),
        }
    }

    /// Picks a group, usually a missing one.
    fn new_group(&self, dice: &mut dyn Dice) -> GroupId {
        let mut unused = GROUPS.map(GroupId).collect::<Vec<_>>();
        unused.retain(|group| !self.groups.contains(group));
        match unused.is_empty() || dice.one_in(12) {
            true => GroupId(*dice.pick(&GROUPS.collect::<Vec<u32>>())),
            false => *dice.pick(&unused),
        }
    }

    /// Picks a meter, usually an existing one.
    fn meter(&self, dice: &mut dyn Dice) -> Option<MeterId> {
        match self.meters.is_empty() {
            true => dice.one_in(30).then_some(MeterId(1)),
            false => Some(*dice.pick(&self.meters)),
        }
    }

    /// Picks a meter, usually a missing one.
    fn new_meter(&self, dice: &mut dyn Dice) -> MeterId {
        let mut unused = METERS.map(MeterId).collect::<Vec<_>>();
        unused.retain(|meter| !self.meters.contains(meter));
        match unused.is_empty() || dice.one_in(12) {
            true => MeterId(*dice.pick(&METERS.collect::<Vec<u32>>())),
            false => *dice.pick(&unused),
        }
    }
}

/// Returns the fields that matches of worlds use.
fn matched() -> impl Iterator<Item = Field> {
    let last = Field::Reg0.index() + USED_REGISTERS;
    Field::all().filter(move |field| field.index() < last)
}

/// Returns a random value of a field.
fn value(field: Field, dice: &mut dyn Dice) -> u128 {
    let full_mask = all_bits(field);
    match dice.below(4) {
        0 => 0,
        1 => full_mask,
        2 => dice.below(4) as u128,
        _ => dice.bits(facts(field).bits),
    }
    .min(full_mask)
}

/// Returns a random value that an action sets a field to: of types and protocols, mostly one
/// that the parser reads.
fn value_to_set(field: Field, shape: &Shape, dice: &mut dyn Dice) -> u128 {
    const TYPES: &[u128] = &[
        0x0800, 0x0806, 0x8100, 0x86dd, 0x8847, 0x8848, 0x88a8, 0x600,
    ];
    const PROTOCOLS: &[u128] = &[0, 1, 6, 17, 43, 44, 50, 51, 58, 59, 60, 132];
    match field {
        Field::EthType if !dice.one_in(shape.wrong) => *dice.pick(TYPES),
        Field::IpProto if !dice.one_in(8) => *dice.pick(PROTOCOLS),
        _ => value(field, dice),
    }
}

/// Adds a field and its prerequisites, with values that the packet has or could have.
fn add(field: Field, packet: &Packet, values: &mut Vec<MatchField>, dice: &mut dyn Dice) {
    if values.iter().any(|value| value.field == field) {
        return;
    }
    let exact = |value| MatchField {
        field,
        value,
        mask: all_bits(field),
    };
    let packet_value = match packet.get(field) {
        Some(packet_value) => packet_value,
        None => value(field, dice),
    };
    let entry = match facts(field).maskable && dice.one_in(3) {
        true => {
            let mask = match dice.below(3) {
                0 => 0xff << dice.below(8) & all_bits(field),
                1 => dice.bits(facts(field).bits),
                // The first half.
                _ => all_bits(field) ^ all_bits(field) >> (facts(field).bits / 2),
            };
            MatchField {
                field,
                value: packet_value & mask,
                mask,
            }
        }
        false if dice.one_in(10) => exact(value(field, dice)),
        false => exact(packet_value),
    };
    values.push(entry);
    let needs = |field, value, values: &mut Vec<MatchField>| {
        let mask = all_bits(field);
        if values.iter().all(|entry: &MatchField| entry.field != field) {
            values.push(MatchField { field, value, mask });
        }
    };
    match facts(field).needs {
        Needs::Nothing => {}
        Needs::InPort => add(Field::InPort, packet, values, dice),
        Needs::Tag => match dice.one_in(2) {
            true if values.iter().all(|entry| entry.field != Field::VlanVid) => {
                values.push(MatchField {
                    field: Field::VlanVid,
                    value: VLAN_PRESENT,
                    mask: VLAN_PRESENT,
                });
            }
            _ => add(Field::VlanVid, packet, values, dice),
        },
        Needs::OneOf(other, wanted) => {
            let packet_kind = packet
                .get(other)
                .filter(|packet_kind| wanted.contains(packet_kind));
            let kind = packet_kind.unwrap_or_else(|| *dice.pick(wanted));
            needs(other, kind, values);
            if other == Field::Icmpv6Type {
                needs(Field::EthType, 0x86dd, values);
                needs(Field::IpProto, 58, values);
            }
        }
        Needs::Protocol(types, protocol) => {
            let packet_type = packet.get(Field::EthType);
            let packet_type = packet_type.filter(|packet_type| types.contains(packet_type));
            needs(Field::EthType, packet_type.unwrap_or(types[0]), values);
            needs(Field::IpProto, protocol, values);
        }
    }
}

/// Returns values of a match that the packet may match, in any order; they may be
/// invalid.
pub(crate) fn values(shape: &Shape, packet: &Packet, dice: &mut dyn Dice) -> Vec<MatchField> {
    let mut values = Vec::new();
    let present: Vec<Field> = matched()
        .filter(|&field| packet.get(field).is_some())
        .collect();
    let fields: Vec<Field> = matched().collect();
    for _ in 0..dice.below(4) {
        let field = match dice.one_in(6) {
            true => *dice.pick(&fields),
            false => *dice.pick(&present),
        };
        add(field, packet, &mut values, dice);
    }
    if dice.one_in(shape.wrong) {
        let field = *dice.pick(&fields);
        match dice.below(5) {
            0 => drop(values.pop()),
            1 if !values.is_empty() => values.push(values[0]),
            2 if !values.is_empty() => {
                let index = dice.below(values.len());
                values[index].mask ^= 1 << dice.below(20);
            }
            3 if !values.is_empty() => {
                let index = dice.below(values.len());
                values[index].value ^= 1 << dice.below(20);
            }
            _ => values.push(MatchField {
                field,
                value: dice.bits(facts(field).bits.min(127) + 1),
                mask: dice.bits(facts(field).bits.min(127) + 1),
            }),
        }
    }
    dice.shuffle(&mut values);
    values
}

/// Returns a match with these values, after checking that the reference and the datapath
/// agree on its validity.
pub(crate) fn flow_match(values: &[MatchField]) -> Result<Option<FlowMatch>, String> {
    let result = FlowMatch::new(values.iter().copied());
    let code = result.as_ref().map(drop).map_err(OpenFlowError::code);
    let expected = matching::check(values);
    if code != expected {
        return Err(format!(
            "the match {values:x?}: the datapath says {code:?}, the reference {expected:?}"
        ));
    }
    Ok(result.ok())
}

fn port(shape: &Shape, dice: &mut dyn Dice) -> PortNo {
    match dice.below(9) {
        0 => PortNo::IN_PORT,
        1 => PortNo::ALL,
        2 => PortNo::FLOOD,
        3 => PortNo::LOCAL,
        4 => PortNo::CONTROLLER,
        5 if dice.one_in(shape.wrong) => *dice.pick(&[
            PortNo(0),
            PortNo::ANY,
            PortNo::TABLE,
            PortNo::NORMAL,
            PortNo(0xffff_ff01),
        ]),
        _ => PortNo(1 + word(dice.below(5))),
    }
}

fn word(small: usize) -> u32 {
    u32::try_from(small).expect("a small number")
}

fn half(small: usize) -> u16 {
    u16::try_from(small).expect("a small number")
}

fn action(shape: &Shape, held: &Held, packet: &Packet, dice: &mut dyn Dice) -> Action {
    let last = Field::Reg0.index() + USED_REGISTERS;
    match dice.below(24) {
        0..5 => Action::Output {
            port: port(shape, dice),
            max_len: half(dice.below(3) * 64),
        },
        5..7 if !held.groups.is_empty() || dice.one_in(30) => Action::Group(held.group(dice)),
        7 => Action::SetQueue(word(dice.below(3))),
        8 => Action::PushVlan(*dice.pick(&[0x8100, 0x8100, 0x88a8, 0x88a8, 0x9100])),
        9 => Action::PopVlan,
        10 => Action::PushMpls(*dice.pick(&[0x8847, 0x8847, 0x8848, 0x8848, 0x800])),
        11 => Action::PopMpls(*dice.pick(&[0x800, 0x800, 0x86dd, 0x8847, 0x8848, 0x806, 0x8100])),
        12 => Action::DecrementTtl,
        13 => Action::DecrementMplsTtl,
        14 => *dice.pick(&[Action::SetTtl(9), Action::SetMplsTtl(1)]),
        15 => *dice.pick(&[Action::CopyTtlIn, Action::CopyTtlOut]),
        _ => {
            let settable = |field: &Field| {
                let is_wrong = dice.one_in(shape.wrong * 8);
                facts(*field).settable && field.index() < last || is_wrong
            };
            let fields: Vec<Field> = matched().filter(settable).collect();
            let field = *dice.pick(&fields);
            let mut value = match packet.get(field) {
                // Setting the same value may still change a checksum.
                Some(own) if dice.one_in(4) => own,
                _ => value_to_set(field, shape, dice),
            };
            let mut mask = all_bits(field);
            if field == Field::VlanVid && !dice.one_in(shape.wrong) {
                value |= VLAN_PRESENT;
            }
            if dice.one_in(shape.wrong * 4) {
                mask >>= 1;
            }
            Action::SetField(MatchField { field, value, mask })
        }
    }
}

/// Returns actions that mostly fit the packets of a match.
fn fitting(
    shape: &Shape,
    held: &Held,
    packet: &Packet,
    values: &[MatchField],
    dice: &mut dyn Dice,
) -> Vec<Action> {
    let mut actions = Vec::new();
    for _ in 0..dice.below(6) {
        actions.push(action(shape, held, packet, dice));
        if actions::check(&actions, values).is_err() && !dice.one_in(shape.wrong) {
            actions.pop();
        }
    }
    actions
}

fn instructions(
    shape: &Shape,
    held: &Held,
    packet: &Packet,
    table: TableId,
    values: &[MatchField],
    dice: &mut dyn Dice,
) -> Instructions {
    let apply = match dice.one_in(3) {
        true => Vec::new(),
        false => fitting(shape, held, packet, values, dice),
    };
    let mut write = Vec::new();
    if dice.one_in(2) {
        write = fitting(shape, held, packet, values, dice);
        // An action set is checked in its order of execution.
        let mut set = Vec::new();
        actions::write(&mut set, &write);
        if actions::check(&set, values).is_err() && !dice.one_in(shape.wrong) {
            write.retain(|action| actions::check(&[*action], values).is_ok());
        }
    }
    let metadata = dice.one_in(5).then(|| {
        let (value, mask) = (dice.word(), *dice.pick(&[u64::MAX, 3, 0xff00]));
        match dice.one_in(shape.wrong) {
            true => (value, mask),
            false => (value & mask, mask),
        }
    });
    let later: Vec<TableId> = shape
        .tables
        .iter()
        .copied()
        .filter(|&next| next > table)
        .collect();
    let goto_table = match dice.below(8) {
        0..4 if !later.is_empty() => Some(*dice.pick(&later)),
        4 if dice.one_in(shape.wrong) => Some(*dice.pick(&[table, TableId(254), TableId(255)])),
        _ => None,
    };
    let may_meter = shape.meters_everywhere || table == shape.tables[0];
    Instructions {
        meter: held.meter(dice).filter(|_| may_meter && dice.one_in(3)),
        apply,
        clear: dice.one_in(6),
        write,
        metadata,
        goto_table,
    }
}

fn flow_message(
    shape: &Shape,
    packet: &Packet,
    held: &Held,
    dice: &mut dyn Dice,
) -> Result<FlowMod, String> {
    let mut flow = FlowMatch::default();
    if !dice.one_in(6) {
        let values = values(shape, packet, dice);
        flow = flow_match(&values)?.unwrap_or_default();
    }
    let strict = dice.one_in(2);
    let adds = if held.entries < shape.most { 12 } else { 2 };
    let command = match dice.below(4 + adds) {
        0 | 1 => Command::Modify { strict },
        2 | 3 => Command::Delete { strict },
        _ => Command::Add,
    };
    let mut table = *dice.pick(&shape.tables);
    if dice.one_in(3) {
        table = shape.tables[0];
    }
    let instructions = instructions(shape, held, packet, table, &matching::values(&flow), dice);
    let mut message = FlowMod::new(command, flow);
    message.instructions = Arc::new(instructions);
    message.table = table;
    let is_delete = matches!(command, Command::Delete { .. });
    if is_delete && dice.one_in(4) {
        message.table = TableId::ALL;
    } else if dice.one_in(shape.wrong * 2) {
        message.table = *dice.pick(&[TableId(254), TableId::ALL]);
    }
    message.priority = half(dice.below(4));
    message.cookie = dice.below(8) as u64;
    message.cookie_mask = *dice.pick(&[0, 0, 0, 1, 7, u64::MAX]);
    if dice.one_in(shape.timed) {
        let timeout = |dice: &mut dyn Dice| half(dice.below(4));
        (message.idle_timeout, message.hard_timeout) = (timeout(dice), timeout(dice));
    }
    message.importance = half(dice.below(3));
    message.flags = FlowFlags {
        send_removed: dice.one_in(3),
        check_overlap: dice.one_in(10),
        reset_counts: dice.one_in(3),
        no_packet_counts: dice.one_in(9),
        no_byte_counts: dice.one_in(9),
    };
    if dice.one_in(5) {
        message.out_port = Some(port(shape, dice));
    }
    if dice.one_in(6) {
        message.out_group = Some(held.group(dice));
    }
    // A deletion of all entries is rare.
    if is_delete && !strict && message.flow.matches_all() && !dice.one_in(8) {
        message.cookie_mask = u64::MAX;
        message.table = table;
    }
    Ok(message)
}

fn group_message(shape: &Shape, held: &Held, packet: &Packet, dice: &mut dyn Dice) -> GroupMod {
    let kind = *dice.pick(&[
        GroupType::All,
        GroupType::Select,
        GroupType::Select,
        GroupType::Indirect,
        GroupType::FastFailover,
    ]);
    let count = match kind {
        GroupType::Indirect if !dice.one_in(shape.wrong) => 1,
        _ => dice.below(4),
    };
    let buckets = (0..count).map(|_| {
        let watches =
            kind == GroupType::FastFailover && !dice.one_in(shape.wrong) || dice.one_in(5);
        let is_weighed = kind == GroupType::Select || dice.one_in(shape.wrong * 2);
        let by_group = watches && dice.one_in(3);
        Bucket {
            weight: if is_weighed { half(dice.below(4)) } else { 0 },
            watch_port: (watches && !(by_group && dice.one_in(2)))
                .then(|| PortNo(1 + word(dice.below(5)))),
            watch_group: by_group.then(|| held.group(dice)),
            actions: (0..dice.below(4))
                .map(|_| action(shape, held, packet, dice))
                .collect(),
        }
    });
    let buckets = buckets.collect();
    let command = *dice.pick(&[
        GroupCommand::Add,
        GroupCommand::Add,
        GroupCommand::Add,
        GroupCommand::Modify,
        GroupCommand::Modify,
        GroupCommand::Delete,
    ]);
    let mut id = match command {
        GroupCommand::Add => held.new_group(dice),
        _ => held.group(dice),
    };
    if dice.one_in(shape.wrong) {
        id = *dice.pick(&[GroupId(0), GroupId::MAX, GroupId::ALL, GroupId(0xffff_ff01)]);
    }
    GroupMod {
        command,
        group: Group { id, kind, buckets },
    }
}

fn meter_message(shape: &Shape, held: &Held, dice: &mut dyn Dice) -> MeterMod {
    let unit = *dice.pick(&[MeterUnit::Packets, MeterUnit::Kilobits]);
    let count = dice.below(4);
    let bands = (0..count).map(|_| {
        let kind = match dice.below(5) {
            0 if dice.one_in(shape.wrong) => BandKind::DscpRemark(0),
            0 | 1 => BandKind::Drop,
            raised => BandKind::DscpRemark(u8::try_from(raised - 1).expect("a small number")),
        };
        let rate = *dice.pick(&[1, 1, 2, 3, 7]);
        Band {
            kind,
            rate: if dice.one_in(shape.wrong) { 0 } else { rate },
            burst: *dice.pick(&[0, 1, 2, 5]),
        }
    });
    let bands = bands.collect();
    let flags = MeterFlags {
        burst: true,
        stats: dice.one_in(2),
    };
    let command = *dice.pick(&[
        MeterCommand::Add,
        MeterCommand::Add,
        MeterCommand::Add,
        MeterCommand::Modify,
        MeterCommand::Delete,
    ]);
    let mut id = match command {
        MeterCommand::Add => held.new_meter(dice),
        _ => held.meter(dice).unwrap_or(MeterId(1)),
    };
    if dice.one_in(shape.wrong) {
        id = *dice.pick(&[MeterId(0), MeterId::MAX, MeterId::ALL, MeterId(0xffff_0001)]);
    }
    MeterMod {
        command,
        meter: Meter {
            id,
            unit,
            flags,
            bands,
        },
    }
}

fn table_message(shape: &Shape, dice: &mut dyn Dice) -> TableMod {
    let mut table = *dice.pick(&shape.tables);
    let mut max_entries = word(*dice.pick(&[0, 1, 2, 3, 5, 8, 12, 20, 1000, 1000]));
    if dice.one_in(shape.wrong) {
        table = *dice.pick(&[TableId(254), TableId(255)]);
    }
    if dice.one_in(shape.wrong) {
        max_entries = *dice.pick(&[1 << 22, (1 << 22) + 1]);
    }
    TableMod {
        table,
        config: TableConfig {
            max_entries,
            eviction: dice.one_in(2),
        },
    }
}

/// Returns a message that adds, changes or removes a port.
pub(crate) fn port_message(shape: &Shape, dice: &mut dyn Dice) -> Message {
    let mut port = match dice.below(7) {
        0 => PortNo::LOCAL,
        _ => PortNo(1 + word(dice.below(5))),
    };
    if dice.one_in(shape.wrong) {
        port = *dice.pick(&[PortNo(0), PortNo::ALL, PortNo::ANY, PortNo::MAX]);
    }
    let state = PortState {
        is_up: !dice.one_in(4),
        no_receive: dice.one_in(12),
        no_forward: dice.one_in(8),
        no_flood: dice.one_in(4),
        ..PortState::default()
    };
    Message::Port(port, (!dice.one_in(10)).then_some(state))
}

/// Returns actions of a packet from the controller.
pub(crate) fn controller_actions(
    shape: &Shape,
    held: &Held,
    packet: &Packet,
    dice: &mut dyn Dice,
) -> Vec<Action> {
    let table = Action::Output {
        port: PortNo::TABLE,
        max_len: 0,
    };
    (0..dice.below(5))
        .map(|_| match dice.one_in(4) {
            true => table,
            false => action(shape, held, packet, dice),
        })
        .collect()
}

/// Returns a random message for a switch with the contents `held`.
pub(crate) fn message(
    shape: &Shape,
    packet: &Packet,
    held: &Held,
    dice: &mut dyn Dice,
) -> Result<Message, String> {
    Ok(match dice.below(20) {
        0..2 => Message::Group(group_message(shape, held, packet, dice)),
        2 => Message::Meter(meter_message(shape, held, dice)),
        3 if dice.one_in(shape.tight) => Message::Table(table_message(shape, dice)),
        6 => port_message(shape, dice),
        _ => Message::Flow(flow_message(shape, packet, held, dice)?),
    })
}
