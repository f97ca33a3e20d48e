//! Services: protocols with ports, ICMP messages and TCP flags.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::Dialect;
use super::names;
use super::words::Words;
use crate::packets::{Field, PacketSet, TooManyBoxes, Values};

/// Ports: ranges in ascending order with other ports between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ports(Vec<(u16, u16)>);

impl Ports {
    /// Returns the ports of ranges in any order, which may overlap.
    pub(super) fn new(mut ranges: Vec<(u16, u16)>) -> Ports {
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(before) if low <= before.1.saturating_add(1) => before.1 = before.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ports(merged)
    }

    /// Returns all other ports.
    fn complement(&self) -> Ports {
        let mut ranges = Vec::new();
        let mut low = Some(0);
        for &(first, high) in &self.0 {
            if let Some(low) = low.filter(|low| *low < first) {
                ranges.push((low, first - 1));
            }
            low = high.checked_add(1);
        }
        ranges.extend(low.map(|low| (low, u16::MAX)));
        Ports(ranges)
    }

    pub(super) fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }

    fn packets(&self, field: Field) -> PacketSet {
        let ranges = self.0.iter();
        PacketSet::of(field, ranges.map(|&(low, high)| Values::range(low, high)))
    }
}

/// The operators of ports.
const OPERATORS: [&str; 5] = ["eq", "neq", "lt", "gt", "range"];

const EXPECTED_PORT: &str = "a port: 0 to 65535 or a name of the protocol";

/// Returns the ports after an operator, if the next word is an operator. Names of ports
/// must belong to a given protocol. On routers, several ports may follow `eq` and `neq`.
pub(super) fn read_ports<'t>(
    words: &mut Words<'t>,
    protocols: &[u8],
    dialect: Dialect,
) -> Result<Option<Ports>, Fault<'t>> {
    let Some(operator) = words.peek().filter(|word| OPERATORS.contains(word)) else {
        return Ok(None);
    };
    words.take();
    let first_word = words.require(EXPECTED_PORT)?;
    let first = parse_port(first_word, protocols)?;
    let mut ports = vec![(first, first)];
    if operator == "range" {
        let second = parse_port(words.require(EXPECTED_PORT)?, protocols)?;
        ports[0] = match (first <= second, dialect) {
            (true, _) => (first, second),
            (false, Dialect::NxOs) => (second, first),
            (false, _) => {
                return Err(Fault::new(
                    first_word,
                    "a range whose first port is above its last port",
                    "the lower port first",
                ));
            }
        };
    } else if dialect == Dialect::Ios && matches!(operator, "eq" | "neq") {
        while let Some(word) = words.peek().filter(|word| is_port_word(word)) {
            words.take();
            let port = parse_port(word, protocols)?;
            ports.push((port, port));
        }
    }
    let ports = Ports::new(ports);
    let selected = match operator {
        "neq" => ports.complement(),
        "lt" => Ports(
            first
                .checked_sub(1)
                .map(|last| (0, last))
                .into_iter()
                .collect(),
        ),
        "gt" => {
            let above = first.checked_add(1).map(|low| (low, u16::MAX));
            Ports(above.into_iter().collect())
        }
        _ => ports,
    };
    match selected.ranges().is_empty() {
        false => Ok(Some(selected)),
        true => Err(Fault::new(
            first_word,
            format!("no port is selected by `{operator} {first_word}`"),
            "an operator that selects a port",
        )),
    }
}

/// True if a word continues a list of ports: a number or the name of a port of any
/// protocol. No word that may follow a list is one.
fn is_port_word(word: &str) -> bool {
    names::is_number(word)
        || names::AMBIGUOUS_PORTS.contains(&word)
        || names::port(word, &[]).is_some()
}

fn parse_port<'t>(word: &'t str, protocols: &[u8]) -> Result<u16, Fault<'t>> {
    if names::AMBIGUOUS_PORTS.contains(&word) {
        return Err(Fault::unsupported(
            word,
            format!("the port name `{word}`, which has different numbers in different releases"),
            "the number of the port",
        ));
    }
    names::port(word, protocols).ok_or_else(|| {
        Fault::new(
            word,
            format!("the unknown port {}", quoted(word)),
            EXPECTED_PORT,
        )
    })
}

/// A type of ICMP messages, with a code or all codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IcmpMessage {
    pub(super) number: u8,
    pub(super) code: Option<u8>,
}

/// Returns an ICMP message if the next word is one: a type and perhaps a code, or a name.
pub(super) fn read_icmp<'t>(
    words: &mut Words<'t>,
    protocol: u8,
) -> Result<Option<IcmpMessage>, Fault<'t>> {
    let Some(word) = words.peek() else {
        return Ok(None);
    };
    let (number, mut code) = match names::is_number(word) {
        true => (parse_icmp_number(word)?, None),
        false => match names::icmp(word, protocol) {
            Some(message) => message,
            None => return Ok(None),
        },
    };
    words.take();
    if let (None, Some(word)) = (code, words.peek().filter(|word| names::is_number(word))) {
        code = Some(parse_icmp_number(word)?);
        words.take();
    }
    Ok(Some(IcmpMessage { number, code }))
}

fn parse_icmp_number(word: &str) -> Result<u8, Fault<'_>> {
    word.parse().map_err(|_| {
        Fault::new(
            word,
            format!("the ICMP number {}", quoted(word)),
            "a number from 0 to 255",
        )
    })
}

/// A protocol with conditions on its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// `None` for all protocols.
    pub(super) protocol: Option<u8>,
    pub(super) source_ports: Option<Ports>,
    pub(super) destination_ports: Option<Ports>,
    /// The ICMP messages that match.
    pub(super) icmp: Option<Vec<IcmpMessage>>,
}

impl Service {
    /// Returns all packets of a protocol.
    pub(super) fn of_protocol(protocol: Option<u8>) -> Service {
        Service {
            protocol,
            ..Service::default()
        }
    }

    /// True if the service has conditions on the header after the IP header.
    pub(super) fn has_layer4(&self) -> bool {
        self.source_ports.is_some() || self.destination_ports.is_some() || self.icmp.is_some()
    }

    /// Returns the packets of the protocol.
    pub(super) fn protocol_packets(&self) -> PacketSet {
        match self.protocol {
            None => PacketSet::all(),
            Some(number) => PacketSet::of(Field::Protocol, [Values::number(number)]),
        }
    }

    /// Returns the packets for which all conditions hold.
    pub(super) fn packets(&self) -> Result<PacketSet, TooManyBoxes> {
        let mut packets = self.protocol_packets();
        if let Some(ports) = &self.source_ports {
            packets = packets.intersect(&ports.packets(Field::SourcePort))?;
        }
        if let Some(ports) = &self.destination_ports {
            packets = packets.intersect(&ports.packets(Field::DestinationPort))?;
        }
        if let Some(messages) = &self.icmp {
            packets = packets.intersect(&icmp_packets(messages)?)?;
        }
        Ok(packets)
    }
}

fn icmp_packets(messages: &[IcmpMessage]) -> Result<PacketSet, TooManyBoxes> {
    let mut packets = PacketSet::none();
    for message in messages {
        let mut message_packets = PacketSet::of(Field::IcmpType, [Values::number(message.number)]);
        if let Some(code) = message.code {
            let codes = PacketSet::of(Field::IcmpCode, [Values::number(code)]);
            message_packets = message_packets.intersect(&codes)?;
        }
        packets = packets.union(message_packets)?;
    }
    Ok(packets)
}

/// Returns the protocols that a word means in groups of services. `tcp-udp` means two.
pub(super) fn read_protocols<'t>(words: &mut Words<'t>) -> Result<Vec<Option<u8>>, Fault<'t>> {
    let word = words.require("a protocol")?;
    match word {
        "ip" | "ipv4" | "ipv6" => Ok(vec![None]),
        "tcp-udp" => Ok(vec![Some(names::TCP_NUMBER), Some(names::UDP_NUMBER)]),
        _ => match names::protocol(word) {
            Some(number) => Ok(vec![Some(number)]),
            None => Err(unknown_protocol(word)),
        },
    }
}

/// Returns the fault of an unknown protocol.
pub(super) fn unknown_protocol(word: &str) -> Fault<'_> {
    Fault::new(
        word,
        format!("the unknown protocol {}", quoted(word)),
        "a protocol such as `tcp`, or its number",
    )
}

/// Reads a member of a group of services: `tcp eq 80`, `udp source gt 1023 destination eq
/// 53`, `icmp echo`. Ports without `source` are destination ports.
pub(super) fn read_services<'t>(
    words: &mut Words<'t>,
    dialect: Dialect,
) -> Result<Vec<Service>, Fault<'t>> {
    let protocols = read_protocols(words)?;
    let numbers: Vec<u8> = protocols.iter().flatten().copied().collect();
    let mut service = Service::default();
    if protocols.iter().all(|protocol| names::has_ports(*protocol)) {
        if words.take_word("source") {
            service.source_ports = Some(require_ports(words, &numbers, dialect)?);
        }
        service.destination_ports = match words.take_word("destination") {
            true => Some(require_ports(words, &numbers, dialect)?),
            false => read_ports(words, &numbers, dialect)?,
        };
    } else if let Some(protocol @ (names::ICMP_NUMBER | names::ICMPV6_NUMBER)) = protocols[0] {
        service.icmp = read_icmp(words, protocol)?.map(|message| vec![message]);
    }
    let with_protocol = |protocol| Service {
        protocol,
        ..service.clone()
    };
    Ok(protocols.into_iter().map(with_protocol).collect())
}

/// Returns the ports after an operator, which must follow.
pub(super) fn require_ports<'t>(
    words: &mut Words<'t>,
    protocols: &[u8],
    dialect: Dialect,
) -> Result<Ports, Fault<'t>> {
    const EXPECTED: &str = "`eq`, `neq`, `lt`, `gt` or `range` with ports";
    match read_ports(words, protocols, dialect)? {
        Some(ports) => Ok(ports),
        None => match words.peek() {
            None => Err(words.missing(EXPECTED)),
            Some(word) => Err(Fault::new(
                word,
                format!("the unknown word {}", quoted(word)),
                EXPECTED,
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_merged_and_complemented() {
        let ports = Ports::new(vec![(80, 80), (0, 5), (6, 7), (3, 4), (65535, 65535)]);
        assert_eq!(ports.ranges(), [(0, 7), (80, 80), (65535, 65535)]);
        assert_eq!(ports.complement().ranges(), [(8, 79), (81, 65534)]);
        assert_eq!(ports.complement().complement(), ports);
        assert_eq!(Ports::new(vec![(0, 65535)]).complement().ranges(), []);
    }

    #[test]
    fn members_of_groups_are_services() {
        let read = |text| {
            let mut words = Words::new(text);
            let services = read_services(&mut words, Dialect::Ios).unwrap();
            words.require_end().unwrap();
            services
        };
        let web = read("tcp-udp source gt 1023 eq 80 443");
        assert_eq!(web.len(), 2);
        assert_eq!(web[1].protocol, Some(names::UDP_NUMBER));
        let ports = web[0].destination_ports.as_ref().unwrap();
        assert_eq!(ports.ranges(), [(80, 80), (443, 443)]);
        assert_eq!(read("ip"), [Service::default()]);
        assert_eq!(read("icmp 3 4")[0].icmp.as_ref().unwrap()[0].code, Some(4));
    }
}
