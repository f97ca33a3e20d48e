//! Groups and objects: named addresses, services, ports and ICMP messages.

use std::cell::Cell;
use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::Dialect;
use super::address::{self, Addresses, Condition, Mask};
use super::service::{self, IcmpMessage, Ports, Service};
use super::words::{Statement, Words};
use super::{MAX_REMOVALS, names};
use crate::builder::Builder;
use crate::packets::{Families, Values};

/// The maximum number of groups inside each other.
const MAX_DEPTH: usize = 32;

/// The maximum number of members that the entries of a file visit together.
const MAX_VISITS: usize = 1 << 22;

/// The content of a group. Groups of different classes may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GroupClass {
    Network,
    /// Protocols, with or without conditions on their headers.
    Service,
    Port,
    Icmp,
    /// Users and other content that no field has.
    Other,
}

/// A part of a member of a group.
#[derive(Clone, Debug)]
enum Part<'t> {
    Network(Families, Values),
    Condition(Condition<'t>),
    Service(Service),
    Ports(Ports),
    Icmp(IcmpMessage),
    Nested(&'t str),
}

/// A member of a group.
#[derive(Debug)]
struct Member<'t> {
    statement: Statement<'t>,
    parts: Vec<Part<'t>>,
}

/// A group or an object.
#[derive(Debug)]
pub(super) struct Group<'t> {
    class: GroupClass,
    /// True for an object, which has one value.
    is_object: bool,
    /// The protocols whose names of ports the group uses. Empty for any protocol.
    protocols: Vec<u8>,
    members: Vec<Member<'t>>,
    /// The line of the first member with a fault.
    fault_line: Option<usize>,
}

/// A reason why a group cannot be used.
struct GroupError {
    found: String,
    expected: &'static str,
}

impl GroupError {
    fn new(found: String, expected: &'static str) -> GroupError {
        GroupError { found, expected }
    }
}

/// The groups of a file.
#[derive(Debug)]
pub(super) struct Groups<'t> {
    dialect: Dialect,
    groups: Vec<Group<'t>>,
    index: HashMap<(GroupClass, &'t str), usize>,
    /// The addresses that the statement `name` gives names.
    names: HashMap<&'t str, &'t str>,
    visits: Cell<usize>,
    removals: usize,
}

/// The index of a group in [`Groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupId(usize);

impl<'t> Groups<'t> {
    pub(super) fn new(dialect: Dialect) -> Groups<'t> {
        Groups {
            dialect,
            groups: Vec::new(),
            index: HashMap::new(),
            names: HashMap::new(),
            visits: Cell::new(0),
            removals: 0,
        }
    }

    /// Gives an address a name.
    pub(super) fn add_name(&mut self, name: &'t str, address: &'t str) {
        self.names.insert(name, address);
    }

    /// Returns the address that has a name, or the word itself.
    pub(super) fn resolve(&self, word: &'t str) -> &'t str {
        self.names.get(word).copied().unwrap_or(word)
    }

    /// Reads the first line of a group or an object. The group may exist.
    pub(super) fn open(&mut self, statement: Statement<'t>) -> Result<GroupId, Fault<'t>> {
        let (class, name, protocols) = read_header(&mut Words::new(statement.text))?;
        let is_object = statement.text.starts_with("object ");
        let groups = &mut self.groups;
        let index = self.index.entry((class, name)).or_insert_with(|| {
            groups.push(Group {
                class,
                is_object,
                protocols,
                members: Vec::new(),
                fault_line: None,
            });
            groups.len() - 1
        });
        Ok(GroupId(*index))
    }

    /// Removes the group of a first line.
    pub(super) fn remove(&mut self, words: &mut Words<'t>) -> Result<(), Fault<'t>> {
        let (class, name, _) = read_header(words)?;
        self.index.remove(&(class, name));
        Ok(())
    }

    /// Reads a member of a group.
    pub(super) fn add_member(
        &mut self,
        id: GroupId,
        statement: Statement<'t>,
    ) -> Result<(), Fault<'t>> {
        if let Some(text) = statement.text.strip_prefix("no ") {
            return self.remove_member(id, text.trim());
        }
        let parts = self.read_member(id, statement.text);
        let group = &mut self.groups[id.0];
        match parts {
            Ok(parts) => {
                if group.is_object && !parts.is_empty() {
                    group.members.clear();
                }
                if !parts.is_empty() {
                    group.members.push(Member { statement, parts });
                }
                Ok(())
            }
            Err(fault) => {
                group.fault_line.get_or_insert(statement.number);
                Err(fault)
            }
        }
    }

    fn remove_member(&mut self, id: GroupId, text: &'t str) -> Result<(), Fault<'t>> {
        if text.starts_with("description") {
            return Ok(());
        }
        self.removals += 1;
        if self.removals > MAX_REMOVALS {
            return Err(Fault::new(
                text,
                format!("more than {MAX_REMOVALS} members are removed by `no`"),
                "the configuration after the changes",
            ));
        }
        let members = &mut self.groups[id.0].members;
        let count = members.len();
        members.retain(|member| member.statement.text != text);
        match members.len() < count {
            true => Ok(()),
            false => Err(Fault::new(
                text,
                "the group has no such member",
                "a member of the group",
            )),
        }
    }

    fn read_member(&self, id: GroupId, text: &'t str) -> Result<Vec<Part<'t>>, Fault<'t>> {
        let mut words = Words::new(text);
        let group = &self.groups[id.0];
        if group.class == GroupClass::Other || words.peek() == Some("description") {
            return Ok(Vec::new());
        }
        if self.dialect == Dialect::NxOs && words.peek().is_some_and(names::is_number) {
            words.take();
        }
        let parts = match words.peek() {
            Some("group-object" | "object-group") => {
                words.take();
                vec![Part::Nested(words.require("the name of a group")?)]
            }
            _ => match group.class {
                GroupClass::Network => self.read_networks(&mut words)?,
                GroupClass::Service => self.read_services(&mut words)?,
                GroupClass::Port => self.read_ports(&mut words, &group.protocols)?,
                GroupClass::Icmp => read_icmp(&mut words)?,
                GroupClass::Other => Vec::new(),
            },
        };
        words.require_end()?;
        Ok(parts)
    }

    fn read_networks(&self, words: &mut Words<'t>) -> Result<Vec<Part<'t>>, Fault<'t>> {
        if !words.take_word("network-object") {
            words.take_word("subnet");
        }
        let to_part = |(families, values)| Part::Network(families, values);
        let resolve = |word| self.resolve(word);
        match words.peek() {
            Some("any") => {
                words.take();
                Ok(vec![to_part((Families::BOTH, Values::bits(0, 0)))])
            }
            Some("host" | "host-info") => {
                words.take();
                let word = words.require("an address")?;
                Ok(vec![to_part(address::host(word, resolve)?)])
            }
            Some("range") => {
                words.take();
                let networks = address::range(words, resolve)?;
                Ok(networks.into_iter().map(to_part).collect())
            }
            Some("object") => {
                words.take();
                Ok(vec![Part::Nested(words.require("the name of an object")?)])
            }
            Some("nat") if self.dialect == Dialect::Asa => {
                while words.take().is_some() {}
                Ok(Vec::new())
            }
            Some("fqdn") => {
                words.take();
                let word = words.require("a domain name")?;
                let name = match word {
                    "v4" | "v6" => format!("{word} {}", words.require("a domain name")?),
                    _ => word.to_owned(),
                };
                let text = format!("fqdn {name}");
                Ok(vec![Part::Condition(Condition { text, word })])
            }
            _ => {
                self.require_plain_mask(words)?;
                let mask = match self.dialect {
                    Dialect::NxOs => Mask::Wildcard,
                    Dialect::Ios | Dialect::Xr | Dialect::Asa => Mask::Netmask,
                };
                Ok(vec![to_part(address::network(words, mask, resolve)?)])
            }
        }
    }

    /// Groups of IOS XR take an address and a mask, but its kind is not certain.
    fn require_plain_mask(&self, words: &Words<'t>) -> Result<(), Fault<'t>> {
        match words.peek_after(1) {
            Some(mask) if self.dialect == Dialect::Xr => Err(Fault::unsupported(
                mask,
                "an address with a mask in an object group of IOS XR",
                "a prefix such as `10.0.0.0/8`",
            )),
            _ => Ok(()),
        }
    }

    fn read_services(&self, words: &mut Words<'t>) -> Result<Vec<Part<'t>>, Fault<'t>> {
        let keyword = words.peek();
        if let Some("service-object" | "service" | "protocol-object") = keyword {
            words.take();
        }
        if keyword == Some("service-object") && words.take_word("object") {
            return Ok(vec![Part::Nested(words.require("the name of an object")?)]);
        }
        let services = service::read_services(words, self.dialect)?;
        Ok(services.into_iter().map(Part::Service).collect())
    }

    fn read_ports(
        &self,
        words: &mut Words<'t>,
        protocols: &[u8],
    ) -> Result<Vec<Part<'t>>, Fault<'t>> {
        words.take_word("port-object");
        let ports = service::require_ports(words, protocols, self.dialect)?;
        Ok(vec![Part::Ports(ports)])
    }

    /// True if there is a group of a class with this name.
    pub(super) fn has(&self, class: GroupClass, name: &str) -> bool {
        self.index.contains_key(&(class, name))
    }

    /// Returns the addresses of a group.
    pub(super) fn addresses(&self, name: &'t str) -> Result<Addresses<'t>, Fault<'t>> {
        let mut addresses = Addresses::default();
        self.collect(GroupClass::Network, name, &mut |part| match part {
            Part::Network(families, values) => addresses.networks.push((*families, *values)),
            Part::Condition(condition) => addresses.conditions.push(Condition {
                text: condition.text.clone(),
                word: name,
            }),
            _ => {}
        })?;
        Ok(addresses)
    }

    /// Returns the services of a group. ASA has objects for protocols and ICMP messages
    /// that no statement defines.
    pub(super) fn services(&self, name: &'t str) -> Result<Vec<Service>, Fault<'t>> {
        let is_predefined = self.dialect == Dialect::Asa && !self.has(GroupClass::Service, name);
        if let Some(service) = predefined_service(name).filter(|_| is_predefined) {
            return Ok(vec![service]);
        }
        let mut services = Vec::new();
        self.collect(GroupClass::Service, name, &mut |part| {
            if let Part::Service(service) = part {
                services.push(service.clone());
            }
        })?;
        Ok(services)
    }

    /// Returns the ports of a group.
    pub(super) fn ports(&self, name: &'t str) -> Result<Ports, Fault<'t>> {
        let mut ranges = Vec::new();
        self.collect(GroupClass::Port, name, &mut |part| {
            if let Part::Ports(ports) = part {
                ranges.extend(ports.ranges());
            }
        })?;
        Ok(Ports::new(ranges))
    }

    /// Returns the ICMP messages of a group.
    pub(super) fn icmp(&self, name: &'t str) -> Result<Vec<IcmpMessage>, Fault<'t>> {
        let mut messages = Vec::new();
        self.collect(GroupClass::Icmp, name, &mut |part| {
            if let Part::Icmp(message) = part {
                messages.push(*message);
            }
        })?;
        Ok(messages)
    }

    /// Records the networks of members with bits outside of their prefix. Hosts have no
    /// prefix, and neither have ranges.
    pub(super) fn note_host_bits(&self, builder: &mut Builder<'_>) {
        for (&(class, name), &index) in &self.index {
            if class != GroupClass::Network {
                continue;
            }
            for Member { statement, .. } in &self.groups[index].members {
                let mut words = statement.text.split_ascii_whitespace();
                if words.all(|word| word != "range") {
                    builder.member(statement.number, statement.line, statement.text, name);
                }
            }
        }
    }

    fn collect(
        &self,
        class: GroupClass,
        name: &'t str,
        sink: &mut dyn FnMut(&Part<'t>),
    ) -> Result<(), Fault<'t>> {
        let mut path = Vec::new();
        let visited = self.visit(class, name, &mut path, sink);
        visited.map_err(|error| Fault::new(name, error.found, error.expected))
    }

    fn visit(
        &self,
        class: GroupClass,
        name: &str,
        path: &mut Vec<usize>,
        sink: &mut dyn FnMut(&Part<'t>),
    ) -> Result<(), GroupError> {
        let Some(&index) = self.index.get(&(class, name)) else {
            return Err(GroupError::new(
                format!("no {} is named {}", class.noun(), quoted(name)),
                "the name of a group that the file defines",
            ));
        };
        let group = &self.groups[index];
        check_path(name, index, path)?;
        if let Some(line) = group.fault_line {
            return Err(GroupError::new(
                format!("the group {} has a fault in line {line}", quoted(name)),
                "a group without faults",
            ));
        }
        if group.members.is_empty() {
            return Err(GroupError::new(
                format!("the group {} has no members", quoted(name)),
                "a group with members",
            ));
        }
        path.push(index);
        for part in group.members.iter().flat_map(|member| &member.parts) {
            self.visits.set(self.visits.get() + 1);
            if self.visits.get() > MAX_VISITS {
                return Err(GroupError::new(
                    format!("the entries use more than {MAX_VISITS} members of groups"),
                    "a part of the configuration",
                ));
            }
            match part {
                Part::Nested(nested) => self.visit(class, nested, path, sink)?,
                _ => sink(part),
            }
        }
        path.pop();
        Ok(())
    }
}

/// Returns the service of an object that ASA defines itself: `ospf`, `icmp-echo`.
fn predefined_service(name: &str) -> Option<Service> {
    if name == "ip" {
        return Some(Service::default());
    }
    if let Some(number) = names::protocol(name).filter(|_| !names::is_number(name)) {
        return Some(Service::of_protocol(Some(number)));
    }
    let (protocol, message) = match name.split_once('-')? {
        ("icmp", message) => (names::ICMP_NUMBER, message),
        ("icmp6", message) => (names::ICMPV6_NUMBER, message),
        _ => return None,
    };
    let (number, code) = names::icmp(message, protocol)?;
    Some(Service {
        icmp: Some(vec![IcmpMessage { number, code }]),
        ..Service::of_protocol(Some(protocol))
    })
}

fn check_path(name: &str, index: usize, path: &[usize]) -> Result<(), GroupError> {
    if path.contains(&index) {
        return Err(GroupError::new(
            format!("the group {} contains itself", quoted(name)),
            "groups without loops",
        ));
    }
    if path.len() == MAX_DEPTH {
        return Err(GroupError::new(
            format!("more than {MAX_DEPTH} groups inside each other"),
            "fewer levels of groups",
        ));
    }
    Ok(())
}

impl GroupClass {
    fn noun(self) -> &'static str {
        match self {
            GroupClass::Network => "group of addresses",
            GroupClass::Service => "group of services",
            GroupClass::Port => "group of ports",
            GroupClass::Icmp => "group of ICMP messages",
            GroupClass::Other => "group",
        }
    }
}

/// Reads the first line of a group or an object: its class, its name and the protocols of
/// its ports.
fn read_header<'t>(words: &mut Words<'t>) -> Result<(GroupClass, &'t str, Vec<u8>), Fault<'t>> {
    words.take();
    let mut protocols = Vec::new();
    let kind = words.require("the kind of the group")?;
    let class = match (kind, words.peek(), words.peek_after(1)) {
        ("network", Some("ipv4" | "ipv6"), Some(_)) | ("ip" | "ipv6", Some("address"), _) => {
            words.take();
            GroupClass::Network
        }
        ("network" | "v6-network", ..) => GroupClass::Network,
        ("service", _, Some(protocol @ ("tcp" | "udp" | "tcp-udp"))) => {
            let carriers = protocol.split('-').filter_map(names::protocol);
            protocols.extend(carriers);
            GroupClass::Port
        }
        ("service" | "v6-service" | "protocol", ..) => GroupClass::Service,
        ("icmp-type", ..) => GroupClass::Icmp,
        ("ip", Some("port"), _) => {
            words.take();
            GroupClass::Port
        }
        ("port", ..) => GroupClass::Port,
        _ => GroupClass::Other,
    };
    let name = match class {
        GroupClass::Other => words.take().unwrap_or(kind),
        _ => words.require("the name of the group")?,
    };
    if class != GroupClass::Other {
        if !protocols.is_empty() {
            words.take();
        }
        words.take_word("pre-defined");
        words.require_end()?;
    }
    Ok((class, name, protocols))
}

fn read_icmp<'t>(words: &mut Words<'t>) -> Result<Vec<Part<'t>>, Fault<'t>> {
    words.take_word("icmp-object");
    match service::read_icmp(words, names::ICMP_NUMBER)? {
        Some(message) => Ok(vec![Part::Icmp(message)]),
        None => Err(match words.peek() {
            None => words.missing("an ICMP type"),
            Some(word) => Fault::new(
                word,
                format!("the unknown ICMP type {}", quoted(word)),
                "a name or a number from 0 to 255",
            ),
        }),
    }
}
