//! Random lists, groups and packets.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use classyard_configs::ConfigFormat;

use super::{
    Address, Entry, Groups, Layer4, Packet, Ports, Selection, Service, list_name, protocol_text,
};
use crate::support::{CiscoAsa, CiscoIos, CiscoNxos, CiscoXr, Numbers};

const HOSTS: [u32; 6] = [
    0x0a00_0001,
    0x0a00_0002,
    0x0a00_0101,
    0x0a01_0001,
    0xc000_0201,
    0xffff_ffff,
];
const PORTS: [u16; 6] = [0, 1, 80, 81, 443, 65535];
const PROTOCOLS: [u8; 4] = [6, 17, 1, 47];

fn random_address(numbers: &mut Numbers, format: ConfigFormat) -> Address {
    let value = HOSTS[numbers.below(HOSTS.len())];
    let any = u32::MAX;
    let mut masks = vec![0, 0xff, 0xffff, 0x00ff_ffff, 3, any, any, any, any, any];
    if format != CiscoAsa {
        masks.extend([0x0000_ff00, 0x0001_0100, 0x8000_0001]);
    }
    Address {
        value,
        free: masks[numbers.below(masks.len())],
    }
}

fn random_ports(numbers: &mut Numbers, format: ConfigFormat) -> Option<Ports> {
    let port = PORTS[numbers.below(PORTS.len())];
    let other = PORTS[numbers.below(PORTS.len())];
    let mut list = vec![port];
    if format == CiscoIos && numbers.one_in(2) {
        list.extend([other, 7]);
    }
    match numbers.below(8) {
        0 | 1 => Some(Ports::Equal(list)),
        2 => Some(Ports::NotEqual(list)),
        3 if port > 0 => Some(Ports::Below(port)),
        4 if port < u16::MAX => Some(Ports::Above(port)),
        5 => Some(Ports::Range(port.min(other), port.max(other))),
        _ => None,
    }
}

fn random_flags(numbers: &mut Numbers) -> Layer4 {
    let flags = u8::try_from(numbers.below(63) + 1).unwrap();
    let set = flags & u8::try_from(numbers.below(64)).unwrap();
    Layer4::Flags(set, flags & !set, numbers.one_in(2))
}

/// Writes groups that may contain the group before them. Returns the members of each.
fn random_groups(
    numbers: &mut Numbers,
    format: ConfigFormat,
    text: &mut String,
) -> Vec<Vec<Address>> {
    let mut groups: Vec<Vec<Address>> = Vec::new();
    for index in 0..3 {
        let kind = match format {
            CiscoNxos => "ip address",
            CiscoXr => "network ipv4",
            _ => "network",
        };
        writeln!(text, "object-group {kind} G{index}").unwrap();
        let mut members = Vec::new();
        for _ in 0..=numbers.below(3) {
            let member = Address {
                value: HOSTS[numbers.below(HOSTS.len())],
                free: [0, 0, 0xff, 0xffff, 3][numbers.below(5)],
            };
            let value = Ipv4Addr::from(member.value);
            let netmask = Ipv4Addr::from(!member.free);
            let keyword = if format == CiscoAsa {
                "network-object "
            } else {
                ""
            };
            match (format, member.free) {
                (_, 0) => writeln!(text, " {keyword}host {value}"),
                (CiscoXr, free) => writeln!(text, " {value}/{}", free.leading_zeros()),
                (CiscoNxos, free) => writeln!(text, " {value} {}", Ipv4Addr::from(free)),
                _ => writeln!(text, " {keyword}{value} {netmask}"),
            }
            .unwrap();
            members.push(member);
        }
        let can_nest = index > 0 && format != CiscoNxos;
        if can_nest && numbers.one_in(2) {
            let keyword = if format == CiscoXr {
                "object-group"
            } else {
                "group-object"
            };
            writeln!(text, " {keyword} G{}", index - 1).unwrap();
            members.extend(groups[index - 1].iter().copied());
        }
        groups.push(members);
    }
    groups
}

/// Writes groups of services, for the systems that have them.
fn random_service_groups(
    numbers: &mut Numbers,
    format: ConfigFormat,
    text: &mut String,
) -> Vec<Vec<Service>> {
    let mut groups = Vec::new();
    if !matches!(format, CiscoIos | CiscoAsa) {
        return groups;
    }
    for index in 0..2 {
        writeln!(text, "object-group service S{index}").unwrap();
        let mut services = Vec::new();
        for _ in 0..=numbers.below(3) {
            let protocol = Some(PROTOCOLS[numbers.below(PROTOCOLS.len())]);
            let has_ports = matches!(protocol, Some(6 | 17));
            let ports = random_ports(numbers, format).filter(|_| has_ports);
            let keyword = if format == CiscoAsa {
                "service-object "
            } else {
                ""
            };
            write!(text, " {keyword}{}", protocol_text(protocol, format)).unwrap();
            match (&ports, format) {
                (None, _) => writeln!(text),
                (Some(ports), CiscoAsa) => writeln!(text, " destination {}", ports.text()),
                (Some(ports), _) => writeln!(text, " {}", ports.text()),
            }
            .unwrap();
            services.push(Service { protocol, ports });
        }
        groups.push(services);
    }
    groups
}

fn random_selection(
    numbers: &mut Numbers,
    format: ConfigFormat,
    groups: &[Vec<Address>],
) -> Selection {
    if numbers.one_in(4) {
        let index = numbers.below(groups.len());
        return Selection::Group(index, groups[index].clone());
    }
    Selection::Address(random_address(numbers, format))
}

fn random_entry(numbers: &mut Numbers, format: ConfigFormat, groups: &Groups) -> Entry {
    let protocol = match numbers.below(5) {
        0 => None,
        index => Some(PROTOCOLS[index - 1]),
    };
    let mut entry = Entry {
        number: 0,
        service_group: None,
        permits: numbers.one_in(2),
        protocol,
        addresses: [(); 2].map(|()| random_selection(numbers, format, &groups.addresses)),
        ports: [None, None],
        layer4: Layer4::None,
        line: 0,
    };
    if !groups.services.is_empty() && numbers.one_in(5) {
        let index = numbers.below(groups.services.len());
        entry.service_group = Some((index, groups.services[index].clone()));
        return entry;
    }
    let is_router = format != CiscoAsa;
    if is_router && numbers.one_in(5) {
        entry.layer4 = Layer4::Fragments;
        return entry;
    }
    if matches!(protocol, Some(6 | 17)) {
        entry.ports = [(); 2].map(|()| random_ports(numbers, format));
    }
    if protocol == Some(6) && is_router && numbers.one_in(3) {
        entry.layer4 = Layer4::Established;
        if numbers.one_in(2) && matches!(format, CiscoIos | CiscoXr) {
            entry.layer4 = random_flags(numbers);
        }
    }
    if protocol == Some(1) && numbers.one_in(2) {
        let code = numbers.one_in(2).then_some(1);
        entry.layer4 = Layer4::Icmp(if numbers.one_in(2) { 3 } else { 8 }, code);
    }
    entry
}

/// Writes lists and groups. Returns the text and the entries in the order of evaluation.
pub(super) fn random_config(
    numbers: &mut Numbers,
    format: ConfigFormat,
) -> (String, Vec<Vec<Entry>>) {
    let mut text = String::from("hostname x\n");
    let groups = Groups {
        addresses: random_groups(numbers, format, &mut text),
        services: random_service_groups(numbers, format, &mut text),
    };
    let lists = (0..2).map(|list| {
        let name = list_name(list);
        match format {
            CiscoAsa => write_asa_list(numbers, &name, &groups, &mut text),
            _ => write_router_list(numbers, format, (&name, &groups), &mut text),
        }
    });
    let lists = lists.collect();
    (text, lists)
}

fn current_line(text: &str) -> u32 {
    u32::try_from(text.lines().count()).unwrap()
}

/// Writes entries, some of them at a position before others.
fn write_asa_list(
    numbers: &mut Numbers,
    name: &str,
    groups: &Groups,
    text: &mut String,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for _ in 0..=numbers.below(8) {
        let mut entry = random_entry(numbers, CiscoAsa, groups);
        let mut index = entries.len();
        let mut position = String::new();
        if numbers.one_in(3) {
            index = numbers.below(entries.len() + 1);
            position = format!("line {} ", index + 1);
        }
        let entry_text = entry.text(CiscoAsa);
        writeln!(text, "access-list {name} {position}extended {entry_text}").unwrap();
        entry.line = current_line(text);
        entries.insert(index, entry);
    }
    entries
}

/// Writes entries in a random order of numbers, and removes some of them.
fn write_router_list(
    numbers: &mut Numbers,
    format: ConfigFormat,
    (name, groups): (&str, &Groups),
    text: &mut String,
) -> Vec<Entry> {
    let keyword = match format {
        CiscoIos => "ip access-list extended",
        CiscoNxos => "ip access-list",
        _ => "ipv4 access-list",
    };
    writeln!(text, "{keyword} {name}").unwrap();
    let mut entries: Vec<Entry> = Vec::new();
    let mut highest = 0;
    let mut used = Vec::new();
    for _ in 0..=numbers.below(8) {
        let mut entry = random_entry(numbers, format, groups);
        let number = numbers.below(200) as u64 + 1;
        entry.number = highest + 10;
        let mut prefix = String::new();
        if numbers.one_in(2) && !used.contains(&number) {
            entry.number = number;
            prefix = format!("{number} ");
        }
        writeln!(text, " {prefix}{}", entry.text(format)).unwrap();
        entry.line = current_line(text);
        used.push(entry.number);
        highest = highest.max(entry.number);
        entries.push(entry);
    }
    if numbers.one_in(3) {
        let removed = entries.swap_remove(numbers.below(entries.len()));
        writeln!(text, " no {}", removed.number).unwrap();
        // A list without entries has no rules.
        let mut entry = random_entry(numbers, format, groups);
        entry.number = highest + 10;
        writeln!(text, " {} {}", entry.number, entry.text(format)).unwrap();
        entry.line = current_line(text);
        entries.push(entry);
    }
    entries.sort_by_key(|entry| entry.number);
    entries
}

pub(super) fn random_packet(numbers: &mut Numbers) -> Packet {
    let host = |numbers: &mut Numbers| {
        HOSTS[numbers.below(HOSTS.len())] ^ [0, 0, 0, 4, 0x100][numbers.below(5)]
    };
    let port = |numbers: &mut Numbers| PORTS[numbers.below(PORTS.len())];
    Packet {
        src: host(numbers),
        dst: host(numbers),
        sport: port(numbers),
        dport: port(numbers),
        protocol: PROTOCOLS[numbers.below(PROTOCOLS.len())],
        icmp: ([3, 8, 0][numbers.below(3)], [0, 1][numbers.below(2)]),
        flags: u8::try_from(numbers.below(64)).unwrap(),
        fragment: [0, 0, 1, 2, 3][numbers.below(5)],
        list: numbers.below(2),
    }
}
