//! Constants of rules as numbers. Their meaning depends on the field they are compared with.

use std::net::IpAddr;

use classyard_text::line::quoted;

use crate::linux_protocols::parse_protocol;
use crate::nftables::tree::{Expression, ExpressionKind, Operator, Parsed, fault};
use crate::packets::{AddressError, Families, Field, Values, parse_network};
use crate::services::parse_port;

/// A field whose values are numbers or addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberField {
    Address {
        field: Field,
        families: Families,
    },
    Port {
        field: Field,
        protocol: Option<&'static str>,
    },
    Protocol,
    IcmpType,
    IcmpCode,
    Icmpv6Type,
    Icmpv6Code,
}

impl NumberField {
    /// The field of packets.
    pub(super) fn field(self) -> Field {
        match self {
            NumberField::Address { field, .. } | NumberField::Port { field, .. } => field,
            NumberField::Protocol => Field::Protocol,
            NumberField::IcmpType | NumberField::Icmpv6Type => Field::IcmpType,
            NumberField::IcmpCode | NumberField::Icmpv6Code => Field::IcmpCode,
        }
    }

    /// The highest value.
    pub(super) fn max(self) -> u128 {
        match self {
            NumberField::Address { families, .. } if families == Families::IPV4 => {
                u128::from(u32::MAX)
            }
            NumberField::Address { .. } => u128::MAX,
            NumberField::Port { .. } => u128::from(u16::MAX),
            _ => u128::from(u8::MAX),
        }
    }

    /// The noun for messages.
    fn noun(self) -> &'static str {
        match self {
            NumberField::Address { families, .. } if families == Families::IPV4 => {
                "an IPv4 address or prefix"
            }
            NumberField::Address { .. } => "an IPv6 address or prefix",
            NumberField::Port { .. } => "a port",
            NumberField::Protocol => "a protocol",
            NumberField::IcmpType | NumberField::Icmpv6Type => "an ICMP type",
            NumberField::IcmpCode | NumberField::Icmpv6Code => "an ICMP code",
        }
    }

    /// Returns the first and the last value of a word.
    fn interval(self, word: &str) -> Option<(u128, u128)> {
        if let NumberField::Address { families, .. } = self {
            let (family, Values::Bits { value, mask }) = parse_network(word).ok()? else {
                return None;
            };
            return (family == families).then_some((value, value | (self.max() & !mask)));
        }
        let named = match self {
            // A name stands for the port of the protocol, or else of another protocol.
            NumberField::Port { protocol, .. } => parse_port(word, protocol)
                .or_else(|| parse_port(word, None))
                .map(u128::from),
            NumberField::Protocol => parse_protocol(word).map(u128::from),
            NumberField::IcmpType => named(&ICMP_TYPES, word),
            NumberField::IcmpCode => named(&ICMP_CODES, word),
            NumberField::Icmpv6Type => named(&ICMPV6_TYPES, word),
            NumberField::Icmpv6Code => named(&ICMPV6_CODES, word),
            NumberField::Address { .. } => None,
        };
        let value = named.or_else(|| number(word))?;
        (value <= self.max()).then_some((value, value))
    }

    /// Returns the values that a constant stands for.
    pub(super) fn read<'t>(self, constant: &Expression<'t>) -> Parsed<'t, (u128, u128)> {
        match &constant.kind {
            ExpressionKind::Word(word) => self
                .interval(word)
                .ok_or_else(|| self.unknown_word(constant.text, word)),
            ExpressionKind::Any => Ok((0, self.max())),
            ExpressionKind::Range(ends) => {
                let (low, _) = self.read(&ends[0])?;
                let (_, high) = self.read(&ends[1])?;
                match low <= high {
                    true => Ok((low, high)),
                    false => Err(fault(
                        constant.text,
                        AddressError::Range.to_string(),
                        "the lower end first",
                    )),
                }
            }
            _ => {
                let shown = crate::nftables::show::expression(constant);
                Err(fault(constant.text, quoted(&shown), self.noun()))
            }
        }
    }

    fn unknown_word<'t>(self, text: &'t str, word: &str) -> classyard_text::Fault<'t> {
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.contains(':');
        match self {
            NumberField::Address { .. } if is_name => {
                let problem = format!("the name {}, which is not looked up", quoted(word));
                fault(text, problem, self.noun())
            }
            _ => fault(text, quoted(word), self.noun()),
        }
    }
}

/// Returns a decimal or hexadecimal number.
pub(super) fn number(word: &str) -> Option<u128> {
    match word.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
        None => None,
    }
}

/// Returns the number of a name, in any case of letters.
pub(super) fn named(names: &[(&str, u8)], word: &str) -> Option<u128> {
    let mut entries = names.iter();
    entries
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map(|&(_, number)| number.into())
}

/// Returns an address as a number, for masks.
pub(super) fn address(word: &str) -> Option<u128> {
    match word.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => Some(address.to_bits().into()),
        IpAddr::V6(address) => Some(address.to_bits()),
    }
}

/// Returns the bits of flags: names or numbers, joined by commas or operators.
pub(super) fn flags<'t>(names: &[(&str, u8)], constant: &Expression<'t>) -> Parsed<'t, u128> {
    match &constant.kind {
        ExpressionKind::Word(word) => {
            let value = named(names, word).or_else(|| number(word));
            value.ok_or_else(|| {
                let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                fault(constant.text, quoted(word), known.join(", "))
            })
        }
        ExpressionKind::List(parts) => {
            let mut bits = parts.iter().map(|part| flags(names, part));
            bits.try_fold(0, |joined, bits| Ok(joined | bits?))
        }
        ExpressionKind::Binary(operator, operands) => {
            let left_side = flags(names, &operands[0])?;
            let right_side = flags(names, &operands[1])?;
            Ok(match operator {
                Operator::And => left_side & right_side,
                Operator::Or => left_side | right_side,
                Operator::Xor => left_side ^ right_side,
                Operator::ShiftLeft | Operator::ShiftRight => {
                    return Err(fault(constant.text, "a shift of flags", "`|` or `&`"));
                }
            })
        }
        _ => {
            let shown = crate::nftables::show::expression(constant);
            Err(fault(constant.text, quoted(&shown), "flags"))
        }
    }
}

/// The bits of TCP flags.
pub(super) const TCP_FLAGS: [(&str, u8); 8] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
    ("ecn", 64),
    ("cwr", 128),
];

/// The bits of states of connections.
pub(super) const STATES: [(&str, u8); 5] = [
    ("invalid", 1),
    ("established", 2),
    ("related", 4),
    ("new", 8),
    ("untracked", 64),
];

const ICMP_TYPES: [(&str, u8); 15] = [
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp-request", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("address-mask-request", 17),
    ("address-mask-reply", 18),
];

const ICMP_CODES: [(&str, u8); 8] = [
    ("net-unreachable", 0),
    ("host-unreachable", 1),
    ("prot-unreachable", 2),
    ("port-unreachable", 3),
    ("frag-needed", 4),
    ("net-prohibited", 9),
    ("host-prohibited", 10),
    ("admin-prohibited", 13),
];

const ICMPV6_TYPES: [(&str, u8); 19] = [
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("mld-listener-query", 130),
    ("mld-listener-report", 131),
    ("mld-listener-done", 132),
    ("mld-listener-reduction", 132),
    ("nd-router-solicit", 133),
    ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135),
    ("nd-neighbor-advert", 136),
    ("nd-redirect", 137),
    ("router-renumbering", 138),
    ("ind-neighbor-solicit", 141),
    ("ind-neighbor-advert", 142),
    ("mld2-listener-report", 143),
];

const ICMPV6_CODES: [(&str, u8); 6] = [
    ("no-route", 0),
    ("admin-prohibited", 1),
    ("addr-unreachable", 3),
    ("port-unreachable", 4),
    ("policy-fail", 5),
    ("reject-route", 6),
];
