//! Sets of packets, compared with the packets one by one.

use super::*;

/// Returns all packets of a small world: values of three fields.
fn packets() -> impl Iterator<Item = (Families, [u128; 3])> {
    let each = (0..4).flat_map(|a| (0..8).flat_map(move |b| (0..4).map(move |c| [a, b, c])));
    each.flat_map(|values| [Families::IPV4, Families::IPV6].map(|family| (family, values)))
}

const WORLD: [Field; 3] = [Field::Fragment, Field::State, Field::TcpFlags];

/// The boxes of a set that have a packet.
fn count(set: &PacketSet, (family, packet): (Families, [u128; 3])) -> usize {
    let boxes = set.boxes().iter().filter(|packets| {
        let mut fields = WORLD.iter().zip(packet);
        packets.families().has(family)
            && fields.all(|(&field, value)| match packets.values(field) {
                None => true,
                Some(Values::Range { low, high }) => (*low..=*high).contains(&value),
                Some(Values::Bits { value: bits, mask }) => value & mask == *bits,
            })
    });
    boxes.count()
}

/// Returns sets of one to three fields, families included.
fn sets() -> Vec<PacketSet> {
    let of = |field, low: u8, high: u8| PacketSet::of(field, [Values::range(low, high)]);
    let flags = |value, mask| PacketSet::of(Field::TcpFlags, [Values::bits(value, mask)]);
    let both = |a: &PacketSet, b: &PacketSet| a.intersect(b).unwrap();
    let either = |a: &PacketSet, b: &PacketSet| a.clone().union(b.clone()).unwrap();
    let simple = vec![
        PacketSet::all(),
        PacketSet::none(),
        PacketSet::of_families(Families::IPV6),
        of(Field::Fragment, 1, 2),
        of(Field::State, 0, 3),
        of(Field::State, 2, 5),
        flags(1, 1),
        flags(2, 3),
        flags(0, 2),
    ];
    let mut sets = simple.clone();
    for a in &simple {
        for b in &simple {
            sets.push(both(a, b));
            sets.push(either(a, b));
            sets.push(either(&both(a, b), &simple[3]));
        }
    }
    sets
}

#[test]
fn intersections_and_differences_have_the_right_packets() {
    let sets = sets();
    for a in &sets {
        for b in &sets {
            let common = a.intersect(b).unwrap();
            let rest_of_a = a.subtract(b).unwrap();
            for packet in packets() {
                let (in_a, in_b) = (count(a, packet), count(b, packet));
                assert_eq!(count(&common, packet) > 0, in_a > 0 && in_b > 0);
                let kept = if in_b > 0 { 0 } else { in_a };
                assert_eq!(count(&rest_of_a, packet), kept, "{a:?} {b:?} {packet:?}");
            }
        }
    }
}

#[test]
fn sets_have_a_limit() {
    let ports = (0..400u16).map(|port| Values::number(2 * port));
    let ports = PacketSet::of(Field::SourcePort, ports);
    let others = PacketSet::of(Field::DestinationPort, (0..400u16).map(Values::number));
    assert_eq!(ports.intersect(&others), Err(TooManyBoxes));
}

#[test]
fn networks_are_read() {
    let network =
        |value: u32, mask: u32| Ok((Families::IPV4, Values::bits(value.into(), mask.into())));
    assert_eq!(
        parse_network("10.1.2.3/8"),
        network(0x0a00_0000, 0xff00_0000)
    );
    assert_eq!(
        parse_network("10.1.2.3/255.255.0.0"),
        network(0x0a01_0000, 0xffff_0000)
    );
    assert_eq!(parse_network("10.1.2.3"), network(0x0a01_0203, u32::MAX));
    assert_eq!(parse_network("0.0.0.0/0"), network(0, 0));
    assert_eq!(parse_network("10.1.2.3/33"), Err(AddressError::Length(32)));
    assert_eq!(
        parse_network("10.1.2.3/255.0.255.0"),
        Err(AddressError::Mask)
    );
    for text in ["", "10", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/::", "x"] {
        assert_eq!(parse_network(text), Err(AddressError::Form), "{text}");
    }
    let (family, values) = parse_network("2001:db8::1/32").unwrap();
    assert!(family == Families::IPV6 && values == Values::bits(0x2001_0db8 << 96, u128::MAX << 96));
}

#[test]
fn ranges_of_addresses_become_networks() {
    let networks =
        |first: &str, last: &str| range_of_addresses(first.parse().unwrap(), last.parse().unwrap());
    for (first, last, count) in [
        ("10.0.0.0", "10.255.255.255", 1),
        ("0.0.0.0", "255.255.255.255", 1),
        ("10.0.0.1", "10.0.0.6", 4),
        ("10.0.0.1", "10.0.0.1", 1),
        ("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1),
        ("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 254),
    ] {
        let networks = networks(first, last).unwrap();
        assert_eq!(networks.len(), count, "{first}");
    }
    assert_eq!(networks("10.0.0.2", "10.0.0.1"), Err(AddressError::Range));
    assert_eq!(networks("10.0.0.2", "::1"), Err(AddressError::Range));
}

#[test]
fn names_are_values() {
    let Values::Bits { value, mask } = name_value("eth0") else {
        panic!()
    };
    assert_eq!((value, mask), (0x6574_6830 << 96, u128::MAX));
    assert_eq!(
        name_prefix("eth").intersect(&name_value("eth0")),
        Some(name_value("eth0"))
    );
    assert_eq!(name_prefix("eth1").intersect(&name_value("eth0")), None);
    let long = ["a-long-name-of-a-list-1", "a-long-name-of-a-list-2"].map(name_value);
    assert_ne!(long[0], long[1]);
}
