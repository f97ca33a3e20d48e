//! Random messages about flow entries and groups, made from packets.

use std::sync::Arc;

use classyard_datapath::action::check;
use classyard_datapath::field::VLAN_PRESENT;
use classyard_datapath::flow::{Command, FlowMod, Instructions, TableId};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline::Message;
use classyard_datapath::{Action, Field, FlowMatch, GroupId, MatchField, Packet, PortNo};

use crate::frames::{Dice, damaged, whole};
use crate::matching::random_match;

/// Makes random packets, and messages that add entries or groups for them.
pub(crate) struct Maker(pub(crate) Dice);

impl Maker {
    pub(crate) fn packet(&mut self) -> Packet {
        let bytes = match self.0.one_in(5) {
            true => damaged(&mut self.0),
            false => whole(&mut self.0),
        };
        Packet::new(&bytes, 1 + self.0.below(4) as u32)
    }

    fn action(&mut self) -> Action {
        let dice = &mut self.0;
        let fields: Vec<Field> = Field::all().filter(|field| field.info().settable).collect();
        match dice.below(16) {
            0 | 1 => Action::Output {
                port: PortNo(1 + dice.below(4) as u32),
                max_len: 0,
            },
            2 => Action::Output {
                port: *dice.pick(&[PortNo::IN_PORT, PortNo::ALL, PortNo::FLOOD]),
                max_len: 0,
            },
            3 => Action::Output {
                port: PortNo::CONTROLLER,
                max_len: 64,
            },
            4 | 5 => Action::Group(GroupId(1 + dice.below(6) as u32)),
            6 => Action::SetQueue(dice.below(3) as u32),
            7 => Action::PushVlan(0x8100),
            8 => Action::PopVlan,
            9 => Action::PushMpls(0x8847),
            10 => Action::PopMpls(*dice.pick(&[0x800, 0x8847])),
            11 => *dice.pick(&[Action::DecrementTtl, Action::DecrementMplsTtl]),
            12 => *dice.pick(&[Action::CopyTtlIn, Action::CopyTtlOut, Action::SetTtl(9)]),
            _ => {
                let field = *dice.pick(&fields);
                let value = match field {
                    Field::EthType => *dice.pick(&[0x800, 0x86dd, 0x8847, 0x8100]),
                    Field::IpProto => *dice.pick(&[1, 6, 17, 58, 60]),
                    _ => u128::from(dice.next()) & field.max_value(),
                };
                let tag = match field {
                    Field::VlanVid => u128::from(VLAN_PRESENT),
                    _ => 0,
                };
                Action::SetField(MatchField::exact(field, value | tag))
            }
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        (0..self.0.below(4)).map(|_| self.action()).collect()
    }

    /// Returns actions that nearly always fit a match.
    fn fitting(&mut self, flow: &FlowMatch) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..self.0.below(5) {
            actions.push(self.action());
            if check(&actions, flow).is_err() && !self.0.one_in(20) {
                actions.pop();
            }
        }
        actions
    }

    fn message(&mut self, packet: &Packet) -> Message {
        if self.0.one_in(4) {
            return Message::Group(self.group_message());
        }
        let flow = match self.0.one_in(6) {
            true => FlowMatch::default(),
            false => random_match(&mut self.0, packet).unwrap_or_default(),
        };
        let strict = self.0.one_in(2);
        let command = match self.0.below(12) {
            0 => Command::Modify { strict },
            1 if strict || !flow.matches_all() => Command::Delete { strict },
            _ => Command::Add,
        };
        let (apply, write) = (self.fitting(&flow), self.fitting(&flow));
        let mut message = FlowMod::new(command, flow);
        message.table = TableId(self.0.below(4) as u8);
        message.priority = self.0.below(3) as u16;
        message.cookie = self.0.below(100);
        let mut instructions = Instructions {
            apply,
            ..Instructions::default()
        };
        if self.0.one_in(2) {
            instructions.write = write;
        }
        instructions.clear = self.0.one_in(5);
        if self.0.one_in(4) {
            let mask = self.0.next();
            instructions.metadata = Some((self.0.next() & mask, mask));
        }
        if self.0.one_in(2) {
            instructions.goto_table = Some(TableId(message.table.0 + 1 + self.0.below(2) as u8));
        }
        message.instructions = Arc::new(instructions);
        Message::Flow(message)
    }

    /// Returns a message that adds an entry or a group.
    pub(crate) fn adding(&mut self, packet: &Packet) -> Message {
        let mut message = self.message(packet);
        match &mut message {
            Message::Flow(message) => {
                message.command = Command::Add;
                (message.cookie_mask, message.out_port, message.out_group) = (0, None, None);
                message.flags.send_removed = self.0.one_in(3);
                message.flags.check_overlap = self.0.one_in(3);
                message.idle_timeout = self.0.below(3) as u16;
            }
            Message::Group(message) => message.command = GroupCommand::Add,
            _ => {}
        }
        message
    }

    fn group_message(&mut self) -> GroupMod {
        let id = GroupId(1 + self.0.below(6) as u32);
        let kind = *self.0.pick(&[
            GroupType::All,
            GroupType::Select,
            GroupType::Indirect,
            GroupType::FastFailover,
        ]);
        let count = match kind {
            GroupType::Indirect => 1,
            _ => self.0.below(4),
        };
        let buckets = (0..count).map(|_| {
            let watches = kind == GroupType::FastFailover || self.0.one_in(4);
            let port = PortNo(1 + self.0.below(4) as u32);
            let group = GroupId(1 + self.0.below(6) as u32);
            Bucket {
                weight: match kind {
                    GroupType::Select => self.0.below(4) as u16,
                    _ => 0,
                },
                watch_port: watches.then_some(port),
                watch_group: (watches && self.0.one_in(5)).then_some(group),
                actions: self.actions(),
            }
        });
        let buckets: Vec<Bucket> = buckets.collect();
        let command = *self.0.pick(&[
            GroupCommand::Add,
            GroupCommand::Add,
            GroupCommand::Modify,
            GroupCommand::Delete,
        ]);
        GroupMod {
            command,
            group: Group { id, kind, buckets },
        }
    }
}
