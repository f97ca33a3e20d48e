//! The packet parser's walk through the layers.
//!
//! Each function takes the remaining bytes, records the fields of its layer and
//! continues with the next layer. The constants below bound the loops; nothing
//! recurses.

use super::arp::Arp;
use super::cooked::Cooked;
use super::ethernet::{self, Ethernet};
use super::extension::{self, Extension};
use super::ipv4::Ipv4;
use super::ipv6::Ipv6;
use super::llc::{self, Llc};
use super::mpls::Label;
use super::ports::ports;
use super::pppoe::{self, Pppoe};
use super::vlan::{self, Tag};
use super::{Anomaly, Family, Fragment, Kind, LinkType, Parsed, Transport};
use super::{icmp, loopback, sctp, tcp, udp};

/// The maximum number of VLAN tags that are walked through: as many as in Linux
/// (`VLAN_MAX_DEPTH`).
pub const MAX_VLAN_TAGS: u8 = 8;

/// The maximum number of MPLS labels that are walked through. Networks use up to four
/// or five.
pub const MAX_MPLS_LABELS: u8 = 16;

/// The maximum bytes of IPv6 extension headers that are walked through: 1,024 headers
/// of the smallest size. RFC 8200 section 4.1 recommends at most seven headers in one
/// packet.
pub const MAX_EXTENSION_BYTES: usize = 8_192;

/// The largest payload of an IP packet in bytes, all fragments together.
const LARGEST_PACKET: usize = 65_535;

/// Parses a captured frame that starts with a header of `link`.
///
/// Never fails: the result has the packet's kind and its anomalies.
#[inline]
#[must_use]
pub fn parse(frame: &[u8], link: LinkType) -> Parsed {
    let mut parsed = Parsed::UNREADABLE;
    let p = &mut parsed;
    match link {
        LinkType::Ethernet => on_ethernet(p, frame),
        LinkType::RawIp => on_raw_ip(p, frame),
        LinkType::Ipv4 => on_bare(p, ethernet::IPV4, frame),
        LinkType::Ipv6 => on_bare(p, ethernet::IPV6, frame),
        LinkType::LinuxCooked => on_cooked(p, Cooked::split_v1(frame)),
        LinkType::LinuxCooked2 => on_cooked(p, Cooked::split_v2(frame)),
        LinkType::Null | LinkType::Loopback => on_loopback(p, frame, link),
        LinkType::Other(_) => p.stop(Kind::UnknownLink, Anomaly::UnknownLinkType),
    }
    parsed
}

impl Parsed {
    fn stop(&mut self, kind: Kind, anomaly: Anomaly) {
        self.kind = kind;
        self.anomalies.insert(anomaly);
    }

    fn note(&mut self, anomaly: Option<Anomaly>) {
        if let Some(anomaly) = anomaly {
            self.anomalies.insert(anomaly);
        }
    }
}

// ---- link layer

fn on_ethernet(p: &mut Parsed, frame: &[u8]) {
    let Some((header, rest)) = Ethernet::split(frame) else {
        return p.stop(Kind::Unreadable, Anomaly::TruncatedEthernet);
    };
    p.eth_src = header.source();
    p.eth_dst = header.destination();
    on_ethertype(p, header.ethertype(), rest);
}

fn on_raw_ip(p: &mut Parsed, frame: &[u8]) {
    match frame.first().map(|byte| byte >> 4) {
        Some(4) => on_bare(p, ethernet::IPV4, frame),
        Some(6) => on_bare(p, ethernet::IPV6, frame),
        Some(_) => p.stop(Kind::Unreadable, Anomaly::BadIpVersion),
        None => p.stop(Kind::Unreadable, Anomaly::EmptyFrame),
    }
}

/// Parses a frame without a link header; the link type implies `ethertype`.
fn on_bare(p: &mut Parsed, ethertype: u16, frame: &[u8]) {
    if frame.is_empty() {
        return p.stop(Kind::Unreadable, Anomaly::EmptyFrame);
    }
    p.eth_type = Some(ethertype);
    on_network(p, ethertype, frame);
}

fn on_cooked(p: &mut Parsed, header: Option<(Cooked, &[u8])>) {
    let Some((header, rest)) = header else {
        return p.stop(Kind::Unreadable, Anomaly::TruncatedCooked);
    };
    p.eth_src = header.source.unwrap_or(0);
    match header.protocol {
        None => p.stop(Kind::OtherNetwork, Anomaly::UnknownEthertype),
        // IEEE 802.3 frames: 1 without an LLC header, 4 with an LLC header.
        Some(1) => {
            p.eth_type = Some(ethernet::NO_TYPE);
            p.kind = Kind::Llc;
        }
        Some(4) => on_llc(p, rest),
        Some(protocol) if protocol < ethernet::LEAST => {
            p.eth_type = Some(protocol);
            p.stop(Kind::OtherNetwork, Anomaly::UnknownEthertype);
        }
        Some(protocol) => on_ethertype(p, protocol, rest),
    }
}

fn on_loopback(p: &mut Parsed, frame: &[u8], link: LinkType) {
    match loopback::split(frame, link) {
        None => p.stop(Kind::Unreadable, Anomaly::TruncatedLoopback),
        Some((family, rest)) if loopback::is_ipv4(family) => {
            p.eth_type = Some(ethernet::IPV4);
            on_network(p, ethernet::IPV4, rest);
        }
        Some((family, rest)) if loopback::is_ipv6(family) => {
            p.eth_type = Some(ethernet::IPV6);
            on_network(p, ethernet::IPV6, rest);
        }
        Some(_) => p.stop(Kind::OtherNetwork, Anomaly::UnknownFamily),
    }
}

/// Walks through VLAN tags. Returns the EtherType after them and the bytes after it. If
/// a tag is cut off or there are too many tags, records that and returns `None`.
fn on_tags<'a>(p: &mut Parsed, ethertype: u16, bytes: &'a [u8]) -> Option<(u16, &'a [u8])> {
    let (mut ethertype, mut rest) = (ethertype, bytes);
    while vlan::is_tag(ethertype) {
        // If the tag is cut off, its own EtherType is all that is known.
        p.eth_type = Some(ethertype);
        if p.vlan_tags == MAX_VLAN_TAGS {
            p.stop(Kind::Unreadable, Anomaly::TooManyVlanTags);
            return None;
        }
        let Some((tag, after)) = Tag::split(rest) else {
            p.stop(Kind::Unreadable, Anomaly::TruncatedVlan);
            return None;
        };
        if p.vlan_tags == 0 {
            p.vlan_vid = tag.vid();
            p.vlan_pcp = tag.pcp();
        }
        p.vlan_tags += 1;
        (ethertype, rest) = (tag.ethertype(), after);
    }
    Some((ethertype, rest))
}

fn on_ethertype(p: &mut Parsed, ethertype: u16, bytes: &[u8]) {
    let Some((ethertype, rest)) = on_tags(p, ethertype, bytes) else {
        return;
    };
    if ethertype < ethernet::LEAST {
        // The type field is the length of an IEEE 802.3 frame: what follows is padding.
        return on_llc(p, rest.get(..usize::from(ethertype)).unwrap_or(rest));
    }
    p.eth_type = Some(ethertype);
    on_network(p, ethertype, rest);
}

fn on_llc(p: &mut Parsed, bytes: &[u8]) {
    p.eth_type = Some(ethernet::NO_TYPE);
    match llc::split(bytes) {
        None => p.stop(Kind::Llc, Anomaly::TruncatedLlc),
        Some(Llc::Other) => p.kind = Kind::Llc,
        Some(Llc::Snap(ethertype, rest)) => {
            let Some((ethertype, rest)) = on_tags(p, ethertype, rest) else {
                return;
            };
            p.eth_type = Some(ethertype);
            on_network(p, ethertype, rest);
        }
    }
}

// ---- network layer

fn on_network(p: &mut Parsed, ethertype: u16, bytes: &[u8]) {
    match ethertype {
        ethernet::IPV4 => on_ipv4(p, bytes),
        ethernet::IPV6 => on_ipv6(p, bytes),
        ethernet::ARP | ethernet::RARP => on_arp(p, bytes),
        ethernet::MPLS | ethernet::MPLS_UPSTREAM => on_mpls(p, bytes),
        ethernet::PPPOE_SESSION => on_pppoe(p, bytes),
        _ => p.stop(Kind::OtherNetwork, Anomaly::UnknownEthertype),
    }
}

fn on_arp(p: &mut Parsed, bytes: &[u8]) {
    p.kind = Kind::Arp;
    match Arp::new(bytes) {
        Err(anomaly) => p.anomalies.insert(anomaly),
        Ok(arp) => {
            p.arp_operation = Some(arp.operation());
            p.src = u128::from(arp.sender());
            p.dst = u128::from(arp.target());
        }
    }
}

fn on_mpls(p: &mut Parsed, bytes: &[u8]) {
    p.kind = Kind::Mpls;
    let mut rest = bytes;
    loop {
        if p.mpls_labels == MAX_MPLS_LABELS {
            return p.anomalies.insert(Anomaly::TooManyMplsLabels);
        }
        let Some((label, after)) = Label::split(rest) else {
            return p.anomalies.insert(Anomaly::TruncatedMpls);
        };
        if p.mpls_labels == 0 {
            p.mpls_label = label.label();
            p.mpls_tc = label.traffic_class();
        }
        p.mpls_labels += 1;
        rest = after;
        if label.is_bottom() {
            break;
        }
    }
    match rest.first().map(|byte| byte >> 4) {
        Some(4) => on_ipv4(p, rest),
        Some(6) => on_ipv6(p, rest),
        Some(_) => p.anomalies.insert(Anomaly::UnknownMplsPayload),
        None => p.anomalies.insert(Anomaly::TruncatedMpls),
    }
}

fn on_pppoe(p: &mut Parsed, bytes: &[u8]) {
    p.kind = Kind::OtherNetwork;
    match Pppoe::split(bytes) {
        Err(anomaly) => p.anomalies.insert(anomaly),
        Ok((header, rest)) => {
            p.pppoe_session = Some(header.session);
            match header.protocol {
                pppoe::IPV4 => on_ipv4(p, rest),
                pppoe::IPV6 => on_ipv6(p, rest),
                _ => p.anomalies.insert(Anomaly::UnknownPppProtocol),
            }
        }
    }
}

fn on_ipv4(p: &mut Parsed, bytes: &[u8]) {
    p.kind = Kind::Ipv4Incomplete;
    let (header, rest) = match Ipv4::split(bytes) {
        Ok(split) => split,
        Err(anomaly) => return p.anomalies.insert(anomaly),
    };
    p.family = Some(Family::V4);
    p.src = u128::from(header.source());
    p.dst = u128::from(header.destination());
    p.proto = Some(header.protocol());
    p.dscp = header.dscp();
    p.options = header.header_length() > super::ipv4::HEADER_BYTES;
    p.fragment = header.fragment();
    let payload = match header.payload(rest) {
        Ok((payload, odd)) => {
            p.note(odd);
            payload
        }
        Err(anomaly) => return p.anomalies.insert(anomaly),
    };
    let end_offset = usize::from(header.fragment_offset()) * 8 + payload.len();
    if end_offset + header.header_length() > LARGEST_PACKET && p.fragment != Fragment::Whole {
        p.anomalies.insert(Anomaly::OversizedFragment);
    }
    if on_transport(p, Family::V4, header.protocol(), payload) {
        p.kind = Kind::Ipv4;
    }
}

fn on_ipv6(p: &mut Parsed, bytes: &[u8]) {
    p.kind = Kind::Ipv6Incomplete;
    let (header, rest) = match Ipv6::split(bytes) {
        Ok(split) => split,
        Err(anomaly) => return p.anomalies.insert(anomaly),
    };
    p.family = Some(Family::V6);
    p.src = header.source();
    p.dst = header.destination();
    p.dscp = header.dscp();
    let (mut payload, odd) = header.payload(rest);
    p.note(odd);

    let mut protocol = header.next_header();
    let mut walked_bytes = 0;
    while extension::is_extension(protocol) && p.fragment != Fragment::Later {
        p.options = true;
        if protocol == extension::HOP_BY_HOP && walked_bytes > 0 {
            p.anomalies.insert(Anomaly::MisplacedHopByHop);
        }
        let (extension, after) = match Extension::split(protocol, payload) {
            Ok(split) => split,
            Err(anomaly) => return p.anomalies.insert(anomaly),
        };
        walked_bytes += payload.len() - after.len();
        if walked_bytes > MAX_EXTENSION_BYTES {
            return p.anomalies.insert(Anomaly::TooManyExtensions);
        }
        if let Some((offset, _)) = extension.fragment
            && usize::from(offset) * 8 + after.len() > LARGEST_PACKET
        {
            p.anomalies.insert(Anomaly::OversizedFragment);
        }
        match extension.fragment_kind() {
            None | Some(Fragment::Whole) => {}
            Some(kind) => p.fragment = kind,
        }
        (protocol, payload) = (extension.next, after);
    }
    p.proto = Some(protocol);
    if on_transport(p, Family::V6, protocol, payload) {
        p.kind = Kind::Ipv6;
    }
}

// ---- transport layer

/// Parses the transport header. Returns true if the five-tuple is complete.
fn on_transport(p: &mut Parsed, family: Family, protocol: u8, payload: &[u8]) -> bool {
    if p.fragment == Fragment::Later {
        return true;
    }
    let transport = Transport::of(family, protocol);
    match transport {
        Transport::Tcp | Transport::Udp | Transport::Sctp => {
            p.ports = ports(payload);
            if p.ports.is_none() {
                p.anomalies.insert(Anomaly::TruncatedPorts);
                return false;
            }
            let whole = p.fragment == Fragment::Whole && !p.anomalies.contains(Anomaly::PayloadCut);
            if transport == Transport::Tcp {
                p.tcp_flags = tcp::flags(payload).unwrap_or(0);
            }
            p.note(match transport {
                Transport::Tcp => tcp::check(payload),
                Transport::Udp => udp::check(payload, whole),
                _ => sctp::check(payload),
            });
        }
        Transport::Icmp | Transport::Icmpv6 => {
            p.icmp = icmp::type_and_code(payload);
            if p.icmp.is_none() {
                p.anomalies.insert(Anomaly::TruncatedIcmp);
            }
        }
        Transport::Other => {}
    }
    true
}
