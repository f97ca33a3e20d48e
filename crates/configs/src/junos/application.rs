//! Applications of security policies: protocols and ports.
//!
//! The predefined applications are in `applications.txt`; an application of the file with the
//! same name is used instead.

use std::collections::HashSet;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::address_book::MAX_SETS;
use super::names::{Names, merged};
use super::prefixes::too_many;
use super::statements::{Attribute, Reader, is_bookkeeping};
use super::tree::WordId;
use crate::builder::SourceId;
use crate::packets::{Field, PacketSet, Values};

/// The predefined applications and sets; its first lines describe the format.
const PREDEFINED: &str = include_str!("applications.txt");

/// Statements of an application that select no packets.
const OPTIONS: [&str; 13] = [
    "alg",
    "application-protocol",
    "apply-groups",
    "child-inactivity-timeout",
    "description",
    "do-not-translate-A-query-to-AAAA-query",
    "do-not-translate-AAAA-query-to-A-query",
    "gate-timeout",
    "inactivity-timeout",
    "learn-sip-register",
    "sip-call-hold-timeout",
    "snmp-command",
    "ttl-threshold",
];

/// An application of the file, or a predefined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Application<'t> {
    Own(WordId),
    OwnSet(WordId),
    Predefined(&'t str),
}

/// Returns the packets of the applications of a policy.
pub(super) fn packets<'t>(
    reader: &mut Reader<'_, '_, 't>,
    source: SourceId,
    names: &[&'t str],
) -> Result<PacketSet, Fault<'t>> {
    let mut packets = PacketSet::none();
    let mut added = HashSet::new();
    for name in names {
        if *name == "any" {
            return Ok(PacketSet::all());
        }
        let application = find(reader, name)?;
        // The sets that are being added, each with its members that are not added yet.
        let mut path = vec![(application, vec![application])];
        while let Some((_, members)) = path.last_mut() {
            let Some(member) = members.pop() else {
                path.pop();
                continue;
            };
            let Application::OwnSet(set) = member else {
                if added.insert(member) {
                    let member_packets = packets_of(reader, source, (name, member))?;
                    packets = packets
                        .union(member_packets)
                        .map_err(|error| too_many(name, error))?;
                }
                continue;
            };
            let set_name = reader.tree.text(set);
            let is_start = path.len() == 1 && member == application;
            if !is_start && path.iter().any(|(other, _)| *other == member) {
                let message = format!("the application set {} has itself", quoted(set_name));
                return Err(Fault::new(set_name, message, "sets without a loop"));
            }
            if path.len() > MAX_SETS {
                let message = format!("more than {MAX_SETS} application sets inside each other");
                return Err(Fault::new(set_name, message, "fewer sets"));
            }
            if added.insert(member) {
                match members_of(reader, set)? {
                    Some(members) => path.push((member, members)),
                    None => return Ok(PacketSet::all()),
                }
            }
        }
    }
    Ok(packets)
}

/// Returns the application with a name.
fn find<'t>(reader: &Reader<'_, '_, 't>, name: &'t str) -> Result<Application<'t>, Fault<'t>> {
    let tree = reader.tree;
    if let Some(word) = tree.at(&["applications", "application", name]) {
        return Ok(Application::Own(word));
    }
    if let Some(word) = tree.at(&["applications", "application-set", name]) {
        return Ok(Application::OwnSet(word));
    }
    if predefined(name).next().is_some() {
        return Ok(Application::Predefined(name));
    }
    match name.starts_with("junos-") {
        true => Err(Fault::unsupported(
            name,
            format!("the predefined application {}", quoted(name)),
            "an application of the file",
        )),
        false => {
            let message = format!("the application {} is not in the file", quoted(name));
            Err(Fault::new(
                name,
                message,
                "an application of the file, or `any`",
            ))
        }
    }
}

/// Returns the members of an application set, the last one first; `None` if one is `any`.
fn members_of<'t>(
    reader: &Reader<'_, '_, 't>,
    set: WordId,
) -> Result<Option<Vec<Application<'t>>>, Fault<'t>> {
    let tree = reader.tree;
    let mut members = Vec::new();
    for kind in tree.children(set) {
        match tree.text(kind) {
            "application" | "application-set" => {
                for member in tree.children(kind) {
                    reader.expect_leaf(member)?;
                    if tree.text(member) == "any" {
                        return Ok(None);
                    }
                    members.push(find(reader, tree.text(member))?);
                }
            }
            "description" => {}
            text if is_bookkeeping(text) => {}
            text => {
                let message = format!("{} in an application set", quoted(text));
                let expected = "`application` or `application-set`";
                return Err(Fault::unsupported(text, message, expected));
            }
        }
    }
    if members.is_empty() {
        let text = tree.text(set);
        let message = format!("the application set {} is empty", quoted(text));
        return Err(Fault::new(text, message, "a set with an application"));
    }
    members.reverse();
    Ok(Some(members))
}

/// Returns the packets of an application, other than a set of the file.
fn packets_of<'t>(
    reader: &mut Reader<'_, '_, 't>,
    source: SourceId,
    (name, application): (&'t str, Application<'t>),
) -> Result<PacketSet, Fault<'t>> {
    match application {
        Application::Own(word) => own_packets(reader, source, word),
        Application::Predefined(predefined) => {
            predefined_packets(reader, source, (name, predefined))
        }
        Application::OwnSet(_) => unreachable!("sets are replaced by their members"),
    }
}

/// Returns the packets of an application of the file.
fn own_packets<'t>(
    reader: &mut Reader<'_, '_, 't>,
    source: SourceId,
    application: WordId,
) -> Result<PacketSet, Fault<'t>> {
    let tree = reader.tree;
    let name = tree.text(application);
    let is_whole = |keyword: &str| keyword == "term";
    let mut attributes = reader.attributes(application, is_whole);
    let terms = attributes
        .iter()
        .position(|attribute| tree.text(attribute.keyword) == "term");
    let terms = terms.map(|index| attributes.remove(index));
    attributes.retain(|attribute| !OPTIONS.contains(&tree.text(attribute.keyword)));
    let Some(terms) = terms else {
        return service_packets(reader, source, (name, &attributes));
    };
    if let Some(attribute) = attributes.first() {
        let text = tree.text(attribute.keyword);
        let message = format!("{} in an application with terms", quoted(text));
        return Err(Fault::new(text, message, "terms only"));
    }
    let mut packets = PacketSet::none();
    for term in terms.values {
        let mut attributes = reader.attributes(term.word, |_| false);
        attributes.retain(|attribute| !OPTIONS.contains(&tree.text(attribute.keyword)));
        let text = tree.text(term.word);
        let member_packets = service_packets(reader, source, (text, &attributes))?;
        packets = packets
            .union(member_packets)
            .map_err(|error| too_many(name, error))?;
    }
    Ok(packets)
}

/// Returns the packets of a protocol with ports, or with a type of ICMP.
fn service_packets<'t>(
    reader: &mut Reader<'_, '_, 't>,
    source: SourceId,
    (name, attributes): (&'t str, &[Attribute]),
) -> Result<PacketSet, Fault<'t>> {
    let tree = reader.tree;
    let mut packets = PacketSet::all();
    let mut has_protocol = false;
    for attribute in attributes {
        let keyword = tree.text(attribute.keyword);
        let (field, names) = match keyword {
            "protocol" => (Field::Protocol, Names::PROTOCOL),
            "source-port" => (Field::SourcePort, Names::PORT),
            "destination-port" => (Field::DestinationPort, Names::PORT),
            "icmp-type" => (Field::IcmpType, Names::icmp_types(false)),
            "icmp-code" => (Field::IcmpCode, Names::icmp_codes(false)),
            "icmp6-type" => (Field::IcmpType, Names::icmp_types(true)),
            "icmp6-code" => (Field::IcmpCode, Names::icmp_codes(true)),
            "rpc-program-number" | "uuid" => {
                let text = format!("{keyword} {}", reader.value(attribute)?);
                let condition = reader.condition(source, &text, keyword)?;
                packets = packets
                    .intersect(&condition)
                    .map_err(|error| too_many(keyword, error))?;
                continue;
            }
            text if is_bookkeeping(text) => continue,
            _ => {
                let message = format!("{} in an application", quoted(keyword));
                return Err(Fault::unsupported(keyword, message, "a protocol and ports"));
            }
        };
        has_protocol |= field == Field::Protocol;
        let range = names.parse(reader.value(attribute)?)?;
        let ranges = merged(vec![range]).into_iter();
        let values = ranges.map(|(low, high)| Values::range(low, high));
        packets = packets
            .intersect(&PacketSet::of(field, values))
            .map_err(|error| too_many(keyword, error))?;
    }
    match has_protocol {
        true => Ok(packets),
        false => Err(Fault::unsupported(
            name,
            "an application without a protocol",
            "`protocol` in the application",
        )),
    }
}

/// Returns the lines of a predefined application, without its name.
fn predefined(name: &str) -> impl Iterator<Item = &'static str> {
    let lines = PREDEFINED.lines().filter(|line| !line.starts_with('#'));
    let services = lines.filter_map(move |line| line.strip_prefix(name));
    services.filter_map(|line| line.strip_prefix(' '))
}

/// Returns the packets of a predefined application, or of a predefined set.
fn predefined_packets<'t>(
    reader: &mut Reader<'_, '_, 't>,
    source: SourceId,
    (name, application): (&'t str, &str),
) -> Result<PacketSet, Fault<'t>> {
    let mut packets = PacketSet::none();
    for line in predefined(application) {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "=" {
            for member in &words[1..] {
                let member_packets = predefined_packets(reader, source, (name, member))?;
                packets = packets
                    .union(member_packets)
                    .map_err(|error| too_many(name, error))?;
            }
            continue;
        }
        let mut service = of_number(Field::Protocol, words[0], Names::PROTOCOL);
        for word in &words[1..] {
            let condition = match (*word, word.split_once('/')) {
                ("rpc", _) => {
                    let text = format!("application {application}");
                    reader.condition(source, &text, name)?
                }
                (_, Some((icmp_type, code))) => {
                    let names = Names::icmp_types(true);
                    let icmp_type = of_number(Field::IcmpType, icmp_type, names);
                    match code {
                        "*" => icmp_type,
                        code => {
                            let code = of_number(Field::IcmpCode, code, Names::icmp_codes(true));
                            icmp_type.intersect(&code).expect("one box")
                        }
                    }
                }
                (port, None) => of_number(Field::DestinationPort, port, Names::PORT),
            };
            service = service.intersect(&condition).expect("one box");
        }
        packets = packets
            .union(service)
            .map_err(|error| too_many(name, error))?;
    }
    Ok(packets)
}

/// Returns the packets with a number or a range of the table of predefined applications.
fn of_number(field: Field, text: &str, names: Names) -> PacketSet {
    let (low, high) = names.parse(text).expect("a table of numbers");
    PacketSet::of(field, [Values::range(low, high)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predefined_applications_are_in_order_and_complete() {
        let lines: Vec<&str> = PREDEFINED
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(lines.is_sorted());
        assert!(lines.len() > 120);
        for line in lines {
            let (name, service) = line.split_once(' ').unwrap();
            assert!(name.starts_with("junos-"), "{line}");
            let mut words = service.split(' ');
            match words.next() {
                Some("=") => {
                    for member in words {
                        let is_set = |line: &str| line.starts_with('=');
                        assert!(predefined(member).next().is_some(), "{line}");
                        assert!(!predefined(member).any(is_set), "{line}");
                    }
                }
                protocol => {
                    assert!(Names::PROTOCOL.parse(protocol.unwrap()).is_ok(), "{line}");
                    let is_number = |word: &str| match word.split_once('/') {
                        Some((icmp_type, code)) => {
                            let codes = Names::icmp_codes(true);
                            Names::icmp_types(true).parse(icmp_type).is_ok()
                                && (code == "*" || codes.parse(code).is_ok())
                        }
                        None => word == "rpc" || Names::PORT.parse(word).is_ok(),
                    };
                    assert!(words.all(is_number), "{line}");
                }
            }
        }
    }
}
