//! The key of a packet: its fields, packed into words by one pass over the frame.

use classyard::schema::{Part, Placement};

use crate::field::{Field, Prerequisite};

/// Words of a packet key.
pub const KEY_WORDS: usize = 22;

/// The parts of a packet that give its fields a meaning, as bits. A packet without a
/// field matches no flow entry with that field (OpenFlow 1.3.5 §7.2.1.2). For example, a
/// later fragment has no ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Presence(u8);

impl Presence {
    /// No part is required.
    pub const NONE: Presence = Presence(0);
    /// The header of IPv4 without options, of IPv6 without extension headers, of ARP, or
    /// the outermost MPLS label.
    pub const NETWORK: Presence = Presence(1);
    /// `NETWORK`, and the protocol above IP. In IPv6 it is known only after all extension
    /// headers.
    pub const PROTOCOL: Presence = Presence(3);
    /// `PROTOCOL`, and the ports of TCP, UDP or SCTP, or the type and code of ICMP.
    pub const TRANSPORT: Presence = Presence(7);
    /// `TRANSPORT`, and the target of neighbour discovery.
    pub const ND_TARGET: Presence = Presence(15);
    /// `ND_TARGET`, and the option of neighbour discovery with the Ethernet address.
    pub const ND_LINK_LAYER: Presence = Presence(31);

    /// The number of presence bits.
    pub const WIDTH: u32 = 5;

    /// Returns the parts of either presence.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Presence) -> Presence {
        Presence(self.0 | other.0)
    }

    /// True if all parts of `other` are present.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Presence) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns one bit for each part.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The fields of a packet.
///
/// ```text
///  0  metadata 64
///  1  tun_id 64
///  2  in_port 32 │ in_phy_port 32
///  3  eth_dst 48 │ vlan_vid 13 │ vlan_pcp 3
///  4  eth_src 48 │ eth_type 16
///  5  mpls_label 20 │ mpls_tc 3 │ mpls_bos 1 │ ip_proto 8 │ ip_dscp 6 │ ip_ecn 2 │ ipv6_label 20
///  6  ports or ICMP type and code or arp_op 16, 16 │ ipv6_exthdr 9 │ presence 5
///  7  source address 128: IPv6; or IPv4's, or ARP's, 32
///  9  destination address 128: likewise
/// 11  nd_target 128, or arp_sha 48 and arp_tha 48
/// 13  nd_sll or nd_tll 48
/// 14  registers, two in a word
/// ```
/// Fields that cannot occur together share a place. Absent fields are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketKey([u64; KEY_WORDS]);

/// Returns a place in one word.
const fn at(word: usize, shift: u32, width: u32) -> Placement {
    Placement {
        low: Part { word, shift, width },
        high: None,
    }
}

/// Returns a place in two words, the lower half first.
const fn wide(word: usize) -> Placement {
    Placement {
        low: Part {
            word,
            shift: 0,
            width: 64,
        },
        high: Some(Part {
            word: word + 1,
            shift: 0,
            width: 64,
        }),
    }
}

const PRESENCE: Part = Part {
    word: 6,
    shift: 41,
    width: Presence::WIDTH,
};

/// The first word with registers.
const FIRST_REGISTER_WORD: usize = 14;

const PLACES: [Placement; Field::COUNT] = {
    let mut placements = [at(0, 0, 64); Field::COUNT];
    let mut number = 0;
    while number < Field::COUNT {
        placements[number] = place_of(number);
        number += 1;
    }
    placements
};

const fn place_of(number: usize) -> Placement {
    const FIRST_REGISTER: usize = Field::Reg0 as usize;
    if number >= FIRST_REGISTER {
        let register = number - FIRST_REGISTER;
        let shift = if register.is_multiple_of(2) { 0 } else { 32 };
        return at(FIRST_REGISTER_WORD + register / 2, shift, 32);
    }
    const fn is(number: usize, field: Field) -> bool {
        number == field as usize
    }
    macro_rules! places {
        ($($($field:ident)|+ => $place:expr,)*) => {
            $(if $(is(number, Field::$field))||+ { return $place; })*
        };
    }
    places! {
        Metadata => at(0, 0, 64),
        TunnelId => at(1, 0, 64),
        InPort => at(2, 0, 32),
        InPhyPort => at(2, 32, 32),
        EthDst => at(3, 0, 48),
        VlanVid => at(3, 48, 13),
        VlanPcp => at(3, 61, 3),
        EthSrc => at(4, 0, 48),
        EthType => at(4, 48, 16),
        MplsLabel => at(5, 0, 20),
        MplsTc => at(5, 20, 3),
        MplsBos => at(5, 23, 1),
        IpProto => at(5, 24, 8),
        IpDscp => at(5, 32, 6),
        IpEcn => at(5, 38, 2),
        Ipv6Flabel => at(5, 40, 20),
        TcpSrc | UdpSrc | SctpSrc | ArpOp => at(6, 0, 16),
        TcpDst | UdpDst | SctpDst => at(6, 16, 16),
        Icmpv4Type | Icmpv6Type => at(6, 0, 8),
        Icmpv4Code | Icmpv6Code => at(6, 16, 8),
        Ipv6Exthdr => at(6, 32, 9),
        Ipv4Src | ArpSpa => at(7, 0, 32),
        Ipv4Dst | ArpTpa => at(9, 0, 32),
        Ipv6Src => wide(7),
        Ipv6Dst => wide(9),
        NdTarget => wide(11),
        ArpSha => at(11, 0, 48),
        ArpTha => at(12, 0, 48),
        NdSll | NdTll => at(13, 0, 48),
    }
    panic!("a field without a place")
}

impl Default for PacketKey {
    fn default() -> PacketKey {
        PacketKey([0; KEY_WORDS])
    }
}

impl PacketKey {
    /// Returns the place of a field.
    #[inline]
    #[must_use]
    pub fn place(field: Field) -> &'static Placement {
        &PLACES[field.index()]
    }

    /// Returns a field's value. If fields share the place, the value belongs to the field
    /// that the packet has.
    #[inline]
    #[must_use]
    pub fn get(&self, field: Field) -> u128 {
        PacketKey::place(field).get(&self.0)
    }

    /// Sets a field. Bits above the field's width are dropped.
    #[inline]
    pub fn set(&mut self, field: Field, value: u128) {
        PacketKey::place(field).set(&mut self.0, value);
    }

    /// Returns the EtherType, faster than `get`, since every packet needs it.
    #[inline]
    #[must_use]
    pub fn eth_type(&self) -> u16 {
        let part = &PLACES[Field::EthType as usize].low;
        u16::try_from(part.get(&self.0)).expect("sixteen bits")
    }

    /// True if the packet is of a kind that has the field, and has it.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        let info = field.info();
        let is = |field, value: u16| self.get(field) == u128::from(value);
        let is_one = |field, values: &[u16]| values.iter().any(|&value| is(field, value));
        let fits = match info.prerequisite {
            Prerequisite::None | Prerequisite::InPort => true,
            Prerequisite::Vlan => self.get(Field::VlanVid) != 0,
            Prerequisite::EthType(types) => is_one(Field::EthType, types),
            Prerequisite::IpProto(types, proto) => {
                is_one(Field::EthType, types) && is(Field::IpProto, u16::from(proto))
            }
            Prerequisite::Icmpv6Type(types) => {
                let is_type = |&kind: &u8| is(Field::Icmpv6Type, u16::from(kind));
                self.has(Field::Icmpv6Type) && types.iter().any(is_type)
            }
        };
        fits && self.presence().has(info.presence)
    }

    /// Returns the parts that the packet has.
    #[inline]
    #[must_use]
    pub fn presence(&self) -> Presence {
        Presence(u8::try_from(PRESENCE.get(&self.0)).expect("five bits"))
    }

    /// Sets the parts that the packet has.
    #[inline]
    pub fn set_presence(&mut self, presence: Presence) {
        let word = &mut self.0[PRESENCE.word];
        *word &= !PRESENCE.mask();
        *word |= u64::from(presence.bits()) << PRESENCE.shift;
    }

    /// Returns the place of the presence bits.
    #[must_use]
    pub fn presence_place() -> &'static Part {
        &PRESENCE
    }

    /// Returns the words of the key.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[u64; KEY_WORDS] {
        &self.0
    }

    /// Returns the words of the key, to be filled.
    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64; KEY_WORDS] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind of packets that have a field.
    fn kind(field: Field) -> &'static str {
        match field.name() {
            name if name.starts_with("ipv4") => "ipv4",
            name if name.starts_with("ipv6") => "ipv6",
            name if name.starts_with("icmpv6") => "icmpv6",
            name if name.starts_with("icmp") => "icmp",
            name if name.starts_with("arp") => "arp",
            name if name.starts_with("nd") => "nd",
            name if name.starts_with("tcp") => "tcp",
            name if name.starts_with("udp") => "udp",
            name if name.starts_with("sctp") => "sctp",
            name if name.starts_with("mpls") => "mpls",
            name if name.starts_with("ip_") => "ip",
            _ => "any",
        }
    }

    /// True if one packet can have both fields.
    fn together(a: Field, b: Field) -> bool {
        if matches!(
            (a, b),
            (Field::NdSll, Field::NdTll) | (Field::NdTll, Field::NdSll)
        ) {
            return false;
        }
        let apart: [(&str, &[&str]); 7] = [
            (
                "arp",
                &[
                    "ip", "ipv4", "ipv6", "icmp", "icmpv6", "tcp", "udp", "sctp", "nd", "mpls",
                ],
            ),
            (
                "mpls",
                &[
                    "ip", "ipv4", "ipv6", "icmp", "icmpv6", "tcp", "udp", "sctp", "nd", "arp",
                ],
            ),
            ("ipv4", &["ipv6", "icmpv6", "nd"]),
            ("icmp", &["ipv6", "icmpv6", "nd", "tcp", "udp", "sctp"]),
            ("icmpv6", &["ipv4", "icmp", "tcp", "udp", "sctp"]),
            ("nd", &["tcp", "udp", "sctp"]),
            ("tcp", &["udp", "sctp"]),
        ];
        let (a, b) = (kind(a), kind(b));
        let parted = |a, b| {
            apart
                .iter()
                .any(|(one, others)| *one == a && others.contains(&b))
        };
        let udp_sctp = matches!((a, b), ("udp", "sctp") | ("sctp", "udp"));
        !parted(a, b) && !parted(b, a) && !udp_sctp
    }

    #[test]
    fn fields_that_a_packet_has_together_have_places_of_their_own() {
        for a in Field::all() {
            let width =
                PacketKey::place(a).low.width + PacketKey::place(a).high.map_or(0, |p| p.width);
            assert_eq!(width, a.info().width, "{a}");
            for b in Field::all().filter(|&b| b != a && together(a, b)) {
                let mut key = PacketKey::default();
                key.set(a, u128::MAX);
                key.set_presence(Presence::ND_LINK_LAYER);
                assert_eq!(key.get(b), 0, "{a} {b}");
                assert_eq!(key.get(a), a.max_value());
                key.set(b, u128::MAX);
                assert_eq!(key.get(a), a.max_value(), "{a} {b}");
                assert_eq!(key.presence(), Presence::ND_LINK_LAYER);
            }
        }
    }

    #[test]
    fn more_of_a_packet_has_what_less_of_it_has() {
        let presences = [
            Presence::NONE,
            Presence::NETWORK,
            Presence::PROTOCOL,
            Presence::TRANSPORT,
            Presence::ND_TARGET,
            Presence::ND_LINK_LAYER,
        ];
        for (number, more) in presences.into_iter().enumerate() {
            for (other, less) in presences.into_iter().enumerate() {
                assert_eq!(more.has(less), other <= number);
                assert_eq!(more.and(less), presences[number.max(other)]);
            }
        }
    }
}
