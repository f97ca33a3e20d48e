//! Matches (OpenFlow 1.3.5 §5.3, §6.4, §7.2.3): matching of packets, relations between
//! two matches, and validity of a match.

use classyard_datapath::{ErrorCode, Field, FlowMatch, MatchField};

use crate::fields::{Needs, VLAN_PRESENT, all_bits, facts};
use crate::packet::Packet;

/// Returns the values of a match.
pub(crate) fn values(flow: &FlowMatch) -> Vec<MatchField> {
    flow.values().collect()
}

/// True if a packet has every field of a match, with a matching value.
pub(crate) fn matches(flow: &FlowMatch, packet: &Packet) -> bool {
    flow.values().all(|wanted| match packet.get(wanted.field) {
        Some(value) => value & wanted.mask == wanted.value & wanted.mask,
        None => false,
    })
}

/// True if the narrow match contains every condition of the wide match. Non-strict
/// modifications and deletions apply to such entries.
pub(crate) fn is_as_specific(narrow: &[MatchField], wide: &[MatchField]) -> bool {
    wide.iter().all(|wide| {
        narrow.iter().any(|narrow| {
            narrow.field == wide.field
                && wide.mask & !narrow.mask == 0
                && narrow.value & wide.mask == wide.value
        })
    })
}

/// True if some packet may match both: the matches do not contradict each other in any
/// bit.
pub(crate) fn overlap(one: &[MatchField], other: &[MatchField]) -> bool {
    let differ = |a: &MatchField, b: &MatchField| {
        a.field == b.field && a.value & b.mask & a.mask != b.value & a.mask & b.mask
    };
    !one.iter().any(|a| other.iter().any(|b| differ(a, b)))
}

/// Returns the only value that a match allows for a field, if there is only one.
fn exact(values: &[MatchField], field: Field) -> Option<u128> {
    let entry = values.iter().find(|value| value.field == field)?;
    (entry.mask == all_bits(field)).then_some(entry.value)
}

fn is_one(values: &[MatchField], field: Field, wanted: &[u128]) -> bool {
    exact(values, field).is_some_and(|value| wanted.contains(&value))
}

fn has_prerequisite(values: &[MatchField], field: Field) -> bool {
    match facts(field).needs {
        Needs::Nothing => true,
        Needs::InPort => exact(values, Field::InPort).is_some(),
        Needs::Tag => values
            .iter()
            .any(|value| value.field == Field::VlanVid && value.value & VLAN_PRESENT != 0),
        Needs::OneOf(other, wanted) => {
            is_one(values, other, wanted) && has_prerequisite(values, other)
        }
        Needs::Protocol(types, protocol) => {
            is_one(values, Field::EthType, types) && is_one(values, Field::IpProto, &[protocol])
        }
    }
}

/// Checks the values of a match, in any order (§7.2.3.4 to §7.2.3.8). Values with an
/// empty mask are ignored.
///
/// # Errors
/// The error of the first value that is invalid by itself or a duplicate; after that,
/// missing prerequisites.
pub fn check(values: &[MatchField]) -> Result<(), ErrorCode> {
    for (number, entry) in values.iter().enumerate() {
        let MatchField { field, value, mask } = *entry;
        let (facts, full_mask) = (facts(field), all_bits(field));
        if value > full_mask {
            return Err(ErrorCode::BadMatchValue);
        }
        if mask > full_mask {
            return Err(ErrorCode::BadMatchMask);
        }
        if value & !mask != 0 {
            return Err(ErrorCode::BadMatchWildcards);
        }
        if !facts.maskable && mask != full_mask && mask != 0 {
            return Err(ErrorCode::BadMatchMask);
        }
        // Table 13: "no tag" is the value 0 with all bits. If the mask has the bit for a
        // tag and the value does not, no packet has any other value.
        let is_no_tag =
            field == Field::VlanVid && mask & VLAN_PRESENT != 0 && value & VLAN_PRESENT == 0;
        if is_no_tag && (value, mask) != (0, full_mask) {
            return Err(ErrorCode::BadMatchValue);
        }
        if values[..number].iter().any(|other| other.field == field) {
            return Err(ErrorCode::DuplicateMatchField);
        }
    }
    let constrained: Vec<MatchField> = values.iter().copied().filter(|v| v.mask != 0).collect();
    match constrained
        .iter()
        .all(|value| has_prerequisite(&constrained, value.field))
    {
        true => Ok(()),
        false => Err(ErrorCode::BadMatchPrerequisite),
    }
}
