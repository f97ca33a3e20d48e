//! The fields of a packet that flow entries match and actions set: the fields of OpenFlow
//! 1.3.5 §7.2.3.7 except PBB's, and sixteen registers.
//!
//! A field has a meaning only in some kinds of packets. A match that uses the field must
//! select these packets: it needs the field's *prerequisite*, such as `eth_type=0x0800`
//! for `ipv4_src`. So fields of different kinds of packets can share a place in a
//! [`PacketKey`](crate::PacketKey).

use std::fmt;

use classyard::value::ValueFormat;

use crate::Presence;

/// A header field, a port, the metadata or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Field {
    /// The port that received the packet.
    InPort,
    /// The physical port below `in_port`.
    InPhyPort,
    /// Data that a table passes to later tables.
    Metadata,
    /// The destination address of the Ethernet header.
    EthDst,
    /// The source address of the Ethernet header.
    EthSrc,
    /// The type after all VLAN tags; `0x05ff` if the frame has none.
    EthType,
    /// The number of the outermost VLAN with [`VLAN_PRESENT`]; 0 without a tag.
    VlanVid,
    /// The priority in the outermost VLAN tag.
    VlanPcp,
    /// The differentiated services code point of IPv4 and IPv6.
    IpDscp,
    /// The explicit congestion notification of IPv4 and IPv6.
    IpEcn,
    /// The protocol above IPv4 or IPv6, after all extension headers.
    IpProto,
    /// The source address of IPv4.
    Ipv4Src,
    /// The destination address of IPv4.
    Ipv4Dst,
    /// The source port of TCP.
    TcpSrc,
    /// The destination port of TCP.
    TcpDst,
    /// The source port of UDP.
    UdpSrc,
    /// The destination port of UDP.
    UdpDst,
    /// The source port of SCTP.
    SctpSrc,
    /// The destination port of SCTP.
    SctpDst,
    /// The type of ICMP.
    Icmpv4Type,
    /// The code of ICMP.
    Icmpv4Code,
    /// The operation of ARP.
    ArpOp,
    /// The sender's IPv4 address in ARP.
    ArpSpa,
    /// The target's IPv4 address in ARP.
    ArpTpa,
    /// The sender's Ethernet address in ARP.
    ArpSha,
    /// The target's Ethernet address in ARP.
    ArpTha,
    /// The source address of IPv6.
    Ipv6Src,
    /// The destination address of IPv6.
    Ipv6Dst,
    /// The flow label of IPv6.
    Ipv6Flabel,
    /// The type of ICMPv6.
    Icmpv6Type,
    /// The code of ICMPv6.
    Icmpv6Code,
    /// The target's address in neighbour discovery.
    NdTarget,
    /// The sender's Ethernet address in a neighbour solicitation.
    NdSll,
    /// The target's Ethernet address in a neighbour advertisement.
    NdTll,
    /// The outermost MPLS label.
    MplsLabel,
    /// The traffic class of the outermost MPLS label.
    MplsTc,
    /// 1 if the outermost MPLS label is the last one.
    MplsBos,
    /// The metadata of a logical port, such as a tunnel's key.
    TunnelId,
    /// The extension headers of IPv6, and flags for their order.
    Ipv6Exthdr,
    /// A register.
    Reg0,
    /// A register.
    Reg1,
    /// A register.
    Reg2,
    /// A register.
    Reg3,
    /// A register.
    Reg4,
    /// A register.
    Reg5,
    /// A register.
    Reg6,
    /// A register.
    Reg7,
    /// A register.
    Reg8,
    /// A register.
    Reg9,
    /// A register.
    Reg10,
    /// A register.
    Reg11,
    /// A register.
    Reg12,
    /// A register.
    Reg13,
    /// A register.
    Reg14,
    /// A register.
    Reg15,
}

/// The bit of [`Field::VlanVid`] that is set if the packet has a tag (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u16 = 0x1000;

/// EtherTypes, and a placeholder for frames without a type.
pub mod eth_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with an upstream-assigned label.
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// An IEEE 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// An IEEE 802.1ad tag.
    pub const VLAN_SERVICE: u16 = 0x88a8;
    /// A frame without a type (`OFP_DL_TYPE_NOT_ETH_TYPE`).
    pub const NONE: u16 = 0x05ff;
    /// The smallest EtherType; smaller values in a frame are lengths.
    pub const LEAST: u16 = 0x0600;
}

/// Protocols above IP.
pub mod ip_proto {
    /// ICMP, in IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6, in IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Types of ICMPv6.
pub mod icmpv6 {
    /// A neighbour solicitation.
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// A neighbour advertisement.
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
}

/// Bits of [`Field::Ipv6Exthdr`] (`ofp_ipv6exthdr_flags`).
pub mod exthdr {
    /// "No next header" was found.
    pub const NO_NEXT: u16 = 1 << 0;
    /// Encrypted payload.
    pub const ESP: u16 = 1 << 1;
    /// Authentication.
    pub const AUTH: u16 = 1 << 2;
    /// One or two destination options.
    pub const DEST: u16 = 1 << 3;
    /// Fragment.
    pub const FRAG: u16 = 1 << 4;
    /// Routing.
    pub const ROUTER: u16 = 1 << 5;
    /// Hop-by-hop options.
    pub const HOP: u16 = 1 << 6;
    /// A header is repeated that must not be.
    pub const UNREP: u16 = 1 << 7;
    /// The headers are in another order than RFC 2460 §4.1 prefers.
    pub const UNSEQ: u16 = 1 << 8;
}

/// The condition on other fields of the match without which a field is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    /// No condition.
    None,
    /// The match has an exact `in_port`.
    InPort,
    /// The match requires a VLAN tag.
    Vlan,
    /// The match has one of these values of `eth_type`.
    EthType(&'static [u16]),
    /// The match has one of these values of `eth_type`, and this `ip_proto`.
    IpProto(&'static [u16], u8),
    /// The match has one of these values of `icmpv6_type`, and its prerequisites.
    Icmpv6Type(&'static [u8]),
}

/// The properties of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The field.
    pub field: Field,
    /// The name in `ovs-ofctl`.
    pub name: &'static str,
    /// The width in bits.
    pub width: u32,
    /// The class of the OXM header: OpenFlow basic, or Nicira for registers.
    pub oxm_class: u16,
    /// The field's number in its class.
    pub oxm_field: u8,
    /// True if a match may mask the field. As in Open vSwitch, this includes ports and
    /// addresses of neighbour discovery.
    pub maskable: bool,
    /// True if an action may set the field. OpenFlow excludes fields that are not in a
    /// header.
    pub settable: bool,
    /// The condition on other fields of the match.
    pub prerequisite: Prerequisite,
    /// The parts that a packet needs to match an entry with this field.
    pub presence: Presence,
}

const OXM_CLASS_BASIC: u16 = 0x8000;
const OXM_CLASS_NICIRA: u16 = 0x0001;

const IP: &[u16] = &[eth_type::IPV4, eth_type::IPV6];
const IPV4: &[u16] = &[eth_type::IPV4];
const IPV6: &[u16] = &[eth_type::IPV6];
const ARP: &[u16] = &[eth_type::ARP];
const MPLS: &[u16] = &[eth_type::MPLS, eth_type::MPLS_UPSTREAM];

const MASK: bool = true;
const EXACT: bool = false;
const SET: bool = true;
const READ: bool = false;

const fn info(
    field: Field,
    name: &'static str,
    (width, oxm_field): (u32, u8),
    (maskable, settable): (bool, bool),
    prerequisite: Prerequisite,
    presence: Presence,
) -> FieldInfo {
    FieldInfo {
        field,
        name,
        width,
        oxm_class: OXM_CLASS_BASIC,
        oxm_field,
        maskable,
        settable,
        prerequisite,
        presence,
    }
}

const fn register(field: Field, name: &'static str, oxm_field: u8) -> FieldInfo {
    FieldInfo {
        oxm_class: OXM_CLASS_NICIRA,
        ..info(
            field,
            name,
            (32, oxm_field),
            (MASK, SET),
            Prerequisite::None,
            Presence::NONE,
        )
    }
}

use Field as F;
use Prerequisite as P;

#[rustfmt::skip]
const INFO: [FieldInfo; Field::COUNT] = [
    info(F::InPort, "in_port", (32, 0), (EXACT, READ), P::None, Presence::NONE),
    info(F::InPhyPort, "in_phy_port", (32, 1), (EXACT, READ), P::InPort, Presence::NONE),
    info(F::Metadata, "metadata", (64, 2), (MASK, READ), P::None, Presence::NONE),
    info(F::EthDst, "eth_dst", (48, 3), (MASK, SET), P::None, Presence::NONE),
    info(F::EthSrc, "eth_src", (48, 4), (MASK, SET), P::None, Presence::NONE),
    info(F::EthType, "eth_type", (16, 5), (EXACT, SET), P::None, Presence::NONE),
    info(F::VlanVid, "vlan_vid", (13, 6), (MASK, SET), P::None, Presence::NONE),
    info(F::VlanPcp, "vlan_pcp", (3, 7), (EXACT, SET), P::Vlan, Presence::NONE),
    info(F::IpDscp, "ip_dscp", (6, 8), (EXACT, SET), P::EthType(IP), Presence::NETWORK),
    info(F::IpEcn, "ip_ecn", (2, 9), (EXACT, SET), P::EthType(IP), Presence::NETWORK),
    info(F::IpProto, "ip_proto", (8, 10), (EXACT, SET), P::EthType(IP), Presence::PROTOCOL),
    info(F::Ipv4Src, "ipv4_src", (32, 11), (MASK, SET), P::EthType(IPV4), Presence::NETWORK),
    info(F::Ipv4Dst, "ipv4_dst", (32, 12), (MASK, SET), P::EthType(IPV4), Presence::NETWORK),
    info(F::TcpSrc, "tcp_src", (16, 13), (MASK, SET), P::IpProto(IP, ip_proto::TCP), Presence::TRANSPORT),
    info(F::TcpDst, "tcp_dst", (16, 14), (MASK, SET), P::IpProto(IP, ip_proto::TCP), Presence::TRANSPORT),
    info(F::UdpSrc, "udp_src", (16, 15), (MASK, SET), P::IpProto(IP, ip_proto::UDP), Presence::TRANSPORT),
    info(F::UdpDst, "udp_dst", (16, 16), (MASK, SET), P::IpProto(IP, ip_proto::UDP), Presence::TRANSPORT),
    info(F::SctpSrc, "sctp_src", (16, 17), (MASK, SET), P::IpProto(IP, ip_proto::SCTP), Presence::TRANSPORT),
    info(F::SctpDst, "sctp_dst", (16, 18), (MASK, SET), P::IpProto(IP, ip_proto::SCTP), Presence::TRANSPORT),
    info(F::Icmpv4Type, "icmp_type", (8, 19), (EXACT, SET), P::IpProto(IPV4, ip_proto::ICMP), Presence::TRANSPORT),
    info(F::Icmpv4Code, "icmp_code", (8, 20), (EXACT, SET), P::IpProto(IPV4, ip_proto::ICMP), Presence::TRANSPORT),
    info(F::ArpOp, "arp_op", (16, 21), (EXACT, SET), P::EthType(ARP), Presence::NETWORK),
    info(F::ArpSpa, "arp_spa", (32, 22), (MASK, SET), P::EthType(ARP), Presence::NETWORK),
    info(F::ArpTpa, "arp_tpa", (32, 23), (MASK, SET), P::EthType(ARP), Presence::NETWORK),
    info(F::ArpSha, "arp_sha", (48, 24), (MASK, SET), P::EthType(ARP), Presence::NETWORK),
    info(F::ArpTha, "arp_tha", (48, 25), (MASK, SET), P::EthType(ARP), Presence::NETWORK),
    info(F::Ipv6Src, "ipv6_src", (128, 26), (MASK, SET), P::EthType(IPV6), Presence::NETWORK),
    info(F::Ipv6Dst, "ipv6_dst", (128, 27), (MASK, SET), P::EthType(IPV6), Presence::NETWORK),
    info(F::Ipv6Flabel, "ipv6_label", (20, 28), (MASK, SET), P::EthType(IPV6), Presence::NETWORK),
    info(F::Icmpv6Type, "icmpv6_type", (8, 29), (EXACT, SET), P::IpProto(IPV6, ip_proto::ICMPV6), Presence::TRANSPORT),
    info(F::Icmpv6Code, "icmpv6_code", (8, 30), (EXACT, SET), P::IpProto(IPV6, ip_proto::ICMPV6), Presence::TRANSPORT),
    info(F::NdTarget, "nd_target", (128, 31), (MASK, SET), P::Icmpv6Type(&[icmpv6::NEIGHBOUR_SOLICITATION, icmpv6::NEIGHBOUR_ADVERTISEMENT]), Presence::ND_TARGET),
    info(F::NdSll, "nd_sll", (48, 32), (MASK, SET), P::Icmpv6Type(&[icmpv6::NEIGHBOUR_SOLICITATION]), Presence::ND_LINK_LAYER),
    info(F::NdTll, "nd_tll", (48, 33), (MASK, SET), P::Icmpv6Type(&[icmpv6::NEIGHBOUR_ADVERTISEMENT]), Presence::ND_LINK_LAYER),
    info(F::MplsLabel, "mpls_label", (20, 34), (EXACT, SET), P::EthType(MPLS), Presence::NETWORK),
    info(F::MplsTc, "mpls_tc", (3, 35), (EXACT, SET), P::EthType(MPLS), Presence::NETWORK),
    info(F::MplsBos, "mpls_bos", (1, 36), (EXACT, SET), P::EthType(MPLS), Presence::NETWORK),
    info(F::TunnelId, "tun_id", (64, 38), (MASK, SET), P::None, Presence::NONE),
    info(F::Ipv6Exthdr, "ipv6_exthdr", (9, 39), (MASK, READ), P::EthType(IPV6), Presence::PROTOCOL),
    register(F::Reg0, "reg0", 0),
    register(F::Reg1, "reg1", 1),
    register(F::Reg2, "reg2", 2),
    register(F::Reg3, "reg3", 3),
    register(F::Reg4, "reg4", 4),
    register(F::Reg5, "reg5", 5),
    register(F::Reg6, "reg6", 6),
    register(F::Reg7, "reg7", 7),
    register(F::Reg8, "reg8", 8),
    register(F::Reg9, "reg9", 9),
    register(F::Reg10, "reg10", 10),
    register(F::Reg11, "reg11", 11),
    register(F::Reg12, "reg12", 12),
    register(F::Reg13, "reg13", 13),
    register(F::Reg14, "reg14", 14),
    register(F::Reg15, "reg15", 15),
];

impl Field {
    /// The number of fields.
    pub const COUNT: usize = Field::Reg15 as usize + 1;

    /// Iterates over all fields, in the order of their numbers.
    pub fn all() -> impl ExactSizeIterator<Item = Field> {
        INFO.iter().map(|info| info.field)
    }

    /// Returns the field with a number, and its properties.
    #[inline]
    pub(crate) fn at(index: usize) -> &'static FieldInfo {
        &INFO[index]
    }

    /// Returns the properties of the field.
    #[inline]
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        &INFO[self as usize]
    }

    /// Returns the field's number, from 0.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the name in `ovs-ofctl`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the field with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Field> {
        Field::all().find(|field| field.name() == name)
    }

    /// Returns the field of an OXM header.
    #[must_use]
    pub fn from_oxm(class: u16, number: u8) -> Option<Field> {
        Field::all().find(|field| {
            let info = field.info();
            (info.oxm_class, info.oxm_field) == (class, number)
        })
    }

    /// Returns the text format of the field's values.
    #[must_use]
    pub fn format(self) -> ValueFormat {
        match self {
            Field::EthSrc
            | Field::EthDst
            | Field::ArpSha
            | Field::ArpTha
            | Field::NdSll
            | Field::NdTll => ValueFormat::Mac,
            Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => ValueFormat::Ipv4,
            Field::Ipv6Src | Field::Ipv6Dst | Field::NdTarget => ValueFormat::Ipv6,
            Field::InPort
            | Field::InPhyPort
            | Field::IpDscp
            | Field::IpEcn
            | Field::IpProto
            | Field::VlanPcp => ValueFormat::Decimal,
            _ if self.info().width <= 16 && self.info().prerequisite != Prerequisite::None => {
                ValueFormat::Decimal
            }
            _ => ValueFormat::Hex,
        }
    }

    /// True if the field's value decides which other fields a packet has. After an action
    /// has set such a field, the packet is parsed again.
    pub(crate) fn announces_headers(self) -> bool {
        matches!(
            self,
            Field::EthType | Field::IpProto | Field::Icmpv6Type | Field::Icmpv6Code
        )
    }

    /// Returns the largest value.
    #[inline]
    #[must_use]
    pub fn max_value(self) -> u128 {
        u128::MAX >> (u128::BITS - self.info().width)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_fields() {
        for (number, field) in Field::all().enumerate() {
            assert_eq!(field.index(), number);
            assert_eq!(Field::from_name(field.name()), Some(field));
            let info = field.info();
            assert_eq!(Field::from_oxm(info.oxm_class, info.oxm_field), Some(field));
            assert!((1..=128).contains(&info.width));
        }
        assert_eq!(Field::all().len(), Field::COUNT);
        assert_eq!(Field::from_name("ipx_src"), None);
        // PBB's service instance is not supported.
        assert_eq!(Field::from_oxm(0x8000, 37), None);
    }
}
