//! Frames in the datapath: parsed, and changed by some actions.
//!
//! ```text
//! action 8 │ action 8 │ action 8 │ action 8 │ frame …
//! ```

use classyard_datapath::field::{VLAN_PRESENT, eth_type};
use classyard_datapath::{Field, Packet};
use classyard_workload::packet::{Family, LinkType, Parsed, ethernet, parse};

/// The input port of all frames.
const IN_PORT: u32 = 7;

/// Parses a frame and changes it. Its fields must equal the fields of two other parsers,
/// and after each change the fields of a fresh parse.
pub(crate) fn frames(data: &[u8]) {
    let Some((actions, frame)) = data.split_first_chunk::<4>() else {
        return;
    };
    let mut packet = Packet::new(frame, IN_PORT);
    agrees_with_reference(&packet, frame);
    agrees_with_captures(&packet, frame);
    for &action in actions {
        change(&mut packet, action);
        let again = Packet::new(packet.bytes(), IN_PORT);
        assert_eq!(packet, again, "action {action}");
    }
}

/// Checks that all fields equal the fields that the reference interpreter parses.
fn agrees_with_reference(packet: &Packet, frame: &[u8]) {
    let other = classyard_reference::Packet::new(frame, IN_PORT, 0);
    for field in Field::all() {
        let ours = packet.key().has(field).then(|| packet.key().get(field));
        assert_eq!(ours, other.get(field), "{field}");
    }
}

/// Checks that the fields equal the fields that the parser of captures also parses.
fn agrees_with_captures(packet: &Packet, frame: &[u8]) {
    let parsed = parse(frame, LinkType::Ethernet);
    // Captures also parse RARP, and tags in SNAP.
    if packet.parsed().layers.llc || parsed.eth_type == Some(ethernet::RARP) {
        return;
    }
    let tag = match parsed.vlan_tags {
        0 => 0,
        _ => VLAN_PRESENT | parsed.vlan_vid,
    };
    let kind = parsed.eth_type.unwrap_or(0);
    let expected = [
        (Field::EthDst, parsed.eth_dst.into()),
        (Field::EthSrc, parsed.eth_src.into()),
        (Field::EthType, kind.into()),
        (Field::VlanVid, tag.into()),
        (Field::VlanPcp, parsed.vlan_pcp.into()),
        (Field::MplsLabel, parsed.mpls_label.into()),
        (Field::MplsTc, parsed.mpls_tc.into()),
    ];
    for (field, value) in expected {
        assert_eq!(packet.key().get(field), value, "{field}: {parsed:?}");
    }
    if kind == eth_type::IPV4 || kind == eth_type::IPV6 {
        agrees_on_ip(packet, &parsed);
    }
}

fn agrees_on_ip(packet: &Packet, parsed: &Parsed) {
    let (src, dst) = match parsed.family {
        Some(Family::V6) => (Field::Ipv6Src, Field::Ipv6Dst),
        _ => (Field::Ipv4Src, Field::Ipv4Dst),
    };
    // The type and code of ICMP are in the place of ports.
    let ports = match (parsed.ports, parsed.icmp) {
        (Some(ports), _) => ports,
        (None, Some((kind, code))) => (kind.into(), code.into()),
        (None, None) => (0, 0),
    };
    let expected = [
        (src, parsed.src),
        (dst, parsed.dst),
        (Field::IpDscp, parsed.dscp.into()),
        (Field::IpProto, parsed.proto.unwrap_or(0).into()),
        (Field::TcpSrc, ports.0.into()),
        (Field::TcpDst, ports.1.into()),
    ];
    for (field, value) in expected {
        assert_eq!(packet.key().get(field), value, "{field}: {parsed:?}");
    }
}

/// Makes the change that a byte encodes.
fn change(packet: &mut Packet, action: u8) {
    let settable = Field::all().filter(|field| field.info().settable && *field < Field::TunnelId);
    let settable: Vec<Field> = settable.collect();
    match usize::from(action).checked_sub(16) {
        Some(number) => {
            let field = settable[number % settable.len()];
            let value = u128::from(action) * 0x0101_0101_0101_0101_0101_0101_0101_0101;
            packet.set_field(field, value & field.max_value());
        }
        None => match action {
            0 => packet.push_vlan(eth_type::VLAN),
            1 => packet.push_vlan(eth_type::VLAN_SERVICE),
            2 => packet.pop_vlan(),
            3 => packet.push_mpls(eth_type::MPLS),
            4 => packet.push_mpls(eth_type::MPLS_UPSTREAM),
            5 => packet.pop_mpls(eth_type::IPV4),
            6 => packet.pop_mpls(eth_type::IPV6),
            7 => packet.pop_mpls(eth_type::MPLS),
            8 => packet.copy_ttl_in(),
            9 => packet.copy_ttl_out(),
            10 => drop(packet.decrement_ttl()),
            11 => drop(packet.decrement_mpls_ttl()),
            12 => packet.set_ttl(1),
            13 => packet.set_ttl(255),
            14 => packet.set_mpls_ttl(1),
            _ => packet.set_mpls_ttl(255),
        },
    }
}
