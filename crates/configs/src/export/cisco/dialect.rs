//! How the systems of Cisco write the entries of access lists.

use super::super::Family;
use crate::format::ConfigFormat;

/// The form of networks in entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Networks {
    /// `10.0.0.0 0.255.255.255`.
    Wildcard,
    /// `10.0.0.0/8`, and a wildcard mask for masks with holes.
    Prefix,
    /// `10.0.0.0 255.0.0.0`.
    Netmask,
}

/// A system.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The name in messages.
    pub(super) name: &'static str,
    /// The words before the name of a list, for each family. `None` if each entry names its
    /// list, and lists are for both families.
    pub(super) headers: Option<[&'static str; 2]>,
    /// The text before an entry in a list with a header.
    pub(super) indent: &'static str,
    /// True if configurations print the numbers of entries.
    pub(super) has_numbers: bool,
    /// The word for all protocols, for each family.
    pub(super) all_protocols: [&'static str; 2],
    /// The name of ICMPv6.
    pub(super) icmpv6: &'static str,
    pub(super) networks: Networks,
    /// True if `any4` and `any6` are the addresses of a family.
    pub(super) has_any_of_family: bool,
    /// True if entries can have TCP flags.
    pub(super) has_flags: bool,
    /// For each family, true if entries can have several flags, or flags that are not set.
    pub(super) has_match_all: [bool; 2],
    /// True if packets are reassembled before a list examines them. Otherwise the word
    /// `fragments` selects later fragments.
    pub(super) reassembles: bool,
}

impl Dialect {
    /// True if entries that permit and have conditions on the layer-4 header also permit
    /// later fragments.
    pub(super) fn permits_later_fragments(&self, family: Family) -> bool {
        !self.reassembles && family == Family::Ipv4
    }

    /// Returns the system of a format.
    pub(super) fn of(format: ConfigFormat) -> &'static Dialect {
        match format {
            ConfigFormat::CiscoNxos => &NXOS,
            ConfigFormat::CiscoXr => &XR,
            ConfigFormat::CiscoAsa => &ASA,
            _ => &IOS,
        }
    }
}

const IOS: Dialect = Dialect {
    name: "IOS",
    headers: Some(["ip access-list extended", "ipv6 access-list"]),
    indent: " ",
    has_numbers: false,
    all_protocols: ["ip", "ipv6"],
    icmpv6: "icmp",
    networks: Networks::Wildcard,
    has_any_of_family: false,
    has_flags: true,
    has_match_all: [true, false],
    reassembles: false,
};

const NXOS: Dialect = Dialect {
    name: "NX-OS",
    headers: Some(["ip access-list", "ipv6 access-list"]),
    indent: "  ",
    has_numbers: true,
    networks: Networks::Prefix,
    has_match_all: [false, false],
    ..IOS
};

const XR: Dialect = Dialect {
    name: "IOS XR",
    headers: Some(["ipv4 access-list", "ipv6 access-list"]),
    has_numbers: true,
    all_protocols: ["ipv4", "ipv6"],
    icmpv6: "icmpv6",
    has_match_all: [true, true],
    ..IOS
};

const ASA: Dialect = Dialect {
    name: "ASA",
    headers: None,
    indent: "",
    has_numbers: false,
    all_protocols: ["ip", "ip"],
    icmpv6: "icmp6",
    networks: Networks::Netmask,
    has_any_of_family: true,
    has_flags: false,
    has_match_all: [false, false],
    reassembles: true,
};
