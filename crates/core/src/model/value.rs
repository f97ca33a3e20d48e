//! Formats of field values: numbers, addresses, names.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The text format of a field's values.
///
/// Every format also accepts a decimal number and a `0x` number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ValueFormat {
    /// `443`
    #[default]
    Decimal,
    /// `0x1bb`
    Hex,
    /// `192.0.2.1`; for fields of 32 bits
    Ipv4,
    /// `2001:db8::1`; for fields of 128 bits
    Ipv6,
    /// `02:00:5e:10:00:01`; for fields of 48 bits
    Mac,
    /// `tcp`, or the number if the protocol has no common name; for fields of 8
    /// bits
    IpProtocol,
}

/// Common IP protocols with their numbers (IANA).
const PROTOCOL_NUMBERS: [(&str, u8); 17] = [
    ("hopopt", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("udp", 17),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
];

impl ValueFormat {
    const ALL: [ValueFormat; 6] = [
        ValueFormat::Decimal,
        ValueFormat::Hex,
        ValueFormat::Ipv4,
        ValueFormat::Ipv6,
        ValueFormat::Mac,
        ValueFormat::IpProtocol,
    ];

    /// Returns the format's name in schema files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ValueFormat::Decimal => "decimal",
            ValueFormat::Hex => "hex",
            ValueFormat::Ipv4 => "ipv4",
            ValueFormat::Ipv6 => "ipv6",
            ValueFormat::Mac => "mac",
            ValueFormat::IpProtocol => "ip-protocol",
        }
    }

    /// Returns the format with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ValueFormat> {
        ValueFormat::ALL.into_iter().find(|f| f.name() == name)
    }

    /// True if the format suits a field of `width` bits.
    #[must_use]
    pub fn fits(self, width: u32) -> bool {
        match self {
            ValueFormat::Decimal | ValueFormat::Hex => true,
            ValueFormat::Ipv4 => width == 32,
            ValueFormat::Ipv6 => width == 128,
            ValueFormat::Mac => width == 48,
            ValueFormat::IpProtocol => width == 8,
        }
    }

    /// Parses a value; returns `None` if the text is not in this format. The
    /// caller checks that the value fits its field.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<u128> {
        let special = match self {
            ValueFormat::Decimal | ValueFormat::Hex => None,
            ValueFormat::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into()),
            ValueFormat::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            ValueFormat::Mac => parse_mac(text),
            ValueFormat::IpProtocol => PROTOCOL_NUMBERS
                .iter()
                .find(|(name, _)| text.eq_ignore_ascii_case(name))
                .map(|&(_, number)| number.into()),
        };
        special.or_else(|| parse_number(text))
    }

    /// Returns an adapter that prints `value` in this format.
    #[must_use]
    pub fn display(self, value: u128) -> DisplayValue {
        DisplayValue {
            format: self,
            value,
        }
    }

    /// Returns the expected text, for error messages of readers.
    #[must_use]
    pub fn expectation(self) -> &'static str {
        match self {
            ValueFormat::Decimal | ValueFormat::Hex => "a decimal or 0x number",
            ValueFormat::Ipv4 => "an IPv4 address such as 192.0.2.1",
            ValueFormat::Ipv6 => "an IPv6 address such as 2001:db8::1",
            ValueFormat::Mac => "an Ethernet address such as 02:00:5e:10:00:01",
            ValueFormat::IpProtocol => "a protocol name such as tcp, or its number",
        }
    }
}

fn parse_number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    // `from_str_radix` would accept a sign.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    u128::from_str_radix(digits, radix).ok()
}

fn parse_mac(text: &str) -> Option<u128> {
    let mut value = 0u128;
    let mut count = 0;
    for part in text.split(':') {
        if part.len() != 2 || !part.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        value = (value << 8) | u128::from(u8::from_str_radix(part, 16).ok()?);
        count += 1;
    }
    (count == 6).then_some(value)
}

/// Prints a value in a format; created by [`ValueFormat::display`].
#[derive(Clone, Copy, Debug)]
pub struct DisplayValue {
    format: ValueFormat,
    value: u128,
}

impl fmt::Display for DisplayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.format {
            ValueFormat::Decimal => write!(f, "{value}"),
            ValueFormat::Hex => write!(f, "{value:#x}"),
            ValueFormat::Ipv4 => match u32::try_from(value) {
                Ok(bits) => write!(f, "{}", Ipv4Addr::from_bits(bits)),
                Err(_) => write!(f, "{value:#x}"),
            },
            ValueFormat::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(value)),
            ValueFormat::Mac => {
                for (i, shift) in (0..48).step_by(8).rev().enumerate() {
                    let separator = if i == 0 { "" } else { ":" };
                    write!(f, "{separator}{:02x}", (value >> shift) & 0xff)?;
                }
                Ok(())
            }
            ValueFormat::IpProtocol => {
                match PROTOCOL_NUMBERS
                    .iter()
                    .find(|(_, number)| u128::from(*number) == value)
                {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{value}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_through_text() {
        let cases = [
            (ValueFormat::Decimal, 443, "443"),
            (ValueFormat::Hex, 0x8100, "0x8100"),
            (ValueFormat::Ipv4, 0xC000_0201, "192.0.2.1"),
            (ValueFormat::Ipv6, 0x2001_0db8 << 96 | 1, "2001:db8::1"),
            (ValueFormat::Mac, 0x0200_5e10_0001, "02:00:5e:10:00:01"),
            (ValueFormat::IpProtocol, 6, "tcp"),
            (ValueFormat::IpProtocol, 200, "200"),
        ];
        for (format, value, text) in cases {
            assert_eq!(format.display(value).to_string(), text);
            assert_eq!(format.parse(text), Some(value), "{text}");
            assert_eq!(ValueFormat::from_name(format.name()), Some(format));
        }
    }

    #[test]
    fn nonsense_is_no_value() {
        for format in ValueFormat::ALL {
            for text in [
                "",
                "+1",
                "-1",
                "0x",
                "0xg",
                "1.2.3",
                "1.2.3.4.5",
                "a:b",
                "12z",
                " 1",
            ] {
                assert_eq!(format.parse(text), None, "{format:?} {text:?}");
            }
        }
    }
}
