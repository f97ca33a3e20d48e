//! Elements of sets.

use std::net::IpAddr;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::super::icmp;
use super::super::modules::{parse_protocol, service_protocol};
use super::{Dimension, Element, ElementOptions, IpSet, Kind};
use crate::packets::{Families, Values, range_of_addresses};
use crate::services::parse_port;

/// The maximum number of bytes of an interface's name.
const INTERFACE_BYTES: usize = 15;

/// The value of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item<'t> {
    /// A network, from its first to its last address.
    Network {
        low: u128,
        high: u128,
    },
    /// Ports of a protocol, or of TCP and UDP.
    Ports {
        protocol: Option<u8>,
        low: u16,
        high: u16,
    },
    Icmp {
        protocol: u8,
        kind: u8,
        code: u8,
    },
    /// A protocol without ports.
    Protocol(u8),
    Interface {
        name: &'t str,
        is_prefix: bool,
    },
}

/// Adds the elements that a text describes to a set. A range of addresses becomes an
/// element for each of its networks.
pub(super) fn read<'t>(
    set: &mut IpSet<'t>,
    text: &'t str,
    options: &ElementOptions,
) -> Result<(), Fault<'t>> {
    let dimensions = match set.kind {
        Kind::Fields(dimensions) => dimensions,
        _ => &[Dimension::Port],
    };
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() != dimensions.len() {
        return Err(Fault::new(
            text,
            format!("an element with {} parts", parts.len()),
            format!("{} parts with commas between them", dimensions.len()),
        ));
    }
    let mut products = vec![Vec::new()];
    for (&dimension, part) in dimensions.iter().zip(parts) {
        let items = match dimension {
            Dimension::Address | Dimension::Network => addresses(part, set)?,
            Dimension::Port if set.kind == Kind::Ports => vec![plain_ports(part)?],
            Dimension::Port => vec![ports(part)?],
            Dimension::Interface => vec![interface(part, options)?],
        };
        products = products
            .iter()
            .flat_map(|product: &Vec<Item<'t>>| {
                items.iter().map(|item| {
                    let mut product = product.clone();
                    product.push(item.clone());
                    product
                })
            })
            .collect();
    }
    set.elements
        .extend(products.into_iter().map(|items| Element {
            items,
            is_excluded: options.is_excluded,
        }));
    Ok(())
}

/// Returns the number of bits of addresses.
pub(super) fn address_bits(family: Families) -> u32 {
    match family == Families::IPV4 {
        true => 32,
        false => 128,
    }
}

/// Reads a prefix length.
pub(super) fn prefix_length(text: &str, family: Families) -> Result<u32, Fault<'_>> {
    let bits = address_bits(family);
    let length = text.parse().ok().filter(|length| *length <= bits);
    length.ok_or_else(|| {
        Fault::new(
            text,
            format!("the prefix length {}", quoted(text)),
            format!("a number up to {bits}"),
        )
    })
}

/// Reads an address of a family.
fn address(text: &str, family: Families) -> Result<IpAddr, Fault<'_>> {
    let name = match family == Families::IPV4 {
        true => "IPv4",
        false => "IPv6",
    };
    let is_of_family = |address: &IpAddr| address.is_ipv4() == (family == Families::IPV4);
    text.parse().ok().filter(is_of_family).ok_or_else(|| {
        Fault::new(
            text,
            quoted(text),
            format!("an {name} address, network or range, as the set is of this family"),
        )
    })
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Reads `ADDRESS`, `ADDRESS/LENGTH` or `ADDRESS-ADDRESS`.
fn addresses<'t>(text: &'t str, set: &IpSet<'_>) -> Result<Vec<Item<'t>>, Fault<'t>> {
    let family = set.family;
    let width = address_bits(family);
    let free_bits = |length: u32| u128::MAX.checked_shr(128 - (width - length)).unwrap_or(0);
    let (mut low, mut high) = match (text.split_once('-'), text.split_once('/')) {
        (Some((start, end)), _) => (bits(address(start, family)?), bits(address(end, family)?)),
        (None, Some((first, length))) => {
            let free = free_bits(prefix_length(length, family)?);
            let first = bits(address(first, family)?);
            (first & !free, first | free)
        }
        (None, None) => [bits(address(text, family)?); 2].into(),
    };
    if let Some(length) = set.netmask {
        (low, high) = (low & !free_bits(length), high | free_bits(length));
    }
    let to_address = |bits: u128| match family == Families::IPV4 {
        true => IpAddr::V4(u32::try_from(bits).unwrap_or(u32::MAX).into()),
        false => IpAddr::V6(bits.into()),
    };
    let networks = range_of_addresses(to_address(low), to_address(high))
        .map_err(|error| Fault::new(text, error.to_string(), "FIRST-LAST with FIRST <= LAST"))?;
    let to_item = |(_, values)| match values {
        Values::Bits { value, mask } => Item::Network {
            low: value,
            high: value | (!mask & free_bits(0)),
        },
        Values::Range { low, high } => Item::Network { low, high },
    };
    Ok(networks.into_iter().map(to_item).collect())
}

/// Reads `PORT` or `PORT-PORT`.
fn range_of_ports<'t>(text: &'t str, protocol: Option<&str>) -> Result<(u16, u16), Fault<'t>> {
    let port = |text: &'t str| {
        parse_port(text, protocol)
            .ok_or_else(|| Fault::new(text, quoted(text), "a port, or two with `-` between them"))
    };
    // Names of services have hyphens, too.
    let (low, high) = match (parse_port(text, protocol), text.split_once('-')) {
        (Some(number), _) => (number, number),
        (None, Some((low, high))) => (port(low)?, port(high)?),
        (None, None) => [port(text)?; 2].into(),
    };
    match low <= high {
        true => Ok((low, high)),
        false => Err(Fault::new(
            text,
            "a range whose first port is above its last port",
            "the lower port first",
        )),
    }
}

/// Reads the ports of a `bitmap:port`.
fn plain_ports(text: &str) -> Result<Item<'_>, Fault<'_>> {
    let (low, high) = range_of_ports(text, None)?;
    Ok(Item::Ports {
        protocol: None,
        low,
        high,
    })
}

/// Reads `PORTS`, which are of TCP, or `PROTOCOL:PORTS`.
fn ports(text: &str) -> Result<Item<'_>, Fault<'_>> {
    let (protocol_text, ports) = text.split_once(':').unwrap_or(("tcp", text));
    let protocol = parse_protocol(protocol_text).filter(|protocol| *protocol != 0);
    let Some(protocol) = protocol else {
        return Err(Fault::new(
            protocol_text,
            format!("the protocol {}", quoted(protocol_text)),
            "a protocol such as tcp, udp, icmp or a number",
        ));
    };
    match protocol {
        6 | 17 | 132 | 136 => {
            let (low, high) = range_of_ports(ports, service_protocol(protocol))?;
            Ok(Item::Ports {
                protocol: Some(protocol),
                low,
                high,
            })
        }
        icmp::ICMP | icmp::ICMPV6 => {
            let numbers = icmp::parse(ports, protocol).ok_or_else(|| {
                Fault::new(ports, quoted(ports), "the name of a type, or TYPE/CODE")
            })?;
            Ok(Item::Icmp {
                protocol,
                kind: numbers.0,
                code: numbers.1.unwrap_or(0),
            })
        }
        _ if ports == "0" => Ok(Item::Protocol(protocol)),
        _ => Err(Fault::new(
            ports,
            format!("a port of the protocol {}", quoted(protocol_text)),
            "0, as the protocol has no ports",
        )),
    }
}

fn interface<'t>(text: &'t str, options: &ElementOptions) -> Result<Item<'t>, Fault<'t>> {
    if text.starts_with("physdev:") {
        return Err(Fault::unsupported(
            text,
            "a port of a bridge (`physdev:`) in a set",
            "the name of an interface",
        ));
    }
    if text.is_empty() || text.len() > INTERFACE_BYTES {
        return Err(Fault::new(
            text,
            format!("the interface {}", quoted(text)),
            format!("a name of 1 to {INTERFACE_BYTES} bytes"),
        ));
    }
    Ok(Item::Interface {
        name: text,
        is_prefix: options.is_wildcard,
    })
}
