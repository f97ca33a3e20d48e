//! The result of parsing a packet, and the headers made from it.

use std::fmt;

use classyard::{PacketHeader, Schema};

use super::{Anomalies, icmp, sctp, tcp, udp};

/// The kind of a packet. Every packet has exactly one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// IPv4 with a complete five-tuple.
    Ipv4,
    /// IPv6 with a complete five-tuple.
    Ipv6,
    /// IPv4 without a complete five-tuple: cut short or malformed.
    Ipv4Incomplete,
    /// IPv6 without a complete five-tuple: cut short or malformed.
    Ipv6Incomplete,
    /// ARP, or RARP.
    Arp,
    /// MPLS around something that is not IP.
    Mpls,
    /// An IEEE 802.3 frame without an EtherType: spanning tree and the like.
    Llc,
    /// Another EtherType or address family, or PPPoE around something that is not IP.
    OtherNetwork,
    /// Cut short or malformed before the kind of packet can be read.
    Unreadable,
    /// A frame of a link type that the parser does not support.
    UnknownLink,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 10] = [
        Kind::Ipv4,
        Kind::Ipv6,
        Kind::Ipv4Incomplete,
        Kind::Ipv6Incomplete,
        Kind::Arp,
        Kind::Mpls,
        Kind::Llc,
        Kind::OtherNetwork,
        Kind::Unreadable,
        Kind::UnknownLink,
    ];

    /// Returns a short name, as in reports: `ipv4-incomplete`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ipv4 => "ipv4",
            Kind::Ipv6 => "ipv6",
            Kind::Ipv4Incomplete => "ipv4-incomplete",
            Kind::Ipv6Incomplete => "ipv6-incomplete",
            Kind::Arp => "arp",
            Kind::Mpls => "mpls-other",
            Kind::Llc => "llc",
            Kind::OtherNetwork => "other-network",
            Kind::Unreadable => "unreadable",
            Kind::UnknownLink => "unknown-link",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The part of a packet that an IP packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// The whole packet. (A fragment that is both first and last counts as a whole
    /// packet.)
    #[default]
    Whole,
    /// The first of several fragments: it has the transport header.
    First,
    /// A later fragment: it has no transport header.
    Later,
}

impl Fragment {
    /// Returns the part for an offset (in any unit) and the more-fragments flag.
    #[inline]
    #[must_use]
    pub fn new(offset: u16, more: bool) -> Fragment {
        match (offset, more) {
            (0, false) => Fragment::Whole,
            (0, true) => Fragment::First,
            _ => Fragment::Later,
        }
    }
}

/// The protocols above IP that the parser distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP, with ports.
    Tcp,
    /// UDP, with ports.
    Udp,
    /// SCTP, with ports.
    Sctp,
    /// ICMP in IPv4.
    Icmp,
    /// ICMPv6 in IPv6.
    Icmpv6,
    /// Any other protocol.
    Other,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 6] = [
        Transport::Tcp,
        Transport::Udp,
        Transport::Sctp,
        Transport::Icmp,
        Transport::Icmpv6,
        Transport::Other,
    ];

    /// Returns the transport of a protocol number. ICMP and ICMPv6 count as such only
    /// in their own version of IP.
    #[inline]
    #[must_use]
    pub fn of(family: Family, protocol: u8) -> Transport {
        match (protocol, family) {
            (tcp::PROTOCOL, _) => Transport::Tcp,
            (udp::PROTOCOL, _) => Transport::Udp,
            (sctp::PROTOCOL, _) => Transport::Sctp,
            (icmp::PROTOCOL, Family::V4) => Transport::Icmp,
            (icmp::PROTOCOL_V6, Family::V6) => Transport::Icmpv6,
            _ => Transport::Other,
        }
    }

    /// True if the transport's header begins with two ports.
    #[must_use]
    pub fn has_ports(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Udp | Transport::Sctp)
    }

    /// Returns a short name, as in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Sctp => "sctp",
            Transport::Icmp => "icmp",
            Transport::Icmpv6 => "icmpv6",
            Transport::Other => "other-protocol",
        }
    }
}

/// The result of parsing one packet.
///
/// Fields that the packet does not have, or that were cut off, are 0 or `None`.
/// [`Parsed::kind`] shows if the five-tuple is complete; [`Parsed::ipv4_5tuple`] and
/// its siblings check that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed {
    /// The packet's kind.
    pub kind: Kind,
    /// The packet's anomalies.
    pub anomalies: Anomalies,
    /// Source address of the Ethernet header.
    pub eth_src: u64,
    /// Destination address of the Ethernet header.
    pub eth_dst: u64,
    /// The EtherType after all VLAN tags. On links without an EtherType, the EtherType
    /// of the IP version; for IEEE 802.3 frames, [`NO_TYPE`](super::ethernet::NO_TYPE).
    /// `None` if unknown.
    pub eth_type: Option<u16>,
    /// The number of VLAN tags.
    pub vlan_tags: u8,
    /// The VLAN's number in the outermost tag.
    pub vlan_vid: u16,
    /// The priority in the outermost tag.
    pub vlan_pcp: u8,
    /// The number of MPLS labels.
    pub mpls_labels: u8,
    /// The outermost MPLS label.
    pub mpls_label: u32,
    /// The traffic class of the outermost MPLS label.
    pub mpls_tc: u8,
    /// The session's number in the header of a PPPoE session.
    pub pppoe_session: Option<u16>,
    /// The version of the IP header, if a header can be read.
    pub family: Option<Family>,
    /// Source address of the IP header, or the sender's address of ARP. An IPv4 address
    /// is in the low 32 bits.
    pub src: u128,
    /// Destination address of the IP header, or the target's address of ARP.
    pub dst: u128,
    /// The protocol after all extension headers; `None` if an extension header could
    /// not be read.
    pub proto: Option<u8>,
    /// The differentiated services code point.
    pub dscp: u8,
    /// True if there are IPv4 options or IPv6 extension headers.
    pub options: bool,
    /// The part of a packet that this packet carries.
    pub fragment: Fragment,
    /// The ports of TCP, UDP and SCTP.
    pub ports: Option<(u16, u16)>,
    /// Type and code of ICMP and ICMPv6.
    pub icmp: Option<(u8, u8)>,
    /// The flags of TCP, from bit 0: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR. 0 for other
    /// protocols, and if the packet ends before them.
    pub tcp_flags: u8,
    /// The operation of ARP.
    pub arp_operation: Option<u16>,
}

impl Parsed {
    pub(super) const UNREADABLE: Parsed = Parsed {
        kind: Kind::Unreadable,
        anomalies: Anomalies::NONE,
        eth_src: 0,
        eth_dst: 0,
        eth_type: None,
        vlan_tags: 0,
        vlan_vid: 0,
        vlan_pcp: 0,
        mpls_labels: 0,
        mpls_label: 0,
        mpls_tc: 0,
        pppoe_session: None,
        family: None,
        src: 0,
        dst: 0,
        proto: None,
        dscp: 0,
        options: false,
        fragment: Fragment::Whole,
        ports: None,
        icmp: None,
        tcp_flags: 0,
        arp_operation: None,
    };

    /// Returns the header for the `ipv4-5tuple` schema: source, destination, source
    /// port, destination port, protocol. `None` unless the packet is IPv4 with a
    /// complete five-tuple.
    ///
    /// Packets without ports have 0 for both ports: see the [module](super) docs.
    #[inline]
    #[must_use]
    pub fn ipv4_5tuple(&self) -> Option<[u128; 5]> {
        (self.kind == Kind::Ipv4).then(|| self.five_tuple())
    }

    /// Returns the header for the `ipv6-5tuple` schema; like [`Parsed::ipv4_5tuple`].
    #[inline]
    #[must_use]
    pub fn ipv6_5tuple(&self) -> Option<[u128; 5]> {
        (self.kind == Kind::Ipv6).then(|| self.five_tuple())
    }

    fn five_tuple(&self) -> [u128; 5] {
        let (sport, dport) = self.ports.unwrap_or((0, 0));
        [
            self.src,
            self.dst,
            u128::from(sport),
            u128::from(dport),
            u128::from(self.proto.unwrap_or(0)),
        ]
    }

    /// Returns the header for the schema `acl-ipv4`. `None` unless the packet is IPv4 with a
    /// complete five-tuple.
    ///
    /// A packet has no list, interface or condition: these fields are 0. `state` is 0 too: a new
    /// connection.
    #[must_use]
    pub fn acl_ipv4(&self) -> Option<[u128; 14]> {
        (self.kind == Kind::Ipv4).then(|| self.acl())
    }

    /// Returns the header for the schema `acl-ipv6`; like [`Parsed::acl_ipv4`].
    #[must_use]
    pub fn acl_ipv6(&self) -> Option<[u128; 14]> {
        (self.kind == Kind::Ipv6).then(|| self.acl())
    }

    fn acl(&self) -> [u128; 14] {
        let [src, dst, sport, dport, proto] = self.five_tuple();
        let (icmp_type, icmp_code) = self.icmp.unwrap_or((0, 0));
        let fragment = match self.fragment {
            Fragment::Whole => 0,
            Fragment::First => 1,
            Fragment::Later => 2,
        };
        let mut header = [0; 14];
        header[..5].copy_from_slice(&[src, dst, sport, dport, proto]);
        let after_proto = [icmp_type, icmp_code, self.tcp_flags, fragment];
        header[5..9].copy_from_slice(&after_proto.map(u128::from));
        header
    }

    /// Returns the header for the `openflow15` schema; `in_port` is the port that
    /// received the packet. `None` only if not even the EtherType is known.
    ///
    /// Fields that the packet lacks are 0. See the [module](super) docs for ICMP, ARP,
    /// IPv6 and links without an Ethernet header.
    #[inline]
    #[must_use]
    pub fn openflow15(&self, in_port: u32) -> Option<[u128; 15]> {
        let eth_type = self.eth_type?;
        let (src, dst) = match self.family {
            Some(Family::V6) => (0, 0),
            Some(Family::V4) | None => (self.src, self.dst),
        };
        let proto = match self.arp_operation {
            Some(operation) => u8::try_from(operation).unwrap_or(0),
            None => self.proto.unwrap_or(0),
        };
        let (sport, dport) = match (self.ports, self.icmp) {
            (Some(ports), _) => ports,
            (None, Some((kind, code))) => (u16::from(kind), u16::from(code)),
            (None, None) => (0, 0),
        };
        Some([
            u128::from(in_port),
            0,
            u128::from(self.eth_src),
            u128::from(self.eth_dst),
            u128::from(eth_type),
            u128::from(self.vlan_vid),
            u128::from(self.vlan_pcp),
            u128::from(self.mpls_label),
            u128::from(self.mpls_tc),
            src,
            dst,
            u128::from(proto),
            u128::from(self.dscp),
            u128::from(sport),
            u128::from(dport),
        ])
    }

    /// Returns the packet with the port that received it, for `openflow15` schemas.
    #[must_use]
    pub fn received_by(&self, in_port: u32) -> Received<'_> {
        Received {
            packet: self,
            in_port,
        }
    }

    /// Returns the protocol above IP, if it is known.
    #[inline]
    #[must_use]
    pub fn transport(&self) -> Option<Transport> {
        Some(Transport::of(self.family?, self.proto?))
    }
}

/// A packet and the port that received it: see [`Parsed::received_by`].
#[derive(Clone, Copy, Debug)]
pub struct Received<'p> {
    packet: &'p Parsed,
    in_port: u32,
}

impl PacketHeader for Parsed {
    /// Fills in values for the built-in schemas, as [`Parsed::ipv4_5tuple`] and its
    /// siblings do. The `in_port` of `openflow15` is 0;
    /// [`received_by`](Parsed::received_by) sets it.
    fn values(&self, schema: &Schema, values: &mut [u128]) -> bool {
        self.received_by(0).values(schema, values)
    }
}

impl PacketHeader for Received<'_> {
    fn values(&self, schema: &Schema, values: &mut [u128]) -> bool {
        let is = |other: &Schema| std::ptr::eq(schema, other) || schema == other;
        if is(&Schema::ipv4_5tuple()) {
            copy(self.packet.ipv4_5tuple(), values)
        } else if is(&Schema::ipv6_5tuple()) {
            copy(self.packet.ipv6_5tuple(), values)
        } else if is(&Schema::acl_ipv4()) {
            copy(self.packet.acl_ipv4(), values)
        } else if is(&Schema::acl_ipv6()) {
            copy(self.packet.acl_ipv6(), values)
        } else if is(&Schema::openflow15()) {
            copy(self.packet.openflow15(self.in_port), values)
        } else {
            false
        }
    }
}

/// Copies a header, if there is one. Returns true if there is.
fn copy<const N: usize>(header: Option<[u128; N]>, values: &mut [u128]) -> bool {
    header.is_some_and(|header| {
        values.copy_from_slice(&header);
        true
    })
}
