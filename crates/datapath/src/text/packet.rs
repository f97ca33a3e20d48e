//! A packet that has the fields of a match.

use std::sync::Arc;

use classyard_text::Problem;
use classyard_text::ofctl::{self, PortNames};

use super::flow;
use crate::field::{Field, VLAN_PRESENT, eth_type, icmpv6, ip_proto};
use crate::flow::{Command, FlowMod};
use crate::flow_match::FlowMatch;
use crate::packet::{Offload, Packet, PartialChecksum};
use crate::pipeline::Ports;

/// The type of a frame without a given type: for experiments (IEEE Std 802).
const DEFAULT_TYPE: u16 = 0x88b5;

/// The protocol of an IP packet without a given protocol: for experiments (RFC 3692).
const DEFAULT_PROTOCOL: u8 = 253;

/// The time to live of IP and MPLS.
const TTL: u8 = 64;

/// The bytes of the shortest frame, without its check sequence (IEEE Std 802.3).
const MIN_FRAME_BYTES: usize = 60;

/// The bytes of the Ethernet header, and of the headers of IPv4 and IPv6 without options.
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;

/// The expected text in the problem of a text that is not a match.
const EXPECTED: &str = "fields of a packet, such as `in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80`";

/// Returns a packet that has the fields of a match, in the syntax of `ovs-ofctl`. A field that
/// is not given, and a bit that a mask leaves open, is 0. Exceptions: the type of the frame is
/// 0x88b5 and the protocol of IP is 253, unless they are given. The checksums are right.
/// `ports` has the names of ports. Without `in_port`, the packet arrives at port `in_port`.
///
/// ```
/// use classyard_datapath::pipeline::Ports;
/// use classyard_datapath::{Field, text};
///
/// let packet = text::packet("in_port=2,tcp,tp_dst=80", 1, &Ports::default())?;
/// assert_eq!(packet.key().get(Field::InPort), 2);
/// assert_eq!(packet.key().get(Field::TcpDst), 80);
/// let refused = text::packet("tcp,tp_dst=http", 1, &Ports::default()).unwrap_err();
/// assert_eq!(refused.column, 12);
/// # Ok::<(), text::Problem>(())
/// ```
///
/// # Errors
/// [`Problem`]: the text has a mistake, or more than a match; or no received packet has
/// these fields.
pub fn packet(text: &str, in_port: u32, ports: &Ports) -> Result<Packet, Problem> {
    let flow = flow_match(text, ports)?;
    let given_port = flow.get(Field::InPort).map(|port| port.value);
    let given_port = given_port.and_then(|port| u32::try_from(port).ok());
    let packet = with_fields(&flow, given_port.unwrap_or(in_port));
    if flow.matches(packet.key()) {
        return Ok(packet);
    }
    let key = packet.key();
    let differs = flow.values().find(|wants| {
        !key.has(wants.field) || (key.get(wants.field) ^ wants.value) & wants.mask != 0
    });
    let field = differs.map_or("one of the fields".to_owned(), |wants| format!("`{wants}`"));
    let found = format!("no received packet has {field} together with the other values");
    Err(problem(text, text, found))
}

fn problem(text: &str, part: &str, found: String) -> Problem {
    Problem::at(1, text, part, found, EXPECTED.to_owned())
}

/// Reads a match. `ports` has the names of ports.
fn flow_match(text: &str, ports: &Ports) -> Result<Arc<FlowMatch>, Problem> {
    if let Some(at) = text.find(['\n', '\r']) {
        return Err(problem(text, &text[at..=at], "a line break".to_owned()));
    }
    if let Some(at) = text.find("actions") {
        return Err(problem(text, &text[at..], "actions".to_owned()));
    }
    let numbers = ports.iter().filter_map(|(port, state)| {
        let name = state.name?;
        Some((name.as_str().to_owned(), port.0))
    });
    let mut names = PortNames::known(numbers.collect());
    let line = format!("{text} actions=drop");
    let flow = flow::read(&line, ofctl::Command::Add, &mut names).map_err(|fault| Problem {
        excerpt: text.to_owned(),
        ..fault.at(1, &line)
    })?;
    let flow = flow.message;
    match flow == only_match(&flow) {
        true => Ok(flow.flow),
        false => {
            let found = "more than fields: a table, a priority or another attribute of flows";
            Err(problem(text, text, found.to_owned()))
        }
    }
}

/// Returns a flow with the match and the actions of `flow`, and no other attribute.
fn only_match(flow: &FlowMod) -> FlowMod {
    FlowMod {
        flow: Arc::clone(&flow.flow),
        instructions: Arc::clone(&flow.instructions),
        ..FlowMod::new(Command::Add, FlowMatch::default())
    }
}

/// Returns a packet with the headers that a match needs, and with all values of the match that
/// these headers can have.
fn with_fields(flow: &FlowMatch, in_port: u32) -> Packet {
    let Headers { bytes, checksum } = Headers::of(flow);
    let mut packet = Packet::default();
    let offload = Offload {
        checksum,
        ..Offload::NONE
    };
    packet.receive_offloaded(&bytes, in_port, offload);
    let vlan = flow.get(Field::VlanVid);
    if vlan.is_some_and(|vlan| vlan.value & u128::from(VLAN_PRESENT) != 0) {
        packet.push_vlan(eth_type::VLAN);
    }
    for wants in flow.values().filter(|wants| wants.field.info().settable) {
        let old = packet.key().get(wants.field);
        if (old ^ wants.value) & wants.mask != 0 && is_in_headers(wants.field) {
            packet.set_field(wants.field, old & !wants.mask | wants.value);
        }
    }
    packet.finish_checksum();
    packet
}

/// True for a field of a header. A received packet has no values in the other fields.
fn is_in_headers(field: Field) -> bool {
    field != Field::TunnelId && field.index() <= Field::MplsBos.index()
}

/// The bytes of a frame whose fields are 0.
struct Headers {
    bytes: Vec<u8>,
    /// The transport checksum, which is finished after the fields are set.
    checksum: Option<PartialChecksum>,
}

impl Headers {
    /// Returns headers of the kinds that a match needs.
    fn of(flow: &FlowMatch) -> Headers {
        let value = |field: Field| flow.get(field).map(|wants| wants.value);
        let small = |field: Field| value(field).and_then(|value| u8::try_from(value).ok());
        let kind = value(Field::EthType).and_then(|kind| u16::try_from(kind).ok());
        let kind = kind.unwrap_or(DEFAULT_TYPE);
        let mut bytes = vec![0; ETHERNET_BYTES];
        bytes[12..].copy_from_slice(&kind.to_be_bytes());
        let protocol = small(Field::IpProto).unwrap_or(DEFAULT_PROTOCOL);
        let message = small(Field::Icmpv6Type).filter(|_| protocol == ip_proto::ICMPV6);
        let has_option = flow.get(Field::NdSll).or(flow.get(Field::NdTll)).is_some();
        let (transport, sum_at) = transport(protocol, message, has_option);
        let mut checksum = None;
        match kind {
            eth_type::IPV4 => bytes.extend(ipv4(protocol, transport.len())),
            eth_type::IPV6 => bytes.extend(ipv6(protocol, transport.len())),
            eth_type::ARP => bytes.extend([0, 1, 8, 0, 6, 4]),
            eth_type::MPLS | eth_type::MPLS_UPSTREAM => bytes.extend([0, 0, 1, TTL]),
            _ => {}
        }
        if matches!(kind, eth_type::IPV4 | eth_type::IPV6) {
            let start = bytes.len();
            bytes.extend(&transport);
            checksum = sum_at.map(|offset| {
                let sum = pseudo_header_sum(protocol, transport.len());
                let place = start + usize::from(offset);
                bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
                let start = u32::try_from(start).expect("a short frame");
                PartialChecksum { start, offset }
            });
        }
        bytes.resize(bytes.len().max(MIN_FRAME_BYTES), 0);
        Headers { bytes, checksum }
    }
}

/// Returns a header of IPv4 with addresses 0.
fn ipv4(protocol: u8, payload_bytes: usize) -> [u8; IPV4_BYTES] {
    let mut header = [0; IPV4_BYTES];
    let length = u16::try_from(IPV4_BYTES + payload_bytes).expect("a short packet");
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    (header[8], header[9]) = (TTL, protocol);
    // The sum of the few words that are not 0 has no carry to fold.
    let sum = 0x4500 + length + u16::from_be_bytes([TTL, protocol]);
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
    header
}

/// Returns a header of IPv6 with addresses 0.
fn ipv6(protocol: u8, payload_bytes: usize) -> [u8; IPV6_BYTES] {
    let mut header = [0; IPV6_BYTES];
    let length = u16::try_from(payload_bytes).expect("a short packet");
    header[0] = 0x60;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    (header[6], header[7]) = (protocol, TTL);
    header
}

/// Returns a transport header without ports, and the place of its checksum if the checksum is a
/// sum of 16-bit words. `message` is the type of ICMPv6.
fn transport(protocol: u8, message: Option<u8>, has_option: bool) -> (Vec<u8>, Option<u16>) {
    let (length, sum_at) = match protocol {
        ip_proto::TCP => (20, Some(16)),
        ip_proto::UDP => (8, Some(6)),
        ip_proto::ICMP => (8, Some(2)),
        ip_proto::SCTP => (12, None),
        ip_proto::ICMPV6 => (8, Some(2)),
        _ => (0, None),
    };
    let mut header = vec![0; length];
    match protocol {
        // A header of five words, with the flag SYN.
        ip_proto::TCP => (header[12], header[13]) = (0x50, 2),
        ip_proto::UDP => header[5] = 8,
        ip_proto::SCTP => {
            let sum = crc32c::crc32c(&header);
            header[8..].copy_from_slice(&sum.to_le_bytes());
        }
        ip_proto::ICMPV6 => {
            header[0] = message.unwrap_or(0);
            let option = match message {
                Some(icmpv6::NEIGHBOUR_SOLICITATION) => Some(1),
                Some(icmpv6::NEIGHBOUR_ADVERTISEMENT) => Some(2),
                _ => None,
            };
            if let Some(kind) = option {
                header.resize(24, 0);
                if has_option {
                    header.extend([kind, 1, 0, 0, 0, 0, 0, 0]);
                }
            }
        }
        _ => {}
    }
    (header, sum_at)
}

/// Returns the sum of a pseudo-header with addresses 0. ICMP in IPv4 has none.
fn pseudo_header_sum(protocol: u8, transport_bytes: usize) -> u16 {
    let length = u16::try_from(transport_bytes).expect("a short packet");
    match protocol {
        ip_proto::ICMP => 0,
        _ => u16::from(protocol) + length,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::TableSettings;
    use crate::packet::Flaw;
    use crate::pipeline::Pipeline;

    fn made(text: &str) -> Packet {
        packet(text, 7, &Ports::default()).unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn a_packet_has_the_fields_of_the_match() {
        for text in [
            "",
            "in_port=3",
            "dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff",
            "dl_type=0x1234",
            "dl_vlan=100,dl_vlan_pcp=5",
            "vlan_tci=0x1000/0x1000",
            "dl_vlan=7,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.0/8,tp_src=1,tp_dst=443",
            "ip,nw_tos=184,nw_ecn=1",
            "udp,tp_dst=53",
            "sctp,tp_src=9,tp_dst=10",
            "icmp,icmp_type=8,icmp_code=1",
            "ip,nw_proto=47",
            "arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:01",
            "ipv6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::/32,ipv6_label=5",
            "tcp6,ipv6_dst=::1,tp_dst=0x1000/0xf000",
            "udp6,tp_src=7",
            "icmp6,icmp_type=128",
            "icmp6,icmp_type=135,icmp_code=0,nd_target=2001:db8::1,nd_sll=02:00:00:00:00:03",
            "icmp6,icmp_type=136,icmp_code=0,nd_target=2001:db8::1",
            "icmp6,icmp_type=136,icmp_code=0,nd_tll=02:00:00:00:00:03",
            "mpls,mpls_label=9,mpls_tc=3,mpls_bos=0",
            "metadata=0",
        ] {
            let packet = made(text);
            let flow = flow_match(text, &Ports::default()).unwrap();
            assert!(flow.matches(packet.key()), "{text}");
            let flaws: Vec<Flaw> = packet.parsed().flaws.iter().collect();
            assert_eq!(flaws, [], "{text}");
            assert!(packet.bytes().len() >= MIN_FRAME_BYTES, "{text}");
            assert_eq!(packet.offload(), Offload::NONE, "{text}");
        }
    }

    /// Returns the sum of 16-bit words, with the carries added again.
    fn sum(bytes: &[u8]) -> u32 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn checksums_are_right() {
        for (text, protocol) in [
            (
                "tcp,nw_src=10.1.2.3,nw_dst=192.168.7.9,tp_src=1234,tp_dst=80",
                6,
            ),
            ("udp,nw_src=10.1.2.3,nw_dst=255.255.255.254,tp_dst=53", 17),
            ("icmp,icmp_type=8,icmp_code=3", 1),
        ] {
            let packet = made(text);
            let bytes = packet.bytes();
            assert_eq!(sum(&bytes[14..34]), 0xffff, "{text}");
            let length = usize::from(u16::from_be_bytes([bytes[16], bytes[17]])) - 20;
            let pseudo = match protocol {
                1 => 0,
                _ => sum(&bytes[26..34]) + protocol + u32::try_from(length).unwrap(),
            };
            let total = sum(&bytes[34..34 + length]) + pseudo;
            let total = (total & 0xffff) + (total >> 16);
            assert_eq!(total, 0xffff, "{text}");
        }
        let sctp = made("sctp,tp_src=1000,tp_dst=2000");
        let mut header = sctp.bytes()[34..46].to_vec();
        let written = header.splice(8..12, [0; 4]).collect::<Vec<_>>();
        assert_eq!(written, crc32c::crc32c(&header).to_le_bytes());
    }

    #[test]
    fn ports_have_numbers_or_names() {
        let engine = classyard::EngineSpec::parse("linear").unwrap();
        let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap());
        let port = "port=5,name=\"up link\"";
        crate::text::load(port, &mut pipeline, Duration::ZERO).unwrap();
        let ports = pipeline.ports();
        let in_port = |text: &str| packet(text, 7, ports).unwrap().key().get(Field::InPort);
        assert_eq!(in_port("in_port=\"up link\",tcp"), 5);
        assert_eq!(in_port("in_port=4"), 4);
        assert_eq!(in_port("tcp"), 7);
    }

    #[test]
    fn a_text_without_a_packet_is_refused() {
        for (text, column, found) in [
            ("tcp,tp_dst=x", 12, "`x`"),
            ("tcp,nw_dts=1", 5, "`nw_dts`"),
            ("tp_dst=80", 1, ""),
            ("in_port=9x", 9, "`9x`"),
            ("in_port=wan,tcp", 9, "no port has the name `wan`"),
            ("tcp actions=drop", 5, "actions"),
            ("tcp\nudp", 4, "a line break"),
            ("table=1,tcp", 1, "more than fields"),
            ("priority=7,tcp", 1, "more than fields"),
            ("cookie=7", 1, "more than fields"),
            ("metadata=5", 1, "no received packet has `metadata=0x5`"),
            ("reg3=5", 1, "no received packet has `reg3=0x5`"),
            ("tun_id=5", 1, "no received packet has `tun_id=0x5`"),
            ("dl_type=0x100", 1, ""),
            ("ipv6,ipv6_exthdr=1", 1, ""),
            ("ip,nw_proto=6,ip_frag=yes", 0, ""),
        ] {
            let problem = packet(text, 1, &Ports::default()).unwrap_err();
            assert!(problem.found.contains(found), "{text}: {problem}");
            assert!(column == 0 || problem.column == column, "{text}: {problem}");
        }
    }
}
