//! The parser from the bytes of a frame to its fields, as docs/datapath.md defines it:
//! fields are present as far as the frame is complete. Everything after a malformed
//! header is unknown.

use classyard_datapath::Field;

use crate::fields::{
    ARP, ICMP, ICMPV6, IPV4, IPV6, MPLS, NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, SCTP,
    TCP, UDP, VLAN_PRESENT,
};

/// The maximum number of VLAN tags that are parsed.
const MOST_TAGS: usize = 8;
/// The maximum number of bytes of IPv6 extension headers that are parsed.
const MAX_EXTENSION_BYTES: usize = 8192;
/// The maximum number of neighbour discovery options that are parsed.
const MOST_OPTIONS: usize = 16;

/// The value of `eth_type` for a frame with a length in place of the EtherType.
const NO_TYPE: u128 = 0x05ff;

const HOP_BY_HOP: u128 = 0;
const ROUTING_HEADER: u128 = 43;
const FRAGMENT_HEADER: u128 = 44;
const ESP: u128 = 50;
const AUTHENTICATION_HEADER: u128 = 51;
const NO_NEXT: u128 = 59;
const DESTINATION_OPTIONS: u128 = 60;
/// IPv6 extension headers that the parser walks through.
const EXTENSIONS: [u128; 5] = [
    HOP_BY_HOP,
    ROUTING_HEADER,
    FRAGMENT_HEADER,
    AUTHENTICATION_HEADER,
    DESTINATION_OPTIONS,
];

/// The header fields of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    present: u64,
    values: [u128; Field::COUNT],
}

impl Fields {
    pub(crate) fn get(&self, field: Field) -> Option<u128> {
        let is_there = self.present >> field.index() & 1 == 1;
        is_there.then(|| self.values[field.index()])
    }

    fn set(&mut self, field: Field, value: u128) {
        self.present |= 1 << field.index();
        self.values[field.index()] = value;
    }
}

/// The network header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// No known network header, or an incomplete one.
    Unknown,
    Arp,
    Mpls,
    Ipv4,
    Ipv6,
}

/// The headers of a frame and their positions.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) fields: Fields,
    /// True if there is an Ethernet header.
    pub(crate) has_ethernet: bool,
    /// True if the outermost VLAN tag is complete.
    pub(crate) has_tag: bool,
    /// The offset of the EtherType after the VLAN tags, or in the SNAP header; `None` if the
    /// frame has none, or if it is the type of a VLAN tag that is not parsed.
    pub(crate) type_at: Option<usize>,
    /// The offset of the byte that names the protocol above IP.
    pub(crate) protocol_at: Option<usize>,
    /// The offset of the header that the EtherType announces; `None` if there is a length
    /// in its place, or if it is the type of a VLAN tag that is not parsed.
    pub(crate) after_type: Option<usize>,
    pub(crate) network: Network,
    /// The offset of the network header.
    pub(crate) at: usize,
    /// The end of the packet; padding follows.
    pub(crate) end: usize,
    /// The offset of the transport header, if its first fields are present.
    pub(crate) transport: Option<usize>,
    /// True if the frame ends before the packet.
    pub(crate) is_cut: bool,
    pub(crate) is_fragment: bool,
    /// True if an IPv6 routing header has segments left: the destination is not the final
    /// one.
    pub(crate) is_routed: bool,
    /// The offset of the Ethernet address in the neighbour discovery option.
    pub(crate) option_address: Option<usize>,
}

/// Converts bytes in big-endian order to a number.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Converts bytes in big-endian order to a length.
fn length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// 0x9100 was used for tags before IEEE 802.1ad.
fn is_tag(kind: u128) -> bool {
    [0x8100, 0x88a8, 0x9100].contains(&kind)
}

pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let mut parser = Parser {
        bytes,
        parsed: Parsed {
            fields: Fields {
                present: 0,
                values: [0; Field::COUNT],
            },
            has_ethernet: false,
            has_tag: false,
            type_at: None,
            protocol_at: None,
            after_type: None,
            network: Network::Unknown,
            at: 0,
            end: bytes.len(),
            transport: None,
            is_cut: false,
            is_fragment: false,
            is_routed: false,
            option_address: None,
        },
    };
    parser.ethernet();
    parser.parsed
}

struct Parser<'a> {
    bytes: &'a [u8],
    parsed: Parsed,
}

impl<'a> Parser<'a> {
    /// Returns `count` bytes of the packet at `at`, if the packet has them.
    fn take(&self, at: usize, count: usize) -> Option<&'a [u8]> {
        let end = self.parsed.end.min(self.bytes.len());
        match at + count <= end {
            true => Some(&self.bytes[at..at + count]),
            false => None,
        }
    }

    fn set(&mut self, field: Field, value: u128) {
        self.parsed.fields.set(field, value);
    }

    fn ethernet(&mut self) {
        // Every packet has these fields; without an Ethernet header they are 0.
        for field in [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid] {
            self.set(field, 0);
        }
        let Some(header) = self.take(0, 14) else {
            return;
        };
        self.parsed.has_ethernet = true;
        self.set(Field::EthDst, number(&header[0..6]));
        self.set(Field::EthSrc, number(&header[6..12]));
        let mut kind = number(&header[12..14]);
        let mut offset = 14;
        let mut tags = 0;
        while is_tag(kind) {
            self.set(Field::EthType, kind);
            if tags == MOST_TAGS {
                return;
            }
            let Some(tag) = self.take(offset, 4) else {
                return;
            };
            if tags == 0 {
                let control = number(&tag[0..2]);
                self.set(Field::VlanPcp, control >> 13);
                self.set(Field::VlanVid, VLAN_PRESENT | control & 0xfff);
                self.parsed.has_tag = true;
            }
            kind = number(&tag[2..4]);
            offset += 4;
            tags += 1;
        }
        if kind < 0x600 {
            // A length. Of the headers that may follow, only SNAP has a type.
            let count = length(&self.bytes[offset - 2..offset]);
            self.parsed.end = self.bytes.len().min(offset + count);
            kind = NO_TYPE;
            if let Some(snap) = self.take(offset, 8)
                && snap[..5] == [0xaa, 0xaa, 3, 0, 0]
                && [0, 0xf8].contains(&snap[5])
                && number(&snap[6..8]) >= 0x600
            {
                kind = number(&snap[6..8]);
                offset += 8;
                self.parsed.type_at = Some(offset - 2);
            }
        } else {
            self.parsed.type_at = Some(offset - 2);
            self.parsed.after_type = Some(offset);
        }
        self.set(Field::EthType, kind);
        self.parsed.at = offset;
        match kind {
            IPV4 => self.ipv4(offset),
            IPV6 => self.ipv6(offset),
            ARP => self.arp(offset),
            _ if MPLS.contains(&kind) => self.mpls(offset),
            _ => {}
        }
    }

    /// Parses the outermost label only.
    fn mpls(&mut self, at: usize) {
        if let Some(label) = self.take(at, 4) {
            let label = number(label);
            self.set(Field::MplsLabel, label >> 12);
            self.set(Field::MplsTc, label >> 9 & 7);
            self.set(Field::MplsBos, label >> 8 & 1);
            self.parsed.network = Network::Mpls;
        }
    }

    /// ARP for IPv4 over Ethernet, or over IEEE 802 (hardware type 6).
    fn arp(&mut self, at: usize) {
        let Some(arp) = self.take(at, 28) else {
            return;
        };
        let is_known = [[0, 1], [0, 6]].contains(&[arp[0], arp[1]]) && arp[2..6] == [8, 0, 6, 4];
        if is_known {
            self.set(Field::ArpOp, number(&arp[6..8]));
            self.set(Field::ArpSha, number(&arp[8..14]));
            self.set(Field::ArpSpa, number(&arp[14..18]));
            self.set(Field::ArpTha, number(&arp[18..24]));
            self.set(Field::ArpTpa, number(&arp[24..28]));
            self.parsed.network = Network::Arp;
        }
    }

    fn traffic_class(&mut self, class: u128) {
        self.set(Field::IpDscp, class >> 2);
        self.set(Field::IpEcn, class & 3);
    }

    fn ipv4(&mut self, at: usize) {
        let Some(header) = self.take(at, 20) else {
            return;
        };
        let header_length = usize::from(header[0] % 16) * 4;
        if header[0] / 16 != 4 || header_length < 20 {
            return;
        }
        self.traffic_class(u128::from(header[1]));
        let protocol = u128::from(header[9]);
        self.set(Field::IpProto, protocol);
        self.parsed.protocol_at = Some(at + 9);
        self.set(Field::Ipv4Src, number(&header[12..16]));
        self.set(Field::Ipv4Dst, number(&header[16..20]));
        self.parsed.network = Network::Ipv4;
        let total = length(&header[2..4]);
        if self.take(at, header_length).is_none() || (1..header_length).contains(&total) {
            return;
        }
        // A length of 0 is ignored: segmentation offload leaves it.
        if total > 0 {
            self.ends(at + total);
        }
        let (more, offset) = (header[6] & 0x20 != 0, length(&header[6..8]) % 0x2000);
        self.parsed.is_fragment = more || offset > 0;
        if offset == 0 {
            self.transport(at + header_length, protocol, ICMP);
        }
    }

    /// Applies the packet's own length.
    fn ends(&mut self, end: usize) {
        match end <= self.parsed.end {
            true => self.parsed.end = end,
            false => self.parsed.is_cut = true,
        }
    }

    fn ipv6(&mut self, at: usize) {
        let Some(header) = self.take(at, 40) else {
            return;
        };
        let first = number(&header[0..4]);
        if first >> 28 != 6 {
            return;
        }
        self.traffic_class(first >> 20 & 0xff);
        self.set(Field::Ipv6Flabel, first & 0xf_ffff);
        self.set(Field::Ipv6Src, number(&header[8..24]));
        self.set(Field::Ipv6Dst, number(&header[24..40]));
        self.parsed.network = Network::Ipv6;
        let (payload, next) = (length(&header[4..6]), u128::from(header[6]));
        // If a header must follow, a length of 0 is ignored; a jumbogram has its length
        // in the hop-by-hop header.
        let must_follow = EXTENSIONS.contains(&next) || [TCP, UDP, SCTP, ICMPV6].contains(&next);
        if payload > 0 || !must_follow || at + 40 == self.parsed.end {
            self.ends(at + 40 + payload);
        } else if next == HOP_BY_HOP
            && let Some(jumbo) = self.jumbo_length(at + 40)
        {
            self.ends(at + 40 + jumbo);
        }
        self.extensions(at + 40, next);
    }

    /// Returns the length in the first jumbo payload option (RFC 2675) of a complete
    /// hop-by-hop header, if it exceeds the IPv6 header's maximum.
    fn jumbo_length(&self, at: usize) -> Option<usize> {
        let units = self.take(at, 2)?[1];
        let mut options = &self.take(at, (usize::from(units) + 1) * 8)?[2..];
        while let Some(&kind) = options.first() {
            let size = match kind {
                0 => 1,
                _ => 2 + usize::from(*options.get(1)?),
            };
            let option = options.get(..size)?;
            if option[..2.min(size)] == [0xc2, 4] {
                let jumbo = length(&option[2..]);
                return (jumbo >= 1 << 16).then_some(jumbo);
            }
            options = &options[size..];
        }
        None
    }

    fn extensions(&mut self, from: usize, first: u128) {
        let (mut at, mut next) = (from, first);
        // The next header is named by the seventh byte of IPv6, then by the first of each.
        let mut named_at = from - 40 + 6;
        let mut met = Vec::new();
        let mut is_later = false;
        while EXTENSIONS.contains(&next) && !is_later {
            let Some(start) = self.take(at, 8) else {
                return;
            };
            let count = match next {
                FRAGMENT_HEADER => 8,
                // In units of four bytes; the first two units are not counted.
                AUTHENTICATION_HEADER => (usize::from(start[1]) + 2) * 4,
                _ => (usize::from(start[1]) + 1) * 8,
            };
            if self.take(at, count).is_none() || at + count > from + MAX_EXTENSION_BYTES {
                return;
            }
            if next == ROUTING_HEADER && start[3] > 0 {
                self.parsed.is_routed = true;
            }
            if next == FRAGMENT_HEADER {
                let (offset, more) = (length(&start[2..4]) / 8, start[3] % 2 == 1);
                is_later = offset > 0;
                self.parsed.is_fragment |= is_later || more;
            }
            met.push(next);
            named_at = at;
            at += count;
            next = u128::from(start[0]);
        }
        if [ESP, NO_NEXT].contains(&next) && !is_later {
            met.push(next);
        }
        self.set(Field::Ipv6Exthdr, flags(&met));
        self.set(Field::IpProto, next);
        self.parsed.protocol_at = Some(named_at);
        if !is_later {
            self.transport(at, next, ICMPV6);
        }
    }

    /// Parses a transport header; `icmp` is the ICMP protocol for this network header.
    fn transport(&mut self, at: usize, protocol: u128, icmp: u128) {
        let ports = match protocol {
            TCP => Some((Field::TcpSrc, Field::TcpDst)),
            UDP => Some((Field::UdpSrc, Field::UdpDst)),
            SCTP => Some((Field::SctpSrc, Field::SctpDst)),
            _ => None,
        };
        if let Some((src, dst)) = ports
            && let Some(header) = self.take(at, 4)
        {
            self.set(src, number(&header[0..2]));
            self.set(dst, number(&header[2..4]));
            self.parsed.transport = Some(at);
        }
        if protocol == icmp
            && let Some(header) = self.take(at, 2)
        {
            let (kind, code) = match icmp {
                ICMP => (Field::Icmpv4Type, Field::Icmpv4Code),
                _ => (Field::Icmpv6Type, Field::Icmpv6Code),
            };
            let (is, says) = (u128::from(header[0]), u128::from(header[1]));
            self.set(kind, is);
            self.set(code, says);
            self.parsed.transport = Some(at);
            let is_discovery =
                [NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT].contains(&is) && says == 0;
            // RFC 6980: neighbour discovery in a fragment is ignored.
            if icmp == ICMPV6 && is_discovery && !self.parsed.is_fragment {
                self.discovery(at, is);
            }
        }
    }

    fn discovery(&mut self, at: usize, kind: u128) {
        let Some(message) = self.take(at, 24) else {
            return;
        };
        self.set(Field::NdTarget, number(&message[8..24]));
        let (wanted, field) = match kind {
            NEIGHBOUR_SOLICITATION => (1, Field::NdSll),
            _ => (2, Field::NdTll),
        };
        let mut offset = at + 24;
        for _ in 0..MOST_OPTIONS {
            let Some(option) = self.take(offset, 8) else {
                return;
            };
            let count = usize::from(option[1]) * 8;
            if count == 0 || self.take(offset, count).is_none() {
                return;
            }
            if option[0] == wanted && count == 8 {
                self.set(field, number(&option[2..8]));
                self.parsed.option_address = Some(offset + 2);
                return;
            }
            offset += count;
        }
    }
}

/// Returns the `ofp_ipv6exthdr_flags` of headers in this order.
fn flags(met: &[u128]) -> u128 {
    // The recommended order of RFC 2460 §4.1, which has destination options twice.
    let mut ranks = Vec::new();
    let mut flags = 0;
    for (number, &header) in met.iter().enumerate() {
        let is_early = met[..number].iter().all(|&before| before == HOP_BY_HOP);
        let (bit, rank) = match header {
            NO_NEXT => (0, 9),
            ESP => (1, 6),
            AUTHENTICATION_HEADER => (2, 5),
            DESTINATION_OPTIONS if is_early => (3, 2),
            DESTINATION_OPTIONS => (3, 7),
            FRAGMENT_HEADER => (4, 4),
            ROUTING_HEADER => (5, 3),
            _ => (6, 1),
        };
        flags |= 1 << bit;
        ranks.push(rank);
        let times = met[..=number].iter().filter(|&&other| other == header);
        let max_times = if header == DESTINATION_OPTIONS { 2 } else { 1 };
        if times.count() > max_times {
            flags |= 1 << 7;
        }
    }
    if !ranks.is_sorted() {
        flags |= 1 << 8;
    }
    flags
}
