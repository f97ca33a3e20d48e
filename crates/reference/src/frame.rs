//! From the bytes of a frame to the fields that it has, as docs/datapath.md says: as
//! far as it is whole. What comes after something malformed is unknown.

use classyard_datapath::Field;

use crate::fields::{
    ADVERTISEMENT, ARP, ICMP, ICMPV6, IPV4, IPV6, MPLS, PRESENT, SCTP, SOLICITATION, TCP, UDP,
};

/// VLAN tags that are read.
const MOST_TAGS: usize = 8;
/// Bytes of IPv6 extension headers that are read.
const MAX_EXTENSION_BYTES: usize = 8192;
/// Options of neighbour discovery that are read.
const MOST_OPTIONS: usize = 16;

/// What stands for the EtherType of a frame that has a length there.
const NO_TYPE: u128 = 0x05ff;

const HOP_BY_HOP: u128 = 0;
const ROUTING: u128 = 43;
const FRAGMENT: u128 = 44;
const ESP: u128 = 50;
const AUTHENTICATION: u128 = 51;
const NO_NEXT: u128 = 59;
const DESTINATION: u128 = 60;
/// Headers of IPv6 that are walked through.
const EXTENSIONS: [u128; 5] = [HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION];

/// The header fields that a frame has.
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

/// The network header that a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// None that is known, or none that is whole.
    Unknown,
    Arp,
    Mpls,
    Ipv4,
    Ipv6,
}

/// What a frame has, and where.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) fields: Fields,
    /// There is an Ethernet header.
    pub(crate) has_ethernet: bool,
    /// The outermost VLAN tag is whole.
    pub(crate) has_tag: bool,
    /// What the EtherType announces begins here; `None` where a length is in its place,
    /// or it is the type of a VLAN tag that is not read.
    pub(crate) after_type: Option<usize>,
    pub(crate) network: Network,
    /// Where the network header begins.
    pub(crate) at: usize,
    /// Where the packet ends; padding follows.
    pub(crate) end: usize,
    /// Where the transport header begins, if its first fields are there.
    pub(crate) transport: Option<usize>,
    /// The frame ends before the packet.
    pub(crate) is_cut: bool,
    pub(crate) is_fragment: bool,
    /// Routing of IPv6 goes on: the destination is not the last one.
    pub(crate) is_routed: bool,
    /// Where the Ethernet address in the option of neighbour discovery is.
    pub(crate) option_address: Option<usize>,
}

/// Bytes as a number, the first one the highest.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Bytes as a length.
fn length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// 0x9100 stood for tags before IEEE 802.1ad.
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
    /// Bytes of the packet, if it has as many.
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
        // Every packet has these; in one without an Ethernet header they are 0.
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
        let mut at = 14;
        let mut tags = 0;
        while is_tag(kind) {
            self.set(Field::EthType, kind);
            if tags == MOST_TAGS {
                return;
            }
            let Some(tag) = self.take(at, 4) else {
                return;
            };
            if tags == 0 {
                let control = number(&tag[0..2]);
                self.set(Field::VlanPcp, control >> 13);
                self.set(Field::VlanVid, PRESENT | control & 0xfff);
                self.parsed.has_tag = true;
            }
            kind = number(&tag[2..4]);
            at += 4;
            tags += 1;
        }
        if kind < 0x600 {
            // A length. Of what follows only SNAP says a type.
            let count = length(&self.bytes[at - 2..at]);
            self.parsed.end = self.bytes.len().min(at + count);
            kind = NO_TYPE;
            if let Some(snap) = self.take(at, 8)
                && snap[..5] == [0xaa, 0xaa, 3, 0, 0]
                && [0, 0xf8].contains(&snap[5])
                && number(&snap[6..8]) >= 0x600
            {
                kind = number(&snap[6..8]);
                at += 8;
            }
        } else {
            self.parsed.after_type = Some(at);
        }
        self.set(Field::EthType, kind);
        self.parsed.at = at;
        match kind {
            IPV4 => self.ipv4(at),
            IPV6 => self.ipv6(at),
            ARP => self.arp(at),
            _ if MPLS.contains(&kind) => self.mpls(at),
            _ => {}
        }
    }

    /// The outermost label alone.
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
        self.set(Field::Ipv4Src, number(&header[12..16]));
        self.set(Field::Ipv4Dst, number(&header[16..20]));
        self.parsed.network = Network::Ipv4;
        let total = length(&header[2..4]);
        if self.take(at, header_length).is_none() || (1..header_length).contains(&total) {
            return;
        }
        // A length of 0 says nothing: segmentation offload leaves it.
        if total > 0 {
            self.ends(at + total);
        }
        let (more, offset) = (header[6] & 0x20 != 0, length(&header[6..8]) % 0x2000);
        self.parsed.is_fragment = more || offset > 0;
        if offset == 0 {
            self.transport(at + header_length, protocol, ICMP);
        }
    }

    /// The packet says where it ends.
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
        // Where a header must follow, a length of 0 says nothing; a jumbogram has its
        // length in the hop-by-hop header.
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

    /// The length in the first jumbo payload option (RFC 2675) of a hop-by-hop header
    /// that is whole, if it is more than the IPv6 header can say.
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
        let mut met = Vec::new();
        let mut is_later = false;
        while EXTENSIONS.contains(&next) && !is_later {
            let Some(start) = self.take(at, 8) else {
                return;
            };
            let count = match next {
                FRAGMENT => 8,
                // In units of four bytes, of which two are not counted.
                AUTHENTICATION => (usize::from(start[1]) + 2) * 4,
                _ => (usize::from(start[1]) + 1) * 8,
            };
            if self.take(at, count).is_none() || at + count > from + MAX_EXTENSION_BYTES {
                return;
            }
            if next == ROUTING && start[3] > 0 {
                self.parsed.is_routed = true;
            }
            if next == FRAGMENT {
                let (offset, more) = (length(&start[2..4]) / 8, start[3] % 2 == 1);
                is_later = offset > 0;
                self.parsed.is_fragment |= is_later || more;
            }
            met.push(next);
            at += count;
            next = u128::from(start[0]);
        }
        if [ESP, NO_NEXT].contains(&next) && !is_later {
            met.push(next);
        }
        self.set(Field::Ipv6Exthdr, flags(&met));
        self.set(Field::IpProto, next);
        if !is_later {
            self.transport(at, next, ICMPV6);
        }
    }

    /// A transport header; `icmp` is the protocol that is ICMP here.
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
            let is_discovery = [SOLICITATION, ADVERTISEMENT].contains(&is) && says == 0;
            // RFC 6980: a fragment is no neighbour discovery.
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
            SOLICITATION => (1, Field::NdSll),
            _ => (2, Field::NdTll),
        };
        let mut at = at + 24;
        for _ in 0..MOST_OPTIONS {
            let Some(option) = self.take(at, 8) else {
                return;
            };
            let count = usize::from(option[1]) * 8;
            if count == 0 || self.take(at, count).is_none() {
                return;
            }
            if option[0] == wanted && count == 8 {
                self.set(field, number(&option[2..8]));
                self.parsed.option_address = Some(at + 2);
                return;
            }
            at += count;
        }
    }
}

/// `ofp_ipv6exthdr_flags` of headers in this order.
fn flags(met: &[u128]) -> u128 {
    // The order of RFC 2460 §4.1, which has destination options twice.
    let mut places = Vec::new();
    let mut flags = 0;
    for (number, &header) in met.iter().enumerate() {
        let is_early = met[..number].iter().all(|&before| before == HOP_BY_HOP);
        let (bit, place) = match header {
            NO_NEXT => (0, 9),
            ESP => (1, 6),
            AUTHENTICATION => (2, 5),
            DESTINATION if is_early => (3, 2),
            DESTINATION => (3, 7),
            FRAGMENT => (4, 4),
            ROUTING => (5, 3),
            _ => (6, 1),
        };
        flags |= 1 << bit;
        places.push(place);
        let times = met[..=number].iter().filter(|&&other| other == header);
        let most = if header == DESTINATION { 2 } else { 1 };
        if times.count() > most {
            flags |= 1 << 7;
        }
    }
    if !places.is_sorted() {
        flags |= 1 << 8;
    }
    flags
}
