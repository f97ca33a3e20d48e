//! Matches (OpenFlow 1.3.5 §5.3, §6.4, §7.2.3): whether a packet has the values of one,
//! how two of them relate, and whether one may be at all.

use classyard_datapath::{ErrorCode, Field, FieldValue};

use crate::fields::{Needs, PRESENT, all_bits, facts};
use crate::packet::Packet;

/// Whether a packet has every field of a match, with a value that agrees.
pub(crate) fn matches(values: &[FieldValue], packet: &Packet) -> bool {
    values.iter().all(|wanted| match packet.get(wanted.field) {
        Some(value) => value & wanted.mask == wanted.value & wanted.mask,
        None => false,
    })
}

/// Whether one match says all that another one says, and perhaps more: non-strict
/// modifications and deletions mean these.
pub(crate) fn is_as_specific(narrow: &[FieldValue], wide: &[FieldValue]) -> bool {
    wide.iter().all(|wide| {
        narrow.iter().any(|narrow| {
            narrow.field == wide.field
                && wide.mask & !narrow.mask == 0
                && narrow.value & wide.mask == wide.value
        })
    })
}

/// Whether one packet may match both: there is no bit of which they say different
/// things.
pub(crate) fn overlap(one: &[FieldValue], other: &[FieldValue]) -> bool {
    let differ = |a: &FieldValue, b: &FieldValue| {
        a.field == b.field && a.value & b.mask & a.mask != b.value & a.mask & b.mask
    };
    !one.iter().any(|a| other.iter().any(|b| differ(a, b)))
}

/// The only value that a match leaves to a field.
fn exact(values: &[FieldValue], field: Field) -> Option<u128> {
    let said = values.iter().find(|value| value.field == field)?;
    (said.mask == all_bits(field)).then_some(said.value)
}

fn is_one(values: &[FieldValue], field: Field, wanted: &[u128]) -> bool {
    exact(values, field).is_some_and(|value| wanted.contains(&value))
}

fn has_prerequisite(values: &[FieldValue], field: Field) -> bool {
    match facts(field).needs {
        Needs::Nothing => true,
        Needs::InPort => exact(values, Field::InPort).is_some(),
        Needs::Tag => values
            .iter()
            .any(|value| value.field == Field::VlanVid && value.value & PRESENT != 0),
        Needs::OneOf(other, wanted) => {
            is_one(values, other, wanted) && has_prerequisite(values, other)
        }
        Needs::Protocol(types, protocol) => {
            is_one(values, Field::EthType, types) && is_one(values, Field::IpProto, &[protocol])
        }
    }
}

/// Checks the values of a match, in any order (§7.2.3.4 to §7.2.3.8). Values without a
/// bit of their mask say nothing.
///
/// # Errors
/// What is wrong with the first value that is wrong by itself or stands there twice;
/// prerequisites come after that.
pub fn check(values: &[FieldValue]) -> Result<(), ErrorCode> {
    for (number, said) in values.iter().enumerate() {
        let FieldValue { field, value, mask } = *said;
        let (facts, all) = (facts(field), all_bits(field));
        if value > all {
            return Err(ErrorCode::BadMatchValue);
        }
        if mask > all {
            return Err(ErrorCode::BadMatchMask);
        }
        if value & !mask != 0 {
            return Err(ErrorCode::BadMatchWildcards);
        }
        if !facts.maskable && mask != all && mask != 0 {
            return Err(ErrorCode::BadMatchMask);
        }
        // Table 13: "no tag" is the value 0 with all bits. Other values without the bit
        // for a tag, where that is looked at, are those of no packet.
        let is_no_tag = field == Field::VlanVid && mask & PRESENT != 0 && value & PRESENT == 0;
        if is_no_tag && (value, mask) != (0, all) {
            return Err(ErrorCode::BadMatchValue);
        }
        if values[..number].iter().any(|other| other.field == field) {
            return Err(ErrorCode::DuplicateMatchField);
        }
    }
    let saying: Vec<FieldValue> = values.iter().copied().filter(|v| v.mask != 0).collect();
    match saying
        .iter()
        .all(|value| has_prerequisite(&saying, value.field))
    {
        true => Ok(()),
        false => Err(ErrorCode::BadMatchPrerequisite),
    }
}
