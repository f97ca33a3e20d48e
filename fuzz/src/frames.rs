//! Frames in the datapath: parsed, and changed by some actions.
//!
//! ```text
//! action 8 │ action 8 │ action 8 │ action 8 │ frame …
//! ```

use classyard_datapath::field::eth_type;
use classyard_datapath::{Field, Packet};
use classyard_workload::packet::{LinkType, parse};

/// The port by which all frames come in.
const PORT: u32 = 7;

/// Parses a frame, and changes it; what is known of it must be what another parser
/// knows, and what is read from its bytes anew.
pub(crate) fn frames(data: &[u8]) {
    let Some((actions, frame)) = data.split_first_chunk::<4>() else {
        return;
    };
    let mut packet = Packet::new(frame, PORT);
    agrees(&packet, frame);
    for &action in actions {
        change(&mut packet, action);
        let again = Packet::new(packet.bytes(), PORT);
        assert_eq!(packet, again, "action {action}");
    }
}

/// The five-tuple is that of the parser of captures.
fn agrees(packet: &Packet, frame: &[u8]) {
    let parsed = parse(frame, LinkType::Ethernet);
    let (src, dst, tuple) = match (parsed.ipv4_5tuple(), parsed.ipv6_5tuple()) {
        (Some(tuple), _) => (Field::Ipv4Src, Field::Ipv4Dst, tuple),
        (_, Some(tuple)) => (Field::Ipv6Src, Field::Ipv6Dst, tuple),
        (None, None) => return,
    };
    // Behind labels, or tags within SNAP, the datapath does not look.
    let kind = packet.key().get(Field::EthType);
    if kind != u128::from(eth_type::IPV4) && kind != u128::from(eth_type::IPV6) {
        return;
    }
    let ours = [src, dst, Field::TcpSrc, Field::TcpDst, Field::IpProto];
    let mut ours = ours.map(|field| packet.key().get(field));
    if parsed.icmp.is_some() {
        // Its type and code are where ports would be.
        (ours[2], ours[3]) = (0, 0);
    }
    assert_eq!(ours, tuple);
}

/// Makes the change that a byte stands for.
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
