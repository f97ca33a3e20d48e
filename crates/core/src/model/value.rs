//! Formats of field values: numbers, addresses, names.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The text format of a field's values.
///
/// Every format also accepts a decimal number and a `0x` number, except [`Text`], which
/// accepts only the latter.
///
/// [`Text`]: ValueFormat::Text
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
    /// `new`, `established`, `related`, `invalid` or `untracked`: the state of a packet's
    /// connection; for fields of 3 bits
    ConnectionState,
    /// `whole`, `first` or `later`: a packet that is not a fragment, a first fragment or
    /// a later fragment; for fields of 2 bits
    Fragment,
    /// `0x12`; values under a mask are written by the names of the flags, `+syn-ack` for SYN
    /// without ACK; for fields of 8 bits
    TcpFlags,
    /// `eth0`: a text of at most 16 bytes, padded with zero bytes; for fields of 128 bits.
    /// `\x2a` is the byte 0x2a. Bytes that are not printable are written so, and so are
    /// spaces and the characters `\\`, `*`, `,`, `=`, `#`, `"` and `!`.
    Text,
}

/// Common IP protocols with their numbers (IANA). The first name of a number is written.
const PROTOCOL_NUMBERS: [(&str, u8); 18] = [
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
    ("ipv6-icmp", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
];

/// States of connections, with their numbers in fields. Firewalls often select
/// established and related packets together, which are one range here.
const CONNECTION_STATES: [(&str, u8); 5] = [
    ("new", 0),
    ("established", 1),
    ("related", 2),
    ("invalid", 3),
    ("untracked", 4),
];

/// Kinds of fragments, with their numbers in fields.
const FRAGMENTS: [(&str, u8); 3] = [("whole", 0), ("first", 1), ("later", 2)];

/// Flags of TCP, from bit 0.
const TCP_FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// The number of bytes of a text.
const TEXT_BYTES: usize = 16;

impl ValueFormat {
    const ALL: [ValueFormat; 10] = [
        ValueFormat::Decimal,
        ValueFormat::Hex,
        ValueFormat::Ipv4,
        ValueFormat::Ipv6,
        ValueFormat::Mac,
        ValueFormat::IpProtocol,
        ValueFormat::ConnectionState,
        ValueFormat::Fragment,
        ValueFormat::TcpFlags,
        ValueFormat::Text,
    ];

    /// Returns the names of values.
    fn names(self) -> &'static [(&'static str, u8)] {
        match self {
            ValueFormat::IpProtocol => &PROTOCOL_NUMBERS,
            ValueFormat::ConnectionState => &CONNECTION_STATES,
            ValueFormat::Fragment => &FRAGMENTS,
            _ => &[],
        }
    }

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
            ValueFormat::ConnectionState => "connection-state",
            ValueFormat::Fragment => "fragment",
            ValueFormat::TcpFlags => "tcp-flags",
            ValueFormat::Text => "text",
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
            ValueFormat::IpProtocol | ValueFormat::TcpFlags => width == 8,
            ValueFormat::ConnectionState => width == 3,
            ValueFormat::Fragment => width == 2,
            ValueFormat::Text => width == 128,
        }
    }

    /// Parses a value; returns `None` if the text is not in this format. The
    /// caller checks that the value fits its field.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<u128> {
        let special = match self {
            ValueFormat::Decimal | ValueFormat::Hex | ValueFormat::TcpFlags => None,
            ValueFormat::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into()),
            ValueFormat::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            ValueFormat::Mac => parse_mac(text),
            ValueFormat::IpProtocol | ValueFormat::ConnectionState | ValueFormat::Fragment => {
                let mut names = self.names().iter();
                let named = names.find(|(name, _)| text.eq_ignore_ascii_case(name));
                named.map(|&(_, number)| number.into())
            }
            ValueFormat::Text if text.starts_with("0x") => None,
            ValueFormat::Text => return parse_text(text),
        };
        special.or_else(|| parse_number(text))
    }

    /// Parses values under a mask that have a notation of their own, such as `+syn-ack`;
    /// returns the value and the mask. `None` for any other text.
    ///
    /// ```
    /// use classyard::value::ValueFormat;
    ///
    /// assert_eq!(ValueFormat::TcpFlags.parse_masked("+syn-ack"), Some((0x02, 0x12)));
    /// assert_eq!(ValueFormat::TcpFlags.parse_masked("0x02"), None);
    /// ```
    #[must_use]
    pub fn parse_masked(self, text: &str) -> Option<(u128, u128)> {
        if self != ValueFormat::TcpFlags {
            return None;
        }
        let (mut value, mut mask) = (0, 0);
        let mut unread = text;
        while let Some(sign) = unread.chars().next() {
            unread = unread.strip_prefix(['+', '-'])?;
            let name_end = unread.find(['+', '-']).unwrap_or(unread.len());
            let (name, after) = unread.split_at(name_end);
            let mut flags = TCP_FLAGS.iter();
            let bit = flags.position(|flag| flag.eq_ignore_ascii_case(name))?;
            if mask >> bit & 1 != 0 {
                return None;
            }
            mask |= 1 << bit;
            value |= u128::from(sign == '+') << bit;
            unread = after;
        }
        (mask != 0).then_some((value, mask))
    }

    /// Returns values under a mask in the notation that [`parse_masked`] parses. `None` if the
    /// format has none.
    ///
    /// [`parse_masked`]: ValueFormat::parse_masked
    #[must_use]
    pub fn display_masked(self, value: u128, mask: u128) -> Option<String> {
        if self != ValueFormat::TcpFlags || mask == 0 || mask > 0xff {
            return None;
        }
        let flags = TCP_FLAGS.iter().enumerate();
        let compared = flags.filter(|(bit, _)| mask >> bit & 1 != 0);
        let signed = compared.map(|(bit, name)| match value >> bit & 1 {
            0 => format!("-{name}"),
            _ => format!("+{name}"),
        });
        Some(signed.collect())
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
            ValueFormat::ConnectionState => {
                "new, established, related, invalid or untracked, or a number"
            }
            ValueFormat::Fragment => "whole, first or later, or a number",
            ValueFormat::TcpFlags => "a number, or flags such as +syn-ack",
            ValueFormat::Text => "a text of 1 to 16 bytes such as eth0",
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

/// Parses a text with escapes such as `\x2a`.
fn parse_text(text: &str) -> Option<u128> {
    let mut bytes = [0; TEXT_BYTES];
    let mut length = 0;
    let mut rest_of_text = text.as_bytes();
    while let Some((&first, after)) = rest_of_text.split_first() {
        let byte = match after.split_at_checked(3) {
            Some(([b'x', digits @ ..], after_escape)) if first == b'\\' => {
                rest_of_text = after_escape;
                let digits = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            _ => {
                rest_of_text = after;
                first
            }
        };
        *bytes.get_mut(length)? = byte;
        length += 1;
    }
    (length > 0).then(|| u128::from_be_bytes(bytes))
}

/// Writes a text without the zero bytes at its end.
fn write_text(f: &mut fmt::Formatter<'_>, value: u128) -> fmt::Result {
    let bytes = value.to_be_bytes();
    let length = TEXT_BYTES - value.trailing_zeros().min(128) as usize / 8;
    if length == 0 {
        return f.write_str("\\x00");
    }
    for (index, &byte) in bytes[..length].iter().enumerate() {
        let starts_number = index == 0 && bytes.starts_with(b"0x");
        if !byte.is_ascii_graphic() || b"\\*,=#\"!".contains(&byte) || starts_number {
            write!(f, "\\x{byte:02x}")?;
        } else {
            write!(f, "{}", char::from(byte))?;
        }
    }
    Ok(())
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
            ValueFormat::Hex | ValueFormat::TcpFlags => write!(f, "{value:#x}"),
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
            ValueFormat::IpProtocol | ValueFormat::ConnectionState | ValueFormat::Fragment => {
                let mut names = self.format.names().iter();
                match names.find(|(_, number)| u128::from(*number) == value) {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{value}"),
                }
            }
            ValueFormat::Text => write_text(f, value),
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
            (ValueFormat::ConnectionState, 1, "established"),
            (ValueFormat::ConnectionState, 7, "7"),
            (ValueFormat::Fragment, 2, "later"),
            (ValueFormat::TcpFlags, 0x12, "0x12"),
            (ValueFormat::Text, 0x6574_6830 << 96, "eth0"),
            (ValueFormat::Text, 0x0031_3031 << 104, "101"),
            (ValueFormat::Text, 0x7865_2d30_2f30 << 80, "xe-0/0"),
            (ValueFormat::Text, 0x6120_5c2a << 96, "a\\x20\\x5c\\x2a"),
            (ValueFormat::Text, 0x2178 << 112, "\\x21x"),
            (ValueFormat::Text, 0x0030_7831 << 104, "\\x30x1"),
            (ValueFormat::Text, 1, &("\\x00".repeat(15) + "\\x01")),
            (ValueFormat::Text, 0, "\\x00"),
        ];
        for (format, value, text) in cases {
            assert_eq!(format.display(value).to_string(), text);
            assert_eq!(format.parse(text), Some(value), "{text}");
            assert_eq!(ValueFormat::from_name(format.name()), Some(format));
        }
    }

    #[test]
    fn nonsense_is_no_value() {
        let not_text = |format: &ValueFormat| *format != ValueFormat::Text;
        for format in ValueFormat::ALL.into_iter().filter(not_text) {
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
        for text in ["", "12345678901234567", "0x", "0xg"] {
            assert_eq!(ValueFormat::Text.parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn flags_under_masks_round_trip_through_text() {
        let format = ValueFormat::TcpFlags;
        for mask in 1..=0xff {
            for value in [mask, 0, mask & 0x55, mask & 0xaa] {
                let text = format.display_masked(value, mask).unwrap();
                assert_eq!(format.parse_masked(&text), Some((value, mask)), "{text}");
            }
        }
        for text in [
            "",
            "+",
            "syn",
            "+syn+",
            "+syn-syn",
            "+-ack",
            "+SYN +ACK",
            "+x",
        ] {
            assert_eq!(format.parse_masked(text), None, "{text}");
        }
        assert_eq!(format.parse_masked("-ACK+Syn"), Some((0x02, 0x12)));
        assert_eq!(format.display_masked(0, 0), None);
        assert_eq!(ValueFormat::Hex.display_masked(1, 1), None);
    }

    #[test]
    fn texts_may_be_written_as_numbers_and_with_escapes() {
        let parse = |text| ValueFormat::Text.parse(text);
        assert_eq!(parse("0x65"), Some(0x65));
        assert_eq!(parse("eth0"), parse("\\x65th0"));
        assert_eq!(parse("1234567890123456").map(u128::trailing_zeros), Some(1));
        // An escape that is cut off is text.
        assert_eq!(parse("a\\x6"), Some(0x615c_7836 << 96));
    }
}
