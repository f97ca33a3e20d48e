//! Tests of the conversion of frames of all link types to Ethernet frames.

use std::borrow::Cow;

use super::*;
use crate::packet::tests::every_stack;
use crate::packet::{Anomaly, ethernet};

/// Checks that the Ethernet frame has the same fields as the original frame.
fn check(frame: &[u8], link: LinkType) -> bool {
    let parsed = parse(frame, link);
    let context = || format!("{link}: {frame:02x?}: {parsed:?}");
    match ethernet_frame(frame, link) {
        Ok(made) => {
            let again = parse(&made, LinkType::Ethernet);
            assert_eq!(again, parsed, "{}", context());
            assert_eq!(
                matches!(made, Cow::Borrowed(_)),
                link == LinkType::Ethernet,
                "{}",
                context()
            );
            true
        }
        Err(NoEthernetFrame::UnknownLink) => {
            assert!(parsed.anomalies.contains(Anomaly::UnknownLinkType));
            false
        }
        Err(NoEthernetFrame::Truncated) => {
            let truncations = [
                Anomaly::TruncatedCooked,
                Anomaly::TruncatedLoopback,
                Anomaly::EmptyFrame,
            ];
            let is_truncated = |&anomaly: &Anomaly| parsed.anomalies.contains(anomaly);
            assert!(truncations.iter().any(is_truncated), "{}", context());
            false
        }
        Err(NoEthernetFrame::NoType) => {
            assert_eq!(parsed.ipv4_5tuple(), None, "{}", context());
            assert_eq!(parsed.ipv6_5tuple(), None, "{}", context());
            false
        }
    }
}

#[test]
fn every_frame_of_every_link_has_the_same_fields_as_an_ethernet_frame() {
    let mut made = std::collections::BTreeMap::new();
    for stack in every_stack() {
        let frame = stack.bytes();
        for length in 0..=frame.len() {
            if check(&frame[..length], stack.link) {
                *made.entry(stack.link.number()).or_insert(0) += 1;
            }
        }
        // Convert the frame as if it had any other link type.
        for link in LinkType::PARSED.into_iter().chain([LinkType::Other(127)]) {
            check(&frame, link);
        }
    }
    for link in LinkType::PARSED {
        assert!(made[&link.number()] > 100, "{link}: {made:?}");
    }
}

#[test]
fn frames_without_a_type_are_refused() {
    let cooked = |device: u16, protocol: u16, packet: &[u8]| {
        let mut frame = vec![0; 16];
        frame[2..4].copy_from_slice(&device.to_be_bytes());
        frame[14..16].copy_from_slice(&protocol.to_be_bytes());
        frame.extend(packet);
        frame
    };
    let outcome = |frame: &[u8], link| ethernet_frame(frame, link).map(Cow::into_owned);
    let no_type = Err(NoEthernetFrame::NoType);
    // Netlink, a protocol that is not a type, an IEEE 802.3 frame too long for a length
    // field, and a frame that would be parsed as SNAP.
    for frame in [
        cooked(824, 0x0800, &[0x45]),
        cooked(1, 0x000c, &[0x45]),
        cooked(1, 4, &[0x42; 1536]),
        cooked(1, 1, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]),
    ] {
        assert_eq!(outcome(&frame, LinkType::LinuxCooked), no_type);
    }
    assert_eq!(outcome(&[0, 0, 0, 7, 0x45], LinkType::Loopback), no_type);
    assert_eq!(outcome(&[0x55], LinkType::RawIp), no_type);
    let truncated = Err(NoEthernetFrame::Truncated);
    for link in LinkType::PARSED.into_iter().skip(1) {
        assert_eq!(outcome(&[], link), truncated, "{link}");
    }
    let unknown = Err(NoEthernetFrame::UnknownLink);
    assert_eq!(outcome(&[0x45], LinkType::Other(127)), unknown);
    // A spanning tree frame keeps its length.
    let frame = cooked(1, 4, &[0x42, 0x42, 3, 9]);
    let made = outcome(&frame, LinkType::LinuxCooked).unwrap();
    assert_eq!(made[12..], [0, 4, 0x42, 0x42, 3, 9]);
    assert_eq!(made.len(), ethernet::HEADER_BYTES + 4);
}
