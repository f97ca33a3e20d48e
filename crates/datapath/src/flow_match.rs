//! Matches of flow entries: fields with values and masks (OpenFlow 1.3.5 §7.2.3).
//!
//! # Data layout
//! A switch has a match for each of its entries, so a match is short. Fields are in their
//! order. A field of `w` bits has values of n = ⌈`w` / 8⌉ bytes:
//!
//! ```text
//! 1 byte   number of the field × 2, + 1 if there is a mask
//! n bytes  value
//! n bytes  mask; without it, all bits are compared
//! ```
//! A match on addresses with masks, protocol and ports takes 28 bytes. Up to [`INLINE_BYTES`]
//! need no allocation of their own.

use std::fmt;

use classyard::value::ValueFormat;
use smallvec::SmallVec;

use crate::error::{ErrorCode, OpenFlowError};
use crate::field::{Field, Prerequisite, VLAN_PRESENT, eth_type};
use crate::key::{PacketKey, Presence};

/// A value of a field under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatchField {
    /// The field.
    pub field: Field,
    /// The required bits. Bits outside of the mask are 0.
    pub value: u128,
    /// The bits that are compared, at least one.
    pub mask: u128,
}

impl MatchField {
    /// Returns a match of one value.
    #[must_use]
    pub fn exact(field: Field, value: u128) -> MatchField {
        MatchField {
            field,
            value,
            mask: field.max_value(),
        }
    }

    /// True if the mask has all bits of the field.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.max_value()
    }

    /// Appends the field to a packed match.
    fn pack(&self, packed: &mut SmallVec<[u8; INLINE_BYTES]>) {
        let bytes = self.field.info().width.div_ceil(8) as usize;
        let head = u8::try_from(self.field.index() * 2).expect("less than 128 fields");
        packed.push(head + u8::from(!self.is_exact()));
        packed.extend_from_slice(&self.value.to_le_bytes()[..bytes]);
        if !self.is_exact() {
            packed.extend_from_slice(&self.mask.to_le_bytes()[..bytes]);
        }
    }
}

/// Kinds of packets for which a flow table has separate engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// EtherType IPv4.
    Ipv4,
    /// EtherType IPv6.
    Ipv6,
    /// Any other EtherType, or none.
    Other,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 3] = [Family::Ipv4, Family::Ipv6, Family::Other];

    /// Returns the family of a packet.
    #[inline]
    #[must_use]
    pub fn of(key: &PacketKey) -> Family {
        match key.eth_type() {
            eth_type::IPV4 => Family::Ipv4,
            eth_type::IPV6 => Family::Ipv6,
            _ => Family::Other,
        }
    }

    /// Returns the family of packets with an EtherType.
    fn of_type(kind: u128) -> Family {
        match u16::try_from(kind) {
            Ok(eth_type::IPV4) => Family::Ipv4,
            Ok(eth_type::IPV6) => Family::Ipv6,
            _ => Family::Other,
        }
    }
}

/// The match of a flow entry: a packet must match all of its values.
///
/// ```
/// use classyard_datapath::{ErrorCode, Field, FlowMatch, MatchField};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ipv4 = MatchField::exact(Field::EthType, 0x0800);
/// let net = MatchField {
///     field: Field::Ipv4Dst,
///     value: 0x0a00_0000,
///     mask: 0xff00_0000,
/// };
/// let flow = FlowMatch::new([net, ipv4])?;
/// assert_eq!(flow.to_string(), "eth_type=0x800,ipv4_dst=10.0.0.0/8");
/// // An address needs the type of its packets.
/// let error = FlowMatch::new([net]).unwrap_err();
/// assert_eq!(error.code(), ErrorCode::BadMatchPrerequisite);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct FlowMatch {
    /// In the order of the fields, each once.
    packed: SmallVec<[u8; INLINE_BYTES]>,
    presence: Presence,
}

/// Bytes of a match that need no allocation of their own. Then a match takes 56 bytes.
const INLINE_BYTES: usize = 40;

/// The fields that a match usually has at most. With more fields, making it takes an allocation.
const USUAL_FIELDS: usize = 8;

impl FlowMatch {
    /// Returns a match of `values`, which may be in any order. Values with an empty mask
    /// are left out. A match without values matches every packet.
    ///
    /// # Errors
    /// [`OpenFlowError`] with the field and the reason: a value that does not fit into
    /// the field or has bits outside of its mask, an invalid mask, a repeated field, or a
    /// missing prerequisite, such as `eth_type` for `ipv4_src`.
    pub fn new(values: impl IntoIterator<Item = MatchField>) -> Result<FlowMatch, OpenFlowError> {
        let mut matched: SmallVec<[MatchField; USUAL_FIELDS]> = SmallVec::new();
        let mut seen = [false; Field::COUNT];
        for value in values {
            check_value(&value)?;
            if std::mem::replace(&mut seen[value.field.index()], true) {
                let message = format!("{} stands in the match twice", value.field);
                let error = OpenFlowError::new(ErrorCode::DuplicateMatchField, message);
                return Err(error.about(value.field));
            }
            if value.mask != 0 {
                matched.push(value);
            }
        }
        matched.sort_unstable_by_key(|value| value.field);
        for value in &matched {
            check_prerequisite(&matched, value.field)?;
        }
        let presence = matched.iter().map(|value| value.field.info().presence);
        let mut packed = SmallVec::new();
        matched.iter().for_each(|value| value.pack(&mut packed));
        Ok(FlowMatch {
            packed,
            presence: presence.fold(Presence::NONE, Presence::and),
        })
    }

    /// Iterates over the values, in the order of their fields.
    pub fn values(&self) -> impl Iterator<Item = MatchField> + Clone {
        MatchFields {
            packed: &self.packed,
        }
    }

    /// Returns the value and mask of a field, if the match has it.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<MatchField> {
        self.values().find(|value| value.field == field)
    }

    /// True if the match has no values: it matches every packet.
    #[must_use]
    pub fn matches_all(&self) -> bool {
        self.packed.is_empty()
    }

    /// Returns the parts that a packet must have to match.
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.presence
    }

    /// Iterates over the families that may have matching packets.
    pub fn families(&self) -> impl Iterator<Item = Family> + use<> {
        let kind = self.get(Field::EthType).filter(MatchField::is_exact);
        let kind = kind.map(|kind| kind.value);
        let families = Family::ALL.into_iter();
        families.filter(move |&family| kind.is_none_or(|kind| Family::of_type(kind) == family))
    }

    /// True if a packet matches. This is the definition of a match.
    #[must_use]
    pub fn matches(&self, key: &PacketKey) -> bool {
        key.presence().has(self.presence)
            && self
                .values()
                .all(|value| (key.get(value.field) ^ value.value) & value.mask == 0)
    }

    /// True if `other` compares all bits that this match compares, with the same values. So
    /// this match matches every packet that `other` matches.
    #[must_use]
    pub fn includes(&self, other: &FlowMatch) -> bool {
        self.values().all(|wide| {
            other.get(wide.field).is_some_and(|narrow| {
                narrow.mask & wide.mask == wide.mask && (narrow.value ^ wide.value) & wide.mask == 0
            })
        })
    }

    /// True if some packet may match both: no bit must be 0 for one match and 1 for the
    /// other.
    #[must_use]
    pub fn overlaps(&self, other: &FlowMatch) -> bool {
        self.values().all(|one| {
            other
                .get(one.field)
                .is_none_or(|two| (one.value ^ two.value) & one.mask & two.mask == 0)
        })
    }
}

/// The values of a packed match, in the order of their fields.
#[derive(Clone, Debug)]
struct MatchFields<'m> {
    packed: &'m [u8],
}

impl Iterator for MatchFields<'_> {
    type Item = MatchField;

    #[inline]
    fn next(&mut self) -> Option<MatchField> {
        let &head = self.packed.first()?;
        let info = Field::at(usize::from(head / 2));
        let (field, bytes) = (info.field, info.width.div_ceil(8) as usize);
        let (value, rest) = self.packed[1..].split_at(bytes);
        let (mask, rest) = match head % 2 {
            0 => (field.max_value(), rest),
            _ => {
                let (mask, rest) = rest.split_at(bytes);
                (number(mask), rest)
            }
        };
        self.packed = rest;
        Some(MatchField {
            field,
            value: number(value),
            mask,
        })
    }
}

/// Reads a number of up to 16 bytes, the lowest byte first.
#[inline]
fn number(bytes: &[u8]) -> u128 {
    match *bytes {
        [byte] => byte.into(),
        [low, high] => u16::from_le_bytes([low, high]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => {
            let mut number = [0; size_of::<u128>()];
            number[..bytes.len()].copy_from_slice(bytes);
            u128::from_le_bytes(number)
        }
    }
}

/// Returns the only matching value of a field, if there is exactly one.
fn exact(values: &[MatchField], field: Field) -> Option<u128> {
    let value = values.iter().find(|value| value.field == field)?;
    value.is_exact().then_some(value.value)
}

/// Checks that the other values of a match select packets that have a field.
fn check_prerequisite(values: &[MatchField], field: Field) -> Result<(), OpenFlowError> {
    let lacks = |needed: String| {
        let message = format!("{field} needs {needed} in the same match");
        Err(OpenFlowError::new(ErrorCode::BadMatchPrerequisite, message).about(field))
    };
    let is_one = |field: Field, wanted: &[u16]| {
        let exact = exact(values, field);
        exact.is_some_and(|exact| wanted.iter().any(|&value| u128::from(value) == exact))
    };
    let has_type = |types: &[u16]| is_one(Field::EthType, types);
    let listed = |name: Field, values: &[u16], hex: bool| {
        let values = values.iter().map(|value| match hex {
            true => format!("{name}={value:#06x}"),
            false => format!("{name}={value}"),
        });
        values.collect::<Vec<_>>().join(" or ")
    };
    match field.info().prerequisite {
        Prerequisite::None => Ok(()),
        Prerequisite::InPort if exact(values, Field::InPort).is_some() => Ok(()),
        Prerequisite::InPort => lacks("in_port".to_owned()),
        Prerequisite::Vlan => {
            let present = u128::from(VLAN_PRESENT);
            match values.iter().find(|value| value.field == Field::VlanVid) {
                Some(vid) if vid.value & present != 0 => Ok(()),
                _ => lacks("vlan_vid=0x1000/0x1000, or a VLAN's number,".to_owned()),
            }
        }
        Prerequisite::EthType(types) if has_type(types) => Ok(()),
        Prerequisite::EthType(types) => lacks(listed(Field::EthType, types, true)),
        Prerequisite::IpProto(types, proto) => {
            let proto = u16::from(proto);
            match has_type(types) && is_one(Field::IpProto, &[proto]) {
                true => Ok(()),
                false => lacks(format!(
                    "{} and {}",
                    listed(Field::EthType, types, true),
                    listed(Field::IpProto, &[proto], false)
                )),
            }
        }
        Prerequisite::Icmpv6Type(types) => {
            let types: Vec<u16> = types.iter().map(|&kind| u16::from(kind)).collect();
            // The prerequisites of the type of ICMPv6 are checked with that field.
            match is_one(Field::Icmpv6Type, &types) {
                true => Ok(()),
                false => lacks(listed(Field::Icmpv6Type, &types, false)),
            }
        }
    }
}

fn check_value(value: &MatchField) -> Result<(), OpenFlowError> {
    let MatchField { field, value, mask } = *value;
    let refuse = |code, message: String| Err(OpenFlowError::new(code, message).about(field));
    let max_value = field.max_value();
    let width = field.info().width;
    if value > max_value {
        let message = format!("{field}={value:#x} does not fit into {width} bits");
        return refuse(ErrorCode::BadMatchValue, message);
    }
    if mask > max_value {
        let message = format!("{field}: the mask {mask:#x} does not fit into {width} bits");
        return refuse(ErrorCode::BadMatchMask, message);
    }
    if value & !mask != 0 {
        let message = format!("{field}={value:#x}/{mask:#x} has bits outside of its mask");
        return refuse(ErrorCode::BadMatchWildcards, message);
    }
    if !field.info().maskable && mask != max_value && mask != 0 {
        let message = format!("{field} takes no mask; give the whole value, or leave it out");
        return refuse(ErrorCode::BadMatchMask, message);
    }
    // A VLAN number without the presence bit matches no packet.
    let absent = mask & u128::from(VLAN_PRESENT) != 0 && value & u128::from(VLAN_PRESENT) == 0;
    if field == Field::VlanVid && absent && (value != 0 || mask != max_value) {
        let message = format!(
            "{field}={value:#x}/{mask:#x} can match no packet: a VLAN's number has the bit \
             {VLAN_PRESENT:#x}, and {field}=0 is a packet without a tag"
        );
        return refuse(ErrorCode::BadMatchValue, message);
    }
    Ok(())
}

impl fmt::Display for MatchField {
    /// Writes for example `ipv4_dst=10.0.0.0/8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatchField { field, value, mask } = *self;
        let format = field.format();
        write!(f, "{field}={}", format.display(value))?;
        if self.is_exact() {
            return Ok(());
        }
        let free = field.max_value() & !mask;
        let is_prefix = free & free.wrapping_add(1) == 0;
        match format {
            ValueFormat::Ipv4 | ValueFormat::Ipv6 if is_prefix => {
                write!(f, "/{}", mask.count_ones())
            }
            _ => write!(f, "/{}", format.display(mask)),
        }
    }
}

impl fmt::Debug for FlowMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

impl fmt::Display for FlowMatch {
    /// Writes the syntax of `ovs-ofctl`: `eth_type=0x800,ipv4_dst=10.0.0.0/8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, value) in self.values().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_field_is_read_as_it_was() {
        let mut state = 3;
        let mut random = || {
            let halves =
                [0, 64].map(|shift| u128::from(classyard::author::splitmix(&mut state)) << shift);
            halves[0] | halves[1]
        };
        let (mut fields, mut packed) = (Vec::new(), SmallVec::new());
        for field in Field::all() {
            let mask = random() & field.max_value();
            let masked = MatchField {
                field,
                value: random() & mask,
                mask,
            };
            fields.extend([
                masked,
                MatchField::exact(field, random() & field.max_value()),
            ]);
        }
        fields.iter().for_each(|field| field.pack(&mut packed));
        assert!(MatchFields { packed: &packed }.eq(fields));
    }

    #[test]
    fn a_match_on_five_fields_needs_no_allocation() {
        let masked = |field, value, mask| MatchField { field, value, mask };
        let flow = FlowMatch::new([
            MatchField::exact(Field::EthType, 0x800),
            MatchField::exact(Field::IpProto, 6),
            masked(Field::Ipv4Src, 0x0a00_0000, 0xff00_0000),
            masked(Field::Ipv4Dst, 0x0a01_0000, 0xffff_0000),
            masked(Field::TcpSrc, 0x400, 0xfc00),
            MatchField::exact(Field::TcpDst, 80),
        ]);
        let flow = flow.unwrap();
        assert!(!flow.packed.spilled());
        assert!(size_of::<FlowMatch>() <= 56);
    }
}
