//! Tests of the whole parser.

mod random;
pub(crate) mod stack;

use super::*;
use stack::{Extension, Net, Stack, Upper};

/// All link types that are parsed, and an unsupported one.
fn links() -> impl Iterator<Item = LinkType> {
    LinkType::PARSED.into_iter().chain([LinkType::Other(127)])
}

fn v4(upper: Upper) -> Net {
    Net::V4 {
        src: 0xc000_0201,
        dst: 0xc633_6402,
        dscp: 46,
        option_words: 0,
        offset: 0,
        more: false,
        upper,
    }
}

fn v6(extensions: Vec<Extension>, upper: Upper) -> Net {
    Net::V6 {
        src: 0x2001_0db8_0000_0001_0000_0000_0000_0007,
        dst: 0x2001_0db8_0000_0002_0000_0000_0000_0009,
        dscp: 10,
        extensions,
        upper,
    }
}

fn v4_with(options: u8, fragment: (u16, bool), upper: Upper) -> Net {
    Net::V4 {
        src: 0x0a00_0001,
        dst: 0x0a00_0002,
        dscp: 0,
        option_words: options,
        offset: fragment.0,
        more: fragment.1,
        upper,
    }
}

/// One frame for each kind of packet that the parser supports.
pub(crate) fn every_stack() -> Vec<Stack> {
    use Extension::{Authentication, Destination, Fragment, HopByHop, Routing};
    let tcp = || Upper::Tcp(40_000, 443, 3);
    let udp = || Upper::Udp(53, 5353);
    let nets = vec![
        v4(tcp()),
        v4(udp()),
        v4(Upper::Sctp(1, 2)),
        v4(Upper::Icmp(8, 0)),
        v4(Upper::Other(47, vec![0, 0, 8, 0])),
        v4(Upper::Other(50, vec![9; 16])),
        v4(Upper::Other(51, vec![6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2])),
        v4(Upper::Other(58, vec![])),
        v4_with(10, (0, false), tcp()),
        v4_with(1, (0, true), udp()),
        v4_with(0, (185, true), udp()),
        v4_with(0, (370, false), tcp()),
        v6(vec![], tcp()),
        v6(vec![], udp()),
        v6(vec![], Upper::Sctp(9, 10)),
        v6(vec![], Upper::Icmp(135, 0)),
        v6(vec![], Upper::Other(59, vec![])),
        v6(vec![HopByHop(0)], Upper::Icmp(143, 0)),
        v6(vec![HopByHop(1), Routing(2), Destination(0)], tcp()),
        v6(vec![Authentication(4)], udp()),
        v6(vec![Fragment(0, true)], udp()),
        v6(vec![Fragment(0, false)], udp()),
        v6(vec![Fragment(181, true)], udp()),
        v6(vec![HopByHop(0), Fragment(362, false)], tcp()),
        v6(vec![Fragment(0, true), Destination(0)], tcp()),
        v6(vec![Destination(0)], Upper::Other(50, vec![1; 8])),
        Net::Arp {
            reverse: false,
            operation: 2,
            sender: 0xc000_0201,
            target: 0xc000_0209,
        },
        Net::Arp {
            reverse: true,
            operation: 3,
            sender: 0,
            target: 0xc000_0209,
        },
        Net::Arp {
            reverse: false,
            operation: 257,
            sender: 1,
            target: 2,
        },
        Net::Other(0x88cc, vec![2, 7, 4]),
    ];
    let mut all = Vec::new();
    for net in nets {
        let plain = Stack::ethernet(net);
        let tagged = Stack {
            tags: vec![(0x8100, 30, 5)],
            ..plain.clone()
        };
        let stacked = Stack {
            tags: vec![(0x88a8, 100, 1), (0x8100, 0xfff, 7), (0x9100, 3, 0)],
            padding: 7,
            ..plain.clone()
        };
        let cooked = |link| Stack {
            link,
            ..tagged.clone()
        };
        all.extend([
            cooked(LinkType::LinuxCooked),
            cooked(LinkType::LinuxCooked2),
            stacked,
            tagged.clone(),
        ]);
        if matches!(plain.net, Net::V4 { .. } | Net::V6 { .. }) {
            for outer in [&plain, &tagged] {
                all.push(Stack {
                    session: Some(0x1234),
                    padding: 9,
                    ..outer.clone()
                });
            }
            let own = match plain.net {
                Net::V4 { .. } => LinkType::Ipv4,
                _ => LinkType::Ipv6,
            };
            for link in [LinkType::RawIp, LinkType::Null, LinkType::Loopback, own] {
                all.push(Stack {
                    link,
                    ..plain.clone()
                });
            }
            all.push(Stack {
                labels: vec![(0xfffff, 7), (16, 0)],
                ..tagged
            });
        }
        all.push(plain);
    }
    all
}

fn expected_kind(stack: &Stack) -> Kind {
    match stack.net {
        Net::V4 { .. } => Kind::Ipv4,
        Net::V6 { .. } => Kind::Ipv6,
        Net::Arp { .. } => Kind::Arp,
        Net::Other(..) => Kind::OtherNetwork,
    }
}

fn check(stack: &Stack) {
    let frame = stack.bytes();
    let parsed = parse(&frame, stack.link);
    assert_eq!(parsed.kind, expected_kind(stack), "{stack:?}: {parsed:?}");
    let odd = match stack.net {
        Net::Other(..) => vec![Anomaly::UnknownEthertype],
        _ => vec![],
    };
    assert_eq!(
        parsed.anomalies.iter().collect::<Vec<_>>(),
        odd,
        "{stack:?}"
    );
    assert_eq!(parsed.fragment, stack.net.fragment(), "{stack:?}");
    assert_eq!(parsed.vlan_tags as usize, stack.tags.len());
    assert_eq!(parsed.mpls_labels as usize, stack.labels.len());
    assert_eq!(parsed.pppoe_session, stack.session);
    let tuples = (parsed.ipv4_5tuple(), parsed.ipv6_5tuple());
    let tuple = stack.five_tuple();
    match parsed.kind {
        Kind::Ipv4 => assert_eq!(tuples, (tuple, None), "{stack:?}"),
        Kind::Ipv6 => assert_eq!(tuples, (None, tuple), "{stack:?}"),
        _ => assert_eq!(tuples, (None, None)),
    }
    assert_eq!(
        parsed.openflow15(7),
        Some(stack.openflow15(7)),
        "{stack:?}: {parsed:?}"
    );
}

/// Checks the result for a frame that was cut off after `length` bytes.
fn check_cut(stack: &Stack, frame: &[u8], length: usize) {
    let whole = parse(frame, stack.link);
    let cut = parse(&frame[..length], stack.link);
    let context = || format!("{length} of {} bytes of {stack:?}: {cut:?}", frame.len());
    // If a five-tuple is complete, it is the right one.
    for (cut, whole) in [
        (cut.ipv4_5tuple(), whole.ipv4_5tuple()),
        (cut.ipv6_5tuple(), whole.ipv6_5tuple()),
    ] {
        assert!(cut.is_none() || cut == whole, "{}", context());
    }
    // Each field of `openflow15` is right or 0, except that the EtherType may be that
    // of a tag which was cut off.
    if let Some(header) = cut.openflow15(1) {
        let right = whole.openflow15(1).unwrap();
        for (field, (&value, &right)) in header.iter().zip(&right).enumerate() {
            let tag = field == 4 && u16::try_from(value).is_ok_and(vlan::is_tag);
            assert!(
                value == right || value == 0 || tag,
                "field {field}, {}",
                context()
            );
        }
    }
    // A missing part is reported.
    if cut.kind != whole.kind {
        let truncations = [
            Anomaly::TruncatedEthernet,
            Anomaly::TruncatedCooked,
            Anomaly::TruncatedLoopback,
            Anomaly::EmptyFrame,
            Anomaly::TruncatedVlan,
            Anomaly::TruncatedMpls,
            Anomaly::TruncatedPppoe,
            Anomaly::TruncatedIpv4,
            Anomaly::TruncatedIpv4Options,
            Anomaly::TruncatedIpv6,
            Anomaly::TruncatedExtension,
            Anomaly::TruncatedPorts,
        ];
        let said = truncations
            .into_iter()
            .filter(|&anomaly| cut.anomalies.contains(anomaly));
        assert_eq!(said.count(), 1, "{}", context());
    }
    let (payload, ip) = match stack.net {
        Net::V4 { .. } | Net::V6 { .. } => (frame.len() - stack.padding, true),
        Net::Arp { .. } => (frame.len() - stack.padding, false),
        Net::Other(..) => return,
    };
    if length < payload {
        assert!(!cut.anomalies.is_empty(), "{}", context());
        if ip && matches!(cut.kind, Kind::Ipv4 | Kind::Ipv6) {
            assert!(cut.anomalies.contains(Anomaly::PayloadCut), "{}", context());
        }
    }
}

#[test]
fn every_protocol_parses_to_what_was_built() {
    for stack in every_stack() {
        check(&stack);
    }
}

#[test]
fn every_prefix_of_every_frame_is_parsed_with_care() {
    let mut prefixes = 0;
    for stack in every_stack() {
        let frame = stack.bytes();
        for length in 0..=frame.len() {
            check_cut(&stack, &frame, length);
            prefixes += 1;
        }
    }
    assert!(prefixes > 10_000, "{prefixes}");
}

#[test]
fn every_prefix_of_every_frame_survives_every_link_type() {
    for stack in every_stack() {
        let frame = stack.bytes();
        for link in links() {
            for length in 0..=frame.len() {
                let _ = parse(&frame[..length], link);
            }
        }
    }
}

fn anomalies_of(frame: &[u8]) -> (Kind, Vec<Anomaly>) {
    let parsed = parse(frame, LinkType::Ethernet);
    (parsed.kind, parsed.anomalies.iter().collect())
}

#[test]
fn malformed_headers_are_named() {
    let at = 14;
    let change = |net: Net, changes: &[(usize, u8)]| {
        let mut frame = Stack::ethernet(net).bytes();
        for &(offset, value) in changes {
            frame[at + offset] = value;
        }
        anomalies_of(&frame)
    };
    let tcp = || Upper::Tcp(1, 2, 0);
    let cases = [
        (
            v4(tcp()),
            vec![(0, 0x65)],
            Kind::Ipv4Incomplete,
            Anomaly::BadIpv4Version,
        ),
        (
            v4(tcp()),
            vec![(0, 0x44)],
            Kind::Ipv4Incomplete,
            Anomaly::BadIhl,
        ),
        (
            v4(tcp()),
            vec![(3, 19)],
            Kind::Ipv4Incomplete,
            Anomaly::BadTotalLength,
        ),
        (
            v4(tcp()),
            vec![(3, 23)],
            Kind::Ipv4Incomplete,
            Anomaly::TruncatedPorts,
        ),
        (v4(tcp()), vec![(3, 24)], Kind::Ipv4, Anomaly::TruncatedTcp),
        (v4(tcp()), vec![(3, 0)], Kind::Ipv4, Anomaly::ZeroLength),
        (v4(tcp()), vec![(3, 255)], Kind::Ipv4, Anomaly::PayloadCut),
        (
            v4(tcp()),
            vec![(32, 0x40)],
            Kind::Ipv4,
            Anomaly::BadTcpOffset,
        ),
        (
            v4(tcp()),
            vec![(6, 0x1f), (7, 0xff)],
            Kind::Ipv4,
            Anomaly::OversizedFragment,
        ),
        (
            v4(Upper::Udp(1, 2)),
            vec![(25, 7)],
            Kind::Ipv4,
            Anomaly::BadUdpLength,
        ),
        (
            v4(Upper::Udp(1, 2)),
            vec![(25, 99)],
            Kind::Ipv4,
            Anomaly::BadUdpLength,
        ),
        (
            v4(Upper::Icmp(8, 0)),
            vec![(3, 21)],
            Kind::Ipv4,
            Anomaly::TruncatedIcmp,
        ),
        (
            v4(Upper::Sctp(1, 2)),
            vec![(3, 31)],
            Kind::Ipv4,
            Anomaly::TruncatedSctp,
        ),
        (
            v4(Upper::Udp(1, 2)),
            vec![(3, 27)],
            Kind::Ipv4,
            Anomaly::TruncatedUdp,
        ),
        (
            v6(vec![], tcp()),
            vec![(0, 0x45)],
            Kind::Ipv6Incomplete,
            Anomaly::BadIpv6Version,
        ),
        (
            v6(vec![], tcp()),
            vec![(5, 0)],
            Kind::Ipv6,
            Anomaly::ZeroLength,
        ),
        (
            v6(vec![], tcp()),
            vec![(5, 3)],
            Kind::Ipv6Incomplete,
            Anomaly::TruncatedPorts,
        ),
        (
            v6(
                vec![Extension::Destination(0), Extension::HopByHop(0)],
                tcp(),
            ),
            vec![],
            Kind::Ipv6,
            Anomaly::MisplacedHopByHop,
        ),
        (
            v6(vec![Extension::Destination(0)], tcp()),
            vec![(41, 200)],
            Kind::Ipv6Incomplete,
            Anomaly::TruncatedExtension,
        ),
        (
            v6(vec![Extension::Fragment(0x1fff, false)], tcp()),
            vec![],
            Kind::Ipv6,
            Anomaly::OversizedFragment,
        ),
        (
            Net::Arp {
                reverse: false,
                operation: 1,
                sender: 1,
                target: 2,
            },
            vec![(1, 32)],
            Kind::Arp,
            Anomaly::UnknownArp,
        ),
    ];
    for (net, changes, kind, anomaly) in cases {
        let context = format!("{net:?} {changes:?}");
        assert_eq!(change(net, &changes), (kind, vec![anomaly]), "{context}");
    }
}

#[test]
fn a_frame_that_ends_inside_a_tag_says_so_wherever_the_tag_is() {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let snap = [0, 60, 0xaa, 0xaa, 3, 0, 0, 0];
    let mut cooked = [0; 14];
    cooked[3] = 1;
    for (link, front) in [
        (LinkType::Ethernet, addresses.to_vec()),
        (LinkType::Ethernet, [&addresses[..], &snap].concat()),
        (LinkType::LinuxCooked, cooked.to_vec()),
    ] {
        for tags in 1..=3 {
            for kind in [vlan::CUSTOMER, vlan::SERVICE, vlan::OLD_SERVICE] {
                let tag = [kind.to_be_bytes(), [0, 5]].concat().repeat(tags);
                let whole = [front.clone(), tag, vec![8, 0]].concat();
                for missing in 1..=4 {
                    let cut = parse(&whole[..whole.len() - missing], link);
                    let context = format!("{link}, {tags} of {kind:#x}, {missing} missing");
                    let found: Vec<Anomaly> = cut.anomalies.iter().collect();
                    assert_eq!(found, [Anomaly::TruncatedVlan], "{context}");
                    assert_eq!(cut.kind, Kind::Unreadable, "{context}");
                    assert_eq!(usize::from(cut.vlan_tags), tags - 1, "{context}");
                }
                let cut = parse(&whole, link);
                let found: Vec<Anomaly> = cut.anomalies.iter().collect();
                assert_eq!(found, [Anomaly::TruncatedIpv4], "{link}, {tags} tags");
            }
        }
    }
}

#[test]
fn stacks_of_tags_labels_and_extensions_are_bounded() {
    let tcp = || v4(Upper::Tcp(1, 2, 0));
    let tagged = |tags: u8| Stack {
        tags: (0..tags)
            .map(|vid| (0x8100, u16::from(vid) + 1, 0))
            .collect(),
        ..Stack::ethernet(tcp())
    };
    check(&tagged(MAX_VLAN_TAGS));
    let too_many = parse(&tagged(MAX_VLAN_TAGS + 1).bytes(), LinkType::Ethernet);
    assert_eq!(too_many.kind, Kind::Unreadable);
    assert!(too_many.anomalies.contains(Anomaly::TooManyVlanTags));
    let header = too_many.openflow15(1).unwrap();
    assert_eq!((header[4], header[5]), (0x8100, 1));

    let labelled = |labels: u8| Stack {
        labels: vec![(5, 0); labels.into()],
        ..Stack::ethernet(tcp())
    };
    check(&labelled(MAX_MPLS_LABELS));
    assert_eq!(
        anomalies_of(&labelled(MAX_MPLS_LABELS + 1).bytes()),
        (Kind::Mpls, vec![Anomaly::TooManyMplsLabels])
    );

    // The smallest headers, and the longest ones.
    for units in [0, 255] {
        let extended = |extensions: usize| {
            let extensions = vec![Extension::Destination(units); extensions];
            Stack::ethernet(v6(extensions, Upper::Udp(1, 2)))
        };
        let fitting = MAX_EXTENSION_BYTES / (usize::from(units) + 1) / 8;
        for extensions in [8, 9, fitting] {
            if extensions <= fitting {
                check(&extended(extensions));
            }
        }
        assert_eq!(
            anomalies_of(&extended(fitting + 1).bytes()),
            (Kind::Ipv6Incomplete, vec![Anomaly::TooManyExtensions])
        );
    }
}

/// An Ethernet frame of IPv6 with a payload length of 0.
fn without_length(extensions: Vec<Extension>, upper: Upper) -> Vec<u8> {
    let mut frame = Stack::ethernet(v6(extensions, upper)).bytes();
    frame[18..20].fill(0);
    frame
}

#[test]
fn ipv6_without_a_length_fills_the_frame_where_something_must_follow() {
    let uppers = [
        Upper::Tcp(40_000, 443, 0),
        Upper::Udp(40_000, 443),
        Upper::Sctp(40_000, 443),
        Upper::Icmp(128, 0),
    ];
    for extensions in [
        vec![],
        vec![Extension::HopByHop(0)],
        vec![Extension::Destination(1)],
    ] {
        for upper in &uppers {
            let frame = without_length(extensions.clone(), upper.clone());
            let parsed = parse(&frame, LinkType::Ethernet);
            let context = format!("{extensions:?} {upper:?}: {parsed:?}");
            assert_eq!(parsed.kind, Kind::Ipv6, "{context}");
            assert_eq!(parsed.ports, upper.ports(), "{context}");
            assert_eq!(parsed.icmp, upper.icmp(), "{context}");
            let odd: Vec<Anomaly> = parsed.anomalies.iter().collect();
            assert_eq!(odd, [Anomaly::ZeroLength], "{context}");
        }
    }
    // The protocol says that nothing follows, or may be empty: the bytes are padding.
    for protocol in [59, 47] {
        let frame = without_length(vec![], Upper::Other(protocol, vec![0; 6]));
        assert_eq!(anomalies_of(&frame), (Kind::Ipv6, vec![]), "{protocol}");
    }
    // The payload is empty.
    let frame = without_length(vec![], Upper::Udp(1, 2));
    assert_eq!(
        anomalies_of(&frame[..54]),
        (Kind::Ipv6Incomplete, vec![Anomaly::TruncatedPorts])
    );
}

#[test]
fn a_jumbogram_has_the_length_of_its_option() {
    let payload = 70_000_usize;
    let jumbogram = |length: usize, option: u32| {
        let mut frame = without_length(vec![Extension::HopByHop(0)], Upper::Udp(7, 8));
        // Replace the padding options.
        frame[56..58].copy_from_slice(&[0xc2, 4]);
        frame[58..62].copy_from_slice(&option.to_be_bytes());
        // The UDP length is 0: the datagram ends where IP says.
        frame[66..68].fill(0);
        frame.resize(54 + length, 0);
        frame
    };
    let option = u32::try_from(payload).unwrap();
    let odd = |frame: &[u8]| {
        let parsed = parse(frame, LinkType::Ethernet);
        assert_eq!(parsed.ports, Some((7, 8)));
        parsed.anomalies.iter().collect::<Vec<_>>()
    };
    assert_eq!(odd(&jumbogram(payload, option)), []);
    assert_eq!(odd(&jumbogram(payload + 9, option)), []);
    assert_eq!(odd(&jumbogram(payload - 1, option)), [Anomaly::PayloadCut]);
    assert_eq!(odd(&jumbogram(500, u32::MAX)), [Anomaly::PayloadCut]);
    // Not a jumbogram: the length would have fitted into the IPv6 header.
    assert_eq!(odd(&jumbogram(500, 0xffff)), [Anomaly::ZeroLength]);
}

#[test]
fn pppoe_that_is_no_ip_or_malformed_is_named() {
    let session = |net: Net| Stack {
        session: Some(7),
        ..Stack::ethernet(net)
    };
    let control = session(Net::Other(0, vec![1, 1, 0, 4])).bytes();
    let parsed = parse(&control, LinkType::Ethernet);
    assert_eq!(
        (parsed.kind, parsed.pppoe_session),
        (Kind::OtherNetwork, Some(7))
    );
    assert!(parsed.anomalies.contains(Anomaly::UnknownPppProtocol));
    assert_eq!(parsed.openflow15(1).unwrap()[4], 0x8864);
    let whole = session(v4(Upper::Tcp(1, 2, 0))).bytes();
    for (at, value, kind, anomaly) in [
        (14, 0x12, Kind::OtherNetwork, Anomaly::BadPppoe),
        (15, 1, Kind::OtherNetwork, Anomaly::BadPppoe),
        (19, 1, Kind::OtherNetwork, Anomaly::BadPppoe),
        (19, 21, Kind::Ipv4Incomplete, Anomaly::TruncatedIpv4),
        (19, 41, Kind::Ipv4, Anomaly::PayloadCut),
    ] {
        let mut frame = whole.clone();
        frame[at] = value;
        let (found, odd) = anomalies_of(&frame);
        assert_eq!(found, kind, "byte {at} is {value}");
        assert!(odd.contains(&anomaly), "byte {at} is {value}: {odd:?}");
    }
    // A PPPoE length beyond the frame has no effect.
    let mut frame = whole;
    frame[18] = 0xff;
    assert_eq!(anomalies_of(&frame), (Kind::Ipv4, vec![]));
}

#[test]
fn unknown_ethertypes_are_counted_by_number() {
    let mut counters = Counters::new();
    let mut other = Counters::new();
    let frame = |ethertype| Stack::ethernet(Net::Other(ethertype, vec![1; 46])).bytes();
    for (ethertype, packets) in [(0x88cc, 3), (0x9999, 5), (0x0700, 3)] {
        for _ in 0..packets {
            counters.add(&parse(&frame(ethertype), LinkType::Ethernet));
            other.add(&parse(&frame(ethertype), LinkType::Ethernet));
        }
    }
    counters.add(&parse(&frame(0x8864), LinkType::Ethernet));
    counters.add(&parse(&frame(0x0806), LinkType::Ethernet));
    let expected = [(0x9999, 5), (0x0700, 3), (0x88cc, 3)];
    assert_eq!(counters.unknown_ethertypes(), expected);
    counters.merge(&other);
    assert_eq!(
        counters.unknown_ethertypes(),
        expected.map(|(kind, n)| (kind, 2 * n))
    );
}

#[test]
fn frames_without_an_ethertype_have_layer_two_fields() {
    let frame = |length: u16, payload: &[u8]| {
        let mut frame = vec![1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 9];
        frame.extend(length.to_be_bytes());
        frame.extend(payload);
        frame
    };
    let spanning_tree = parse(&frame(38, &[0x42, 0x42, 3, 0, 0]), LinkType::Ethernet);
    assert_eq!(spanning_tree.kind, Kind::Llc);
    assert!(spanning_tree.anomalies.is_empty());
    let header = spanning_tree.openflow15(3).unwrap();
    assert_eq!(
        header[..5],
        [3, 0, 0x0200_0000_0009, 0x0180_c200_0000, 0x05ff]
    );

    let mut snap = vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    snap.extend(&Stack::ethernet(v4(Upper::Udp(1, 2))).bytes()[14..]);
    let length = u16::try_from(snap.len()).unwrap();
    let parsed = parse(&frame(length, &snap), LinkType::Ethernet);
    assert_eq!((parsed.kind, parsed.eth_type), (Kind::Ipv4, Some(0x0800)));
    assert_eq!(
        anomalies_of(&frame(length, &snap[..5])),
        (Kind::Llc, vec![Anomaly::TruncatedLlc])
    );
    assert_eq!(
        anomalies_of(&frame(2, &snap)),
        (Kind::Llc, vec![Anomaly::TruncatedLlc])
    );
}

#[test]
fn mpls_without_ip_inside_is_counted_as_such() {
    let pseudowire = Stack {
        labels: vec![(100, 3)],
        ..Stack::ethernet(Net::Other(0, vec![0, 0, 0, 0, 1, 2, 3]))
    };
    let parsed = parse(&pseudowire.bytes(), LinkType::Ethernet);
    assert_eq!(parsed.kind, Kind::Mpls);
    assert!(parsed.anomalies.contains(Anomaly::UnknownMplsPayload));
    let header = parsed.openflow15(1).unwrap();
    assert_eq!((header[4], header[7], header[8]), (0x8847, 100, 3));
}

#[test]
fn links_without_ethernet_say_what_they_can() {
    let kind = |frame: &[u8], link| {
        let parsed = parse(frame, link);
        (parsed.kind, parsed.anomalies.iter().collect::<Vec<_>>())
    };
    assert_eq!(
        kind(&[0x10, 1], LinkType::RawIp),
        (Kind::Unreadable, vec![Anomaly::BadIpVersion])
    );
    assert_eq!(
        kind(&[0, 0, 0, 7, 1], LinkType::Loopback),
        (Kind::OtherNetwork, vec![Anomaly::UnknownFamily])
    );
    assert_eq!(
        kind(&[0; 60], LinkType::Other(127)),
        (Kind::UnknownLink, vec![Anomaly::UnknownLinkType])
    );
    let mut cooked = [0; 24];
    cooked[15] = 4;
    cooked[16..19].copy_from_slice(&[0x42, 0x42, 3]);
    assert_eq!(kind(&cooked, LinkType::LinuxCooked), (Kind::Llc, vec![]));
    cooked[15] = 1;
    assert_eq!(kind(&cooked, LinkType::LinuxCooked), (Kind::Llc, vec![]));
    cooked[15] = 12;
    assert_eq!(
        kind(&cooked, LinkType::LinuxCooked),
        (Kind::OtherNetwork, vec![Anomaly::UnknownEthertype])
    );
}

#[test]
fn icmp_is_portless_to_five_tuples_and_not_to_openflow() {
    let ping = parse(
        &Stack::ethernet(v4(Upper::Icmp(8, 3))).bytes(),
        LinkType::Ethernet,
    );
    assert_eq!(ping.ipv4_5tuple().unwrap()[2..], [0, 0, 1]);
    assert_eq!(ping.openflow15(1).unwrap()[13..], [8, 3]);
}

#[test]
fn counters_count_each_packet_once_by_kind() {
    let mut counters = Counters::new();
    let mut halves = [Counters::new(), Counters::new()];
    let stacks = every_stack();
    for (index, stack) in stacks.iter().enumerate() {
        let parsed = parse(&stack.bytes(), stack.link);
        counters.add(&parsed);
        halves[index % 2].add(&parsed);
    }
    let [mut merged, other] = halves;
    merged.merge(&other);
    assert_eq!(merged, counters);

    let kinds: u64 = Kind::ALL.into_iter().map(|kind| counters.kind(kind)).sum();
    assert_eq!(kinds, counters.packets());
    let of = |what: fn(&Stack) -> bool| stacks.iter().filter(|stack| what(stack)).count() as u64;
    assert_eq!(
        counters.kind(Kind::Arp),
        of(|stack| matches!(stack.net, Net::Arp { .. }))
    );
    assert_eq!(
        counters.property(Property::QinQTagged),
        of(|stack| stack.tags.len() > 1)
    );
    assert_eq!(
        counters.property(Property::Ipv6LaterFragment),
        of(|stack| matches!(stack.net, Net::V6 { .. }) && stack.net.fragment() == Fragment::Later)
    );
    let rows = counters.rows();
    assert_eq!(rows[0], ("packets", stacks.len() as u64));
    assert!(rows.contains(&("sctp", counters.transport(Transport::Sctp))));
    assert!(rows.contains(&(
        "unknown-ethertype",
        counters.anomaly(Anomaly::UnknownEthertype)
    )));
    assert!(rows.iter().all(|&(_, count)| count > 0));
    assert_eq!(Counters::default().rows(), [("packets", 0)]);
}

#[test]
fn counters_index_by_position() {
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, index);
    }
    for (index, transport) in Transport::ALL.into_iter().enumerate() {
        assert_eq!(transport as usize, index);
    }
    for (index, property) in Property::ALL.into_iter().enumerate() {
        assert_eq!(property as usize, index);
    }
    for (index, &anomaly) in Anomaly::ALL.iter().enumerate() {
        assert_eq!(anomaly as usize, index);
    }
}
