//! Random rules over the fields of firewalls, and headers that packets can have.

use std::fmt::Write;

use classyard::Policy;
use classyard::policy::PartId;

use crate::support::{Random, rules};

/// The lists of random rules.
pub(crate) const LISTS: [&str; 2] = ["INPUT", "FORWARD"];

const SOURCES: [&str; 6] = [
    "10.0.0.0/8",
    "10.1.2.3",
    "192.0.2.0/25",
    "10.0.0.1&255.0.0.255",
    "2001:db8::/32",
    "2001:db8::1",
];
const DESTINATIONS: [&str; 4] = ["10.128.0.0/9", "192.0.2.128/25", "2001:db8:1::/48", "::/1"];
/// The actions and fields of random rules.
pub(crate) struct Features {
    actions: &'static [&'static str],
    protocols: &'static [&'static str],
    /// A rule has a protocol with the probability 1 / `protocol_in`.
    protocol_in: usize,
    flags_in: Option<usize>,
    has_states: bool,
    has_interfaces: bool,
}

/// The features of firewalls on Linux.
pub(crate) const LINUX: Features = Features {
    actions: &["permit", "permit", "deny", "reject"],
    protocols: &[
        "tcp", "tcp", "udp", "icmp", "58", "sctp", "136", "47", "0-5", "7-255",
    ],
    protocol_in: 2,
    flags_in: Some(8),
    has_states: true,
    has_interfaces: true,
};

/// The features of access lists of routers.
pub(crate) const ROUTERS: Features = Features {
    actions: &["permit", "permit", "deny"],
    protocols: &[
        "tcp", "tcp", "udp", "icmp", "58", "sctp", "47", "7-20", "1-255",
    ],
    protocol_in: 1,
    flags_in: Some(8),
    has_states: false,
    has_interfaces: false,
};

/// The features of access lists of ASA.
pub(crate) const ASA: Features = Features {
    flags_in: None,
    ..ROUTERS
};

const PORTS: [&str; 6] = ["22", "80-89", "0", "0-1023", "1024-65535", "0-65535"];
const FLAGS: [&str; 4] = ["0x2&0x12", "0x10&0x10", "0x0&0x3f", "0x0&0x4"];
const STATES: [&str; 4] = ["new", "1-2", "invalid", "4-7"];

/// Adds a condition on a field with the probability 1 / `count`.
fn maybe(random: &mut Random, count: usize, field: &str, texts: &[&str], rule: &mut String) {
    if random.once_in(count) {
        write!(rule, " {field}={}", random.pick(texts)).unwrap();
    }
}

/// Returns a rule without its list and its action.
fn conditions(random: &mut Random, features: &Features) -> String {
    let mut rule = String::new();
    let is_ipv6 = random.once_in(2);
    let of_family: Vec<&str> = SOURCES
        .into_iter()
        .filter(|text| text.contains(':') == is_ipv6)
        .collect();
    maybe(random, 2, "src", &of_family, &mut rule);
    let of_family: Vec<&str> = DESTINATIONS
        .into_iter()
        .filter(|text| text.contains(':') == is_ipv6)
        .collect();
    maybe(random, 3, "dst", &of_family, &mut rule);
    maybe(
        random,
        features.protocol_in,
        "proto",
        features.protocols,
        &mut rule,
    );
    maybe(random, 6, "sport", &PORTS, &mut rule);
    maybe(random, 3, "dport", &PORTS, &mut rule);
    maybe(random, 8, "icmp_type", &["8", "0", "128", "3"], &mut rule);
    maybe(random, 16, "icmp_code", &["0", "1"], &mut rule);
    if let Some(count) = features.flags_in {
        maybe(random, count, "tcp_flags", &FLAGS, &mut rule);
    }
    maybe(random, 8, "fragment", &["0-1", "2-3", "whole"], &mut rule);
    if features.has_states {
        maybe(random, 6, "state", &STATES, &mut rule);
    }
    if features.has_interfaces {
        maybe(random, 6, "in", &["eth0", "eth*"], &mut rule);
        maybe(random, 12, "out", &["eth1"], &mut rule);
    }
    if !rule.contains("src=") && !rule.contains("dst=") {
        maybe(random, 10, "family", &["ipv4", "ipv6"], &mut rule);
    }
    rule
}

/// Returns the rules of two lists as text in the project's own format; the last rules of each
/// list permit or deny every packet.
pub(crate) fn lines(random: &mut Random, features: &Features, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let action = random.pick(features.actions);
        let list = random.pick(&LISTS);
        let mut conditions = conditions(random, features);
        // Packets to the host have no output interface.
        if list == "INPUT" {
            conditions = conditions.replace(" out=eth1", "");
        }
        lines.push(format!("{action} list={list}{conditions}"));
    }
    for list in LISTS {
        let action = random.pick(&["permit", "deny"]);
        lines.push(format!("{action} list={list}"));
    }
    lines
}

/// Returns lines as a policy.
pub(crate) fn policy(lines: &[String]) -> Policy {
    rules(&format!("schema acl\n{}\n", lines.join("\n")))
}

/// Returns the bytes of a name as a value.
fn name(text: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    u128::from_be_bytes(bytes)
}

fn address(random: &mut Random, is_ipv6: bool) -> u128 {
    let texts: &[&str] = match is_ipv6 {
        false => &[
            "10.0.0.1",
            "10.1.2.3",
            "10.200.0.1",
            "192.0.2.1",
            "192.0.2.130",
            "8.8.8.8",
        ],
        true => &["2001:db8::1", "2001:db8::2", "2001:db8:1::5", "fe80::1"],
    };
    match random.pick(texts).parse().unwrap() {
        std::net::IpAddr::V4(address) => u32::from(address).into(),
        std::net::IpAddr::V6(address) => address.into(),
    }
}

/// Returns a header that a packet can have: fields of headers that it lacks are 0.
pub(crate) fn header(random: &mut Random) -> (PartId, Vec<u128>) {
    let is_ipv6 = random.once_in(2);
    let (source, destination) = (address(random, is_ipv6), address(random, is_ipv6));
    let protocols: &[u128] = match is_ipv6 {
        false => &[6, 6, 17, 1, 132, 136, 47, 2, 0],
        true => &[6, 6, 17, 58, 132, 136, 47, 2, 0],
    };
    let protocol = random.pick(protocols);
    let fragment = random.pick(&[0, 0, 0, 1, 2]);
    let mut port = || random.pick(&[0, 22, 79, 80, 89, 1023, 1024, 65535]);
    let mut fields = [0; 5];
    match (fragment, protocol) {
        (2, _) => {}
        (_, 6) => {
            fields[..2].copy_from_slice(&[port(), port()]);
            fields[4] = random.pick(&[0x02, 0x12, 0x10, 0x04, 0x00, 0x01]);
        }
        (_, 17 | 132 | 136) => fields[..2].copy_from_slice(&[port(), port()]),
        (_, 1 | 58) => {
            fields[2] = random.pick(&[0, 3, 8, 128]);
            fields[3] = random.pick(&[0, 1]);
        }
        _ => {}
    }
    let [sport, dport, kind, code, flags] = fields;
    let state = random.pick(&[0, 1, 2, 3, 4]);
    let list = random.pick(&LISTS);
    let input = name(random.pick(&["eth0", "eth1", "lo"]));
    let output = match list {
        "INPUT" => 0,
        _ => name(random.pick(&["eth0", "eth1"])),
    };
    let values = vec![
        source,
        destination,
        sport,
        dport,
        protocol,
        kind,
        code,
        flags,
        fragment,
        state,
        input,
        output,
        name(list),
        0,
    ];
    (PartId::from_index(usize::from(is_ipv6)), values)
}
