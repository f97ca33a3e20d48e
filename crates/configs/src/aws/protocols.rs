//! Protocols, ports and ICMP types of rules of AWS.

use classyard_text::Fault;

use crate::document::Item;
use crate::packets::{Field, PacketSet, Values};
use crate::services::parse_protocol;

/// The protocol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    All,
    Number(u8),
}

/// Rules of ICMPv6 may lack type and code: they match all of them then.
const ICMPV6: Protocol = Protocol::Number(58);

impl Protocol {
    /// Parses `-1`, a number or a name.
    pub(super) fn parse(item: Item<'_>) -> Result<Protocol, Fault<'_>> {
        let text = item.string()?;
        if text == "-1" {
            return Ok(Protocol::All);
        }
        let number = parse_protocol(text).map(Protocol::Number);
        number.ok_or_else(|| item.unexpected("-1, a protocol from 0 to 255, or its name"))
    }

    pub(super) fn has_ports(self) -> bool {
        matches!(self, Protocol::Number(6 | 17))
    }

    pub(super) fn is_icmp(self) -> bool {
        matches!(self, Protocol::Number(1 | 58))
    }

    /// Returns the packets of the protocol.
    fn packets(self) -> PacketSet {
        match self {
            Protocol::All => PacketSet::all(),
            Protocol::Number(number) => PacketSet::of(Field::Protocol, [Values::number(number)]),
        }
    }
}

/// The range of numbers of a rule: the first and last destination port, or ICMP type and
/// code.
pub(super) struct Numbers<'d> {
    /// The element of the rule, for messages.
    pub(super) rule: Item<'d>,
    pub(super) first: Option<Item<'d>>,
    pub(super) second: Option<Item<'d>>,
    /// The keys of the two numbers.
    pub(super) keys: [&'static str; 2],
}

impl<'d> Numbers<'d> {
    /// Returns the packets of a protocol that have these numbers. Rules of other protocols
    /// than TCP, UDP and ICMP may have numbers without meaning.
    pub(super) fn packets(&self, protocol: Protocol) -> Result<PacketSet, Fault<'d>> {
        let of_protocol = protocol.packets();
        let numbers = match protocol {
            _ if protocol.has_ports() => self.ports()?,
            _ if protocol.is_icmp() => self.icmp(protocol)?,
            _ => return Ok(of_protocol),
        };
        let both = of_protocol.intersect(&numbers);
        both.map_err(|error| self.rule.fault(error.to_string(), "a simpler rule"))
    }

    fn required(&self) -> Result<[Item<'d>; 2], Fault<'d>> {
        let [first_key, second_key] = self.keys;
        match (self.first, self.second) {
            (Some(first), Some(second)) => Ok([first, second]),
            (first, _) => Err(self.rule.fault(
                format!(
                    "no `{}`",
                    if first.is_none() {
                        first_key
                    } else {
                        second_key
                    }
                ),
                format!("a number for `{first_key}` and for `{second_key}`"),
            )),
        }
    }

    fn ports(&self) -> Result<PacketSet, Fault<'d>> {
        let [first, second] = self.required()?;
        let low = first.integer(0, 65535)?;
        let high = second.integer(0, 65535)?;
        if low > high {
            return Err(second.unexpected(format!("a port from {low} to 65535")));
        }
        let ports = Values::range(low.unsigned_abs(), high.unsigned_abs());
        Ok(PacketSet::of(Field::DestinationPort, [ports]))
    }

    fn icmp(&self, protocol: Protocol) -> Result<PacketSet, Fault<'d>> {
        let has_no_numbers = self.first.is_none() && self.second.is_none();
        if protocol == ICMPV6 && has_no_numbers {
            return Ok(PacketSet::all());
        }
        let [first, second] = self.required()?;
        let icmp_type = first.integer(-1, 255)?;
        let code = second.integer(-1, 255)?;
        if icmp_type < 0 && code >= 0 {
            return Err(second.unexpected("-1, because the ICMP type is -1"));
        }
        let with_number = |field, number: i64| match number {
            -1 => PacketSet::all(),
            number => PacketSet::of(field, [Values::number(number.unsigned_abs())]),
        };
        let both =
            with_number(Field::IcmpType, icmp_type).intersect(&with_number(Field::IcmpCode, code));
        both.map_err(|error| self.rule.fault(error.to_string(), "a simpler rule"))
    }
}
