//! An interpreter of rules in the terms of iptables, for comparison with the reader.
//!
//! It walks chains packet by packet with a stack of calls, and searches sets element by
//! element. It shares no code with the reader.

/// A packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) protocol: u8,
    pub(crate) icmp: (u8, u8),
    pub(crate) flags: u8,
    pub(crate) fragment: u8,
    pub(crate) state: u8,
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
    /// The texts of the conditions that hold.
    pub(crate) conditions: Vec<String>,
}

/// A network: an address and its number of free bits.
pub(crate) type Network = (u128, u32);

fn network_has((base, free): Network, address: u128) -> bool {
    base.checked_shr(free).unwrap_or(0) == address.checked_shr(free).unwrap_or(0)
}

/// An element of a set. Parts that its type does not have are empty.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) networks: Vec<Network>,
    /// A protocol and its port.
    pub(crate) port: Option<(u8, u16)>,
    pub(crate) interface: Option<&'static str>,
    pub(crate) is_nomatch: bool,
}

/// The type of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetType {
    Ip,
    Net,
    IpPort,
    NetPort,
    NetNet,
    NetIface,
    Port,
    List,
}

#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) kind: SetType,
    pub(crate) elements: Vec<Element>,
    pub(crate) members: Vec<usize>,
}

/// A condition of a rule, to be negated if the second value of its entry is true.
#[derive(Clone, Debug)]
pub(crate) enum Match {
    Source(Network),
    Destination(Network),
    /// A name, or the start of names.
    Input(&'static str, bool),
    Output(&'static str, bool),
    Protocol(u8),
    Fragment,
    /// Needs the header of the rule's protocol.
    SourcePort(u16, u16),
    DestinationPort(u16, u16),
    /// For sources, destinations or both.
    Multiport(bool, bool, Vec<(u16, u16)>),
    Flags(u8, u8),
    Icmp(u8, Option<u8>),
    States(Vec<u8>),
    SourceRange(u128, u128),
    /// A set, and for each of its fields true if it is of the source.
    Set(usize, Vec<bool>),
    Condition(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Verdict(&'static str),
    Jump(usize),
    Goto(usize),
    Return,
    Continue,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) line: u32,
    pub(crate) matches: Vec<(Match, bool)>,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ruleset {
    pub(crate) sets: Vec<Set>,
    /// The first chain is built in.
    pub(crate) chains: Vec<Vec<Rule>>,
    pub(crate) policy: &'static str,
    pub(crate) policy_line: u32,
}

impl Ruleset {
    /// Returns the action for a packet, and the line that decides. If a rule of the built-in
    /// chain returns or goes to a chain that returns, the line is the rule's.
    pub(crate) fn decide(&self, packet: &Packet) -> (&'static str, u32) {
        // Calls: a chain, the next rule in it, and the line of the goto that left it.
        let mut calls: Vec<(usize, usize, Option<u32>)> = vec![(0, 0, None)];
        let mut last_line = None;
        while let Some((chain, next, _)) = calls.last_mut() {
            let is_first = *chain == 0;
            let Some(rule) = self.chains[*chain].get(*next) else {
                last_line = calls.pop().and_then(|call| call.2);
                continue;
            };
            *next += 1;
            if !self.matches(rule, packet) {
                continue;
            }
            match rule.action {
                Action::Verdict(action) => return (action, rule.line),
                Action::Continue => {}
                Action::Jump(target) => calls.push((target, 0, None)),
                Action::Goto(target) => {
                    let (_, _, line) = calls.pop().unwrap();
                    calls.push((target, 0, if is_first { Some(rule.line) } else { line }));
                }
                Action::Return => {
                    last_line = calls.pop().and_then(|call| call.2);
                    if is_first {
                        last_line = Some(rule.line);
                    }
                }
            }
        }
        (self.policy, last_line.unwrap_or(self.policy_line))
    }

    fn matches(&self, rule: &Rule, packet: &Packet) -> bool {
        let mut matches = rule.matches.iter();
        matches.all(|(condition, is_negated)| {
            let needs_header = matches!(
                condition,
                Match::SourcePort(..)
                    | Match::DestinationPort(..)
                    | Match::Multiport(..)
                    | Match::Flags(..)
                    | Match::Icmp(..)
            );
            if needs_header && packet.fragment >= 2 {
                return false;
            }
            self.holds(condition, packet) != *is_negated
        })
    }

    fn holds(&self, condition: &Match, packet: &Packet) -> bool {
        let named = |name: &str, is_start: bool, interface: &str| match is_start {
            true => interface.starts_with(name),
            false => interface == name,
        };
        match condition {
            Match::Source(network) => network_has(*network, packet.source),
            Match::Destination(network) => network_has(*network, packet.destination),
            Match::Input(name, is_start) => named(name, *is_start, packet.input),
            Match::Output(name, is_start) => named(name, *is_start, packet.output),
            Match::Protocol(protocol) => packet.protocol == *protocol,
            Match::Fragment => packet.fragment >= 2,
            Match::SourcePort(low, high) => (low..=high).contains(&&packet.source_port),
            Match::DestinationPort(low, high) => (low..=high).contains(&&packet.destination_port),
            Match::Multiport(sources, destinations, ranges) => {
                let mut ranges = ranges.iter();
                ranges.any(|(low, high)| {
                    let is_in = |port| (*low..=*high).contains(&port);
                    (*sources && is_in(packet.source_port))
                        || (*destinations && is_in(packet.destination_port))
                })
            }
            Match::Flags(mask, set) => packet.flags & mask == *set,
            Match::Icmp(kind, code) => {
                packet.icmp.0 == *kind && code.is_none_or(|code| packet.icmp.1 == code)
            }
            Match::States(states) => states.contains(&packet.state.min(4)),
            Match::SourceRange(low, high) => (*low..=*high).contains(&packet.source),
            Match::Set(set, sides) => self.set_has(*set, sides, packet),
            Match::Condition(text) => packet.conditions.contains(text),
        }
    }

    fn set_has(&self, set: usize, sides: &[bool], packet: &Packet) -> bool {
        let set = &self.sets[set];
        if set.kind == SetType::List {
            let mut members = set.members.iter();
            return members.any(|member| self.set_has(*member, sides, packet));
        }
        let fields = match set.kind {
            SetType::Ip | SetType::Net | SetType::Port => 1,
            _ => 2,
        };
        if sides.len() < fields {
            return false;
        }
        let matching = set.elements.iter().filter(|element| {
            let mut networks = element.networks.iter().zip(sides);
            let second = sides.get(fields - 1).copied().unwrap_or_default();
            networks.all(|(network, is_source)| {
                let address = if *is_source {
                    packet.source
                } else {
                    packet.destination
                };
                network_has(*network, address)
            }) && element
                .port
                .is_none_or(|port| has_port(packet, port, second))
                && element
                    .interface
                    .is_none_or(|name| name == if second { packet.input } else { packet.output })
        });
        let sizes = |element: &&Element| -> Vec<u32> {
            element.networks.iter().map(|network| network.1).collect()
        };
        matching
            .min_by_key(sizes)
            .is_some_and(|element| !element.is_nomatch)
    }
}

/// True if a packet has a protocol and its port. The protocol 0 is TCP or UDP.
fn has_port(packet: &Packet, (protocol, port): (u8, u16), is_source: bool) -> bool {
    let is_of_protocol = match protocol {
        0 => matches!(packet.protocol, 6 | 17),
        _ => packet.protocol == protocol,
    };
    let own = match is_source {
        true => packet.source_port,
        false => packet.destination_port,
    };
    match packet.protocol {
        6 | 17 | 132 => is_of_protocol && packet.fragment < 2 && own == port,
        _ => is_of_protocol,
    }
}
