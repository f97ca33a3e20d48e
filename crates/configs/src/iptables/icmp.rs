//! Names of the types and codes of ICMP and ICMPv6.

use crate::packets::{Field, PacketSet, Values};

/// A type, and the code that a name stands for; `None` if the name stands for all codes.
type TypeAndCode = (u8, Option<u8>);

/// Names of ICMP for IPv4.
const ICMP_NAMES: [(&str, TypeAndCode); 39] = [
    ("echo-reply", (0, None)),
    ("pong", (0, None)),
    ("destination-unreachable", (3, None)),
    ("network-unreachable", (3, Some(0))),
    ("host-unreachable", (3, Some(1))),
    ("protocol-unreachable", (3, Some(2))),
    ("port-unreachable", (3, Some(3))),
    ("fragmentation-needed", (3, Some(4))),
    ("source-route-failed", (3, Some(5))),
    ("network-unknown", (3, Some(6))),
    ("host-unknown", (3, Some(7))),
    ("network-prohibited", (3, Some(9))),
    ("host-prohibited", (3, Some(10))),
    ("tos-network-unreachable", (3, Some(11))),
    ("tos-host-unreachable", (3, Some(12))),
    ("communication-prohibited", (3, Some(13))),
    ("host-precedence-violation", (3, Some(14))),
    ("precedence-cutoff", (3, Some(15))),
    ("source-quench", (4, None)),
    ("redirect", (5, None)),
    ("network-redirect", (5, Some(0))),
    ("host-redirect", (5, Some(1))),
    ("tos-network-redirect", (5, Some(2))),
    ("tos-host-redirect", (5, Some(3))),
    ("echo-request", (8, None)),
    ("ping", (8, None)),
    ("router-advertisement", (9, None)),
    ("router-solicitation", (10, None)),
    ("time-exceeded", (11, None)),
    ("ttl-exceeded", (11, None)),
    ("ttl-zero-during-transit", (11, Some(0))),
    ("ttl-zero-during-reassembly", (11, Some(1))),
    ("parameter-problem", (12, None)),
    ("ip-header-bad", (12, Some(0))),
    ("required-option-missing", (12, Some(1))),
    ("timestamp-request", (13, None)),
    ("timestamp-reply", (14, None)),
    ("address-mask-request", (17, None)),
    ("address-mask-reply", (18, None)),
];

/// Names of ICMPv6.
const ICMPV6_NAMES: [(&str, TypeAndCode); 27] = [
    ("destination-unreachable", (1, None)),
    ("no-route", (1, Some(0))),
    ("communication-prohibited", (1, Some(1))),
    ("beyond-scope", (1, Some(2))),
    ("address-unreachable", (1, Some(3))),
    ("port-unreachable", (1, Some(4))),
    ("failed-policy", (1, Some(5))),
    ("reject-route", (1, Some(6))),
    ("packet-too-big", (2, None)),
    ("time-exceeded", (3, None)),
    ("ttl-exceeded", (3, None)),
    ("ttl-zero-during-transit", (3, Some(0))),
    ("ttl-zero-during-reassembly", (3, Some(1))),
    ("parameter-problem", (4, None)),
    ("bad-header", (4, Some(0))),
    ("unknown-header-type", (4, Some(1))),
    ("unknown-option", (4, Some(2))),
    ("echo-request", (128, None)),
    ("ping", (128, None)),
    ("echo-reply", (129, None)),
    ("pong", (129, None)),
    ("router-solicitation", (133, None)),
    ("router-advertisement", (134, None)),
    ("neighbour-solicitation", (135, None)),
    ("neighbor-solicitation", (135, None)),
    ("neighbour-advertisement", (136, None)),
    ("neighbor-advertisement", (136, None)),
];

/// The name of the redirect of ICMPv6, which ICMP has with another number.
const ICMPV6_REDIRECT: (&str, TypeAndCode) = ("redirect", (137, None));

/// The number of ICMP among the IP protocols.
pub(super) const ICMP: u8 = 1;
/// The number of ICMPv6 among the IP protocols.
pub(super) const ICMPV6: u8 = 58;

/// The type of ICMP that stands for all types in rules.
const ANY_TYPE: u8 = 255;

/// Returns the type and the code of a name, `TYPE` or `TYPE/CODE`.
pub(super) fn parse(text: &str, protocol: u8) -> Option<TypeAndCode> {
    let names = match protocol {
        ICMP => &ICMP_NAMES[..],
        _ => &ICMPV6_NAMES[..],
    };
    let redirect = (protocol == ICMPV6).then_some(&ICMPV6_REDIRECT);
    let mut names = names.iter().chain(redirect);
    if let Some((_, numbers)) = names.find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Some(*numbers);
    }
    match text.split_once('/') {
        Some((kind, code)) => Some((number(kind)?, Some(number(code)?))),
        None => Some((number(text)?, None)),
    }
}

/// Reads a decimal number below 256.
fn number(text: &str) -> Option<u8> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}

/// Returns the types and codes that an option `--icmp-type` or `--icmpv6-type` selects.
pub(super) fn selected(text: &str, protocol: u8) -> Option<PacketSet> {
    if protocol == ICMP && text.eq_ignore_ascii_case("any") {
        return Some(PacketSet::all());
    }
    match parse(text, protocol)? {
        (ANY_TYPE, _) if protocol == ICMP => Some(PacketSet::all()),
        numbers => Some(of_numbers(numbers)),
    }
}

/// Returns the packets with a type and a code.
pub(super) fn of_numbers((kind, code): TypeAndCode) -> PacketSet {
    let of_type = PacketSet::of(Field::IcmpType, [Values::number(kind)]);
    let Some(code) = code else {
        return of_type;
    };
    let of_code = PacketSet::of(Field::IcmpCode, [Values::number(code)]);
    of_type.intersect(&of_code).expect("a box of two fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names_and_numbers() {
        assert_eq!(parse("echo-request", ICMP), Some((8, None)));
        assert_eq!(parse("Echo-Request", ICMPV6), Some((128, None)));
        assert_eq!(parse("TOS-host-redirect", ICMP), Some((5, Some(3))));
        assert_eq!(parse("redirect", ICMPV6), Some((137, None)));
        assert_eq!(parse("3/4", ICMP), Some((3, Some(4))));
        for text in ["", "256", "3/", "/3", "3/256", "+3", "no-route", "3/4/5"] {
            assert_eq!(parse(text, ICMP), None, "{text}");
        }
        assert_eq!(selected("any", ICMP), Some(PacketSet::all()));
        assert_eq!(selected("255", ICMP), Some(PacketSet::all()));
        assert_eq!(selected("any", ICMPV6), None);
    }
}
