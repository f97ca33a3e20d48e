//! Bits of a packet's key that matches compare and actions set.

use crate::field::{Field, Prerequisite, VLAN_PRESENT};
use crate::flow_match::FlowMatch;
use crate::key::{KEY_WORDS, PacketKey};

/// The words of a key, or of a mask over a key.
pub(crate) type Words = [u64; KEY_WORDS];

/// Known bits of one word of a key: the bits of `mask` are `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) word: u8,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

/// Sets all bits of a field in a mask.
pub(crate) fn add_field(mask: &mut Words, field: Field) {
    PacketKey::place(field).set_bits(mask, u128::MAX);
}

/// Adds the presence bits to a mask.
pub(crate) fn add_presence(mask: &mut Words) {
    let part = PacketKey::presence_place();
    mask[part.word] |= part.mask();
}

/// Adds the bits that decide whether packets have a field and an action can set it.
pub(crate) fn add_has(mask: &mut Words, field: Field) {
    match field.info().prerequisite {
        Prerequisite::None | Prerequisite::InPort => {}
        Prerequisite::Vlan => {
            PacketKey::place(Field::VlanVid).set_bits(mask, u128::from(VLAN_PRESENT));
        }
        Prerequisite::EthType(_) => add_field(mask, Field::EthType),
        Prerequisite::IpProto(..) => {
            add_field(mask, Field::EthType);
            add_field(mask, Field::IpProto);
        }
        Prerequisite::Icmpv6Type(_) => {
            add_has(mask, Field::Icmpv6Type);
            add_field(mask, Field::Icmpv6Type);
        }
    }
    match field {
        // Only a tag has these fields.
        Field::VlanVid | Field::VlanPcp => {
            PacketKey::place(Field::VlanVid).set_bits(mask, u128::from(VLAN_PRESENT));
        }
        // A frame that is too short for addresses has no type.
        Field::EthDst | Field::EthSrc => add_field(mask, Field::EthType),
        _ => {}
    }
    add_presence(mask);
}

/// True if an action that sets the field writes it into the packet's key. Other actions of the
/// same entry do not matter, since none of them adds or removes a field.
pub(crate) fn is_set(key: &PacketKey, field: Field) -> bool {
    let has_tag = || key.get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0;
    match field {
        Field::VlanVid | Field::VlanPcp => has_tag(),
        // A frame too short for Ethernet addresses has type 0.
        Field::EthDst | Field::EthSrc => key.eth_type() != 0,
        _ => key.has(field),
    }
}

/// Returns the bits of a key that a match compares, by word.
pub(crate) fn match_bits(flow: &FlowMatch) -> Vec<Known> {
    let (mut values, mut masks) = ([0; KEY_WORDS], [0; KEY_WORDS]);
    for field in flow.values() {
        let placement = PacketKey::place(field.field);
        placement.set_bits(&mut values, field.value);
        placement.set_bits(&mut masks, field.mask);
    }
    let presence = PacketKey::presence_place();
    let bits = u64::from(flow.presence().bits()) << presence.shift;
    values[presence.word] |= bits;
    masks[presence.word] |= bits;
    known(&values, &masks)
}

/// Returns the mask of the bits of a key that a match compares.
pub(crate) fn match_mask(flow: &FlowMatch) -> Words {
    let mut mask = [0; KEY_WORDS];
    for field in flow.values() {
        PacketKey::place(field.field).set_bits(&mut mask, field.mask);
    }
    let presence = PacketKey::presence_place();
    mask[presence.word] |= u64::from(flow.presence().bits()) << presence.shift;
    mask
}

/// Returns the words with known bits.
pub(crate) fn known(values: &Words, masks: &Words) -> Vec<Known> {
    let words = (0..).zip(values.iter().zip(masks));
    let words = words.filter(|(_, (_, mask))| **mask != 0);
    let words = words.map(|(word, (&value, &mask))| Known {
        word,
        mask,
        value: value & mask,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_match::MatchField;
    use crate::key::Presence;

    #[test]
    fn what_is_asked_is_what_matches() {
        let flow = FlowMatch::new([
            MatchField::exact(Field::EthType, 0x800),
            MatchField::exact(Field::IpProto, 6),
            MatchField::exact(Field::TcpDst, 80),
            MatchField {
                field: Field::Ipv4Dst,
                value: 0x0a00_0000,
                mask: 0xff00_0000,
            },
        ])
        .unwrap();
        let mut key = PacketKey::default();
        let fits = |key: &PacketKey| {
            let words = match_bits(&flow);
            let masks = words
                .iter()
                .map(|known| (usize::from(known.word), known.mask));
            let mask = match_mask(&flow).into_iter().enumerate();
            assert!(masks.eq(mask.filter(|(_, bits)| *bits != 0)));
            let mut words = words.iter();
            words.all(|known| key.words()[usize::from(known.word)] & known.mask == known.value)
        };
        key.set(Field::EthType, 0x800);
        key.set(Field::IpProto, 6);
        key.set(Field::TcpDst, 80);
        key.set(Field::Ipv4Dst, 0x0a01_0203);
        assert!(!fits(&key) && !flow.matches(&key), "the ports are missing");
        key.set_presence(Presence::TRANSPORT);
        assert!(fits(&key) && flow.matches(&key));
        key.set(Field::Ipv4Dst, 0x0b01_0203);
        assert!(!fits(&key) && !flow.matches(&key));
    }
}
