//! Link types: the kinds of header that a captured frame starts with.

use std::fmt;

/// The kind of header that a captured frame starts with.
///
/// The numbers are the numbers in capture files (`LINKTYPE_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet (1).
    Ethernet,
    /// No link header: IPv4 or IPv6, distinguished by the version field (101, and the
    /// older 12 and 14).
    RawIp,
    /// No link header, IPv4 only (228).
    Ipv4,
    /// No link header, IPv6 only (229).
    Ipv6,
    /// Linux cooked capture, version 1: the former format of `-i any` (113).
    LinuxCooked,
    /// Linux cooked capture, version 2 (276).
    LinuxCooked2,
    /// BSD loopback: an address family in the byte order of the capturing machine (0).
    Null,
    /// OpenBSD loopback: an address family in network byte order (108).
    Loopback,
    /// Any other link type: its frames are counted and not parsed.
    Other(u16),
}

impl LinkType {
    /// The link types whose frames are parsed.
    pub const PARSED: [LinkType; 8] = [
        LinkType::Ethernet,
        LinkType::RawIp,
        LinkType::Ipv4,
        LinkType::Ipv6,
        LinkType::LinuxCooked,
        LinkType::LinuxCooked2,
        LinkType::Null,
        LinkType::Loopback,
    ];

    /// Returns the link type of a number in a capture file.
    #[must_use]
    pub fn from_number(number: u16) -> LinkType {
        match number {
            0 => LinkType::Null,
            1 => LinkType::Ethernet,
            12 | 14 | 101 => LinkType::RawIp,
            108 => LinkType::Loopback,
            113 => LinkType::LinuxCooked,
            228 => LinkType::Ipv4,
            229 => LinkType::Ipv6,
            276 => LinkType::LinuxCooked2,
            other => LinkType::Other(other),
        }
    }

    /// Returns the number of the link type in a capture file.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            LinkType::Null => 0,
            LinkType::Ethernet => 1,
            LinkType::RawIp => 101,
            LinkType::Loopback => 108,
            LinkType::LinuxCooked => 113,
            LinkType::Ipv4 => 228,
            LinkType::Ipv6 => 229,
            LinkType::LinuxCooked2 => 276,
            LinkType::Other(number) => number,
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkType::Ethernet => f.write_str("ethernet"),
            LinkType::RawIp => f.write_str("raw-ip"),
            LinkType::Ipv4 => f.write_str("raw-ipv4"),
            LinkType::Ipv6 => f.write_str("raw-ipv6"),
            LinkType::LinuxCooked => f.write_str("linux-cooked"),
            LinkType::LinuxCooked2 => f.write_str("linux-cooked-2"),
            LinkType::Null => f.write_str("bsd-loopback"),
            LinkType::Loopback => f.write_str("openbsd-loopback"),
            LinkType::Other(number) => write!(f, "link type {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for number in 0..=u16::MAX {
            let link = LinkType::from_number(number);
            if !matches!(number, 12 | 14) {
                assert_eq!(link.number(), number);
            }
            assert_eq!(LinkType::from_number(link.number()), link);
        }
    }
}
