//! Names of IP protocols on Linux, as iptables and nftables print them.

use crate::services;

/// The names in `/etc/protocols` of Debian that other formats do not have, or have for other
/// numbers.
const NAMES: [(&str, u8); 50] = [
    ("ip", 0),
    ("hopopt", 0),
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("skip", 57),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header", 135),
    ("ipv6-mh", 135),
    ("mh", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("ethernet", 143),
];

/// Returns an IP protocol: a number or a name, such as `tcp`.
pub(crate) fn parse_protocol(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    let named = NAMES.iter().find(|(name, _)| *name == lower);
    match named {
        Some((_, number)) => Some(*number),
        None => services::parse_protocol(&lower),
    }
}
