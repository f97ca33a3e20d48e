//! Names of protocols, ports and ICMP messages in Cisco's configurations.
//!
//! Devices have different names for some of them. No name has two numbers here; the names
//! in [`AMBIGUOUS_PORTS`] have different numbers in different releases, and are faults.

/// Protocols and their numbers.
const PROTOCOLS: [(&str, u8); 25] = [
    ("ah", 51),
    ("ahp", 51),
    ("egp", 8),
    ("eigrp", 88),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("icmp6", 58),
    ("icmpv6", 58),
    ("igmp", 2),
    ("igrp", 9),
    ("ipinip", 4),
    ("ipsec", 50),
    ("nos", 94),
    ("ospf", 89),
    ("ospfv3", 89),
    ("pcp", 108),
    ("pim", 103),
    ("pptp", 47),
    ("rsvp", 46),
    ("sctp", 132),
    ("snp", 109),
    ("tcp", 6),
    ("udp", 17),
    ("vrrp", 112),
];

/// The numbers of protocols that have ports, and of ICMP.
pub(super) const TCP_NUMBER: u8 = 6;
pub(super) const UDP_NUMBER: u8 = 17;
pub(super) const SCTP_NUMBER: u8 = 132;
pub(super) const ICMP_NUMBER: u8 = 1;
pub(super) const ICMPV6_NUMBER: u8 = 58;
pub(super) const IGMP_NUMBER: u8 = 2;

/// True if packets of the protocol have ports.
pub(super) fn has_ports(protocol: Option<u8>) -> bool {
    matches!(protocol, Some(TCP_NUMBER | UDP_NUMBER | SCTP_NUMBER))
}

/// Returns a protocol: a number or a name. `ip` and other names of all protocols are none
/// of them.
pub(super) fn protocol(word: &str) -> Option<u8> {
    if is_number(word) {
        return word.parse().ok();
    }
    let named = PROTOCOLS.iter().find(|(name, _)| *name == word);
    named.map(|&(_, number)| number)
}

/// True if a word has digits only.
pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names of ports that have different numbers in different releases.
pub(super) const AMBIGUOUS_PORTS: [&str; 2] = ["kerberos", "sqlnet"];

/// Protocols that a name of a port is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Tcp,
    Udp,
    Both,
}

use Carrier::{Both, Tcp, Udp};

const PORTS: [(&str, u16, Carrier); 92] = [
    ("aol", 5190, Tcp),
    ("bgp", 179, Tcp),
    ("biff", 512, Udp),
    ("bootpc", 68, Udp),
    ("bootps", 67, Udp),
    ("chargen", 19, Both),
    ("cifs", 3020, Both),
    ("citrix-ica", 1494, Tcp),
    ("cmd", 514, Tcp),
    ("connectedapps-plain", 15001, Tcp),
    ("connectedapps-tls", 15002, Tcp),
    ("ctiqbe", 2748, Tcp),
    ("daytime", 13, Tcp),
    ("discard", 9, Both),
    ("dnsix", 195, Udp),
    ("domain", 53, Both),
    ("drip", 3949, Tcp),
    ("echo", 7, Both),
    ("exec", 512, Tcp),
    ("finger", 79, Tcp),
    ("ftp", 21, Tcp),
    ("ftp-data", 20, Tcp),
    ("gopher", 70, Tcp),
    ("h323", 1720, Tcp),
    ("hostname", 101, Tcp),
    ("http", 80, Both),
    ("https", 443, Both),
    ("ident", 113, Tcp),
    ("imap4", 143, Tcp),
    ("irc", 194, Tcp),
    ("isakmp", 500, Udp),
    ("klogin", 543, Tcp),
    ("kshell", 544, Tcp),
    ("ldap", 389, Tcp),
    ("ldaps", 636, Tcp),
    ("ldp", 646, Both),
    ("login", 513, Tcp),
    ("lotusnotes", 1352, Tcp),
    ("lpd", 515, Tcp),
    ("mobile-ip", 434, Udp),
    ("msrpc", 135, Tcp),
    ("nameserver", 42, Udp),
    ("netbios-dgm", 138, Udp),
    ("netbios-ns", 137, Udp),
    ("netbios-ss", 139, Udp),
    ("netbios-ssn", 139, Tcp),
    ("nfs", 2049, Both),
    ("nntp", 119, Tcp),
    ("non500-isakmp", 4500, Udp),
    ("ntp", 123, Udp),
    ("onep-plain", 15001, Tcp),
    ("onep-tls", 15002, Tcp),
    ("pcanywhere-data", 5631, Tcp),
    ("pcanywhere-status", 5632, Udp),
    ("pim-auto-rp", 496, Both),
    ("pop2", 109, Tcp),
    ("pop3", 110, Tcp),
    ("pptp", 1723, Tcp),
    ("radius", 1645, Udp),
    ("radius-acct", 1646, Udp),
    ("rip", 520, Udp),
    ("ripng", 521, Udp),
    ("ripv6", 521, Udp),
    ("rsh", 514, Tcp),
    ("rtsp", 554, Both),
    ("secureid-udp", 5510, Udp),
    ("sip", 5060, Both),
    ("smtp", 25, Tcp),
    ("snmp", 161, Udp),
    ("snmptrap", 162, Udp),
    ("ssh", 22, Tcp),
    ("sunrpc", 111, Both),
    ("syslog", 514, Udp),
    ("tacacs", 49, Both),
    ("talk", 517, Both),
    ("telnet", 23, Tcp),
    ("tftp", 69, Udp),
    ("time", 37, Both),
    ("uucp", 540, Tcp),
    ("vxlan", 4789, Udp),
    ("who", 513, Udp),
    ("whois", 43, Tcp),
    ("www", 80, Both),
    ("xdmcp", 177, Udp),
    ("bfd", 3784, Udp),
    ("bfd-echo", 3785, Udp),
    ("epmap", 135, Tcp),
    ("ssmtp", 465, Tcp),
    ("imap3", 220, Tcp),
    ("msdp", 639, Tcp),
    ("pop3s", 995, Tcp),
    ("nat-t", 4500, Udp),
];

/// Returns a port: a number, or a name that is in use with a given protocol. Without
/// protocols, the name of any protocol.
pub(super) fn port(word: &str, protocols: &[u8]) -> Option<u16> {
    if is_number(word) {
        return word.parse().ok();
    }
    let is_carried = |carrier: Carrier| match carrier {
        Tcp => protocols.contains(&TCP_NUMBER),
        Udp => protocols.contains(&UDP_NUMBER),
        Both => protocols.contains(&TCP_NUMBER) || protocols.contains(&UDP_NUMBER),
    };
    let mut ports = PORTS.iter();
    let port = ports.find(|entry| {
        let is_named = entry.0 == word;
        is_named && (protocols.is_empty() || is_carried(entry.2))
    });
    port.map(|&(_, number, _)| number)
}

/// A type of ICMP messages, with a code if the name has one.
type IcmpName = (&'static str, u8, Option<u8>);

const ICMP_NAMES: [IcmpName; 44] = [
    ("administratively-prohibited", 3, Some(13)),
    ("alternate-address", 6, None),
    ("conversion-error", 31, None),
    ("dod-host-prohibited", 3, Some(10)),
    ("dod-net-prohibited", 3, Some(9)),
    ("echo", 8, None),
    ("echo-reply", 0, None),
    ("general-parameter-problem", 12, Some(0)),
    ("host-isolated", 3, Some(8)),
    ("host-precedence-unreachable", 3, Some(14)),
    ("host-redirect", 5, Some(1)),
    ("host-tos-redirect", 5, Some(3)),
    ("host-tos-unreachable", 3, Some(12)),
    ("host-unknown", 3, Some(7)),
    ("host-unreachable", 3, Some(1)),
    ("information-reply", 16, None),
    ("information-request", 15, None),
    ("mask-reply", 18, None),
    ("mask-request", 17, None),
    ("mobile-redirect", 32, None),
    ("net-redirect", 5, Some(0)),
    ("net-tos-redirect", 5, Some(2)),
    ("net-tos-unreachable", 3, Some(11)),
    ("net-unreachable", 3, Some(0)),
    ("network-unknown", 3, Some(6)),
    ("no-room-for-option", 12, Some(2)),
    ("option-missing", 12, Some(1)),
    ("packet-too-big", 3, Some(4)),
    ("parameter-problem", 12, None),
    ("port-unreachable", 3, Some(3)),
    ("precedence-unreachable", 3, Some(15)),
    ("protocol-unreachable", 3, Some(2)),
    ("reassembly-timeout", 11, Some(1)),
    ("redirect", 5, None),
    ("router-advertisement", 9, None),
    ("router-solicitation", 10, None),
    ("source-quench", 4, None),
    ("source-route-failed", 3, Some(5)),
    ("time-exceeded", 11, None),
    ("timestamp-reply", 14, None),
    ("timestamp-request", 13, None),
    ("traceroute", 30, None),
    ("ttl-exceeded", 11, Some(0)),
    ("unreachable", 3, None),
];

const ICMPV6_NAMES: [IcmpName; 43] = [
    ("address-unreachable", 1, Some(3)),
    ("administratively-prohibited", 1, Some(1)),
    ("beyond-scope", 1, Some(2)),
    ("destination-unreachable", 1, None),
    ("dhaad-reply", 145, None),
    ("dhaad-request", 144, None),
    ("echo", 128, None),
    ("echo-reply", 129, None),
    ("echo-request", 128, None),
    ("header", 4, Some(0)),
    ("hop-limit", 3, Some(0)),
    ("membership-query", 130, None),
    ("membership-reduction", 132, None),
    ("membership-report", 131, None),
    ("mld-query", 130, None),
    ("mld-reduction", 132, None),
    ("mld-report", 131, None),
    ("mldv2", 143, None),
    ("mldv2-report", 143, None),
    ("mpd-advertisement", 147, None),
    ("mpd-solicitation", 146, None),
    ("nd-na", 136, None),
    ("nd-ns", 135, None),
    ("neighbor-advertisement", 136, None),
    ("neighbor-redirect", 137, None),
    ("neighbor-solicitation", 135, None),
    ("next-header", 4, Some(1)),
    ("no-admin", 1, Some(1)),
    ("no-route", 1, Some(0)),
    ("packet-too-big", 2, None),
    ("parameter-option", 4, Some(2)),
    ("parameter-problem", 4, None),
    ("port-unreachable", 1, Some(4)),
    ("reassembly-timeout", 3, Some(1)),
    ("redirect", 137, None),
    ("renum-command", 138, Some(0)),
    ("renum-result", 138, Some(1)),
    ("renum-seq-number", 138, Some(255)),
    ("router-advertisement", 134, None),
    ("router-renumbering", 138, None),
    ("router-solicitation", 133, None),
    ("time-exceeded", 3, None),
    ("unreachable", 1, None),
];

/// Returns the message with this name of ICMP or ICMPv6.
pub(super) fn icmp(word: &str, protocol: u8) -> Option<(u8, Option<u8>)> {
    let names = match protocol {
        ICMPV6_NUMBER => &ICMPV6_NAMES[..],
        _ => &ICMP_NAMES[..],
    };
    let named = names.iter().find(|entry| entry.0 == word);
    named.map(|&(_, number, code)| (number, code))
}

/// Names of IGMP messages. No field has them.
pub(super) const IGMP_NAMES: [&str; 9] = [
    "dvmrp",
    "host-query",
    "host-report",
    "pim",
    "trace",
    "trace-v2",
    "leave-group",
    "v2-report",
    "v3-report",
];

/// Control bits of TCP and their numbers in the field of flags.
const TCP_FLAGS: [(&str, u8); 8] = [
    ("fin", 0),
    ("syn", 1),
    ("rst", 2),
    ("psh", 3),
    ("ack", 4),
    ("urg", 5),
    ("ece", 6),
    ("cwr", 7),
];

/// The bits that `established` examines: ACK or RST must be set.
pub(super) const ESTABLISHED_FLAGS: [&str; 2] = ["ack", "rst"];

/// Returns the mask of a control bit of TCP.
pub(super) fn tcp_flag(word: &str) -> Option<u128> {
    let named = TCP_FLAGS.iter().find(|(name, _)| *name == word);
    named.map(|&(_, bit)| 1 << bit)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_name_has_one_number() {
        let mut ports = HashMap::new();
        for (name, number, _) in PORTS {
            assert_eq!(ports.insert(name, number), None, "{name}");
            assert!(!AMBIGUOUS_PORTS.contains(&name));
            assert_eq!(protocol(name).is_some(), name == "pptp", "{name}");
        }
        for names in [&ICMP_NAMES[..], &ICMPV6_NAMES[..]] {
            let mut icmp_names = HashMap::new();
            for (name, number, code) in names {
                assert_eq!(icmp_names.insert(name, (number, code)), None, "{name}");
            }
        }
    }

    #[test]
    fn names_belong_to_protocols() {
        assert_eq!(port("www", &[TCP_NUMBER]), Some(80));
        assert_eq!(port("syslog", &[TCP_NUMBER]), None);
        assert_eq!(port("syslog", &[UDP_NUMBER]), Some(514));
        assert_eq!(port("cmd", &[]), Some(514));
        assert_eq!(port("65536", &[TCP_NUMBER]), None);
        assert_eq!(port("", &[TCP_NUMBER]), None);
        assert_eq!(icmp("unreachable", ICMP_NUMBER), Some((3, None)));
        assert_eq!(icmp("unreachable", ICMPV6_NUMBER), Some((1, None)));
        assert_eq!(protocol("ip"), None);
        assert_eq!(protocol("256"), None);
    }
}
