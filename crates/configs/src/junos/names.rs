//! Names of ports, protocols and ICMP types in conditions.

use classyard_text::Fault;
use classyard_text::line::quoted;

/// Names of ports, with their numbers.
const PORTS: [(&str, u32); 69] = [
    ("afs", 1483),
    ("bgp", 179),
    ("biff", 512),
    ("bootpc", 68),
    ("bootps", 67),
    ("cmd", 514),
    ("cvspserver", 2401),
    ("dhcp", 67),
    ("domain", 53),
    ("eklogin", 2105),
    ("ekshell", 2106),
    ("excc", 512),
    ("exec", 512),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("http", 80),
    ("https", 443),
    ("ident", 113),
    ("imap", 143),
    ("kerberos-sec", 88),
    ("klogin", 543),
    ("kpasswd", 761),
    ("krb-prop", 754),
    ("krbupdate", 760),
    ("kshell", 544),
    ("ldap", 389),
    ("ldp", 646),
    ("login", 513),
    ("mobileip-agent", 434),
    ("mobilip-mn", 435),
    ("msdp", 639),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfsd", 2049),
    ("nntp", 119),
    ("ntalk", 518),
    ("ntp", 123),
    ("pop3", 110),
    ("pptp", 1723),
    ("printer", 515),
    ("radacct", 1813),
    ("radius", 1812),
    ("rip", 520),
    ("rkinit", 2108),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("snmptrap", 162),
    ("snpp", 444),
    ("socks", 1080),
    ("ssh", 22),
    ("sunrpc", 111),
    ("syslog", 514),
    ("tacacs", 49),
    ("tacacs-ds", 65),
    ("talk", 517),
    ("telnet", 23),
    ("tftp", 69),
    ("timed", 525),
    ("twamp", 862),
    ("who", 513),
    ("whois", 43),
    ("www", 80),
    ("xdmcp", 177),
    ("zephyr-clt", 2103),
    ("zephyr-hm", 2104),
    ("zephyr-srv", 2102),
];

/// Names of protocols that are not in the headers after the fixed header of IPv6.
const PROTOCOLS: [(&str, u32); 17] = [
    ("ah", 51),
    ("egp", 8),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("icmp6", 58),
    ("icmpv6", 58),
    ("igmp", 2),
    ("ipip", 4),
    ("ipv6", 41),
    ("ospf", 89),
    ("pim", 103),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("udp", 17),
    ("vrrp", 112),
];

/// Names of extension headers of IPv6.
const EXTENSIONS: [(&str, u32); 5] = [
    ("hop-by-hop", 0),
    ("routing", 43),
    ("fragment", 44),
    ("no-next-header", 59),
    ("dstopts", 60),
];

const ICMP_TYPES: [(&str, u32); 17] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicit", 10),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("mask-request", 17),
    ("mask-reply", 18),
];

const ICMP6_TYPES: [(&str, u32); 24] = [
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("private-experimentation-100", 100),
    ("private-experimentation-101", 101),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("membership-query", 130),
    ("membership-report", 131),
    ("membership-termination", 132),
    ("router-solicit", 133),
    ("router-advertisement", 134),
    ("neighbor-solicit", 135),
    ("neighbor-advertisement", 136),
    ("redirect", 137),
    ("router-renumbering", 138),
    ("node-information-request", 139),
    ("node-information-reply", 140),
    ("inverse-neighbor-discovery-solicitation", 141),
    ("inverse-neighbor-discovery-advertisement", 142),
    ("home-agent-address-discovery-request", 144),
    ("home-agent-address-discovery-reply", 145),
    ("mobile-prefix-solicitation", 146),
];

const ICMP_CODES: [(&str, u32); 24] = [
    ("network-unreachable", 0),
    ("host-unreachable", 1),
    ("protocol-unreachable", 2),
    ("port-unreachable", 3),
    ("fragmentation-needed", 4),
    ("source-route-failed", 5),
    ("destination-network-unknown", 6),
    ("destination-host-unknown", 7),
    ("source-host-isolated", 8),
    ("destination-network-prohibited", 9),
    ("destination-host-prohibited", 10),
    ("network-unreachable-for-tos", 11),
    ("host-unreachable-for-tos", 12),
    ("communication-prohibited-by-filtering", 13),
    ("host-precedence-violation", 14),
    ("precedence-cutoff-in-effect", 15),
    ("redirect-for-network", 0),
    ("redirect-for-host", 1),
    ("redirect-for-tos-and-net", 2),
    ("redirect-for-tos-and-host", 3),
    ("ttl-eq-zero-during-transit", 0),
    ("ttl-eq-zero-during-reassembly", 1),
    ("ip-header-bad", 0),
    ("required-option-missing", 1),
];

const ICMP6_CODES: [(&str, u32); 9] = [
    ("no-route-to-destination", 0),
    ("administratively-prohibited", 1),
    ("address-unreachable", 3),
    ("port-unreachable", 4),
    ("ttl-eq-zero-during-transit", 0),
    ("ttl-eq-zero-during-reassembly", 1),
    ("ip6-header-bad", 0),
    ("unrecognized-next-header", 1),
    ("unrecognized-option", 2),
];

/// Numbers with names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// The expected text, for messages.
    expected: &'static str,
    names: &'static [(&'static str, u32)],
    max: u32,
}

impl Names {
    pub(super) const PORT: Names = Names {
        expected: "a port, such as 22 or ssh, or a range of ports, such as 1024-65535",
        names: &PORTS,
        max: u16::MAX as u32,
    };
    pub(super) const PROTOCOL: Names = Names {
        expected: "a protocol, such as tcp or 6",
        names: &PROTOCOLS,
        max: u8::MAX as u32,
    };
    pub(super) const EXTENSION: Names = Names {
        expected: "an extension header, such as fragment",
        names: &EXTENSIONS,
        max: u8::MAX as u32,
    };
    pub(super) const FRAGMENT_OFFSET: Names = Names {
        expected: "a number from 0 to 8191, or a range",
        names: &[],
        max: 8191,
    };

    /// Returns the types of ICMP, or of ICMP for IPv6.
    pub(super) fn icmp_types(is_ipv6: bool) -> Names {
        Names {
            expected: "a type of ICMP, such as 8 or echo-request, or a range",
            names: if is_ipv6 { &ICMP6_TYPES } else { &ICMP_TYPES },
            max: u8::MAX.into(),
        }
    }

    /// Returns the codes of ICMP, or of ICMP for IPv6.
    pub(super) fn icmp_codes(is_ipv6: bool) -> Names {
        Names {
            expected: "a code of ICMP, such as 3 or port-unreachable, or a range",
            names: if is_ipv6 { &ICMP6_CODES } else { &ICMP_CODES },
            max: u8::MAX.into(),
        }
    }

    /// Returns the largest number.
    pub(super) fn max(&self) -> u32 {
        self.max
    }

    /// Returns the number with a name, if there is one.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let mut names = self.names.iter();
        names
            .find(|(other, _)| *other == name)
            .map(|(_, number)| *number)
    }

    /// True if a number has a name.
    pub(super) fn has(&self, number: u32) -> bool {
        self.names.iter().any(|(_, other)| *other == number)
    }

    /// Parses a number, a name or a range of numbers.
    pub(super) fn parse<'t>(&self, text: &'t str) -> Result<(u32, u32), Fault<'t>> {
        if let Some(number) = self.number(text) {
            return Ok((number, number));
        }
        let fault = |message: String| Fault::new(text, message, self.expected);
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let value = |part: &str| {
            self.number(part.trim())
                .or_else(|| parse_number(part.trim()))
        };
        let (Some(low), Some(high)) = (value(low), value(high)) else {
            return Err(fault(quoted(text)));
        };
        if high > self.max || low > self.max {
            return Err(fault(format!("{} is above {}", quoted(text), self.max)));
        }
        if low > high {
            return Err(fault(format!("{} begins above its end", quoted(text))));
        }
        Ok((low, high))
    }
}

/// Parses a decimal or hexadecimal number.
fn parse_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_number.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Returns ranges sorted, without overlaps and neighbours.
pub(super) fn merged(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(previous) if low <= previous.1.saturating_add(1) => {
                previous.1 = previous.1.max(high);
            }
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// Returns the numbers from 0 to `max` that are not in ranges, which are sorted and disjoint.
pub(super) fn complement(ranges: &[(u32, u32)], max: u32) -> Vec<(u32, u32)> {
    let mut other_ranges = Vec::new();
    let mut next_number = 0;
    for &(low, high) in ranges {
        if next_number < low {
            other_ranges.push((next_number, low - 1));
        }
        next_number = high.saturating_add(1);
    }
    if next_number <= max {
        other_ranges.push((next_number, max));
    }
    other_ranges
}
