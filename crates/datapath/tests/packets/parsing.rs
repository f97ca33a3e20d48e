//! Compares the datapath's parser with the parser of captures, which shares no code with
//! it, over millions of frames: whole, truncated and damaged.

use std::collections::BTreeMap;

use crate::frames::Dice;
use classyard_datapath::field::{VLAN_PRESENT, eth_type};
use classyard_datapath::{Field, Flaw, Packet, PacketKey, Presence};
use classyard_workload::packet::{self, Anomaly, Family, LinkType, Parsed};

/// The expected fields of a frame according to the other parser; `None` if a field cannot
/// be compared.
struct Expected<'a> {
    parsed: &'a Parsed,
    key: &'a PacketKey,
}

impl Expected<'_> {
    fn holds(&self, field: Field, expected: u128) {
        assert_eq!(self.key.get(field), expected, "{field}: {:?}", self.parsed);
    }

    fn has(&self, presence: Presence, expected: bool) {
        assert_eq!(
            self.key.presence().has(presence),
            expected,
            "{presence:?}: {:?}",
            self.parsed
        );
    }

    fn check(&self) {
        let parsed = self.parsed;
        self.holds(Field::EthDst, u128::from(parsed.eth_dst));
        self.holds(Field::EthSrc, u128::from(parsed.eth_src));
        let kind = parsed.eth_type.unwrap_or(0);
        self.holds(Field::EthType, u128::from(kind));
        let tag = match parsed.vlan_tags {
            0 => 0,
            _ => VLAN_PRESENT | parsed.vlan_vid,
        };
        self.holds(Field::VlanVid, u128::from(tag));
        self.holds(Field::VlanPcp, u128::from(parsed.vlan_pcp));
        match kind {
            eth_type::MPLS | eth_type::MPLS_UPSTREAM => {
                self.has(Presence::NETWORK, parsed.mpls_labels > 0);
                self.holds(Field::MplsLabel, u128::from(parsed.mpls_label));
                self.holds(Field::MplsTc, u128::from(parsed.mpls_tc));
            }
            eth_type::ARP => {
                self.has(Presence::NETWORK, parsed.arp_operation.is_some());
                self.holds(Field::ArpOp, u128::from(parsed.arp_operation.unwrap_or(0)));
                self.holds(Field::ArpSpa, parsed.src);
                self.holds(Field::ArpTpa, parsed.dst);
            }
            eth_type::IPV4 | eth_type::IPV6 => self.check_ip(),
            _ => self.has(Presence::NETWORK, false),
        }
    }

    fn check_ip(&self) {
        let parsed = self.parsed;
        self.has(Presence::NETWORK, parsed.family.is_some());
        let (src, dst) = match parsed.family {
            Some(Family::V6) => (Field::Ipv6Src, Field::Ipv6Dst),
            _ => (Field::Ipv4Src, Field::Ipv4Dst),
        };
        self.holds(src, parsed.src);
        self.holds(dst, parsed.dst);
        self.holds(Field::IpDscp, u128::from(parsed.dscp));
        self.has(Presence::PROTOCOL, parsed.proto.is_some());
        self.holds(Field::IpProto, u128::from(parsed.proto.unwrap_or(0)));
        match (parsed.ports, parsed.icmp) {
            (Some((sport, dport)), _) => {
                self.has(Presence::TRANSPORT, true);
                self.holds(Field::TcpSrc, u128::from(sport));
                self.holds(Field::UdpDst, u128::from(dport));
            }
            (None, Some((kind, code))) => {
                self.has(Presence::TRANSPORT, true);
                self.holds(Field::Icmpv4Type, u128::from(kind));
                self.holds(Field::Icmpv6Code, u128::from(code));
            }
            (None, None) => {
                self.has(Presence::TRANSPORT, false);
                self.holds(Field::TcpSrc, 0);
                self.holds(Field::TcpDst, 0);
            }
        }
    }
}

/// The EtherType of PPPoE sessions.
const PPPOE_SESSION: u16 = 0x8864;

/// Compares the flaws found by both parsers. The other parser reads all MPLS labels, the
/// headers after them and the headers in PPPoE sessions; the datapath reads only the
/// first label.
fn check_flaws(packet: &Packet, parsed: &Parsed) {
    let kind = parsed.eth_type.unwrap_or(0);
    let is_hidden = matches!(
        kind,
        eth_type::MPLS | eth_type::MPLS_UPSTREAM | PPPOE_SESSION
    );
    for &flaw in Flaw::ALL {
        let ours = packet.parsed().flaws.contains(flaw);
        let theirs = match Anomaly::ALL
            .iter()
            .find(|other| other.name() == flaw.name())
        {
            Some(&anomaly) => parsed.anomalies.contains(anomaly),
            None => {
                assert_eq!(
                    flaw,
                    Flaw::BadNeighbourDiscovery,
                    "the oracle has all others"
                );
                continue;
            }
        };
        let theirs = match flaw {
            Flaw::TruncatedMpls => theirs && parsed.mpls_labels == 0,
            Flaw::TruncatedEthernet
            | Flaw::TruncatedVlan
            | Flaw::TooManyVlanTags
            | Flaw::TruncatedLlc => theirs,
            _ => theirs && !is_hidden,
        };
        assert_eq!(ours, theirs, "{flaw}: {parsed:?} {:?}", packet.parsed());
    }
}

/// True if both parsers interpret the frame in the same way. They differ for RARP and for
/// types in SNAP: there the datapath parses no tags and accepts no lengths.
fn is_comparable(frame: &[u8], parsed: &Parsed) -> bool {
    let in_snap = frame.windows(8).any(|bytes| {
        bytes[..5] == [0xaa, 0xaa, 3, 0, 0] && matches!(bytes[6], 0..6 | 0x81 | 0x88 | 0x91)
    });
    parsed.eth_type != Some(0x8035) && !in_snap
}

fn compare(frame: &[u8], seen: &mut BTreeMap<&'static str, usize>) {
    let parsed = packet::parse(frame, LinkType::Ethernet);
    if !is_comparable(frame, &parsed) {
        *seen.entry("not compared").or_default() += 1;
        return;
    }
    *seen.entry(parsed.kind.name()).or_default() += 1;
    for anomaly in parsed.anomalies.iter() {
        *seen.entry(anomaly.name()).or_default() += 1;
    }
    let packet = Packet::new(frame, 7);
    let expected = Expected {
        parsed: &parsed,
        key: packet.key(),
    };
    expected.check();
    expected.holds(Field::InPort, 7);
    check_flaws(&packet, &parsed);
}

#[test]
fn both_parsers_read_the_same_in_whole_and_damaged_frames() {
    let mut dice = Dice(1);
    let mut seen = BTreeMap::new();
    for number in 0..400_000 {
        let frame = match number % 4 {
            0 => crate::frames::whole(&mut dice),
            1 => crate::frames::lying(&mut dice),
            _ => crate::frames::damaged(&mut dice),
        };
        compare(&frame, &mut seen);
    }
    let not_compared = seen.remove("not compared").unwrap_or(0);
    assert!(not_compared < 40_000, "{not_compared} frames not compared");
    for &flaw in Flaw::ALL {
        let times = seen.get(flaw.name()).copied().unwrap_or(0);
        assert!(
            times > 20 || flaw == Flaw::BadNeighbourDiscovery,
            "{flaw}: {times}"
        );
    }
    for kind in [
        "ipv4",
        "ipv6",
        "ipv4-incomplete",
        "ipv6-incomplete",
        "arp",
        "llc",
        "mpls-other",
        "other-network",
    ] {
        assert!(
            seen.get(kind).copied().unwrap_or(0) > 500,
            "{kind}: {seen:?}"
        );
    }
}

#[test]
fn a_frame_cut_at_any_byte_is_read_as_far_as_it_goes() {
    let mut dice = Dice(2);
    let mut seen = BTreeMap::new();
    for _ in 0..400 {
        let frame = crate::frames::whole(&mut dice);
        for end in 0..=frame.len() {
            compare(&frame[..end], &mut seen);
        }
    }
    // Random bytes, short and long.
    for length in (0..300).chain([1500, 9000, 65_535, 65_536, 100_000]) {
        let frame: Vec<u8> = (0..length).map(|_| dice.byte()).collect();
        compare(&frame, &mut seen);
    }
}

/// A frame with a payload of 64 KiB or more; random frames are shorter.
#[test]
fn jumbograms_are_read_alike() {
    let mut seen = BTreeMap::new();
    for (option, length) in [
        (70_000_u32, 70_000_usize),
        (70_000, 70_009),
        (70_000, 69_999),
        (0xffff, 70_000),
        (u32::MAX, 70_000),
    ] {
        for next in [6, 17, 59] {
            let mut frame = vec![0; 12];
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 0, 64]);
            frame.extend([0x20; 32]);
            frame.extend([next, 0, 0xc2, 4]);
            frame.extend(option.to_be_bytes());
            frame.extend([1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0]);
            frame.resize(54 + length, 0);
            compare(&frame, &mut seen);
            let packet = Packet::new(&frame, 7);
            let is_whole = option == 70_000 && length >= 70_000;
            let end = if is_whole { 54 + 70_000 } else { frame.len() };
            assert_eq!(
                packet.parsed().layers.end as usize,
                end,
                "{option} {length}"
            );
            assert_eq!(
                packet.parsed().flaws.is_empty(),
                is_whole,
                "{option} {length}"
            );
        }
    }
    assert_eq!(seen["payload-cut"], 6);
    assert_eq!(seen["zero-length"], 3);
}

#[test]
fn extension_headers_are_told_with_their_order() {
    use classyard_datapath::field::exthdr::{
        AUTH, DEST, ESP, FRAG, HOP, NO_NEXT, ROUTER, UNREP, UNSEQ,
    };
    let cases: [(&[u8], u16); 13] = [
        (&[6], 0),
        (&[59], NO_NEXT),
        (&[50], ESP),
        (&[0, 6], HOP),
        (
            &[0, 60, 43, 44, 51, 60, 6],
            HOP | DEST | ROUTER | FRAG | AUTH,
        ),
        (&[60, 60, 6], DEST),
        (&[60, 43, 60, 6], DEST | ROUTER),
        (&[60, 43, 60, 60, 6], DEST | ROUTER | UNREP),
        (&[43, 0, 6], HOP | ROUTER | UNSEQ),
        (&[51, 44, 6], AUTH | FRAG | UNSEQ),
        (&[0, 0, 59], HOP | UNREP | NO_NEXT),
        (&[0, 43, 0, 6], HOP | ROUTER | UNREP | UNSEQ),
        (&[44, 50], FRAG | ESP),
    ];
    for (headers, expected) in cases {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, headers[0], 64]);
        frame.extend([0; 32]);
        for pair in headers.windows(2) {
            frame.extend([pair[1], 0, 0, 0, 0, 0, 0, 0]);
        }
        frame.extend([0; 20]);
        let length = u16::try_from(frame.len() - 54).unwrap();
        frame[18..20].copy_from_slice(&length.to_be_bytes());
        let packet = Packet::new(&frame, 1);
        assert_eq!(
            packet.key().get(Field::Ipv6Exthdr),
            u128::from(expected),
            "{headers:?}"
        );
        let last = u128::from(*headers.last().unwrap());
        assert_eq!(packet.key().get(Field::IpProto), last, "{headers:?}");
    }
}

#[test]
fn neighbour_discovery_has_a_target_and_an_address() {
    let message = |kind: u8, options: &[u8]| {
        let mut frame = vec![0; 12];
        let length = u8::try_from(24 + options.len()).unwrap();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length, 58, 255]);
        frame.extend([0; 32]);
        frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend((1..=16).collect::<Vec<u8>>());
        frame.extend(options);
        Packet::new(&frame, 1)
    };
    let target = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
    let option = |kind| [kind, 1, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf];
    let address = 0x0a0b_0c0d_0e0f;
    let other = [14, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (kind, wanted, field) in [(135, 1, Field::NdSll), (136, 2, Field::NdTll)] {
        let with: Vec<u8> = other.iter().copied().chain(option(wanted)).collect();
        let packet = message(kind, &with);
        assert_eq!(packet.key().get(Field::NdTarget), target);
        assert_eq!(packet.key().get(field), address);
        assert_eq!(packet.key().presence(), Presence::ND_LINK_LAYER);
        assert!(packet.parsed().flaws.is_empty());
        // The option of the other kind, or none.
        for without in [&option(3 - wanted)[..], &[]] {
            let packet = message(kind, without);
            assert_eq!(packet.key().get(field), 0);
            assert_eq!(packet.key().presence(), Presence::ND_TARGET);
            assert!(packet.parsed().flaws.is_empty());
        }
        for bad in [
            &[1, 0, 0, 0, 0, 0, 0, 0][..],
            &[9, 2, 0, 0, 0, 0, 0, 0],
            &[9, 1, 0],
        ] {
            let packet = message(kind, bad);
            assert_eq!(packet.key().presence(), Presence::ND_TARGET);
            assert!(
                packet.parsed().flaws.contains(Flaw::BadNeighbourDiscovery),
                "{bad:?}"
            );
        }
    }
    let packet = message(133, &option(1));
    assert_eq!(packet.key().presence(), Presence::TRANSPORT);
}
