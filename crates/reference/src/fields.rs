//! OpenFlow's properties of each field: Tables 11 and 12 of §7.2.3.7, and the rules of
//! docs/datapath.md for registers, for fields that can be masked although OpenFlow does
//! not allow it, and for fields that no action can set.

use classyard_datapath::Field;

/// The bit of `vlan_vid` that is set if there is a tag.
pub(crate) const VLAN_PRESENT: u128 = 0x1000;

/// EtherTypes.
pub(crate) const IPV4: u128 = 0x0800;
pub(crate) const IPV6: u128 = 0x86dd;
pub(crate) const ARP: u128 = 0x0806;
pub(crate) const MPLS: [u128; 2] = [0x8847, 0x8848];

/// Protocols above IP.
pub(crate) const ICMP: u128 = 1;
pub(crate) const TCP: u128 = 6;
pub(crate) const UDP: u128 = 17;
pub(crate) const ICMPV6: u128 = 58;
pub(crate) const SCTP: u128 = 132;

/// Types of neighbour discovery.
pub(crate) const NEIGHBOUR_SOLICITATION: u128 = 135;
pub(crate) const NEIGHBOUR_ADVERTISEMENT: u128 = 136;

/// A condition on another field that a match must contain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs {
    Nothing,
    /// An exact `in_port`.
    InPort,
    /// A VLAN tag.
    Tag,
    /// An exact value from this list, and the condition of that field itself.
    OneOf(Field, &'static [u128]),
    /// One of these EtherTypes, and this protocol.
    Protocol(&'static [u128], u128),
}

/// OpenFlow's properties of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) bits: u32,
    pub(crate) maskable: bool,
    pub(crate) settable: bool,
    pub(crate) needs: Needs,
}

const ANY_IP: &[u128] = &[IPV4, IPV6];

pub(crate) fn facts(field: Field) -> Facts {
    let ip = Needs::OneOf(Field::EthType, ANY_IP);
    let ipv4 = Needs::OneOf(Field::EthType, &[IPV4]);
    let ipv6 = Needs::OneOf(Field::EthType, &[IPV6]);
    let arp = Needs::OneOf(Field::EthType, &[ARP]);
    let mpls = Needs::OneOf(Field::EthType, &MPLS);
    let icmp = Needs::Protocol(&[IPV4], ICMP);
    let icmpv6 = Needs::Protocol(&[IPV6], ICMPV6);
    let (tcp, udp, sctp) = (
        Needs::Protocol(ANY_IP, TCP),
        Needs::Protocol(ANY_IP, UDP),
        Needs::Protocol(ANY_IP, SCTP),
    );
    let solicited = Needs::OneOf(Field::Icmpv6Type, &[NEIGHBOUR_SOLICITATION]);
    let advertised = Needs::OneOf(Field::Icmpv6Type, &[NEIGHBOUR_ADVERTISEMENT]);
    let either = Needs::OneOf(
        Field::Icmpv6Type,
        &[NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT],
    );
    // Bits, then two flags: a match may mask the field, an action may set it.
    let (bits, maskable, settable, needs) = match field {
        Field::InPort => (32, false, false, Needs::Nothing),
        Field::InPhyPort => (32, false, false, Needs::InPort),
        Field::Metadata => (64, true, false, Needs::Nothing),
        Field::EthDst | Field::EthSrc => (48, true, true, Needs::Nothing),
        Field::EthType => (16, false, true, Needs::Nothing),
        Field::VlanVid => (13, true, true, Needs::Nothing),
        Field::VlanPcp => (3, false, true, Needs::Tag),
        Field::IpDscp => (6, false, true, ip),
        Field::IpEcn => (2, false, true, ip),
        Field::IpProto => (8, false, true, ip),
        Field::Ipv4Src | Field::Ipv4Dst => (32, true, true, ipv4),
        Field::TcpSrc | Field::TcpDst => (16, true, true, tcp),
        Field::UdpSrc | Field::UdpDst => (16, true, true, udp),
        Field::SctpSrc | Field::SctpDst => (16, true, true, sctp),
        Field::Icmpv4Type | Field::Icmpv4Code => (8, false, true, icmp),
        Field::ArpOp => (16, false, true, arp),
        Field::ArpSpa | Field::ArpTpa => (32, true, true, arp),
        Field::ArpSha | Field::ArpTha => (48, true, true, arp),
        Field::Ipv6Src | Field::Ipv6Dst => (128, true, true, ipv6),
        Field::Ipv6Flabel => (20, true, true, ipv6),
        Field::Icmpv6Type | Field::Icmpv6Code => (8, false, true, icmpv6),
        Field::NdTarget => (128, true, true, either),
        Field::NdSll => (48, true, true, solicited),
        Field::NdTll => (48, true, true, advertised),
        Field::MplsLabel => (20, false, true, mpls),
        Field::MplsTc => (3, false, true, mpls),
        Field::MplsBos => (1, false, true, mpls),
        Field::TunnelId => (64, true, true, Needs::Nothing),
        Field::Ipv6Exthdr => (9, true, false, ipv6),
        // Registers.
        _ => (32, true, true, Needs::Nothing),
    };
    Facts {
        bits,
        maskable,
        settable,
        needs,
    }
}

/// Returns the mask of all bits of a field.
pub(crate) fn all_bits(field: Field) -> u128 {
    u128::MAX >> (128 - facts(field).bits)
}
