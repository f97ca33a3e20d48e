//! Random files: the policy and the interpreter decide packets equally.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::interpreter::{Action, Element, Match, Network, Packet, Rule, Ruleset, Set, SetType};
use super::support::{Random, firewall, try_read};
use classyard::policy::PartId;
use classyard_workload::diagnostic::ReadOptions;

/// The number of random files.
const FILES: u64 = 400;

/// The maximum number of random files that need too many matches.
const MAX_LARGE_FILES: usize = 40;

/// The number of files whose chains have many returns, and the maximum number of them that
/// need too many matches.
const RETURNING_FILES: u64 = 100;
const MAX_LARGE_RETURNING_FILES: usize = 20;

/// The maximum number of matches of a file.
const MAX_RULES: usize = 1 << 15;

/// The number of packets of each file.
const PACKETS: usize = 150;

const INTERFACES: [&str; 4] = ["eth0", "eth1", "lo", "e"];
const PORTS: [u16; 7] = [0, 1, 2, 3, 80, 443, 65535];
const PROTOCOLS: [(u8, &str); 6] = [
    (6, "tcp"),
    (17, "udp"),
    (1, "icmp"),
    (47, "gre"),
    (132, "sctp"),
    (6, "TCP"),
];
const STATES: [&str; 5] = ["NEW", "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED"];
const CONDITIONS: [&str; 3] = [
    "-m mac --mac-source 02:00:00:00:00:01",
    "-m pkttype --pkt-type multicast",
    "-m mark --mark 0x7",
];
const VERDICTS: [(&str, &str); 5] = [
    ("ACCEPT", "permit"),
    ("DROP", "deny"),
    ("REJECT --reject-with RESET", "reject"),
    ("NFQUEUE --queue-num 3", "nfqueue queue-num 3"),
    ("QUEUE", "queue"),
];

/// Writes a random file, and the same rules for the interpreter.
pub(crate) struct Generator {
    random: Random,
    pub(crate) is_ipv6: bool,
    text: String,
    line: u32,
    pub(crate) rules: Ruleset,
    limits: usize,
    /// True if most rules of user chains return, and some go to other chains.
    is_returning: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let mut random = Random(seed);
        let is_ipv6 = random.once_in(3);
        Generator {
            random,
            is_ipv6,
            text: String::new(),
            line: 1,
            rules: Ruleset::default(),
            limits: 0,
            is_returning: false,
        }
    }

    /// Returns a generator whose chains have many returns.
    fn of_returns(seed: u64) -> Generator {
        Generator {
            is_returning: true,
            ..Generator::new(seed)
        }
    }

    fn write(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.line += 1;
    }

    fn base(&self) -> u128 {
        match self.is_ipv6 {
            true => 0x2001_0db8 << 96,
            false => 0x0a00_0000,
        }
    }

    fn address(&mut self) -> u128 {
        let offset = match self.random.once_in(8) {
            true => 0x0100_0000,
            false => self.random.below(20),
        };
        self.base() + offset as u128
    }

    fn network(&mut self) -> Network {
        let free = self.random.pick(&[0, 0, 1, 2, 3, 4, 24]);
        (self.address() >> free << free, free)
    }

    fn address_text(&self, address: u128) -> String {
        match self.is_ipv6 {
            true => Ipv6Addr::from_bits(address).to_string(),
            false => Ipv4Addr::from_bits(u32::try_from(address).unwrap()).to_string(),
        }
    }

    fn network_text(&self, (base, free): Network) -> String {
        let width = if self.is_ipv6 { 128 } else { 32 };
        format!("{}/{}", self.address_text(base), width - free)
    }

    /// Writes a set.
    fn set(&mut self) {
        use SetType::{Ip, IpPort, List, Net, NetIface, NetNet, NetPort, Port};
        let number = self.rules.sets.len();
        let (kind, name) = self.random.pick(&[
            (Ip, "hash:ip"),
            (Net, "hash:net"),
            (Net, "hash:net"),
            (IpPort, "hash:ip,port"),
            (NetPort, "hash:net,port"),
            (NetNet, "hash:net,net"),
            (NetIface, "hash:net,iface"),
            (Port, "bitmap:port"),
            (List, "list:set"),
        ]);
        let family = if self.is_ipv6 { "inet6" } else { "inet" };
        let options = match kind {
            Port => "range 0-65535".to_owned(),
            List => "size 8".to_owned(),
            _ => format!("family {family} hashsize 1024 maxelem 65536"),
        };
        self.write(&format!("create s{number} {name} {options}"));
        let mut set = Set {
            kind,
            elements: Vec::new(),
            members: Vec::new(),
        };
        let mut texts = HashSet::new();
        for _ in 0..self.random.below(6) {
            if kind == List {
                let plain: Vec<usize> = (0..number)
                    .filter(|&other| self.rules.sets[other].kind != List)
                    .collect();
                if !plain.is_empty() {
                    let member = self.random.pick(&plain);
                    if texts.insert(member.to_string()) {
                        self.write(&format!("add s{number} s{member}"));
                        set.members.push(member);
                    }
                }
                continue;
            }
            let (text, mut element) = self.element(kind);
            if texts.insert(text.clone()) {
                let can_exclude = matches!(kind, Net | NetPort | NetNet | NetIface);
                element.is_nomatch = can_exclude && self.random.once_in(3);
                let nomatch = if element.is_nomatch { " nomatch" } else { "" };
                self.write(&format!("add s{number} {text}{nomatch}"));
                set.elements.push(element);
            }
        }
        self.rules.sets.push(set);
    }

    /// Returns an element of a set with its text.
    fn element(&mut self, kind: SetType) -> (String, Element) {
        let mut element = Element {
            networks: Vec::new(),
            port: None,
            interface: None,
            is_nomatch: false,
        };
        let first = match kind {
            SetType::Ip | SetType::IpPort => (self.address(), 0),
            _ => self.network(),
        };
        let port = self.random.pick(&PORTS);
        if kind == SetType::Port {
            element.port = Some((0, port));
            return (port.to_string(), element);
        }
        element.networks.push(first);
        let mut text = match kind {
            SetType::Ip | SetType::IpPort => self.address_text(first.0),
            _ => self.network_text(first),
        };
        match kind {
            SetType::IpPort | SetType::NetPort => {
                let protocols = [(6, "tcp"), (17, "udp"), (132, "sctp"), (47, "gre")];
                let (protocol, name) = self.random.pick(&protocols);
                let port = if protocol == 47 { 0 } else { port };
                element.port = Some((protocol, port));
                write!(text, ",{name}:{port}").unwrap();
            }
            SetType::NetNet => {
                let second = self.network();
                element.networks.push(second);
                write!(text, ",{}", self.network_text(second)).unwrap();
            }
            SetType::NetIface => {
                let interface = self.random.pick(&INTERFACES);
                element.interface = Some(interface);
                write!(text, ",{interface}").unwrap();
            }
            _ => {}
        }
        (text, element)
    }

    /// Returns an option that needs no match.
    fn common_condition(&mut self) -> Option<(String, Match)> {
        let interface = self.random.pick(&INTERFACES);
        let is_start = self.random.once_in(3);
        let plus = if is_start { "+" } else { "" };
        Some(match self.random.below(5) {
            0 => {
                let network = self.network();
                (
                    format!("-s {}", self.network_text(network)),
                    Match::Source(network),
                )
            }
            1 => {
                let network = self.network();
                (
                    format!("-d {}", self.network_text(network)),
                    Match::Destination(network),
                )
            }
            2 => (
                format!("-i {interface}{plus}"),
                Match::Input(interface, is_start),
            ),
            3 => (
                format!("-o {interface}{plus}"),
                Match::Output(interface, is_start),
            ),
            4 if !self.is_ipv6 => ("-f".to_owned(), Match::Fragment),
            _ => return None,
        })
    }

    /// Returns a condition of a rule and its text without `!`.
    fn condition(&mut self, protocol: Option<u8>) -> Option<(String, Match)> {
        Some(match self.random.below(11) {
            0..=4 => return self.common_condition(),
            5 => {
                let states: Vec<u8> = (0..5).filter(|_| self.random.once_in(2)).collect();
                let names = states.iter().map(|&state| STATES[usize::from(state)]);
                let names: Vec<&str> = names.collect();
                if names.is_empty() {
                    return None;
                }
                (
                    format!("-m conntrack --ctstate {}", names.join(",")),
                    Match::States(states),
                )
            }
            6 => {
                let (a, b) = (self.address(), self.address());
                let [low, high] = [a.min(b), a.max(b)].map(|address| self.address_text(address));
                (
                    format!("-m iprange --src-range {low}-{high}"),
                    Match::SourceRange(a.min(b), a.max(b)),
                )
            }
            7 | 8 if !self.rules.sets.is_empty() => {
                let set = self.random.below(self.rules.sets.len());
                let sides: Vec<bool> = (0..2).map(|_| self.random.once_in(2)).collect();
                let names = sides.iter().map(|&side| if side { "src" } else { "dst" });
                let names: Vec<&str> = names.collect();
                (
                    format!("-m set --match-set s{set} {}", names.join(",")),
                    Match::Set(set, sides),
                )
            }
            9 => {
                let text = self.random.pick(&CONDITIONS);
                (text.to_owned(), Match::Condition(text.to_owned()))
            }
            10 if self.limits < 20 => {
                self.limits += 1;
                let text = format!("-m limit --limit {}/min", self.limits);
                let name = format!("{text} (number 1)");
                (text, Match::Condition(name))
            }
            _ => return self.protocol_condition(protocol?),
        })
    }

    /// Returns a condition that needs a protocol's header.
    fn protocol_condition(&mut self, protocol: u8) -> Option<(String, Match)> {
        let mut range = || {
            let (a, b) = (self.random.pick(&PORTS), self.random.pick(&PORTS));
            (a.min(b), a.max(b))
        };
        let (low, high) = range();
        let ranges = vec![range(), range()];
        Some(match (protocol, self.random.below(4)) {
            (1, _) if !self.is_ipv6 => {
                let kind = u8::try_from(self.random.below(3)).unwrap();
                let code = self.random.once_in(2).then_some(1);
                let code_text = code.map_or(String::new(), |code| format!("/{code}"));
                (
                    format!("-m icmp --icmp-type {kind}{code_text}"),
                    Match::Icmp(kind, code),
                )
            }
            (6, 0) => {
                let mask = u8::try_from(self.random.below(64)).unwrap();
                let set = mask & u8::try_from(self.random.below(64)).unwrap();
                let text = format!("-m tcp --tcp-flags {} {}", flags(mask), flags(set));
                (text, Match::Flags(mask, set))
            }
            (6 | 17 | 132, 1) => {
                let texts = ranges.iter().map(|(low, high)| match low == high {
                    true => low.to_string(),
                    false => format!("{low}:{high}"),
                });
                let texts: Vec<String> = texts.collect();
                let (option, sources, destinations) = self.random.pick(&[
                    ("--sports", true, false),
                    ("--dports", false, true),
                    ("--ports", true, true),
                ]);
                (
                    format!("-m multiport {option} {}", texts.join(",")),
                    Match::Multiport(sources, destinations, ranges),
                )
            }
            (6 | 17 | 132, side) => {
                let module = match protocol {
                    6 => "tcp",
                    17 => "udp",
                    _ => "sctp",
                };
                match side == 2 {
                    true => (
                        format!("-m {module} --sport {low}:{high}"),
                        Match::SourcePort(low, high),
                    ),
                    false => (
                        format!("-m {module} --dport {low}:{high}"),
                        Match::DestinationPort(low, high),
                    ),
                }
            }
            _ => return None,
        })
    }

    /// Writes a rule of a chain, which may jump to chains with higher numbers.
    fn rule(&mut self, chain: usize, chains: usize) {
        let name = chain_name(chain);
        let mut text = format!("[{}:0] -A {name}", self.line);
        let mut matches = Vec::new();
        let mut protocol = None;
        if self.random.once_in(2) {
            let (number, name) = self.random.pick(&PROTOCOLS);
            let is_negated = self.random.once_in(5);
            let negation = if is_negated { "! " } else { "" };
            write!(text, " {negation}-p {name}").unwrap();
            matches.push((Match::Protocol(number), is_negated));
            protocol = (!is_negated).then_some(number);
        }
        let mut options = HashSet::new();
        for _ in 0..self.random.below(4) {
            let Some((option, condition)) = self.condition(protocol) else {
                continue;
            };
            let words: Vec<&str> = option.split(' ').collect();
            let is_common = words[0] != "-m";
            let key = if is_common { words[0] } else { words[1] };
            if !options.insert(key.to_owned()) {
                continue;
            }
            let can_be_negated = !matches!(condition, Match::Condition(_));
            // Each negated name needs 128 matches.
            let rarity = match condition {
                Match::Input(..) | Match::Output(..) => 16,
                _ => 4,
            };
            let is_negated = can_be_negated && self.random.once_in(rarity);
            match (is_negated, is_common) {
                (false, _) => write!(text, " {option}").unwrap(),
                (true, true) => write!(text, " ! {option}").unwrap(),
                (true, false) => {
                    write!(
                        text,
                        " {} {} ! {}",
                        words[0],
                        words[1],
                        words[2..].join(" ")
                    )
                    .unwrap();
                }
            }
            matches.push((condition, is_negated));
        }
        let action = self.action(chain, chains, &mut text);
        let line = self.line;
        self.rules.chains[chain].push(Rule {
            line,
            matches,
            action,
        });
        self.write(&text);
    }

    /// Writes a target.
    fn action(&mut self, chain: usize, chains: usize, text: &mut String) -> Action {
        let target = chain + 1 + self.random.below(chains);
        let choice = match self.is_returning && chain > 0 && !self.random.once_in(4) {
            true => 3,
            false => self.random.below(9),
        };
        match choice {
            0 | 1 if target < chains => {
                write!(text, " -j {}", chain_name(target)).unwrap();
                Action::Jump(target)
            }
            2 if target < chains => {
                write!(text, " -g {}", chain_name(target)).unwrap();
                Action::Goto(target)
            }
            3 => {
                text.push_str(" -j RETURN");
                Action::Return
            }
            4 => {
                text.push_str(" -j LOG --log-prefix \"a -j DROP\"");
                Action::Continue
            }
            5 => Action::Continue,
            _ => {
                let (target, action) = self.random.pick(&VERDICTS);
                let reset = match self.is_ipv6 {
                    true => "icmp6-port-unreachable",
                    false => "icmp-port-unreachable",
                };
                write!(text, " -j {}", target.replace("RESET", reset)).unwrap();
                Action::Verdict(action)
            }
        }
    }

    /// Writes a file and returns it.
    pub(crate) fn file(&mut self) -> String {
        for _ in 0..self.random.below(5) {
            self.set();
        }
        let program = if self.is_ipv6 {
            "ip6tables"
        } else {
            "iptables"
        };
        self.write(&format!("# Generated by {program}-save v1.8.9 on Mon"));
        self.write("*filter");
        self.rules.policy_line = self.line;
        let (policy, action) = self.random.pick(&[("ACCEPT", "permit"), ("DROP", "deny")]);
        self.rules.policy = action;
        self.write(&format!(":FORWARD {policy} [0:0]"));
        let (chains, rules) = match self.is_returning {
            true => (2 + self.random.below(3), 60),
            false => (1 + self.random.below(5), self.random.below(25)),
        };
        self.rules.chains = vec![Vec::new(); chains];
        for chain in 1..chains {
            self.write(&format!(":{} - [0:0]", chain_name(chain)));
        }
        for _ in 0..rules {
            let chain = self.random.below(chains);
            self.rule(chain, chains);
        }
        self.write("COMMIT");
        self.text.clone()
    }

    /// Returns a random packet.
    pub(crate) fn packet(&mut self) -> Packet {
        let (protocol, _) = self.random.pick(&PROTOCOLS);
        let byte = |random: &mut Random, limit: usize| u8::try_from(random.below(limit)).unwrap();
        let mut conditions: Vec<String> = CONDITIONS.map(str::to_owned).to_vec();
        conditions
            .extend((1..=self.limits).map(|n| format!("-m limit --limit {n}/min (number 1)")));
        conditions.retain(|_| self.random.once_in(2));
        Packet {
            source: self.address(),
            destination: self.address(),
            source_port: self.random.pick(&PORTS),
            destination_port: self.random.pick(&PORTS),
            protocol,
            icmp: (byte(&mut self.random, 3), byte(&mut self.random, 3)),
            flags: byte(&mut self.random, 256),
            fragment: match self.random.once_in(4) {
                true => byte(&mut self.random, 4),
                false => 0,
            },
            state: byte(&mut self.random, 8),
            input: self.random.pick(&INTERFACES),
            output: self.random.pick(&INTERFACES),
            conditions,
        }
    }
}

fn chain_name(chain: usize) -> String {
    match chain {
        0 => "FORWARD".to_owned(),
        _ => format!("chain-{chain}"),
    }
}

fn flags(bits: u8) -> String {
    let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];
    let set = names
        .iter()
        .zip(0..)
        .filter(|(_, bit)| bits >> bit & 1 == 1);
    let set: Vec<&str> = set.map(|(name, _)| *name).collect();
    match set.is_empty() {
        true => "NONE".to_owned(),
        false => set.join(","),
    }
}

/// Returns a name as a value of a field: its bytes, with zero bytes after them.
fn text_value(name: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    u128::from_be_bytes(bytes)
}

/// Returns the part and the values of a packet's header.
pub(crate) fn header(packet: &Packet, is_ipv6: bool, condition_bits: u128) -> (PartId, Vec<u128>) {
    let part = PartId::from_index(usize::from(is_ipv6));
    let values = vec![
        packet.source,
        packet.destination,
        packet.source_port.into(),
        packet.destination_port.into(),
        packet.protocol.into(),
        packet.icmp.0.into(),
        packet.icmp.1.into(),
        packet.flags.into(),
        packet.fragment.into(),
        packet.state.into(),
        text_value(packet.input),
        text_value(packet.output),
        text_value("FORWARD"),
        condition_bits,
    ];
    (part, values)
}

#[test]
fn random_files_decide_as_the_interpreter_does() {
    let (lines, large_files) = compare((0..FILES).map(Generator::new));
    assert!(lines > 1000, "{lines}");
    assert!(large_files <= MAX_LARGE_FILES, "{large_files}");
}

/// Chains with many returns on different fields, which leave packets that need many boxes.
#[test]
fn files_with_many_returns_decide_as_the_interpreter_does() {
    let (lines, large_files) = compare((0..RETURNING_FILES).map(Generator::of_returns));
    assert!(lines > 300, "{lines}");
    assert!(large_files <= MAX_LARGE_RETURNING_FILES, "{large_files}");
}

/// Compares the decisions about random packets with the interpreter's. Returns the number of
/// statements that decide a packet, and the number of files that need too many matches.
fn compare(generators: impl Iterator<Item = Generator>) -> (usize, usize) {
    let mut deciding_lines = HashSet::new();
    let mut large_files = 0;
    for (seed, mut generator) in generators.enumerate() {
        let text = generator.file();
        let options = ReadOptions::DEFAULT.with_limit(MAX_RULES);
        let firewall = match try_read(&text, &options) {
            Ok(firewall) => firewall,
            Err(error) => {
                let message = error.to_string();
                let is_large = message.lines().all(|line| line.contains("more than"));
                assert!(is_large, "{message}\n{text}");
                large_files += 1;
                continue;
            }
        };
        let packets: Vec<Packet> = (0..PACKETS).map(|_| generator.packet()).collect();
        let texts = firewall.conditions.texts();
        let bits = |packet: &Packet| {
            let holds = |text: &String| packet.conditions.contains(text);
            let bits = texts.iter().zip(0..).filter(|(text, _)| holds(text));
            bits.fold(0, |bits, (_, bit)| bits | 1 << bit)
        };
        let to_header = |packet: &Packet| header(packet, generator.is_ipv6, bits(packet));
        let headers: Vec<_> = packets.iter().map(to_header).collect();
        for (packet, decision) in packets.iter().zip(firewall.decisions(&headers)) {
            let expected = generator.rules.decide(packet);
            let (action, source) = decision.unwrap();
            assert_eq!(
                (action, source.line),
                expected,
                "seed {seed}\n{text}{packet:?}"
            );
            deciding_lines.insert((seed, source.line));
        }
    }
    (deciding_lines.len(), large_files)
}

#[test]
fn random_files_keep_counters() {
    for seed in 0..20 {
        let mut generator = Generator::new(seed);
        let firewall = firewall(&generator.file());
        for rule in generator.rules.chains.iter().flatten() {
            assert_eq!(firewall.source_at(rule.line).hits, Some(rule.line.into()));
        }
    }
}
