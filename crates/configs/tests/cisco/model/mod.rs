//! A small interpreter of access lists, compared with the policy on random packets.
//!
//! The interpreter works on the parts of an entry, in the terms of the systems: it compares
//! addresses under masks and ports with operators, and follows the documented treatment of
//! fragments. The parts are also written as text for the reader.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use classyard_configs::ConfigFormat;

use crate::support::{CiscoAsa, CiscoNxos, CiscoXr, Device, FORMATS, Numbers};

mod generator;

use generator::{random_config, random_packet};

const CONFIG_COUNT: usize = 150;
const PACKET_COUNT: usize = 60;

#[derive(Clone, Copy, Debug)]
struct Packet {
    src: u32,
    dst: u32,
    sport: u16,
    dport: u16,
    protocol: u8,
    icmp: (u8, u8),
    flags: u8,
    fragment: u8,
    list: usize,
}

/// An address and the bits that may differ.
#[derive(Clone, Copy, Debug)]
struct Address {
    value: u32,
    free: u32,
}

impl Address {
    fn has(self, address: u32) -> bool {
        (address ^ self.value) & !self.free == 0
    }
}

/// An address, or a group with addresses.
#[derive(Clone, Debug)]
enum Selection {
    Address(Address),
    Group(usize, Vec<Address>),
}

impl Selection {
    fn has(&self, address: u32) -> bool {
        match self {
            Selection::Address(selected) => selected.has(address),
            Selection::Group(_, members) => members.iter().any(|member| member.has(address)),
        }
    }

    fn text(&self, format: ConfigFormat) -> String {
        let keyword = match format {
            CiscoNxos => "addrgroup",
            CiscoXr => "net-group",
            _ => "object-group",
        };
        match self {
            Selection::Address(address) => address_text(*address, format),
            Selection::Group(index, _) => format!(" {keyword} G{index}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Ports {
    Equal(Vec<u16>),
    NotEqual(Vec<u16>),
    Below(u16),
    Above(u16),
    Range(u16, u16),
}

impl Ports {
    fn has(&self, port: u16) -> bool {
        match self {
            Ports::Equal(ports) => ports.contains(&port),
            Ports::NotEqual(ports) => !ports.contains(&port),
            Ports::Below(limit) => port < *limit,
            Ports::Above(limit) => port > *limit,
            Ports::Range(low, high) => (*low..=*high).contains(&port),
        }
    }

    fn text(&self) -> String {
        match self {
            Ports::Equal(ports) => format!("eq {}", list_text(ports)),
            Ports::NotEqual(ports) => format!("neq {}", list_text(ports)),
            Ports::Below(port) => format!("lt {port}"),
            Ports::Above(port) => format!("gt {port}"),
            Ports::Range(low, high) => format!("range {low} {high}"),
        }
    }
}

fn list_text(ports: &[u16]) -> String {
    let ports = ports.iter().map(u16::to_string);
    ports.collect::<Vec<_>>().join(" ")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layer4 {
    None,
    Established,
    /// Flags that must be set, flags that must not be set, and true for `match-any`.
    Flags(u8, u8, bool),
    Icmp(u8, Option<u8>),
    Fragments,
}

/// A member of a group of services: a protocol and destination ports.
#[derive(Clone, Debug)]
struct Service {
    protocol: Option<u8>,
    ports: Option<Ports>,
}

/// The groups of a configuration.
struct Groups {
    addresses: Vec<Vec<Address>>,
    services: Vec<Vec<Service>>,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    permits: bool,
    protocol: Option<u8>,
    /// A group of services instead of a protocol.
    service_group: Option<(usize, Vec<Service>)>,
    addresses: [Selection; 2],
    ports: [Option<Ports>; 2],
    layer4: Layer4,
    line: u32,
}

impl Entry {
    fn matches_layer3(&self, packet: &Packet) -> bool {
        self.protocol
            .is_none_or(|protocol| protocol == packet.protocol)
            && self.addresses[0].has(packet.src)
            && self.addresses[1].has(packet.dst)
    }

    fn matches_layer4(&self, packet: &Packet) -> bool {
        let port_pairs = self.ports.iter().zip([packet.sport, packet.dport]);
        let mut port_pairs = port_pairs.filter_map(|(ports, port)| Some((ports.as_ref()?, port)));
        port_pairs.all(|(ports, port)| ports.has(port))
            && match self.layer4 {
                Layer4::None | Layer4::Fragments => true,
                Layer4::Established => packet.flags & 0x14 != 0,
                Layer4::Flags(set, clear, true) => {
                    packet.flags & set != 0 || !packet.flags & clear != 0
                }
                Layer4::Flags(set, clear, false) => {
                    packet.flags & set == set && packet.flags & clear == 0
                }
                Layer4::Icmp(number, code) => {
                    packet.icmp.0 == number && code.is_none_or(|code| code == packet.icmp.1)
                }
            }
    }

    /// Follows the steps of a router for a fragment.
    fn matches(&self, packet: &Packet, format: ConfigFormat) -> bool {
        if let Some((_, services)) = &self.service_group {
            return services.iter().any(|service| {
                let expanded = Entry {
                    service_group: None,
                    protocol: service.protocol,
                    ports: [None, service.ports.clone()],
                    ..self.clone()
                };
                expanded.matches(packet, format)
            });
        }
        let has_offset = packet.fragment >= 2;
        if !self.matches_layer3(packet) {
            return false;
        }
        if self.layer4 == Layer4::Fragments {
            return has_offset;
        }
        let examines_layer4 = self.ports.iter().any(Option::is_some) || self.layer4 != Layer4::None;
        match (examines_layer4, has_offset) {
            (false, _) => true,
            (true, true) => self.permits && format != CiscoAsa,
            (true, false) => self.matches_layer4(packet),
        }
    }

    fn text(&self, format: ConfigFormat) -> String {
        let action = if self.permits { "permit" } else { "deny" };
        let protocol = match &self.service_group {
            None => protocol_text(self.protocol, format),
            Some((index, _)) => format!("object-group S{index}"),
        };
        let mut text = format!("{action} {protocol}");
        for (selection, ports) in self.addresses.iter().zip(&self.ports) {
            text += &selection.text(format);
            if let Some(ports) = ports {
                write!(text, " {}", ports.text()).unwrap();
            }
        }
        match self.layer4 {
            Layer4::None => {}
            Layer4::Established => text += " established",
            Layer4::Fragments => text += " fragments",
            Layer4::Icmp(number, None) => write!(text, " {number}").unwrap(),
            Layer4::Icmp(number, Some(code)) => write!(text, " {number} {code}").unwrap(),
            Layer4::Flags(set, clear, is_any) => {
                text += if is_any { " match-any" } else { " match-all" };
                for (bit, name) in ["fin", "syn", "rst", "psh", "ack", "urg"]
                    .iter()
                    .enumerate()
                {
                    for (sign, flags) in [("+", set), ("-", clear)] {
                        if flags >> bit & 1 == 1 {
                            write!(text, " {sign}{name}").unwrap();
                        }
                    }
                }
            }
        }
        text
    }
}

fn protocol_text(protocol: Option<u8>, format: ConfigFormat) -> String {
    match protocol {
        None if format == CiscoXr => "ipv4".to_owned(),
        None => "ip".to_owned(),
        Some(6) => "tcp".to_owned(),
        Some(17) => "udp".to_owned(),
        Some(1) => "icmp".to_owned(),
        Some(number) => number.to_string(),
    }
}

fn address_text(address: Address, format: ConfigFormat) -> String {
    let value = Ipv4Addr::from(address.value);
    let is_prefix = address.free & address.free.wrapping_add(1) == 0;
    match address.free {
        u32::MAX if format == CiscoAsa => " any4".to_owned(),
        u32::MAX => " any".to_owned(),
        0 => format!(" host {value}"),
        free if format == CiscoAsa => format!(" {value} {}", Ipv4Addr::from(!free)),
        free if is_prefix && matches!(format, CiscoNxos | CiscoXr) => {
            format!(" {value}/{}", free.leading_zeros())
        }
        free => format!(" {value} {}", Ipv4Addr::from(free)),
    }
}

fn list_name(list: usize) -> String {
    format!("L{list}")
}

impl Packet {
    fn header(&self) -> String {
        format!(
            "list={} src={} dst={} sport={} dport={} proto={} icmp_type={} icmp_code={} \
             tcp_flags={} fragment={}",
            list_name(self.list),
            Ipv4Addr::from(self.src),
            Ipv4Addr::from(self.dst),
            self.sport,
            self.dport,
            self.protocol,
            self.icmp.0,
            self.icmp.1,
            self.flags,
            self.fragment
        )
    }
}

#[test]
fn policies_decide_like_the_interpreter() {
    let mut numbers = Numbers(2026);
    let mut permitted = 0;
    for format in FORMATS {
        for _ in 0..CONFIG_COUNT {
            let (text, lists) = random_config(&mut numbers, format);
            let device = Device::new(&text, format);
            for _ in 0..PACKET_COUNT {
                let packet = random_packet(&mut numbers);
                let mut entries = lists[packet.list].iter();
                let entry = entries.find(|entry| entry.matches(&packet, format));
                let (action, source) = device.decide(&packet.header());
                let expected = match entry {
                    Some(entry) if entry.permits => ("permit", Some(entry.line)),
                    Some(entry) => ("deny", Some(entry.line)),
                    None => ("deny", None),
                };
                let line = (!source.is_implied).then_some(source.line);
                assert_eq!((action, line), expected, "{text}\n{packet:?}");
                permitted += usize::from(action == "permit");
            }
        }
    }
    let packets = FORMATS.len() * CONFIG_COUNT * PACKET_COUNT;
    assert!(
        (packets / 10..packets * 9 / 10).contains(&permitted),
        "{permitted}"
    );
}
