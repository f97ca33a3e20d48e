//! The fields of packets that a rule names, and the packets that have them.
//!
//! A comparison holds only for packets that have the field: `tcp dport != 22` does not
//! match UDP. So each field has a domain. Later fragments have no transport header.

use super::value::NumberField;
use crate::nftables::tree::Family;
use crate::packets::{Families, Field, PORT_PROTOCOLS, PacketSet, TooManyBoxes, Values};

/// A property of packets that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modelled {
    Number(NumberField),
    Interface(Field),
    TcpFlags,
    State,
    /// `meta nfproto` and `meta protocol`.
    Family,
}

/// Returns the property with these words, if it is modelled.
pub(super) fn modelled(selector: &str) -> Option<Modelled> {
    let address =
        |field, families| Some(Modelled::Number(NumberField::Address { field, families }));
    let (header, field) = selector.split_once(' ')?;
    match selector {
        "ip saddr" => return address(Field::Source, Families::IPV4),
        "ip daddr" => return address(Field::Destination, Families::IPV4),
        "ip6 saddr" => return address(Field::Source, Families::IPV6),
        "ip6 daddr" => return address(Field::Destination, Families::IPV6),
        "ip protocol" | "ip6 nexthdr" | "meta l4proto" => {
            return Some(Modelled::Number(NumberField::Protocol));
        }
        "icmp type" => return Some(Modelled::Number(NumberField::IcmpType)),
        "icmp code" => return Some(Modelled::Number(NumberField::IcmpCode)),
        "icmpv6 type" => return Some(Modelled::Number(NumberField::Icmpv6Type)),
        "icmpv6 code" => return Some(Modelled::Number(NumberField::Icmpv6Code)),
        "meta iifname" | "meta iif" => return Some(Modelled::Interface(Field::InInterface)),
        "meta oifname" | "meta oif" => return Some(Modelled::Interface(Field::OutInterface)),
        "tcp flags" => return Some(Modelled::TcpFlags),
        "ct state" => return Some(Modelled::State),
        "meta nfproto" | "meta protocol" => return Some(Modelled::Family),
        _ => {}
    }
    let protocol = match header {
        "tcp" => Some("tcp"),
        "udp" | "udplite" => Some("udp"),
        "sctp" => Some("sctp"),
        "dccp" | "th" => None,
        _ => return None,
    };
    let field = match field {
        "sport" => Field::SourcePort,
        "dport" => Field::DestinationPort,
        _ => return None,
    };
    Some(Modelled::Number(NumberField::Port { field, protocol }))
}

/// The protocols of a header.
fn protocols(header: &str) -> &'static [u8] {
    match header {
        "tcp" => &[6],
        "udp" => &[17],
        "udplite" => &[136],
        "sctp" => &[132],
        "dccp" => &[33],
        "th" => &PORT_PROTOCOLS,
        "icmp" => &[1],
        "igmp" => &[2],
        "icmpv6" => &[58],
        "ah" => &[51],
        "esp" => &[50],
        "comp" => &[108],
        "gre" | "gretap" => &[47],
        _ => &[],
    }
}

/// Returns the packets of a table that have a property.
pub(super) fn domain(selector: &str, table: Family) -> Result<PacketSet, TooManyBoxes> {
    let (header, field) = selector.split_once(' ').unwrap_or((selector, ""));
    // The kernel loads options of TCP and chunks of SCTP without a match on the protocol.
    if matches!(field.split(' ').next(), Some("option" | "chunk")) {
        return Ok(match header {
            "ip" => PacketSet::of_families(Families::IPV4),
            _ => PacketSet::all(),
        });
    }
    match header {
        "ip" => return Ok(PacketSet::of_families(Families::IPV4)),
        "ip6" | "hbh" | "frag" | "dst" | "mh" | "srh" | "exthdr" => {
            return Ok(PacketSet::of_families(Families::IPV6));
        }
        _ => {}
    }
    let protocols = protocols(header);
    if protocols.is_empty() {
        return Ok(PacketSet::all());
    }
    let families = match header {
        // In tables of one family, a match on ICMP compares the protocol only.
        _ if table != Family::Inet => Families::BOTH,
        "icmp" | "igmp" => Families::IPV4,
        "icmpv6" => Families::IPV6,
        _ => Families::BOTH,
    };
    let numbers = protocols.iter().map(|&protocol| Values::number(protocol));
    let packets = PacketSet::of(Field::Protocol, numbers);
    let packets = packets.intersect(&PacketSet::of_families(families))?;
    packets.intersect(&fragments(0, 1))
}

/// Returns the packets whose place in fragments is in a range: 0 whole, 1 first, 2 later.
pub(super) fn fragments(low: u8, high: u8) -> PacketSet {
    PacketSet::of(Field::Fragment, [Values::range(low, high)])
}

/// Returns the packets of protocols that have no ports.
pub(super) fn without_ports() -> Result<PacketSet, TooManyBoxes> {
    let numbers = PORT_PROTOCOLS.map(Values::number);
    PacketSet::all().subtract(&PacketSet::of(Field::Protocol, numbers))
}
