//! Checks of actions (OpenFlow 1.3.5 §7.2.4, §7.4.4.4), and the order of action sets
//! (§5.10).

use classyard_datapath::flow::Instructions;
use classyard_datapath::{Action, ErrorCode, Field, MatchField, PortNo};

use crate::fields::{ICMPV6, IPV4, IPV6, MPLS, Needs, VLAN_PRESENT, all_bits, facts};
use crate::packet::Packet;

/// The documented maximum of actions for one packet, and in one list.
pub(crate) const MAX_ACTIONS: u64 = 4096;

/// The properties of a match's packets on which actions depend.
#[derive(Clone, Copy)]
struct Known {
    eth_type: Option<u128>,
    protocol: Option<u128>,
    icmpv6_type: Option<u128>,
    has_tag: bool,
}

impl Known {
    fn of(values: &[MatchField]) -> Known {
        let exact = |field: Field| {
            let mut values = values.iter();
            let value = values.find(|v| v.field == field && v.mask == all_bits(field))?;
            Some(value.value)
        };
        Known {
            eth_type: exact(Field::EthType),
            protocol: exact(Field::IpProto),
            icmpv6_type: exact(Field::Icmpv6Type),
            has_tag: values
                .iter()
                .any(|v| v.field == Field::VlanVid && v.value & VLAN_PRESENT != 0),
        }
    }

    fn is_type(&self, types: &[u128]) -> bool {
        self.eth_type.is_some_and(|kind| types.contains(&kind))
    }

    /// True if the packets have a field.
    fn has(&self, field: Field) -> bool {
        match facts(field).needs {
            Needs::Nothing => field != Field::VlanVid || self.has_tag,
            Needs::InPort => false,
            Needs::Tag => self.has_tag,
            Needs::OneOf(Field::EthType, types) => self.is_type(types),
            Needs::OneOf(_, types) => {
                self.is_type(&[IPV6])
                    && self.protocol == Some(ICMPV6)
                    && self.icmpv6_type.is_some_and(|kind| types.contains(&kind))
            }
            Needs::Protocol(types, protocol) => {
                self.is_type(types) && self.protocol == Some(protocol)
            }
        }
    }

    /// Sets the new outermost EtherType; the headers behind it are unknown.
    fn becomes(&mut self, kind: u128) {
        self.eth_type = Some(kind);
        self.protocol = None;
        self.icmpv6_type = None;
    }
}

/// Returns the actions of instructions.
pub(crate) fn all_actions(instructions: &Instructions) -> impl Iterator<Item = &Action> {
    instructions.apply.iter().chain(&instructions.write)
}

/// True if instructions contain an action.
pub(crate) fn has_action(instructions: &Instructions, wanted: &Action) -> bool {
    all_actions(instructions).any(|action| action == wanted)
}

/// Checks that a list has no more actions than a packet may execute, as documented.
pub(crate) fn check_length(actions: &[Action]) -> Result<(), ErrorCode> {
    match actions.len() as u64 > MAX_ACTIONS {
        true => Err(ErrorCode::TooManyActions),
        false => Ok(()),
    }
}

/// Checks an action independently of a match.
pub(crate) fn check_alone(action: &Action) -> Result<(), ErrorCode> {
    match *action {
        Action::Output { port, .. } => {
            let physical = 1..=PortNo::MAX.0;
            let reserved = [
                PortNo::IN_PORT,
                PortNo::FLOOD,
                PortNo::ALL,
                PortNo::CONTROLLER,
                PortNo::LOCAL,
            ];
            match physical.contains(&port.0) || reserved.contains(&port) {
                true => Ok(()),
                false => Err(ErrorCode::BadOutPort),
            }
        }
        Action::PushVlan(kind) if ![0x8100, 0x88a8].contains(&kind) => Err(ErrorCode::BadTag),
        Action::PushMpls(kind) if !Packet::is_mpls(kind) => Err(ErrorCode::BadTag),
        Action::SetField(MatchField { field, value, mask }) => {
            let full_mask = all_bits(field);
            if !facts(field).settable {
                return Err(ErrorCode::BadSetType);
            }
            let is_without_tag = field == Field::VlanVid && value & VLAN_PRESENT == 0;
            // In a frame, such a number is a length.
            let is_no_type = field == Field::EthType && value < 0x600;
            match value > full_mask || mask != full_mask || is_without_tag || is_no_type {
                true => Err(ErrorCode::BadSetArgument),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Checks that the packets of a match have the fields and headers that the actions need,
/// if the actions are executed in this order.
pub(crate) fn check(actions: &[Action], values: &[MatchField]) -> Result<(), ErrorCode> {
    let mut known = Known::of(values);
    for action in actions {
        check_alone(action)?;
        let fits = match *action {
            Action::SetField(MatchField { field, .. }) => known.has(field),
            Action::PopVlan => known.has_tag,
            Action::PopMpls(_)
            | Action::SetMplsTtl(_)
            | Action::DecrementMplsTtl
            | Action::CopyTtlOut
            | Action::CopyTtlIn => known.is_type(&MPLS),
            Action::SetTtl(_) | Action::DecrementTtl => known.is_type(&[IPV4, IPV6]),
            _ => true,
        };
        if !fits {
            return Err(ErrorCode::InconsistentAction);
        }
        match *action {
            Action::PushVlan(_) => known.has_tag = true,
            // A second tag may follow, but the match does not guarantee it.
            Action::PopVlan => known.has_tag = false,
            Action::PushMpls(kind) | Action::PopMpls(kind) => known.becomes(kind.into()),
            Action::SetField(MatchField { field, value, .. }) => match field {
                Field::EthType => known.becomes(value),
                Field::IpProto => {
                    known.protocol = Some(value);
                    known.icmpv6_type = None;
                }
                Field::Icmpv6Type => known.icmpv6_type = Some(value),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

/// Returns the position of an action in an action set: from §5.10, and from
/// docs/datapath.md where §5.10 leaves the order open. Two actions of the same kind have
/// the same position.
fn place(action: &Action) -> (u8, usize) {
    match action {
        Action::CopyTtlIn => (1, 0),
        Action::PopVlan => (2, 0),
        Action::PopMpls(_) => (2, 1),
        Action::PushMpls(_) => (3, 0),
        // PBB would be 4.
        Action::PushVlan(_) => (5, 0),
        Action::CopyTtlOut => (6, 0),
        Action::DecrementMplsTtl => (7, 0),
        Action::DecrementTtl => (7, 1),
        Action::SetMplsTtl(_) => (8, 0),
        Action::SetTtl(_) => (8, 1),
        Action::SetField(value) => (8, 2 + value.field.index()),
        Action::SetQueue(_) => (9, 0),
        Action::Group(_) => (10, 0),
        Action::Output { .. } => (11, 0),
    }
}

/// Writes actions into an action set: the last action of each kind stays.
pub(crate) fn write(set: &mut Vec<Action>, actions: &[Action]) {
    for action in actions {
        set.retain(|other| place(other) != place(action));
        set.push(*action);
    }
    set.sort_by_key(place);
}

/// Returns the actions of a set that are executed: if there is a group, no output.
pub(crate) fn carried_out(set: &[Action]) -> Vec<Action> {
    let has_group = set.iter().any(|action| matches!(action, Action::Group(_)));
    let skipped = |action: &Action| has_group && matches!(action, Action::Output { .. });
    set.iter()
        .copied()
        .filter(|action| !skipped(action))
        .collect()
}
