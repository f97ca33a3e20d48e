//! Entries of IOS, NX-OS and IOS XR.

use classyard_text::Fault;

use super::Dialect;
use super::address::Addresses;
use super::group::Groups;
use super::names;
use super::options::read_options;
use super::selector::{Selector, read_address};
use super::service::{self, Service, read_ports, unknown_protocol};
use super::words::Words;
use crate::packets::{Families, parse_network};

/// Reads the conditions of an entry of an extended list, after `permit` or `deny`.
pub(super) fn read_extended<'t>(
    words: &mut Words<'t>,
    families: Families,
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Selector<'t>, Fault<'t>> {
    if dialect == Dialect::Xr && words.peek().is_some_and(starts_address) {
        return read_source_only(words, families, groups, dialect);
    }
    let mut selector = Selector::any(families);
    selector.services = read_entry_services(words, families, groups)?;
    selector.sources = read_address(words, families, groups, dialect)?;
    let source_ports = read_entry_ports(words, &selector.services, groups, dialect)?;
    selector.destinations = read_address(words, families, groups, dialect)?;
    let destination_ports = read_entry_ports(words, &selector.services, groups, dialect)?;
    for service in &mut selector.services {
        service.source_ports = source_ports.clone().or(service.source_ports.take());
        service.destination_ports = destination_ports
            .clone()
            .or(service.destination_ports.take());
    }
    read_options(words, dialect, &mut selector)?;
    Ok(selector)
}

/// True if a word is the start of an address, so that the entry has no protocol.
fn starts_address(word: &str) -> bool {
    matches!(word, "any" | "host" | "net-group") || parse_network(word).is_ok()
}

/// Reads an entry that examines the source only.
fn read_source_only<'t>(
    words: &mut Words<'t>,
    families: Families,
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Selector<'t>, Fault<'t>> {
    let mut selector = Selector::any(families);
    selector.sources = read_address(words, families, groups, dialect)?;
    words.take_word("log");
    words.require_end()?;
    Ok(selector)
}

/// Reads the protocol of an entry, or its group of services.
fn read_entry_services<'t>(
    words: &mut Words<'t>,
    families: Families,
    groups: &Groups<'t>,
) -> Result<Vec<Service>, Fault<'t>> {
    let word = words.require("a protocol")?;
    let is_ipv6 = families == Families::IPV6;
    let protocol = match word {
        "object-group" => {
            return groups.services(words.require("the name of a group of services")?);
        }
        "ip" | "ipv4" if !is_ipv6 => None,
        "ipv6" if is_ipv6 => None,
        // The name `icmp` means the ICMP of the list's IP version.
        "icmp" if is_ipv6 => Some(names::ICMPV6_NUMBER),
        _ => Some(names::protocol(word).ok_or_else(|| unknown_protocol(word))?),
    };
    Ok(vec![Service::of_protocol(protocol)])
}

/// Reads the ports after an address, if there are any and the protocols have ports.
fn read_entry_ports<'t>(
    words: &mut Words<'t>,
    services: &[Service],
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Option<service::Ports>, Fault<'t>> {
    let allows_ports =
        |service: &Service| names::has_ports(service.protocol) && !service.has_layer4();
    if !services.iter().all(allows_ports) {
        return Ok(None);
    }
    if let Some("portgroup" | "port-group") = words.peek() {
        words.take();
        let name = words.require("the name of a group of ports")?;
        return groups.ports(name).map(Some);
    }
    let protocols: Vec<u8> = services
        .iter()
        .filter_map(|service| service.protocol)
        .collect();
    read_ports(words, &protocols, dialect)
}

/// Reads the conditions of an entry of a standard list, after `permit` or `deny`.
pub(super) fn read_standard<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Selector<'t>, Fault<'t>> {
    let families = Families::IPV4;
    let mut selector = Selector::any(families);
    selector.sources = match words.peek() {
        Some("any" | "host" | "object-group") => read_address(words, families, groups, dialect)?,
        _ => read_host_or_network(words, groups, dialect)?,
    };
    if words.take_word("log") && dialect == Dialect::Ios && words.unread().len() == 1 {
        words.take();
    }
    words.require_end()?;
    Ok(selector)
}

/// Reads `10.0.0.1`, `10.0.0.0 0.255.255.255`, or the form of `show access-lists`:
/// `10.0.0.0, wildcard bits 0.255.255.255`.
fn read_host_or_network<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Addresses<'t>, Fault<'t>> {
    let word = words.require("an address")?;
    let address = word.trim_end_matches(',');
    if words.take_word("wildcard") {
        words.take_word("bits");
    }
    let mask = words.peek().filter(|mask| mask.contains('.'));
    let mut form = match mask {
        Some(mask) => {
            words.take();
            Words::of(words.text(), vec![address, mask])
        }
        None if address.contains('/') => Words::of(words.text(), vec![address]),
        None => Words::of(words.text(), vec!["host", address]),
    };
    read_address(&mut form, Families::IPV4, groups, dialect)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> usize {
        let mut words = Words::new(text);
        let groups = Groups::new(Dialect::Ios);
        let selector = read_standard(&mut words, &groups, Dialect::Ios).unwrap();
        selector.sources.networks.len()
    }

    #[test]
    fn standard_entries_have_several_forms() {
        for text in [
            "10.0.0.1",
            "10.0.0.0 0.0.255.255 log",
            "10.0.0.0, wildcard bits 0.0.255.255",
            "host 10.0.0.1 log cookie",
            "any",
        ] {
            assert_eq!(sources(text), 1, "{text}");
        }
    }
}
