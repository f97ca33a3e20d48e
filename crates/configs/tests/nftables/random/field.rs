//! Fields that have numbers, and ranges of their values.

use super::packet::{PROTOCOLS, Packet};
use crate::support::Random;

/// A field that has numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Source {
        is_v6: bool,
    },
    Destination {
        is_v6: bool,
    },
    Port {
        header: &'static str,
        protocol: u8,
        is_source: bool,
    },
    Protocol,
    IcmpType {
        is_v6: bool,
    },
}

impl Field {
    pub(super) fn random(random: &mut Random) -> Field {
        let is_v6 = random.below(5) == 0;
        match random.below(6) {
            0 => Field::Source { is_v6 },
            1 => Field::Destination { is_v6 },
            2 => Field::Protocol,
            3 => Field::IcmpType { is_v6 },
            _ => {
                let (header, protocol) = random.pick(&[("tcp", 6), ("udp", 17)]);
                Field::Port {
                    header,
                    protocol,
                    is_source: random.below(3) == 0,
                }
            }
        }
    }

    /// Returns a field whose negations have few boxes: no address of IPv6.
    pub(super) fn random_small(random: &mut Random) -> Field {
        match Field::random(random) {
            Field::Source { .. } => Field::Source { is_v6: false },
            Field::Destination { .. } => Field::Destination { is_v6: false },
            field => field,
        }
    }

    /// Returns the field of a packet, if the packet has it.
    pub(super) fn value(self, packet: &Packet) -> Option<u16> {
        let has_header = |protocol| packet.protocol == protocol && packet.fragment < 2;
        match self {
            Field::Source { is_v6 } => (packet.is_v6 == is_v6).then(|| packet.source.into()),
            Field::Destination { is_v6 } => {
                (packet.is_v6 == is_v6).then(|| packet.destination.into())
            }
            Field::Port {
                protocol,
                is_source,
                ..
            } => has_header(protocol).then_some({
                if is_source {
                    packet.source_port
                } else {
                    packet.destination_port
                }
            }),
            Field::Protocol => Some(packet.protocol.into()),
            Field::IcmpType { is_v6 } => {
                let protocol = if is_v6 { 58 } else { 1 };
                let has_type = packet.is_v6 == is_v6 && has_header(protocol);
                has_type.then(|| packet.icmp_type.into())
            }
        }
    }

    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Field::Source { is_v6 } => (if is_v6 { "ip6" } else { "ip" }, "saddr"),
            Field::Destination { is_v6 } => (if is_v6 { "ip6" } else { "ip" }, "daddr"),
            Field::Port {
                header, is_source, ..
            } => (header, if is_source { "sport" } else { "dport" }),
            Field::Protocol => ("meta", "l4proto"),
            Field::IcmpType { is_v6 } => (if is_v6 { "icmpv6" } else { "icmp" }, "type"),
        }
    }

    pub(super) fn random_value(self, random: &mut Random) -> u16 {
        match self {
            Field::Protocol => random.pick(&PROTOCOLS).1.into(),
            _ => u16::try_from(random.below(12)).unwrap(),
        }
    }

    /// Returns a value as text. JSON has the same text, in quotation marks for addresses.
    pub(super) fn show(self, value: u16) -> String {
        match self {
            Field::Source { is_v6: true } | Field::Destination { is_v6: true } => {
                format!("fd00::{value:x}")
            }
            Field::Source { .. } | Field::Destination { .. } => format!("10.0.0.{value}"),
            _ => value.to_string(),
        }
    }

    pub(super) fn json_value(self, value: u16) -> String {
        match self {
            Field::Source { .. } | Field::Destination { .. } => format!("\"{}\"", self.show(value)),
            _ => self.show(value),
        }
    }

    pub(super) fn json(self) -> String {
        match self.words() {
            ("meta", key) => format!("{{\"meta\": {{\"key\": \"{key}\"}}}}"),
            (header, field) => {
                format!("{{\"payload\": {{\"protocol\": \"{header}\", \"field\": \"{field}\"}}}}")
            }
        }
    }

    pub(super) fn text(self) -> String {
        let (header, field) = self.words();
        format!("{header} {field}")
    }
}

pub(super) type Range = (u16, u16);

pub(super) fn random_ranges(field: Field, random: &mut Random) -> Vec<Range> {
    // Elements of one set do not overlap.
    let mut ranges: Vec<Range> = Vec::new();
    for _ in 0..=random.below(3) {
        let lowest = field.random_value(random);
        let highest = match random.below(3) {
            0 => lowest + u16::try_from(random.below(4)).unwrap(),
            _ => lowest,
        };
        if ranges
            .iter()
            .all(|&(low, high)| highest < low || high < lowest)
        {
            ranges.push((lowest, highest));
        }
    }
    ranges
}

pub(super) fn has(ranges: &[Range], value: u16) -> bool {
    ranges
        .iter()
        .any(|&(low, high)| (low..=high).contains(&value))
}

pub(super) fn range_text(field: Field, (low, high): Range) -> String {
    match low == high {
        true => field.show(low),
        false => format!("{}-{}", field.show(low), field.show(high)),
    }
}

pub(super) fn range_json(field: Field, (low, high): Range) -> String {
    match low == high {
        true => field.json_value(low),
        false => format!(
            "{{\"range\": [{}, {}]}}",
            field.json_value(low),
            field.json_value(high)
        ),
    }
}
