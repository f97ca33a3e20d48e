//! Fields by the names that `ovs-ofctl` has for them, old and new, and their values.

use classyard::ValueFormat;

use super::scan::{Fault, quoted};
use crate::field::{Field, VLAN_PRESENT, eth_type, ip_proto};
use crate::flow_match::FieldValue;

/// What a line has said of the kind of packets so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) eth_type: Option<u16>,
    pub(super) ip_proto: Option<u8>,
}

/// Words for kinds of packets.
pub(super) const SHORTHANDS: [(&str, u16, Option<u8>); 13] = [
    ("ip", eth_type::IPV4, None),
    ("ipv6", eth_type::IPV6, None),
    ("icmp", eth_type::IPV4, Some(ip_proto::ICMP)),
    ("icmp6", eth_type::IPV6, Some(ip_proto::ICMPV6)),
    ("tcp", eth_type::IPV4, Some(ip_proto::TCP)),
    ("tcp6", eth_type::IPV6, Some(ip_proto::TCP)),
    ("udp", eth_type::IPV4, Some(ip_proto::UDP)),
    ("udp6", eth_type::IPV6, Some(ip_proto::UDP)),
    ("sctp", eth_type::IPV4, Some(ip_proto::SCTP)),
    ("sctp6", eth_type::IPV6, Some(ip_proto::SCTP)),
    ("arp", eth_type::ARP, None),
    ("mpls", eth_type::MPLS, None),
    ("mplsm", eth_type::MPLS_UPSTREAM, None),
];

/// A field by its name; that of an old name may depend on the kind of packets.
pub(super) fn field<'t>(name: &'t str, kind: Kind) -> Result<Field, Fault<'t>> {
    if let Some(field) = Field::from_name(name) {
        return Ok(field);
    }
    let by_type = |ipv4, arp| match kind.eth_type {
        Some(eth_type::ARP) => Ok(arp),
        Some(eth_type::IPV4) => Ok(ipv4),
        _ => Err(Fault::new(
            name,
            format!("{} without a kind of packets", quoted(name)),
            "`ip` or `arp` before it; addresses of IPv6 are `ipv6_src` and `ipv6_dst`",
        )),
    };
    let by_proto = |tcp, udp, sctp| match kind.ip_proto {
        Some(ip_proto::TCP) => Ok(tcp),
        Some(ip_proto::UDP) => Ok(udp),
        Some(ip_proto::SCTP) => Ok(sctp),
        _ => Err(Fault::new(
            name,
            format!("{} without a protocol", quoted(name)),
            "`tcp`, `udp` or `sctp` before it, or `tcp6`, `udp6`, `sctp6`",
        )),
    };
    match name {
        "dl_src" => Ok(Field::EthSrc),
        "dl_dst" => Ok(Field::EthDst),
        "dl_type" => Ok(Field::EthType),
        "dl_vlan" => Ok(Field::VlanVid),
        "dl_vlan_pcp" => Ok(Field::VlanPcp),
        "nw_src" => by_type(Field::Ipv4Src, Field::ArpSpa),
        "nw_dst" => by_type(Field::Ipv4Dst, Field::ArpTpa),
        "nw_proto" if kind.eth_type == Some(eth_type::ARP) => Ok(Field::ArpOp),
        "nw_proto" => Ok(Field::IpProto),
        "nw_tos" => Ok(Field::IpDscp),
        "nw_ecn" => Ok(Field::IpEcn),
        "tp_src" => by_proto(Field::TcpSrc, Field::UdpSrc, Field::SctpSrc),
        "tp_dst" => by_proto(Field::TcpDst, Field::UdpDst, Field::SctpDst),
        "ip_src" => Ok(Field::Ipv4Src),
        "ip_dst" => Ok(Field::Ipv4Dst),
        "icmpv4_type" => Ok(Field::Icmpv4Type),
        "icmpv4_code" => Ok(Field::Icmpv4Code),
        "tunnel_id" => Ok(Field::TunnelId),
        "ipv6_flabel" => Ok(Field::Ipv6Flabel),
        _ => Err(Fault::new(
            name,
            format!("{} is no field", quoted(name)),
            "a field of OpenFlow 1.3 such as `in_port`, `eth_src`, `ipv4_dst`, `tcp_dst`, `reg0`",
        )),
    }
}

/// A value of a field under one of its names, with a mask or without.
pub(super) fn value<'t>(name: &str, field: Field, text: &'t str) -> Result<FieldValue, Fault<'t>> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (value, Some(mask)),
        None => (text, None),
    };
    let mut found = one(field, value)?;
    let mut mask = match mask {
        None => field.max_value(),
        Some(mask) => read_mask(field, mask)?,
    };
    match name {
        // Old names say the number alone, 0xffff for none.
        "dl_vlan" if found == 0xffff => found = 0,
        "dl_vlan" => {
            found |= u128::from(VLAN_PRESENT);
            mask |= u128::from(VLAN_PRESENT);
        }
        // The whole byte, of which DSCP is the upper part.
        "nw_tos" if found & 3 != 0 => {
            return Err(Fault::new(
                value,
                format!(
                    "{} has some of the lowest two bits, which are ECN",
                    quoted(value)
                ),
                "a multiple of 4, or `ip_dscp`",
            ));
        }
        "nw_tos" => found >>= 2,
        _ => {}
    }
    if found > field.max_value() && !(name == "dl_vlan" && found <= 0x1fff) {
        let width = field.info().width;
        return Err(Fault::new(
            value,
            format!("{} does not fit into {width} bits", quoted(value)),
            format!("a value up to {:#x}", field.max_value()),
        ));
    }
    // What the mask leaves open is said in addresses without a meaning.
    let value = match field.format() {
        ValueFormat::Decimal | ValueFormat::Hex => found,
        _ => found & mask,
    };
    Ok(FieldValue { field, value, mask })
}

/// One value, without a mask.
fn one(field: Field, text: &str) -> Result<u128, Fault<'_>> {
    let format = field.format();
    if field == Field::InPort
        && let Some(port) = crate::action::PortNo::from_name(text)
    {
        return Ok(u128::from(port.0));
    }
    format.parse(text).ok_or_else(|| {
        Fault::new(
            text,
            format!("{} is no value of `{field}`", quoted(text)),
            format.expectation(),
        )
    })
}

/// A mask: as a value is written, or the number of upper bits of an IP address.
fn read_mask(field: Field, text: &str) -> Result<u128, Fault<'_>> {
    let width = field.info().width;
    let is_length = !text.contains(['.', ':']);
    match field.format() {
        ValueFormat::Ipv4 | ValueFormat::Ipv6 if is_length => {
            let length: u8 = super::scan::part_number(text, "length of a prefix")?;
            let length = u32::from(length);
            if length > width {
                return Err(Fault::new(
                    text,
                    format!("a prefix of {length} bits"),
                    format!("a length up to {width}"),
                ));
            }
            let open = width - length;
            Ok(field.max_value() & u128::MAX.checked_shl(open).unwrap_or(0))
        }
        _ => one(field, text),
    }
}
