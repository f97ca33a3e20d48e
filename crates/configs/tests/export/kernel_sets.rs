//! The kernel loads random sets, and `ipset save` prints sets with the same packets.

#![allow(clippy::print_stderr)] // Names the types of sets that are missing.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::policy::PartId;
use classyard_configs::{Config, ConfigFormat};

use crate::kernel::in_namespace;
use crate::support::{Random, actions, config};

/// The number of random files of each IP version, and of packets of each file.
const FILES: usize = 30;
const PACKETS: usize = 500;

/// Loads the sets before the line `END` and the rules after it, and prints both.
const LOAD: &str = "while IFS= read -r line && [ \"$line\" != END ]; do printf '%s\\n' \"$line\"; \
                    done | ipset restore -exist && PROGRAM-restore && ipset save && PROGRAM-save";

/// A part of an element of a set.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Address,
    Network,
    /// A protocol with its port or its ICMP message.
    Port,
    Interface,
    /// A port of TCP and UDP.
    PlainPort,
    /// The name of another set.
    Set,
}

/// The types of sets that the reader models, without `list:set`, which comes last.
const TYPES: [(&str, &[Part]); 11] = [
    ("hash:ip", &[Part::Address]),
    ("bitmap:ip", &[Part::Address]),
    ("hash:net", &[Part::Network]),
    ("hash:ip,port", &[Part::Address, Part::Port]),
    ("hash:net,port", &[Part::Network, Part::Port]),
    (
        "hash:ip,port,ip",
        &[Part::Address, Part::Port, Part::Address],
    ),
    (
        "hash:ip,port,net",
        &[Part::Address, Part::Port, Part::Network],
    ),
    (
        "hash:net,port,net",
        &[Part::Network, Part::Port, Part::Network],
    ),
    ("hash:net,net", &[Part::Network, Part::Network]),
    ("hash:net,iface", &[Part::Network, Part::Interface]),
    ("bitmap:port", &[Part::PlainPort]),
];

const PORTS: [u16; 6] = [0, 1, 2, 80, 443, 65535];
const INTERFACES: [&str; 3] = ["eth0", "eth1", "lo"];

/// A set with its name and the parts of its elements.
struct Set {
    name: String,
    parts: Vec<Part>,
}

struct Generator {
    random: Random,
    is_ipv6: bool,
    /// True if each element is one element of the kernel, so that the dump has the same rules.
    has_single_elements: bool,
    /// True if no set is negated and no element with several parts is excluded: the rules of
    /// such sets depend on the order of the elements.
    is_plain: bool,
    types: Vec<(&'static str, &'static [Part])>,
    text: String,
}

impl Generator {
    fn address_text(&mut self) -> String {
        let offset = u32::try_from(self.random.below(24)).unwrap();
        match self.is_ipv6 {
            true => Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(offset)).to_string(),
            false => Ipv4Addr::from_bits(0x0a00_0000 + offset).to_string(),
        }
    }

    fn network(&mut self) -> String {
        let free = self.random.below(5);
        let width = if self.is_ipv6 { 128 } else { 32 };
        if !self.has_single_elements {
            // The kernel cuts the bits outside of the prefix.
            return format!("{}/{}", self.address_text(), width - free);
        }
        let offset = u32::try_from(self.random.below(24) >> free << free).unwrap();
        let address = match self.is_ipv6 {
            true => Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(offset)).to_string(),
            false => Ipv4Addr::from_bits(0x0a00_0000 + offset).to_string(),
        };
        match free {
            0 => address,
            _ => format!("{address}/{}", width - free),
        }
    }

    /// Returns an address, or of IPv4 a range or a network of addresses.
    fn addresses(&mut self) -> String {
        if self.has_single_elements || self.is_ipv6 {
            return self.address_text();
        }
        let low = self.random.below(20);
        match self.random.below(3) {
            0 => format!("10.0.0.{low}-10.0.0.{}", low + self.random.below(4)),
            1 => format!("10.0.0.{low}/30"),
            _ => self.address_text(),
        }
    }

    fn port(&mut self) -> String {
        let port = self.random.pick(&PORTS);
        let high = match self.has_single_elements || port == 65535 {
            true => port,
            false => port + u16::try_from(self.random.below(3)).unwrap(),
        };
        let ports = match port == high {
            true => port.to_string(),
            false => format!("{port}-{high}"),
        };
        let icmp = if self.is_ipv6 { "icmpv6" } else { "icmp" };
        match self.random.below(6) {
            0 => format!("tcp:{ports}"),
            1 => format!("udp:{ports}"),
            2 => format!("sctp:{ports}"),
            3 => format!("{icmp}:echo-request"),
            4 => format!("{icmp}:3/{}", self.random.below(3)),
            _ => "gre:0".to_owned(),
        }
    }

    /// Returns a part of an element. Only the first part may be several addresses.
    fn part(&mut self, part: Part, is_first: bool, names: &[String]) -> String {
        match part {
            Part::Address if is_first => self.addresses(),
            Part::Address => self.address_text(),
            Part::Network => self.network(),
            Part::Port => self.port(),
            Part::Interface => self.random.pick(&INTERFACES).to_owned(),
            Part::PlainPort => match self.has_single_elements {
                true => self.random.pick(&PORTS).to_string(),
                false => format!("{}-65535", 65530 + self.random.below(6)),
            },
            Part::Set => names[self.random.below(names.len())].clone(),
        }
    }

    /// Writes a set.
    fn set(&mut self, name: &str, (kind, parts): (&str, &[Part]), names: &[String]) {
        let family = if self.is_ipv6 { "inet6" } else { "inet" };
        let mut options = match kind {
            "bitmap:ip" => "range 10.0.0.0/24".to_owned(),
            "bitmap:port" => "range 0-65535".to_owned(),
            "list:set" => String::new(),
            _ => format!("family {family}"),
        };
        if kind == "hash:ip" && !self.is_ipv6 && self.random.once_in(3) {
            options += " netmask 28";
        }
        for option in [" counters", " comment", " timeout 600"] {
            if self.random.once_in(4) {
                options += option;
            }
        }
        writeln!(self.text, "create {name} {kind} {options}").unwrap();
        let is_ordered = self.is_plain && parts.len() > 1;
        let can_exclude = self.has_single_elements && kind.contains("net") && !is_ordered;
        let mut elements = HashSet::new();
        for _ in 0..self.random.below(8) {
            let texts = parts.iter().enumerate();
            let texts = texts.map(|(index, part)| self.part(*part, index == 0, names));
            let texts: Vec<String> = texts.collect();
            let element = texts.join(",");
            if elements.insert(element.clone()) {
                let is_excluded = can_exclude && self.random.once_in(3);
                let nomatch = if is_excluded { " nomatch" } else { "" };
                writeln!(self.text, "add {name} {element}{nomatch}").unwrap();
            }
        }
    }

    /// Writes sets of some types, a list of sets, and rules with each of them.
    fn file(&mut self) -> String {
        let mut sets = Vec::new();
        for number in 0..4 {
            let (kind, parts) = self.random.pick(&self.types.clone());
            let is_for_ipv4 = kind == "bitmap:ip";
            if is_for_ipv4 && self.is_ipv6 {
                continue;
            }
            let name = format!("s{number}");
            self.set(&name, (kind, parts), &[]);
            let parts = parts.to_vec();
            sets.push(Set { name, parts });
        }
        let names: Vec<String> = sets.iter().map(|set| set.name.clone()).collect();
        if !names.is_empty() {
            self.set("all", ("list:set", &[Part::Set]), &names);
            let parts = vec![Part::Set; 3];
            sets.push(Set {
                name: "all".to_owned(),
                parts,
            });
        }
        self.text += "END\n";
        let program = if self.is_ipv6 {
            "ip6tables"
        } else {
            "iptables"
        };
        writeln!(self.text, "# Generated by {program}-save").unwrap();
        self.text += "*filter\n:INPUT DROP [0:0]\n";
        for set in &sets {
            let sides: Vec<&str> = (set.parts.iter().enumerate())
                .map(|(index, _)| match index {
                    0 => self.random.pick(&["src", "dst"]),
                    _ => "dst",
                })
                .collect();
            let protocol = self.random.pick(&["", " -p tcp", " -p udp"]);
            // The packets outside of many elements with several parts need too many matches.
            let max_parts = if self.has_single_elements { 2 } else { 1 };
            let can_be_negated = !self.is_plain && set.parts.len() <= max_parts;
            let is_negated = can_be_negated && self.random.once_in(2);
            let negation = if is_negated { "! " } else { "" };
            let target = self.random.pick(&["ACCEPT", "DROP"]);
            writeln!(
                self.text,
                "-A INPUT{protocol} -m set {negation}--match-set {} {} -j {target}",
                set.name,
                sides.join(",")
            )
            .unwrap();
        }
        self.text += "COMMIT\n";
        std::mem::take(&mut self.text)
    }

    /// Returns the part and the values of a random header.
    fn header(&mut self) -> (PartId, Vec<u128>) {
        let random = &mut self.random;
        let base = if self.is_ipv6 {
            0x2001_0db8 << 96
        } else {
            0x0a00_0000
        };
        let mut address = || base + random.below(33) as u128;
        let addresses = [address(), address()];
        let icmp = if self.is_ipv6 { 58 } else { 1 };
        let ports = [0, 1, 2, 3, 80, 81, 443, 445, 65531, 65535];
        let is_whole = !random.once_in(4);
        let values = vec![
            addresses[0],
            addresses[1],
            random.pick(&ports),
            random.pick(&ports),
            random.pick(&[6, 17, 132, icmp, 47]),
            random.pick(&[3, 8, 128]),
            random.below(3) as u128,
            0,
            if is_whole { 0 } else { random.below(4) as u128 },
            1,
            name_value(random.pick(&INTERFACES)),
            name_value(random.pick(&INTERFACES)),
            name_value("INPUT"),
            0,
        ];
        (PartId::from_index(usize::from(self.is_ipv6)), values)
    }
}

/// Returns a name as a value of a field: its bytes, with zero bytes after them.
fn name_value(name: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    u128::from_be_bytes(bytes)
}

/// Returns the number of the statement, the action and the match of each rule of the list
/// INPUT, sorted. The kernel keeps no order of elements, and has two more lists.
fn rules(config: &Config) -> Vec<(usize, String, String)> {
    let policy = &config.policy;
    let mut statements = Vec::new();
    let mut rules = Vec::new();
    for (position, &id) in policy.ids().iter().enumerate() {
        let source = config.source_of_rule[position];
        if statements.last() != Some(&source) {
            statements.push(source);
        }
        for (_, rule) in policy.rule(id) {
            let action = policy.action_name(rule.action()).unwrap().to_owned();
            rules.push((statements.len(), action, rule.to_string()));
        }
    }
    rules.retain(|(_, _, matches)| matches.ends_with("list=INPUT"));
    rules.sort();
    rules.dedup();
    rules
}

/// Returns the types that the kernel has. Prints the others.
fn supported_types() -> Option<Vec<(&'static str, &'static [Part])>> {
    let mut types = Vec::new();
    for (kind, parts) in TYPES {
        let options = match kind {
            "bitmap:ip" => " range 10.0.0.0/24",
            "bitmap:port" => " range 0-65535",
            _ => "",
        };
        let command = format!("ipset create probe {kind}{options} 2>/dev/null && echo yes || true");
        match in_namespace(&["ipset"], &command, "")?.as_str() {
            "yes\n" => types.push((kind, parts)),
            _ => eprintln!("SKIPPED: sets of the type {kind}, which the kernel lacks"),
        }
    }
    Some(types)
}

fn through_the_kernel(is_ipv6: bool, seed: u64) {
    let Some(types) = supported_types() else {
        return;
    };
    let mut generator = Generator {
        random: Random(seed),
        is_ipv6,
        has_single_elements: false,
        is_plain: false,
        types,
        text: String::new(),
    };
    let program = if is_ipv6 { "ip6tables" } else { "iptables" };
    let restore = format!("{program}-restore");
    let mut permitted = 0;
    for number in 0..FILES {
        generator.is_plain = number % 3 == 0;
        generator.has_single_elements = number % 3 < 2;
        let text = generator.file();
        let command = LOAD.replace("PROGRAM", program);
        let Some(printed) = in_namespace(&["ipset", &restore], &command, &text) else {
            return;
        };
        let written = config(&text.replace("END\n", ""), ConfigFormat::Iptables);
        let dumped = config(&printed, ConfigFormat::Iptables);
        if generator.is_plain {
            assert_eq!(rules(&written), rules(&dumped), "{text}\n{printed}");
        }
        let headers: Vec<_> = (0..PACKETS).map(|_| generator.header()).collect();
        let first = actions(&written.policy, &headers);
        let second = actions(&dumped.policy, &headers);
        for ((header, wanted), found) in headers.iter().zip(&first).zip(&second) {
            assert_eq!(wanted, found, "{header:?}\n{text}\n{printed}");
            permitted += usize::from(wanted == "permit");
        }
    }
    let packets = FILES * PACKETS;
    assert!((packets / 20..packets).contains(&permitted), "{permitted}");
}

#[test]
fn ipset_loads_and_prints_sets_of_ipv4() {
    through_the_kernel(false, 21);
}

#[test]
fn ipset_loads_and_prints_sets_of_ipv6() {
    through_the_kernel(true, 22);
}
