//! Tests with random frames, whole and damaged, compared with the stack they were built
//! from and with another parser.

use classyard::{KeyVec, Schema};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;

fn upper() -> impl Strategy<Value = Upper> {
    let port = any::<u16>;
    prop_oneof![
        (port(), port(), 0..=10_u8).prop_map(|(s, d, o)| Upper::Tcp(s, d, o)),
        (port(), port()).prop_map(|(s, d)| Upper::Udp(s, d)),
        (port(), port()).prop_map(|(s, d)| Upper::Sctp(s, d)),
        any::<(u8, u8)>().prop_map(|(kind, code)| Upper::Icmp(kind, code)),
        (
            prop::sample::select(vec![4_u8, 33, 41, 47, 50, 89, 103, 136, 253]),
            prop::collection::vec(any::<u8>(), 0..40)
        )
            .prop_map(|(protocol, bytes)| Upper::Other(protocol, bytes)),
    ]
}

/// Any number of headers in any order, except hop-by-hop options and fragments.
fn many_extensions() -> impl Strategy<Value = Vec<Extension>> {
    let extension = prop_oneof![
        (0..3_u8).prop_map(Extension::Routing),
        (0..3_u8).prop_map(Extension::Destination),
        (1..4_u8).prop_map(Extension::Authentication),
    ];
    prop::collection::vec(extension, 0..40)
}

fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    prop_oneof![4 => preferred_extensions(), 1 => many_extensions()]
}

fn preferred_extensions() -> impl Strategy<Value = Vec<Extension>> {
    // The order that RFC 8200 recommends, each header at most once.
    (
        prop::option::of(0..4_u8),
        prop::option::of(0..4_u8),
        prop::option::of((any::<bool>(), 0..8100_u16, any::<bool>())),
        prop::option::of(1..6_u8),
        prop::option::of(0..4_u8),
    )
        .prop_map(|(hop, routing, fragment, authentication, destination)| {
            let mut all = Vec::new();
            all.extend(hop.map(Extension::HopByHop));
            all.extend(routing.map(Extension::Routing));
            let fragment = fragment.map(|(first, offset, more)| {
                Extension::Fragment(if first { 0 } else { offset }, more)
            });
            // A later fragment's header is the last extension header.
            let later = matches!(fragment, Some(Extension::Fragment(offset, _)) if offset > 0);
            all.extend(fragment);
            if !later {
                all.extend(authentication.map(Extension::Authentication));
                all.extend(destination.map(Extension::Destination));
            }
            all
        })
}

fn net() -> impl Strategy<Value = Net> {
    let fragment = prop_oneof![
        3 => Just((0, false)),
        1 => Just((0, true)),
        1 => (1..8000_u16, any::<bool>()),
    ];
    prop_oneof![
        4 => (any::<u32>(), any::<u32>(), 0..64_u8, 0..=10_u8, fragment, upper()).prop_map(
            |(src, dst, dscp, option_words, (offset, more), upper)| Net::V4 {
                src, dst, dscp, option_words, offset, more, upper
            }
        ),
        4 => (any::<u128>(), any::<u128>(), 0..64_u8, extensions(), upper()).prop_map(
            |(src, dst, dscp, extensions, upper)| Net::V6 { src, dst, dscp, extensions, upper }
        ),
        1 => (any::<(bool, u32, u32)>(), prop_oneof![0..=255_u16, any::<u16>()]).prop_map(
            |((reverse, sender, target), operation)| Net::Arp { reverse, operation, sender, target }
        ),
    ]
}

fn stack() -> impl Strategy<Value = Stack> {
    let tag = (
        prop::sample::select(vec![0x8100_u16, 0x88a8, 0x9100]),
        0..4096_u16,
        0..8_u8,
    );
    (
        prop::sample::select(vec![
            LinkType::Ethernet,
            LinkType::LinuxCooked,
            LinkType::LinuxCooked2,
        ]),
        prop::collection::vec(tag, 0..4),
        prop::collection::vec((0..1_u32 << 20, 0..8_u8), 0..3),
        prop::option::weighted(0.2, any::<u16>()),
        net(),
        0..20_usize,
    )
        .prop_map(|(link, tags, labels, session, net, padding)| {
            let is_ip = matches!(net, Net::V4 { .. } | Net::V6 { .. });
            let session = session.filter(|_| is_ip);
            let labels = match session {
                None if is_ip => labels,
                _ => Vec::new(),
            };
            Stack {
                link,
                tags,
                labels,
                session,
                net,
                padding,
            }
        })
}

/// Addresses, protocol, ports, ICMP and tags as a parser reports them.
type Facts = (
    Option<(u128, u128)>,
    Option<u8>,
    Option<(u16, u16)>,
    Option<(u8, u8)>,
    Vec<u16>,
);

/// Returns the result of etherparse for an Ethernet frame; `None` if etherparse rejects
/// it.
fn etherparse_facts(frame: &[u8]) -> Option<Facts> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let tags = packet.vlan_ids().iter().map(|vid| vid.value()).collect();
    let (addresses, protocol) = match packet.net.as_ref()? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            let address = |bytes: [u8; 4]| u128::from(u32::from_be_bytes(bytes));
            let both = (address(header.source()), address(header.destination()));
            (both, header.protocol().0)
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            let address = u128::from_be_bytes;
            let both = (address(header.source()), address(header.destination()));
            (both, ip.payload().ip_number.0)
        }
        NetSlice::Arp(_) => return None,
    };
    let (ports, icmp) = match packet.transport {
        Some(TransportSlice::Tcp(tcp)) => (Some((tcp.source_port(), tcp.destination_port())), None),
        Some(TransportSlice::Udp(udp)) => (Some((udp.source_port(), udp.destination_port())), None),
        Some(TransportSlice::Icmpv4(icmp)) => (None, Some((icmp.type_u8(), icmp.code_u8()))),
        Some(TransportSlice::Icmpv6(icmp)) => (None, Some((icmp.type_u8(), icmp.code_u8()))),
        _ => (None, None),
    };
    Some((Some(addresses), Some(protocol), ports, icmp, tags))
}

/// Compares our result with etherparse's. Returns true if etherparse has a result.
fn agrees_with_etherparse(frame: &[u8]) -> Result<bool, TestCaseError> {
    let Some(theirs) = etherparse_facts(frame) else {
        return Ok(false);
    };
    let ours = parse(frame, LinkType::Ethernet);
    let (addresses, protocol, ports, icmp, tags) = theirs;
    prop_assert_eq!(Some((ours.src, ours.dst)), addresses, "{:?}", ours);
    prop_assert_eq!(ours.vlan_tags as usize, tags.len());
    prop_assert_eq!(ours.vlan_vid, tags.first().copied().unwrap_or(0));
    if ours.proto != protocol {
        // etherparse rejects some orders of extension headers, or stops at them.
        prop_assert_eq!(ours.family, Some(Family::V6));
        return Ok(false);
    }
    // etherparse reads neither SCTP nor anything above a fragment, not even the first.
    if ports.is_some() {
        prop_assert_eq!(ours.ports, ports);
    }
    // etherparse accepts ICMP in either version of IP.
    let own = matches!(ours.transport(), Some(Transport::Icmp | Transport::Icmpv6));
    if icmp.is_some() && own {
        prop_assert_eq!(ours.icmp, icmp);
    }
    if ours.fragment == Fragment::Whole && protocol != Some(132) {
        prop_assert_eq!(ours.ports, ports);
    }
    Ok(true)
}

/// Checks that the headers fit their schemas.
fn fits_schemas(parsed: &Parsed) {
    if let Some(header) = parsed.ipv4_5tuple() {
        KeyVec::new(&Schema::ipv4_5tuple()).push(&header).unwrap();
    }
    if let Some(header) = parsed.ipv6_5tuple() {
        KeyVec::new(&Schema::ipv6_5tuple()).push(&header).unwrap();
    }
    if let Some(header) = parsed.openflow15(u32::MAX) {
        KeyVec::new(&Schema::openflow15()).push(&header).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_stacks_parse_to_what_was_built(stack in stack()) {
        check(&stack);
        let frame = stack.bytes();
        for length in 0..frame.len() {
            check_cut(&stack, &frame, length);
        }
    }

    #[test]
    fn random_stacks_agree_with_etherparse(stack in stack()) {
        let stack = Stack { link: LinkType::Ethernet, labels: vec![], session: None, ..stack };
        let compared = agrees_with_etherparse(&stack.bytes())?;
        // Apart from routing headers and other orders of headers, etherparse reads all
        // frames. It rejects ICMP timestamps of the wrong length.
        let plain = match &stack.net {
            Net::V4 { upper: Upper::Icmp(13 | 14, _), .. } => false,
            Net::V4 { .. } => true,
            Net::V6 { extensions, .. } => extensions.is_empty(),
            _ => false,
        };
        prop_assert!(compared || !plain || stack.tags.len() > 3, "{:?}", stack);
    }

    #[test]
    fn damaged_stacks_agree_with_etherparse_or_are_refused_by_it(
        stack in stack(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let stack = Stack { link: LinkType::Ethernet, labels: vec![], session: None, ..stack };
        let mut frame = stack.bytes();
        for (at, value) in damage {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        fits_schemas(&parse(&frame, LinkType::Ethernet));
        agrees_with_etherparse(&frame)?;
        frame.truncate(cut.index(frame.len()) + 1);
        fits_schemas(&parse(&frame, LinkType::Ethernet));
        agrees_with_etherparse(&frame)?;
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        ethertype in prop::sample::select(vec![
            0x0800_u16, 0x86dd, 0x0806, 0x8847, 0x8100, 0x88a8, 0x0040, 0x88cc, 0x8864,
        ]),
    ) {
        for link in links() {
            fits_schemas(&parse(&bytes, link));
        }
        let mut frame = vec![2; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.extend(&bytes);
        fits_schemas(&parse(&frame, LinkType::Ethernet));
    }
}
