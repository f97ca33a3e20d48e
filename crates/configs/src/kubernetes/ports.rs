//! Ports of rules.

use classyard_text::Fault;

use super::cluster::protocol;
use crate::document::Item;
use crate::packets::{Field, PacketSet, Values};

/// An element of `ports`.
#[derive(Debug)]
pub(super) struct Port<'d> {
    pub(super) protocol_name: &'d str,
    pub(super) protocol: u8,
    pub(super) numbers: PortNumbers<'d>,
}

#[derive(Debug)]
pub(super) enum PortNumbers<'d> {
    All,
    Range(u16, u16),
    Named(&'d str),
}

/// Parses an element of `ports`.
pub(super) fn parse_port(item: Item<'_>) -> Result<Port<'_>, Fault<'_>> {
    item.check_keys(&["protocol", "port", "endPort"])?;
    let (protocol_name, protocol) = protocol(item)?;
    let end = item.get("endPort");
    let numbers = match (item.get("port"), end) {
        (None, None) => PortNumbers::All,
        (None, Some(end)) => return Err(end.fault("endPort without port", "a value of port")),
        (Some(port), None) if port.is_string() => PortNumbers::Named(port_name(port)?),
        (Some(port), Some(_)) if port.is_string() => {
            return Err(port.unexpected("a number, because there is endPort"));
        }
        (Some(port), end) => {
            let low = port
                .integer(1, 65535)
                .map_err(|_| port.unexpected("a port from 1 to 65535, or the name of a port"))?;
            let low = u16::try_from(low).expect("at most 65535");
            let high = end.map(|end| end.integer(low.into(), 65535)).transpose()?;
            let high = high.map(|high| u16::try_from(high).expect("at most 65535"));
            PortNumbers::Range(low, high.unwrap_or(low))
        }
    };
    Ok(Port {
        protocol_name,
        protocol,
        numbers,
    })
}

/// Returns the name of a port: letters, digits and hyphens, with at least one letter.
fn port_name(item: Item<'_>) -> Result<&str, Fault<'_>> {
    let name = item.string()?;
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let is_part = |byte: u8| is_letter(byte) || byte.is_ascii_digit() || byte == b'-';
    match name.len() <= 15 && name.bytes().any(is_letter) && name.bytes().all(is_part) {
        true => Ok(name),
        false => Err(item.unexpected("a number, or a name of lowercase letters and digits")),
    }
}

impl Port<'_> {
    /// Returns the text of the port, such as `TCP port 80`.
    pub(super) fn text(&self) -> String {
        let protocol = self.protocol_name;
        match &self.numbers {
            PortNumbers::All => format!("{protocol} ports"),
            PortNumbers::Range(low, high) if low == high => format!("{protocol} port {low}"),
            PortNumbers::Range(low, high) => format!("{protocol} ports {low}-{high}"),
            PortNumbers::Named(name) => format!("{protocol} port {name}"),
        }
    }
}

/// Returns the packets that go to a range of ports of a protocol.
pub(super) fn port_packets(protocol: u8, low: u16, high: u16) -> PacketSet {
    let of_ports = PacketSet::of(Field::DestinationPort, [Values::range(low, high)]);
    let both = protocol_packets(protocol).intersect(&of_ports);
    both.expect("one protocol and one range of ports")
}

/// Returns the packets of a protocol.
pub(super) fn protocol_packets(protocol: u8) -> PacketSet {
    PacketSet::of(Field::Protocol, [Values::number(protocol)])
}
