//! Random filters and policies, compared with interpreters that follow the statements.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::helper::{Random, load};

/// A packet, in the terms of conditions.
#[derive(Debug)]
struct Packet {
    addresses: [Ipv4Addr; 2],
    ports: [u16; 2],
    protocol: u8,
    icmp_type: u8,
    flags: u8,
    fragment: &'static str,
}

/// A network with its number of fixed bits, and true for exceptions.
type Entry = (Ipv4Addr, u32, bool);

#[derive(Debug)]
enum Condition {
    /// `source-address` and `source-prefix-list`, the same of the destination, or of either.
    Addresses(&'static str, Vec<Entry>),
    /// Ranges of a number, and true with `-except`.
    Numbers(&'static str, Vec<(u16, u16)>, bool),
    Flags(Flags),
    Word(&'static str),
}

/// An expression of `tcp-flags`.
#[derive(Debug)]
enum Flags {
    Flag(&'static str),
    Not(Box<Flags>),
    All(Box<Flags>, Box<Flags>),
    Either(Box<Flags>, Box<Flags>),
}

#[derive(Debug)]
struct Term {
    conditions: Vec<Condition>,
    then: &'static [&'static str],
}

fn in_network((start, length, _): &Entry, address: Ipv4Addr) -> bool {
    *length == 0 || (start.to_bits() ^ address.to_bits()) >> (32 - length) == 0
}

/// True if the longest prefix of the address is not an exception.
fn in_list(entries: &[Entry], address: Ipv4Addr) -> bool {
    let networks = entries.iter().filter(|entry| in_network(entry, address));
    networks
        .max_by_key(|entry| entry.1)
        .is_some_and(|entry| !entry.2)
}

impl Flags {
    fn random(random: &mut Random, depth: usize) -> Flags {
        let kind = if depth < 4 { random.below(6) } else { 5 };
        let mut part = || Box::new(Flags::random(random, depth + 1));
        match kind {
            0 => Flags::Not(part()),
            1 => Flags::All(part(), part()),
            2 => Flags::Either(part(), part()),
            _ => Flags::Flag(random.pick(&["syn", "ack", "rst", "fin"])),
        }
    }

    fn holds(&self, flags: u8) -> bool {
        match self {
            Flags::Flag(name) => {
                let names = ["fin", "syn", "rst", "push", "ack"];
                let bit = names.iter().position(|other| other == name).unwrap();
                flags >> bit & 1 == 1
            }
            Flags::Not(part) => !part.holds(flags),
            Flags::All(a, b) => a.holds(flags) && b.holds(flags),
            Flags::Either(a, b) => a.holds(flags) || b.holds(flags),
        }
    }

    /// Returns the expression, with parentheses around `|` only.
    fn text(&self) -> String {
        match self {
            Flags::Flag(name) => (*name).to_owned(),
            Flags::Not(part) => format!("!({})", part.text()),
            Flags::All(a, b) => format!("{}&{}", a.text(), b.text()),
            Flags::Either(a, b) => format!("({} | {})", a.text(), b.text()),
        }
    }
}

impl Condition {
    fn random(random: &mut Random) -> Condition {
        match random.below(10) {
            0..=2 => {
                let mut entries: Vec<Entry> = Vec::new();
                for _ in 0..=random.below(5) {
                    let length = random.pick(&[0, 8, 15, 16, 17, 24, 31, 32]);
                    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                    let start = Ipv4Addr::from_bits(address(random).to_bits() & mask);
                    if !entries
                        .iter()
                        .any(|entry| entry.0 == start && entry.1 == length)
                    {
                        entries.push((start, length, random.once_in(3)));
                    }
                }
                let keyword = random.pick(&["source-address", "destination-address", "address"]);
                Condition::Addresses(keyword, entries)
            }
            3..=6 => {
                let keywords = [
                    "protocol",
                    "source-port",
                    "destination-port",
                    "port",
                    "icmp-type",
                ];
                let keyword = random.pick(&keywords);
                let mut ranges = Vec::new();
                for _ in 0..=random.below(3) {
                    let low = number(random);
                    let high = if random.once_in(2) {
                        low
                    } else {
                        low + number(random)
                    };
                    ranges.push((low, high));
                }
                Condition::Numbers(keyword, ranges, random.once_in(3))
            }
            7 => Condition::Flags(Flags::random(random, 0)),
            _ => Condition::Word(random.pick(&[
                "first-fragment",
                "is-fragment",
                "tcp-initial",
                "tcp-established",
                "fragment-offset 0",
                "fragment-offset-except 0",
            ])),
        }
    }

    fn keyword(&self) -> String {
        match self {
            Condition::Addresses(keyword, _) => (*keyword).to_owned(),
            Condition::Numbers(keyword, _, is_except) => {
                format!("{keyword}{}", if *is_except { "-except" } else { "" })
            }
            Condition::Flags(_) => "tcp-flags".to_owned(),
            Condition::Word(word) => word.split(' ').next().unwrap().to_owned(),
        }
    }

    /// Returns the values, as one statement each.
    fn values(&self) -> Vec<String> {
        match self {
            Condition::Addresses(_, entries) => entries
                .iter()
                .map(|(start, length, is_except)| {
                    format!(
                        "{start}/{length}{}",
                        if *is_except { " except" } else { "" }
                    )
                })
                .collect(),
            Condition::Numbers(_, ranges, _) => ranges
                .iter()
                .map(|(low, high)| match low == high {
                    true => low.to_string(),
                    false => format!("{low}-{high}"),
                })
                .collect(),
            Condition::Flags(flags) => vec![format!("\"{}\"", flags.text())],
            Condition::Word(word) => vec![word.split(' ').nth(1).unwrap_or("").to_owned()],
        }
    }

    fn holds(&self, packet: &Packet) -> bool {
        let [source, destination] = packet.addresses;
        let [from, to] = packet.ports;
        match self {
            Condition::Addresses("source-address", entries) => in_list(entries, source),
            Condition::Addresses("destination-address", entries) => in_list(entries, destination),
            Condition::Addresses(_, entries) => {
                in_list(entries, source) || in_list(entries, destination)
            }
            Condition::Numbers(keyword, ranges, is_except) => {
                let values = match *keyword {
                    "protocol" => vec![packet.protocol.into()],
                    "icmp-type" => vec![packet.icmp_type.into()],
                    "source-port" => vec![from],
                    "destination-port" => vec![to],
                    _ => vec![from, to],
                };
                let is_in = |value: &u16| {
                    ranges
                        .iter()
                        .any(|(low, high)| low <= value && value <= high)
                };
                values.iter().any(is_in) != *is_except
            }
            Condition::Flags(flags) => flags.holds(packet.flags),
            Condition::Word(word) => match *word {
                "first-fragment" => packet.fragment == "first",
                "is-fragment" | "fragment-offset-except 0" => packet.fragment == "later",
                "fragment-offset 0" => packet.fragment != "later",
                "tcp-initial" => packet.flags & 0x12 == 2,
                "tcp-established" => packet.flags & 0x14 != 0,
                other => panic!("{other}"),
            },
        }
    }
}

fn number(random: &mut Random) -> u16 {
    random.pick(&[0, 1, 2, 6, 8, 17, 22, 53, 80])
}

fn address(random: &mut Random) -> Ipv4Addr {
    let bytes = [0; 4].map(|_: u8| random.pick(&[10, 10, 10, 11, 0, 255]));
    Ipv4Addr::from(bytes)
}

const THEN: &[&[&str]] = &[
    &["accept"],
    &["discard"],
    &["reject"],
    &["log", "accept"],
    &["count c"],
    &["next term"],
    &["count c", "next term"],
    &["routing-instance blue"],
    &[],
];

impl Term {
    fn random(random: &mut Random) -> Term {
        let mut conditions: Vec<Condition> = Vec::new();
        for _ in 0..random.below(4) {
            let condition = Condition::random(random);
            // A second condition of the same name would be a list with the first one.
            if conditions
                .iter()
                .all(|other| other.keyword() != condition.keyword())
            {
                conditions.push(condition);
            }
        }
        let then = random.pick(THEN);
        Term { conditions, then }
    }

    fn action(&self) -> Option<&'static str> {
        let actions = [
            ("accept", "permit"),
            ("discard", "deny"),
            ("reject", "reject"),
            ("routing-instance blue", "routing-instance blue"),
        ];
        if self.then.contains(&"next term") {
            return None;
        }
        let action = actions.iter().find(|(then, _)| self.then.contains(then));
        Some(action.map_or("permit", |(_, action)| action))
    }
}

/// Writes a filter in braces, with one term a line from line 2.
fn write_blocks(terms: &[Term]) -> String {
    let mut text = String::from("firewall { family inet { filter f {\n");
    for (number, term) in terms.iter().enumerate() {
        let _ = write!(text, "term t{number} {{ from {{ ");
        for condition in &term.conditions {
            let values = condition.values();
            let _ = match values.len() {
                1 => write!(text, "{} {}; ", condition.keyword(), values[0]),
                _ => write!(
                    text,
                    "{} {{ {}; }} ",
                    condition.keyword(),
                    values.join("; ")
                ),
            };
        }
        let _ = write!(text, "}} then {{ ");
        for then in term.then {
            let _ = write!(text, "{then}; ");
        }
        text += "} }\n";
    }
    text + "} } }\nsystem {\n}\n"
}

/// Writes a filter as commands.
fn write_commands(terms: &[Term]) -> String {
    let mut text = String::new();
    for (number, term) in terms.iter().enumerate() {
        let start = format!("set firewall family inet filter f term t{number}");
        let _ = writeln!(text, "{start}");
        for condition in &term.conditions {
            for value in condition.values() {
                let _ = writeln!(text, "{start} from {} {value}", condition.keyword());
            }
        }
        for then in term.then {
            let _ = writeln!(text, "{start} then {then}");
        }
    }
    text
}

#[test]
fn random_filters_decide_as_their_statements_say() {
    let mut random = Random::new(11);
    let mut decided_by_term = 0;
    for _ in 0..300 {
        let terms: Vec<Term> = (0..=random.below(5))
            .map(|_| Term::random(&mut random))
            .collect();
        let loaded = [load(&write_blocks(&terms)), load(&write_commands(&terms))];
        for _ in 0..60 {
            let packet = Packet {
                addresses: [address(&mut random), address(&mut random)],
                ports: [number(&mut random), number(&mut random)],
                protocol: u8::try_from(number(&mut random)).unwrap(),
                icmp_type: u8::try_from(number(&mut random)).unwrap(),
                flags: random.pick(&[0, 1, 2, 0x10, 0x12, 4, 0x14, 0x19]),
                fragment: random.pick(&["whole", "first", "later"]),
            };
            let header = format!(
                "list=f src={} dst={} proto={} sport={} dport={} icmp_type={} tcp_flags={} fragment={}",
                packet.addresses[0],
                packet.addresses[1],
                packet.protocol,
                packet.ports[0],
                packet.ports[1],
                packet.icmp_type,
                packet.flags,
                packet.fragment
            );
            let selects = |term: &Term| term.conditions.iter().all(|c| c.holds(&packet));
            let decision = terms.iter().enumerate().find_map(|(number, term)| {
                Some((
                    term.action().filter(|_| selects(term))?,
                    format!("term t{number} "),
                ))
            });
            decided_by_term += usize::from(decision.is_some());
            for loaded in &loaded {
                let (action, source) = loaded.decide(&header);
                match &decision {
                    Some((expected, name)) => {
                        assert_eq!(action, *expected, "{header} {terms:#?}");
                        assert!(
                            format!("{} ", source.text).starts_with(name),
                            "{}",
                            source.text
                        );
                    }
                    None => assert_eq!((action, source.is_implied), ("deny", true), "{header}"),
                }
            }
        }
    }
    assert!(decided_by_term > 5000, "{decided_by_term}");
}

/// A book of addresses: networks, and sets of names.
#[derive(Debug)]
struct Book {
    networks: Vec<Entry>,
    /// The members: numbers of networks, and after them of earlier sets.
    sets: Vec<Vec<usize>>,
}

impl Book {
    fn random(random: &mut Random) -> Book {
        let network = |random: &mut Random| {
            let length = random.pick(&[8, 16, 24, 32]);
            let mask = u32::MAX << (32 - length);
            (
                Ipv4Addr::from_bits(address(random).to_bits() & mask),
                length,
                false,
            )
        };
        let networks: Vec<Entry> = (0..4).map(|_| network(random)).collect();
        let mut sets = Vec::new();
        for number in 0..4 {
            let members = (0..=random.below(3)).map(|_| random.below(4 + number));
            sets.push(members.collect());
        }
        Book { networks, sets }
    }

    fn has(&self, member: usize, address: Ipv4Addr) -> bool {
        match self.networks.get(member) {
            Some(network) => in_network(network, address),
            None => {
                let members = &self.sets[member - self.networks.len()];
                members.iter().any(|member| self.has(*member, address))
            }
        }
    }

    fn write(&self, name: &str, text: &mut String) {
        let start = format!("set security address-book {name}");
        for (number, (network, length, _)) in self.networks.iter().enumerate() {
            let _ = writeln!(text, "{start} address m{number} {network}/{length}");
        }
        for (number, members) in self.sets.iter().enumerate() {
            for member in members {
                let kind = if *member < 4 {
                    "address"
                } else {
                    "address-set"
                };
                let _ = writeln!(text, "{start} address-set m{} {kind} m{member}", number + 4);
            }
        }
    }
}

#[derive(Debug)]
struct Policy {
    /// `None` for a global policy.
    zones: Option<[&'static str; 2]>,
    /// Members of the book for source and destination; none is `any`.
    members: [Vec<usize>; 2],
    is_excluded: [bool; 2],
    applications: Vec<&'static str>,
    action: &'static str,
}

fn in_application(name: &str, protocol: u8, port: u16) -> bool {
    match name {
        "any" => true,
        "junos-ssh" => protocol == 6 && port == 22,
        "junos-dns-udp" => protocol == 17 && port == 53,
        "own" => protocol == 17 && (50..60).contains(&port) || protocol == 1,
        "junos-cifs" => protocol == 6 && (port == 139 || port == 445),
        other => panic!("{other}"),
    }
}

impl Policy {
    fn random(random: &mut Random) -> Policy {
        let zones = [random.pick(&["a", "b"]), random.pick(&["a", "b"])];
        let names = ["any", "junos-ssh", "junos-dns-udp", "own", "junos-cifs"];
        let count = 1 + random.below(2);
        let mut members = || {
            (0..random.below(3))
                .map(|_| random.below(8))
                .collect::<Vec<_>>()
        };
        let members = [members(), members()];
        let mut is_excluded = [random.once_in(4), random.once_in(4)];
        for (is_excluded, members) in is_excluded.iter_mut().zip(&members) {
            *is_excluded &= !members.is_empty();
        }
        Policy {
            zones: (!random.once_in(4)).then_some(zones),
            members,
            is_excluded,
            applications: (0..count).map(|_| random.pick(&names)).collect(),
            action: random.pick(&["permit", "deny", "reject"]),
        }
    }

    fn write(&self, number: usize, text: &mut String) {
        let start = match self.zones {
            Some([from, to]) => {
                format!("set security policies from-zone {from} to-zone {to} policy p{number}")
            }
            None => format!("set security policies global policy p{number}"),
        };
        let keywords = ["source-address", "destination-address"]
            .iter()
            .zip(&self.members);
        for ((keyword, members), is_excluded) in keywords.zip(self.is_excluded) {
            if members.is_empty() {
                let _ = writeln!(text, "{start} match {keyword} any");
            }
            for member in members {
                let _ = writeln!(text, "{start} match {keyword} m{member}");
            }
            if is_excluded {
                let _ = writeln!(text, "{start} match {keyword}-excluded");
            }
        }
        let _ = writeln!(
            text,
            "{start} match application [ {} ]",
            self.applications.join(" ")
        );
        let _ = writeln!(text, "{start} then {}", self.action);
    }

    fn selects(&self, books: &[Book; 2], zones: [&str; 2], packet: &Packet) -> bool {
        let in_zones = self.zones.is_none_or(|own| own == zones);
        // The first book is attached to the zone `a`; the second one is global.
        let in_addresses = |end: usize| {
            let is_attached = self.zones.is_some_and(|own| own[end] == "a");
            let book = &books[usize::from(!is_attached)];
            let mut members = self.members[end].iter();
            self.members[end].is_empty()
                || members.any(|member| book.has(*member, packet.addresses[end]))
                    != self.is_excluded[end]
        };
        let mut applications = self.applications.iter();
        in_zones
            && in_addresses(0)
            && in_addresses(1)
            && applications.any(|name| in_application(name, packet.protocol, packet.ports[1]))
    }
}

#[test]
fn random_policies_decide_as_their_statements_say() {
    let mut random = Random::new(12);
    let mut decided = 0;
    for _ in 0..200 {
        let books = [Book::random(&mut random), Book::random(&mut random)];
        let policies: Vec<Policy> = (0..6).map(|_| Policy::random(&mut random)).collect();
        let mut text = String::from(
            "set security address-book local attach zone a\n\
             set applications application own term x protocol udp destination-port 50-59\n\
             set applications application own term y protocol icmp\n",
        );
        books[0].write("local", &mut text);
        books[1].write("global", &mut text);
        for (number, policy) in policies.iter().enumerate() {
            policy.write(number, &mut text);
        }
        let loaded = load(&text);
        for _ in 0..60 {
            let packet = Packet {
                addresses: [address(&mut random), address(&mut random)],
                ports: [1, random.pick(&[22, 53, 139, 445, 80])],
                protocol: random.pick(&[1, 6, 17]),
                icmp_type: 0,
                flags: 0,
                fragment: "whole",
            };
            let zones = [random.pick(&["a", "b", "c"]), random.pick(&["a", "b"])];
            let [source, destination] = packet.addresses;
            let header = format!(
                "list=policies in={} out={} src={source} dst={destination} proto={} dport={}",
                zones[0], zones[1], packet.protocol, packet.ports[1]
            );
            let mut ordered = policies.iter().enumerate().collect::<Vec<_>>();
            ordered.sort_by_key(|(_, policy)| policy.zones.is_none());
            let mut ordered = ordered.into_iter();
            let decision = ordered.find(|(_, policy)| policy.selects(&books, zones, &packet));
            let (action, source) = loaded.decide(&header);
            match decision {
                Some((number, policy)) => {
                    decided += 1;
                    assert_eq!(action, policy.action, "{header}\n{text}");
                    let name = format!("policy p{number} ");
                    assert!(source.text.starts_with(&name), "{header}\n{text}");
                }
                None => assert_eq!(
                    (action, source.is_implied),
                    ("deny", true),
                    "{header}\n{text}"
                ),
            }
        }
    }
    assert!(decided > 2000, "{decided}");
}
