//! Matches of flow entries: fields with values and masks (OpenFlow 1.3.5 §7.2.3).

use std::fmt;

use classyard::value::ValueFormat;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowMatch {
    /// In the order of the fields, each once.
    values: Box<[MatchField]>,
    presence: Presence,
}

impl FlowMatch {
    /// Returns a match of `values`, which may be in any order. Values with an empty mask
    /// are left out. A match without values matches every packet.
    ///
    /// # Errors
    /// [`OpenFlowError`] with the field and the reason: a value that does not fit into
    /// the field or has bits outside of its mask, an invalid mask, a repeated field, or a
    /// missing prerequisite, such as `eth_type` for `ipv4_src`.
    pub fn new(values: impl IntoIterator<Item = MatchField>) -> Result<FlowMatch, OpenFlowError> {
        let values = values.into_iter();
        let mut matched: Vec<MatchField> = Vec::with_capacity(values.size_hint().0);
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
        matched.sort_by_key(|value| value.field);
        let presence = matched.iter().map(|value| value.field.info().presence);
        let presence = presence.fold(Presence::NONE, Presence::and);
        let built = FlowMatch {
            values: matched.into(),
            presence,
        };
        for value in built.values.iter() {
            built.check_prerequisite(value.field)?;
        }
        Ok(built)
    }

    /// The values, in the order of their fields.
    #[must_use]
    pub fn values(&self) -> &[MatchField] {
        &self.values
    }

    /// Returns the value and mask of a field, if the match has it.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<&MatchField> {
        self.values.iter().find(|value| value.field == field)
    }

    /// Returns the parts that a packet must have to match.
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.presence
    }

    /// Iterates over the families that may have matching packets.
    pub fn families(&self) -> impl Iterator<Item = Family> + use<> {
        let kind = self.exact(Field::EthType);
        let families = Family::ALL.into_iter();
        families.filter(move |&family| kind.is_none_or(|kind| Family::of_type(kind) == family))
    }

    /// True if a packet matches. This is the definition of a match.
    #[must_use]
    pub fn matches(&self, key: &PacketKey) -> bool {
        key.presence().has(self.presence)
            && self
                .values
                .iter()
                .all(|value| (key.get(value.field) ^ value.value) & value.mask == 0)
    }

    /// True if `other` compares all bits that this match compares, with the same values. So
    /// this match matches every packet that `other` matches.
    #[must_use]
    pub fn includes(&self, other: &FlowMatch) -> bool {
        self.values.iter().all(|wide| {
            other.get(wide.field).is_some_and(|narrow| {
                narrow.mask & wide.mask == wide.mask && (narrow.value ^ wide.value) & wide.mask == 0
            })
        })
    }

    /// True if some packet may match both: no bit must be 0 for one match and 1 for the
    /// other.
    #[must_use]
    pub fn overlaps(&self, other: &FlowMatch) -> bool {
        self.values.iter().all(|one| {
            other
                .get(one.field)
                .is_none_or(|two| (one.value ^ two.value) & one.mask & two.mask == 0)
        })
    }

    /// Returns the only matching value of a field, if there is exactly one.
    fn exact(&self, field: Field) -> Option<u128> {
        let value = self.get(field)?;
        value.is_exact().then_some(value.value)
    }

    fn check_prerequisite(&self, field: Field) -> Result<(), OpenFlowError> {
        let lacks = |needed: String| {
            let message = format!("{field} needs {needed} in the same match");
            Err(OpenFlowError::new(ErrorCode::BadMatchPrerequisite, message).about(field))
        };
        let is_one = |field: Field, values: &[u16]| {
            let exact = self.exact(field);
            exact.is_some_and(|exact| values.iter().any(|&value| u128::from(value) == exact))
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
            Prerequisite::InPort if self.exact(Field::InPort).is_some() => Ok(()),
            Prerequisite::InPort => lacks("in_port".to_owned()),
            Prerequisite::Vlan => {
                let present = u128::from(VLAN_PRESENT);
                match self.get(Field::VlanVid) {
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

impl fmt::Display for FlowMatch {
    /// Writes the syntax of `ovs-ofctl`: `eth_type=0x800,ipv4_dst=10.0.0.0/8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, value) in self.values.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}
