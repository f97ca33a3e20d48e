//! Changed packets: the key agrees with the changed bytes, right checksums remain right,
//! and undoing a change restores the bytes.

use crate::frames::{Dice, checksum, sum_place, transport_sum};
use classyard_datapath::field::{VLAN_PRESENT, eth_type, ip_proto};
use classyard_datapath::packet::Layers;
use classyard_datapath::{Field, InvalidTtl, Packet, Presence};

fn is_tagged(packet: &Packet) -> bool {
    packet.key().get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0
}

/// Parses the bytes of a packet again.
fn read_anew(packet: &Packet) -> Packet {
    let mut again = Packet::new(packet.bytes(), packet.key().get(Field::InPort) as u32);
    for field in [Field::TunnelId].into_iter().chain(registers()) {
        again.set_field(field, packet.key().get(field));
    }
    let metadata = packet.key().get(Field::Metadata) as u64;
    again.write_metadata(metadata, u64::MAX);
    again
}

fn registers() -> impl Iterator<Item = Field> {
    Field::all().filter(|field| field.name().starts_with("reg"))
}

/// Returns whether the checksums of IPv4 and of the transport header are right, or `None`
/// for a checksum that cannot be computed.
fn sums(packet: &Packet) -> [Option<bool>; 2] {
    let (bytes, layers) = (packet.bytes(), packet.parsed().layers);
    let (network, transport) = (layers.network as usize, layers.transport as usize);
    let kind = packet.key().get(Field::EthType) as u16;
    let has = |presence| packet.key().presence().has(presence);
    let (addresses, icmp) = match kind {
        eth_type::IPV4 if has(Presence::NETWORK) => (network + 12..network + 20, 1),
        eth_type::IPV6 if has(Presence::NETWORK) => (network + 8..network + 40, 58),
        _ => return [None, None],
    };
    let header = (kind == eth_type::IPV4 && transport > network)
        .then(|| checksum(&[&bytes[network..transport]]) == 0);
    if !has(Presence::TRANSPORT) {
        return [header, None];
    }
    let protocol = packet.key().get(Field::IpProto) as u8;
    let payload = &bytes[transport..layers.end as usize];
    let summed = match layers.routed {
        true => &bytes[addresses.start..addresses.start + 16],
        false => &bytes[addresses],
    };
    let sum = if protocol == ip_proto::SCTP {
        payload.get(8..12).map(|found| {
            let mut zeroed = payload.to_vec();
            zeroed[8..12].fill(0);
            crc32c::crc32c(&zeroed).to_le_bytes() == found
        })
    } else {
        sum_place(protocol, icmp).and_then(|place| {
            let mut zeroed = payload.to_vec();
            let sum_bytes = zeroed.get_mut(place..place + 2)?;
            let was = [sum_bytes[0], sum_bytes[1]];
            sum_bytes.fill(0);
            let right = transport_sum(&zeroed, protocol, summed).to_be_bytes();
            (protocol != ip_proto::UDP || was != [0, 0]).then(|| was == right)
        })
    };
    // The checksum of a fragmented SCTP packet covers bytes that are missing.
    match layers.fragment && protocol == ip_proto::SCTP {
        true => [header, None],
        false => [header, sum],
    }
}

fn random_value(dice: &mut Dice, field: Field) -> u128 {
    let value = u128::from(dice.next()) << 64 | u128::from(dice.next());
    let value = match dice.below(4) {
        0 => 0,
        1 => u128::MAX,
        _ => value,
    };
    match field {
        Field::VlanVid => value & 0xfff | u128::from(VLAN_PRESENT),
        // Avoid types that turn a packet into neighbour discovery or back; a separate
        // test covers them.
        Field::Icmpv6Type if value & 0xfe == 134 || value & 0xff == 135 => 1,
        _ => value & field.max_value(),
    }
}

#[test]
fn a_set_field_is_in_key_and_bytes_and_checksums_stay_right() {
    let mut dice = Dice(3);
    let settable: Vec<Field> = Field::all().filter(|field| field.info().settable).collect();
    let (mut set, mut lacked) = ([0_usize; Field::COUNT], 0);
    for _ in 0..200_000 {
        let bytes = crate::frames::whole(&mut dice);
        let mut packet = Packet::new(&bytes, 9);
        let before = sums(&packet);
        assert!(
            before.iter().all(|right| *right != Some(false)),
            "the builder's sums"
        );
        let can_set = |&field: &Field| {
            let announces = matches!(field, Field::EthType | Field::IpProto);
            field.info().settable && !announces && packet.key().has(field)
        };
        let fields = Field::all().filter(can_set);
        let fields: Vec<Field> = fields.collect();
        // Half of the time, choose one of the last header fields, which few packets have.
        let headers = fields
            .iter()
            .take_while(|&&field| field < Field::Reg0)
            .count();
        let among = match dice.one_in(2) {
            true => &fields[..],
            false => &fields[headers.saturating_sub(5)..headers],
        };
        // Sometimes choose a field that only other kinds of packets have.
        let field = match dice.one_in(8) {
            true => *dice.pick(&settable),
            false => *dice.pick(among),
        };
        if matches!(field, Field::EthType | Field::IpProto) {
            // Tests of their own cover these fields.
            continue;
        }
        let (old, value) = (packet.key().get(field), random_value(&mut dice, field));
        let has = packet.key().has(field) && (field != Field::VlanVid || is_tagged(&packet));
        let unchanged = packet.clone();
        packet.set_field(field, value);
        if !has {
            assert_eq!(packet, unchanged, "{field}: the packet lacks it");
            lacked += 1;
            continue;
        }
        assert_eq!(packet.key().get(field), value, "{field}");
        assert_eq!(packet, read_anew(&packet), "{field}");
        assert_eq!(
            sums(&packet),
            before,
            "{field} {old:x} {value:x} {bytes:x?}"
        );
        packet.set_field(field, old);
        assert_eq!(packet.bytes(), bytes, "{field}");
        set[field.index()] += 1;
    }
    for field in Field::all() {
        let times = set[field.index()];
        let announces = matches!(field, Field::EthType | Field::IpProto);
        let is_set = field.info().settable && !announces;
        assert_eq!(times > 20, is_set, "{field}: {times}");
    }
    assert!(lacked > 5_000, "{lacked}");
}

#[test]
fn icmpv6_becomes_neighbour_discovery_and_ends_to_be_it() {
    let mut dice = Dice(4);
    let mut turned = [0; 2];
    for _ in 0..20_000 {
        let mut packet = Packet::new(&crate::frames::whole(&mut dice), 9);
        if !packet.key().has(Field::Icmpv6Type) {
            continue;
        }
        let before = (packet.key().presence(), sums(&packet));
        for kind in [135, 1, 136] {
            packet.set_field(Field::Icmpv6Type, kind);
            assert_eq!(packet, read_anew(&packet));
            assert_eq!(sums(&packet), before.1);
            turned[usize::from(packet.key().presence().has(Presence::ND_TARGET))] += 1;
        }
    }
    assert!(turned.iter().all(|&times| times > 100), "{turned:?}");
}

/// Returns the place of the last type of a frame: after VLAN tags, or in a SNAP header.
fn type_place(packet: &Packet) -> Option<usize> {
    let layers = packet.parsed().layers;
    let kind = packet.key().get(Field::EthType) as u16;
    let is_tag = matches!(kind, eth_type::VLAN | eth_type::VLAN_SERVICE | 0x9100);
    let has_type = packet.bytes().len() >= 14 && kind != eth_type::NONE && (layers.llc || !is_tag);
    has_type.then(|| layers.network as usize - 2)
}

#[test]
fn a_set_type_changes_two_bytes_and_the_rest_is_read_as_that_type() {
    let mut dice = Dice(7);
    let (mut set, mut without) = ([0; 5], 0);
    for _ in 0..40_000 {
        let bytes = crate::frames::whole(&mut dice);
        let mut packet = Packet::new(&bytes, 9);
        let number = dice.below(5) as usize;
        let kind = [0x0800, 0x86dd, 0x0806, 0x8847, 0x88b5][number];
        let mut expected = bytes.clone();
        if let Some(place) = type_place(&packet) {
            expected[place..place + 2].copy_from_slice(&u16::to_be_bytes(kind));
            set[number] += 1;
        } else {
            without += 1;
        }
        packet.set_field(Field::EthType, kind.into());
        assert_eq!(packet.bytes(), expected, "{kind:#x} {bytes:x?}");
        assert_eq!(packet, read_anew(&packet));
    }
    assert!(set.iter().all(|&times| times > 1_000), "{set:?}");
    assert!(without > 100, "{without}");
}

/// Returns true if a packet has a right checksum in the place of `protocol`, with a
/// pseudo-header that has the protocol `named`, or `None` for a packet without checksum.
fn is_right_as(packet: &Packet, protocol: u8, named: u8, layers: Layers) -> Option<bool> {
    let bytes = packet.bytes();
    let network = layers.network as usize;
    let addresses = match packet.key().get(Field::EthType) as u16 {
        eth_type::IPV4 => network + 12..network + 20,
        _ if layers.routed => network + 8..network + 24,
        _ => network + 8..network + 40,
    };
    let payload = &bytes[layers.transport as usize..layers.end as usize];
    let place = sum_place(protocol, 58)?;
    let old = payload.get(place..place + 2)?;
    if protocol == ip_proto::UDP && old == [0, 0] {
        return None;
    }
    let mut zeroed = payload.to_vec();
    zeroed[place..place + 2].fill(0);
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let pseudo_header = [&bytes[addresses], &length, &[0, 0, 0, named]].concat();
    let right = match checksum(&[&pseudo_header, &zeroed]) {
        0 if protocol == ip_proto::UDP => 0xffff,
        right => right,
    };
    Some(right.to_be_bytes() == old)
}

#[test]
fn a_set_protocol_keeps_checksums_right_and_the_payload_is_read_as_that_protocol() {
    let mut dice = Dice(8);
    let mut right = 0;
    for _ in 0..60_000 {
        let mut packet = Packet::new(&crate::frames::whole(&mut dice), 9);
        if !packet.key().has(Field::IpProto) {
            let unchanged = packet.clone();
            packet.set_field(Field::IpProto, 6);
            assert_eq!(packet, unchanged);
            continue;
        }
        let layers = packet.parsed().layers;
        let old = packet.key().get(Field::IpProto) as u8;
        let has_pseudo_header = packet.key().presence().has(Presence::TRANSPORT)
            && matches!(old, ip_proto::TCP | ip_proto::UDP | ip_proto::ICMPV6);
        let before = packet.clone();
        // No extension header.
        let new = *dice.pick(&[1, 6, 17, 58, 132, 253_u8]);
        packet.set_field(Field::IpProto, new.into());
        assert_eq!(packet.key().get(Field::IpProto), u128::from(new));
        assert_eq!(packet, read_anew(&packet));
        assert_eq!(sums(&packet)[0], sums(&before)[0], "the sum of IPv4");
        if has_pseudo_header {
            let was = is_right_as(&before, old, old, layers);
            assert_eq!(is_right_as(&packet, old, new, layers), was, "{old} {new}");
            right += usize::from(was == Some(true));
        } else {
            let changed = before.bytes().iter().zip(packet.bytes());
            let changed = changed.filter(|(before, after)| before != after).count();
            assert!(changed <= 3, "the protocol and the sum of IPv4: {changed}");
        }
    }
    assert!(right > 5_000, "{right}");
}

#[test]
fn tags_and_labels_are_pushed_and_popped() {
    let mut dice = Dice(5);
    let mut labelled = 0;
    for _ in 0..20_000 {
        let bytes = crate::frames::whole(&mut dice);
        let packet = Packet::new(&bytes, 9);
        let get = |packet: &Packet, field| packet.key().get(field);

        let mut tagged = packet.clone();
        tagged.push_vlan(eth_type::VLAN_SERVICE);
        assert_eq!(tagged, read_anew(&tagged));
        assert_eq!(tagged.bytes().len(), bytes.len() + 4);
        let vid = get(&packet, Field::VlanVid) | u128::from(VLAN_PRESENT);
        assert_eq!(
            get(&tagged, Field::VlanVid),
            vid,
            "a copy of the outermost one"
        );
        assert_eq!(get(&tagged, Field::VlanPcp), get(&packet, Field::VlanPcp));
        tagged.pop_vlan();
        assert_eq!(tagged, packet);

        let mut with = packet.clone();
        with.push_mpls(eth_type::MPLS);
        if with == packet {
            assert!(packet.parsed().layers.llc || !packet.parsed().flaws.is_empty());
            continue;
        }
        labelled += 1;
        assert_eq!(with, read_anew(&with));
        let was = get(&packet, Field::EthType) as u16;
        assert_eq!(get(&with, Field::EthType), u128::from(eth_type::MPLS));
        let is_inner = matches!(was, eth_type::MPLS | eth_type::MPLS_UPSTREAM);
        assert_eq!(get(&with, Field::MplsBos), u128::from(!is_inner));
        if is_inner {
            assert_eq!(get(&with, Field::MplsLabel), get(&packet, Field::MplsLabel));
        }
        with.pop_mpls(was);
        assert_eq!(with, packet);
    }
    assert!(labelled > 10_000);
}

/// Returns an IPv4 packet with a time to live.
fn with_ttl(ttl: u8) -> Packet {
    let mut frame = vec![0; 12];
    let mut header = [
        0x45, 0, 0, 24, 0, 0, 0, 0, ttl, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    let sum = checksum(&[&header]).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    frame.extend([8, 0]);
    frame.extend(header);
    frame.extend([1, 2, 3, 4]);
    Packet::new(&frame, 1)
}

#[test]
fn times_to_live_are_set_decremented_and_copied() {
    let ttl = |packet: &Packet, at: usize| packet.bytes()[at];
    let mut packet = with_ttl(64);
    packet.decrement_ttl().unwrap();
    assert_eq!((ttl(&packet, 22), sums(&packet)[0]), (63, Some(true)));
    packet.set_ttl(2);
    packet.decrement_ttl().unwrap();
    for _ in 0..2 {
        assert_eq!(packet.decrement_ttl(), Err(InvalidTtl));
        assert_eq!((ttl(&packet, 22), sums(&packet)[0]), (1, Some(true)));
    }
    packet.set_ttl(200);

    // The label copies the packet's time to live; then they change separately.
    packet.push_mpls(eth_type::MPLS);
    assert_eq!(ttl(&packet, 17), 200);
    packet.decrement_ttl().expect("it is not IP but MPLS");
    packet.decrement_mpls_ttl().unwrap();
    assert_eq!((ttl(&packet, 17), ttl(&packet, 26)), (199, 200));
    packet.copy_ttl_in();
    assert_eq!((ttl(&packet, 17), ttl(&packet, 26)), (199, 199));
    packet.set_mpls_ttl(9);
    packet.push_mpls(eth_type::MPLS);
    packet.set_mpls_ttl(1);
    assert_eq!(packet.decrement_mpls_ttl(), Err(InvalidTtl));
    packet.copy_ttl_out();
    assert_eq!(
        (ttl(&packet, 17), ttl(&packet, 21), ttl(&packet, 30)),
        (9, 9, 199)
    );
    packet.set_mpls_ttl(77);
    packet.copy_ttl_in();
    assert_eq!(
        (ttl(&packet, 17), ttl(&packet, 21), ttl(&packet, 30)),
        (77, 77, 199)
    );
    packet.pop_mpls(eth_type::MPLS);
    packet.copy_ttl_out();
    assert_eq!((ttl(&packet, 17), ttl(&packet, 26)), (199, 199));
    packet.pop_mpls(eth_type::IPV4);
    assert_eq!((ttl(&packet, 22), sums(&packet)[0]), (199, Some(true)));

    let before = packet.clone();
    packet.set_mpls_ttl(3);
    packet.decrement_mpls_ttl().unwrap();
    packet.copy_ttl_in();
    packet.copy_ttl_out();
    packet.pop_mpls(eth_type::IPV4);
    packet.pop_vlan();
    assert_eq!(packet, before, "there is no label");
}

/// Changes damaged frames: no change panics, and the key agrees with the bytes.
#[test]
fn damaged_frames_are_changed_as_far_as_they_go() {
    let mut dice = Dice(6);
    let settable: Vec<Field> = Field::all().filter(|field| field.info().settable).collect();
    for _ in 0..60_000 {
        let mut packet = Packet::new(&crate::frames::damaged(&mut dice), 9);
        for _ in 0..6 {
            match dice.below(12) {
                0 => packet.push_vlan(eth_type::VLAN),
                1 => packet.pop_vlan(),
                2 => packet.push_mpls(eth_type::MPLS_UPSTREAM),
                3 => packet.pop_mpls(*dice.pick(&[eth_type::IPV4, eth_type::MPLS, 0x1234])),
                4 => packet.copy_ttl_in(),
                5 => packet.copy_ttl_out(),
                6 => packet.set_ttl(dice.byte()),
                7 => drop(packet.decrement_ttl()),
                8 => drop(packet.decrement_mpls_ttl()),
                9 => packet.write_metadata(dice.next(), dice.next()),
                _ => {
                    let field = *dice.pick(&settable);
                    packet.set_field(field, random_value(&mut dice, field));
                }
            }
            assert_eq!(packet, read_anew(&packet));
        }
    }
}
